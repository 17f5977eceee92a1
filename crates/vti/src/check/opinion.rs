//! A second opinion that does not come from q: the posterior as a sequential Monte Carlo sampler finds it from the reference.
//!
//! Weights, strata and chains look where q already is; a model or a mode of its parameters that q has lost is invisible to them.
//! The sampler ([`smc`](crate::smc)) starts wherever parameters may lie and knows nothing of q. Two questions are put to it. Where has
//! q next to no density though the posterior has? A normalised q that is right wherever particles are found, and has even weights,
//! has lost nothing that they know of, and its own weights are the better answer, however roughly particles weigh regions against
//! each other. Otherwise, what is the posterior? That is answered by particles alone, once a second and larger population agrees with
//! the first.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::CheckError;
use super::bridge::FromParticles;
use super::correction::{Correction, ModelCorrection};
use super::particles::{How, Tempered};
use crate::device::Device;
use crate::optimise::SettingError;
use crate::posterior::{Draws, Point, Posterior};
use crate::problem::{Constraints, Problem};
use crate::smc::{GoOn, MAX_NUMBERS, Sampled, Sampler, SmcSettings};
use crate::space::Model;
use crate::stats::Estimate;
use crate::train::Lesson;

/// How far a check looks beyond q.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Depth {
    /// Not at all: nothing is then trusted that only q says.
    None,
    /// Half of the particles, and half of the rounds.
    Quick,
    /// Until errors are small, or as far as the settings allow.
    #[default]
    Full,
}

/// Settings of a second opinion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpinionSettings {
    /// How far it looks.
    pub depth: Depth,
    /// Standard errors of the probabilities of parts that are small enough.
    pub error: f64,
    /// How often the sampler is run again, with twice as many particles and rounds, while they are larger or where it contradicts q:
    /// then two populations must agree.
    pub repeats: usize,
    /// The sampler.
    pub smc: SmcSettings,
}

impl Default for OpinionSettings {
    fn default() -> Self {
        Self {
            depth: Depth::default(),
            error: 0.005,
            repeats: 2,
            smc: SmcSettings { particles: 512, ..SmcSettings::default() },
        }
    }
}

impl OpinionSettings {
    /// Refuses settings that make no sense.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        SettingError::check("opinion.error", self.error, self.error > 0.0, "greater than 0")?;
        self.smc.check()
    }

    /// The sampler of each round.
    fn rounds(&self) -> Vec<SmcSettings> {
        let half = SmcSettings {
            particles: (self.smc.particles / 2).max(MIN_PARTICLES),
            sweeps: self.smc.sweeps.div_ceil(2),
            ..self.smc.clone()
        };
        let twice = |smc: &SmcSettings| {
            let more = SmcSettings { particles: 2 * smc.particles, sweeps: 2 * smc.sweeps, ..smc.clone() };
            Some(more)
        };
        let (first, count) = match self.depth {
            Depth::None => return Vec::new(),
            Depth::Quick => (half, 2.min(1 + self.repeats)),
            Depth::Full => (self.smc.clone(), 1 + self.repeats),
        };
        std::iter::successors(Some(first), twice).take(count).collect()
    }

    /// The sampler of each round that is still to come, with its number: those that are larger than what was done, and at least one
    /// that is twice as large.
    fn rounds_after(&self, done: Option<&How>) -> Vec<(usize, SmcSettings)> {
        let rounds = self.rounds();
        let Some(How { round, smc, .. }) = done.filter(|_| !rounds.is_empty()) else {
            return rounds.into_iter().enumerate().collect();
        };
        let mut left: Vec<SmcSettings> = rounds.into_iter().filter(|wanted| wanted.particles > smc.particles).collect();
        if left.is_empty() {
            left.push(SmcSettings { particles: 2 * smc.particles, sweeps: 2 * smc.sweeps, ..smc.clone() });
        }
        left.into_iter().enumerate().map(|(place, smc)| (round + 1 + place, smc)).collect()
    }
}

