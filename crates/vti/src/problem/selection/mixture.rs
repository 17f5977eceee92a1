//! Mixtures of g-priors: g has a prior of its own and is integrated out (Liang, Paulo, Molina, Clyde and Berger, "Mixtures of g
//! priors for Bayesian variable selection", Journal of the American Statistical Association 103, 2008).
//!
//! Whatever is wanted of a model is an integral over `t = log g` of the exponential of
//!
//! ```text
//! c₀ + c₁ t + c₂ log(1 + g) − c₃ log(1 + qg) + c₄ g/(1 + g) − c₅/g − c₆ log(1 + g/u),
//! ```
//!
//! which has one mode and falls off at least exponentially on both sides. Sums over even grids around the mode converge to such
//! an integral exponentially fast in the number of places per unit of t, so that two interleaved grids which agree in six
//! digits are together right in about twelve.

use super::exact::Fit;
use super::prior::CoefficientPrior;
use crate::problem::scales::ScaleGrid;

/// A prior of g.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mixture {
    /// `(a − 2)/(2u) (1 + g/u)^(−a/2)`: the hyper-g prior for u = 1, the hyper-g/n prior for u = n.
    Hyper { a: f64, unit: f64 },
    /// Inverse gamma with shape ½ and scale n/2, which makes the coefficients Cauchy.
    ZellnerSiow { rows: f64 },
}

/// What is left of the response's squares where a fit is perfect up to rounding; less is noise.
const LEAST_SHARE: f64 = 1e-20;
/// The least `Σ (Xb)²/σ²`, lest the density is infinite where all slopes are 0.
const LEAST_SQUARES: f64 = 1e-30;

impl Mixture {
    /// The mixture that a prior is, if it is one.
    pub(super) fn of(prior: &CoefficientPrior, rows: f64) -> Option<Self> {
        match *prior {
            CoefficientPrior::HyperG { a } => Some(Self::Hyper { a, unit: 1.0 }),
            CoefficientPrior::HyperGN { a } => Some(Self::Hyper { a, unit: rows }),
            CoefficientPrior::ZellnerSiow {} => Some(Self::ZellnerSiow { rows }),
            CoefficientPrior::G { .. } | CoefficientPrior::Normal { .. } => None,
        }
    }

    /// The density of log g.
    fn integrand(&self) -> Integrand {
        match *self {
            Self::Hyper { a, unit } => {
                Integrand { constant: (0.5 * (a - 2.0) / unit).ln(), power: 1.0, tail: 0.5 * a, unit, ..Integrand::ONE }
            }
            Self::ZellnerSiow { rows } => Integrand {
                constant: 0.5 * (0.5 * rows / std::f64::consts::PI).ln(),
                power: -0.5,
                inverse: 0.5 * rows,
                ..Integrand::ONE
            },
        }
    }

    /// Of a model with slopes: its Bayes factor against the model without any, given g, times the density of log g.
    pub(super) fn of_evidence(&self, fit: &Fit, sigma: Option<f64>) -> Integrand {
        let (freedom, slopes) = (fit.n - 1.0, fit.columns - 1.0);
        let prior = self.integrand();
        let given = match sigma {
            Some(sigma) => {
                let explained = 0.5 * (fit.total - fit.residual).max(0.0) / (sigma * sigma);
                Integrand { spread: -0.5 * slopes, explained, ..prior }
            }
            None => {
                let share = (fit.residual / fit.total).clamp(LEAST_SHARE, 1.0);
                Integrand { spread: 0.5 * (freedom - slopes), misfit: 0.5 * freedom, share, ..prior }
            }
        };
        given.merged()
    }

    /// Of slopes: `g^(−k/2) exp(−Q/(2g))` with `Q = Σ (Xb)²/σ²`, times the density of log g. What its integral lacks to the
    /// prior density of k slopes does not depend on g.
    fn of_slopes(&self, slopes: f64, squares: f64) -> Integrand {
        let prior = self.integrand();
        let inverse = prior.inverse + 0.5 * squares.max(LEAST_SQUARES);
        Integrand { power: prior.power - 0.5 * slopes, inverse, ..prior }.merged()
    }

    /// The log of the part of the slopes' prior density that g has to do with, and the mean of 1/g given the slopes.
    pub(super) fn slopes(&self, slopes: f64, squares: f64) -> (f64, f64) {
        if slopes == 0.0 {
            return (0.0, 0.0);
        }
        let grid = self.of_slopes(slopes, squares).grid();
        let total = grid.log_integral();
        (total, grid.shares(total).map(|(g, share)| share / g).sum())
    }
}

