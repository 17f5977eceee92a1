//! Components: bijections, priors, jumps, and evidences of every number of them.

use std::ops::ControlFlow;
use std::sync::Arc;

use vti::device::Cpu;
use vti::evidence::{AnnealSettings, Evidences};
use vti::family::FamilySettings;
use vti::prior::{CountPrior, Gamma, Geometric, LogNormal, Normal, Poisson, Uniform};
use vti::problem::components::{ComponentLikelihood, Draw};
use vti::problem::{self, Constraints, DensityError, GradientError, Problem, check_gradient};
use vti::random::{Purpose, Stream};
use vti::rjmcmc::{RjmcmcSettings, rjmcmc};
use vti::smc::{Sampler, SmcSettings};
use vti::space::{Components, Model, ModelSpace};
use vti::train::{Silent, TrainSettings, Trainer};
use vti::workers::Workers;

/// One space of each sort, without a likelihood.
fn without_data() -> Vec<(&'static str, Arc<dyn Problem>)> {
    let nothing = |_: &Draw<'_>| 0.0;
    let ordered =
        Components::new("peak", 0..=3).each("position", Normal(1.0, 2.0)).ordered().each("height", Gamma(2.0, 0.5));
    let spaced =
        Components::new("change", 0..=3).spaced("place", (-1.0, 9.0), 0.5, 2.0).each("level", Normal(0.0, 3.0));
    let shares = Components::new("part", 1..=4)
        .each("mean", Normal(0.0, 1.0))
        .shares("weight", 1.0)
        .with("sd", LogNormal(0.0, 0.5));
    let sparse = Components::new("part", 1..=3).shares("weight", 2.5).each("mean", Uniform(0.0, 1.0));
    let labelled = Components::new("term", 0..=2).each("size", Normal(0.0, 1.0)).labelled();
    let both = Components::new("line", 0..=2)
        .each("at", Uniform(0.0, 1.0))
        .and("bump", 1..=2)
        .each("at", Uniform(2.0, 4.0))
        .each("width", LogNormal(0.0, 1.0))
        .with("level", Normal(0.0, 1.0));
    let known = Components::new("line", 0..=3)
        .each("height", LogNormal(0.0, 1.0))
        .known("at", [1.0, 2.5, 4.0])
        .known("width", [0.3])
        .labelled();
    let fixed = Components::new("line", 2..=2)
        .known("at", [1.0, 2.0])
        .labelled()
        .and("bump", 0..=2)
        .each("at", Uniform(0.0, 1.0));
    let rivals = Components::new("part", 1..=3).known("sd", [0.5]).shares("weight", 1.0).each("mean", Normal(0.0, 1.0));
    let waves = Components::new("wave", 0..=2)
        .each("rate", Uniform(0.0, 0.5))
        .ordered()
        .direction("phase")
        .with_direction("tide");
    let made = |space: Components, prior: CountPrior| -> Arc<dyn Problem> {
        Arc::new(problem::components(space, prior, nothing).expect("a space"))
    };
    vec![
        ("ordered", made(ordered, Poisson(1.5).into())),
        ("spaced", made(spaced, Geometric(0.4).into())),
        ("shares", made(shares, Poisson(2.0).into())),
        ("sparse shares", made(sparse, CountPrior::Uniform {})),
        ("labelled", made(labelled, CountPrior::Uniform {})),
        ("known", made(known, Poisson(1.0).into())),
        ("all known", made(fixed, Poisson(1.0).into())),
        ("known beside shares", made(rivals, CountPrior::Uniform {})),
        ("directions", made(waves, Poisson(1.0).into())),
        ("two kinds", made(both, Poisson(1.0).into())),
    ]
}

fn active(space: &dyn ModelSpace, word: &[u16]) -> Vec<u32> {
    let mut mask = vec![false; space.max_dim()];
    space.mark_active(word, &mut mask);
    (0..mask.len() as u32).filter(|&i| mask[i as usize]).collect()
}

fn words(space: &dyn ModelSpace) -> Vec<Vec<u16>> {
    let mut words = vec![Vec::new()];
    for &arity in space.arities() {
        words = words
            .iter()
            .flat_map(|word: &Vec<u16>| (0..arity).map(move |symbol| [&word[..], &[symbol]].concat()))
            .collect();
    }
    words
}

