//! Train, check, write.

use std::path::{Path, PathBuf};

use anyhow::Result;
use vti::answer::{Answer, Found, Replicate, Run};
use vti::device::Device;
use vti::memory::MemoryEstimate;
use vti::problem::selection::Enumeration;
use vti::train::{CheckpointSettings, Fit, Stop, TrainSettings, Trainer, save_preparation};

use crate::args::{AS_MANY_AS_FIT, RunArgs};
use crate::budget::Budget;
use crate::checking::Checking;
use crate::closed_form;
use crate::commands::check::known_run;
use crate::conclude::{Again, Chains, Wanted, conclude, cut_short, save_posterior, search_cut_short};
use crate::config::{Config, Method, Refine};
use crate::data::BUILTIN_PREFIX;
use crate::estimate::Estimate;
use crate::failure::{Ending, Usage};
use crate::memory;
use crate::print;
use crate::progress::{self, Progress, Watched};
use crate::question::{InClosedForm, Job, Question, start};
use crate::rundir::{self, RunDir};
use crate::session::Session;
use crate::signals::Signals;
use crate::unsaved::Unsaved;

/// The whole job.
pub(crate) fn run(config: Config, args: &RunArgs) -> Result<Ending> {
    run_by(config, args, |config, job| start(config, job))
}

/// The same with a question that `begin` asks.
pub(crate) fn run_by(
    mut config: Config,
    args: &RunArgs,
    begin: impl FnOnce(Config, Training<'_>) -> Result<Ending>,
) -> Result<Ending> {
    let begun = Budget::new(None);
    config.problem.resolve();
    let dir = RunDir::new(&directory(&config));
    let config = if args.resume { resumed(&config, &dir, args)? } else { config };
    let budget = begun.with_limit(config.train.time_limit);
    begin(config, Training { dir: &dir, args, budget })
}

/// What is to be done with the question.
pub(crate) struct Training<'a> {
    dir: &'a RunDir,
    args: &'a RunArgs,
    budget: Budget,
}

/// Where a run goes.
pub(crate) fn directory(config: &Config) -> PathBuf {
    let default = || {
        let data = Path::new(config.source.data.trim_start_matches(BUILTIN_PREFIX));
        PathBuf::from(data.file_stem().unwrap_or_default()).with_extension("vti")
    };
    config.output.dir.clone().unwrap_or_else(default)
}

/// The settings of a run that is taken up again: its own. What was asked for must not contradict them.
fn resumed(wanted: &Config, dir: &RunDir, args: &RunArgs) -> Result<Config> {
    let shown = dir.path().display();
    let Some(mut saved) = dir.saved_config()? else {
        return Err(Usage(format!("{shown}: there is no run to resume\nhint: leave --resume out to start one")).into());
    };
    let refuse = |what: &str| -> Result<Config> {
        let hint = "hint: a run keeps its settings; leave the option out, or start a new run with --force or --out";
        Err(Usage(format!("{shown}: the run that is to be resumed has another {what}\n{hint}")).into())
    };
    let mut source = wanted.source.clone();
    source.fingerprint.clone_from(&saved.source.fingerprint);
    source.data.clone_from(&saved.source.data);
    source.table = None;
    if source != saved.source || !wanted.problem.asks_same(&saved.problem) {
        return refuse("problem");
    }
    for (given, same, what) in [
        (args.method.is_some_and(|method| method != Method::Auto), args.method == Some(saved.machine.method), "method"),
        (args.seed.is_some(), args.seed == Some(saved.train.seed), "seed"),
        (args.steps.is_some(), args.steps == Some(saved.train.steps), "number of steps"),
        (args.precision.is_some(), args.precision == Some(saved.machine.precision), "precision"),
        (args.device.is_some(), args.device.as_ref() == Some(&saved.machine.device), "device"),
        (
            args.replicates.is_some(),
            args.replicates == Some(saved.machine.replicates as u64),
            "number of runs (--replicates)",
        ),
    ] {
        if given && !same {
            return refuse(what);
        }
    }
    if let Some(change) = args.set.iter().find(|change| contradicts(change, &saved)) {
        return refuse(&format!("value of {}", change.split('=').next().unwrap_or_default().trim()));
    }
    // Earlier versions learned every answer.
    if saved.machine.method == Method::Auto {
        saved.machine.method = Method::Vti;
    }
    saved.source.data.clone_from(&wanted.source.data);
    saved.source.table.clone_from(&wanted.source.table);
    if let (Some(truth), Some(Some(given))) = (saved.problem.truth_mut(), wanted.problem.clone().truth_mut()) {
        *truth = Some(given.clone());
    }
    saved.machine.threads = wanted.machine.threads;
    saved.train.time_limit = wanted.train.time_limit;
    Ok(saved)
}

