//! How often a training step allocates: the passes of a flow and the updates of its parameters never do, a whole step of the
//! trainer does a few times, however large the batch.

#![allow(missing_docs, unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use vti::device::{Cpu, Device};
use vti::family::{FamilySettings, FlowKind};
use vti::flow::{Batch, ContextShape, Flow, FlowSettings, FlowShape, LayerSettings, Passes};
use vti::models::{
    AutoregressiveSettings, CategoricalSettings, Covariance, LearningSettings, ModelsSettings, SurrogateSettings,
    WordNetSettings,
};
use vti::optimise::{Optimiser, OptimiserSettings};
use vti::problem::dag::simulate::{SimulationSettings, simulate};
use vti::problem::dag::{Dag, DagSettings, Noise, Sem};
use vti::problem::{self, Problem};
use vti::random::{Purpose, Stream};
use vti::space::Subsets;
use vti::train::{TrainSettings, Trainer};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The median of what steps allocate, each counted by itself: a thread that gets its first piece of work late, because it was still
/// starting, makes room of its own then, once.
fn median(counts: &mut [usize]) -> usize {
    counts.sort_unstable();
    counts[counts.len() / 2]
}

/// Allocations of passes and updates, after the first two.
fn of_passes(settings: &FlowSettings, shape: FlowShape, threads: usize) -> usize {
    let flow = Flow::new(settings, shape).unwrap();
    let device = Cpu::<f32>::new(threads).unwrap();
    let rows = 1_100;
    let mut batches = Vec::new();
    for step in 0..9 {
        let mut stream = Stream::new(1, Purpose::Models, step, 0);
        let mut batch = Batch::with_capacity(rows, shape);
        for _ in 0..rows {
            let context = match shape.context {
                ContextShape::Symbols(count) => stream.below(count as u64) as u32,
                ContextShape::Features(width) => batch.push_features(&vec![stream.normal() as f32; width]),
            };
            let active: Vec<u32> = (0..shape.max_dim as u32).filter(|_| stream.uniform() < 0.5).collect();
            batch.push(&active, context);
        }
        batches.push(batch);
    }
    let mut parameters = device.buffer(flow.parameter_count()).unwrap();
    device.write(&flow.initial_parameters(1), &mut parameters).unwrap();
    let mut gradient = device.buffer(flow.parameter_count()).unwrap();
    let mut optimiser = Optimiser::new(&device, flow.parameter_count(), &OptimiserSettings::default()).unwrap();
    let mut work = flow.workspace(&device, rows, Passes::Training).unwrap();
    let z = vec![0.3; rows * shape.max_dim];
    let (mut theta, mut log_det, pull) = (z.clone(), vec![0.0; rows], vec![-1.0; rows]);
    let mut found = [0; 9];
    for (batch, found) in batches.iter().zip(&mut found) {
        let before = ALLOCATIONS.load(Ordering::SeqCst);
        work.set_batch(&device, batch).unwrap();
        work.write_z(&device, &z).unwrap();
        flow.forward(&device, &parameters, &mut work).unwrap();
        work.read_theta(&device, &mut theta, &mut log_det).unwrap();
        work.write_gradients(&device, &theta, &pull).unwrap();
        flow.backward(&device, &parameters, &mut work, &mut gradient).unwrap();
        optimiser.update(&device, 1e-3, &gradient, &mut parameters).unwrap();
        *found = ALLOCATIONS.load(Ordering::SeqCst) - before;
    }
    let record = optimiser.record(&device).unwrap();
    assert!(record.updates == 9 && record.norm.is_finite(), "{record:?}");
    median(&mut found[2..])
}

/// Planning a batch, both passes over it and the update of φ: all that happens on the device in a step.
fn passes_and_updates_allocate_nothing() {
    let symbols = FlowShape { max_dim: 9, context: ContextShape::Symbols(20) };
    let features = FlowShape { max_dim: 30, context: ContextShape::Features(6) };
    let mut everything = FlowSettings::spline(2, 2, 40);
    everything.encoder = vec![12, 8];
    everything.layers.push(LayerSettings::Diagonal(Default::default()));
    let cases = [
        ("small, in shards", FlowSettings::affine(3, 2, 16), symbols),
        ("middling, in shards and by operation", FlowSettings::affine(2, 2, 256), features),
        ("large, by operation", FlowSettings::affine(1, 2, 1_200), symbols),
        ("everything", everything, features),
    ];
    for (name, settings, shape) in cases {
        for threads in [1, 2] {
            assert_eq!(of_passes(&settings, shape, threads), 0, "{name}, {threads} threads");
        }
    }
}

