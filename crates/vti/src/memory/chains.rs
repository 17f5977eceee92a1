//! Of chains, which have states of their own each, and keep some. Keys are those of their settings.

use super::{MemoryEstimate, MemoryItem, MemoryUse, Phase, Space};
use crate::check::RefineSettings;
use crate::problem::Problem;
use crate::rjmcmc::RjmcmcSettings;
use crate::search::SearchSettings;

/// A chain beside its word and coordinates: its stream, its lists and its densities.
const BYTES_OF_CHAIN: f64 = 500.0;

/// Numbers of a coordinate in a chain: where it is, where it may go, and both gradients.
const BYTES_OF_COORDINATE: f64 = 40.0;

/// An iteration of chains from q: the model and its log weight.
const BYTES_OF_ITERATION: f64 = 12.0;

/// A feature whose mean is traced by every chain of a search.
const BYTES_OF_FEATURE: f64 = 16.0;

impl MemoryEstimate {
    /// Of reversible jump chains.
    pub fn of_rjmcmc(problem: &dyn Problem, settings: &RjmcmcSettings) -> Self {
        let space = Space::new(problem);
        let kept = settings.sweeps as f64 / settings.thin.max(1) as f64;
        let each = of_chain(&space) + kept * of_state(&space);
        let many = settings.chains > RjmcmcSettings::default().chains;
        Self::of_each(settings.chains as f64 * each, if many { "chains" } else { "sweeps" })
    }

    /// Of chains from q.
    pub fn of_refine(problem: &dyn Problem, settings: &RefineSettings) -> Self {
        let space = Space::new(problem);
        let iterations = settings.iterations as f64;
        let kept = iterations / settings.thin.max(1) as f64 * of_state(&space);
        let each = of_chain(&space) + iterations * BYTES_OF_ITERATION + kept;
        let many = settings.chains > RefineSettings::default().chains;
        Self::of_each(settings.chains as f64 * each, if many { "chains" } else { "iterations" })
    }

    /// Of chains over models.
    pub fn of_search(problem: &dyn Problem, settings: &SearchSettings) -> Self {
        let space = Space::new(problem);
        let temperatures = settings.temperatures as f64;
        let features = problem.space().feature_count() as f64;
        let each = temperatures * (BYTES_OF_CHAIN + 4.0 * space.width) + features * BYTES_OF_FEATURE;
        let many = settings.temperatures > SearchSettings::default().temperatures;
        Self::of_each(settings.chains as f64 * each, if many { "temperatures" } else { "chains" })
    }

    fn of_each(bytes: f64, main_key: &'static str) -> Self {
        let item = MemoryItem { what: MemoryUse::Chains, bytes, phase: Phase::Check };
        Self { items: vec![item], main_key: Some(main_key) }
    }
}

fn of_chain(space: &Space) -> f64 {
    BYTES_OF_CHAIN + 4.0 * space.width + BYTES_OF_COORDINATE * space.max_dim
}

/// A state that is kept: a word, natural parameters, and densities.
fn of_state(space: &Space) -> f64 {
    2.0 * space.width + 8.0 * space.natural + 40.0
}
