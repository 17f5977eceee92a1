//! Changes of the rate of events: integrals over all positions, by recursion over segments.
//!
//! With `g(s, t)` the spacing factor times the evidence of the events between s and t, `A_0(t) = g(0, t)` and
//! `A_k(t) = ∫ A_{k−1}(s) g(s, t) ds`. Between events all of these are smooth, so Gauss–Legendre nodes between breaks, of which
//! every event is one, give almost all digits; the integral over the part of an interval before t takes A_{k−1} there from
//! the polynomial through its nodes.

use super::rows::LogSum;
use super::segments::GammaPoisson;
use crate::random::{Stream, Weighted};

/// Nodes of an interval.
const NODES: usize = 6;

/// Nodes of all intervals at most, unless events alone need more.
const MAX_NODES: usize = 12_000;

/// Intervals of equal lengths whose expected numbers of changes are reported.
pub(super) const BINS: usize = 100;

/// Points of an interval between which a drawn position is interpolated.
const GRID: usize = 24;

/// Times of events from 0 to `length`, and what is assumed about them.
#[derive(Clone, Debug)]
pub(super) struct EventSegments {
    /// Ascending.
    pub(super) times: Vec<f64>,
    pub(super) length: f64,
    pub(super) of: GammaPoisson,
    /// Parameter of the Dirichlet distribution of spacings, and the least spacing.
    pub(super) spacing: f64,
    pub(super) least: f64,
}

impl EventSegments {
    /// The log of the spacing factor times the evidence of so many events.
    fn log_g(&self, events: usize, time: f64) -> f64 {
        self.log_spacing(time) + self.of.log_evidence(events, time)
    }

    /// The log of the spacing factor, up to a constant.
    pub(super) fn log_spacing(&self, time: f64) -> f64 {
        let free = time - self.least;
        match self.spacing {
            _ if free < 0.0 => f64::NEG_INFINITY,
            1.0 => 0.0,
            spacing => (spacing - 1.0) * free.ln(),
        }
    }

    /// The same seen from the end.
    fn mirrored(&self) -> Self {
        Self { times: self.times.iter().rev().map(|time| self.length - time).collect(), ..self.clone() }
    }

    /// How many events are in (from, to], or in [0, to] from the start on.
    pub(super) fn events_between(&self, from: f64, to: f64) -> usize {
        let first = if from <= 0.0 { 0 } else { self.times.partition_point(|time| *time <= from) };
        let behind = if to >= self.length { self.times.len() } else { self.times.partition_point(|time| *time <= to) };
        behind - first
    }
}

/// Intervals with nodes.
#[derive(Clone, Debug)]
struct Partition {
    /// Ends of the intervals.
    breaks: Vec<f64>,
    /// Events up to the start of each interval.
    events: Vec<usize>,
    /// Nodes, and logs of their weights, interval by interval.
    nodes: Vec<f64>,
    log_weights: Vec<f64>,
}

impl Partition {
    fn new(segments: &EventSegments, most: usize) -> Self {
        let EventSegments { times, length, least, .. } = segments;
        let mut breaks: Vec<f64> = (0..=BINS).map(|bin| length * bin as f64 / BINS as f64).collect();
        breaks.extend(times);
        if *least > 0.0 {
            // Where the least spacing begins to cut off an event or an end, derivatives jump; less so with every further one.
            breaks.extend((1..=most + 1).flat_map(|n| [n as f64 * least, length - n as f64 * least]));
            let shifts = if 5 * NODES * times.len() <= MAX_NODES { 2 } else { 1 };
            if 3 * NODES * times.len() <= MAX_NODES {
                for n in 1..=shifts {
                    let shift = f64::from(n) * least;
                    breaks.extend(times.iter().flat_map(|time| [time + shift, time - shift]));
                }
            }
        }
        breaks.retain(|at| (0.0..=*length).contains(at));
        breaks.sort_by(f64::total_cmp);
        // Closer ones are one: rounding leaves nothing between them.
        breaks.dedup_by(|a, b| *a - *b < 1e-12 * length);
        if let Some(last) = breaks.last_mut() {
            *last = *length;
        }
        Self::of(segments, breaks)
    }

