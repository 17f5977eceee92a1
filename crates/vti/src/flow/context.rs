//! Networks over contexts: each distinct model of a batch is encoded once, and rows look their model's result up.

use super::ContextShape;
use super::parameters::{Initialise, Layout};
use crate::device::{
    Activation, ContextTable, ContextTableGradient, Device, DeviceError, InputGradient, Linear, Output, Reach,
    Staircase,
};

/// What the consumers of a context see: a symbol to look up, or a dense vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoded {
    Symbols(usize),
    Dense(usize),
}

impl Encoded {
    pub(crate) fn is_constant(self) -> bool {
        self == Self::Symbols(1)
    }
}

/// A linear map of the context whose result rows look up: a table of parameters for symbols, a product for dense vectors.
#[derive(Clone, Debug)]
pub(crate) enum Projection {
    Table { at: usize, symbols: usize, width: usize },
    Product(Linear),
}

impl Projection {
    /// A map to the units of `reach`, of which a context computes only what the first group of rows that uses it needs.
    pub(crate) fn allocate(layout: &mut Layout, from: Encoded, reach: &Reach, max_dim: usize) -> Self {
        let width = reach.all();
        match from {
            Encoded::Symbols(symbols) => {
                let how = Initialise::Uniform { bound: 1.0 / (symbols as f64).sqrt() };
                let at = layout.block("table", &[symbols, width], how);
                Self::Table { at, symbols, width }
            }
            Encoded::Dense(inputs) => {
                let stairs = Staircase::dense(width, inputs);
                let inputs = Reach::whole(max_dim, inputs);
                Self::Product(layout.linear(stairs, reach.clone(), inputs, Initialise::FanIn))
            }
        }
    }

    pub(crate) fn tape<D: Device>(&self, device: &D, contexts: usize) -> Result<Option<D::Matrix>, DeviceError> {
        match self {
            Self::Table { .. } => Ok(None),
            Self::Product(linear) => device.matrix(linear.stairs.outputs(), contexts).map(Some),
        }
    }

    /// Computes what rows will look up, once per context.
    pub(crate) fn forward<D: Device>(
        &self,
        call: &ContextCall<'_, D>,
        table: &mut Option<D::Matrix>,
    ) -> Result<(), DeviceError> {
        if let (Self::Product(linear), Some(to)) = (self, table) {
            let output = Output { to, accumulate: false, activation: Activation::Identity };
            let units = 0..linear.stairs.outputs();
            call.device.product(linear, call.parameters, call.rows, call.encoded, units, output)?;
        }
        Ok(())
    }

    pub(crate) fn table<'a, D: Device>(
        &self,
        parameters: &'a D::Buffer,
        table: &'a Option<D::Matrix>,
    ) -> ContextTable<'a, D> {
        match (self, table) {
            (Self::Table { at, width, .. }, _) => {
                ContextTable::Parameters { buffer: parameters, at: *at, width: *width }
            }
            (Self::Product(_), Some(table)) => ContextTable::Computed(table),
            (Self::Product(_), None) => unreachable!("the tape of a product holds its table"),
        }
    }

    pub(crate) fn table_gradient<'a, D: Device>(
        &self,
        gradient: &'a mut D::Buffer,
        table_gradient: &'a mut Option<D::Matrix>,
    ) -> ContextTableGradient<'a, D> {
        match (self, table_gradient) {
            (&Self::Table { at, symbols, width }, _) => {
                ContextTableGradient::Parameters { buffer: gradient, at, contexts: symbols, width }
            }
            (Self::Product(_), Some(table)) => ContextTableGradient::Computed(table),
            (Self::Product(_), None) => unreachable!("the tape of a product holds its table's gradient"),
        }
    }

    /// Carries the table's gradient on to weights and the dense context (added to `encoded_gradient`).
    pub(crate) fn backward<D: Device>(
        &self,
        call: &ContextCall<'_, D>,
        table_gradient: &Option<D::Matrix>,
        scratch: &mut D::Matrix,
        encoded_gradient: Option<&mut D::Matrix>,
        gradient: &mut D::Buffer,
    ) -> Result<(), DeviceError> {
        if let (Self::Product(linear), Some(table)) = (self, table_gradient) {
            call.device.product_weight_gradient(linear, call.rows, call.encoded, table, scratch, gradient)?;
            if let Some(to) = encoded_gradient {
                let output = InputGradient { to, accumulate: true, residual: None, gate: None };
                let all = 0..linear.stairs.inputs();
                call.device.product_input_gradient(linear, call.parameters, call.rows, table, all, output)?;
            }
        }
        Ok(())
    }
}

/// What a computation over the contexts of a shard needs.
pub(crate) struct ContextCall<'a, D: Device> {
    pub device: &'a D,
    pub parameters: &'a D::Buffer,
    /// The distinct contexts of the shard, as rows with the largest dimension in the first group of rows that uses them.
    pub rows: &'a D::Rows,
    /// Their dense vectors; without features where contexts are symbols.
    pub encoded: &'a D::Matrix,
}

/// A multi-layer perceptron over contexts with rectified hidden layers.
#[derive(Clone, Debug)]
pub(crate) struct ContextNet {
    /// The first layer's table, when the context is a symbol.
    entry: Option<(Projection, Reach)>,
    /// The first layer (a bare bias after a table) and the others.
    layers: Vec<Linear>,
    rectify_last: bool,
}

