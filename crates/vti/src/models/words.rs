//! MADE+ over words of symbols (paper, appendix G.8, "Neural probability mass function for model indicators").
//!
//! `q(word) = Π_i q(word_i | word_{<i})`, where variable i has as many outputs as its symbols need: one logit for a bit, one
//! per symbol for a digit. Sampling evaluates each unit of the network once ([`WordNet::sample`]), with the same bits as a
//! full pass per symbol.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::word_workspace::{Shard, WordPasses, WordWorkspace};
use crate::device::{Choice, Device, DeviceError, Entry, ShortSlice, Symbols};
use crate::flow::Tensor;
use crate::flow::context::{ContextCall, Encoded};
use crate::flow::made::{Made, MadeShape, RowCall};
use crate::flow::parameters::Layout;
use crate::simd::Real;
use crate::space::ModelSpace;

/// Settings of a [`WordNet`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WordNetSettings {
    /// Hidden units.
    pub hidden: usize,
    /// Residual blocks.
    pub blocks: usize,
    /// How digits enter the network (bits are one number either way).
    pub digits: DigitInput,
}

/// How a symbol that is not a bit enters the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DigitInput {
    /// As one number from 0 to 1.
    Scaled,
    /// As a 1 among zeros.
    OneHot,
}

impl Default for WordNetSettings {
    fn default() -> Self {
        Self { hidden: 128, blocks: 2, digits: DigitInput::OneHot }
    }
}

/// A network over words that cannot be built or used as asked.
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
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
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
    /// A symbol that its variable does not have.
    #[error("row {row}: variable {variable} has {arity} symbols, there is no symbol {symbol}")]
    Symbol {
        /// Which row.
        row: usize,
        /// Which variable.
        variable: usize,
        /// What stands there.
        symbol: u16,
        /// How many symbols the variable has.
        arity: u16,
    },
    /// A workspace, parameters or a space of another network.
    #[error("the workspace, the parameters or the space belong to another distribution")]
    Other,
    /// A network without hidden units.
    #[error("a distribution over words needs at least 1 hidden unit")]
    NoHidden,
    /// Gradients were asked for without a forward pass of their own, or of a workspace for evaluation.
    #[error("gradients need a workspace for training and log probabilities of their own")]
    NoForwardPass,
}

/// A distribution over words `word[i] < arities[i]`.
///
/// ```
/// use vti::device::{Cpu, Device};
/// use vti::models::{WordNet, WordNetSettings, WordPasses};
///
/// let words = WordNet::new(&[3, 2, 2], &WordNetSettings::default())?;
/// let device = Cpu::<f64>::new(1)?;
/// let mut parameters = device.buffer(words.parameter_count())?;
/// device.write(&words.initial_parameters(1), &mut parameters)?;
///
/// let mut work = words.workspace(&device, 2, WordPasses::Evaluation)?;
/// work.write_uniforms(&device, &[0.1, 0.2, 0.3, 0.9, 0.8, 0.7])?;
/// words.sample(&device, &parameters, &mut work, None)?;
/// let (mut drawn, mut log_prob) = (vec![0; 6], vec![0.0; 2]);
/// work.read_words(&device, &mut drawn, &mut log_prob)?;
/// assert_eq!(drawn, [0, 0, 0, 2, 1, 1]); // a new network is uniform
/// assert!((log_prob[0] + 12f64.ln()).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct WordNet {
    pub(super) arities: Box<[u16]>,
    pub(super) entries: Box<[Entry]>,
    pub(super) made: Made,
    layout: Layout,
}

impl WordNet {
    /// Lays the network out.
    pub fn new(arities: &[u16], settings: &WordNetSettings) -> Result<Self, WordError> {
        if settings.hidden == 0 {
            return Err(WordError::NoHidden);
        }
        if arities.is_empty() {
            return Err(WordError::NoVariables);
        }
        if let Some(variable) = arities.iter().position(|&arity| arity < 2) {
            return Err(WordError::Arity { variable, arity: arities[variable] });
        }
        let one_hot = |arity: u16| arity > 2 && settings.digits == DigitInput::OneHot;
        let inputs: Vec<usize> =
            arities.iter().map(|&arity| if one_hot(arity) { usize::from(arity) } else { 1 }).collect();
        let shape = MadeShape {
            outputs: arities.iter().map(|&arity| outputs(arity)).collect(),
            hidden: settings.hidden,
            blocks: settings.blocks,
            inputs: inputs.clone(),
        };
        let mut layout = Layout::default();
        let made = Made::allocate(&mut layout, &shape, Encoded::Symbols(1));
        let entry = |variable: usize, arity: u16| {
            let features = made.inputs(variable);
            if one_hot(arity) {
                Entry::OneHot { features }
            } else {
                Entry::Scaled { feature: features.start, scale: 1.0 / f64::from(arity - 1) }
            }
        };
        let entries = arities.iter().enumerate().map(|(variable, &arity)| entry(variable, arity)).collect();
        Ok(Self { arities: arities.into(), entries, made, layout })
    }

    /// How many numbers ψ has.
    pub fn parameter_count(&self) -> usize {
        self.layout.len()
    }

    /// Names, places and shapes of everything in ψ.
    pub fn tensors(&self) -> &[Tensor] {
        self.layout.tensors()
    }

    /// Random initial ψ: all words are equally likely, forbidden ones aside.
    pub fn initial_parameters<T: Real>(&self, seed: u64) -> Vec<T> {
        self.layout.initial(seed, 1)
    }

    /// Memory for up to `rows` words.
    pub fn workspace<D: Device>(
        &self,
        device: &D,
        rows: usize,
        passes: WordPasses,
    ) -> Result<WordWorkspace<D>, WordError> {
        Ok(WordWorkspace::new(self, device, rows, passes)?)
    }

