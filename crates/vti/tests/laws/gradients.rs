//! Gradients, of small batches and large ones, in new workspaces and used ones.

use vti::device::{Cpu, Device};
use vti::flow::{Batch, ContextShape, Passes, Workspace};
use vti::random::{Purpose, Stream};

use crate::cases::{Case, Setup, table};
use crate::{for_all, max_error, slow};

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
        let device = &setup.device;
        let mut work = setup.workspace(batch, Passes::Evaluation);
        work.write_z(device, z).unwrap();
        let mut buffer = device.buffer(parameters.len()).unwrap();
        device.write(parameters, &mut buffer).unwrap();
        setup.flow.forward(device, &buffer, &mut work).unwrap();
        let (mut theta, mut log_det) = (vec![0.0; z.len()], vec![0.0; batch.rows()]);
        work.read_theta(device, &mut theta, &mut log_det).unwrap();
        let sum: f64 = theta.iter().zip(&self.theta).zip(&self.square).map(|((t, a), b)| a * t + 0.5 * b * t * t).sum();
        sum + log_det.iter().zip(&self.log_det).map(|(l, c)| c * l).sum::<f64>()
    }
}

/// Gradients with respect to parameters, inputs and features agree with central differences.
#[test]
fn gradients_agree_with_central_differences() {
    for_all(|case, seed| check_gradients(case, seed, 1.0));
}

/// The same far out, where splines follow their asymptotes.
#[test]
fn gradients_agree_in_the_tails() {
    table().iter().filter(|case| case.has_spline()).for_each(|case| check_gradients(case, 3, 60.0));
}

/// The score s = ∂ log q/∂θ satisfies `s ∇T = −z − ∂ log |det ∇T|/∂z`: carried back through the flow it becomes −z.
#[test]
fn scores_carried_back_are_those_of_the_reference() {
    for scale in [1.0, 20.0] {
        for_all(|case, seed| {
            let rows = 70;
            let mut setup = Setup::<f64>::new(case, rows, seed);
            setup.z.iter_mut().for_each(|z| *z *= scale);
            let device = &setup.device;
            let z = setup.left_align(&setup.z);
            let mut work = setup.workspace(&setup.batch, Passes::TrainingWithScores);
            work.write_z(device, &z).unwrap();
            let parameters = setup.device_parameters();
            setup.flow.forward(device, &parameters, &mut work).unwrap();
            let (mut score, mut back) = (vec![0.0; z.len()], vec![0.0; z.len()]);
            setup.flow.score(device, &parameters, &mut work, &mut score).unwrap();
            work.write_gradients(device, &score, &vec![1.0; rows]).unwrap();
            let mut gradient = device.buffer(setup.parameters.len()).unwrap();
            setup.flow.backward(device, &parameters, &mut work, &mut gradient).unwrap();
            work.read_z_gradient(device, &mut back).unwrap();
            for row in 0..rows {
                let place = row * setup.max_dim()..row * setup.max_dim() + setup.batch.active(row).len();
                let size = score[place.clone()].iter().fold(scale, |size, s| size.max(s.abs()));
                for i in place {
                    assert!((back[i] + z[i]).abs() < 1e-9 * size, "{}: row {row}: {} ≠ −{}", case.name, back[i], z[i]);
                }
            }
        });
    }
}

