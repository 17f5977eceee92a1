//! Evidences by brute force: a sum over a lattice that covers wherever the density is not negligible.
//!
//! In coordinates in which the posterior has unit scale at its peak, the sum of a smooth density over a lattice of step h
//! differs from its integral by terms that vanish exponentially in 1/h² (the trapezoid rule on the whole real line). Two
//! lattices are summed, the second shifted by half a step along every axis: the leading terms of their errors are opposite, so
//! that the mean of both is better than either and their difference says how far off each is. Points are found by spreading
//! from the peaks to neighbours for as long as the density matters, whatever the shape of the posterior.

use std::collections::HashSet;

use super::exact::ExactError;
use super::{CoefficientPrior, Selection};
use crate::optimise::{climb, curvature};
use crate::problem::{BatchError, FreeRows, Problem};
use crate::random::{Purpose, Stream};
use crate::space::ModelSpace;
use crate::triangular::{cholesky, log_diagonal, lower_half, multiply_transposed, solve_transposed};

/// How far a quadrature may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuadratureLimits {
    /// The most parameters of a model; more than 6 are never integrated.
    pub parameters: usize,
    /// Lattices are refined until both give the same log evidence up to this.
    pub tolerance: f64,
    /// The most points of a lattice.
    pub points: usize,
}

impl Default for QuadratureLimits {
    fn default() -> Self {
        Self { parameters: 3, tolerance: 1e-8, points: 1 << 21 }
    }
}

/// A log evidence, `log ∫ p(y, θ | m) dθ`, and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// The log evidence.
    pub value: f64,
    /// How far two lattices were apart.
    pub error: f64,
}

/// The most parameters a lattice can have.
const MOST_PARAMETERS: usize = 6;
/// The first step, in standard deviations at the peak.
const FIRST_STEP: f64 = 0.7;
/// Densities that are so many nats below the largest do not matter.
const NEGLIGIBLE: f64 = 36.0;
/// Standard deviations of the places from which peaks are looked for.
const STARTS: [f64; 10] = [0.0, 0.3, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 10.0, 10.0];
/// Steps up to a peak.
const CLIMB: usize = 200;
/// Points evaluated together.
const CHUNK: usize = 64;

/// The log evidence of a model with few parameters, whatever its likelihood.
pub fn evidence_by_quadrature(
    selection: &Selection,
    model: &[u16],
    limits: &QuadratureLimits,
) -> Result<Evidence, ExactError> {
    let label = || selection.space().label(model);
    let mut field = Field::new(selection, model);
    let most = limits.parameters.min(MOST_PARAMETERS);
    if field.dim > most {
        return Err(ExactError::TooManyParameters { model: label(), parameters: field.dim, most });
    }
    if field.dim == 0 {
        return Ok(Evidence { value: field.at(&[], &mut [])?, error: 0.0 });
    }
    let Some(frame) = Frame::find(&mut field)? else {
        return Err(ExactError::NoPeak { model: label() });
    };
    let mut step = FIRST_STEP;
    let mut best: Option<Evidence> = None;
    loop {
        let first = frame.sum(&mut field, Lattice { step, shift: 0.0 }, limits.points)?;
        let second = frame.sum(&mut field, Lattice { step, shift: 0.5 }, limits.points)?;
        let (Some(first), Some(second)) = (first, second) else { break };
        let value = first.max(second) + (0.5 * (1.0 + (-(first - second).abs()).exp())).ln();
        let found = Evidence { value, error: (first - second).abs() };
        best = Some(found);
        if found.error <= limits.tolerance {
            break;
        }
        step *= 0.7;
    }
    match best {
        Some(found) if found.error <= limits.tolerance => Ok(found),
        best => {
            Err(ExactError::NotConverged { model: label(), error: best.map_or(f64::INFINITY, |found| found.error) })
        }
    }
}

/// The density of a model's free parameters.
struct Field<'p> {
    one: FreeRows<'p, Selection>,
    rows: FreeRows<'p, Selection>,
    dim: usize,
    /// Whether the spread of coefficients is proportional to the scale, whose logarithm comes first: with a g-prior and an
    /// unknown scale the posterior is a funnel, which becomes a tube when coefficients are measured in units of the scale.
    funnel: bool,
}

impl<'p> Field<'p> {
    fn new(selection: &'p Selection, model: &[u16]) -> Self {
        let rows_of_model = |count: usize| {
            let mut rows = FreeRows::new(selection, count);
            for row in 0..count {
                rows.row(row).word.copy_from_slice(model);
                rows.mark_active(row);
            }
            rows
        };
        let one = rows_of_model(1);
        let settings = selection.settings();
        let funnel = settings.likelihood.has_scale() && matches!(settings.prior, CoefficientPrior::G { .. });
        Self { dim: one.active(0).len(), one, rows: rows_of_model(CHUNK), funnel }
    }