    fn of(segments: &EventSegments, breaks: Vec<f64>) -> Self {
        let (places, weights) = gauss_legendre();
        let (mut nodes, mut log_weights, mut events) = (Vec::new(), Vec::new(), Vec::new());
        for ends in breaks.windows(2) {
            let width = ends[1] - ends[0];
            // Breaks that are as good as equal to an event stand for it.
            events.push(segments.times.partition_point(|time| *time <= ends[0] + 1e-12 * segments.length));
            nodes.extend(places.iter().map(|place| ends[0] + width * place));
            log_weights.extend(weights.iter().map(|weight| (width * weight).ln()));
        }
        Self { breaks, events, nodes, log_weights }
    }

    fn mirrored(&self, segments: &EventSegments) -> Self {
        let length = segments.length;
        Self::of(segments, self.breaks.iter().rev().map(|at| length - at).collect())
    }

    fn intervals(&self) -> usize {
        self.events.len()
    }

    /// The interval of a place.
    fn interval(&self, at: f64) -> usize {
        self.breaks.partition_point(|start| *start <= at).saturating_sub(1).min(self.intervals() - 1)
    }
}

/// Nodes and weights on (0, 1).
fn gauss_legendre() -> ([f64; NODES], [f64; NODES]) {
    let (mut places, mut weights) = ([0.0; NODES], [0.0; NODES]);
    for i in 0..NODES {
        // Newton's method from a first approximation of the zeros of the Legendre polynomial.
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (NODES as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..100 {
            let (mut p, mut before) = (1.0, 0.0);
            for n in 0..NODES {
                let n = n as f64;
                (p, before) = (((2.0 * n + 1.0) * x * p - n * before) / (n + 1.0), p);
            }
            slope = NODES as f64 * (x * p - before) / (x * x - 1.0);
            let step = p / slope;
            x -= step;
            if step.abs() < 1e-16 {
                break;
            }
        }
        places[NODES - 1 - i] = 0.5 * (1.0 + x);
        weights[NODES - 1 - i] = 1.0 / ((1.0 - x * x) * slope * slope);
    }
    (places, weights)
}

/// Weights of the nodes' values in the polynomial through them, at a place in (0, 1).
fn lagrange(places: &[f64; NODES], at: f64) -> [f64; NODES] {
    std::array::from_fn(|i| {
        (0..NODES).filter(|&j| j != i).map(|j| (at - places[j]) / (places[i] - places[j])).product()
    })
}

/// `log A_k` at all nodes, and at the end.
#[derive(Clone, Debug)]
struct Values {
    /// `[k][node]`.
    logs: Vec<Vec<f64>>,
    totals: Vec<f64>,
}

impl Values {
    fn new(segments: &EventSegments, partition: &Partition, most: usize) -> Self {
        let mut values =
            Self { logs: vec![vec![f64::NEG_INFINITY; partition.nodes.len()]; most + 1], totals: Vec::new() };
        let mut sums = vec![LogSum::EMPTY; most];
        for interval in 0..partition.intervals() {
            let first = interval * NODES;
            for node in first..first + NODES {
                values.logs[0][node] = segments.log_g(partition.events[interval], partition.nodes[node]);
            }
            // Values of fewer changes within the interval itself are needed, node by node.
            for node in first..first + NODES {
                let at = (partition.nodes[node], partition.events[interval]);
                sums.fill(LogSum::EMPTY);
                values.add_full(segments, partition, at, &mut sums);
                for (changes, sum) in sums.iter().enumerate() {
                    values.logs[changes + 1][node] = sum.value();
                }
            }
            for changes in 0..most {
                for node in first..first + NODES {
                    let at = (partition.nodes[node], partition.events[interval]);
                    let mut sum = LogSum::EMPTY;
                    sum.add(values.logs[changes + 1][node]);
                    values.for_part(segments, partition, changes, at, |_, log| sum.add(log));
                    values.logs[changes + 1][node] = sum.value();
                }
            }
        }
        let end = (segments.length, segments.times.len());
        sums.fill(LogSum::EMPTY);
        values.add_full(segments, partition, end, &mut sums);
        let first = segments.log_g(segments.times.len(), segments.length);
        let mut totals = vec![first];
        for (changes, mut sum) in sums.into_iter().enumerate() {
            values.for_part(segments, partition, changes, end, |_, log| sum.add(log));
            totals.push(sum.value());
        }
        Self { totals, ..values }
    }

    /// The intervals that lie before a place wholly, as far as the least spacing allows; the interval that does in part.
    fn reach(segments: &EventSegments, partition: &Partition, at: f64) -> (usize, Option<(usize, f64)>) {
        let limit = at - segments.least;
        if limit <= 0.0 {
            return (0, None);
        }
        let interval = partition.interval(limit);
        let (start, end) = (partition.breaks[interval], partition.breaks[interval + 1]);
        if limit >= end {
            return (interval + 1, None);
        }
        let share = (limit - start) / (end - start);
        (interval, (share > 0.0).then_some((interval, share)))
    }

    /// Adds, for every number of changes, what lies in whole intervals before a place.
    fn add_full(
        &self,
        segments: &EventSegments,
        partition: &Partition,
        (at, events): (f64, usize),
        sums: &mut [LogSum],
    ) {
        let (full, _) = Self::reach(segments, partition, at);
        for interval in 0..full {
            let count = events - partition.events[interval];
            for node in interval * NODES..(interval + 1) * NODES {
                let log = segments.log_g(count, at - partition.nodes[node]) + partition.log_weights[node];
                for (sum, logs) in sums.iter_mut().zip(&self.logs) {
                    sum.add(logs[node] + log);
                }
            }
        }
    }

    /// Nodes of the part of an interval that lies before a place, with the log of what each adds.
    fn for_part(
        &self,
        segments: &EventSegments,
        partition: &Partition,
        changes: usize,
        (at, events): (f64, usize),
        mut see: impl FnMut(f64, f64),
    ) {
        let (_, Some((interval, share))) = Self::reach(segments, partition, at) else { return };
        let (start, end) = (partition.breaks[interval], partition.breaks[interval + 1]);
        let ((places, weights), inside) = (gauss_legendre_kept(), self.inside(interval, changes));
        let count = events - partition.events[interval];
        for (place, weight) in places.iter().zip(weights) {
            let fraction = share * place;
            let position = start + fraction * (end - start);
            let log_width = (share * (end - start) * weight).ln();
            see(position, inside.log(fraction) + log_width + segments.log_g(count, at - position));
        }
    }

    /// The polynomial through the values of an interval's nodes.
    fn inside(&self, interval: usize, changes: usize) -> Inside {
        let logs = &self.logs[changes][interval * NODES..][..NODES];
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let values = std::array::from_fn(|node| if top.is_finite() { (logs[node] - top).exp() } else { 0.0 });
        Inside { top, values }
    }
}

/// A polynomial on an interval, times `exp(top)`.
struct Inside {
    top: f64,
    values: [f64; NODES],
}

impl Inside {
    /// Its log at a place in (0, 1).
    fn log(&self, at: f64) -> f64 {
        let weights = lagrange(&gauss_legendre_kept().0, at);
        let value: f64 = weights.iter().zip(&self.values).map(|(weight, value)| weight * value).sum();
        if value > 0.0 { self.top + value.ln() } else { f64::NEG_INFINITY }
    }
}

/// Nodes and weights, computed once.
fn gauss_legendre_kept() -> &'static ([f64; NODES], [f64; NODES]) {
    static KEPT: std::sync::OnceLock<([f64; NODES], [f64; NODES])> = std::sync::OnceLock::new();
    KEPT.get_or_init(gauss_legendre)
}

