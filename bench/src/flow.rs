//! Flows: a whole step (forward, backward, AdamW) against the same architecture in PyTorch, and what skipping buys.

use anyhow::Result;
use vti::device::{Cpu, Device};
use vti::flow::{Batch, ContextShape, Flow, FlowSettings, FlowShape, Passes, Workspace};
use vti::optimise::{Optimiser, OptimiserSettings};
use vti::random::{Purpose, Stream};

use crate::Options;
use crate::peer::{Peer, pause};
use crate::report::{Line, Report};
use crate::timing::{fastest, milliseconds, seconds};
use crate::words::{self, Words};

const ROWS: usize = 1024;

type Buffer = <Cpu<f32> as Device>::Buffer;

/// Which coordinates are active in a row.
#[derive(Clone, Copy)]
enum Active {
    /// All of them.
    All,
    /// An intercept and the bits of the context symbol.
    Bits,
    /// The first d, with d uniform on 0..=d_max.
    Uniform,
    /// The first `part` of all.
    Share(f64),
}

struct Case {
    name: &'static str,
    what: &'static str,
    settings: FlowSettings,
    shape: FlowShape,
    active: Active,
    target: &'static str,
    /// Steps per round and rounds.
    rounds: (usize, usize),
}

fn cases() -> Vec<Case> {
    let small = FlowShape { max_dim: 8, context: ContextShape::Symbols(128) };
    let wide = FlowShape { max_dim: 540, context: ContextShape::Features(100) };
    let case = |name, what, settings, shape, active, target, rounds| Case {
        name,
        what,
        settings,
        shape,
        active,
        target,
        rounds,
    };
    let spline = || FlowSettings::spline(4, 6, 512);
    let affine = || FlowSettings::affine(5, 5, 16);
    vec![
        case("a", "step: spline 4×6, hidden 512, d 8, all active", spline(), small, Active::All, "≤ 0.60", (3, 5)),
        case("a-models", "step: the same, 128 models of mean dimension 4.5", spline(), small, Active::Bits, "", (3, 5)),
        case("b", "step: affine 5×5, hidden 16, d 8, all active", affine(), small, Active::All, "≤ 0.12", (100, 7)),
        case(
            "b-models",
            "step: the same, 128 models of mean dimension 4.5",
            affine(),
            small,
            Active::Bits,
            "",
            (100, 7),
        ),
        case(
            "c",
            "step: affine 5×5, hidden 128, d 540, half active",
            FlowSettings::affine(5, 5, 128),
            wide,
            Active::Uniform,
            "≤ 0.30",
            (4, 7),
        ),
    ]
}

/// A case ready to run.
struct Running {
    flow: Flow,
    device: Cpu<f32>,
    batch: Batch<f32>,
    z: Vec<f32>,
    parameters: Buffer,
    gradient: Buffer,
    optimiser: Optimiser<Cpu<f32>>,
    work: Workspace<Cpu<f32>>,
    theta: Vec<f32>,
    log_det: Vec<f32>,
    pull: Vec<f32>,
}

fn random_batch(shape: FlowShape, active: Active) -> Batch<f32> {
    let mut batch = Batch::with_capacity(ROWS, shape);
    let mut stream = Stream::new(1, Purpose::Models, 0, 0);
    for _ in 0..ROWS {
        let context = match shape.context {
            ContextShape::Symbols(count) => stream.below(count as u64) as u32,
            ContextShape::Features(width) => {
                let features: Vec<f32> = (0..width).map(|_| stream.below(2) as f32).collect();
                batch.push_features(&features)
            }
        };
        let all = 0..shape.max_dim as u32;
        let coordinates: Vec<u32> = match active {
            Active::All => all.collect(),
            Active::Bits => all.filter(|&c| c == 0 || context >> (c - 1) & 1 == 1).collect(),
            Active::Uniform => (0..stream.below(shape.max_dim as u64 + 1) as u32).collect(),
            Active::Share(part) => (0..(part * shape.max_dim as f64).round() as u32).collect(),
        };
        batch.push(&coordinates, context);
    }
    batch
}

impl Running {
    fn new(settings: &FlowSettings, shape: FlowShape, active: Active, threads: usize) -> Result<Self> {
        let flow = Flow::new(settings, shape)?;
        let device = Cpu::new(threads)?;
        let count = flow.parameter_count();
        let mut parameters = device.buffer(count)?;
        device.write(&flow.initial_parameters(1), &mut parameters)?;
        let mut stream = Stream::new(1, Purpose::Reference, 0, 0);
        let mut work = flow.workspace(&device, ROWS, Passes::Training)?;
        let batch = random_batch(shape, active);
        work.set_batch(&device, &batch)?;
        let mut running = Self {
            batch,
            z: (0..ROWS * shape.max_dim).map(|_| stream.normal() as f32).collect(),
            gradient: device.buffer(count)?,
            optimiser: Optimiser::new(&device, count, &OptimiserSettings::default())?,
            theta: vec![0.0; ROWS * shape.max_dim],
            log_det: vec![0.0; ROWS],
            pull: vec![-1.0 / ROWS as f32; ROWS],
            flow,
            device,
            parameters,
            work,
        };
        running.steps(3)?;
        Ok(running)
    }

