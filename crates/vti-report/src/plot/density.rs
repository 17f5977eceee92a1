//! Kernel densities of weighted draws, in one and two dimensions.

use std::f64::consts::{PI, TAU};

/// Cells of the grid on which draws are counted.
const CELLS: usize = 400;

/// How many bandwidths a density reaches beyond its draws.
const REACH: f64 = 4.0;

/// A probability density on an even grid. Its trapezoid integral is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Density {
    /// First place of the grid.
    pub low: f64,
    /// Distance of neighbours.
    pub step: f64,
    /// The density at `low + i · step`.
    pub heights: Vec<f64>,
    /// Standard deviation of the Gaussian kernel.
    pub bandwidth: f64,
}

impl Density {
    /// The density of draws with weights; no weights: all equal. Draws that are not finite and weights that are not
    /// positive are left out. `None` where fewer than two distinct draws remain.
    ///
    /// The bandwidth is the two-stage plug-in rule of Sheather and Jones with the effective number of draws, which keeps
    /// separate modes apart.
    pub fn of(draws: &[f64], weights: &[f64]) -> Option<Self> {
        let sample = Weighted::new(draws, weights)?;
        let (low, high) = sample.core()?;
        let counts = sample.counts(low, high);
        let cell = (high - low) / (CELLS - 1) as f64;
        let spread = sample.spread()?;
        let bandwidth = spread * plug_in(&counts, cell / spread, sample.effective());
        // Lonely draws outside the range shown must not make the kernel wider than it.
        let bandwidth = bandwidth.clamp(cell, 0.25 * (high - low));
        let margin = (REACH * bandwidth / cell).ceil() as usize;
        let mut wide = vec![0.0; CELLS + 2 * margin];
        wide[margin..margin + CELLS].copy_from_slice(&counts);
        let mut heights = smooth(&wide, bandwidth / cell);
        let area = heights.iter().sum::<f64>() * cell;
        heights.iter_mut().for_each(|height| *height /= area);
        Some(Self { low: low - margin as f64 * cell, step: cell, heights, bandwidth })
    }

    /// The highest value.
    pub fn peak(&self) -> f64 {
        self.heights.iter().copied().fold(0.0, f64::max)
    }

    /// The curve as at most about `most` points, heights multiplied by `factor`.
    pub fn curve(&self, most: usize, factor: f64) -> Vec<(f64, f64)> {
        let stride = self.heights.len().div_ceil(most.max(2)).max(1);
        let points = self.heights.iter().enumerate().step_by(stride);
        points.map(|(i, height)| (self.low + i as f64 * self.step, height * factor)).collect()
    }
}

/// Usable draws in rising order with weights that sum to 1.
pub(crate) struct Weighted(Vec<(f64, f64)>);

impl Weighted {
    pub(crate) fn new(draws: &[f64], weights: &[f64]) -> Option<Self> {
        let weight = |i: usize| if weights.is_empty() { 1.0 } else { weights.get(i).copied().unwrap_or(0.0) };
        let mut pairs: Vec<(f64, f64)> = draws.iter().enumerate().map(|(i, &draw)| (draw, weight(i))).collect();
        pairs.retain(|(draw, weight)| draw.is_finite() && weight.is_finite() && *weight > 0.0);
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = pairs.iter().map(|(_, weight)| weight).sum();
        pairs.iter_mut().for_each(|(_, weight)| *weight /= total);
        (!pairs.is_empty() && total.is_finite()).then_some(Self(pairs))
    }

