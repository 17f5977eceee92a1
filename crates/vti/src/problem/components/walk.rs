//! Moves of particles that change one component at a time.
//!
//! A likelihood often sees each component through numbers of its own: its density at every observation, its profile at every place.
//! While one component changes, those of the others stay, so that with k of them a proposal costs about a k-th of a look at the whole
//! density. Blocks are seen by their standard scores, in which the prior of blocks in any order is N(0, I), with k! for their order.

use super::bijection::known;
use super::jumps::{Alone, Births, SPLIT_SHARE, SPLIT_WIDTHS, log_split};
use super::{ComponentLikelihood, ComponentProblem};
use crate::prior::Distribution;
use crate::problem::{BlockPool, MoveSettings, Moved, Moves};
use crate::random::Stream;
use crate::space::{ComponentKind, Components, Law};
use crate::stats::ln_gamma;

/// A likelihood of components of one kind that sees each of them through numbers of its own.
pub trait ByParts: Send + Sync {
    /// How many numbers a component has.
    fn part_len(&self) -> usize;

    /// The numbers of a component with these parameters, beside those that all models have.
    fn part(&self, globals: &[f64], block: &[f64], to: &mut [f64]);

    /// Whether they depend on the parameters that all models have.
    fn is_global(&self) -> bool;

    /// `log p(y | θ, m)` from all parameters and the numbers of each component, one after another.
    fn whole(&self, theta: &[f64], parts: &[f64]) -> f64;
}

/// Steps have a standard deviation that is a power of ten between these: which one suits is not known beforehand.
const LOG_WIDTHS: (f64, f64) = (-2.3, 0.3);

fn width(stream: &mut Stream) -> f64 {
    10f64.powf(LOG_WIDTHS.0 + (LOG_WIDTHS.1 - LOG_WIDTHS.0) * stream.uniform())
}

/// A particle on its way.
struct Walker<'a> {
    space: &'a Components,
    kind: &'a ComponentKind,
    likelihood: &'a dyn ByParts,
    /// Of each parameter of a block; none of the share and of what is known.
    laws: Vec<Option<Alone<'a>>>,
    /// The concentration of shares.
    concentration: f64,
    beta: f64,
    /// Standard scores of what all models have, and of blocks; natural parameters of both; and the numbers of each block.
    globals: Vec<f64>,
    scores: Vec<f64>,
    theta: Vec<f64>,
    parts: Vec<f64>,
    log_likelihood: f64,
    looks: usize,
    /// What was there before a proposal.
    before: Before,
}

#[derive(Default)]
struct Before {
    scores: Vec<f64>,
    theta: Vec<f64>,
    parts: Vec<f64>,
}

