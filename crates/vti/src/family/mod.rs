//! The variational family `q_ψ(m) q_φ(θ_m | m)`: a distribution over models and a flow that is told the model.

mod coordinates;
mod error;
mod pass;
mod pieces;
mod settings;

pub use error::FamilyError;
pub(crate) use pass::Pass;
pub use settings::{ContextSettings, FamilySettings, FlowKind, FrameSettings, Structure};

use crate::engine::Engine;
use crate::flow::{ContextShape, Flow, FlowShape, Passes};
use crate::models::{Draw, ModelDistribution, ModelsSettings, build};
use crate::problem::{Constraints, Problem};
use crate::space::{Catalogue, ModelSpace};
use crate::state::{State, StateError};

/// How a model enters the flow.
pub(crate) enum Contexts {
    /// By its number.
    Lookup(Catalogue),
    /// By its features.
    Features(usize),
}

/// A member of the family: networks with their parameters, for one problem on one engine.
pub struct Family<'a, P: Problem, E: Engine> {
    pub(crate) problem: &'a P,
    pub(crate) engine: &'a E,
    pub(crate) flow: Flow,
    /// φ.
    pub(crate) parameters: E::Buffer,
    pub(crate) models: Box<dyn ModelDistribution<E> + 'a>,
    pub(crate) contexts: Contexts,
    settings: FamilySettings,
    choices: Vec<String>,
    rows: usize,
    log_count: f64,
}

impl<P: Problem, E: Engine> std::fmt::Debug for Family<'_, P, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Family").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<'a, P: Problem, E: Engine> Family<'a, P, E> {
    /// Random networks for batches of `rows` rows.
    pub fn new(
        problem: &'a P,
        engine: &'a E,
        settings: &FamilySettings,
        rows: usize,
        seed: u64,
    ) -> Result<Self, FamilyError> {
        let space: &'a dyn ModelSpace = problem.space();
        check_problem(problem)?;
        let mut choices = Vec::new();
        let factors = problem.factors();
        let structure = settings.structure.resolve(factors.is_some(), &mut choices)?;
        let (context, contexts, max_dim) = match space.blocks().filter(|_| structure == Structure::Blocks) {
            Some(blocks) => (settings.context, Contexts::Features(blocks.block_feature_count()), blocks.width()),
            None => {
                let (context, contexts) = settings.context.resolve(space, &mut choices)?;
                (context, contexts, space.max_dim())
            }
        };
        let shape = FlowShape {
            max_dim,
            context: match &contexts {
                Contexts::Lookup(catalogue) => ContextShape::Symbols(catalogue.len()),
                Contexts::Features(count) => ContextShape::Features(*count),
            },
        };
        let flow_kind = settings.flow.resolve(max_dim, structure == Structure::Blocks, &mut choices);
        let flow = Flow::new(&flow_kind.layers(), shape)?;
        let chosen = build(engine, problem, structure == Structure::Blocks, &settings.models, rows, seed)?;
        choices.extend(chosen.reason.map(|reason| format!("models: {} ({reason})", name(&chosen.settings))));
        let mut parameters = engine.buffer(flow.parameter_count());
        engine.write(&flow.initial_parameters(seed), &mut parameters);
        Ok(Self {
            problem,
            engine,
            flow,
            parameters,
            models: chosen.models,
            contexts,
            settings: FamilySettings {
                flow: flow_kind,
                models: chosen.settings,
                context,
                frame: settings.frame,
                structure,
            },
            choices,
            rows,
            log_count: log_count(space),
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

    pub(crate) fn space(&self) -> &'a dyn ModelSpace {
        self.problem.space()
    }

    /// Constraints that are not trivial.
    pub(crate) fn constraints(&self) -> Option<&'a Constraints> {
        self.problem.constraints().filter(|constraints| !constraints.is_trivial())
    }

    /// Whether the problem's frames are used.
    pub(crate) fn framed(&self) -> bool {
        self.settings.frame == FrameSettings::Problem
    }

    /// Whether each block has a flow of its own.
    pub(crate) fn is_split(&self) -> bool {
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

    pub(crate) fn pass(&self, rows: usize, passes: Passes) -> Pass<E> {
        Pass::new(self, rows, passes)
    }

    /// Draws a word for each row into a pass.
    pub(crate) fn draw_models(&mut self, draw: Draw, pass: &mut Pass<E>, rows: usize) {
        pass.resize(rows);
        self.models.sample(self.engine, draw, &mut pass.words, &mut pass.log_q_model);
    }

    pub(crate) fn state(&self) -> State {
        let mut state = State::default();
        state.put_buffer("flow", self.engine, &self.parameters);
        state.put_state("models", self.models.state(self.engine));
        state
    }

    pub(crate) fn restore(&mut self, state: &mut State) -> Result<(), StateError> {
        state.take_buffer("flow", self.engine, &mut self.parameters)?;
        self.models.restore(self.engine, &mut state.take_state("models"))
    }
}

/// Refuses problems that contradict themselves.
fn check_problem<P: Problem>(problem: &P) -> Result<(), FamilyError> {
    let (space, max_dim) = (problem.space(), problem.space().max_dim());
    if let Some(constraints) = problem.constraints()
        && constraints.free_len() != max_dim
    {
        return Err(FamilyError::Constraints { free: constraints.free_len(), max_dim });
    }
    if problem.factors().is_some() {
        let covered = space.blocks().map_or(0, |blocks| blocks.count() * blocks.width());
        if covered != max_dim || space.blocks().is_none() {
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
