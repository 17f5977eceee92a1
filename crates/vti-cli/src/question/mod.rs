//! What can be asked of a table. Commands are the same for all questions; what differs stands here, a file for each.

mod changepoints;
mod dag;
mod layers;
mod mixture;
mod own;
mod peaks;
mod select;

use std::sync::Arc;

use anyhow::Result;
use vti::answer::Subject;
use vti::device::{Cpu, Device};
use vti::problem::Problem;
use vti::problem::changepoints::ChangePoints;
use vti::problem::dag::Dag;
use vti::problem::selection::Selection;

pub(crate) use changepoints::Changes;
pub(crate) use dag::Causal;
pub(crate) use layers::Layered;
pub(crate) use mixture::Mixed;
pub(crate) use own::Own;
pub(crate) use peaks::PeakSearch;
pub(crate) use select::Select;

use crate::config::{Config, Precision, ProblemConfig};
use crate::data::Schema;
use crate::failure::{Ending, Usage};
use crate::session::Session;

/// A question with its data.
pub(crate) trait Question: Sized + Send + Sync {
    /// Reads the data and sets the problem up.
    fn load(config: &Config) -> Result<Self>;

    /// What is to be inferred.
    fn problem(&self) -> Arc<dyn Problem>;

    /// Tells contents of data apart.
    fn fingerprint(&self) -> &str;

    /// What the data are, in a line.
    fn headline(&self) -> String;

    /// What the user should know about how the data were understood.
    fn notes(&self) -> &[String];

    /// What its answer is about.
    fn subject(&self, config: &Config) -> Subject<'_>;

    /// What the columns mean, where new rows can be predicted.
    fn schema(&self) -> Option<&Schema> {
        None
    }

    /// What has evidences in closed form; why nothing has, if nothing has.
    fn in_closed_form(&self) -> Result<InClosedForm<'_>, String>;

    /// Bytes of the data in memory.
    fn data_bytes(&self) -> f64;

    /// Writes settings out that were set from the data.
    fn write_out(&self, _config: &mut Config) {}
}

/// What evidences are in closed form of.
#[derive(Clone, Copy)]
pub(crate) enum InClosedForm<'a> {
    /// Of every model; there may be too many to sum.
    Selection(&'a Selection),
    /// Of nodes, and few enough that all graphs can be summed.
    Graphs(&'a Dag),
    /// Of every number of changes.
    Changes(&'a ChangePoints),
}

/// Something to be done with a question, whatever it is and however it is computed.
pub(crate) trait Job {
    fn run<Q: Question, D: Device>(self, session: Session<Q>, device: D) -> Result<Ending>;
}

/// Reads the data that a configuration names and does the job.
pub(crate) fn start(config: Config, job: impl Job) -> Result<Ending> {
    match &config.problem {
        ProblemConfig::Select(_) => compute::<Select>(config, job),
        ProblemConfig::Dag(_) => compute::<Causal>(config, job),
        ProblemConfig::Changepoints(_) => compute::<Changes>(config, job),
        ProblemConfig::Own(_) => compute::<Own>(config, job),
        ProblemConfig::Mixture(_) => compute::<Mixed>(config, job),
        ProblemConfig::Peaks(_) => compute::<PeakSearch>(config, job),
        ProblemConfig::Layers(_) => compute::<Layered>(config, job),
    }
}

fn compute<Q: Question>(config: Config, job: impl Job) -> Result<Ending> {
    compute_session(Session::<Q>::new(config)?, job)
}

/// Does the job with a question whose data are there.
pub(crate) fn compute_session<Q: Question>(session: Session<Q>, job: impl Job) -> Result<Ending> {
    let workers = session.workers()?;
    match session.config.machine.precision {
        Precision::F32 => job.run(session, Cpu::<f32>::on(workers)),
        Precision::F64 => job.run(session, Cpu::<f64>::on(workers)),
    }
}

/// A configuration of a question that this command does not answer.
pub(crate) fn other_kind(config: &Config) -> anyhow::Error {
    let asked = match &config.problem {
        ProblemConfig::Select(_) => "variable selection",
        ProblemConfig::Dag(_) => "causal graphs",
        ProblemConfig::Changepoints(_) => "change points",
        ProblemConfig::Own(_) => "densities of one's own",
        ProblemConfig::Mixture(_) => "mixtures",
        ProblemConfig::Peaks(_) => "peaks",
        ProblemConfig::Layers(_) => "layers",
    };
    Usage(format!("{}: this command is not for {asked}", config.source.data)).into()
}
