//! Runs whose answer is exact: all models summed in closed form, nothing learned.

use std::time::Instant;

use anyhow::Result;
use vti::answer::{Answer, Findings, Run};
use vti::posterior::ExactPosterior;
use vti::workers::Workers;

use crate::conclude;
use crate::failure::Usage;
use crate::question::Question;
use crate::rundir::RunDir;
use crate::session::Session;

/// The exact posterior of a question that has one.
pub(crate) fn posterior<'a, Q: Question>(session: &'a Session<Q>, workers: &Workers) -> Result<ExactPosterior<'a>> {
    let selection = session.question.in_closed_form().map_err(Usage)?;
    Ok(ExactPosterior::new(selection, workers, session.config.train.seed)?)
}

/// Finds the exact answer and writes all of it.
pub(crate) fn conclude<Q: Question>(session: &Session<Q>, dir: &RunDir, workers: &Workers) -> Result<Answer> {
    let (config, start) = (&session.config, Instant::now());
    let posterior = posterior(session, workers)?;
    let run = Run {
        stop: "nothing was trained: the answer is exact".into(),
        device: config.machine.device.clone(),
        threads: config.threads(),
        ..Run::default()
    };
    let subject = session.question.subject(config);
    let mut found = Findings::exact(&posterior, &subject, config.check.draws, workers, run)?;
    found.look_at_fit(&subject, &conclude::look_settings(config), workers);
    found.answer.run.seconds.check = start.elapsed().as_secs_f64();
    conclude::write(session, dir, &found)?;
    Ok(found.answer)
}
