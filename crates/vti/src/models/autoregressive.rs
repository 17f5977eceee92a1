//! MADE+ over words of symbols (paper, appendix "Neural probability mass function for model indicators").
//!
//! `q(word) = Π_i q(word_i | word_{<i})`, where variable i has as many outputs as its symbols need: one logit for a bit, one
//! per symbol for a digit. Sampling evaluates each unit of the network once ([`Autoregressive::sample`]), with the same
//! bits as a full pass per symbol ([`Autoregressive::sample_by_full_passes`]).

use serde::{Deserialize, Serialize};

use crate::engine::{Choice, Engine, Placement, Real, RowPlan, ShortSlice};
use crate::flow::Tensor;
use crate::flow::context::{ContextCall, Encoded};
use crate::flow::made::{Made, MadeShape, MadeTape, RowCall};
use crate::flow::parameters::Layout;

/// Settings of an [`Autoregressive`] distribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoregressiveSettings {
    /// Hidden units.
    pub hidden: usize,
    /// Residual blocks.
    pub blocks: usize,
}

impl Default for AutoregressiveSettings {
    fn default() -> Self {
        Self { hidden: 128, blocks: 2 }
    }
}

/// A distribution over words that cannot be built or used as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WordError {
    /// A variable without a choice.
    #[error("variable {variable} has {arity} symbols, a choice needs at least 2")]
    Arity {
        /// Which variable.
        variable: usize,
        /// How many symbols it has.
        arity: u16,
    },
    /// A slice that is too short.
    #[error(transparent)]
    Length(#[from] ShortSlice),
    /// A word without variables.
    #[error("a distribution over words needs at least 1 variable")]
    NoVariables,
    /// A log probability that is infinite or not a number.
    #[error("row {row}: the log probability is not finite")]
    NotFinite {
        /// Which row.
        row: usize,
    },
    /// A workspace or parameters of another distribution.
    #[error("the workspace or the parameters belong to another distribution")]
    Other,
    /// A network without hidden units.
    #[error("a distribution over words needs at least 1 hidden unit")]
    NoHidden,
}

/// A distribution over words `word[i] < arities[i]`.
///
/// ```
/// use vti::engine::{CpuEngine, Engine};
/// use vti::models::{Autoregressive, AutoregressiveSettings};
///
/// let words = Autoregressive::new(&[3, 2, 2], &AutoregressiveSettings::default())?;
/// let engine = CpuEngine::<f64>::new(1)?;
/// let mut parameters = engine.buffer(words.parameter_count());
/// engine.write(&words.initial_parameters(1), &mut parameters);
///
/// let mut work = words.workspace(&engine, 2);
/// work.write_uniforms(&engine, &[0.1, 0.2, 0.3, 0.9, 0.8, 0.7])?;
/// words.sample(&engine, &parameters, &mut work)?;
/// let (mut drawn, mut log_prob) = (vec![0; 6], vec![0.0; 2]);
/// work.read_words(&engine, &mut drawn, &mut log_prob)?;
/// assert_eq!(drawn, [0, 0, 0, 2, 1, 1]); // a new network is uniform
/// assert!((log_prob[0] + 12f64.ln()).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Autoregressive {
    arities: Box<[u16]>,
    made: Made,
    layout: Layout,
}

impl Autoregressive {
    /// A network for words with the given numbers of symbols.
    pub fn new(arities: &[u16], settings: &AutoregressiveSettings) -> Result<Self, WordError> {
        let AutoregressiveSettings { hidden, blocks } = *settings;
        if arities.is_empty() {
            return Err(WordError::NoVariables);
        }
        if hidden == 0 {
            return Err(WordError::NoHidden);
        }
        if let Some((variable, &arity)) = arities.iter().enumerate().find(|&(_, &arity)| arity < 2) {
            return Err(WordError::Arity { variable, arity });
        }
        let outputs = arities.iter().map(|&arity| outputs(arity)).collect();
        let shape = MadeShape { inputs: vec![1; arities.len()], outputs, hidden, blocks };
        let mut layout = Layout::default();
        let made = Made::allocate(&mut layout, &shape, Encoded::Symbols(1));
        Ok(Self { arities: arities.into(), made, layout })
    }

    /// How many numbers ψ has.
    pub fn parameter_count(&self) -> usize {
        self.layout.len()
    }

    /// Names, places and shapes of everything in ψ.
    pub fn tensors(&self) -> &[Tensor] {
        self.layout.tensors()
    }

    /// Random initial ψ: all words are equally likely.
    pub fn initial_parameters<T: Real>(&self, seed: u64) -> Vec<T> {
        self.layout.initial(seed)
    }

    /// Memory for up to `rows` words.
    pub fn workspace<E: Engine>(&self, engine: &E, rows: usize) -> WordWorkspace<E> {
        let variables = self.made.variables();
        let lane_rows = engine.independent_lane_rows(rows).max(1);
        let (dims, zeros) = (vec![variables as u32; rows], vec![0; rows]);
        let lane = |first: usize| {
            let order: Vec<u32> = (first..rows.min(first + lane_rows)).map(|row| row as u32).collect();
            let mut lane = Lane {
                rows: engine.rows(order.len(), 0),
                contexts: engine.rows(0, 0),
                empty: engine.matrix(0, 0),
                uniforms: engine.matrix(variables, order.len()),
                words: engine.matrix(variables, order.len()),
                log_prob: engine.matrix(1, order.len()),
                tape: self.made.tape(engine, order.len(), 0, false),
            };
            let plan = RowPlan {
                order: &order,
                dims: &dims,
                contexts: &zeros,
                slots: &zeros,
                active: &[],
                starts: &[],
                needs_active: false,
            };
            engine.set_rows(&mut lane.rows, plan);
            lane
        };
        let lanes = (0..rows).step_by(lane_rows).map(lane).collect();
        WordWorkspace { arities: self.arities.clone(), parameters: self.parameter_count(), rows, lanes }
    }

