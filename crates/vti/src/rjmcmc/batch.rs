//! A few chains that propose and decide together.

use std::ops::Range;

use super::outcome::Acceptance;
use super::settings::RjmcmcSettings;
use super::tuning::{Moments, Tuning};
use crate::posterior::Draws;
use crate::problem::{Constraints, FreeChunk, FreeRows, Gradient, Problem};
use crate::random::{Purpose, Stream};
use crate::triangular::solve_transposed;

/// Where a chain is.
pub(super) struct Walker {
    pub(super) stream: Stream,
    pub(super) word: Vec<u16>,
    /// Coordinates of the model, ascending, and their free values.
    pub(super) active: Vec<u32>,
    pub(super) free: Vec<f64>,
    pub(super) log_prior: f64,
    /// `log p(m) + log η` with respect to free parameters, and the part of it that is a Jacobian.
    pub(super) log_target: f64,
    pub(super) log_jacobian: f64,
    /// The gradient of `log_target`, while it is needed.
    pub(super) gradient: Vec<f64>,
    /// Cholesky's factor of the model's precision; empty where the model has changed since.
    factor: Vec<f64>,
    /// What it was at.
    pub(super) kept: Draws,
}

/// What a chain proposes, beside what stands in its row.
#[derive(Clone, Copy)]
pub(super) struct Proposal {
    pub(super) kind: Move,
    pub(super) log_prior: f64,
    /// `log ν(u₋) − log ν(u₊)`.
    pub(super) log_ratio: f64,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Move {
    Birth,
    Death,
    Swap,
    Within,
    /// Nothing to propose: the row is where the chain is.
    None,
}

/// Sorts of proposals.
#[derive(Clone, Copy)]
pub(super) enum Sort {
    /// Flips a bit: birth or death.
    Flip,
    /// Exchanges a term that is in for one that is out.
    Swap,
    /// Moves within the model.
    Step,
}

/// A few chains.
pub(super) struct ChainBatch<'p> {
    pub(super) problem: &'p dyn Problem,
    /// The number of the first chain.
    pub(super) first: usize,
    pub(super) walkers: Vec<Walker>,
    pub(super) mask: Vec<bool>,
    proposals: Vec<Proposal>,
    pub(super) moments: Moments,
    acceptance: Acceptance,
}

impl<'p> ChainBatch<'p> {
    pub(super) fn new(problem: &'p dyn Problem, settings: &RjmcmcSettings, chains: Range<usize>) -> Self {
        let space = problem.space();
        let (width, dim) = (space.arities().len(), space.max_dim());
        let natural_len = problem.constraints().map_or(dim, Constraints::natural_len);
        let walker = |chain: usize| Walker {
            stream: Stream::new(settings.seed, Purpose::Jump, 0, chain as u64),
            word: vec![0; width],
            active: Vec::with_capacity(dim),
            free: Vec::with_capacity(dim),
            log_prior: f64::NAN,
            log_target: f64::NAN,
            log_jacobian: 0.0,
            gradient: Vec::with_capacity(dim),
            factor: Vec::new(),
            kept: Draws { width, stride: natural_len, ..Draws::default() },
        };
        Self {
            first: chains.start,
            proposals: vec![Proposal { kind: Move::None, log_prior: 0.0, log_ratio: 0.0 }; chains.len()],
            walkers: chains.map(walker).collect(),
            mask: vec![false; dim],
            moments: Moments::new(dim),
            acceptance: Acceptance::default(),
            problem,
        }
    }

    pub(super) fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Goes on with another tuning.
    pub(super) fn forget(&mut self) {
        self.moments.clear();
        self.walkers.iter_mut().for_each(|walker| walker.factor.clear());
    }

    pub(super) fn acceptance(&self) -> &Acceptance {
        &self.acceptance
    }

    pub(super) fn reset_acceptance(&mut self) {
        self.acceptance = Acceptance::default();
    }

    /// Adds where chains are to what is known about the posterior.
    pub(super) fn learn(&mut self) {
        for walker in &self.walkers {
            self.moments.add(&walker.active, &walker.free, &walker.gradient);
        }
    }

