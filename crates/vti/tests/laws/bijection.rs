//! Values: both directions, log-determinants, densities.

use vti::device::{Cpu, Device};
use vti::random::{Purpose, Stream};
use vti::simd::Instructions;
use vti::simd::Real;

use crate::cases::{Case, Setup, table};
use crate::{ROWS, for_all, max_error, slow};

/// The fast flow computes what the obvious one does, with every instruction set.
#[test]
fn forward_agrees_with_the_obvious_implementation() {
    fn law<T: Real>(case: &Case, seed: u64, tolerance: f64)
    where
        Cpu<T>: Device<Real = T>,
    {
        for instructions in Instructions::available() {
            let setup = Setup::<T>::new(case, ROWS, seed).with_instructions(instructions);
            let (theta, log_det) = setup.forward(&setup.batch, &setup.z);
            let slow = setup.slow();
            for row in 0..ROWS {
                let range = row * setup.max_dim()..(row + 1) * setup.max_dim();
                let z: Vec<f64> = setup.z[range.clone()].iter().map(|x| x.to_f64()).collect();
                let (truth, truth_det) = slow.forward(&z, setup.batch.active(row), &setup.slow_context(row));
                let error = max_error(&theta[range], truth.into_iter());
                let det_error = max_error(&log_det[row..=row], std::iter::once(truth_det));
                let name = &case.name;
                assert!(error < tolerance, "{name}, row {row}, {} {instructions:?}: θ off by {error}", T::NAME);
                assert!(
                    det_error < tolerance,
                    "{name}, row {row}, {} {instructions:?}: log-det off by {det_error}",
                    T::NAME
                );
            }
        }
    }
    for_all(|case, seed| {
        // The obvious spline subtracts from 1, so there the tolerance is its own accuracy in the tails.
        law::<f64>(case, seed, if case.has_spline() { 1e-7 } else { 1e-12 });
        law::<f32>(case, seed, if case.has_spline() { 2e-3 } else { 1e-4 });
    });
}

/// inverse ∘ forward = identity, and both directions report the same log-determinant.
#[test]
fn inverse_undoes_forward() {
    fn law<T: Real>(case: &Case, seed: u64, tolerance: f64)
    where
        Cpu<T>: Device<Real = T>,
    {
        // As usual and, where only splines act, far out in their tails. Affine layers are ill-conditioned there, and
        // conditioners with inputs that large are too for single precision.
        let tails = case.has_only_splines() && T::NAME == "f64";
        let scales: &[f64] = if tails { &[1.0, 60.0] } else { &[1.0] };
        for &scale in scales {
            let mut setup = Setup::<T>::new(case, ROWS, seed);
            setup.z.iter_mut().for_each(|z| *z *= T::from_f64(scale));
            let (theta, log_det) = setup.forward(&setup.batch, &setup.z);
            let (z, inverse_log_det) = setup.inverse(&setup.batch, &setup.left_align(&theta));
            let error = max_error(&z, setup.left_align(&setup.z).iter().map(|x| x.to_f64()));
            let det_error = max_error(&inverse_log_det, log_det.iter().map(|x| x.to_f64()));
            let name = &case.name;
            assert!(error < tolerance, "{name}, {}, scale {scale}: z off by {error}", T::NAME);
            assert!(det_error < tolerance, "{name}, {}, scale {scale}: log-det off by {det_error}", T::NAME);
        }
    }
    for_all(|case, seed| {
        law::<f64>(case, seed, if case.has_spline() { 1e-6 } else { 1e-10 });
        law::<f32>(case, seed, if case.has_spline() { 5e-3 } else { 1e-3 });
    });
}

/// Jacobian of the saturated map of one row by central differences: `jacobian[i][j] = ∂output_i/∂input_j`.
pub fn saturated_jacobian(setup: &Setup<f64>, row: usize) -> Vec<Vec<f64>> {
    let d = setup.max_dim();
    let step = 1e-6;
    let mut z = Vec::with_capacity(2 * d * d);
    for j in 0..d {
        for sign in [1.0, -1.0] {
            let mut moved = setup.z[row * d..][..d].to_vec();
            moved[j] += sign * step;
            z.extend(moved);
        }
    }
    let (theta, _) = setup.forward(&setup.repeat(row, 2 * d), &z);
    (0..d)
        .map(|i| (0..d).map(|j| (theta[2 * j * d + i] - theta[(2 * j + 1) * d + i]) / (2.0 * step)).collect())
        .collect()
}

