//! All memory of a [`WordNet`]'s passes, planned once.

use super::words::{WordError, WordNet, outputs};
use crate::device::{Device, DeviceError, Entry, Placement, RowPlan, ShortSlice};
use crate::flow::made::{Made, MadeScratch, MadeTape, MadeUnits};
use crate::simd::Real;
use crate::space::ModelSpace;
use crate::workers::Spare;

/// What a workspace is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordPasses {
    /// Drawing words, and log probabilities of known ones.
    Evaluation,
    /// The same with gradients.
    Training,
}

/// Memory for drawing words, for their log probabilities and gradients.
pub struct WordWorkspace<D: Device> {
    arities: Box<[u16]>,
    entries: Box<[Entry]>,
    /// Of the network it was made for.
    parameters: usize,
    rows: usize,
    shard_rows: usize,
    input_width: usize,
    /// Whether the shards hold log probabilities of known words that no backward pass has used up.
    pub(super) forward_done: bool,
    pub(super) shards: Vec<Shard<D>>,
    /// Hidden units for shards that need them only during a pass.
    pub(super) spare: Spare<MadeUnits<D>>,
    /// For moving words in.
    host: Vec<D::Real>,
}

/// A share of the rows, numbered from 0.
pub(super) struct Shard<D: Device> {
    pub(super) count: usize,
    /// Rows of the largest shard.
    capacity: usize,
    pub(super) rows: D::Rows,
    pub(super) contexts: D::Rows,
    pub(super) empty: D::Matrix,
    pub(super) uniforms: D::Matrix,
    /// Symbols.
    pub(super) words: D::Matrix,
    /// Symbols as the network reads them.
    pub(super) inputs: D::Matrix,
    pub(super) log_prob: D::Matrix,
    pub(super) tape: MadeTape<D>,
    pub(super) training: Option<Training<D>>,
    /// Symbols on the host, row-major: what constraints look at.
    prefix: Vec<u16>,
    /// Constraints: made when first needed.
    rules: Option<Rules<D>>,
}

impl<D: Device> Shard<D> {
    /// Calls `pass` with hidden units: spare ones, or its own where it keeps them for the backward pass.
    pub(super) fn with_units(
        &mut self,
        spare: &Spare<MadeUnits<D>>,
        made: &Made,
        device: &D,
        pass: impl FnOnce(&mut Self) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        if self.training.is_some() {
            return pass(self);
        }
        let capacity = self.capacity;
        spare.lend(
            || made.units(device, capacity),
            |units| {
                std::mem::swap(&mut self.tape.units, units);
                let passed = pass(self);
                std::mem::swap(&mut self.tape.units, units);
                passed
            },
        )
    }
}

/// What a shard needs for gradients.
pub(super) struct Training<D: Device> {
    pub(super) weights: D::Matrix,
    pub(super) scratch: MadeScratch<D>,
    /// Empty in the first shard, which writes to the caller's.
    pub(super) parameters: D::Buffer,
}

/// What a shard needs to know which symbols are allowed.
struct Rules<D: Device> {
    allowed: Vec<bool>,
    host: Vec<D::Real>,
    /// What is added to the logits: 0, or ∓∞.
    mask: D::Matrix,
}

impl<D: Device> std::fmt::Debug for WordWorkspace<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WordWorkspace")
            .field("arities", &self.arities)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

const ONE_NUMBER: Placement<'static> = Placement::Whole { stride: 1, first: 0 };

