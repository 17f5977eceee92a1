//! Parallel-tempered chains over models.

use super::conclude::{Ending, conclude};
use super::found::Searched;
use super::known::{Entry, Key, Known};
use super::moves::{Ladder, Moves};
use super::settings::Ended;
use super::starts::starts;
use super::trace::{Trace, diagnose, error_of_visits};
use super::{ModelEvidences, SearchError, SearchProgress, SearchSettings, Target, Watch};
use crate::random::{Purpose, Stream};

/// Searches until chains agree, limits are reached or `watch`, which is told in every iteration how far it has come, returns false.
///
/// In every iteration all chains propose a neighbour, evidences of models that are not known yet are asked for in one call, and
/// neighbouring temperatures of a group may exchange their states. Results depend on seed and settings alone, not on threads.
///
/// ```
/// use vti::problem::Problem;
/// use vti::problem::selection::simulate::{CorrelatedSettings, correlated};
/// use vti::problem::selection::{ClosedForm, Selection, SelectionSettings, Standardise};
/// use vti::search::{SearchSettings, Target, search};
/// use vti::workers::Workers;
/// let table = CorrelatedSettings { rows: 100, covariates: 30, relevant: 2, ..CorrelatedSettings::default() };
/// let selection = Selection::new(&correlated(&table)?.table, Standardise::Full, &SelectionSettings::default())?;
/// let target = Target {
///     space: selection.space(),
///     log_prior: &|word| selection.log_prior(word),
///     starts: &[],
///     workers: &Workers::SINGLE,
/// };
/// let settings = SearchSettings { iterations: 2_000, warmup: 500, ..SearchSettings::default() };
/// let found = search(&target, &mut ClosedForm::new(&selection)?, &settings, &mut |_| true)?;
/// assert_eq!(found.features.len(), 30);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn search(
    target: &Target<'_>,
    evidences: &mut dyn ModelEvidences,
    settings: &SearchSettings,
    watch: Watch<'_>,
) -> Result<Searched, SearchError> {
    settings.check()?;
    let mut run = Run::new(target, evidences, settings, watch)?;
    let ended = run.go(evidences, watch)?;
    let Run { known, traces, fresh, .. } = run;
    conclude(target, settings, known, &traces, Ending { fresh, ended })
}

/// Where a chain is.
#[derive(Clone)]
struct State {
    word: Vec<u16>,
    key: Key,
    entry: Entry,
}

impl State {
    fn log_target(&self, beta: f64) -> f64 {
        self.entry.log_prior + beta * self.entry.evidence.value
    }
}

/// A chain and its proposal.
struct Chain {
    state: State,
    next: State,
    log_ratio: f64,
    /// A uniform number that decides.
    chance: f64,
    fate: Fate,
    moved: bool,
}

/// What is known of a proposal.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Refused,
    Known,
    Unknown,
}

/// Iterations of chains with the posterior as their target since a mark, and how many of them were spent in models that were not
/// known by then: an estimate of the probability of all models that were not.
#[derive(Default)]
pub(super) struct Fresh {
    now: Span,
    /// Between the last two marks.
    last: Option<Span>,
}

/// Iterations since a mark.
#[derive(Clone, Copy, Default)]
struct Span {
    mark: u64,
    counted: u64,
    unknown: u64,
}

impl Fresh {
    /// The span between the last two marks; where there was only one, since then.
    fn span(&self) -> Span {
        self.last.unwrap_or(self.now)
    }

    /// The share of iterations in models that were not known. Where nothing was new, something may have been missed all the same.
    pub(super) fn share(&self) -> f64 {
        let Span { counted, unknown, .. } = self.span();
        if counted == 0 { 1.0 } else { unknown.max(1) as f64 / counted as f64 }
    }

    /// The iteration until which models had to be known.
    pub(super) fn before(&self) -> u64 {
        self.span().mark
    }

    /// Iterations that the share is of.
    pub(super) fn counted(&self) -> u64 {
        self.span().counted
    }

    fn mark(&mut self, iteration: u64) {
        if self.now.counted > 0 {
            self.last = Some(self.now);
        }
        self.now = Span { mark: iteration, ..Span::default() };
    }

