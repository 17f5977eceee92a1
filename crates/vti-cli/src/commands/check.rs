//! `vti check` and `vti refine`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti::answer::{Run, Seconds};
use vti::check::Depth;
use vti::device::Device;
use vti::posterior::Posterior;

use crate::args::Look;
use crate::budget::Budget;
use crate::checking::Checking;
use crate::closed_form;
use crate::conclude::{self, Chains, Wanted, cut_short, search_cut_short};
use crate::config::{Config, Method};
use crate::failure::{Ending, Usage};
use crate::memory;
use crate::progress;
use crate::question::{Job, Question, start};
use crate::rundir::RunDir;
use crate::session::Session;
use crate::signals::Signals;

/// What becomes of a result.
#[derive(Args)]
struct ShownArgs {
    /// Write the result even where it says less than the one before. Without it the files stay where the look was cut short,
    /// was not a full one and ends in a worse verdict, or has errors more than 1.5 times as large; a full look that ends in a
    /// worse verdict is written, and says so
    #[arg(long)]
    force: bool,
    /// Print summary.json instead of tables
    #[arg(long)]
    json: bool,
}

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
    /// So many times the work of the run's settings (check.anneal.work; by default as much as training took, and some seconds at least) may go into
    /// evidences of the nodes of non-linear graphs
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    effort: u64,
    #[command(flatten)]
    shown: ShownArgs,
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
    #[command(flatten)]
    shown: ShownArgs,
}

pub(crate) fn check(args: &CheckArgs) -> Result<Ending> {
    let (dir, mut config) = RunDir::open(&args.dir)?;
    config.check.anneal.effort *= args.effort as f64;
    config.check.draws = args.draws.map_or(config.check.draws, |draws| draws as usize);
    // Who checks q does not want another one.
    config.check.lesson.rounds = 0;
    config.check.opinion.depth = args.depth.map_or(config.check.opinion.depth, Depth::from);
    again(config, &dir, Chains::Settings, &args.shown)
}

pub(crate) fn refine(args: &RefineArgs) -> Result<Ending> {
    let (dir, mut config) = RunDir::open(&args.dir)?;
    config.check.lesson.rounds = 0;
    let settings = &mut config.chains.chains;
    settings.chains = args.chains.map_or(settings.chains, |chains| chains as usize);
    settings.iterations = args.iterations.map_or(settings.iterations, |iterations| iterations as usize);
    again(config, &dir, Chains::Always, &args.shown)
}

fn again(config: Config, dir: &RunDir, chains: Chains, shown: &ShownArgs) -> Result<Ending> {
    let _lock = dir.claim_run()?;
    let signals = Signals::listen()?;
    signals.end_with(&undone(dir));
    start(config, Again { dir, chains, shown, signals: &signals })
}

/// What is said of a check that ended before there was anything to write.
fn undone(dir: &RunDir) -> String {
    let shown = dir.path().display();
    format!("interrupted; the files in {shown} are as they were\nhint: `vti check {shown}` begins again")
}

/// A posterior that is checked again.
struct Again<'a> {
    dir: &'a RunDir,
    chains: Chains,
    shown: &'a ShownArgs,
    signals: &'a Signals,
}

impl Job for Again<'_> {
    fn run<Q: Question, D: Device>(self, session: Session<Q>, device: D) -> Result<Ending> {
        let Self { dir, chains, shown: &ShownArgs { force, json }, signals } = self;
        if !session.config.is_learned() && chains == Chains::Always {
            return Err(nothing_to_refine(&session.config, dir).into());
        }
        memory::check_again::<Q, D>(&session)?;
        if chains == Chains::Always {
            memory::refine(&session, "--")?;
        }
        if !session.config.is_learned() {
            let unlimited = (Budget::new(None), false);
            let found = closed_form::conclude(&session, dir, &device, signals, unlimited, force)?;
            found.map(|found| found.tell(dir, conclude::Again::Option, (json, false))).transpose()?;
            return Ok(signals.ending(&search_cut_short(dir)));
        }
        let posterior = session.posterior(dir, &device)?;
        session.heed(signals);
        let replicate = session.config.replicate(posterior.seed());
        let run = known_run(dir, &posterior, replicate)?;
        let checking = Checking::new(false, &*session.problem(), signals, dir);
        signals.heed();
        let wanted = Wanted { chains, force };
        let watched = (checking, Budget::new(None));
        let found = conclude::conclude(&session, dir, &device, posterior, run, wanted, watched)?;
        found.tell(dir, conclude::Again::Option, (json, false))?;
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
pub(crate) fn known_run<D: Device>(dir: &RunDir, posterior: &Posterior<D>, replicate: Option<usize>) -> Result<Run> {
    if let Ok(answer) = dir.read_answer() {
        return Ok(answer.run);
    }
    let last = progress::lines(&dir.progress())?.into_iter().rfind(|line| line.replicate == replicate);
    Ok(Run {
        steps: last.map_or(0, |line| line.step),
        stop: "not finished".into(),
        seconds: Seconds { train: last.map_or(0.0, |line| line.seconds), check: 0.0 },
        warnings: posterior.warnings().to_vec(),
        left_out: posterior.left_out().to_vec(),
        ..Run::default()
    })
}
