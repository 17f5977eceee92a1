//! How much memory a run will need, from its settings and its problem, before any of it is asked for.
//!
//! Sizes are real numbers: no product of settings overflows, however large they are. What is counted is what is written to:
//! memory that is set aside for coordinates that no model of the batch has costs nothing.

mod chains;
mod networks;

use std::fmt;

use self::networks::Size;
use crate::check::{CheckSettings, Depth};
use crate::evidence::AnnealSettings;
use crate::family::{FamilyError, FamilySettings, FlowKind, Plan, PreconditionerSettings, Structure};
use crate::flow::ContextShape;
use crate::models::{self, AutoregressiveSettings, ModelsSettings, ModularSettings};
use crate::problem::{Constraints, Problem};
use crate::random::{Purpose, Stream};
use crate::smc::{MAX_NUMBERS, SmcSettings};
use crate::space::ModelSpace;
use crate::train::TrainSettings;

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryUse {
    /// Parameters of networks, their gradients and moments, and copies of them on their way to a file.
    Weights,
    /// What networks remember of a batch until its gradients are known.
    Activations,
    /// Draws of a batch, their densities and gradients.
    Batch,
    /// What is known of each model, or of each block under each of its keys.
    Models,
    /// Draws of the check, in learned and in measured parameters, and the file of them.
    Draws,
    /// Particles of the look beyond q.
    Particles,
    /// Chains, and the states of them that are kept.
    Chains,
}

impl fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Weights => "weights of networks",
            Self::Activations => "activations of a batch",
            Self::Batch => "draws of a batch",
            Self::Models => "what is known of models",
            Self::Draws => "draws of the check",
            Self::Particles => "particles",
            Self::Chains => "chains",
        })
    }
}

/// When memory is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Always,
    Training,
    Check,
}

/// What one thing will take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryItem {
    /// What it is for.
    pub what: MemoryUse,
    /// How much.
    pub bytes: f64,
    phase: Phase,
}

/// What a run will take, beside the program and its data.
///
/// ```
/// use vti::check::CheckSettings;
/// use vti::family::FamilySettings;
/// use vti::memory::{MemoryEstimate, Sizes};
/// use vti::problem;
/// use vti::space::Subsets;
/// use vti::train::TrainSettings;
///
/// let problem = problem::from_fn(Subsets::new(8)?, |_, _, _| 0.0);
/// let (family, train, check) = (FamilySettings::default(), TrainSettings::default(), CheckSettings::default());
/// let sizes = |train| Sizes { family: family.clone(), train, check: check.clone(), number: 4 };
/// let usual = MemoryEstimate::new(&problem, &sizes(train.clone()))?;
/// assert!(usual.bytes() < 1e9);
/// let huge = sizes(TrainSettings { batch: 100_000_000, ..train });
/// let estimate = MemoryEstimate::new(&problem, &huge)?;
/// assert!(estimate.bytes() > 1e12);
/// assert_eq!(estimate.main_key, Some("train.batch"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryEstimate {
    /// What takes how much.
    pub items: Vec<MemoryItem>,
    /// The setting that would save most at its default; none where all are at their defaults, or below.
    pub main_key: Option<&'static str>,
}

/// The settings that memory depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// The family.
    pub family: FamilySettings,
    /// How it is trained.
    pub train: TrainSettings,
    /// How it is checked.
    pub check: CheckSettings,
    /// Bytes of a number of the networks.
    pub number: usize,
}

impl MemoryEstimate {
    /// Of a run that trains and checks. Settings that no family can have are refused as when it is built.
    pub fn new(problem: &dyn Problem, sizes: &Sizes) -> Result<Self, FamilyError> {
        Self::of_phases(problem, sizes, |_| true)
    }

    /// Of a check alone, of what was learned before.
    pub fn of_check(problem: &dyn Problem, sizes: &Sizes) -> Result<Self, FamilyError> {
        Self::of_phases(problem, sizes, |phase| phase != Phase::Training)
    }

    fn of_phases(problem: &dyn Problem, sizes: &Sizes, counts: impl Fn(Phase) -> bool) -> Result<Self, FamilyError> {
        let space = Space::new(problem);
        let items = |sizes: &Sizes| {
            let mut items = items(problem, &space, sizes)?;
            items.retain(|item| counts(item.phase));
            Ok::<_, FamilyError>(items)
        };
        let all = items(sizes)?;
        let (bytes, mut main) = (peak(&all), (0.0, None));
        for (key, smaller) in with_defaults(problem, sizes) {
            let saved = bytes - peak(&items(&smaller)?);
            if saved > main.0 {
                main = (saved, Some(key));
            }
        }
        Ok(Self { items: all, main_key: main.1 })
    }

