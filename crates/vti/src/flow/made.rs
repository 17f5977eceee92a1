//! The residual MADE conditioner (paper, appendix A.3, "Autoregressive flow definitions").
//!
//! ```text
//! h  = W_in x + b + δ₀(context)
//! h ← h + W₂ relu(W₁ relu(h) + b₁ + δ_j(context)) + b₂      for each residual block j
//! ρ  = W_out h + b_out
//! ```
//!
//! A hidden unit of *degree* g is a function of the first g variables (and the context); the parameters ρ_i of variable i
//! read units of degree at most i. Degrees run from 0 to d − 1, spread evenly over the hidden units in ascending order, so
//! every masked matrix is a staircase. Units of degree 0 see the context alone: they let the first variable depend on the
//! model, which a conditioner whose degrees start at 1 cannot.
//!
//! **Incremental evaluation.** Once the first g variables are known, the units of degree g can be computed, and after them
//! ρ_g: each unit once, so that finding all variables one after another ([`Made::step`]) costs as much arithmetic as one
//! pass over known variables, with the same bits. The density direction of a flow and the sampling of words of symbols
//! both rest on it. Variables of few units go in [`Group`]s, for which devices may sum ahead what earlier units contribute.

use std::ops::Range;

use super::context::{ContextCall, Encoded, Projection};
use super::parameters::{Initialise, Layout};
use crate::device::{
    Device, DeviceError, Group, InputGradient, Linear, Part, Reach, Residual, ResidualUnits, Staircase,
};

/// The shape of a conditioner.
#[derive(Clone, Debug)]
pub(crate) struct MadeShape {
    /// Features through which each variable enters.
    pub inputs: Vec<usize>,
    /// Parameters each variable gets (the paper's MADE+: a number per variable).
    pub outputs: Vec<usize>,
    /// Hidden units.
    pub hidden: usize,
    /// Residual blocks.
    pub blocks: usize,
}

/// A residual MADE: where its parameters stand and which units belong to which degree.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    initial: Linear,
    blocks: Vec<[Linear; 2]>,
    output: Linear,
    /// What is injected into the first layer and into each block; empty without a context.
    injections: Vec<Projection>,
    /// Hidden units of each degree.
    degree_units: Vec<Range<usize>>,
    /// Inputs and outputs of each variable.
    variable_inputs: Vec<Range<usize>>,
    variable_outputs: Vec<Range<usize>>,
    /// The run of variables of few units each to which a variable belongs; none where it stands alone.
    groups: Box<[Option<Group>]>,
    hidden: usize,
}

/// Hidden units of a [`Made`] on a batch.
pub(crate) struct MadeUnits<D: Device> {
    /// The residual stream h; after the pass, its last value.
    hidden: D::Matrix,
    /// relu(h) before each block.
    activated: Vec<D::Matrix>,
    /// relu(W₁ …) inside each block.
    inner: Vec<D::Matrix>,
    /// Of the group of variables that [`Made::step`] is in.
    sums: D::Matrix,
}

/// Activations of a [`Made`] on a batch.
pub(crate) struct MadeTape<D: Device> {
    /// What a backward pass needs, and otherwise nobody after ρ is known.
    pub(crate) units: MadeUnits<D>,
    /// ρ, overwritten by dρ in the backward pass.
    pub(crate) rho: D::Matrix,
    /// Computed tables of the injections, where they are computed.
    tables: Vec<Option<D::Matrix>>,
    table_gradients: Vec<Option<D::Matrix>>,
}

/// Shared scratch of backward passes.
pub(crate) struct MadeScratch<D: Device> {
    /// dh.
    pub(crate) hidden: D::Matrix,
    /// Gradient inside a block.
    pub(crate) inner: D::Matrix,
    /// For weight gradients.
    pub(crate) transposed: D::Matrix,
}

/// Gradients of a backward pass that goes variable by variable ([`Made::carry_to_input`]).
pub(crate) struct CarryTape<D: Device> {
    /// Gradient of the residual stream before each block and after the last.
    hidden: Vec<D::Matrix>,
    inner: Vec<D::Matrix>,
    /// dρ.
    pub(crate) rho: D::Matrix,
    /// What later variables hand back to each input.
    pub(crate) later: D::Matrix,
}

