//! The exact posterior: evidences of every number of changes, expected changes at every place, and draws.

use super::events::{BINS, EventSegments, Integrals};
use super::noise::{self, Node};
use super::rows::{Allowed, Sums};
use super::segments::Segments;
use super::values::Values;
use super::{ChangePointError, ChangePoints, Noise, Parts, Prior, Series};
use crate::prior::Distribution;
use crate::random::{Purpose, Stream, Weighted};
use crate::stats::{log_sum_exp, normal_log_density};
use crate::workers::Workers;

/// Nodes of the noise that hold less than this share of the posterior are left out of draws and of expected changes.
const NEGLIGIBLE: f64 = 1e-9;

/// The exact posterior of a search for changes.
#[derive(Clone, Debug)]
pub struct ChangePosterior<'a> {
    problem: &'a ChangePoints,
    log_evidences: Vec<f64>,
    log_evidence: f64,
    probabilities: Vec<f64>,
    known: Known<'a>,
}

/// What is known at every place.
#[derive(Clone, Debug)]
enum Known<'a> {
    Events(&'a EventSegments, Box<Integrals>),
    Counts(&'a super::CountSegments, &'a Allowed, Sums),
    Lines(&'a Values, &'a Allowed, Vec<Node>),
}

/// A draw from the posterior.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeDraw {
    /// Where changes are, in the units of the data.
    pub positions: Vec<f64>,
    /// The parameters of each segment, one after another.
    pub parameters: Vec<f64>,
    /// The standard deviation of the noise, where that is inferred.
    pub noise: Option<f64>,
    /// `log p(k) p(y, θ ∣ k)`.
    pub log_target: f64,
}

impl<'a> ChangePosterior<'a> {
    pub(super) fn new(problem: &'a ChangePoints, workers: &Workers) -> Result<Self, ChangePointError> {
        let (most, log_positions) = (problem.most, &problem.log_positions);
        let known = match &problem.parts {
            Parts::Events(segments) => Known::Events(segments, Box::new(Integrals::new(segments, most, workers))),
            Parts::Counts(segments, allowed) => {
                let mut sums = Sums::new(segments, allowed, most);
                sums.look_before(segments, allowed);
                Known::Counts(segments, allowed, sums)
            }
            Parts::Lines(lines, allowed) => {
                let nodes = match (problem.settings.noise, &problem.settings.prior.noise) {
                    (Noise::Known { sigma }, _) => noise::known(lines, allowed, most, sigma),
                    (Noise::Unknown {} | Noise::Robust { .. }, Some(prior)) => {
                        noise::unknown(lines, allowed, most, problem.series.len(), prior, workers)
                    }
                    (Noise::Unknown {} | Noise::Robust { .. }, None) => Vec::new(),
                };
                Known::Lines(lines, allowed, nodes)
            }
        };
        let log_evidences: Vec<f64> =
            log_positions.iter().enumerate().map(|(changes, log)| log + known.total(changes)).collect();
        let joint: Vec<f64> = problem.log_prior.iter().zip(&log_evidences).map(|(a, b)| a + b).collect();
        let log_evidence = log_sum_exp(&joint);
        if !log_evidence.is_finite() {
            return Err(ChangePointError::Impossible);
        }
        let probabilities = joint.iter().map(|log| (log - log_evidence).exp()).collect();
        let mut posterior = Self { problem, log_evidences, log_evidence, probabilities, known };
        posterior.look_before(workers);
        match &posterior.known {
            Known::Lines(_, _, nodes) if nodes.iter().any(|node| !node.is_enough) => Err(ChangePointError::TooExact),
            _ => Ok(posterior),
        }
    }

    /// Of noise that is inferred: forgets values that hardly matter, and looks before places at the others.
    fn look_before(&mut self, workers: &Workers) {
        let log_weights = self.log_weights();
        if let Known::Lines(lines, allowed, nodes) = &mut self.known {
            nodes.retain(|node| share(node, &log_weights) > NEGLIGIBLE);
            let (lines, allowed) = (*lines, *allowed);
            workers.for_each(nodes, |_, node| {
                node.sums.look_before(&lines.at(node.noise), allowed);
            });
        }
    }

