//! The evidence lower bound of a node under independent normal parameters, exactly: no draws, no noise.
//!
//! Let all parameters of a node be independent and normal under q. Then the input of a hidden unit is normal for every
//! row, with mean `m = Σ μ_i x_i` and variance `v = Σ τ_i² x_i²`, and both moments of its output have closed forms: with
//! `s = √v`, `α = m/s`, and φ, Φ the standard normal density and distribution function,
//!
//! ```text
//! E₁ = E relu  = m Φ(α) + s φ(α)        ∂E₁/∂m = Φ      ∂E₁/∂v = φ/(2s)
//! E₂ = E relu² = m E₁ + v Φ(α)          ∂E₂/∂m = 2 E₁   ∂E₂/∂v = Φ
//! ```
//!
//! Hidden units are independent of each other and of their output weights (mean w, variance t), so that the expected
//! squared error of a row is `(Σ w E₁ + b² − x_j)² + Σ ((w² + t) E₂ − w² E₁²)`, and so the lower bound and its gradient cost a
//! few times what a likelihood does.

use std::f64::consts::TAU;

use super::likelihood::{MAX_LANES, MlpLikelihood, PANEL};
use crate::simd::AlignedVec;
use crate::simd::Real;
use crate::simd::{Kernel, Vector};

/// Lower bounds on the evidence of the nodes of a non-linear structural equation model. Weights and biases are
/// N(0, `weight_scale`²) and, where the noise is unknown, log σ_j ~ N(0, 1).
#[derive(Clone, Copy, Debug)]
pub struct MeanField<'a, T> {
    pub(super) likelihood: &'a MlpLikelihood<T>,
    weight_scale: f64,
}

/// Memory that lower bounds need: one for each thread, for any number of evaluations.
#[derive(Debug)]
pub struct Moments<T> {
    /// Places of the inputs' columns.
    inputs: Vec<usize>,
    /// By inputs: means, then variances of W¹; then w and w² + t of the output.
    weights: Vec<T>,
    /// Three numbers of each hidden unit × rows of the block: m, v, – then E₁, Φ, φ/s – then ∂/∂m, ∂/∂v, –.
    units: AlignedVec<T>,
    /// Expected mean less observation, for the rows of the block.
    errors: AlignedVec<T>,
    /// Lane-wise sums, and over lanes.
    lanes: AlignedVec<T>,
    sums: Vec<f64>,
}

impl<'a, T: Real> MeanField<'a, T> {
    /// For a likelihood and the standard deviation of its weights and biases.
    pub fn new(likelihood: &'a MlpLikelihood<T>, weight_scale: f64) -> Self {
        Self { likelihood, weight_scale }
    }

    /// Standard deviation of weights and biases under the prior.
    pub fn weight_scale(&self) -> f64 {
        self.weight_scale
    }

    /// Memory for evaluations.
    pub fn scratch(&self) -> Moments<T> {
        let full = self.likelihood.full;
        let inputs = self.likelihood.nodes() + 1;
        let block = self.likelihood.block(3);
        let sums = Places { inputs, full }.count();
        Moments {
            inputs: Vec::with_capacity(inputs),
            weights: vec![T::ZERO; 2 * (inputs + 1) * full],
            units: AlignedVec::zeros(3 * full * block),
            errors: AlignedVec::zeros(block),
            lanes: AlignedVec::zeros(sums * MAX_LANES),
            sums: vec![0.0; sums],
        }
    }

