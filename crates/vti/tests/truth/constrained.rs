//! Constrained parameters and constrained models.

use std::sync::Arc;

use vti::check::{RefineSettings, VerdictKind, refine};
use vti::device::Cpu;
use vti::family::{ContextSettings, FamilySettings};
use vti::models::{AutoregressiveSettings, ModelsSettings};
use vti::problem::dag::Rules;
use vti::problem::{self, Constraint, Constraints, DensityError, Problem};
use vti::space::{Catalogue, Dags, Model, ModelSpace, Subsets};
use vti::train::{Silent, TemperSettings, TrainSettings, Trainer};

use crate::problems::{GaussianGraphs, Gaussians, Known, normalise};
use crate::{affine, assert_corrected, check_with, distance, distributions, train};

/// A gamma variable, a beta variable on (−1, 3) and a Dirichlet vector of three parts, each of them optional.
fn optional() -> Arc<impl Problem> {
    let space = Subsets::of_blocks(0, &[1, 1, 2]).unwrap();
    let list =
        vec![Constraint::Positive, Constraint::Interval { low: -1.0, high: 3.0 }, Constraint::Simplex { parts: 3 }];
    let problem = problem::from_fn(space, |model, theta, gradient| {
        let mut rest = (theta, gradient);
        let mut log_density = 0.0;
        let mut next = |count: usize| {
            let (theta, gradient) = std::mem::take(&mut rest);
            let ((own, theta), (own_gradient, gradient)) = (theta.split_at(count), gradient.split_at_mut(count));
            rest = (theta, gradient);
            (own, own_gradient)
        };
        if model[0] == 1 {
            let (x, g) = next(1);
            // On the edge where rounding takes it there.
            assert!(x[0] >= 0.0);
            log_density += 1.5 * x[0].ln() - x[0];
            g[0] = 1.5 / x[0] - 1.0;
        }
        if model[1] == 1 {
            let (x, g) = next(1);
            let (a, b) = (x[0] + 1.0, 3.0 - x[0]);
            assert!(a >= 0.0 && b >= 0.0);
            log_density += a.ln() + 2.0 * b.ln();
            g[0] = 1.0 / a - 2.0 / b;
        }
        if model[2] == 1 {
            let (x, g) = next(3);
            assert!((x.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            for ((x, g), alpha) in x.iter().zip(g).zip([2.0, 3.0, 1.5]) {
                log_density += (alpha - 1.0) * x.ln();
                *g = (alpha - 1.0) / x;
            }
        }
        log_density
    });
    Arc::new(problem.with_constraints(Constraints::new(list).unwrap()))
}

#[test]
fn evidences_of_constrained_parameters_are_those_of_gamma_beta_and_dirichlet() {
    let problem = optional();
    // Γ(2.5); 4⁴ B(2, 3); Γ(2)Γ(3)Γ(1.5)/Γ(6.5).
    let root_pi = std::f64::consts::PI.sqrt();
    let (gamma_1_5, gamma_2_5) = (0.5 * root_pi, 0.75 * root_pi);
    let gamma_6_5 = 5.5 * 4.5 * 3.5 * 2.5 * gamma_2_5;
    let parts = [gamma_2_5.ln(), (256.0f64 / 12.0).ln(), (2.0 * gamma_1_5 / gamma_6_5).ln()];
    let catalogue = Catalogue::new(problem.space(), 8).unwrap();
    let evidences: Vec<f64> = (0..8)
        .map(|m| catalogue.model(m).unwrap().iter().zip(parts).map(|(&bit, part)| f64::from(bit) * part).sum())
        .collect();
    let probabilities = normalise(&evidences);
    let device = Cpu::<f32>::new(2).unwrap();
    let posterior = train(&problem, &device, &FamilySettings::default(), 1500, 512);
    let off = distance(&posterior, &catalogue, &probabilities);
    assert!(off < 0.02, "q(m) is off by {off}");
    let check = check_with(&posterior, 20_000);
    assert_corrected("constrained", &check, &catalogue, &probabilities, 8);
    // Draws are inside, and log q at a draw is that of the draw.
    let draws = posterior.draw(200, 5).unwrap();
    let points: Vec<_> = (0..200)
        .map(|row| vti::posterior::Point { model: draws.model(row), theta: draws.theta(row).to_vec() })
        .collect();
    for (row, log_q) in posterior.log_q(&points).unwrap().into_iter().enumerate() {
        assert!((log_q - draws.log_q[row]).abs() < 2e-3 * (1.0 + log_q.abs()), "{log_q} {}", draws.log_q[row]);
    }
    let refined = refine(&posterior, &RefineSettings::default()).unwrap();
    for model in &refined.correction.models {
        let (value, se) = (model.corrected.value, model.corrected.se);
        let truth = probabilities[catalogue.index(&model.model).unwrap()];
        assert!((value - truth).abs() < 4.0 * se, "{}: {value} ± {se}, {truth}", model.label);
    }
    for row in 0..refined.draws.len() {
        let names = posterior.active_parameters(refined.draws.word(row));
        assert_eq!(names.len(), refined.draws.dims[row]);
        assert!(refined.draws.theta(row).iter().zip(names).all(|(&t, name)| name == 1 || t > 0.0));
    }
    let outside = vti::posterior::Point { model: vec![1, 0, 0].into(), theta: vec![-1.0] };
    assert_eq!(posterior.log_q(&[outside]).unwrap(), [f64::NEG_INFINITY]);
}

/// Trains every distribution on a problem that forbids some words.
fn forbidden_models_have_probability_zero(problem: impl Known + 'static) {
    let (problem, device) = (Arc::new(problem), Cpu::<f32>::new(2).unwrap());
    for (name, models) in distributions(&*problem) {
        let family = FamilySettings { models, flow: affine(), ..FamilySettings::default() };
        let posterior = train(&problem, &device, &family, 400, 256);
        let off = distance(&posterior, problem.catalogue(), &problem.probabilities());
        assert!(off < 0.02, "{name}: q(m) is off by {off}");
        let draws = posterior.draw(5000, 0).unwrap();
        assert!((0..5000).all(|row| problem.space().is_allowed(draws.word(row))), "{name}");
    }
}

#[test]
fn forbidden_models_have_probability_zero_under_every_distribution() {
    let sizes = Subsets::new(5).unwrap().with_sizes(1..=2).unwrap();
    forbidden_models_have_probability_zero(Gaussians::new(sizes, 0.5, 1.0, 4));
    // 2 → 0 is required, 1 → 2 and 0 → 1 are forbidden.
    let rules =
        Rules { required: vec![[2, 0]], forbidden: vec![[0, 1], [1, 2]], max_parents: Some(2), ..Rules::default() };
    forbidden_models_have_probability_zero(GaussianGraphs::new(3, rules, 0.5, 4, |_, _| 0.0));
}

#[test]
fn what_is_chosen_automatically_says_why() {
    let device = Cpu::<f32>::single();
    let choices = |bits: usize| {
        let space = Subsets::new(bits).unwrap();
        let problem = Arc::new(problem::from_fn(space, |_, _, _| 0.0));
        let family = vti::family::Family::new(problem, device.clone(), &FamilySettings::default(), 8, 1).unwrap();
        (family.settings().clone(), family.choices().to_vec())
    };
    let (few, why) = choices(7);
    assert!(matches!(few.models, ModelsSettings::Surrogate(_)), "{few:?}");
    assert!(why.iter().any(|line| line.contains("128 models")), "{why:?}");
    let (many, why) = choices(40);
    assert_eq!(many.models, ModelsSettings::Autoregressive(AutoregressiveSettings::default()));
    assert!(why.iter().any(|line| line.contains("10^12.0 models")), "{why:?}");
}

/// Log evidence of a graph: its edges, and one pair of them.
fn log_evidence(space: &Dags, model: &[u16]) -> f64 {
    let mut edges = [false; 9];
    space.adjacency(model, &mut edges);
    let edge = |from: usize, to: usize| f64::from(u8::from(edges[3 * from + to]));
    0.8 * edge(0, 1) - 0.5 * edge(1, 0) + 1.1 * edge(1, 2) - 0.4 * edge(2, 1)
        + 0.3 * edge(0, 2)
        + 0.6 * edge(0, 1) * edge(1, 2)
}

#[test]
fn words_that_mean_one_graph_are_counted_together() {
    let space = Dags::new(3, 1).unwrap();
    let graphs = space.clone();
    let problem = Arc::new(problem::from_fn(space.clone(), move |model, theta, gradient| {
        let mut log_density = log_evidence(&graphs, model);
        for (t, g) in theta.iter().zip(gradient) {
            *g = -(t - 0.5);
            log_density += -0.5 * (t - 0.5).powi(2) - 0.5 * std::f64::consts::TAU.ln();
        }
        log_density
    }));
    let catalogue = Catalogue::new(&space, 100).unwrap();
    assert_eq!(catalogue.len(), 48);
    let mut truth: std::collections::BTreeMap<Model, f64> = std::collections::BTreeMap::new();
    for index in 0..48 {
        let word = catalogue.model(index).unwrap();
        let mut canonical = word.to_vec();
        space.canonical(&mut canonical);
        *truth.entry(canonical.into()).or_default() += log_evidence(&space, &word).exp();
    }
    let total: f64 = truth.values().sum();
    truth.values_mut().for_each(|value| *value /= total);
    assert_eq!(truth.len(), 25);
    let device = Cpu::<f32>::new(2).unwrap();
    for (name, models) in distributions(&*problem) {
        let context = ContextSettings::Features;
        let family = FamilySettings { models, flow: affine(), context, ..FamilySettings::default() };
        let posterior = train(&problem, &device, &family, 800, 512);
        let found = posterior.model_probabilities(1).unwrap();
        assert_eq!(found.len(), 25, "{name}");
        let off: f64 = found.iter().map(|model| 0.5 * (model.probability.value - truth[&model.model]).abs()).sum();
        assert!(off < 0.02, "{name}: q is off by {off}");
        let check = check_with(&posterior, 10_000);
        for model in check.correction.models.iter().take(5) {
            let (value, se, truth) = (model.corrected.value, model.corrected.se, truth[&model.model]);
            assert!((value - truth).abs() < 3.0 * se + 1e-4, "{name}: {}: {value} ± {se}, {truth}", model.label);
            let found = model.evidence.unwrap().estimate();
            let exact = log_evidence(&space, &model.model);
            assert!((found.value - exact).abs() < 3.5 * found.se + 1e-3, "{name}: {found:?} {exact}");
        }
        let refined = refine(&posterior, &RefineSettings::default()).unwrap();
        for model in refined.correction.models.iter().take(5) {
            let (value, se, truth) = (model.corrected.value, model.corrected.se, truth[&model.model]);
            assert!((value - truth).abs() < 4.0 * se, "{name}: chains: {}: {value} ± {se}, {truth}", model.label);
        }
        let listed: f64 = refined.correction.models.iter().map(|model| model.q).sum();
        assert!((listed - 1.0).abs() < 0.01, "{name}: {listed}");
    }
}

/// Standard normal parameters, the first of which multiplies the evidence; two of them never come together.
struct Preferred {
    space: Subsets,
    catalogue: Catalogue,
}

impl Known for Preferred {
    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn log_evidence(&self, model: &[u16]) -> f64 {
        0.9 * f64::from(model[0])
    }
}

impl Problem for Preferred {
    fn space(&self) -> &dyn ModelSpace {
        &self.space
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
        let log_tau = std::f64::consts::TAU.ln();
        Ok(self.log_evidence(model) - theta.iter().map(|t| 0.5 * t * t + 0.5 * log_tau).sum::<f64>())
    }

    fn log_prior(&self, model: &[u16]) -> f64 {
        match model {
            [1, 1, _] => f64::NEG_INFINITY,
            _ => (if model[2] == 1 { 0.7f64 } else { 0.3 } / 3.0).ln(),
        }
    }
}

/// Trains every distribution on a problem whose prior leaves some words out, but for those that learn what is forbidden from
/// the space alone.
fn priors_count(problem: impl Known + 'static) {
    let (problem, device) = (Arc::new(problem), Cpu::<f32>::new(2).unwrap());
    let (probabilities, log_evidence) = (problem.probabilities(), problem.log_total_evidence());
    for (name, models) in distributions(&*problem).into_iter().filter(|(name, _)| *name != "autoregressive") {
        let family = FamilySettings { models, flow: affine(), ..FamilySettings::default() };
        let posterior = train(&problem, &device, &family, 500, 256);
        let off = distance(&posterior, problem.catalogue(), &probabilities);
        assert!(off < 0.02, "{name}: q(m) is off by {off}");
        let draws = posterior.draw(5000, 0).unwrap();
        assert!((0..5000).all(|row| problem.log_prior(draws.word(row)) > f64::NEG_INFINITY), "{name}");
        let check = check_with(&posterior, 10_000);
        assert_corrected(name, &check, problem.catalogue(), &probabilities, 6);
        assert!((check.log_evidence.value - log_evidence).abs() < 3.0 * check.log_evidence.se + 1e-3, "{name}");
        for model in check.correction.models.iter().take(6) {
            let (found, truth) = (model.evidence.unwrap().estimate(), problem.log_evidence(&model.model));
            assert!((found.value - truth).abs() < 3.5 * found.se + 1e-3, "{name}: {}: {found:?}", model.label);
        }
    }
}

#[test]
fn priors_of_models_count_and_models_of_prior_zero_are_never_drawn() {
    let space = Subsets::new(3).unwrap();
    priors_count(Preferred { catalogue: Catalogue::new(&space, 8).unwrap(), space });
    // Node 0 has no two parents, and each parent of node 2 costs something.
    let log_prior = |node: usize, parents: u64| match (node, parents.count_ones()) {
        (0, 2) => f64::NEG_INFINITY,
        (2, count) => -0.7 * f64::from(count),
        _ => 0.0,
    };
    priors_count(GaussianGraphs::new(3, Rules::default(), 0.5, 6, log_prior));
}

#[test]
fn undefined_densities_and_forbidden_words_do_not_stop_a_refinement() {
    let space = Subsets::new(3).unwrap().with_sizes(1..=3).unwrap();
    let problem = Arc::new(problem::from_fn(space, |_, theta, gradient| {
        gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
        let log_tau = std::f64::consts::TAU.ln();
        if theta[0] > 1.8 {
            return f64::NAN;
        }
        -theta.iter().map(|t| 0.5 * t * t + 0.5 * log_tau).sum::<f64>()
    }));
    let device = Cpu::<f32>::new(2).unwrap();
    let family = FamilySettings { flow: affine(), ..FamilySettings::default() };
    // A flat target would spread to where it is undefined.
    let settings = TrainSettings { steps: 300, batch: 256, temper: TemperSettings::NONE, ..TrainSettings::default() };
    let trainer = Trainer::new(problem.clone(), device.clone(), &family, &settings).unwrap();
    let posterior = trainer.run(&mut Silent).unwrap().posterior;
    let check = check_with(&posterior, 5000);
    assert!(check.undefined > 0 && check.elbo.value.is_finite());
    let refined = refine(&posterior, &RefineSettings { iterations: 100, ..RefineSettings::default() }).unwrap();
    assert!(refined.correction.models.iter().all(|model| problem.space().is_allowed(&model.model)));
    assert!((0..refined.draws.len()).all(|row| refined.draws.theta(row)[0] <= 1.8));
    assert!(refined.draws.log_target.iter().all(|log_target| log_target.is_finite()));
}

/// A constrained space that does not say how many words it has.
struct Shy(Subsets);

impl ModelSpace for Shy {
    fn arities(&self) -> &[u16] {
        self.0.arities()
    }
    fn max_dim(&self) -> usize {
        self.0.max_dim()
    }
    fn mark_active(&self, word: &[u16], active: &mut [bool]) {
        self.0.mark_active(word, active);
    }
    fn is_constrained(&self) -> bool {
        true
    }
}

#[test]
fn a_space_that_does_not_count_its_words_needs_a_prior_and_then_works() {
    let device = Cpu::<f32>::new(2).unwrap();
    let problem = || {
        problem::from_fn(Shy(Subsets::new(2).unwrap()), |model, theta, gradient| {
            gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
            let log_tau = std::f64::consts::TAU.ln();
            2.0 * f64::from(model[0]) - theta.iter().map(|t| 0.5 * t * t + 0.5 * log_tau).sum::<f64>()
        })
    };
    let silent = Arc::new(problem());
    let error =
        vti::family::Family::new(silent, device.clone(), &FamilySettings::default(), 8, 1).unwrap_err().to_string();
    assert!(error.contains("log_count"), "{error}");
    let problem = Arc::new(problem().with_log_prior(|_| -4f64.ln()));
    for (name, models) in distributions(&*problem) {
        let family = FamilySettings { models, flow: affine(), ..FamilySettings::default() };
        let posterior = train(&problem, &device, &family, 300, 128);
        let best: f64 = posterior
            .model_probabilities(1)
            .unwrap()
            .iter()
            .filter(|model| model.model[0] == 1)
            .map(|model| model.probability.value)
            .sum();
        assert!((best - 0.8808).abs() < 0.02, "{name}: {best}");
    }
}

#[test]
fn a_large_space_is_judged_by_what_can_be_known_about_it() {
    let problem = Arc::new(problem::from_fn(Subsets::new(30).unwrap(), |_, theta, gradient| {
        gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
        let log_tau = std::f64::consts::TAU.ln();
        -theta.iter().map(|t| 0.5 * t * t + 0.5 * log_tau).sum::<f64>()
    }));
    let device = Cpu::<f32>::new(2).unwrap();
    // At the start q is exact, all models alike, all parameters standard normal; two steps move it a little.
    let family = FamilySettings { flow: affine(), ..FamilySettings::default() };
    let posterior = train(&problem, &device, &family, 2, 16);
    let check = check_with(&posterior, 5000);
    // No model was met often enough to have a probability of its own, but all of their parts were.
    assert!(check.correction.total_variation < 0.02, "{}", check.verdict.text);
    let has = |part: usize| move |word: &[u16]| f64::from(word[part]);
    for part in 0..30 {
        let corrected = check.mean(|row| has(part)(check.draws.word(row))).unwrap();
        assert!((corrected.value - 0.5).abs() < 4.0 * corrected.se, "{part}: {corrected:?}");
    }
    let rows = check.q_weights.iter().enumerate();
    let under_q =
        |part: usize| rows.clone().map(|(row, weight)| weight * has(part)(check.draws.word(row))).sum::<f64>();
    let off = (0..30).map(|part| (under_q(part) - 0.5).abs()).fold(0.0, f64::max);
    let kind = if off > 0.04 { VerdictKind::Corrected } else { VerdictKind::Trust };
    assert_eq!(check.verdict.kind, kind, "off by {off}: {}", check.verdict.text);
    let json = serde_json::to_string(&check).unwrap();
    assert!(json.contains("total_variation"));
}