    /// Draws a word for every row from its uniform numbers, evaluating each unit of the network once.
    pub fn sample<E: Engine>(
        &self,
        engine: &E,
        parameters: &E::Buffer,
        work: &mut WordWorkspace<E>,
    ) -> Result<(), WordError> {
        self.draw(engine, parameters, work, |call, words, variable, tape| {
            self.made.step(call, words, variable, tape);
        })
    }

    /// The same words by a whole pass for every symbol: the obvious way, to check [`Autoregressive::sample`] against.
    pub fn sample_by_full_passes<E: Engine>(
        &self,
        engine: &E,
        parameters: &E::Buffer,
        work: &mut WordWorkspace<E>,
    ) -> Result<(), WordError> {
        self.draw(engine, parameters, work, |call, words, _, tape| self.made.evaluate(call, words, tape))
    }

    /// Draws the variables one after another; `evaluate` brings the logits of one up to date.
    fn draw<E: Engine>(
        &self,
        engine: &E,
        parameters: &E::Buffer,
        work: &mut WordWorkspace<E>,
        evaluate: impl Fn(&RowCall<'_, E>, &E::Matrix, usize, &mut MadeTape<E>) + Sync + Send,
    ) -> Result<(), WordError> {
        let count = self.parameter_count();
        if engine.len(parameters) != count || work.parameters != count || work.arities != self.arities {
            return Err(WordError::Other);
        }
        engine.for_each_lane(&mut work.lanes, |_, lane| {
            let Lane { rows, contexts, empty, uniforms, words, log_prob, tape } = lane;
            let call = RowCall { engine, parameters, rows };
            self.made.begin(&call, &ContextCall { engine, parameters, rows: contexts, encoded: empty }, tape);
            engine.clear(words);
            engine.clear(log_prob);
            for (variable, &arity) in self.arities.iter().enumerate() {
                evaluate(&call, words, variable, tape);
                let (outputs, scale) = (self.made.outputs(variable), scale(arity));
                let logits = &tape.rho;
                engine.choose(rows, Choice { variable, outputs, logits, uniforms, scale, words, log_prob });
            }
        });
        Ok(())
    }
}

/// Logits of a variable: that of 1 for a bit, one per symbol for a digit.
fn outputs(arity: u16) -> usize {
    if arity == 2 { 1 } else { usize::from(arity) }
}

/// Symbols enter the network on a scale from 0 to 1.
fn scale(arity: u16) -> f64 {
    1.0 / f64::from(arity - 1)
}

/// Memory for drawing words.
pub struct WordWorkspace<E: Engine> {
    arities: Box<[u16]>,
    /// Of the distribution it was made for.
    parameters: usize,
    rows: usize,
    lanes: Vec<Lane<E>>,
}

struct Lane<E: Engine> {
    rows: E::Rows,
    contexts: E::Rows,
    empty: E::Matrix,
    uniforms: E::Matrix,
    words: E::Matrix,
    log_prob: E::Matrix,
    tape: MadeTape<E>,
}

impl<E: Engine> std::fmt::Debug for WordWorkspace<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WordWorkspace").field("arities", &self.arities).finish_non_exhaustive()
    }
}

impl<E: Engine> WordWorkspace<E> {
    /// Sets the uniform numbers in [0, 1), one per row and variable, row-major.
    pub fn write_uniforms(&mut self, engine: &E, uniforms: &[E::Real]) -> Result<(), WordError> {
        ShortSlice::check("uniforms", uniforms.len(), self.rows * self.arities.len())?;
        let at = Placement::Whole { stride: self.arities.len() };
        engine.for_each_lane(&mut self.lanes, |_, lane| engine.import(&lane.rows, uniforms, at, &mut lane.uniforms));
        Ok(())
    }

    /// Reads the words, row-major, and their log probabilities. Everything is read even when the error says that a log
    /// probability is not finite.
    pub fn read_words(&self, engine: &E, words: &mut [u16], log_prob: &mut [E::Real]) -> Result<(), WordError> {
        ShortSlice::check("words", words.len(), self.rows * self.arities.len())?;
        ShortSlice::check("log_prob", log_prob.len(), self.rows)?;
        let mut scaled = vec![E::Real::ZERO; words.len()];
        for lane in &self.lanes {
            let at = Placement::Whole { stride: self.arities.len() };
            engine.export(&lane.rows, &lane.words, at, &mut scaled);
            engine.export(&lane.rows, &lane.log_prob, Placement::Whole { stride: 1 }, log_prob);
        }
        let arities = self.arities.iter().cycle();
        for ((word, scaled), &arity) in words.iter_mut().zip(scaled).zip(arities) {
            *word = (scaled.to_f64() / scale(arity)).round() as u16;
        }
        let bad = log_prob.iter().take(self.rows).position(|value| !value.is_finite());
        bad.map_or(Ok(()), |row| Err(WordError::NotFinite { row }))
    }

    /// Reads the logits behind the last words: for each row, those of all variables one after another.
    pub fn read_logits(&self, engine: &E, logits: &mut [E::Real]) -> Result<(), WordError> {
        let stride = self.arities.iter().map(|&arity| outputs(arity)).sum();
        ShortSlice::check("logits", logits.len(), self.rows * stride)?;
        for lane in &self.lanes {
            engine.export(&lane.rows, &lane.tape.rho, Placement::Whole { stride }, logits);
        }
        Ok(())
    }
}
