//! `vti check` and `vti refine`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti::answer::{Run, Seconds};
use vti::check::Depth;
use vti::device::Device;

use crate::args::Look;
use crate::closed_form;
use crate::conclude::{Chains, conclude, cut_short, search_cut_short, show};
use crate::config::{Config, Method};
use crate::failure::{Ending, Usage};
use crate::progress::{self, Checking};
use crate::question::{Job, Question, start};
use crate::rundir::RunDir;
use crate::session::Session;
use crate::signals::Signals;

/// Options of `vti check`.
#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The run directory
    dir: PathBuf,
    /// Draws
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..))]
    draws: Option<u64>,
    /// How far to look beyond what was learned; by default as far as the run
    #[arg(long, value_enum)]
    depth: Option<Look>,
    /// Print summary.json instead of tables
    #[arg(long)]
    json: bool,
}

/// Options of `vti refine`.
#[derive(Args)]
pub(crate) struct RefineArgs {
    /// The run directory
    dir: PathBuf,
    /// Chains, side by side
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    chains: Option<u64>,
    /// Iterations that are kept
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(4..))]
    iterations: Option<u64>,
    /// Print summary.json instead of tables
    #[arg(long)]
    json: bool,
}

pub(crate) fn check(args: &CheckArgs) -> Result<Ending> {
    let (dir, mut config) = RunDir::open(&args.dir)?;
    config.check.draws = args.draws.map_or(config.check.draws, |draws| draws as usize);
    // Who checks q does not want another one.
    config.check.lesson.rounds = 0;
    config.check.opinion.depth = args.depth.map_or(config.check.opinion.depth, Depth::from);
    start(config, Again { dir: &dir, chains: Chains::Settings, json: args.json })
}

pub(crate) fn refine(args: &RefineArgs) -> Result<Ending> {
    let (dir, mut config) = RunDir::open(&args.dir)?;
    config.check.lesson.rounds = 0;
    let settings = &mut config.chains.chains;
    settings.chains = args.chains.map_or(settings.chains, |chains| chains as usize);
    settings.iterations = args.iterations.map_or(settings.iterations, |iterations| iterations as usize);
    start(config, Again { dir: &dir, chains: Chains::Always, json: args.json })
}

/// A posterior that is checked again.
struct Again<'a> {
    dir: &'a RunDir,
    chains: Chains,
    json: bool,
}

impl Job for Again<'_> {
    fn run<Q: Question, D: Device>(self, session: Session<Q>, device: D) -> Result<Ending> {
        let Self { dir, chains, json } = self;
        if !session.config.is_learned() && chains == Chains::Always {
            return Err(nothing_to_refine(&session.config, dir).into());
        }
        let signals = Signals::listen_if(session.config.machine.method != Method::Exact)?;
        if !session.config.is_learned() {
            let answer = closed_form::conclude(&session, dir, device.workers(), &signals, false)?;
            answer.map(|answer| show(&answer, json)).transpose()?;
            return Ok(signals.ending(&search_cut_short(dir)));
        }
        let posterior = session.posterior(dir, &device)?;
        let replicate = session.config.replicate(posterior.seed());
        let run = known_run(dir, posterior.warnings(), replicate)?;
        let checking = Checking::new(false, &*session.problem(), &signals);
        let answer = conclude(&session, dir, &device, posterior, run, chains, checking)?;
        show(&answer, json)?;
        Ok(signals.ending(&cut_short(dir)))
    }
}

/// Chains with q as their proposal need a q.
fn nothing_to_refine(config: &Config, dir: &RunDir) -> Usage {
    let (shown, exact) = (dir.path().display(), config.machine.method == Method::Exact);
    let more = if exact {
        format!("`vti sample {shown} -n N` gives more draws")
    } else {
        format!("`vti check {shown}` runs the chains anew")
    };
    let what = if exact { "the answer is exact" } else { "chains over models answered, without a q" };
    Usage(format!("{shown}: {what}, there is nothing to refine\nhint: {more}; a new run with --method vti learns q"))
}

/// What a finished run said about itself, or what an interrupted one has come to.
fn known_run(dir: &RunDir, warnings: &[String], replicate: Option<usize>) -> Result<Run> {
    if let Ok(answer) = dir.read_answer() {
        return Ok(answer.run);
    }
    let last = progress::lines(&dir.progress())?.into_iter().rfind(|line| line.replicate == replicate);
    Ok(Run {
        steps: last.map_or(0, |line| line.step),
        stop: "not finished".into(),
        seconds: Seconds { train: last.map_or(0.0, |line| line.seconds), check: 0.0 },
        warnings: warnings.to_vec(),
        ..Run::default()
    })
}