/// Activations of a [`ContextNet`]: the output of every layer, and room for their gradients.
pub(crate) struct ContextTape<D: Device> {
    outputs: Vec<D::Matrix>,
    gradients: Vec<D::Matrix>,
}

impl<D: Device> ContextTape<D> {
    /// The net's output.
    pub(crate) fn output(&self) -> Option<&D::Matrix> {
        self.outputs.last()
    }

    /// Room for the gradient of the net's output.
    pub(crate) fn output_gradient(&mut self) -> Option<&mut D::Matrix> {
        self.gradients.last_mut()
    }
}

impl ContextNet {
    /// A net with the given layer widths, none of them optional.
    pub(crate) fn allocate(
        layout: &mut Layout,
        from: Encoded,
        widths: &[usize],
        max_dim: usize,
        rectify_last: bool,
    ) -> Self {
        let whole = |units: usize| Reach::whole(max_dim, units);
        let mut layers = Vec::with_capacity(widths.len());
        let mut entry = None;
        let mut inputs = match from {
            Encoded::Dense(inputs) => inputs,
            Encoded::Symbols(_) => {
                let reach = whole(widths[0]);
                entry = Some((Projection::allocate(layout, from, &reach, max_dim), reach));
                0
            }
        };
        for (index, &width) in widths.iter().enumerate() {
            layers.push(layout.within(format!("linear{index}"), |layout| {
                layout.linear(Staircase::dense(width, inputs), whole(width), whole(inputs), Initialise::FanIn)
            }));
            inputs = width;
        }
        Self { entry, layers, rectify_last }
    }

    /// Replaces the last layer's initial values by zeros: the identity start of a flow.
    pub(crate) fn zero_last(&self, layout: &mut Layout) {
        if let Some(last) = self.layers.last() {
            layout.zero(last.weight..last.bias + last.stairs.outputs());
        }
        if let (1, Some((Projection::Table { at, symbols, width }, _))) = (self.layers.len(), &self.entry) {
            layout.zero(*at..at + symbols * width);
        }
    }

    /// The widest layer's inputs, for the scratch of weight gradients.
    pub(crate) fn max_inputs(&self) -> usize {
        self.layers.iter().map(|layer| layer.stairs.inputs()).max().unwrap_or(0)
    }

    pub(crate) fn tape<D: Device>(
        &self,
        device: &D,
        contexts: usize,
        training: bool,
    ) -> Result<ContextTape<D>, DeviceError> {
        let matrices = || {
            let layers = self.layers.iter().map(|layer| device.matrix(layer.stairs.outputs(), contexts));
            layers.collect::<Result<_, _>>()
        };
        Ok(ContextTape { outputs: matrices()?, gradients: if training { matrices()? } else { Vec::new() } })
    }

    pub(crate) fn forward<D: Device>(
        &self,
        call: &ContextCall<'_, D>,
        tape: &mut ContextTape<D>,
    ) -> Result<(), DeviceError> {
        let last = self.layers.len() - 1;
        for (index, layer) in self.layers.iter().enumerate() {
            let (before, after) = tape.outputs.split_at_mut(index);
            let to = &mut after[0];
            let mut accumulate = false;
            if let (0, Some((projection, reach))) = (index, &self.entry) {
                call.device.gather(projection.table(call.parameters, &None), reach, call.rows, to)?;
                accumulate = true;
            }
            let rectify = index < last || self.rectify_last;
            let activation = if rectify { Activation::Relu } else { Activation::Identity };
            let input = before.last().unwrap_or(call.encoded);
            let output = Output { to, accumulate, activation };
            call.device.product(layer, call.parameters, call.rows, input, 0..layer.stairs.outputs(), output)?;
        }
        Ok(())
    }

    /// Carries the gradient in `tape.output_gradient()` back to weights and the dense context (added).
    pub(crate) fn backward<D: Device>(
        &self,
        call: &ContextCall<'_, D>,
        tape: &mut ContextTape<D>,
        scratch: &mut D::Matrix,
        encoded_gradient: Option<&mut D::Matrix>,
        gradient: &mut D::Buffer,
    ) -> Result<(), DeviceError> {
        let ContextTape { outputs, gradients } = tape;
        if let (true, Some(output), Some(own)) = (self.rectify_last, outputs.last(), gradients.last_mut()) {
            call.device.gate(call.rows, output, own)?;
        }
        let mut encoded_gradient = encoded_gradient;
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let (before, own) = gradients.split_at_mut(index);
            let own = &own[0];
            let input = if index > 0 { &outputs[index - 1] } else { call.encoded };
            let all = 0..layer.stairs.inputs();
            call.device.product_weight_gradient(layer, call.rows, input, own, scratch, gradient)?;
            if let Some(to) = before.last_mut() {
                let output = InputGradient { to, accumulate: false, residual: None, gate: Some(input) };
                call.device.product_input_gradient(layer, call.parameters, call.rows, own, all, output)?;
            } else if let Some((projection, reach)) = &self.entry {
                call.device.scatter(own, reach, call.rows, projection.table_gradient(gradient, &mut None))?;
            } else if let Some(to) = encoded_gradient.take() {
                let output = InputGradient { to, accumulate: true, residual: None, gate: None };
                call.device.product_input_gradient(layer, call.parameters, call.rows, own, all, output)?;
            }
        }
        Ok(())
    }
}

impl From<ContextShape> for Encoded {
    fn from(shape: ContextShape) -> Self {
        match shape {
            ContextShape::Symbols(count) => Self::Symbols(count),
            ContextShape::Features(width) => Self::Dense(width),
        }
    }
}
