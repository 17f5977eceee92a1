//! What chains learn from each other during burn-in: the pseudo-prior, and the shape and length of steps.

use std::f64::consts::TAU;

use super::settings::Pseudo;
use crate::triangular::cholesky;

/// Acceptance rate of random-walk steps that is aimed at.
const GOAL: f64 = 0.3;
/// Best length of a step in d dimensions is this over √d, in units of the posterior (Roberts, Gelman and Gilks 1997).
const LENGTH: f64 = 2.38;
/// An adapted pseudo-prior is so much wider than what was seen: a jump back must be possible from the tails.
const WIDER: f64 = 1.3;
/// Products of gradients are summed for all pairs of coordinates up to so many coordinates, beyond that for squares alone.
const MAX_PAIRS: usize = 512;
/// So many draws weigh as much as the belief that coordinates have nothing to do with each other.
const PRIOR_DRAWS: f64 = 50.0;
/// What fewer draws than this say is not listened to.
const MIN_DRAWS: f64 = 10.0;

/// How chains move; frozen after the burn-in.
///
/// The shape of steps is the precision of the posterior, `E[∇log p ∇log pᵀ]`, which equals `−E[∇² log p]` (Fisher). For a
/// linear model with normal errors that of a smaller model is a part of that of a larger one, so that all models together
/// can learn one matrix.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    location: Vec<f64>,
    scale: Vec<f64>,
    adapted: bool,
    precision: Pairs,
    log_step: f64,
}

/// A number for each pair of coordinates, or for each coordinate alone where there are too many pairs.
#[derive(Clone, Debug)]
struct Pairs {
    dim: usize,
    full: bool,
    values: Vec<f64>,
}

impl Pairs {
    fn new(dim: usize) -> Self {
        let full = dim <= MAX_PAIRS;
        Self { dim, full, values: vec![0.0; if full { dim * dim } else { dim }] }
    }

    /// Where a pair stands, if it is kept.
    fn place(&self, i: usize, j: usize) -> Option<usize> {
        if self.full { Some(i * self.dim + j) } else { (i == j).then_some(i) }
    }

    fn get(&self, i: usize, j: usize) -> f64 {
        self.place(i, j).map_or(0.0, |place| self.values[place])
    }

    fn add(&mut self, i: usize, j: usize, value: f64) {
        if let Some(place) = self.place(i, j) {
            self.values[place] += value;
        }
    }

    fn join(&mut self, other: &Self) {
        self.values.iter_mut().zip(&other.values).for_each(|(sum, x)| *sum += x);
    }
}

impl Tuning {
    pub(super) fn new(dim: usize, pseudo: &Pseudo) -> Self {
        let (location, scale, adapted) = match pseudo {
            Pseudo::Adapted {} => (vec![0.0; dim], vec![1.0; dim], true),
            Pseudo::Normal { location, scale } => (location.clone(), scale.clone(), false),
        };
        let mut precision = Pairs::new(dim);
        (0..dim).for_each(|i| precision.add(i, i, scale[i].powi(-2)));
        Self { location, scale, adapted, precision, log_step: 0.0 }
    }

    /// Number of coordinates.
    pub(super) fn dim(&self) -> usize {
        self.location.len()
    }

    /// A coordinate from a standard normal number.
    pub(super) fn place(&self, coordinate: u32, z: f64) -> f64 {
        self.location[coordinate as usize] + self.scale[coordinate as usize] * z
    }

    /// `log ν(u)` of a coordinate.
    pub(super) fn log_pseudo(&self, coordinate: u32, u: f64) -> f64 {
        let scale = self.scale[coordinate as usize];
        let z = (u - self.location[coordinate as usize]) / scale;
        -0.5 * (z * z + TAU.ln()) - scale.ln()
    }

    /// Length of a step in so many dimensions.
    pub(super) fn step(&self, dim: usize) -> f64 {
        self.log_step.exp() * LENGTH / (dim.max(1) as f64).sqrt()
    }

