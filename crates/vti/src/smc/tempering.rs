//! From the reference to the posterior: all populations in step, so that densities are asked for together.

use std::collections::BTreeMap;

use super::GoOn;
use super::density::Density;
use super::population::{Population, Stage};
use super::settings::{ParticleMove, SmcSettings};
use crate::problem::BatchError;
use crate::stats;
use crate::workers::Workers;

/// Takes populations to the end. Those that are there wait; the others go on. False if it was ended early.
pub(super) fn temper(
    populations: &mut [Population<'_>],
    density: &mut dyn Density,
    settings: &SmcSettings,
    workers: &Workers,
    go_on: GoOn<'_>,
) -> Result<bool, BatchError> {
    let all = populations.len();
    let mut open: Vec<&mut Population<'_>> = populations.iter_mut().collect();
    if !density.look(&mut open, workers, &mut || go_on(0.0))? {
        return Ok(false);
    }
    workers.for_each(&mut open, |_, population| population.start());
    let last = Stage::Kept(settings.kept);
    while !open.is_empty() {
        let done: f64 = open.iter().map(|population| population.progress(settings.kept)).sum();
        let share = (done + (all - open.len()) as f64) / all as f64;
        if !go_on(share) {
            return Ok(false);
        }
        let next = next_betas(&open, settings.effective, workers);
        workers.for_each(&mut open, |_, population| {
            if population.stage == Stage::Tempering {
                population.temper(next[&population.target]);
            }
        });
        open.retain(|population| population.stage != Stage::Lost && population.stage != last);
        for _ in 0..settings.sweeps {
            if !sweep(&mut open, density, settings, workers, &mut || go_on(share))? {
                return Ok(false);
            }
        }
        workers.for_each(&mut open, |_, population| population.keep(settings.kept));
        open.retain(|population| population.stage != last);
    }
    Ok(true)
}

/// The next β of each target, from all of its populations.
fn next_betas(open: &[&mut Population<'_>], effective: f64, workers: &Workers) -> BTreeMap<usize, f64> {
    let mut targets: BTreeMap<usize, (f64, Vec<Vec<f64>>)> = BTreeMap::new();
    for population in open.iter().filter(|population| population.stage == Stage::Tempering) {
        let (_, gains) = targets.entry(population.target).or_insert_with(|| (population.beta, Vec::new()));
        gains.push(population.gains());
    }
    let mut targets: Vec<_> = targets.into_iter().collect();
    workers.for_each(&mut targets, |_, (_, (beta, gains))| *beta = stats::next_beta(gains, *beta, effective));
    targets.into_iter().map(|(target, (beta, _))| (target, beta)).collect()
}

/// One round of moves of all populations: between models, then within them. False if it was ended early.
fn sweep(
    open: &mut [&mut Population<'_>],
    density: &mut dyn Density,
    settings: &SmcSettings,
    workers: &Workers,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<bool, BatchError> {
    workers.for_each(open, |_, population| population.measure());
    if open.iter().all(|population| population.moves().is_some()) {
        let &SmcSettings { jumps, steps, .. } = settings;
        workers.for_each(open, |_, population| {
            if let Some(moves) = population.moves() {
                population.walk(moves, jumps, steps);
            }
        });
        return Ok(go_on());
    }
    let jumps = if open.iter().any(|population| population.has_jumps()) { settings.jumps } else { 0 };
    for _ in 0..jumps {
        workers.for_each(open, |_, population| population.propose_jumps());
        if !density.look(open, workers, go_on)? {
            return Ok(false);
        }
        workers.for_each(open, |_, population| population.decide_jumps());
    }
    if settings.by == ParticleMove::RandomWalk {
        for _ in 0..settings.steps {
            workers.for_each(open, |_, population| population.propose_steps());
            if !density.look(open, workers, go_on)? {
                return Ok(false);
            }
            workers.for_each(open, |_, population| {
                population.looked();
                population.decide_steps();
            });
        }
        return Ok(true);
    }
    workers.for_each(open, |_, population| population.set_out());
    for _ in 0..settings.steps {
        workers.for_each(open, |_, population| population.drift());
        if !density.look(open, workers, go_on)? {
            return Ok(false);
        }
        workers.for_each(open, |_, population| population.looked());
    }
    workers.for_each(open, |_, population| population.decide_moves());
    Ok(true)
}
