//! Regressions without closed forms: evidences of all models by annealed particles, or by quadrature where parameters are few.
//!
//! That takes minutes, so it is done once: `--make-truths` writes what `bench/results/trust/truths.json` holds.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use vti::evidence::{AnnealSettings, Evidence, Evidences};
use vti::problem::Problem;
use vti::problem::selection::simulate::{Misspecification, RobustSettings, robust};
use vti::problem::selection::{
    CoefficientPrior, ExactError, Likelihood, ModelPrior, QuadratureLimits, RegressionData, Selection,
    SelectionSettings, Standardise, evidence_by_quadrature,
};
use vti::rjmcmc::{Pseudo, RjmcmcSettings, rjmcmc};
use vti::space::{Catalogue, Model, ModelSpace};
use vti::stats::Estimate;
use vti::workers::Workers;

use super::known::{MIN_PROBABILITY, Plan, Question, Truth};
use super::tables::{Groups, Response};
use crate::table::read;

/// Models with so many parameters at most are integrated numerically: more where there is one mode only.
const FEW_PARAMETERS: usize = 3;
const FEW_WITH_ONE_MODE: usize = 4;

/// Lattices give log evidences to this.
const TOLERANCE: f64 = 1e-4;

/// Independent runs for each model.
const RUNS: usize = 8;

/// The seed of the truth's particles, which nothing else has.
const SEED: u64 = 0x7a57;

/// Fourteen covariates of the kind that is hardest for robust selection, from `data/`; its truth is the reference given there.
const HIGH_15: &str = include_str!("../../../data/robust_high_15.csv");

/// Robust, logistic, Poisson and Student-t regressions.
pub(super) fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for (misspecification, covariates, seed) in [
        (Misspecification::None, 7, 1),
        (Misspecification::Mid, 7, 1),
        (Misspecification::High, 7, 1),
        (Misspecification::None, 7, 2),
        (Misspecification::Mid, 7, 2),
        (Misspecification::High, 7, 2),
        (Misspecification::Mid, 11, 1),
        (Misspecification::High, 11, 1),
    ] {
        let settings = RobustSettings { misspecification, covariates, seed, ..RobustSettings::default() };
        let likelihood = Likelihood::Robust { alpha: 0.526, sigma1: Some(1.0), sigma2: Some(10.0) };
        let assumed = assume(likelihood, CoefficientPrior::Normal { scale: 1.5 }, ModelPrior::Uniform {});
        let table = move || Ok(robust(&settings)?.table);
        let name = format!("robust {} {misspecification} {seed}", covariates + 1);
        plans.push(plan("robust", &name, table, Standardise::Raw, assumed));
    }
    let likelihood = Likelihood::Robust { alpha: 10.0 / 19.0, sigma1: Some(1.0), sigma2: Some(10.0) };
    let assumed = assume(likelihood, CoefficientPrior::Normal { scale: 1.5 }, ModelPrior::Uniform {});
    plans.push(plan("robust", "robust 15 high", || read(HIGH_15, "y", 50), Standardise::Raw, assumed));
    for seed in [1, 2] {
        let settings = RobustSettings {
            misspecification: Misspecification::High,
            covariates: 19,
            seed,
            ..RobustSettings::default()
        };
        let table = move || Ok(robust(&settings)?.table);
        plans.push(plan("robust", &format!("robust 20 high {seed}"), table, Standardise::Raw, assumed));
    }
    plans.extend(generalised());
    plans
}

fn generalised() -> Vec<Plan> {
    let groups = |terms, rows, group, correlation, relevant, effect| Groups {
        terms,
        rows,
        group,
        correlation,
        relevant,
        effect,
        noise: 1.0,
        seed: 5,
    };
    let unit = CoefficientPrior::Normal { scale: 1.0 };
    let (uniform, tenth) = (ModelPrior::Uniform {}, ModelPrior::Bernoulli { p: 0.1 });
    let beta = ModelPrior::BetaBinomial { a: 1.0, b: 1.0 };
    let binary = assume(Likelihood::Logistic {}, unit, uniform);
    let count = assume(Likelihood::Poisson {}, unit, uniform);
    let with = |of: SelectionSettings, model_prior| SelectionSettings { model_prior, ..of };
    let g = |of: SelectionSettings| SelectionSettings { prior: CoefficientPrior::G { g: None }, ..of };
    let student = assume(Likelihood::StudentT { df: 4.0 }, unit, uniform);
    let cases = [
        ("logistic 3", groups(3, 60, 3, 0.95, 1, 1.0), Response::Binary, g(binary)),
        ("logistic 5 0.1", groups(5, 100, 2, 0.9, 2, 1.0), Response::Binary, with(binary, tenth)),
        ("logistic 6", groups(6, 150, 3, 0.99, 2, 0.8), Response::Binary, binary),
        ("logistic 8 beta", groups(8, 80, 4, 0.9, 2, 1.2), Response::Binary, with(g(binary), beta)),
        ("poisson 3", groups(3, 40, 3, 0.99, 1, 0.5), Response::Count, count),
        ("poisson 6 beta", groups(6, 60, 2, 0.95, 2, 0.3), Response::Count, with(count, beta)),
        ("poisson 8 0.1", groups(8, 100, 4, 0.99, 2, 0.4), Response::Count, with(g(count), tenth)),
        ("student-t 6", groups(6, 50, 3, 0.95, 2, 0.7), Response::Normal, student),
    ];
    let of = |(name, groups, response, assumed): (&str, Groups, Response, _)| {
        plan("generalised", name, move || Ok(groups.table(response)), Standardise::Full, assumed)
    };
    cases.into_iter().map(of).collect()
}

