//! A distribution from its unnormalised log density alone.

mod map;
mod panel;

use std::fmt;
use std::sync::Arc;

use map::Map;
use panel::Panel;

use super::named::outside;
use super::{Distribution, PriorError, between, inside};
use crate::stats::{Tails, normal_log_cdf};

/// How far below its peak the log density is followed; beyond that the tails are taken to be exponential.
const DEPTH: f64 = 100.0;

/// A distribution of which the bounds and an unnormalised log density are known.
///
/// Normaliser, distribution function and quantiles are found once, by polynomials over panels that are halved until they fit,
/// and are right to about 1e-8 where the density is smooth between its bounds. It may have several peaks and may be infinite
/// at a finite bound; peaks much narrower than their distance from 0, or from a finite bound, should be alone.
///
/// ```
/// use vti::prior::{Distribution, Normal, Tabulated};
/// let own = Tabulated::new((f64::NEG_INFINITY, f64::INFINITY), |x| -0.5 * (x - 3.0) * (x - 3.0))?;
/// assert!((own.log_density(2.0) - Normal(3.0, 1.0).log_density(2.0)).abs() < 1e-10);
/// assert!((own.from_normal(-1.5) - 1.5).abs() < 1e-10);
/// # Ok::<(), vti::prior::PriorError>(())
/// ```
#[derive(Clone)]
pub struct Tabulated {
    log_density: Arc<dyn Fn(f64) -> f64 + Send + Sync>,
    log_normaliser: f64,
    map: Map,
    panels: Vec<Panel>,
    /// Probability below each panel.
    below: Vec<f64>,
    /// Probability above each panel.
    above: Vec<f64>,
    /// d/du of the log density of u at both ends of the panels.
    slopes: (f64, f64),
}

impl Tabulated {
    /// Of the bounds, which may be infinite, and a log density that need not be normalised; −∞ where there is none.
    pub fn new(
        bounds: (f64, f64),
        log_density: impl Fn(f64) -> f64 + Send + Sync + 'static,
    ) -> Result<Self, PriorError> {
        let map = Map::new(bounds)?;
        let log_g = |u: f64| -> Result<f64, PriorError> {
            let x = map.x(u);
            let value = log_density(x);
            if value.is_nan() || value == f64::INFINITY {
                return Err(PriorError::Density(format!("its logarithm is {value} at {x}")));
            }
            Ok(value + map.log_slope(u))
        };
        let (start, peak, end) = map.range(DEPTH, log_g)?;
        let top = log_g(peak)?;
        let mut panels = Vec::new();
        for (left, right) in map::cut(start, peak, end) {
            Panel::fit(left, right, &map, &|u| Ok((log_g(u)? - top).exp()), &mut panels)?;
        }
        let widths = [&panels[0], &panels[panels.len() - 1]].map(|panel| 0.01 * (panel.right() - panel.left()));
        let slopes = (end_slope(start, widths[0], log_g)?, end_slope(end, -widths[1], log_g)?);
        let lost = ((log_g(start)? - top).exp() / slopes.0, (log_g(end)? - top).exp() / -slopes.1);
        let total = lost.0 + panels.iter().map(Panel::total).sum::<f64>() + lost.1;
        panels.iter_mut().for_each(|panel| panel.scale(1.0 / total));
        let below = running(lost.0 / total, panels.iter());
        let mut above = running(lost.1 / total, panels.iter().rev());
        above.reverse();
        let log_normaliser = top + total.ln();
        Ok(Self { log_density: Arc::new(log_density), log_normaliser, map, panels, below, above, slopes })
    }

    /// u at a probability counted from below.
    fn quantile_below(&self, log_p: f64) -> f64 {
        let p = log_p.exp();
        if p <= self.below[0] {
            return self.panels[0].left() + (log_p - self.below[0].ln()) / self.slopes.0;
        }
        let at = self.below.partition_point(|below| *below < p) - 1;
        self.panels[at].solve(p - self.below[at])
    }

    /// u at a probability counted from above.
    fn quantile_above(&self, log_p: f64) -> f64 {
        let (p, last) = (log_p.exp(), self.panels.len() - 1);
        if p <= self.above[last] {
            return self.panels[last].right() + (log_p - self.above[last].ln()) / self.slopes.1;
        }
        let at = self.above.partition_point(|above| *above >= p);
        self.panels[at].solve(self.panels[at].total() - (p - self.above[at]))
    }

    /// Both tails at u.
    fn tails(&self, u: f64) -> Tails {
        let (first, last) = (&self.panels[0], &self.panels[self.panels.len() - 1]);
        if u < first.left() {
            Tails::of_smaller(self.below[0].ln() + (u - first.left()) * self.slopes.0, true)
        } else if u > last.right() {
            Tails::of_smaller(self.above[self.above.len() - 1].ln() + (u - last.right()) * self.slopes.1, false)
        } else {
            let at = self.panels.partition_point(|panel| panel.left() <= u).max(1) - 1;
            let part = self.panels[at].integral(u);
            let lower = self.below[at] + part;
            let upper = self.above[at] + (self.panels[at].total() - part);
            Tails { lower: lower.ln(), upper: upper.ln() }
        }
    }
}

/// d/du of the log density at an end, which must fall outwards, or the density has no integral.
fn end_slope(u: f64, step: f64, log_g: impl Fn(f64) -> Result<f64, PriorError>) -> Result<f64, PriorError> {
    let slope = (log_g(u + step)? - log_g(u)?) / step;
    if slope * step.signum() > 1e-3 {
        Ok(slope)
    } else {
        Err(PriorError::Density("it cannot be normalised, as it does not fall towards its bounds".into()))
    }
}

/// Running sums of what panels hold, before each of them.
fn running<'a>(first: f64, panels: impl Iterator<Item = &'a Panel>) -> Vec<f64> {
    let mut sum = first;
    panels
        .map(|panel| {
            let before = sum;
            sum += panel.total();
            before
        })
        .collect()
}

impl Distribution for Tabulated {
    fn log_density(&self, x: f64) -> f64 {
        let (low, high) = self.bounds();
        if x >= low && x <= high { (self.log_density)(x) - self.log_normaliser } else { outside(x) }
    }

    fn bounds(&self) -> (f64, f64) {
        self.map.bounds()
    }

    fn from_normal(&self, z: f64) -> f64 {
        if z.is_nan() {
            return z;
        }
        let u = if z < 0.0 { self.quantile_below(normal_log_cdf(z)) } else { self.quantile_above(normal_log_cdf(-z)) };
        inside(self.bounds(), z, self.map.x(u))
    }

    fn to_normal(&self, x: f64) -> f64 {
        between(self.bounds(), x, |x| self.tails(self.map.u(x)).to_normal())
    }
}

impl fmt::Debug for Tabulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tabulated")
            .field("bounds", &self.bounds())
            .field("log_normaliser", &self.log_normaliser)
            .finish_non_exhaustive()
    }
}
