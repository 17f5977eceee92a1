//! What the learned density is compared with: reversible jump Markov chain Monte Carlo (paper, appendix F.3, "Baseline reversible
//! jump MCMC for robust variable selection").
//!
//! A chain walks through models and parameters at once. On the saturated space every coordinate has a value: the active ones
//! follow the posterior, the others a *pseudo-prior*, so that flipping a bit changes the model and no number, and the Jacobian
//! is 1. Inactive coordinates are redrawn from the pseudo-prior before every jump, hence need not be kept: only those that a
//! jump takes in are ever drawn.
//!
//! * **Birth and death**: a random bit is flipped; `r = p(y, θ′ | m′) p(m′) ν(u₋) / p(y, θ | m) p(m) ν(u₊)`, where ν is the
//!   pseudo-prior, u₊ the coordinates that came in and u₋ those that went out.
//! * **Swap**: a term that is in is exchanged for one that is out, with the same ratio.
//! * **Within a model**: a Gaussian random walk.
//!
//! Where models have any number of components ([`Problem::jumps`]) they are born and die, split and
//! merge, as the problem declares; both flips and swaps then mean such jumps.
//!
//! Parameters are free ones throughout: constrained parameters move on the real line, with the Jacobian in the density.
//!
//! ```
//! use std::ops::ControlFlow;
//! use vti::rjmcmc::{RjmcmcSettings, rjmcmc};
//! use vti::problem;
//! use vti::space::Subsets;
//! use vti::workers::Workers;
//!
//! // Two optional parameters with standard normal posteriors; each one multiplies the evidence by e.
//! let problem = problem::from_fn(Subsets::new(2)?, |_model, theta, gradient| {
//!     let mut log_density = 0.0;
//!     for (t, g) in theta.iter().zip(gradient) {
//!         *g = -t;
//!         log_density += 1.0 - 0.5 * t * t - 0.5 * std::f64::consts::TAU.ln();
//!     }
//!     log_density
//! });
//! let settings = RjmcmcSettings { chains: 8, sweeps: 4000, burn_in: 500, thin: 4, ..RjmcmcSettings::default() };
//! let chains = rjmcmc(&problem, &Workers::SINGLE, &settings, &mut |_| ControlFlow::Continue(()))?;
//! let inclusion = chains.inclusion[0].probability;
//! let e = std::f64::consts::E;
//! assert!((inclusion.value - e / (1.0 + e)).abs() < 4.0 * inclusion.se);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod components;
mod outcome;
mod settings;
mod start;
mod tuning;

use std::ops::ControlFlow;

pub use outcome::{Acceptance, Accepted, Chains, Inclusion, ModelShare};
pub use settings::{Pseudo, RjmcmcError, RjmcmcSettings};

use self::batch::{ChainBatch, Sort};
use self::tuning::{Moments, Tuning};
use crate::problem::{FreeRows, Problem};
use crate::workers::Workers;

/// Chains that propose and decide together: a fixed number, so that results do not depend on threads.
const CHAINS_PER_BATCH: usize = 4;
/// Sweeps between one look at the acceptance rate and the next, while steps are adapted.
const ADAPT_EVERY: usize = 25;
/// Sweeps between one report and the next.
const REPORT_EVERY: usize = 100;
/// Ends of the windows of the burn-in whose draws give the pseudo-prior and the shape of steps, in sixteenths. After the
/// last only the length of steps is adapted.
const WINDOWS: [usize; 5] = [1, 2, 4, 8, 12];

/// How far chains are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Sweeps done, by each chain.
    pub sweeps: usize,
    /// Sweeps to be done, burn-in included.
    pub total: usize,
    /// Whether they are still burning in.
    pub burning_in: bool,
    /// Shares of accepted moves; since the end of the burn-in, once that is over.
    pub acceptance: Acceptance,
}

/// Runs reversible jump chains side by side. `observe` sees how far they are every so often and may stop them; what they
/// have by then is returned if it is worth something.
///
/// Each chain has random numbers of its own, and what chains tell each other (the pseudo-prior and steps, during burn-in) is
/// summed in a fixed order: the same seed gives the same answer for any number of threads.
pub fn rjmcmc(
    problem: &dyn Problem,
    workers: &Workers,
    settings: &RjmcmcSettings,
    observe: &mut impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Chains, RjmcmcError> {
    settings.check(problem)?;
    let batches = settings.chains.div_ceil(CHAINS_PER_BATCH);
    let chains_of = |batch: usize| batch * CHAINS_PER_BATCH..((batch + 1) * CHAINS_PER_BATCH).min(settings.chains);
    let batches = (0..batches).map(|batch| ChainBatch::new(problem, settings, chains_of(batch))).collect();
    let tuning = Tuning::new(problem.space().max_dim(), &settings.pseudo);
    let rows = FreeRows::new(problem, settings.chains);
    let mut run = Run { workers, settings, tuning, batches, rows };
    run.start()?;
    if run.burn_in(observe)?.is_break() {
        return Err(RjmcmcError::Stopped);
    }
    run.sample(observe)?;
    Chains::new(problem, workers, settings, run.batches).ok_or(RjmcmcError::Stopped)
}

/// Chains on their way.
struct Run<'a> {
    workers: &'a Workers,
    settings: &'a RjmcmcSettings,
    tuning: Tuning,
    batches: Vec<ChainBatch<'a>>,
    /// Proposals of all chains, evaluated together.
    rows: FreeRows<'a>,
}

