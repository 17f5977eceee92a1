//! All memory of a [`WordNet`]'s passes, planned once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::words::{WordError, WordNet, outputs};
use crate::engine::{Engine, Entry, Placement, Real, RowPlan, ShortSlice};
use crate::flow::made::{Made, MadeScratch, MadeTape, MadeUnits};
use crate::space::ModelSpace;

/// What a workspace is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordPasses {
    /// Drawing words, and log probabilities of known ones.
    Evaluation,
    /// The same with gradients.
    Training,
}

/// Memory for drawing words, for their log probabilities and gradients.
pub struct WordWorkspace<E: Engine> {
    arities: Box<[u16]>,
    entries: Box<[Entry]>,
    /// Of the network it was made for.
    parameters: usize,
    rows: usize,
    lane_rows: usize,
    input_width: usize,
    /// Whether the lanes hold log probabilities of known words that no backward pass has used up.
    pub(super) forward_done: bool,
    pub(super) lanes: Vec<Lane<E>>,
    pub(super) spare: Spare<E>,
    /// For moving words in.
    host: Vec<E::Real>,
}

/// Hidden units for lanes that need them only during a pass. A lane takes what another has just put down, so that they stay
/// in a core's caches, and there are no more than lanes at work at the same time.
pub(super) struct Spare<E: Engine>(Mutex<Vec<MadeUnits<E>>>);

impl<E: Engine> Spare<E> {
    fn place(&self) -> MutexGuard<'_, Vec<MadeUnits<E>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `pass` with a lane that has hidden units.
    pub(super) fn lend(&self, made: &Made, engine: &E, lane: &mut Lane<E>, pass: impl FnOnce(&mut Lane<E>)) {
        if lane.training.is_some() {
            // It keeps its own for the backward pass.
            return pass(lane);
        }
        let units = self.place().pop();
        let units = units.unwrap_or_else(|| made.units(engine, lane.capacity));
        let none = std::mem::replace(&mut lane.tape.units, units);
        pass(lane);
        let units = std::mem::replace(&mut lane.tape.units, none);
        self.place().push(units);
    }
}

/// A share of the rows, numbered from 0.
pub(super) struct Lane<E: Engine> {
    pub(super) count: usize,
    /// Rows of the largest lane.
    capacity: usize,
    pub(super) rows: E::Rows,
    pub(super) contexts: E::Rows,
    pub(super) empty: E::Matrix,
    pub(super) uniforms: E::Matrix,
    /// Symbols.
    pub(super) words: E::Matrix,
    /// Symbols as the network reads them.
    pub(super) inputs: E::Matrix,
    pub(super) log_prob: E::Matrix,
    pub(super) tape: MadeTape<E>,
    pub(super) training: Option<Training<E>>,
    /// Symbols on the host, row-major: what constraints look at.
    prefix: Vec<u16>,
    /// Constraints: made when first needed.
    rules: Option<Rules<E>>,
}

/// What a lane needs for gradients.
pub(super) struct Training<E: Engine> {
    pub(super) weights: E::Matrix,
    pub(super) scratch: MadeScratch<E>,
    /// Empty in the first lane, which writes to the caller's.
    pub(super) parameters: E::Buffer,
}

/// What a lane needs to know which symbols are allowed.
struct Rules<E: Engine> {
    allowed: Vec<bool>,
    host: Vec<E::Real>,
    /// What is added to the logits: 0, or ∓∞.
    mask: E::Matrix,
}

impl<E: Engine> std::fmt::Debug for WordWorkspace<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WordWorkspace")
            .field("arities", &self.arities)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

const ONE_NUMBER: Placement<'static> = Placement::Whole { stride: 1, first: 0 };