/// Compares all gradients of a flow with central differences at z `scale` times as large as usual.
fn check_gradients(case: &Case, seed: u64, scale: f64) {
    let rows = 9;
    let mut setup = Setup::<f64>::new(case, rows, seed);
    setup.z.iter_mut().for_each(|z| *z *= scale);
    let (device, d) = (&setup.device, setup.max_dim());
    let probe = Probe::new(rows, d, seed);
    let z = setup.left_align(&setup.z);
    let mut work = setup.workspace(&setup.batch, Passes::Training);
    work.write_z(device, &z).unwrap();
    let parameters = setup.device_parameters();
    setup.flow.forward(device, &parameters, &mut work).unwrap();
    let (mut theta, mut log_det) = (vec![0.0; z.len()], vec![0.0; rows]);
    work.read_theta(device, &mut theta, &mut log_det).unwrap();
    let d_theta: Vec<f64> = (0..z.len()).map(|i| probe.theta[i] + probe.square[i] * theta[i]).collect();
    work.write_gradients(device, &d_theta, &probe.log_det).unwrap();
    let mut gradient = device.buffer(setup.parameters.len()).unwrap();
    setup.flow.backward(device, &parameters, &mut work, &mut gradient).unwrap();
    let mut found = vec![0.0; setup.parameters.len()];
    device.read(&gradient, &mut found).unwrap();
    let mut found_z = vec![0.0; z.len()];
    work.read_z_gradient(device, &mut found_z).unwrap();

    let step = 1e-5;
    let check = |what: &str, index: usize, found: f64, value: &dyn Fn(f64) -> f64| {
        // Whether a difference over `step` agrees, up to its own rounding error.
        let agrees = |step: f64| {
            let numeric = (value(step) - value(-step)) / (2.0 * step);
            let rounding = 8.0 * f64::EPSILON * value(0.0).abs() / step;
            let tolerance = 2e-5 * (1.0 + numeric.abs().max(found.abs())) + rounding;
            ((numeric - found).abs() < tolerance, numeric)
        };
        // A rectifier's corner inside the step spoils a difference; a shorter step then tells.
        let (agreed, numeric) = agrees(step);
        assert!(agreed || agrees(step / 30.0).0, "{}: {what} {index}: {found} ≠ {numeric}", case.name);
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
}

/// All a training pass finds: θ, log-determinants and gradients with respect to parameters and z.
struct Found {
    theta: Vec<f64>,
    log_det: Vec<f64>,
    parameters: Vec<f64>,
    z: Vec<f64>,
}

/// A pass over rows `rows` of the setup, with the probe's derivatives, in a given workspace.
fn training_pass(
    setup: &Setup<f64>,
    probe: &Probe,
    rows: std::ops::Range<usize>,
    work: &mut Workspace<Cpu<f64>>,
) -> Found {
    let (device, d) = (&setup.device, setup.max_dim());
    let z = &setup.left_align(&setup.z)[rows.start * d..rows.end * d];
    work.set_batch(device, &setup.select(rows.clone())).unwrap();
    work.write_z(device, z).unwrap();
    let parameters = setup.device_parameters();
    setup.flow.forward(device, &parameters, work).unwrap();
    let mut found = Found {
        theta: vec![0.0; z.len()],
        log_det: vec![0.0; rows.len()],
        parameters: vec![0.0; setup.parameters.len()],
        z: vec![0.0; z.len()],
    };
    work.read_theta(device, &mut found.theta, &mut found.log_det).unwrap();
    let places = rows.start * d..rows.end * d;
    let weights = probe.theta[places.clone()].iter().zip(&probe.square[places]);
    let d_theta: Vec<f64> = weights.zip(&found.theta).map(|((a, b), theta)| a + b * theta).collect();
    work.write_gradients(device, &d_theta, &probe.log_det[rows]).unwrap();
    // What was in the buffer before must not matter.
    let mut gradient = device.buffer(setup.parameters.len()).unwrap();
    device.write(&vec![f64::NAN; setup.parameters.len()], &mut gradient).unwrap();
    setup.flow.backward(device, &parameters, work, &mut gradient).unwrap();
    device.read(&gradient, &mut found.parameters).unwrap();
    work.read_z_gradient(device, &mut found.z).unwrap();
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
            let mut work = setup.flow.workspace(&setup.device, rows, Passes::Training).unwrap();
            let whole = training_pass(&setup, &probe, 0..rows, &mut work);
            let mut sum =
                Found { theta: vec![], log_det: vec![], z: vec![], ..training_pass(&setup, &probe, 0..0, &mut work) };
            let mut small = setup.flow.workspace(&setup.device, 50, Passes::Training).unwrap();
            for start in (0..rows).step_by(50) {
                let part = training_pass(&setup, &probe, start..start + 50, &mut small);
                sum.theta.extend(part.theta);
                sum.log_det.extend(part.log_det);
                sum.z.extend(part.z);
                sum.parameters.iter_mut().zip(part.parameters).for_each(|(sum, part)| *sum += part);
            }
            let name = &case.name;
            close(&whole.theta, &sum.theta, &format!("{name}: θ"));
            close(&whole.log_det, &sum.log_det, &format!("{name}: log-det"));
            close(&whole.z, &sum.z, &format!("{name}: dz"));
            close(&whole.parameters, &sum.parameters, &format!("{name}: dφ"));
            let moved = whole.parameters.iter().filter(|&&value| value != 0.0).count();
            assert!(moved > whole.parameters.len() / 4, "{name}");
        }
    }
}

/// A workspace forgets the batch before: results are those of a fresh one, bit for bit.
#[test]
fn workspaces_can_be_used_again() {
    for case in table().iter().filter(|case| case.shape.max_dim == 5) {
        let setup = Setup::<f64>::new(case, 700, 31);
        let probe = Probe::new(700, 5, 8);
        let mut used = setup.flow.workspace(&setup.device, 700, Passes::Training).unwrap();
        for rows in [0..700, 3..10, 100..250, 0..1, 0..0, 40..700] {
            let mut fresh = setup.flow.workspace(&setup.device, 700, Passes::Training).unwrap();
            let again = training_pass(&setup, &probe, rows.clone(), &mut used);
            let first = training_pass(&setup, &probe, rows.clone(), &mut fresh);
            let all = |found: Found| [found.theta, found.log_det, found.parameters, found.z].concat();
            assert_eq!(all(again), all(first), "{}, rows {rows:?}", case.name);
        }
    }
}