/// Integrals over all positions of 0, 1, … changes.
#[derive(Clone, Debug)]
pub(super) struct Integrals {
    partition: Partition,
    before: Values,
    /// Of the time behind each node, which are those of the mirrored time from the end.
    behind: Values,
}

impl Integrals {
    pub(super) fn new(segments: &EventSegments, most: usize, workers: &crate::workers::Workers) -> Self {
        let partition = Partition::new(segments, most);
        let mirrored = segments.mirrored();
        let mirrored_partition = partition.mirrored(&mirrored);
        let mut both = [(segments, &partition, None), (&mirrored, &mirrored_partition, None)];
        workers.for_each(&mut both, |_, (segments, partition, values)| {
            *values = Some(Values::new(segments, partition, most));
        });
        let [before, behind] =
            both.map(|(.., values)| values.unwrap_or(Values { logs: Vec::new(), totals: Vec::new() }));
        Self { partition, before, behind }
    }

    /// The log integral over all positions of so many changes.
    pub(super) fn total(&self, changes: usize) -> f64 {
        self.before.totals[changes]
    }

    /// The expected number of changes in each of [`BINS`] intervals of equal lengths, where numbers have these probabilities.
    pub(super) fn expected(&self, probabilities: &[f64], length: f64) -> Vec<f64> {
        let nodes = self.partition.nodes.len();
        let mut expected = vec![0.0; BINS];
        for node in 0..nodes {
            let mut sum = LogSum::EMPTY;
            for (changes, probability) in probabilities.iter().enumerate().skip(1).filter(|(_, p)| **p > 0.0) {
                let log_weight = probability.ln() - self.total(changes);
                for before in 0..changes {
                    let behind = self.behind.logs[changes - 1 - before][nodes - 1 - node];
                    sum.add(log_weight + self.before.logs[before][node] + behind);
                }
            }
            let bin = ((self.partition.nodes[node] / length * BINS as f64) as usize).min(BINS - 1);
            expected[bin] += (sum.value() + self.partition.log_weights[node]).exp();
        }
        expected
    }