/// The log-determinant is that of a numeric Jacobian, of the active block and of the whole saturated map.
#[test]
fn log_det_agrees_with_a_numeric_jacobian() {
    for_all(|case, seed| {
        let setup = Setup::<f64>::new(case, 12, seed);
        let (_, log_det) = setup.forward(&setup.batch, &setup.z);
        for row in 0..12 {
            let jacobian = saturated_jacobian(&setup, row);
            let active: Vec<usize> = setup.batch.active(row).iter().map(|&c| c as usize).collect();
            let block = active.iter().map(|&i| active.iter().map(|&j| jacobian[i][j]).collect()).collect();
            let (whole, block) = (slow::log_abs_det(jacobian), slow::log_abs_det(block));
            let tolerance = 1e-5 * (1.0 + log_det[row].abs());
            assert!((log_det[row] - block).abs() < tolerance, "{}, row {row}: {} ≠ {block}", case.name, log_det[row]);
            assert!((log_det[row] - whole).abs() < tolerance, "{}, row {row}: {} ≠ {whole}", case.name, log_det[row]);
        }
    });
}

/// Edges of cells that are narrow where draws are dense and reach well beyond them.
fn cells(mut draws: Vec<f64>, count: usize) -> Vec<f64> {
    draws.sort_by(f64::total_cmp);
    let (low, high) = (draws[0], draws[draws.len() - 1]);
    let margin = 0.6 * (high - low);
    let even = (0..=count / 3).map(|k| low - margin + (high - low + 2.0 * margin) * k as f64 / (count / 3) as f64);
    let dense = (0..2 * count / 3).map(|k| draws[k * (draws.len() - 1) / (2 * count / 3)]);
    let mut edges: Vec<f64> = even.chain(dense).collect();
    edges.sort_by(f64::total_cmp);
    edges
}

/// q(θ | m) integrates to 1 over its 1 or 2 dimensions: θ space is covered by cells, z found by the density direction.
#[test]
fn densities_integrate_to_one() {
    let contexts = ["; symbols;", "; encoded features;"];
    let few = |case: &&Case| {
        case.shape.max_dim == 1 || case.shape.max_dim == 2 && contexts.iter().any(|c| case.name.contains(c))
    };
    for case in table().iter().filter(few) {
        let dim = case.shape.max_dim;
        let setup = Setup::<f64>::new(case, 3, 17);
        let draws = 20_000;
        let mut stream = Stream::new(5, Purpose::Other(5), 0, 0);
        let z: Vec<f64> = (0..draws * dim).map(|_| stream.normal()).collect();
        let (theta, _) = setup.forward(&setup.repeat(1, draws), &z);
        let count = if dim == 1 { 6_000 } else { 750 };
        let edges: Vec<Vec<f64>> =
            (0..dim).map(|c| cells(theta.iter().skip(c).step_by(dim).copied().collect(), count)).collect();
        let sides: Vec<usize> = edges.iter().map(|edges| edges.len() - 1).collect();
        let index = |cell: usize, c: usize| if c == 0 { cell % sides[0] } else { cell / sides[0] };
        let middle = |cell: usize, c: usize| 0.5 * (edges[c][index(cell, c)] + edges[c][index(cell, c) + 1]);
        let volume = |cell: usize| -> f64 {
            (0..dim).map(|c| edges[c][index(cell, c) + 1] - edges[c][index(cell, c)]).product()
        };
        let all: Vec<usize> = (0..sides.iter().product()).collect();
        let mut total = 0.0;
        for chunk in all.chunks(8_192) {
            let grid: Vec<f64> = chunk.iter().flat_map(|&cell| (0..dim).map(move |c| middle(cell, c))).collect();
            let (z, log_det) = setup.inverse(&setup.repeat(1, chunk.len()), &grid);
            for (row, &cell) in chunk.iter().enumerate() {
                let log_density = slow::log_reference(z[row * dim..][..dim].iter().copied()) - log_det[row];
                total += volume(cell) * log_density.exp();
            }
        }
        assert!((total - 1.0).abs() < 5e-3, "{}: integrates to {total}", case.name);
    }
}
