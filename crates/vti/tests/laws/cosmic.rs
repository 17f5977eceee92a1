//! The paper's Lemma 2.1, Proposition 2.2 and Corollary 2.3.

use vti::device::{Cpu, Device};
use vti::flow::Passes;
use vti::random::{Purpose, Stream};
use vti::simd::Real;
use vti::workers::Workers;

use crate::bijection::saturated_jacobian;
use crate::cases::{Case, Setup, table};
use crate::plain::{Fault, Plain};
use crate::{ROWS, for_all, slow};

/// A number of its own for each place, which no flow would write there by chance; exact in either precision.
fn mark<T: Real>(kind: f64, place: usize) -> T {
    T::from_f64(kind * (1e6 + place as f64))
}

/// Saturated z whose auxiliary coordinates are marked goes through the flow into memory whose auxiliary coordinates are marked
/// in another way. The places of auxiliary coordinates at which something else stands afterwards: whatever was written there,
/// be it what went in.
fn written_auxiliary<D: Device>(device: &D, setup: &Setup<D::Real>) -> Vec<usize>
where
    Cpu<D::Real>: Device<Real = D::Real>,
{
    let (rows, d) = (setup.batch.rows(), setup.max_dim());
    let is_auxiliary = |place: &usize| !setup.batch.active(place / d).contains(&((place % d) as u32));
    let auxiliary: Vec<usize> = (0..rows * d).filter(is_auxiliary).collect();
    let (mut z, mut theta) = (setup.z.clone(), setup.z.clone());
    for &place in &auxiliary {
        (z[place], theta[place]) = (mark(1.0, place), mark(-1.0, place));
    }
    let mut parameters = device.buffer(setup.parameters.len()).unwrap();
    device.write(&setup.parameters, &mut parameters).unwrap();
    let mut work = setup.flow.workspace(device, rows, Passes::Evaluation).unwrap();
    work.set_batch(device, &setup.batch).unwrap();
    work.write_saturated_z(device, &z).unwrap();
    setup.flow.forward(device, &parameters, &mut work).unwrap();
    work.read_saturated_theta(device, &mut theta, &mut vec![D::Real::ZERO; rows]).unwrap();
    let bits = |x: D::Real| x.to_f64().to_bits();
    let is_written = |place: &usize| bits(theta[*place]) != bits(mark(-1.0, *place));
    auxiliary.into_iter().filter(is_written).collect()
}

/// Lemma 2.1: auxiliary coordinates come out as they went in, bit for bit, because nothing is ever written to them.
#[test]
fn lemma_1_auxiliary_coordinates_are_untouched() {
    fn law<T: Real>(case: &Case, seed: u64)
    where
        Cpu<T>: Device<Real = T>,
    {
        let setup = Setup::<T>::new(case, ROWS, seed);
        assert_eq!(written_auxiliary(&setup.device, &setup), [0; 0], "{}, {}", case.name, T::NAME);
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

/// The law above notices a device that writes a single auxiliary coordinate of a row, and says which.
#[test]
fn lemma_1_fails_where_an_auxiliary_coordinate_is_written() {
    for case in table().iter().filter(|case| case.shape.max_dim == 5) {
        let setup = Setup::<f64>::new(case, 20, 7);
        let written = |fault| written_auxiliary(&Plain::new(Workers::SINGLE, fault), &setup);
        assert_eq!(written(Fault::Nothing), [0; 0], "{}", case.name);
        let first = |row: usize| (0..5).find(|c| !setup.batch.active(row).contains(c)).map(|c| row * 5 + c as usize);
        let expected: Vec<usize> = (0..20).filter_map(first).collect();
        assert!(expected.len() > 10);
        assert_eq!(written(Fault::Inactive), expected, "{}", case.name);
    }
}

/// Proposition 2.2: `q̃(θ, u) = q(θ) ν(u)`, and nothing about the active block changes when inactive values do.
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

        // The saturated density by its definition (eq. 4 (cosmiciaf)), with a numeric Jacobian of the saturated map …
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

/// Corollary 2.3: `ν(z) |det|⁻¹ / (η(θ) ν(u))`, from the obvious saturated flow over all coordinates, equals
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
        work.write_z(&setup.device, &z).unwrap();
        setup.flow.forward(&setup.device, &setup.device_parameters(), &mut work).unwrap();
        let (mut theta, mut log_det) = (vec![f64::NAN; z.len()], vec![0.0; 12]);
        work.read_theta(&setup.device, &mut theta, &mut log_det).unwrap();
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
