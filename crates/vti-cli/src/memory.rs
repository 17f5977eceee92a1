//! Whether there is memory enough for what is to be done, before any of it is asked for.

use anyhow::Result;
use vti::answer::affordable_draws;
use vti::device::Device;
use vti::memory::{MemoryEstimate, Sizes};
use vti::train::TrainError;

use crate::config::Config;
use crate::failure::Usage;
use crate::free_memory::available;
use crate::question::{InClosedForm, Question};
use crate::session::Session;

/// What a run will need.
pub(crate) fn of_run<Q: Question, D: Device>(session: &Session<Q>) -> Result<MemoryEstimate> {
    let problem = session.problem();
    Ok(MemoryEstimate::new(&*problem, &sizes::<D>(&session.config)).map_err(TrainError::from)?)
}

/// Refuses a check of what was learned, or exact draws, that cannot fit.
pub(crate) fn check_again<Q: Question, D: Device>(session: &Session<Q>) -> Result<()> {
    let (problem, config) = (session.problem(), &session.config);
    let estimate = if config.is_learned() {
        MemoryEstimate::of_check(&*problem, &sizes::<D>(config)).map_err(TrainError::from)?
    } else {
        let draws = match session.question.in_closed_form() {
            Ok(InClosedForm::Graphs(_)) => config.check.draws,
            _ => affordable_draws(config.check.draws, problem.space().max_dim()),
        };
        MemoryEstimate::of_draws(&*problem, draws)
    };
    refuse(&estimate, "the check")
}

fn sizes<D: Device>(config: &Config) -> Sizes {
    let Config { family, train, check, .. } = config.clone();
    Sizes { family, train, check, number: size_of::<D::Real>() }
}

/// Refuses what cannot fit. Where the machine does not say how much it has, nothing is refused.
pub(crate) fn refuse(estimate: &MemoryEstimate, what: &str) -> Result<()> {
    let (bytes, Some(available)) = (estimate.bytes(), available()) else { return Ok(()) };
    if bytes <= available {
        return Ok(());
    }
    let largest = estimate.largest().map_or_else(String::new, |item| format!(", most of it for {}", item.what));
    let hint = match estimate.main_key {
        Some(key) => format!("a smaller {key} needs less"),
        None => "fewer columns, or a machine with more memory".into(),
    };
    let (bytes, available) = (text(bytes), text(available));
    Err(Usage(format!("{what} needs about {bytes} of memory{largest}, and {available} are free\nhint: {hint}")).into())
}

/// Bytes as people say them.
pub(crate) fn text(bytes: f64) -> String {
    match bytes {
        b if b < 1e9 => format!("{:.0} MB", b / 1e6),
        b if b < 1e12 => format!("{:.1} GB", b / 1e9),
        b if b < 1e15 => format!("{:.1} TB", b / 1e12),
        b => format!("{:.0e} TB", b / 1e12),
    }
}