/// Allocations of a whole step, of twenty after the first thirty: by then memory has found its size. Two threads at work on words at
/// the same time, for the first time, make a second set of hidden units.
fn of_a_step(problem: &Arc<dyn Problem>, family: &FamilySettings, batch: usize, threads: usize) -> usize {
    let settings = TrainSettings { steps: 1000, batch, ..TrainSettings::default() };
    let device = Cpu::<f32>::new(threads).unwrap();
    let mut trainer = Trainer::new(problem.clone(), device, family, &settings).unwrap();
    (0..30).for_each(|_| drop(trainer.step().unwrap()));
    let mut found = [0; 20];
    for found in &mut found {
        let before = ALLOCATIONS.load(Ordering::SeqCst);
        let report = trainer.step().unwrap();
        *found = ALLOCATIONS.load(Ordering::SeqCst) - before;
        assert!(report.dropped.is_empty());
    }
    median(&mut found)
}

/// All of [`Trainer::step`], with a density that does not allocate itself. Work on the host is shared out over threads by lists
/// of tasks, borrowed slices that cannot outlive a step: one for the way to natural parameters, one for the densities, one for
/// the way back, and one or more for what q(m) learns.
fn a_step_allocates_a_few_lists() {
    let problem: Arc<dyn Problem> = Arc::new(problem::from_fn(Subsets::new(6).unwrap(), |_, theta, gradient| {
        gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
        -0.5 * theta.iter().map(|t| t * t).sum::<f64>()
    }));
    let network = WordNetSettings { hidden: 16, ..WordNetSettings::default() };
    let words = AutoregressiveSettings { network, learning: LearningSettings::new(0.01) };
    let surrogate = |covariance| ModelsSettings::Surrogate(SurrogateSettings { covariance, ..Default::default() });
    let affine = FlowKind::Affine { layers: 2, blocks: 1, hidden: 16 };
    let spline = FlowKind::Spline { layers: 2, blocks: 1, hidden: 16 };
    let cases = [
        (ModelsSettings::Categorical(CategoricalSettings::default()), &affine, 6),
        (ModelsSettings::Autoregressive(words), &spline, 4),
        (surrogate(Covariance::Diagonal), &affine, 6),
        (surrogate(Covariance::Full), &affine, 11),
    ];
    for (models, flow, bound) in cases {
        let family = FamilySettings { models, flow: flow.clone(), ..FamilySettings::default() };
        for (batch, threads) in [(64, 1), (64, 2), (512, 2), (2048, 1), (2048, 2)] {
            let found = of_a_step(&problem, &family, batch, threads);
            assert!(found <= bound, "{:?}, {batch} rows, {threads} threads: {found}", family.models);
        }
    }
}

/// Graphs are drawn, scored and evaluated node by node with small lists for each row: there, and only there, the number grows
/// with the batch.
fn a_step_over_graphs_allocates_a_few_times_for_each_row() {
    let simulation = SimulationSettings { nodes: 4, rows: 30, sem: Sem::Linear {}, ..Default::default() };
    let settings = DagSettings { sem: Sem::Linear {}, noise: Noise::Unknown {}, ..DagSettings::default() };
    let problem: Arc<dyn Problem> = Arc::new(Dag::new(simulate(&simulation).unwrap().table, settings).unwrap());
    let flow = FlowKind::Affine { layers: 2, blocks: 1, hidden: 16 };
    let family = FamilySettings { flow, ..FamilySettings::default() };
    for batch in [64, 512] {
        let found = of_a_step(&problem, &family, batch, 2);
        assert!(found <= 11 * batch, "{batch} rows: {found}");
    }
}

/// One test: a second one at the same time would be counted too.
#[test]
fn passes_and_updates_allocate_nothing_and_a_step_a_few_lists() {
    passes_and_updates_allocate_nothing();
    a_step_allocates_a_few_lists();
    a_step_over_graphs_allocates_a_few_times_for_each_row();
}
