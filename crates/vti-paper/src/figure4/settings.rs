//! All sizes of the experiment.

use serde::Serialize;
use vti::family::FlowKind;
use vti::models::{
    AutoregressiveSettings, CategoricalSettings, Covariance, ModelsSettings, SurrogateSettings, WordNetSettings,
};
use vti::rjmcmc::RjmcmcSettings;
use vti::train::TrainSettings;

use super::Figure4Args;
use super::rows::Distribution;
use crate::Scale;

/// All sizes; written beside the results.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Settings {
    /// Of the program.
    pub(super) version: &'static str,
    pub(super) scale: Scale,
    /// Of the experiment; data set i, its chains and its fits have seed 1000 · seed + i.
    pub(super) seed: u64,
    pub(super) data_sets: usize,
    /// Optional covariates k of each problem, which has 2^k models.
    pub(super) exponents: Vec<usize>,
    /// The surrogate and the categorical distribution are tried up to 2 to this.
    pub(super) most_enumerated: usize,
    pub(super) flow: FlowKind,
    pub(super) surrogate: ModelsSettings,
    pub(super) categorical: ModelsSettings,
    pub(super) autoregressive: ModelsSettings,
    pub(super) train: TrainSettings,
    /// Of the reference chains.
    pub(super) reference: RjmcmcSettings,
    /// States of the chains over which cross entropies are means.
    pub(super) states: usize,
    /// Draws of the check of each fit.
    pub(super) check_draws: usize,
    /// Of the comparison of one posterior of parameters.
    pub(super) joint: JointSettings,
}

/// The comparison of one posterior of parameters.
#[derive(Clone, Debug, Serialize)]
pub(super) struct JointSettings {
    pub(super) covariates: usize,
    /// Covariates whose coefficients are shown against each other, counted from 1.
    pub(super) shown: [usize; 2],
    pub(super) flow: FlowKind,
    pub(super) train: TrainSettings,
    pub(super) reference: RjmcmcSettings,
    /// Draws that are drawn of each of both.
    pub(super) draws: usize,
    /// With fewer states of the chains at the data-generating model, another one is shown.
    pub(super) least_states: usize,
}

/// What differs between scales.
struct Sizes {
    data_sets: usize,
    exponents: Vec<usize>,
    most_enumerated: usize,
    flow: FlowKind,
    joint_flow: FlowKind,
    words: WordNetSettings,
    steps: u64,
    joint_steps: u64,
    batch: usize,
    sweeps: usize,
    states: usize,
}

impl Sizes {
    fn of(scale: Scale) -> Self {
        let spline = |blocks, hidden| FlowKind::Spline { layers: 4, blocks, hidden };
        match scale {
            Scale::Small => Self {
                data_sets: 2,
                exponents: vec![9, 12, 15, 18, 24],
                most_enumerated: 15,
                flow: spline(1, 32),
                joint_flow: spline(2, 64),
                words: WordNetSettings { hidden: 64, blocks: 1, ..WordNetSettings::default() },
                steps: 2000,
                joint_steps: 3000,
                batch: 256,
                sweeps: 20_000,
                states: 4000,
            },
            Scale::Full => Self {
                data_sets: 10,
                exponents: vec![9, 12, 15, 18, 20, 24],
                most_enumerated: 20,
                flow: spline(6, 512),
                joint_flow: spline(6, 512),
                words: WordNetSettings::default(),
                steps: 30_000,
                joint_steps: 10_000,
                batch: 1024,
                sweeps: 100_000,
                states: 20_000,
            },
        }
    }
}

impl Settings {
    pub(super) fn new(args: &Figure4Args) -> Self {
        let common = &args.common;
        let sizes = Sizes::of(common.scale);
        let train = |steps| TrainSettings {
            seed: common.seed,
            steps: common.steps.unwrap_or(steps),
            batch: sizes.batch,
            ..TrainSettings::default()
        };
        let sweeps = args.chains.sweeps.unwrap_or(sizes.sweeps);
        let surrogate = SurrogateSettings { covariance: Covariance::Diagonal, ..SurrogateSettings::default() };
        let autoregressive = AutoregressiveSettings { network: sizes.words, ..AutoregressiveSettings::default() };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            scale: common.scale,
            seed: common.seed,
            data_sets: args.data_sets.data_sets.unwrap_or(sizes.data_sets),
            exponents: if args.exponents.is_empty() { sizes.exponents } else { args.exponents.clone() },
            most_enumerated: sizes.most_enumerated,
            flow: sizes.flow,
            surrogate: ModelsSettings::Surrogate(surrogate),
            categorical: ModelsSettings::Categorical(CategoricalSettings::default()),
            autoregressive: ModelsSettings::Autoregressive(autoregressive),
            train: train(sizes.steps),
            reference: reference(sweeps),
            states: sizes.states,
            check_draws: 10_000,
            joint: JointSettings {
                covariates: 7,
                shown: [1, 5],
                flow: sizes.joint_flow,
                train: train(sizes.joint_steps),
                reference: reference(sweeps),
                draws: 4000,
                least_states: 300,
            },
        }
    }

    pub(super) fn models(&self, distribution: Distribution) -> &ModelsSettings {
        match distribution {
            Distribution::Surrogate => &self.surrogate,
            Distribution::Categorical => &self.categorical,
            Distribution::Autoregressive => &self.autoregressive,
        }
    }

    /// Why a distribution is not tried with so many models.
    pub(super) fn left_out(&self, distribution: Distribution, exponent: usize) -> Option<String> {
        let enumerates = distribution != Distribution::Autoregressive;
        (enumerates && exponent > self.most_enumerated)
            .then(|| format!("needs a number for each model; tried up to 2^{}", self.most_enumerated))
    }
}

/// With many covariates a sweep tries several.
fn reference(sweeps: usize) -> RjmcmcSettings {
    RjmcmcSettings {
        chains: 32,
        sweeps,
        burn_in: (sweeps / 4).max(100),
        thin: 5,
        flips: 4,
        swaps: 2,
        steps: 3,
        leading: 20,
        ..RjmcmcSettings::default()
    }
}
