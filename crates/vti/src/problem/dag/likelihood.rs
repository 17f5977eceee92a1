//! The likelihood of a node of a non-linear structural equation model, and its gradient (paper, eq. 50,
//! apdxmlpdagmapping): `x_j ~ N(W² relu(W¹ x_pa + b¹) + b², σ_j²)`.
//!
//! Rows of data are walked in blocks that stay in the nearest cache, with the hidden units of a block but never those of
//! all rows. In a block two register kernels follow one another:
//!
//! * forward: a group of hidden units × a few vectors of rows stay in registers while the inputs pass by;
//! * backward: a group of hidden units × a few inputs stay in registers while the rows of the block pass by. They are the
//!   lane-wise sums of the gradient, summed over lanes once per panel, in double precision.
//!
//! Only the columns of a node's parents are ever read. Hidden biases are the weights of one more input that is always 1.

use std::f64::consts::TAU;

use super::Interventions;
use super::layout::Layout;
use super::view::{FILL, View};
use crate::simd::AlignedVec;
use crate::simd::Real;
use crate::simd::{Instructions, Kernel, Vector};

/// Rows whose sums are taken in the working precision; sums of panels are in double precision.
pub(super) const PANEL: usize = 1024;

/// Bytes that the hidden units of a block of rows may take: half of a small first-level cache.
const BLOCK_BYTES: usize = 16 << 10;

/// The most lanes a vector has.
pub(super) const MAX_LANES: usize = 16;

/// Likelihoods of the nodes of a non-linear structural equation model with one hidden layer, given their parents.
///
/// The parameters of a node, in order: σ where it is unknown; and, if it has parents, hidden biases b¹ (with biases),
/// output weights W², the output bias b² (with biases), and for each parent, ascending, its column of W¹.
///
/// ```
/// use vti::problem::dag::MlpLikelihood;
/// // x₁ = 2 relu(x₀), without any noise, seen with σ = 1.
/// let columns = [vec![-1.0, 0.5, 3.0], vec![0.0, 1.0, 6.0]];
/// let likelihood = MlpLikelihood::<f64>::new(&columns, 1, false, Some(1.0));
/// let (w2, w1) = (2.0, 1.0);
/// let mut gradient = [0.0; 2];
/// let value = likelihood.node(&mut likelihood.scratch(), 1, 0b01, &[w2, w1], &mut gradient);
/// assert!((value + 1.5 * std::f64::consts::TAU.ln()).abs() < 1e-12);
/// assert_eq!(gradient, [0.0, 0.0]);
/// ```
#[derive(Debug)]
pub struct MlpLikelihood<T> {
    pub(super) layout: Layout,
    /// The known standard deviation.
    sigma: Option<f64>,
    /// The rows that count for each node.
    views: Vec<View>,
    /// For all rows, and for each choice of some of them: a column of ones (with biases; else of zeros), and those of the nodes.
    pub(super) columns: AlignedVec<T>,
    /// Σ x² of each node.
    pub(super) squares: Vec<f64>,
    /// Hidden units per register block, and how many there are when groups are full.
    pub(super) group: usize,
    pub(super) full: usize,
    pub(super) instructions: Instructions,
}

/// Memory that evaluations need: one for each thread, for any number of evaluations.
#[derive(Debug)]
pub struct Scratch<T> {
    /// Places of the inputs' columns.
    inputs: Vec<usize>,
    /// W¹ by inputs, then W²: full groups of hidden units, padded with zeros.
    weights: Vec<T>,
    /// Hidden units × rows of the block; in the backward pass ∂/∂(pre-activation).
    units: AlignedVec<T>,
    /// Mean less observation, for the rows of the block.
    errors: AlignedVec<T>,
    /// Lane-wise sums, and over lanes: inputs × hidden units, hidden units, error², error.
    lanes: AlignedVec<T>,
    sums: Vec<f64>,
}

