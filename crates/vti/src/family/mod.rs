//! The variational family `q_ψ(m) q_φ(θ_m | m)`: a distribution over models and a flow that is told the model.

mod coordinates;
mod error;
mod fitted;
mod pass;
mod plan;
mod row_blocks;
mod settings;

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

pub use error::FamilyError;
pub(crate) use pass::Pass;
pub(crate) use plan::Plan;
pub use settings::{ContextSettings, FamilySettings, FlowKind, PreconditionerSettings, Structure};

use crate::device::{Device, DeviceError};
use crate::flow::{Flow, Passes};
use crate::models::{Draw, ModelDistribution, ModelsSettings, Prepared, Preparing, build};
use crate::problem::{Constraints, Fingerprint, Preconditioner, Problem};
use crate::space::{Catalogue, ModelSpace};
use crate::state::{State, StateError};

/// How a model enters the flow.
pub(crate) enum Contexts {
    /// By its number.
    Lookup(Catalogue),
    /// By its features.
    Features(usize),
}

/// A member of the family: networks with their parameters, for one problem on one device.
pub struct Family<D: Device> {
    pub(crate) problem: Arc<dyn Problem>,
    pub(crate) device: D,
    pub(crate) flow: Flow,
    /// φ.
    pub(crate) parameters: D::Buffer,
    pub(crate) models: Box<dyn ModelDistribution<D>>,
    pub(crate) contexts: Contexts,
    settings: FamilySettings,
    choices: Vec<String>,
    rows: usize,
    log_count: f64,
    /// Preconditioners that come from draws; what the problem says counts for other models.
    fitted: fitted::Fitted,
    /// Found once: a density that fails later on must not be taken for another.
    fingerprint: OnceLock<Fingerprint>,
}

impl<D: Device> std::fmt::Debug for Family<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Family").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<D: Device> Family<D> {
    /// What tells its problem apart from others.
    pub(crate) fn fingerprint(&self) -> &Fingerprint {
        self.fingerprint.get_or_init(|| Fingerprint::of(&*self.problem))
    }

    /// Random networks for batches of `rows` rows.
    pub fn new(
        problem: Arc<dyn Problem>,
        device: D,
        settings: &FamilySettings,
        rows: usize,
        seed: u64,
    ) -> Result<Self, FamilyError> {
        let space = problem.space();
        let Plan { structure, context, contexts, shape, flow: flow_kind, mut choices } =
            Plan::new(&*problem, settings)?;
        let flow = Flow::new(&flow_kind.layers(), shape)?;
        let chosen = build(&device, &problem, structure == Structure::Blocks, &settings.models, rows, seed)?;
        choices.extend(chosen.reason.map(|reason| format!("models: {} ({reason})", name(&chosen.settings))));
        let mut parameters = device.buffer(flow.parameter_count())?;
        device.write(&flow.initial_parameters(seed), &mut parameters)?;
        let log_count = log_count(space);
        Ok(Self {
            problem,
            device,
            flow,
            parameters,
            models: chosen.models,
            contexts,
            settings: FamilySettings {
                flow: flow_kind,
                models: chosen.settings,
                context,
                preconditioner: settings.preconditioner,
                structure,
            },
            choices,
            rows,
            log_count,
            fitted: fitted::Fitted::default(),
            fingerprint: OnceLock::new(),
        })
    }

    /// Logarithm of the number of models, or a bound of it.
    pub(crate) fn log_count(&self) -> f64 {
        self.log_count
    }

    /// The settings, with every choice written out.
    pub fn settings(&self) -> &FamilySettings {
        &self.settings
    }

    /// What was chosen automatically, and why: a line for each.
    pub fn choices(&self) -> &[String] {
        &self.choices
    }

    /// Rows of a batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The flow.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    pub(crate) fn space(&self) -> &dyn ModelSpace {
        self.problem.space()
    }

    /// Constraints that are not trivial.
    pub(crate) fn constraints(&self) -> Option<&Constraints> {
        self.problem.constraints().filter(|constraints| !constraints.is_trivial())
    }

    /// Whether the problem's preconditioners are used.
    pub(crate) fn preconditioned(&self) -> bool {
        self.settings.preconditioner == PreconditionerSettings::Problem
    }

    /// Whether each block has a flow of its own.
    pub(crate) fn is_blockwise(&self) -> bool {
        self.settings.structure == Structure::Blocks
    }

    /// Features of a context.
    fn feature_count(&self) -> usize {
        match self.contexts {
            Contexts::Lookup(_) => 0,
            Contexts::Features(count) => count,
        }
    }

    /// Natural parameters of all models.
    pub(crate) fn natural_len(&self) -> usize {
        self.problem.constraints().map_or(self.space().max_dim(), Constraints::natural_len)
    }

    pub(crate) fn pass(&self, rows: usize, passes: Passes) -> Result<Pass<D>, FamilyError> {
        Pass::new(self, rows, passes)
    }

    /// Makes the first q(m), where that takes long.
    pub(crate) fn prepare(&mut self, preparing: &mut Preparing<'_>) -> ControlFlow<(), Prepared> {
        self.models.prepare(&self.device, preparing)
    }

    /// The same without anybody to watch or to end it; nothing where it was done before.
    pub(crate) fn prepare_in_silence(&mut self) {
        let _ = self.prepare(&mut Preparing { until: None, watch: &mut |_, _| ControlFlow::Continue(()) });
    }

    /// Draws a word for each row into a pass.
    pub(crate) fn draw_models(&self, draw: Draw, pass: &mut Pass<D>, rows: usize) -> Result<(), FamilyError> {
        pass.resize(rows);
        Ok(self.models.sample(&self.device, draw, &mut pass.words, &mut pass.log_q_model)?)
    }

    pub(crate) fn state(&self) -> Result<State, DeviceError> {
        let mut state = State::default();
        state.put_buffer("flow", &self.device, &self.parameters)?;
        state.put_state("models", self.models.state(&self.device)?);
        state.put_state("preconditioners", self.fitted.state());
        Ok(state)
    }

    pub(crate) fn restore(&mut self, state: &mut State) -> Result<(), StateError> {
        state.take_buffer("flow", &self.device, &mut self.parameters)?;
        self.fitted = fitted::Fitted::restore(&mut state.take_state("preconditioners"), self.problem.space())?;
        self.models.restore(&self.device, &mut state.take_state("models"))
    }

    /// Where the parameters of a model roughly lie, as draws or the problem say.
    fn preconditioner(&self, word: &[u16]) -> Option<Preconditioner> {
        self.fitted.get(word).or_else(|| self.problem.preconditioner(word))
    }
}

