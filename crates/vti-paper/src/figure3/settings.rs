//! All sizes of the experiment.

use serde::Serialize;
use vti::check::CheckSettings;
use vti::evidence::AnnealSettings;
use vti::family::FamilySettings;
use vti::problem::dag::simulate::SimulationSettings;
use vti::problem::dag::{DagSettings, GraphPrior, Noise, Sem};
use vti::train::TrainSettings;

use super::Figure3Args;
use crate::Scale;
use crate::peers::{DagmaSettings, DibsSettings, FEW_LAMBDAS};

/// All sizes; written beside the results.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Settings {
    /// Of the program.
    pub(super) version: &'static str,
    pub(super) scale: Scale,
    /// Of the experiment; data set i and its fits have seed 1000 · seed + i.
    pub(super) seed: u64,
    pub(super) data_sets: usize,
    /// n, each time the first rows of a data set.
    pub(super) rows: Vec<usize>,
    /// The process; its seed and rows are those above.
    pub(super) simulation: SimulationSettings,
    /// What is assumed.
    pub(super) assumed: DagSettings,
    pub(super) family: FamilySettings,
    pub(super) train: TrainSettings,
    /// The paper's family, where it is tried.
    pub(super) joint: Option<JointSettings>,
    /// The check of each fit; scores are averaged over as many graphs as it has draws.
    pub(super) check: CheckSettings,
    pub(super) dagma: DagmaSettings,
    pub(super) dibs: DibsSettings,
}

/// One autoregressive flow over all parameters, and MADE+ over orders and edges.
#[derive(Clone, Debug, Serialize)]
pub(super) struct JointSettings {
    pub(super) family: FamilySettings,
    pub(super) train: TrainSettings,
}

impl Settings {
    pub(super) fn new(args: &Figure3Args) -> Self {
        let common = &args.common;
        let defaults = TrainSettings::blockwise();
        let (data_sets, rows, joint_steps, anneal, dagma, dibs) = match common.scale {
            Scale::Small => {
                let dagma = DagmaSettings { lambdas: FEW_LAMBDAS.into(), ..DagmaSettings::short() };
                let anneal = AnnealSettings { most: 500, sharpen: 0, ..AnnealSettings::default() };
                (9, vec![16, 64, 256, 1024], 0, anneal, dagma, DibsSettings::short())
            }
            Scale::Full => {
                let rows = vec![16, 32, 64, 128, 256, 512, 1024];
                (10, rows, 50_000, AnnealSettings::default(), DagmaSettings::default(), DibsSettings::default())
            }
        };
        let sem = Sem::Mlp { hidden: 10, bias: false };
        let rows = if args.rows.is_empty() { rows } else { args.rows.clone() };
        let most = rows.iter().copied().max().unwrap_or(1);
        let joint_steps = args.joint_steps.unwrap_or(joint_steps);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            scale: common.scale,
            seed: common.seed,
            data_sets: args.data_sets.data_sets.unwrap_or(data_sets),
            rows,
            simulation: SimulationSettings { nodes: args.nodes, rows: most, sem, ..SimulationSettings::default() },
            assumed: DagSettings {
                sem,
                noise: Noise::Known { sigma: 1.0 },
                prior: GraphPrior::Orders,
                edge_penalty: 0.0,
                ..DagSettings::default()
            },
            family: FamilySettings::default(),
            train: TrainSettings { steps: common.steps.unwrap_or(defaults.steps), ..defaults },
            joint: (joint_steps > 0).then(|| joint(joint_steps)),
            check: CheckSettings { draws: 10_000, anneal, ..CheckSettings::default() },
            dagma,
            dibs,
        }
    }
}

/// The paper's family. Each draw says less to it than to a flow for each node, so a step has twice as many.
fn joint(steps: u64) -> JointSettings {
    JointSettings {
        family: FamilySettings::joint_affine(),
        train: TrainSettings { steps, batch: 256, ..TrainSettings::default() },
    }
}
