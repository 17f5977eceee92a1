//! q learns what was found without it.

use std::sync::Arc;

use vti::check::{CheckSettings, Stage, VerdictKind, check_and_learn};
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::models::KEPT_SHARE;
use vti::posterior::{Draws, Posterior};
use vti::problem;
use vti::random::{Purpose, Stream};
use vti::space::{Model, OneOf, Subsets};
use vti::train::{Lesson, LessonSettings, Silent, TemperSettings, TrainSettings, Trainer, learn};

use crate::problems::{Gaussians, Known};
use crate::{affine, distributions, train};

#[test]
fn every_distribution_over_models_is_fitted_to_words() {
    let problem = Arc::new(Gaussians::new(Subsets::new(5).unwrap(), 0.3, 1.0, 1));
    let device = Cpu::<f32>::new(2).unwrap();
    // Any distribution will do: that of another problem.
    let goal = Gaussians::new(Subsets::new(5).unwrap(), 0.3, 1.5, 2).probabilities();
    let words: Vec<(Model, f64)> =
        goal.iter().enumerate().map(|(number, &p)| (problem.catalogue().model(number).unwrap(), p)).collect();
    for (name, models) in distributions(&*problem) {
        let family = FamilySettings { models, flow: affine(), ..FamilySettings::default() };
        let posterior = train(&problem, &device, &family, 30, 512);
        let before = by_number(&posterior, &*problem);
        let draws = posterior.draw(50, 0).unwrap();
        let lesson = Lesson::Draws { words: words.clone(), draws: &draws, log_weights: &[0.0; 50] };
        let settings = LessonSettings { steps: 1, ..LessonSettings::default() };
        let after = by_number(&learn(posterior, &lesson, &settings, &mut Silent).unwrap(), &*problem);
        let mixture = |number: usize| (1.0 - KEPT_SHARE) * goal[number] + KEPT_SHARE * before[number];
        let distance = 0.5 * (0..goal.len()).map(|number| (after[number] - mixture(number)).abs()).sum::<f64>();
        // A network is as good as its last steps on batches of 512 words are, others are exact.
        let most = if name == "autoregressive" { 0.06 } else { 1e-5 };
        assert!(distance < most, "{name}: {distance}");
    }
}

/// Probabilities of all words under q.
fn by_number(posterior: &Posterior<Cpu<f32>>, problem: &impl Known) -> Vec<f64> {
    let mut probabilities = vec![0.0; problem.catalogue().len()];
    for found in posterior.model_probabilities(1).unwrap() {
        probabilities[problem.catalogue().index(&found.model).unwrap()] = found.probability.value;
    }
    probabilities
}

/// The log density of a quarter of a normal at −6 and three quarters of one at 4, and its derivative.
fn two_modes(x: f64) -> (f64, f64) {
    let log_half = |share: f64, mean: f64| f64::ln(share) - 0.5 * (x - mean).powi(2) - 0.5 * std::f64::consts::TAU.ln();
    let (left, right) = (log_half(0.25, -6.0), log_half(0.75, 4.0));
    let most = left.max(right);
    let total = most + ((left - most).exp() + (right - most).exp()).ln();
    let share = (left - total).exp();
    (total, share * (-6.0 - x) + (1.0 - share) * (4.0 - x))
}

#[test]
fn a_flow_learns_a_mode_that_it_has_lost() {
    let density = |_: &[u16], theta: &[f64], gradient: &mut [f64]| {
        let (log_density, slope) = two_modes(theta[0]);
        gradient[0] = slope;
        log_density
    };
    let problem = Arc::new(problem::from_fn(OneOf::with_dims(&[1]).unwrap(), density));
    let temper = TemperSettings::NONE;
    let settings = TrainSettings { steps: 400, batch: 256, seed: 2, temper, ..TrainSettings::default() };
    let device = Cpu::<f32>::new(2).unwrap();
    let trainer = Trainer::new(problem, device, &FamilySettings::default(), &settings).unwrap();
    let posterior = trainer.run(&mut Silent).unwrap().posterior;
    let share = |posterior: &Posterior<Cpu<f32>>| {
        let draws = posterior.draw(4000, 0).unwrap();
        (0..4000).filter(|&row| draws.theta(row)[0] < 0.0).count() as f64 / 4000.0
    };
    let lost = share(&posterior);
    assert!(lost < 0.05, "both modes were found: {lost}");
    let mut stream = Stream::new(3, Purpose::Other(5), 0, 0);
    let draw = |_| if stream.uniform() < 0.25 { stream.normal() - 6.0 } else { stream.normal() + 4.0 };
    let theta: Vec<f64> = (0..2000).map(draw).collect();
    let draws = Draws { width: 1, words: vec![0; 2000], stride: 1, dims: vec![1; 2000], theta, ..Draws::default() };
    let word: Vec<(Model, f64)> = vec![([0u16].as_slice().into(), 1.0)];
    let lesson = Lesson::Draws { words: word, draws: &draws, log_weights: &[0.0; 2000] };
    let settings = LessonSettings { share: 0.5, ..LessonSettings::default() };
    let after = learn(posterior, &lesson, &settings, &mut Silent).unwrap();
    let found = share(&after);
    // Both are there, whatever q, which fits neither perfectly, makes of their shares.
    assert!((0.1..0.5).contains(&found), "{found} instead of 0.25");
}

#[test]
fn what_particles_find_is_learned_and_trusted_and_a_second_thread_changes_nothing() {
    let problem = Arc::new(Gaussians::new(Subsets::new(4).unwrap(), 0.3, 2.0, 3));
    let truth = problem.probabilities();
    let answer = |threads: usize| {
        let device = Cpu::<f32>::new(threads).unwrap();
        let family = FamilySettings { flow: affine(), ..FamilySettings::default() };
        // Next to nothing was learned.
        let posterior = train(&problem, &device, &family, 2, 256);
        let settings = CheckSettings {
            draws: 2000,
            lesson: LessonSettings { steps: 200, ..LessonSettings::default() },
            ..CheckSettings::default()
        };
        let mut steps = 0;
        let watch = &mut |stage| {
            if let Stage::Learning { done, .. } = stage {
                steps = done;
            }
            true
        };
        let (posterior, check, lessons) = check_and_learn(posterior, &settings, None, watch).unwrap();
        assert!((1..=3).contains(&lessons) && steps == 200, "{lessons} {steps}");
        (by_number(&posterior, &*problem), check)
    };
    let (q, check) = answer(2);
    assert_ne!(check.verdict.kind, VerdictKind::DoNotTrust, "{}", check.verdict.text);
    for (number, (&q, &truth)) in q.iter().zip(&truth).enumerate() {
        assert!((q - truth).abs() < 0.03, "{number}: {q} instead of {truth}");
    }
    let (same, again) = answer(1);
    assert_eq!((q, check.log_weights), (same, again.log_weights));
}