/// What a sampler found that knows nothing of q.
#[derive(Clone, Debug, Serialize)]
pub struct Opinion {
    /// Model probabilities.
    pub correction: Correction,
    /// How probable each of the space's features is to be positive under q.
    pub parts_q: Vec<f64>,
    /// And as the sampler found it.
    pub parts: Vec<Estimate>,
    /// `log p(y)`, as particles found it on their way from the prior.
    pub log_evidence: Estimate,
    /// The same by their draws and those of q together (bridge sampling); none where there are not enough runs, or where q has learned
    /// from all that were found.
    pub log_evidence_with_q: Option<Estimate>,
    /// Independent runs.
    pub runs: usize,
    /// How many equally good runs would say as much, see [`Sampled::effective_runs`].
    pub effective_runs: f64,
    /// The probability of models that q has less than a tenth of.
    pub missing: Estimate,
    /// The share of the posterior, by particles, where the density of q is less than a tenth of what it should be.
    pub uncovered: f64,
    /// Whether a smaller population found the same.
    pub is_repeated: bool,
    /// Draws from the posterior, those of one run after those of another.
    #[serde(skip)]
    pub draws: Draws,
    /// Their log weights.
    #[serde(skip)]
    pub log_weights: Vec<f64>,
    /// What it rests on.
    #[serde(skip)]
    pub(super) tempered: Tempered,
    /// What q has not learned from.
    #[serde(skip)]
    unlearned: Unlearned,
}

/// Draws that q has not learned from: where it has, it is nearer to them than to the posterior.
#[derive(Clone, Debug)]
enum Unlearned {
    /// All.
    Own,
    /// Others than those of the opinion, if any.
    Others(Option<Box<Others>>),
}

/// Draws of others, with their log weights and the draws of each run.
#[derive(Clone, Debug)]
struct Others {
    draws: Draws,
    log_weights: Vec<f64>,
    runs: Vec<Range<usize>>,
}

/// Runs that count for much less than their number disagree too much.
const MIN_EFFECTIVE_SHARE: f64 = 0.4;

/// Errors beyond which an opinion says too little: of probabilities, and of the log evidence.
const MAX_ERROR: f64 = 0.02;
const MAX_LOG_ERROR: f64 = 0.5;

/// A share of the posterior that q may lack.
const MAX_UNCOVERED: f64 = 0.01;

/// Populations agree if their probabilities differ by no more than this and three standard errors.
const SAME: f64 = 0.01;

/// Models of at least this probability are compared one by one.
const MIN_PROBABILITY: f64 = 0.02;

impl Opinion {
    /// The posterior mean of a function of the draws, by their places.
    pub fn mean(&self, f: impl Fn(usize) -> f64) -> Estimate {
        self.tempered.sampled.mean(f)
    }

    /// `log p(y)`, by particles alone or together with q, whichever is surer.
    pub fn surest_log_evidence(&self) -> Estimate {
        self.log_evidence_with_q.filter(|both| both.se < self.log_evidence.se).unwrap_or(self.log_evidence)
    }

