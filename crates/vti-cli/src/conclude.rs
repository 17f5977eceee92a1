//! What a posterior comes to: checked, corrected, compared, and written down.

use std::time::Instant;

use anyhow::{Context, Result};
use vti::check::{VerdictKind, check_watched, refine};
use vti::device::{Cpu, Device};
use vti::posterior::Posterior;
use vti::simd::Real;

use crate::answer::{Answer, ChainsAnswer};
use crate::config::{Refine, VERSION};
use crate::output::{graph, models, parquet, report, table};
use crate::print;
use crate::progress::{self, Checking};
use crate::question::{Exact, Question};
use crate::rundir::{self, RunDir};
use crate::samples::Samples;
use crate::session::Session;
use crate::summary::{Found, ReplicateSummary, Seconds, Summary};

/// What is known about a run apart from its posterior.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFacts {
    pub(crate) steps: u64,
    pub(crate) stop: String,
    pub(crate) seconds: f64,
    /// Which of several runs was kept.
    pub(crate) kept: Option<usize>,
    pub(crate) replicates: Vec<ReplicateSummary>,
    pub(crate) warnings: Vec<String>,
}

/// Whether chains are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chains {
    /// As the settings say.
    Settings,
    Always,
}

/// Checks a posterior, corrects it, compares it with the exact answer where that is cheap, and writes all of it.
pub(crate) fn conclude<'a, Q: Question, T: Real>(
    session: &'a Session<Q>,
    dir: &RunDir,
    device: &'a Cpu<T>,
    posterior: &mut Posterior<'a, Q::Problem, Cpu<T>>,
    facts: &RunFacts,
    chains: Chains,
    mut checking: Checking,
) -> Result<Summary>
where
    Cpu<T>: Device,
{
    let config = &session.config;
    let start = Instant::now();
    let checked = check_watched(posterior, &config.check, &mut |done, runs| checking.show(done, runs));
    checking.finish();
    let checked = checked?;
    // Where factors are corrected one by one, chains over whole models could only do worse.
    let automatic = config.chains.refine == Refine::Auto
        && checked.verdict.kind == VerdictKind::DoNotTrust
        && checked.factors.is_none();
    let chains = if automatic || chains == Chains::Always {
        let settings = &config.chains.chains;
        Some(ChainsAnswer { refined: refine(posterior, settings)?, chains: settings.chains })
    } else {
        None
    };
    let mut warnings = facts.warnings.clone();
    let exact = exact_answer(session, device, &mut warnings);
    let answer = Answer::new(&session.question, posterior, &checked, chains.as_ref(), exact.as_ref())?;
    let summary = Summary {
        version: VERSION.into(),
        data: session.question.data(config),
        verdict: answer.verdict(),
        elbo: answer.elbo(),
        log_evidence: answer.evidence(),
        correction: answer.method(),
        found: session.question.found(&answer)?,
        models: answer.models(),
        exact: answer.exact_summary(),
        chains: answer.chains_summary(),
        replicates: facts.replicates.clone(),
        steps: facts.steps,
        stop: facts.stop.clone(),
        seconds: Seconds { train: facts.seconds, check: start.elapsed().as_secs_f64() },
        device: config.machine.device.clone(),
        precision: T::NAME.into(),
        threads: config.threads(),
        seed: posterior.seed(),
        warnings,
    };
    write_all(session, dir, &answer, &summary, facts.kept)?;
    Ok(summary)
}

/// The exact answer where it is cheap. A run is worth having without it.
fn exact_answer<Q: Question, D: Device>(session: &Session<Q>, device: &D, warnings: &mut Vec<String>) -> Option<Exact> {
    match session.question.exact(device)? {
        Ok(exact) => Some(exact),
        Err(error) => {
            let reason = error.to_string();
            let warning = format!("there is no exact answer to compare with: {}", reason.lines().next().unwrap_or(""));
            // A check of a finished run knows what the run said.
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
            None
        }
    }
}

/// All files, the summary last: it says that the run is finished.
fn write_all<Q: Question>(
    session: &Session<Q>,
    dir: &RunDir,
    answer: &Answer<'_>,
    summary: &Summary,
    kept: Option<usize>,
) -> Result<()> {
    let samples = &answer.samples;
    let origin = parquet::Origin {
        version: VERSION.into(),
        schema: session.question.schema().cloned(),
        parameters: samples.names.clone(),
    };
    rundir::write(&dir.draws(), &parquet::write(samples, &origin)?)?;
    rundir::write(&dir.models(), &models::csv(answer)?)?;
    if let Found::Dag(found) = &summary.found {
        rundir::write(&dir.edges(), &graph::csv(&found.edges)?)?;
        rundir::write(&dir.dot(), graph::dot(&found.edges).as_bytes())?;
        rundir::write(&dir.graphml(), graph::graphml(&found.edges).as_bytes())?;
    }
    write_report(dir, summary, samples, kept)?;
    rundir::write(&dir.summary(), (summary.to_json()? + "\n").as_bytes())
}

/// The page, from what the directory holds.
pub(crate) fn write_report(dir: &RunDir, summary: &Summary, samples: &Samples, kept: Option<usize>) -> Result<()> {
    let settings = std::fs::read_to_string(dir.config()).with_context(|| dir.config().display().to_string())?;
    let trace = progress::trace(&dir.progress(), kept)?;
    let page = vti_report::page(&report::report(summary, samples, trace, settings));
    rundir::write(&dir.report(), page.as_bytes())
}

/// The answer on standard output.
pub(crate) fn show(summary: &Summary, json: bool) -> Result<()> {
    if json { print::data(&summary.to_json()?) } else { print::data(&table::text(summary)) }
}