    /// A chain is in a model that is known since this iteration.
    fn count(&mut self, born: u64) {
        self.now.counted += 1;
        self.now.unknown += u64::from(born > self.now.mark);
    }
}

struct Run<'a> {
    target: &'a Target<'a>,
    settings: &'a SearchSettings,
    known: Known,
    /// Group by group, the posterior's own first in each.
    chains: Vec<Chain>,
    moves: Moves,
    ladder: Ladder,
    traces: Vec<Trace>,
    fresh: Fresh,
}

/// Every so many iterations of the warm-up, states are counted.
const COUNTED: usize = 8;
/// How often moves are adapted.
const ADAPTATIONS: usize = 8;

impl<'a> Run<'a> {
    fn new(
        target: &'a Target<'a>,
        evidences: &mut dyn ModelEvidences,
        settings: &'a SearchSettings,
        watch: Watch<'_>,
    ) -> Result<Self, SearchError> {
        let arities = target.space.arities();
        let mut known = Known::new(arities, settings.remembered);
        let rungs = settings.temperatures;
        // The groups' first chains get the first starts.
        let words = starts(target, evidences, settings, &mut known, settings.chains * rungs, watch)?;
        known.learn(target, evidences, &words.iter().map(Vec::as_slice).collect::<Vec<_>>(), 0)?;
        let chain = |number: usize| {
            let (group, rung) = (number / rungs, number % rungs);
            let word = words[rung * settings.chains + group].clone();
            let mut key = known.packing.empty();
            known.packing.pack(&word, &mut key);
            let entry = known.entries[&key];
            let state = State { word, key, entry };
            Chain { next: state.clone(), state, log_ratio: 0.0, chance: 0.0, fate: Fate::Refused, moved: true }
        };
        let chains = (0..settings.chains * rungs).map(chain).collect();
        let traces = (0..settings.chains).map(|_| Trace::new(target.space.feature_count())).collect();
        let (moves, ladder, fresh) = (Moves::new(arities), Ladder::new(rungs), Fresh::default());
        Ok(Self { target, settings, known, chains, moves, ladder, traces, fresh })
    }

    fn go(&mut self, evidences: &mut dyn ModelEvidences, watch: Watch<'_>) -> Result<Ended, SearchError> {
        let SearchSettings { warmup, iterations, max_models, batch, .. } = *self.settings;
        let (mut diagnosis, mut next_look) = (None, batch);
        for iteration in 0..warmup + iterations {
            // The climb may have been ended alone.
            if iteration > 0 && !watch(&SearchProgress { iteration, asked: self.known.asked, diagnosis }) {
                return Ok(Ended::Stopped);
            }
            if self.known.asked >= max_models {
                return Ok(Ended::Models);
            }
            self.propose(iteration);
            self.ask(evidences, iteration)?;
            self.decide();
            self.exchange(iteration);
            self.known.forget();
            if iteration < warmup {
                self.adapt(iteration);
                continue;
            }
            self.keep();
            let done = iteration + 1 - warmup;
            if done == next_look {
                self.fresh.mark(iteration as u64);
                next_look = (done + batch).max(done * 5 / 4);
                let (features, found) = diagnose(&self.traces, self.target.workers);
                diagnosis = Some(found);
                let error = error_of_visits(&features).min(self.fresh.share());
                if self.settings.content(&found, error) {
                    return Ok(Ended::Converged);
                }
            }
        }
        Ok(Ended::Iterations)
    }

    /// Every chain thinks of a neighbour and looks up whether it is known.
    fn propose(&mut self, iteration: usize) {
        let Self { target, settings, known, chains, moves, .. } = self;
        let (target, known) = (*target, &*known);
        let constrained = target.space.is_constrained();
        target.workers.for_each(chains, |number, chain| {
            let mut stream = Stream::new(settings.seed, Purpose::Search, iteration as u64, number as u64);
            let Chain { state, next, .. } = chain;
            next.word.copy_from_slice(&state.word);
            chain.log_ratio = moves.propose(target.space, &mut next.word, &mut stream);
            chain.chance = stream.uniform();
            chain.fate = Fate::Refused;
            if next.word == state.word || constrained && !target.space.is_allowed(&next.word) {
                return;
            }
            known.packing.pack(&next.word, &mut next.key);
            chain.fate = match known.entries.get(&next.key) {
                Some(&entry) => {
                    next.entry = entry;
                    Fate::Known
                }
                None => Fate::Unknown,
            };
        });
    }