impl<'a> Walker<'a> {
    fn new(space: &'a Components, likelihood: &'a dyn ByParts, theta: &[f64], beta: f64) -> Self {
        let kind = &space.kinds()[0];
        let laws: Vec<Option<Alone<'a>>> = kind.parameters.iter().map(|parameter| Alone::of(&parameter.law)).collect();
        let concentration = kind.share().map_or(1.0, |share| match kind.parameters[share].law {
            Law::Shares(concentration) => concentration,
            _ => 1.0,
        });
        let (globals, blocks) = theta.split_at(space.globals().len());
        let globals = space.globals().iter().zip(globals).map(|((_, prior), value)| prior.to_normal(*value)).collect();
        let score = |block: &'_ [f64]| -> Vec<f64> {
            laws.iter().zip(block).filter_map(|(law, value)| Some(law.as_ref()?.score(*value))).collect()
        };
        let scores = blocks.chunks_exact(kind.width()).flat_map(score).collect();
        let mut walker = Self {
            space,
            kind,
            likelihood,
            laws,
            concentration,
            beta,
            globals,
            scores,
            theta: theta.to_vec(),
            parts: Vec::new(),
            log_likelihood: f64::NAN,
            looks: 0,
            before: Before::default(),
        };
        walker.parts.resize(walker.count() * likelihood.part_len(), 0.0);
        (0..walker.count()).for_each(|block| walker.find_part(block));
        walker.log_likelihood = walker.look();
        walker
    }

    /// Scores of a block.
    fn dim(&self) -> usize {
        self.kind.score_width()
    }

    fn count(&self) -> usize {
        (self.theta.len() - self.globals.len()) / self.kind.width()
    }

    /// Where the natural parameters of a block begin.
    fn start(&self, block: usize) -> usize {
        self.globals.len() + block * self.kind.width()
    }

    fn share(&mut self, block: usize) -> Option<&mut f64> {
        let place = self.start(block) + self.kind.share()?;
        Some(&mut self.theta[place])
    }

    fn look(&mut self) -> f64 {
        self.looks += 1;
        self.likelihood.whole(&self.theta, &self.parts)
    }

    fn find_part(&mut self, block: usize) {
        let (globals, blocks) = self.theta.split_at(self.globals.len());
        let (width, len) = (self.kind.width(), self.likelihood.part_len());
        self.likelihood.part(globals, &blocks[block * width..][..width], &mut self.parts[block * len..][..len]);
    }

    /// Natural parameters of a block from its scores; its share stays.
    fn find_block(&mut self, block: usize) {
        let (dim, start) = (self.dim(), self.start(block));
        let mut scores = self.scores[block * dim..][..dim].iter();
        for (value, law) in self.theta[start..].iter_mut().zip(&self.laws) {
            if let (Some(law), Some(z)) = (law, law.as_ref().and_then(|_| scores.next())) {
                *value = law.value(*z);
            }
        }
    }

    /// Accepts or refuses what is there now, beside what was.
    fn is_accepted(&mut self, log_ratio: f64, stream: &mut Stream) -> bool {
        let found = self.look();
        let is_accepted = stream.uniform().ln() < self.beta * (found - self.log_likelihood) + log_ratio;
        if is_accepted {
            self.log_likelihood = found;
        }
        is_accepted
    }

    /// A step of one or of all parameters of a block.
    fn step_block(&mut self, block: usize, stream: &mut Stream) {
        let (dim, width, len) = (self.dim(), self.kind.width(), self.likelihood.part_len());
        let (scores, start, parts) =
            (block * dim..(block + 1) * dim, self.start(block), block * len..(block + 1) * len);
        copy(&mut self.before.scores, &self.scores[scores.clone()]);
        copy(&mut self.before.theta, &self.theta[start..start + width]);
        copy(&mut self.before.parts, &self.parts[parts.clone()]);
        let far = self::width(stream);
        let log_ratio = step(&mut self.scores[scores.clone()], far, stream);
        self.find_block(block);
        self.find_part(block);
        if !self.is_accepted(log_ratio, stream) {
            self.scores[scores].copy_from_slice(&self.before.scores);
            self.theta[start..start + width].copy_from_slice(&self.before.theta);
            self.parts[parts].copy_from_slice(&self.before.parts);
        }
    }

    /// A step of what all models have.
    fn step_globals(&mut self, stream: &mut Stream) {
        let count = self.globals.len();
        copy(&mut self.before.scores, &self.globals);
        copy(&mut self.before.theta, &self.theta[..count]);
        let far = width(stream);
        let log_ratio = step(&mut self.globals, far, stream);
        let values = self.theta.iter_mut().zip(&self.globals).zip(self.space.globals());
        values.for_each(|((value, z), (_, prior))| *value = prior.from_normal(*z));
        let is_global = self.likelihood.is_global();
        if is_global {
            copy(&mut self.before.parts, &self.parts);
            (0..self.count()).for_each(|block| self.find_part(block));
        }
        if !self.is_accepted(log_ratio, stream) {
            self.globals.copy_from_slice(&self.before.scores);
            self.theta[..count].copy_from_slice(&self.before.theta);
            if is_global {
                self.parts.copy_from_slice(&self.before.parts);
            }
        }
    }

    /// Two components share anew what they have together: with x the part of the first, logit x takes a step.
    fn step_shares(&mut self, block: usize, stream: &mut Stream) {
        let count = self.count() as u64;
        if count < 2 {
            return;
        }
        let other = (block + 1 + stream.below(count - 1) as usize) % count as usize;
        let step = width(stream) * stream.normal();
        let (Some(one), Some(two)) = (self.share(block).copied(), self.share(other).copied()) else { return };
        let (total, odds) = (one + two, one / two * step.exp());
        let (next, rest) = (total * (odds / (1.0 + odds)), total / (1.0 + odds));
        // The density of logit x under a beta density is in proportion to (x (1 − x))^a.
        let log_ratio = self.concentration * ((next / one).ln() + (rest / two).ln());
        self.set_shares([(block, next), (other, rest)]);
        if !self.is_accepted(log_ratio, stream) {
            self.set_shares([(block, one), (other, two)]);
        }
    }

    fn set_shares(&mut self, shares: [(usize, f64); 2]) {
        for (block, value) in shares {
            if let Some(share) = self.share(block) {
                *share = value;
            }
        }
    }

    /// Another number of components; `log_models` has the logarithms of their prior by symbol, times β.
    fn jump(&mut self, births: &Births<'_>, log_models: &dyn Fn(usize) -> f64, stream: &mut Stream) {
        let (is_up, is_split) = (stream.below(2) == 0, stream.uniform() < SPLIT_SHARE);
        let count = self.count();
        let next = if is_up { count + 1 } else { count.wrapping_sub(1) };
        // The other way there must be a jump of the same kind.
        let least = if is_split { 1 } else { 0 };
        if !self.kind.counts.contains(&next) || count.min(next) < least {
            return;
        }
        copy(&mut self.before.scores, &self.scores);
        copy(&mut self.before.theta, &self.theta);
        copy(&mut self.before.parts, &self.parts);
        let log_prior = log_models(next) - log_models(count);
        let proposed = match (is_up, is_split) {
            (true, false) => Some(self.birth(births, stream)),
            (false, false) => Some(-self.death(births, stream)),
            (true, true) => self.split(stream),
            (false, true) => Some(-self.merge(stream)),
        };
        if !proposed.is_some_and(|log_ratio| self.is_accepted(log_prior + log_ratio, stream)) {
            std::mem::swap(&mut self.scores, &mut self.before.scores);
            std::mem::swap(&mut self.theta, &mut self.before.theta);
            std::mem::swap(&mut self.parts, &mut self.before.parts);
        }
    }

    /// A component comes, as the last one; the log ratio. k! of the prior and the choice of one for a death cancel each other.
    fn birth(&mut self, births: &Births<'_>, stream: &mut Stream) -> f64 {
        let (count, z) = (self.count(), births.draw(stream));
        let share = if count > 0 { 1.0 - stream.uniform().powf(1.0 / count as f64) } else { 1.0 };
        self.scale_shares(1.0 - share);
        self.push(&z, share);
        squares(&z) - births.log_density(&z) + self.log_shares(count, share)
    }

    /// One goes; minus the log ratio.
    fn death(&mut self, births: &Births<'_>, stream: &mut Stream) -> f64 {
        let count = self.count() - 1;
        let block = stream.below(count as u64 + 1) as usize;
        let share = self.share(block).map_or(1.0, |share| *share);
        let z = self.remove(block);
        // By their sum rather than by 1 − s: errors of rounding would otherwise grow from one death to the next.
        let rest: f64 = (0..count).filter_map(|other| self.share(other).copied()).sum();
        self.scale_shares(1.0 / rest);
        squares(&z) - births.log_density(&z) + self.log_shares(count, share)
    }

    /// What shares say of a birth beside so many components: with s ~ Beta(1, k) the Jacobian is that of its density but for k.
    fn log_shares(&self, count: usize, share: f64) -> f64 {
        if self.kind.share().is_none() || count == 0 {
            return 0.0;
        }
        let k = count as f64;
        self.log_dirichlet(count) + (self.concentration - 1.0) * (share.ln() + k * (-share).ln_1p()) - k.ln()
    }

    /// How the constant of the Dirichlet density grows from k to k + 1 shares.
    fn log_dirichlet(&self, count: usize) -> f64 {
        let (a, k) = (self.concentration, count as f64);
        ln_gamma((k + 1.0) * a) - ln_gamma(k * a) - ln_gamma(a)
    }

    /// One becomes two at its scores ± ε; the log ratio. One of k is chosen, and one of k pairs of neighbours leads back.
    fn split(&mut self, stream: &mut Stream) -> Option<f64> {
        let count = self.count();
        let (key, far) = (self.key(), SPLIT_WIDTHS[stream.below(SPLIT_WIDTHS.len() as u64) as usize]);
        let block = stream.below(count as u64) as usize;
        let (share, part) = (self.share(block).map_or(1.0, |share| *share), stream.uniform());
        let z = self.remove(block);
        let mut halves: Vec<f64> = z.iter().map(|_| far * stream.normal()).collect();
        halves[key] = halves[key].abs();
        let low: Vec<f64> = z.iter().zip(&halves).map(|(z, half)| z - half).collect();
        let high: Vec<f64> = z.iter().zip(&halves).map(|(z, half)| z + half).collect();
        // Neighbours must stay neighbours, or a merge would never lead back.
        let dim = self.dim();
        if self.scores.chunks_exact(dim).any(|other| other[key] >= low[key] && other[key] <= high[key]) {
            return None;
        }
        self.push(&low, share * part);
        self.push(&high, share * (1.0 - part));
        Some(self.log_split(count, (far, key), (&z, &low, &high), (share, part)))
    }

    /// Two neighbours become one; minus the log ratio.
    fn merge(&mut self, stream: &mut Stream) -> f64 {
        let count = self.count() - 1;
        let (key, far) = (self.key(), SPLIT_WIDTHS[stream.below(SPLIT_WIDTHS.len() as u64) as usize]);
        let dim = self.dim();
        let mut order: Vec<usize> = (0..=count).collect();
        order.sort_by(|&a, &b| self.scores[a * dim + key].total_cmp(&self.scores[b * dim + key]));
        let place = stream.below(count as u64) as usize;
        let (first, second) = (order[place], order[place + 1]);
        let share_of = |walker: &mut Self, block: usize| walker.share(block).map_or(1.0, |share| *share);
        let (one, two) = (share_of(self, first), share_of(self, second));
        // The later one first, so that the place of the other stays.
        let (mut low, mut high) = (self.remove(first.max(second)), self.remove(first.min(second)));
        if first < second {
            std::mem::swap(&mut low, &mut high);
        }
        let z: Vec<f64> = low.iter().zip(&high).map(|(low, high)| 0.5 * (low + high)).collect();
        self.push(&z, one + two);
        self.log_split(count, (far, key), (&z, &low, &high), (one + two, one / (one + two)))
    }

    /// What a split of one of so many adds, beside the likelihood and the prior of models.
    fn log_split(
        &self,
        count: usize,
        (far, key): (f64, usize),
        (z, low, high): (&[f64], &[f64], &[f64]),
        (share, part): (f64, f64),
    ) -> f64 {
        let log_order = (count as f64 + 1.0).ln();
        let log_shares = if self.kind.share().is_some() {
            let each = share.ln() + part.ln() + (-part).ln_1p();
            self.log_dirichlet(count) + (self.concentration - 1.0) * each + share.ln()
        } else {
            0.0
        };
        squares(low) + squares(high) - squares(z) + log_order + log_split(far, key, low, high) + log_shares
    }

    /// The place of the key among scores.
    fn key(&self) -> usize {
        self.kind.score_place(self.kind.key().unwrap_or(0))
    }

    fn scale_shares(&mut self, factor: f64) {
        for block in 0..self.count() {
            if let Some(share) = self.share(block) {
                *share *= factor;
            }
        }
    }

    fn push(&mut self, z: &[f64], share: f64) {
        let block = self.count();
        self.scores.extend_from_slice(z);
        self.theta.extend(self.kind.parameters.iter().map(|parameter| match &parameter.law {
            Law::Known(values) => known(values, 0),
            _ => share,
        }));
        self.parts.resize(self.parts.len() + self.likelihood.part_len(), 0.0);
        self.find_block(block);
        self.find_part(block);
    }

    /// The scores of what was removed.
    fn remove(&mut self, block: usize) -> Vec<f64> {
        let (dim, start, width, len) = (self.dim(), self.start(block), self.kind.width(), self.likelihood.part_len());
        self.theta.drain(start..start + width);
        self.parts.drain(block * len..(block + 1) * len);
        self.scores.drain(block * dim..(block + 1) * dim).collect()
    }

    /// Natural parameters with blocks in order.
    fn put_in_order(&self, to: &mut Vec<f64>) {
        let (globals, blocks) = self.theta.split_at(self.globals.len());
        let mut blocks: Vec<&[f64]> = blocks.chunks_exact(self.kind.width()).collect();
        if let Some(key) = self.kind.key() {
            blocks.sort_by(|a, b| a[key].total_cmp(&b[key]));
        }
        to.clear();
        to.extend_from_slice(globals);
        blocks.into_iter().for_each(|block| to.extend_from_slice(block));
    }
}