    /// `E_q[log p(x_j, θ_j | x_pa) − log q(θ_j)]` for independent normal parameters, and its gradient. `q` holds their means
    /// and then the logarithms of their standard deviations; in place of an unknown σ stands log σ.
    ///
    /// # Panics
    ///
    /// If there is no such node or parent, or if `q` or the gradient are not twice as long as there are parameters.
    pub fn lower_bound(
        &self,
        scratch: &mut Moments<T>,
        node: usize,
        parents: u64,
        q: &[f64],
        gradient: &mut [f64],
    ) -> f64 {
        let likelihood = self.likelihood;
        let layout = likelihood.layout;
        let dim = layout.dim(parents.count_ones() as usize);
        assert!(q.len() == 2 * dim && gradient.len() == 2 * dim, "{dim} means and scales");
        if !q.iter().all(|x| x.is_finite()) {
            gradient.fill(f64::NAN);
            return f64::NAN;
        }
        let (mean, log_scale) = q.split_at(dim);
        let variance = |place: usize| (2.0 * log_scale[place]).exp();
        // E log σ and E 1/σ².
        let (log_sigma, precision) = match likelihood.sigma() {
            Some(sigma) => (sigma.ln(), sigma.powi(-2)),
            None => (mean[0], (2.0 * (variance(0) - mean[0])).exp()),
        };
        let (by_mean, by_scale) = gradient.split_at_mut(dim);
        let squares = if parents == 0 {
            likelihood.squares[node]
        } else {
            self.sums(scratch, node, parents, mean, variance);
            self.expected_squares(scratch, (node, parents), mean, (by_mean, by_scale), variance)
        };
        let n = likelihood.rows(node) as f64;
        let expected = -0.5 * (precision * squares + n * TAU.ln()) - n * log_sigma;
        // So far ∂ squares/∂ mean and ∂ squares/∂ variance.
        by_mean.iter_mut().chain(&mut *by_scale).for_each(|x| *x *= -0.5 * precision);
        if likelihood.sigma().is_none() {
            by_mean[0] = precision * squares - n;
            by_scale[0] = -precision * squares;
        }
        let mut divergence = 0.0;
        for i in 0..dim {
            let prior = if i < layout.own { 1.0 } else { self.weight_scale.powi(-2) };
            let variance = variance(i);
            divergence += 0.5 * (prior * (mean[i] * mean[i] + variance) - 1.0 - prior.ln()) - log_scale[i];
            by_mean[i] -= prior * mean[i];
            by_scale[i] = 2.0 * variance * (by_scale[i] - 0.5 * prior) + 1.0;
        }
        expected - divergence
    }

    /// All sums over rows.
    fn sums(&self, scratch: &mut Moments<T>, node: usize, parents: u64, mean: &[f64], variance: impl Fn(usize) -> f64) {
        let likelihood = self.likelihood;
        let (layout, full) = (likelihood.layout, likelihood.full);
        let Moments { inputs, weights, units, errors, lanes, sums } = scratch;
        likelihood.place_inputs(node, parents, inputs);
        weights.clear();
        weights.resize(2 * (inputs.len() + 1) * full, T::ZERO);
        let (of_inputs, of_outputs) = weights.split_at_mut(2 * inputs.len() * full);
        let (means, variances) = of_inputs.split_at_mut(inputs.len() * full);
        let places = layout.inputs(parents.count_ones() as usize);
        for ((means, variances), place) in
            means.chunks_exact_mut(full).zip(variances.chunks_exact_mut(full)).zip(places)
        {
            for (i, place) in place.enumerate() {
                means[i] = T::from_f64(mean[place]);
                variances[i] = T::from_f64(variance(place));
            }
        }
        for (i, place) in layout.output().enumerate() {
            of_outputs[i] = T::from_f64(mean[place]);
            of_outputs[full + i] = T::from_f64(mean[place] * mean[place] + variance(place));
        }
        sums.clear();
        sums.resize(Places { inputs: inputs.len(), full }.count(), 0.0);
        likelihood.instructions.run(Walk {
            data: &likelihood.columns,
            rows: likelihood.rows(node),
            group: likelihood.group,
            places: Places { inputs: inputs.len(), full },
            response: likelihood.column(node),
            inputs,
            weights,
            output_bias: T::from_f64(layout.output_bias().map_or(0.0, |place| mean[place])),
            units,
            errors,
            lanes,
            sums,
        });
    }

    /// The expected sum of squared errors, and its derivatives with respect to means and variances.
    fn expected_squares(
        &self,
        scratch: &Moments<T>,
        (node, parents): (usize, u64),
        mean: &[f64],
        (by_mean, by_variance): (&mut [f64], &mut [f64]),
        variance: impl Fn(usize) -> f64,
    ) -> f64 {
        let (layout, full) = (self.likelihood.layout, self.likelihood.full);
        let places = Places { inputs: scratch.inputs.len(), full };
        let sums = &scratch.sums;
        for (input, place) in layout.inputs(parents.count_ones() as usize).enumerate() {
            for (i, place) in place.enumerate() {
                by_mean[place] = sums[places.mean(input) + i];
                by_variance[place] = sums[places.variance(input) + i];
            }
        }
        let mut squares = sums[places.squares()];
        for (i, place) in layout.output().enumerate() {
            let (w, t) = (mean[place], variance(place));
            let [crossed, first, second] = [0, 1, 2].map(|which| sums[places.unit(which) + i]);
            squares += (w * w + t) * second - w * w * first;
            by_mean[place] = 2.0 * (crossed + w * (second - first));
            by_variance[place] = second;
        }
        if let Some(place) = layout.output_bias() {
            let n = self.likelihood.rows(node) as f64;
            squares += n * variance(place);
            by_mean[place] = 2.0 * sums[places.squares() + 1];
            by_variance[place] = n;
        }
        squares
    }
}

