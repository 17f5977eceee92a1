//! The table of flows that every law is checked on, and a harness to run them.

use std::collections::HashMap;

use vti::device::{Cpu, Device};
use vti::flow::{
    AffineSettings, Batch, ContextShape, DiagonalSettings, Flow, FlowError, FlowSettings, FlowShape, GlobalSettings,
    LayerSettings, Passes, SplineSettings, Workspace,
};
use vti::random::{Purpose, Stream};
use vti::simd::Instructions;
use vti::simd::Real;

use crate::slow;

/// One line of the table.
pub struct Case {
    pub name: String,
    pub settings: FlowSettings,
    pub shape: FlowShape,
}

impl Case {
    /// Whether a spline's accuracy bounds that of the whole.
    pub fn has_spline(&self) -> bool {
        self.settings.layers.iter().any(|layer| matches!(layer, LayerSettings::Spline(_)))
    }

    /// Whether splines are the only layers that depend on z or the context.
    pub fn has_only_splines(&self) -> bool {
        let other = |layer: &LayerSettings| matches!(layer, LayerSettings::Affine(_) | LayerSettings::Diagonal(_));
        self.has_spline() && !self.settings.layers.iter().any(other)
    }

    /// Whether there is an autoregressive layer.
    pub fn has_conditioner(&self) -> bool {
        self.has_spline() || self.settings.layers.iter().any(|layer| matches!(layer, LayerSettings::Affine(_)))
    }
}

fn affine(hidden: usize, blocks: usize) -> LayerSettings {
    LayerSettings::Affine(AffineSettings { hidden, blocks, ..AffineSettings::default() })
}

fn spline(hidden: usize, blocks: usize, bins: usize) -> LayerSettings {
    LayerSettings::Spline(SplineSettings { hidden, blocks, bins, ..SplineSettings::default() })
}

fn diagonal(hidden: &[usize]) -> LayerSettings {
    LayerSettings::Diagonal(DiagonalSettings { hidden: hidden.to_vec(), ..DiagonalSettings::default() })
}

fn compositions() -> Vec<(&'static str, Vec<LayerSettings>)> {
    let global = || LayerSettings::Global(GlobalSettings::default());
    let reverse = || LayerSettings::Reverse {};
    vec![
        ("affine", vec![affine(8, 1)]),
        ("affine, narrow, no blocks", vec![affine(3, 0), reverse(), affine(1, 0)]),
        ("affine × 3", FlowSettings::affine(3, 2, 20).layers),
        ("spline", vec![spline(9, 1, 10)]),
        ("spline × 2, global", FlowSettings::spline(2, 2, 14).layers),
        ("spline with one bin", vec![spline(5, 1, 1)]),
        ("spline with 32 bins", vec![spline(5, 1, 32)]),
        ("diagonal, table", vec![diagonal(&[])]),
        ("diagonal, two hidden layers", vec![diagonal(&[7, 5])]),
        ("global", vec![global()]),
        ("reverse", vec![reverse()]),
        (
            "everything",
            vec![
                diagonal(&[4]),
                reverse(),
                affine(11, 1),
                global(),
                reverse(),
                spline(6, 2, 4),
                reverse(),
                diagonal(&[]),
            ],
        ),
    ]
}

/// Every composition with every kind of context and several saturated dimensions.
pub fn table() -> Vec<Case> {
    let contexts: [(&str, ContextShape, &[usize]); 6] = [
        ("no context", ContextShape::Symbols(1), &[]),
        ("symbols", ContextShape::Symbols(5), &[]),
        ("features", ContextShape::Features(3), &[]),
        ("encoded symbols", ContextShape::Symbols(4), &[6]),
        ("encoded features", ContextShape::Features(2), &[5, 4]),
        ("encoded nothing", ContextShape::Symbols(1), &[3]),
    ];
    let mut cases = Vec::new();
    for (what, layers) in compositions() {
        for (context_name, context, encoder) in contexts {
            for max_dim in [1, 2, 5, 19] {
                cases.push(Case {
                    name: format!("{what}; {context_name}; d_max {max_dim}"),
                    settings: FlowSettings { layers: layers.clone(), encoder: encoder.to_vec() },
                    shape: FlowShape { max_dim, context },
                });
            }
        }
    }
    cases
}

