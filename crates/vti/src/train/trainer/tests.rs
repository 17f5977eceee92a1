//! The gradient of the loss of a batch, by central differences, for densities as a whole and in blocks.

use std::ops::ControlFlow;

use super::*;
use crate::device::Cpu;
use crate::family::{FlowKind, Structure};
use crate::problem::dag::simulate::{SimulationSettings, simulate};
use crate::problem::dag::{Dag, DagSettings, Noise, Sem};
use crate::problem::{BlockModels, Blocks, Constraints, DensityError, Preconditioner, Problem};
use crate::space::ModelSpace;
use crate::train::TemperSettings;

/// Which weights have no density.
type Undefined = fn(f64) -> bool;

/// A linear graph problem; the density of the last node is undefined for some values of its last weight.
struct Limited {
    dag: Dag,
    undefined: Undefined,
}

impl Problem for Limited {
    fn space(&self) -> &dyn ModelSpace {
        self.dag.space()
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        Problem::log_density(&self.dag, model, theta, gradient)
    }

    fn log_prior(&self, model: &[u16]) -> f64 {
        Problem::log_prior(&self.dag, model)
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.dag.constraints()
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        Some(self)
    }
}

impl Blocks for Limited {
    blocks_of_dag!();

    fn log_density(&self, block: usize, key: u64, theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        if block == 2 && theta.last().is_some_and(|&weight| key != 0 && (self.undefined)(weight)) {
            return Err(DensityError::Undefined { reason: "so it was decided".into() });
        }
        Blocks::log_density(&self.dag, block, key, theta, gradient)
    }

    fn preconditioner(&self, block: usize, key: u64) -> Option<Preconditioner> {
        Blocks::preconditioner(&self.dag, block, key)
    }

    fn log_evidence_estimate(&self, block: usize, key: u64) -> f64 {
        self.dag.log_evidence_estimate(block, key)
    }

    fn models(&self) -> Option<&dyn BlockModels> {
        self.dag.models()
    }
}

fn problem(noise: Noise, undefined: Undefined) -> Arc<dyn Problem> {
    let simulation = SimulationSettings { nodes: 3, rows: 20, sem: Sem::Linear {}, ..Default::default() };
    let settings = DagSettings { sem: Sem::Linear {}, noise, ..DagSettings::default() };
    Arc::new(Limited { dag: Dag::new(simulate(&simulation).unwrap().table, settings).unwrap(), undefined })
}

/// Draws a batch and drops what is not finite; how many rows that is.
fn begin(trainer: &mut Trainer<Cpu<f64>>) -> usize {
    let draw = |purpose| Draw { seed: 3, purpose, step: 0 };
    trainer.family.prepare_in_silence();
    trainer.family.draw_models(draw(Purpose::Models), &mut trainer.pass, trainer.settings.batch).unwrap();
    trainer.pass.plan(&trainer.family, |_| false).unwrap();
    trainer.pass.draw_z(draw(Purpose::Reference));
    trainer.pass.forward(&trainer.family).unwrap();
    trainer.pass.density(&trainer.family).unwrap();
    trainer.score();
    trainer.drop_not_finite().unwrap().len()
}

/// The mean of log h over the kept rows of the same batch with other φ.
fn loss(trainer: &mut Trainer<Cpu<f64>>, parameters: &[f64]) -> f64 {
    trainer.family.device.write(parameters, &mut trainer.family.parameters).unwrap();
    trainer.pass.plan(&trainer.family, |_| false).unwrap();
    trainer.pass.forward(&trainer.family).unwrap();
    trainer.pass.density(&trainer.family).unwrap();
    let kept: Vec<usize> = (0..trainer.pass.rows()).filter(|&row| trainer.batch.kept[row]).collect();
    let sum: f64 = kept.iter().map(|&row| trainer.pass.log_q_theta(row) - trainer.pass.log_eta[row]).sum();
    sum / kept.len() as f64
}