    /// Value and gradient at one point.
    fn at(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<f64, BatchError> {
        self.one.row(0).free[..point.len()].copy_from_slice(point);
        self.one.evaluate()?;
        self.one.gradient(0, gradient);
        Ok(self.one.log_density(0))
    }

    /// Evaluates up to [`CHUNK`] points of a lattice; a value that is not a number counts as none.
    fn values(
        &mut self,
        frame: &Frame,
        places: &[Place],
        lattice: Lattice,
        to: &mut Vec<f64>,
    ) -> Result<(), BatchError> {
        to.clear();
        for (row, place) in places.iter().enumerate() {
            to.push(frame.write_point(place, lattice, self.funnel, self.rows.row(row).free));
        }
        self.rows.evaluate()?;
        for (row, value) in to.iter_mut().enumerate() {
            *value += self.rows.log_density(row);
            if value.is_nan() {
                *value = f64::NEG_INFINITY;
            }
        }
        Ok(())
    }
}

/// Coordinates in which the highest peak is at 0 with unit scale: u = peak + L⁻ᵀ x, LLᵀ being its curvature.
struct Frame {
    peak: Vec<f64>,
    /// The columns of L⁻ᵀ.
    axes: Vec<Vec<f64>>,
    /// `log |det L⁻ᵀ|`.
    log_volume: f64,
    /// All peaks, as x.
    peaks: Vec<Vec<f64>>,
}

/// Points at x = step · (place + shift).
#[derive(Clone, Copy)]
struct Lattice {
    step: f64,
    shift: f64,
}

/// A point of a lattice, in steps.
type Place = [i16; MOST_PARAMETERS];

impl Frame {
    /// Looks for peaks.
    fn find(field: &mut Field<'_>) -> Result<Option<Self>, BatchError> {
        let dim = field.dim;
        let mut stream = Stream::new(0, Purpose::Initialise, 0, 0);
        let mut failure = None;
        let mut density = |point: &[f64], gradient: &mut [f64]| {
            field.at(point, gradient).unwrap_or_else(|error| {
                failure = Some(error);
                f64::NAN
            })
        };
        let starts = STARTS.map(|scale| (0..dim).map(|_| scale * stream.normal()).collect::<Vec<f64>>());
        let mut peaks: Vec<_> = starts.iter().filter_map(|start| climb(start, CLIMB, &mut density)).collect();
        peaks.sort_by(|a, b| b.value.total_cmp(&a.value));
        let curved = peaks.first().map(|peak| curvature(&peak.point, &mut density));
        if let Some(error) = failure {
            return Err(error);
        }
        let (Some(highest), Some(curved)) = (peaks.first(), curved) else { return Ok(None) };
        let mut factor = lower_half(&curved, dim);
        if cholesky(&mut factor, dim).is_err() {
            // Flat somewhere: any scale will do, the lattice follows the density.
            factor = (0..dim).flat_map(|i| (0..=i).map(move |j| f64::from(u8::from(i == j)))).collect();
        }
        let axis = |i: usize| {
            let mut axis = vec![0.0; dim];
            axis[i] = 1.0;
            solve_transposed(&factor, &mut axis);
            axis
        };
        let log_volume = -log_diagonal(&factor, dim);
        // x = Lᵀ (u − peak).
        let place = |point: &[f64]| {
            let mut off: Vec<f64> = point.iter().zip(&highest.point).map(|(u, peak)| u - peak).collect();
            multiply_transposed(&factor, &mut off);
            off
        };
        let near = |value: f64| value > highest.value - NEGLIGIBLE;
        let peaks = peaks.iter().filter(|peak| near(peak.value)).map(|peak| place(&peak.point)).collect();
        Ok(Some(Self { peak: highest.point.clone(), axes: (0..dim).map(axis).collect(), log_volume, peaks }))
    }

    /// The log of step^d Σ density over a lattice; nothing if it has more points than allowed.
    fn sum(&self, field: &mut Field<'_>, lattice: Lattice, most: usize) -> Result<Option<f64>, BatchError> {
        let dim = field.dim;
        let mut seen: HashSet<Place> = HashSet::new();
        let mut waiting: Vec<Place> = Vec::new();
        for peak in &self.peaks {
            let mut place = [0; MOST_PARAMETERS];
            place
                .iter_mut()
                .zip(peak)
                .for_each(|(place, x)| *place = (x / lattice.step - lattice.shift).round() as i16);
            if seen.insert(place) {
                waiting.push(place);
            }
        }
        let (mut top, mut total) = (f64::NEG_INFINITY, 0.0);
        let mut values = Vec::with_capacity(CHUNK);
        while !waiting.is_empty() {
            if seen.len() > most {
                return Ok(None);
            }
            let batch = waiting.split_off(waiting.len().saturating_sub(CHUNK));
            field.values(self, &batch, lattice, &mut values)?;
            for (place, &value) in batch.iter().zip(&values) {
                if value > top {
                    total *= (top - value).exp();
                    top = value;
                }
                if value < top - NEGLIGIBLE {
                    continue;
                }
                total += (value - top).exp();
                for axis in 0..dim {
                    for direction in [-1, 1] {
                        let mut next = *place;
                        next[axis] = next[axis].saturating_add(direction);
                        if seen.insert(next) {
                            waiting.push(next);
                        }
                    }
                }
            }
        }
        Ok(total.is_finite().then(|| top + total.ln() + self.log_volume + dim as f64 * lattice.step.ln()))
    }

    /// Writes a point of a lattice; the log of the volume it stands for, beyond that of the others.
    fn write_point(&self, place: &Place, lattice: Lattice, funnel: bool, to: &mut [f64]) -> f64 {
        let dim = self.peak.len();
        let off = |i: usize| {
            let along = |(axis, &steps): (&Vec<f64>, &i16)| lattice.step * (f64::from(steps) + lattice.shift) * axis[i];
            self.axes.iter().zip(place).map(along).sum::<f64>()
        };
        (0..dim).for_each(|i| to[i] = off(i));
        let log_scale = if funnel { to[0] } else { 0.0 };
        let factor = log_scale.exp();
        to[1..dim].iter_mut().for_each(|u| *u *= factor);
        to.iter_mut().zip(&self.peak).for_each(|(u, peak)| *u += peak);
        log_scale * (dim - 1) as f64
    }
}
