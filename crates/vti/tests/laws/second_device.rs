//! Flows and training on a second device, plain and slow: what a device must do is all in its trait.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use vti::device::{Cpu, Device, DeviceError};
use vti::family::{ContextSettings, FamilySettings, FlowKind};
use vti::flow::{ContextShape, Passes};
use vti::models::{AutoregressiveSettings, CategoricalSettings, LearningSettings, ModelsSettings, WordNetSettings};
use vti::optimise::{OptimiserSettings, SgdSettings};
use vti::posterior::Posterior;
use vti::problem::{self, Problem};
use vti::space::Subsets;
use vti::state::Array;
use vti::store;
use vti::train::{FlowGradient, InformationSettings, Stop, TrainError, TrainSettings, Trainer};
use vti::workers::Workers;

use crate::cases::{Setup, table};
use crate::max_error;
use crate::plain::{Fault, Plain};

/// θ, log-determinants, gradients and recovered z of a flow on any device.
fn everything<D: Device<Real = f64>>(device: &D, setup: &Setup<f64>) -> [Vec<f64>; 5] {
    let (flow, rows) = (&setup.flow, setup.batch.rows());
    let z = setup.left_align(&setup.z);
    let mut parameters = device.buffer(setup.parameters.len()).unwrap();
    device.write(&setup.parameters, &mut parameters).unwrap();
    let mut work = flow.workspace(device, rows, Passes::TrainingWithScores).unwrap();
    work.set_batch(device, &setup.batch).unwrap();
    work.write_z(device, &z).unwrap();
    flow.forward(device, &parameters, &mut work).unwrap();
    let (mut theta, mut log_det) = (vec![0.0; z.len()], vec![0.0; rows]);
    work.read_theta(device, &mut theta, &mut log_det).unwrap();
    let mut score = vec![0.0; z.len()];
    flow.score(device, &parameters, &mut work, &mut score).unwrap();
    work.write_gradients(device, &theta, &vec![-1.0; rows]).unwrap();
    let mut gradient = device.buffer(setup.parameters.len()).unwrap();
    flow.backward(device, &parameters, &mut work, &mut gradient).unwrap();
    let mut found = vec![0.0; setup.parameters.len()];
    device.read(&gradient, &mut found).unwrap();
    let mut evaluation = flow.workspace(device, rows, Passes::Evaluation).unwrap();
    evaluation.set_batch(device, &setup.batch).unwrap();
    evaluation.write_theta(device, &theta).unwrap();
    flow.inverse(device, &parameters, &mut evaluation).unwrap();
    let mut back = vec![0.0; z.len()];
    evaluation.read_z(device, &mut back, &mut vec![0.0; rows]).unwrap();
    [theta, log_det, found, back, score]
}

#[test]
fn flows_run_unchanged_on_another_device() {
    let wanted = |context: ContextShape| context != ContextShape::Symbols(1);
    for case in table().iter().filter(|case| case.shape.max_dim == 5 && wanted(case.shape.context)) {
        let setup = Setup::<f64>::new(case, 20, 41);
        let (fast, plain) =
            (everything(&setup.device, &setup), everything(&Plain::new(Workers::SINGLE, Fault::Nothing), &setup));
        for (what, (fast, plain)) in ["θ", "log-det", "dφ", "z", "score"].iter().zip(fast.iter().zip(&plain)) {
            let error = max_error(fast, plain.iter().copied());
            assert!(error < 1e-9, "{}: {what} off by {error}", case.name);
        }
    }
}

/// Normal parameters around means of their own, with evidence e for each.
fn problem() -> Arc<dyn Problem> {
    Arc::new(problem::from_fn(Subsets::with_always(3, 1).unwrap().with_sizes(0..=2).unwrap(), |_, theta, gradient| {
        let mut log_density = 0.0;
        for (i, (t, g)) in theta.iter().zip(gradient).enumerate() {
            let off = t - 0.5 - i as f64;
            *g = -off;
            log_density += 1.0 - 0.5 * off * off - 0.5 * std::f64::consts::TAU.ln();
        }
        log_density
    }))
}

/// Everything that runs on a device: flows of each kind, both optimisers, networks over words and logits.
fn families() -> Vec<FamilySettings> {
    let sgd = LearningSettings {
        optimiser: OptimiserSettings::Sgd(SgdSettings::default()),
        rate: 1.0,
        ..LearningSettings::new(1.0)
    };
    let network = WordNetSettings { hidden: 8, blocks: 1, ..WordNetSettings::default() };
    let words = AutoregressiveSettings { network, learning: LearningSettings::new(0.01) };
    let family = |models, flow| FamilySettings { models, flow, ..FamilySettings::default() };
    vec![
        family(ModelsSettings::Autoregressive(words), FlowKind::Spline { layers: 2, blocks: 1, hidden: 8 }),
        FamilySettings {
            context: ContextSettings::Features,
            ..family(
                ModelsSettings::Categorical(CategoricalSettings { learning: sgd }),
                FlowKind::Affine { layers: 2, blocks: 1, hidden: 8 },
            )
        },
        family(ModelsSettings::Auto {}, FlowKind::Diagonal { hidden: vec![4] }),
    ]
}

