//! The layers of a flow: each a bijection of the active block, in both directions, with gradients of the sampling one.

use super::context::{ContextCall, ContextNet, ContextTape, Encoded};
use super::error::FlowError;
use super::made::{CarryTape, Made, MadeScratch, MadeShape, MadeTape, RowCall};
use super::parameters::{Initialise, Layout};
use super::settings::{AffineSettings, DiagonalSettings, GlobalSettings, LayerSettings, SplineSettings};
use crate::device::{Device, DeviceError, Scale, Spline, Transform};

/// A layer: where its parameters stand.
#[derive(Clone, Debug)]
pub(super) enum Layer {
    /// `θ_i = τ_{ρ_i}(z_i)` with `ρ_i` a function of `z_{<i}` and the context.
    Autoregressive { made: Made, transform: Transform },
    /// `ρ_i` a function of the context alone, by saturated coordinate; `reversed` after an odd number of reversals.
    Diagonal { net: ContextNet, transform: Transform, reversed: bool },
    /// The same `ρ` for every coordinate of every model.
    Global { at: usize, transform: Transform },
    /// Reversal of the active block.
    Reverse,
}

/// What a layer remembers from the forward pass.
pub(super) enum LayerTape<D: Device> {
    Autoregressive(MadeTape<D>),
    Diagonal { net: ContextTape<D>, rho: D::Matrix },
    Global { rho: D::Matrix },
    Reverse,
}

/// Memory for carrying a score through a layer.
pub(super) enum ScoreTape<D: Device> {
    Autoregressive(CarryTape<D>),
    /// ρ is given: nothing comes back from later coordinates.
    Given {
        rho: D::Matrix,
        nothing: D::Matrix,
    },
}

/// Both halves of what a pass needs.
pub(super) struct Call<'a, D: Device> {
    pub rows: RowCall<'a, D>,
    pub context: ContextCall<'a, D>,
}

/// Room for a backward pass, shared by all layers.
pub(super) struct Scratch<D: Device> {
    pub made: MadeScratch<D>,
    /// Where reversals write.
    pub spare: D::Matrix,
}

/// What a backward pass carries and fills.
pub(super) struct Gradients<'a, D: Device> {
    /// From the output's gradient to the input's.
    pub x: &'a mut D::Matrix,
    pub log_det: &'a D::Matrix,
    /// Of the dense context, added.
    pub context: Option<&'a mut D::Matrix>,
    pub parameters: &'a mut D::Buffer,
}

/// `value` must lie in (0, limit).
fn check_minimum(layer: usize, what: &'static str, value: f64, limit: f64) -> Result<(), FlowError> {
    if value > 0.0 && value < limit {
        return Ok(());
    }
    Err(FlowError::Minimum { layer, what, limit: limit.to_string() })
}

fn check_positive(layer: usize, what: &'static str, value: usize) -> Result<(), FlowError> {
    if value == 0 { Err(FlowError::Zero { layer, what }) } else { Ok(()) }
}

fn affine(layer: usize, min_scale: f64) -> Result<Transform, FlowError> {
    check_minimum(layer, "min_scale", min_scale, 1.0)?;
    Ok(Transform::Affine(Scale { minimum: min_scale }))
}

fn spline(layer: usize, settings: &SplineSettings) -> Result<Transform, FlowError> {
    let SplineSettings { bins, min_width, min_height, min_slope, .. } = *settings;
    if bins == 0 || bins > Spline::MAX_BINS {
        return Err(FlowError::Bins { layer, bins, max: Spline::MAX_BINS });
    }
    check_minimum(layer, "min_width", min_width, 1.0 / bins as f64)?;
    check_minimum(layer, "min_height", min_height, 1.0 / bins as f64)?;
    check_minimum(layer, "min_slope", min_slope, 1.0)?;
    Ok(Transform::Spline(Spline { bins, min_width, min_height, slope: Scale { minimum: min_slope } }))
}

impl Layer {
    /// Checks settings and allocates parameters. `index` names the layer in errors.
    pub(super) fn allocate(
        layout: &mut Layout,
        settings: &LayerSettings,
        index: usize,
        max_dim: usize,
        context: Encoded,
        reversed: bool,
    ) -> Result<Self, FlowError> {
        let mut autoregressive = |hidden: usize, blocks: usize, transform: Transform| {
            check_positive(index, "hidden", hidden)?;
            let outputs = vec![transform.parameters(); max_dim];
            let shape = MadeShape { inputs: vec![1; max_dim], outputs, hidden, blocks };
            Ok(Self::Autoregressive { made: Made::allocate(layout, &shape, context), transform })
        };
        match settings {
            LayerSettings::Affine(AffineSettings { hidden, blocks, min_scale }) => {
                autoregressive(*hidden, *blocks, affine(index, *min_scale)?)
            }
            LayerSettings::Spline(settings) => {
                autoregressive(settings.hidden, settings.blocks, spline(index, settings)?)
            }
            LayerSettings::Diagonal(DiagonalSettings { hidden, min_scale }) => {
                let transform = affine(index, *min_scale)?;
                hidden.iter().try_for_each(|&width| check_positive(index, "hidden", width))?;
                let mut widths = hidden.clone();
                widths.push(transform.parameters() * max_dim);
                let net = ContextNet::allocate(layout, context, &widths, max_dim, false);
                net.zero_last(layout);
                Ok(Self::Diagonal { net, transform, reversed })
            }
            LayerSettings::Global(GlobalSettings { min_scale }) => {
                let transform = affine(index, *min_scale)?;
                Ok(Self::Global { at: layout.block("rho", &[transform.parameters()], Initialise::Zero), transform })
            }
            LayerSettings::Reverse {} => Ok(Self::Reverse),
        }
    }

