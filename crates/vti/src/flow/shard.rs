//! A share of a batch's rows, with all memory its passes need.

use super::context::{ContextCall, ContextTape, Encoded};
use super::layer::{Call, Gradients, Layer, LayerTape, ScoreTape, Scratch};
use super::made::{Made, RowCall};
use super::workspace::Passes;
use super::{ContextShape, Flow, FlowShape};
use crate::device::{Device, DeviceError};

/// A share of the rows.
pub(super) struct Shard<D: Device> {
    pub(super) max_dim: usize,
    pub(super) rows: D::Rows,
    pub(super) contexts: D::Rows,
    pub(super) features: D::Matrix,
    pub(super) encoder: Option<ContextTape<D>>,
    /// `x[0]` is z, `x[l]` the output of layer l − 1, the last one θ.
    pub(super) x: Vec<D::Matrix>,
    pub(super) log_det: D::Matrix,
    pub(super) tapes: Vec<LayerTape<D>>,
    pub(super) training: Option<Training<D>>,
}

/// What a shard needs for gradients.
pub(super) struct Training<D: Device> {
    pub(super) x: D::Matrix,
    pub(super) log_det: D::Matrix,
    pub(super) scratch: Scratch<D>,
    /// Of what the encoder makes of contexts, where there is one.
    encoded: Option<D::Matrix>,
    /// Of the parameters; empty in the first shard, which writes to the caller's.
    pub(super) parameters: D::Buffer,
    /// Where scores are wanted.
    pub(super) scores: Option<Scores<D>>,
}

/// What a shard needs for the score `∂ log q/∂θ`.
pub(super) struct Scores<D: Device> {
    pub(super) x: D::Matrix,
    tapes: Vec<Option<ScoreTape<D>>>,
}

/// The contexts of a shard: their rows, and what rows see of them.
struct ContextRows<'a, D: Device> {
    contexts: &'a D::Rows,
    features: &'a D::Matrix,
    encoder: &'a Option<ContextTape<D>>,
}

/// What every pass over a shard hands to its layers: rows see features through the encoder, if there is one.
fn call<'a, D: Device>(
    device: &'a D,
    parameters: &'a D::Buffer,
    rows: &'a D::Rows,
    ContextRows { contexts, features, encoder }: ContextRows<'a, D>,
) -> Call<'a, D> {
    let encoded = encoder.as_ref().and_then(ContextTape::output).unwrap_or(features);
    Call {
        rows: RowCall { device, parameters, rows },
        context: ContextCall { device, parameters, rows: contexts, encoded },
    }
}

impl<D: Device> Shard<D> {
    pub(super) fn new(flow: &Flow, device: &D, rows: usize, passes: Passes, first: bool) -> Result<Self, DeviceError> {
        let FlowShape { max_dim, context } = flow.shape;
        let training = passes != Passes::Evaluation;
        let coordinates = || device.matrix(max_dim, rows);
        let features = if let ContextShape::Features(width) = context { width } else { 0 };
        let sizes = flow.layers.iter().map(Layer::scratch_sizes);
        let (hidden, inputs) = sizes.fold((0, 0), |(h, i), (hidden, inputs)| (h.max(hidden), i.max(inputs)));
        let inputs = inputs.max(flow.encoder.as_ref().map_or(0, |encoder| encoder.max_inputs()));
        let dense = match (&flow.encoder, flow.encoded) {
            (Some(_), Encoded::Dense(width)) => Some(width),
            _ => None,
        };
        let scores = || {
            let tapes = flow.layers.iter().map(|layer| layer.score_tape(device, rows, max_dim));
            Ok::<_, DeviceError>(Scores { x: coordinates()?, tapes: tapes.collect::<Result<_, _>>()? })
        };
        let for_training = || {
            Ok::<_, DeviceError>(Training {
                x: coordinates()?,
                log_det: device.matrix(1, rows)?,
                scratch: Scratch { made: Made::scratch(device, hidden, inputs, rows)?, spare: coordinates()? },
                encoded: dense.map(|width| device.matrix(width, rows)).transpose()?,
                parameters: device.buffer(if first { 0 } else { flow.parameter_count() })?,
                scores: (passes == Passes::TrainingWithScores).then(scores).transpose()?,
            })
        };
        let tapes = flow.layers.iter().map(|layer| layer.tape(device, rows, rows, max_dim, training));
        Ok(Self {
            max_dim: 0,
            rows: device.rows(rows, max_dim)?,
            contexts: device.rows(rows, 0)?,
            features: device.matrix(features, rows)?,
            encoder: flow.encoder.as_ref().map(|encoder| encoder.tape(device, rows, training)).transpose()?,
            x: (0..=flow.layers.len()).map(|_| coordinates()).collect::<Result<_, _>>()?,
            log_det: device.matrix(1, rows)?,
            tapes: tapes.collect::<Result<_, _>>()?,
            training: training.then(for_training).transpose()?,
        })
    }

