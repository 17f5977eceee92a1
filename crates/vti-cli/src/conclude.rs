//! What a posterior comes to: checked, corrected, compared, and written down.

use std::time::Instant;

use anyhow::{Context, Result};
use vti::answer::{Answer, Exact, Findings, Run, Samples, Sources, Subject};
use vti::check::{Depth, Particles, VerdictKind, check_and_learn, refine_watched};
use vti::device::Device;
use vti::posterior::Posterior;
use vti::predictive::{GoOn, LookSettings};
use vti::workers::Workers;
use vti_report::files::Cells;
use vti_report::{Beside, figure, page};

use crate::budget::Budget;
use crate::checking::{Checked, Checking};
use crate::config::{Config, ProblemConfig, Refine};
use crate::earlier::Earlier;
use crate::print;
use crate::progress;
use crate::question::Question;
use crate::rundir::{self, RunDir};
use crate::session::Session;
use crate::unsaved::Unsaved;

/// Whether chains are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chains {
    /// As the settings say.
    Settings,
    Always,
}

/// What is wanted of a conclusion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) chains: Chains,
    /// Whether a result that says less may take the place of the one before.
    pub(crate) force: bool,
}

/// How a result that says less can be written all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// By an option of the command itself.
    Option,
    /// By another command.
    Command,
}

/// An answer, and what became of its files.
#[derive(Debug)]
pub(crate) struct Concluded {
    pub(crate) answer: Answer,
    earlier: Earlier,
    unsaved: Unsaved,
}

impl Concluded {
    /// With what could not be saved before.
    pub(crate) fn with(mut self, mut unsaved: Unsaved) -> Self {
        unsaved.join(self.unsaved);
        self.unsaved = unsaved;
        self
    }

    /// Prints the answer, and says what became of its files and of those before. Whatever could not be saved is told last, also to
    /// those who want to hear of nothing but errors.
    pub(crate) fn tell(self, dir: &RunDir, again: Again, (json, quiet): (bool, bool)) -> Result<()> {
        let shown = if quiet && !json { Ok(()) } else { show(&self.answer, json) };
        if quiet {
            return self.unsaved.tell().and(shown);
        }
        let place = dir.path().display();
        match self.earlier {
            Earlier::Replaced => {}
            Earlier::Contradicted(reason) => {
                print::talk(&format!("{reason}: a full look knows better, so this result replaces the one in {place}"));
            }
            Earlier::Kept(reason) => print::talk(&format!(
                "this result says less than the one in {place}, which is kept: {reason}\nhint: {} writes it all the same",
                match again {
                    Again::Option => "--force".into(),
                    Again::Command => format!("`vti check {place} --force`"),
                }
            )),
        }
        self.unsaved.tell().and(shown)
    }
}

