//! Probability integral transforms, and the residuals that a normal distribution makes of them.
//!
//! If the model fits, the probability of less than what was observed, from all other rows, is uniform, and its normal quantile z is
//! standard normal, whatever the distribution of the errors. Tests are those that are usual for independent numbers; leaving rows
//! out makes them all but independent.

use serde::{Deserialize, Serialize};

use super::{LISTED, LeftOut};
use crate::stats::{chi_squared_tail, kolmogorov_tail, normal_quantile, two_sided};

/// Bars of the histogram.
const BARS: usize = 10;

/// Transforms are taken to be no closer to 0 and 1: farther out draws say nothing.
const CLOSEST: f64 = 1e-10;

/// Residuals farther out are outliers.
const OUTLIER: f64 = 4.0;

/// Predictors that vary less than this are all the same.
const EQUAL_PREDICTORS: f64 = 1e-9;

/// Whether observed numbers lie where they should.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pit {
    /// Shares of rows whose transform is in each tenth from 0 to 1.
    pub histogram: Vec<f64>,
    /// The largest distance between their distribution and the uniform one: by so much probabilities of intervals that begin at
    /// −∞ are off (Kolmogorov and Smirnov).
    pub distance: f64,
    /// How probable such a distance, or a larger one, is by chance.
    pub p_value: f64,
}

impl Pit {
    pub(super) fn new(left_out: &[LeftOut]) -> Self {
        let mut sorted: Vec<f64> = left_out.iter().map(|row| row.pit).filter(|pit| pit.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let off = |(i, pit): (usize, &f64)| (pit - i as f64 / n).max((i as f64 + 1.0) / n - pit);
        let distance = sorted.iter().enumerate().map(off).fold(0.0, f64::max);
        let mut histogram = vec![0.0; BARS];
        for pit in &sorted {
            histogram[((pit * BARS as f64) as usize).min(BARS - 1)] += 1.0 / n;
        }
        Self { histogram, distance, p_value: kolmogorov_tail(distance, sorted.len()) }
    }
}

/// The shape of residuals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Residuals {
    /// 0 if the model fits; positive where the right tail is longer.
    pub skewness: Tested,
    /// Excess kurtosis: 0 if the model fits, positive where tails are too long.
    pub kurtosis: Tested,
    /// The largest residual, in standard deviations.
    pub largest: Tested,
    /// Rows farther out than four standard deviations, farthest first and numbered from 1; at most ten.
    pub outliers: Vec<usize>,
    /// Correlation of residuals with squared predictors (of which a straight line is taken off): 0 if nothing bends. None where all
    /// predictors are the same.
    pub bend: Option<Tested>,
    /// Correlation of absolute residuals with predictors: 0 if errors spread evenly. None likewise.
    pub spread: Option<Tested>,
}

/// A number, and how probable it is by chance that it is as far from where it should be, or farther.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// The number.
    pub value: f64,
    /// Two-sided.
    pub p_value: f64,
}

/// Residuals as standard normal numbers.
fn normal_residuals(left_out: &[LeftOut]) -> Vec<f64> {
    left_out.iter().map(|row| normal_quantile(row.pit.clamp(CLOSEST, 1.0 - CLOSEST))).collect()
}

impl Residuals {
    pub(super) fn new(left_out: &[LeftOut]) -> Self {
        let known: Vec<LeftOut> = left_out.iter().filter(|row| row.pit.is_finite()).copied().collect();
        let z = normal_residuals(&known);
        let n = z.len() as f64;
        let mean = z.iter().sum::<f64>() / n;
        let moment = |power: i32| z.iter().map(|z| (z - mean).powi(power)).sum::<f64>() / n;
        let variance = moment(2).max(f64::MIN_POSITIVE);
        let (skewness, kurtosis) = (moment(3) / variance.powf(1.5), moment(4) / variance.powi(2));
        let largest = z.iter().copied().fold(0.0, |a: f64, b: f64| if b.abs() > a.abs() { b } else { a });
        let mut far: Vec<usize> = (0..z.len()).filter(|&place| z[place].abs() > OUTLIER).collect();
        far.sort_by(|&a, &b| z[b].abs().total_cmp(&z[a].abs()));
        // The probability that none of n is so far out.
        let largest_p = -(n * (-two_sided(largest)).ln_1p()).exp_m1();
        let predictors: Vec<f64> = known.iter().map(|row| row.predictor).collect();
        let trends = trends(&z, &predictors);
        Self {
            skewness: Tested { value: skewness, p_value: two_sided(skewness_score(skewness, n)) },
            kurtosis: Tested { value: kurtosis - 3.0, p_value: two_sided(kurtosis_score(kurtosis, n)) },
            largest: Tested { value: largest, p_value: largest_p },
            outliers: far.iter().take(LISTED).map(|&place| known[place].row + 1).collect(),
            bend: trends.map(|(bend, _)| bend),
            spread: trends.map(|(_, spread)| spread),
        }
    }
}

