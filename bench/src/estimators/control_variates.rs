//! Control variates of the score-function gradient of ψ.

use anyhow::Result;
use vti::device::{Cpu, Device};
use vti::flow::FlowSettings;
use vti::models::{
    AutoregressiveSettings, CategoricalSettings, ControlVariate, ControlVariateKind, ModelsSettings, WordNet,
    WordPasses, WordWorkspace,
};
use vti::space::ModelSpace;

use super::Bench;
use super::fit::{Fit, ROWS};
use super::problem::Gaussians;
use super::variance::Variance;

/// The default first, then what it is compared with.
const BASELINES: [(&str, ControlVariateKind); 3] = [
    ("leave-one-out", ControlVariateKind::LeaveOneOut {}),
    ("no baseline", ControlVariateKind::None {}),
    ("running mean", ControlVariateKind::RunningMean { decay: 0.9 }),
];

const CATEGORICAL: &str = "categorical";

/// Gradients of ψ at its present value.
trait Gradient {
    /// How many numbers ψ has.
    fn parameters(&self) -> usize;

    /// `Σ_n c_n ∇ log q(m_n)`.
    fn find(&mut self, words: &[u16], weights: &[f64]) -> Result<Vec<f64>>;
}

/// Of a logit per model.
struct OfLogits<'a> {
    problem: &'a Gaussians,
    probabilities: Vec<f64>,
}

impl<'a> OfLogits<'a> {
    fn new(fit: &Fit<'a>, device: &Cpu<f32>) -> Result<Self> {
        let catalogue = &fit.problem.catalogue;
        let width = fit.problem.space().things();
        let mut words = vec![0; catalogue.len() * width];
        for (index, word) in words.chunks_exact_mut(width).enumerate() {
            catalogue.word(index, word)?;
        }
        let mut log_q = vec![0.0; catalogue.len()];
        fit.models.log_prob(device, &words, &mut log_q)?;
        Ok(Self { problem: fit.problem, probabilities: log_q.into_iter().map(f64::exp).collect() })
    }
}

impl Gradient for OfLogits<'_> {
    fn parameters(&self) -> usize {
        self.probabilities.len()
    }

    /// `Σ_n c_n (1[m = m_n] − q(m))`.
    fn find(&mut self, words: &[u16], weights: &[f64]) -> Result<Vec<f64>> {
        let total: f64 = weights.iter().sum();
        let mut gradient: Vec<f64> = self.probabilities.iter().map(|q| -total * q).collect();
        for (word, weight) in words.chunks_exact(self.problem.space().things()).zip(weights) {
            gradient[self.problem.index(word)?] += weight;
        }
        Ok(gradient)
    }
}

/// Of a network over words.
struct OfNet<'a> {
    device: &'a Cpu<f32>,
    net: WordNet,
    parameters: <Cpu<f32> as Device>::Buffer,
    gradient: <Cpu<f32> as Device>::Buffer,
    work: WordWorkspace<Cpu<f32>>,
}

impl<'a> OfNet<'a> {
    fn new(fit: &Fit<'_>, device: &'a Cpu<f32>) -> Result<Self> {
        let net = WordNet::new(fit.problem.space().arities(), &AutoregressiveSettings::default().network)?;
        let count = net.parameter_count();
        let mut parameters = device.buffer(count)?;
        fit.models.state(device)?.take_buffer("parameters", device, &mut parameters)?;
        let work = net.workspace(device, ROWS, WordPasses::Training)?;
        Ok(Self { device, net, parameters, gradient: device.buffer(count)?, work })
    }
}

impl Gradient for OfNet<'_> {
    fn parameters(&self) -> usize {
        self.net.parameter_count()
    }

    fn find(&mut self, words: &[u16], weights: &[f64]) -> Result<Vec<f64>> {
        let Self { device, net, parameters, gradient, work } = self;
        let weights: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();
        work.write_words(*device, words)?;
        net.log_prob(*device, parameters, work, None)?;
        net.backward(*device, parameters, work, &weights, gradient)?;
        let mut found = vec![0.0; net.parameter_count()];
        device.read(gradient, &mut found)?;
        Ok(found.into_iter().map(f64::from).collect())
    }
}

/// Total variance by each baseline, each going on from what it saw in training.
fn variances(
    fit: &mut Fit<'_>,
    controls: &[ControlVariate],
    gradient: &mut dyn Gradient,
    batches: u64,
) -> Result<Vec<f64>> {
    let mut variances: Vec<Variance> = controls.iter().map(|_| Variance::new(gradient.parameters())).collect();
    for number in 0..batches {
        fit.draw_another(number)?;
        for (control, variance) in controls.iter().zip(&mut variances) {
            let batch = fit.rows.batch(1.0, f64::INFINITY);
            let mut control = control.clone();
            variance.add(gradient.find(batch.words, control.weights(&batch))?.into_iter());
        }
    }
    Ok(variances.iter().map(Variance::total).collect())
}

/// Runs this part.
pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let (steps, batches) = bench.of((300, 60), (1500, 400));
    for problem in [Gaussians::new(3, 0, 0.0)?, Gaussians::new(7, 1, 0.0)?] {
        let kinds = [
            (CATEGORICAL, ModelsSettings::Categorical(CategoricalSettings::default())),
            ("autoregressive", ModelsSettings::Autoregressive(AutoregressiveSettings::default())),
        ];
        for (kind, settings) in kinds {
            let fit = Fit::new(&problem, bench.device, &FlowSettings::affine(3, 1, 32), &settings, steps)?;
            along_training(bench, kind, fit, [(30, "early"), (steps / 4, "a quarter"), (steps, "end")], batches)?;
        }
    }
    Ok(())
}

/// Measures at some steps: early, soon after q(m) has begun to move, at the end.
fn along_training(
    bench: &mut Bench<'_>,
    kind: &str,
    mut fit: Fit<'_>,
    steps: [(u64, &str); 3],
    batches: u64,
) -> Result<()> {
    let mut controls = Vec::new();
    for (_, baseline) in BASELINES {
        controls.push(ControlVariate::new(&baseline)?);
    }
    for (step, when) in steps {
        fit.train(step, |batch| {
            for control in &mut controls {
                control.weights(batch);
            }
        })?;
        let mut gradient: Box<dyn Gradient> = match kind {
            CATEGORICAL => Box::new(OfLogits::new(&fit, bench.device)?),
            _ => Box::new(OfNet::new(&fit, bench.device)?),
        };
        let found = variances(&mut fit, &controls, gradient.as_mut(), batches)?;
        let what = format!("{kind}, {}, {when} (KL {:.2}): {}", fit.problem.name, fit.divergence(), BASELINES[0].0);
        for ((other, _), &variance) in BASELINES.iter().zip(&found).skip(1) {
            bench.push("baseline", &format!("{what} against {other}"), found[0], variance, "nats²")?;
        }
    }
    Ok(())
}