/// The logarithm of a function of `t = log g`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Integrand {
    constant: f64,
    /// Of t.
    power: f64,
    /// Of `log(1 + g)`.
    spread: f64,
    /// Of `−log(1 + qg)`, and q.
    misfit: f64,
    share: f64,
    /// Of `g/(1 + g)`.
    explained: f64,
    /// Of `−1/g`.
    inverse: f64,
    /// Of `−log(1 + g/u)`, and u.
    tail: f64,
    unit: f64,
}

/// Where modes are looked for.
const FARTHEST: f64 = 120.0;
/// By so many halvings: the mode is known up to a few thousandths.
const HALVINGS: usize = 16;
/// Nats below the mode that do not matter.
const NEGLIGIBLE: f64 = 34.0;
/// Two interleaved grids differ by no more than this, relative to their sum.
const TOLERANCE: f64 = 1e-6;
/// A first grid becomes twice as dense so many times at most.
const MAX_DOUBLINGS: usize = 8;
/// Places on one side of the mode, of a first grid.
const MAX_PLACES: usize = 4096;

impl Integrand {
    const ONE: Self = Self {
        constant: 0.0,
        power: 0.0,
        spread: 0.0,
        misfit: 0.0,
        share: 0.0,
        explained: 0.0,
        inverse: 0.0,
        tail: 0.0,
        unit: 1.0,
    };

    /// With one logarithm less where two are of the same.
    fn merged(self) -> Self {
        if self.unit == 1.0 { Self { spread: self.spread - self.tail, tail: 0.0, ..self } } else { self }
    }

    /// At t.
    pub(super) fn at(&self, t: f64) -> f64 {
        let g = t.exp();
        let mut value = self.constant + self.power * t - self.inverse / g + self.explained * g / (1.0 + g);
        for (factor, scaled) in [(self.spread, g), (-self.misfit, self.share * g), (-self.tail, g / self.unit)] {
            if factor != 0.0 {
                value += factor * scaled.ln_1p();
            }
        }
        value
    }

    /// First and second derivative at t.
    fn derivatives(&self, t: f64) -> [f64; 2] {
        let g = t.exp();
        let logistic = |scaled: f64| scaled / (1.0 + scaled);
        let (shrinkage, of_inverse) = (logistic(g), self.inverse / g);
        let slope = shrinkage / (1.0 + g);
        let mut found = [
            self.power + of_inverse + self.explained * slope,
            -of_inverse + self.explained * slope * (1.0 - 2.0 * shrinkage),
        ];
        for (factor, scaled) in [(self.spread, g), (-self.misfit, self.share * g), (-self.tail, g / self.unit)] {
            found[0] += factor * logistic(scaled);
            found[1] += factor * logistic(scaled) / (1.0 + scaled);
        }
        found
    }

