//! The check by importance weights.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::CheckError;
use super::blocks::{self, BlockCheck, khat_of};
use super::bridge::{self, FromStrata};
use super::correction::Correction;
use super::groups::Groups;
use super::opinion::{self, FromQ, Opinion, OpinionSettings};
use super::particles::{Kept, Particles};
use super::strata::{self, Stratified};
use super::verdict::{Verdict, Weighed};
use crate::device::Device;
use crate::evidence::AnnealSettings;
use crate::optimise::SettingError;
use crate::posterior::{Draws, Posterior};
use crate::smc::SmcSettings;
use crate::space::Model;
use crate::stats::{self, Estimate, EstimateError, Smoothed, Stratum};
use crate::train::LessonSettings;

/// Settings of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckSettings {
    /// Draws from q, about; models that matter get at least 32 each, and an eighth of all alike, which may add up to more.
    pub draws: usize,
    /// For how many of the most probable models k̂ and evidence are reported.
    pub leading: usize,
    /// How evidences of blocks are found.
    pub anneal: AnnealSettings,
    /// How the second opinion is found, where the density is no product over blocks.
    pub opinion: OpinionSettings,
    /// How q learns what it found, in [`check_and_learn`](super::check_and_learn).
    pub lesson: LessonSettings,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self {
            draws: 20_000,
            leading: 20,
            anneal: AnnealSettings::default(),
            opinion: OpinionSettings::default(),
            lesson: LessonSettings::default(),
        }
    }
}

impl CheckSettings {
    /// Settings for numbers of components: particles are the answer unless q is very good, and rounds at the end, which are counted,
    /// make it precise.
    pub fn counting() -> Self {
        let opinion = OpinionSettings { repeats: 1, smc: SmcSettings::counting(), ..OpinionSettings::default() };
        Self { opinion, ..Self::default() }
    }

    /// Settings for densities each of which takes long: a few draws, and half of the particles that q learns from for a look beyond it;
    /// twice as many, moved twice as often, where that does not say enough.
    pub fn sparing() -> Self {
        let smc = SmcSettings { particles: 64, kept: 6, ..SmcSettings::sparing() };
        let opinion = OpinionSettings { repeats: 1, smc, ..OpinionSettings::default() };
        Self { draws: 5000, opinion, ..Self::default() }
    }

    /// Refuses settings that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        SettingError::check("draws", self.draws as f64, self.draws >= 100, "at least 100")?;
        self.anneal.check()?;
        self.opinion.check()?;
        self.lesson.check()
    }
}

/// What importance weights say.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// Pareto k̂ of all weights: −∞ if all are equal ("-inf" in JSON), none if unknown.
    #[serde(serialize_with = "super::correction::khat")]
    pub khat: Option<f64>,
    /// What k̂ must stay below.
    pub threshold: f64,
    /// `(Σ w)² / Σ w²`.
    pub effective_draws: f64,
    /// Log evidence `log p(y)`, by weights or, where that is surer, by draws of q and particles together; the standard error is that of
    /// its logarithm.
    pub log_evidence: Estimate,
    /// The bound `E_q[log p(m) η(θ | m) − log q(m, θ)]`.
    pub elbo: Estimate,
    /// Corrected model probabilities.
    pub correction: Correction,
    /// What was found block by block, where the density is a product over blocks and q(m) one of scores; k̂, evidence, correction
    /// and verdict are then those of the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<BlockCheck>,
    /// What a sampler found that knows nothing of q, where one was asked and came to an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opinion: Option<Opinion>,
    /// Whether that opinion, rather than weights, is the corrected answer.
    pub prefers_opinion: bool,
    /// Draws whose target could not be evaluated; they have weight 0.
    pub undefined: usize,
    /// What to do with the answer.
    pub verdict: Verdict,
    /// The draws.
    #[serde(skip)]
    pub draws: Draws,
    /// Their smoothed log weights: contributions to the evidence.
    #[serde(skip)]
    pub log_weights: Vec<f64>,
    /// What each draw counts under q; they sum to 1.
    #[serde(skip)]
    pub q_weights: Vec<f64>,
    /// Where each stratum ends.
    #[serde(skip)]
    ends: Vec<usize>,
    #[serde(skip)]
    tails: Vec<Smoothed>,
}

