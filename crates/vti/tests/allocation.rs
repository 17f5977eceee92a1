//! A training step allocates nothing, on one thread and on two.

#![allow(missing_docs, unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use vti::device::{Cpu, Device};
use vti::flow::{Batch, ContextShape, Flow, FlowSettings, FlowShape, LayerSettings, Passes};
use vti::optimise::{AdamW, AdamWSettings};
use vti::random::{Purpose, Stream};

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

/// Allocations of the steps after the first two.
fn allocations(settings: &FlowSettings, shape: FlowShape, threads: usize) -> usize {
    let flow = Flow::new(settings, shape).unwrap();
    let device = Cpu::<f32>::new(threads).unwrap();
    let rows = 1_100;
    let mut batches = Vec::new();
    for step in 0..6 {
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
    let mut optimiser = AdamW::new(&device, flow.parameter_count(), AdamWSettings::default()).unwrap();
    let mut work = flow.workspace(&device, rows, Passes::Training).unwrap();
    let z = vec![0.3; rows * shape.max_dim];
    let (mut theta, mut log_det, pull) = (z.clone(), vec![0.0; rows], vec![-1.0; rows]);
    let mut before = 0;
    for (step, batch) in batches.iter().enumerate() {
        if step == 2 {
            before = ALLOCATIONS.load(Ordering::SeqCst);
        }
        work.set_batch(&device, batch).unwrap();
        work.write_z(&device, &z).unwrap();
        flow.forward(&device, &parameters, &mut work).unwrap();
        work.read_theta(&device, &mut theta, &mut log_det).unwrap();
        work.write_gradients(&device, &theta, &pull).unwrap();
        flow.backward(&device, &parameters, &mut work, &mut gradient).unwrap();
        assert!(optimiser.update(&device, 1e-3, &gradient, &mut parameters).is_finite());
    }
    ALLOCATIONS.load(Ordering::SeqCst) - before
}

#[test]
fn a_training_step_allocates_nothing() {
    let symbols = FlowShape { max_dim: 9, context: ContextShape::Symbols(20) };
    let features = FlowShape { max_dim: 30, context: ContextShape::Features(6) };
    let mut everything = FlowSettings::spline(2, 2, 40);
    everything.encoder = vec![12, 8];
    everything.layers.push(LayerSettings::Diagonal(Default::default()));
    let cases = [
        ("small, in lanes", FlowSettings::affine(3, 2, 16), symbols),
        ("middling, in lanes and by operation", FlowSettings::affine(2, 2, 256), features),
        ("large, by operation", FlowSettings::affine(1, 2, 1_200), symbols),
        ("everything", everything, features),
    ];
    for (name, settings, shape) in cases {
        for threads in [1, 2] {
            assert_eq!(allocations(&settings, shape, threads), 0, "{name}, {threads} threads");
        }
    }
}
