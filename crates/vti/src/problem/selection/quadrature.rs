//! Evidences by brute force: a sum over a lattice that covers wherever the density is not negligible.
//!
//! In coordinates in which the posterior has unit scale at its mode, the sum of a smooth density over a lattice of step h
//! differs from its integral by terms that vanish exponentially in 1/h² (the trapezoid rule on the whole real line). Two
//! lattices are summed, the second shifted by half a step along every axis: the leading terms of their errors are opposite, so
//! that the mean of both is better than either and their difference says how far off each is. Points are found by spreading
//! from the modes to neighbours for as long as the density matters, whatever the shape of the posterior; the first step suits
//! the sharpest mode that matters, so that no lattice passes between its points.

use std::collections::HashSet;

use super::Selection;
use super::exact::ExactError;
use super::starts::starts;
use crate::optimise::{Mode, curvature, maximise};
use crate::problem::{BatchError, FreeRows, Preconditioner, Problem};
use crate::space::ModelSpace;
use crate::stats::{Evidence, EvidenceMethod};
use crate::triangular::{cholesky, log_diagonal, lower_half, multiply_transposed, solve_transposed};
use crate::workers::Workers;

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

/// The most parameters a lattice can have.
const MAX_PARAMETERS: usize = 6;
/// The first step, in standard deviations at the sharpest mode.
const FIRST_STEP: f64 = 0.7;
/// Densities that are so many nats below the largest do not matter.
const NEGLIGIBLE: f64 = 36.0;
/// Modes whose mass is so many nats below the largest need not be resolved.
const LIGHT: f64 = 20.0;
/// Climbs that end so close to each other, as seen from the preconditioner, have found the same mode.
const SAME: f64 = 1e-3;
/// Steps up to a mode.
const MAX_STEPS_TO_MODE: usize = 200;
/// Points evaluated together.
const ROWS_AT_ONCE: usize = 64;

/// The log evidence of a model with few parameters, whatever its likelihood.
pub fn evidence_by_quadrature(
    selection: &Selection,
    model: &[u16],
    limits: &QuadratureLimits,
) -> Result<Evidence, ExactError> {
    let label = || selection.space().label(model);
    let mut columns = Vec::new();
    selection.design.model_columns(model, &mut columns);
    let mut field = Field::new(selection, model);
    let most = limits.parameters.min(MAX_PARAMETERS);
    if field.dim > most {
        return Err(ExactError::TooManyParameters { model: label(), parameters: field.dim, most });
    }
    if field.dim == 0 {
        let log_evidence = field.at(&[], &mut [])?;
        return Ok(field.found(log_evidence, 0.0));
    }
    let no_mode = || ExactError::NoPeak { model: label() };
    let preconditioner =
        selection.preconditioner(model).or_else(|| unit_preconditioner(field.dim)).ok_or_else(no_mode)?;
    let modes = find_peaks(&mut field, &preconditioner, &starts(selection, &columns, &preconditioner))?;
    let chart = Chart::new(&preconditioner, &modes, field.funnel).ok_or_else(no_mode)?;
    let mut step = chart.first_step;
    let mut best: Option<Evidence> = None;
    loop {
        let first = chart.sum(&mut field, Lattice { step, shift: 0.0 }, limits.points)?;
        let second = chart.sum(&mut field, Lattice { step, shift: 0.5 }, limits.points)?;
        let (Some(first), Some(second)) = (first, second) else { break };
        let value = first.max(second) + (0.5 * (1.0 + (-(first - second).abs()).exp())).ln();
        let found = field.found(value, (first - second).abs());
        best = Some(found);
        if found.se <= limits.tolerance {
            break;
        }
        step *= 0.7;
    }
    match best {
        Some(found) if found.se <= limits.tolerance => Ok(found),
        best => Err(ExactError::NotConverged { model: label(), error: best.map_or(f64::INFINITY, |found| found.se) }),
    }
}

