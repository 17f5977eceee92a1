//! Tables made to order: the paper's data-generating processes for robust selection, and correlated linear data.
//!
//! ```
//! use vti::problem::selection::simulate::{Misspecification, RobustSettings, robust};
//! let settings = RobustSettings { misspecification: Misspecification::High, ..RobustSettings::default() };
//! let simulated = robust(&settings)?;
//! assert_eq!((simulated.table.response.len(), simulated.table.terms.len()), (50, 7));
//! assert_eq!(simulated.relevant.iter().filter(|&&relevant| relevant).count(), 2);
//! # Ok::<(), vti::optimise::SettingError>(())
//! ```

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::{RegressionData, Term};
use crate::optimise::SettingError;
use crate::random::{Purpose, Stream};

/// How far the data are from what the robust likelihood assumes (paper, appendix F, Table 2 (robustvsdgpsetup)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misspecification {
    /// Noise σ₁ = 1, σ₂ = 10 and one set of coefficients, as the likelihood has it.
    #[default]
    None,
    /// Noise σ₁ = 2, σ₂ = 5, and other coefficients in the second half of the rows.
    Mid,
    /// Noise σ₁ = σ₂ = 4, other coefficients in the second half, and irrelevant columns that follow relevant ones a little.
    High,
}

impl Misspecification {
    /// σ₁ and σ₂.
    fn noise(self) -> (f64, f64) {
        match self {
            Self::None => (1.0, 10.0),
            Self::Mid => (2.0, 5.0),
            Self::High => (4.0, 4.0),
        }
    }

    /// Coefficients of relevant columns in the first and in the second half of the rows: β₁ and β₂.
    fn coefficients(self) -> [f64; 2] {
        [0.5, if self == Self::None { 0.5 } else { 1.5 }]
    }
}

/// As it is written in settings.
impl Display for Misspecification {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::None => "none",
            Self::Mid => "mid",
            Self::High => "high",
        })
    }
}

/// Share of columns, the intercept among them, that are relevant.
const RELEVANT: f64 = 0.4;
/// Share of irrelevant columns that follow relevant ones under high misspecification.
const CORRELATED: f64 = 0.4;
/// Total correlation factor: how much of such a column comes from relevant ones.
const FACTOR: f64 = 0.1;
/// Share of rows with outlier noise.
const OUTLIERS: f64 = 0.1;

/// Settings of the paper's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RobustSettings {
    /// How far from the likelihood.
    pub misspecification: Misspecification,
    /// Number of rows.
    pub rows: usize,
    /// Number of covariates; there is an intercept besides.
    pub covariates: usize,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for RobustSettings {
    fn default() -> Self {
        Self { misspecification: Misspecification::None, rows: 50, covariates: 7, seed: 1 }
    }
}

/// Settings of correlated linear data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CorrelatedSettings {
    /// Number of rows.
    pub rows: usize,
    /// Number of covariates.
    pub covariates: usize,
    /// How many of them are relevant.
    pub relevant: usize,
    /// Correlation of neighbouring covariates; that of covariates k places apart is its k-th power.
    pub correlation: f64,
    /// Size of the coefficients of relevant covariates; their signs are random.
    pub effect: f64,
    /// Standard deviation of the noise.
    pub noise: f64,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for CorrelatedSettings {
    fn default() -> Self {
        Self { rows: 2000, covariates: 200, relevant: 10, correlation: 0.5, effect: 0.5, noise: 1.0, seed: 1 }
    }
}

/// A table, and what made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// The table: response `y`, covariates `x1`, `x2`, ….
    pub table: RegressionData,
    /// Which covariates are relevant.
    pub relevant: Vec<bool>,
    /// Coefficients, the intercept's first, in the first half of the rows and in the second.
    pub coefficients: [Vec<f64>; 2],
    /// Rows with outlier noise, counted from 0, ascending.
    pub outliers: Vec<usize>,
    /// Covariates that follow relevant ones, counted from 0, ascending.
    pub correlated: Vec<usize>,
}

