//! `vti rjmcmc`: the baseline, reversible jump chains (paper, appendix F.3, "Baseline reversible jump MCMC").

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use vti::answer::Ordered;
use vti::check::Verdict;
use vti::memory::MemoryEstimate;
use vti::rjmcmc::{Acceptance, Chains, Inclusion, Progress, Pseudo, RjmcmcError, RjmcmcSettings, rjmcmc};
use vti::stats::Estimate;
use vti_report::files::{Cells, CsvTable};
use vti_report::table;

use super::deliver;
use crate::args::QuestionArgs;
use crate::config::ProblemConfig;
use crate::failure::{Ending, Usage};
use crate::memory;
use crate::print;
use crate::progress::duration;
use crate::question::{Layered, Mixed, PeakSearch, Question, Select, other_kind};
use crate::session::Session;
use crate::signals::Signals;

/// Options of `vti rjmcmc`.
#[derive(Args)]
pub(crate) struct RjmcmcArgs {
    #[command(flatten)]
    question: QuestionArgs,
    /// Seed of all randomness
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Chains, side by side
    #[arg(long, value_name = "N")]
    chains: Option<usize>,
    /// Sweeps of each chain after the burn-in
    #[arg(long, value_name = "N")]
    sweeps: Option<usize>,
    /// Sweeps before that, in which steps are adapted
    #[arg(long, value_name = "N")]
    burn_in: Option<usize>,
    /// Keep a state every so many sweeps
    #[arg(long, value_name = "N")]
    thin: Option<usize>,
    /// Models that are shown
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Write all models that were visited to a CSV file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
    /// Leave cells as they are, also those that a spreadsheet would take for formulas
    #[arg(long)]
    raw_csv: bool,
}

/// What is printed for machines.
#[derive(Serialize)]
struct Found<'a> {
    inclusion: Ordered<Inclusion>,
    models: Vec<FoundModel<'a>>,
    rhat: f64,
    effective: f64,
    acceptance: Acceptance,
    chains: usize,
    kept: usize,
    seconds: f64,
    warnings: &'a [String],
    verdict: &'a Verdict,
}

#[derive(Serialize)]
struct FoundModel<'a> {
    word: String,
    label: &'a str,
    draws: usize,
    probability: Estimate,
}

pub(crate) fn run(args: RjmcmcArgs) -> Result<Ending> {
    let config = args.question.clone().settings()?;
    let refuse = |what: &str, hint: &str| {
        let data = &config.source.data;
        Err(Usage(format!("{data}: there are no reversible jump chains for {what}\nhint: {hint}")).into())
    };
    match &config.problem {
        ProblemConfig::Select(_) => {
            let session = Session::<Select>::new(config)?;
            // The prior of the coefficients, as in the paper, where it is normal.
            let pseudo = Pseudo::of_selection(&session.question.selection);
            let names = session.question.selection.design().terms().iter().map(|(name, _)| name.clone()).collect();
            run_chains(args, &session, pseudo, names)
        }
        ProblemConfig::Mixture(_) => run_chains(args, &Session::<Mixed>::new(config)?, Pseudo::default(), Vec::new()),
        ProblemConfig::Peaks(_) => {
            run_chains(args, &Session::<PeakSearch>::new(config)?, Pseudo::default(), Vec::new())
        }
        ProblemConfig::Layers(_) => run_chains(args, &Session::<Layered>::new(config)?, Pseudo::default(), Vec::new()),
        ProblemConfig::Own(_) => Err(other_kind(&config)),
        ProblemConfig::Changepoints(_) => refuse("change points", "`vti enumerate` gives the exact answer"),
        ProblemConfig::Dag(_) => refuse(
            "causal graphs",
            "`vti enumerate` gives the exact answer for linear equations with known noise over at most 5 nodes; `vti refine` runs \
             chains on a trained run",
        ),
    }
}