/// The density of a model's free parameters.
struct Field<'p> {
    one: FreeRows<'p>,
    rows: FreeRows<'p>,
    dim: usize,
    /// How often the density was asked for.
    calls: usize,
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
        let funnel = settings.likelihood.has_scale() && settings.prior.is_g();
        Self { dim: one.active(0).len(), one, rows: rows_of_model(ROWS_AT_ONCE), calls: 0, funnel }
    }

    /// An evidence, with what it has cost so far.
    fn found(&self, log_evidence: f64, se: f64) -> Evidence {
        Evidence { log_evidence, se, method: EvidenceMethod::Quadrature, calls: self.calls }
    }

    /// Value and gradient at one point.
    fn at(&mut self, point: &[f64], gradient: &mut [f64]) -> Result<f64, BatchError> {
        self.calls += 1;
        self.one.row(0).free[..point.len()].copy_from_slice(point);
        self.one.evaluate(&Workers::SINGLE)?;
        self.one.gradient(0, gradient);
        Ok(self.one.log_density(0))
    }

    /// Evaluates up to [`ROWS_AT_ONCE`] points of a lattice; a value that is not a number counts as none.
    fn values(
        &mut self,
        chart: &Chart,
        places: &[Place],
        lattice: Lattice,
        to: &mut Vec<f64>,
    ) -> Result<(), BatchError> {
        to.clear();
        self.calls += places.len();
        for (row, place) in places.iter().enumerate() {
            to.push(chart.write_point(place, lattice, self.funnel, self.rows.row(row).free));
        }
        self.rows.evaluate(&Workers::SINGLE)?;
        for (row, value) in to.iter_mut().enumerate() {
            *value += self.rows.log_density(row);
            if value.is_nan() {
                *value = f64::NEG_INFINITY;
            }
        }
        Ok(())
    }
}

/// The preconditioner of a model that has none.
fn unit_preconditioner(dim: usize) -> Option<Preconditioner> {
    Preconditioner::from_precision(vec![0.0; dim], unit_factor(dim))
}

/// The packed factor of the identity.
fn unit_factor(dim: usize) -> Vec<f64> {
    (0..dim).flat_map(|i| (0..=i).map(move |j| f64::from(u8::from(i == j)))).collect()
}

/// A mode as seen from the preconditioner, and how sharp it is.
struct Summit {
    point: Vec<f64>,
    value: f64,
    /// The negative Hessian, row-major.
    curvature: Vec<f64>,
}

/// Climbs from all starts; different modes that are not negligible, the highest first.
fn find_peaks(
    field: &mut Field<'_>,
    preconditioner: &Preconditioner,
    starts: &[Vec<f64>],
) -> Result<Vec<Summit>, BatchError> {
    let mut failure = None;
    let mut density = |point: &[f64], gradient: &mut [f64]| {
        let mut free = point.to_vec();
        preconditioner.to_free(&mut free);
        let value = field.at(&free, gradient).unwrap_or_else(|error| {
            failure = Some(error);
            f64::NAN
        });
        preconditioner.pull_back(gradient);
        value
    };
    let mut found: Vec<Mode> =
        starts.iter().filter_map(|start| maximise(start, MAX_STEPS_TO_MODE, &mut density)).collect();
    found.sort_by(|a, b| b.value.total_cmp(&a.value));
    let mut modes: Vec<Mode> = Vec::new();
    for mode in found {
        let same = |other: &Mode| mode.point.iter().zip(&other.point).all(|(a, b)| (a - b).abs() < SAME);
        let near = modes.first().is_none_or(|highest| mode.value > highest.value - NEGLIGIBLE);
        if near && !modes.iter().any(same) {
            modes.push(mode);
        }
    }
    let summit = |Mode { point, value }| Summit { curvature: curvature(&point, &mut density), point, value };
    let summits = modes.into_iter().map(summit).collect();
    failure.map_or(Ok(summits), Err)
}

/// Coordinates in which the highest mode is at 0 with unit scale: u = mode + A x. Seen from the preconditioner, A is L⁻ᵀ, LLᵀ being
/// the curvature there.
struct Chart {
    mode: Vec<f64>,
    /// The columns of A.
    axes: Vec<Vec<f64>>,
    /// `log |det A|`.
    log_volume: f64,
    /// All modes, as x.
    modes: Vec<Vec<f64>>,
    first_step: f64,
}

/// Points at x = step · (place + shift).
#[derive(Clone, Copy)]
struct Lattice {
    step: f64,
    shift: f64,
}

/// A point of a lattice, in steps. A lattice that reaches farther than these numbers do has too many points.
type Place = [i16; MAX_PARAMETERS];

impl Lattice {
    /// The point nearest to x.
    fn nearest(self, x: &[f64]) -> Option<Place> {
        let mut place = [0; MAX_PARAMETERS];
        for (place, x) in place.iter_mut().zip(x) {
            let steps = (x / self.step - self.shift).round();
            if steps.is_nan() || steps.abs() > f64::from(i16::MAX) {
                return None;
            }
            *place = steps as i16;
        }
        Some(place)
    }
}

impl Summit {
    /// The packed factor of the curvature, where that is positive definite.
    fn factor(&self) -> Option<Vec<f64>> {
        let dim = self.point.len();
        let mut factor = lower_half(&self.curvature, dim);
        cholesky(&mut factor, dim).ok().map(|()| factor)
    }

