//! What several runs found together.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::population::{Particle, Population, Stage};
use crate::problem::{Constraints, Problem};
use crate::space::Model;
use crate::state::{State, StateError};
use crate::stats::{self, Estimate, Evidence};

/// What one run counted.
#[derive(Debug, Default)]
pub(super) struct Run {
    log_evidence: f64,
    /// The share that each word had of all that was counted, or how often it was while that goes on. In order, so that sums have the
    /// same bits every time.
    words: BTreeMap<Vec<u16>, f64>,
    last: Points,
    /// What each of the last particles counts; they sum to 1.
    weights: Vec<f64>,
}

/// Models with natural parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// Words, one after another.
    pub words: Vec<u16>,
    /// The natural parameters of each.
    pub theta: Vec<Vec<f64>>,
    /// `log p(m) + log p(y, θ | m)`.
    pub log_target: Vec<f64>,
}

impl Points {
    fn append(&mut self, mut other: Self) {
        self.words.append(&mut other.words);
        self.theta.append(&mut other.theta);
        self.log_target.append(&mut other.log_target);
    }
}

impl Run {
    /// Counts particles once more.
    pub(super) fn count(&mut self, particles: &[Particle]) {
        for particle in particles {
            match self.words.get_mut(&particle.word) {
                Some(count) => *count += 1.0,
                None => drop(self.words.insert(particle.word.clone(), 1.0)),
            }
        }
    }

    /// Whether a word has less than a share of all that was counted so far.
    pub(super) fn has_less(&self, share: f64) -> impl Fn(&[u16]) -> bool + '_ {
        let limit = share * self.words.values().sum::<f64>();
        move |word| self.words.get(word).is_none_or(|count| *count < limit)
    }

    /// What a population has counted, as shares, and its last particles, with those of rare models from earlier rounds.
    pub(super) fn of(problem: &dyn Problem, mut population: Population<'_>) -> Self {
        let mut run = Self { log_evidence: population.log_evidence, ..std::mem::take(&mut population.run) };
        if population.stage == Stage::Lost {
            return run;
        }
        let total: f64 = run.words.values().sum();
        run.words.values_mut().for_each(|count| *count /= total);
        let constraints = problem.constraints().filter(|constraints| !constraints.is_trivial());
        let mut particles = population.rounds.unwrap_or(population.particles);
        run.weights = run.weigh(&particles, &population.rare);
        particles.append(&mut population.rare);
        for particle in &particles {
            let free: Vec<f64> = particle.active.iter().map(|&i| particle.free[i as usize]).collect();
            let (theta, log_jacobian) = natural(constraints, &particle.active, free);
            run.last.words.extend_from_slice(&particle.word);
            run.last.theta.push(theta);
            run.last.log_target.push(particle.log_joint() - log_jacobian);
        }
        run
    }

    /// What each of the last particles counts, and then each of rare models: these have together what all rounds counted of them, and
    /// all others alike what is left.
    fn weigh(&self, last: &[Particle], rare: &[Particle]) -> Vec<f64> {
        let mut counts: BTreeMap<&[u16], f64> = rare.iter().map(|particle| (&*particle.word, 0.0)).collect();
        let left = 1.0 - counts.keys().map(|word| self.words.get(*word).copied().unwrap_or(0.0)).sum::<f64>();
        let mut others = 0.0;
        for particle in last.iter().chain(rare) {
            *counts.get_mut(&*particle.word).unwrap_or(&mut others) += 1.0;
        }
        let weight = |particle: &Particle| match counts.get(&*particle.word) {
            Some(count) => self.words.get(&particle.word).copied().unwrap_or(0.0) / count,
            None => left / others,
        };
        last.iter().chain(rare).map(weight).collect()
    }

    /// Runs that have a model each, as one that has all of them: models count by their evidences.
    pub(super) fn join(mut runs: Vec<Self>) -> Self {
        if runs.len() == 1 {
            return runs.swap_remove(0);
        }
        let logs: Vec<f64> = runs.iter().map(|run| run.log_evidence).collect();
        let mut joined = Self { log_evidence: stats::log_sum_exp(&logs), ..Self::default() };
        for run in runs {
            let share = (run.log_evidence - joined.log_evidence).exp();
            if share > 0.0 {
                run.words.into_iter().for_each(|(word, own)| *joined.words.entry(word).or_insert(0.0) += share * own);
                joined.last.append(run.last);
                joined.weights.extend(run.weights.iter().map(|weight| share * weight));
            }
        }
        joined
    }
}

/// Natural parameters from free ones, and the log-Jacobian.
fn natural(constraints: Option<&Constraints>, active: &[u32], free: Vec<f64>) -> (Vec<f64>, f64) {
    let Some(constraints) = constraints else { return (free, 0.0) };
    let mut natural = vec![0.0; constraints.natural_dim(active)];
    let log_jacobian = constraints.to_natural(active, &free, &mut natural);
    (natural, log_jacobian)
}

