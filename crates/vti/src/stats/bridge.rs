//! Bridge sampling: an integral from draws of a density that is known and draws of what is integrated (Meng and Wong, Statistica
//! Sinica 6, 1996).
//!
//! For a density q and a function γ = Z π, each draw is seen by ℓ = log γ/q. Of all functions h, `Z = E_q[γ h] / E_π[q h]` is quietest
//! with `h = 1/(s q + t γ/Z)`, s and t being the shares of both kinds of draws. With the logistic function σ that is
//!
//! ```text
//! s E_q[σ(ℓ + u)] = t E_π[σ(−ℓ − u)],   log Z = log(t/s) − u,
//! ```
//!
//! whose left side grows with u and whose right side falls. Both means are of numbers between 0 and 1: draws where q is far too small
//! have no large weights. Nor need q be positive wherever γ is, as weights need it: what only one of both sides has adds nothing to
//! either mean.

use super::{Estimate, logistic};

/// Fewer runs do not show how far they may be off.
const MIN_RUNS: usize = 4;

/// How far the logarithm of the integral may lie beyond what any draw says, and how precisely it is found.
const BEYOND: f64 = 50.0;
const HALVINGS: usize = 80;

/// Draws of both sides.
pub(crate) struct Bridge {
    /// The share of each stratum of q, and ℓ of its independent draws: −∞ where γ is 0.
    pub(crate) of_q: Vec<(f64, Vec<f64>)>,
    /// The weight and ℓ of the draws of each independent run, +∞ where q is 0.
    pub(crate) of_target: Vec<Vec<(f64, f64)>>,
}