    /// The smallest draw with at least `share` of the weight at or below it.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut below = 0.0;
        let found = self.0.iter().find(|(_, weight)| {
            below += weight;
            below >= share
        });
        found.or(self.0.last()).map_or(0.0, |(draw, _)| *draw)
    }

    /// The range worth showing: all draws, but lonely ones far away would make the rest unreadable.
    fn core(&self) -> Option<(f64, f64)> {
        let (low, high) = (self.quantile(0.002), self.quantile(0.998));
        let room = 0.5 * (high - low);
        let (least, most) = (self.0.first()?.0, self.0.last()?.0);
        let (low, high) = if room > 0.0 { (least.max(low - room), most.min(high + room)) } else { (least, most) };
        // Ranges that overflow, or that vanish beside the size of the numbers, cannot be cut into cells.
        (high - low > 1e-12 * low.abs().max(high.abs()) && (high - low).is_finite()).then_some((low, high))
    }

    /// A measure of width that neither tails nor modes far apart inflate much.
    fn spread(&self) -> Option<f64> {
        let mean: f64 = self.0.iter().map(|(draw, weight)| draw * weight).sum();
        let variance: f64 = self.0.iter().map(|(draw, weight)| weight * (draw - mean).powi(2)).sum();
        let quartiles = (self.quantile(0.75) - self.quantile(0.25)) / 1.349;
        let sd = variance.sqrt();
        let spread = if quartiles > 0.0 { sd.min(quartiles) } else { sd };
        (spread > 0.0 && spread.is_finite()).then_some(spread)
    }

    /// 1 / Σ w².
    fn effective(&self) -> f64 {
        (1.0 / self.0.iter().map(|(_, weight)| weight * weight).sum::<f64>()).max(2.0)
    }

    /// Weights shared between the two nearest cells, so that means stay where they are.
    fn counts(&self, low: f64, high: f64) -> Vec<f64> {
        let mut counts = vec![0.0; CELLS];
        for (place, weight) in self.0.iter().map(|(draw, weight)| ((draw - low) / (high - low), weight)) {
            if !(0.0..=1.0).contains(&place) {
                continue;
            }
            let place = place * (CELLS - 1) as f64;
            let cell = (place as usize).min(CELLS - 2);
            let right = place - cell as f64;
            counts[cell] += weight * (1.0 - right);
            counts[cell + 1] += weight * right;
        }
        counts
    }
}

/// Convolution with a Gaussian whose standard deviation is `width` cells.
fn smooth(counts: &[f64], width: f64) -> Vec<f64> {
    let reach = (5.0 * width).ceil() as usize;
    let kernel: Vec<f64> = (0..=reach).map(|i| (-0.5 * (i as f64 / width).powi(2)).exp()).collect();
    let mut smooth = vec![0.0; counts.len()];
    for (i, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
        for j in i.saturating_sub(reach)..counts.len().min(i + reach + 1) {
            smooth[j] += count * kernel[i.abs_diff(j)];
        }
    }
    smooth
}

/// The direct plug-in bandwidth: ψ₈ of a Gaussian, from it ψ₆, from it ψ₄, from it the bandwidth that minimises the
/// asymptotic integrated squared error.
/// Lengths are in units of the sample's spread.
fn plug_in(counts: &[f64], cell: f64, n: f64) -> f64 {
    let root = TAU.sqrt();
    let normal = 0.9 * n.powf(-0.2);
    let psi_8 = 105.0 / (32.0 * PI.sqrt());
    let psi_6 = functional(counts, cell, (30.0 / (root * psi_8 * n)).powf(1.0 / 9.0), sixth);
    let psi_4 = functional(counts, cell, (-6.0 / (root * psi_6 * n)).powf(1.0 / 7.0), fourth);
    let bandwidth = (1.0 / (2.0 * PI.sqrt() * psi_4 * n)).powf(0.2);
    // With few draws the functionals are rough: stay near the rule of thumb.
    if bandwidth.is_finite() { bandwidth.clamp(0.2 * normal, 1.5 * normal) } else { normal }
}

/// ψ_r = ΣΣ w_i w_j φ⁽ʳ⁾((x_i − x_j) / g) / g^{r+1}; `derivative` gives φ⁽ʳ⁾ and r + 1.
fn functional(counts: &[f64], cell: f64, width: f64, derivative: fn(f64) -> (f64, i32)) -> f64 {
    // How much weight pairs at each distance have.
    let mut pairs = vec![0.0; counts.len()];
    for (i, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
        pairs[0] += count * count;
        for (distance, &other) in counts[i + 1..].iter().enumerate() {
            pairs[distance + 1] += 2.0 * count * other;
        }
    }
    let terms = pairs.iter().enumerate().map(|(distance, weight)| {
        let (value, power) = derivative(distance as f64 * cell / width);
        weight * value / width.powi(power)
    });
    terms.sum()
}

fn gaussian(z: f64) -> f64 {
    (-0.5 * z * z).exp() / TAU.sqrt()
}

