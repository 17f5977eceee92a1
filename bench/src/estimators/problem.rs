//! A union of Gaussians with known evidences.

use std::f64::consts::TAU;
use std::sync::Arc;

use anyhow::{Context, Result};
use vti::problem::Problem;
use vti::random::{Purpose, Stream};
use vti::space::{Catalogue, ModelSpace, Subsets};

use crate::scored::bare;

/// What all evidences have in common, in nats: data give likelihoods far from 1.
const LEVEL: f64 = -50.0;

/// Given a model, each active coordinate is normal around a function of the one before: a line, or a bent line. So the
/// density is normalised whatever the bend, and the evidences are what they are set to.
pub(crate) struct Gaussians {
    pub(crate) name: String,
    /// Its models alone, as a problem of their own.
    pub(crate) models: Arc<dyn Problem>,
    space: Subsets,
    pub(crate) catalogue: Catalogue,
    /// Active coordinates of every model.
    pub(crate) active: Vec<Vec<u32>>,
    log_evidence: Vec<f64>,
    bend: f64,
}

/// Correlation of neighbours.
const CORRELATION: f64 = 0.8;

impl Gaussians {
    /// Subsets of `things` coordinates after `always` others, with evidences that spread by 1.5 nats.
    pub(crate) fn new(things: usize, always: usize, bend: f64) -> Result<Self> {
        Self::with_spread(things, always, bend, 1.5)
    }

    /// The same with evidences that spread by so many nats.
    pub(crate) fn with_spread(things: usize, always: usize, bend: f64, spread: f64) -> Result<Self> {
        let space = Subsets::with_always(things, always)?;
        let catalogue = Catalogue::new(&space, 1 << 16)?;
        let mut active = Vec::with_capacity(catalogue.len());
        let (mut word, mut mask) = (vec![0; things], vec![false; space.max_dim()]);
        for index in 0..catalogue.len() {
            catalogue.word(index, &mut word)?;
            space.mark_active(&word, &mut mask);
            active.push((0..mask.len() as u32).filter(|&c| mask[c as usize]).collect());
        }
        let evidence = |m: usize| LEVEL + spread * Stream::new(3, Purpose::Other(7), 0, m as u64).normal();
        let name = format!("{} models{}", catalogue.len(), if bend == 0.0 { "" } else { ", bent" });
        Ok(Self {
            name,
            log_evidence: (0..catalogue.len()).map(evidence).collect(),
            models: bare(space.clone()),
            space,
            catalogue,
            active,
            bend,
        })
    }

    /// The models.
    pub(crate) fn space(&self) -> &Subsets {
        &self.space
    }

    /// The number of a word.
    pub(crate) fn index(&self, word: &[u16]) -> Result<usize> {
        self.catalogue.index(word).context("a word of another space")
    }

    /// `log p(y | m)`.
    pub(crate) fn log_evidence(&self, index: usize) -> f64 {
        self.log_evidence[index]
    }

    /// `log p(y)` under a uniform prior.
    pub(crate) fn log_total_evidence(&self) -> f64 {
        log_sum_exp(&self.log_evidence) - self.space().log_count()
    }

    /// `log η(θ | m)`, with its gradient.
    pub(crate) fn log_density(&self, index: usize, theta: &[f32], gradient: &mut [f32]) -> f64 {
        let noise = (1.0 - CORRELATION * CORRELATION).sqrt();
        let shift = self.active[index].len() as f64;
        let mut log_density = self.log_evidence[index];
        // The coordinate before, in standard units, and its scale.
        let mut before: Option<(f64, f64)> = None;
        for i in 0..theta.len() {
            let (mean, scale) = ((1.3 * i as f64 + 0.4 * shift).sin() * 1.5, 0.5 + 0.4 * (0.7 * i as f64).cos());
            let x = (f64::from(theta[i]) - mean) / scale;
            let (center, slope, sd) = before.map_or((0.0, 0.0, 1.0), |(b, _)| {
                (CORRELATION * b + self.bend * (b * b - 1.0), CORRELATION + 2.0 * self.bend * b, noise)
            });
            let e = (x - center) / sd;
            log_density -= 0.5 * e * e + (sd * scale).ln() + 0.5 * TAU.ln();
            gradient[i] = (-e / (sd * scale)) as f32;
            if let Some((_, scale)) = before {
                gradient[i - 1] += (e * slope / (sd * scale)) as f32;
            }
            before = Some((x, scale));
        }
        log_density
    }
}

/// `log Σ exp`.
pub(crate) fn log_sum_exp(numbers: &[f64]) -> f64 {
    let top = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + numbers.iter().map(|x| (x - top).exp()).sum::<f64>().ln()
}
