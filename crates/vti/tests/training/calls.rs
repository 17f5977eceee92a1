//! Densities are asked once per batch, for all of it, from the thread that asked for the batch.

#[macro_use]
#[path = "../support/wrapped_dag.rs"]
mod wrapped_dag;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use vti::check::{CheckSettings, LocalMove, RefineSettings, check, refine};
use vti::device::Cpu;
use vti::evidence::AnnealSettings;
use vti::family::{FamilySettings, FlowKind, Structure};
use vti::posterior::Posterior;
use vti::problem::dag::simulate::{SimulationSettings, simulate};
use vti::problem::dag::{Dag, DagSettings, Noise, Sem};
use vti::problem::{
    BatchError, BlockBatch, BlockModels, BlockParticles, Blocks, Constraints, DensityBatch, DensityError,
    Preconditioner, Problem,
};
use vti::rjmcmc::{RjmcmcSettings, rjmcmc};
use vti::smc::{Sampler, SmcSettings};
use vti::space::{ModelSpace, Subsets};
use vti::train::{FlowGradient, Silent, Stop, TrainSettings, Trainer};
use vti::workers::Workers;

use crate::{families, settings};

/// Who asked, and for how many rows.
#[derive(Default)]
struct Calls(Mutex<Vec<(ThreadId, usize)>>);

impl Calls {
    fn add(&self, rows: usize) {
        self.0.lock().unwrap().push((thread::current().id(), rows));
    }

    /// Rows of the calls since the last time, which all came from this thread.
    fn take(&self) -> Vec<usize> {
        let here = thread::current().id();
        let calls = std::mem::take(&mut *self.0.lock().unwrap());
        assert!(calls.iter().all(|&(thread, _)| thread == here), "another thread asked");
        calls.into_iter().map(|(_, rows)| rows).collect()
    }
}

/// Standard normal parameters.
struct Whole {
    space: Subsets,
    calls: Calls,
}

impl Whole {
    fn new(things: usize) -> Arc<Self> {
        Arc::new(Self { space: Subsets::with_always(things, 1).unwrap(), calls: Calls::default() })
    }
}

impl Problem for Whole {
    fn space(&self) -> &dyn ModelSpace {
        &self.space
    }

    fn log_density(&self, _: &[u16], _: &[f64], _: &mut [f64]) -> Result<f64, DensityError> {
        Err(DensityError::Fatal { reason: "nobody should ask for a single row".into() })
    }

    fn log_density_batch(&self, batch: DensityBatch<'_>, workers: &Workers) -> Result<(), BatchError> {
        self.calls.add(batch.rows());
        batch.share_out(workers, |rows| {
            for row in 0..rows.rows() {
                let (_, theta, gradient) = rows.row(row);
                gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
                rows.log_density[row] = -theta.iter().map(|t| 0.5 * t * t).sum::<f64>();
            }
            Ok(())
        })
    }
}

/// A graph problem that may be asked for its factors in batches only.
struct InBlocks {
    dag: Dag,
    calls: Calls,
}

impl InBlocks {
    fn new(sem: Sem) -> Arc<Self> {
        let simulation = SimulationSettings { nodes: 3, rows: 20, sem: Sem::Linear {}, ..Default::default() };
        let settings = DagSettings { sem, noise: Noise::Unknown {}, ..DagSettings::default() };
        let dag = Dag::new(simulate(&simulation).unwrap().table, settings).unwrap();
        Arc::new(Self { dag, calls: Calls::default() })
    }
}

impl Problem for InBlocks {
    fn space(&self) -> &dyn ModelSpace {
        self.dag.space()
    }