fn fourth(z: f64) -> (f64, i32) {
    let s = z * z;
    (((s - 6.0) * s + 3.0) * gaussian(z), 5)
}

fn sixth(z: f64) -> (f64, i32) {
    let s = z * z;
    ((((s - 15.0) * s + 45.0) * s - 15.0) * gaussian(z), 7)
}

/// A density over the plane on a square grid of `SIDE × SIDE` places, zero at its border.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Surface {
    pub(crate) low: (f64, f64),
    pub(crate) step: (f64, f64),
    /// Row by row, x running fastest.
    pub(crate) heights: Vec<f64>,
}

/// Places along a side of a [`Surface`].
pub(crate) const SIDE: usize = 48;

impl Surface {
    /// The density of weighted points on scale-free axes (the caller maps logarithmic ones).
    pub(crate) fn of(points: &[(f64, f64)], weights: &[f64]) -> Option<Self> {
        let finite = |(x, y): (f64, f64)| if x.is_finite() && y.is_finite() { (x, y) } else { (f64::NAN, f64::NAN) };
        let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().map(|&point| finite(point)).unzip();
        let (x, y) = (Density::of(&xs, weights)?, Density::of(&ys, weights)?);
        // In the plane the best bandwidth shrinks as n^(−1/6) instead of n^(−1/5).
        let wider = Weighted::new(&xs, weights)?.effective().powf(1.0 / 30.0);
        let axis = |density: &Density| {
            let bandwidth = density.bandwidth * wider;
            let length = density.step * (density.heights.len() - 1) as f64;
            // Two empty places at either end.
            let step = length / (SIDE - 5) as f64;
            (density.low - 2.0 * step, step, (bandwidth / step).max(0.8))
        };
        let ((x_low, x_step, x_width), (y_low, y_step, y_width)) = (axis(&x), axis(&y));
        let mut counts = vec![0.0; SIDE * SIDE];
        for (i, (x, y)) in xs.iter().zip(&ys).enumerate() {
            let weight = if weights.is_empty() { 1.0 } else { weights.get(i).copied().unwrap_or(0.0) };
            let (column, row) = (((x - x_low) / x_step).round(), ((y - y_low) / y_step).round());
            let inside = |place: f64| place >= 0.0 && place < SIDE as f64;
            if inside(column) && inside(row) && weight.is_finite() && weight > 0.0 {
                counts[row as usize * SIDE + column as usize] += weight;
            }
        }
        let mut heights: Vec<f64> = counts.chunks(SIDE).flat_map(|row| smooth(row, x_width)).collect();
        for column in 0..SIDE {
            let values: Vec<f64> = (0..SIDE).map(|row| heights[row * SIDE + column]).collect();
            for (row, value) in smooth(&values, y_width).into_iter().enumerate() {
                let border = [row, column].iter().any(|&place| place == 0 || place == SIDE - 1);
                heights[row * SIDE + column] = if border { 0.0 } else { value };
            }
        }
        Some(Self { low: (x_low, y_low), step: (x_step, y_step), heights })
    }

