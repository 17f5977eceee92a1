//! `vti enumerate`: the exact answer.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use vti::problem::Problem;
use vti::problem::selection::{Enumeration, EnumerationLimits, Method, enumerate};
use vti::space::ModelSpace;

use super::deliver;
use crate::args::QuestionArgs;
use crate::failure::Ending;
use crate::output::{finish_csv, table};
use crate::print;
use crate::question::Select;
use crate::session::Session;
use crate::summary::Ordered;

/// Options of `vti enumerate`.
#[derive(Args)]
pub(crate) struct EnumerateArgs {
    #[command(flatten)]
    question: QuestionArgs,
    /// Models that are shown
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Write all models to a CSV file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// What is printed for machines.
#[derive(Serialize)]
struct Found {
    method: Method,
    /// The largest error of a log evidence that numerical integration admits.
    error: f64,
    log_evidence: f64,
    inclusion: Ordered<f64>,
    models: Vec<FoundModel>,
}

#[derive(Serialize)]
struct FoundModel {
    word: String,
    label: String,
    size: usize,
    probability: f64,
    log_evidence: f64,
}

pub(crate) fn run(args: EnumerateArgs) -> Result<Ending> {
    let EnumerateArgs { question, top, out, json } = args;
    let session = Session::<Select>::new(question.settings()?)?;
    // Somebody who asks for it has the time.
    let limits = EnumerationLimits { terms_with_scale: EnumerationLimits::default().terms, ..Default::default() };
    let exact = enumerate(&session.question.selection, &session.engine::<f64>()?, &limits)?;
    let ranking = exact.ranking();
    if let Some(path) = &out {
        let models = ranking.iter().map(|&number| describe(&session, &exact, number));
        deliver(Some(path), &csv_of(models)?)?;
    }
    let terms = session.question.selection.design().terms().iter().enumerate();
    let found = Found {
        method: exact.method,
        error: exact.error,
        log_evidence: exact.log_evidence,
        inclusion: Ordered(terms.map(|(term, (name, _))| (name.clone(), exact.inclusion[term])).collect()),
        models: ranking.iter().take(top).map(|&number| describe(&session, &exact, number)).collect(),
    };
    print::data(&if json { serde_json::to_string_pretty(&found)? } else { text(&found) })?;
    Ok(Ending::Done)
}

fn describe(session: &Session<Select>, exact: &Enumeration, number: usize) -> FoundModel {
    let word = exact.model(number);
    FoundModel {
        label: session.question.selection.space().label(&word),
        size: word.iter().filter(|&&bit| bit == 1).count(),
        word: word.to_string(),
        probability: exact.probabilities[number],
        log_evidence: exact.log_evidences[number],
    }
}

fn csv_of(models: impl Iterator<Item = FoundModel>) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["model", "label", "size", "probability", "log_evidence"])?;
    for FoundModel { word, label, size, probability, log_evidence } in models {
        writer.write_record([word, label, size.to_string(), probability.to_string(), log_evidence.to_string()])?;
    }
    finish_csv(writer)
}

fn text(found: &Found) -> String {
    let mut inclusion = vec![vec!["inclusion probability".to_string(), "exact".into()]];
    inclusion.extend(found.inclusion.0.iter().map(|(name, value)| vec![name.clone(), format!("{value:.6}")]));
    let mut models = vec![vec!["model".to_string(), "probability".into(), "log evidence".into()]];
    models.extend(found.models.iter().map(|model| {
        vec![model.label.clone(), format!("{:.6}", model.probability), format!("{:.4}", model.log_evidence)]
    }));
    let method = match found.method {
        Method::ClosedForm => "in closed form".to_string(),
        Method::Quadrature => format!("by quadrature, to within {:.0e} nats", found.error),
    };
    let (inclusion, models) = (table::plain(&inclusion), table::plain(&models));
    format!("{inclusion}\n\n{models}\n\nlog evidence: {:.6} ({method})", found.log_evidence)
}