#[test]
fn gradients_of_the_loss_are_those_of_the_kept_rows() {
    let device = Cpu::<f64>::new(2).unwrap();
    let flows =
        [FlowKind::Affine { layers: 2, blocks: 1, hidden: 16 }, FlowKind::Spline { layers: 2, blocks: 1, hidden: 16 }];
    let settings = TrainSettings { batch: 40, temper: TemperSettings::NONE, max_dropped: 0.9, ..Default::default() };
    let cases: [(Noise, Undefined, bool); 3] = [
        (Noise::Known { sigma: 1.0 }, |_| false, false),
        (Noise::Unknown {}, |_| false, false),
        (Noise::Unknown {}, |weight| weight > 0.3, true),
    ];
    for (noise, undefined, drops) in cases {
        let problem = problem(noise, undefined);
        for (structure, flow) in [Structure::Blocks, Structure::Joint].into_iter().zip(flows.clone()) {
            let family = FamilySettings { structure, flow, ..FamilySettings::default() };
            let mut trainer = Trainer::new(Arc::clone(&problem), device.clone(), &family, &settings).unwrap();
            // Away from where networks start: there most gradients are 0.
            (0..20).for_each(|_| drop(trainer.step().unwrap()));
            let dropped = begin(&mut trainer);
            assert_eq!(dropped > 0, drops, "{dropped}");
            trainer.find_gradient(false).unwrap();
            let mut parameters = vec![0.0; trainer.family.flow.parameter_count()];
            let mut gradient = parameters.clone();
            device.read(&trainer.family.parameters, &mut parameters).unwrap();
            device.read(&trainer.gradient, &mut gradient).unwrap();
            // Weights that no mask removes, and that matter.
            let places: Vec<usize> = (0..parameters.len()).filter(|&place| gradient[place] != 0.0).collect();
            let mut largest = 0.0;
            for place in places.iter().copied().step_by(places.len() / 60 + 1) {
                let mut at = |step: f64| {
                    let mut moved = parameters.clone();
                    moved[place] += step;
                    loss(&mut trainer, &moved)
                };
                let step = 1e-5;
                let numeric = (at(step) - at(-step)) / (2.0 * step);
                let found = gradient[place];
                largest = f64::max(largest, found.abs());
                assert!(
                    (numeric - found).abs() < 1e-5 * (1.0 + found.abs()),
                    "{structure:?}: {place}: {found} {numeric}"
                );
            }
            assert!(largest > 1e-3, "nothing was tested: {largest}");
        }
    }
}

#[test]
fn scores_of_blocks_add_up_to_those_of_rows() {
    let device = Cpu::<f64>::new(2).unwrap();
    let problem = problem(Noise::Unknown {}, |weight| weight > 0.3);
    let settings = TrainSettings { batch: 60, max_dropped: 0.9, ..Default::default() };
    let mut trainer = Trainer::new(problem, device, &FamilySettings::default(), &settings).unwrap();
    assert!(begin(&mut trainer) > 0);
    let Buffers { log_h, kept, keys, block_log_h, .. } = &trainer.batch;
    assert_eq!((keys.len(), block_log_h.len()), (180, 180));
    for row in 0..60 {
        let blocks: f64 = block_log_h[row * 3..(row + 1) * 3].iter().sum();
        assert_eq!(blocks.is_finite(), kept[row]);
        assert!(!kept[row] || (blocks - log_h[row]).abs() < 1e-9 * (1.0 + blocks.abs()));
    }
}

/// Insists on finite bounds and gradients.
struct AllFinite;

impl Observer for AllFinite {
    fn wants_gradient_norm(&mut self, _: &StepReport) -> bool {
        true
    }

    fn step(&mut self, report: &StepReport) -> ControlFlow<()> {
        assert!(report.gradient_norm.is_some_and(f64::is_finite) && report.elbo.is_finite());
        ControlFlow::Continue(())
    }
}

#[test]
fn rows_that_are_dropped_do_not_spoil_a_run() {
    let device = Cpu::<f32>::new(2).unwrap();
    // A twentieth of all draws of the last node, whatever it is, so the answer is that of the whole problem.
    let scattered = |weight: f64| (1e4 * weight).rem_euclid(1.0) < 0.05;
    let (limited, whole) = (problem(Noise::Unknown {}, scattered), problem(Noise::Unknown {}, |_| false));
    let settings = TrainSettings { steps: 150, batch: 64, max_dropped: 0.3, ..Default::default() };
    let edges = |problem: Arc<dyn Problem>| {
        let trainer = Trainer::new(problem, device.clone(), &FamilySettings::default(), &settings).unwrap();
        let fit = trainer.run(&mut AllFinite).unwrap();
        let models = fit.posterior.problem().blocks().unwrap().models().unwrap();
        let scores = fit.posterior.block_scores().unwrap();
        (fit.dropped, scores.probabilities(models, 6, device.workers()).features)
    };
    let ((dropped, found), (none, expected)) = (edges(limited), edges(whole));
    assert!(dropped > 0 && none == 0, "{dropped} {none}");
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 0.03, "{found} {expected}");
    }
}