/// What a pass over rows needs.
pub(crate) struct RowCall<'a, D: Device> {
    pub device: &'a D,
    pub parameters: &'a D::Buffer,
    pub rows: &'a D::Rows,
}

/// Ranges of consecutive runs of the given lengths.
fn ranges(lengths: &[usize]) -> Vec<Range<usize>> {
    let ends = lengths.iter().scan(0, |end, len| {
        *end += len;
        Some(*end - len..*end)
    });
    ends.collect()
}

/// The group of each variable for [`Made::step`].
fn groups(degree_units: &[Range<usize>], inputs: &[Range<usize>], outputs: &[Range<usize>]) -> Box<[Option<Group>]> {
    // Enough units to make a large product of what is known, few enough for little to remain; and not too many sums.
    const UNITS: usize = 12;
    const OUTPUTS: usize = 96;
    let (mut groups, mut first) = (Vec::with_capacity(outputs.len()), 0);
    while first < outputs.len() {
        let fits = |last: &usize| {
            let units = degree_units[*last].end - degree_units[first].start;
            units <= UNITS && outputs[*last].end - outputs[first].start <= OUTPUTS
        };
        let last = (first..outputs.len()).take_while(fits).last().unwrap_or(first);
        let group = (last > first).then(|| Group {
            units: degree_units[first].start..degree_units[last].end,
            outputs: outputs[first].start..outputs[last].end,
            known_inputs: inputs[first].start,
        });
        groups.resize(last + 1, group);
        first = last + 1;
    }
    groups.into()
}

impl Made {
    pub(crate) fn allocate(layout: &mut Layout, shape: &MadeShape, context: Encoded) -> Self {
        let (variables, hidden) = (shape.inputs.len(), shape.hidden);
        debug_assert_eq!(variables, shape.outputs.len());
        // Degree ⌊u·d/H⌋: the units of degree g are those from ⌈g·H/d⌉ on.
        let start = |degree: usize| (degree * hidden).div_ceil(variables.max(1)).min(hidden);
        let degree_units: Vec<_> = (0..variables).map(|degree| start(degree)..start(degree + 1)).collect();
        let variable_inputs = ranges(&shape.inputs);
        let variable_outputs = ranges(&shape.outputs);

        let known = |count: usize| variable_inputs.get(count).map_or(shape.inputs.iter().sum(), |r| r.start) as u32;
        let reach = |units: &dyn Fn(usize) -> usize| Reach::new((0..=variables).map(|d| units(d) as u32).collect());
        let reach_hidden = reach(&|dim| if dim == 0 { 0 } else { degree_units[dim - 1].end });
        let reach_outputs = reach(&|dim| if dim == 0 { 0 } else { variable_outputs[dim - 1].end });
        let reach_inputs = reach(&|dim| known(dim) as usize);
        // A degree's units read what is named here for it.
        let per_unit = |prefix: &dyn Fn(usize) -> u32| -> Vec<u32> {
            degree_units
                .iter()
                .enumerate()
                .flat_map(|(degree, units)| units.clone().map(move |_| prefix(degree)))
                .collect()
        };
        let input_stairs = Staircase::new(per_unit(&known), known(variables) as usize);
        let hidden_stairs = Staircase::new(per_unit(&|degree| degree_units[degree].end as u32), hidden);
        let output_prefix = variable_outputs.iter().zip(&degree_units);
        let output_prefix =
            output_prefix.flat_map(|(outputs, units)| outputs.clone().map(|_| units.end as u32)).collect();
        let output_stairs = Staircase::new(output_prefix, hidden);

        let initial = layout.within("initial", |layout| {
            layout.linear(input_stairs, reach_hidden.clone(), reach_inputs, Initialise::FanIn)
        });
        let block = |layout: &mut Layout| {
            // The second map starts small, so that a deep stack of blocks starts close to a linear one.
            [("linear1", Initialise::FanIn), ("linear2", Initialise::Uniform { bound: 1e-3 })].map(|(name, how)| {
                let (stairs, reach) = (hidden_stairs.clone(), reach_hidden.clone());
                layout.within(name, |layout| layout.linear(stairs, reach.clone(), reach, how))
            })
        };
        let blocks = (0..shape.blocks).map(|index| layout.within(format!("blocks.{index}"), block)).collect();
        let output = layout.within("output", |layout| {
            layout.linear(output_stairs, reach_outputs, reach_hidden.clone(), Initialise::Zero)
        });
        let injection = |index: usize| {
            layout.within(format!("context.{index}"), |layout| {
                Projection::allocate(layout, context, &reach_hidden, variables)
            })
        };
        let injections = if context.is_constant() { 0 } else { shape.blocks + 1 };
        let injections = (0..injections).map(injection).collect();
        let groups = groups(&degree_units, &variable_inputs, &variable_outputs);
        Self { initial, blocks, output, injections, degree_units, variable_inputs, variable_outputs, groups, hidden }
    }