    /// Hidden units, and inputs of the widest map, that a backward pass needs scratch for.
    pub(super) fn scratch_sizes(&self) -> (usize, usize) {
        match self {
            Self::Autoregressive { made, .. } => (made.hidden(), made.max_inputs()),
            Self::Diagonal { net, .. } => (0, net.max_inputs()),
            Self::Global { .. } | Self::Reverse => (0, 0),
        }
    }

    pub(super) fn tape<D: Device>(
        &self,
        device: &D,
        rows: usize,
        contexts: usize,
        max_dim: usize,
        training: bool,
    ) -> Result<LayerTape<D>, DeviceError> {
        let rho = |transform: &Transform| device.matrix(transform.parameters() * max_dim, rows);
        Ok(match self {
            Self::Autoregressive { made, .. } => {
                LayerTape::Autoregressive(made.tape(device, rows, contexts, training)?)
            }
            Self::Diagonal { net, transform, .. } => {
                LayerTape::Diagonal { net: net.tape(device, contexts, training)?, rho: rho(transform)? }
            }
            Self::Global { transform, .. } => LayerTape::Global { rho: rho(transform)? },
            Self::Reverse => LayerTape::Reverse,
        })
    }

    /// `y = T(x)`, adding to `log_det`.
    pub(super) fn forward<D: Device>(
        &self,
        call: &Call<'_, D>,
        tape: &mut LayerTape<D>,
        x: &D::Matrix,
        y: &mut D::Matrix,
        log_det: &mut D::Matrix,
    ) -> Result<(), DeviceError> {
        let RowCall { device, rows, .. } = call.rows;
        match (self, tape) {
            (Self::Autoregressive { made, transform }, LayerTape::Autoregressive(tape)) => {
                made.forward(&call.rows, &call.context, x, tape)?;
                device.transform(transform, rows, &tape.rho, x, y, log_det)?;
            }
            (Self::Diagonal { transform, .. } | Self::Global { transform, .. }, tape) => {
                if let Some(rho) = self.given_rho(call, tape)? {
                    device.transform(transform, rows, rho, x, y, log_det)?;
                }
            }
            (Self::Reverse, _) => device.reverse(rows, x, y)?,
            (Self::Autoregressive { .. }, _) => unreachable!("a tape belongs to its layer"),
        }
        Ok(())
    }

    /// `x = T⁻¹(y)`, adding the forward log-determinant to `log_det`. `max_dim` bounds the dimensions of the rows.
    pub(super) fn inverse<D: Device>(
        &self,
        call: &Call<'_, D>,
        tape: &mut LayerTape<D>,
        max_dim: usize,
        y: &D::Matrix,
        x: &mut D::Matrix,
        log_det: &mut D::Matrix,
    ) -> Result<(), DeviceError> {
        let RowCall { device, rows, .. } = call.rows;
        match (self, tape) {
            (Self::Autoregressive { made, transform }, LayerTape::Autoregressive(tape)) => {
                made.begin(&call.rows, &call.context, tape)?;
                // Inactive coordinates of shorter rows pass through, as they do forward.
                device.copy(rows, y, x)?;
                for variable in 0..max_dim {
                    made.step(&call.rows, x, variable, tape)?;
                    device.transform_inverse(transform, rows, variable..variable + 1, &tape.rho, y, x, log_det)?;
                }
            }
            (Self::Diagonal { transform, .. } | Self::Global { transform, .. }, tape) => {
                if let Some(rho) = self.given_rho(call, tape)? {
                    device.transform_inverse(transform, rows, 0..max_dim, rho, y, x, log_det)?;
                }
            }
            (Self::Reverse, _) => device.reverse(rows, y, x)?,
            (Self::Autoregressive { .. }, _) => unreachable!("a tape belongs to its layer"),
        }
        Ok(())
    }

