//! Chains find the posterior, and know how well.

use std::ops::ControlFlow;

use vti::check::VerdictKind;
use vti::problem::selection::{
    CoefficientPrior, Enumeration, EnumerationLimits, Likelihood, Method, Selection, enumerate,
};
use vti::problem::{Constraint, Constraints, DensityError, Problem};
use vti::rjmcmc::{Chains, Progress, Pseudo, RjmcmcSettings, rjmcmc};
use vti::space::{ModelSpace, Subsets};
use vti::stats::Estimate;
use vti::workers::Workers;

use super::hald::hald;
use super::{group, selection, small_table};

fn go_on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn workers() -> Workers {
    Workers::new(2).unwrap()
}

fn assert_near(what: &str, found: Estimate, exact: f64) {
    let off = (found.value - exact) / found.se;
    assert!(off.abs() < 4.0, "{what}: {} ± {} is {off:.1} standard errors from {exact}", found.value, found.se);
}

/// Inclusion and model probabilities within four standard errors, and standard errors neither too small nor too large:
/// squared deviations in their units are about 1 on average.
fn assert_agree(chains: &Chains, exact: &Enumeration) {
    assert_eq!(chains.verdict.kind, VerdictKind::Trust, "{}", chains.verdict.text);
    for (bit, (found, &exact)) in chains.inclusion.iter().zip(&exact.inclusion).enumerate() {
        assert_near(&format!("bit {bit}"), found.probability, exact);
    }
    let mut squares = Vec::new();
    for found in chains.models.iter().take(15) {
        let exact = exact.probabilities[exact.number(&found.model).unwrap()];
        assert_near(&found.label, found.probability, exact);
        squares.push(((found.probability.value - exact) / found.probability.se).powi(2));
    }
    // Of two models there is but one deviation, whose square may be anything.
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    assert!(squares.len() <= 2 || (0.1..4.0).contains(&mean), "{squares:?}");
}

fn run(selection: &Selection, settings: &RjmcmcSettings) -> (Chains, Enumeration) {
    let exact = enumerate(selection, &workers(), &EnumerationLimits::default()).unwrap();
    (rjmcmc(selection, &workers(), settings, &mut go_on).unwrap(), exact)
}

#[test]
fn a_conjugate_selection_is_sampled_from_either_pseudo_prior() {
    let mut table = small_table(60, 6);
    group(&mut table, 2);
    table.terms[4].always = true;
    let prior = CoefficientPrior::Normal { scale: 1.0 };
    let selection = selection(&table, Likelihood::Gaussian { sigma: Some(1.1) }, prior);
    for pseudo in [Pseudo::of_selection(&selection), Pseudo::Adapted {}] {
        let settings = RjmcmcSettings { sweeps: 10_000, burn_in: 1_000, thin: 5, pseudo, ..Default::default() };
        let (chains, exact) = run(&selection, &settings);
        assert_eq!(exact.method, Method::ClosedForm);
        assert_agree(&chains, &exact);
        let within = chains.acceptance.within.rate();
        assert!((0.2..0.4).contains(&within), "{within}");
    }
}

#[test]
fn a_scale_is_a_parameter_like_others() {
    let mut table = small_table(40, 5);
    group(&mut table, 0);
    for prior in [CoefficientPrior::Normal { scale: 1.0 }, CoefficientPrior::G { g: None }] {
        let selection = selection(&table, Likelihood::Gaussian { sigma: None }, prior);
        let settings = RjmcmcSettings { sweeps: 10_000, burn_in: 1_000, thin: 5, ..Default::default() };
        let (chains, exact) = run(&selection, &settings);
        assert_agree(&chains, &exact);
        // The scale comes first and is positive.
        assert!((0..chains.draws.len()).all(|row| chains.draws.theta(row)[0] > 0.0));
    }
}