/// Checks a posterior, corrects it, compares it with the exact answer where that is cheap, and writes all of it. `run` is
/// what is known about its training.
pub(crate) fn conclude<Q: Question, D: Device>(
    session: &Session<Q>,
    dir: &RunDir,
    device: &D,
    posterior: Posterior<D>,
    mut run: Run,
    wanted: Wanted,
    (mut checking, budget): (Checking<'_>, Budget),
) -> Result<Concluded> {
    let mut unsaved = Unsaved::default();
    unsaved.note(dir.record(&[dir.phase()]));
    let config = &session.config;
    let start = Instant::now();
    let problem = session.problem();
    // What cannot be read is found anew.
    let earlier = Particles::load(&dir.particles(), &*problem).ok();
    let checked = check_and_learn(posterior, &config.check, earlier.as_ref(), &mut |stage| checking.show(stage));
    let (posterior, checked, lessons) = checked.inspect_err(|_| print::clear())?;
    if lessons > 0 {
        unsaved.note(save_posterior(&posterior, dir));
        run.lessons += lessons;
    }
    if let Some(found) = checked.particles().filter(|found| Some(found) != earlier.as_ref()) {
        let recorded = dir.record(&[dir.particles()]);
        unsaved.note(recorded.and_then(|()| Ok(found.save(&dir.particles(), &*problem)?)));
    }
    // Chains start from q, and would only take away from what particles found without it. Where blocks are corrected one by one,
    // chains over whole models could only do worse; and who wants no look beyond q does not want chains.
    let automatic = config.chains.refine == Refine::Auto
        && config.check.opinion.depth != Depth::None
        && checked.verdict.kind == VerdictKind::DoNotTrust
        && checked.blocks.is_none()
        && checked.opinion.is_none();
    let chains = if automatic || wanted.chains == Chains::Always {
        refine_watched(&posterior, &config.chains.chains, &mut |done, all| checking.chains(done, all))?
    } else {
        None
    };
    let signals = checking.signals();
    let Checked { is_stopped, left_out } = checking.finish(&cut_short(dir));
    // What an earlier check left out was looked at again.
    run.left_out = posterior.left_out().iter().cloned().chain(left_out).collect();
    let subject = session.question.subject(config);
    let is_over = is_stopped || budget.is_over();
    let exact = if is_over { None } else { exact_answer(&subject, device.workers(), &mut run.warnings) };
    (run.device, run.threads) = (config.machine.device.clone(), config.threads());
    let sources = Sources { check: &checked, chains: chains.as_ref(), exact: exact.as_ref() };
    let mut found = Findings::new(&posterior, &subject, &sources, run)?;
    // Files are replaced all or none.
    signals.heed();
    let go_on = || !is_over && !signals.stopped() && !budget.is_over();
    look_at_fit(&mut found, &subject, config, device.workers(), &go_on);
    found.answer.run.seconds.check = start.elapsed().as_secs_f64();
    Ok(write(session, dir, found, wanted.force, is_stopped).with(unsaved))
}

/// Writes down what was learned.
pub(crate) fn save_posterior<D: Device>(posterior: &Posterior<D>, dir: &RunDir) -> Result<()> {
    dir.record(&[dir.posterior()])?;
    Ok(posterior.save(&dir.posterior())?)
}

/// Looks whether the model fits, for as long as there is time; the verdict says what there was no time for.
pub(crate) fn look_at_fit(
    found: &mut Findings,
    subject: &Subject<'_>,
    config: &Config,
    workers: &Workers,
    go_on: &GoOn<'_>,
) {
    let is_logged = matches!(&config.problem, ProblemConfig::Dag(dag) if !dag.log.is_empty());
    let settings = LookSettings { seed: config.train.seed, is_logged, ..LookSettings::default() };
    if !go_on() || !found.look_at_fit_while(subject, &settings, workers, go_on) {
        found.answer.run.left_out.push("whether the model fits the data was not looked at".into());
    }
    let Answer { verdict, run, .. } = &mut found.answer;
    if !run.left_out.is_empty() {
        verdict.text += &format!("; left out: {}", run.left_out.join("; "));
    }
}

/// What is said of a check that somebody ended.
pub(crate) fn cut_short(dir: &RunDir) -> String {
    format!("the check was cut short\nhint: `vti check {}` goes on with it", dir.path().display())
}

/// What is said of chains over models that somebody ended.
pub(crate) fn search_cut_short(dir: &RunDir) -> String {
    format!("the chains were cut short\nhint: `vti check {}` runs them anew", dir.path().display())
}

/// Writes everything that was found, unless it says less than what is there.
pub(crate) fn write<Q: Question>(
    session: &Session<Q>,
    dir: &RunDir,
    found: Findings,
    force: bool,
    is_cut_short: bool,
) -> Concluded {
    let depth = session.config.check.opinion.depth;
    let before = dir.read_answer().ok().filter(|_| !force && dir.draws().exists());
    let earlier = before.map_or(Earlier::Replaced, |before| Earlier::of(&before, &found.answer, depth, is_cut_short));
    let mut unsaved = Unsaved::default();
    if !matches!(earlier, Earlier::Kept(_)) {
        unsaved.note(write_files(session, dir, &found));
    }
    Concluded { answer: found.answer, earlier, unsaved }
}

fn write_files<Q: Question>(session: &Session<Q>, dir: &RunDir, found: &Findings) -> Result<()> {
    let files: Vec<_> = vti_report::files::of(&found.answer).into_iter().map(|file| dir.path().join(file)).collect();
    dir.record(&files)?;
    let schema = session.question.schema().map(serde_json::to_value).transpose()?;
    let (settings, trace) = beside(dir, &session.config, &found.answer)?;
    let beside = Beside {
        trace: &trace,
        settings: &settings,
        schema: schema.as_ref(),
        cells: Cells::raw_if(session.config.output.raw_csv),
    };
    vti_report::write(found, &beside, dir.path()).map_err(rundir::explain)
}

/// The exact answer where it is cheap. A run is worth having without it.
fn exact_answer(subject: &Subject<'_>, workers: &Workers, warnings: &mut Vec<String>) -> Option<Exact> {
    subject.exact(workers).unwrap_or_else(|error| {
        let reason = error.to_string();
        let warning = format!("there is no exact answer to compare with: {}", reason.lines().next().unwrap_or(""));
        // A check of a finished run knows what the run said.
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
        None
    })
}

/// Settings and trace of a run, from what the directory holds.
fn beside(dir: &RunDir, config: &Config, answer: &Answer) -> Result<(String, Vec<vti_report::Trace>)> {
    let settings = std::fs::read_to_string(dir.config()).with_context(|| dir.config().display().to_string())?;
    Ok((settings, progress::trace(&dir.progress(), config.replicate(answer.run.seed))?))
}

/// The page, from what the directory holds.
pub(crate) fn page_of(dir: &RunDir, config: &Config, answer: &Answer, samples: &Samples) -> Result<String> {
    let (settings, trace) = beside(dir, config, answer)?;
    Ok(page(answer, Some(samples), &Beside { trace: &trace, settings: &settings, ..Beside::default() }))
}

/// The figures of one of its sections as SVG, if it has any.
pub(crate) fn figure_of(
    dir: &RunDir,
    config: &Config,
    (answer, samples): (&Answer, &Samples),
    section: &str,
) -> Result<Option<String>> {
    let (settings, trace) = beside(dir, config, answer)?;
    let beside = Beside { trace: &trace, settings: &settings, ..Beside::default() };
    Ok(figure(answer, Some(samples), &beside, section))
}

/// Writes it.
pub(crate) fn write_page(dir: &RunDir, config: &Config, answer: &Answer, samples: &Samples) -> Result<()> {
    let page = page_of(dir, config, answer, samples)?;
    dir.record(&[dir.page()])?;
    rundir::write_apart(&dir.page(), page.as_bytes())
}

/// The answer on standard output.
fn show(answer: &Answer, json: bool) -> Result<()> {
    print::data(&if json { answer.to_json()? } else { vti_report::text(answer) })
}