impl<D: Device> WordWorkspace<D> {
    pub(super) fn new(net: &WordNet, device: &D, rows: usize, passes: WordPasses) -> Result<Self, DeviceError> {
        let (variables, made) = (net.arities.len(), &net.made);
        let training = passes == WordPasses::Training;
        let shard_rows = if training {
            device.shard_rows(rows, net.parameter_count()).next_multiple_of(device.row_grain())
        } else {
            device.independent_shard_rows(rows)
        };
        let shard_rows = shard_rows.clamp(1, rows.max(1));
        let input_width = made.inputs(variables - 1).end;
        let (dims, zeros) = (vec![variables as u32; shard_rows], vec![0; shard_rows]);
        let shard = |first: usize| {
            let count = shard_rows.min(rows - first);
            let order: Vec<u32> = (0..count as u32).collect();
            // Shards for evaluation borrow theirs.
            let units = made.units(device, if training { count } else { 0 })?;
            let for_training = || {
                Ok::<_, DeviceError>(Training {
                    weights: device.matrix(1, count)?,
                    scratch: Made::scratch(device, made.hidden(), made.max_inputs(), count)?,
                    parameters: device.buffer(if first == 0 { 0 } else { net.parameter_count() })?,
                })
            };
            let mut shard = Shard {
                count,
                capacity: shard_rows,
                rows: device.rows(count, 0)?,
                contexts: device.rows(0, 0)?,
                empty: device.matrix(0, 0)?,
                uniforms: device.matrix(variables, count)?,
                words: device.matrix(variables, count)?,
                inputs: device.matrix(input_width, count)?,
                log_prob: device.matrix(1, count)?,
                tape: made.tape_with(units, device, count, 0, training)?,
                training: training.then(for_training).transpose()?,
                prefix: vec![0; count * variables],
                rules: None,
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
            device.set_rows(&mut shard.rows, plan)?;
            Ok::<_, DeviceError>(shard)
        };
        Ok(Self {
            arities: net.arities.clone(),
            entries: net.entries.clone(),
            parameters: net.parameter_count(),
            rows,
            shard_rows,
            input_width,
            forward_done: false,
            shards: (0..rows).step_by(shard_rows).map(shard).collect::<Result<_, _>>()?,
            spare: Spare::default(),
            host: Vec::with_capacity(shard_rows * input_width.max(variables)),
        })
    }

    pub(super) fn belongs_to(&self, net: &WordNet) -> bool {
        self.parameters == net.parameter_count() && self.arities == net.arities && self.entries == net.entries
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Sets the uniform numbers in [0, 1), one per row and variable, row-major.
    pub fn write_uniforms(&mut self, device: &D, uniforms: &[D::Real]) -> Result<(), WordError> {
        let stride = self.arities.len();
        ShortSlice::check("uniforms", uniforms.len(), self.rows * stride)?;
        for (shard, from) in self.shards.iter_mut().zip(uniforms.chunks(self.shard_rows * stride)) {
            device.import(&shard.rows, from, Placement::Whole { stride, first: 0 }, &mut shard.uniforms)?;
        }
        Ok(())
    }

    /// Sets the words, row-major.
    pub fn write_words(&mut self, device: &D, words: &[u16]) -> Result<(), WordError> {
        let variables = self.arities.len();
        ShortSlice::check("words", words.len(), self.rows * variables)?;
        self.forward_done = false;
        for (row, word) in words.chunks_exact(variables).take(self.rows).enumerate() {
            let wrong = word.iter().zip(&self.arities).position(|(symbol, arity)| symbol >= arity);
            if let Some(variable) = wrong {
                let (symbol, arity) = (word[variable], self.arities[variable]);
                return Err(WordError::Symbol { row, variable, symbol, arity });
            }
        }
        for (shard, words) in self.shards.iter_mut().zip(words.chunks(self.shard_rows * variables)) {
            shard.prefix.copy_from_slice(&words[..shard.count * variables]);
            let numbers = shard.prefix.iter().map(|&symbol| D::Real::from_f64(f64::from(symbol)));
            self.host.clear();
            self.host.extend(numbers);
            device.import(
                &shard.rows,
                &self.host,
                Placement::Whole { stride: variables, first: 0 },
                &mut shard.words,
            )?;
            self.host.clear();
            self.host.resize(shard.count * self.input_width, D::Real::ZERO);
            for (word, to) in shard.prefix.chunks_exact(variables).zip(self.host.chunks_exact_mut(self.input_width)) {
                for (&symbol, entry) in word.iter().zip(&self.entries) {
                    match entry {
                        Entry::Scaled { feature, scale } => to[*feature] = D::Real::from_f64(f64::from(symbol) * scale),
                        Entry::OneHot { features } => to[features.start + usize::from(symbol)] = D::Real::ONE,
                    }
                }
            }
            let at = Placement::Whole { stride: self.input_width, first: 0 };
            device.import(&shard.rows, &self.host, at, &mut shard.inputs)?;
        }
        Ok(())
    }

    /// Reads the words, row-major, and their log probabilities. Everything is read even when the error says that a log
    /// probability is not finite.
    pub fn read_words(&self, device: &D, words: &mut [u16], log_prob: &mut [D::Real]) -> Result<(), WordError> {
        let variables = self.arities.len();
        ShortSlice::check("words", words.len(), self.rows * variables)?;
        let mut symbols = vec![D::Real::ZERO; self.shard_rows * variables];
        for (shard, words) in self.shards.iter().zip(words.chunks_mut(self.shard_rows * variables)) {
            device.export(&shard.rows, &shard.words, Placement::Whole { stride: variables, first: 0 }, &mut symbols)?;
            let symbols = symbols.iter().take(shard.count * variables);
            words.iter_mut().zip(symbols).for_each(|(to, symbol)| *to = symbol.to_f64() as u16);
        }
        self.read_log_prob(device, log_prob)?;
        let bad = log_prob.iter().take(self.rows).position(|value| !value.is_finite());
        bad.map_or(Ok(()), |row| Err(WordError::NotFinite { row }))
    }

    /// Reads the log probabilities of the words; −∞ for forbidden ones.
    pub fn read_log_prob(&self, device: &D, log_prob: &mut [D::Real]) -> Result<(), WordError> {
        ShortSlice::check("log_prob", log_prob.len(), self.rows)?;
        for (shard, to) in self.shards.iter().zip(log_prob.chunks_mut(self.shard_rows)) {
            device.export(&shard.rows, &shard.log_prob, ONE_NUMBER, to)?;
        }
        Ok(())
    }

    /// Reads the logits behind the last words: for each row, those of all variables one after another.
    pub fn read_logits(&self, device: &D, logits: &mut [D::Real]) -> Result<(), WordError> {
        let stride = self.arities.iter().map(|&arity| outputs(arity)).sum();
        ShortSlice::check("logits", logits.len(), self.rows * stride)?;
        for (shard, to) in self.shards.iter().zip(logits.chunks_mut(self.shard_rows * stride)) {
            device.export(&shard.rows, &shard.tape.rho, Placement::Whole { stride, first: 0 }, to)?;
        }
        Ok(())
    }

    pub(super) fn write_weights(&mut self, device: &D, weights: &[D::Real]) -> Result<(), WordError> {
        ShortSlice::check("weights", weights.len(), self.rows)?;
        for (shard, weights) in self.shards.iter_mut().zip(weights.chunks(self.shard_rows)) {
            let training = shard.training.as_mut().ok_or(WordError::NoForwardPass)?;
            device.import(&shard.rows, &weights[..shard.count], ONE_NUMBER, &mut training.weights)?;
        }
        Ok(())
    }

    /// Runs `backward` in every shard and sums their gradients in order.
    pub(super) fn backward(
        &mut self,
        device: &D,
        gradient: &mut D::Buffer,
        backward: impl Fn(&mut Shard<D>) -> Result<(), DeviceError> + Sync,
    ) -> Result<(), DeviceError> {
        // The first shard works in the caller's memory.
        let swap = |shards: &mut [Shard<D>], gradient: &mut D::Buffer| {
            if let Some(training) = shards.first_mut().and_then(|shard| shard.training.as_mut()) {
                std::mem::swap(&mut training.parameters, gradient);
            }
        };
        swap(&mut self.shards, gradient);
        let passed = device.workers().try_for_each(&mut self.shards, |_, shard| backward(shard));
        swap(&mut self.shards, gradient);
        passed?;
        for training in self.shards.iter().skip(1).filter_map(|shard| shard.training.as_ref()) {
            device.combine(1.0, &training.parameters, 1.0, gradient)?;
        }
        Ok(())
    }
}

impl<D: Device> Shard<D> {
    /// Adds ∓∞ to the logits of symbols of `variable` that `space` does not allow after the symbols before it.
    pub(super) fn forbid(
        &mut self,
        net: &WordNet,
        device: &D,
        space: &dyn ModelSpace,
        variable: usize,
    ) -> Result<(), DeviceError> {
        let (variables, outputs) = (net.arities.len(), net.outputs(variable));
        let rules = match &mut self.rules {
            Some(rules) => rules,
            none => none.insert(Rules {
                allowed: Vec::new(),
                host: Vec::new(),
                mask: device.matrix(net.outputs(variables - 1).end, self.count)?,
            }),
        };
        let arity = usize::from(net.arities[variable]);
        rules.allowed.resize(arity, true);
        rules.host.clear();
        for word in self.prefix.chunks_exact(variables) {
            space.allow(&word[..variable], &mut rules.allowed);
            let penalty = |allowed: bool| if allowed { D::Real::ZERO } else { D::Real::NEG_INFINITY };
            if outputs.len() == 1 {
                // The logit of 1: −∞ forbids 1, +∞ forbids 0.
                rules.host.push(penalty(rules.allowed[1]) - penalty(rules.allowed[0]));
            } else {
                rules.host.extend(rules.allowed.iter().map(|&allowed| penalty(allowed)));
            }
        }
        let at = Placement::Whole { stride: outputs.len(), first: outputs.start };
        device.import(&self.rows, &rules.host, at, &mut rules.mask)?;
        device.add_features(&self.rows, outputs, &rules.mask, &mut self.tape.rho)?;
        Ok(())
    }

    /// Takes the symbol just drawn into the prefix.
    pub(super) fn remember(&mut self, device: &D, variable: usize) -> Result<(), DeviceError> {
        let Some(rules) = &mut self.rules else { return Ok(()) };
        rules.host.clear();
        rules.host.resize(self.count, D::Real::ZERO);
        device.export(&self.rows, &self.words, Placement::Whole { stride: 1, first: variable }, &mut rules.host)?;
        let variables = self.prefix.len() / self.count.max(1);
        let places = self.prefix.iter_mut().skip(variable).step_by(variables);
        places.zip(&rules.host).for_each(|(to, symbol)| *to = symbol.to_f64() as u16);
        Ok(())
    }
}