#[test]
fn halds_data_give_the_known_answers() {
    let selection = selection(&hald(), Likelihood::Gaussian { sigma: None }, CoefficientPrior::G { g: None });
    let settings = RjmcmcSettings { sweeps: 30_000, burn_in: 4_000, thin: 10, ..Default::default() };
    let chains = rjmcmc(&selection, &workers(), &settings, &mut go_on).unwrap();
    for (found, known) in chains.inclusion.iter().zip([0.899_812, 0.636_125, 0.339_798, 0.563_684]) {
        assert_near("inclusion", found.probability, known);
        assert!(found.probability.se < 0.02, "{found:?}");
    }
    assert_eq!(chains.models[0].label, "{x1, x2}");
    assert_near("{x1, x2}", chains.models[0].probability, 0.325_250);
}

#[test]
fn likelihoods_without_closed_forms_agree_with_quadrature() {
    let cases = [
        (
            2,
            Likelihood::Robust { alpha: 0.1, sigma1: Some(1.0), sigma2: Some(10.0) },
            CoefficientPrior::Normal { scale: 1.5 },
        ),
        (1, Likelihood::StudentT { df: 3.0 }, CoefficientPrior::G { g: None }),
        (1, Likelihood::ROBUST, CoefficientPrior::Normal { scale: 1.5 }),
    ];
    for (covariates, likelihood, prior) in cases {
        let mut table = small_table(30, covariates);
        // Outliers that pull either way, so that the posterior is far from normal.
        (table.response[3], table.response[17]) = (9.0, -12.0);
        let selection = selection(&table, likelihood, prior);
        let pseudo = Pseudo::of_selection(&selection);
        let settings = RjmcmcSettings { sweeps: 10_000, burn_in: 1_000, thin: 5, pseudo, ..Default::default() };
        let (chains, exact) = run(&selection, &settings);
        assert_eq!(exact.method, Method::Quadrature);
        assert_agree(&chains, &exact);
    }
}

/// Known by construction: the prior over models, and parameters that follow normal distributions in free coordinates, those
/// of things in `tilted` with another mass than 1.
struct Known {
    space: Subsets,
    constraints: Constraints,
    inclusion: f64,
    log_mass: f64,
}

impl Known {
    /// An interval always in; a pair of which one is positive, and a real number.
    fn new(sizes: std::ops::RangeInclusive<usize>, log_mass: f64) -> Self {
        let list = vec![
            Constraint::Interval { low: -1.0, high: 3.0 },
            Constraint::Positive,
            Constraint::Real,
            Constraint::Real,
            Constraint::Real,
        ];
        let space = Subsets::of_blocks(1, &[2, 1, 1]).unwrap().with_sizes(sizes).unwrap();
        Self { space, constraints: Constraints::new(list).unwrap(), inclusion: 0.3, log_mass }
    }

    fn log_weight(&self, word: &[u16]) -> f64 {
        let k = word.iter().map(|&bit| f64::from(bit)).sum::<f64>();
        k * (self.inclusion / (1.0 - self.inclusion)).ln() + f64::from(word[0]) * self.log_mass
    }

    /// Inclusion probabilities, by a sum over all words.
    fn exact(&self) -> Vec<f64> {
        let words: Vec<Vec<u16>> =
            (0..8u16).map(|n| vec![n >> 2 & 1, n >> 1 & 1, n & 1]).filter(|word| self.space.is_allowed(word)).collect();
        let total: f64 = words.iter().map(|word| self.log_weight(word).exp()).sum();
        let with = |bit: usize| words.iter().filter(move |word| word[bit] == 1);
        (0..3).map(|bit| with(bit).map(|word| self.log_weight(word).exp()).sum::<f64>() / total).collect()
    }
}