    /// Draws positions of so many changes from the posterior.
    pub(super) fn draw(&self, segments: &EventSegments, changes: usize, stream: &mut Stream) -> Vec<f64> {
        let mut positions = Vec::with_capacity(changes);
        let mut at = segments.length;
        for left in (0..changes).rev() {
            at = self.draw_before(segments, left, at, stream);
            positions.push(at);
        }
        positions.reverse();
        positions
    }

    /// The last change before a place, where so many others lie before it.
    fn draw_before(&self, segments: &EventSegments, others: usize, at: f64, stream: &mut Stream) -> f64 {
        let Partition { breaks, nodes, log_weights, events, .. } = &self.partition;
        let count = if at >= segments.length { segments.times.len() } else { events[self.partition.interval(at)] };
        let (full, part) = Values::reach(segments, &self.partition, at);
        let mut logs: Vec<f64> = Vec::with_capacity(full + 1);
        for (interval, events) in events[..full].iter().enumerate() {
            let mut sum = LogSum::EMPTY;
            for node in interval * NODES..(interval + 1) * NODES {
                let log = segments.log_g(count - events, at - nodes[node]) + log_weights[node];
                sum.add(log + self.before.logs[others][node]);
            }
            logs.push(sum.value());
        }
        if part.is_some() {
            let mut sum = LogSum::EMPTY;
            self.before.for_part(segments, &self.partition, others, (at, count), |_, log| sum.add(log));
            logs.push(sum.value());
        }
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let Some(weights) = Weighted::new(logs.iter().map(|log| (log - top).exp())) else { return f64::NAN };
        let interval = weights.draw(stream);
        let share = part.filter(|(other, _)| *other == interval).map_or(1.0, |(_, share)| share);
        let (start, width) = (breaks[interval], share * (breaks[interval + 1] - breaks[interval]));
        let inside = self.before.inside(interval, others);
        let logs: [f64; GRID + 1] = std::array::from_fn(|point| {
            let fraction = point as f64 / GRID as f64;
            inside.log(share * fraction) + segments.log_g(count - events[interval], at - (start + width * fraction))
        });
        start + width * draw_between(&logs, stream)
    }
}

/// Draws from a density on (0, 1) that is linear between points of equal distances, at which its logs are given.
fn draw_between(logs: &[f64; GRID + 1], stream: &mut Stream) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let values = logs.map(|log| (log - top).exp());
    let Some(weights) = Weighted::new(values.windows(2).map(|ends| ends[0] + ends[1])) else { return stream.uniform() };
    let piece = weights.draw(stream);
    let (low, high) = (values[piece], values[piece + 1]);
    // A linear density is a mixture of two triangles.
    let (u, v) = (stream.uniform(), stream.uniform());
    let within = if stream.uniform() * (low + high) < high { u.max(v) } else { u.min(v) };
    (piece as f64 + within) / GRID as f64
}
