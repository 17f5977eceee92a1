//! Draws that are not finite: dropped, counted, located, and fatal when there are too many.

use std::ops::ControlFlow;
use std::sync::Arc;

use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::problem::{self, BatchError, DensityBatch, DensityError, Problem};
use vti::space::{Model, ModelSpace, OneOf, Subsets};
use vti::train::{NotFinite, Silent, StepReport, TrainError, TrainSettings, Trainer};
use vti::workers::Workers;

use crate::{WithNorms, bits, families, settings};

/// A standard normal in each coordinate, with something wrong where `wrong` says so.
fn faulty(wrong: impl Fn(&[u16], &[f64], &mut [f64]) -> Option<f64> + Send + Sync + 'static) -> Arc<dyn Problem> {
    Arc::new(problem::from_fn(OneOf::with_dims(&[1, 2]).unwrap(), move |model, theta, gradient| {
        let mut log_density = 0.0;
        for (t, g) in theta.iter().zip(&mut *gradient) {
            *g = -t;
            log_density += -0.5 * t * t - 0.5 * std::f64::consts::TAU.ln();
        }
        wrong(model, theta, gradient).unwrap_or(log_density)
    }))
}

#[test]
fn a_few_bad_draws_are_dropped_counted_and_located_and_training_goes_on() {
    // Beyond 2.5 in the second coordinate of the second model the density is not a number: 0.6 % of its draws.
    let problem = faulty(|_, theta, _| theta.get(1).filter(|&&t| t > 2.5).map(|_| f64::NAN));
    let device = Cpu::<f32>::new(2).unwrap();
    for family in families() {
        let mut dropped = Vec::new();
        let mut last = f64::NAN;
        let mut observer = WithNorms(|report: &StepReport| {
            dropped.extend(report.dropped.iter().cloned());
            last = report.elbo;
            assert!(report.gradient_norm.is_some_and(f64::is_finite));
            ControlFlow::Continue(())
        });
        let settings = TrainSettings { steps: 200, ..settings() };
        let fit =
            Trainer::new(problem.clone(), device.clone(), &family, &settings).unwrap().run(&mut observer).unwrap();
        assert!(fit.dropped as usize == dropped.len() && !dropped.is_empty());
        assert_eq!(fit.first_dropped.as_ref(), dropped.first());
        assert!(dropped.iter().all(|d| d.model == Model::from(vec![1]) && d.what == NotFinite::LogDensity));
        assert!(last.abs() < 0.1, "{last}");
    }
}

#[test]
fn too_many_bad_draws_end_training_with_step_model_and_coordinate() {
    let problem = faulty(|model, theta, gradient| {
        if model[0] == 1 && theta[1] > 0.0 {
            gradient[1] = f64::INFINITY;
        }
        None
    });
    let device = Cpu::<f32>::new(2).unwrap();
    let trainer = Trainer::new(problem.clone(), device.clone(), &FamilySettings::default(), &settings()).unwrap();
    let error = trainer.run(&mut Silent).unwrap_err();
    let TrainError::TooManyDropped { step, dropped, batch, limit, first } = &error else { panic!("{error}") };
    assert!(*step == 0 && *batch == 130 && *limit == 0.1 && (20..50).contains(dropped));
    assert_eq!((&*first.model, first.what), (&[1][..], NotFinite::Gradient { coordinate: 1 }));
    let text = error.to_string();
    assert!(text.contains("step 0") && text.contains("model 1") && text.contains("coordinate 1"), "{text}");
    // All may be dropped where that is allowed.
    let lenient = TrainSettings { max_dropped: 1.0, steps: 3, ..settings() };
    let all_bad = faulty(|_, _, _| Some(f64::INFINITY));
    let fit = Trainer::new(all_bad.clone(), device.clone(), &FamilySettings::default(), &lenient)
        .unwrap()
        .run(&mut Silent)
        .unwrap();
    assert_eq!(fit.dropped, 3 * 130);
}

/// A density that fails.
struct Failing(bool);

impl Problem for Failing {
    fn space(&self) -> &dyn ModelSpace {
        static SPACE: std::sync::OnceLock<Subsets> = std::sync::OnceLock::new();
        SPACE.get_or_init(|| Subsets::new(2).unwrap())
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
        let log_density = -0.5 * theta.iter().map(|t| t * t).sum::<f64>();
        let reason = "no licence".to_string();
        match (model, self.0) {
            ([1, 1], true) => Err(DensityError::Fatal { reason }),
            ([1, 1], false) if theta[0] > 1.5 => Err(DensityError::Undefined { reason }),
            _ => Ok(log_density),
        }
    }
}

#[test]
fn fatal_errors_end_training_and_undefined_densities_do_not() {
    let device = Cpu::<f32>::new(2).unwrap();
    let run = |problem: Failing| {
        let fit = Trainer::new(Arc::new(problem), device.clone(), &FamilySettings::default(), &settings())
            .unwrap()
            .run(&mut Silent);
        fit.map(|fit| fit.dropped)
    };
    let error = run(Failing(true)).unwrap_err().to_string();
    assert!(error.contains("no licence") && error.contains("{x1, x2}"), "{error}");
    assert!(run(Failing(false)).unwrap() > 0);
}

/// The same density row by row and all at once.
struct Batched {
    space: Subsets,
    all_at_once: bool,
    calls: std::sync::atomic::AtomicUsize,
}

impl Problem for Batched {
    fn space(&self) -> &dyn ModelSpace {
        &self.space
    }

    fn log_density(&self, _: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
        Ok(-0.5 * theta.iter().map(|t| t * t).sum::<f64>())
    }

    fn log_density_batch(&self, mut batch: DensityBatch<'_>, _: &Workers) -> Result<(), BatchError> {
        for row in 0..batch.rows() {
            let (model, theta, gradient) = batch.row(row);
            assert_eq!(model.iter().map(|&bit| usize::from(bit)).sum::<usize>(), theta.len());
            let value = if self.all_at_once {
                self.calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
                -0.5 * theta.iter().map(|t| t * t).sum::<f64>()
            } else {
                self.log_density(model, theta, gradient).unwrap()
            };
            batch.log_density[row] = value;
        }
        Ok(())
    }
}

#[test]
fn a_problem_may_evaluate_whole_batches() {
    let device = Cpu::<f32>::new(2).unwrap();
    let run = |all_at_once: bool| {
        let problem = Arc::new(Batched { space: Subsets::new(3).unwrap(), all_at_once, calls: Default::default() });
        let trainer = Trainer::new(problem.clone(), device.clone(), &families()[0], &settings()).unwrap();
        let fit = trainer.run(&mut Silent).unwrap();
        let found = bits(&fit.posterior);
        (found, problem.calls.load(std::sync::atomic::Ordering::Relaxed))
    };
    let ((one, none), (other, calls)) = (run(false), run(true));
    assert_eq!((one, none), (other, 0));
    assert_eq!(calls, 60 * 130, "every draw of every step");
}
