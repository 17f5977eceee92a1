//! `vti enumerate`: the exact answer.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use vti::problem::Problem;
use vti::space::ModelSpace;

use super::deliver;
use crate::args::ProblemArgs;
use crate::config::Config;
use crate::exact::Exact;
use crate::failure::{Ending, Usage};
use crate::output::{finish_csv, table};
use crate::print;
use crate::samples::bits;
use crate::session::Session;
use crate::summary::Ordered;

/// Options of `vti enumerate`.
#[derive(Args)]
pub(crate) struct EnumerateArgs {
    /// A table (with --response), or a configuration file
    input: String,
    /// The column that is to be explained
    #[arg(long, value_name = "COLUMN")]
    response: Option<String>,
    #[command(flatten)]
    problem: ProblemArgs,
    /// Threads; 0: as many as there are cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
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
    let EnumerateArgs { input, response, problem, threads, top, out, json } = args;
    let mut config = match (response, input.ends_with(".toml")) {
        (Some(response), false) => Config::new(problem.problem(&input, response)),
        (None, true) => Config::read(input.as_ref(), &[])?,
        (None, false) => {
            return Err(Usage(format!("{input}: which column is the response?\nhint: --response COLUMN")).into());
        }
        (Some(_), true) => {
            return Err(Usage(format!(
                "{input}: a configuration names the response itself\nhint: leave --response out"
            ))
            .into());
        }
    };
    config.machine.threads = threads;
    let session = Session::new(config)?;
    let exact = Exact::find(&session.selection, &session.engine::<f64>()?)?;
    if let Some(path) = &out {
        let models = exact.leading(usize::MAX).into_iter().map(|number| describe(&session, &exact, number));
        deliver(Some(path), &csv_of(models)?)?;
    }
    let terms = session.selection.design().terms().iter().enumerate();
    let found = Found {
        log_evidence: exact.log_evidence,
        inclusion: Ordered(terms.map(|(term, (name, _))| (name.clone(), exact.inclusion(term))).collect()),
        models: exact.leading(top).into_iter().map(|number| describe(&session, &exact, number)).collect(),
    };
    print::data(&if json { serde_json::to_string_pretty(&found)? } else { text(&found) })?;
    Ok(Ending::Done)
}

fn describe(session: &Session, exact: &Exact, number: usize) -> FoundModel {
    let word = exact.word(number);
    FoundModel {
        label: session.selection.space().label(&word),
        size: word.iter().filter(|&&bit| bit == 1).count(),
        word: bits(&word),
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
    format!("{}\n\n{}\n\nlog evidence: {:.6}", table::plain(&inclusion), table::plain(&models), found.log_evidence)
}
