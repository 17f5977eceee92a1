//! Extreme numbers, and any number of threads.

use vti::device::{Cpu, Device};
use vti::flow::{ContextShape, FlowError, Passes};
use vti::optimise::{Optimiser, OptimiserSettings};
use vti::simd::Real;

use crate::cases::{Case, Setup, table};
use crate::{ROWS, for_all};

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
    fn law<T: Real>(case: &Case, seed: u64)
    where
        Cpu<T>: Device<Real = T>,
    {
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
            work.write_theta(&setup.device, &z).unwrap();
            setup.flow.inverse(&setup.device, &setup.device_parameters(), &mut work).unwrap();
            let result = work.read_z(&setup.device, &mut theta, &mut log_det);
            reported(case, result, &theta, &log_det, d);
            work.write_saturated_z(&setup.device, &z).unwrap();
            setup.flow.forward(&setup.device, &setup.device_parameters(), &mut work).unwrap();
            theta.fill(T::ZERO);
            let result = work.read_theta(&setup.device, &mut theta, &mut log_det);
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
    fn train<T: Real>(case: &Case, rows: usize, threads: usize) -> Vec<u64>
    where
        Cpu<T>: Device<Real = T>,
    {
        let mut setup = Setup::<T>::new(case, rows, 3);
        setup.device = Cpu::new(threads).unwrap();
        let device = &setup.device;
        let z = setup.left_align(&setup.z);
        let mut parameters = setup.device_parameters();
        let mut gradient = device.buffer(setup.parameters.len()).unwrap();
        let mut optimiser = Optimiser::new(device, setup.parameters.len(), &OptimiserSettings::default()).unwrap();
        let mut work = setup.workspace(&setup.batch, Passes::Training);
        let (mut theta, mut log_det) = (vec![T::ZERO; z.len()], vec![T::ZERO; rows]);
        let pull = vec![-T::ONE; rows];
        for _ in 0..3 {
            work.write_z(device, &z).unwrap();
            setup.flow.forward(device, &parameters, &mut work).unwrap();
            work.read_theta(device, &mut theta, &mut log_det).unwrap();
            work.write_gradients(device, &theta, &pull).unwrap();
            setup.flow.backward(device, &parameters, &mut work, &mut gradient).unwrap();
            optimiser.update(device, 1e-3, &gradient, &mut parameters).unwrap();
        }
        let mut found = vec![T::ZERO; setup.parameters.len()];
        device.read(&parameters, &mut found).unwrap();
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
