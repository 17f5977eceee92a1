//! The form of a corrected answer, whether by weights or by chains.

use serde::{Serialize, Serializer};

use crate::space::Model;
use crate::stats::{Estimate, Evidence};

/// Model probabilities as they should have been.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Correction {
    /// Models, most probable first: by their corrected probability where it is known or they were met often, by the smaller of
    /// both otherwise. Models that no draw met are not listed.
    pub models: Vec<ModelCorrection>,
    /// Half the sum of |q − corrected| over the models whose probabilities are known or that were met often, all others taken
    /// as one.
    pub total_variation: f64,
    /// What the standard errors alone would make of it.
    pub total_variation_se: f64,
}

/// A model that was met so often has a probability of its own worth comparing.
const OFTEN: usize = 30;

/// k̂ in JSON, which has no infinities.
pub(super) fn khat<S: Serializer>(khat: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match khat {
        Some(f64::NEG_INFINITY) => serializer.serialize_str("-inf"),
        other => other.serialize(serializer),
    }
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
    /// Its evidence, `∫ η(θ | m) dθ`, where it was met often enough on its own.
    pub evidence: Option<Evidence>,
    /// k̂ of the weights within the model, as far as known; −∞ if all are equal ("-inf" in JSON).
    #[serde(serialize_with = "khat")]
    pub khat: Option<f64>,
    /// Draws or steps of chains that met it; 0 where particles found its probability.
    pub draws: usize,
}

impl Correction {
    /// Of probabilities that draws estimate.
    pub(super) fn estimated(models: Vec<ModelCorrection>) -> Self {
        Self::new(models, OFTEN)
    }

    /// Of probabilities that are known for every model, however rarely it was met.
    pub(super) fn known(models: Vec<ModelCorrection>) -> Self {
        Self::new(models, 0)
    }

    /// Sorts the models and measures their distance from q, where what was met less often than this says little.
    fn new(mut models: Vec<ModelCorrection>, often: usize) -> Self {
        // Where there are more models than draws, the largest weights belong to models that one draw met by chance, far
        // beyond their probability. Such a model is worth no more than q says.
        let worth = |model: &ModelCorrection| {
            let corrected = model.corrected.value;
            if model.draws >= often { corrected } else { corrected.min(model.q) }
        };
        models.sort_by(|a, b| worth(b).total_cmp(&worth(a)).then_with(|| a.model.cmp(&b.model)));
        // Models that were met once or twice each would differ from q by chance alone, however good it is.
        let counted = || models.iter().filter(|model| model.draws >= often);
        let off: f64 = counted().map(|model| (model.q - model.corrected.value).abs()).sum();
        let rest = counted().map(|model| model.corrected.value - model.q).sum::<f64>().abs();
        let total_variation = 0.5 * (off + rest);
        let total_variation_se = 0.5 * counted().map(|model| model.corrected.se).sum::<f64>();
        Self { models, total_variation, total_variation_se }
    }
}
