//! `vti enumerate`: the exact answer.

mod changepoints;
mod dag;
mod select;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use vti_report::files::{Cells, CsvTable};
use vti_report::table;

use super::deliver;
use crate::args::{ChangeArgs, GraphArgs, QuestionArgs};
use crate::config::ProblemConfig;
use crate::failure::{Ending, Usage};
use crate::print;
use crate::question::other_kind;

/// Options of `vti enumerate`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct EnumerateArgs {
    #[command(subcommand)]
    kind: Option<Kind>,
    #[command(flatten)]
    question: QuestionArgs,
    #[command(flatten)]
    shown: ShownArgs,
}

#[derive(Subcommand)]
enum Kind {
    /// All causal graphs of a table: linear equations with known noise, or --score bge, at most 5 nodes
    Dag(DagEnumeration),
    /// All numbers of change points
    Changepoints(ChangesEnumeration),
}

#[derive(Args)]
struct DagEnumeration {
    #[command(flatten)]
    question: GraphArgs,
    #[command(flatten)]
    shown: ShownArgs,
}

#[derive(Args)]
struct ChangesEnumeration {
    #[command(flatten)]
    question: ChangeArgs,
    #[command(flatten)]
    shown: ShownArgs,
}

/// What is shown, and how.
#[derive(Args)]
struct ShownArgs {
    /// Models that are shown
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Write all models to a CSV file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Leave cells as they are, also those that a spreadsheet would take for formulas
    #[arg(long)]
    raw_csv: bool,
}

#[derive(Clone, Serialize)]
struct FoundModel {
    word: String,
    label: String,
    size: usize,
    probability: f64,
    log_evidence: f64,
}

pub(crate) fn run(args: EnumerateArgs) -> Result<Ending> {
    let EnumerateArgs { kind, question, shown } = args;
    let (config, shown) = match kind {
        Some(Kind::Dag(DagEnumeration { question, shown })) => (question.settings(&[])?, shown),
        Some(Kind::Changepoints(ChangesEnumeration { question, shown })) => (question.settings(&[])?, shown),
        None => (question.settings()?, shown),
    };
    match config.problem {
        ProblemConfig::Select(_) => select::run(config, &shown),
        ProblemConfig::Dag(_) => dag::run(config, &shown),
        ProblemConfig::Changepoints(_) => changepoints::run(config, &shown),
        ProblemConfig::Own(_) => Err(other_kind(&config)),
        ProblemConfig::Mixture(_) | ProblemConfig::Peaks(_) => Err(Usage(format!(
            "{}: mixtures and peaks have no exact answer\nhint: `vti rjmcmc` runs chains",
            config.source.data
        ))
        .into()),
        ProblemConfig::Layers(_) => Err(Usage(format!(
            "{}: evidences of layers are not in closed form\nhint: `vti fit` finds them with their errors",
            config.source.data
        ))
        .into()),
    }
}

impl ShownArgs {
    /// Those models that are shown, and a table of all, most probable first, where that was asked for.
    fn take(&self, models: impl Iterator<Item = FoundModel>) -> Result<(Vec<FoundModel>, Option<Vec<u8>>)> {
        if self.out.is_none() {
            return Ok((models.take(self.top).collect(), None));
        }
        let names = ["model", "label", "size", "probability", "log_evidence"];
        let mut table = CsvTable::new(Cells::raw_if(self.raw_csv), names)?;
        let mut kept = Vec::new();
        for model in models {
            let FoundModel { word, label, size, probability, log_evidence } = &model;
            let numbers = [size.to_string(), probability.to_string(), log_evidence.to_string()];
            table.row([word, label].into_iter().chain(&numbers))?;
            if kept.len() < self.top {
                kept.push(model);
            }
        }
        Ok((kept, Some(table.bytes()?)))
    }

    /// Prints what was found, and then writes the table: it may not be possible to write.
    fn print<T: Serialize>(&self, found: &T, text: impl Fn(&T) -> String, all: Option<&[u8]>) -> Result<Ending> {
        print::data(&if self.json { serde_json::to_string_pretty(found)? } else { text(found) })?;
        if let (Some(path), Some(bytes)) = (&self.out, all) {
            deliver(Some(path), bytes)?;
        }
        Ok(Ending::Done)
    }
}

fn models_table(name: &str, models: &[FoundModel]) -> String {
    let mut rows = vec![[name, "probability", "log evidence"].map(String::from).to_vec()];
    rows.extend(models.iter().map(|model| {
        vec![model.label.clone(), format!("{:.6}", model.probability), format!("{:.4}", model.log_evidence)]
    }));
    table(&rows)
}