impl<T: Real> MlpLikelihood<T> {
    /// For data by columns, all of one length, `hidden` ≥ 1 units, and a known or unknown standard deviation.
    pub fn new(columns: &[Vec<f64>], hidden: usize, bias: bool, sigma: Option<f64>) -> Self {
        let hidden = hidden.max(1);
        let rows = columns.first().map_or(0, Vec::len);
        let view = View::new(0, rows);
        let mut data = AlignedVec::zeros(view.len(columns.len()));
        view.fill(&mut data, columns, bias, &(0..rows).collect::<Vec<usize>>());
        let (fives, fours) = (hidden.next_multiple_of(5), hidden.next_multiple_of(4));
        let (group, full) = if fives <= fours { (5, fives) } else { (4, fours) };
        let squares = columns.iter().map(|column| column.iter().map(|x| x * x).sum()).collect();
        let instructions = Instructions::detect();
        let layout = Layout { own: usize::from(sigma.is_none()), hidden, bias, outputs: 1 };
        let views = vec![view; columns.len()];
        Self { layout, sigma, views, columns: data, squares, group, full, instructions }
    }

    /// The same where nodes were set in some rows of the same data: each such node has columns of its own, without these rows.
    pub(super) fn without(mut self, table: &[Vec<f64>], interventions: &Interventions) -> Self {
        let (nodes, all) = (self.nodes(), table.first().map_or(0, Vec::len));
        let mut end = self.columns.len();
        let mut kept: Vec<(usize, Vec<usize>)> = Vec::new();
        for (node, _) in interventions.counts(nodes).iter().enumerate().filter(|(_, count)| **count > 0) {
            let rows = interventions.rows_without(node, all);
            self.views[node] = View::new(end, rows.len());
            end += self.views[node].len(nodes);
            self.squares[node] = rows.iter().map(|&row| table[node][row] * table[node][row]).sum();
            kept.push((node, rows));
        }
        let mut columns = AlignedVec::zeros(end);
        columns[..self.columns.len()].copy_from_slice(&self.columns);
        for (node, rows) in kept {
            self.views[node].fill(&mut columns, table, self.layout.bias, &rows);
        }
        self.columns = columns;
        self
    }

    /// Rows that count for a node.
    pub(super) fn rows(&self, node: usize) -> usize {
        self.views[node].rows
    }

    /// The same restricted to other instructions, if this machine has them: what tests compare with one another.
    pub fn with_instructions(mut self, instructions: Instructions) -> Self {
        if Instructions::available().contains(&instructions) {
            self.instructions = instructions;
        }
        self
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.squares.len()
    }

    /// Number of parameters of a node with so many parents.
    pub fn dim(&self, parents: usize) -> usize {
        self.layout.dim(parents)
    }

    /// The known standard deviation.
    pub fn sigma(&self) -> Option<f64> {
        self.sigma
    }

    /// Rows of a block with so many numbers for each hidden unit of a row.
    pub(super) fn block(&self, numbers: usize) -> usize {
        let mut block = PANEL;
        while block > FILL && block * numbers * self.full * size_of::<T>() > BLOCK_BYTES {
            block /= 2;
        }
        block
    }

    /// Where the column of a node begins.
    pub(super) fn column(&self, node: usize) -> usize {
        self.views[node].column(node)
    }

    /// Where the columns of a node's inputs begin: of what is always 1, and of the parents.
    pub(super) fn place_inputs(&self, node: usize, parents: u64, inputs: &mut Vec<usize>) {
        let view = self.views[node];
        inputs.clear();
        inputs.extend(self.layout.bias.then_some(view.start));
        inputs.extend((0..self.nodes()).filter(|i| parents >> i & 1 == 1).map(|i| view.column(i)));
    }

    /// Memory for evaluations.
    pub fn scratch(&self) -> Scratch<T> {
        let inputs = self.nodes() + 1;
        let (sums, block) = ((inputs + 1) * self.full + 2, self.block(1));
        Scratch {
            inputs: Vec::with_capacity(inputs),
            weights: vec![T::ZERO; (inputs + 1) * self.full],
            units: AlignedVec::zeros(self.full * block),
            errors: AlignedVec::zeros(block),
            lanes: AlignedVec::zeros(sums * MAX_LANES),
            sums: vec![0.0; sums],
        }
    }