/// Chains of a question whose models have parts of these names.
fn run_chains<Q: Question>(
    args: RjmcmcArgs,
    session: &Session<Q>,
    pseudo: Pseudo,
    names: Vec<String>,
) -> Result<Ending> {
    let RjmcmcArgs { question: _, seed, chains, sweeps, burn_in, thin, top, out, json, quiet, raw_csv } = args;
    let default = RjmcmcSettings::default();
    let settings = RjmcmcSettings {
        seed: seed.unwrap_or(session.config.train.seed),
        chains: chains.unwrap_or(default.chains),
        sweeps: sweeps.unwrap_or(default.sweeps),
        burn_in: burn_in.unwrap_or(default.burn_in),
        thin: thin.unwrap_or(default.thin),
        pseudo,
        ..default
    };
    if !quiet {
        session.question.notes().iter().for_each(|note| print::talk(note));
    }
    let problem = session.question.problem();
    memory::refuse_chains(&MemoryEstimate::of_rjmcmc(&*problem, &settings), "--")?;
    let signals = Signals::listen()?;
    let (start, bar) = (Instant::now(), !quiet && std::io::stderr().is_terminal());
    let mut observe = |progress: &Progress| {
        if bar {
            print::redraw(&line(progress, start.elapsed().as_secs_f64()));
        }
        if signals.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let found = rjmcmc(&*problem, &session.workers()?, &settings, &mut observe);
    if bar {
        print::redraw("");
    }
    let chains = match found {
        Err(RjmcmcError::Stopped) => {
            print::talk("interrupted before the chains had found anything\nhint: a smaller --burn-in ends sooner");
            return Ok(Ending::Interrupted);
        }
        other => other?,
    };
    let ending = if signals.stopped() { Ending::Interrupted } else { Ending::Done };
    // Printed first: the file may not be possible to write.
    let found = describe(names, &chains, top, start.elapsed().as_secs_f64());
    if json {
        print::data(&serde_json::to_string_pretty(&found)?)?;
    } else if !quiet {
        print::data(&text(&found))?;
    }
    if let Some(path) = &out {
        deliver(Some(path), &csv_of(&chains, Cells::raw_if(raw_csv))?)?;
    }
    Ok(ending)
}

/// How far chains are.
fn line(progress: &Progress, seconds: f64) -> String {
    let Progress { sweeps, total, burning_in, acceptance } = progress;
    let left = duration(seconds / (*sweeps).max(1) as f64 * (total - sweeps) as f64);
    let phase = if *burning_in { "burning in" } else { "sampling" };
    let rate = 100.0 * acceptance.birth.rate();
    format!("{phase}: sweep {sweeps} of {total}  births accepted {rate:.0} %  {left} left")
}

fn describe(names: Vec<String>, chains: &Chains, top: usize, seconds: f64) -> Found<'_> {
    Found {
        inclusion: Ordered(names.into_iter().zip(chains.inclusion.iter().copied()).collect()),
        models: chains.models.iter().take(top).map(model).collect(),
        rhat: chains.rhat,
        effective: chains.effective,
        acceptance: chains.acceptance,
        chains: chains.chains,
        kept: chains.kept,
        seconds,
        warnings: &chains.warnings,
        verdict: &chains.verdict,
    }
}

fn model(share: &vti::rjmcmc::ModelShare) -> FoundModel<'_> {
    FoundModel {
        word: share.model.to_string(),
        label: &share.label,
        draws: share.draws,
        probability: share.probability,
    }
}

fn csv_of(chains: &Chains, cells: Cells) -> Result<Vec<u8>> {
    let mut table = CsvTable::new(cells, ["model", "label", "draws", "probability", "se"])?;
    for FoundModel { word, label, draws, probability } in chains.models.iter().map(model) {
        let numbers = [draws.to_string(), probability.value.to_string(), probability.se.to_string()];
        table.row([word.as_str(), label].into_iter().chain(numbers.iter().map(String::as_str)))?;
    }
    Ok(table.bytes()?)
}

fn text(found: &Found<'_>) -> String {
    let shown = |estimate: &Estimate| format!("{:.4} ± {:.4}", estimate.value, estimate.se);
    let optional = |value: Option<f64>, digits: usize| value.map_or("-".into(), |value| format!("{value:.digits$}"));
    let mut inclusion = vec![["inclusion probability", "by chains", "R̂", "effective"].map(String::from).to_vec()];
    inclusion.extend(found.inclusion.0.iter().map(|(name, term)| {
        vec![name.clone(), shown(&term.probability), optional(term.rhat, 3), optional(term.effective, 0)]
    }));
    let mut models = vec![["model", "by chains"].map(String::from).to_vec()];
    models.extend(found.models.iter().map(|model| vec![model.label.to_string(), shown(&model.probability)]));
    let Found { acceptance, chains, kept, seconds, verdict, .. } = found;
    let percent = |accepted: &vti::rjmcmc::Accepted| format!("{:.1} %", 100.0 * accepted.rate());
    let moves = format!(
        "accepted: births {}, deaths {}, swaps {}, steps within models {}",
        percent(&acceptance.birth),
        percent(&acceptance.death),
        percent(&acceptance.swap),
        percent(&acceptance.within)
    );
    let warnings: String = found.warnings.iter().map(|warning| format!("\nwarning: {warning}")).collect();
    // Models without parts are told apart by their labels alone.
    let inclusion = if found.inclusion.0.is_empty() { String::new() } else { table(&inclusion) + "\n\n" };
    format!(
        "{}{}\n\n{chains} chains, {kept} states kept of each, in {}\n{moves}{warnings}\n{}",
        inclusion,
        table(&models),
        duration(*seconds),
        verdict.text
    )
}