/// Without new memory.
fn copy(to: &mut Vec<f64>, from: &[f64]) {
    to.clear();
    to.extend_from_slice(from);
}

/// `log φ(z)` of standard scores.
fn squares(z: &[f64]) -> f64 {
    z.iter().map(|&z| crate::stats::normal_log_density(z)).sum()
}

/// Moves one score or all of them; by how much `log φ` grows.
fn step(scores: &mut [f64], width: f64, stream: &mut Stream) -> f64 {
    let only = (stream.below(2) == 0).then(|| stream.below(scores.len().max(1) as u64) as usize);
    let mut log_ratio = 0.0;
    for (_, z) in scores.iter_mut().enumerate().filter(|(place, _)| only.is_none_or(|only| only == *place)) {
        let next = *z + width * stream.normal();
        log_ratio += 0.5 * (*z * *z - next * next);
        *z = next;
    }
    log_ratio
}

impl<L: ComponentLikelihood> ComponentProblem<L> {
    /// What moves one component at a time: where the likelihood is made of parts, and blocks of one kind are alike and independent.
    pub(super) fn by_parts(&self) -> Option<&dyn ByParts> {
        let [kind] = self.space.kinds() else { return None };
        let is_alike = kind.key().is_some_and(|key| matches!(kind.parameters[key].law, Law::Ordered(_)));
        self.likelihood.by_parts().filter(|_| is_alike)
    }
}