    pub(crate) fn inputs(&self, variable: usize) -> Range<usize> {
        self.variable_inputs[variable].clone()
    }

    pub(crate) fn outputs(&self, variable: usize) -> Range<usize> {
        self.variable_outputs[variable].clone()
    }

    /// The most inputs any of its maps has.
    pub(crate) fn max_inputs(&self) -> usize {
        let context = match self.injections.first() {
            Some(Projection::Product(linear)) => linear.stairs.inputs(),
            _ => 0,
        };
        self.hidden.max(self.initial.stairs.inputs()).max(context)
    }

    pub(crate) fn tape<D: Device>(
        &self,
        device: &D,
        rows: usize,
        contexts: usize,
        training: bool,
    ) -> Result<MadeTape<D>, DeviceError> {
        self.tape_with(self.units(device, rows)?, device, rows, contexts, training)
    }

    /// A tape whose hidden units are given; those for 0 rows are to be replaced before a pass.
    pub(crate) fn tape_with<D: Device>(
        &self,
        units: MadeUnits<D>,
        device: &D,
        rows: usize,
        contexts: usize,
        training: bool,
    ) -> Result<MadeTape<D>, DeviceError> {
        let tables = || {
            let tables = self.injections.iter().map(|projection| projection.tape(device, contexts));
            tables.collect::<Result<_, _>>()
        };
        Ok(MadeTape {
            units,
            rho: device.matrix(self.output.stairs.outputs(), rows)?,
            tables: tables()?,
            table_gradients: if training { tables()? } else { Vec::new() },
        })
    }

    pub(crate) fn units<D: Device>(&self, device: &D, rows: usize) -> Result<MadeUnits<D>, DeviceError> {
        let hidden = || device.matrix(self.hidden, rows);
        let sums = self.groups.iter().flatten().map(|group| group.sums(self.blocks.len())).max();
        Ok(MadeUnits {
            hidden: hidden()?,
            activated: self.blocks.iter().map(|_| hidden()).collect::<Result<_, _>>()?,
            inner: self.blocks.iter().map(|_| hidden()).collect::<Result<_, _>>()?,
            sums: device.matrix(sums.unwrap_or(0), rows)?,
        })
    }

    pub(crate) fn carry_tape<D: Device>(&self, device: &D, rows: usize) -> Result<CarryTape<D>, DeviceError> {
        let hidden = |count: usize| (0..count).map(|_| device.matrix(self.hidden, rows)).collect::<Result<_, _>>();
        Ok(CarryTape {
            hidden: hidden(self.blocks.len() + 1)?,
            inner: hidden(self.blocks.len())?,
            rho: device.matrix(self.output.stairs.outputs(), rows)?,
            later: device.matrix(self.initial.stairs.inputs(), rows)?,
        })
    }

    pub(crate) fn scratch<D: Device>(
        device: &D,
        hidden: usize,
        inputs: usize,
        rows: usize,
    ) -> Result<MadeScratch<D>, DeviceError> {
        Ok(MadeScratch {
            hidden: device.matrix(hidden, rows)?,
            inner: device.matrix(hidden, rows)?,
            transposed: device.matrix(device.scratch_features(inputs), rows)?,
        })
    }

    /// Units of the hidden layers.
    pub(crate) fn hidden(&self) -> usize {
        self.hidden
    }

