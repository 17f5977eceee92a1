//! A second device, plain and slow, on which flows run unchanged: what an device must do is all in its trait.
//!
//! Matrices are lists of rows, every row computes exactly what it needs, and the derivatives of transforms are numeric.

use std::ops::Range;

use vti::device::{
    Activation, AdamWStep, Choice, ContextTable, ContextTableGradient, Device, InputGradient, Linear, Output,
    Placement, Reach, RowPlan, Symbols, Transform,
};
use vti::flow::{ContextShape, Passes};

use crate::cases::{Setup, table};
use crate::{max_error, slow};

struct Plain;

/// Row by row, features in order.
struct Matrix {
    features: usize,
    rows: Vec<Vec<f64>>,
}

#[derive(Default)]
struct Rows {
    dims: Vec<u32>,
    order: Vec<usize>,
    contexts: Vec<usize>,
    slots: Vec<usize>,
    active: Vec<Vec<usize>>,
}

impl Rows {
    fn all(&self) -> Range<usize> {
        0..self.dims.len()
    }

    /// Saturated coordinate of the `i`-th active one, counted from the other end if `reversed`.
    fn coordinate(&self, row: usize, i: usize, reversed: bool) -> usize {
        let active = &self.active[row];
        active[if reversed { active.len() - 1 - i } else { i }]
    }
}

/// Where feature `i` of a row of dimension `dim` stands on the host; none if it does not.
fn host_place(at: Placement<'_>, host_row: usize, i: usize, dim: usize) -> Option<usize> {
    match at {
        Placement::Whole { stride, first } => {
            (first..first + stride).contains(&i).then(|| host_row * stride + i - first)
        }
        Placement::LeftAligned { stride } => (i < dim).then_some(host_row * stride + i),
        Placement::Saturated { stride, active, starts } => {
            (i < dim).then(|| host_row * stride + active[starts[host_row] as usize + i] as usize)
        }
    }
}

/// `τ_ρ(x)` and its log-derivative.
fn evaluate(transform: &Transform, rho: &[f64], x: f64) -> (f64, f64) {
    match transform {
        Transform::Affine(scale) => slow::affine(rho, scale.minimum, true, x),
        Transform::Spline(s) => slow::spline(rho, s.bins, (s.min_width, s.min_height, s.slope.minimum), true, x),
    }
}

