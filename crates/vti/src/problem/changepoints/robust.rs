//! Values around levels with Student's t errors, whose tails let single values be far off without a change.
//!
//! The level μ of a segment is integrated by the trapezoidal rule over μ = c + b sinh u, in which steps grow outside the data. Log
//! densities of each value at each node are summed up once, so that the evidence of any segment is a sum over nodes:
//! `log ∫ N(μ) ∏ t(y; μ, σ) dμ = log Σ exp(w + S_to − S_from)`. Steps suit the narrowest posterior that all rows together can have.

use super::noise::slice;
use super::segments::Segments;
use crate::random::{Stream, Weighted};
use crate::simd::{Instructions, Kernel, Real, Vector};
use crate::stats::{ln_gamma, normal_log_density};

/// Steps in standard deviations of the narrowest posterior: the sum is off by 2 exp(−2π²/1.2²) of itself.
const STEP: f64 = 1.2;

/// The longest step, in standard deviations of the prior, which is wider than 8 of them nowhere.
const LONGEST: f64 = 0.8;
const FARTHEST: f64 = 8.5;

/// The most nodes; where they are not enough nothing that is found counts.
const MOST: usize = 8192;

/// Nodes that are looked at together, and how far below the top, in nats, they add nothing.
const TOGETHER: usize = 16;
const NEGLIGIBLE: f64 = 40.0;

/// Values with their errors' degrees of freedom and the prior of levels.
#[derive(Clone, Debug)]
pub(super) struct RobustRows {
    values: Vec<f64>,
    df: f64,
    level: (f64, f64),
    instructions: Instructions,
}

impl RobustRows {
    pub(super) fn new(values: &[f64], df: f64, level: (f64, f64)) -> Self {
        Self { values: values.to_vec(), df, level, instructions: Instructions::detect() }
    }

    /// The log density of a value so many scales from the level, but for `log σ`.
    fn log_density(&self, scaled: f64) -> f64 {
        self.constant() - 0.5 * (self.df + 1.0) * (scaled * scaled / self.df).ln_1p()
    }

    fn constant(&self) -> f64 {
        ln_gamma(0.5 * (self.df + 1.0)) - ln_gamma(0.5 * self.df) - 0.5 * (self.df * std::f64::consts::PI).ln()
    }

    /// The log density of a segment's values.
    pub(super) fn log_likelihood(&self, from: usize, to: usize, level: f64, noise: f64) -> f64 {
        let each = self.values[from..to].iter().map(|value| self.log_density((value - level) / noise));
        each.sum::<f64>() - (to - from) as f64 * noise.ln()
    }

    /// The same with the prior of the level.
    pub(super) fn log_joint(&self, from: usize, to: usize, level: f64, noise: f64) -> f64 {
        let (mean, sd) = self.level;
        normal_log_density((level - mean) / sd) - sd.ln() + self.log_likelihood(from, to, level, noise)
    }

    /// Nodes and logarithms of their weights, and whether there are enough of them.
    fn nodes(&self, noise: f64) -> (Vec<f64>, Vec<f64>, bool) {
        let (mean, sd) = self.level;
        let low = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (centre, half) = (0.5 * (low + high), 0.5 * (high - low));
        let bend = if half > 0.0 { 0.5 * half } else { sd };
        let place = |level: f64| ((level - centre) / bend).asinh();
        let (first, last) = (place(low.min(mean - FARTHEST * sd)), place(high.max(mean + FARTHEST * sd)));
        let rows = self.values.len() as f64;
        let finest = STEP * noise * (self.df / ((self.df + 1.0) * rows)).sqrt();
        let far = bend * first.abs().max(last.abs()).cosh();
        let step = (finest / bend.hypot(half)).min(LONGEST * sd / far);
        let count = ((last - first) / step).ceil();
        let is_enough = count < MOST as f64;
        let count = if is_enough { count as usize } else { MOST - 1 };
        let step = (last - first) / count as f64;
        let at = |node: usize| first + step * node as f64;
        let levels: Vec<f64> = (0..=count).map(|node| centre + bend * at(node).sinh()).collect();
        let log_weight = |(node, level): (usize, &f64)| {
            normal_log_density((level - mean) / sd) - sd.ln() + (step * bend * at(node).cosh()).ln()
        };
        let log_weights = levels.iter().enumerate().map(log_weight).collect();
        (levels, log_weights, is_enough)
    }
}