    /// Fills in the proposals of all chains.
    pub(super) fn propose(&mut self, sort: Sort, tuning: &Tuning, rows: &mut FreeChunk<'_>) {
        for chain in 0..self.walkers.len() {
            let jumps = self.problem.jumps();
            self.proposals[chain] = match (sort, jumps) {
                (Sort::Flip | Sort::Swap, Some(jumps)) => self.propose_jump(chain, jumps, rows),
                (Sort::Step, _) if self.problem.gradient() == Gradient::None => self.propose_few(chain, rows),
                (Sort::Flip, None) => self.propose_flip(chain, tuning, rows),
                (Sort::Swap, None) => self.propose_swap(chain, tuning, rows),
                (Sort::Step, _) => self.propose_step(chain, tuning, rows),
            };
        }
    }

    /// Accepts or refuses the proposals of all chains, which have been evaluated.
    pub(super) fn decide(&mut self, rows: &FreeRows<'_>, learn: bool) {
        (0..self.walkers.len()).for_each(|chain| self.decide_one(chain, rows, learn));
    }

    /// Flips a random bit: birth or death.
    fn propose_flip(&mut self, chain: usize, tuning: &Tuning, rows: &mut FreeChunk<'_>) -> Proposal {
        let walker = &mut self.walkers[chain];
        if walker.word.is_empty() {
            return self.stay(chain, rows);
        }
        let bit = walker.stream.below(walker.word.len() as u64) as usize;
        let word = rows.row(chain).word;
        word.copy_from_slice(&walker.word);
        word[bit] ^= 1;
        let kind = if word[bit] == 1 { Move::Birth } else { Move::Death };
        self.propose_word(chain, kind, tuning, rows)
    }

    /// Exchanges a random term that is in for a random one that is out. There are as many ways back.
    fn propose_swap(&mut self, chain: usize, tuning: &Tuning, rows: &mut FreeChunk<'_>) -> Proposal {
        let walker = &mut self.walkers[chain];
        let inside = walker.word.iter().filter(|&&bit| bit == 1).count();
        if inside == 0 || inside == walker.word.len() {
            return self.stay(chain, rows);
        }
        let mut pick = |symbol: u16, count: usize| {
            let number = walker.stream.below(count as u64) as usize;
            walker.word.iter().enumerate().filter(|(_, bit)| **bit == symbol).map(|(place, _)| place).nth(number)
        };
        let (out, into) = (pick(1, inside), pick(0, walker.word.len() - inside));
        let word = rows.row(chain).word;
        word.copy_from_slice(&self.walkers[chain].word);
        out.into_iter().chain(into).for_each(|place| word[place] ^= 1);
        self.propose_word(chain, Move::Swap, tuning, rows)
    }

    /// Completes a proposal whose word is in its row: coordinates that stay keep their values, new ones come from the
    /// pseudo-prior.
    fn propose_word(&mut self, chain: usize, kind: Move, tuning: &Tuning, rows: &mut FreeChunk<'_>) -> Proposal {
        rows.mark_active(chain, &mut self.mask);
        let Self { problem, walkers, .. } = self;
        let walker = &mut walkers[chain];
        let row = rows.row(chain);
        let forbidden = problem.space().is_constrained() && !problem.space().is_allowed(row.word);
        let log_prior = if forbidden { f64::NEG_INFINITY } else { problem.log_prior(row.word) };
        let (mut log_ratio, mut old) = (0.0, 0);
        for (to, &coordinate) in row.free.iter_mut().zip(row.active.iter()) {
            while walker.active.get(old).is_some_and(|&own| own < coordinate) {
                log_ratio += tuning.log_pseudo(walker.active[old], walker.free[old]);
                old += 1;
            }
            if walker.active.get(old) == Some(&coordinate) {
                *to = walker.free[old];
                old += 1;
            } else {
                *to = tuning.place(coordinate, walker.stream.normal());
                log_ratio -= tuning.log_pseudo(coordinate, *to);
            }
        }
        for (&coordinate, &u) in walker.active.iter().zip(&walker.free).skip(old) {
            log_ratio += tuning.log_pseudo(coordinate, u);
        }
        Proposal { kind, log_prior, log_ratio }
    }