/// Where sums stand: inputs × hidden units for means, the same for variances; for hidden units Σ error · E₁, Σ E₁² and Σ E₂;
/// Σ error² and Σ error.
#[derive(Clone, Copy)]
struct Places {
    inputs: usize,
    full: usize,
}

impl Places {
    fn mean(self, input: usize) -> usize {
        input * self.full
    }

    fn variance(self, input: usize) -> usize {
        (self.inputs + input) * self.full
    }

    fn unit(self, which: usize) -> usize {
        (2 * self.inputs + which) * self.full
    }

    fn squares(self) -> usize {
        self.unit(3)
    }

    fn count(self) -> usize {
        self.squares() + 2
    }
}

/// All rows of one node: leaves the sums that value and gradient are made of.
struct Walk<'a, T> {
    data: &'a [T],
    rows: usize,
    group: usize,
    places: Places,
    /// Where the column of the node begins, and those of its inputs.
    response: usize,
    inputs: &'a [usize],
    weights: &'a [T],
    output_bias: T,
    units: &'a mut [T],
    errors: &'a mut [T],
    lanes: &'a mut [T],
    sums: &'a mut [f64],
}

impl<T: Real> Kernel<T> for Walk<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        match (self.group, V::ABREAST) {
            (5, 4) => self.panels::<V, 5, 2>(),
            (5, _) => self.panels::<V, 5, 1>(),
            (_, 4) => self.panels::<V, 4, 2>(),
            _ => self.panels::<V, 4, 1>(),
        }
    }
}