impl<E: Engine> WordWorkspace<E> {
    pub(super) fn new(net: &WordNet, engine: &E, rows: usize, passes: WordPasses) -> Self {
        let (variables, made) = (net.arities.len(), &net.made);
        let training = passes == WordPasses::Training;
        let lane_rows = if training {
            engine.lane_rows(rows, net.parameter_count()).next_multiple_of(engine.row_grain())
        } else {
            engine.independent_lane_rows(rows)
        };
        let lane_rows = lane_rows.clamp(1, rows.max(1));
        let input_width = made.inputs(variables - 1).end;
        let (dims, zeros) = (vec![variables as u32; lane_rows], vec![0; lane_rows]);
        let lane = |first: usize| {
            let count = lane_rows.min(rows - first);
            let order: Vec<u32> = (0..count as u32).collect();
            // Lanes for evaluation borrow theirs.
            let units = made.units(engine, if training { count } else { 0 });
            let mut lane = Lane {
                count,
                capacity: lane_rows,
                rows: engine.rows(count, 0),
                contexts: engine.rows(0, 0),
                empty: engine.matrix(0, 0),
                uniforms: engine.matrix(variables, count),
                words: engine.matrix(variables, count),
                inputs: engine.matrix(input_width, count),
                log_prob: engine.matrix(1, count),
                tape: made.tape_with(units, engine, count, 0, training),
                training: training.then(|| Training {
                    weights: engine.matrix(1, count),
                    scratch: Made::scratch(engine, made.hidden(), made.max_inputs(), count),
                    parameters: engine.buffer(if first == 0 { 0 } else { net.parameter_count() }),
                }),
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
            engine.set_rows(&mut lane.rows, plan);
            lane
        };
        Self {
            arities: net.arities.clone(),
            entries: net.entries.clone(),
            parameters: net.parameter_count(),
            rows,
            lane_rows,
            input_width,
            forward_done: false,
            lanes: (0..rows).step_by(lane_rows).map(lane).collect(),
            spare: Spare(Mutex::default()),
            host: Vec::with_capacity(lane_rows * input_width.max(variables)),
        }
    }

    pub(super) fn belongs_to(&self, net: &WordNet) -> bool {
        self.parameters == net.parameter_count() && self.arities == net.arities && self.entries == net.entries
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Sets the uniform numbers in [0, 1), one per row and variable, row-major.
    pub fn write_uniforms(&mut self, engine: &E, uniforms: &[E::Real]) -> Result<(), WordError> {
        let stride = self.arities.len();
        ShortSlice::check("uniforms", uniforms.len(), self.rows * stride)?;
        for (lane, from) in self.lanes.iter_mut().zip(uniforms.chunks(self.lane_rows * stride)) {
            engine.import(&lane.rows, from, Placement::Whole { stride, first: 0 }, &mut lane.uniforms);
        }
        Ok(())
    }

    /// Sets the words, row-major.
    pub fn write_words(&mut self, engine: &E, words: &[u16]) -> Result<(), WordError> {
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
        for (lane, words) in self.lanes.iter_mut().zip(words.chunks(self.lane_rows * variables)) {
            lane.prefix.copy_from_slice(&words[..lane.count * variables]);
            let numbers = lane.prefix.iter().map(|&symbol| E::Real::from_f64(f64::from(symbol)));
            self.host.clear();
            self.host.extend(numbers);
            engine.import(&lane.rows, &self.host, Placement::Whole { stride: variables, first: 0 }, &mut lane.words);
            self.host.clear();
            self.host.resize(lane.count * self.input_width, E::Real::ZERO);
            for (word, to) in lane.prefix.chunks_exact(variables).zip(self.host.chunks_exact_mut(self.input_width)) {
                for (&symbol, entry) in word.iter().zip(&self.entries) {
                    match entry {
                        Entry::Scaled { feature, scale } => to[*feature] = E::Real::from_f64(f64::from(symbol) * scale),
                        Entry::OneHot { features } => to[features.start + usize::from(symbol)] = E::Real::ONE,
                    }
                }
            }
            let at = Placement::Whole { stride: self.input_width, first: 0 };
            engine.import(&lane.rows, &self.host, at, &mut lane.inputs);
        }
        Ok(())
    }

    /// Reads the words, row-major, and their log probabilities. Everything is read even when the error says that a log
    /// probability is not finite.
    pub fn read_words(&self, engine: &E, words: &mut [u16], log_prob: &mut [E::Real]) -> Result<(), WordError> {
        let variables = self.arities.len();
        ShortSlice::check("words", words.len(), self.rows * variables)?;
        let mut symbols = vec![E::Real::ZERO; self.lane_rows * variables];
        for (lane, words) in self.lanes.iter().zip(words.chunks_mut(self.lane_rows * variables)) {
            engine.export(&lane.rows, &lane.words, Placement::Whole { stride: variables, first: 0 }, &mut symbols);
            let symbols = symbols.iter().take(lane.count * variables);
            words.iter_mut().zip(symbols).for_each(|(to, symbol)| *to = symbol.to_f64() as u16);
        }
        self.read_log_prob(engine, log_prob)?;
        let bad = log_prob.iter().take(self.rows).position(|value| !value.is_finite());
        bad.map_or(Ok(()), |row| Err(WordError::NotFinite { row }))
    }

    /// Reads the log probabilities of the words; −∞ for forbidden ones.
    pub fn read_log_prob(&self, engine: &E, log_prob: &mut [E::Real]) -> Result<(), WordError> {
        ShortSlice::check("log_prob", log_prob.len(), self.rows)?;
        for (lane, to) in self.lanes.iter().zip(log_prob.chunks_mut(self.lane_rows)) {
            engine.export(&lane.rows, &lane.log_prob, ONE_NUMBER, to);
        }
        Ok(())
    }

    /// Reads the logits behind the last words: for each row, those of all variables one after another.
    pub fn read_logits(&self, engine: &E, logits: &mut [E::Real]) -> Result<(), WordError> {
        let stride = self.arities.iter().map(|&arity| outputs(arity)).sum();
        ShortSlice::check("logits", logits.len(), self.rows * stride)?;
        for (lane, to) in self.lanes.iter().zip(logits.chunks_mut(self.lane_rows * stride)) {
            engine.export(&lane.rows, &lane.tape.rho, Placement::Whole { stride, first: 0 }, to);
        }
        Ok(())
    }

    pub(super) fn write_weights(&mut self, engine: &E, weights: &[E::Real]) -> Result<(), WordError> {
        ShortSlice::check("weights", weights.len(), self.rows)?;
        for (lane, weights) in self.lanes.iter_mut().zip(weights.chunks(self.lane_rows)) {
            let training = lane.training.as_mut().ok_or(WordError::NoForwardPass)?;
            engine.import(&lane.rows, &weights[..lane.count], ONE_NUMBER, &mut training.weights);
        }
        Ok(())
    }

    /// Runs `backward` in every lane and sums their gradients in order.
    pub(super) fn backward(
        &mut self,
        engine: &E,
        gradient: &mut E::Buffer,
        backward: impl Fn(&mut Lane<E>) + Sync + Send,
    ) {
        // The first lane works in the caller's memory.
        let swap = |lanes: &mut [Lane<E>], gradient: &mut E::Buffer| {
            if let Some(training) = lanes.first_mut().and_then(|lane| lane.training.as_mut()) {
                std::mem::swap(&mut training.parameters, gradient);
            }
        };
        swap(&mut self.lanes, gradient);
        engine.for_each_lane(&mut self.lanes, |_, lane| backward(lane));
        swap(&mut self.lanes, gradient);
        for training in self.lanes.iter().skip(1).filter_map(|lane| lane.training.as_ref()) {
            engine.combine(1.0, &training.parameters, 1.0, gradient);
        }
    }
}

impl<E: Engine> Lane<E> {
    /// Adds ∓∞ to the logits of symbols of `variable` that `space` does not allow after the symbols before it.
    pub(super) fn forbid(&mut self, net: &WordNet, engine: &E, space: &dyn ModelSpace, variable: usize) {
        let (variables, outputs) = (net.arities.len(), net.outputs(variable));
        let rules = self.rules.get_or_insert_with(|| Rules {
            allowed: Vec::new(),
            host: Vec::new(),
            mask: engine.matrix(net.outputs(variables - 1).end, self.count),
        });
        let arity = usize::from(net.arities[variable]);
        rules.allowed.resize(arity, true);
        rules.host.clear();
        for word in self.prefix.chunks_exact(variables) {
            space.allow(&word[..variable], &mut rules.allowed);
            let penalty = |allowed: bool| if allowed { E::Real::ZERO } else { E::Real::NEG_INFINITY };
            if outputs.len() == 1 {
                // The logit of 1: −∞ forbids 1, +∞ forbids 0.
                rules.host.push(penalty(rules.allowed[1]) - penalty(rules.allowed[0]));
            } else {
                rules.host.extend(rules.allowed.iter().map(|&allowed| penalty(allowed)));
            }
        }
        let at = Placement::Whole { stride: outputs.len(), first: outputs.start };
        engine.import(&self.rows, &rules.host, at, &mut rules.mask);
        engine.add_features(&self.rows, outputs, &rules.mask, &mut self.tape.rho);
    }

    /// Takes the symbol just drawn into the prefix.
    pub(super) fn remember(&mut self, engine: &E, variable: usize) {
        let Some(rules) = &mut self.rules else { return };
        rules.host.clear();
        rules.host.resize(self.count, E::Real::ZERO);
        engine.export(&self.rows, &self.words, Placement::Whole { stride: 1, first: variable }, &mut rules.host);
        let variables = self.prefix.len() / self.count.max(1);
        let places = self.prefix.iter_mut().skip(variable).step_by(variables);
        places.zip(&rules.host).for_each(|(to, symbol)| *to = symbol.to_f64() as u16);
    }
}