    /// Draws that q has not learned from.
    pub(super) fn unlearned(&self) -> Option<FromParticles<'_>> {
        match &self.unlearned {
            Unlearned::Own => {
                let runs = self.tempered.sampled.runs_of_draws().collect();
                Some(FromParticles { draws: &self.draws, log_weights: &self.log_weights, runs })
            }
            Unlearned::Others(others) => others.as_deref().map(|others| {
                let Others { draws, log_weights, runs } = others;
                FromParticles { draws, log_weights, runs: runs.clone() }
            }),
        }
    }

    /// Whether no more need be known: of a q that has lost nothing, or by itself.
    fn is_enough(&self, known: &FromQ<'_>, error: f64) -> bool {
        known.is_even && self.is_covered() || self.is_reliable() && self.largest_error() <= error
    }

    /// What q may learn from it.
    pub(super) fn lesson(&self) -> Lesson<'_> {
        let Sampled { models, points, .. } = &self.tempered.sampled;
        // Counts of models are the better, but a space may have several words for each.
        let known: HashMap<&[u16], f64> = models.iter().map(|found| (&*found.model, found.probability.value)).collect();
        let draws = points.words.chunks_exact(self.draws.width.max(1));
        let words = if draws.clone().all(|word| known.contains_key(word)) {
            models.iter().map(|found| (found.model.clone(), found.probability.value)).collect()
        } else {
            draws.zip(&self.log_weights).map(|(word, log_weight)| (word.into(), log_weight.exp())).collect()
        };
        Lesson::Draws { words, draws: &self.draws, log_weights: &self.log_weights }
    }

    /// Whether q has density wherever particles are.
    pub fn is_covered(&self) -> bool {
        self.uncovered <= MAX_UNCOVERED
    }

    /// Whether runs agree well enough with each other, and with those of a smaller population, to be relied on.
    pub fn is_reliable(&self) -> bool {
        self.is_repeated && self.is_precise()
    }

    /// Whether runs agree well enough with each other.
    pub(super) fn is_precise(&self) -> bool {
        self.effective_runs >= MIN_EFFECTIVE_SHARE * self.runs as f64
            && self.log_evidence.se <= MAX_LOG_ERROR
            && self.largest_error() <= MAX_ERROR
    }

    /// The largest standard error of the probability of a part, or of a leading model.
    pub fn largest_error(&self) -> f64 {
        let models = self.leading().map(|model| model.corrected.se);
        self.parts.iter().map(|part| part.se).chain(models).fold(0.0, f64::max)
    }

    /// How far q is off: the largest difference of the probability of a part, or of a leading model.
    pub fn distance(&self) -> f64 {
        let parts = self.parts_q.iter().zip(&self.parts).map(|(q, part)| (q - part.value).abs());
        let models = self.leading().map(|model| (model.q - model.corrected.value).abs());
        parts.chain(models).fold(0.0, f64::max)
    }

    /// The same beyond two errors, which a few particles make large.
    pub(super) fn clear_distance(&self) -> f64 {
        let clear = |q: f64, found: &Estimate| (q - found.value).abs() - 2.0 * found.se;
        let parts = self.parts_q.iter().zip(&self.parts).map(|(q, part)| clear(*q, part));
        let models = self.leading().map(|model| clear(model.q, &model.corrected));
        parts.chain(models).fold(0.0, f64::max)
    }

    /// Whether two populations found the same.
    fn agrees(&self, other: &Self) -> bool {
        let same = |a: &Estimate, b: &Estimate| (a.value - b.value).abs() <= SAME + 3.0 * f64::hypot(a.se, b.se);
        let models: HashMap<&Model, Estimate> =
            other.correction.models.iter().map(|model| (&model.model, model.corrected)).collect();
        self.parts.iter().zip(&other.parts).all(|(a, b)| same(a, b))
            && self.leading().all(|model| models.get(&model.model).is_some_and(|found| same(&model.corrected, found)))
    }

    /// Models that matter, under q or as found.
    fn leading(&self) -> impl Iterator<Item = &ModelCorrection> {
        let matters = |model: &&ModelCorrection| model.q.max(model.corrected.value) >= MIN_PROBABILITY;
        self.correction.models.iter().filter(matters)
    }
}

/// The fewest particles, however many numbers they take up.
const MIN_PARTICLES: usize = 32;

/// What is known from q's own draws, which an opinion is compared with.
pub(super) struct FromQ<'a> {
    /// How often it has learned from particles.
    pub(super) lessons: u32,
    pub(super) draws: &'a Draws,
    /// Probabilities of parts under q.
    pub(super) parts: Vec<f64>,
    /// The evidence by weights, and whether these are even enough to be used, those of every model that matters too.
    pub(super) log_evidence: f64,
    pub(super) is_even: bool,
}

/// Asks for a second opinion; none where nobody wants one, where it was ended early or where all particles were lost.
pub(super) fn opinion<D: Device>(
    posterior: &Posterior<D>,
    known: &FromQ<'_>,
    settings: &OpinionSettings,
    earlier: Option<&Tempered>,
    go_on: GoOn<'_>,
) -> Result<Option<Opinion>, CheckError> {
    if settings.depth == Depth::None {
        return Ok(None);
    }
    let problem = &**posterior.problem();
    let own = problem.reference();
    let earlier = earlier.filter(|_| own.is_some() || known.lessons > 0);
    let reference = own.unwrap_or_else(|| around(problem, known.draws));
    if let Some(learned) = earlier.filter(|_| known.lessons > 0) {
        return Ok(Some(of_learned(posterior, learned, known, (&reference, settings), go_on)?));
    }
    let mut found = earlier.map(|earlier| conclude(posterior, earlier.clone(), known)).transpose()?;
    for (round, smc) in settings.rounds_after(earlier.map(|earlier| &earlier.how)) {
        if found.as_ref().is_some_and(|found| found.is_enough(known, settings.error)) {
            break;
        }
        let how = How { round, smc: smc.clone(), is_repeated: false };
        let seed = posterior.seed().wrapping_add(round as u64);
        let Some(sampled) = sample(posterior, &reference, smc, seed, go_on)? else { continue };
        let mut opinion = conclude(posterior, Tempered { how, sampled }, known)?;
        opinion.is_repeated = found.as_ref().is_some_and(|before| before.agrees(&opinion));
        opinion.tempered.how.is_repeated = opinion.is_repeated;
        found = Some(opinion);
    }
    Ok(found)
}