#[allow(unsafe_code)]
impl<T: Real> Walk<'_, T> {
    /// Panel by panel and block by block, with `M` hidden units × `N` vectors (of rows, or for inputs) in registers, twice.
    #[inline(always)]
    fn panels<V: Vector<T>, const M: usize, const N: usize>(&mut self) {
        let block = self.errors.len();
        for panel in (0..self.rows).step_by(PANEL) {
            let end = self.rows.min(panel + PANEL);
            self.lanes.fill(T::ZERO);
            for start in (panel..end).step_by(block) {
                let count = block.min(end - start);
                // SAFETY: `V`'s instructions are enabled here; the block lies within the filled-up columns, which are
                // the only ones `inputs` and `response` point to, and buffers were made for blocks and groups this size.
                unsafe { self.forward::<V, M, N>(start, count) };
                self.moments(start, count);
                self.derivatives(count);
                for unit in (0..self.places.full).step_by(M) {
                    for first in (0..self.inputs.len()).step_by(N) {
                        // SAFETY: as above.
                        unsafe {
                            if N == 2 && first + 1 < self.inputs.len() {
                                self.products::<V, M, 2>(unit, first, start, count);
                            } else {
                                self.products::<V, M, 1>(unit, first, start, count);
                            }
                        }
                    }
                }
            }
            for (sum, lanes) in self.sums.iter_mut().zip(self.lanes.chunks_exact(MAX_LANES)) {
                *sum += lanes.iter().map(|x| x.to_f64()).sum::<f64>();
            }
        }
    }

    /// m and v of all hidden units.
    #[inline(always)]
    unsafe fn forward<V: Vector<T>, const M: usize, const N: usize>(&mut self, start: usize, count: usize) {
        let (full, block) = (self.places.full, self.errors.len());
        let data = self.data.as_ptr();
        // SAFETY: the caller vouches for the instructions and for `count` rows, filled up, from `start` on.
        unsafe {
            let zero = V::splat(T::ZERO);
            // As many rows as the moments take, so that they never meet those of another block.
            for row in (0..count.next_multiple_of(MAX_LANES)).step_by(N * V::LANES) {
                for unit in (0..full).step_by(M) {
                    let (mut means, mut variances) = ([[zero; N]; M], [[zero; N]; M]);
                    for (input, &column) in self.inputs.iter().enumerate() {
                        let column = data.add(column + start + row);
                        let (mut x, mut xx) = ([zero; N], [zero; N]);
                        for n in 0..N {
                            x[n] = V::load(column.add(n * V::LANES));
                            xx[n] = x[n].mul_add(x[n], zero);
                        }
                        let mean = self.weights.as_ptr().add(self.places.mean(input) + unit);
                        let variance = self.weights.as_ptr().add(self.places.variance(input) + unit);
                        for m in 0..M {
                            let (mean, variance) = (V::splat(*mean.add(m)), V::splat(*variance.add(m)));
                            for n in 0..N {
                                means[m][n] = mean.mul_add(x[n], means[m][n]);
                                variances[m][n] = variance.mul_add(xx[n], variances[m][n]);
                            }
                        }
                    }
                    for m in 0..M {
                        let to = self.units.as_mut_ptr().add((unit + m) * block + row);
                        for n in 0..N {
                            means[m][n].store(to.add(n * V::LANES));
                            variances[m][n].store(to.add(full * block + n * V::LANES));
                        }
                    }
                }
            }
        }
    }

    /// From m and v to E₁, Φ and φ/s, and to the errors; Σ E₁², Σ E₂, Σ error² and Σ error.
    #[inline(always)]
    fn moments(&mut self, start: usize, count: usize) {
        let Self { places, weights, .. } = *self;
        let (full, block) = (places.full, self.errors.len());
        let padded = count.next_multiple_of(MAX_LANES);
        let response = &self.data[self.response + start..][..padded];
        self.errors[..padded].iter_mut().zip(response).for_each(|(error, &y)| *error = self.output_bias - y);
        let (first, rest) = self.units.split_at_mut(full * block);
        let (second, third) = rest.split_at_mut(full * block);
        for unit in 0..full {
            let weight = weights[2 * places.inputs * full + unit];
            let (mut squares, mut seconds) = ([T::ZERO; MAX_LANES], [T::ZERO; MAX_LANES]);
            let first = first[unit * block..][..padded].chunks_exact_mut(MAX_LANES);
            let second = second[unit * block..][..padded].chunks_exact_mut(MAX_LANES);
            let third = third[unit * block..][..padded].chunks_exact_mut(MAX_LANES);
            let errors = self.errors[..padded].chunks_exact_mut(MAX_LANES);
            for (((first, second), third), errors) in first.zip(second).zip(third).zip(errors) {
                for lane in 0..MAX_LANES {
                    let (m, v) = (first[lane], second[lane]);
                    // A row of zeros has no variance; filled-up rows are such.
                    let s = (v + T::from_f64(1e-30)).sqrt();
                    let inverse = T::ONE / s;
                    let (cumulative, density) = normal(m * inverse);
                    let e1 = m * cumulative + s * density;
                    squares[lane] += e1 * e1;
                    seconds[lane] += m * e1 + v * cumulative;
                    errors[lane] += weight * e1;
                    first[lane] = e1;
                    second[lane] = cumulative;
                    third[lane] = density * inverse;
                }
            }
            add(&mut self.lanes[(places.unit(1) + unit) * MAX_LANES..], &squares);
            add(&mut self.lanes[(places.unit(2) + unit) * MAX_LANES..], &seconds);
        }
        // Rows beyond the last one have no errors, whatever the biases make of them.
        self.errors[count..padded].fill(T::ZERO);
        let (mut squares, mut total) = ([T::ZERO; MAX_LANES], [T::ZERO; MAX_LANES]);
        for errors in self.errors[..padded].chunks_exact(MAX_LANES) {
            for lane in 0..MAX_LANES {
                squares[lane] += errors[lane] * errors[lane];
                total[lane] += errors[lane];
            }
        }
        add(&mut self.lanes[places.squares() * MAX_LANES..], &squares);
        add(&mut self.lanes[(places.squares() + 1) * MAX_LANES..], &total);
    }

    /// From E₁, Φ and φ/s to the derivatives of the expected squares with respect to m and v; Σ error · E₁.
    #[inline(always)]
    fn derivatives(&mut self, count: usize) {
        let Self { places, weights, .. } = *self;
        let (full, block) = (places.full, self.errors.len());
        let padded = count.next_multiple_of(MAX_LANES);
        let two = T::ONE + T::ONE;
        let (first, rest) = self.units.split_at_mut(full * block);
        let (second, third) = rest.split_at_mut(full * block);
        for unit in 0..full {
            let outputs = &weights[2 * places.inputs * full..];
            let (weight, square) = (outputs[unit], outputs[full + unit]);
            let mut crossed = [T::ZERO; MAX_LANES];
            let first = first[unit * block..][..padded].chunks_exact_mut(MAX_LANES);
            let second = second[unit * block..][..padded].chunks_exact_mut(MAX_LANES);
            let third = third[unit * block..][..padded].chunks_exact(MAX_LANES);
            let errors = self.errors[..padded].chunks_exact(MAX_LANES);
            for (((first, second), third), errors) in first.zip(second).zip(third).zip(errors) {
                for lane in 0..MAX_LANES {
                    let (e1, cumulative, error) = (first[lane], second[lane], errors[lane]);
                    crossed[lane] += error * e1;
                    let by_e1 = two * weight * (error - weight * e1);
                    first[lane] = by_e1 * cumulative + two * square * e1;
                    second[lane] = by_e1 * third[lane] / two + square * cumulative;
                }
            }
            add(&mut self.lanes[(places.unit(0) + unit) * MAX_LANES..], &crossed);
        }
    }

    /// `Σ ∂/∂m · x` and `Σ ∂/∂v · x²` for `M` hidden units × `P` inputs.
    #[inline(always)]
    unsafe fn products<V: Vector<T>, const M: usize, const P: usize>(
        &mut self,
        unit: usize,
        first: usize,
        start: usize,
        count: usize,
    ) {
        let (places, block) = (self.places, self.errors.len());
        // SAFETY: passed on from the caller.
        unsafe {
            let zero = V::splat(T::ZERO);
            let mut columns = [self.data.as_ptr(); P];
            for (column, &input) in columns.iter_mut().zip(&self.inputs[first..]) {
                *column = column.add(input + start);
            }
            let (mut means, mut variances) = ([[zero; P]; M], [[zero; P]; M]);
            let by_mean = self.units.as_ptr().add(unit * block);
            let by_variance = by_mean.add(places.full * block);
            for row in (0..count).step_by(V::LANES) {
                let (mut x, mut xx) = ([zero; P], [zero; P]);
                for p in 0..P {
                    x[p] = V::load(columns[p].add(row));
                    xx[p] = x[p].mul_add(x[p], zero);
                }
                for m in 0..M {
                    let mean = V::load(by_mean.add(m * block + row));
                    let variance = V::load(by_variance.add(m * block + row));
                    for p in 0..P {
                        means[m][p] = mean.mul_add(x[p], means[m][p]);
                        variances[m][p] = variance.mul_add(xx[p], variances[m][p]);
                    }
                }
            }
            let lanes = self.lanes.as_mut_ptr();
            for p in 0..P {
                for m in 0..M {
                    let to = lanes.add((places.mean(first + p) + unit + m) * MAX_LANES);
                    V::load(to).add(means[m][p]).store(to);
                    let to = lanes.add((places.variance(first + p) + unit + m) * MAX_LANES);
                    V::load(to).add(variances[m][p]).store(to);
                }
            }
        }
    }
}