    /// Of an answer that is drawn in closed form: its draws alone.
    pub fn of_draws(problem: &dyn Problem, draws: usize) -> Self {
        let item = draws_of(problem, &Space::new(problem), draws as f64);
        let main_key = (draws > CheckSettings::default().draws).then_some("check.draws");
        Self { items: vec![item], main_key }
    }

    /// The most that is in use at the same time.
    pub fn bytes(&self) -> f64 {
        peak(&self.items)
    }

    /// What takes most.
    pub fn largest(&self) -> Option<&MemoryItem> {
        self.items.iter().max_by(|a, b| a.bytes.total_cmp(&b.bytes))
    }
}

/// Training and check come one after the other.
fn peak(items: &[MemoryItem]) -> f64 {
    let sum = |phase: Phase| items.iter().filter(|item| item.phase == phase).map(|item| item.bytes).sum::<f64>();
    sum(Phase::Always) + sum(Phase::Training).max(sum(Phase::Check))
}

/// Sizes with one of them at its default, where it is larger, and the key of that one.
fn with_defaults(problem: &dyn Problem, sizes: &Sizes) -> Vec<(&'static str, Sizes)> {
    let mut all = Vec::new();
    let mut put = |key: &'static str, change: &dyn Fn(&mut Sizes)| {
        let mut smaller = sizes.clone();
        change(&mut smaller);
        if smaller != *sizes {
            all.push((key, smaller));
        }
    };
    let train = if problem.blocks().is_some() { TrainSettings::blockwise() } else { TrainSettings::default() };
    let usual = CheckSettings::default();
    put("train.batch", &|sizes| lower(&mut sizes.train.batch, train.batch));
    put("check.draws", &|sizes| lower(&mut sizes.check.draws, usual.draws));
    let SmcSettings { runs, particles, .. } = usual.opinion.smc;
    put("check.opinion.smc.particles", &|sizes| lower(&mut sizes.check.opinion.smc.particles, particles));
    put("check.opinion.smc.runs", &|sizes| lower(&mut sizes.check.opinion.smc.runs, runs));
    let AnnealSettings { runs, particles, .. } = usual.anneal;
    put("check.anneal.particles", &|sizes| lower(&mut sizes.check.anneal.particles, particles));
    put("check.anneal.runs", &|sizes| lower(&mut sizes.check.anneal.runs, runs));
    put("flow.hidden", &|sizes| match &mut sizes.family.flow {
        FlowKind::Affine { hidden, .. } | FlowKind::Spline { hidden, .. } => lower(hidden, 64),
        FlowKind::Diagonal { hidden } => hidden.iter_mut().for_each(|hidden| lower(hidden, 64)),
        FlowKind::Auto {} | FlowKind::Layers { .. } => {}
    });
    put("flow.blocks", &|sizes| {
        if let FlowKind::Affine { blocks, .. } | FlowKind::Spline { blocks, .. } = &mut sizes.family.flow {
            lower(blocks, 2);
        }
    });
    put("flow.layers", &|sizes| match &mut sizes.family.flow {
        FlowKind::Affine { layers, .. } | FlowKind::Spline { layers, .. } => lower(layers, 4),
        flow @ FlowKind::Layers { .. } => *flow = FlowKind::Auto {},
        FlowKind::Auto {} | FlowKind::Diagonal { .. } => {}
    });
    let network = AutoregressiveSettings::default().network;
    put("models.network.hidden", &|sizes| {
        if let ModelsSettings::Autoregressive(settings) = &mut sizes.family.models {
            lower(&mut settings.network.hidden, network.hidden);
        }
    });
    put("models.network.blocks", &|sizes| {
        if let ModelsSettings::Autoregressive(settings) = &mut sizes.family.models {
            lower(&mut settings.network.blocks, network.blocks);
        }
    });
    put("models.most_sets", &|sizes| {
        if let ModelsSettings::Modular(settings) = &mut sizes.family.models {
            lower(&mut settings.most_sets, ModularSettings::default().most_sets);
        }
    });
    all
}

fn lower(size: &mut usize, usual: usize) {
    *size = usual.min(*size);
}

/// What is to be known of a space of models.
struct Space {
    /// Symbols of a word.
    width: f64,
    /// d_max.
    max_dim: f64,
    /// The mean dimension of a word whose symbols are drawn one after another, all allowed ones alike.
    mean_dim: f64,
    /// How many words there are, or a bound of it.
    words: f64,
    /// Natural parameters.
    natural: f64,
}

/// Words that are drawn to find the mean dimension.
const PILOT_WORDS: u64 = 64;

