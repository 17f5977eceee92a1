//! The paper's flow, written in the most obvious way: one row at a time, all `d_max` coordinates, dense masks, convex
//! combination with the static point. Slow, and independent of the library's kernels.

use std::collections::HashMap;

use vti::flow::{FlowSettings, FlowShape, LayerSettings, Tensor};

use crate::number::Number;

/// A row's context.
#[derive(Clone)]
pub enum Context {
    Symbol(usize),
    Dense(Vec<f64>),
}

pub struct SlowFlow {
    settings: FlowSettings,
    shape: FlowShape,
    values: HashMap<String, Vec<f64>>,
}

/// Degree of hidden unit `u`: how many variables it may depend on.
fn degree(unit: usize, hidden: usize, variables: usize) -> usize {
    unit * variables / hidden
}

/// Whether weight (row, column) of the named map may be other than 0.
fn allowed(map: &str, row: usize, column: usize, hidden: usize, variables: usize, outputs: usize) -> bool {
    let degree = |unit| degree(unit, hidden, variables);
    match map {
        "initial" => column < degree(row),
        "output" => degree(column) <= row / outputs,
        _ => degree(column) <= degree(row),
    }
}

fn conditioner(layer: &LayerSettings) -> Option<(usize, usize)> {
    match layer {
        LayerSettings::Affine(s) => Some((s.hidden, 2)),
        LayerSettings::Spline(s) => Some((s.hidden, 3 * s.bins + 1)),
        _ => None,
    }
}

/// Whether a tensor belongs to the injections of a context, which are not masked.
fn name_is_context(parts: &[&str]) -> bool {
    parts.contains(&"context")
}

/// Which parameters are not structurally zero.
pub fn masks(settings: &FlowSettings, shape: FlowShape, tensors: &[Tensor]) -> Vec<bool> {
    let mut kept = vec![true; tensors.iter().map(|t| t.range().end).max().unwrap_or(0)];
    for tensor in tensors {
        let parts: Vec<&str> = tensor.name.split('.').collect();
        let (Some(&"layers"), Some(&"weight")) = (parts.first(), parts.last()) else { continue };
        let layer = &settings.layers[parts[1].parse::<usize>().expect("a layer number")];
        let Some((hidden, outputs)) = conditioner(layer) else { continue };
        let map = parts[parts.len() - 2];
        if name_is_context(&parts) {
            continue;
        }
        let columns = tensor.shape[1];
        for (place, kept) in kept[tensor.range()].iter_mut().enumerate() {
            *kept = allowed(map, place / columns, place % columns, hidden, shape.max_dim, outputs);
        }
    }
    kept
}

fn relu(x: &[f64]) -> Vec<f64> {
    x.iter().map(|x| x.max(0.0)).collect()
}

/// `minimum + softplus(raw + offset)` with offset such that raw 0 gives 1.
fn positive<N: Number>(raw: N, minimum: f64) -> N {
    N::from(minimum) + (raw + N::from((1.0 - minimum).exp_m1().ln())).softplus()
}

impl SlowFlow {
    pub fn new(settings: FlowSettings, shape: FlowShape, values: HashMap<String, Vec<f64>>) -> Self {
        Self { settings, shape, values }
    }

    fn get(&self, name: &str) -> &[f64] {
        self.values.get(name).unwrap_or_else(|| panic!("no tensor {name}"))
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (self.get(&format!("{name}.weight")), self.get(&format!("{name}.bias")));
        let row = |o: usize| weight[o * x.len()..][..x.len()].iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
        bias.iter().enumerate().map(|(o, b)| row(o) + b).collect()
    }

    /// A fully connected net with rectified hidden layers.
    fn net(&self, name: &str, layers: usize, context: &Context, rectify_last: bool) -> Vec<f64> {
        let mut x = match context {
            Context::Dense(x) => x.clone(),
            Context::Symbol(_) => Vec::new(),
        };
        for layer in 0..layers {
            x = self.linear(&format!("{name}.linear{layer}"), &x);
            if let (0, Context::Symbol(symbol)) = (layer, context) {
                let width = x.len();
                let table = &self.get(&format!("{name}.table"))[symbol * width..][..width];
                x.iter_mut().zip(table).for_each(|(x, t)| *x += t);
            }
            if layer + 1 < layers || rectify_last {
                x = relu(&x);
            }
        }
        x
    }

