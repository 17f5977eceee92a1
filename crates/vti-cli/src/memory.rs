//! Whether there is memory enough for what is to be done, before any of it is asked for.

use anyhow::Result;
use vti::answer::affordable_draws;
use vti::device::Device;
use vti::memory::{MemoryEstimate, Sizes};
use vti::train::TrainError;

use crate::config::{Config, Method};
use crate::failure::Usage;
use crate::free_memory::available;
use crate::question::{InClosedForm, Question};
use crate::session::Session;

/// A parameter of what a table is made of, and the words that tell of it.
const BYTES_OF_PARAMETER: f64 = 32.0;

/// A number that is simulated, the words that are made of it, and what stands in the file.
const BYTES_OF_CELL: f64 = 100.0;

/// What a run will need.
pub(crate) fn of_run<Q: Question, D: Device>(session: &Session<Q>) -> Result<MemoryEstimate> {
    let problem = session.problem();
    Ok(MemoryEstimate::new(&*problem, &sizes::<D>(&session.config)).map_err(TrainError::from)?)
}

/// Refuses a check of what was learned, chains over models, or exact draws, that cannot fit.
pub(crate) fn check_again<Q: Question, D: Device>(session: &Session<Q>) -> Result<()> {
    let (problem, config) = (session.problem(), &session.config);
    if config.machine.method == Method::Search {
        refuse_keyed(&MemoryEstimate::of_search(&*problem, &config.search), "the search", "search.")?;
    }
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

/// Refuses chains from q that cannot fit; before their keys stands what an option, or a configuration, begins with.
pub(crate) fn refine<Q: Question>(session: &Session<Q>, prefix: &str) -> Result<()> {
    refuse_chains(&MemoryEstimate::of_refine(&*session.problem(), &session.config.chains.chains), prefix)
}

/// Refuses chains that cannot fit.
pub(crate) fn refuse_chains(estimate: &MemoryEstimate, prefix: &str) -> Result<()> {
    refuse_keyed(estimate, "a run of so many chains", prefix)
}

/// Refuses a table of so many cells, which cannot fit.
pub(crate) fn refuse_cells(rows: usize, columns: usize) -> Result<()> {
    let bytes = BYTES_OF_CELL * rows as f64 * columns as f64;
    refuse_bytes(bytes, &format!("a table of {rows} rows and {columns} columns"), "", "fewer rows need less")
}

/// Refuses a table that is made of so many parameters.
pub(crate) fn refuse_parameters(count: f64) -> Result<()> {
    let hint = "fewer peaks, components or hidden units need less";
    refuse_bytes(BYTES_OF_PARAMETER * count, "what the table is made of", "", hint)
}

fn sizes<D: Device>(config: &Config) -> Sizes {
    let Config { family, train, check, .. } = config.clone();
    Sizes { family, train, check, number: size_of::<D::Real>() }
}

/// Refuses what cannot fit.
pub(crate) fn refuse(estimate: &MemoryEstimate, what: &str) -> Result<()> {
    refuse_keyed(estimate, what, "")
}

fn refuse_keyed(estimate: &MemoryEstimate, what: &str, prefix: &str) -> Result<()> {
    let largest = estimate.largest().map_or_else(String::new, |item| format!(", most of it for {}", item.what));
    let hint = match estimate.main_key {
        Some(key) => format!("a smaller {prefix}{key} needs less"),
        None => "fewer columns, or a machine with more memory".into(),
    };
    refuse_bytes(estimate.bytes(), what, &largest, &hint)
}

/// Where the machine does not say how much it has, nothing is refused.
fn refuse_bytes(bytes: f64, what: &str, largest: &str, hint: &str) -> Result<()> {
    let Some(available) = available().filter(|available| bytes > *available) else { return Ok(()) };
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
