//! Problems with known answers.

use std::f64::consts::{PI, TAU};

use vti::problem::{DensityError, Problem};
use vti::random::{Purpose, Stream};
use vti::space::{Catalogue, ModelSpace};

/// A union of correlated Gaussians: given a model, its parameters follow an autoregression of order 1 with correlation ρ
/// from one active coordinate to the next, with means that depend on the model; the evidences are given.
pub struct Gaussians<S> {
    space: S,
    catalogue: Catalogue,
    log_evidence: Vec<f64>,
    correlation: f64,
}

impl<S: ModelSpace> Gaussians<S> {
    /// Evidences spread by `spread` nats.
    pub fn new(space: S, correlation: f64, spread: f64, seed: u64) -> Self {
        let catalogue = Catalogue::new(&space, 1 << 20).unwrap();
        let log_evidence =
            (0..catalogue.len()).map(|m| spread * Stream::new(seed, Purpose::Other(7), 0, m as u64).normal()).collect();
        Self { space, catalogue, log_evidence, correlation }
    }

    pub fn log_evidence(&self, model: &[u16]) -> f64 {
        self.log_evidence[self.catalogue.index(model).unwrap()]
    }

    /// Posterior probabilities of all models under a uniform prior, by number.
    pub fn probabilities(&self) -> Vec<f64> {
        let top = self.log_evidence.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = self.log_evidence.iter().map(|l| (l - top).exp()).sum();
        self.log_evidence.iter().map(|l| (l - top).exp() / total).collect()
    }

    /// log p(y) under a uniform prior.
    pub fn log_total_evidence(&self) -> f64 {
        let top = self.log_evidence.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = self.log_evidence.iter().map(|l| (l - top).exp()).sum::<f64>() / self.log_evidence.len() as f64;
        top + mean.ln()
    }

    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }
}

impl<S: ModelSpace> Problem for Gaussians<S> {
    type Space = S;

    fn space(&self) -> &S {
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
