//! All sizes of the experiment.

use serde::Serialize;
use vti::check::CheckSettings;
use vti::evidence::AnnealSettings;
use vti::family::FamilySettings;
use vti::problem::dag::{DagSettings, GraphPrior, Noise, Sem};
use vti::train::TrainSettings;

use super::Table1Args;
use crate::Scale;
use crate::peers::{DagmaSettings, DibsSettings};

/// All sizes; written beside the results.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Settings {
    /// Of the program.
    pub(super) version: &'static str,
    pub(super) scale: Scale,
    pub(super) seed: u64,
    /// Every so many-th row is used.
    pub(super) every: usize,
    /// Hidden units of each node.
    pub(super) hidden: usize,
    /// γ.
    pub(super) penalties: Vec<f64>,
    /// What is assumed, with each noise and γ.
    pub(super) assumed: DagSettings,
    pub(super) noises: [Noise; 2],
    pub(super) family: FamilySettings,
    pub(super) train: TrainSettings,
    /// The check of each fit; scores are averaged over as many graphs as it has draws.
    pub(super) check: CheckSettings,
    pub(super) dagma: DagmaSettings,
    pub(super) dibs: DibsSettings,
}

impl Settings {
    pub(super) fn new(args: &Table1Args) -> Self {
        let common = &args.common;
        let defaults = TrainSettings::blockwise();
        let (every, steps, anneal, dagma, dibs) = match common.scale {
            Scale::Small => {
                let anneal = AnnealSettings { most: 1000, sharpen: 2, ..AnnealSettings::default() };
                (5, 300, anneal, DagmaSettings::short(), DibsSettings::short())
            }
            Scale::Full => {
                (1, defaults.steps, AnnealSettings::default(), DagmaSettings::default(), DibsSettings::default())
            }
        };
        let hidden = 5;
        let penalties = vec![0.0, 10.0, 25.0, 50.0, 100.0, 200.0, 400.0];
        Self {
            version: env!("CARGO_PKG_VERSION"),
            scale: common.scale,
            seed: common.seed,
            every: args.every.unwrap_or(every),
            hidden,
            penalties: if args.penalties.is_empty() { penalties } else { args.penalties.clone() },
            assumed: DagSettings {
                sem: Sem::Mlp { hidden, bias: true },
                prior: GraphPrior::Orders,
                ..DagSettings::default()
            },
            noises: [Noise::Unknown {}, Noise::Known { sigma: 1.0 }],
            family: FamilySettings::default(),
            train: TrainSettings { seed: common.seed, steps: common.steps.unwrap_or(steps), ..defaults },
            check: CheckSettings { draws: 10_000, anneal, ..CheckSettings::default() },
            dagma,
            dibs,
        }
    }
}