/// A case with parameters, rows and reference variables, all random.
pub struct Setup<T: Real> {
    pub flow: Flow,
    pub settings: FlowSettings,
    pub device: Cpu<T>,
    pub parameters: Vec<T>,
    pub batch: Batch<T>,
    /// Saturated: `d_max` numbers a row.
    pub z: Vec<T>,
    pub features: Vec<T>,
    pub contexts: Vec<u32>,
}

/// Random rows: dimensions 0, 1 and `d_max` first, then any.
fn random_active(max_dim: usize, row: usize, stream: &mut Stream) -> Vec<u32> {
    let mut active: Vec<u32> = match row {
        0 => vec![],
        1 => (0..max_dim as u32).collect(),
        2 => vec![stream.below(max_dim as u64) as u32],
        _ => (0..max_dim as u32).filter(|_| stream.uniform() < 0.5).collect(),
    };
    active.sort_unstable();
    active
}

/// Numbers that are the same in both precisions.
fn round<T: Real>(x: f64) -> T {
    T::from_f64(f64::from(x as f32))
}

impl<T: Real> Setup<T>
where
    Cpu<T>: Device<Real = T>,
{
    pub fn new(case: &Case, rows: usize, seed: u64) -> Self {
        Self::with_contexts(case, rows, seed, 7, |stream, count, _| stream.below(count) as u32)
    }

    /// With so many contexts given by features, and a choice of the context of each row.
    pub fn with_contexts(
        case: &Case,
        rows: usize,
        seed: u64,
        feature_rows: usize,
        choose: impl Fn(&mut Stream, u64, usize) -> u32,
    ) -> Self {
        let flow = Flow::new(&case.settings, case.shape).expect(&case.name);
        let mut stream = Stream::new(seed, Purpose::Other(1), 0, 0);
        // All parameters random, the zero-initialised ones too, but exact zeros where the masks want them.
        let masks = slow::masks(&case.settings, case.shape, flow.tensors());
        // Weights shrink with the number of inputs, as a trained network's do: the flow stays well-conditioned.
        let mut parameters = vec![T::ZERO; flow.parameter_count()];
        for tensor in flow.tensors() {
            let scale = if tensor.name.contains("output") { 0.3 } else { 0.6 };
            let scale = scale / (tensor.shape.get(1).map_or(1, |&columns| columns.max(1)) as f64).sqrt();
            for place in tensor.range().filter(|&place| masks[place]) {
                parameters[place] = round(scale * stream.normal());
            }
        }
        let mut batch = Batch::new();
        let mut features: Vec<T> = Vec::new();
        let count = match case.shape.context {
            ContextShape::Symbols(count) => count,
            ContextShape::Features(width) => {
                for _ in 0..feature_rows {
                    let row: Vec<T> = (0..width).map(|_| round(stream.normal())).collect();
                    batch.push_features(&row);
                    features.extend(row);
                }
                feature_rows
            }
        };
        let mut contexts = Vec::new();
        for row in 0..rows {
            let context = choose(&mut stream, count as u64, row);
            batch.push(&random_active(case.shape.max_dim, row, &mut stream), context);
            contexts.push(context);
        }
        let z = (0..rows * case.shape.max_dim).map(|_| round(1.5 * stream.normal())).collect();
        let device = Cpu::single();
        Self { flow, settings: case.settings.clone(), device, parameters, batch, z, features, contexts }
    }

    pub fn with_instructions(mut self, instructions: Instructions) -> Self {
        self.device = self.device.with_instructions(instructions);
        self
    }

    pub fn max_dim(&self) -> usize {
        self.flow.shape().max_dim
    }

    pub fn device_parameters(&self) -> <Cpu<T> as Device>::Buffer {
        let mut buffer = self.device.buffer(self.parameters.len()).unwrap();
        self.device.write(&self.parameters, &mut buffer).unwrap();
        buffer
    }

    pub fn workspace(&self, batch: &Batch<T>, passes: Passes) -> Workspace<Cpu<T>> {
        let mut work = self.flow.workspace(&self.device, batch.rows(), passes).unwrap();
        work.set_batch(&self.device, batch).expect("a valid batch");
        work
    }

    /// `(θ, u)` and log-determinants of saturated `z`.
    pub fn forward(&self, batch: &Batch<T>, z: &[T]) -> (Vec<T>, Vec<T>) {
        let (theta, log_det, result) = self.try_forward(batch, z);
        result.expect("finite");
        (theta, log_det)
    }

    /// The same, finite or not.
    pub fn try_forward(&self, batch: &Batch<T>, z: &[T]) -> (Vec<T>, Vec<T>, Result<(), FlowError>) {
        let mut work = self.workspace(batch, Passes::Evaluation);
        work.write_saturated_z(&self.device, z).expect("long enough");
        self.flow.forward(&self.device, &self.device_parameters(), &mut work).expect("a pass");
        let (mut theta, mut log_det) = (z.to_vec(), vec![T::ZERO; batch.rows()]);
        let result = work.read_saturated_theta(&self.device, &mut theta, &mut log_det);
        (theta, log_det, result)
    }

    /// z and log-determinants of left-aligned `theta`.
    pub fn inverse(&self, batch: &Batch<T>, theta: &[T]) -> (Vec<T>, Vec<T>) {
        let mut work = self.workspace(batch, Passes::Evaluation);
        work.write_theta(&self.device, theta).expect("long enough");
        self.flow.inverse(&self.device, &self.device_parameters(), &mut work).expect("a pass");
        let (mut z, mut log_det) = (vec![T::ZERO; theta.len()], vec![T::ZERO; batch.rows()]);
        work.read_z(&self.device, &mut z, &mut log_det).expect("finite");
        (z, log_det)
    }

    /// Active coordinates first: what `P_m` does.
    pub fn left_align(&self, saturated: &[T]) -> Vec<T> {
        let mut aligned = vec![T::ZERO; saturated.len()];
        for row in 0..self.batch.rows() {
            for (i, &c) in self.batch.active(row).iter().enumerate() {
                aligned[row * self.max_dim() + i] = saturated[row * self.max_dim() + c as usize];
            }
        }
        aligned
    }

    /// The same batch with row `row` repeated `times` times.
    pub fn repeat(&self, row: usize, times: usize) -> Batch<T> {
        self.select(std::iter::repeat_n(row, times))
    }

    /// A batch of some of the rows, with all contexts.
    pub fn select(&self, rows: impl Iterator<Item = usize>) -> Batch<T> {
        let mut batch = Batch::new();
        if let ContextShape::Features(width) = self.flow.shape().context {
            for features in self.features.chunks(width) {
                batch.push_features(features);
            }
        }
        for row in rows {
            batch.push(self.batch.active(row), self.contexts[row]);
        }
        batch
    }

    /// The slow implementation with the same parameters.
    pub fn slow(&self) -> slow::SlowFlow {
        let values: HashMap<String, Vec<f64>> = self
            .flow
            .tensors()
            .iter()
            .map(|t| (t.name.clone(), self.parameters[t.range()].iter().map(|x| x.to_f64()).collect()))
            .collect();
        slow::SlowFlow::new(self.settings.clone(), self.flow.shape(), values)
    }

    pub fn slow_context(&self, row: usize) -> slow::Context {
        match self.flow.shape().context {
            ContextShape::Symbols(_) => slow::Context::Symbol(self.contexts[row] as usize),
            ContextShape::Features(width) => {
                let features = &self.features[self.contexts[row] as usize * width..][..width];
                slow::Context::Dense(features.iter().map(|x| x.to_f64()).collect())
            }
        }
    }
}