/// Whether a `--set` would change a run that is there.
fn contradicts(change: &str, saved: &Config) -> bool {
    // What was chosen automatically is written out in the saved settings.
    let (key, value) = change.split_once('=').unwrap_or((change, ""));
    if value.trim().trim_matches('"') == "auto" && !key.trim().starts_with("check.") {
        return false;
    }
    let Ok(mut changed) = saved.clone().with(&[change.into()]) else { return true };
    // These may differ from one part of a run to the next.
    changed.train.time_limit = saved.train.time_limit;
    changed.machine.threads = saved.machine.threads;
    changed.output.dir.clone_from(&saved.output.dir);
    changed != *saved
}

/// Says something unless it should be quiet.
fn talk(args: &RunArgs, text: &str) {
    match &args.watch {
        Some(watch) => watch.note(text),
        None if args.quiet => {}
        None => print::talk(text),
    }
}

impl Job for Training<'_> {
    fn run<Q: Question, D: Device>(self, mut session: Session<Q>, device: D) -> Result<Ending> {
        let Self { dir, args, budget } = self;
        // All settings are checked before anything of an earlier run goes.
        let _lock = if args.resume { dir.claim_run()? } else { dir.claim(args.replace())? };
        session.config.check_limits()?;
        session.config.machine.method = choose(&session)?;
        if !session.config.is_learned() {
            memory::check_again::<Q, D>(&session)?;
            return answer_in_closed_form(&session, dir, &device, (args, budget));
        }
        let settings = train_settings(&session.config, dir, None);
        let needed = memory::of_run::<Q, D>(&session)?;
        memory::refuse(&needed, "this run")?;
        if session.config.chains.refine != Refine::Never {
            memory::refine(&session, "check.chains.")?;
        }
        let trainer = Trainer::new(session.problem(), device.clone(), &session.config.family, &settings)?;
        let resolved = trainer.family().settings().clone();
        if args.watch.is_some() {
            headline(&session, args);
        } else if !args.quiet {
            announce(&session, &needed, trainer)?;
        }
        // With every choice written out, so that the file says what was done.
        session.config.family = resolved;
        if !args.resume {
            dir.begin(&session.config)?;
        }
        let signals = Signals::of(args.watch.as_ref())?;
        session.heed(&signals);
        // What cannot be saved any more is told after the answer, which is found all the same.
        let mut unsaved = Unsaved::default();
        let trained = train(&session, dir, &device, &signals, (args, budget), &mut unsaved)?;
        let Some(Trained { fit, replicates, is_longer }) = trained else {
            unsaved.tell()?;
            return Ok(signals.ending(&progress::interrupted(dir)));
        };
        let (posterior, run) = if is_longer || !dir.posterior().exists() {
            unsaved.note(write_planned(&session.config, dir, &fit.stop));
            talk(args, &format!("trained in {}: {}", progress::duration(fit.seconds), fit.stop));
            let run = Run { replicates, ..Run::of(&fit) };
            unsaved.note(save_posterior(&fit.posterior, dir));
            (fit.posterior, run)
        } else {
            // A check may have taught it more since it was trained.
            talk(args, "training had come to its end before; what was learned is checked again");
            let posterior = session.posterior(dir, &device)?;
            let run = known_run(dir, &posterior, session.config.replicate(posterior.seed()))?;
            (posterior, run)
        };
        let nodes =
            if session.problem().blocks().is_some() { ", node by node; non-linear ones take a while" } else { "" };
        talk(args, &format!("checking with {} draws{nodes}", session.config.check.draws));
        let checking = Checking::new(args.quiet, &*session.problem(), &signals, dir);
        let checking = checking.no_longer_than(run.seconds.train).until(budget.end_of_check());
        let wanted = Wanted { chains: Chains::Settings, force: false };
        let watched = (checking, budget);
        let found = conclude(&session, dir, &device, posterior, run, wanted, watched)?.with(unsaved);
        let files = files(&found.answer);
        found.tell(dir, Again::Command, (args.json, args.quiet))?;
        talk(args, &format!("everything is in {}, {files} among it", dir.path().display()));
        Ok(signals.ending(&cut_short(dir)))
    }
}

