//! Runs without training, whose evidences are in closed form: all models or graphs summed, or models that chains meet.

use std::time::Instant;

use anyhow::Result;
use vti::answer::{Findings, Run, Samples, Units};
use vti::device::Device;
use vti::posterior::{ConjugatePosterior, GraphPosterior, Point};
use vti::problem::Problem;
use vti::problem::changepoints::{ChangePointError, ChangePosterior};
use vti::problem::selection::{ClosedForm, Selection, WeighedModels};
use vti::search::{Ended, SearchError, SearchSettings, learn_models, search_selection};
use vti::workers::Workers;
use vti_report::files;

use crate::budget::Budget;
use crate::conclude::{self, Concluded};
use crate::config::Method;
use crate::failure::Usage;
use crate::progress::Searching;
use crate::question::{InClosedForm, Question};
use crate::rundir::RunDir;
use crate::session::Session;
use crate::signals::Signals;

/// The posterior of a run without training.
pub(crate) enum Known<'a> {
    Selection(ConjugatePosterior<'a>),
    Graphs(GraphPosterior<'a>),
    /// With the seed of its draws.
    Changes(ChangePosterior<'a>, u64),
}

impl Known<'_> {
    pub(crate) fn active_parameters(&self, model: &[u16]) -> Vec<usize> {
        match self {
            Self::Selection(posterior) => posterior.active_parameters(model),
            Self::Graphs(posterior) => posterior.active_parameters(model),
            Self::Changes(posterior, _) => {
                let space = posterior.problem().space();
                let mut active = vec![false; space.max_dim()];
                space.mark_active(model, &mut active);
                (0..active.len()).filter(|&place| active[place]).collect()
            }
        }
    }

    /// `log p(m, θ | y)`.
    pub(crate) fn log_prob(&self, point: &Point) -> Result<f64> {
        match self {
            Self::Selection(posterior) => Ok(posterior.log_prob(point)?),
            Self::Graphs(posterior) => Ok(posterior.log_prob(point)),
            Self::Changes(posterior, _) => {
                let problem = posterior.problem();
                let joint = problem.log_density(&point.model, &point.theta, &mut vec![0.0; point.theta.len()])?;
                Ok(Problem::log_prior(problem, &point.model) + joint - posterior.log_evidence())
            }
        }
    }

    pub(crate) fn draw(&self, units: &Units, count: usize, batch: u32, workers: &Workers) -> Result<Samples> {
        match self {
            Self::Selection(posterior) => Ok(Samples::draw_conjugate(posterior, units, count, batch, workers)?),
            Self::Graphs(posterior) => Ok(Samples::of_graphs(posterior, units, &posterior.draw(count, batch, workers))),
            Self::Changes(posterior, seed) => Ok(Samples::of_changes(posterior, count, (*seed, batch), workers)),
        }
    }
}

/// The posterior of a run that is finished: all models once more, or those that its draws met.
pub(crate) fn posterior<'a, Q: Question>(
    session: &'a Session<Q>,
    dir: &RunDir,
    workers: &Workers,
) -> Result<Known<'a>> {
    let seed = session.config.train.seed;
    match session.question.in_closed_form().map_err(Usage)? {
        InClosedForm::Graphs(dag) => Ok(Known::Graphs(GraphPosterior::new(dag, workers, seed)?)),
        InClosedForm::Changes(problem) => {
            Ok(Known::Changes(problem.posterior(workers).map_err(|error| unusable(&error))?, seed))
        }
        InClosedForm::Selection(selection) if session.config.machine.method == Method::Exact => {
            Ok(Known::Selection(ConjugatePosterior::enumerate(selection, workers, seed)?))
        }
        InClosedForm::Selection(selection) => Ok(Known::Selection(met(selection, dir, seed)?)),
    }
}

/// Data and priors that contradict each other are bad input.
fn unusable(error: &ChangePointError) -> Usage {
    Usage(error.to_string())
}

