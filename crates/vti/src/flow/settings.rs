//! Plain settings of a flow: a list of layers, written out.

use serde::{Deserialize, Serialize};

use crate::device::{Scale, Spline};

/// A flow: layers from the reference variables z to the parameters θ, and what happens to the context first.
///
/// The paper's compositions (appendix A.2, "Experimental CoSMIC transform compositions") are lists of layers:
///
/// ```
/// use vti::flow::{FlowSettings, LayerSettings};
/// let flow = FlowSettings::affine(5, 5, 16); // Affine(5,5)
/// assert_eq!(flow.layers.len(), 9); // five transforms, four reversals
/// let spline = FlowSettings::spline(4, 6, 512); // Spline(4,6)
/// assert!(matches!(spline.layers.last(), Some(LayerSettings::Global(_))));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlowSettings {
    /// Layers in sampling direction.
    pub layers: Vec<LayerSettings>,
    /// Widths of the context encoder's layers; empty for none.
    pub encoder: Vec<usize>,
}

/// One layer of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LayerSettings {
    /// Affine autoregressive transform.
    Affine(AffineSettings),
    /// Rational-quadratic-spline autoregressive transform.
    Spline(SplineSettings),
    /// Diagonal Gaussian by an MLP of the context: mean-field.
    Diagonal(DiagonalSettings),
    /// One shift and one scale for all coordinates of all models.
    Global(GlobalSettings),
    /// Reversal of the active block, so that another coordinate comes first for the next layer. A flow with an odd number of
    /// reversals ends with one more: θ always comes out in the order of its coordinates, and a new flow is the identity.
    Reverse {},
}

/// An affine autoregressive layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AffineSettings {
    /// Hidden units of the conditioner.
    pub hidden: usize,
    /// Residual blocks of the conditioner.
    pub blocks: usize,
    /// Smallest scale.
    pub min_scale: f64,
}

/// A spline autoregressive layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SplineSettings {
    /// Hidden units of the conditioner.
    pub hidden: usize,
    /// Residual blocks of the conditioner.
    pub blocks: usize,
    /// Bins of the spline.
    pub bins: usize,
    /// Smallest width of a bin.
    pub min_width: f64,
    /// Smallest height of a bin.
    pub min_height: f64,
    /// Smallest slope at a knot.
    pub min_slope: f64,
}

/// A diagonal layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiagonalSettings {
    /// Hidden layers of the MLP.
    pub hidden: Vec<usize>,
    /// Smallest scale.
    pub min_scale: f64,
}

/// A shared global affine layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GlobalSettings {
    /// Smallest scale.
    pub min_scale: f64,
}

impl Default for AffineSettings {
    fn default() -> Self {
        Self { hidden: 64, blocks: 2, min_scale: Scale::default().minimum }
    }
}

impl Default for SplineSettings {
    fn default() -> Self {
        let Spline { bins, min_width, min_height, slope } = Spline::default();
        Self { hidden: 64, blocks: 2, bins, min_width, min_height, min_slope: slope.minimum }
    }
}

impl Default for DiagonalSettings {
    fn default() -> Self {
        Self { hidden: vec![64], min_scale: Scale::default().minimum }
    }
}

impl Default for GlobalSettings {
    fn default() -> Self {
        Self { min_scale: Scale::default().minimum }
    }
}

impl FlowSettings {
    /// The paper's `Affine(layers, blocks)`.
    pub fn affine(layers: usize, blocks: usize, hidden: usize) -> Self {
        let layer = LayerSettings::Affine(AffineSettings { hidden, blocks, ..AffineSettings::default() });
        Self { layers: alternate(&layer, layers), encoder: Vec::new() }
    }

    /// The paper's `Spline(layers, blocks)`, with its global affine at the end.
    pub fn spline(layers: usize, blocks: usize, hidden: usize) -> Self {
        let layer = LayerSettings::Spline(SplineSettings { hidden, blocks, ..SplineSettings::default() });
        let mut layers = alternate(&layer, layers);
        layers.push(LayerSettings::Global(GlobalSettings::default()));
        Self { layers, encoder: Vec::new() }
    }

    /// The paper's diagonal Gaussian by an MLP with these hidden layers.
    pub fn diagonal(hidden: Vec<usize>) -> Self {
        let layer = LayerSettings::Diagonal(DiagonalSettings { hidden, ..DiagonalSettings::default() });
        Self { layers: vec![layer], encoder: Vec::new() }
    }
}

/// `count` copies of a layer with reversals between them.
fn alternate(layer: &LayerSettings, count: usize) -> Vec<LayerSettings> {
    let mut layers = Vec::with_capacity(2 * count);
    for index in 0..count {
        if index > 0 {
            layers.push(LayerSettings::Reverse {});
        }
        layers.push(layer.clone());
    }
    layers
}
