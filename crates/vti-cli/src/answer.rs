//! From a check, and chains where there were any, to the answer in the units of the data.

use vti::check::{Check, FactorCheck, ModelCorrection, Refined, VerdictKind};
use vti::device::Device;
use vti::family::FamilyError;
use vti::posterior::{Draws, ModelProbability, Posterior};
use vti::problem::Problem;
use vti::space::{Model, ModelSpace};
use vti::stats::{Estimate, share_error, standard_error};

use crate::parts::Parts;
use crate::question::{Exact, Question, pairs};
use crate::samples::{Samples, quantiles};
use crate::summary::{
    Bound, ChainsSummary, Coefficient, Distances, Evidence, ExactSummary, Inclusion, Method, ModelSummary, Ordered,
    VerdictSummary, VerdictWord,
};

/// The most models that are listed in a summary.
pub(crate) const MOST_MODELS: usize = 1000;

/// With so many words at most, every model's probability under q is computed.
const MOST_WORDS: f64 = (1 << 16) as f64;

/// Chains, and how many there are.
#[derive(Debug)]
pub(crate) struct ChainsAnswer {
    pub(crate) refined: Refined,
    pub(crate) chains: usize,
}

/// What was found out, before it is summarised.
pub(crate) struct Answer<'a> {
    space: &'a dyn ModelSpace,
    check: &'a Check,
    chains: Option<&'a ChainsAnswer>,
    exact: Option<&'a Exact>,
    /// Total variation between q(m) and the exact model probabilities, where all of q(m) is known.
    q_distance: Option<f64>,
    /// Parts of the models of the check's draws, and of the corrected answer's draws where these are others.
    q_parts: Parts,
    own_parts: Option<Parts>,
    /// Draws of the check, where they are not those of the corrected answer.
    q_samples: Option<Samples>,
    /// Draws of the corrected answer.
    pub(crate) samples: Samples,
}

impl<'a> Answer<'a> {
    pub(crate) fn new<'p: 'a, Q: Question, D: Device>(
        question: &'p Q,
        posterior: &mut Posterior<'p, Q::Problem, D>,
        check: &'a Check,
        chains: Option<&'a ChainsAnswer>,
        exact: Option<&'a Exact>,
    ) -> Result<Self, FamilyError> {
        let q_distance = exact.map(|exact| q_distance(posterior, exact)).transpose()?.flatten();
        let (space, units): (&dyn ModelSpace, _) = (question.problem().space(), question.units());
        let samples = |draws: &Draws, log_weights: &[f64]| {
            Samples::new(posterior, &units, draws, log_weights, question.draw_step(draws.len()))
        };
        let checked = samples(&check.draws, &check.log_weights);
        let (samples, q_samples) = match chains {
            Some(ChainsAnswer { refined, .. }) => {
                let equal = -(refined.draws.len() as f64).ln();
                (samples(&refined.draws, &vec![equal; refined.draws.len()]), Some(checked))
            }
            None => (checked, None),
        };
        let q_parts = Parts::new(space, &check.draws);
        let own_parts = chains.map(|chains| Parts::new(space, &chains.refined.draws));
        Ok(Self { space, check, chains, exact, q_distance, q_parts, own_parts, q_samples, samples })
    }

    fn q_samples(&self) -> &Samples {
        self.q_samples.as_ref().unwrap_or(&self.samples)
    }

    pub(crate) fn method(&self) -> Method {
        match (self.chains, &self.check.factors) {
            (Some(_), _) => Method::Chains,
            (None, Some(factors)) if factors.annealed() => Method::Annealed,
            (None, Some(_)) => Method::Factors,
            (None, None) => Method::Weights,
        }
    }

    /// The corrected mean of a function of the draws.
    fn corrected(&self, f: impl Fn(usize) -> f64) -> Estimate {
        match self.chains {
            // There is a weight, or the check would have failed, and coefficients are finite.
            None => self.check.mean(f).unwrap_or(Estimate { value: f64::NAN, se: f64::NAN }),
            Some(ChainsAnswer { chains, .. }) => {
                // All chains, draw after draw.
                let traces: Vec<Vec<f64>> =
                    (0..*chains).map(|chain| (chain..self.samples.len()).step_by(*chains).map(&f).collect()).collect();
                let traces: Vec<&[f64]> = traces.iter().map(Vec::as_slice).collect();
                let value = traces.iter().flat_map(|trace| trace.iter()).sum::<f64>() / self.samples.len() as f64;
                Estimate { value, se: standard_error(&traces).unwrap_or(0.0) }
            }
        }
    }

    /// The mean of a function of the draws under q.
    fn under_q(&self, f: impl Fn(usize) -> f64) -> f64 {
        self.check.q_weights.iter().enumerate().map(|(row, weight)| weight * f(row)).sum()
    }