/// The argument at which an increasing function takes a value.
fn bisect(f: impl Fn(f64) -> f64, value: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if f(middle) < value { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

impl Device for Plain {
    type Real = f64;
    type Buffer = Vec<f64>;
    type Matrix = Matrix;
    type Rows = Rows;

    fn buffer(&self, len: usize) -> Vec<f64> {
        vec![0.0; len]
    }
    fn len(&self, buffer: &Vec<f64>) -> usize {
        buffer.len()
    }
    fn write(&self, from: &[f64], to: &mut Vec<f64>) {
        to.copy_from_slice(from);
    }
    fn read(&self, from: &Vec<f64>, to: &mut [f64]) {
        to.copy_from_slice(from);
    }
    fn matrix(&self, features: usize, rows: usize) -> Matrix {
        Matrix { features, rows: vec![vec![0.0; features]; rows] }
    }
    fn rows(&self, _: usize, _: usize) -> Rows {
        Rows::default()
    }
    fn set_rows(&self, rows: &mut Rows, plan: RowPlan<'_>) {
        let pick = |from: &[u32]| plan.order.iter().map(|&row| from[row as usize] as usize).collect::<Vec<_>>();
        let dims = pick(plan.dims);
        let active = |(&row, &dim): (&u32, &usize)| {
            if !plan.needs_active {
                return Vec::new();
            }
            plan.active[plan.starts[row as usize] as usize..][..dim].iter().map(|&c| c as usize).collect()
        };
        *rows = Rows {
            order: plan.order.iter().map(|&row| row as usize).collect(),
            contexts: pick(plan.contexts),
            slots: pick(plan.slots),
            active: plan.order.iter().zip(&dims).map(active).collect(),
            dims: dims.into_iter().map(|dim| dim as u32).collect(),
        };
    }
    fn import(&self, rows: &Rows, from: &[f64], at: Placement<'_>, to: &mut Matrix) {
        for row in rows.all() {
            for i in 0..to.features {
                let place = host_place(at, rows.order[row], i, rows.dims[row] as usize);
                let outside = matches!(at, Placement::Whole { .. });
                to.rows[row][i] = place.map_or(if outside { to.rows[row][i] } else { 0.0 }, |place| from[place]);
            }
        }
    }
    fn export(&self, rows: &Rows, from: &Matrix, at: Placement<'_>, to: &mut [f64]) {
        for row in rows.all() {
            for i in 0..from.features {
                if let Some(place) = host_place(at, rows.order[row], i, rows.dims[row] as usize) {
                    to[place] = from.rows[row][i];
                }
            }
        }
    }
    fn clear(&self, matrix: &mut Matrix) {
        matrix.rows.iter_mut().for_each(|row| row.fill(0.0));
    }
    fn copy(&self, rows: &Rows, from: &Matrix, to: &mut Matrix) {
        rows.all().for_each(|row| to.rows[row].copy_from_slice(&from.rows[row]));
    }

    fn product(
        &self,
        linear: &Linear,
        parameters: &Vec<f64>,
        rows: &Rows,
        input: &Matrix,
        units: Range<usize>,
        output: Output<'_, Matrix>,
    ) {
        let Output { to, accumulate, mut activation } = output;
        for row in rows.all() {
            for unit in units.start..units.end.min(linear.outputs().units(rows.dims[row])) {
                let weights = &parameters[linear.weight() + unit * linear.stairs().inputs()..];
                let terms = weights.iter().zip(&input.rows[row]).take(linear.stairs().prefix(unit));
                let before = if accumulate { to.rows[row][unit] } else { 0.0 };
                let sum = before + parameters[linear.bias() + unit] + terms.map(|(w, x)| w * x).sum::<f64>();
                to.rows[row][unit] = if let Activation::Relu = activation { sum.max(0.0) } else { sum };
                if let Activation::ReluInto(copy) = &mut activation {
                    copy.rows[row][unit] = sum.max(0.0);
                }
            }
        }
    }
    fn product_input_gradient(
        &self,
        linear: &Linear,
        parameters: &Vec<f64>,
        rows: &Rows,
        gradient: &Matrix,
        units: Range<usize>,
        output: InputGradient<'_, Matrix>,
    ) {
        let InputGradient { to, accumulate, residual, gate } = output;
        for row in rows.all() {
            for input in units.start..units.end.min(linear.inputs().units(rows.dims[row])) {
                let readers = linear.stairs().first(input)..linear.outputs().units(rows.dims[row]);
                let weight = |unit: usize| parameters[linear.weight() + unit * linear.stairs().inputs() + input];
                let sum: f64 = readers.map(|unit| weight(unit) * gradient.rows[row][unit]).sum();
                let open = gate.is_none_or(|gate| gate.rows[row][input] > 0.0);
                let before = if accumulate { to.rows[row][input] } else { 0.0 };
                let before = before + residual.map_or(0.0, |residual| residual.rows[row][input]);
                to.rows[row][input] = before + if open { sum } else { 0.0 };
            }
        }
    }
    fn product_weight_gradient(
        &self,
        linear: &Linear,
        rows: &Rows,
        input: &Matrix,
        gradient: &Matrix,
        _: &mut Matrix,
        to: &mut Vec<f64>,
    ) {
        let inputs = linear.stairs().inputs();
        for unit in 0..linear.stairs().outputs() {
            let present = || rows.all().filter(|&row| linear.outputs().units(rows.dims[row]) > unit);
            to[linear.bias() + unit] = present().map(|row| gradient.rows[row][unit]).sum();
            for i in 0..inputs {
                let terms = present().map(|row| gradient.rows[row][unit] * input.rows[row][i]);
                let read = i < linear.stairs().prefix(unit);
                to[linear.weight() + unit * inputs + i] = if read { terms.sum() } else { 0.0 };
            }
        }
    }
    fn gate(&self, rows: &Rows, by: &Matrix, to: &mut Matrix) {
        for row in rows.all() {
            for (to, &by) in to.rows[row].iter_mut().zip(&by.rows[row]) {
                *to = if by > 0.0 { *to } else { 0.0 };
            }
        }
    }
    fn scratch_features(&self, _: usize) -> usize {
        0
    }

    fn gather(&self, table: ContextTable<'_, Self>, reach: &Reach, rows: &Rows, to: &mut Matrix) {
        for row in rows.all() {
            for unit in 0..reach.units(rows.dims[row]) {
                to.rows[row][unit] = match &table {
                    ContextTable::Parameters { buffer, at, width } => buffer[at + rows.contexts[row] * width + unit],
                    ContextTable::Computed(matrix) => matrix.rows[rows.slots[row]][unit],
                };
            }
        }
    }
    fn scatter(&self, from: &Matrix, reach: &Reach, rows: &Rows, mut table: ContextTableGradient<'_, Self>) {
        match &mut table {
            ContextTableGradient::Parameters { buffer, at, contexts, width } => {
                buffer[*at..][..*contexts * *width].fill(0.0)
            }
            ContextTableGradient::Computed(matrix) => self.clear(matrix),
        }
        for row in rows.all() {
            for unit in 0..reach.units(rows.dims[row]) {
                *match &mut table {
                    ContextTableGradient::Parameters { buffer, at, width, .. } => {
                        &mut buffer[*at + rows.contexts[row] * *width + unit]
                    }
                    ContextTableGradient::Computed(matrix) => &mut matrix.rows[rows.slots[row]][unit],
                } += from.rows[row][unit];
            }
        }
    }
    fn gather_coordinates(&self, table: &Matrix, k: usize, rows: &Rows, reversed: bool, to: &mut Matrix) {
        for row in rows.all() {
            for feature in 0..rows.active[row].len() * k {
                let source = rows.coordinate(row, feature / k, reversed) * k + feature % k;
                to.rows[row][feature] = table.rows[rows.slots[row]][source];
            }
        }
    }
    fn scatter_coordinates(&self, from: &Matrix, k: usize, rows: &Rows, reversed: bool, table: &mut Matrix) {
        self.clear(table);
        for row in rows.all() {
            for feature in 0..rows.active[row].len() * k {
                let source = rows.coordinate(row, feature / k, reversed) * k + feature % k;
                table.rows[rows.slots[row]][source] += from.rows[row][feature];
            }
        }
    }

    fn reverse(&self, rows: &Rows, from: &Matrix, to: &mut Matrix) {
        for row in rows.all() {
            to.rows[row].copy_from_slice(&from.rows[row]);
            to.rows[row][..rows.dims[row] as usize].reverse();
        }
    }
    fn transform(
        &self,
        transform: &Transform,
        rows: &Rows,
        rho: &Matrix,
        x: &Matrix,
        y: &mut Matrix,
        log_det: &mut Matrix,
    ) {
        let k = transform.parameters();
        for row in rows.all() {
            y.rows[row].copy_from_slice(&x.rows[row]);
            for i in 0..rows.dims[row] as usize {
                let (value, slope) = evaluate(transform, &rho.rows[row][i * k..][..k], x.rows[row][i]);
                y.rows[row][i] = value;
                log_det.rows[row][0] += slope;
            }
        }
    }
    fn transform_gradient(
        &self,
        transform: &Transform,
        rows: &Rows,
        rho: &mut Matrix,
        x: &Matrix,
        log_det_gradient: &Matrix,
        gradient: &mut Matrix,
    ) {
        let (k, step) = (transform.parameters(), 1e-6);
        for row in rows.all() {
            let dim = rows.dims[row] as usize;
            for i in 0..dim {
                let (own, x) = (rho.rows[row][i * k..][..k].to_vec(), x.rows[row][i]);
                let weigh =
                    |(value, slope): (f64, f64)| gradient.rows[row][i] * value + log_det_gradient.rows[row][0] * slope;
                let difference = |value: &dyn Fn(f64) -> f64| (value(step) - value(-step)) / (2.0 * step);
                for j in 0..k {
                    rho.rows[row][i * k + j] = difference(&|step| {
                        let mut moved = own.clone();
                        moved[j] += step;
                        weigh(evaluate(transform, &moved, x))
                    });
                }
                gradient.rows[row][i] = difference(&|step| weigh(evaluate(transform, &own, x + step)));
            }
            rho.rows[row][dim * k..].fill(0.0);
        }
    }
    fn transform_inverse(
        &self,
        transform: &Transform,
        rows: &Rows,
        coordinates: Range<usize>,
        rho: &Matrix,
        y: &Matrix,
        x: &mut Matrix,
        log_det: &mut Matrix,
    ) {
        let k = transform.parameters();
        for row in rows.all() {
            for i in coordinates.start..coordinates.end.min(rows.dims[row] as usize) {
                let own = &rho.rows[row][i * k..][..k];
                x.rows[row][i] = bisect(|x| evaluate(transform, own, x).0, y.rows[row][i]);
                log_det.rows[row][0] += evaluate(transform, own, x.rows[row][i]).1;
            }
        }
    }
    fn broadcast(&self, parameters: &Vec<f64>, at: usize, k: usize, rows: &Rows, to: &mut Matrix) {
        for row in rows.all() {
            to.rows[row].iter_mut().enumerate().for_each(|(feature, value)| *value = parameters[at + feature % k]);
        }
    }
    fn broadcast_gradient(&self, from: &Matrix, at: usize, k: usize, rows: &Rows, to: &mut Vec<f64>) {
        to[at..at + k].fill(0.0);
        for row in rows.all() {
            for feature in 0..rows.dims[row] as usize * k {
                to[at + feature % k] += from.rows[row][feature];
            }
        }
    }

    fn transform_score(
        &self,
        transform: &Transform,
        rows: &Rows,
        coordinates: Range<usize>,
        rho: &Matrix,
        x: &Matrix,
        later: &Matrix,
        score: &mut Matrix,
        rho_gradient: &mut Matrix,
    ) {
        let (k, step) = (transform.parameters(), 1e-6);
        let difference = |value: &dyn Fn(f64) -> f64| (value(step) - value(-step)) / (2.0 * step);
        for row in rows.all() {
            rho_gradient.rows[row][coordinates.start * k..coordinates.end * k].fill(0.0);
            for i in coordinates.start..coordinates.end.min(rows.dims[row] as usize) {
                let (own, x) = (&rho.rows[row][i * k..][..k], x.rows[row][i]);
                let slope = evaluate(transform, own, x).1.exp();
                let bend = difference(&|step| evaluate(transform, own, x + step).1);
                let carried = (score.rows[row][i] - later.rows[row][i] - bend) / slope;
                score.rows[row][i] = carried;
                for j in 0..k {
                    rho_gradient.rows[row][i * k + j] = difference(&|step| {
                        let mut moved = own.to_vec();
                        moved[j] += step;
                        let (value, log_slope) = evaluate(transform, &moved, x);
                        carried * value + log_slope
                    });
                }
            }
        }
    }

    fn choose(&self, _: &Rows, _: Choice<'_, Matrix>) {
        unimplemented!("flows draw no symbols")
    }
    fn symbol_log_prob(&self, _: &Rows, _: Symbols<'_, Matrix>, _: &Matrix, _: &mut Matrix) {
        unimplemented!("flows draw no symbols")
    }
    fn symbol_gradient(&self, _: &Rows, _: Symbols<'_, Matrix>, _: &Matrix, _: &mut Matrix) {
        unimplemented!("flows draw no symbols")
    }
    fn add_features(&self, _: &Rows, _: Range<usize>, _: &Matrix, _: &mut Matrix) {
        unimplemented!("flows draw no symbols")
    }
    fn combine(&self, factor: f64, from: &Vec<f64>, keep: f64, to: &mut Vec<f64>) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = factor * from + keep * *to);
    }
    fn norm(&self, buffer: &Vec<f64>) -> f64 {
        buffer.iter().map(|x| x * x).sum::<f64>().sqrt()
    }
    fn adamw(&self, _: &AdamWStep, _: &Vec<f64>, _: (&mut Vec<f64>, &mut Vec<f64>), _: &mut Vec<f64>) -> f64 {
        unimplemented!("flows update nothing")
    }
}