    /// Where it is highest, roughly.
    fn mode(&self) -> f64 {
        let (mut low, mut high) = (-FARTHEST, FARTHEST);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.derivatives(middle)[0] > 0.0 { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    /// On a grid that is dense enough for its integral, and as far as it matters.
    pub(super) fn grid(&self) -> ScaleGrid {
        let mode = self.mode();
        // Narrow around the mode, or with tails that begin within a unit or two of it.
        let step = (2.0 + (-self.derivatives(mode)[1]).max(0.0)).sqrt().recip();
        let top = self.at(mode);
        let matters = |value: &f64| *value > top - NEGLIGIBLE;
        let side =
            |step: f64| (1..MAX_PLACES).map(move |place| self.at(mode + step * place as f64)).take_while(matters);
        let mut values: Vec<f64> = side(-step).collect();
        let low = mode - step * values.len() as f64;
        values.reverse();
        values.push(top);
        values.extend(side(step));
        let mut grid = ScaleGrid { low, step, values };
        for _ in 0..MAX_DOUBLINGS {
            if self.double(&mut grid) <= TOLERANCE {
                break;
            }
        }
        grid
    }

    /// Adds the places between those of a grid; by how much sums over both differ, relative to their own sum.
    fn double(&self, grid: &mut ScaleGrid) -> f64 {
        let top = grid.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let half = 0.5 * grid.step;
        let mut values = Vec::with_capacity(2 * grid.values.len());
        let mut sums = [0.0; 2];
        for (place, &value) in grid.values.iter().enumerate() {
            let between = self.at(grid.low + grid.step * place as f64 + half);
            sums[0] += (value - top).exp();
            sums[1] += (between - top).exp();
            values.extend([value, between]);
        }
        *grid = ScaleGrid { low: grid.low, step: half, values };
        (sums[0] - sums[1]).abs() / (sums[0] + sums[1])
    }

    /// The log of the integral.
    pub(super) fn log_integral(&self) -> f64 {
        self.grid().log_integral()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{ln_gamma, log_sum_exp};

    fn fit(n: f64, slopes: f64, share: f64) -> Fit {
        Fit { n, columns: slopes + 1.0, log_determinant: 0.0, residual: 2.5 * share, total: 2.5 }
    }

    fn mixtures(rows: f64) -> [Mixture; 5] {
        [
            Mixture::Hyper { a: 3.0, unit: 1.0 },
            Mixture::Hyper { a: 2.01, unit: 1.0 },
            Mixture::Hyper { a: 3.0, unit: rows },
            Mixture::Hyper { a: 4.0, unit: rows },
            Mixture::ZellnerSiow { rows },
        ]
    }

    /// Sizes of data and of models, and shares of the response that are left over, from none but rounding to almost all.
    fn fits() -> impl Iterator<Item = Fit> {
        let sizes = [(4.0, 1.0), (13.0, 4.0), (50.0, 1.0), (50.0, 20.0), (1000.0, 3.0), (1000.0, 300.0), (1e5, 8.0)];
        let shares = [1e-12, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0];
        sizes.into_iter().flat_map(move |(n, slopes)| shares.into_iter().map(move |share| fit(n, slopes, share)))
    }

    /// `log ₂F₁(b, 1; c; z)` by its series, whose terms are all positive.
    fn log_hypergeometric(b: f64, c: f64, z: f64) -> f64 {
        let (mut sum, mut term, mut scale) = (1.0, 1.0f64, 0.0);
        for k in 0..50_000_000 {
            let k = f64::from(k);
            let ratio = (b + k) / (c + k) * z;
            term *= ratio;
            sum += term;
            if ratio < 1.0 && term < 1e-17 * sum * (1.0 - ratio) {
                break;
            }
            if sum > 1e200 {
                (sum, term, scale) = (sum * 1e-200, term * 1e-200, scale + 200.0 * std::f64::consts::LN_10);
            }
        }
        f64::ln(sum) + scale
    }

    #[test]
    fn the_hyper_g_prior_has_the_bayes_factor_of_its_closed_form() {
        // The series of perfect fits to many rows is too long.
        for fit in fits().filter(|fit| fit.n * fit.total < 1e6 * fit.residual) {
            for a in [2.01, 3.0, 4.0] {
                let (slopes, freedom) = (fit.columns - 1.0, fit.n - 1.0);
                let explained = 1.0 - fit.residual / fit.total;
                let exact = ((a - 2.0) / (slopes + a - 2.0)).ln()
                    + log_hypergeometric(0.5 * freedom, 0.5 * (slopes + a), explained);
                let found = Mixture::Hyper { a, unit: 1.0 }.of_evidence(&fit, None).log_integral();
                let bound = 1e-10 + 1e-14 * freedom;
                assert!((found - exact).abs() < bound, "n {} p {slopes} {explained} {a}: {found} {exact}", fit.n);
            }
        }
    }

    /// Sums of the function as it stands in the paper, over places a hundred times as dense as they need be.
    #[test]
    fn integrals_are_those_of_a_dense_grid() {
        let (low, step, places) = (-80.0, 0.0025, 72_000);
        for fit in fits() {
            for prior in mixtures(fit.n) {
                for sigma in [None, Some(0.2), Some(3.0)] {
                    let (slopes, freedom) = (fit.columns - 1.0, fit.n - 1.0);
                    let at = |place: usize| {
                        let t = low + step * place as f64;
                        let g = t.exp();
                        let of_g = match prior {
                            Mixture::Hyper { a, unit } => (0.5 * (a - 2.0) / unit).ln() - 0.5 * a * (g / unit).ln_1p(),
                            Mixture::ZellnerSiow { rows } => {
                                0.5 * (0.5 * rows).ln() - ln_gamma(0.5) - 1.5 * t - 0.5 * rows / g
                            }
                        };
                        let factor = match sigma {
                            None => {
                                0.5 * (freedom - slopes) * g.ln_1p()
                                    - 0.5 * freedom * (g * fit.residual / fit.total).ln_1p()
                            }
                            Some(sigma) => {
                                -0.5 * slopes * g.ln_1p()
                                    + 0.5 * g / (1.0 + g) * (fit.total - fit.residual) / (sigma * sigma)
                            }
                        };
                        factor + of_g + t
                    };
                    let values: Vec<f64> = (0..places).map(at).collect();
                    let exact = log_sum_exp(&values) + step.ln();
                    let found = prior.of_evidence(&fit, sigma).log_integral();
                    let name = format!("n {} p {slopes} {} {prior:?} {sigma:?}", fit.n, fit.residual);
                    assert!((found - exact).abs() < 1e-10 + 1e-14 * freedom, "{name}: {found} {exact}");
                }
            }
        }
    }

    #[test]
    fn few_places_are_enough() {
        for fit in fits() {
            for prior in mixtures(fit.n) {
                let places = prior.of_evidence(&fit, None).grid().values.len();
                assert!(places < 400, "n {} p {} {} {prior:?}: {places}", fit.n, fit.columns, fit.residual);
            }
        }
    }

    /// Slopes of length √Q in k dimensions have the density `Γ((k + 1)/2) / (√π (πn)^(k/2)) (1 + Q/n)^(−(k + 1)/2)`.
    #[test]
    fn zellner_and_siow_make_slopes_cauchy() {
        for (rows, slopes) in [(13.0, 1.0), (13.0, 4.0), (300.0, 2.0), (300.0, 60.0)] {
            for squares in [1e-9, 0.1, 3.0, 1e3, 1e8] {
                let (found, inverse) = Mixture::ZellnerSiow { rows }.slopes(slopes, squares);
                let half = 0.5 * (slopes + 1.0);
                let exact =
                    ln_gamma(half) - ln_gamma(0.5) - 0.5 * slopes * (0.5 * rows).ln() - half * (squares / rows).ln_1p();
                assert!((found - exact).abs() < 1e-10, "{rows} {slopes} {squares}: {found} {exact}");
                let mean = (slopes + 1.0) / (rows + squares);
                assert!((inverse / mean - 1.0).abs() < 1e-10, "{rows} {slopes} {squares}: {inverse} {mean}");
            }
        }
    }

    #[test]
    fn the_mean_of_the_inverse_is_twice_the_negative_derivative() {
        for prior in mixtures(40.0) {
            for (slopes, squares) in [(1.0, 0.3), (2.0, 1e-4), (7.0, 50.0), (30.0, 1e5)] {
                let (_, inverse) = prior.slopes(slopes, squares);
                let at = |factor: f64| prior.slopes(slopes, squares * factor).0;
                let difference = (at(1.0 + 1e-4) - at(1.0 - 1e-4)) / (2e-4 * squares);
                assert!((inverse / (-2.0 * difference) - 1.0).abs() < 1e-6, "{prior:?} {slopes} {squares}");
            }
        }
    }

    /// Laplace's approximation of the integral over g, not over its logarithm.
    fn laplace(integrand: &Integrand) -> f64 {
        let at = |g: f64| integrand.at(g.ln()) - g.ln();
        let places = (1..200_000).map(|place| 0.01 * f64::from(place));
        let g = places.fold(1.0, |best, g| if at(g) > at(best) { g } else { best });
        let step = 1e-3 * g;
        let curvature = (2.0 * at(g) - at(g + step) - at(g - step)) / (step * step);
        at(g) + 0.5 * (std::f64::consts::TAU / curvature).ln()
    }

    /// What the R package BAS prints of the five best models of the US crime data (47 rows) under the Zellner–Siow prior
    /// `ZS-null`, which is Laplace's approximation: log Bayes factors in the vignette "Using the Bayesian Adaptive Sampling
    /// (BAS) Package for Bayesian Model Averaging and Variable Selection" (M. Clyde). R² is given there with four digits, which
    /// leaves the log Bayes factor uncertain by 0.006. The integral itself is larger by a quarter of a nat.
    #[test]
    fn published_bayes_factors_of_the_us_crime_data() {
        let models = [
            (0.8420, 8.0, 23.65111),
            (0.8265, 7.0, 23.59096),
            (0.8229, 7.0, 23.20008),
            (0.8375, 8.0, 23.13100),
            (0.8046, 6.0, 23.01647),
        ];
        for (explained, slopes, published) in models {
            let integrand = Mixture::ZellnerSiow { rows: 47.0 }.of_evidence(&fit(47.0, slopes, 1.0 - explained), None);
            let (rough, found) = (laplace(&integrand), integrand.log_integral());
            assert!((rough - published).abs() < 0.008, "{explained} {slopes}: {rough} {published}");
            assert!((found - published - 0.24).abs() < 0.05, "{explained} {slopes}: {found} {published}");
        }
    }
}