/// A run of the sampler; none where it was ended early or all particles were lost.
fn sample<D: Device>(
    posterior: &Posterior<D>,
    reference: &[(f64, f64)],
    mut smc: SmcSettings,
    seed: u64,
    go_on: GoOn<'_>,
) -> Result<Option<Sampled>, CheckError> {
    smc.particles = smc.particles.min(MAX_NUMBERS / (smc.runs * reference.len()).max(1)).max(MIN_PARTICLES);
    let mut sampler = Sampler::new(&**posterior.problem(), reference, &smc, seed)?;
    let is_done = sampler.run(smc.runs, posterior.workers(), go_on)?;
    Ok(sampler.found().filter(|_| is_done))
}

/// What particles found that q has learned from, and whether it has density wherever others are found, of the size of the first round.
fn of_learned<D: Device>(
    posterior: &Posterior<D>,
    learned: &Tempered,
    known: &FromQ<'_>,
    (reference, settings): (&[(f64, f64)], &OpinionSettings),
    go_on: GoOn<'_>,
) -> Result<Opinion, CheckError> {
    let mut opinion = conclude(posterior, learned.clone(), known)?;
    let seed = posterior.seed().wrapping_add(u64::from(known.lessons) << 32);
    let first = settings.rounds().into_iter().next();
    let others = first.map(|smc| sample(posterior, reference, smc, seed, go_on)).transpose()?.flatten();
    let Some(others) = others else {
        (opinion.uncovered, opinion.unlearned) = (1.0, Unlearned::Others(None));
        return Ok(opinion);
    };
    let (draws, log_weights) = draws_of(posterior, &others)?;
    opinion.uncovered = uncovered(&draws, &log_weights, known.log_evidence).max(opinion.uncovered);
    let runs = others.runs_of_draws().collect();
    opinion.unlearned = Unlearned::Others(Some(Box::new(Others { draws, log_weights, runs })));
    Ok(opinion)
}

/// A reference so much wider than q's draws reaches modes that q has lost, unless they are very far away.
const WIDER: f64 = 8.0;

/// Standard deviation of a coordinate that q never drew.
const UNKNOWN_SD: f64 = 3.0;

/// Wide normal densities around where q draws free coordinates.
fn around(problem: &dyn Problem, draws: &Draws) -> Vec<(f64, f64)> {
    let space = problem.space();
    let mut sums = vec![[0.0; 3]; space.max_dim()];
    let mut mask = vec![false; space.max_dim()];
    let constraints = problem.constraints().filter(|constraints| !constraints.is_trivial());
    for row in 0..draws.len() {
        space.mark_active(draws.word(row), &mut mask);
        let active: Vec<u32> = (0..mask.len() as u32).filter(|&i| mask[i as usize]).collect();
        let free = free(constraints, &active, draws.theta(row));
        for (&i, x) in active.iter().zip(free).filter(|(_, x)| x.is_finite()) {
            let [count, sum, squares] = &mut sums[i as usize];
            (*count, *sum, *squares) = (*count + 1.0, *sum + x, *squares + x * x);
        }
    }
    let wide = |&[count, sum, squares]: &[f64; 3]| {
        let mean = sum / count;
        let sd = (squares / count - mean * mean).max(0.0).sqrt();
        if count >= 2.0 && sd > 0.0 { (mean, WIDER * sd) } else { (0.0, UNKNOWN_SD) }
    };
    sums.iter().map(wide).collect()
}

/// Free coordinates of natural parameters.
fn free(constraints: Option<&Constraints>, active: &[u32], natural: &[f64]) -> Vec<f64> {
    let Some(constraints) = constraints else { return natural.to_vec() };
    let mut free = vec![0.0; active.len()];
    constraints.to_free(active, natural, &mut free);
    free
}

