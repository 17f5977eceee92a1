//! Likelihoods of non-linear structural equations: values and gradients of a batch of draws against PyTorch.

use anyhow::Result;
use vti::problem::dag::{MlpLikelihood, Scratch};
use vti::random::{Purpose, Stream};
use vti::workers::Workers;

use crate::Options;
use crate::peer::{Peer, pause};
use crate::report::{Line, Report};
use crate::timing::{fastest, milliseconds, seconds};

const NODES: usize = 10;
const HIDDEN: usize = 10;
const ROWS: usize = 1024;
const DRAWS: usize = 1024;
/// Draws of a task: as many as training gives to a thread at a time.
const TOGETHER: usize = 64;

/// Draws of graphs and parameters, and room for their gradients.
struct Draws {
    likelihood: MlpLikelihood<f32>,
    /// Parents of all nodes of all draws.
    parents: Vec<u64>,
    theta: Vec<Vec<f64>>,
    tasks: Vec<Task>,
}

/// What a task writes.
struct Task {
    scratch: Scratch<f32>,
    values: Vec<f64>,
    gradients: Vec<Vec<f64>>,
}

impl Draws {
    fn new() -> Self {
        let mut stream = Stream::new(1, Purpose::Models, 0, 0);
        let columns: Vec<Vec<f64>> = (0..NODES).map(|_| (0..ROWS).map(|_| stream.normal()).collect()).collect();
        let likelihood = MlpLikelihood::new(&columns, HIDDEN, false, Some(1.0));
        let mut parents = vec![0u64; DRAWS * NODES];
        for parents in parents.chunks_exact_mut(NODES) {
            let mut order: Vec<usize> = (0..NODES).collect();
            (1..NODES).rev().for_each(|i| order.swap(i, stream.below(i as u64 + 1) as usize));
            for (place, &node) in order.iter().enumerate() {
                order[..place].iter().for_each(|&earlier| parents[node] |= stream.below(2) << earlier);
            }
        }
        let dim = |parents: &[u64]| parents.iter().map(|p| likelihood.dim(p.count_ones() as usize)).sum::<usize>();
        let theta: Vec<Vec<f64>> =
            parents.chunks_exact(NODES).map(|parents| (0..dim(parents)).map(|_| stream.normal()).collect()).collect();
        let tasks = theta.chunks(TOGETHER).map(|theta| Task {
            scratch: likelihood.scratch(),
            values: vec![0.0; theta.len()],
            gradients: theta.iter().map(|theta| vec![0.0; theta.len()]).collect(),
        });
        Self { tasks: tasks.collect(), likelihood, parents, theta }
    }

    /// Values and gradients of all draws.
    fn evaluate(&mut self, workers: &Workers) {
        let Self { likelihood, parents, theta, tasks } = self;
        workers.for_each(tasks, |chunk, Task { scratch, values, gradients }| {
            for (offset, (value, gradient)) in values.iter_mut().zip(gradients).enumerate() {
                let draw = chunk * TOGETHER + offset;
                *value = 0.0;
                let mut start = 0;
                for (node, &parents) in parents[draw * NODES..][..NODES].iter().enumerate() {
                    let place = start..start + likelihood.dim(parents.count_ones() as usize);
                    start = place.end;
                    *value +=
                        likelihood.node(scratch, node, parents, &theta[draw][place.clone()], &mut gradient[place]);
                }
            }
        });
    }
}

/// Runs everything, interleaving ours and the peer's.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut peer = match &options.peer_python {
        Some(python) => Some(Peer::start(python, "sem.py", options.threads)?),
        None => None,
    };
    let mut notes = vec![format!(
        "{NODES} nodes, {HIDDEN} hidden units without biases, {ROWS} rows of data, {DRAWS} draws of an order, edges (half of \
         them) and weights, f32, {} threads; medians of interleaved rounds; ratio = ours ÷ peer.",
        options.threads
    )];
    notes.extend(peer.as_ref().map(|peer| {
        format!("Peer: PyTorch {}, the fastest of three ways to write it and three sizes of its chunks.", peer.version)
    }));
    let mut report = Report::new("sem", options, notes);
    let workers = Workers::new(options.threads)?;
    let mut draws = Draws::new();
    draws.evaluate(&workers);
    if let Some(peer) = &mut peer {
        peer.prepare("sem")?;
        pause();
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..if options.quick { 3 } else { 9 } {
        for _ in 0..5 {
            ours.push(seconds(|| {
                draws.evaluate(&workers);
                Ok(())
            })?);
        }
        if let Some(peer) = &mut peer {
            theirs.extend(peer.step("sem", 1)?);
            pause();
        }
    }
    let fastest = Some((fastest(&ours), (!theirs.is_empty()).then(|| fastest(&theirs))));
    let (ours, theirs) = (milliseconds(ours), (!theirs.is_empty()).then(|| milliseconds(theirs)));
    let what = "values and gradients of all draws";
    report.push(Line { fastest, ..Line::against("sem", what, ours, theirs, "≤ 0.10") })?;
    report.save(options)
}