/// How the answer is found. A run that is taken up again, and an earlier version's, has made its choice.
fn choose<Q: Question>(session: &Session<Q>) -> Result<Method> {
    let (method, closed) = (session.config.machine.method, session.question.in_closed_form());
    let name = match method {
        Method::Search => "search",
        Method::Vti => "vti",
        Method::Exact | Method::Auto => "exact",
    };
    let refuse = |reason: &str, hint: &str| Err(Usage(format!("--method {name}: {reason}\nhint: {hint}")).into());
    let learn = "--method vti learns the answer";
    match (method, closed) {
        (Method::Vti, Ok(InClosedForm::Changes(_))) => refuse(
            "change points of these kinds are summed or integrated exactly, and not learned",
            "leave --method out, or say --method exact",
        ),
        (Method::Search, Ok(InClosedForm::Changes(_))) => {
            refuse("chains over models are for variable selection", "--method exact sums all places of changes")
        }
        (Method::Exact | Method::Auto, Ok(InClosedForm::Changes(_))) => Ok(Method::Exact),
        (Method::Vti, _) | (Method::Auto, Err(_)) => Ok(Method::Vti),
        (Method::Search, Ok(InClosedForm::Selection(_))) => Ok(Method::Search),
        (Method::Search, Ok(InClosedForm::Graphs(_))) => {
            refuse("chains over models are for variable selection", "--method exact sums all graphs")
        }
        (Method::Exact | Method::Auto, Ok(InClosedForm::Graphs(_))) => Ok(Method::Exact),
        (Method::Exact | Method::Search, Err(reason)) => refuse(&reason, learn),
        (Method::Exact | Method::Auto, Ok(InClosedForm::Selection(selection))) => {
            match Enumeration::closed_form_affordable(selection) {
                Ok(()) => Ok(Method::Exact),
                Err(_) if method == Method::Auto => Ok(Method::Search),
                Err(reason) => {
                    refuse(&reason.to_string(), &format!("--method search runs chains over models instead, {learn}"))
                }
            }
        }
    }
}

/// The answer without training.
fn answer_in_closed_form<Q: Question, D: Device>(
    session: &Session<Q>,
    dir: &RunDir,
    device: &D,
    (args, budget): (&RunArgs, Budget),
) -> Result<Ending> {
    let method = session.config.machine.method;
    headline(session, args);
    talk(
        args,
        match session.question.in_closed_form() {
            Ok(InClosedForm::Changes(_)) => EXACT_CHANGES,
            _ if method == Method::Exact => EXACT,
            _ => SEARCHED,
        },
    );
    let given = args.of_training(method);
    if !given.is_empty() {
        talk(args, &format!("{}: no effect without training; --method vti trains", given.join(", ")));
    }
    if !args.resume {
        dir.begin(&session.config)?;
    }
    let signals = Signals::of(args.watch.as_ref())?;
    signals.end_with("interrupted before there was anything to tell");
    let late =
        if matches!(session.question.in_closed_form(), Ok(InClosedForm::Changes(_))) { "" } else { LEARN_INSTEAD };
    let late =
        format!("the exact answer was not found within the time limit\nhint: give it a longer --time-limit{late}");
    signals.end_at(budget.end(), &late);
    let Some(found) = closed_form::conclude(session, dir, device, &signals, (budget, args.quiet), false)? else {
        return Ok(signals.ending("interrupted before there was anything to tell"));
    };
    let files = files(&found.answer);
    found.tell(dir, Again::Command, (args.json, args.quiet))?;
    talk(args, &format!("everything is in {}, {files} among it", dir.path().display()));
    Ok(signals.ending(&search_cut_short(dir)))
}

