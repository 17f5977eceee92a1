//! Digits as one-hot or as scaled inputs of MADE+, on words like those of graphs over 6 nodes.

use anyhow::Result;
use vti::device::Cpu;
use vti::models::{AutoregressiveSettings, DigitInput, Draw, ModelsSettings, WordNetSettings};
use vti::random::{Purpose, Stream};
use vti::space::Dags;

use super::Bench;
use super::learn::Task;
use super::problem::log_sum_exp;
use crate::scored::{Scored, bare};

const NODES: usize = 6;

/// `log p(word) = F(digits) + Σ_b bit_b · G_b(digits)`: given the digits, bits are independent, so that the normalising
/// constant is a sum over the digits.
struct Target {
    name: &'static str,
    /// F of every word of digits.
    of_digits: Vec<f64>,
    /// G of every word of digits and bit.
    of_bits: Vec<Vec<f64>>,
}

/// The number of a word's digits.
fn number(word: &[u16]) -> usize {
    let digits = (0..NODES - 1).map(|i| (usize::from(word[i]), NODES - i));
    digits.fold(0, |number, (digit, arity)| number * arity + digit)
}

/// All words of digits, by number.
fn all_digits() -> Vec<Vec<u16>> {
    let mut words = vec![Vec::new()];
    for arity in (2..=NODES as u16).rev() {
        let longer = |word: Vec<u16>| (0..arity).map(move |digit| [word.as_slice(), &[digit]].concat());
        words = words.into_iter().flat_map(longer).collect();
    }
    words
}

/// A random smooth function of the digits: a few slow waves.
fn waves(stream: &mut Stream, size: f64) -> impl Fn(&[u16]) -> f64 + use<> {
    let waves: Vec<(Vec<f64>, f64, f64)> = (0..3)
        .map(|_| {
            let speeds = (0..NODES - 1).map(|_| stream.normal()).collect();
            (speeds, std::f64::consts::TAU * stream.uniform(), size * stream.normal())
        })
        .collect();
    move |digits| {
        let wave = |(speeds, phase, size): &(Vec<f64>, f64, f64)| {
            let angle: f64 = speeds.iter().zip(digits).map(|(speed, &digit)| speed * f64::from(digit)).sum();
            size * (angle + phase).cos()
        };
        waves.iter().map(wave).sum()
    }
}

impl Target {
    /// Everything varies smoothly with the digits.
    fn smooth() -> Self {
        let mut stream = Stream::new(5, Purpose::Other(1), 0, 0);
        let of_digits = waves(&mut stream, 1.5);
        let of_bits: Vec<_> = (0..NODES * (NODES - 1) / 2).map(|_| waves(&mut stream, 1.0)).collect();
        Self {
            name: "smooth target",
            of_digits: all_digits().iter().map(|digits| of_digits(digits)).collect(),
            of_bits: all_digits().iter().map(|digits| of_bits.iter().map(|g| g(digits)).collect()).collect(),
        }
    }

    /// Digits are Lehmer codes of orders, and every edge of the graph has a score.
    fn graphs(space: &Dags) -> Self {
        let score =
            |from: u16, to: u16| 1.5 * Stream::new(5, Purpose::Other(2), u64::from(from), u64::from(to)).normal();
        let edges = |digits: &Vec<u16>| {
            let order = space.order(digits);
            let pairs = (0..NODES).flat_map(|i| (i + 1..NODES).map(move |j| (i, j)));
            pairs.map(|(i, j)| score(order[i], order[j])).collect()
        };
        let digits = all_digits();
        let (of_digits, of_bits) = (vec![0.0; digits.len()], digits.iter().map(edges).collect());
        Self { name: "scored edges", of_digits, of_bits }
    }

    fn log_density(&self, word: &[u16]) -> f64 {
        let number = number(word);
        let bits = word[NODES - 1..].iter().zip(&self.of_bits[number]);
        self.of_digits[number] + bits.map(|(&bit, g)| f64::from(bit) * g).sum::<f64>()
    }

    /// The logarithm of the sum over all words.
    fn log_total(&self) -> f64 {
        let bits = |of_bits: &Vec<f64>| of_bits.iter().map(|g| g.exp().ln_1p()).sum::<f64>();
        let terms: Vec<f64> = self.of_digits.iter().zip(&self.of_bits).map(|(f, g)| f + bits(g)).collect();
        log_sum_exp(&terms)
    }
}

/// KL(q ‖ target) after learning, from fresh draws.
fn divergence(task: &Task<'_>, target: &Target, input: DigitInput, device: &Cpu<f32>, seed: u64) -> Result<f64> {
    const DRAWS: usize = 20_000;
    let network = WordNetSettings { digits: input, ..WordNetSettings::default() };
    let settings = ModelsSettings::Autoregressive(AutoregressiveSettings { network, ..Default::default() });
    let models = task.learn(device, &settings, seed)?;
    let mut draws = Scored::new(task.models.space(), DRAWS);
    draws.draw(device, &models, Draw { seed, purpose: Purpose::Evaluation, step: 0 })?;
    draws.score(|_, word| -target.log_density(word));
    // The loss has −log p(m) = ln |M| in it, which this target does not.
    Ok(draws.mean_loss() - task.models.space().log_count() + target.log_total())
}

/// Runs this part.
pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let space = Dags::new(NODES, 1)?;
    let models = bare(space.clone());
    let (rows, steps) = bench.of((256, 250), (512, 800));
    for target in [Target::smooth(), Target::graphs(&space)] {
        let log_target = |word: &[u16]| target.log_density(word);
        let task = Task { models: &models, log_target: &log_target, noise: 0.0, rows, steps };
        let (one_hot, its_seeds) =
            over_seeds(|seed| divergence(&task, &target, DigitInput::OneHot, bench.device, seed))?;
        let (scaled, seeds) = over_seeds(|seed| divergence(&task, &target, DigitInput::Scaled, bench.device, seed))?;
        let what = format!("{}: {steps} steps, one-hot ({its_seeds}) against scaled ({seeds})", target.name);
        bench.push("digits", &what, one_hot, scaled, "KL in nats")?;
    }
    Ok(())
}

/// The mean over three seeds, and their range in words.
fn over_seeds(mut measure: impl FnMut(u64) -> Result<f64>) -> Result<(f64, String)> {
    let found = [measure(1)?, measure(2)?, measure(3)?];
    let (low, high) = found.iter().fold((f64::INFINITY, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
    Ok((found.iter().sum::<f64>() / 3.0, format!("{low:.2} to {high:.2}")))
}
