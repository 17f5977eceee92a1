//! Explicit randomness: one seed, and a stream of its own for every purpose, step and row.
//!
//! A stream depends on its key alone, never on what was drawn before or by which thread, so runs repeat bit for bit.

use rand::{Rng, SeedableRng};
use rand_distr::{ChiSquared, Distribution, Poisson, StandardNormal, StudentT};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What random numbers are used for; each purpose has streams of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// Initial parameters.
    Initialise,
    /// Drawing models.
    Models,
    /// Reference variables z in training.
    Reference,
    /// Draws in evaluation.
    Evaluation,
    /// Draws for summaries of a posterior.
    Summary,
    /// Draws of a check.
    Check,
    /// Proposals and decisions of chains.
    Refine,
    /// Simulating data.
    Simulate,
    /// Starts, proposals and decisions of reversible jumps.
    Jump,
    /// Starts, moves and decisions of annealed particles.
    Anneal,
    /// Starts, proposals and decisions of a search over models.
    Search,
    /// Learning from draws of the posterior that did not come from q.
    Lesson,
    /// Looking whether a model fits the data.
    Fit,
    /// Anything a test, an example or a benchmark wants.
    Other(u32),
}

impl Purpose {
    fn code(self) -> u64 {
        match self {
            Self::Initialise => 1,
            Self::Models => 2,
            Self::Reference => 3,
            Self::Evaluation => 4,
            Self::Check => 5,
            Self::Refine => 6,
            Self::Summary => 7,
            Self::Simulate => 8,
            Self::Jump => 9,
            Self::Anneal => 10,
            Self::Search => 11,
            Self::Lesson => 12,
            Self::Fit => 13,
            Self::Other(n) => 1 << 32 | u64::from(n),
        }
    }
}

/// A stream of random numbers.
///
/// ```
/// use vti::random::{Purpose, Stream};
/// let one = Stream::new(7, Purpose::Reference, 3, 12).uniform();
/// let again = Stream::new(7, Purpose::Reference, 3, 12).uniform();
/// assert_eq!(one, again);
/// ```
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of `(seed, purpose, step, row)`.
    pub fn new(seed: u64, purpose: Purpose, step: u64, row: u64) -> Self {
        // A finaliser with full avalanche between the parts, so that neighbouring keys give unrelated streams.
        let key = [purpose.code(), step, row].into_iter().fold(seed, |key, part| mix(key).wrapping_add(part));
        Self(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// A uniform number in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0.random()
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.0)
    }

    /// A number with Student's t distribution; not a number unless `df` is positive.
    pub fn student_t(&mut self, df: f64) -> f64 {
        StudentT::new(df).map_or(f64::NAN, |distribution| distribution.sample(&mut self.0))
    }

    /// A number with a χ² distribution; not a number unless `df` is positive.
    pub fn chi_squared(&mut self, df: f64) -> f64 {
        ChiSquared::new(df).map_or(f64::NAN, |distribution| distribution.sample(&mut self.0))
    }

    /// A count with a Poisson distribution; 0 for a mean of 0, not a number where no such distribution can be drawn from.
    pub fn poisson(&mut self, mean: f64) -> f64 {
        if mean == 0.0 {
            return 0.0;
        }
        Poisson::new(mean).map_or(f64::NAN, |distribution| distribution.sample(&mut self.0))
    }

    /// A count with a negative binomial distribution of this mean and size, a Poisson distribution whose mean is drawn from a
    /// gamma distribution: its variance is `mean + mean²/size`.
    pub fn negative_binomial(&mut self, mean: f64, size: f64) -> f64 {
        let rate = mean * self.chi_squared(2.0 * size) / (2.0 * size);
        self.poisson(rate)
    }

    /// A uniform integer in `0..n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0.random_range(0..n.max(1))
    }
}

/// Places that are drawn with probabilities in proportion to their weights.
#[derive(Clone, Debug)]
pub struct Weighted {
    /// Running sums of the weights.
    sums: Vec<f64>,
}

impl Weighted {
    /// None without any weight that is positive, or with one that is not a number.
    pub fn new(weights: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sum = 0.0;
        let sums: Vec<f64> = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        (sum > 0.0 && sum.is_finite()).then_some(Self { sums })
    }

    /// The sum of all weights.
    pub fn total(&self) -> f64 {
        self.sums[self.sums.len() - 1]
    }

    /// The weight of a place.
    pub fn weight(&self, place: usize) -> f64 {
        self.sums[place] - if place == 0 { 0.0 } else { self.sums[place - 1] }
    }

    /// A place.
    pub fn draw(&self, stream: &mut Stream) -> usize {
        let goal = stream.uniform() * self.total();
        self.sums.partition_point(|&sum| sum <= goal).min(self.sums.len() - 1)
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_keys_give_unrelated_streams() {
        let first = |seed, purpose, step, row| Stream::new(seed, purpose, step, row).uniform().to_bits();
        let mut seen = std::collections::HashSet::new();
        for seed in 0..4 {
            for purpose in [Purpose::Initialise, Purpose::Models, Purpose::Reference, Purpose::Other(0)] {
                for step in 0..8 {
                    for row in 0..8 {
                        assert!(seen.insert(first(seed, purpose, step, row)));
                    }
                }
            }
        }
    }

    #[test]
    fn counts_and_heavy_tails_have_their_moments() {
        let n = 20_000;
        let mut stream = Stream::new(2, Purpose::Other(0), 0, 0);
        let counts: Vec<f64> = (0..n).map(|_| stream.poisson(3.5)).collect();
        let tails: Vec<f64> = (0..n).map(|_| stream.student_t(10.0)).collect();
        let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / n as f64;
        let variance =
            |numbers: &[f64]| numbers.iter().map(|x| (x - mean(numbers)).powi(2)).sum::<f64>() / (n as f64 - 1.0);
        // Five standard errors: √(λ/n), and √((μ₄ − σ⁴)/n) with μ₄ = λ + 3λ² and 3·df²/((df − 2)(df − 4)).
        assert!((mean(&counts) - 3.5).abs() < 0.07 && (variance(&counts) - 3.5).abs() < 0.19);
        assert!(mean(&tails).abs() < 0.04 && (variance(&tails) - 1.25).abs() < 0.08);
        // Variance μ + μ²/r, of which five standard errors are less than 0.9.
        let mixed: Vec<f64> = (0..n).map(|_| stream.negative_binomial(3.5, 2.0)).collect();
        assert!((mean(&mixed) - 3.5).abs() < 0.12 && (variance(&mixed) - 9.625).abs() < 0.9);
        assert!(stream.poisson(0.0) == 0.0 && stream.poisson(-1.0).is_nan() && stream.student_t(0.0).is_nan());
        assert!(stream.chi_squared(0.0).is_nan());
    }

    #[test]
    fn first_normals_of_neighbouring_rows_look_normal() {
        let n = 20_000;
        let draws: Vec<f64> = (0..n).map(|row| Stream::new(1, Purpose::Reference, 0, row).normal()).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / n as f64;
        let lagged = draws.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / n as f64;
        // Five standard errors: 1/√n, √2/√n and 1/√n.
        let unit = 5.0 / (n as f64).sqrt();
        assert!(mean.abs() < unit && (variance - 1.0).abs() < 1.5 * unit && lagged.abs() < unit);
    }
}