    /// `log p(x_j | x_pa, θ_j, σ_j)` of all rows, and its gradient with respect to the parameters; bit i of `parents` says
    /// that node i is one. Not finite where a parameter is not.
    ///
    /// # Panics
    ///
    /// If there is no such node or parent, or if the numbers of parameters or of the gradient's places are not
    /// [`MlpLikelihood::dim`].
    pub fn node(
        &self,
        scratch: &mut Scratch<T>,
        node: usize,
        parents: u64,
        theta: &[f64],
        gradient: &mut [f64],
    ) -> f64 {
        let dim = self.dim(parents.count_ones() as usize);
        assert!(theta.len() == dim && gradient.len() == dim, "{dim} parameters");
        if !theta.iter().all(|x| x.is_finite()) {
            gradient.fill(f64::NAN);
            return f64::NAN;
        }
        let sigma = self.sigma.unwrap_or_else(|| theta[0]);
        let precision = sigma.powi(-2);
        let squares = if parents == 0 {
            self.squares[node]
        } else {
            self.mean(scratch, node, parents, theta);
            self.pull_back(scratch, parents, theta, precision, gradient);
            scratch.sums[scratch.sums.len() - 2]
        };
        let n = self.rows(node) as f64;
        if self.sigma.is_none() {
            gradient[0] = (squares * precision - n) / sigma;
        }
        -0.5 * (squares * precision + n * TAU.ln()) - n * sigma.ln()
    }

    /// All sums for the parameters of a mean.
    fn mean(&self, scratch: &mut Scratch<T>, node: usize, parents: u64, theta: &[f64]) {
        let Scratch { inputs, weights, units, errors, lanes, sums } = scratch;
        self.place_inputs(node, parents, inputs);
        let full = self.full;
        weights.clear();
        weights.resize((inputs.len() + 1) * full, T::ZERO);
        let places = self.layout.inputs(parents.count_ones() as usize).chain([self.layout.output()]);
        for (to, place) in weights.chunks_exact_mut(full).zip(places) {
            to.iter_mut().zip(&theta[place]).for_each(|(to, &x)| *to = T::from_f64(x));
        }
        sums.clear();
        sums.resize((inputs.len() + 1) * full + 2, 0.0);
        self.instructions.run(Walk {
            data: &self.columns,
            rows: self.rows(node),
            block: errors.len(),
            group: self.group,
            full,
            response: self.column(node),
            inputs,
            weights,
            output_bias: T::from_f64(self.layout.output_bias().map_or(0.0, |place| theta[place])),
            units,
            errors,
            lanes,
            sums,
        });
    }

    /// From sums to the gradient.
    fn pull_back(&self, scratch: &Scratch<T>, parents: u64, theta: &[f64], precision: f64, gradient: &mut [f64]) {
        let mut sums = scratch.sums.chunks_exact(self.full);
        let output = &theta[self.layout.output()];
        for (place, sums) in self.layout.inputs(parents.count_ones() as usize).zip(&mut sums) {
            let weights = gradient[place].iter_mut().zip(output).zip(sums);
            weights.for_each(|((to, w2), sum)| *to = -precision * w2 * sum);
        }
        let by_units = gradient[self.layout.output()].iter_mut().zip(sums.next().unwrap_or_default());
        by_units.for_each(|(to, sum)| *to = -precision * sum);
        if let (Some(place), Some(total)) = (self.layout.output_bias(), scratch.sums.last()) {
            gradient[place] = -precision * total;
        }
    }
}

/// All rows of one node: leaves the sums that value and gradient are made of.
struct Walk<'a, T> {
    data: &'a [T],
    rows: usize,
    block: usize,
    group: usize,
    full: usize,
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
            (5, 4) => self.panels::<V, 5, 4>(),
            (5, _) => self.panels::<V, 5, 2>(),
            (_, 4) => self.panels::<V, 4, 4>(),
            _ => self.panels::<V, 4, 2>(),
        }
    }
}

