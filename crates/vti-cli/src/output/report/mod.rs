//! What the page is made of.

mod dag;

use vti_report::{Coefficient, Comparison, Fact, Inclusion, Level, ModelRow, Pairs, Report, Trace, Verdict};

use dag::dag;

use crate::answer::MOST_MODELS;
use crate::samples::Samples;
use crate::summary::{self, Found, Method, ModelSummary, SelectFound, Summary, VerdictWord};

/// Models on the page.
const MODELS: usize = 30;

/// Draws of a coefficient, and of the pairs plot.
const DRAWS: usize = 2000;

/// Parameters in the pairs plot.
const PAIRS: usize = 6;

/// The page of a run.
pub(crate) fn report(summary: &Summary, samples: &Samples, trace: Vec<Trace>, settings: String) -> Report {
    let about = match &summary.found {
        Found::Select(found) => select(summary, found, samples),
        Found::Dag(found) => dag(summary, found, samples),
    };
    Report {
        subtitle: format!(
            "{}, {} steps in {:.0} s on {} threads ({})",
            about.subtitle, summary.steps, summary.seconds.train, summary.threads, summary.data.path
        ),
        verdict: Verdict {
            level: match summary.verdict.kind {
                VerdictWord::Trust => Level::Trust,
                VerdictWord::Corrected => Level::Corrected,
                VerdictWord::DoNotTrust => Level::DoNotTrust,
            },
            text: summary.verdict.text.clone(),
        },
        facts: facts(summary),
        warnings: summary.warnings.clone(),
        trace,
        log_evidence: Some(summary.log_evidence.estimate).filter(|value| value.is_finite()),
        correction: correction(summary.correction).into(),
        exact_name: summary.exact.map(|_| "exact (enumeration)".into()),
        settings,
        version: summary.version.clone(),
        ..about
    }
}

/// What a selection found.
fn select(summary: &Summary, found: &SelectFound, samples: &Samples) -> Report {
    let plus = |model: &ModelSummary| plus(found, model);
    let rows = summary.models.iter().take(MODELS);
    let data = &summary.data;
    Report {
        title: format!("Which covariates matter for {}?", data.response.as_deref().unwrap_or_default()),
        subtitle: format!("{} rows, {} optional terms", data.rows, data.terms.unwrap_or_default()),
        models: rows.map(|model| model_row(plus(model), model)).collect(),
        inclusion: inclusion(found),
        coefficients: coefficients(&found.coefficients.0, samples),
        pairs: pairs(summary, samples, plus),
        ..Report::default()
    }
}

/// Goes on from "Corrected …"; the page has words of its own for weights.
fn correction(method: Method) -> &'static str {
    match method {
        Method::Weights => "",
        Method::Factors => "weighs draws from q, node by node, by how probable the posterior finds them",
        Method::Annealed => {
            "has evidences of nodes, found from the prior by annealed particles, in the place of q's bounds"
        }
        Method::Chains => "is what chains found that have q as their proposal",
    }
}

fn facts(summary: &Summary) -> Vec<Fact> {
    let fact = |name: &str, value: String, note: &str| Fact { name: name.into(), value, note: note.into() };
    let evidence = summary.log_evidence;
    let models_name = match summary.found {
        Found::Select(_) => "models met",
        Found::Dag(_) => "graphs met",
    };
    let mut facts = vec![
        fact("log evidence", format!("{:.3} ± {:.3}", evidence.estimate, evidence.se), "log p(y), corrected"),
        fact("bound", format!("{:.3} ± {:.3}", summary.elbo.mean, summary.elbo.se), "at most the log evidence"),
        fact(
            "k̂",
            evidence.khat.map_or_else(|| "–".into(), |khat| format!("{khat:.2}")),
            match summary.correction {
                Method::Annealed => "of q's parameters; edges and graphs are corrected without weights",
                _ => "below 0.7: weights can correct q",
            },
        ),
        fact(models_name, models_met(summary), "among the draws"),
        fact("time", format!("{:.0} s", summary.seconds.train + summary.seconds.check), "training and check"),
    ];
    if let Some(exact) = summary.exact {
        let value = format!("{:.4} → {:.4}", exact.total_variation.q, exact.total_variation.corrected);
        facts.push(fact("distance to exact", value, "total variation, learned → corrected"));
    }
    match summary.correction {
        Method::Weights | Method::Factors => {}
        Method::Annealed => facts.push(fact("corrected by", "annealing".into(), "evidences of nodes from the prior")),
        Method::Chains => facts.push(fact("corrected by", "chains".into(), "exact in the limit")),
    }
    facts
}