    fn log_density(&self, _: &[u16], _: &[f64], _: &mut [f64]) -> Result<f64, DensityError> {
        Err(DensityError::Fatal { reason: "nobody should ask for a single row".into() })
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

impl Blocks for InBlocks {
    blocks_of_dag!();

    fn log_density(&self, _: usize, _: u64, _: &[f64], _: &mut [f64]) -> Result<f64, DensityError> {
        Err(DensityError::Fatal { reason: "nobody should ask for a single block".into() })
    }

    fn log_density_batch(&self, batch: BlockBatch<'_>, workers: &Workers) -> Result<(), BatchError> {
        self.calls.add(batch.keys.len() / batch.count);
        Blocks::log_density_batch(&self.dag, batch, workers)
    }

    fn preconditioner(&self, block: usize, key: u64) -> Option<Preconditioner> {
        Blocks::preconditioner(&self.dag, block, key)
    }

    fn log_evidence_estimate(&self, block: usize, key: u64) -> f64 {
        self.dag.log_evidence_estimate(block, key)
    }

    fn has_exact_evidences(&self) -> bool {
        self.dag.has_exact_evidences()
    }

    fn log_likelihood_batch(
        &self,
        particles: &mut [BlockParticles<'_>],
        workers: &Workers,
    ) -> Result<bool, BatchError> {
        self.calls.add(particles.iter().map(|particles| particles.values.len()).sum());
        self.dag.log_likelihood_batch(particles, workers)
    }

    fn models(&self) -> Option<&dyn BlockModels> {
        self.dag.models()
    }
}

/// Takes steps, each of which asks once.
fn step_by_step(
    problem: Arc<dyn Problem>,
    calls: &Calls,
    family: &FamilySettings,
    settings: &TrainSettings,
) -> Posterior<Cpu<f32>> {
    let mut trainer = Trainer::new(problem, Cpu::<f32>::new(2).unwrap(), family, settings).unwrap();
    assert_eq!(calls.take(), [0; 0], "nothing is asked before the first step");
    // Long enough for both estimators of the gradient to be tried again.
    for _ in 0..30 {
        trainer.step().unwrap();
        assert_eq!(calls.take(), [settings.batch], "{family:?}");
    }
    trainer.finish(Stop::Observer).posterior
}

/// Draws and chains of a posterior ask once per batch too.
fn draws_and_chains(posterior: &Posterior<Cpu<f32>>, calls: &Calls) {
    posterior.draw(500, 0).unwrap();
    assert_eq!(calls.take(), [0; 0], "draws without a target ask for nothing");
    posterior.draw_with_target(500, 0).unwrap();
    assert_eq!(calls.take(), [500]);
    // Many draws are made in batches.
    posterior.draw_with_target(2500, 1).unwrap();
    let many = calls.take();
    assert!(many.len() == 3 && many.iter().sum::<usize>() == 2500, "{many:?}");
    for local in [LocalMove::RandomWalk, LocalMove::Langevin] {
        let settings =
            RefineSettings { chains: 32, warmup: 3, iterations: 7, local_moves: 2, local, ..Default::default() };
        refine(posterior, &settings).unwrap();
        // One jump to start with, then a jump and two local moves in every iteration.
        assert_eq!(calls.take(), vec![32; 1 + 10 * 3], "{local:?}");
    }
}

#[test]
fn whole_densities_are_asked_once_per_batch_from_one_thread() {
    for flow_gradient in [FlowGradient::Reparameterised, FlowGradient::Adaptive] {
        for family in families() {
            let problem = Whole::new(3);
            let settings = TrainSettings { flow_gradient, ..settings() };
            let posterior = step_by_step(problem.clone(), &problem.calls, &family, &settings);
            draws_and_chains(&posterior, &problem.calls);
        }
    }
}

#[test]
fn factors_are_asked_once_per_batch_from_one_thread() {
    for structure in [Structure::Blocks, Structure::Joint] {
        let problem = InBlocks::new(Sem::Linear {});
        let flow = FlowKind::Affine { layers: 2, blocks: 1, hidden: 16 };
        let family = FamilySettings { structure, flow, ..FamilySettings::default() };
        let posterior = step_by_step(problem.clone(), &problem.calls, &family, &settings());
        draws_and_chains(&posterior, &problem.calls);
    }
}

#[test]
fn chains_across_models_ask_once_for_all_from_one_thread() {
    let problem = Whole::new(3);
    let settings = RjmcmcSettings { chains: 12, sweeps: 40, burn_in: 20, thin: 2, ..Default::default() };
    rjmcmc(&*problem, &Workers::new(2).unwrap(), &settings, &mut |_| ControlFlow::Continue(())).unwrap();
    let calls = problem.calls.take();
    // First places, burn-in and sweeps: always one row of each chain.
    assert!(calls.len() > 60 && calls.iter().all(|&rows| rows == 12), "{calls:?}");
}

#[test]
fn particles_are_asked_for_together_from_one_thread() {
    let settings = SmcSettings { runs: 4, particles: 32, sweeps: 1, jumps: 2, steps: 3, kept: 1, ..Default::default() };
    // Of few models each has particles of its own; of many all share them, and change their models.
    for (things, populations, looks) in [(3, 4 * 8, 3), (7, 4, 2 + 3)] {
        let problem = Whole::new(things);
        let reference = vec![(0.0, 2.0); things + 1];
        let mut sampler = Sampler::new(&*problem, &reference, &settings, 1).unwrap();
        // It is asked whether to go on at every look, but every round has come further than the one before.
        let mut rounds: Vec<f64> = Vec::new();
        let count = &mut |share| {
            rounds.push(share);
            true
        };
        assert!(sampler.run(4, &Workers::new(2).unwrap(), count).unwrap());
        rounds.dedup();
        let calls = problem.calls.take();
        // All at first, then every look of every round, of those that are still on their way.
        assert_eq!((calls.len(), calls[0]), (1 + looks * rounds.len(), populations * 32));
        assert!(calls.is_sorted_by(|a, b| a >= b) && calls.iter().all(|rows| rows % 32 == 0), "{calls:?}");
    }
}

#[test]
fn annealed_blocks_are_asked_for_together_from_one_thread() {
    let problem = InBlocks::new(Sem::Mlp { hidden: 1, bias: false });
    let device = Cpu::<f32>::new(2).unwrap();
    let settings = TrainSettings { steps: 5, batch: 32, ..settings() };
    let trainer = Trainer::new(problem.clone(), device, &FamilySettings::default(), &settings).unwrap();
    let posterior = trainer.run(&mut Silent).unwrap().posterior;
    problem.calls.take();
    let anneal = AnnealSettings { particles: 16, moves: 1, steps: 2, sharpen: 0, ..AnnealSettings::default() };
    check(&posterior, &CheckSettings { draws: 100, anneal: anneal.clone(), ..CheckSettings::default() }).unwrap();
    let calls = problem.calls.take();
    // The draws, and then far more particles at a time than one key has.
    assert!(calls.iter().any(|&rows| rows > 2 * anneal.runs * anneal.particles), "{calls:?}");
}