impl Check {
    /// The corrected mean of a function of the draws, with its standard error. The function is asked for each draw of
    /// positive weight, by its place among the draws.
    pub fn mean(&self, f: impl Fn(usize) -> f64) -> Result<Estimate, EstimateError> {
        let start = |stratum: usize| strata::rows(&self.ends, stratum).start;
        stats::ratio(&split(&self.log_weights, &self.ends, &self.tails), |stratum, draw| f(start(stratum) + draw))
    }

    /// Particles that it found without q, for a later check; none where there are none.
    pub fn particles(&self) -> Option<Particles> {
        let of_blocks = self.blocks.as_ref().map(|blocks| &blocks.runs).filter(|runs| !runs.is_empty());
        let kept = match &self.opinion {
            Some(opinion) => Some(Kept::Models(Box::new(opinion.tempered.clone()))),
            None => of_blocks.map(|runs| Kept::Blocks(runs.clone())),
        };
        kept.map(Particles)
    }

    /// Words with what they count in the corrected answer, which sums to 1: those of the draws by their weights or, where
    /// blocks were corrected, words drawn from what follows for models. These say more than weighted draws can where q is
    /// far off.
    pub fn corrected_words(&self) -> Vec<(Model, f64)> {
        let mut sums: HashMap<&[u16], f64> = HashMap::new();
        match &self.blocks {
            Some(BlockCheck { words, .. }) if !words.is_empty() => {
                let share = self.draws.width as f64 / words.len() as f64;
                words.chunks_exact(self.draws.width).for_each(|word| *sums.entry(word).or_insert(0.0) += share);
            }
            _ => {
                let log_total = stats::log_sum_exp(&self.log_weights);
                for (row, log_weight) in self.log_weights.iter().enumerate() {
                    *sums.entry(self.draws.word(row)).or_insert(0.0) += (log_weight - log_total).exp();
                }
            }
        }
        let mut words: Vec<(Model, f64)> = sums.into_iter().map(|(word, weight)| (Model::from(word), weight)).collect();
        words.sort_by(|a, b| a.0.cmp(&b.0));
        words
    }
}

/// Told how far a check has come, where that takes long: so many of so many parts, to which more may be added, are done. Says
/// whether to go on; what is not done by then is left out.
pub type Watch<'a> = &'a mut dyn FnMut(usize, usize) -> bool;

/// Draws from the posterior and weighs the draws against the problem's density.
///
/// ```
/// use std::sync::Arc;
/// use vti::check::{CheckSettings, VerdictKind, check};
/// use vti::device::Cpu;
/// use vti::family::FamilySettings;
/// use vti::problem;
/// use vti::space::OneOf;
/// use vti::train::{Silent, TrainSettings, Trainer};
///
/// let problem = problem::from_fn(OneOf::with_dims(&[0, 1])?, |model, theta, gradient| {
///     if model[0] == 0 {
///         return 0.0;
///     }
///     gradient[0] = -theta[0];
///     1.0 - 0.5 * theta[0].powi(2) - 0.5 * std::f64::consts::TAU.ln()
/// });
/// let settings = TrainSettings { steps: 600, batch: 128, ..TrainSettings::default() };
/// let trainer = Trainer::new(Arc::new(problem), Cpu::<f64>::new(2)?, &FamilySettings::default(), &settings)?;
/// let posterior = trainer.run(&mut Silent)?.posterior;
/// let check = check(&posterior, &CheckSettings::default())?;
/// let truth = (0.5 + 0.5 * 1f64.exp()).ln();
/// assert!((check.log_evidence.value - truth).abs() < 0.02);
/// assert_eq!(check.verdict.kind, VerdictKind::Trust);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check<D: Device>(posterior: &Posterior<D>, settings: &CheckSettings) -> Result<Check, CheckError> {
    check_onwards(posterior, settings, None, &mut |_, _| true)
}

/// [`check`], from the particles of an earlier check of the same problem on, while somebody looks on: no round of the second opinion is
/// repeated, and where all have been done and still do not say enough a larger one follows; runs of blocks count beside new ones.
/// Particles of all models are of no use where the problem does not say where parameters may lie
/// ([`Problem::reference`](crate::problem::Problem::reference)): they then depend on q. `watch` is told every now and then how much is
/// done while evidences are annealed or particles tempered.
pub fn check_onwards<D: Device>(
    posterior: &Posterior<D>,
    settings: &CheckSettings,
    earlier: Option<&Particles>,
    watch: Watch<'_>,
) -> Result<Check, CheckError> {
    check_after(posterior, settings, earlier, 0, watch)
}

