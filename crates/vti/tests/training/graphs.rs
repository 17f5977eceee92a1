//! Runs over graphs, whose densities have factors: a flow for each block, or one for all.

use std::ops::ControlFlow;
use std::sync::Arc;

use vti::device::Cpu;
use vti::family::{FamilySettings, FlowKind, Structure};
use vti::models::{
    AutoregressiveSettings, LearningSettings, ModelsError, ModelsSettings, ModularSettings, WordNetSettings,
};
use vti::posterior::{Point, Posterior};
use vti::problem::Problem;
use vti::problem::dag::simulate::{SimulationSettings, simulate};
use vti::problem::dag::{Dag, DagSettings, GraphPrior, Noise, Sem};
use vti::space::Model;
use vti::train::{CheckpointSettings, Silent, StepReport, TrainError, TrainSettings, Trainer};

use crate::{bits, directory};

const LINEAR: Sem = Sem::Linear {};
const MLP: Sem = Sem::Mlp { hidden: 3, bias: true };
const KNOWN: Noise = Noise::Known { sigma: 1.0 };
const UNKNOWN: Noise = Noise::Unknown {};

fn problem(sem: Sem, noise: Noise, prior: GraphPrior) -> Arc<dyn Problem> {
    let simulation = SimulationSettings { nodes: 3, rows: 20, sem: LINEAR, ..SimulationSettings::default() };
    let settings = DagSettings { sem, noise, prior, edge_penalty: 0.2, ..DagSettings::default() };
    Arc::new(Dag::new(simulate(&simulation).unwrap().table, settings).unwrap())
}

/// Both structures, with all they can be told models by.
fn families() -> Vec<FamilySettings> {
    let network = WordNetSettings { hidden: 16, blocks: 1, ..WordNetSettings::default() };
    let words = AutoregressiveSettings { network, learning: LearningSettings::new(0.01) };
    let affine = FlowKind::Affine { layers: 2, blocks: 1, hidden: 16 };
    let spline = FlowKind::Spline { layers: 2, blocks: 1, hidden: 16 };
    let family = |structure, models, flow: &FlowKind| FamilySettings {
        structure,
        models,
        flow: flow.clone(),
        ..FamilySettings::default()
    };
    vec![
        family(Structure::Blocks, ModelsSettings::Auto {}, &affine),
        family(Structure::Blocks, ModelsSettings::Auto {}, &spline),
        family(Structure::Blocks, ModelsSettings::Autoregressive(words), &affine),
        family(Structure::Joint, ModelsSettings::Auto {}, &affine),
    ]
}

fn settings() -> TrainSettings {
    TrainSettings { steps: 40, batch: 70, ..TrainSettings::default() }
}

#[test]
fn densities_of_draws_are_those_of_points_and_of_blocks() {
    let device = Cpu::<f64>::new(2).unwrap();
    for (sem, noise) in [LINEAR, MLP].into_iter().flat_map(|sem| [KNOWN, UNKNOWN].map(|noise| (sem, noise))) {
        let problem = problem(sem, noise, GraphPrior::Graphs);
        for family in families() {
            let fit =
                Trainer::new(problem.clone(), device.clone(), &family, &settings()).unwrap().run(&mut Silent).unwrap();
            let draws = fit.posterior.draw_with_target(150, 0).unwrap();
            let row = |row: usize| (draws.word(row), &draws.theta[row * draws.stride..][..draws.dims[row]]);
            let points: Vec<Point> = (0..draws.len())
                .map(|r| Point { model: Model::from(row(r).0.to_vec()), theta: row(r).1.to_vec() })
                .collect();
            let log_q = fit.posterior.log_q(&points).unwrap();
            let split = family.structure == Structure::Blocks;
            assert_eq!(draws.blocks.keys.len(), if split { 3 * draws.len() } else { 0 });
            for (r, &log_q) in log_q.iter().enumerate() {
                let (word, theta) = row(r);
                let close = |a: f64, b: f64| (a - b).abs() < 1e-7 * (1.0 + a.abs());
                assert!(close(log_q, draws.log_q[r]), "{sem:?} {noise:?}: {log_q} {}", draws.log_q[r]);
                let log_prior = problem.log_prior(word);
                let log_density = problem.log_density(word, theta, &mut vec![0.0; theta.len()]).unwrap();
                let target = log_prior + log_density;
                assert!(close(target, draws.log_target[r]), "{sem:?} {noise:?}: {target} {}", draws.log_target[r]);
                if split {
                    let blocks: f64 = draws.blocks.log_weights[3 * r..3 * r + 3].iter().sum();
                    let whole = draws.log_ratio(r) - (log_prior - draws.log_q_model[r]);
                    assert!(close(blocks, whole), "{sem:?} {noise:?}: {blocks} {whole}");
                }
            }
        }
    }
}

/// What a run over graphs ends with.
fn run(problem: &Arc<dyn Problem>, family: &FamilySettings, threads: usize) -> Vec<u64> {
    let device = Cpu::<f32>::new(threads).unwrap();
    bits(&Trainer::new(problem.clone(), device, family, &settings()).unwrap().run(&mut Silent).unwrap().posterior)
}

#[test]
fn runs_do_not_depend_on_threads_nor_on_interruptions() {
    let directory = directory("graphs");
    let cases = [(LINEAR, KNOWN, GraphPrior::Graphs), (MLP, UNKNOWN, GraphPrior::Orders)];
    for (case, (sem, noise, prior)) in cases.into_iter().enumerate() {
        let problem = problem(sem, noise, prior);
        for (index, family) in families().iter().enumerate() {
            let whole = run(&problem, family, 1);
            assert_eq!(whole, run(&problem, family, 2), "{family:?}");
            let path = directory.join(format!("{case}-{index}.safetensors"));
            let checkpoint = Some(CheckpointSettings { path: path.clone(), every: 1e9 });
            let device = Cpu::<f32>::new(1).unwrap();
            let interrupt = |report: &StepReport| {
                if report.step >= 17 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let saved = TrainSettings { checkpoint, ..settings() };
            Trainer::new(problem.clone(), device.clone(), family, &saved).unwrap().run(&mut { interrupt }).unwrap();
            let device = Cpu::<f32>::new(2).unwrap();
            let trainer = Trainer::resume(problem.clone(), device.clone(), &path).unwrap();
            assert_eq!(trainer.steps(), 17);
            let fit = trainer.run(&mut Silent).unwrap();
            assert_eq!(bits(&fit.posterior), whole, "{family:?}");
            let path = directory.join("posterior.safetensors");
            fit.posterior.save(&path).unwrap();
            assert_eq!(bits(&Posterior::load(problem.clone(), device.clone(), &path).unwrap()), whole, "{family:?}");
        }
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn scores_of_nodes_need_blocks() {
    let (problem, device) = (problem(LINEAR, KNOWN, GraphPrior::Orders), Cpu::<f32>::single());
    let models = ModelsSettings::Modular(ModularSettings::default());
    let family = FamilySettings { structure: Structure::Joint, models, ..FamilySettings::default() };
    let error = Trainer::new(problem.clone(), device.clone(), &family, &settings()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, TrainError::Family(_)) && text == ModelsError::NotModular.to_string(), "{text}");
    let trainer = Trainer::new(problem.clone(), device.clone(), &FamilySettings::default(), &settings()).unwrap();
    assert_eq!(trainer.family().settings().structure, Structure::Blocks);
    assert!(matches!(trainer.family().settings().models, ModelsSettings::Modular(_)));
}