#[inline(always)]
fn add<T: Real>(to: &mut [T], from: &[T; MAX_LANES]) {
    to.iter_mut().zip(from).for_each(|(to, &x)| *to += x);
}

/// Where Φ differs from 0 or 1 by more than 10⁻¹².
const NORMAL_RANGE: f64 = 7.0;

/// Φ(x) and φ(x), to about 2·10⁻⁷: the rational approximation 7.1.26 of Abramowitz and Stegun, whose exponential is that of
/// the density. Beyond ±[`NORMAL_RANGE`] the density is 0: products of what it would be there are denormal numbers, which take a
/// hundred times as long.
#[inline(always)]
fn normal<T: Real>(x: T) -> (T, T) {
    let c = T::from_f64;
    let (square, most) = (x * x, c(NORMAL_RANGE * NORMAL_RANGE));
    let exponential = if square < most { (c(-0.5) * square).exp() } else { T::ZERO };
    let t = T::ONE / (T::ONE + c(0.327_591_1 * std::f64::consts::FRAC_1_SQRT_2) * x.abs());
    let series = c(0.254_829_592)
        + t * (c(-0.284_496_736) + t * (c(1.421_413_741) + t * (c(-1.453_152_027) + t * c(1.061_405_429))));
    let tail = c(0.5) * t * series * exponential;
    let cumulative = if x < T::ZERO { tail } else { T::ONE - tail };
    (cumulative, c(0.398_942_280_401_432_7) * exponential)
}

#[cfg(test)]
mod tests;
