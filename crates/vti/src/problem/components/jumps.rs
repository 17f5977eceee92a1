//! Birth and death, split and merge of components.
//!
//! Blocks are seen by their standard scores z = Φ⁻¹(F(θ)), which are standard normal under the prior. A component is born from the prior
//! or near one that another particle has, and any dies; one splits into two at z ± ε, and two neighbours in order merge into their
//! mean. Shares make room: a new one takes s ~ Beta(1, k) of all, and those that split share theirs.

use super::bijection::known;
use crate::prior::{Distribution, Prior};
use crate::problem::{BlockPool, Jump, Jumps};
use crate::random::Stream;
use crate::space::{BlockParameter, ComponentKind, Components, Law};
use crate::stats::{normal_cdf, normal_log_density, normal_quantile};

/// How often a jump is a split or a merge rather than a birth or a death.
pub(super) const SPLIT_SHARE: f64 = 0.3;

/// Standard deviations of what a split puts between two components, one chosen for each jump.
pub(super) const SPLIT_WIDTHS: [f64; 3] = [0.05, 0.3, 1.0];

/// Births are from the prior with this probability, otherwise near a block of the pool, at one of these distances.
const FROM_PRIOR: f64 = 0.25;
const NEAR: [f64; 3] = [0.01, 0.06, 0.3];

/// The logarithm of what is nothing beside 1.
const LEAST: f64 = -40.0;

/// The law of one parameter as a distribution of its own: where it lies if it is alone.
pub(super) enum Alone<'a> {
    Prior(&'a Prior),
    Uniform { low: f64, high: f64 },
}

impl Alone<'_> {
    /// None for a share, and for what is known.
    pub(super) fn of(law: &Law) -> Option<Alone<'_>> {
        match law {
            Law::Independent(prior) | Law::Ordered(prior) => Some(Alone::Prior(prior)),
            &Law::Spaced { low, high, .. } => Some(Alone::Uniform { low, high }),
            Law::Shares(_) | Law::Known(_) => None,
        }
    }

    pub(super) fn value(&self, z: f64) -> f64 {
        match self {
            Self::Prior(prior) => prior.from_normal(z),
            Self::Uniform { low, high } => low + (high - low) * normal_cdf(z),
        }
    }

    pub(super) fn score(&self, value: f64) -> f64 {
        match self {
            Self::Prior(prior) => prior.to_normal(value),
            Self::Uniform { low, high } => normal_quantile((value - low) / (high - low)),
        }
    }

    /// log dθ/dz.
    fn log_slope(&self, z: f64, value: f64) -> f64 {
        let log_density = match self {
            Self::Prior(prior) => prior.log_density(value),
            Self::Uniform { low, high } => -(high - low).ln(),
        };
        normal_log_density(z) - log_density
    }
}

/// The standard scores of a block, without its share.
fn scores(kind: &ComponentKind, block: &[f64]) -> Vec<f64> {
    let score = |(parameter, value): (&BlockParameter, &f64)| Alone::of(&parameter.law).map(|law| law.score(*value));
    kind.parameters.iter().zip(block).filter_map(score).collect()
}

/// A block from standard scores and a share, as if it were the first, and log |∂θ/∂z|.
fn from_scores(kind: &ComponentKind, z: &[f64], share: f64) -> (Vec<f64>, f64) {
    let (mut next, mut log_slope) = (z.iter(), 0.0);
    let value = |parameter: &BlockParameter| match (Alone::of(&parameter.law), &parameter.law) {
        (None, Law::Known(values)) => known(values, 0),
        (None, _) => share,
        (Some(law), _) => {
            let z = next.next().copied().unwrap_or(f64::NAN);
            let value = law.value(z);
            log_slope += law.log_slope(z, value);
            value
        }
    };
    let block = kind.parameters.iter().map(value).collect();
    (block, log_slope)
}

/// Where new components come from.
pub(super) struct Births<'a> {
    pub(super) pool: &'a [Vec<f64>],
    pub(super) dim: usize,
}