    /// Seconds of each of `steps` whole steps on the loss Σ (θ²/2 − log-det) / rows. The batch stays the same on both sides.
    fn steps(&mut self, steps: usize) -> Result<Vec<f64>> {
        let Self { flow, device, z, parameters, gradient, optimiser, work, theta, log_det, pull, .. } = self;
        let device = &*device;
        let mut times = Vec::with_capacity(steps);
        for _ in 0..steps {
            times.push(seconds(|| {
                work.write_z(device, z)?;
                flow.forward(device, parameters, work)?;
                work.read_theta(device, theta, log_det)?;
                theta.iter_mut().for_each(|theta| *theta /= ROWS as f32);
                work.write_gradients(device, theta, pull)?;
                flow.backward(device, parameters, work, gradient)?;
                Ok(optimiser.update(device, 1e-3, gradient, parameters)?)
            })?);
        }
        Ok(times)
    }
}

/// Runs everything, interleaving ours and the peer's.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut peer = match &options.peer_python {
        Some(python) => Some(Peer::start(python, "flow.py", options.threads)?),
        None => None,
    };
    let mut notes = vec![format!(
        "{ROWS} rows, f32, {} threads; medians of interleaved rounds; ratio = ours ÷ peer.",
        options.threads
    )];
    notes.extend(peer.as_ref().map(|peer| format!("Peer: PyTorch {}.", peer.version)));
    let mut report = Report::new("flow", options, notes);
    for case in cases().into_iter().filter(|case| options.wants(case.name)) {
        steps(&case, options, &mut peer, &mut report)?;
    }
    if options.wants("d") {
        density(options, &mut report)?;
    }
    if options.wants("share") {
        active_share(options, &mut report)?;
    }
    if options.wants("words") {
        words(options, &mut peer, &mut report)?;
    }
    report.save(options)
}

/// Whole steps.
fn steps(case: &Case, options: &Options, peer: &mut Option<Peer>, report: &mut Report) -> Result<()> {
    let Case { name, what, settings, shape, active, target, rounds: (steps, rounds) } = case;
    let rounds = if options.quick { 3 } else { *rounds };
    let mut running = Running::new(settings, *shape, *active, options.threads)?;
    if let Some(peer) = peer {
        peer.prepare(name)?;
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.extend(running.steps(*steps)?);
        if let Some(peer) = peer {
            theirs.extend(peer.step(name, *steps)?);
            pause();
        }
    }
    if let Some(peer) = peer {
        peer.release(name)?;
    }
    let fastest = Some((fastest(&ours), (!theirs.is_empty()).then(|| fastest(&theirs))));
    let ours = milliseconds(ours);
    let theirs = (!theirs.is_empty()).then(|| milliseconds(theirs));
    report.push(Line { fastest, ..Line::against(name, what, ours, theirs, target) })
}

/// The density direction of case c against its sampling direction.
fn density(options: &Options, report: &mut Report) -> Result<()> {
    let shape = FlowShape { max_dim: 540, context: ContextShape::Features(100) };
    let running = Running::new(&FlowSettings::affine(5, 5, 128), shape, Active::Uniform, options.threads)?;
    let Running { flow, device, batch, z, parameters, .. } = &running;
    let mut work = flow.workspace(device, ROWS, Passes::Evaluation)?;
    work.set_batch(device, batch)?;
    work.write_z(device, z)?;
    let rounds = if options.quick { 3 } else { 15 };
    let (mut forward, mut inverse) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        forward.push(seconds(|| Ok(flow.forward(device, parameters, &mut work)?))?);
        inverse.push(seconds(|| Ok(flow.inverse(device, parameters, &mut work)?))?);
    }
    let (inverse, forward) = (milliseconds(inverse), milliseconds(forward));
    report.push(Line::against(
        "d",
        "density direction of c; peer: our sampling pass without gradients",
        inverse,
        Some(forward),
        "≤ 5",
    ))
}

/// Time against the share of active coordinates: cost follows Σ d_m, not B·d_max.
fn active_share(options: &Options, report: &mut Report) -> Result<()> {
    let shape = FlowShape { max_dim: 540, context: ContextShape::Features(100) };
    let shares = [1.0, 0.5, 0.25, 0.125, 0.0];
    let settings = FlowSettings::affine(5, 5, 128);
    let mut running = Vec::new();
    for share in shares {
        running.push(Running::new(&settings, shape, Active::Share(share), options.threads)?);
    }
    let rounds = if options.quick { 3 } else { 11 };
    let mut times = vec![Vec::new(); shares.len()];
    for _ in 0..rounds {
        for (running, times) in running.iter_mut().zip(&mut times) {
            times.extend(running.steps(1)?);
        }
    }
    let medians: Vec<f64> = times.into_iter().map(milliseconds).collect();
    for (share, &time) in shares.iter().zip(&medians) {
        let what = format!("step of c with {:.1} % active; peer: ours, all active", 100.0 * share);
        report.push(Line::against("share", &what, time, Some(medians[0]), ""))?;
    }
    Ok(())
}

/// Words of 54 bits: each unit once, and the peer's full passes.
fn words(options: &Options, peer: &mut Option<Peer>, report: &mut Report) -> Result<()> {
    let mut words = Words::new(options.threads)?;
    if let Some(peer) = peer {
        peer.prepare("made-sample")?;
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..if options.quick { 3 } else { 9 } {
        for _ in 0..5 {
            ours.push(words.draw()?);
        }
        if let Some(peer) = peer {
            theirs.extend(peer.step("made-sample", 1)?);
            pause();
        }
    }
    let theirs = (!theirs.is_empty()).then(|| milliseconds(theirs));
    report.push(Line::against("words", &format!("{}; peer: PyTorch", words::WHAT), milliseconds(ours), theirs, ""))
}
