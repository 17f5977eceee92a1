//! Laws that every flow obeys, checked over one table of flows, contexts and dimensions, in both precisions.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::needless_range_loop)]

mod cases;
mod slow;

use cases::{Case, Setup, table};
use vti::engine::cpu::simd::Instructions;
use vti::engine::{CpuEngine, Engine, Real};
use vti::flow::{Batch, ContextShape, FlowError, Passes, Workspace};
use vti::random::{Purpose, Stream};

/// More than one tile, not a multiple of one.
const ROWS: usize = 83;

/// Calls `law` for every case of the table with its own seed.
fn for_all(law: impl Fn(&Case, u64)) {
    for (seed, case) in (1..).zip(table()) {
        law(&case, seed);
    }
}

fn max_error<T: Real>(found: &[T], expected: impl Iterator<Item = f64>) -> f64 {
    found.iter().zip(expected).fold(0.0, |worst, (found, expected)| {
        let error = (found.to_f64() - expected).abs() / (1.0 + expected.abs());
        if error.is_nan() { f64::INFINITY } else { worst.max(error) }
    })
}

/// The fast flow computes what the obvious one does, with every instruction set.
#[test]
fn forward_agrees_with_the_obvious_implementation() {
    fn law<T: Real>(case: &Case, seed: u64, tolerance: f64) {
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
    fn law<T: Real>(case: &Case, seed: u64, tolerance: f64) {
        let setup = Setup::<T>::new(case, ROWS, seed);
        let (theta, log_det) = setup.forward(&setup.batch, &setup.z);
        let (z, inverse_log_det) = setup.inverse(&setup.batch, &setup.left_align(&theta));
        let error = max_error(&z, setup.left_align(&setup.z).iter().map(|x| x.to_f64()));
        let det_error = max_error(&inverse_log_det, log_det.iter().map(|x| x.to_f64()));
        assert!(error < tolerance, "{}, {}: z off by {error}", case.name, T::NAME);
        assert!(det_error < tolerance, "{}, {}: log-det off by {det_error}", case.name, T::NAME);
    }
    for_all(|case, seed| {
        law::<f64>(case, seed, if case.has_spline() { 1e-6 } else { 1e-10 });
        law::<f32>(case, seed, if case.has_spline() { 5e-3 } else { 1e-3 });
    });
}

/// Jacobian of the saturated map of one row by central differences: `jacobian[i][j] = ∂output_i/∂input_j`.
fn saturated_jacobian(setup: &Setup<f64>, row: usize) -> Vec<Vec<f64>> {
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

/// Lemma 1: auxiliary coordinates come out as they went in, bit for bit.
#[test]
fn lemma_1_auxiliary_coordinates_are_untouched() {
    fn law<T: Real>(case: &Case, seed: u64) {
        let setup = Setup::<T>::new(case, ROWS, seed);
        let (theta, _) = setup.forward(&setup.batch, &setup.z);
        let d = setup.max_dim();
        for row in 0..ROWS {
            for c in (0..d as u32).filter(|c| !setup.batch.active(row).contains(c)) {
                let place = row * d + c as usize;
                assert_eq!(theta[place].to_f64().to_bits(), setup.z[place].to_f64().to_bits(), "{}", case.name);
            }
        }
    }
    for_all(|case, seed| {
        law::<f32>(case, seed);
        law::<f64>(case, seed);
    });
}

/// Proposition 1: `q̃(θ, u) = q(θ) ν(u)`, and nothing about the active block changes when inactive values do.
#[test]
fn proposition_1_the_density_factorises() {
    for_all(|case, seed| {
        let setup = Setup::<f64>::new(case, 12, seed);
        let d = setup.max_dim();
        let (theta, log_det) = setup.forward(&setup.batch, &setup.z);
        let mut stream = Stream::new(seed, Purpose::Other(2), 0, 0);
        let mut moved = setup.z.clone();
        for row in 0..12 {
            for c in (0..d as u32).filter(|c| !setup.batch.active(row).contains(c)) {
                moved[row * d + c as usize] = 100.0 * stream.normal();
            }
        }
        let (moved_theta, moved_log_det) = setup.forward(&setup.batch, &moved);
        assert_eq!(setup.left_align(&theta), setup.left_align(&moved_theta), "{}", case.name);
        assert_eq!(log_det, moved_log_det, "{}", case.name);

        // The saturated density by its definition (equation cosmiciaf), with a numeric Jacobian of the saturated map …
        let (z_back, back_log_det) = setup.inverse(&setup.batch, &setup.left_align(&theta));
        for row in 0..12 {
            let z = &setup.z[row * d..][..d];
            let saturated = slow::log_reference(z.iter().copied()) - slow::log_abs_det(saturated_jacobian(&setup, row));
            // … is the density of the active block from the library's density direction times ν of the rest.
            let dim = setup.batch.active(row).len();
            let active = slow::log_reference(z_back[row * d..][..dim].iter().copied()) - back_log_det[row];
            let inactive = (0..d).filter(|&c| !setup.batch.active(row).contains(&(c as u32)));
            let auxiliary = slow::log_reference(inactive.map(|c| theta[row * d + c]));
            let tolerance = 1e-4 * (1.0 + saturated.abs());
            assert!((saturated - active - auxiliary).abs() < tolerance, "{}, row {row}", case.name);
        }
    });
}

/// Corollary 1: `ν(z) |det|⁻¹ / (η(θ) ν(u))`, from the obvious saturated flow over all coordinates, equals
/// `ν(z_m) |det|⁻¹ / η(θ)`, from the library, which never sees an auxiliary variable.
#[test]
fn corollary_1_the_loss_ratio_has_no_auxiliary_variables() {
    for_all(|case, seed| {
        let setup = Setup::<f64>::new(case, 12, seed);
        let d = setup.max_dim();
        // Any target will do: independent Laplace variables.
        let log_target = |theta: &[f64]| -> f64 { theta.iter().map(|t| -t.abs() - 2f64.ln()).sum() };
        let mut work = setup.workspace(&setup.batch, Passes::Evaluation);
        let z = setup.left_align(&setup.z);
        work.write_z(&setup.engine, &z).unwrap();
        setup.flow.forward(&setup.engine, &setup.device_parameters(), &mut work).unwrap();
        let (mut theta, mut log_det) = (vec![f64::NAN; z.len()], vec![0.0; 12]);
        work.read_theta(&setup.engine, &mut theta, &mut log_det).unwrap();
        let slow = setup.slow();
        for row in 0..12 {
            let active = setup.batch.active(row);
            let dim = active.len();
            let own = slow::log_reference(z[row * d..][..dim].iter().copied())
                - log_det[row]
                - log_target(&theta[row * d..][..dim]);

            let saturated_z = &setup.z[row * d..][..d];
            let (saturated, saturated_log_det) = slow.forward(saturated_z, active, &setup.slow_context(row));
            let (mut parameters, mut auxiliary) = (Vec::new(), Vec::new());
            for (c, &value) in saturated.iter().enumerate() {
                if active.contains(&(c as u32)) { &mut parameters } else { &mut auxiliary }.push(value);
            }
            let whole = slow::log_reference(saturated_z.iter().copied())
                - saturated_log_det
                - log_target(&parameters)
                - slow::log_reference(auxiliary.into_iter());
            let tolerance = if case.has_spline() { 1e-7 } else { 1e-10 };
            assert!((whole - own).abs() < tolerance * (1.0 + own.abs()), "{}, row {row}: {whole} ≠ {own}", case.name);
        }
    });
}

/// A function of all outputs of a flow, with its derivatives: Σ weights·(θ, θ²/2, log-det).
struct Probe {
    theta: Vec<f64>,
    square: Vec<f64>,
    log_det: Vec<f64>,
}

impl Probe {
    fn new(rows: usize, d: usize, seed: u64) -> Self {
        let mut stream = Stream::new(seed, Purpose::Other(3), 0, 0);
        let mut draw = |n: usize| (0..n).map(|_| stream.normal()).collect::<Vec<f64>>();
        Self { theta: draw(rows * d), square: draw(rows * d), log_det: draw(rows) }
    }

    fn value(&self, setup: &Setup<f64>, batch: &Batch<f64>, parameters: &[f64], z: &[f64]) -> f64 {
        let engine = &setup.engine;
        let mut work = setup.workspace(batch, Passes::Evaluation);
        work.write_z(engine, z).unwrap();
        let mut buffer = engine.buffer(parameters.len());
        engine.write(parameters, &mut buffer);
        setup.flow.forward(engine, &buffer, &mut work).unwrap();
        let (mut theta, mut log_det) = (vec![0.0; z.len()], vec![0.0; batch.rows()]);
        work.read_theta(engine, &mut theta, &mut log_det).unwrap();
        let sum: f64 = theta.iter().zip(&self.theta).zip(&self.square).map(|((t, a), b)| a * t + 0.5 * b * t * t).sum();
        sum + log_det.iter().zip(&self.log_det).map(|(l, c)| c * l).sum::<f64>()
    }
}

/// Gradients with respect to parameters, inputs and features agree with central differences.
#[test]
fn gradients_agree_with_central_differences() {
    for_all(|case, seed| {
        let rows = 9;
        let setup = Setup::<f64>::new(case, rows, seed);
        let (engine, d) = (&setup.engine, setup.max_dim());
        let probe = Probe::new(rows, d, seed);
        let z = setup.left_align(&setup.z);
        let mut work = setup.workspace(&setup.batch, Passes::Training);
        work.write_z(engine, &z).unwrap();
        let parameters = setup.device_parameters();
        setup.flow.forward(engine, &parameters, &mut work).unwrap();
        let (mut theta, mut log_det) = (vec![0.0; z.len()], vec![0.0; rows]);
        work.read_theta(engine, &mut theta, &mut log_det).unwrap();
        let d_theta: Vec<f64> = (0..z.len()).map(|i| probe.theta[i] + probe.square[i] * theta[i]).collect();
        work.write_gradients(engine, &d_theta, &probe.log_det).unwrap();
        let mut gradient = engine.buffer(setup.parameters.len());
        setup.flow.backward(engine, &parameters, &mut work, &mut gradient).unwrap();
        let mut found = vec![0.0; setup.parameters.len()];
        engine.read(&gradient, &mut found);
        let mut found_z = vec![0.0; z.len()];
        work.read_z_gradient(engine, &mut found_z).unwrap();
        let mut found_features = vec![0.0; setup.features.len()];
        work.read_feature_gradient(engine, &mut found_features).unwrap();

        let step = 1e-5;
        let check = |what: &str, index: usize, found: f64, value: &dyn Fn(f64) -> f64| {
            let difference = |step: f64| (value(step) - value(-step)) / (2.0 * step);
            let close = |numeric: f64| (numeric - found).abs() < 2e-5 * (1.0 + numeric.abs().max(found.abs()));
            // A rectifier's corner inside the step spoils a difference; a shorter step then tells.
            let numeric = difference(step);
            assert!(
                close(numeric) || close(difference(step / 30.0)),
                "{}: {what} {index}: {found} ≠ {numeric}",
                case.name
            );
        };
        let masks = slow::masks(&setup.settings, setup.flow.shape(), setup.flow.tensors());
        let mut stream = Stream::new(seed, Purpose::Other(4), 0, 0);
        for index in 0..found.len() {
            if !masks[index] {
                assert_eq!(found[index], 0.0, "{}: masked parameter {index}", case.name);
            } else if found.len() < 60 || stream.below(found.len() as u64) < 60 {
                check("parameter", index, found[index], &|step| {
                    let mut moved = setup.parameters.clone();
                    moved[index] += step;
                    probe.value(&setup, &setup.batch, &moved, &z)
                });
            }
        }
        for row in 0..rows {
            for i in 0..setup.batch.active(row).len() {
                let index = row * d + i;
                check("z", index, found_z[index], &|step| {
                    let mut moved = z.clone();
                    moved[index] += step;
                    probe.value(&setup, &setup.batch, &setup.parameters, &moved)
                });
            }
        }
        if let ContextShape::Features(width) = setup.flow.shape().context {
            for index in 0..found_features.len() {
                check("feature", index, found_features[index], &|step| {
                    let mut moved = setup.features.clone();
                    moved[index] += step;
                    let mut batch = Batch::new();
                    moved.chunks(width).for_each(|features| _ = batch.push_features(features));
                    (0..rows).for_each(|row| batch.push(setup.batch.active(row), setup.contexts[row]));
                    probe.value(&setup, &batch, &setup.parameters, &z)
                });
            }
        }
    });
}

/// All a training pass finds: θ, log-determinants and gradients with respect to parameters, z and features.
struct Found {
    theta: Vec<f64>,
    log_det: Vec<f64>,
    parameters: Vec<f64>,
    z: Vec<f64>,
    features: Vec<f64>,
}

/// A pass over rows `rows` of the setup, with the probe's derivatives, in a given workspace.
fn training_pass(
    setup: &Setup<f64>,
    probe: &Probe,
    rows: std::ops::Range<usize>,
    work: &mut Workspace<CpuEngine<f64>>,
) -> Found {
    let (engine, d) = (&setup.engine, setup.max_dim());
    let z = &setup.left_align(&setup.z)[rows.start * d..rows.end * d];
    work.set_batch(engine, &setup.select(rows.clone())).unwrap();
    work.write_z(engine, z).unwrap();
    let parameters = setup.device_parameters();
    setup.flow.forward(engine, &parameters, work).unwrap();
    let mut found = Found {
        theta: vec![0.0; z.len()],
        log_det: vec![0.0; rows.len()],
        parameters: vec![0.0; setup.parameters.len()],
        z: vec![0.0; z.len()],
        features: vec![0.0; setup.features.len()],
    };
    work.read_theta(engine, &mut found.theta, &mut found.log_det).unwrap();
    let places = rows.start * d..rows.end * d;
    let weights = probe.theta[places.clone()].iter().zip(&probe.square[places]);
    let d_theta: Vec<f64> = weights.zip(&found.theta).map(|((a, b), theta)| a + b * theta).collect();
    work.write_gradients(engine, &d_theta, &probe.log_det[rows]).unwrap();
    // What was in the buffer before must not matter.
    let mut gradient = engine.buffer(setup.parameters.len());
    engine.write(&vec![f64::NAN; setup.parameters.len()], &mut gradient);
    setup.flow.backward(engine, &parameters, work, &mut gradient).unwrap();
    engine.read(&gradient, &mut found.parameters);
    work.read_z_gradient(engine, &mut found.z).unwrap();
    work.read_feature_gradient(engine, &mut found.features).unwrap();
    found
}

fn close(found: &[f64], expected: &[f64], what: &str) {
    let error = max_error(found, expected.iter().copied());
    assert!(found.len() == expected.len() && error < 1e-9, "{what} off by {error}");
}

/// A batch of several lanes and many tiles of contexts gives what small batches give, one after another.
#[test]
fn large_batches_are_sums_of_small_ones() {
    let rows = 1_100;
    let wanted = |case: &Case| case.shape.max_dim == 19 && case.has_conditioner();
    for case in table().iter().filter(|case| wanted(case)) {
        for own_contexts in [true, false] {
            // A context for every row, or 300 of which some are shared by rows of different dimension.
            let choose = |stream: &mut Stream, count: u64, row: usize| match case.shape.context {
                ContextShape::Features(_) if own_contexts => row as u32,
                _ => stream.below(count) as u32,
            };
            let contexts = if own_contexts { rows } else { 300 };
            let setup = Setup::<f64>::with_contexts(case, rows, 23, contexts, choose);
            let probe = Probe::new(rows, setup.max_dim(), 7);
            let mut work = setup.flow.workspace(&setup.engine, rows, Passes::Training);
            let whole = training_pass(&setup, &probe, 0..rows, &mut work);
            let mut sum =
                Found { theta: vec![], log_det: vec![], z: vec![], ..training_pass(&setup, &probe, 0..0, &mut work) };
            let mut small = setup.flow.workspace(&setup.engine, 50, Passes::Training);
            for start in (0..rows).step_by(50) {
                let part = training_pass(&setup, &probe, start..start + 50, &mut small);
                sum.theta.extend(part.theta);
                sum.log_det.extend(part.log_det);
                sum.z.extend(part.z);
                let totals = [(&mut sum.parameters, part.parameters), (&mut sum.features, part.features)];
                for (sum, part) in totals {
                    sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
                }
            }
            let name = &case.name;
            close(&whole.theta, &sum.theta, &format!("{name}: θ"));
            close(&whole.log_det, &sum.log_det, &format!("{name}: log-det"));
            close(&whole.z, &sum.z, &format!("{name}: dz"));
            close(&whole.parameters, &sum.parameters, &format!("{name}: dφ"));
            close(&whole.features, &sum.features, &format!("{name}: d features"));
            let moved = |values: &[f64]| values.iter().filter(|&&value| value != 0.0).count() > values.len() / 4;
            assert!(moved(&whole.parameters) && (setup.features.is_empty() || moved(&whole.features)), "{name}");
        }
    }
}

/// A workspace forgets the batch before: results are those of a fresh one, bit for bit.
#[test]
fn workspaces_can_be_used_again() {
    for case in table().iter().filter(|case| case.shape.max_dim == 5) {
        let setup = Setup::<f64>::new(case, 700, 31);
        let probe = Probe::new(700, 5, 8);
        let mut used = setup.flow.workspace(&setup.engine, 700, Passes::Training);
        for rows in [0..700, 3..10, 100..250, 0..1, 0..0, 40..700] {
            let mut fresh = setup.flow.workspace(&setup.engine, 700, Passes::Training);
            let again = training_pass(&setup, &probe, rows.clone(), &mut used);
            let first = training_pass(&setup, &probe, rows.clone(), &mut fresh);
            let all = |found: Found| [found.theta, found.log_det, found.parameters, found.z, found.features].concat();
            assert_eq!(all(again), all(first), "{}, rows {rows:?}", case.name);
        }
    }
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

/// Whether all numbers are finite; if not, the error must say where.
fn reported<T: Real>(case: &Case, result: Result<(), FlowError>, values: &[T], log_det: &[T], d: usize) -> bool {
    let finite = values.iter().chain(log_det).all(|x| x.is_finite());
    match result {
        Ok(()) => assert!(finite, "{}: not finite and not reported", case.name),
        Err(FlowError::NotFinite { row, coordinate }) => {
            let value = coordinate.map_or(log_det[row], |c| values[row * d + c]);
            assert!(!value.is_finite(), "{}: reported a finite value", case.name);
        }
        Err(error) => panic!("{}: {error}", case.name),
    }
    finite
}

/// Extreme inputs and saturated conditioners stay finite or are reported, and never spoil other rows.
#[test]
fn extremes_stay_finite_or_are_reported() {
    fn law<T: Real>(case: &Case, seed: u64) {
        for scale in [1.0, 1e3] {
            let mut setup = Setup::<T>::new(case, ROWS, seed);
            setup.parameters.iter_mut().for_each(|p| *p *= T::from_f64(scale));
            let d = setup.max_dim();
            let (plain, plain_log_det, _) = setup.try_forward(&setup.batch, &setup.z);
            let tiny = T::from_f64(if T::NAME == "f32" { 1e-42 } else { 1e-310 });
            let extremes = [T::from_f64(1e6), T::from_f64(-1e6), tiny, -tiny, T::from_f64(1e30)];
            let mut z = setup.z.clone();
            for (index, z) in z.iter_mut().take(30 * d).enumerate() {
                *z = extremes[index % extremes.len()];
            }
            let mut work = setup.workspace(&setup.batch, Passes::Evaluation);
            let (mut theta, mut log_det) = (vec![T::ZERO; z.len()], vec![T::ZERO; ROWS]);
            // The density direction takes the same extremes as parameters.
            work.write_theta(&setup.engine, &z).unwrap();
            setup.flow.inverse(&setup.engine, &setup.device_parameters(), &mut work).unwrap();
            let result = work.read_z(&setup.engine, &mut theta, &mut log_det);
            reported(case, result, &theta, &log_det, d);
            work.write_saturated_z(&setup.engine, &z).unwrap();
            setup.flow.forward(&setup.engine, &setup.device_parameters(), &mut work).unwrap();
            theta.fill(T::ZERO);
            let result = work.read_theta(&setup.engine, &mut theta, &mut log_det);
            let finite = reported(case, result, &theta, &log_det, d);
            // With ordinary parameters, double precision takes anything.
            assert!(scale > 1.0 || T::NAME == "f32" || finite, "{}", case.name);
            // Rows that were not extreme are what they were.
            let aligned = setup.left_align(&plain);
            for row in 30..ROWS {
                let dim = setup.batch.active(row).len();
                let bits = |x: &[T]| x.iter().map(|x| x.to_f64().to_bits()).collect::<Vec<_>>();
                assert_eq!(
                    bits(&theta[row * d..][..dim]),
                    bits(&aligned[row * d..][..dim]),
                    "{}, row {row}",
                    case.name
                );
                assert_eq!(log_det[row].to_f64().to_bits(), plain_log_det[row].to_f64().to_bits(), "{}", case.name);
            }
        }
    }
    for_all(|case, seed| {
        law::<f32>(case, seed);
        law::<f64>(case, seed);
    });
}

/// Forward, backward and update give the same bits on one thread and on two.
#[test]
fn threads_do_not_change_a_bit() {
    fn train<T: Real>(case: &Case, rows: usize, threads: usize) -> Vec<u64> {
        let mut setup = Setup::<T>::new(case, rows, 3);
        setup.engine = CpuEngine::new(threads).unwrap();
        let engine = &setup.engine;
        let z = setup.left_align(&setup.z);
        let mut parameters = setup.device_parameters();
        let mut gradient = engine.buffer(setup.parameters.len());
        let mut optimiser = vti::train::AdamW::new(engine, setup.parameters.len(), Default::default()).unwrap();
        let mut work = setup.workspace(&setup.batch, Passes::Training);
        let (mut theta, mut log_det) = (vec![T::ZERO; z.len()], vec![T::ZERO; rows]);
        let pull = vec![-T::ONE; rows];
        for _ in 0..3 {
            work.write_z(engine, &z).unwrap();
            setup.flow.forward(engine, &parameters, &mut work).unwrap();
            work.read_theta(engine, &mut theta, &mut log_det).unwrap();
            work.write_gradients(engine, &theta, &pull).unwrap();
            setup.flow.backward(engine, &parameters, &mut work, &mut gradient).unwrap();
            optimiser.update(engine, 1e-3, &gradient, &mut parameters);
        }
        let mut found = vec![T::ZERO; setup.parameters.len()];
        engine.read(&parameters, &mut found);
        found.into_iter().chain(theta).chain(log_det).map(|x| x.to_f64().to_bits()).collect()
    }
    for case in table().iter().filter(|case| case.shape.max_dim == 19) {
        // Two lanes.
        assert_eq!(train::<f32>(case, 700, 1), train::<f32>(case, 700, 2), "{}", case.name);
    }
    // Large enough that single operations are spread over threads.
    let wide = Case {
        name: "wide".into(),
        settings: vti::flow::FlowSettings::affine(2, 2, 300),
        shape: vti::flow::FlowShape { max_dim: 40, context: ContextShape::Features(9) },
    };
    assert_eq!(train::<f32>(&wide, 700, 1), train::<f32>(&wide, 700, 2));
    assert_eq!(train::<f32>(&wide, 700, 2), train::<f32>(&wide, 700, 3));
}