/// The paper's processes (Table 2 (robustvsdgpsetup)).
///
/// Covariates are standard normal. Of the d columns, the intercept and ⌊0.4 d⌋ − 1 covariates are relevant, with the same
/// coefficient each. Every row has N(0, σ₁²) noise, and a tenth of the rows N(0, σ₂²) noise on top. Under high
/// misspecification, two fifths of the irrelevant covariates are replaced by 0.9 x_j ± c₀ x_r ± c₁ x_s with r and s relevant
/// and c₀ + c₁ = 0.1.
pub fn robust(settings: &RobustSettings) -> Result<Simulated, SettingError> {
    let RobustSettings { misspecification, rows, covariates, seed } = *settings;
    check_size(rows, covariates)?;
    let stream = |part| Stream::new(seed, Purpose::Simulate, part, 0);
    let count = ((RELEVANT * (covariates + 1) as f64) as usize).saturating_sub(1);
    let relevant = choose(&mut stream(0), covariates, count);
    let mut columns = normals(&mut stream(1), rows, covariates);
    let mut correlated = Vec::new();
    if misspecification == Misspecification::High && count > 0 {
        let mut stream = stream(2);
        let others: Vec<usize> = (0..covariates).filter(|column| !relevant.contains(column)).collect();
        let share = (CORRELATED * others.len() as f64).round() as usize;
        correlated = choose(&mut stream, others.len(), share).into_iter().map(|place| others[place]).collect();
        for &column in &correlated {
            follow(&mut stream, &mut columns, column, &relevant);
        }
    }
    let with = |value: f64| coefficients(covariates, &relevant, value, |_| value);
    let coefficients = misspecification.coefficients().map(with);
    let outliers = choose(&mut stream(3), rows, (OUTLIERS * rows as f64).round() as usize);
    let (sigma1, sigma2) = misspecification.noise();
    let mut noise = stream(4);
    let response = (0..rows)
        .map(|row| {
            let half = usize::from(2 * row >= rows);
            let extra = if outliers.binary_search(&row).is_ok() { sigma2 * noise.normal() } else { 0.0 };
            predictor(&coefficients[half], &columns, row) + sigma1 * noise.normal() + extra
        })
        .collect();
    Ok(Simulated {
        table: table(response, columns),
        relevant: (0..covariates).map(|column| relevant.contains(&column)).collect(),
        coefficients,
        outliers,
        correlated,
    })
}

/// A linear model whose covariates are an autoregression of order 1 along each row, with standard normal margins.
pub fn correlated(settings: &CorrelatedSettings) -> Result<Simulated, SettingError> {
    let CorrelatedSettings { rows, covariates, relevant: count, correlation, effect, noise, seed } = *settings;
    check_size(rows, covariates)?;
    SettingError::check("relevant", count as f64, count <= covariates, "at most the number of covariates")?;
    SettingError::check("correlation", correlation, correlation.abs() < 1.0, "between -1 and 1")?;
    SettingError::check("effect", effect, effect.is_finite(), "finite")?;
    SettingError::check("noise", noise, noise > 0.0 && noise.is_finite(), "positive")?;
    let stream = |part| Stream::new(seed, Purpose::Simulate, part, 1);
    let relevant = choose(&mut stream(0), covariates, count);
    let mut columns = normals(&mut stream(1), rows, covariates);
    let fresh = (1.0 - correlation * correlation).sqrt();
    for column in 1..covariates {
        let (before, from) = columns.split_at_mut(column);
        for (x, &left) in from[0].iter_mut().zip(&before[column - 1]) {
            *x = correlation * left + fresh * *x;
        }
    }
    let mut signs = stream(2);
    let coefficients =
        coefficients(covariates, &relevant, effect, |_| if signs.uniform() < 0.5 { -effect } else { effect });
    let mut errors = stream(4);
    let response = (0..rows).map(|row| predictor(&coefficients, &columns, row) + noise * errors.normal()).collect();
    Ok(Simulated {
        table: table(response, columns),
        relevant: (0..covariates).map(|column| relevant.contains(&column)).collect(),
        coefficients: [coefficients.clone(), coefficients],
        outliers: Vec::new(),
        correlated: Vec::new(),
    })
}