    /// How probable each part of a model is (terms, edges), in the order of the space's features.
    pub(crate) fn parts(&self) -> Vec<Inclusion> {
        match (self.chains, &self.check.factors) {
            (None, Some(factors)) => self.factored_parts(factors),
            _ => self.drawn_parts(),
        }
    }

    /// Probabilities of edges that follow from factors, by exact sums over graphs.
    fn factored_parts(&self, factors: &FactorCheck) -> Vec<Inclusion> {
        let nodes = factors.edges.len().isqrt();
        let effective = self.check.draws.len() as f64;
        let part = |(place, (from, to)): (usize, (usize, usize))| {
            let Estimate { value, se } = factors.edges[from * nodes + to];
            let value = value.clamp(0.0, 1.0);
            Inclusion {
                q: factors.edges_q[from * nodes + to].clamp(0.0, 1.0),
                corrected: value,
                se: if se > 0.0 { se } else { share_error(value, effective) },
                exact: self.exact.map(|exact| exact.parts[place].clamp(0.0, 1.0)),
            }
        };
        pairs(nodes).enumerate().map(part).collect()
    }

    /// What draws, and chains where there are any, say about parts.
    fn drawn_parts(&self) -> Vec<Inclusion> {
        let own_parts = self.own_parts.as_ref().unwrap_or(&self.q_parts);
        let counted = self.chains.map(|chains| self.counted(&chains.refined));
        let part = |part: usize| {
            let is_in = |parts: &Parts, row| f64::from(u8::from(parts.has(row, part)));
            let mean = self.corrected(|row| is_in(own_parts, row));
            let corrected = self.share(counted.as_ref().map(|counted| counted[part]), mean);
            Inclusion {
                q: self.under_q(|row| is_in(&self.q_parts, row)).clamp(0.0, 1.0),
                corrected: corrected.value.clamp(0.0, 1.0),
                se: corrected.se,
                exact: self.exact.map(|exact| exact.parts[part].clamp(0.0, 1.0)),
            }
        };
        (0..self.q_parts.count()).map(part).collect()
    }

    /// The share of each part in all models that chains visited. They keep some of their iterations as draws, but count the
    /// models of all.
    fn counted(&self, refined: &Refined) -> Vec<f64> {
        let mut shares = vec![0.0; self.q_parts.count()];
        for model in &refined.correction.models {
            let marks = crate::parts::marks(self.space, &model.model);
            shares
                .iter_mut()
                .zip(marks)
                .filter(|(_, mark)| *mark)
                .for_each(|(share, _)| *share += model.corrected.value);
        }
        shares
    }

    /// The probability of a part, from its mean over the draws and from what chains counted. What no draw was ever without
    /// may still have been missed.
    fn share(&self, counted: Option<f64>, mean: Estimate) -> Estimate {
        let value = counted.unwrap_or(mean.value);
        let effective = self.chains.map_or(self.check.effective_draws, |chains| chains.refined.effective);
        let se = if mean.se > 0.0 { mean.se } else { share_error(value.clamp(0.0, 1.0), effective) };
        Estimate { value, se }
    }

    pub(crate) fn coefficients(&self) -> Ordered<Coefficient> {
        let weights = self.samples.weights();
        let parameters = self.samples.names.iter().enumerate().map(|(parameter, name)| {
            let value = |samples: &Samples, row| samples.value(row, parameter).unwrap_or(0.0);
            let corrected = self.corrected(|row| value(&self.samples, row));
            let mut pairs: Vec<(f64, f64)> =
                weights.iter().enumerate().map(|(row, &weight)| (value(&self.samples, row), weight)).collect();
            let variance: f64 = pairs.iter().map(|(x, weight)| weight * (x - corrected.value).powi(2)).sum();
            let coefficient = Coefficient {
                q: self.under_q(|row| value(self.q_samples(), row)),
                corrected: corrected.value,
                se: corrected.se,
                sd: variance.sqrt(),
                interval: quantiles(&mut pairs, [0.025, 0.975]),
            };
            (name.clone(), coefficient)
        });
        Ordered(parameters.collect())
    }

    pub(crate) fn models(&self) -> Vec<ModelSummary> {
        self.corrections().iter().take(MOST_MODELS).map(|model| self.model(model)).collect()
    }

    /// Words that were drawn, with their corrected probabilities.
    pub(crate) fn corrected_words(&self) -> Vec<(Model, f64)> {
        match (self.chains, &self.own_parts) {
            (Some(ChainsAnswer { refined, .. }), Some(parts)) => {
                let count = refined.draws.len();
                parts.weighted_words(&vec![1.0 / count as f64; count])
            }
            _ => self.check.corrected_words(),
        }
    }

