//! All sizes of the experiment.

use serde::Serialize;
use vti::family::FlowKind;
use vti::models::ModelsSettings;
use vti::rjmcmc::RjmcmcSettings;
use vti::train::TrainSettings;

use super::Figure2Args;
use crate::Scale;

/// Those that may be in a model.
pub(super) const COVARIATES: usize = 7;

/// All sizes; written beside the results.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Settings {
    /// Of the program.
    pub(super) version: &'static str,
    pub(super) scale: Scale,
    /// Of the experiment; data set i, its chains and its fits have seed 1000 · seed + i.
    pub(super) seed: u64,
    pub(super) data_sets: usize,
    pub(super) covariates: usize,
    /// The three families, least expressive first.
    pub(super) flows: [FlowKind; 3],
    pub(super) models: ModelsSettings,
    pub(super) train: TrainSettings,
    /// Of the reference chains; seed and pseudo-prior are those of the data set and the prior.
    pub(super) reference: RjmcmcSettings,
    /// Models with fewer states of the chains have no cross entropy.
    pub(super) least_states: usize,
    /// More states of a model are thinned to so many.
    pub(super) most_states: usize,
    /// Draws of the check of each fit.
    pub(super) check_draws: usize,
}

impl Settings {
    pub(super) fn new(args: &Figure2Args) -> Self {
        let common = &args.common;
        let (data_sets, flows, steps, batch, sweeps, most_states) = match common.scale {
            Scale::Small => (4, [diagonal(64), affine(16), spline(2, 32)], 3000, 256, 40_000, 300),
            Scale::Full => (10, [diagonal(128), affine(16), spline(6, 512)], 10_000, 1024, 200_000, 1000),
        };
        let sweeps = args.chains.sweeps.unwrap_or(sweeps);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            scale: common.scale,
            seed: common.seed,
            data_sets: args.data_sets.data_sets.unwrap_or(data_sets),
            covariates: COVARIATES,
            flows,
            models: ModelsSettings::Auto {},
            train: TrainSettings {
                seed: common.seed,
                steps: common.steps.unwrap_or(steps),
                batch,
                ..TrainSettings::default()
            },
            // Every model has diagnostics of its own.
            reference: RjmcmcSettings {
                chains: 32,
                sweeps,
                burn_in: (sweeps / 5).max(100),
                thin: 5,
                flips: 3,
                swaps: 1,
                steps: 2,
                leading: 128,
                ..RjmcmcSettings::default()
            },
            least_states: 30,
            most_states,
            check_draws: 10_000,
        }
    }
}

/// A network with one hidden layer that sees the model.
fn diagonal(hidden: usize) -> FlowKind {
    FlowKind::Diagonal { hidden: vec![hidden] }
}

/// The paper's Affine(5,5).
fn affine(hidden: usize) -> FlowKind {
    FlowKind::Affine { layers: 5, blocks: 5, hidden }
}

/// The paper's Spline(4,6), or the same with fewer blocks.
fn spline(blocks: usize, hidden: usize) -> FlowKind {
    FlowKind::Spline { layers: 4, blocks, hidden }
}
