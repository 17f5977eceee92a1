//! Does the model fit the data? That is another question than whether an answer is the posterior, and a verdict says nothing
//! about it: a posterior can be right to the last digit under a model that the data contradict.
//!
//! Each row is predicted without itself ([`LeftOut`]), from draws of the posterior. What is looked at:
//!
//! * how well rows are predicted, and whether the simplest model predicts them as well ([`LeaveOneOut`], [`Gain`]);
//! * whether observed numbers lie where they should: probability integral transforms are uniform if the model fits ([`Pit`]);
//! * residuals: skewness, tails, outliers, bends, and a spread that changes with the prediction ([`Residuals`]); the scale of
//!   the errors where it is fixed beforehand ([`ScaleFit`]);
//! * counts: whether they vary as much as their distribution does ([`Dispersion`]); 0 or 1: whether probabilities are what
//!   they say ([`Calibration`]).
//!
//! Something speaks against a model if it would hardly ever happen by chance, and is large enough to matter: with many rows the
//! slightest departure is certain.

mod calibration;
mod dispersion;
mod leave_out;
mod null;
mod outcome;
mod residuals;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod words;

use serde::{Deserialize, Serialize};

pub use leave_out::LeftOut;
pub use outcome::{Null, Outcome, Predict};
pub use residuals::{Pit, Residuals, ScaleFit, Tested};

use crate::random::{Purpose, Stream};
use crate::stats::Estimate;
use crate::workers::Workers;

/// Beyond this k̂ leave-one-out is not reliable for a row.
pub const MAX_KHAT: f64 = 0.7;

/// With fewer rows nothing can be said.
const MIN_ROWS: usize = 8;

/// Rows by their numbers that are listed at most.
const LISTED: usize = 10;

/// Streams of replicates, apart from those of transforms.
const REPLICATES: u64 = 1 << 32;

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LookSettings {
    /// Draws from the posterior, at most.
    pub draws: usize,
    /// Rows × draws × columns, at most; of more, some rows are looked at.
    pub pairs: usize,
    /// Of what is random about it: which rows and draws, replicates, and the transforms of counts and of 0 or 1.
    pub seed: u64,
    /// Whether columns are logarithms already, so that to take them is no advice.
    pub is_logged: bool,
}

impl Default for LookSettings {
    fn default() -> Self {
        Self { draws: 1000, pairs: 1 << 23, seed: 1, is_logged: false }
    }
}

/// Whether a model fits the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelFit {
    /// In a word.
    pub kind: FitKind,
    /// In words: what was looked at, and what does not fit.
    pub text: String,
    /// What can be done about it; left to whoever knows the problem.
    pub advice: Vec<String>,
    /// Rows that were looked at.
    pub rows: usize,
    /// How many there are.
    pub of_rows: usize,
    /// The response, or each node.
    pub outcomes: Vec<OutcomeFit>,
}

/// Whether a model fits, in a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitKind {
    /// Nothing speaks against it.
    #[default]
    NothingFound,
    /// The data contradict it.
    DoesNotFit,
    /// Nothing can be said.
    TooFewRows,
}

/// Whether the model fits one column of the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutcomeFit {
    /// The response, or the node.
    pub name: String,
    /// Draws that were looked at.
    pub draws: usize,
    /// How well rows are predicted that are left out.
    pub loo: LeaveOneOut,
    /// Against the simplest model.
    pub gain: Gain,
    /// Whether observed numbers lie where they should.
    pub pit: Pit,
    /// Their shape; none for 0 or 1, or where there are too few rows.
    pub residuals: Option<Residuals>,
    /// Where the scale of the errors is fixed beforehand.
    pub scale: Option<ScaleFit>,
    /// Of counts.
    pub dispersion: Option<Dispersion>,
    /// Of 0 or 1.
    pub calibration: Option<Calibration>,
    /// What speaks against the model.
    pub misfits: Vec<Misfit>,
}

/// How well rows are predicted that are left out: PSIS-LOO.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeaveOneOut {
    /// `Σ log p(y_i | y_{−i})`; if only some rows were looked at, for all of them.
    pub elpd: f64,
    /// Its standard error: how much another such table would change it.
    pub se: f64,
    /// The effective number of parameters: how much better rows are predicted from themselves.
    pub p_loo: f64,
    /// Rows whose k̂ is above 0.7 ([`MAX_KHAT`]): for them leave-one-out is not reliable.
    pub khat_above: usize,
    /// The largest k̂; none where it is unknown, or where all weights are equal.
    pub khat: Option<f64>,
    /// The rows of largest k̂ above 0.7, numbered from 1; at most ten.
    pub influential: Vec<usize>,
}

/// By how much rows are better predicted than by the simplest model: an intercept alone, or no parents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The difference in `elpd`, in nats.
    pub elpd: f64,
    /// Its standard error.
    pub se: f64,
}

/// Whether counts vary as they should: Pearson's `Σ (y − μ)²/variance`, observed and replicated under the same draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dispersion {
    /// Observed over replicated: 1 if the model fits, more if counts are overdispersed.
    pub ratio: f64,
    /// Two-sided posterior predictive p-value.
    pub p_value: f64,
}