    /// What is injected into the conditioner's first layer or one of its blocks.
    fn injection(&self, name: &str, index: usize, context: &Context, hidden: usize) -> Vec<f64> {
        match context {
            Context::Dense(x) => self.linear(&format!("{name}.context.{index}"), x),
            Context::Symbol(symbol) => self
                .values
                .get(&format!("{name}.context.{index}.table"))
                .map_or(vec![0.0; hidden], |table| table[symbol * hidden..][..hidden].to_vec()),
        }
    }

    /// ρ for all coordinates.
    fn made(&self, name: &str, x: &[f64], context: &Context, hidden: usize, blocks: usize) -> Vec<f64> {
        let injection = |index: usize| self.injection(name, index, context, hidden);
        let add = |x: Vec<f64>, y: &[f64]| -> Vec<f64> { x.iter().zip(y).map(|(x, y)| x + y).collect() };
        let mut h = add(self.linear(&format!("{name}.initial"), x), &injection(0));
        for block in 0..blocks {
            let linear = |which: &str, x: &[f64]| self.linear(&format!("{name}.blocks.{block}.{which}"), x);
            let t = add(linear("linear1", &relu(&h)), &injection(block + 1));
            h = add(linear("linear2", &relu(&t)), &h);
        }
        self.linear(&format!("{name}.output"), &h)
    }

    /// `(θ, u)` of saturated `z`, and the log-determinant.
    pub fn forward(&self, z: &[f64], active: &[u32], context: &Context) -> (Vec<f64>, f64) {
        let max_dim = self.shape.max_dim;
        let dim = active.len();
        // P_m: active coordinates first, order kept in both groups.
        let inactive = (0..max_dim as u32).filter(|c| !active.contains(c));
        let order: Vec<usize> = active.iter().copied().chain(inactive).map(|c| c as usize).collect();
        let mut x: Vec<f64> = order.iter().map(|&c| z[c]).collect();
        let encoded = if self.settings.encoder.is_empty() {
            context.clone()
        } else {
            Context::Dense(self.net("encoder", self.settings.encoder.len(), context, true))
        };
        let mut log_det = 0.0;
        let mut reversals = 0;
        for (index, layer) in self.settings.layers.iter().enumerate() {
            let name = format!("layers.{index}");
            // (y, log-derivative) of every coordinate; the mask C(m) picks the static point for inactive ones.
            let change: Vec<(f64, f64)> = match layer {
                LayerSettings::Affine(s) => {
                    let rho = self.made(&name, &x, &encoded, s.hidden, s.blocks);
                    (0..max_dim).map(|i| affine(&rho[2 * i..], s.min_scale, i < dim, x[i])).collect()
                }
                LayerSettings::Spline(s) => {
                    let rho = self.made(&name, &x, &encoded, s.hidden, s.blocks);
                    let k = 3 * s.bins + 1;
                    let mins = (s.min_width, s.min_height, s.min_slope);
                    (0..max_dim).map(|i| spline(&rho[k * i..][..k], s.bins, mins, i < dim, x[i])).collect()
                }
                LayerSettings::Diagonal(s) => {
                    let rho = self.net(&name, s.hidden.len() + 1, &encoded, false);
                    let coordinate =
                        |i: usize| if i < dim && reversals % 2 == 1 { order[dim - 1 - i] } else { order[i] };
                    (0..max_dim).map(|i| affine(&rho[2 * coordinate(i)..], s.min_scale, i < dim, x[i])).collect()
                }
                LayerSettings::Global(s) => {
                    let rho = self.get(&format!("{name}.rho"));
                    (0..max_dim).map(|i| affine(rho, s.min_scale, i < dim, x[i])).collect()
                }
                LayerSettings::Reverse {} => {
                    reversals += 1;
                    x[..dim].reverse();
                    continue;
                }
            };
            for (x, (y, log_slope)) in x.iter_mut().zip(change) {
                *x = y;
                log_det += log_slope;
            }
        }
        if reversals % 2 == 1 {
            x[..dim].reverse();
        }
        let mut theta = vec![0.0; max_dim];
        order.iter().zip(x).for_each(|(&c, x)| theta[c] = x);
        (theta, log_det)
    }
}