fn assume(likelihood: Likelihood, prior: CoefficientPrior, model_prior: ModelPrior) -> SelectionSettings {
    SelectionSettings { likelihood, prior, model_prior, ..SelectionSettings::default() }
}

fn plan(
    group: &'static str,
    name: &str,
    table: impl Fn() -> Result<RegressionData> + 'static,
    standardise: Standardise,
    settings: SelectionSettings,
) -> Plan {
    let question = move || Ok(Question::Selection(Arc::new(Selection::new(&table()?, standardise, &settings)?)));
    Plan { group, name: name.into(), question: Box::new(question), log_evidence: None }
}

/// The evidence of every model, or long chains where there are too many.
pub(super) fn truth(selection: &Selection, workers: &Workers) -> Result<Truth> {
    let space = selection.space();
    let Ok(models) = Catalogue::new(space, 1 << 16) else { return by_chains(selection, workers) };
    let models: Vec<Model> = (0..models.len()).map(|index| models.model(index)).collect::<Result<_, _>>()?;
    let one_mode = matches!(selection.settings().likelihood, Likelihood::Logistic {} | Likelihood::Poisson {});
    let most = if one_mode { FEW_WITH_ONE_MODE } else { FEW_PARAMETERS };
    let (few, many): (Vec<Model>, Vec<Model>) = models.into_iter().partition(|model| dim(space, model) <= most);
    let mut found = by_quadrature(selection, &few, workers)?;
    found.extend(by_particles(selection, &many, workers)?);
    let joint = |(model, Estimate { value, se }): (Model, Estimate)| {
        let value = value + selection.log_prior(&model);
        (model, Estimate { value, se })
    };
    Ok(Truth::new(space, &found.into_iter().map(joint).collect::<Vec<_>>()))
}

fn by_chains(selection: &Selection, workers: &Workers) -> Result<Truth> {
    let settings = RjmcmcSettings {
        seed: SEED,
        chains: 24,
        sweeps: 500_000,
        burn_in: 20_000,
        thin: 100,
        pseudo: Pseudo::of_selection(selection),
        ..RjmcmcSettings::default()
    };
    let chains = rjmcmc(selection, workers, &settings, &mut |_| std::ops::ControlFlow::Continue(()))?;
    ensure!(chains.rhat < 1.01, "chains did not mix: {}", chains.verdict.text);
    let likely = chains.models.iter().filter(|model| model.probability.value >= MIN_PROBABILITY / 5.0);
    Ok(Truth {
        parts: chains.inclusion.iter().map(|term| term.probability).collect(),
        models: likely.map(|model| (model.model.to_string(), model.probability)).collect(),
    })
}

fn by_quadrature(selection: &Selection, models: &[Model], workers: &Workers) -> Result<Vec<(Model, Estimate)>> {
    let limits = QuadratureLimits { parameters: FEW_WITH_ONE_MODE, tolerance: TOLERANCE, points: 1 << 22 };
    let mut found: Vec<_> = models.iter().map(|model| (model.clone(), None)).collect();
    workers.for_each(&mut found, |_, (model, found)| {
        *found = Some(evidence_by_quadrature(selection, model, &limits));
    });
    let estimate = |(model, found): (Model, Option<Result<Evidence, ExactError>>)| -> Result<(Model, Estimate)> {
        let evidence = found.context("every model is visited")?;
        Ok((model, evidence?.estimate()))
    };
    found.into_iter().map(estimate).collect()
}

/// From the prior, or from what is like it: in every model on its own, so nothing can be lost on the way from one to another.
fn by_particles(selection: &Selection, models: &[Model], workers: &Workers) -> Result<Vec<(Model, Estimate)>> {
    // Many models share an error among them, so that fewer particles do for each.
    let particles = if models.len() > 500 { 96 } else { 512 };
    let settings = AnnealSettings { runs: RUNS, particles, moves: 3, steps: 6, ..AnnealSettings::default() };
    let found = Evidences::new(selection, &settings, SEED)?.annealed(models, workers)?;
    let found = models.iter().zip(found).map(|(model, found)| {
        Ok((model.clone(), found.with_context(|| format!("all particles of {model} were lost"))?.estimate()))
    });
    found.collect()
}

/// The logarithm of the mean of evidences, with the error that their differences show; that of Student's t.
pub(super) fn mean_of(logs: &[f64]) -> Estimate {
    let count = logs.len() as f64;
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shares: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let mean = shares.iter().sum::<f64>() / count;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (count * (count - 1.0));
    let rough = ((count - 1.0) / (count - 3.0)).sqrt();
    Estimate { value: most + mean.ln(), se: rough * variance.sqrt() / mean }
}

fn dim(space: &dyn ModelSpace, model: &[u16]) -> usize {
    let mut active = vec![false; space.max_dim()];
    space.mark_active(model, &mut active);
    active.into_iter().filter(|active| *active).count()
}
