//! Jumps of particles between models.

use super::super::birth::Birth;
use super::{Particle, Population, log_reference, log_start};
use crate::problem::{BlockPool, Jumps, MoveSettings, Moves, Problem};

/// Blocks of other particles near which components are born, of each kind: enough to know where they lie.
const POOL_SIZE: usize = 48;

impl Population<'_> {
    /// Proposes a neighbour of every particle's model: coordinates that both have stay, new ones are drawn, others go.
    pub(in crate::smc) fn propose_jumps(&mut self) {
        let (Some(problem), reference) = (self.jumps, self.reference) else { return };
        if let Some(jumps) = problem.jumps() {
            return self.propose_block_jumps(problem, jumps);
        }
        let space = problem.space();
        let half = self.particles.len() / 2;
        let mut mask = vec![false; space.max_dim()];
        let Self { particles, proposals, log_ratios, moments, stream, .. } = self;
        let rows = particles.iter().zip(proposals).zip(log_ratios);
        for (number, ((particle, proposal), log_ratio)) in rows.enumerate() {
            proposal.clone_from(particle);
            *log_ratio = space.propose(&mut proposal.word, stream);
            let is_possible = proposal.word != particle.word && space.is_allowed(&proposal.word);
            let log_prior = if is_possible { problem.log_prior(&proposal.word) } else { f64::NEG_INFINITY };
            if !log_prior.is_finite() {
                proposal.word.clone_from(&particle.word);
                *log_ratio = f64::NEG_INFINITY;
                continue;
            }
            let birth = Birth { moments: &moments[usize::from(number >= half)], reference };
            space.mark_active(&proposal.word, &mut mask);
            // What goes would have to be drawn on the way back.
            for &i in particle.active.iter().filter(|&&i| !mask[i as usize]) {
                *log_ratio += birth.log_density(i as usize, particle.free[i as usize]);
            }
            proposal.active.iter().for_each(|&i| mask[i as usize] = false);
            for i in (0..mask.len()).filter(|&i| mask[i]) {
                proposal.free[i] = birth.draw(i, stream);
                *log_ratio -= birth.log_density(i, proposal.free[i]);
            }
            space.mark_active(&proposal.word, &mut mask);
            proposal.active.clear();
            proposal.active.extend((0..mask.len() as u32).filter(|&i| mask[i as usize]));
            proposal.log_prior = log_prior;
            proposal.log_start = log_start(space, &proposal.word);
            proposal.log_reference = log_reference(reference, &proposal.active, &proposal.free);
        }
    }

    /// Accepts or refuses the models that were proposed.
    pub(in crate::smc) fn decide_jumps(&mut self) {
        for ((particle, proposal), log_ratio) in
            self.particles.iter_mut().zip(&mut self.proposals).zip(&self.log_ratios)
        {
            let gain = proposal.log_target(self.beta) - particle.log_target(self.beta) + log_ratio;
            if self.stream.uniform().ln() < gain {
                std::mem::swap(particle, proposal);
            }
        }
    }

    /// Proposes another number of components for every particle.
    fn propose_block_jumps(&mut self, problem: &dyn Problem, jumps: &dyn Jumps) {
        let (space, reference) = (problem.space(), self.reference);
        let half = self.particles.len() / 2;
        let mut mask = vec![false; space.max_dim()];
        let (mut theta, mut free) = (Vec::new(), Vec::new());
        let Self { particles, proposals, log_ratios, pools, stream, .. } = self;
        let rows = particles.iter().zip(proposals).zip(log_ratios);
        for (number, ((particle, proposal), log_ratio)) in rows.enumerate() {
            proposal.clone_from(particle);
            *log_ratio = f64::NEG_INFINITY;
            let log_jacobian = natural(problem, particle, &mut theta);
            let pool = &pools[usize::from(number >= half)];
            let Some((_, log_proposed)) = jumps.propose(&mut proposal.word, &mut theta, pool, stream) else { continue };
            let log_prior = problem.log_prior(&proposal.word);
            space.mark_active(&proposal.word, &mut mask);
            proposal.active.clear();
            proposal.active.extend((0..mask.len() as u32).filter(|&i| mask[i as usize]));
            free.resize(proposal.active.len(), 0.0);
            let new_log_jacobian = to_free(problem, &proposal.active, &theta, &mut free);
            let total = log_prior + log_proposed + log_jacobian - new_log_jacobian;
            if !total.is_finite() || free.iter().any(|u| !u.is_finite()) {
                proposal.clone_from(particle);
                continue;
            }
            proposal.active.iter().zip(&free).for_each(|(&i, u)| proposal.free[i as usize] = *u);
            // With respect to free parameters on both sides.
            *log_ratio = log_proposed + log_jacobian - new_log_jacobian;
            proposal.log_prior = log_prior;
            proposal.log_start = log_start(space, &proposal.word);
            proposal.log_reference = log_reference(reference, &proposal.active, &proposal.free);
        }
    }

    /// Moves every particle as the problem does by itself.
    pub(in crate::smc) fn walk(&mut self, moves: &dyn Moves, jumps: usize, scans: usize) {
        let (Some(problem), reference) = (self.jumps, self.reference) else { return };
        let (space, half) = (problem.space(), self.particles.len() / 2);
        let settings = MoveSettings { beta: self.beta, jumps, scans };
        let mut mask = vec![false; space.max_dim()];
        let (mut word, mut theta, mut free) = (Vec::new(), Vec::new(), Vec::new());
        let Self { particles, pools, stream, calls, .. } = self;
        for (number, particle) in particles.iter_mut().enumerate() {
            natural(problem, particle, &mut theta);
            word.clone_from(&particle.word);
            let moved = moves.walk(&mut word, &mut theta, &pools[usize::from(number >= half)], &settings, stream);
            *calls += moved.looks;
            space.mark_active(&word, &mut mask);
            let active: Vec<u32> = (0..mask.len() as u32).filter(|&i| mask[i as usize]).collect();
            free.resize(active.len(), 0.0);
            to_free(problem, &active, &theta, &mut free);
            // What is so far out that it has no coordinates stays where it was.
            if !free.iter().chain([&moved.log_likelihood]).all(|number| number.is_finite()) {
                continue;
            }
            particle.word.clone_from(&word);
            active.iter().zip(&free).for_each(|(&i, u)| particle.free[i as usize] = *u);
            particle.active = active;
            particle.log_prior = problem.log_prior(&word);
            particle.log_start = log_start(space, &word);
            particle.log_reference = log_reference(reference, &particle.active, &particle.free);
            // Free coordinates are standard normal under the prior.
            particle.log_density = moved.log_likelihood + particle.log_reference;
        }
    }

    /// Takes some blocks of each half of the particles for the other one to be near to.
    pub(super) fn collect_blocks(&mut self) {
        let Some((problem, jumps)) = self.jumps.and_then(|problem| Some((problem, problem.jumps()?))) else { return };
        let half = self.particles.len() / 2;
        let stream = &mut self.stream;
        let mut of = |particles: &[Particle]| {
            let (mut pool, mut theta) = (BlockPool::default(), Vec::new());
            for _ in 0..POOL_SIZE {
                let particle = &particles[stream.below(particles.len().max(1) as u64) as usize];
                natural(problem, particle, &mut theta);
                jumps.collect(&particle.word, &theta, &mut pool);
            }
            for blocks in &mut pool.kinds {
                let every = blocks.len().div_ceil(POOL_SIZE).max(1);
                *blocks = blocks.iter().step_by(every).cloned().collect();
            }
            pool
        };
        self.pools = [of(&self.particles[half..]), of(&self.particles[..half])];
    }
}

/// The natural parameters of a particle; the log-Jacobian.
fn natural(problem: &dyn Problem, particle: &Particle, theta: &mut Vec<f64>) -> f64 {
    let free: Vec<f64> = particle.active.iter().map(|&i| particle.free[i as usize]).collect();
    let Some(constraints) = problem.constraints() else {
        *theta = free;
        return 0.0;
    };
    theta.clear();
    theta.resize(constraints.natural_dim(&particle.active), 0.0);
    constraints.to_natural(&particle.active, &free, theta)
}

/// Free parameters of natural ones; the log-Jacobian.
fn to_free(problem: &dyn Problem, active: &[u32], theta: &[f64], free: &mut [f64]) -> f64 {
    match problem.constraints() {
        Some(constraints) => constraints.to_free(active, theta, free),
        None => {
            free.copy_from_slice(theta);
            0.0
        }
    }
}
