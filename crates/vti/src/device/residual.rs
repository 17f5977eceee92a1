//! Residual networks of staircase maps, evaluated whole or part by part.

use std::ops::Range;

use super::{Activation, Device, DeviceError, Linear, Output};

/// The maps of a residual network:
///
/// ```text
/// h  = W_in x + b (+ what stands in h)
/// h ← h + W₂ relu(W₁ relu(h) + b₁ (+ what stands in the inner units)) + b₂      for each block
/// y  = W_out h + b_out
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Residual<'a> {
    /// `W_in` and `b`.
    pub initial: &'a Linear,
    /// `W₁`, `b₁` and `W₂`, `b₂` of each block.
    pub blocks: &'a [[Linear; 2]],
    /// `W_out` and `b_out`.
    pub output: &'a Linear,
    /// Whether the first layer and the inner units start from what stands there: a context.
    pub in_context: bool,
}

/// Values of all units of a [`Residual`] network.
#[derive(Debug)]
pub struct ResidualUnits<'a, M> {
    /// x.
    pub input: &'a M,
    /// h.
    pub hidden: &'a mut M,
    /// relu(h) before each block.
    pub activated: &'a mut [M],
    /// relu(W₁ …) inside each block.
    pub inner: &'a mut [M],
    /// y.
    pub output: &'a mut M,
    /// For sums over what is known when a [`Group`] begins, at least [`Group::sums`] features.
    pub sums: &'a mut M,
}

/// Which units to compute.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// Units of every hidden layer.
    pub units: Range<usize>,
    /// Outputs.
    pub outputs: Range<usize>,
    /// The group of parts to which this one belongs, if it is one of several.
    pub group: Option<&'a Group>,
}

/// Neighbouring parts that are asked for one after another, because each needs inputs that follow from the one before.
///
/// What units and inputs before the group contribute is known when it begins: a device may sum that for the whole group at
/// once, which is one large product instead of many small ones, and add the rest part by part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Units of every hidden layer; those before them are known.
    pub units: Range<usize>,
    /// Outputs: at least one in each part.
    pub outputs: Range<usize>,
    /// Inputs that are known when the group begins.
    pub known_inputs: usize,
}

impl Group {
    /// Features of [`ResidualUnits::sums`] for a network of so many blocks.
    pub fn sums(&self, blocks: usize) -> usize {
        (1 + 2 * blocks) * self.units.len() + self.outputs.len()
    }
}

impl Residual<'_> {
    /// A part, or everything, by one product per map.
    pub(super) fn by_products<D: Device>(
        &self,
        device: &D,
        parameters: &D::Buffer,
        rows: &D::Rows,
        part: &Part<'_>,
        values: ResidualUnits<'_, D::Matrix>,
    ) -> Result<(), DeviceError> {
        let product = |linear: &Linear, input: &D::Matrix, units: &Range<usize>, output: Output<'_, D::Matrix>| {
            device.product(linear, parameters, rows, input, units.clone(), output)
        };
        let (Part { units, outputs, .. }, accumulate) = (part, self.in_context);
        let ResidualUnits { input, hidden, activated, inner, output, .. } = values;
        if !units.is_empty() {
            let activation = Activation::and_relu_into(activated.first_mut());
            product(self.initial, input, units, Output { to: hidden, accumulate, activation })?;
            for (index, ([first, second], inner)) in self.blocks.iter().zip(inner).enumerate() {
                let to_inner = Output { to: inner, accumulate, activation: Activation::Relu };
                product(first, &activated[index], units, to_inner)?;
                let activation = Activation::and_relu_into(activated.get_mut(index + 1));
                product(second, inner, units, Output { to: hidden, accumulate: true, activation })?;
            }
        }
        let to_output = Output { to: output, accumulate: false, activation: Activation::Identity };
        product(self.output, hidden, outputs, to_output)
    }
}