/// The models that the draws of a finished run met.
fn met<'a>(selection: &'a Selection, dir: &RunDir, seed: u64) -> Result<ConjugatePosterior<'a>> {
    let log_evidence = dir.read_answer()?.log_evidence.estimate;
    let (samples, _) = files::read_draws(&dir.draws())?;
    let mut counts = vec![0.0; samples.models.len()];
    samples.model.iter().for_each(|&model| counts[model] += 1.0);
    let words: Vec<u16> =
        samples.models.iter().flat_map(|model| model.word.bytes().map(|bit| u16::from(bit == b'1'))).collect();
    let terms = selection.design().terms().len();
    if words.len() != terms * counts.len() || counts.is_empty() {
        return Err(Usage(format!("{}: not the draws of this run", dir.draws().display())).into());
    }
    Ok(ConjugatePosterior::of_models(selection, WeighedModels::new(terms, words, &counts), log_evidence, seed))
}

/// Finds the answer and writes all of it; none where somebody stopped it before there was anything.
pub(crate) fn conclude<Q: Question, D: Device>(
    session: &Session<Q>,
    dir: &RunDir,
    device: &D,
    signals: &Signals,
    (budget, quiet): (Budget, bool),
    force: bool,
) -> Result<Option<Concluded>> {
    let (config, workers, start) = (&session.config, device.workers(), Instant::now());
    let (seed, draws) = (config.train.seed, config.check.draws);
    let subject = session.question.subject(config);
    let run = |stop: &str| Run {
        stop: stop.into(),
        device: config.machine.device.clone(),
        threads: config.threads(),
        ..Run::default()
    };
    let exactly = "nothing was trained: the answer is exact";
    let mut found = match session.question.in_closed_form().map_err(Usage)? {
        InClosedForm::Graphs(dag) => {
            let posterior = GraphPosterior::new(dag, workers, seed)?;
            Findings::exact_graphs(&posterior, &subject, draws, workers, run(exactly))?
        }
        InClosedForm::Changes(problem) => {
            let posterior = problem.posterior(workers).map_err(|error| unusable(&error))?;
            Findings::exact_changes(&posterior, &subject, (draws, seed), workers, run(exactly))
        }
        InClosedForm::Selection(selection) if config.machine.method == Method::Exact => {
            let posterior = ConjugatePosterior::enumerate(selection, workers, seed)?;
            Findings::exact(&posterior, &subject, draws, workers, run(exactly))?
        }
        InClosedForm::Selection(selection) => {
            let settings = SearchSettings { seed, ..config.search.clone() };
            signals.heed();
            dir.record(&[dir.phase()])?;
            let mut searching = Searching::new(quiet, signals, budget, dir);
            let found = search_selection(selection, &settings, workers, &mut |progress| searching.show(progress));
            let found = match found {
                Err(SearchError::TooShort) if signals.stopped() => {
                    searching.finish();
                    return Ok(None);
                }
                Err(SearchError::TooShort) => {
                    searching.finish();
                    let hint = "hint: give it a longer --time-limit, or a shorter search.warmup";
                    return Err(Usage(format!("the search ended before there was anything to tell\n{hint}")).into());
                }
                found => found?,
            };
            let (problem, mut evidences) = (session.problem(), ClosedForm::new(selection)?);
            let all = settings.learned.steps;
            let mut watch = |done| searching.learning(done, all);
            let learned = learn_models(device, &problem, &found, &mut evidences, &settings, &mut watch)?;
            searching.finish();
            let log_evidence = found.log_evidence_with(learned.as_ref()).value;
            let posterior = ConjugatePosterior::of_models(selection, found.weighed(), log_evidence, seed);
            let mut run = run("no parameters were trained: chains over models with exact evidences answered");
            if found.ended == Ended::Stopped {
                run.left_out.push("the chains over models were cut before they agreed".into());
            } else if learned.is_none() && settings.learned.draws > 0 {
                run.left_out.push("q(m) has not learned what chains over models met".into());
            }
            Findings::searched(&posterior, (&found, &settings), learned.as_ref(), &subject, draws, workers, run)?
        }
    };
    // Files are replaced all or none.
    signals.heed();
    let go_on = || !signals.stopped() && !budget.is_over();
    conclude::look_at_fit(&mut found, &subject, config, workers, &go_on);
    found.answer.run.seconds.check = start.elapsed().as_secs_f64();
    Ok(Some(conclude::write(session, dir, found, force, signals.stopped())))
}