/// [`check_onwards`], after q has learned so often what particles found: that it has density where these are then says nothing, and a
/// population of its own tells.
pub(super) fn check_after<D: Device>(
    posterior: &Posterior<D>,
    settings: &CheckSettings,
    earlier: Option<&Particles>,
    lessons: u32,
    watch: Watch<'_>,
) -> Result<Check, CheckError> {
    settings.check()?;
    let (tempered, runs) = match earlier.map(|Particles(kept)| kept) {
        Some(Kept::Models(tempered)) => (Some(&**tempered), None),
        Some(Kept::Blocks(runs)) => (None, Some(runs)),
        None => (None, None),
    };
    let stratified = strata::draw(posterior, settings.draws)?;
    let elbo = bound(&stratified);
    let Stratified { draws, mut log_weights, ends, words, undefined } = stratified;
    if log_weights.iter().all(|&log_weight| log_weight == f64::NEG_INFINITY) {
        return Err(CheckError::NoWeight);
    }
    let khat = khat_of(&log_weights, stats::smooth(&mut log_weights.clone())?.khat);
    let tails = smooth_each(&mut log_weights, &ends)?;
    let strata = split(&log_weights, &ends, &tails);
    let log_evidence = stats::log_total(&strata)?;
    let grouped = Groups::new(posterior, &draws, &words, &ends);
    let correction = grouped.correct(posterior, &draws, &strata, &tails, settings.leading)?;
    let threshold = stats::threshold(draws.len());
    let q_weights = q_weights(&words, &ends);
    let (q_parts, parts) = (parts(posterior, &draws, &q_weights), apart(posterior, &draws, &q_weights, &log_weights));
    let weighed = Weighed { khat, threshold, log_evidence, correction: &correction, parts };
    let (verdict, is_even) = (Verdict::of_weights(&weighed), weighed.is_even());
    let found = Found { khat, threshold, log_evidence, correction, verdict, check: None };
    let blocks = blocks::correct(posterior, &draws, &found.correction.models, settings, runs, watch)?;
    let is_seconded = blocks.as_ref().and_then(|found| found.check.as_ref()).is_some_and(|check| check.is_seconded);
    let mut opinion = if is_seconded {
        None
    } else {
        let known = FromQ { lessons, draws: &draws, parts: q_parts, log_evidence: log_evidence.value, is_even };
        let go_on = &mut |share: f64| watch((share * OPINION_PARTS) as usize, OPINION_PARTS as usize);
        opinion::opinion(posterior, &known, &settings.opinion, tempered, go_on)?
    };
    let Found { khat, threshold, mut log_evidence, mut correction, verdict, check: blocks, .. } =
        blocks.unwrap_or(found);
    // Particles may find less than the bound, and then it says how far off they are at least.
    log_evidence.se = log_evidence.se.max(elbo.value - 4.0 * elbo.se - log_evidence.value);
    let (verdict, prefers_opinion) = match &opinion {
        None if is_seconded => (verdict.unless(posterior.warnings()), false),
        None => (verdict.unless(posterior.warnings()).without_opinion(), false),
        Some(opinion) => {
            let weighed = Weighed { khat, threshold, log_evidence, correction: &correction, parts };
            Verdict::of_opinion(&weighed, opinion, posterior.warnings())
        }
    };
    if let Some(opinion) = &mut opinion {
        let strata = FromStrata { draws: &draws, weights: &q_weights, ends: &ends, words: &words };
        bridge::settle(&**posterior.problem(), &strata, &mut correction, opinion);
        log_evidence = opinion.log_evidence_with_q.filter(|both| both.se < log_evidence.se).unwrap_or(log_evidence);
    }
    Ok(Check {
        khat,
        threshold,
        effective_draws: stats::effective_draws(&log_weights),
        log_evidence,
        elbo,
        verdict: verdict.with_impossible(impossible(&draws, &q_weights)).unless_undefined(log_evidence, &correction),
        correction,
        blocks,
        opinion,
        prefers_opinion,
        undefined,
        draws,
        log_weights,
        q_weights,
        ends,
        tails,
    })
}

/// Parts in which the progress of a second opinion is told.
const OPINION_PARTS: f64 = 100.0;