fn natural(constraints: &Constraints, active: &[u32], free: &[f64]) -> (Vec<f64>, f64) {
    let mut natural = vec![0.0; constraints.natural_dim(active)];
    let log_jacobian = constraints.to_natural(active, free, &mut natural);
    (natural, log_jacobian)
}

#[test]
fn free_coordinates_are_standard_normal_under_the_prior_and_come_back() {
    for (name, problem) in without_data() {
        let constraints = problem.constraints().expect("constraints");
        for (number, word) in words(problem.space()).into_iter().enumerate() {
            let active = active(problem.space(), &word);
            let mut stream = Stream::new(1, Purpose::Other(0), 0, number as u64);
            for _ in 0..20 {
                let free: Vec<f64> = active.iter().map(|_| stream.normal()).collect();
                let (theta, log_jacobian) = natural(constraints, &active, &free);
                let log_density = problem.log_density(&word, &theta, &mut vec![0.0; theta.len()]).expect("defined");
                let standard: f64 = free.iter().map(|u| -0.5 * u * u - 0.5 * std::f64::consts::TAU.ln()).sum();
                assert!((log_density + log_jacobian - standard).abs() < 1e-9, "{name} {word:?}");
                let mut back = vec![0.0; free.len()];
                let again = constraints.to_free(&active, &theta, &mut back);
                assert!(
                    back.iter().zip(&free).all(|(a, b)| (a - b).abs() < 1e-6),
                    "{name} {word:?}: {back:?} {free:?}"
                );
                assert!((again - log_jacobian).abs() < 1e-6, "{name} {word:?}");
            }
        }
    }
}

/// Determinant of a small matrix, by elimination.
fn log_determinant(mut matrix: Vec<Vec<f64>>) -> f64 {
    let (size, mut log) = (matrix.len(), 0.0);
    for pivot in 0..size {
        let largest =
            (pivot..size).max_by(|&a, &b| matrix[a][pivot].abs().total_cmp(&matrix[b][pivot].abs())).expect("rows");
        matrix.swap(pivot, largest);
        log += matrix[pivot][pivot].abs().ln();
        for row in pivot + 1..size {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let above = matrix[pivot].clone();
            matrix[row].iter_mut().zip(above).for_each(|(x, a)| *x -= factor * a);
        }
    }
    log
}

/// The log-Jacobian says that the prior of u is standard normal only if densities of parameters are right: a numeric one must agree.
#[test]
fn jacobians_agree_with_differences() {
    for (name, problem) in without_data() {
        let constraints = problem.constraints().expect("constraints");
        let names = problem.parameter_names();
        for word in words(problem.space()) {
            let active = active(problem.space(), &word);
            let free: Vec<f64> = (0..active.len()).map(|i| 0.3 * (1.7 * i as f64 + 0.5).sin()).collect();
            let (theta, log_jacobian) = natural(constraints, &active, &free);
            // Of shares that sum to one the first follows from the others, and what is known follows from nothing.
            let places = constraints.natural_places(&active);
            let is_first_share = |place: usize| names[place] == "part1.weight";
            let elsewhere = natural(constraints, &active, &free.iter().map(|u| u + 0.1).collect::<Vec<f64>>()).0;
            let is_free = |i: usize| theta[i] != elsewhere[i] && !is_first_share(places[i]);
            let kept: Vec<usize> = (0..theta.len()).filter(|&i| is_free(i)).collect();
            assert_eq!(kept.len(), free.len(), "{name}");
            let column = |j: usize, step: f64| {
                let mut moved = free.clone();
                moved[j] += step;
                natural(constraints, &active, &moved).0
            };
            let matrix: Vec<Vec<f64>> = (0..free.len())
                .map(|j| {
                    let (up, down) = (column(j, 1e-5), column(j, -1e-5));
                    kept.iter().map(|&i| (up[i] - down[i]) / 2e-5).collect()
                })
                .collect();
            let numeric = log_determinant(matrix);
            assert!((numeric - log_jacobian).abs() < 1e-5, "{name} {word:?}: {numeric} {log_jacobian}");
        }
    }
}

/// A smooth likelihood with its gradient, of any parameters.
struct Smooth;