    /// A Gaussian step in the shape of the posterior.
    fn propose_step(&mut self, chain: usize, tuning: &Tuning, rows: &mut FreeChunk<'_>) -> Proposal {
        let walker = &mut self.walkers[chain];
        if walker.active.is_empty() {
            return self.stay(chain, rows);
        }
        if walker.factor.is_empty() {
            tuning.factor(&walker.active, &mut walker.factor);
        }
        let row = rows.row(chain);
        row.word.copy_from_slice(&walker.word);
        row.active.clone_from(&walker.active);
        let free = &mut row.free[..walker.free.len()];
        free.iter_mut().for_each(|z| *z = walker.stream.normal());
        solve_transposed(&walker.factor, free);
        let step = tuning.step(walker.free.len());
        free.iter_mut().zip(&walker.free).for_each(|(to, from)| *to = from + step * *to);
        Proposal { kind: Move::Within, log_prior: walker.log_prior, log_ratio: 0.0 }
    }

    /// No proposal. Rows are evaluated together, so this one has to be a point of some model all the same.
    pub(super) fn stay(&self, chain: usize, rows: &mut FreeChunk<'_>) -> Proposal {
        let walker = &self.walkers[chain];
        let row = rows.row(chain);
        row.word.copy_from_slice(&walker.word);
        row.active.clone_from(&walker.active);
        row.free[..walker.free.len()].copy_from_slice(&walker.free);
        Proposal { kind: Move::None, log_prior: walker.log_prior, log_ratio: 0.0 }
    }

    /// Accepts or refuses (Metropolis, Hastings and Green). What is not a number is refused.
    fn decide_one(&mut self, chain: usize, rows: &FreeRows<'_>, learn: bool) {
        let Proposal { kind, log_prior, log_ratio } = self.proposals[chain];
        let walker = &mut self.walkers[chain];
        let accepted = match kind {
            Move::Birth => &mut self.acceptance.birth,
            Move::Death => &mut self.acceptance.death,
            Move::Swap => &mut self.acceptance.swap,
            Move::Within => &mut self.acceptance.within,
            Move::None => return,
        };
        let row = self.first + chain;
        let log_target = log_prior + rows.log_density(row);
        let gain = log_target - walker.log_target + log_ratio;
        let accept = gain.is_finite() && walker.stream.uniform().ln() < gain;
        accepted.add(accept);
        if accept {
            (walker.log_prior, walker.log_target) = (log_prior, log_target);
            walker.take(rows, row, learn);
        }
    }

    /// Keeps where every chain is.
    pub(super) fn keep(&mut self) {
        for walker in &mut self.walkers {
            walker.keep(self.problem);
        }
    }
}

impl Walker {
    /// Goes to a row that was evaluated.
    pub(super) fn take(&mut self, rows: &FreeRows<'_>, row: usize, learn: bool) {
        let active = rows.active(row);
        if active != self.active {
            self.active.clear();
            self.active.extend_from_slice(active);
            self.factor.clear();
        }
        self.word.copy_from_slice(rows.word(row));
        self.free.clear();
        self.free.extend_from_slice(rows.free(row));
        self.log_jacobian = rows.log_jacobian(row);
        if learn {
            self.gradient.resize(self.active.len(), 0.0);
            rows.gradient(row, &mut self.gradient);
        }
    }

    fn keep(&mut self, problem: &dyn Problem) {
        let kept = &mut self.kept;
        kept.words.extend_from_slice(&self.word);
        let start = kept.theta.len();
        kept.theta.resize(start + kept.stride, f64::NAN);
        let theta = &mut kept.theta[start..];
        let dim = match problem.constraints().filter(|constraints| !constraints.is_trivial()) {
            Some(constraints) => {
                constraints.to_natural(&self.active, &self.free, theta);
                constraints.natural_dim(&self.active)
            }
            None => {
                theta[..self.free.len()].copy_from_slice(&self.free);
                self.free.len()
            }
        };
        kept.dims.push(dim);
        kept.log_q_model.push(f64::NAN);
        kept.log_q.push(f64::NAN);
        kept.log_target.push(self.log_target - self.log_jacobian);
        kept.log_arrangement.push(0.0);
    }
}
