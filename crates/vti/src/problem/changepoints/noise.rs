//! Noise of an unknown standard deviation σ, integrated by quadrature.
//!
//! With `σ = F⁻¹(Φ(z))`, F the distribution function of its prior, z is standard normal a priori, and the integrand over z is
//! smooth and vanishes at both ends: sums over equal steps of about a standard deviation of the posterior have almost all digits.

use std::collections::BTreeMap;

use super::rows::{Allowed, LogSum, Sums};
use super::values::Values;
use crate::prior::{Distribution, Prior};
use crate::random::Stream;
use crate::stats::normal_log_density;
use crate::workers::Workers;

/// What is farther out has no weight in the prior.
const FARTHEST: f64 = 8.0;

/// Steps in standard deviations of log σ given the changes: the sum is off by 2 exp(−2π²/1.2²) of itself.
const STEP: f64 = 1.2;

/// The longest step.
const LONGEST: f64 = 0.25;

/// Where less is left of the integrand than this, in nats below its top, is no more to be found.
const NEGLIGIBLE: f64 = 36.0;

/// First looks across the whole prior, on either side.
const LOOKS: i64 = 24;

/// A value of σ with its weight in the integral.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) noise: f64,
    /// Where it is on the scale of z.
    pub(super) z: f64,
    /// The log of its weight in the prior; 0 where σ is known.
    pub(super) log_weight: f64,
    pub(super) sums: Sums,
    /// Whether integrals are right there.
    pub(super) is_enough: bool,
}

/// Of noise that is known.
pub(super) fn known(lines: &Values, allowed: &Allowed, most: usize, noise: f64) -> Vec<Node> {
    let segments = lines.at(noise);
    let sums = Sums::new(&segments, allowed, most);
    vec![Node { noise, z: f64::NAN, log_weight: 0.0, sums, is_enough: segments.is_enough() }]
}

/// Of noise with a prior: the nodes that matter for any number of changes.
pub(super) fn unknown(
    lines: &Values,
    allowed: &Allowed,
    most: usize,
    rows: usize,
    prior: &Prior,
    workers: &Workers,
) -> Vec<Node> {
    let mut looking = Looking { lines, allowed, most, step: step(rows, prior), prior, workers, nodes: BTreeMap::new() };
    let last = (FARTHEST / looking.step).ceil() as i64;
    let mut width = (last / LOOKS).max(1);
    looking.look((-last..=last).step_by(width as usize));
    // Closer and closer to the top of each number of changes.
    while width > 1 {
        width = (width / 2).max(1);
        let tops = looking.tops();
        looking.look(tops.into_iter().flatten().flat_map(|top| [top - width, top + width]));
    }
    looking.down_the_sides(last);
    looking.nodes.into_values().collect()
}

/// The step of z, so that log σ has the step that it needs wherever the prior is not negligible.
fn step(rows: usize, prior: &Prior) -> f64 {
    let log = |z: f64| prior.from_normal(z).ln();
    let steepest = (-40..40).map(|i| 10.0 * (log(0.1 * f64::from(i + 1)) - log(0.1 * f64::from(i))));
    let steepest = steepest.filter(|slope| slope.is_finite()).fold(1e-3, f64::max);
    (STEP / (2.0 * rows as f64).sqrt() / steepest).min(LONGEST)
}

struct Looking<'a> {
    lines: &'a Values,
    allowed: &'a Allowed,
    most: usize,
    step: f64,
    prior: &'a Prior,
    workers: &'a Workers,
    /// By their place in steps.
    nodes: BTreeMap<i64, Node>,
}

impl Looking<'_> {
    /// Computes sums at places that have none yet.
    fn look(&mut self, places: impl IntoIterator<Item = i64>) {
        let mut new: Vec<(i64, Option<Node>)> = Vec::new();
        for place in places {
            if !self.nodes.contains_key(&place) && !new.iter().any(|(other, _)| *other == place) {
                new.push((place, None));
            }
        }
        let Self { lines, allowed, most, step, prior, workers, .. } = *self;
        workers.for_each(&mut new, |_, (place, node)| {
            let z = *place as f64 * step;
            let noise = prior.from_normal(z);
            let segments = lines.at(noise);
            let sums = Sums::new(&segments, allowed, most);
            let (log_weight, is_enough) = (normal_log_density(z) + step.ln(), segments.is_enough());
            *node = Some(Node { noise, z, log_weight, sums, is_enough });
        });
        self.nodes.extend(new.into_iter().filter_map(|(place, node)| Some((place, node?))));
    }

    fn log(&self, place: i64, changes: usize) -> f64 {
        self.nodes.get(&place).map_or(f64::NEG_INFINITY, |node| node.log_weight + node.sums.total(changes))
    }

    /// Where the integrand is highest, for each number of changes.
    fn tops(&self) -> Vec<Option<i64>> {
        let top = |changes: usize| {
            let logs = self.nodes.keys().map(|&place| (place, self.log(place, changes)));
            logs.filter(|(_, log)| log.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place)
        };
        (0..=self.most).map(top).collect()
    }

    /// From the top of each number of changes down both sides, until nothing is left.
    fn down_the_sides(&mut self, last: i64) {
        loop {
            let mut wanted = Vec::new();
            for (changes, top) in self.tops().into_iter().enumerate() {
                let Some(top) = top else { continue };
                let least = self.log(top, changes) - NEGLIGIBLE;
                for direction in [-1, 1] {
                    let mut place = top;
                    while place.abs() <= last && self.log(place, changes) > least {
                        place += direction;
                    }
                    if place.abs() <= last && !self.nodes.contains_key(&place) {
                        // Two at a time keep two threads busy, and are mostly needed.
                        wanted.extend([place, place + direction]);
                    }
                }
            }
            if wanted.is_empty() {
                return;
            }
            self.look(wanted);
        }
    }
}

/// The log integral over σ of the sum over all sets of so many places. Nodes of the first looks that have no neighbours hold next
/// to nothing of it.
pub(super) fn total(nodes: &[Node], changes: usize) -> f64 {
    let mut sum = LogSum::EMPTY;
    nodes.iter().for_each(|node| sum.add(node.log_weight + node.sums.total(changes)));
    sum.value()
}

/// Moves z by a step of slice sampling (Neal 2003), which leaves the density with this log as it is.
pub(super) fn slice(z: f64, width: f64, log_density: impl Fn(f64) -> f64, stream: &mut Stream) -> f64 {
    let level = log_density(z) + (1.0 - stream.uniform()).ln();
    let mut low = z - width * stream.uniform();
    let mut high = low + width;
    while low > -FARTHEST && log_density(low) > level {
        low -= width;
    }
    while high < FARTHEST && log_density(high) > level {
        high += width;
    }
    loop {
        let new = low + (high - low) * stream.uniform();
        if log_density(new) > level || high - low < 1e-12 {
            return new;
        }
        if new < z {
            low = new;
        } else {
            high = new;
        }
    }
}