impl ComponentLikelihood for Smooth {
    fn log_likelihood(&self, draw: &Draw<'_>) -> Result<f64, DensityError> {
        Ok(draw.theta().iter().enumerate().map(|(i, x)| (0.7 * x + i as f64).sin() - 0.1 * x * x).sum())
    }

    fn has_gradient(&self) -> bool {
        true
    }

    fn with_gradient(&self, draw: &Draw<'_>, gradient: &mut [f64]) -> Result<f64, DensityError> {
        for (i, (to, x)) in gradient.iter_mut().zip(draw.theta()).enumerate() {
            *to = 0.7 * (0.7 * x + i as f64).cos() - 0.2 * x;
        }
        self.log_likelihood(draw)
    }
}

#[test]
fn gradients_agree_with_differences() {
    let spaces = [
        Components::new("peak", 0..=3).each("position", Normal(1.0, 2.0)).ordered().each("height", Gamma(2.0, 0.5)),
        Components::new("change", 0..=3).spaced("place", (-1.0, 9.0), 0.5, 2.0).each("level", Normal(0.0, 3.0)),
        Components::new("part", 1..=3)
            .each("mean", Normal(0.0, 1.0))
            .shares("weight", 1.5)
            .with("sd", LogNormal(0.0, 0.5)),
    ];
    for space in spaces {
        let problem = problem::components_with(space, Poisson(1.0), Smooth).expect("a space");
        check_gradient(&problem, 30, 1).expect("the gradient is right");
    }
}

#[test]
fn densities_that_jump_are_found_out() {
    // The number of events before a change, whose derivative is 0 wherever it exists.
    struct Events;
    impl ComponentLikelihood for Events {
        fn log_likelihood(&self, draw: &Draw<'_>) -> Result<f64, DensityError> {
            Ok(draw.block("change").column("at").map(|at| (20.0 * at).floor()).sum())
        }
        fn has_gradient(&self) -> bool {
            true
        }
    }
    let space = Components::new("change", 1..=2).each("at", Uniform(0.0, 1.0));
    let problem = problem::components_with(space, Poisson(1.0), Events).expect("a space");
    let found = check_gradient(&problem, 50, 1);
    assert!(matches!(found, Err(GradientError::Jumps { .. })), "{found:?}");
}

#[test]
fn spaces_that_contradict_themselves_are_refused() {
    let reason = |space: Components| space.build().expect_err("refused").to_string();
    assert!(reason(Components::new("x", 0..=20).spaced("at", (0.0, 1.0), 0.1, 1.0)).contains("do not fit"));
    assert!(reason(Components::new("x", 0..=2).shares("w", 1.0)).contains("need a parameter"));
    assert!(reason(Components::new("x", 0..=2)).contains("need a parameter"));
    assert!(reason(Components::new("x", 0..=2).each("a", Uniform(1.0, 0.0))).contains("x: a:"));
    let twice =
        Components::new("x", 0..=2).each("a", Uniform(0.0, 1.0)).ordered().each("b", Uniform(0.0, 1.0)).ordered();
    assert!(reason(twice).contains("at most one"));
    #[allow(clippy::reversed_empty_ranges)]
    let none = Components::new("x", 3..=2).each("a", Uniform(0.0, 1.0));
    assert!(reason(none).contains("no number"));
}

/// With the likelihood switched off, everything finds the prior: particles and chains the numbers, and both evidence and q too.
#[test]
fn without_data_the_posterior_is_the_prior() {
    let workers = Workers::new(2).expect("threads");
    for (name, problem) in without_data().into_iter().filter(|(name, _)| !name.contains("sparse")) {
        let reference = problem.reference().expect("a reference");
        let settings = SmcSettings { particles: 128, sweeps: 1, kept: 24, ..SmcSettings::default() };
        let mut sampler = Sampler::new(&*problem, &reference, &settings, 3).expect("settings");
        assert!(sampler.run(8, &workers, &mut |_| true).expect("densities"));
        let found = sampler.found().expect("particles");
        assert!(
            found.log_evidence.value.abs() < 4.0 * found.log_evidence.se + 0.02,
            "{name}: {:?}",
            found.log_evidence
        );
        for model in &found.models {
            let (truth, own) = (problem.log_prior(&model.model).exp(), model.probability);
            assert!((own.value - truth).abs() < 4.0 * own.se + 0.003, "{name} {:?}: {own:?} {truth}", model.model);
        }
        let settings =
            RjmcmcSettings { chains: 16, sweeps: 2000, burn_in: 100, thin: 5, flips: 2, ..RjmcmcSettings::default() };
        let chains = rjmcmc(&*problem, &workers, &settings, &mut |_| ControlFlow::Continue(())).expect("chains");
        for model in &chains.models {
            let (truth, own) = (problem.log_prior(&model.model).exp(), model.probability);
            assert!((own.value - truth).abs() < 4.0 * own.se + 0.003, "{name} {:?}: {own:?} {truth}", model.model);
        }
    }
}