#[allow(unsafe_code)]
impl<T: Real> Walk<'_, T> {
    /// Panel by panel and block by block, with `M` hidden units × `N` vectors (of rows, or for inputs) in registers.
    #[inline(always)]
    fn panels<V: Vector<T>, const M: usize, const N: usize>(&mut self) {
        for panel in (0..self.rows).step_by(PANEL) {
            let end = self.rows.min(panel + PANEL);
            self.lanes[..self.sums.len() * V::LANES].fill(T::ZERO);
            for start in (panel..end).step_by(self.block) {
                let count = self.block.min(end - start);
                // SAFETY: `V`'s instructions are enabled here; the block lies within the filled-up columns, which are
                // the only ones `inputs` and `response` point to, and buffers were made for blocks and groups this size.
                unsafe {
                    self.forward::<V, M, N>(start, count);
                    for group in 0..self.full / M {
                        self.backward::<V, M, N>(group * M, start, count);
                    }
                }
            }
            for (sum, lanes) in self.sums.iter_mut().zip(self.lanes.chunks_exact(V::LANES)) {
                *sum += lanes.iter().map(|x| x.to_f64()).sum::<f64>();
            }
        }
    }

    /// Hidden units and errors of a block.
    #[inline(always)]
    unsafe fn forward<V: Vector<T>, const M: usize, const N: usize>(&mut self, start: usize, count: usize) {
        let data = self.data.as_ptr();
        let first = self.weights.as_ptr();
        // SAFETY: the caller vouches for the instructions and for `count` rows, filled up, from `start` on.
        unsafe {
            let second = first.add(self.inputs.len() * self.full);
            let lanes = self.lanes.as_mut_ptr().add((self.sums.len() - 2) * V::LANES);
            let (mut squares, mut total) = (V::load(lanes), V::load(lanes.add(V::LANES)));
            for row in (0..count).step_by(N * V::LANES) {
                let response = data.add(self.response + start + row);
                let mut errors = [V::splat(self.output_bias); N];
                for (n, error) in errors.iter_mut().enumerate() {
                    *error = V::load(response.add(n * V::LANES)).mul_add(V::splat(-T::ONE), *error);
                }
                for unit in (0..self.full).step_by(M) {
                    let mut sums = [[V::splat(T::ZERO); N]; M];
                    let mut weight = first.add(unit);
                    for &input in self.inputs {
                        let column = data.add(input + start + row);
                        let mut x = [V::splat(T::ZERO); N];
                        for (n, x) in x.iter_mut().enumerate() {
                            *x = V::load(column.add(n * V::LANES));
                        }
                        for (m, sums) in sums.iter_mut().enumerate() {
                            let weight = V::splat(*weight.add(m));
                            for (sum, &x) in sums.iter_mut().zip(&x) {
                                *sum = weight.mul_add(x, *sum);
                            }
                        }
                        weight = weight.add(self.full);
                    }
                    for (m, sums) in sums.iter().enumerate() {
                        let weight = V::splat(*second.add(unit + m));
                        let to = self.units.as_mut_ptr().add((unit + m) * self.block + row);
                        for (n, sum) in sums.iter().enumerate() {
                            let value = sum.relu();
                            value.store(to.add(n * V::LANES));
                            errors[n] = weight.mul_add(value, errors[n]);
                        }
                    }
                }
                let to = self.errors.as_mut_ptr().add(row);
                for (n, error) in errors.iter().enumerate() {
                    error.store(to.add(n * V::LANES));
                }
                // Rows beyond the last one have no errors, whatever the biases make of them.
                for beyond in count.min(row + N * V::LANES)..row + N * V::LANES {
                    *self.errors.as_mut_ptr().add(beyond) = T::ZERO;
                }
                for n in 0..N {
                    let error = V::load(to.add(n * V::LANES));
                    squares = error.mul_add(error, squares);
                    total = total.add(error);
                }
            }
            squares.store(lanes);
            total.store(lanes.add(V::LANES));
        }
    }

    /// Sums for the weights of a group of hidden units, over the rows of a block.
    #[inline(always)]
    unsafe fn backward<V: Vector<T>, const M: usize, const N: usize>(
        &mut self,
        unit: usize,
        start: usize,
        count: usize,
    ) {
        let mut first = 0;
        // SAFETY: passed on from the caller.
        unsafe {
            while first < self.inputs.len() {
                let left = (self.inputs.len() - first).min(N);
                let at = Place { unit, first, start, count };
                match (left, first == 0) {
                    (4, true) => self.products::<V, M, 4, true>(at),
                    (4, false) => self.products::<V, M, 4, false>(at),
                    (3, true) => self.products::<V, M, 3, true>(at),
                    (3, false) => self.products::<V, M, 3, false>(at),
                    (2, true) => self.products::<V, M, 2, true>(at),
                    (2, false) => self.products::<V, M, 2, false>(at),
                    (_, true) => self.products::<V, M, 1, true>(at),
                    (_, false) => self.products::<V, M, 1, false>(at),
                }
                first += left;
            }
        }
    }

    /// `Σ error · [unit > 0] · input` for `M` hidden units × `P` inputs. The first time also `Σ error · unit`; what is left in
    /// place of the units is `error · [unit > 0]`.
    #[inline(always)]
    unsafe fn products<V: Vector<T>, const M: usize, const P: usize, const FIRST: bool>(&mut self, at: Place) {
        let Place { unit, first, start, count } = at;
        // SAFETY: passed on from the caller.
        unsafe {
            let mut columns = [self.data.as_ptr(); P];
            for (column, &input) in columns.iter_mut().zip(&self.inputs[first..]) {
                *column = column.add(input + start);
            }
            let lanes = self.lanes.as_mut_ptr();
            let place = |p: usize, m: usize| ((first + p) * self.full + unit + m) * V::LANES;
            let mut sums = [[V::splat(T::ZERO); P]; M];
            for (m, sums) in sums.iter_mut().enumerate() {
                for (p, sum) in sums.iter_mut().enumerate() {
                    *sum = V::load(lanes.add(place(p, m)));
                }
            }
            let by_units = lanes.add((self.inputs.len() * self.full + unit) * V::LANES);
            let mut outputs = [V::splat(T::ZERO); M];
            if FIRST {
                for (m, output) in outputs.iter_mut().enumerate() {
                    *output = V::load(by_units.add(m * V::LANES));
                }
            }
            let units = self.units.as_mut_ptr().add(unit * self.block);
            let errors = self.errors.as_ptr();
            for row in (0..count).step_by(V::LANES) {
                let mut x = [V::splat(T::ZERO); P];
                for (x, column) in x.iter_mut().zip(&columns) {
                    *x = V::load(column.add(row));
                }
                let error = if FIRST { V::load(errors.add(row)) } else { x[0] };
                for (m, sums) in sums.iter_mut().enumerate() {
                    let at = units.add(m * self.block + row);
                    let mut value = V::load(at);
                    if FIRST {
                        outputs[m] = error.mul_add(value, outputs[m]);
                        value = error.gated(value);
                        value.store(at);
                    }
                    for (sum, &x) in sums.iter_mut().zip(&x) {
                        *sum = value.mul_add(x, *sum);
                    }
                }
            }
            for (m, sums) in sums.iter().enumerate() {
                for (p, sum) in sums.iter().enumerate() {
                    sum.store(lanes.add(place(p, m)));
                }
            }
            if FIRST {
                for (m, output) in outputs.iter().enumerate() {
                    output.store(by_units.add(m * V::LANES));
                }
            }
        }
    }
}

/// A group of hidden units, the first of a few inputs, and the rows of a block.
#[derive(Clone, Copy)]
struct Place {
    unit: usize,
    first: usize,
    start: usize,
    count: usize,
}

#[cfg(test)]
mod tests;