    fn encode(&mut self, flow: &Flow, device: &D, parameters: &D::Buffer) -> Result<(), DeviceError> {
        if let (Some(encoder), Some(tape)) = (&flow.encoder, &mut self.encoder) {
            let call = ContextCall { device, parameters, rows: &self.contexts, encoded: &self.features };
            encoder.forward(&call, tape)?;
        }
        Ok(())
    }

    pub(super) fn forward(&mut self, flow: &Flow, device: &D, parameters: &D::Buffer) -> Result<(), DeviceError> {
        self.encode(flow, device, parameters)?;
        let Self { rows, contexts, features, encoder, x, log_det, tapes, .. } = self;
        let call = call(device, parameters, rows, ContextRows { contexts, features, encoder });
        device.clear(log_det)?;
        for (index, (layer, tape)) in flow.layers.iter().zip(tapes).enumerate() {
            let (before, after) = x.split_at_mut(index + 1);
            layer.forward(&call, tape, &before[index], &mut after[0], log_det)?;
        }
        Ok(())
    }

    pub(super) fn inverse(&mut self, flow: &Flow, device: &D, parameters: &D::Buffer) -> Result<(), DeviceError> {
        self.encode(flow, device, parameters)?;
        let Self { max_dim, rows, contexts, features, encoder, x, log_det, tapes, .. } = self;
        let call = call(device, parameters, rows, ContextRows { contexts, features, encoder });
        device.clear(log_det)?;
        for (index, (layer, tape)) in flow.layers.iter().zip(tapes).enumerate().rev() {
            let (before, after) = x.split_at_mut(index + 1);
            layer.inverse(&call, tape, *max_dim, &after[0], &mut before[index], log_det)?;
        }
        Ok(())
    }

    /// From the score `∂ log ν/∂z` to `∂ log q/∂θ`, after a forward pass.
    pub(super) fn carry_scores(&mut self, flow: &Flow, device: &D, parameters: &D::Buffer) -> Result<(), DeviceError> {
        let Self { max_dim, rows, contexts, features, encoder, x, tapes, training, .. } = self;
        let Some(Training { scratch, scores: Some(scores), .. }) = training else { return Ok(()) };
        let call = call(device, parameters, rows, ContextRows { contexts, features, encoder });
        let tapes = tapes.iter().zip(&mut scores.tapes);
        for ((layer, (tape, score_tape)), x) in flow.layers.iter().zip(tapes).zip(&*x) {
            let spare = &mut scratch.spare;
            layer.carry_score(&call, *max_dim, x, (tape, score_tape.as_mut()), (&mut scores.x, spare))?;
        }
        Ok(())
    }

    pub(super) fn backward(&mut self, flow: &Flow, device: &D, parameters: &D::Buffer) -> Result<(), DeviceError> {
        let Self { rows, contexts, features, encoder, x, tapes, training, .. } = self;
        let Some(training) = training else { return Ok(()) };
        let Training { x: x_gradient, log_det, scratch, encoded: encoded_gradient, parameters: gradient, .. } =
            training;
        if let Some(matrix) = encoded_gradient {
            device.clear(matrix)?;
        }
        let call = call(device, parameters, rows, ContextRows { contexts, features, encoder });
        for (index, (layer, tape)) in flow.layers.iter().zip(tapes).enumerate().rev() {
            let context = encoded_gradient.as_mut();
            let mut gradients = Gradients { x: x_gradient, log_det, context, parameters: gradient };
            layer.backward(&call, tape, &x[index], scratch, &mut gradients)?;
        }
        if let (Some(net), Some(tape), Some(from)) = (&flow.encoder, encoder, encoded_gradient) {
            let call = ContextCall { device, parameters, rows: contexts, encoded: features };
            if let Some(to) = tape.output_gradient() {
                device.copy(contexts, from, to)?;
            }
            net.backward(&call, tape, &mut scratch.made.transposed, None, gradient)?;
        }
        Ok(())
    }
}