/// How probable each of the space's features is to be positive, where draws have these weights, which sum to 1.
fn parts<D: Device>(posterior: &Posterior<D>, draws: &Draws, weights: &[f64]) -> Vec<f64> {
    let space = posterior.family().space();
    let (mut parts, mut features) = (vec![0.0; space.feature_count()], vec![0.0; space.feature_count()]);
    for (row, weight) in weights.iter().enumerate() {
        space.features(draws.word(row), &mut features);
        let positive = parts.iter_mut().zip(&features).filter(|(_, feature)| **feature > 0.0);
        positive.for_each(|(part, _)| *part += weight);
    }
    parts
}

/// The largest difference between the probability of a part under q and by weights, with the error of the latter.
fn apart<D: Device>(posterior: &Posterior<D>, draws: &Draws, q_weights: &[f64], log_weights: &[f64]) -> Estimate {
    let (log_total, effective) = (stats::log_sum_exp(log_weights), stats::effective_draws(log_weights));
    let weights: Vec<f64> = log_weights.iter().map(|log_weight| (log_weight - log_total).exp()).collect();
    let off =
        parts(posterior, draws, q_weights).into_iter().zip(parts(posterior, draws, &weights)).map(|(q, found)| {
            Estimate { value: (q - found).abs(), se: stats::share_error(found.clamp(0.0, 1.0), effective) }
        });
    off.fold(Estimate { value: 0.0, se: 0.0 }, |most, one| if one.value > most.value { one } else { most })
}

/// The share of q that lies where the density is undefined, or 0.
fn impossible(draws: &Draws, q_weights: &[f64]) -> f64 {
    let is_impossible = |row: &usize| !draws.log_ratio(*row).is_finite();
    (0..draws.len()).filter(is_impossible).map(|row| q_weights[row]).sum()
}

/// What weights say, be they of models or of blocks.
pub(super) struct Found {
    pub(super) khat: Option<f64>,
    pub(super) threshold: f64,
    pub(super) log_evidence: Estimate,
    pub(super) correction: Correction,
    pub(super) verdict: Verdict,
    pub(super) check: Option<BlockCheck>,
}

/// The probability of each stratum under q, shared by its draws.
fn q_weights(words: &[(Option<Model>, f64)], ends: &[usize]) -> Vec<f64> {
    let mut weights = Vec::with_capacity(ends.last().copied().unwrap_or(0));
    for (&end, (_, q)) in ends.iter().zip(words) {
        let share = q / (end - weights.len()).max(1) as f64;
        weights.resize(end, share);
    }
    // A stratum that got no draw leaves its probability to the others.
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

/// Smooths the weights of each stratum, which estimates a number of its own.
fn smooth_each(log_weights: &mut [f64], ends: &[usize]) -> Result<Vec<Smoothed>, CheckError> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).map(|(start, &end)| Ok(stats::smooth(&mut log_weights[start..end])?)).collect()
}

/// The weights of each stratum.
fn split<'a>(log_weights: &'a [f64], ends: &[usize], tails: &[Smoothed]) -> Vec<Stratum<'a>> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let stratum = |((start, &end), tail): ((usize, &usize), &Smoothed)| Stratum {
        log_weights: &log_weights[start..end],
        log_beyond: tail.log_beyond,
    };
    starts.zip(ends).zip(tails).map(stratum).collect()
}

/// The bound, each stratum with its probability under q, over draws whose target is defined.
fn bound(stratified: &Stratified) -> Estimate {
    let Stratified { draws, ends, words, .. } = stratified;
    let (mut weight, mut value, mut variance, mut start) = (0.0, 0.0, 0.0, 0);
    for (&end, (_, q)) in ends.iter().zip(words) {
        let terms = || (start..end).map(|row| draws.log_ratio(row)).filter(|term| !term.is_nan());
        let n = terms().count() as f64;
        if n > 0.0 {
            let mean = terms().sum::<f64>() / n;
            let squares: f64 = terms().map(|term| (term - mean) * (term - mean)).sum();
            weight += q;
            // Relative to what is there so far: a large common level must not be multiplied by rounded probabilities.
            value += q / weight * (mean - value);
            variance += q * q * squares / (n * (n - 1.0).max(1.0));
        }
        start = end;
    }
    Estimate { value, se: variance.sqrt() / weight }
}