/// A model that was met.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledModel {
    /// The word that represents it.
    pub model: Model,
    /// Its posterior probability.
    pub probability: Estimate,
}

/// The posterior as particles found it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// `log p(y)`.
    pub log_evidence: Estimate,
    /// How probable each of the space's features is to be positive: each part of a model, where features are parts.
    pub parts: Vec<Estimate>,
    /// Models that were met, most probable first.
    pub models: Vec<SampledModel>,
    /// Draws from the posterior, those of one run after those of another.
    pub points: Points,
    /// What each draw counts within its run.
    weights: Vec<f64>,
    /// Where the draws of each run end.
    ends: Vec<usize>,
    /// What each run counts.
    combined: Combined,
}

impl Sampled {
    /// None if all particles of all runs were lost.
    pub(super) fn of(problem: &dyn Problem, runs: &[Run]) -> Option<Self> {
        let logs: Vec<f64> = runs.iter().map(|run| run.log_evidence).collect();
        let log_evidence = Evidence::of_runs(&logs, 0)?.estimate();
        let combined = Combined::new(&logs);
        let (mut points, mut weights, mut ends) = (Points::default(), Vec::new(), Vec::with_capacity(runs.len()));
        for run in runs {
            points.append(run.last.clone());
            weights.extend_from_slice(&run.weights);
            ends.push(weights.len());
        }
        let (parts, models) = (parts(problem, runs, &combined), models(problem, runs, &combined));
        Some(Self { log_evidence, parts, models, points, weights, ends, combined })
    }

    /// How many runs there were.
    pub fn runs(&self) -> usize {
        self.ends.len()
    }

    /// How many equally good runs would say as much: `(Σ Z)² / Σ Z²` of their evidences.
    pub fn effective_runs(&self) -> f64 {
        1.0 / self.combined.weights.iter().map(|weight| weight * weight).sum::<f64>()
    }

    /// What each draw counts; they sum to 1.
    pub fn weights(&self) -> Vec<f64> {
        let runs = self.runs_of_draws().zip(&self.combined.weights);
        runs.flat_map(|(draws, weight)| self.weights[draws].iter().map(move |own| weight * own)).collect()
    }

    /// The posterior mean of a function of the draws, by their places.
    pub fn mean(&self, f: impl Fn(usize) -> f64) -> Estimate {
        let mean = |draws: Range<usize>| draws.map(|draw| self.weights[draw] * f(draw)).sum();
        self.combined.mean(&self.runs_of_draws().map(mean).collect::<Vec<f64>>())
    }

    /// Everything, as arrays.
    pub(crate) fn state(&self) -> State {
        let numbers = |words: &mut dyn Iterator<Item = u16>| words.map(f64::from).collect::<Vec<f64>>();
        let counts = |counts: &mut dyn Iterator<Item = usize>| counts.map(|count| count as f64).collect::<Vec<f64>>();
        let Self { log_evidence, parts, models, points, weights, ends, combined } = self;
        let mut state = State::default();
        put_estimates(&mut state, "log_evidence", &mut std::iter::once(*log_evidence));
        put_estimates(&mut state, "parts", &mut parts.iter().copied());
        state.put("models", &numbers(&mut models.iter().flat_map(|model| model.model.iter().copied())));
        put_estimates(&mut state, "probabilities", &mut models.iter().map(|model| model.probability));
        state.put("words", &numbers(&mut points.words.iter().copied()));
        state.put("dims", &counts(&mut points.theta.iter().map(Vec::len)));
        state.put("theta", &points.theta.concat());
        state.put("log_target", &points.log_target);
        state.put("weights", weights);
        state.put("ends", &counts(&mut ends.iter().copied()));
        state.put("runs", &combined.weights);
        state
    }

