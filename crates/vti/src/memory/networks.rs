//! Sizes of networks by their settings alone: nothing is laid out, so that any setting has a size.

use crate::family::FlowKind;
use crate::flow::{ContextShape, FlowShape, LayerSettings};
use crate::models::{AutoregressiveSettings, DigitInput};

/// What a network takes up, in numbers of its precision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Size {
    /// Parameters.
    pub(super) parameters: f64,
    /// For each row of a pass without gradients.
    pub(super) evaluated: f64,
    /// For each row beside that, where there are gradients and scores.
    pub(super) trained: f64,
    /// For each distinct context of a pass.
    pub(super) contexts: f64,
    /// For each row, shared by all layers: the largest counts.
    pub(super) scratch: f64,
}

impl Size {
    fn add(&mut self, other: Self, times: f64) {
        self.parameters += times * other.parameters;
        self.evaluated += times * other.evaluated;
        self.trained += times * other.trained;
        self.contexts += times * other.contexts;
        self.scratch = self.scratch.max(other.scratch);
    }
}

/// What conditioners see of a context.
#[derive(Clone, Copy)]
enum Seen {
    Nothing,
    Symbols(f64),
    Dense(f64),
}

impl Seen {
    fn of(shape: ContextShape) -> Self {
        match shape {
            ContextShape::Symbols(1) => Self::Nothing,
            ContextShape::Symbols(count) => Self::Symbols(count as f64),
            ContextShape::Features(width) => Self::Dense(width as f64),
        }
    }

    /// Parameters of a linear map of it.
    fn map(self, outputs: f64) -> f64 {
        match self {
            Self::Nothing => 0.0,
            Self::Symbols(count) => count * outputs,
            Self::Dense(width) => (width + 1.0) * outputs,
        }
    }

    fn is_dense(self) -> bool {
        matches!(self, Self::Dense(_))
    }
}

/// Numbers that variables of few units each sum ahead, about ([`Group`](crate::device::Group)).
fn sums_ahead(blocks: f64, outputs: f64) -> f64 {
    (1.0 + 2.0 * blocks) * 12.0 + outputs.min(96.0)
}

/// A residual MADE with so many inputs, outputs, hidden units and blocks.
fn made(inputs: f64, outputs: f64, hidden: f64, blocks: f64, seen: Seen) -> Size {
    let injections = if matches!(seen, Seen::Nothing) { 0.0 } else { blocks + 1.0 };
    let units = (2.0 * blocks + 1.0) * hidden;
    let parameters = (inputs + 1.0) * hidden
        + 2.0 * blocks * (hidden + 1.0) * hidden
        + (hidden + 1.0) * outputs
        + injections * seen.map(hidden);
    let dense = if seen.is_dense() { injections * hidden } else { 0.0 };
    Size {
        parameters,
        evaluated: units + outputs + sums_ahead(blocks, outputs),
        // Scores go back through units of their own.
        trained: units + outputs + inputs,
        contexts: 2.0 * dense,
        scratch: 2.0 * hidden + inputs.max(hidden),
    }
}

/// A perceptron over contexts. Its first layer looks symbols up, and has a bias beside the table.
fn perceptron(widths: impl IntoIterator<Item = f64>, seen: Seen) -> Size {
    let mut size = Size::default();
    let mut inputs = match seen {
        Seen::Nothing => 1.0,
        Seen::Symbols(count) | Seen::Dense(count) => count,
    };
    for width in widths {
        size.parameters += (inputs + 1.0) * width;
        size.contexts += 2.0 * width;
        size.scratch = size.scratch.max(inputs);
        inputs = width;
    }
    size
}

/// Parameters that a layer gives a coordinate.
const AFFINE: f64 = 2.0;

fn layer(settings: &LayerSettings, dim: f64, seen: Seen) -> Size {
    // What it hands on.
    let mut size = Size { evaluated: dim, ..Size::default() };
    let given = Size { evaluated: AFFINE * dim, trained: (AFFINE + 1.0) * dim, ..Size::default() };
    match settings {
        LayerSettings::Affine(affine) => {
            size.add(made(dim, AFFINE * dim, affine.hidden as f64, affine.blocks as f64, seen), 1.0);
        }
        LayerSettings::Spline(spline) => {
            let outputs = (3.0 * spline.bins as f64 + 1.0) * dim;
            size.add(made(dim, outputs, spline.hidden as f64, spline.blocks as f64, seen), 1.0);
        }
        LayerSettings::Diagonal(diagonal) => {
            size.add(given, 1.0);
            let widths = diagonal.hidden.iter().map(|&width| width as f64).chain([AFFINE * dim]);
            size.add(perceptron(widths, seen), 1.0);
        }
        LayerSettings::Global(_) => {
            size.add(given, 1.0);
            size.parameters += AFFINE;
        }
        LayerSettings::Reverse {} => {}
    }
    size
}

