//! A share of a batch's rows, with all memory its passes need.

use super::context::{ContextCall, ContextTape, Encoded};
use super::layer::{Call, Gradients, Layer, LayerTape, ScoreTape, Scratch};
use super::made::{Made, RowCall};
use super::workspace::Passes;
use super::{ContextShape, Flow, FlowShape};
use crate::engine::Engine;

/// A share of the rows.
pub(super) struct Lane<E: Engine> {
    pub(super) max_dim: usize,
    pub(super) rows: E::Rows,
    pub(super) contexts: E::Rows,
    pub(super) features: E::Matrix,
    pub(super) encoder: Option<ContextTape<E>>,
    /// `x[0]` is z, `x[l]` the output of layer l − 1, the last one θ.
    pub(super) x: Vec<E::Matrix>,
    pub(super) log_det: E::Matrix,
    pub(super) tapes: Vec<LayerTape<E>>,
    pub(super) training: Option<Training<E>>,
}

/// What a lane needs for gradients.
pub(super) struct Training<E: Engine> {
    pub(super) x: E::Matrix,
    pub(super) log_det: E::Matrix,
    pub(super) scratch: Scratch<E>,
    /// Of the dense context, where there is one.
    pub(super) encoded: Option<E::Matrix>,
    /// Of the features, where an encoder stands between.
    pub(super) features: Option<E::Matrix>,
    /// Of the parameters; empty in the first lane, which writes to the caller's.
    pub(super) parameters: E::Buffer,
    /// Where scores are wanted.
    pub(super) scores: Option<Scores<E>>,
}

/// What a lane needs for the score `∂ log q/∂θ`.
pub(super) struct Scores<E: Engine> {
    pub(super) x: E::Matrix,
    tapes: Vec<Option<ScoreTape<E>>>,
}

/// The contexts of a lane: their rows, and what rows see of them.
struct ContextRows<'a, E: Engine> {
    contexts: &'a E::Rows,
    features: &'a E::Matrix,
    encoder: &'a Option<ContextTape<E>>,
}

/// What every pass over a lane hands to its layers: rows see features through the encoder, if there is one.
fn call<'a, E: Engine>(
    engine: &'a E,
    parameters: &'a E::Buffer,
    rows: &'a E::Rows,
    ContextRows { contexts, features, encoder }: ContextRows<'a, E>,
) -> Call<'a, E> {
    let encoded = encoder.as_ref().and_then(ContextTape::output).unwrap_or(features);
    Call {
        rows: RowCall { engine, parameters, rows },
        context: ContextCall { engine, parameters, rows: contexts, encoded },
    }
}

impl<E: Engine> Lane<E> {
    pub(super) fn new(flow: &Flow, engine: &E, rows: usize, passes: Passes, first: bool) -> Self {
        let FlowShape { max_dim, context } = flow.shape;
        let training = passes != Passes::Evaluation;
        let coordinates = || engine.matrix(max_dim, rows);
        let features = if let ContextShape::Features(width) = context { width } else { 0 };
        let sizes = flow.layers.iter().map(Layer::scratch_sizes);
        let (hidden, inputs) = sizes.fold((0, 0), |(h, i), (hidden, inputs)| (h.max(hidden), i.max(inputs)));
        let inputs = inputs.max(flow.encoder.as_ref().map_or(0, |encoder| encoder.max_inputs()));
        let dense = match flow.encoded {
            Encoded::Dense(width) => Some(width),
            Encoded::Symbols(_) => None,
        };
        Self {
            max_dim: 0,
            rows: engine.rows(rows, max_dim),
            contexts: engine.rows(rows, 0),
            features: engine.matrix(features, rows),
            encoder: flow.encoder.as_ref().map(|encoder| encoder.tape(engine, rows, training)),
            x: (0..=flow.layers.len()).map(|_| coordinates()).collect(),
            log_det: engine.matrix(1, rows),
            tapes: flow.layers.iter().map(|layer| layer.tape(engine, rows, rows, max_dim, training)).collect(),
            training: training.then(|| Training {
                x: coordinates(),
                log_det: engine.matrix(1, rows),
                scratch: Scratch { made: Made::scratch(engine, hidden, inputs, rows), spare: coordinates() },
                encoded: dense.map(|width| engine.matrix(width, rows)),
                features: (flow.encoder.is_some() && features > 0).then(|| engine.matrix(features, rows)),
                parameters: engine.buffer(if first { 0 } else { flow.parameter_count() }),
                scores: (passes == Passes::TrainingWithScores).then(|| Scores {
                    x: coordinates(),
                    tapes: flow.layers.iter().map(|layer| layer.score_tape(engine, rows, max_dim)).collect(),
                }),
            }),
        }
    }