/// Segments with errors of a known scale.
#[derive(Clone, Debug)]
pub(super) struct RobustSegments<'a> {
    of: &'a RobustRows,
    noise: f64,
    levels: Vec<f64>,
    log_weights: Vec<f64>,
    /// Sums of log densities of the values before each place, at each node.
    sums: Vec<f64>,
    is_enough: bool,
}

/// Adds a value's log densities at all nodes.
struct Add<'a> {
    levels: &'a [f64],
    value: f64,
    inverse: f64,
    power: f64,
    constant: f64,
    before: &'a [f64],
    to: &'a mut [f64],
}

impl Kernel<f64> for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let Self { levels, value, inverse, power, constant, before, to } = self;
        for ((to, before), level) in to.iter_mut().zip(before).zip(levels) {
            let scaled = (value - level) * inverse;
            *to = before + constant - power * Real::ln(1.0 + scaled * scaled);
        }
    }
}

/// `log Σ exp(w + S_to − S_from)`; the logarithms are left in `logs`.
struct Total<'a> {
    log_weights: &'a [f64],
    from: &'a [f64],
    to: &'a [f64],
    logs: &'a mut [f64],
}

impl Kernel<f64> for Total<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> f64 {
        let Self { log_weights, from, to, logs } = self;
        for (((log, weight), from), to) in logs.iter_mut().zip(log_weights).zip(from).zip(to) {
            *log = weight + (to - from);
        }
        let mut tops = [f64::NEG_INFINITY; TOGETHER];
        for part in logs.chunks(TOGETHER) {
            tops.iter_mut().zip(part).for_each(|(top, log)| *top = Real::max(*top, *log));
        }
        let top = tops.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let mut sums = [0.0f64; TOGETHER];
        for part in logs.chunks(TOGETHER).filter(|part| part.iter().any(|log| *log > top - NEGLIGIBLE)) {
            sums.iter_mut().zip(part).for_each(|(sum, log)| *sum += Real::exp(*log - top));
        }
        top + sums.iter().sum::<f64>().ln()
    }
}

impl<'a> RobustSegments<'a> {
    pub(super) fn new(of: &'a RobustRows, noise: f64) -> Self {
        let (levels, log_weights, is_enough) = of.nodes(noise);
        let (nodes, rows) = (levels.len(), of.values.len());
        let mut sums = vec![0.0; nodes * (rows + 1)];
        for (row, value) in of.values.iter().enumerate() {
            let (before, to) = sums[row * nodes..][..2 * nodes].split_at_mut(nodes);
            of.instructions.run(Add {
                levels: &levels,
                value: *value,
                inverse: 1.0 / (noise * of.df.sqrt()),
                power: 0.5 * (of.df + 1.0),
                constant: of.constant() - noise.ln(),
                before,
                to,
            });
        }
        Self { of, noise, levels, log_weights, sums, is_enough }
    }

    /// Whether nodes are close enough for so small a scale.
    pub(super) fn is_enough(&self) -> bool {
        self.is_enough
    }

    fn total(&self, from: usize, to: usize, logs: &mut [f64]) -> f64 {
        let nodes = self.levels.len();
        let before = |place: usize| &self.sums[place * nodes..][..nodes];
        let total = Total { log_weights: &self.log_weights, from: before(from), to: before(to), logs };
        self.of.instructions.run(total)
    }
}

impl Segments for RobustSegments<'_> {
    fn rows(&self) -> usize {
        self.of.values.len()
    }

    fn log_evidence(&self, from: usize, to: usize) -> f64 {
        self.total(from, to, &mut vec![0.0; self.levels.len()])
    }

    /// A node, and from there a step that leaves the posterior as it is.
    fn draw(&self, from: usize, to: usize, stream: &mut Stream, parameters: &mut Vec<f64>) {
        let mut logs = vec![0.0; self.levels.len()];
        let total = self.total(from, to, &mut logs);
        let chosen = Weighted::new(logs.iter().map(|log| (log - total).exp()));
        let node = chosen.map_or(0, |chosen| chosen.draw(stream));
        let (mean, sd) = self.of.level;
        let log_density = |z: f64| normal_log_density(z) + self.of.log_likelihood(from, to, mean + sd * z, self.noise);
        let width = 3.0 * self.noise / (sd * ((to - from) as f64).sqrt());
        parameters.push(mean + sd * slice((self.levels[node] - mean) / sd, width, log_density, stream));
    }

    fn log_joint(&self, from: usize, to: usize, parameters: &[f64]) -> f64 {
        self.of.log_joint(from, to, parameters[0], self.noise)
    }
}