impl Run<'_> {
    /// Puts every chain somewhere, and learns from there what a first step should look like.
    fn start(&mut self) -> Result<(), RjmcmcError> {
        start::start(&mut self.batches, &mut self.rows, self.workers, &self.tuning)?;
        self.learn();
        Ok(())
    }

    /// Takes over what chains learned.
    fn learn(&mut self) {
        let mut moments = Moments::new(self.tuning.dim());
        self.batches.iter_mut().for_each(|batch| moments.join(batch.moments()));
        self.tuning.learn(&moments);
        self.batches.iter_mut().for_each(ChainBatch::forget);
    }

    fn burn_in(
        &mut self,
        observe: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, RjmcmcError> {
        let total = self.settings.burn_in;
        let ends = WINDOWS.map(|sixteenths| total * sixteenths / 16);
        let (mut done, mut block) = (0, 0);
        while done < total {
            let next = (done + ADAPT_EVERY).min(total);
            let before = self.acceptance();
            self.sweep(next - done, true)?;
            block += 1;
            self.tuning.adapt_step(block, self.acceptance().within_since(&before));
            if ends.iter().any(|end| (done..next).contains(end)) {
                self.learn();
            }
            done = next;
            if self.report(done, true, observe).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.batches.iter_mut().for_each(ChainBatch::reset_acceptance);
        Ok(ControlFlow::Continue(()))
    }

    /// Sweeps that count, as many as there should be or until the observer has seen enough.
    fn sample(&mut self, observe: &mut impl FnMut(&Progress) -> ControlFlow<()>) -> Result<(), RjmcmcError> {
        let mut done = 0;
        // Whole thinning intervals, so that each block of sweeps ends with a kept draw.
        let every = REPORT_EVERY.next_multiple_of(self.settings.thin);
        while done < self.settings.sweeps {
            let next = (done + every).min(self.settings.sweeps);
            self.sweep(next - done, false)?;
            done = next;
            if self.report(self.settings.burn_in + done, false, observe).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Some sweeps of all chains.
    fn sweep(&mut self, count: usize, burning_in: bool) -> Result<(), RjmcmcError> {
        let RjmcmcSettings { flips, swaps, steps, thin, .. } = *self.settings;
        for sweep in 1..=count {
            for (sort, moves) in [(Sort::Flip, flips), (Sort::Swap, swaps), (Sort::Step, steps)] {
                (0..moves).try_for_each(|_| self.make_move(sort, burning_in))?;
            }
            if burning_in {
                self.workers.for_each(&mut self.batches, |_, batch| batch.learn());
            } else if sweep.is_multiple_of(thin) {
                self.workers.for_each(&mut self.batches, |_, batch| batch.keep());
            }
        }
        Ok(())
    }

    /// One move of all chains: their proposals are evaluated together, in one call.
    fn make_move(&mut self, sort: Sort, burning_in: bool) -> Result<(), RjmcmcError> {
        let Self { workers, tuning, batches, rows, .. } = self;
        let mut proposing: Vec<_> = batches.iter_mut().zip(rows.chunks_mut(CHAINS_PER_BATCH)).collect();
        workers.for_each(&mut proposing, |_, (batch, rows)| batch.propose(sort, tuning, rows));
        rows.evaluate(workers)?;
        workers.for_each(batches, |_, batch| batch.decide(rows, burning_in));
        Ok(())
    }

    fn acceptance(&self) -> Acceptance {
        let mut acceptance = Acceptance::default();
        self.batches.iter().for_each(|batch| acceptance.join(batch.acceptance()));
        acceptance
    }

    fn report(
        &self,
        sweeps: usize,
        burning_in: bool,
        observe: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let total = self.settings.burn_in + self.settings.sweeps;
        observe(&Progress { sweeps, total, burning_in, acceptance: self.acceptance() })
    }
}