    /// Cholesky's factor of the precision of a model, packed. Where what was learned does not fit together, coordinates
    /// are taken to have less to do with each other.
    pub(super) fn factor(&self, active: &[u32], to: &mut Vec<f64>) {
        let size = active.len();
        for share in [1.0, 0.8, 0.4, 0.0] {
            to.clear();
            for (i, &a) in active.iter().enumerate() {
                to.extend(active[..i].iter().map(|&b| share * self.precision.get(a as usize, b as usize)));
                to.push(self.precision.get(a as usize, a as usize));
            }
            if cholesky(to, size).is_ok() {
                return;
            }
        }
    }

    /// Lengthens or shortens steps after the `block`-th look at the acceptance rate (Robbins and Monro).
    pub(super) fn adapt_step(&mut self, block: usize, rate: f64) {
        if rate.is_finite() {
            self.log_step += 2.0 * (rate - GOAL) / (block as f64).sqrt();
        }
    }

    /// Takes over what chains saw; coordinates that were hardly in keep what they had.
    pub(super) fn learn(&mut self, moments: &Moments) {
        for i in 0..self.dim() {
            let n = moments.count[i];
            if n < MIN_DRAWS {
                continue;
            }
            let mean = moments.sum[i] / n;
            let variance = (moments.squares[i] / n - mean * mean) * n / (n - 1.0);
            if self.adapted && variance > 0.0 && variance.is_finite() {
                (self.location[i], self.scale[i]) = (mean, WIDER * variance.sqrt());
            }
        }
        for (place, value) in self.precision.values.iter_mut().enumerate() {
            let (n, product) = (moments.pairs.values[place], moments.products.values[place]);
            let alone = !moments.pairs.full || place % (moments.pairs.dim + 1) == 0;
            if alone && n >= MIN_DRAWS && product > 0.0 && product.is_finite() {
                *value = product / n;
            } else if !alone && n >= MIN_DRAWS && product.is_finite() {
                *value = product / (n + PRIOR_DRAWS);
            }
        }
    }
}

/// Sums over states of chains.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    count: Vec<f64>,
    sum: Vec<f64>,
    squares: Vec<f64>,
    /// How often both of a pair were in.
    pairs: Pairs,
    /// Their precision, summed.
    products: Pairs,
}

impl Moments {
    pub(super) fn new(dim: usize) -> Self {
        let zeros = || vec![0.0; dim];
        Self { count: zeros(), sum: zeros(), squares: zeros(), pairs: Pairs::new(dim), products: Pairs::new(dim) }
    }

    /// A state of a chain.
    pub(super) fn add(&mut self, active: &[u32], free: &[f64], gradient: &[f64]) {
        self.add_place(active, free);
        for (i, &a) in active.iter().enumerate() {
            for (j, &b) in active[..=i].iter().enumerate() {
                self.add_pair(a, b, 1.0, gradient[i] * gradient[j]);
            }
        }
    }

    /// A place to start from, with the curvature there (row-major), worth as much as `weight` states.
    pub(super) fn add_start(&mut self, active: &[u32], free: &[f64], curvature: &[f64], weight: f64) {
        for _ in 0..weight as usize {
            self.add_place(active, free);
        }
        for (i, &a) in active.iter().enumerate() {
            for (j, &b) in active[..=i].iter().enumerate() {
                self.add_pair(a, b, weight, weight * curvature[i * active.len() + j]);
            }
        }
    }

    fn add_place(&mut self, active: &[u32], free: &[f64]) {
        for (&a, &u) in active.iter().zip(free) {
            self.count[a as usize] += 1.0;
            self.sum[a as usize] += u;
            self.squares[a as usize] += u * u;
        }
    }

    fn add_pair(&mut self, a: u32, b: u32, count: f64, product: f64) {
        let (a, b) = (a as usize, b as usize);
        self.pairs.add(a, b, count);
        self.products.add(a, b, product);
    }

    /// Adds the sums of another.
    pub(super) fn join(&mut self, other: &Self) {
        let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(sum, x)| *sum += x);
        add(&mut self.count, &other.count);
        add(&mut self.sum, &other.sum);
        add(&mut self.squares, &other.squares);
        self.pairs.join(&other.pairs);
        self.products.join(&other.products);
    }

    /// Starts again from nothing.
    pub(super) fn clear(&mut self) {
        let lists = [&mut self.count, &mut self.sum, &mut self.squares];
        lists.into_iter().chain([&mut self.pairs.values, &mut self.products.values]).for_each(|list| list.fill(0.0));
    }
}