impl Problem for Known {
    fn space(&self) -> &dyn ModelSpace {
        &self.space
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn log_prior(&self, model: &[u16]) -> f64 {
        let k = model.iter().map(|&bit| f64::from(bit)).sum::<f64>();
        k * self.inclusion.ln() + (3.0 - k) * (1.0 - self.inclusion).ln()
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        let mut marked = [false; 5];
        self.space.mark_active(model, &mut marked);
        let active: Vec<u32> = (0..5).filter(|&i| marked[i as usize]).collect();
        let mut free = vec![0.0; active.len()];
        let log_jacobian = self.constraints.to_free(&active, theta, &mut free);
        // The gradient in natural coordinates, by differences: chains need but a rough one.
        let value = |theta: &[f64]| {
            let mut free = vec![0.0; active.len()];
            let log_jacobian = self.constraints.to_free(&active, theta, &mut free);
            free.iter().map(|u| -0.5 * (u - 1.0) * (u - 1.0) - 0.5 * std::f64::consts::TAU.ln()).sum::<f64>()
                - log_jacobian
        };
        for i in 0..theta.len() {
            let mut moved = theta.to_vec();
            moved[i] += 1e-6;
            let above = value(&moved);
            moved[i] -= 2e-6;
            gradient[i] = (above - value(&moved)) / 2e-6;
        }
        if !log_jacobian.is_finite() {
            return Err(DensityError::Undefined { reason: "on the edge".into() });
        }
        Ok(value(theta) + f64::from(model[0]) * self.log_mass)
    }
}

#[test]
fn without_data_the_prior_over_models_comes_back_and_every_fair_jump_is_accepted() {
    let pseudo = Pseudo::Normal { location: vec![1.0; 5], scale: vec![1.0; 5] };
    let settings = RjmcmcSettings { chains: 6, sweeps: 6_000, burn_in: 200, thin: 2, pseudo, ..Default::default() };
    let known = Known { inclusion: 0.5, ..Known::new(0..=3, 0.0) };
    let chains = rjmcmc(&known, &workers(), &settings, &mut go_on).unwrap();
    // The pseudo-prior is the posterior of each parameter and all models are alike: the ratio is always 1.
    let acceptance = chains.acceptance;
    assert_eq!(acceptance.birth.accepted, acceptance.birth.proposed);
    assert_eq!(acceptance.death.accepted, acceptance.death.proposed);
    assert_eq!(acceptance.swap.accepted, acceptance.swap.proposed);
    for (found, exact) in chains.inclusion.iter().zip(known.exact()) {
        assert_near("inclusion", found.probability, exact);
    }
}

#[test]
fn constrained_parameters_blocks_and_forbidden_sizes_are_respected() {
    for sizes in [0..=3, 1..=2, 2..=2] {
        let known = Known::new(sizes, 1.2);
        let pseudo = Pseudo::Normal { location: vec![0.5; 5], scale: vec![1.4; 5] };
        let settings = RjmcmcSettings { chains: 8, sweeps: 6_000, burn_in: 400, thin: 2, pseudo, ..Default::default() };
        let chains = rjmcmc(&known, &workers(), &settings, &mut go_on).unwrap();
        for (found, exact) in chains.inclusion.iter().zip(known.exact()) {
            assert_near("inclusion", found.probability, exact);
        }
        let draws = &chains.draws;
        assert!((0..draws.len()).all(|row| known.space.is_allowed(draws.word(row))));
        assert!((0..draws.len()).all(|row| (-1.0..=3.0).contains(&draws.theta(row)[0])));
        // Parameters follow their own distribution: log of the positive one is N(1, 1).
        let logs: Vec<f64> =
            (0..draws.len()).filter(|&row| draws.word(row)[0] == 1).map(|row| draws.theta(row)[1].ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / logs.len() as f64;
        assert!((mean - 1.0).abs() < 0.1 && (variance - 1.0).abs() < 0.15, "{mean} {variance}");
        // Densities are those of natural parameters.
        let row = draws.len() / 2;
        let (model, theta) = (draws.word(row), draws.theta(row));
        let log_density = known.log_density(model, theta, &mut vec![0.0; theta.len()]).unwrap();
        assert!((draws.log_target[row] - known.log_prior(model) - log_density).abs() < 1e-9);
    }
}