fn settings(flow_gradient: FlowGradient, batch: usize) -> TrainSettings {
    TrainSettings {
        steps: 30,
        batch,
        flow_gradient,
        information: InformationSettings::Unlimited {},
        ..TrainSettings::default()
    }
}

/// A file of a test's own.
fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("vti-laws-{}-{name}.safetensors", std::process::id()))
}

/// All arrays of what was learned after some steps: φ and ψ.
fn learned<D: Device>(
    device: D,
    family: &FamilySettings,
    settings: &TrainSettings,
    name: &str,
) -> BTreeMap<String, Vec<f64>> {
    let mut trainer = Trainer::new(problem(), device, family, settings).unwrap();
    (0..6).for_each(|_| drop(trainer.step().unwrap()));
    let (posterior, path) = (trainer.finish(Stop::Observer).posterior, file(name));
    posterior.save(&path).unwrap();
    let (_, state) = store::read::<serde_json::Value>(&path).unwrap();
    // What one device has learned another can use.
    let other = Posterior::load(problem(), Cpu::<f64>::single(), &path).unwrap();
    let (found, expected) = (posterior.draw(50, 1).unwrap(), other.draw(50, 1).unwrap());
    assert_eq!(found.words, expected.words, "{family:?}");
    let error = max_error(&found.log_q, expected.log_q.into_iter());
    assert!(error < 1e-9, "{family:?}: log q off by {error}");
    std::fs::remove_file(path).unwrap();
    let numbers = |(name, array): &(String, Array)| match array {
        Array::F64(numbers) => (name.clone(), numbers.clone()),
        Array::F32(_) => panic!("{name} is in single precision"),
    };
    state.arrays().iter().map(numbers).collect()
}

#[test]
fn training_runs_unchanged_on_another_device() {
    for (index, family) in families().iter().enumerate() {
        for flow_gradient in [FlowGradient::Reparameterised, FlowGradient::PathDerivative, FlowGradient::Adaptive] {
            let (settings, name) = (settings(flow_gradient, 40), format!("{index}-{flow_gradient:?}"));
            let fast = learned(Cpu::<f64>::new(2).unwrap(), family, &settings, &format!("{name}-fast"));
            let slow = learned(Plain::new(Workers::SINGLE, Fault::Nothing), family, &settings, &format!("{name}-slow"));
            assert!(fast.contains_key("family.flow"), "φ is among them");
            assert!(fast.keys().eq(slow.keys()));
            for ((name, fast), slow) in fast.iter().zip(slow.values()) {
                let error = max_error(fast, slow.iter().copied());
                assert!(fast.len() == slow.len() && error < 1e-9, "{family:?}: {name} off by {error}");
            }
        }
    }
}

/// Whether an error is that of a device.
fn of_device(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<DeviceError>()
        || error.to_string().contains("failed on the device")
        || error.source().is_some_and(of_device)
}

/// Makes a trainer on a device and takes a step; also how many operations came before it.
fn train(device: &Plain, family: &FamilySettings) -> (Result<Posterior<Plain>, TrainError>, u64) {
    // Both estimators of the gradient are tried in the first step. Two shards.
    let settings = settings(FlowGradient::Adaptive, 6);
    let mut trainer = match Trainer::new(problem(), device.clone(), family, &settings) {
        Ok(trainer) => trainer,
        Err(error) => return (Err(error), device.operations()),
    };
    let before = device.operations();
    if let Err(error) = trainer.step() {
        // What is left of it may be used or thrown away: nothing panics.
        let _ = trainer.step();
        drop(trainer);
        return (Err(error), before);
    }
    (Ok(trainer.finish(Stop::Observer).posterior), before)
}

#[test]
fn an_operation_that_fails_ends_a_step_with_an_error() {
    let workers = Workers::new(2).unwrap();
    let device = |fault| Plain::new(workers.clone(), fault);
    for family in families() {
        let whole = device(Fault::Nothing);
        let (trained, before) = train(&whole, &family);
        trained.unwrap();
        let all = whole.operations();
        assert!(before > 20 && all > before + 100, "{before} {all}");
        assert!(all < 3_000, "too many to try them all: {all}");
        for number in 1..=all {
            let error = train(&device(Fault::Operation(number)), &family).0.map(drop).unwrap_err();
            assert!(of_device(&error), "operation {number} of {all}: {error}");
        }
    }
}

#[test]
fn an_operation_that_fails_spoils_one_answer_of_a_posterior_and_no_other() {
    let family = &families()[0];
    let device = |fault| Plain::new(Workers::SINGLE, fault);
    let whole = device(Fault::Nothing);
    let posterior = train(&whole, family).0.unwrap();
    let before = whole.operations();
    let expected = posterior.draw_with_target(30, 0).unwrap();
    for number in before + 1..=whole.operations() {
        let posterior = train(&device(Fault::Operation(number)), family).0.unwrap();
        let error = posterior.draw_with_target(30, 0).unwrap_err();
        assert!(of_device(&error), "{error}");
        assert_eq!(posterior.draw_with_target(30, 0).unwrap().log_q, expected.log_q);
    }
}