/// Whether probabilities are what they say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Groups of rows by their predicted probability.
    pub groups: Vec<CalibrationGroup>,
    /// The mean distance between predicted and observed shares, weighted by rows: the expected calibration error.
    pub error: f64,
    /// What it is by chance if the model fits: mean, and standard deviation as `se`, over replicates.
    pub by_chance: Estimate,
    /// Posterior predictive p-value of the statistic of Hosmer and Lemeshow.
    pub p_value: f64,
}

/// Rows of similar predicted probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibrationGroup {
    /// The mean predicted probability, each row without itself.
    pub predicted: f64,
    /// The share of ones.
    pub observed: f64,
    /// How many rows.
    pub rows: usize,
}

/// Something that speaks against a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Misfit {
    /// What it is.
    pub kind: MisfitKind,
    /// In a few words.
    pub text: String,
    /// How probable it is by chance.
    pub p_value: f64,
}

/// What can speak against a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisfitKind {
    /// Observed numbers do not lie where they should.
    Distribution,
    /// Residuals are skewed.
    Skewness,
    /// Large residuals are too frequent, or too rare.
    Tails,
    /// Some rows should not be there.
    Outliers,
    /// Residuals bend with the prediction: what depends is not linear.
    Bend,
    /// The spread of residuals changes with the prediction.
    Spread,
    /// Errors are larger or smaller than their fixed scale.
    Scale,
    /// Counts vary more or less than they should.
    Dispersion,
    /// Probabilities are not what they say.
    Calibration,
}

/// Looks whether what draws say about columns of one table fits the columns. What can be done about it is left to the caller.
///
/// ```
/// use vti::predictive::{FitKind, LookSettings, Null, Outcome, Predict, look};
/// use vti::problem::selection::Likelihood;
/// use vti::random::{Purpose, Stream};
/// use vti::workers::Workers;
///
/// /// Draws of a mean.
/// struct Means(Vec<f64>);
/// impl Predict for Means {
///     fn draws(&self) -> usize { self.0.len() }
///     fn scale(&self, _: usize) -> f64 { f64::NAN }
///     fn predictors(&self, draw: usize, _: &[usize], to: &mut [f64]) { to.fill(self.0[draw]) }
/// }
///
/// let mut stream = Stream::new(1, Purpose::Other(0), 0, 0);
/// let numbers: Vec<f64> = (0..200).map(|_| stream.normal()).collect();
/// let mean = numbers.iter().sum::<f64>() / 200.0;
/// let draws = (0..1000).map(|_| mean + stream.normal() / 200f64.sqrt()).collect();
/// let outcome = |sigma| Outcome {
///     name: "y".into(),
///     observed: &numbers,
///     likelihood: Likelihood::Gaussian { sigma: Some(sigma) },
///     offset: &[],
///     weights: &[],
///     predict: Box::new(Means(Vec::clone(&draws))),
///     null: Null::Zero,
///     rows: None,
/// };
/// let settings = LookSettings::default();
/// assert_eq!(look(&[outcome(1.0)], &settings, &Workers::SINGLE).kind, FitKind::NothingFound);
/// let fit = look(&[outcome(3.0)], &settings, &Workers::SINGLE);
/// assert!(fit.kind == FitKind::DoesNotFit && fit.text.contains("the model does not fit y"));
/// ```
pub fn look(outcomes: &[Outcome<'_>], settings: &LookSettings, workers: &Workers) -> ModelFit {
    look_while(outcomes, settings, workers, &|| true).unwrap_or_default()
}

/// The same for as long as somebody wants it: nothing where nobody does any more, which is asked many times a second and must stay
/// so.
pub fn look_while(
    outcomes: &[Outcome<'_>],
    settings: &LookSettings,
    workers: &Workers,
    go_on: &GoOn<'_>,
) -> Option<ModelFit> {
    let workers = &Looking { workers, go_on };
    let of_rows = outcomes.iter().map(Outcome::row_count).max().unwrap_or(0);
    let draws = outcomes.iter().map(|outcome| outcome.predict.draws()).max().unwrap_or(0);
    let most = settings.pairs / (draws * outcomes.len()).max(1);
    let some = |of: usize| some_rows(of, most.max(MIN_ROWS), settings.seed);
    let rows = some(of_rows);
    let one = |(number, outcome): (usize, &Outcome<'_>)| {
        let places = some(outcome.row_count());
        look_at(outcome, &places, outcomes.len(), (settings.seed, number as u64), workers)
    };
    let found: Vec<OutcomeFit> = outcomes.iter().enumerate().map(one).collect();
    if !go_on() {
        return None;
    }
    let kind = if rows.len() < MIN_ROWS {
        FitKind::TooFewRows
    } else if found.iter().all(|outcome| outcome.misfits.is_empty()) {
        FitKind::NothingFound
    } else {
        FitKind::DoesNotFit
    };
    let fit = ModelFit { kind, rows: rows.len(), of_rows, outcomes: found, ..ModelFit::default() };
    Some(ModelFit { text: words::text(&fit, outcomes), ..fit })
}

/// Whether somebody still wants what is looked at.
pub type GoOn<'a> = dyn Fn() -> bool + Sync + 'a;

/// Threads that leave the rest undone once nobody wants it.
struct Looking<'a> {
    workers: &'a Workers,
    go_on: &'a GoOn<'a>,
}

impl Looking<'_> {
    fn for_each<T: Send>(&self, items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
        self.workers.for_each(items, |place, item| {
            if (self.go_on)() {
                work(place, item);
            }
        });
    }
}