/// What the data are, and how they were understood.
fn headline<Q: Question>(session: &Session<Q>, args: &RunArgs) {
    talk(args, &format!("{}: {}", session.config.source.data, session.question.headline()));
    session.question.notes().iter().for_each(|note| talk(args, note));
}

/// What people look at first.
fn files(answer: &Answer) -> &'static str {
    match answer.found {
        Found::Select(_) | Found::Own(_) => "models.csv and report.html",
        Found::Dag(_) => "edges.csv, models.csv, graph.dot, graph.graphml and report.html",
        Found::Count(_) => "curves.csv, positions.csv and report.html",
    }
}

const EXACT: &str = "all models can be summed in closed form: the answer is exact, and nothing is trained";

const EXACT_CHANGES: &str =
    "all places of changes are summed or integrated: the answer is exact, and nothing is trained";

const SEARCHED: &str = "evidences of models are in closed form, but there are too many models to sum all: chains over models with \
    exact evidences answer, no parameters are trained, and q(m) learns what they meet";

const LEARN_INSTEAD: &str = ", or --method vti, which learns as much as fits into it";

/// Writes down how many steps a time limit came to: the settings then ask for as much work. Several runs plan for themselves.
fn write_planned(config: &Config, dir: &RunDir, stop: &Stop) -> Result<()> {
    match (config.train.time_limit, stop) {
        (Some(_), Stop::Steps { steps }) if config.machine.replicates == 1 => {
            let mut planned = config.clone();
            planned.train.steps = *steps;
            rundir::write(&dir.config(), planned.to_toml()?.as_bytes())
        }
        _ => Ok(()),
    }
}

/// What is going to happen; the trainer is used up for a few steps that are timed.
fn announce<Q: Question, D: Device>(session: &Session<Q>, needed: &MemoryEstimate, trainer: Trainer<D>) -> Result<()> {
    let Config { source, train, machine, .. } = &session.config;
    print::talk(&format!("{}: {}", source.data, session.question.headline()));
    session.question.notes().iter().for_each(|note| print::talk(note));
    trainer.family().choices().iter().for_each(|choice| print::talk(choice));
    let estimate = Estimate::new(needed.bytes() + session.question.data_bytes(), trainer)?;
    let runs = if machine.replicates > 1 { format!(", {} times", machine.replicates) } else { String::new() };
    let limit = train.time_limit.map_or_else(
        || format!("{} steps", train.steps),
        |limit| {
            let most = if train.steps < AS_MANY_AS_FIT { format!(", at most {},", train.steps) } else { String::new() };
            format!("as many steps as fit into {}{most}", progress::duration(limit))
        },
    );
    print::talk(&format!(
        "{limit} of {} draws on {} threads{runs}: {}",
        train.batch,
        session.config.threads(),
        estimate.text()
    ));
    Ok(())
}

/// A finished run, and what became of each of several.
struct Trained<D: Device> {
    fit: Fit<D>,
    replicates: Vec<Replicate>,
    /// Whether any step was done since it was taken up.
    is_longer: bool,
}

/// Draws for the bound by which runs are compared.
const BOUND_DRAWS: usize = 4096;

