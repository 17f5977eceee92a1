//! What a run tells while it goes on, and why it ended.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::models::ModelUpdate;
use crate::space::Model;

/// What a step saw.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// Steps done, this one included.
    pub step: u64,
    /// Steps that are planned in all, this one included; under a time limit the plan may change.
    pub planned: u64,
    /// Seconds of training so far, those before an interruption included.
    pub seconds: f64,
    /// The bound `−L(ψ, φ)` as the batch estimates it; not a number if no draw was finite.
    pub elbo: f64,
    /// Standard error of the bound.
    pub elbo_se: f64,
    /// Entropy of q(m) as the batch estimates it.
    pub entropy: f64,
    /// Learning rate of φ.
    pub rate: f64,
    /// Mean norm of the gradients of φ before clipping, since it was last asked for ([`Observer::wants_gradient_norm`]).
    pub gradient_norm: Option<f64>,
    /// What happened to q(m).
    pub models: ModelUpdate,
    /// Draws that were not finite.
    pub dropped: Vec<Dropped>,
}

/// A draw that was not finite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("model {label}: {what}")]
pub struct Dropped {
    /// Its row in the batch.
    pub row: usize,
    /// Its model.
    pub model: Model,
    /// Its model, as people read it.
    pub label: String,
    /// What was not finite.
    pub what: NotFinite,
}

/// What was not finite; coordinates are those of the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NotFinite {
    /// A parameter.
    #[error("coordinate {coordinate} of θ is not finite")]
    Theta {
        /// Which one.
        coordinate: u32,
    },
    /// The log-determinant of the flow.
    #[error("the log-determinant of the flow is not finite")]
    LogDeterminant,
    /// The log probability of the model under q.
    #[error("its log probability under q is not finite")]
    LogModel,
    /// The log prior of the model.
    #[error("its log prior is not finite (a model of prior probability 0 should be forbidden by the space)")]
    LogPrior,
    /// The log density.
    #[error("the log density is not finite")]
    LogDensity,
    /// The gradient of the log density.
    #[error("the gradient of the log density is not finite in coordinate {coordinate}")]
    Gradient {
        /// Which one.
        coordinate: u32,
    },
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Stop {
    /// All steps are done.
    #[error("all {steps} steps done")]
    Steps {
        /// How many.
        steps: u64,
    },
    /// Time was up.
    #[error("time limit of {seconds} s reached")]
    TimeLimit {
        /// How many seconds there were.
        seconds: f64,
    },
    /// Nothing improved any more.
    #[error("the bound rose by {gain:.4} ± {error:.4} over the last {window} steps, which is no progress")]
    Plateau {
        /// What the last window gained.
        gain: f64,
        /// Standard error of the gain.
        error: f64,
        /// Steps of a window.
        window: u64,
    },
    /// The observer said so.
    #[error("stopped from outside")]
    Observer,
}

/// Sees each step, and may stop the run.
pub trait Observer {
    /// Called before [`Observer::step`] with the models the step drew: words of `width` symbols, row-major.
    fn models(&mut self, words: &[u16], width: usize) {
        let _ = (words, width);
    }

    /// Called while the first q(m) is prepared, where that takes long: so many parts of so many are done.
    fn prepare(&mut self, done: usize, parts: usize) -> ControlFlow<()> {
        let _ = (done, parts);
        ControlFlow::Continue(())
    }

    /// Whether this report should have the norm of the gradient, for which the device must be waited for.
    fn wants_gradient_norm(&mut self, report: &StepReport) -> bool {
        let _ = report;
        false
    }

    /// Called after each step.
    fn step(&mut self, report: &StepReport) -> ControlFlow<()>;
}

impl<F: FnMut(&StepReport) -> ControlFlow<()>> Observer for F {
    fn step(&mut self, report: &StepReport) -> ControlFlow<()> {
        self(report)
    }
}

/// Looks on in silence.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn step(&mut self, _: &StepReport) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
