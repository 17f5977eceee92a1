//! Chains over models with evidences in closed form: how long until every inclusion agrees between chains.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use vti::device::Cpu;
use vti::problem::Problem;
use vti::problem::selection::simulate::{CorrelatedSettings, correlated};
use vti::problem::selection::{ClosedForm, CoefficientPrior, ModelPrior, Selection, SelectionSettings, Standardise};
use vti::search::{Estimator, SearchSettings, Searched, Target, learn_models, search};
use vti::workers::Workers;

use crate::Options;
use crate::report::{Line, Report};

/// A table, and what is assumed of it.
struct Case {
    name: &'static str,
    table: CorrelatedSettings,
    settings: SelectionSettings,
    target: &'static str,
}

fn cases() -> Vec<Case> {
    let table = |covariates, rows, correlation| CorrelatedSettings {
        rows,
        covariates,
        correlation,
        ..CorrelatedSettings::default()
    };
    let defaults = SelectionSettings::default();
    let sparse = ModelPrior::BetaBinomial { a: 1.0, b: 1.0 };
    let normal = CoefficientPrior::Normal { scale: 1.0 };
    let case = |name, table, prior, model_prior, target| Case {
        name,
        table,
        settings: SelectionSettings { prior, model_prior, ..defaults },
        target,
    };
    vec![
        case("200x2000", table(200, 2000, 0.5), defaults.prior, defaults.model_prior, "<= 30"),
        case("200x2000 r.95", table(200, 2000, 0.95), defaults.prior, defaults.model_prior, "<= 30"),
        case("2000x200", table(2000, 200, 0.5), normal, sparse, "<= 120"),
        case("2000x200 r.95", table(2000, 200, 0.95), normal, sparse, "<= 120"),
    ]
}

/// Runs everything.
pub(crate) fn run(options: &Options) -> Result<()> {
    let notes = vec![
        format!("Covariates x rows, {} threads, default settings; until R-hat of every inclusion is 1.01.", options.threads),
        "10 relevant covariates with effect 0.5, noise 1; neighbours are correlated 0.5 or 0.95. 200: g-prior, all models alike; \
         2000: normal prior with unknown scale, beta-binomial model prior."
            .into(),
    ];
    let mut report = Report::new("search", options, notes);
    let workers = Workers::new(options.threads)?;
    for case in cases().iter().filter(|case| options.wants(case.name)) {
        measure(case, options, &workers, &mut report)?;
    }
    report.save(options)
}

fn measure(case: &Case, options: &Options, workers: &Workers, report: &mut Report) -> Result<()> {
    let simulated = correlated(&case.table)?;
    let start = Instant::now();
    let selection = Arc::new(Selection::new(&simulated.table, Standardise::Full, &case.settings)?);
    let setting_up = start.elapsed().as_secs_f64();
    let target =
        Target { space: selection.space(), log_prior: &|word| selection.log_prior(word), starts: &[], workers };
    let mut settings = SearchSettings::default();
    if options.quick {
        settings.iterations = 20_000;
    }
    let start = Instant::now();
    let found = search(&target, &mut ClosedForm::new(&selection)?, &settings, &mut |_| true)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut push =
        |what: &str, value: f64, unit, target: &str| report.push(Line::figure(case.name, what, value, unit, target));
    push("setting up", setting_up, "s", "")?;
    push("search", seconds, "s", case.target)?;
    push("largest R-hat of an inclusion", found.diagnosis.rhat, "", "<= 1.01")?;
    push("smallest effective sample size of an inclusion", found.diagnosis.effective, "", ">= 400")?;
    let largest = found.features.iter().map(|feature| feature.probability.se).fold(0.0, f64::max);
    push("largest standard error of an inclusion", largest, "", "")?;
    push("iterations of each chain", found.iterations as f64, "", "")?;
    push("evidences per second", found.asked as f64 / seconds, "", "")?;
    let by_visits = if found.estimator == Estimator::Visits { "by visits" } else { "by evidences" };
    push(&format!("mass that was not met (probabilities {by_visits})"), found.unmet, "", "")?;
    let size: f64 = found.features.iter().map(|feature| feature.by_visits.share).sum();
    push("mean number of covariates in a model", size, "", "")?;
    learn(case, &selection, (&found, &settings), (seconds, workers), report)?;
    report.push(Line::figure(case.name, "peak memory of the process so far", peak_memory(), "MB", "<= 2000"))
}

/// q(m) learned on what was found.
fn learn(
    case: &Case,
    selection: &Arc<Selection>,
    (found, settings): (&Searched, &SearchSettings),
    (searching, workers): (f64, &Workers),
    report: &mut Report,
) -> Result<()> {
    let mut push =
        |what: &str, value: f64, unit, target: &str| report.push(Line::figure(case.name, what, value, unit, target));
    let problem: Arc<dyn Problem> = selection.clone();
    let (device, start) = (Cpu::<f32>::on(workers.clone()), Instant::now());
    let learned = learn_models(&device, &problem, found, &mut ClosedForm::new(selection)?, settings, &mut |_| true)?;
    let seconds = start.elapsed().as_secs_f64();
    push("learning q(m) on what was found", seconds, "s", "")?;
    push("search and learning", searching + seconds, "s", case.target)?;
    let Some(learned) = learned else { return Ok(()) };
    push("k-hat of its weights", learned.tail.khat.unwrap_or(f64::NAN), "", "")?;
    push(
        "log evidence by weights, minus its bound: KL of q(m)",
        learned.log_evidence.value - learned.elbo.value,
        "nats",
        "",
    )?;
    push(
        "log evidence by weights, minus that by chains",
        learned.log_evidence.value - found.log_evidence.value,
        "nats",
        "",
    )?;
    push("standard error of the former", learned.log_evidence.se, "nats", "")?;
    push("standard error of the latter", found.log_evidence.se, "nats", "")?;
    let parts = || found.features.iter().zip(&learned.features).zip(&learned.weighed);
    let of_q = parts().map(|((chains, q), _)| (chains.probability.value - q).abs()).fold(0.0, f64::max);
    let weighed =
        parts().map(|((chains, _), weighed)| (chains.probability.value - weighed.value).abs()).fold(0.0, f64::max);
    push("largest difference of an inclusion: q(m), chains", of_q, "", "")?;
    push("largest difference of an inclusion: weights, chains", weighed, "", "")
}

/// What the system says; 0 where it does not.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(0.0, |kilobytes| kilobytes / 1024.0)
}