impl<L: ComponentLikelihood> Moves for ComponentProblem<L> {
    fn walk(
        &self,
        word: &mut [u16],
        theta: &mut Vec<f64>,
        pool: &BlockPool,
        settings: &MoveSettings,
        stream: &mut Stream,
    ) -> Moved {
        let &MoveSettings { beta, jumps, scans } = settings;
        let Some(likelihood) = self.by_parts() else { return Moved { log_likelihood: f64::NAN, looks: 0 } };
        let mut walker = Walker::new(&self.space, likelihood, theta, beta);
        let births = Births { pool: pool.kinds.first().map_or(&[], Vec::as_slice), dim: walker.dim() };
        let least = *walker.kind.counts.start();
        let log_models = |count: usize| beta * self.log_counts[0][count - least];
        for scan in 0..scans.max(jumps) {
            if scan < jumps {
                walker.jump(&births, &log_models, stream);
            }
            if scan < scans {
                for block in 0..walker.count() {
                    walker.step_block(block, stream);
                    if walker.kind.share().is_some() {
                        walker.step_shares(block, stream);
                    }
                }
                walker.step_globals(stream);
            }
        }
        walker.put_in_order(theta);
        word[0] = (walker.count() - least) as u16;
        Moved { log_likelihood: walker.log_likelihood, looks: walker.looks }
    }
}
