//! Problems whose answers are known.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use vti::answer::Subject;
use vti::check::CheckSettings;
use vti::problem::Problem;
use vti::problem::dag::Dag;
use vti::problem::selection::Selection;
use vti::space::{Catalogue, Model, ModelSpace};
use vti::stats::{Estimate, log_sum_exp};
use vti::train::TrainSettings;

/// Models that are less probable are not compared one by one.
pub(super) const MIN_PROBABILITY: f64 = 0.05;

/// A problem of one of the kinds that an answer can be about.
#[derive(Clone)]
pub(super) enum Question {
    Selection(Arc<Selection>),
    Dag(Arc<Dag>),
    Own(Arc<dyn Problem>),
    /// Numbers of components, learned and checked as the commands do.
    Count(Arc<dyn Problem>),
    /// The same where a density is taken to be slow, as that of layers is.
    Slow(Arc<dyn Problem>),
}

impl Question {
    pub(super) fn problem(&self) -> Arc<dyn Problem> {
        match self {
            Self::Selection(selection) => selection.clone(),
            Self::Dag(dag) => dag.clone(),
            Self::Own(problem) | Self::Count(problem) | Self::Slow(problem) => problem.clone(),
        }
    }

    pub(super) fn subject(&self) -> Subject<'_> {
        match self {
            Self::Selection(selection) => Subject::of_selection(selection),
            Self::Dag(dag) => Subject::of_dag(dag, &vec![1.0; dag.space().nodes()]),
            Self::Own(problem) | Self::Count(problem) | Self::Slow(problem) => Subject::of(&**problem),
        }
    }

    /// The defaults of the command, with fewer steps and draws for all but graphs.
    pub(super) fn train_settings(&self, seed: u64) -> TrainSettings {
        match self {
            Self::Dag(_) => TrainSettings { seed, ..TrainSettings::blockwise() },
            Self::Selection(_) => TrainSettings { seed, steps: 1200, batch: 512, ..TrainSettings::default() },
            // Where half of a space is undefined, half of all draws are dropped; by default that ends training.
            Self::Own(_) => {
                TrainSettings { seed, steps: 1200, batch: 512, max_dropped: 1.0, ..TrainSettings::default() }
            }
            Self::Count(_) => TrainSettings { seed, ..TrainSettings::counting() },
            Self::Slow(_) => TrainSettings { seed, ..TrainSettings::sparing() },
        }
    }

    /// The defaults of the command.
    pub(super) fn check_settings(&self) -> CheckSettings {
        match self {
            Self::Selection(_) | Self::Dag(_) | Self::Own(_) => CheckSettings::default(),
            Self::Count(_) => CheckSettings::counting(),
            Self::Slow(_) => CheckSettings::sparing(),
        }
    }
}

/// What is true, with errors where it was found by chance.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Truth {
    /// Probabilities of the parts of models, in the order of an answer; those of edges row by row without the diagonal.
    pub(super) parts: Vec<Estimate>,
    /// Probabilities of models by their words; those that are left out are less probable than `MIN_PROBABILITY` / 5.
    pub(super) models: BTreeMap<String, Estimate>,
}

impl Truth {
    /// From the log of prior times evidence of every model, with the error of each.
    pub(super) fn new(space: &dyn ModelSpace, log_joint: &[(Model, Estimate)]) -> Self {
        let logs: Vec<f64> = log_joint.iter().map(|(_, log)| log.value).collect();
        let total = log_sum_exp(&logs);
        let probabilities: Vec<f64> = logs.iter().map(|log| (log - total).exp()).collect();
        let mut features = vec![0.0; space.feature_count()];
        let has: Vec<Vec<bool>> = log_joint
            .iter()
            .map(|(word, _)| {
                space.features(word, &mut features);
                features.iter().map(|feature| *feature > 0.0).collect()
            })
            .collect();
        // Of a sum over models: every evidence is off on its own, and moves the sum and what it is divided by.
        let of = |is_in: &dyn Fn(usize) -> bool| {
            let value: f64 =
                (0..probabilities.len()).filter(|&model| is_in(model)).map(|model| probabilities[model]).sum();
            let moves = |model: usize| {
                probabilities[model] * (f64::from(u8::from(is_in(model))) - value) * log_joint[model].1.se
            };
            let se = (0..probabilities.len()).map(|model| moves(model).powi(2)).sum::<f64>().sqrt();
            Estimate { value, se }
        };
        let named = space.part_names().len();
        let parts = (0..named).map(|part| of(&|model| has[model][part])).collect();
        let likely = (0..probabilities.len()).filter(|&model| probabilities[model] >= MIN_PROBABILITY / 5.0);
        let models = likely.map(|model| (log_joint[model].0.to_string(), of(&|other| other == model))).collect();
        Self { parts, models }
    }

    /// Of a problem whose log evidences are known.
    pub(super) fn of_evidences(problem: &dyn Problem, log_evidence: impl Fn(&[u16]) -> Estimate) -> Result<Self> {
        let catalogue = Catalogue::new(problem.space(), 1 << 20)?;
        let joint = |index: usize| -> Result<(Model, Estimate)> {
            let model = catalogue.model(index)?;
            let Estimate { value, se } = log_evidence(&model);
            Ok((model.clone(), Estimate { value: value + problem.log_prior(&model), se }))
        };
        let all: Vec<(Model, Estimate)> = (0..catalogue.len()).map(joint).collect::<Result<_>>()?;
        Ok(Self::new(problem.space(), &all))
    }
}

/// A problem with its answer.
pub(super) struct Case {
    pub(super) group: &'static str,
    pub(super) name: String,
    pub(super) question: Question,
    pub(super) truth: Truth,
}

/// A problem's log evidence of each model.
pub(super) type LogEvidence = Box<dyn Fn(&[u16]) -> f64>;

/// How a problem is set up; its answer is found on demand, because that may take a while.
pub(super) struct Plan {
    pub(super) group: &'static str,
    pub(super) name: String,
    pub(super) question: Box<dyn Fn() -> Result<Question>>,
    /// Where it is part of the problem.
    pub(super) log_evidence: Option<LogEvidence>,
}

/// A number that is known exactly.
pub(super) fn exactly(value: f64) -> Estimate {
    Estimate { value, se: 0.0 }
}