    /// What sums over all sets of k places are multiplied by to become their posterior probability, but for the noise.
    fn log_weights(&self) -> Vec<f64> {
        let logs = self.problem.log_prior.iter().zip(&self.problem.log_positions);
        logs.map(|(log_prior, log_positions)| log_prior + log_positions - self.log_evidence).collect()
    }

    /// The problem.
    pub fn problem(&self) -> &'a ChangePoints {
        self.problem
    }

    /// `log p(y ∣ k)` of 0, 1, … changes.
    pub fn log_evidences(&self) -> &[f64] {
        &self.log_evidences
    }

    /// `log p(y)`.
    pub fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    /// `p(k ∣ y)` of 0, 1, … changes.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// Edges of intervals, and the expected number of changes in each: between any two neighbouring rows, or in intervals of equal
    /// lengths for events.
    pub fn expected(&self) -> (Vec<f64>, Vec<f64>) {
        match (&self.known, &self.problem.series) {
            (Known::Events(segments, integrals), Series::Events { start, .. }) => {
                let length = segments.length;
                let edges = (0..=BINS).map(|bin| start + length * bin as f64 / BINS as f64).collect();
                (edges, integrals.expected(&self.probabilities, length))
            }
            (known, Series::Rows { times, .. }) => {
                let (log_weights, mut expected) = (self.log_weights(), vec![0.0; times.len() + 1]);
                match known {
                    Known::Counts(_, _, sums) => sums.add_places(&log_weights, &mut expected),
                    Known::Lines(_, _, nodes) => nodes.iter().for_each(|node| {
                        let log_weights: Vec<f64> = log_weights.iter().map(|log| log + node.log_weight).collect();
                        node.sums.add_places(&log_weights, &mut expected);
                    }),
                    Known::Events(..) => {}
                }
                (times.clone(), expected[1..times.len()].to_vec())
            }
            _ => (Vec::new(), Vec::new()),
        }
    }

    /// Mean and standard deviation of the noise's σ, where that is inferred.
    pub fn noise(&self) -> Option<(f64, f64)> {
        let Known::Lines(_, _, nodes) = &self.known else { return None };
        if !self.problem.has_unknown_noise() {
            return None;
        }
        let log_weights = self.log_weights();
        let shares: Vec<f64> = nodes.iter().map(|node| share(node, &log_weights)).collect();
        let total: f64 = shares.iter().sum();
        let moment = |power: i32| {
            nodes.iter().zip(&shares).map(|(node, share)| share * node.noise.powi(power)).sum::<f64>() / total
        };
        let mean = moment(1);
        Some((mean, (moment(2) - mean * mean).max(0.0).sqrt()))
    }

    /// Independent draws: the same for the same seed and batch, with any number of threads.
    pub fn draw(&self, count: usize, seed: u64, batch: u64, workers: &Workers) -> Vec<ChangeDraw> {
        let mut draws = vec![ChangeDraw::default(); count];
        let numbers = Weighted::new(self.probabilities.iter().copied());
        let nodes = self.node_choices();
        workers.for_each(&mut draws, |row, draw| {
            let mut stream = Stream::new(seed, Purpose::Summary, batch, row as u64);
            let changes = numbers.as_ref().map_or(0, |numbers| numbers.draw(&mut stream));
            *draw = self.draw_given(changes, nodes.get(changes).and_then(Option::as_ref), &mut stream);
            draw.log_target = self.problem.log_joint(&draw.positions, &draw.parameters, draw.noise);
        });
        draws
    }

    /// For each number of changes, how probable each value of the noise is.
    fn node_choices(&self) -> Vec<Option<Weighted>> {
        let Known::Lines(_, _, nodes) = &self.known else { return Vec::new() };
        let choice = |changes: usize| {
            let logs: Vec<f64> = nodes.iter().map(|node| node.log_weight + node.sums.total(changes)).collect();
            let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            Weighted::new(logs.into_iter().map(|log| (log - top).exp()))
        };
        (0..self.probabilities.len()).map(choice).collect()
    }

    /// Positions and parameters of so many changes, without their density.
    fn draw_given(&self, changes: usize, choice: Option<&Weighted>, stream: &mut Stream) -> ChangeDraw {
        match &self.known {
            Known::Events(segments, integrals) => {
                let positions = integrals.draw(segments, changes, stream);
                let (start, _) = self.problem.series.ends();
                let ends: Vec<f64> =
                    std::iter::once(0.0).chain(positions.iter().copied()).chain([segments.length]).collect();
                let rate = |ends: &[f64]| {
                    segments.of.draw(segments.events_between(ends[0], ends[1]), ends[1] - ends[0], stream)
                };
                let parameters = ends.windows(2).map(rate).collect();
                let positions = positions.iter().map(|position| start + position).collect();
                ChangeDraw { positions, parameters, ..ChangeDraw::default() }
            }
            Known::Counts(segments, allowed, sums) => {
                let places = sums.draw(*segments, allowed, changes, stream);
                let parameters = draw_parameters(*segments, &places, stream);
                self.of_rows(&places, parameters)
            }
            Known::Lines(lines, allowed, nodes) => {
                let node = &nodes[choice.map_or(0, |choice| choice.draw(stream)).min(nodes.len() - 1)];
                let segments = lines.at(node.noise);
                let places = node.sums.draw(&segments, allowed, changes, stream);
                let parameters = draw_parameters(&segments, &places, stream);
                let noise = match &self.problem.settings.prior.noise {
                    Some(prior) if self.problem.has_unknown_noise() => {
                        Some(self.draw_noise(lines, &places, &parameters, (node.z, prior), stream))
                    }
                    _ => None,
                };
                ChangeDraw { noise, ..self.of_rows(&places, parameters) }
            }
        }
    }

    fn of_rows(&self, places: &[usize], parameters: Vec<f64>) -> ChangeDraw {
        let positions = places.iter().map(|&place| self.problem.boundary(place)).collect();
        ChangeDraw { positions, parameters, ..ChangeDraw::default() }
    }

    /// The noise given everything else, so that it is not one of the nodes: a step that leaves the posterior as it is.
    fn draw_noise(
        &self,
        lines: &Values,
        places: &[usize],
        parameters: &[f64],
        (z, prior): (f64, &Prior),
        stream: &mut Stream,
    ) -> f64 {
        let rows = self.problem.series.len();
        let of_noise = lines.of_noise(pieces(rows, places).collect(), parameters);
        let log_density = |z: f64| normal_log_density(z) + of_noise(prior.from_normal(z));
        let width = 3.0 / (2.0 * rows as f64).sqrt();
        prior.from_normal(noise::slice(z, width, log_density, stream))
    }
}

impl Known<'_> {
    /// The log sum or integral over all places of so many changes.
    fn total(&self, changes: usize) -> f64 {
        match self {
            Self::Events(_, integrals) => integrals.total(changes),
            Self::Counts(_, _, sums) => sums.total(changes),
            Self::Lines(_, _, nodes) => noise::total(nodes, changes),
        }
    }
}

/// How much of the posterior a value of the noise holds.
fn share(node: &Node, log_weights: &[f64]) -> f64 {
    let logs: Vec<f64> =
        log_weights.iter().enumerate().map(|(changes, log)| log + node.log_weight + node.sums.total(changes)).collect();
    log_sum_exp(&logs).exp()
}

/// Segments between places.
fn pieces(rows: usize, places: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let starts = std::iter::once(0).chain(places.iter().copied());
    starts.zip(places.iter().copied().chain([rows]))
}

fn draw_parameters(segments: &impl Segments, places: &[usize], stream: &mut Stream) -> Vec<f64> {
    let mut parameters = Vec::new();
    pieces(segments.rows(), places).for_each(|(from, to)| segments.draw(from, to, stream, &mut parameters));
    parameters
}