impl Births<'_> {
    pub(super) fn draw(&self, stream: &mut Stream) -> Vec<f64> {
        let normal = |stream: &mut Stream| (0..self.dim).map(|_| stream.normal()).collect::<Vec<f64>>();
        if self.pool.is_empty() || stream.uniform() < FROM_PRIOR {
            return normal(stream);
        }
        let near = &self.pool[stream.below(self.pool.len() as u64) as usize];
        let width = NEAR[stream.below(NEAR.len() as u64) as usize];
        near.iter().map(|z| z + width * stream.normal()).collect()
    }

    /// The log density of standard scores.
    pub(super) fn log_density(&self, z: &[f64]) -> f64 {
        let prior: f64 = z.iter().map(|&z| normal_log_density(z)).sum();
        if self.pool.is_empty() {
            return prior;
        }
        let own = prior + FROM_PRIOR.ln();
        let count = (self.pool.len() * NEAR.len()) as f64;
        let dim = self.dim as f64;
        let constant = (1.0 - FROM_PRIOR).ln() - count.ln() - 0.5 * dim * std::f64::consts::TAU.ln() - own;
        let logs = NEAR.map(|width| constant - dim * width.ln());
        let halves = NEAR.map(|width| -0.5 / (width * width));
        let squares = |near: &Vec<f64>| z.iter().zip(near).map(|(z, near)| (z - near).powi(2)).sum::<f64>();
        let nearest = self.pool.iter().map(squares).fold(f64::INFINITY, f64::min);
        let top = logs.iter().zip(&halves).map(|(log, half)| log + half * nearest).fold(0.0, f64::max);
        // In units of the largest; what is too small beside it to change its digits is not summed.
        let mut sum = (-top).exp();
        for near in self.pool {
            let squares = squares(near);
            let terms = logs.iter().zip(&halves).map(|(log, half)| log + half * squares - top);
            sum += terms.filter(|term| *term > LEAST).map(f64::exp).sum::<f64>();
        }
        own + top + sum.ln()
    }
}

/// The log density of what a split draws, and its Jacobian, from the scores of both parts.
pub(super) fn log_split(width: f64, key: usize, low: &[f64], high: &[f64]) -> f64 {
    let of_score = |(place, (low, high)): (usize, (&f64, &f64))| {
        // Half normal for the key, which is split in order; each pair (z, ε) ↦ z ± ε doubles the volume.
        let fold = if place == key { 2f64.ln() } else { 0.0 };
        2f64.ln() - (normal_log_density(0.5 * (high - low) / width) - width.ln() + fold)
    };
    low.iter().zip(high).enumerate().map(of_score).sum()
}

/// The blocks of one kind, on their way to another number.
struct Jumping<'a> {
    kind: &'a ComponentKind,
    blocks: Vec<Vec<f64>>,
}

impl Jumping<'_> {
    /// Puts a block where its key belongs; the last place where blocks have labels.
    fn insert(&mut self, block: Vec<f64>) -> usize {
        let place = match self.kind.key() {
            Some(key) => self.blocks.partition_point(|other| other[key] <= block[key]),
            None => self.blocks.len(),
        };
        self.blocks.insert(place, block);
        place
    }

    /// Multiplies all shares.
    fn scale_shares(&mut self, factor: f64) {
        if let Some(share) = self.kind.share() {
            self.blocks.iter_mut().for_each(|block| block[share] *= factor);
        }
    }

    /// log of how probable a death is that takes just this block of so many.
    fn log_death(&self, count: usize) -> f64 {
        if self.kind.key().is_some() { -(count as f64).ln() } else { 0.0 }
    }

    fn birth(&mut self, births: &Births<'_>, stream: &mut Stream) -> f64 {
        let count = self.blocks.len();
        let z = births.draw(stream);
        // s ~ Beta(1, k), and the others shrink: (1 − s)^(k − 1) is the Jacobian, and k (1 − s)^(k − 1) the density.
        let has_share = self.kind.share().is_some() && count > 0;
        let share = if has_share { 1.0 - stream.uniform().powf(1.0 / count as f64) } else { 1.0 };
        let log_share = if has_share { -(count as f64).ln() } else { 0.0 };
        let (block, log_slope) = from_scores(self.kind, &z, share);
        if has_share {
            self.scale_shares(1.0 - share);
        }
        self.insert(block);
        self.log_death(count + 1) - births.log_density(&z) + log_slope + log_share
    }

    fn death(&mut self, births: &Births<'_>, stream: &mut Stream) -> f64 {
        let count = self.blocks.len();
        let place = match self.kind.key() {
            Some(_) => stream.below(count as u64) as usize,
            None => count - 1,
        };
        let block = self.blocks.remove(place);
        let z = scores(self.kind, &block);
        let (_, log_slope) = from_scores(self.kind, &z, 1.0);
        let mut log_share = 0.0;
        if let Some(share) = self.kind.share().filter(|_| count > 1) {
            self.scale_shares(1.0 / (1.0 - block[share]));
            log_share = -((count - 1) as f64).ln();
        }
        births.log_density(&z) - self.log_death(count) - log_slope - log_share
    }

    fn split(&mut self, width: f64, stream: &mut Stream) -> Option<f64> {
        let key = self.kind.key()?;
        let count = self.blocks.len();
        let place = stream.below(count as u64) as usize;
        let block = self.blocks.remove(place);
        let (z, score_key) = (scores(self.kind, &block), self.kind.score_place(key));
        let halves: Vec<f64> = (0..z.len())
            .map(|at| {
                let half = width * stream.normal();
                if at == score_key { half.abs() } else { half }
            })
            .collect();
        let low: Vec<f64> = z.iter().zip(&halves).map(|(z, half)| z - half).collect();
        let high: Vec<f64> = z.iter().zip(&halves).map(|(z, half)| z + half).collect();
        let (share, part) = (self.kind.share().map_or(1.0, |share| block[share]), stream.uniform());
        let (first, slope_low) = from_scores(self.kind, &low, share * part);
        let (second, slope_high) = from_scores(self.kind, &high, share * (1.0 - part));
        let (_, slope) = from_scores(self.kind, &z, share);
        // Neighbours must stay neighbours, or a merge would never lead back.
        let is_between = |other: &Vec<f64>| other[key] >= first[key] && other[key] <= second[key];
        if self.blocks.iter().any(is_between) {
            return None;
        }
        self.insert(first);
        self.insert(second);
        let log_share = if self.kind.share().is_some() { share.ln() } else { 0.0 };
        // One of k was chosen, and one of k pairs of neighbours leads back.
        Some(log_split(width, score_key, &low, &high) + slope_low + slope_high - slope + log_share)
    }

    fn merge(&mut self, width: f64, stream: &mut Stream) -> Option<f64> {
        let key = self.kind.key()?;
        let count = self.blocks.len();
        let place = stream.below((count - 1) as u64) as usize;
        let second = self.blocks.remove(place + 1);
        let first = self.blocks.remove(place);
        let (low, high) = (scores(self.kind, &first), scores(self.kind, &second));
        let z: Vec<f64> = low.iter().zip(&high).map(|(low, high)| 0.5 * (low + high)).collect();
        let share = self.kind.share().map_or(1.0, |share| first[share] + second[share]);
        let (block, slope) = from_scores(self.kind, &z, share);
        let (_, slope_low) = from_scores(self.kind, &low, 1.0);
        let (_, slope_high) = from_scores(self.kind, &high, 1.0);
        self.insert(block);
        let log_share = if self.kind.share().is_some() { share.ln() } else { 0.0 };
        let split = log_split(width, self.kind.score_place(key), &low, &high);
        Some(-(split + slope_low + slope_high - slope + log_share))
    }

    /// What is known of each block by its label.
    fn know(&mut self) {
        for (place, parameter) in self.kind.parameters.iter().enumerate() {
            if let Law::Known(values) = &parameter.law {
                self.blocks.iter_mut().enumerate().for_each(|(number, block)| block[place] = known(values, number));
            }
        }
    }
}