/// What was found, beside what q says of it.
fn conclude<D: Device>(posterior: &Posterior<D>, tempered: Tempered, known: &FromQ<'_>) -> Result<Opinion, CheckError> {
    let sampled = &tempered.sampled;
    let space = posterior.family().space();
    let q = q_of_models(posterior, sampled)?;
    let models: Vec<ModelCorrection> = sampled
        .models
        .iter()
        .map(|found| ModelCorrection {
            label: space.label(&found.model),
            q: q.get(&found.model).copied().unwrap_or(0.0),
            model: found.model.clone(),
            corrected: found.probability,
            evidence: None,
            khat: None,
            draws: 0,
        })
        .collect();
    let missing = missing(&models);
    let (draws, log_weights) = draws_of(posterior, sampled)?;
    Ok(Opinion {
        correction: Correction::known(models),
        parts_q: known.parts.clone(),
        parts: sampled.parts.clone(),
        log_evidence: sampled.log_evidence,
        log_evidence_with_q: None,
        runs: sampled.runs(),
        effective_runs: sampled.effective_runs(),
        missing,
        uncovered: uncovered(&draws, &log_weights, known.log_evidence),
        is_repeated: tempered.how.is_repeated,
        draws,
        log_weights,
        tempered,
        unlearned: Unlearned::Own,
    })
}

/// The probability under q of each model that was met: of all words that mean it as far as they were drawn.
fn q_of_models<D: Device>(posterior: &Posterior<D>, sampled: &Sampled) -> Result<HashMap<Model, f64>, CheckError> {
    let space = posterior.family().space();
    let width = space.arities().len();
    let mut words: Vec<&[u16]> = sampled.points.words.chunks_exact(width.max(1)).collect();
    words.extend(sampled.models.iter().map(|found| &*found.model));
    words.sort_unstable();
    words.dedup();
    let mut log_q = vec![0.0; words.len()];
    posterior.log_prob_models(&words.concat(), &mut log_q)?;
    let mut q = HashMap::new();
    for (word, log_q) in words.into_iter().zip(log_q) {
        let mut word = word.to_vec();
        space.canonical(&mut word);
        *q.entry(Model::from(word)).or_insert(0.0) += log_q.exp();
    }
    Ok(q)
}

/// The probability of models that q has less than a tenth of; only models whose probability is known to be there count.
fn missing(models: &[ModelCorrection]) -> Estimate {
    let is_missing = |model: &&ModelCorrection| {
        model.q < 0.1 * model.corrected.value && model.corrected.value > 4.0 * model.corrected.se
    };
    let missing = || models.iter().filter(is_missing);
    Estimate {
        value: missing().map(|model| model.corrected.value).sum(),
        se: missing().map(|model| model.corrected.se.powi(2)).sum::<f64>().sqrt(),
    }
}

/// The share of draws where `p(m) η / p(y)`, with the evidence as weights of q have it, is more than ten times as large as q.
fn uncovered(draws: &Draws, log_weights: &[f64], log_evidence: f64) -> f64 {
    let is_uncovered = |row: &usize| draws.log_target[*row] - log_evidence - draws.log_q[*row] > 10f64.ln();
    (0..draws.len()).filter(is_uncovered).map(|row| log_weights[row].exp()).sum()
}

/// The sampler's draws as draws of a posterior, with their densities under q.
fn draws_of<D: Device>(posterior: &Posterior<D>, sampled: &Sampled) -> Result<(Draws, Vec<f64>), CheckError> {
    let space = posterior.family().space();
    let (width, stride) = (space.arities().len(), posterior.family().natural_len());
    let points = &sampled.points;
    let asked: Vec<Point> = points
        .theta
        .iter()
        .enumerate()
        .map(|(row, theta)| Point { model: points.words[row * width..][..width].into(), theta: theta.clone() })
        .collect();
    let mut draws = Draws { width, stride, words: points.words.clone(), ..Draws::default() };
    draws.log_q = posterior.log_q(&asked)?;
    draws.log_q_model = vec![0.0; asked.len()];
    posterior.log_prob_models(&points.words, &mut draws.log_q_model)?;
    draws.log_target.clone_from(&points.log_target);
    draws.log_arrangement = vec![0.0; asked.len()];
    draws.theta = vec![f64::NAN; asked.len() * stride];
    for (row, theta) in points.theta.iter().enumerate() {
        draws.dims.push(theta.len());
        draws.theta[row * stride..][..theta.len()].copy_from_slice(theta);
    }
    Ok((draws, sampled.weights().iter().map(|weight| weight.ln()).collect()))
}