/// Trains, as often as asked for; none if a signal ended it. Runs that were finished before an interruption are not made
/// again, but taken from their checkpoints.
fn train<Q: Question, D: Device>(
    session: &Session<Q>,
    dir: &RunDir,
    device: &D,
    signals: &Signals,
    (args, budget): (&RunArgs, Budget),
    unsaved: &mut Unsaved,
) -> Result<Option<Trained<D>>> {
    let count = session.config.machine.replicates;
    if count == 1 {
        let (fit, is_longer) = train_one(session, dir, device, signals, (args, budget.training(1)), (None, unsaved))?;
        let trained = Trained { is_longer, replicates: Vec::new(), fit };
        return Ok(Some(trained).filter(|trained| trained.fit.stop != Stop::Observer));
    }
    let mut best = None::<(f64, _)>;
    let (mut replicates, mut first_error, mut is_longer) = (Vec::new(), None, false);
    for run in 0..count {
        let seed = session.config.train.seed.wrapping_add(run as u64);
        let limit = budget.training(count - run);
        match train_one(session, dir, device, signals, (args, limit), (Some(run), unsaved)) {
            Ok((fit, _)) if fit.stop == Stop::Observer => return Ok(None),
            Ok((fit, went_on)) => {
                is_longer |= went_on;
                let elbo = fit.posterior.elbo(BOUND_DRAWS)?;
                replicates.push(Replicate { seed, elbo: Some(elbo), ending: fit.stop.to_string() });
                talk(args, &format!("run {}: bound {:.4} ± {:.4}", run + 1, elbo.value, elbo.se));
                if best.as_ref().is_none_or(|(value, _)| elbo.value > *value || value.is_nan()) {
                    best = Some((elbo.value, fit));
                }
            }
            Err(error) => {
                replicates.push(Replicate { seed, elbo: None, ending: error.to_string() });
                talk(args, &format!("run {}: {error}", run + 1));
                first_error.get_or_insert(error);
            }
        }
    }
    match (best, first_error) {
        (Some((_, fit)), _) => Ok(Some(Trained { fit, replicates, is_longer })),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(None),
    }
}

/// Settings of a run, or of one of several.
fn train_settings(config: &Config, dir: &RunDir, run: Option<usize>) -> TrainSettings {
    let seed = config.train.seed.wrapping_add(run.unwrap_or(0) as u64);
    let checkpoint = CheckpointSettings { path: dir.checkpoint(run), every: config.output.checkpoint_every };
    TrainSettings { seed, checkpoint: Some(checkpoint), ..config.train.clone() }
}

/// A run, or one of several, and whether any step was done.
fn train_one<Q: Question, D: Device>(
    session: &Session<Q>,
    dir: &RunDir,
    device: &D,
    signals: &Signals,
    (args, time_limit): (&RunArgs, Option<f64>),
    (run, unsaved): (Option<usize>, &mut Unsaved),
) -> Result<(Fit<D>, bool)> {
    let config = &session.config;
    let settings = TrainSettings { time_limit, ..train_settings(config, dir, run) };
    let path = dir.checkpoint(run);
    dir.record(&[dir.progress(), dir.preparation(), dir.phase(), path.clone()])?;
    if args.resume {
        session.remember(dir);
    }
    let is_taken_up = args.resume && path.exists();
    let trainer = if is_taken_up {
        let mut trainer = Trainer::resume(session.problem(), device.clone(), &path)?;
        trainer.set_time_limit(settings.time_limit);
        trainer.set_checkpoint(settings.checkpoint);
        talk(args, &format!("going on from step {} of {}", trainer.steps(), trainer.settings().steps));
        trainer
    } else {
        Trainer::new(session.problem(), device.clone(), &config.family, &settings)?
    };
    let (done, settings) = (trainer.steps(), trainer.settings());
    let watched = Watched { steps: settings.steps, time_limit: settings.time_limit, replicate: run, quiet: args.quiet };
    let problem = session.problem();
    let mut progress = Progress::new(dir, done, &*problem, signals, &watched)?;
    let fit = trainer.run(&mut progress);
    let shown = progress.finish();
    let kept = save_preparation(&dir.preparation(), &*problem);
    let mut fit = fit?;
    unsaved.note(kept.map_err(Into::into));
    unsaved.note(shown);
    let lost = |error| anyhow::Error::new(error).context("the finished run could not be saved");
    unsaved.note(fit.unsaved.take().map_or(Ok(()), |error| Err(lost(error))));
    let is_longer = !is_taken_up || fit.steps > done;
    Ok((fit, is_longer))
}