impl Jumps for Components {
    fn propose(
        &self,
        word: &mut [u16],
        theta: &mut Vec<f64>,
        pool: &BlockPool,
        stream: &mut Stream,
    ) -> Option<(Jump, f64)> {
        let choices: Vec<usize> = (0..self.kinds().len())
            .filter(|&kind| self.kinds()[kind].counts.end() > self.kinds()[kind].counts.start())
            .collect();
        let number = *choices.get(stream.below(choices.len().max(1) as u64) as usize)?;
        let (is_up, is_split) = (stream.below(2) == 0, stream.uniform() < SPLIT_SHARE);
        let width = SPLIT_WIDTHS[stream.below(SPLIT_WIDTHS.len() as u64) as usize];
        let kind = &self.kinds()[number];
        let count = self.count(number, word);
        let is_possible = match (is_up, is_split) {
            (true, false) => count < *kind.counts.end(),
            (true, true) => count < *kind.counts.end() && count > 0,
            (false, false) => count > *kind.counts.start(),
            (false, true) => count > *kind.counts.start() && count > 1,
        };
        if !is_possible {
            return None;
        }
        let start = self.globals().len()
            + (0..number).map(|before| self.count(before, word) * self.kinds()[before].width()).sum::<usize>();
        let end = start + count * kind.width();
        let blocks = theta[start..end].chunks_exact(kind.width()).map(<[f64]>::to_vec).collect();
        let mut jumping = Jumping { kind, blocks };
        let births = Births { pool: pool.kinds.get(number).map_or(&[], Vec::as_slice), dim: kind.score_width() };
        let (jump, log_ratio) = match (is_up, is_split) {
            (true, false) => (Jump::Birth, jumping.birth(&births, stream)),
            (false, false) => (Jump::Death, jumping.death(&births, stream)),
            (true, true) => (Jump::Split, jumping.split(width, stream)?),
            (false, true) => (Jump::Merge, jumping.merge(width, stream)?),
        };
        jumping.know();
        theta.splice(start..end, jumping.blocks.into_iter().flatten());
        word[number] = if is_up { word[number] + 1 } else { word[number] - 1 };
        Some((jump, log_ratio))
    }

    fn collect(&self, word: &[u16], theta: &[f64], pool: &mut BlockPool) {
        pool.kinds.resize(self.kinds().len(), Vec::new());
        let mut rest = &theta[self.globals().len().min(theta.len())..];
        for (number, kind) in self.kinds().iter().enumerate() {
            let (own, after) = rest.split_at((self.count(number, word) * kind.width()).min(rest.len()));
            rest = after;
            let finite = own.chunks_exact(kind.width()).map(|block| scores(kind, block));
            pool.kinds[number].extend(finite.filter(|scores| scores.iter().all(|z| z.is_finite())));
        }
    }
}