/// Bend and spread; none where predictors are all the same.
fn trends(z: &[f64], predictors: &[f64]) -> Option<(Tested, Tested)> {
    let n = z.len() as f64;
    let standard = |numbers: &[f64]| -> Option<Vec<f64>> {
        let mean = numbers.iter().sum::<f64>() / n;
        let sd = (numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        (sd > EQUAL_PREDICTORS * (1.0 + mean.abs())).then(|| numbers.iter().map(|x| (x - mean) / sd).collect())
    };
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / n;
    let line = standard(predictors)?;
    let squares: Vec<f64> = line.iter().map(|x| x * x).collect();
    let slope = product(&squares, &line);
    // Two different values have no bend.
    let bent = standard(&squares.iter().zip(&line).map(|(square, x)| square - slope * x).collect::<Vec<f64>>())?;
    let residuals = standard(z)?;
    let sizes = standard(&z.iter().map(|z| z.abs()).collect::<Vec<f64>>())?;
    let tested = |value: f64| Tested { value, p_value: two_sided(value * n.sqrt()) };
    Some((tested(product(&residuals, &bent)), tested(product(&sizes, &line))))
}

/// Skewness of n normal numbers as a standard normal one (D'Agostino, Biometrika 57, 1970), from 8 numbers on.
fn skewness_score(skewness: f64, n: f64) -> f64 {
    let y = skewness * ((n + 1.0) * (n + 3.0) / (6.0 * (n - 2.0))).sqrt();
    let kurtosis =
        3.0 * (n * n + 27.0 * n - 70.0) * (n + 1.0) * (n + 3.0) / ((n - 2.0) * (n + 5.0) * (n + 7.0) * (n + 9.0));
    let w2 = (2.0 * (kurtosis - 1.0)).sqrt() - 1.0;
    let (delta, alpha) = ((0.5 * w2.ln()).sqrt().recip(), (2.0 / (w2 - 1.0)).sqrt());
    delta * (y / alpha).asinh()
}

/// Kurtosis of n normal numbers as a standard normal one (Anscombe and Glynn, Biometrika 70, 1983).
fn kurtosis_score(kurtosis: f64, n: f64) -> f64 {
    let mean = 3.0 * (n - 1.0) / (n + 1.0);
    let variance = 24.0 * n * (n - 2.0) * (n - 3.0) / ((n + 1.0).powi(2) * (n + 3.0) * (n + 5.0));
    let x = (kurtosis - mean) / variance.sqrt();
    let skew = 6.0 * (n * n - 5.0 * n + 2.0) / ((n + 7.0) * (n + 9.0))
        * (6.0 * (n + 3.0) * (n + 5.0) / (n * (n - 2.0) * (n - 3.0))).sqrt();
    let a = 6.0 + 8.0 / skew * (2.0 / skew + (1.0 + 4.0 / (skew * skew)).sqrt());
    let spread = 2.0 / (9.0 * a);
    (1.0 - spread - ((1.0 - 2.0 / a) / (1.0 + x * (2.0 / (a - 4.0)).sqrt())).cbrt()) / spread.sqrt()
}

/// Whether errors are as large as a fixed scale says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScaleFit {
    /// How large they are in comparison: 1 if the model fits.
    pub ratio: f64,
    /// Two-sided, by χ².
    pub p_value: f64,
}

impl ScaleFit {
    pub(super) fn new(left_out: &[LeftOut]) -> Self {
        let squares: Vec<f64> = normal_residuals(left_out).iter().filter(|z| z.is_finite()).map(|z| z * z).collect();
        let (sum, n) = (squares.iter().sum::<f64>(), squares.len() as f64);
        let tail = chi_squared_tail(sum, n);
        Self { ratio: (sum / n).sqrt(), p_value: (2.0 * tail.min(1.0 - tail)).min(1.0) }
    }
}
