//! Settings of a family.

use serde::{Deserialize, Serialize};

use super::{Contexts, FamilyError};
use crate::flow::{FlowSettings, LayerSettings};
use crate::models::{AutoregressiveSettings, ModelsSettings};
use crate::space::{Catalogue, ModelSpace};

/// A family, written out or chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FamilySettings {
    /// The flow.
    pub flow: FlowKind,
    /// The distribution over models.
    pub models: ModelsSettings,
    /// How a model enters the flow.
    pub context: ContextSettings,
    /// Where flows start from.
    #[serde(alias = "frame")]
    pub preconditioner: PreconditionerSettings,
    /// One flow for all of θ, or one for each of its blocks.
    pub structure: Structure,
}

impl FamilySettings {
    /// The paper's family for graphs: Affine(5,5) over all coordinates, told the adjacency, and MADE+ over orders and edges.
    pub fn joint_affine() -> Self {
        Self {
            structure: Structure::Joint,
            flow: FlowKind::Affine { layers: 5, blocks: 5, hidden: 128 },
            models: ModelsSettings::Autoregressive(AutoregressiveSettings::default()),
            preconditioner: PreconditionerSettings::Unit,
            ..Self::default()
        }
    }
}

/// How much of a problem's structure a family uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Structure {
    /// Blocks where the problem has [them](crate::problem::Problem::blocks).
    #[default]
    Auto,
    /// `q(θ | m) = Π_b q(θ_b | k_b(m))`: one flow, told the block and its key, makes the parameters of each block. Models that
    /// share a key share what is learned about it. Needs a problem with blocks.
    Blocks,
    /// One flow over all coordinates, told the whole model (the paper's).
    Joint,
}

impl Structure {
    pub(super) fn resolve(self, has_blocks: bool, choices: &mut Vec<String>) -> Result<Self, FamilyError> {
        match self {
            Self::Blocks if !has_blocks => Err(FamilyError::NoBlocks),
            Self::Auto if has_blocks => {
                choices.push("structure: a flow for each block (the density is a product over them)".into());
                Ok(Self::Blocks)
            }
            Self::Auto => Ok(Self::Joint),
            other => Ok(other),
        }
    }
}

/// Where flows start from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PreconditionerSettings {
    /// From where the problem says that the parameters of a model roughly lie, if it does.
    #[default]
    Problem,
    /// From the standard normal density, whatever the problem says.
    Unit,
}

/// Which flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FlowKind {
    /// Chosen by the number of coordinates.
    Auto {},
    /// Affine autoregressive layers with reversals between them.
    Affine {
        /// Layers.
        layers: usize,
        /// Residual blocks of each conditioner.
        blocks: usize,
        /// Hidden units of each conditioner.
        hidden: usize,
    },
    /// Spline autoregressive layers with reversals between them and a shared affine layer at the end.
    Spline {
        /// Layers.
        layers: usize,
        /// Residual blocks of each conditioner.
        blocks: usize,
        /// Hidden units of each conditioner.
        hidden: usize,
    },
    /// A diagonal Gaussian: mean-field.
    Diagonal {
        /// Hidden layers of the network that sees the model.
        hidden: Vec<usize>,
    },
    /// Any composition.
    Layers {
        /// Layers in sampling direction.
        layers: Vec<LayerSettings>,
        /// Widths of the context encoder's layers; empty for none.
        #[serde(default)]
        encoder: Vec<usize>,
    },
}

impl Default for FlowKind {
    fn default() -> Self {
        Self::Auto {}
    }
}

/// Above so many coordinates splines cost more than they bring.
const MAX_SPLINE_DIM: usize = 64;

impl FlowKind {
    /// Makes a choice where there is one to make.
    pub(super) fn resolve(&self, max_dim: usize, blockwise: bool, choices: &mut Vec<String>) -> Self {
        if *self != (Self::Auto {}) {
            return self.clone();
        }
        // Blocks come in great numbers, with preconditioners that leave little to learn.
        let (chosen, text) = if blockwise {
            (Self::Affine { layers: 2, blocks: 1, hidden: 64 }, "2 affine layers of 64 units for each block".into())
        } else if max_dim <= MAX_SPLINE_DIM {
            // With 64 units for 15 coordinates q ends 0.1 nats farther from the posterior (bench/results/2026-11-18-lessons.md).
            let hidden = (8 * max_dim).clamp(32, 128);
            (Self::Spline { layers: 4, blocks: 2, hidden }, format!("4 spline layers of {hidden} units"))
        } else {
            let hidden = max_dim.clamp(64, 256);
            (Self::Affine { layers: 4, blocks: 2, hidden }, format!("4 affine layers of {hidden} units"))
        };
        choices.push(format!("flow: {text} ({max_dim} coordinates)"));
        chosen
    }

    /// The layers.
    pub fn layers(&self) -> FlowSettings {
        match self.clone() {
            Self::Auto {} => FlowSettings::default(),
            Self::Affine { layers, blocks, hidden } => FlowSettings::affine(layers, blocks, hidden),
            Self::Spline { layers, blocks, hidden } => FlowSettings::spline(layers, blocks, hidden),
            Self::Diagonal { hidden } => FlowSettings::diagonal(hidden),
            Self::Layers { layers, encoder } => FlowSettings { layers, encoder },
        }
    }
}

/// How a model enters the flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextSettings {
    /// By its number where there are few models, by its features otherwise.
    #[default]
    Auto,
    /// By its number: every model has parameters of its own.
    Lookup,
    /// By its features: what is learned about one model serves others.
    Features,
}

/// The most models that are told apart by their numbers.
const MAX_LOOKUP_MODELS: usize = 1 << 16;

/// Up to so many models are told apart by their numbers automatically.
const MAX_AUTO_LOOKUP_MODELS: usize = 256;

impl ContextSettings {
    pub(super) fn resolve(
        self,
        space: &dyn ModelSpace,
        choices: &mut Vec<String>,
    ) -> Result<(Self, Contexts), FamilyError> {
        match self {
            Self::Lookup => Ok((self, Contexts::Lookup(Catalogue::new(space, MAX_LOOKUP_MODELS)?))),
            Self::Features => Ok((self, Contexts::Features(space.feature_count()))),
            Self::Auto => {
                // A single symbol has nothing to share between models; a space without features cannot.
                let limit = if space.arities().len() == 1 || space.feature_count() == 0 {
                    MAX_LOOKUP_MODELS
                } else {
                    MAX_AUTO_LOOKUP_MODELS
                };
                if let Ok(catalogue) = Catalogue::new(space, limit) {
                    choices.push(format!("context: the model's number ({} models)", catalogue.len()));
                    return Ok((Self::Lookup, Contexts::Lookup(catalogue)));
                }
                let count = space.feature_count();
                choices.push(format!("context: {count} features of the model (too many models for numbers)"));
                Ok((Self::Features, Contexts::Features(count)))
            }
        }
    }
}