/// Each of these rows of a column predicted without itself; rows that are not there are left out for good.
pub fn leave_out(outcome: &Outcome<'_>, rows: &[usize], seed: u64, workers: &Workers) -> Vec<LeftOut> {
    let rows: Vec<usize> = rows.iter().copied().filter(|&row| row < outcome.observed.len()).collect();
    leave_out::leave_out(outcome, &rows, (seed, 0), &Looking { workers, go_on: &|| true })
}

/// At most `most` rows: one from each of as many even parts.
fn some_rows(of: usize, most: usize, seed: u64) -> Vec<usize> {
    if of <= most {
        return (0..of).collect();
    }
    let mut stream = Stream::new(seed, Purpose::Fit, u64::MAX, 0);
    let part = of as f64 / most as f64;
    (0..most).map(|i| (((i as f64 + stream.uniform()) * part) as usize).min(of - 1)).collect()
}

/// One column, by rows at some places among those that the model speaks about.
fn look_at(
    outcome: &Outcome<'_>,
    places: &[usize],
    outcomes: usize,
    key: (u64, u64),
    workers: &Looking<'_>,
) -> OutcomeFit {
    let rows: Vec<usize> = places.iter().map(|&place| outcome.row(place)).collect();
    let (rows, count) = (&rows[..], outcome.row_count());
    let left_out = leave_out::leave_out(outcome, rows, key, workers);
    if left_out.len() < rows.len() {
        return OutcomeFit::default();
    }
    let likelihood = outcome.likelihood;
    let null = null::elpd(outcome, rows, workers);
    let (elpd, se) = total(left_out.iter().map(|row| row.elpd), count);
    let (gained, gained_se) = total(left_out.iter().zip(&null).map(|(row, null)| row.elpd - null), count);
    let (p_loo, _) = total(left_out.iter().map(|row| row.lpd - row.elpd), count);
    let enough = rows.len() >= MIN_ROWS;
    let mut fit = OutcomeFit {
        name: outcome.name.clone(),
        draws: outcome.predict.draws(),
        loo: LeaveOneOut { elpd, se, p_loo, ..worst(&left_out) },
        gain: Gain { elpd: gained, se: gained_se },
        pit: Pit::new(&left_out),
        residuals: (enough && outcome::has_residuals(likelihood)).then(|| Residuals::new(&left_out)),
        scale: (enough && outcome::has_fixed_scale(likelihood)).then(|| ScaleFit::new(&left_out)),
        dispersion: likelihood.has_counts().then(|| dispersion::look(outcome, rows, key, workers)),
        calibration: likelihood.has_categories().then(|| calibration::look(outcome, &left_out, key, workers)),
        misfits: Vec::new(),
    };
    if enough {
        fit.misfits = words::misfits(&fit, outcomes);
    }
    fit
}

/// A sum over all rows from some of them, and its standard error: that of sampling the table and that of sampling rows from it come
/// to `N √(variance/n)` together.
fn total(values: impl Iterator<Item = f64> + Clone, of: usize) -> (f64, f64) {
    let (n, of) = (values.clone().count() as f64, of as f64);
    let mean = values.clone().sum::<f64>() / n;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (of * mean, of * (variance / n).sqrt())
}

/// The rows whose weights are most uneven.
fn worst(left_out: &[LeftOut]) -> LeaveOneOut {
    // Where no tail could be fitted nothing is known in favour of a row.
    let khat = |row: &LeftOut| row.khat.unwrap_or(f64::INFINITY);
    let mut above: Vec<&LeftOut> = left_out.iter().filter(|row| khat(row) > MAX_KHAT).collect();
    above.sort_by(|a, b| khat(b).total_cmp(&khat(a)));
    let largest = left_out.iter().map(khat).fold(f64::NEG_INFINITY, f64::max);
    LeaveOneOut {
        khat_above: above.len(),
        khat: Some(largest).filter(|khat| khat.is_finite()),
        influential: above.iter().take(LISTED).map(|row| row.row + 1).collect(),
        ..LeaveOneOut::default()
    }
}

/// The share of replicated statistics that are as large as the observed ones under the same draws; ties count half.
fn predictive_p(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut larger, mut count) = (0.0, 0.0);
    for (observed, replicated) in pairs {
        count += 1.0;
        larger += match replicated.total_cmp(&observed) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
    }
    larger / count
}
