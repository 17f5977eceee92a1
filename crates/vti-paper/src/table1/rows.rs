//! Which runs there are.

use serde::{Deserialize, Serialize};
use vti::problem::dag::Noise;

use crate::graphs;

/// Which run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Case {
    /// Answers that use no data.
    Trivial,
    Vti {
        noise: Noise,
        penalty: f64,
    },
    Dagma {
        lambda: f64,
    },
    /// And DiBS+.
    Dibs,
}

impl graphs::Case for Case {
    fn name(&self) -> String {
        match self {
            Self::Trivial => "trivial answers".into(),
            Self::Vti { noise, penalty } => format!("VTI, {}, γ = {penalty}", noise_title(noise)),
            Self::Dagma { lambda } => format!("DAGMA, λ = {lambda:.4}"),
            Self::Dibs => "DiBS".into(),
        }
    }
}

impl Case {
    /// Noise and penalty in tables for machines.
    pub(super) fn cells(&self) -> [String; 2] {
        match self {
            Self::Vti { noise: Noise::Unknown {}, penalty } => ["unknown".into(), penalty.to_string()],
            Self::Vti { noise: Noise::Known { sigma }, penalty } => [sigma.to_string(), penalty.to_string()],
            _ => [String::new(), String::new()],
        }
    }
}

pub(super) fn noise_title(noise: &Noise) -> String {
    match noise {
        Noise::Unknown {} => "σ unknown".into(),
        Noise::Known { sigma } => format!("σ = {sigma}"),
    }
}
