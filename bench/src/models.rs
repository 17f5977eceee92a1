//! Distributions over models: what a step (draw a batch, learn from its scores) costs as the number of models grows.

use std::sync::Arc;

use anyhow::Result;
use vti::device::Cpu;
use vti::models::{
    AutoregressiveSettings, CategoricalSettings, Covariance, Draw, ModelDistribution, ModelsSettings, ScoredBatch,
    SurrogateSettings, build,
};
use vti::problem::{Problem, from_fn};
use vti::random::{Purpose, Stream};
use vti::space::Subsets;
use vti::train::TrainSettings;

use crate::Options;
use crate::report::{Line, Report};
use crate::timing::{fastest, milliseconds, seconds};

const ROWS: usize = 1024;

/// Standard deviation of the noise of scores, in nats.
const NOISE: f64 = 0.5;

/// A distribution, and the numbers of bits it is measured with.
struct Kind {
    name: &'static str,
    settings: ModelsSettings,
    bits: &'static [usize],
}

fn kinds() -> Vec<Kind> {
    let surrogate =
        |covariance| ModelsSettings::Surrogate(SurrogateSettings { covariance, ..SurrogateSettings::default() });
    let categorical = ModelsSettings::Categorical(CategoricalSettings::default());
    let autoregressive = ModelsSettings::Autoregressive(AutoregressiveSettings::default());
    let kind = |name, settings, bits| Kind { name, settings, bits };
    vec![
        kind("categorical", categorical, &[7, 9, 11, 14, 17, 20]),
        kind("diagonal", surrogate(Covariance::Diagonal), &[7, 9, 11, 14, 17, 20]),
        kind("full", surrogate(Covariance::Full), &[7, 9, 11, 12]),
        kind("autoregressive", autoregressive, &[10, 20, 54, 100, 200]),
    ]
}

/// A smooth function of a word of bits: every bit has an effect, and so has every pair of neighbours.
fn smooth(word: &[u16]) -> f64 {
    let sign = |bit: u16| if bit == 0 { -1.0 } else { 1.0 };
    let own = (0..).zip(word).map(|(i, &bit)| 0.4 * (1.7 * f64::from(i) + 0.3).sin() * sign(bit));
    let pairs = (0..).zip(word.windows(2)).map(|(i, w)| 0.3 * (2.3 * f64::from(i)).cos() * sign(w[0]) * sign(w[1]));
    own.sum::<f64>() + pairs.sum::<f64>()
}

/// A distribution while it learns from made-up scores.
struct Running<'a> {
    device: &'a Cpu<f32>,
    models: Box<dyn ModelDistribution<Cpu<f32>>>,
    words: Vec<u16>,
    log_q: Vec<f64>,
    /// Uniform.
    log_prior: Vec<f64>,
    /// Of the trainer's default settings, once it lets q(m) move.
    information_limit: f64,
    step: u64,
    /// Seconds of drawing, and of learning.
    times: [Vec<f64>; 2],
}

impl<'a> Running<'a> {
    fn new(device: &'a Cpu<f32>, problem: &Arc<dyn Problem>, settings: &ModelsSettings) -> Result<Self> {
        let space = problem.space();
        let TrainSettings { information, steps, .. } = TrainSettings::default();
        Ok(Self {
            device,
            models: build(device, problem, false, settings, ROWS, 1)?.models,
            words: vec![0; ROWS * space.arities().len()],
            log_q: vec![0.0; ROWS],
            log_prior: vec![-space.log_count(); ROWS],
            information_limit: information.limit(steps, steps, space.log_count(), false),
            step: 0,
            times: [Vec::new(), Vec::new()],
        })
    }

    /// One step; making scores up is not counted.
    fn step(&mut self) -> Result<()> {
        let Self { device, models, words, log_q, log_prior, information_limit, step, times } = self;
        let draw = Draw { seed: 1, purpose: Purpose::Models, step: *step };
        times[0].push(seconds(|| Ok(models.sample(device, draw, words, log_q)?))?);
        let score =
            |(row, word): (u64, &[u16])| NOISE * Stream::new(1, Purpose::Reference, *step, row).normal() - smooth(word);
        let log_h: Vec<f64> = (0..).zip(words.chunks_exact(words.len() / ROWS)).map(score).collect();
        let (kept, information_limit) = (&[true; ROWS], *information_limit);
        let batch =
            ScoredBatch { words, log_q, log_prior, log_h: &log_h, kept, blocks: None, pace: 1.0, information_limit };
        times[1].push(seconds(|| {
            models.update(device, &batch)?;
            Ok(())
        })?);
        *step += 1;
        Ok(())
    }

    /// Two steps that do not count, and then how many fill `share` seconds.
    fn warm_up(&mut self, share: f64) -> Result<usize> {
        self.step()?;
        self.step()?;
        let last = self.times.iter_mut().filter_map(|times| times.drain(..).next_back()).sum::<f64>();
        Ok((share / last).clamp(1.0, 100.0) as usize)
    }

    /// Seconds of whole steps.
    fn whole(&self) -> Vec<f64> {
        self.times[0].iter().zip(&self.times[1]).map(|(drawing, learning)| drawing + learning).collect()
    }
}

/// Runs everything.
pub(crate) fn run(options: &Options) -> Result<()> {
    let notes = vec![
        format!(
            "{ROWS} rows, f32, {} threads; medians of interleaved rounds; a step draws a batch and learns from its scores.",
            options.threads
        ),
        "Scores are a smooth function of the word and noise; the peer is the smallest size of the same distribution, \
         and so the ratio is growth."
            .into(),
    ];
    let mut report = Report::new("models", options, notes);
    let device = Cpu::new(options.threads)?;
    for kind in kinds().iter().filter(|kind| options.wants(kind.name)) {
        growth(kind, &device, options, &mut report)?;
    }
    report.save(options)
}

/// All sizes of a distribution, taking turns.
fn growth(kind: &Kind, device: &Cpu<f32>, options: &Options, report: &mut Report) -> Result<()> {
    let (rounds, budget) = if options.quick { (3, 0.3) } else { (5, 2.0) };
    let mut running = Vec::new();
    for &bits in kind.bits {
        // Densities nobody asks for.
        let problem: Arc<dyn Problem> = Arc::new(from_fn(Subsets::new(bits)?, |_, _, _| 0.0));
        let mut size = Running::new(device, &problem, &kind.settings)?;
        let steps = size.warm_up(budget / f64::from(rounds))?;
        running.push((size, steps));
    }
    for _ in 0..rounds {
        for (size, steps) in &mut running {
            (0..*steps).try_for_each(|_| size.step())?;
        }
    }
    let mut smallest = None;
    for (bits, (size, _)) in kind.bits.iter().zip(running) {
        let fastest = Some((fastest(&size.whole()), None));
        let ours = milliseconds(size.whole());
        let [drawing, learning] = size.times.map(milliseconds);
        let what = format!("2^{bits} models: draw ({drawing:.3}), learn ({learning:.3}); peer: 2^{}", kind.bits[0]);
        let peer = Some(*smallest.get_or_insert(ours));
        report.push(Line { fastest, ..Line::against(kind.name, &what, ours, peer, "") })?;
    }
    Ok(())
}