/// Layers of a flow, and how many there are of each: there may be too many to write them all out.
fn counted(flow: &FlowKind) -> Vec<(LayerSettings, f64)> {
    match flow {
        FlowKind::Affine { layers, .. } | FlowKind::Spline { layers, .. } => {
            let (few, many) = (&mut flow.clone(), *layers as f64);
            if let FlowKind::Affine { layers, .. } | FlowKind::Spline { layers, .. } = few {
                *layers = 2;
            }
            let mut counted: Vec<(LayerSettings, f64)> = Vec::new();
            for layer in few.layers().layers.into_iter().skip(1) {
                let count = match layer {
                    LayerSettings::Global(_) => 1.0,
                    LayerSettings::Reverse {} => (many - 1.0).max(0.0),
                    _ => many,
                };
                counted.push((layer, count));
            }
            counted
        }
        FlowKind::Auto {} => Vec::new(),
        FlowKind::Diagonal { .. } | FlowKind::Layers { .. } => {
            flow.layers().layers.into_iter().map(|layer| (layer, 1.0)).collect()
        }
    }
}

/// A flow.
pub(super) fn flow(settings: &FlowKind, shape: FlowShape) -> Size {
    let dim = shape.max_dim as f64;
    let mut seen = Seen::of(shape.context);
    // z, and gradients and scores as they are carried along.
    let mut size = Size { evaluated: dim + 1.0, trained: 3.0 * dim + 1.0, ..Size::default() };
    if let FlowKind::Layers { encoder, .. } = settings
        && let Some(&width) = encoder.last()
    {
        size.add(perceptron(encoder.iter().map(|&width| width as f64), seen), 1.0);
        seen = Seen::Dense(width as f64);
    }
    for (settings, times) in counted(settings) {
        size.add(layer(&settings, dim, seen), times);
    }
    size
}

/// MADE+ over words of these arities.
pub(super) fn words(arities: &[u16], settings: &AutoregressiveSettings) -> Size {
    let network = &settings.network;
    let symbols = |arity: u16| if arity == 2 { 1.0 } else { f64::from(arity) };
    let outputs: f64 = arities.iter().map(|&arity| symbols(arity)).sum();
    let inputs = if network.digits == DigitInput::Scaled { arities.len() as f64 } else { outputs };
    let made = made(inputs, outputs, network.hidden as f64, network.blocks as f64, Seen::Nothing);
    // Uniform numbers, words and what the network reads of them, in a pass that draws and in one that learns.
    let around = 2.0 * arities.len() as f64 + inputs;
    Size { evaluated: made.evaluated + around, trained: outputs + around + arities.len() as f64, ..made }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::family::FlowKind;
    use crate::flow::Flow;
    use crate::models::{WordNet, WordNetSettings};

    /// Sizes by settings alone are those of networks that are laid out.
    #[test]
    fn parameters_are_counted_without_a_network() {
        let affine = FlowKind::Affine { layers: 3, blocks: 2, hidden: 24 };
        let spline = FlowKind::Spline { layers: 1, blocks: 0, hidden: 7 };
        let diagonal = FlowKind::Diagonal { hidden: vec![5, 3] };
        let encoded = FlowKind::Layers { layers: affine.layers().layers, encoder: vec![6, 4] };
        for kind in [affine, spline, diagonal, encoded, FlowKind::Diagonal { hidden: vec![] }] {
            for context in [ContextShape::Symbols(1), ContextShape::Symbols(9), ContextShape::Features(4)] {
                let shape = FlowShape { max_dim: 5, context };
                let real = Flow::new(&kind.layers(), shape).unwrap().parameter_count() as f64;
                assert_eq!(flow(&kind, shape).parameters, real, "{kind:?} {shape:?}");
            }
        }
        let (network, arities) = (WordNetSettings { hidden: 10, blocks: 3, digits: DigitInput::OneHot }, [2, 3, 2]);
        let real = WordNet::new(&arities, &network).unwrap().parameter_count() as f64;
        let settings = AutoregressiveSettings { network, ..AutoregressiveSettings::default() };
        assert_eq!(words(&arities, &settings).parameters, real);
    }

    /// Nothing overflows, however large.
    #[test]
    fn every_setting_has_a_size() {
        let shape = FlowShape { max_dim: usize::MAX, context: ContextShape::Features(usize::MAX) };
        let kind = FlowKind::Spline { layers: usize::MAX, blocks: usize::MAX, hidden: usize::MAX };
        assert!(flow(&kind, shape).parameters > 1e70);
    }
}