/// Equation cosmic-rho-m: `(1 − C) ρ^Id + C ρ`.
fn combine<N: Number>(active: bool, rho: N, static_point: f64) -> N {
    let c = f64::from(u8::from(active));
    N::from((1.0 - c) * static_point) + N::from(c) * rho
}

pub fn affine<N: Number>(rho: &[N], min_scale: f64, active: bool, x: N) -> (N, N) {
    let shift = combine(active, rho[0], 0.0);
    let scale = combine(active, positive(rho[1], min_scale), 1.0);
    (shift + scale * x, scale.ln())
}

fn softmax<N: Number>(raw: &[N], minimum: f64) -> Vec<N> {
    let top = raw.iter().fold(f64::NEG_INFINITY, |top, r| top.max(r.value()));
    let weight = |r: &N| (*r - N::from(top)).exp();
    let total = raw.iter().fold(N::from(0.0), |total, r| total + weight(r));
    let rest = N::from(1.0 - minimum * raw.len() as f64);
    raw.iter().map(|r| N::from(minimum) + rest * weight(r) / total).collect()
}

/// Durkan et al. 2019, equations 4 and 5, between a logistic function and its inverse.
pub fn spline<N: Number>(rho: &[N], bins: usize, mins: (f64, f64, f64), active: bool, x: N) -> (N, N) {
    let (one, two) = (N::from(1.0), N::from(2.0));
    let even = 1.0 / bins as f64;
    let pick = |values: Vec<N>, fixed: f64| -> Vec<N> {
        values.into_iter().map(|value| combine(active, value, fixed)).collect()
    };
    let widths = pick(softmax(&rho[..bins], mins.0), even);
    let heights = pick(softmax(&rho[bins..2 * bins], mins.1), even);
    let slopes = pick(rho[2 * bins..].iter().map(|&raw| positive(raw, mins.2)).collect(), 1.0);
    let u = one / (one + (-x).exp());
    let (mut left, mut bottom, mut bin) = (N::from(0.0), N::from(0.0), 0);
    while bin + 1 < bins && u.value() >= (left + widths[bin]).value() {
        left = left + widths[bin];
        bottom = bottom + heights[bin];
        bin += 1;
    }
    let (w, h) = (widths[bin], heights[bin]);
    let (s, d0, d1) = (h / w, slopes[bin], slopes[bin + 1]);
    let xi = (u - left) / w;
    let denominator = s + (d1 + d0 - two * s) * xi * (one - xi);
    let y = bottom + h * (s * xi * xi + d0 * xi * (one - xi)) / denominator;
    let slope =
        s * s * (d1 * xi * xi + two * s * xi * (one - xi) + d0 * (one - xi) * (one - xi)) / (denominator * denominator);
    ((y / (one - y)).ln(), (slope * u * (one - u) / (y * (one - y))).ln())
}

/// log N(x; 0, I).
pub fn log_reference(x: impl Iterator<Item = f64>) -> f64 {
    x.map(|x| -0.5 * (x * x + (2.0 * std::f64::consts::PI).ln())).sum()
}

/// log |det| by elimination with partial pivoting.
pub fn log_abs_det(mut a: Vec<Vec<f64>>) -> f64 {
    let n = a.len();
    let mut log_det = 0.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).expect("a row");
        a.swap(k, pivot);
        log_det += a[k][k].abs().ln();
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= factor * a[k][j];
            }
        }
    }
    log_det
}
