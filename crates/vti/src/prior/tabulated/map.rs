//! The real line behind an interval: a coordinate u in which densities have tails that fall at least exponentially.

use super::super::PriorError;

/// Distances from a finite bound, in parts of it, below which numbers are too coarse to look at a density.
const COARSE: f64 = 1e-11;

/// Where numbers end, in u.
const FARTHEST: f64 = 600.0;

/// Steps at which a density is first looked at.
const STEP: f64 = 0.25;

/// x from u.
#[derive(Clone, Copy, Debug)]
pub(super) enum Map {
    /// x = sinh u.
    Line,
    /// x = low + eᵘ.
    Above(f64),
    /// x = high − e⁻ᵘ.
    Below(f64),
    /// x = low + (high − low) σ(u), where σ is the logistic function.
    Between(f64, f64),
}

impl Map {
    pub(super) fn new((low, high): (f64, f64)) -> Result<Self, PriorError> {
        let width = high - low;
        let ordered = low < high && low < f64::INFINITY && high > f64::NEG_INFINITY;
        if !ordered {
            return Err(PriorError::Empty { kind: "own", low, high });
        }
        Ok(match (low.is_finite(), high.is_finite()) {
            (true, true) if width.is_infinite() || width <= 1e3 * COARSE * low.abs().max(high.abs()) => {
                return Err(PriorError::Empty { kind: "own", low, high });
            }
            (true, true) => Self::Between(low, high),
            (true, false) => Self::Above(low),
            (false, true) => Self::Below(high),
            (false, false) => Self::Line,
        })
    }

    pub(super) fn bounds(self) -> (f64, f64) {
        match self {
            Self::Line => (f64::NEG_INFINITY, f64::INFINITY),
            Self::Above(low) => (low, f64::INFINITY),
            Self::Below(high) => (f64::NEG_INFINITY, high),
            Self::Between(low, high) => (low, high),
        }
    }

    pub(super) fn x(self, u: f64) -> f64 {
        match self {
            Self::Line => u.sinh(),
            Self::Above(low) => low + u.exp(),
            Self::Below(high) => high - (-u).exp(),
            // From the nearer end, so that little is lost close to it.
            Self::Between(low, high) if u > 0.0 => high - (high - low) * logistic(-u),
            Self::Between(low, high) => low + (high - low) * logistic(u),
        }
    }

    pub(super) fn u(self, x: f64) -> f64 {
        match self {
            Self::Line => x.asinh(),
            Self::Above(low) => (x - low).ln(),
            Self::Below(high) => -(high - x).ln(),
            Self::Between(low, high) => (x - low).ln() - (high - x).ln(),
        }
    }

    /// log dx/du.
    pub(super) fn log_slope(self, u: f64) -> f64 {
        match self {
            Self::Line => u.cosh().ln(),
            Self::Above(_) => u,
            Self::Below(_) => -u,
            Self::Between(low, high) => (high - low).ln() - u.abs() - 2.0 * (-u.abs()).exp().ln_1p(),
        }
    }

    /// How exactly a density can be known at u: x is rounded, and near a bound other than 0 that is more of its distance.
    pub(super) fn rounding(self, u: f64) -> f64 {
        let near = |bound: f64, log_distance: f64| f64::EPSILON * bound.abs() * (-log_distance).exp();
        match self {
            Self::Line => 0.0,
            Self::Above(low) => near(low, u),
            Self::Below(high) => near(high, -u),
            Self::Between(low, high) => {
                let log_width = (high - low).ln();
                near(low, log_width + u.min(0.0)) + near(high, log_width - u.max(0.0))
            }
        }
    }

    /// The first and the last u at which numbers are fine enough.
    fn limits(self) -> (f64, f64) {
        let closest = |bound: f64, width: f64| (COARSE * bound.abs() / width).max((-FARTHEST).exp()).ln();
        match self {
            Self::Line => (-FARTHEST, FARTHEST),
            Self::Above(low) => (closest(low, 1.0), FARTHEST),
            Self::Below(high) => (-FARTHEST, -closest(high, 1.0)),
            Self::Between(low, high) => (closest(low, high - low), -closest(high, high - low)),
        }
    }

    /// The range of u in which a log density is less than `depth` below its peak, as far as numbers go, and the peak.
    pub(super) fn range(
        self,
        depth: f64,
        log_g: impl Fn(f64) -> Result<f64, PriorError>,
    ) -> Result<(f64, f64, f64), PriorError> {
        let (first, last) = self.limits();
        let count = ((last - first) / STEP).ceil();
        let at = |i: f64| first + (last - first) * (i / count);
        let grid = (0..=count as usize).map(|i| log_g(at(i as f64))).collect::<Result<Vec<f64>, _>>()?;
        let best = (0..grid.len()).fold(0, |best, i| if grid[i] > grid[best] { i } else { best });
        if grid[best] == f64::NEG_INFINITY {
            return Err(PriorError::Density("it is 0 wherever it was looked at".into()));
        }
        let peak = climb(at((best as f64 - 1.0).max(0.0)), at((best as f64 + 1.0).min(count)), &log_g)?;
        let top = log_g(peak)?;
        let high = |value: &f64| *value > top - depth;
        // A peak between two points of the grid may be all there is; its tails are found by halving.
        let start = grid.iter().position(high).unwrap_or(best).saturating_sub(1);
        let end = (grid.iter().rposition(high).unwrap_or(best) + 1).min(grid.len() - 1);
        let low_side = edge(at(start as f64), at(start as f64 + 1.0).min(peak), top - depth, &log_g)?;
        let high_side = edge(at(end as f64), at(end as f64 - 1.0).max(peak), top - depth, &log_g)?;
        Ok((low_side, peak, high_side))
    }
}

/// Between an outer point, which may be lower than the level, and an inner one, a point that just reaches it.
fn edge(outer: f64, inner: f64, level: f64, log_g: impl Fn(f64) -> Result<f64, PriorError>) -> Result<f64, PriorError> {
    let (mut outer, mut inner) = (outer, inner);
    if log_g(outer)? >= level {
        return Ok(outer);
    }
    for _ in 0..60 {
        let middle = 0.5 * (outer + inner);
        if log_g(middle)? >= level { inner = middle } else { outer = middle }
    }
    Ok(inner)
}

/// The place of a peak between two points, by comparing thirds.
fn climb(left: f64, right: f64, log_g: impl Fn(f64) -> Result<f64, PriorError>) -> Result<f64, PriorError> {
    let (mut left, mut right) = (left, right);
    for _ in 0..100 {
        let third = (right - left) / 3.0;
        if log_g(left + third)? < log_g(right - third)? { left += third } else { right -= third }
    }
    Ok(0.5 * (left + right))
}

/// Panels to begin with: of width 1 at most, with an end at the peak.
pub(super) fn cut(start: f64, peak: f64, end: f64) -> Vec<(f64, f64)> {
    let mut panels = Vec::new();
    for (left, right) in [(start, peak), (peak, end)] {
        let count = (right - left).ceil().max(1.0);
        let at = |i: f64| left + (right - left) * (i / count);
        panels.extend((0..count as usize).map(|i| (at(i as f64), at(i as f64 + 1.0))).filter(|(l, r)| l < r));
    }
    panels
}

/// σ(x) = 1/(1 + e⁻ˣ).
fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
