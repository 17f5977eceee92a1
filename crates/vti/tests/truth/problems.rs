//! Problems with known answers.

use std::f64::consts::TAU;

use vti::problem::{DensityError, Problem};
use vti::random::{Purpose, Stream};
use vti::space::{Catalogue, ModelSpace};

/// A union of correlated Gaussians: given a model, its parameters follow an autoregression of order 1 with correlation ρ
/// from one active coordinate to the next, with means that depend on the model; the evidences are given.
pub(crate) struct Gaussians<S> {
    space: S,
    catalogue: Catalogue,
    log_evidence: Vec<f64>,
    correlation: f64,
}

impl<S: ModelSpace> Gaussians<S> {
    /// Log evidences are random sums over symbols and pairs of symbols, as those of regressions nearly are, and a little
    /// noise.
    pub(crate) fn new(space: S, correlation: f64, spread: f64, seed: u64) -> Self {
        let catalogue = Catalogue::new(&space, 1 << 20).unwrap();
        let draw = |kind: u64, place: u64| Stream::new(seed, Purpose::Other(7), kind, place).normal();
        let log_evidence = |index: usize| {
            let word = catalogue.model(index).unwrap();
            let term = |i: usize, j: usize| {
                let place = ((i * 64 + j) as u64) << 32 | u64::from(word[i]) << 16 | u64::from(word[j]);
                draw(if i == j { 0 } else { 1 }, place) * if i == j { 1.0 } else { 0.3 }
            };
            let pairs = (0..word.len()).flat_map(|i| (0..=i).map(move |j| (i, j)));
            spread * (pairs.map(|(i, j)| term(i, j)).sum::<f64>() + 0.1 * draw(2, index as u64))
        };
        let log_evidence = (0..catalogue.len()).map(log_evidence).collect();
        Self { space, log_evidence, catalogue, correlation }
    }

    pub(crate) fn log_evidence(&self, model: &[u16]) -> f64 {
        self.log_evidence[self.catalogue.index(model).unwrap()]
    }

    /// Posterior probabilities of all models under a uniform prior, by number.
    pub(crate) fn probabilities(&self) -> Vec<f64> {
        normalise(&self.log_evidence)
    }

    /// log p(y) under a uniform prior.
    pub(crate) fn log_total_evidence(&self) -> f64 {
        log_mean_exp(&self.log_evidence)
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }
}

impl<S: ModelSpace> Problem for Gaussians<S> {
    fn space(&self) -> &dyn ModelSpace {
        &self.space
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        let ones = model.iter().filter(|&&symbol| symbol > 0).count() as f64;
        let mean = |i: usize| (1.3 * i as f64 + 0.4 * ones).sin() * 1.5;
        let scale = |i: usize| 0.5 + 0.4 * (0.7 * i as f64).cos();
        let (rho, noise) = (self.correlation, (1.0 - self.correlation * self.correlation).sqrt());
        let mut log_density = self.log_evidence(model);
        gradient.fill(0.0);
        let standard = |i: usize| (theta[i] - mean(i)) / scale(i);
        for i in 0..theta.len() {
            let (center, sd) = if i == 0 { (0.0, 1.0) } else { (rho * standard(i - 1), noise) };
            let e = (standard(i) - center) / sd;
            log_density -= 0.5 * e * e + (sd * scale(i)).ln() + 0.5 * TAU.ln();
            gradient[i] -= e / (sd * scale(i));
            if i > 0 {
                gradient[i - 1] += rho * e / (sd * scale(i - 1));
            }
        }
        Ok(log_density)
    }
}

/// Probabilities proportional to exponentials.
pub(crate) fn normalise(logs: &[f64]) -> Vec<f64> {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|l| (l - top).exp()).sum();
    logs.iter().map(|l| (l - top).exp() / total).collect()
}

pub(crate) fn log_mean_exp(logs: &[f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + (logs.iter().map(|l| (l - top).exp()).sum::<f64>() / logs.len() as f64).ln()
}
