//! A flow that cannot be right, and what tells.

use std::sync::Arc;

use vti::check::{CheckSettings, Depth, LocalMove, OpinionSettings, RefineSettings, VerdictKind, check, refine};
use vti::device::Cpu;
use vti::family::{FamilySettings, FlowKind};
use vti::problem::{self, Problem};
use vti::space::{Catalogue, OneOf};

use crate::problems::normalise;
use crate::{check_with, distance, distributions, train};

const CORRELATION: f64 = 0.95;

/// A pair with strong correlation and a single parameter, with equal evidence.
fn pair() -> Arc<impl Problem> {
    Arc::new(problem::from_fn(OneOf::with_dims(&[2, 1]).unwrap(), |model, theta, gradient| {
        let log_tau = std::f64::consts::TAU.ln();
        if model[0] == 1 {
            gradient[0] = -theta[0];
            return -0.5 * theta[0] * theta[0] - 0.5 * log_tau;
        }
        let (x, y, v) = (theta[0], theta[1], 1.0 - CORRELATION * CORRELATION);
        gradient[0] = -(x - CORRELATION * y) / v;
        gradient[1] = -(y - CORRELATION * x) / v;
        -0.5 * (x * x - 2.0 * CORRELATION * x * y + y * y) / v - 0.5 * v.ln() - log_tau
    }))
}

/// A mean-field Gaussian has the target's diagonal precision: it is `−½ log(1 − ρ²)` nats off in the correlated model, and so
/// is its q(m). In the direction of the smallest eigenvalue 1 − ρ of the scaled precision, weights grow as exp(ρ z²/2): a
/// Pareto tail with k = ρ.
#[test]
fn a_mean_field_flow_is_biased_as_predicted_and_the_alarm_goes_off() {
    let problem = pair();
    let device = Cpu::<f32>::new(2).unwrap();
    let biased = normalise(&[0.5 * (1.0 - CORRELATION * CORRELATION).ln(), 0.0]);
    let catalogue = Catalogue::new(problem.space(), 10).unwrap();
    for (name, models) in distributions(&*problem) {
        let family =
            FamilySettings { models, flow: FlowKind::Diagonal { hidden: vec![] }, ..FamilySettings::default() };
        let posterior = train(&problem, &device, &family, 3000, 256);
        let off = distance(&posterior, &catalogue, &biased);
        assert!(off < 0.02, "{name}: q(m) is {off} from the optimum of the family");
        let check = check_with(&posterior, 20_000);
        let khat = check.khat.unwrap();
        assert!(khat > check.threshold && (khat - CORRELATION).abs() < 0.25, "{name}: k̂ = {khat}");
        // Particles, which know nothing of the flow, have the answer.
        assert_eq!(check.verdict.kind, VerdictKind::Corrected, "{name}: {}", check.verdict.text);
        for model in &check.opinion.unwrap().correction.models {
            let (value, se) = (model.corrected.value, model.corrected.se);
            assert!(se < 0.02 && (value - 0.5).abs() < 4.0 * se, "{name}: {value} ± {se}");
        }
        let own = check.correction.models.iter().find(|model| model.model[0] == 1).unwrap();
        assert!(
            own.khat.is_none_or(|khat| khat < 0.5),
            "{name}: nothing is wrong with the other model: {:?}",
            own.khat
        );
    }
}

/// Parameters so far away that they cannot be reached in time: which model is learned faster then decides, and weights
/// cannot tell.
#[test]
fn a_run_that_judged_models_too_early_is_not_trusted() {
    let problem = Arc::new(problem::from_fn(OneOf::with_dims(&[1, 2]).unwrap(), |_, theta, gradient| {
        gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = 80.0 - t);
        let log_tau = std::f64::consts::TAU.ln();
        -theta.iter().map(|t| 0.5 * (t - 80.0).powi(2) + 0.5 * log_tau).sum::<f64>()
    }));
    let device = Cpu::<f32>::new(2).unwrap();
    let posterior = train(&problem, &device, &FamilySettings::default(), 400, 128);
    assert!(posterior.warnings()[0].contains("still rising"), "{:?}", posterior.warnings());
    let checked = check(&posterior, &CheckSettings { draws: 2000, ..CheckSettings::default() }).unwrap();
    // Particles get there.
    assert!(checked.verdict.kind == VerdictKind::Corrected && checked.prefers_opinion, "{}", checked.verdict.text);
    for model in &checked.opinion.unwrap().correction.models {
        let (value, se) = (model.corrected.value, model.corrected.se);
        assert!(se < 0.02 && (value - 0.5).abs() < 4.0 * se, "{value} ± {se}");
    }
    let settings = CheckSettings {
        draws: 2000,
        opinion: OpinionSettings { depth: Depth::None, ..OpinionSettings::default() },
        ..CheckSettings::default()
    };
    let verdict = check(&posterior, &settings).unwrap().verdict;
    assert!(verdict.kind == VerdictKind::DoNotTrust && verdict.text.contains("still rising"), "{}", verdict.text);
}

#[test]
fn chains_that_do_not_mix_are_not_trusted() {
    let problem = pair();
    let device = Cpu::<f32>::new(2).unwrap();
    let family = FamilySettings { flow: FlowKind::Diagonal { hidden: vec![] }, ..FamilySettings::default() };
    let posterior = train(&problem, &device, &family, 3000, 256);
    // Independence moves alone get stuck in the tails that the flow does not cover.
    let settings = RefineSettings { chains: 8, warmup: 0, iterations: 60, local_moves: 0, ..RefineSettings::default() };
    let refined = refine(&posterior, &settings).unwrap();
    assert_eq!(refined.verdict.kind, VerdictKind::DoNotTrust, "{}", refined.verdict.text);
    assert!(refined.accepted_moves.is_nan() && refined.draws.len() == 8 * 12);
}

#[test]
fn chains_mend_what_weights_cannot() {
    let problem = pair();
    let device = Cpu::<f32>::new(2).unwrap();
    let family = FamilySettings { flow: FlowKind::Diagonal { hidden: vec![] }, ..FamilySettings::default() };
    let posterior = train(&problem, &device, &family, 3000, 256);
    for local in [LocalMove::RandomWalk, LocalMove::Langevin] {
        let settings = RefineSettings { local, local_moves: 4, iterations: 1500, ..RefineSettings::default() };
        let refined = refine(&posterior, &settings).unwrap();
        assert_ne!(refined.verdict.kind, VerdictKind::DoNotTrust, "{local:?}: {}", refined.verdict.text);
        for model in &refined.correction.models {
            let (value, se) = (model.corrected.value, model.corrected.se);
            assert!(se < 0.03 && (value - 0.5).abs() < 3.0 * se, "{local:?}: {value} ± {se}");
        }
        // The draws of the correlated model have its correlation.
        let draws = &refined.draws;
        let rows: Vec<usize> = (0..draws.dims.len()).filter(|&row| draws.dims[row] == 2).collect();
        let mean =
            |f: &dyn Fn(&[f64]) -> f64| rows.iter().map(|&row| f(draws.theta(row))).sum::<f64>() / rows.len() as f64;
        let correlation = mean(&|t| t[0] * t[1]) / (mean(&|t| t[0] * t[0]) * mean(&|t| t[1] * t[1])).sqrt();
        assert!((correlation - CORRELATION).abs() < 0.02, "{local:?}: {correlation}");
        assert!((0.1..0.9).contains(&refined.accepted_moves), "{local:?}: {}", refined.accepted_moves);
    }
}