/// A symbol names a block.
const MAX_BLOCKS: usize = 1 << 16;

/// Refuses problems that contradict themselves.
fn check_problem(problem: &dyn Problem) -> Result<(), FamilyError> {
    let (space, max_dim) = (problem.space(), problem.space().max_dim());
    if let Some(constraints) = problem.constraints()
        && constraints.free_len() != max_dim
    {
        return Err(FamilyError::Constraints { free: constraints.free_len(), max_dim });
    }
    if let Some(blocks) = problem.blocks() {
        let count = blocks.count();
        if !(1..=MAX_BLOCKS).contains(&count) {
            return Err(FamilyError::BlockCount { count, max: MAX_BLOCKS });
        }
        let covered = count * blocks.width();
        if covered != max_dim {
            return Err(FamilyError::Blocks { covered, max_dim });
        }
    }
    let names = problem.parameter_names().len();
    let natural = problem.constraints().map_or(max_dim, Constraints::natural_len);
    if names != natural {
        return Err(FamilyError::Names { names, parameters: natural });
    }
    if space.arities().is_empty() {
        return Err(FamilyError::EmptyWords);
    }
    let word = first_word(space);
    if problem.log_prior(&word).is_nan() {
        return Err(FamilyError::Prior { model: space.label(&word) });
    }
    Ok(())
}

/// The first word that a space allows.
fn first_word(space: &dyn ModelSpace) -> Vec<u16> {
    let mut word = Vec::with_capacity(space.arities().len());
    let mut allowed = Vec::new();
    for &arity in space.arities() {
        allowed.resize(usize::from(arity), true);
        space.allow(&word, &mut allowed);
        word.push(allowed.iter().position(|&allowed| allowed).unwrap_or(0) as u16);
    }
    word
}

/// Logarithm of the number of words: what the space says, or else counted, or else bounded as if nothing were forbidden.
fn log_count(space: &dyn ModelSpace) -> f64 {
    let said = space.log_count();
    if !said.is_nan() {
        return said;
    }
    let bound = || space.arities().iter().map(|&arity| f64::from(arity).ln()).sum();
    Catalogue::new(space, 1 << 20).map_or_else(|_| bound(), |catalogue| (catalogue.len() as f64).ln())
}

/// What a distribution over models is called.
fn name(settings: &ModelsSettings) -> &'static str {
    match settings {
        ModelsSettings::Auto {} => "auto",
        ModelsSettings::Categorical(_) => "categorical",
        ModelsSettings::Autoregressive(_) => "autoregressive",
        ModelsSettings::Surrogate(_) => "surrogate",
        ModelsSettings::Modular(_) => "modular",
    }
}