impl Bridge {
    /// log Z; none without draws of q, or where fewer than four runs have any. Its error is that of both means: strata of independent
    /// draws, and runs as a whole, which are not taken to be more precise than their draws would be if these were independent.
    pub(crate) fn log_total(mut self) -> Option<Estimate> {
        self.of_q.retain(|(share, draws)| *share > 0.0 && !draws.is_empty());
        self.of_target.iter_mut().for_each(|run| run.retain(|(weight, _)| *weight > 0.0));
        self.of_target.retain(|run| !run.is_empty());
        if self.of_q.is_empty() || self.of_target.len() < MIN_RUNS {
            return None;
        }
        let finite = |all: &mut dyn Iterator<Item = f64>| {
            all.filter(|l| l.is_finite())
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), l| (low.min(l), high.max(l)))
        };
        let (low, high) = finite(&mut self.of_q.iter().flat_map(|(_, draws)| draws.iter().copied()));
        let (least, most) = finite(&mut self.of_target.iter().flatten().map(|(_, l)| *l));
        let (s, t) = (self.count_of_q(), self.count_of_target());
        let odds = (t / s).ln();
        let (mut low, mut high) = (low.min(least) - BEYOND, high.max(most) + BEYOND);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            let u = odds - middle;
            // The larger Z, the smaller u.
            if s * self.mean_of_q(u).value > t * self.mean_of_target(u).value { low = middle } else { high = middle }
        }
        let log_total = 0.5 * (low + high);
        let (q, target) = (self.mean_of_q(odds - log_total), self.mean_of_target(odds - log_total));
        let se = f64::hypot(q.se / q.value, target.se / target.value);
        Some(Estimate { value: log_total, se }).filter(|found| found.value.is_finite() && found.se.is_finite())
    }

    /// As how many draws of equal weights those of q count.
    fn count_of_q(&self) -> f64 {
        let total: f64 = self.of_q.iter().map(|(share, _)| share).sum();
        let squares: f64 = self.of_q.iter().map(|(share, draws)| share * share / draws.len() as f64).sum();
        total * total / squares
    }

    fn count_of_target(&self) -> f64 {
        let sums =
            self.of_target.iter().flatten().fold((0.0, 0.0), |(w, ww), (weight, _)| (w + weight, ww + weight * weight));
        sums.0 * sums.0 / sums.1
    }

    /// `E_q[σ(ℓ + u)]`.
    fn mean_of_q(&self, u: f64) -> Estimate {
        let total: f64 = self.of_q.iter().map(|(share, _)| share).sum();
        let (mut value, mut variance) = (0.0, 0.0);
        for (share, draws) in &self.of_q {
            let (share, count) = (share / total, draws.len() as f64);
            let terms = || draws.iter().map(|l| logistic(l + u));
            let mean = terms().sum::<f64>() / count;
            // One draw shows no spread.
            let squares = if count > 1.0 {
                terms().map(|term| (term - mean).powi(2)).sum::<f64>() / (count - 1.0)
            } else {
                mean * mean
            };
            value += share * mean;
            variance += share * share * squares / count;
        }
        Estimate { value, se: variance.sqrt() }
    }

    /// `E_π[σ(−ℓ − u)]`.
    fn mean_of_target(&self, u: f64) -> Estimate {
        let total: f64 = self.of_target.iter().flatten().map(|(weight, _)| weight).sum();
        let mean_of = |run: &[(f64, f64)]| run.iter().map(|(weight, l)| weight * logistic(-l - u)).sum::<f64>();
        let value = self.of_target.iter().map(|run| mean_of(run)).sum::<f64>() / total;
        let (mut of_runs, mut of_draws) = (0.0, 0.0);
        for run in &self.of_target {
            let offs = || run.iter().map(|(weight, l)| weight * (logistic(-l - u) - value));
            of_runs += offs().sum::<f64>().powi(2);
            of_draws += offs().map(|off| off * off).sum::<f64>();
        }
        let runs = self.of_target.len() as f64;
        // n/(n − 1) for the spread of n runs, and (n − 1)/(n − 3) because so few follow Student's t.
        let variance = (of_runs * runs / (runs - 3.0)).max(of_draws);
        Estimate { value, se: variance.sqrt() / total }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    /// log γ/q of x, where γ is e³ times a mixture of two normal densities, and q the standard normal one.
    fn log_ratio(x: f64, far: f64) -> f64 {
        let normal = |x: f64| -0.5 * x * x - 0.5 * std::f64::consts::TAU.ln();
        let (a, b) = (normal(x - 0.5) + 0.7f64.ln(), normal(x - far) + 0.3f64.ln());
        3.0 + a.max(b) + (-(a - b).abs()).exp().ln_1p() - normal(x)
    }

    /// Draws of both sides, those of q in two strata and those of γ in eight runs.
    fn bridge(seed: u64, far: f64) -> Bridge {
        let mut stream = Stream::new(seed, Purpose::Other(3), 0, 0);
        let mut q = |count: usize| (0..count).map(|_| log_ratio(stream.normal(), far)).collect::<Vec<f64>>();
        let of_q = vec![(0.25, q(500)), (0.75, q(1500))];
        let mut target = |_| {
            let centre = if stream.uniform() < 0.7 { 0.5 } else { far };
            (1.0, log_ratio(centre + stream.normal(), far))
        };
        let of_target = (0..8).map(|_| (0..250).map(&mut target).collect()).collect();
        Bridge { of_q, of_target }
    }

    /// Errors are stated as they are, with a second mode that q has, hardly has, and has not: weights of q would need e^(6²) draws there.
    #[test]
    fn integrals_are_within_their_errors() {
        for far in [1.0, 3.0, 9.0] {
            let found: Vec<Estimate> = (1..=40).map(|seed| bridge(seed, far).log_total().unwrap()).collect();
            let mean = found.iter().map(|one| one.value - 3.0).sum::<f64>() / 40.0;
            let spread = (found.iter().map(|one| (one.value - 3.0).powi(2)).sum::<f64>() / 40.0).sqrt();
            let se = (found.iter().map(|one| one.se * one.se).sum::<f64>() / 40.0).sqrt();
            assert!(se < 0.04 && (0.6..1.25).contains(&(spread / se)), "{far}: {spread}, said {se}");
            assert!(mean.abs() < 4.0 * se / 40f64.sqrt(), "{far}: {mean} ± {se} / √40");
        }
    }

    /// Where q is π, a draw of each says all.
    #[test]
    fn equal_densities_leave_no_error() {
        let bridge = Bridge { of_q: vec![(1.0, vec![-2.5])], of_target: vec![vec![(0.3, -2.5)]; 4] };
        let found = bridge.log_total().unwrap();
        assert!((found.value + 2.5).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn impossible_draws_count() {
        // Half of q lies where γ is 0.
        let of_q = vec![(1.0, [vec![0.0; 500], vec![f64::NEG_INFINITY; 500]].concat())];
        let bridge = Bridge { of_q, of_target: vec![vec![(1.0, 0.0); 100]; 5] };
        let found = bridge.log_total().unwrap();
        assert!((found.value - 0.5f64.ln()).abs() < 1e-9 && (0.01..0.1).contains(&found.se), "{found:?}");
    }

    #[test]
    fn too_few_runs_say_nothing() {
        let of_q = || vec![(1.0, vec![0.0; 10])];
        let of_target = |runs: usize| (0..6).map(|run| vec![(f64::from(u8::from(run < runs)), 0.0)]).collect();
        assert!(Bridge { of_q: of_q(), of_target: of_target(3) }.log_total().is_none());
        assert!(Bridge { of_q: of_q(), of_target: of_target(4) }.log_total().is_some());
        assert!(Bridge { of_q: Vec::new(), of_target: of_target(6) }.log_total().is_none());
    }
}