#[test]
fn without_data_q_is_the_prior() {
    let (_, problem) = without_data().swap_remove(0);
    let particles = SmcSettings { runs: 4, particles: 512, sweeps: 2, kept: 2, ..SmcSettings::default() };
    let settings = TrainSettings { steps: 100, batch: 256, particles, ..TrainSettings::default() };
    let trainer =
        Trainer::new(problem.clone(), Cpu::<f64>::new(2).expect("threads"), &FamilySettings::default(), &settings);
    let fit = trainer.expect("a trainer").run(&mut Silent).expect("a fit");
    for found in fit.posterior.model_probabilities(1000).expect("probabilities") {
        let truth = problem.log_prior(&found.model).exp();
        assert!((found.probability.value - truth).abs() < 0.06, "{:?} {truth}", found);
    }
    let draws = fit.posterior.draw_with_target(2000, 0).expect("draws");
    let gap: f64 =
        (0..draws.len()).map(|row| draws.log_target[row] - draws.log_q[row]).sum::<f64>() / draws.len() as f64;
    assert!(gap.abs() < 0.1, "the divergence of q from the prior is {gap}");
}

/// Observations from normal densities of known width around 1 to 3 places, which count alike: evidences by sums over a lattice.
struct Places {
    data: Vec<f64>,
}

impl Places {
    fn log_likelihood(&self, places: &[f64]) -> f64 {
        let density = |y: &f64| {
            let normal =
                |place: &f64| (-0.5 * ((y - place) / 0.4).powi(2)).exp() / (0.4 * std::f64::consts::TAU.sqrt());
            (places.iter().map(normal).sum::<f64>() / places.len() as f64).ln()
        };
        self.data.iter().map(density).sum()
    }

    /// `log p(y | k)` for places that are uniform on (0, 4).
    fn log_evidence(&self, count: usize) -> f64 {
        const POINTS: usize = 41;
        let place = |i: usize| 4.0 * (i as f64 + 0.5) / POINTS as f64;
        let mut sum = 0.0;
        for number in 0..POINTS.pow(count as u32) {
            let places: Vec<f64> = (0..count).map(|axis| place(number / POINTS.pow(axis as u32) % POINTS)).collect();
            sum += self.log_likelihood(&places).exp();
        }
        (sum / (POINTS as f64).powi(count as i32)).ln()
    }
}