    /// ρ of layers in which it does not depend on the input.
    fn given_rho<'a, D: Device>(
        &self,
        call: &Call<'_, D>,
        tape: &'a mut LayerTape<D>,
    ) -> Result<Option<&'a D::Matrix>, DeviceError> {
        let RowCall { device, parameters, rows } = call.rows;
        match (self, tape) {
            (Self::Diagonal { net, transform, reversed }, LayerTape::Diagonal { net: tape, rho }) => {
                net.forward(&call.context, tape)?;
                let Some(output) = tape.output() else { return Ok(None) };
                device.gather_coordinates(output, transform.parameters(), rows, *reversed, rho)?;
                Ok(Some(rho))
            }
            (Self::Global { at, transform }, LayerTape::Global { rho }) => {
                device.broadcast(parameters, *at, transform.parameters(), rows, rho)?;
                Ok(Some(rho))
            }
            _ => Ok(None),
        }
    }

    /// Carries gradients from output to input; `x` is the input of the forward pass, whose results `tape` holds.
    pub(super) fn backward<D: Device>(
        &self,
        call: &Call<'_, D>,
        tape: &mut LayerTape<D>,
        x: &D::Matrix,
        scratch: &mut Scratch<D>,
        gradients: &mut Gradients<'_, D>,
    ) -> Result<(), DeviceError> {
        let RowCall { device, rows, .. } = call.rows;
        let log_det = gradients.log_det;
        match (self, tape) {
            (Self::Autoregressive { made, transform }, LayerTape::Autoregressive(tape)) => {
                device.transform_gradient(transform, rows, &mut tape.rho, x, log_det, gradients.x)?;
                let context = gradients.context.as_deref_mut();
                let (rows, made_scratch) = (&call.rows, &mut scratch.made);
                let x_gradient = Some(&mut *gradients.x);
                made.backward(rows, &call.context, x, tape, made_scratch, x_gradient, context, gradients.parameters)?;
            }
            (Self::Diagonal { net, transform, reversed }, LayerTape::Diagonal { net: tape, rho }) => {
                device.transform_gradient(transform, rows, rho, x, log_det, gradients.x)?;
                if let Some(to) = tape.output_gradient() {
                    device.scatter_coordinates(rho, transform.parameters(), rows, *reversed, to)?;
                }
                let context = gradients.context.as_deref_mut();
                net.backward(&call.context, tape, &mut scratch.made.transposed, context, gradients.parameters)?;
            }
            (Self::Global { at, transform }, LayerTape::Global { rho }) => {
                device.transform_gradient(transform, rows, rho, x, log_det, gradients.x)?;
                device.broadcast_gradient(rho, *at, transform.parameters(), rows, gradients.parameters)?;
            }
            (Self::Reverse, _) => {
                device.reverse(rows, gradients.x, &mut scratch.spare)?;
                std::mem::swap(gradients.x, &mut scratch.spare);
            }
            _ => unreachable!("a tape belongs to its layer"),
        }
        Ok(())
    }
    /// What [`Layer::carry_score`] needs beside the tape.
    pub(super) fn score_tape<D: Device>(
        &self,
        device: &D,
        rows: usize,
        max_dim: usize,
    ) -> Result<Option<ScoreTape<D>>, DeviceError> {
        Ok(match self {
            Self::Autoregressive { made, .. } => Some(ScoreTape::Autoregressive(made.carry_tape(device, rows)?)),
            Self::Diagonal { transform, .. } | Self::Global { transform, .. } => Some(ScoreTape::Given {
                rho: device.matrix(transform.parameters() * max_dim, rows)?,
                nothing: device.matrix(max_dim, rows)?,
            }),
            Self::Reverse => None,
        })
    }

    /// Carries the score `∂ log q/∂x` in `score` to `∂ log q/∂y`, where `log q(y) = log q(x) − log |det ∂y/∂x|`, after a
    /// forward pass from `x` whose results `tape` holds.
    ///
    /// With J = ∂y/∂x, the new score solves `s_y J = s_x − ∂ log |det J|/∂x`. J is triangular, so the last coordinate comes
    /// first, and what it contributes to earlier ones goes back through the conditioner unit by unit: one backward pass in
    /// all.
    pub(super) fn carry_score<D: Device>(
        &self,
        call: &Call<'_, D>,
        max_dim: usize,
        x: &D::Matrix,
        (tape, score_tape): (&LayerTape<D>, Option<&mut ScoreTape<D>>),
        (score, spare): (&mut D::Matrix, &mut D::Matrix),
    ) -> Result<(), DeviceError> {
        let RowCall { device, rows, .. } = call.rows;
        match (self, tape, score_tape) {
            (
                Self::Autoregressive { made, transform },
                LayerTape::Autoregressive(tape),
                Some(ScoreTape::Autoregressive(carry)),
            ) => {
                for i in (0..max_dim).rev() {
                    made.carry_to_input(&call.rows, i, carry)?;
                    let (later, rho) = (&carry.later, &mut carry.rho);
                    device.transform_score(transform, rows, i..i + 1, &tape.rho, x, later, score, rho)?;
                    made.carry_through_units(&call.rows, i, tape, carry)?;
                }
            }
            (
                Self::Diagonal { transform, .. } | Self::Global { transform, .. },
                LayerTape::Diagonal { rho, .. } | LayerTape::Global { rho },
                Some(ScoreTape::Given { rho: rho_gradient, nothing }),
            ) => device.transform_score(transform, rows, 0..max_dim, rho, x, nothing, score, rho_gradient)?,
            (Self::Reverse, ..) => {
                device.reverse(rows, score, spare)?;
                std::mem::swap(score, spare);
            }
            _ => unreachable!("tapes belong to their layer"),
        }
        Ok(())
    }
}
