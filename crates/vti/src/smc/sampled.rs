//! What several runs found together.

use std::collections::HashMap;

use super::population::{Common, Particle, Population, Stage};
use crate::evidence::join;
use crate::problem::Constraints;
use crate::space::Model;
use crate::stats::{self, Estimate};

/// What one run counted.
#[derive(Debug, Default)]
pub(super) struct Run {
    log_evidence: f64,
    /// Particles that were counted.
    count: f64,
    /// How many of them had each word, and each of the space's features positive.
    words: HashMap<Vec<u16>, f64>,
    parts: Vec<f64>,
    last: Points,
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

impl Run {
    /// Counts particles once more.
    pub(super) fn count(&mut self, particles: &[Particle]) {
        for particle in particles {
            match self.words.get_mut(&particle.word) {
                Some(count) => *count += 1.0,
                None => drop(self.words.insert(particle.word.clone(), 1.0)),
            }
        }
        self.count += particles.len() as f64;
    }

    /// Counts parts of models, and keeps the last particles.
    pub(super) fn finish(&mut self, common: &Common<'_>, population: &Population) {
        self.log_evidence = population.log_evidence;
        let space = common.problem.space();
        let mut features = vec![0.0; space.feature_count()];
        self.parts = vec![0.0; features.len()];
        for (word, count) in &self.words {
            space.features(word, &mut features);
            let parts = self.parts.iter_mut().zip(&features).filter(|(_, feature)| **feature > 0.0);
            parts.for_each(|(sum, _)| *sum += count);
        }
        if population.stage == Stage::Lost {
            return;
        }
        let constraints = common.problem.constraints().filter(|constraints| !constraints.is_trivial());
        for particle in &population.particles {
            let free: Vec<f64> = particle.active.iter().map(|&i| particle.free[i as usize]).collect();
            let (theta, log_jacobian) = natural(constraints, &particle.active, free);
            self.last.words.extend_from_slice(&particle.word);
            self.last.theta.push(theta);
            self.last.log_target.push(particle.log_joint() - log_jacobian);
        }
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
    /// How many particles had it, over all rounds that were kept.
    pub count: usize,
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
    /// Where the draws of each run end.
    ends: Vec<usize>,
    /// What each run counts.
    combined: Combined,
}

impl Sampled {
    /// None if all particles of all runs were lost.
    pub(super) fn of(common: &Common<'_>, runs: &[Run]) -> Option<Self> {
        let logs: Vec<f64> = runs.iter().map(|run| run.log_evidence).collect();
        let log_evidence = join(&logs)?;
        let combined = Combined::new(&logs);
        let part = |part: usize| {
            let shares: Vec<f64> = runs.iter().map(|run| run.parts[part] / run.count.max(1.0)).collect();
            combined.mean(&shares)
        };
        let parts = (0..common.problem.space().feature_count()).map(part).collect();
        let mut points = Points::default();
        let mut ends = Vec::with_capacity(runs.len());
        for run in runs {
            points.words.extend_from_slice(&run.last.words);
            points.theta.extend_from_slice(&run.last.theta);
            points.log_target.extend_from_slice(&run.last.log_target);
            ends.push(points.theta.len());
        }
        let models = models(common, runs, &combined);
        Some(Self { log_evidence, parts, models, points, ends, combined })
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
        runs.flat_map(|(draws, weight)| vec![weight / draws.len() as f64; draws.len()]).collect()
    }

    /// The posterior mean of a function of the draws, by their places.
    pub fn mean(&self, f: impl Fn(usize) -> f64) -> Estimate {
        let mean = |draws: std::ops::Range<usize>| {
            let count = draws.len().max(1) as f64;
            draws.map(&f).sum::<f64>() / count
        };
        self.combined.mean(&self.runs_of_draws().map(mean).collect::<Vec<f64>>())
    }

    fn runs_of_draws(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| start..end)
    }
}

/// Models with their shares of all that was counted.
fn models(common: &Common<'_>, runs: &[Run], combined: &Combined) -> Vec<SampledModel> {
    let space = common.problem.space();
    let mut shares: HashMap<Model, (Vec<f64>, f64)> = HashMap::new();
    for (number, run) in runs.iter().enumerate() {
        for (word, count) in &run.words {
            let mut word = word.clone();
            space.canonical(&mut word);
            let (shares, total) = shares.entry(word.into()).or_insert_with(|| (vec![0.0; runs.len()], 0.0));
            shares[number] += count / run.count;
            *total += count;
        }
    }
    let models = shares.into_iter().map(|(model, (shares, count))| SampledModel {
        model,
        probability: combined.mean(&shares),
        count: count as usize,
    });
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