/// Two names for one parameter: θ itself, and 4 − θ, which puts components in the opposite order.
#[test]
fn evidences_of_numbers_are_right_under_either_key() {
    let places = Arc::new(Places { data: vec![0.9, 1.3, 2.8, 3.1, 3.2] });
    let truth: Vec<f64> = (1..=3).map(|count| places.log_evidence(count)).collect();
    let workers = Workers::new(2).expect("threads");
    for is_reversed in [false, true] {
        let own = places.clone();
        let space = Components::new("place", 1..=3).each("at", Uniform(0.0, 4.0));
        let problem = problem::components(space, CountPrior::Uniform {}, move |draw: &Draw<'_>| {
            let at = draw.block("place").column("at").map(|at| if is_reversed { 4.0 - at } else { at });
            own.log_likelihood(&at.collect::<Vec<f64>>())
        })
        .expect("a space");
        let settings = AnnealSettings { runs: 8, particles: 128, ..AnnealSettings::default() };
        let evidences = Evidences::new(&problem, &settings, 5).expect("settings");
        let models: Vec<Model> = (0..3).map(|symbol| vec![symbol].into()).collect();
        for (found, truth) in evidences.of_models(&models, &workers).expect("densities").iter().zip(&truth) {
            let found = found.as_ref().expect("particles");
            assert!((found.log_evidence - truth).abs() < 4.0 * found.se + 0.002, "{found:?} {truth}");
            assert!(found.se < 0.1, "{found:?}");
        }
        let settings = SmcSettings { particles: 128, sweeps: 2, kept: 16, ..SmcSettings::default() };
        let reference = problem.reference().expect("a reference");
        let mut sampler = Sampler::new(&problem, &reference, &settings, 3).expect("settings");
        assert!(sampler.run(8, &workers, &mut |_| true).expect("densities"));
        let found = sampler.found().expect("particles");
        let total: f64 = truth.iter().map(|log| log.exp()).sum();
        for model in &found.models {
            let (truth, own) = (truth[usize::from(model.model[0])].exp() / total, model.probability);
            assert!((own.value - truth).abs() < 4.0 * own.se + 0.002, "{:?}: {own:?} {truth}", model.model);
            assert!(own.se < 0.02, "{own:?}");
        }
    }
}

/// Known values are where the likelihood looks for them, whatever the number of blocks is.
#[test]
fn what_is_known_is_no_coordinate() {
    let space = Components::new("line", 0..=2).each("height", Normal(0.0, 1.0)).known("at", [3.0, 7.0]).labelled();
    let problem =
        problem::components(space, Poisson(1.0), |draw: &Draw<'_>| draw.block("line").column("at").sum()).unwrap();
    assert_eq!(problem.space().max_dim(), 2);
    let constraints = problem.constraints().unwrap();
    let (theta, _) = natural(constraints, &[0, 1], &[0.5, -0.5]);
    assert_eq!(theta, [0.5, 3.0, -0.5, 7.0]);
    let expected = 10.0 + theta.iter().step_by(2).map(|x| -0.5 * x * x - 0.5 * std::f64::consts::TAU.ln()).sum::<f64>();
    let found = problem.log_density(&[2], &theta, &mut [0.0; 4]).unwrap();
    assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
    let refused = |space: Components| problem::components(space, Poisson(1.0), |_: &Draw<'_>| 0.0).is_err();
    assert!(refused(Components::new("line", 0..=2).each("height", Normal(0.0, 1.0)).known("at", [1.0, 2.0])));
    assert!(refused(
        Components::new("line", 0..=3).each("height", Normal(0.0, 1.0)).known("at", [1.0, 2.0]).labelled()
    ));
    assert!(refused(Components::new("line", 0..=1).known("at", [1.0])));
    assert!(refused(Components::new("line", 0..=1).each("height", Normal(0.0, 1.0)).known("at", [f64::NAN])));
}

/// With the likelihood exp(κ cos(φ − μ)) of a direction the evidence is the Bessel function I₀(κ), wherever μ is: also where angles are
/// cut.
#[test]
fn a_circle_has_no_cut() {
    let kappa = 6.0f64;
    let bessel: f64 =
        (0..2000).map(|i| (kappa * (std::f64::consts::TAU * f64::from(i) / 2000.0).cos()).exp()).sum::<f64>() / 2000.0;
    for centre in [0.4, std::f64::consts::PI] {
        let space = Components::new("wave", 0..=1).direction("phase");
        let log_likelihood = move |draw: &Draw<'_>| {
            draw.block("wave").directions("phase").map(|phase| kappa * (phase - centre).cos()).sum::<f64>()
        };
        let problem = problem::components(space, CountPrior::Uniform {}, log_likelihood).unwrap();
        let settings = AnnealSettings { runs: 8, particles: 512, ..AnnealSettings::default() };
        let word: Model = vec![1].into();
        let found =
            Evidences::new(&problem, &settings, 4).unwrap().annealed(&[word], &Workers::new(2).unwrap()).unwrap();
        let found = found[0].unwrap();
        let off = (found.log_evidence - bessel.ln()) / found.se;
        assert!(
            off.abs() < 4.0 && found.se < 0.05,
            "{centre}: {found:?}, {off:.1} standard errors from {}",
            bessel.ln()
        );
    }
}
