//! What a family will be, before anything of it is made.

use super::settings::{ContextSettings, FamilySettings, FlowKind, Structure};
use super::{Contexts, FamilyError, check_problem};
use crate::flow::{ContextShape, FlowShape};
use crate::problem::Problem;

/// The settings of a flow, with every choice made.
pub(crate) struct Plan {
    pub(crate) structure: Structure,
    pub(super) context: ContextSettings,
    pub(super) contexts: Contexts,
    pub(crate) shape: FlowShape,
    pub(crate) flow: FlowKind,
    /// What was chosen, and why.
    pub(super) choices: Vec<String>,
}

impl Plan {
    /// Refuses problems that contradict themselves, and makes the choices that are left.
    pub(crate) fn new(problem: &dyn Problem, settings: &FamilySettings) -> Result<Self, FamilyError> {
        check_problem(problem)?;
        let (space, mut choices) = (problem.space(), Vec::new());
        let structure = settings.structure.resolve(problem.blocks().is_some(), &mut choices)?;
        let (context, contexts, max_dim) = match problem.blocks().filter(|_| structure == Structure::Blocks) {
            Some(blocks) => (settings.context, Contexts::Features(blocks.feature_count()), blocks.width()),
            None => {
                let (context, contexts) = settings.context.resolve(space, &mut choices)?;
                (context, contexts, space.max_dim())
            }
        };
        let shape = FlowShape {
            max_dim,
            context: match &contexts {
                Contexts::Lookup(catalogue) => ContextShape::Symbols(catalogue.len()),
                Contexts::Features(count) => ContextShape::Features(*count),
            },
        };
        let flow = settings.flow.resolve(max_dim, structure == Structure::Blocks, &mut choices);
        Ok(Self { structure, context, contexts, shape, flow, choices })
    }
}