    /// From what [`Sampled::state`] gave, of this problem.
    pub(crate) fn restore(state: &mut State, problem: &dyn Problem) -> Result<Self, StateError> {
        let space = problem.space();
        let width = space.arities().len();
        let wrong = |name: &str, expected| StateError::Values { name: name.into(), expected };
        let words = |state: &mut State, name: &str, count: usize| {
            let symbols = state.take_counts(name, Some(count * width), f64::from(u16::MAX) + 1.0)?;
            let words: Vec<u16> = symbols.into_iter().map(|symbol| symbol as u16).collect();
            let fits = words.chunks_exact(width.max(1)).all(|word| space.is_allowed(word));
            if fits { Ok(words) } else { Err(wrong(name, "words of the space")) }
        };
        let log_evidence = take_estimates(state, "log_evidence", Some(1))?[0];
        let parts = take_estimates(state, "parts", None)?;
        let probabilities = take_estimates(state, "probabilities", None)?;
        let named = words(state, "models", probabilities.len())?;
        let models = named.chunks_exact(width.max(1)).zip(&probabilities);
        let models = models.map(|(word, &probability)| SampledModel { model: word.into(), probability }).collect();
        let weights = state.take_any::<f64>("weights")?;
        let natural_len = problem.constraints().map_or(space.max_dim(), Constraints::natural_len);
        let dims = state.take_counts("dims", Some(weights.len()), natural_len as f64 + 1.0)?;
        let theta = state.take::<f64>("theta", dims.iter().sum())?;
        let mut rest = &theta[..];
        let theta = dims.iter().map(|&dim| rest.split_off(..dim).unwrap_or_default().to_vec()).collect();
        let log_target = state.take("log_target", weights.len())?;
        let words = words(state, "words", weights.len())?;
        let combined = Combined { weights: state.take_any("runs")? };
        let ends = state.take_counts("ends", Some(combined.weights.len()), weights.len() as f64 + 1.0)?;
        if !ends.is_sorted() {
            return Err(wrong("ends", "places one after another"));
        }
        if parts.len() != space.feature_count() {
            let (found, expected) = (parts.len(), space.feature_count());
            return Err(StateError::Length { name: "parts".into(), found, expected });
        }
        let points = Points { words, theta, log_target };
        Ok(Self { log_evidence, parts, models, points, weights, ends, combined })
    }

    /// The draws of each run.
    pub(crate) fn runs_of_draws(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| start..end)
    }
}

fn put_estimates(state: &mut State, name: &str, estimates: &mut dyn Iterator<Item = Estimate>) {
    state.put(name, &estimates.flat_map(|Estimate { value, se }| [value, se]).collect::<Vec<f64>>());
}

/// Estimates, so many if that is known.
fn take_estimates(state: &mut State, name: &str, count: Option<usize>) -> Result<Vec<Estimate>, StateError> {
    let numbers = match count {
        Some(count) => state.take::<f64>(name, 2 * count)?,
        None => state.take_any::<f64>(name)?,
    };
    Ok(numbers.chunks_exact(2).map(|pair| Estimate { value: pair[0], se: pair[1] }).collect())
}

/// How probable each feature is to be positive.
fn parts(problem: &dyn Problem, runs: &[Run], combined: &Combined) -> Vec<Estimate> {
    let space = problem.space();
    let mut features = vec![0.0; space.feature_count()];
    let mut shares = vec![vec![0.0; runs.len()]; features.len()];
    for (number, run) in runs.iter().enumerate() {
        for (word, share) in &run.words {
            space.features(word, &mut features);
            let positive = shares.iter_mut().zip(&features).filter(|(_, feature)| **feature > 0.0);
            positive.for_each(|(shares, _)| shares[number] += share);
        }
    }
    shares.iter().map(|shares| combined.mean(shares)).collect()
}

/// Models with their shares of all that was counted.
fn models(problem: &dyn Problem, runs: &[Run], combined: &Combined) -> Vec<SampledModel> {
    let space = problem.space();
    let mut shares: HashMap<Model, Vec<f64>> = HashMap::new();
    for (number, run) in runs.iter().enumerate() {
        for (word, share) in &run.words {
            let mut word = word.clone();
            space.canonical(&mut word);
            shares.entry(word.into()).or_insert_with(|| vec![0.0; runs.len()])[number] += share;
        }
    }
    let models = shares.into_iter().map(|(model, shares)| SampledModel { model, probability: combined.mean(&shares) });
    let mut models: Vec<SampledModel> = models.collect();
    models.sort_by(|a, b| b.probability.value.total_cmp(&a.probability.value).then_with(|| a.model.cmp(&b.model)));
    models
}

/// Runs count by their evidences: `Σ Z_r f_r / Σ Z_r` tends to the truth with the number of runs, however few particles each has.
#[derive(Clone, Debug, PartialEq)]
struct Combined {
    weights: Vec<f64>,
}

impl Combined {
    fn new(logs: &[f64]) -> Self {
        let log_total = stats::log_sum_exp(logs);
        Self { weights: logs.iter().map(|log| (log - log_total).exp()).collect() }
    }

    /// The weighted mean over runs. Its error is that of a ratio, and at least that of a plain mean; with as few runs as there are
    /// it is Student's t, whose standard deviation this is.
    fn mean(&self, values: &[f64]) -> Estimate {
        let count = values.len() as f64;
        let value: f64 = values.iter().zip(&self.weights).map(|(value, weight)| value * weight).sum();
        let offs = values.iter().zip(&self.weights).map(|(one, weight)| weight * (one - value));
        let weighted: f64 = offs.map(|off| off * off).sum();
        let plain = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - plain).powi(2)).sum();
        let variance = (weighted * count / (count - 1.0)).max(squares / (count * (count - 1.0)));
        Estimate { value, se: ((count - 1.0) / (count - 3.0) * variance).sqrt() }
    }
}
