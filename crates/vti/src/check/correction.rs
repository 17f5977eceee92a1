//! The form of a corrected answer, whether by weights or by chains.

use serde::Serialize;

use crate::space::Model;
use crate::stats::Estimate;

/// Model probabilities as they should have been.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Correction {
    /// Models, most probable first. Models that no draw met are not listed.
    pub models: Vec<ModelCorrection>,
    /// Half the sum of |q − corrected| over all models, as far as they are listed.
    pub total_variation: f64,
}

/// What is known about one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelCorrection {
    /// The model; where several words mean one, the one that represents them.
    pub model: Model,
    /// What people read.
    pub label: String,
    /// Its probability under q; an estimate where the words that mean it were not all met.
    pub q: f64,
    /// Its corrected probability.
    pub corrected: Estimate,
    /// Its log evidence, `log ∫ η(θ | m) dθ`, where it was met often enough on its own.
    pub log_evidence: Option<Estimate>,
    /// k̂ of the weights within the model, as far as known.
    pub khat: Option<f64>,
    /// Draws or steps of chains that met it.
    pub draws: usize,
}

impl Correction {
    /// Sorts the models and measures their distance from q.
    pub(super) fn new(mut models: Vec<ModelCorrection>) -> Self {
        let by_probability = |a: &ModelCorrection, b: &ModelCorrection| {
            b.corrected.value.total_cmp(&a.corrected.value).then_with(|| a.model.cmp(&b.model))
        };
        models.sort_by(by_probability);
        let listed: f64 = models.iter().map(|model| (model.q - model.corrected.value).abs()).sum();
        // What q gives to models that are not listed is off by as much.
        let unlisted = (1.0 - models.iter().map(|model| model.q).sum::<f64>()).max(0.0);
        Self { models, total_variation: 0.5 * (listed + unlisted) }
    }
}