fn check_size(rows: usize, covariates: usize) -> Result<(), SettingError> {
    SettingError::check("rows", rows as f64, rows >= 3, "at least 3")?;
    SettingError::check("covariates", covariates as f64, covariates >= 1, "at least 1")
}

/// `count` different numbers below `n`, ascending: the first steps of a shuffle.
fn choose(stream: &mut Stream, n: usize, count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..n).collect();
    for place in 0..count.min(n) {
        let other = place + stream.below((n - place) as u64) as usize;
        all.swap(place, other);
    }
    all.truncate(count);
    all.sort_unstable();
    all
}

fn normals(stream: &mut Stream, rows: usize, columns: usize) -> Vec<Vec<f64>> {
    (0..columns).map(|_| (0..rows).map(|_| stream.normal()).collect()).collect()
}

/// Lets a column follow two relevant ones, or the only one there is.
fn follow(stream: &mut Stream, columns: &mut [Vec<f64>], column: usize, relevant: &[usize]) {
    let leaders = choose(stream, relevant.len(), 2);
    let first = FACTOR * if leaders.len() == 2 { stream.uniform() } else { 1.0 };
    columns[column].iter_mut().for_each(|x| *x *= 1.0 - FACTOR);
    for (place, factor) in leaders.into_iter().zip([first, FACTOR - first]) {
        let factor = if stream.uniform() < 0.5 { -factor } else { factor };
        let leader = columns[relevant[place]].clone();
        columns[column].iter_mut().zip(leader).for_each(|(x, leader)| *x += factor * leader);
    }
}

/// An intercept, and a coefficient for each covariate: 0 unless it is relevant.
fn coefficients(
    covariates: usize,
    relevant: &[usize],
    intercept: f64,
    mut value: impl FnMut(usize) -> f64,
) -> Vec<f64> {
    let mut coefficients = vec![0.0; covariates + 1];
    coefficients[0] = intercept;
    relevant.iter().for_each(|&column| coefficients[column + 1] = value(column));
    coefficients
}

fn predictor(coefficients: &[f64], columns: &[Vec<f64>], row: usize) -> f64 {
    coefficients[0] + coefficients[1..].iter().zip(columns).map(|(b, column)| b * column[row]).sum::<f64>()
}

