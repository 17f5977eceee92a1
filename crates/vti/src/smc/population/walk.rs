//! Moves of particles within their models that need no gradient.
//!
//! Half of them change a few coordinates, each by a random number on the scale of the particles. The others go along the difference of
//! two other particles of the same model (ter Braak 2006), which knows how coordinates depend on each other; now and then by all of
//! it, which leads from one mode to another. Each half of the particles is moved by what the other one says.

use std::collections::BTreeMap;

use super::Population;
use crate::random::Stream;

/// The share of moves that should be accepted.
const WALK_RATE: f64 = 0.3;

/// The most coordinates that are changed by numbers of their own.
const MAX_CHANGED: usize = 3;

/// How often a particle goes along the whole difference of two others.
const WHOLE_SHARE: f64 = 0.1;

/// A difference is blurred by so many standard deviations of each coordinate, so that every place can be reached.
const BLUR: f64 = 1e-3;

/// Limits of steps, as factors of those that suit a normal density.
const FACTORS: std::ops::RangeInclusive<f64> = 0.003..=2.0;

/// How a particle is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Step {
    /// A few coordinates.
    #[default]
    Few,
    /// Along the difference of two particles.
    Difference,
    /// By all of such a difference: nothing is adapted.
    Whole,
}

/// How far random steps go.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    steps: Vec<Step>,
    /// Factors of steps of a few coordinates, and along differences.
    few: f64,
    difference: f64,
}

impl Default for Walk {
    fn default() -> Self {
        Self { steps: Vec::new(), few: 0.5, difference: 0.7 }
    }
}

impl Population<'_> {
    /// Proposes a random step of every particle.
    pub(in crate::smc) fn propose_steps(&mut self) {
        let half = self.particles.len() / 2;
        let Self { particles, proposals, moments, walk, stream, .. } = self;
        // Particles of the same model in each half.
        let mut others: [BTreeMap<&[u16], Vec<usize>>; 2] = Default::default();
        for (number, particle) in particles.iter().enumerate() {
            others[usize::from(number < half)].entry(&particle.word).or_default().push(number);
        }
        walk.steps.clear();
        for (number, (particle, proposal)) in particles.iter().zip(proposals).enumerate() {
            proposal.clone_from(particle);
            let side = usize::from(number >= half);
            let alike = others[side].get(&*particle.word).map_or(&[][..], Vec::as_slice);
            let dim = particle.active.len();
            let step = if dim < 2 || alike.len() < 3 || stream.below(2) == 0 {
                Step::Few
            } else if stream.uniform() < WHOLE_SHARE {
                Step::Whole
            } else {
                Step::Difference
            };
            walk.steps.push(step);
            if dim == 0 {
                continue;
            }
            let sd = |i: u32| moments[side][i as usize].1;
            if step == Step::Few {
                let changed = 1 + stream.below(MAX_CHANGED.min(dim) as u64) as usize;
                let factor = walk.few * 2.4 / (changed as f64).sqrt();
                for _ in 0..changed {
                    let i = particle.active[stream.below(dim as u64) as usize];
                    proposal.free[i as usize] += factor * sd(i) * stream.normal();
                }
                continue;
            }
            let (a, b) = two_of(alike, stream);
            let factor = if step == Step::Whole { 1.0 } else { walk.difference * 2.4 / (2.0 * dim as f64).sqrt() };
            for &i in &particle.active {
                let place = i as usize;
                let difference = particles[a].free[place] - particles[b].free[place];
                proposal.free[place] += factor * difference + BLUR * sd(i) * stream.normal();
            }
        }
    }

    /// Accepts or refuses random steps, and adapts them.
    pub(in crate::smc) fn decide_steps(&mut self) {
        let mut rates = [(0.0, 0.0); 2];
        for (number, (particle, proposal)) in self.particles.iter_mut().zip(&mut self.proposals).enumerate() {
            let gain = proposal.log_target(self.beta) - particle.log_target(self.beta);
            let rate = if gain.is_nan() { 0.0 } else { gain.exp().min(1.0) };
            match self.walk.steps.get(number) {
                Some(Step::Few) => (rates[0].0, rates[0].1) = (rates[0].0 + rate, rates[0].1 + 1.0),
                Some(Step::Difference) => (rates[1].0, rates[1].1) = (rates[1].0 + rate, rates[1].1 + 1.0),
                _ => {}
            }
            if self.stream.uniform() < rate {
                std::mem::swap(particle, proposal);
            }
        }
        for ((sum, count), factor) in rates.into_iter().zip([&mut self.walk.few, &mut self.walk.difference]) {
            if count > 0.0 {
                let change = sum / count - WALK_RATE;
                *factor = (*factor * change.exp()).clamp(*FACTORS.start(), *FACTORS.end());
            }
        }
    }
}

/// Two different ones of at least two.
fn two_of(numbers: &[usize], stream: &mut Stream) -> (usize, usize) {
    let a = stream.below(numbers.len() as u64) as usize;
    let b = stream.below(numbers.len() as u64 - 1) as usize;
    (numbers[a], numbers[if b >= a { b + 1 } else { b }])
}