    /// The height above which `share` of the mass lies.
    pub(crate) fn level(&self, share: f64) -> f64 {
        let mut falling = self.heights.clone();
        falling.sort_by(|a, b| b.total_cmp(a));
        let target = share * falling.iter().sum::<f64>();
        let mut mass = 0.0;
        let found = falling.iter().copied().find(|height| {
            mass += height;
            mass >= target
        });
        found.unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles of a standard normal at even shares: draws without noise.
    fn normal_draws(count: usize) -> Vec<f64> {
        let share = |i: usize| (i as f64 + 0.5) / count as f64;
        (0..count).map(share).map(bisect).collect()
    }

    fn bisect(p: f64) -> f64 {
        let (mut low, mut high) = (-9.0, 9.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if cdf(middle) < p { low = middle } else { high = middle }
        }
        low
    }

    /// Φ by Simpson's rule.
    fn cdf(z: f64) -> f64 {
        let (n, low) = (400, -10.0);
        let h = (z - low) / f64::from(n);
        let weight = |i: i32| if i == 0 || i == n { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
        (0..=n).map(|i| weight(i) * gaussian(low + f64::from(i) * h)).sum::<f64>() * h / 3.0
    }

    fn integral(density: &Density, f: impl Fn(f64) -> f64) -> f64 {
        density.curve(usize::MAX, density.step).iter().map(|(x, mass)| mass * f(*x)).sum()
    }

    #[test]
    fn integrates_to_one_and_keeps_the_mean() {
        let draws = normal_draws(300);
        let weights: Vec<f64> = draws.iter().map(|x| (0.5 * x).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mean = draws.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>() / total;
        let density = Density::of(&draws, &weights).expect("draws");
        assert!((integral(&density, |_| 1.0) - 1.0).abs() < 1e-9);
        assert!((integral(&density, |x| x) - mean).abs() < 1e-3);
        // The last and first heights are so small that nothing is cut off.
        assert!(density.heights[0] < 1e-3 * density.peak());
    }

    #[test]
    fn near_the_truth_for_a_gaussian() {
        let density = Density::of(&normal_draws(1000), &[]).expect("draws");
        let worst =
            density.curve(usize::MAX, 1.0).iter().map(|(x, height)| (height - gaussian(*x)).abs()).fold(0.0, f64::max);
        assert!(worst < 0.02, "{worst}");
    }

    #[test]
    fn two_modes_stay_apart() {
        let mut draws = normal_draws(300);
        draws.extend(normal_draws(300).iter().map(|x| x + 12.0));
        let density = Density::of(&draws, &[]).expect("draws");
        let middle = ((6.0 - density.low) / density.step) as usize;
        assert!(density.heights[middle] < 0.01 * density.peak());
        // The peak of half a standard normal is 0.1995; a rule that looks at the spread of both modes together would halve it.
        assert!((density.peak() - 0.1995).abs() < 0.025, "{}", density.peak());
    }

    #[test]
    fn a_weight_counts_like_copies() {
        let copies = Weighted::new(&[0.0, 1.0, 1.0, 1.0, 4.0], &[]).expect("draws");
        let weighted = Weighted::new(&[4.0, 0.0, 1.0], &[1.0, 1.0, 3.0]).expect("draws");
        for share in [0.05, 0.15, 0.25, 0.5, 0.75, 0.85, 1.0] {
            assert_eq!(weighted.quantile(share), copies.quantile(share), "{share}");
        }
        let difference = |(a, b): (&f64, &f64)| (a - b).abs();
        let counts = (weighted.counts(0.0, 4.0), copies.counts(0.0, 4.0));
        assert!(counts.0.iter().zip(&counts.1).map(difference).all(|difference| difference < 1e-12));
    }

    #[test]
    fn units_do_not_matter() {
        let draws = normal_draws(100);
        let of = |unit: f64| Density::of(&draws.iter().map(|x| x * unit).collect::<Vec<_>>(), &[]).expect("draws");
        for unit in [1e-100, 1e-30, 1e30, 1e100] {
            assert!((of(unit).bandwidth / unit - of(1.0).bandwidth).abs() < 1e-9, "{unit}");
        }
    }

    #[test]
    fn a_lonely_draw_far_away_does_not_widen_the_rest() {
        let mut draws = vec![0.0; 600];
        draws.extend(normal_draws(400));
        draws.push(1e9);
        assert!(Density::of(&draws, &[]).expect("draws").bandwidth < 3.0);
    }

    #[test]
    fn nothing_to_show_is_none() {
        for draws in [&[][..], &[1.0], &[2.0, 2.0, 2.0], &[f64::NAN, f64::INFINITY], &[1e308, -1e308]] {
            assert_eq!(Density::of(draws, &[]), None, "{draws:?}");
        }
        assert_eq!(Density::of(&[1.0, 2.0], &[0.0, 0.0]), None);
        assert_eq!(Density::of(&[1.0, 2.0], &[f64::NAN, 1.0]), None);
    }

    #[test]
    fn levels_hold_their_share() {
        let draws = normal_draws(40);
        let points: Vec<_> = draws.iter().flat_map(|&x| draws.iter().map(move |&y| (x, y))).collect();
        let surface = Surface::of(&points, &[]).expect("draws");
        let total: f64 = surface.heights.iter().sum();
        for share in [0.5, 0.9] {
            let level = surface.level(share);
            let inside: f64 = surface.heights.iter().filter(|height| **height >= level).sum();
            assert!((inside / total - share).abs() < 0.02);
        }
    }
}