impl Space {
    fn new(problem: &dyn Problem) -> Self {
        let space = problem.space();
        let bound = || space.arities().iter().map(|&arity| f64::from(arity).ln()).sum::<f64>();
        let log_count = Some(space.log_count()).filter(|count| !count.is_nan()).unwrap_or_else(bound);
        Self {
            width: space.arities().len() as f64,
            max_dim: space.max_dim() as f64,
            mean_dim: mean_dim(space),
            words: log_count.exp(),
            natural: problem.constraints().map_or(space.max_dim(), Constraints::natural_len) as f64,
        }
    }
}

fn mean_dim(space: &dyn ModelSpace) -> f64 {
    let (mut active, mut allowed) = (vec![false; space.max_dim()], Vec::new());
    let mut sum = 0usize;
    for row in 0..PILOT_WORDS {
        let mut stream = Stream::new(0, Purpose::Models, 0, row);
        let mut word = Vec::with_capacity(space.arities().len());
        for &arity in space.arities() {
            allowed.clear();
            allowed.resize(usize::from(arity), true);
            space.allow(&word, &mut allowed);
            let choices: Vec<u16> = (0..arity).filter(|&symbol| allowed[usize::from(symbol)]).collect();
            let chosen = stream.below(choices.len().max(1) as u64) as usize;
            word.push(choices.get(chosen).copied().unwrap_or(0));
        }
        space.mark_active(&word, &mut active);
        sum += active.iter().filter(|active| **active).count();
    }
    sum as f64 / PILOT_WORDS as f64
}

/// How many of so many things are met in so many draws, all alike.
fn distinct(things: f64, draws: f64) -> f64 {
    if things < 1e15 { -things * f64::exp_m1(draws * f64::ln_1p(-1.0 / things.max(1.0))) } else { draws }.min(draws)
}

fn items(problem: &dyn Problem, space: &Space, sizes: &Sizes) -> Result<Vec<MemoryItem>, FamilyError> {
    let Sizes { family, train, check, number } = sizes;
    let plan = Plan::new(problem, family)?;
    let blockwise = plan.structure == Structure::Blocks;
    let (models, _) = models::resolve(problem, blockwise, &family.models)?;
    let number = *number as f64;
    let (blocks, rows) = (problem.blocks().map_or(1.0, |blocks| blocks.count() as f64), train.batch as f64);
    let flow_rows = if blockwise { blocks } else { 1.0 };
    let flow = networks::flow(&plan.flow, plan.shape);
    let words = match &models {
        ModelsSettings::Autoregressive(settings) => networks::words(problem.space().arities(), settings),
        _ => Size::default(),
    };
    // Units beyond the dimension of a row's model are not computed; but rows are computed in tiles, as far as the largest needs,
    // and q(m) moves: about halfway between the mean model and the largest one.
    let share = 0.5 * (1.0 + space.mean_dim / space.max_dim.max(1.0));
    let contexts = |rows: f64| match plan.shape.context {
        ContextShape::Symbols(count) => rows.min(count as f64),
        ContextShape::Features(_) => flow_rows * distinct(space.words, rows),
    };
    let training = share * rows * flow_rows * (flow.evaluated + flow.trained + flow.scratch)
        + contexts(rows) * flow.contexts
        + rows * (words.evaluated + words.trained + words.scratch);
    let evaluation = share * EVALUATED_ROWS * flow_rows * flow.evaluated + contexts(EVALUATED_ROWS) * flow.contexts;
    let item = |what, phase, bytes| MemoryItem { what, phase, bytes };
    let mut all = vec![
        item(MemoryUse::Weights, Phase::Always, number * (flow.parameters + words.parameters)),
        item(
            MemoryUse::Weights,
            Phase::Training,
            number
                * (learned(flow.parameters, rows * flow_rows)
                    + learned(words.parameters, rows)
                    + 2.0 * words.parameters),
        ),
        item(MemoryUse::Activations, Phase::Training, number * training),
        item(MemoryUse::Activations, Phase::Check, number * evaluation),
        item(MemoryUse::Batch, Phase::Training, rows * of_row(space, blocks, flow_rows, number)),
        item(MemoryUse::Models, Phase::Always, of_models(problem, space, &models)),
        item(MemoryUse::Models, Phase::Training, preconditioners(problem, space, sizes, &models, blockwise)),
        draws_of(problem, space, check.draws as f64),
    ];
    all.push(item(MemoryUse::Particles, Phase::Check, particles(problem, space, check)));
    Ok(all)
}

/// Rows of a pass over a finished posterior.
const EVALUATED_ROWS: f64 = 1024.0;