/// θ, log-determinants, gradients and recovered z of a flow on any device.
fn everything<D: Device<Real = f64>>(device: &D, setup: &Setup<f64>) -> [Vec<f64>; 6] {
    let (flow, rows) = (&setup.flow, setup.batch.rows());
    let z = setup.left_align(&setup.z);
    let mut parameters = device.buffer(setup.parameters.len());
    device.write(&setup.parameters, &mut parameters);
    let mut work = flow.workspace(device, rows, Passes::TrainingWithScores);
    work.set_batch(device, &setup.batch).unwrap();
    work.write_z(device, &z).unwrap();
    flow.forward(device, &parameters, &mut work).unwrap();
    let (mut theta, mut log_det) = (vec![0.0; z.len()], vec![0.0; rows]);
    work.read_theta(device, &mut theta, &mut log_det).unwrap();
    let mut score = vec![0.0; z.len()];
    flow.score(device, &parameters, &mut work, &mut score).unwrap();
    work.write_gradients(device, &theta, &vec![-1.0; rows]).unwrap();
    let mut gradient = device.buffer(setup.parameters.len());
    flow.backward(device, &parameters, &mut work, &mut gradient).unwrap();
    let mut found = vec![0.0; setup.parameters.len()];
    device.read(&gradient, &mut found);
    let mut features = vec![0.0; setup.features.len()];
    work.read_feature_gradient(device, &mut features).unwrap();
    let mut evaluation = flow.workspace(device, rows, Passes::Evaluation);
    evaluation.set_batch(device, &setup.batch).unwrap();
    evaluation.write_theta(device, &theta).unwrap();
    flow.inverse(device, &parameters, &mut evaluation).unwrap();
    let mut back = vec![0.0; z.len()];
    evaluation.read_z(device, &mut back, &mut vec![0.0; rows]).unwrap();
    [theta, log_det, found, features, back, score]
}

#[test]
fn flows_run_unchanged_on_another_device() {
    let wanted = |context: ContextShape| context != ContextShape::Symbols(1);
    for case in table().iter().filter(|case| case.shape.max_dim == 5 && wanted(case.shape.context)) {
        let setup = Setup::<f64>::new(case, 20, 41);
        let (fast, plain) = (everything(&setup.device, &setup), everything(&Plain, &setup));
        for (what, (fast, plain)) in
            ["θ", "log-det", "dφ", "d features", "z", "score"].iter().zip(fast.iter().zip(&plain))
        {
            let error = max_error(fast, plain.iter().copied());
            assert!(error < 1e-5, "{}: {what} off by {error}", case.name);
        }
    }
}
