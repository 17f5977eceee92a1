//! Regressions with normal errors: all models are summed in closed form.

use std::sync::Arc;

use anyhow::Result;
use vti::problem::selection::{
    CoefficientPrior, EnumerationLimits, Likelihood, ModelPrior, RegressionData, Selection, SelectionSettings,
    Standardise, enumerate,
};
use vti::workers::Workers;

use super::known::{MIN_PROBABILITY, Plan, Question, Truth, exactly};
use super::tables::{Groups, Response, logarithms, with_squares};
use crate::table::read;

const UNIFORM: ModelPrior = ModelPrior::Uniform {};
const TENTH: ModelPrior = ModelPrior::Bernoulli { p: 0.1 };
const HUNDREDTH: ModelPrior = ModelPrior::Bernoulli { p: 0.01 };
const BETA: ModelPrior = ModelPrior::BetaBinomial { a: 1.0, b: 1.0 };
const G: CoefficientPrior = CoefficientPrior::G { g: None };
const UNIT: CoefficientPrior = CoefficientPrior::Normal { scale: 1.0 };

const HALD: &str = include_str!("../../../data/hald.csv");
const PROSTATE: &str = include_str!("../../../data/prostate.csv");
const SACHS: &str = include_str!("../../../data/sachs.csv");
const HIGH: &str = include_str!("../../../data/robust_high_8.csv");

/// Real tables and simulated ones.
pub(super) fn plans() -> Vec<Plan> {
    let prostate = |rows| move || read(PROSTATE, "lpsa", rows);
    let sachs = |response: &'static str, rows| move || Ok(logarithms(read(SACHS, response, rows)?));
    let mut plans = vec![
        plan("hald g", || read(HALD, "y", 13), G, None, UNIFORM),
        plan("hald normal beta", || read(HALD, "y", 13), UNIT, None, BETA),
        plan("prostate g", prostate(97), G, None, UNIFORM),
        plan("prostate g 0.1", prostate(97), G, None, TENTH),
        plan("prostate normal known", prostate(97), UNIT, Some(0.7), UNIFORM),
        plan("prostate 40 rows beta", prostate(40), UNIT, None, BETA),
        plan("prostate squares 14", || Ok(with_squares(read(PROSTATE, "lpsa", 97)?, 7)), G, None, UNIFORM),
        plan("prostate squares 15 beta", || Ok(with_squares(read(PROSTATE, "lpsa", 97)?, 8)), UNIT, None, BETA),
        plan("sachs praf 10", sachs("praf", 100), G, None, UNIFORM),
        plan("sachs PKA 10 0.01", sachs("PKA", 200), G, None, HUNDREDTH),
        plan("robust data normal", || read(HIGH, "y", 50), UNIT, None, UNIFORM),
    ];
    plans.extend(simulated());
    plans
}

fn simulated() -> Vec<Plan> {
    let groups = |terms, rows, group, correlation, relevant| Groups {
        terms,
        rows,
        group,
        correlation,
        relevant,
        effect: 1.0,
        noise: 1.0,
        seed: 3,
    };
    let weak = |groups: Groups| Groups { effect: 0.35, ..groups };
    let cases = [
        ("groups 3 r.9", groups(3, 40, 3, 0.9, 1), G, None, UNIFORM),
        ("groups 4 r.999", groups(4, 60, 2, 0.999, 2), UNIT, Some(1.0), UNIFORM),
        ("groups 6 r.99", groups(6, 40, 3, 0.99, 2), UNIT, None, BETA),
        ("groups 8 r.999", groups(8, 100, 2, 0.999, 3), G, None, UNIFORM),
        ("groups 8 r.95 weak", weak(groups(8, 50, 4, 0.95, 2)), UNIT, Some(1.0), TENTH),
        ("groups 10 r.9", groups(10, 200, 5, 0.9, 2), G, None, TENTH),
        ("dense 12 0.1", groups(12, 200, 1, 0.0, 8), UNIT, Some(1.0), TENTH),
        ("dense 12 0.01", groups(12, 200, 1, 0.0, 8), UNIT, Some(1.0), HUNDREDTH),
        ("groups 12 r.99", groups(12, 80, 3, 0.99, 3), G, None, BETA),
        ("groups 14 r.999", groups(14, 60, 2, 0.999, 3), UNIT, None, BETA),
        ("groups 15 r.95", groups(15, 50, 3, 0.95, 4), G, None, UNIFORM),
        ("groups 16 r.9 weak", weak(groups(16, 50, 4, 0.9, 3)), UNIT, None, UNIFORM),
        ("groups 16 r.99 0.1", groups(16, 50, 4, 0.99, 3), G, None, TENTH),
        ("groups 20 r.95", groups(20, 100, 4, 0.95, 4), G, None, BETA),
        ("groups 20 r.99 0.1", groups(20, 80, 5, 0.99, 3), UNIT, Some(1.0), TENTH),
    ];
    let of = |(name, groups, prior, sigma, models): (&str, Groups, _, _, _)| {
        plan(name, move || Ok(groups.table(Response::Normal)), prior, sigma, models)
    };
    cases.into_iter().map(of).collect()
}

fn plan(
    name: &str,
    table: impl Fn() -> Result<RegressionData> + 'static,
    prior: CoefficientPrior,
    sigma: Option<f64>,
    model_prior: ModelPrior,
) -> Plan {
    let settings = SelectionSettings {
        likelihood: Likelihood::Gaussian { sigma },
        prior,
        model_prior,
        ..SelectionSettings::default()
    };
    let question = move || Ok(Question::Selection(Arc::new(Selection::new(&table()?, Standardise::Full, &settings)?)));
    Plan { group: "gaussian", name: format!("gaussian {name}"), question: Box::new(question), log_evidence: None }
}

/// By the sum over all models.
pub(super) fn truth(selection: &Selection, workers: &Workers) -> Result<Truth> {
    let exact = enumerate(selection, workers, &EnumerationLimits::default())?;
    let likely = exact.ranking().into_iter().take_while(|&number| exact.probabilities[number] >= MIN_PROBABILITY / 5.0);
    let model = |number: usize| (exact.model(number).to_string(), exactly(exact.probabilities[number]));
    Ok(Truth {
        parts: exact.inclusion.iter().map(|&value| exactly(value)).collect(),
        models: likely.map(model).collect(),
    })
}