    /// Draws a word for every row from its uniform numbers, evaluating each unit of the network once. With `rules`, symbols
    /// that a space does not allow after what was drawn before have probability 0.
    pub fn sample<D: Device>(
        &self,
        device: &D,
        parameters: &D::Buffer,
        work: &mut WordWorkspace<D>,
        rules: Option<&dyn ModelSpace>,
    ) -> Result<(), WordError> {
        self.check(work, device.len(parameters), rules)?;
        work.forward_done = false;
        let draw = |shard: &mut Shard<D>| {
            self.begin(device, parameters, shard)?;
            device.clear(&mut shard.inputs)?;
            for variable in 0..self.arities.len() {
                let call = RowCall { device, parameters, rows: &shard.rows };
                self.made.step(&call, &shard.inputs, variable, &mut shard.tape)?;
                if let Some(rules) = rules {
                    shard.forbid(self, device, rules, variable)?;
                }
                let Shard { rows, uniforms, words, inputs, log_prob, tape, .. } = shard;
                let (outputs, entry, logits) = (self.made.outputs(variable), self.entries[variable].clone(), &tape.rho);
                let choice = Choice { variable, outputs, logits, uniforms, words, entry, inputs, log_prob };
                device.choose(rows, choice)?;
                if rules.is_some() {
                    shard.remember(device, variable)?;
                }
            }
            Ok(())
        };
        let WordWorkspace { shards, spare, .. } = work;
        Ok(device.workers().try_for_each(shards, |_, shard| shard.with_units(spare, &self.made, device, draw))?)
    }

    /// Log probabilities of the words in `work`, −∞ where `rules` forbid one.
    pub fn log_prob<D: Device>(
        &self,
        device: &D,
        parameters: &D::Buffer,
        work: &mut WordWorkspace<D>,
        rules: Option<&dyn ModelSpace>,
    ) -> Result<(), WordError> {
        self.check(work, device.len(parameters), rules)?;
        work.forward_done = false;
        let evaluate = |shard: &mut Shard<D>| {
            self.begin(device, parameters, shard)?;
            let call = RowCall { device, parameters, rows: &shard.rows };
            self.made.evaluate(&call, &shard.inputs, &mut shard.tape)?;
            for variable in 0..self.arities.len() {
                if let Some(rules) = rules {
                    shard.forbid(self, device, rules, variable)?;
                }
                let Shard { rows, words, log_prob, tape, .. } = shard;
                let symbols = Symbols { variable, outputs: self.made.outputs(variable), words };
                device.symbol_log_prob(rows, symbols, &tape.rho, log_prob)?;
            }
            Ok(())
        };
        let WordWorkspace { shards, spare, .. } = work;
        device.workers().try_for_each(shards, |_, shard| shard.with_units(spare, &self.made, device, evaluate))?;
        work.forward_done = true;
        Ok(())
    }

    /// The gradient of `Σ_r weights[r] · log q(word_r)` with respect to ψ, written to `gradient`, for the words of the last
    /// [`WordNet::log_prob`], which it uses up. The weight of a forbidden word must be 0.
    pub fn backward<D: Device>(
        &self,
        device: &D,
        parameters: &D::Buffer,
        work: &mut WordWorkspace<D>,
        weights: &[D::Real],
        gradient: &mut D::Buffer,
    ) -> Result<(), WordError> {
        self.check(work, device.len(parameters), None)?;
        self.check(work, device.len(gradient), None)?;
        work.write_weights(device, weights)?;
        if !std::mem::take(&mut work.forward_done) {
            return Err(WordError::NoForwardPass);
        }
        work.backward(device, gradient, |shard| {
            let Shard { rows, contexts, empty, words, inputs, tape, training, .. } = shard;
            let Some(training) = training else { return Ok(()) };
            for variable in 0..self.arities.len() {
                let symbols = Symbols { variable, outputs: self.made.outputs(variable), words };
                device.symbol_gradient(rows, symbols, &training.weights, &mut tape.rho)?;
            }
            let call = RowCall { device, parameters, rows };
            let context = ContextCall { device, parameters, rows: contexts, encoded: empty };
            let (scratch, to) = (&mut training.scratch, &mut training.parameters);
            self.made.backward(&call, &context, inputs, tape, scratch, None, None, to)
        })?;
        Ok(())
    }

    /// What every pass starts with.
    fn begin<D: Device>(&self, device: &D, parameters: &D::Buffer, shard: &mut Shard<D>) -> Result<(), DeviceError> {
        let Shard { rows, contexts, empty, log_prob, tape, .. } = shard;
        let call = RowCall { device, parameters, rows };
        self.made.begin(&call, &ContextCall { device, parameters, rows: contexts, encoded: empty }, tape)?;
        device.clear(log_prob)?;
        Ok(())
    }

    fn check<D: Device>(
        &self,
        work: &WordWorkspace<D>,
        parameters: usize,
        rules: Option<&dyn ModelSpace>,
    ) -> Result<(), WordError> {
        let own = parameters == self.parameter_count()
            && work.belongs_to(self)
            && rules.is_none_or(|rules| rules.arities() == &*self.arities);
        if own { Ok(()) } else { Err(WordError::Other) }
    }

    /// Logits of a variable among all.
    pub(super) fn outputs(&self, variable: usize) -> Range<usize> {
        self.made.outputs(variable)
    }
}

/// Logits of a variable: that of 1 for a bit, one per symbol for a digit.
pub(super) fn outputs(arity: u16) -> usize {
    if arity == 2 { 1 } else { usize::from(arity) }
}
