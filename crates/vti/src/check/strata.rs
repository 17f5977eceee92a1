//! Which models get draws of their own.
//!
//! Drawing models from q and weighting the draws would be enough, but most of the error of model probabilities would then
//! come from how often each model happens to be drawn. Models that matter get a fixed number of draws instead (strata), and
//! the rest of the models, drawn from q, share one stratum. The weight of a draw is its contribution to the evidence:
//!
//! ```text
//! a stratum of its own, n draws:   w = p(m) η(θ | m) / (n q(θ | m))
//! all other models, n draws:       w = Q p(m) η(θ | m) / (n q(m) q(θ | m)),   Q = their probability under q
//! ```

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::device::Device;
use crate::posterior::{Draws, Posterior};
use crate::random::Purpose;
use crate::space::Model;

use super::CheckError;

/// Draws in strata.
pub(super) struct Stratified {
    pub(super) draws: Draws,
    /// The log weight of every draw.
    pub(super) log_weights: Vec<f64>,
    /// Where each stratum ends.
    pub(super) ends: Vec<usize>,
    /// The word and `q(m)` of each stratum; the last stratum may be that of all others, which has no word.
    pub(super) words: Vec<(Option<Model>, f64)>,
    /// Draws whose target is not a number.
    pub(super) undefined: usize,
}

/// A model is worth a stratum if q would draw it so often.
const MIN_EXPECTED_DRAWS: f64 = 8.0;

/// The fewest draws of a stratum.
const MIN_STRATUM_DRAWS: usize = 32;

/// And of a few strata each has at least what an eighth of all draws would be, shared out alike: evidences of models that are hardly
/// probable are reported too.
const EVEN_SHARE: f64 = 0.125;

/// The most strata.
const MAX_STRATA: usize = 4096;

/// Batches of random streams: models to find out which matter, models of the rest, parameters.
const PILOT_BATCH: u32 = 0;
const REST_BATCH: u32 = 1;
const PARAMETER_BATCH: u32 = 2;

/// The draws of a stratum, given where each ends.
pub(super) fn rows(ends: &[usize], stratum: usize) -> Range<usize> {
    let start = if stratum == 0 { 0 } else { ends[stratum - 1] };
    start..ends[stratum]
}

/// About `count` draws.
pub(super) fn draw<D: Device>(posterior: &Posterior<D>, count: usize) -> Result<Stratified, CheckError> {
    let leading = leading(posterior, count)?;
    let known: HashSet<&[u16]> = leading.iter().map(|(model, _)| &**model).collect();
    let share: f64 = leading.iter().map(|(_, q)| q).sum();
    let rest = (1.0 - share).max(0.0);
    let (mut words, mut ends) = (Vec::new(), Vec::new());
    let least = ((EVEN_SHARE * count as f64 / leading.len().max(1) as f64) as usize).max(MIN_STRATUM_DRAWS);
    for (model, q) in &leading {
        let n = ((count as f64 * q).round() as usize).max(least);
        (0..n).for_each(|_| words.extend_from_slice(model));
        ends.push(ends.last().copied().unwrap_or(0) + n);
    }
    // Rounding may leave a little over even where all models have strata of their own.
    if rest > 1e-12 {
        let width = posterior.family().space().arities().len();
        let (drawn, _) = posterior.draw_words(count, Purpose::Check, REST_BATCH)?;
        let others = drawn.chunks_exact(width).filter(|word| !known.contains(word));
        let before = words.len();
        others.for_each(|word| words.extend_from_slice(word));
        ends.push(ends.last().copied().unwrap_or(0) + (words.len() - before) / width);
    }
    let draws = posterior.draw_given(&words, None, Purpose::Check, PARAMETER_BATCH, true)?;
    let mut strata: Vec<(Option<Model>, f64)> = leading.into_iter().map(|(model, q)| (Some(model), q)).collect();
    if strata.len() < ends.len() {
        strata.push((None, rest));
    }
    let (log_weights, undefined) = weigh(&draws, &ends, &strata);
    Ok(Stratified { draws, log_weights, ends, words: strata, undefined })
}

/// Log weights of all draws, and how many were not a number.
fn weigh(draws: &Draws, ends: &[usize], strata: &[(Option<Model>, f64)]) -> (Vec<f64>, usize) {
    let mut log_weights = Vec::with_capacity(draws.len());
    let mut undefined = 0;
    for (stratum, &end) in ends.iter().enumerate() {
        let start = log_weights.len();
        let scale = strata[stratum].1.ln() - ((end - start) as f64).ln();
        for row in start..end {
            // Within a stratum of one model q(m) of the draw and of the stratum cancel.
            let log_weight = draws.log_ratio(row) + scale;
            undefined += usize::from(log_weight.is_nan());
            log_weights.push(if log_weight.is_nan() { f64::NEG_INFINITY } else { log_weight });
        }
    }
    (log_weights, undefined)
}

/// Models that matter, with `q(m)`, most probable first.
fn leading<D: Device>(posterior: &Posterior<D>, count: usize) -> Result<Vec<(Model, f64)>, CheckError> {
    let space = posterior.family().space();
    let width = space.arities().len();
    let words = match posterior.catalogue() {
        Some(catalogue) => catalogue.words(),
        None => {
            let (words, _) = posterior.draw_words(count, Purpose::Check, PILOT_BATCH)?;
            let mut counts: HashMap<&[u16], usize> = HashMap::new();
            words.chunks_exact(width).for_each(|word| *counts.entry(word).or_default() += 1);
            let often = counts.into_iter().filter(|&(_, n)| n as f64 >= MIN_EXPECTED_DRAWS);
            often.flat_map(|(word, _)| word.iter().copied()).collect()
        }
    };
    let mut log_q = vec![0.0; words.len() / width];
    posterior.log_prob_models(&words, &mut log_q)?;
    let models = words.chunks_exact(width).zip(&log_q).map(|(word, log_q)| (Model::from(word), log_q.exp()));
    let mut models: Vec<(Model, f64)> = models.filter(|(_, q)| q * count as f64 >= MIN_EXPECTED_DRAWS).collect();
    models.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    models.truncate(MAX_STRATA);
    Ok(models)
}
