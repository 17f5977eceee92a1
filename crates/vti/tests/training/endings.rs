//! Why runs end.

use std::ops::ControlFlow;
use std::sync::Arc;

use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::optimise::Schedule;
use vti::problem;
use vti::space::Subsets;
use vti::train::{CheckpointSettings, PlateauSettings, Silent, StepReport, Stop, TrainError, TrainSettings, Trainer};

use crate::{families, normal, settings};

fn stop(settings: &TrainSettings) -> (Stop, u64) {
    let (problem, device) = (normal(0.0), Cpu::<f32>::new(2).unwrap());
    let fit =
        Trainer::new(problem.clone(), device.clone(), &families()[3], settings).unwrap().run(&mut Silent).unwrap();
    (fit.stop, fit.steps)
}

#[test]
fn runs_end_by_steps_by_time_and_on_a_plateau() {
    assert_eq!(stop(&settings()), (Stop::Steps { steps: 60 }, 60));
    // As many steps as fit are planned; on a busy machine the limit may still come first.
    let (found, steps) = stop(&TrainSettings { steps: 1_000_000, time_limit: Some(0.5), ..settings() });
    assert!(found == Stop::TimeLimit { seconds: 0.5 } || found == Stop::Steps { steps }, "{found}");
    assert!(steps < 100_000, "{steps}");
    let plateau = Some(PlateauSettings { window: 100, tolerance: 0.01 });
    let schedule = Schedule::Constant { rate: 5e-3 };
    let (found, steps) = stop(&TrainSettings { steps: 4_000, plateau, schedule, ..settings() });
    assert!(matches!(found, Stop::Plateau { window: 100, .. }), "{found}");
    assert!((1_600..4_000).contains(&steps), "after hold and fall, not before the end: {steps}");
    assert!(found.to_string().contains("over the last 100 steps"), "{found}");
}

#[test]
fn a_run_that_ends_early_has_learned_its_models() {
    // One of eight models is e³ times as probable as each of the others.
    let problem = Arc::new(problem::from_fn(Subsets::new(3).unwrap(), |model, theta, gradient| {
        gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
        let log_tau = std::f64::consts::TAU.ln();
        let level = if model == [1, 0, 1] { 3.0 } else { 0.0 };
        level - theta.iter().map(|t| 0.5 * t * t + 0.5 * log_tau).sum::<f64>()
    }));
    let device = Cpu::<f32>::new(2).unwrap();
    for family in families() {
        for limits in [
            TrainSettings { steps: 1_000_000, time_limit: Some(1.5), ..settings() },
            TrainSettings { steps: 1000, plateau: Some(PlateauSettings { window: 50, tolerance: 1.0 }), ..settings() },
        ] {
            let trainer = Trainer::new(problem.clone(), device.clone(), &family, &limits).unwrap();
            let posterior = trainer.run(&mut Silent).unwrap().posterior;
            let best = posterior.model_probabilities(1).unwrap().swap_remove(0);
            assert!(*best.model == [1, 0, 1] && best.probability.value > 0.5, "{:?}: {best:?}", family.models);
        }
    }
}

#[test]
fn observers_see_every_step_and_the_bound_rises() {
    let (problem, device) = (normal(1.0), Cpu::<f32>::new(2).unwrap());
    let mut reports: Vec<StepReport> = Vec::new();
    let mut observer = |report: &StepReport| {
        reports.push(report.clone());
        ControlFlow::Continue(())
    };
    let settings = TrainSettings { steps: 300, ..settings() };
    Trainer::new(problem.clone(), device.clone(), &families()[0], &settings).unwrap().run(&mut observer).unwrap();
    assert!(reports.iter().map(|report| report.step).eq(1..=300));
    assert!(reports.windows(2).all(|pair| pair[0].seconds <= pair[1].seconds));
    // log p(y) = log of the mean of e^(1 + size) over subsets of three.
    let truth = 1.0 + 3.0 * (0.5 * (1.0 + 1f64.exp())).ln();
    let gap = |part: &[StepReport]| truth - part.iter().map(|r| r.elbo).sum::<f64>() / part.len() as f64;
    assert!(gap(&reports[..10]) > 1.0 && gap(&reports[280..]).abs() < 0.05, "{}", gap(&reports[280..]));
    // The first batch is drawn from the uniform distribution: its entropy is known without error.
    assert!((reports[0].entropy - 8f64.ln()).abs() < 1e-6);
    assert!(reports.iter().all(|report| report.dropped.is_empty()));
}

#[test]
fn impossible_settings_are_refused_by_name() {
    let (problem, device) = (normal(0.0), Cpu::<f32>::single());
    let refused = |change: &dyn Fn(&mut TrainSettings)| {
        let mut settings = settings();
        change(&mut settings);
        match Trainer::new(problem.clone(), device.clone(), &FamilySettings::default(), &settings) {
            Err(TrainError::Setting(error)) => error.what,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|s| s.batch = 1), "batch");
    assert_eq!(refused(&|s| s.steps = 0), "steps");
    assert_eq!(refused(&|s| s.time_limit = Some(0.0)), "time_limit");
    assert_eq!(
        refused(&|s| s.checkpoint = Some(CheckpointSettings { path: "x".into(), every: f64::INFINITY })),
        "every"
    );
    assert_eq!(refused(&|s| s.max_dropped = 1.5), "max_dropped");
    assert_eq!(refused(&|s| s.schedule = Schedule::Constant { rate: -1.0 }), "rate");
    assert_eq!(refused(&|s| s.plateau = Some(PlateauSettings { window: 1, tolerance: 0.0 })), "window");
}

#[test]
fn settings_are_the_same_in_toml_like_form_and_unknown_keys_are_errors() {
    let text = r#"{"steps": 10, "schedule": {"kind": "cosine", "rate": 0.001, "period": 5, "decay": 0.9},
        "information": {"kind": "nats", "limit": 0.005, "decay": 0.00005}, "flow_gradient": "path-derivative"}"#;
    let settings: TrainSettings = serde_json::from_str(text).unwrap();
    assert_eq!((settings.steps, settings.batch), (10, TrainSettings::default().batch));
    assert!(serde_json::from_str::<TrainSettings>(r#"{"step": 10}"#).is_err());
    let family: FamilySettings = serde_json::from_str(r#"{"models": {"kind": "surrogate", "beta": 2.0}}"#).unwrap();
    let back: FamilySettings = serde_json::from_str(&serde_json::to_string(&family).unwrap()).unwrap();
    assert_eq!(family, back);
    assert!(serde_json::from_str::<FamilySettings>(r#"{"models": {"kind": "auto", "beta": 2.0}}"#).is_err());
}