    /// ρ for all variables of known inputs `x`.
    pub(crate) fn forward<D: Device>(
        &self,
        call: &RowCall<'_, D>,
        context: &ContextCall<'_, D>,
        x: &D::Matrix,
        tape: &mut MadeTape<D>,
    ) -> Result<(), DeviceError> {
        self.begin(call, context, tape)?;
        self.evaluate(call, x, tape)?;
        Ok(())
    }

    /// All units for known inputs `x`; [`Made::begin`] comes first, and again before another call if there is a context.
    pub(crate) fn evaluate<D: Device>(
        &self,
        call: &RowCall<'_, D>,
        x: &D::Matrix,
        tape: &mut MadeTape<D>,
    ) -> Result<(), DeviceError> {
        let part = Part { units: 0..self.hidden, outputs: 0..self.output.stairs.outputs(), group: None };
        self.pass(call, x, &part, tape)?;
        Ok(())
    }

    /// Looks the contexts up: the first thing in either direction.
    pub(crate) fn begin<D: Device>(
        &self,
        call: &RowCall<'_, D>,
        context: &ContextCall<'_, D>,
        tape: &mut MadeTape<D>,
    ) -> Result<(), DeviceError> {
        let MadeTape { units: MadeUnits { hidden, inner, .. }, tables, .. } = tape;
        let places = std::iter::once(hidden).chain(inner);
        for ((projection, table), to) in self.injections.iter().zip(tables).zip(places) {
            projection.forward(context, table)?;
            call.device.gather(projection.table(call.parameters, table), &self.initial.outputs, call.rows, to)?;
        }
        Ok(())
    }

    /// ρ of variable `variable`, once features of all earlier variables stand in `x` and [`Made::step`] was called for
    /// them; [`Made::begin`] comes first.
    pub(crate) fn step<D: Device>(
        &self,
        call: &RowCall<'_, D>,
        x: &D::Matrix,
        variable: usize,
        tape: &mut MadeTape<D>,
    ) -> Result<(), DeviceError> {
        let part = Part {
            units: self.degree_units[variable].clone(),
            outputs: self.variable_outputs[variable].clone(),
            group: self.groups[variable].as_ref(),
        };
        self.pass(call, x, &part, tape)?;
        Ok(())
    }

    fn pass<D: Device>(
        &self,
        call: &RowCall<'_, D>,
        x: &D::Matrix,
        part: &Part<'_>,
        tape: &mut MadeTape<D>,
    ) -> Result<(), DeviceError> {
        let MadeTape { units: MadeUnits { hidden, activated, inner, sums }, rho, .. } = tape;
        let net = Residual {
            initial: &self.initial,
            blocks: &self.blocks,
            output: &self.output,
            in_context: !self.injections.is_empty(),
        };
        let values = ResidualUnits { input: x, hidden, activated, inner, output: rho, sums };
        call.device.residual(&net, call.parameters, call.rows, part, values)?;
        Ok(())
    }