    /// Laplace's approximation of the log mass, up to a constant; a flat summit is as heavy as it is high.
    fn log_mass(&self) -> f64 {
        self.value - self.factor().map_or(0.0, |factor| log_diagonal(&factor, self.point.len()))
    }

    /// The curvature along an axis all of whose components but the first are stretched.
    fn sharpness(&self, axis: &[f64], stretch: f64) -> f64 {
        let along: Vec<f64> = axis.iter().enumerate().map(|(i, v)| if i == 0 { *v } else { stretch * v }).collect();
        let product = |row: &[f64]| row.iter().zip(&along).map(|(a, b)| a * b).sum::<f64>();
        self.curvature.chunks_exact(along.len()).zip(&along).map(|(row, v)| v * product(row)).sum()
    }
}

/// σ relative to that of the highest mode, from a difference as seen from the preconditioner.
fn relative_scale(preconditioner: &Preconditioner, off: &[f64]) -> f64 {
    let mut free = off.to_vec();
    preconditioner.spread(&mut free);
    free[0].exp()
}

impl Chart {
    /// None without modes, of which the first is the highest.
    fn new(preconditioner: &Preconditioner, modes: &[Summit], funnel: bool) -> Option<Self> {
        let highest = modes.first()?;
        let dim = highest.point.len();
        // Flat somewhere: any scale will do, the lattice follows the density.
        let factor = highest.factor().unwrap_or_else(|| unit_factor(dim));
        let axis = |i: usize| {
            let mut axis = vec![0.0; dim];
            axis[i] = 1.0;
            solve_transposed(&factor, &mut axis);
            axis
        };
        let mut axes: Vec<Vec<f64>> = (0..dim).map(axis).collect();
        let heaviest = modes.iter().map(Summit::log_mass).fold(f64::NEG_INFINITY, f64::max);
        let (mut places, mut sharpest) = (Vec::new(), 1.0f64);
        for mode in modes {
            let mut off: Vec<f64> = mode.point.iter().zip(&highest.point).map(|(v, highest)| v - highest).collect();
            let stretch = if funnel { relative_scale(preconditioner, &off) } else { 1.0 };
            if mode.log_mass() > heaviest - LIGHT {
                sharpest = axes.iter().map(|axis| mode.sharpness(axis, stretch)).fold(sharpest, f64::max);
            }
            off[1..].iter_mut().for_each(|v| *v /= stretch);
            // x = Lᵀ (v − mode).
            multiply_transposed(&factor, &mut off);
            places.push(off);
        }
        axes.iter_mut().for_each(|axis| preconditioner.spread(axis));
        let mut mode = highest.point.clone();
        preconditioner.to_free(&mut mode);
        let log_volume = preconditioner.log_jacobian() - log_diagonal(&factor, dim);
        Some(Self { mode, axes, log_volume, modes: places, first_step: FIRST_STEP / sharpest.sqrt() })
    }

    /// The log of step^d Σ density over a lattice; nothing if it has more points than allowed.
    fn sum(&self, field: &mut Field<'_>, lattice: Lattice, most: usize) -> Result<Option<f64>, BatchError> {
        let dim = field.dim;
        let mut seen: HashSet<Place> = HashSet::new();
        let mut waiting: Vec<Place> = Vec::new();
        for mode in &self.modes {
            let Some(place) = lattice.nearest(mode) else { return Ok(None) };
            if seen.insert(place) {
                waiting.push(place);
            }
        }
        let (mut top, mut total) = (f64::NEG_INFINITY, 0.0);
        let mut values = Vec::with_capacity(ROWS_AT_ONCE);
        while !waiting.is_empty() {
            if seen.len() > most {
                return Ok(None);
            }
            let batch = waiting.split_off(waiting.len().saturating_sub(ROWS_AT_ONCE));
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
                        let Some(moved) = next[axis].checked_add(direction) else { return Ok(None) };
                        next[axis] = moved;
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
        let dim = self.mode.len();
        let off = |i: usize| {
            let along = |(axis, &steps): (&Vec<f64>, &i16)| lattice.step * (f64::from(steps) + lattice.shift) * axis[i];
            self.axes.iter().zip(place).map(along).sum::<f64>()
        };
        (0..dim).for_each(|i| to[i] = off(i));
        let log_scale = if funnel { to[0] } else { 0.0 };
        let factor = log_scale.exp();
        to[1..dim].iter_mut().for_each(|u| *u *= factor);
        to.iter_mut().zip(&self.mode).for_each(|(u, mode)| *u += mode);
        log_scale * (dim - 1) as f64
    }
}
