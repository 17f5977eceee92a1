//! What can be asked of a table. Commands are the same for all questions; what differs stands here, a file for each.

mod dag;
mod select;

use anyhow::Result;
use vti::device::{Cpu, Device};
use vti::problem::Problem;
use vti::simd::Real;
use vti::space::Model;

pub(crate) use dag::{Causal, pairs};
pub(crate) use select::Select;

use crate::answer::Answer;
use crate::config::{Config, Precision, ProblemConfig};
use crate::data::Schema;
use crate::failure::{Ending, Usage};
use crate::session::Session;
use crate::summary::{DataSummary, Found};
use crate::units::Units;

/// A question with its data.
pub(crate) trait Question: Sized + Send + Sync {
    /// What is to be inferred.
    type Problem: Problem;

    /// Reads the data and sets the problem up.
    fn load(config: &Config) -> Result<Self>;

    fn problem(&self) -> &Self::Problem;

    /// Tells contents of data apart.
    fn fingerprint(&self) -> &str;

    /// What the data are, in a line.
    fn headline(&self) -> String;

    /// What the user should know about how the data were understood.
    fn notes(&self) -> &[String];

    /// From learned parameters to those in the units of the data.
    fn units(&self) -> Units;

    /// The model that has just these parameters, as places among their names; of several words that mean it, the one that
    /// represents them.
    fn model_of(&self, active: &[usize]) -> Option<Model>;

    /// What the columns mean, where new rows can be predicted.
    fn schema(&self) -> Option<&Schema> {
        None
    }

    /// Every so many draws are kept with their parameters.
    fn draw_step(&self, draws: usize) -> usize {
        let _ = draws;
        1
    }

    /// Bytes of the data in memory.
    fn data_bytes(&self) -> f64;

    /// Parameters of a model of middling size.
    fn usual_dim(&self) -> f64;

    /// The exact answer where it is cheap.
    fn exact<D: Device>(&self, device: &D) -> Option<Result<Exact>>;

    /// What a summary says about the data.
    fn data(&self, config: &Config) -> DataSummary;

    /// What was found out.
    fn found(&self, answer: &Answer<'_>) -> Result<Found>;
}

/// The exact answer, as far as others are compared with it.
pub(crate) struct Exact {
    /// `log p(y)`.
    pub(crate) log_evidence: f64,
    /// The posterior probability of each part of a model (terms, edges), in the order of the space's features.
    pub(crate) parts: Vec<f64>,
    probability: Box<Probability>,
}

/// The posterior probability of a model, if it is one.
type Probability = dyn Fn(&[u16]) -> Option<f64>;

impl Exact {
    pub(crate) fn probability(&self, model: &[u16]) -> Option<f64> {
        (self.probability)(model)
    }
}

/// Something to be done with a question, whatever it is and however it is computed.
pub(crate) trait Job {
    fn run<Q: Question, T: Real>(self, session: Session<Q>) -> Result<Ending>
    where
        Cpu<T>: Device;
}

/// Reads the data that a configuration names and does the job.
pub(crate) fn start(config: Config, job: impl Job) -> Result<Ending> {
    match &config.problem {
        ProblemConfig::Select(_) => compute::<Select>(config, job),
        ProblemConfig::Dag(_) => compute::<Causal>(config, job),
    }
}

fn compute<Q: Question>(config: Config, job: impl Job) -> Result<Ending> {
    let session = Session::<Q>::new(config)?;
    match session.config.machine.precision {
        Precision::F32 => job.run::<Q, f32>(session),
        Precision::F64 => job.run::<Q, f64>(session),
    }
}

/// A configuration of a question that this command does not answer.
fn other_kind(config: &Config) -> anyhow::Error {
    let asked = match &config.problem {
        ProblemConfig::Select(_) => "variable selection",
        ProblemConfig::Dag(_) => "causal graphs",
    };
    Usage(format!("{}: this command is not for {asked}", config.source.data)).into()
}