    /// Carries dρ (in `tape.rho`) back to parameters, to the inputs (added to `x_gradient`, if wanted) and to the dense context.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn backward<D: Device>(
        &self,
        call: &RowCall<'_, D>,
        context: &ContextCall<'_, D>,
        x: &D::Matrix,
        tape: &mut MadeTape<D>,
        scratch: &mut MadeScratch<D>,
        x_gradient: Option<&mut D::Matrix>,
        context_gradient: Option<&mut D::Matrix>,
        gradient: &mut D::Buffer,
    ) -> Result<(), DeviceError> {
        let RowCall { device, parameters, rows } = *call;
        let MadeTape { units: MadeUnits { hidden, activated, inner, .. }, rho, table_gradients, .. } = tape;
        let MadeScratch { hidden: d_hidden, inner: d_inner, transposed } = scratch;
        let mut context_gradient = context_gradient;
        // What reached an injection goes on to its table and, if that is computed, to the dense context.
        let mut inject_gradient = |index: usize,
                                   from: &D::Matrix,
                                   transposed: &mut D::Matrix,
                                   to: &mut D::Buffer|
         -> Result<(), DeviceError> {
            if let Some(projection) = self.injections.get(index) {
                let table = &mut table_gradients[index];
                device.scatter(from, &self.initial.outputs, rows, projection.table_gradient(to, table))?;
                projection.backward(context, table, transposed, context_gradient.as_deref_mut(), to)?;
            }
            Ok(())
        };
        device.product_weight_gradient(&self.output, rows, hidden, rho, transposed, gradient)?;
        let all = || 0..self.hidden;
        let to_hidden = InputGradient { to: &mut *d_hidden, accumulate: false, residual: None, gate: None };
        device.product_input_gradient(&self.output, parameters, rows, rho, all(), to_hidden)?;
        for (index, [first, second]) in self.blocks.iter().enumerate().rev() {
            device.product_weight_gradient(second, rows, &inner[index], d_hidden, transposed, gradient)?;
            let gate = Some(&inner[index]);
            let to_inner = InputGradient { to: &mut *d_inner, accumulate: false, residual: None, gate };
            device.product_input_gradient(second, parameters, rows, d_hidden, all(), to_inner)?;
            inject_gradient(index + 1, d_inner, transposed, gradient)?;
            device.product_weight_gradient(first, rows, &activated[index], d_inner, transposed, gradient)?;
            let gate = Some(&activated[index]);
            let to_hidden = InputGradient { to: &mut *d_hidden, accumulate: true, residual: None, gate };
            device.product_input_gradient(first, parameters, rows, d_inner, all(), to_hidden)?;
        }
        inject_gradient(0, d_hidden, transposed, gradient)?;
        device.product_weight_gradient(&self.initial, rows, x, d_hidden, transposed, gradient)?;
        if let Some(to) = x_gradient {
            let to_x = InputGradient { to, accumulate: true, residual: None, gate: None };
            let inputs = 0..self.initial.stairs.inputs();
            device.product_input_gradient(&self.initial, parameters, rows, d_hidden, inputs, to_x)?;
        }
        Ok(())
    }

    /// What units of higher degree hand back to the inputs of `variable`, written to `later`: the first half of a step of the
    /// backward pass that goes through the variables one by one, last first. A unit's gradient depends on units of its own
    /// and higher degrees only, so each is computed once, as in [`Made::step`].
    pub(crate) fn carry_to_input<D: Device>(
        &self,
        call: &RowCall<'_, D>,
        variable: usize,
        tape: &mut CarryTape<D>,
    ) -> Result<(), DeviceError> {
        let CarryTape { hidden, later, .. } = tape;
        let output = InputGradient { to: later, accumulate: false, residual: None, gate: None };
        let inputs = self.variable_inputs[variable].clone();
        call.device.product_input_gradient(&self.initial, call.parameters, call.rows, &hidden[0], inputs, output)?;
        Ok(())
    }

    /// The second half: once dρ of `variable` stands in `carry.rho`, the gradients of the units of its degree.
    pub(crate) fn carry_through_units<D: Device>(
        &self,
        call: &RowCall<'_, D>,
        variable: usize,
        tape: &MadeTape<D>,
        carry: &mut CarryTape<D>,
    ) -> Result<(), DeviceError> {
        let RowCall { device, parameters, rows } = *call;
        let units = || self.degree_units[variable].clone();
        if units().is_empty() {
            return Ok(());
        }
        let CarryTape { hidden, inner, rho, .. } = carry;
        if let Some(last) = hidden.last_mut() {
            let output = InputGradient { to: last, accumulate: false, residual: None, gate: None };
            device.product_input_gradient(&self.output, parameters, rows, rho, units(), output)?;
        }
        for (index, [first, second]) in self.blocks.iter().enumerate().rev() {
            let (before, after) = hidden.split_at_mut(index + 1);
            let gate = Some(&tape.units.inner[index]);
            let output = InputGradient { to: &mut inner[index], accumulate: false, residual: None, gate };
            device.product_input_gradient(second, parameters, rows, &after[0], units(), output)?;
            let (residual, gate) = (Some(&after[0]), Some(&tape.units.activated[index]));
            let output = InputGradient { to: &mut before[index], accumulate: false, residual, gate };
            device.product_input_gradient(first, parameters, rows, &inner[index], units(), output)?;
        }
        Ok(())
    }
}