fn table(response: Vec<f64>, columns: Vec<Vec<f64>>) -> RegressionData {
    let term = |(number, values): (usize, Vec<f64>)| {
        let name = format!("x{}", number + 1);
        Term { columns: vec![name.clone()], name, values, always: false, parents: Vec::new() }
    };
    let terms = columns.into_iter().enumerate().map(term).collect();
    RegressionData { response_name: "y".into(), response, terms, ..RegressionData::default() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn high(seed: u64, rows: usize) -> Simulated {
        robust(&RobustSettings { misspecification: Misspecification::High, rows, seed, ..Default::default() }).unwrap()
    }

    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        product(a, b) / (product(a, a) * product(b, b)).sqrt()
    }

    /// Residuals from the coefficients of the row's half.
    fn residuals(simulated: &Simulated) -> Vec<f64> {
        let columns: Vec<Vec<f64>> = simulated.table.terms.iter().map(|term| term.values.clone()).collect();
        let rows = simulated.table.response.len();
        let fitted = |row| predictor(&simulated.coefficients[usize::from(2 * row >= rows)], &columns, row);
        (0..rows).map(|row| simulated.table.response[row] - fitted(row)).collect()
    }

    #[test]
    fn the_papers_table_is_met() {
        let levels = [
            (Misspecification::None, (1.0, 10.0), 0.5),
            (Misspecification::Mid, (2.0, 5.0), 1.5),
            (Misspecification::High, (4.0, 4.0), 1.5),
        ];
        for (misspecification, (sigma1, sigma2), second) in levels {
            let rows = 40_000;
            let simulated = robust(&RobustSettings { misspecification, rows, ..Default::default() }).unwrap();
            assert_eq!(simulated.outliers.len(), rows / 10);
            assert_eq!(simulated.relevant.iter().filter(|&&relevant| relevant).count(), 2);
            for (half, value) in simulated.coefficients.iter().zip([0.5, second]) {
                assert_eq!(half[0], value);
                let expected = simulated.relevant.iter().map(|&relevant| if relevant { value } else { 0.0 });
                assert!(half[1..].iter().copied().eq(expected));
            }
            let residuals = residuals(&simulated);
            let variance = |outlier: bool| {
                let chosen = (0..rows).filter(|row| simulated.outliers.binary_search(row).is_ok() == outlier);
                let squares: Vec<f64> = chosen.map(|row| residuals[row] * residuals[row]).collect();
                (squares.iter().sum::<f64>() / squares.len() as f64, squares.len() as f64)
            };
            for (outlier, expected) in [(false, sigma1 * sigma1), (true, sigma1 * sigma1 + sigma2 * sigma2)] {
                let (found, count) = variance(outlier);
                // Four standard errors of a variance.
                assert!((found / expected - 1.0).abs() < 4.0 * (2.0 / count).sqrt(), "{found} {expected}");
            }
        }
    }

    #[test]
    fn under_high_misspecification_two_irrelevant_columns_follow_relevant_ones() {
        let rows = 40_000;
        let simulated = high(3, rows);
        assert_eq!(simulated.correlated.len(), 2);
        let column = |i: usize| simulated.table.terms[i].values.as_slice();
        let relevant: Vec<usize> = (0..7).filter(|&i| simulated.relevant[i]).collect();
        for i in (0..7).filter(|i| !relevant.contains(i)) {
            let total: f64 = relevant.iter().map(|&r| correlation(column(i), column(r)).abs()).sum();
            // Of a column of variance 0.81 + c₀² + c₁², c₀ + c₁ = 0.1.
            let expected = if simulated.correlated.contains(&i) { 0.1 / 0.81f64.sqrt() } else { 0.0 };
            assert!((total - expected).abs() < 10.0 / (rows as f64).sqrt(), "{i}: {total} {expected}");
        }
    }

    #[test]
    fn seeds_decide_everything() {
        assert_eq!(high(5, 50), high(5, 50));
        assert_ne!(high(5, 50).table, high(6, 50).table);
        let chosen: std::collections::HashSet<Vec<bool>> = (0..40).map(|seed| high(seed, 10).relevant).collect();
        assert!(chosen.len() > 10);
    }

    #[test]
    fn correlated_covariates_are_an_autoregression() {
        let settings = CorrelatedSettings {
            rows: 30_000,
            covariates: 6,
            relevant: 3,
            correlation: -0.7,
            effect: 0.8,
            noise: 2.0,
            ..Default::default()
        };
        let simulated = correlated(&settings).unwrap();
        let error = 5.0 / (settings.rows as f64).sqrt();
        for i in 0..6 {
            let a = &simulated.table.terms[i].values;
            let variance = a.iter().map(|x| x * x).sum::<f64>() / settings.rows as f64;
            assert!((variance - 1.0).abs() < 1.5 * error);
            for j in 0..i {
                let expected = (-0.7f64).powi((i - j) as i32);
                assert!((correlation(a, &simulated.table.terms[j].values) - expected).abs() < error);
            }
        }
        assert_eq!(simulated.relevant.iter().filter(|&&relevant| relevant).count(), 3);
        for (&b, &relevant) in simulated.coefficients[0][1..].iter().zip(&simulated.relevant) {
            assert_eq!(b.abs(), if relevant { 0.8 } else { 0.0 });
        }
        let residuals = residuals(&simulated);
        let variance = residuals.iter().map(|r| r * r).sum::<f64>() / settings.rows as f64;
        assert!((variance / 4.0 - 1.0).abs() < 1.5 * error);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let error = robust(&RobustSettings { rows: 2, ..Default::default() }).unwrap_err();
        assert_eq!(error.to_string(), "rows is 2, it must be at least 3");
        let error = correlated(&CorrelatedSettings { covariates: 5, relevant: 6, ..Default::default() }).unwrap_err();
        assert_eq!(error.what, "relevant");
    }
}