/// Numbers beside the parameters themselves: gradient and two moments, gradients of other shards, and a checkpoint: values and
/// moments as arrays, as bytes, and as bytes with their checksum.
fn learned(parameters: f64, rows: f64) -> f64 {
    const SMALL: f64 = (1 << 22) as f64;
    let shards = if parameters <= SMALL { (rows / 512.0).ceil().clamp(1.0, 16.0) } else { 1.0 };
    parameters * (3.0 + (shards - 1.0) + 9.0)
}

/// Bytes of a row of a batch beside what networks remember of it.
fn of_row(space: &Space, blocks: f64, flow_rows: f64, number: f64) -> f64 {
    let Space { width, max_dim, mean_dim, natural, .. } = space;
    // z, θ on the device and its gradient; θ, its free parameters and the gradient; natural parameters and theirs.
    let coordinates = max_dim * (3.0 * number + 3.0 * 8.0) + natural * 2.0 * 8.0;
    // Which coordinates are active, in the batch, in the flow's copy of it and block by block.
    let active = 3.0 * 4.0 * mean_dim;
    let of_blocks = blocks * (3.0 * 8.0 + 3.0 * 8.0 + 2.0 * 8.0);
    coordinates + active + of_blocks + flow_rows * (number + 60.0) + 4.0 * width + 100.0
}

/// Bytes for each model, each set of parents.
fn of_models(problem: &dyn Problem, space: &Space, models: &ModelsSettings) -> f64 {
    match models {
        ModelsSettings::Categorical(_) | ModelsSettings::Surrogate(_) => space.words * (6.0 * 8.0 + 2.0 * space.width),
        ModelsSettings::Modular(modular) => keys(problem, modular) * 400.0,
        ModelsSettings::Autoregressive(_) | ModelsSettings::Auto {} => 0.0,
    }
}

/// Blocks under all their keys: sets of the other blocks.
fn keys(problem: &dyn Problem, modular: &ModularSettings) -> f64 {
    let blocks = problem.blocks().map_or(1.0, |blocks| blocks.count() as f64);
    blocks * 2f64.powf(blocks - 1.0).min(modular.most_sets as f64)
}

/// Numbers of models' preconditioners that a family keeps at most, besides those of a batch.
const MAX_PRECONDITIONER_NUMBERS: f64 = (1 << 24) as f64;

/// Bytes of the preconditioners of models met, or of blocks with their keys: a location and a triangle for each.
fn preconditioners(
    problem: &dyn Problem,
    space: &Space,
    sizes: &Sizes,
    models: &ModelsSettings,
    blockwise: bool,
) -> f64 {
    if sizes.family.preconditioner == PreconditionerSettings::Unit {
        return 0.0;
    }
    let TrainSettings { batch, steps, .. } = &sizes.train;
    let (rows, steps) = (*batch as f64, *steps as f64);
    let (things, dim) = match (problem.blocks(), models) {
        (Some(blocks), ModelsSettings::Modular(modular)) if blockwise => {
            (keys(problem, modular), space.mean_dim / blocks.count() as f64)
        }
        _ => (space.words, space.mean_dim),
    };
    let numbers = dim * (dim + 3.0) / 2.0;
    let met = distinct(things, rows * steps);
    8.0 * (met * (numbers + 20.0)).min(MAX_PRECONDITIONER_NUMBERS + rows * numbers)
}

/// Draws of a check, in learned and in measured parameters, and the file of them.
fn draws_of(problem: &dyn Problem, space: &Space, draws: f64) -> MemoryItem {
    let blocks = problem.blocks().map_or(0.0, |blocks| blocks.count() as f64);
    let each = space.natural * 34.0 + space.width * 4.0 + 90.0 + 16.0 * blocks;
    MemoryItem { what: MemoryUse::Draws, phase: Phase::Check, bytes: draws * each }
}

/// Particles of the last round of a look beyond q.
fn particles(problem: &dyn Problem, space: &Space, check: &CheckSettings) -> f64 {
    // Twice: where it is, and where it may go.
    let of_particle = |dim: f64| 2.0 * (36.0 * dim + 2.0 * space.width + 300.0);
    if problem.blocks().is_some() {
        let AnnealSettings { runs, particles, .. } = check.anneal;
        let dim = space.max_dim / problem.blocks().map_or(1.0, |blocks| blocks.count() as f64);
        return runs as f64 * particles as f64 * of_particle(dim);
    }
    let SmcSettings { runs, particles, .. } = check.opinion.smc;
    let (runs, particles) = (runs as f64, particles as f64);
    let rounds = match check.opinion.depth {
        Depth::None => return 0.0,
        Depth::Quick => 0.5,
        Depth::Full => 1.0,
    };
    let most = MAX_NUMBERS as f64 / (runs * space.max_dim).max(1.0);
    let particles = (rounds * particles).min(most).max(64.0);
    runs * particles * of_particle(space.max_dim)
}