    /// Asks for what is not known, in one call.
    fn ask(&mut self, evidences: &mut dyn ModelEvidences, iteration: usize) -> Result<(), SearchError> {
        let Self { target, known, chains, .. } = self;
        let unknown = chains.iter().filter(|chain| chain.fate == Fate::Unknown);
        let words: Vec<&[u16]> = unknown.map(|chain| chain.next.word.as_slice()).collect();
        known.learn(target, evidences, &words, iteration as u64)?;
        for chain in chains.iter_mut().filter(|chain| chain.fate == Fate::Unknown) {
            chain.next.entry = known.entries[&chain.next.key];
        }
        Ok(())
    }

    /// Metropolis and Hastings.
    fn decide(&mut self) {
        let rungs = self.settings.temperatures;
        for (number, chain) in self.chains.iter_mut().enumerate() {
            let beta = self.ladder.betas[number % rungs];
            let gain = chain.next.log_target(beta) - chain.state.log_target(beta) + chain.log_ratio;
            // From one impossible model to another, which is not a number, chains walk on.
            if chain.fate != Fate::Refused && (gain.is_nan() || chain.chance.ln() < gain) {
                std::mem::swap(&mut chain.state, &mut chain.next);
                chain.moved = true;
            }
        }
    }

    /// Neighbouring temperatures exchange states: every other pair in one iteration, the rest in the next.
    fn exchange(&mut self, iteration: usize) {
        let rungs = self.settings.temperatures;
        let stream_row = self.chains.len() as u64;
        let mut stream = Stream::new(self.settings.seed, Purpose::Search, iteration as u64, stream_row);
        for rung in (iteration % 2..rungs.saturating_sub(1)).step_by(2) {
            let (colder, hotter) = (self.ladder.betas[rung], self.ladder.betas[rung + 1]);
            let mut accepted = 0.0;
            for group in 0..self.settings.chains {
                let pair = &mut self.chains[group * rungs + rung..][..2];
                let evidence = |chain: &Chain| chain.state.entry.evidence.value;
                let gain = (colder - hotter) * (evidence(&pair[1]) - evidence(&pair[0]));
                accepted += if gain >= 0.0 { 1.0 } else { gain.exp() };
                if stream.uniform().ln() < gain {
                    let (one, other) = pair.split_at_mut(1);
                    std::mem::swap(&mut one[0].state, &mut other[0].state);
                    (one[0].moved, other[0].moved) = (true, true);
                }
            }
            if iteration < self.settings.warmup && accepted.is_finite() {
                self.ladder.adapt(rung, accepted / self.settings.chains as f64, iteration);
            }
        }
    }

    /// During the warm-up: which positions are undecided?
    fn adapt(&mut self, iteration: usize) {
        let arities = self.target.space.arities();
        if iteration.is_multiple_of(COUNTED) {
            self.chains.iter().for_each(|chain| self.moves.count(arities, &chain.state.word));
        }
        if (iteration + 1).is_multiple_of(self.settings.warmup.div_ceil(ADAPTATIONS)) {
            self.moves.adapt(arities);
        }
        self.fresh.mark(iteration as u64);
    }

    /// Takes note of where the chains with the posterior as their target are.
    fn keep(&mut self) {
        let rungs = self.settings.temperatures;
        for (chain, trace) in self.chains.iter_mut().step_by(rungs).zip(&mut self.traces) {
            if std::mem::take(&mut chain.moved) {
                trace.arrive(self.target.space, &chain.state.word);
            }
            trace.stay(&chain.state.key);
            self.fresh.count(chain.state.entry.born);
            if let Some(entry) = self.known.entries.get_mut(&chain.state.key) {
                entry.visits += 1;
            }
        }
    }
}