/// A summary lists a limited number.
fn models_met(summary: &Summary) -> String {
    let count = summary.models.len();
    if count < MOST_MODELS { count.to_string() } else { format!("≥ {count}") }
}

fn model_row(label: String, model: &ModelSummary) -> ModelRow {
    ModelRow {
        label,
        size: model.size,
        probability: Comparison { q: model.q, corrected: model.corrected, se: model.se, exact: model.exact },
        log_evidence: model.log_evidence.map(|evidence| (evidence.value, evidence.se)),
        khat: model.khat,
    }
}

/// The terms of a model as `a + b`.
fn plus(found: &SelectFound, model: &ModelSummary) -> String {
    let terms = found.inclusion.0.iter().zip(model.word.bytes());
    let names: Vec<&str> = terms.filter(|(_, bit)| *bit == b'1').map(|((name, _), _)| name.as_str()).collect();
    if names.is_empty() { "none of them".into() } else { names.join(" + ") }
}

fn inclusion(found: &SelectFound) -> Vec<Inclusion> {
    let terms = found.inclusion.0.iter().map(|(name, found)| Inclusion {
        name: name.clone(),
        probability: Comparison { q: found.q, corrected: found.corrected, se: found.se, exact: found.exact },
    });
    terms.collect()
}

fn coefficients(found: &[(String, summary::Coefficient)], samples: &Samples) -> Vec<Coefficient> {
    let weights = samples.weights();
    let entries = found.iter().enumerate().map(|(parameter, (name, found))| {
        let rows: Vec<usize> =
            (0..samples.len()).filter(|&row| samples.value(row, parameter).is_some() && weights[row] > 0.0).collect();
        // Weights that sum to 1 do so up to rounding only.
        let in_every_model = samples.models.iter().all(|model| model.active[parameter]);
        let inclusion = if in_every_model { 1.0 } else { rows.iter().map(|&row| weights[row]).sum() };
        let rows = thin(&rows, &weights, DRAWS);
        Coefficient {
            name: name.clone(),
            mean: Comparison { q: found.q, corrected: found.corrected, se: found.se, exact: None },
            sd: found.sd,
            interval: (found.interval[0], found.interval[1]),
            inclusion: f64::clamp(inclusion, 0.0, 1.0),
            draws: rows.iter().filter_map(|&row| samples.value(row, parameter)).collect(),
            weights: equal(rows.len()),
        }
    });
    entries.collect()
}

fn equal(count: usize) -> Vec<f64> {
    vec![1.0 / count.max(1) as f64; count]
}

/// At most so many rows, as often as their weights say (systematic resampling): they then count alike.
fn thin(rows: &[usize], weights: &[f64], most: usize) -> Vec<usize> {
    let total: f64 = rows.iter().map(|&row| weights[row]).sum();
    let count = most.min(rows.len());
    let (mut sum, mut next, mut chosen) = (0.0, 0.5, Vec::with_capacity(count));
    for &row in rows {
        sum += weights[row] / total * count as f64;
        while next < sum && chosen.len() < count {
            chosen.push(row);
            next += 1.0;
        }
    }
    chosen
}

fn pairs(summary: &Summary, samples: &Samples, label: impl Fn(&ModelSummary) -> String) -> Option<Pairs> {
    let top = summary.models.first()?;
    let model = samples.models.iter().position(|model| model.word == top.word)?;
    let active = &samples.models[model].active;
    // Slopes first: the intercept and the scale of the errors are there in every model.
    let mut parameters: Vec<usize> = (0..samples.names.len()).filter(|&parameter| active[parameter]).collect();
    let comes_last = |name: &str| name == "intercept" || name == "sigma" || name.starts_with("sigma.");
    parameters.sort_by_key(|&parameter| comes_last(&samples.names[parameter]));
    parameters.truncate(PAIRS);
    let weights = samples.weights();
    let rows: Vec<usize> = (0..samples.len()).filter(|&row| samples.model[row] == model).collect();
    let rows: Vec<usize> = rows.iter().step_by(rows.len().div_ceil(DRAWS).max(1)).copied().collect();
    let total: f64 = rows.iter().map(|&row| weights[row]).sum();
    let column = |&parameter: &usize| rows.iter().filter_map(|&row| samples.value(row, parameter)).collect();
    Some(Pairs {
        label: label(top),
        names: parameters.iter().map(|&parameter| samples.names[parameter].clone()).collect(),
        draws: parameters.iter().map(column).collect(),
        weights: rows.iter().map(|&row| weights[row] / total).collect(),
    })
}