    fn encode(&mut self, flow: &Flow, engine: &E, parameters: &E::Buffer) {
        if let (Some(encoder), Some(tape)) = (&flow.encoder, &mut self.encoder) {
            let call = ContextCall { engine, parameters, rows: &self.contexts, encoded: &self.features };
            encoder.forward(&call, tape);
        }
    }

    pub(super) fn forward(&mut self, flow: &Flow, engine: &E, parameters: &E::Buffer) {
        self.encode(flow, engine, parameters);
        let Self { rows, contexts, features, encoder, x, log_det, tapes, .. } = self;
        let call = call(engine, parameters, rows, ContextRows { contexts, features, encoder });
        engine.clear(log_det);
        for (index, (layer, tape)) in flow.layers.iter().zip(tapes).enumerate() {
            let (before, after) = x.split_at_mut(index + 1);
            layer.forward(&call, tape, &before[index], &mut after[0], log_det);
        }
    }

    pub(super) fn inverse(&mut self, flow: &Flow, engine: &E, parameters: &E::Buffer) {
        self.encode(flow, engine, parameters);
        let Self { max_dim, rows, contexts, features, encoder, x, log_det, tapes, .. } = self;
        let call = call(engine, parameters, rows, ContextRows { contexts, features, encoder });
        engine.clear(log_det);
        for (index, (layer, tape)) in flow.layers.iter().zip(tapes).enumerate().rev() {
            let (before, after) = x.split_at_mut(index + 1);
            layer.inverse(&call, tape, *max_dim, &after[0], &mut before[index], log_det);
        }
    }

    /// From the score `∂ log ν/∂z` to `∂ log q/∂θ`, after a forward pass.
    pub(super) fn carry_scores(&mut self, flow: &Flow, engine: &E, parameters: &E::Buffer) {
        let Self { max_dim, rows, contexts, features, encoder, x, tapes, training, .. } = self;
        let Some(Training { scratch, scores: Some(scores), .. }) = training else { return };
        let call = call(engine, parameters, rows, ContextRows { contexts, features, encoder });
        let tapes = tapes.iter().zip(&mut scores.tapes);
        for ((layer, (tape, score_tape)), x) in flow.layers.iter().zip(tapes).zip(&*x) {
            let spare = &mut scratch.spare;
            layer.carry_score(&call, *max_dim, x, (tape, score_tape.as_mut()), (&mut scores.x, spare));
        }
    }

    pub(super) fn backward(&mut self, flow: &Flow, engine: &E, parameters: &E::Buffer) {
        let Self { rows, contexts, features, encoder, x, tapes, training, .. } = self;
        let Some(training) = training else { return };
        let Training {
            x: x_gradient,
            log_det,
            scratch,
            encoded: encoded_gradient,
            features: feature_gradient,
            parameters: gradient,
            scores: _,
        } = training;
        if let Some(matrix) = encoded_gradient {
            engine.clear(matrix);
        }
        let call = call(engine, parameters, rows, ContextRows { contexts, features, encoder });
        for (index, (layer, tape)) in flow.layers.iter().zip(tapes).enumerate().rev() {
            let context = encoded_gradient.as_mut();
            let mut gradients = Gradients { x: x_gradient, log_det, context, parameters: gradient };
            layer.backward(&call, tape, &x[index], scratch, &mut gradients);
        }
        if let (Some(net), Some(tape), Some(from)) = (&flow.encoder, encoder, encoded_gradient) {
            let call = ContextCall { engine, parameters, rows: contexts, encoded: features };
            if let Some(to) = tape.output_gradient() {
                engine.copy(contexts, from, to);
            }
            if let Some(matrix) = feature_gradient.as_mut() {
                engine.clear(matrix);
            }
            let scratch = &mut scratch.made.transposed;
            net.backward(&call, tape, scratch, feature_gradient.as_mut(), gradient);
        }
    }
}
