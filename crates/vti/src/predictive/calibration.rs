//! Whether predicted probabilities are what they say.

use super::leave_out::{LeftOut, TOGETHER, predictors};
use super::outcome::{mean, replicate};
use super::{Calibration, CalibrationGroup, Looking, Outcome, REPLICATES, predictive_p};
use crate::random::{Purpose, Stream};
use crate::stats::Estimate;

/// Groups of rows by predicted probability, if there are enough.
const GROUPS: usize = 10;

/// Rows of a group, at least.
const MIN_ROWS: usize = 5;

/// What one draw says of one group: expected ones, their variance, and ones that were drawn anew.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    expected: f64,
    variance: f64,
    replicated: f64,
}

/// Streams that decide between rows of equal predictors, apart from those of replicates.
const TIES: u64 = 1 << 33;

/// Rows in groups of even size by their predictors; in each what was observed against what was expected. Predictions without the row
/// itself would not do: of rows that are all alike, those that are 1 are predicted a little lower, and would come first. Rows of equal
/// predictors stand in random order, as that of the table may be one by what was observed.
pub(super) fn look(outcome: &Outcome<'_>, left_out: &[LeftOut], key: (u64, u64), workers: &Looking<'_>) -> Calibration {
    let count = (left_out.len() / MIN_ROWS).clamp(1, GROUPS);
    let tie = |row: &LeftOut| Stream::new(key.0, Purpose::Fit, TIES + key.1, row.row as u64).uniform();
    let mut order: Vec<(&LeftOut, f64)> = left_out.iter().map(|row| (row, tie(row))).collect();
    order.sort_by(|a, b| a.0.predictor.total_cmp(&b.0.predictor).then(a.1.total_cmp(&b.1)));
    let order: Vec<&LeftOut> = order.into_iter().map(|(row, _)| row).collect();
    let group_of = |place: usize| place * count / order.len();
    let mut groups = vec![CalibrationGroup::default(); count];
    for (place, row) in order.iter().enumerate() {
        let group = &mut groups[group_of(place)];
        group.predicted += row.mean;
        group.observed += outcome.observed[row.row];
        group.rows += 1;
    }
    for group in &mut groups {
        group.predicted /= group.rows.max(1) as f64;
        group.observed /= group.rows.max(1) as f64;
    }
    let rows: Vec<(usize, usize)> = order.iter().enumerate().map(|(place, row)| (row.row, group_of(place))).collect();
    let sums = sums(outcome, &rows, count, key, workers);
    let ones = |group: &CalibrationGroup| group.observed * group.rows as f64;
    // Σ (ones − expected)²/variance over groups, under each draw.
    let statistic = |of_draw: &[Sums], ones: &dyn Fn(usize) -> f64| -> f64 {
        let one = |(group, sums): (usize, &Sums)| {
            (ones(group) - sums.expected).powi(2) / sums.variance.max(f64::MIN_POSITIVE)
        };
        of_draw.iter().enumerate().map(one).sum()
    };
    let pairs = sums.chunks_exact(count).map(|of_draw| {
        (statistic(of_draw, &|group| ones(&groups[group])), statistic(of_draw, &|group| of_draw[group].replicated))
    });
    let p_value = predictive_p(pairs);
    let n = left_out.len() as f64;
    let distance = |share: &dyn Fn(usize) -> f64| -> f64 {
        let one = |(number, group): (usize, &CalibrationGroup)| {
            group.rows as f64 / n * (share(number) - group.predicted).abs()
        };
        groups.iter().enumerate().map(one).sum()
    };
    let replicated: Vec<f64> = sums
        .chunks_exact(count)
        .map(|of_draw| distance(&|group| of_draw[group].replicated / groups[group].rows.max(1) as f64))
        .collect();
    let error = distance(&|group| groups[group].observed);
    let mean = replicated.iter().sum::<f64>() / replicated.len() as f64;
    let variance = replicated.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / replicated.len() as f64;
    Calibration { groups, error, by_chance: Estimate { value: mean, se: variance.sqrt() }, p_value }
}

/// Sums of all groups under each draw, draw after draw. `rows` come with their groups.
fn sums(
    outcome: &Outcome<'_>,
    rows: &[(usize, usize)],
    count: usize,
    (seed, number): (u64, u64),
    workers: &Looking<'_>,
) -> Vec<Sums> {
    let draws = outcome.predict.draws();
    let mut parts: Vec<Vec<Sums>> = vec![Vec::new(); rows.len().div_ceil(TOGETHER)];
    workers.for_each(&mut parts, |part, sums| {
        let rows = &rows[part * TOGETHER..][..TOGETHER.min(rows.len() - part * TOGETHER)];
        let places: Vec<usize> = rows.iter().map(|(row, _)| *row).collect();
        let predictors = predictors(outcome, &places);
        sums.resize(draws * count, Sums::default());
        for (place, &(row, group)) in rows.iter().enumerate() {
            let mut stream = Stream::new(seed, Purpose::Fit, REPLICATES + number, row as u64);
            for (draw, predictor) in predictors.iter().skip(place).step_by(rows.len()).enumerate() {
                let (mean, sums) = (mean(outcome.likelihood, *predictor), &mut sums[draw * count + group]);
                sums.expected += mean;
                sums.variance += mean * (1.0 - mean);
                sums.replicated += replicate(outcome.likelihood, mean, f64::NAN, &mut stream);
            }
        }
    });
    let mut all = vec![Sums::default(); draws * count];
    for part in &parts {
        for (sum, part) in all.iter_mut().zip(part) {
            sum.expected += part.expected;
            sum.variance += part.variance;
            sum.replicated += part.replicated;
        }
    }
    all
}