    /// Models that were met, with their corrected probabilities. Chains count the models of all iterations, not only of
    /// those that they keep as draws.
    pub(crate) fn corrected_models(&self) -> Vec<(Model, f64)> {
        match self.chains {
            Some(ChainsAnswer { refined, .. }) => {
                refined.correction.models.iter().map(|model| (model.model.clone(), model.corrected.value)).collect()
            }
            None => self.corrected_words(),
        }
    }

    /// Words that were drawn, with their probabilities under q.
    pub(crate) fn q_words(&self) -> Vec<(Model, f64)> {
        self.q_parts.weighted_words(&self.check.q_weights)
    }

    /// The most probable model.
    pub(crate) fn top_model(&self) -> Option<&Model> {
        self.corrections().first().map(|model| &model.model)
    }

    /// What the most probable model is called.
    pub(crate) fn top_label(&self) -> String {
        self.corrections().first().map_or_else(String::new, |model| model.label.clone())
    }

    /// All models that were met.
    pub(crate) fn corrections(&self) -> &[ModelCorrection] {
        match self.chains {
            Some(ChainsAnswer { refined, .. }) => &refined.correction.models,
            None => &self.check.correction.models,
        }
    }

    pub(crate) fn model(&self, model: &ModelCorrection) -> ModelSummary {
        // Chains know nothing about evidences; the check may.
        let checked = match self.chains {
            Some(_) => self.check.correction.models.iter().find(|other| other.model == model.model),
            None => Some(model),
        };
        ModelSummary {
            word: model.model.to_string(),
            size: crate::parts::marks(self.space, &model.model).into_iter().filter(|mark| *mark).count(),
            label: model.label.clone(),
            q: model.q,
            corrected: model.corrected.value,
            se: model.corrected.se.min(f64::MAX),
            exact: self.exact.and_then(|exact| exact.probability(&model.model)),
            log_evidence: checked.and_then(|checked| checked.log_evidence),
            khat: checked.and_then(|checked| checked.khat).filter(|khat| khat.is_finite()),
        }
    }

    pub(crate) fn verdict(&self) -> VerdictSummary {
        let verdict = self.chains.map_or(&self.check.verdict, |chains| &chains.refined.verdict);
        let kind = match verdict.kind {
            VerdictKind::Trust => VerdictWord::Trust,
            VerdictKind::Corrected => VerdictWord::Corrected,
            VerdictKind::DoNotTrust => VerdictWord::DoNotTrust,
        };
        VerdictSummary { kind, text: verdict.text.clone() }
    }

    pub(crate) fn elbo(&self) -> Bound {
        Bound { mean: self.check.elbo.value, se: self.check.elbo.se }
    }

    pub(crate) fn evidence(&self) -> Evidence {
        let Estimate { value, se } = self.check.log_evidence;
        Evidence { estimate: value, se, khat: self.check.khat.filter(|khat| khat.is_finite()) }
    }

    pub(crate) fn chains_summary(&self) -> Option<ChainsSummary> {
        self.chains.map(|ChainsAnswer { refined, .. }| ChainsSummary {
            rhat: Some(refined.rhat).filter(|rhat| rhat.is_finite()),
            effective: refined.effective,
            accepted_jumps: refined.accepted_jumps,
        })
    }

    pub(crate) fn exact_summary(&self) -> Option<ExactSummary> {
        let exact = self.exact?;
        let distance = |probability: &dyn Fn(&ModelCorrection) -> f64| {
            let (mut off, mut own, mut known) = (0.0, 0.0, 0.0);
            for model in self.corrections() {
                let (found, truth) = (probability(model), exact.probability(&model.model).unwrap_or(f64::NAN));
                off += (found - truth).abs();
                own += found;
                known += truth;
            }
            // As if no model that was not met were probable on both sides: the most it can be.
            0.5 * (off + (1.0 - own).max(0.0) + (1.0 - known).max(0.0))
        };
        Some(ExactSummary {
            log_evidence: exact.log_evidence,
            total_variation: Distances {
                q: self.q_distance.unwrap_or_else(|| distance(&|model| model.q)),
                corrected: distance(&|model| model.corrected.value),
            },
        })
    }
}

/// Total variation between q(m) and the exact model probabilities, where there are not too many models.
fn q_distance<P: Problem, D: Device>(
    posterior: &mut Posterior<'_, P, D>,
    exact: &Exact,
) -> Result<Option<f64>, FamilyError> {
    // Unknown for some spaces, and then it is not a number.
    let few = posterior.problem().space().log_count() <= MOST_WORDS.ln() + 1e-9;
    if !few {
        return Ok(None);
    }
    let off = |model: &ModelProbability| {
        (model.probability.value - exact.probability(&model.model).unwrap_or(f64::NAN)).abs()
    };
    // So few models are all listed, whatever the number of draws.
    Ok(Some(0.5 * posterior.model_probabilities(1)?.iter().map(off).sum::<f64>()))
}
