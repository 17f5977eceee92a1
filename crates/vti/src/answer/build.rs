//! From a check, chains where there were any and the exact answer where it is known to an answer.

use super::count::Counts;
use super::features::{DrawnParts, parts};
use super::graph::Weighted;
use super::heed::heed;
use super::subject::Asked;
use super::{
    Answer, AnswerError, Bound, ChainFacts, Coefficient, Count, Counting, Distances, Edges, Exact, ExactComparison,
    Found, Graphs, LogEvidence, Method, ModelAnswer, Ordered, Quantity, Run, Samples, Subject, Terms, VERSION,
    quantiles,
};
use crate::check::{Check, ModelCorrection, Opinion, Refined, Verdict, VerdictKind};
use crate::device::Device;
use crate::family::FamilyError;
use crate::graph::{Graph, GraphError};
use crate::posterior::{Draws, ModelProbability, Posterior};
use crate::problem::dag::Dag;
use crate::simd::Real;
use crate::space::{Model, ModelSpace};
use crate::stats::{Estimate, share_error, standard_error};

/// The most models that an answer lists.
pub const MAX_MODELS: usize = 1000;

/// With so many words at most, every model's probability under q is computed.
const MAX_WORDS: f64 = (1 << 16) as f64;

/// Particles have common ancestors: each says as much as this share of an independent draw, or more.
const PARTICLES_WORTH: f64 = 0.1;

/// Numbers that draws may take up where nobody needs all of them.
const MAX_NUMBERS: usize = 1 << 23;

/// What an answer is made from.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// What the check found.
    pub check: &'a Check,
    /// What chains found, which then is the correction unless particles that know nothing of q have one: chains start from q, and
    /// what q has lost they mostly miss too.
    pub chains: Option<&'a Refined>,
    /// The exact answer.
    pub exact: Option<&'a Exact>,
}

impl<'a> From<&'a Check> for Sources<'a> {
    fn from(check: &'a Check) -> Self {
        Self { check, chains: None, exact: None }
    }
}

/// An answer with what stands behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The answer.
    pub answer: Answer,
    /// All models that were met, most probable first.
    pub models: Vec<ModelAnswer>,
    /// Draws of the corrected answer: those of the chains, or those of the check with their weights.
    pub samples: Samples,
}

impl Findings {
    /// What follows from what was found. Seed and precision of the run are those of the posterior.
    pub fn new<D: Device>(
        posterior: &Posterior<D>,
        subject: &Subject<'_>,
        sources: &Sources<'_>,
        run: Run,
    ) -> Result<Self, AnswerError> {
        let (found, expected) = (subject.units().names().len(), posterior.problem().parameter_names().len());
        if found != expected {
            return Err(AnswerError::OtherProblem { found, expected });
        }
        let q_distance = match sources.exact {
            Some(exact) => q_distance(posterior, exact)?,
            None => None,
        };
        let step = |draws: usize| match subject.has_coefficients() {
            true => 1,
            false => (draws * posterior.problem().space().max_dim()).div_ceil(MAX_NUMBERS).max(1),
        };
        let samples = |draws: &Draws, log_weights: &[f64]| {
            Samples::new(posterior, subject.units(), draws, log_weights, step(draws.len()))
        };
        let checked = samples(&sources.check.draws, &sources.check.log_weights);
        let by = By::new(sources);
        let (samples, q_samples) = match by {
            By::Weights => (checked, None),
            By::Chains(Refined { draws, .. }) => {
                (samples(draws, &vec![-(draws.len() as f64).ln(); draws.len()]), Some(checked))
            }
            By::Particles(opinion) => (samples(&opinion.draws, &opinion.log_weights), Some(checked)),
        };
        let run = Run { seed: posterior.seed(), precision: D::Real::NAME.into(), ..run };
        let space = posterior.problem().space();
        let building = Building::new(space, *sources, by, &samples, q_samples.as_ref(), q_distance);
        let (mut answer, models) = building.answer(subject, run)?;
        if let Some(exact) = sources.exact {
            answer.verdict = heed(&answer, &models, exact);
        }
        Ok(Self { answer, models, samples })
    }
}

/// Total variation between q(m) and the exact model probabilities, where there are not too many models.
fn q_distance<D: Device>(posterior: &Posterior<D>, exact: &Exact) -> Result<Option<f64>, FamilyError> {
    // Unknown for some spaces, and then it is not a number.
    let few = posterior.problem().space().log_count() <= MAX_WORDS.ln() + 1e-9;
    if !few {
        return Ok(None);
    }
    let off = |model: &ModelProbability| {
        (model.probability.value - exact.probability(&model.model).unwrap_or(f64::NAN)).abs()
    };
    // So few models are all listed, whatever the number of draws.
    Ok(Some(0.5 * posterior.model_probabilities(1)?.iter().map(off).sum::<f64>()))
}

impl Terms {
    /// From the probabilities of the parts that a space's models have.
    pub(super) fn of_parts(
        space: &dyn ModelSpace,
        parts: Vec<Quantity>,
        highest_probability_model: String,
        coefficients: Ordered<Coefficient>,
    ) -> Self {
        // Without names there are no parts.
        let inclusion: Vec<(String, Quantity)> = space.part_names().into_iter().zip(parts).collect();
        let likely = inclusion.iter().filter(|(_, part)| part.corrected > 0.5).map(|(name, _)| name.as_str());
        let median = format!("{{{}}}", likely.collect::<Vec<_>>().join(", "));
        Self {
            highest_probability_model,
            median_probability_model: (!inclusion.is_empty()).then_some(median),
            inclusion: Ordered(inclusion),
            coefficients,
        }
    }
}

/// What the corrected answer is made from.
#[derive(Clone, Copy)]
enum By<'a> {
    /// Weighted draws of q.
    Weights,
    /// Chains with q as their proposal.
    Chains(&'a Refined),
    /// Particles that know nothing of q.
    Particles(&'a Opinion),
}

impl<'a> By<'a> {
    fn new(sources: &Sources<'a>) -> Self {
        match (sources.chains, &sources.check.opinion) {
            (_, Some(opinion)) if sources.check.prefers_opinion => Self::Particles(opinion),
            (Some(refined), _) => Self::Chains(refined),
            (None, _) => Self::Weights,
        }
    }

    /// Draws of their own.
    fn draws(self) -> Option<&'a Draws> {
        match self {
            Self::Weights => None,
            Self::Chains(refined) => Some(&refined.draws),
            Self::Particles(opinion) => Some(&opinion.draws),
        }
    }
}

/// What was found out, before it is put into an answer.
struct Building<'a> {
    space: &'a dyn ModelSpace,
    check: &'a Check,
    by: By<'a>,
    chains: Option<&'a Refined>,
    exact: Option<&'a Exact>,
    /// Total variation between q(m) and the exact model probabilities, where all of q(m) is known.
    q_distance: Option<f64>,
    /// Parts of the models of the check's draws, and of the corrected answer's draws where these are others.
    q_parts: DrawnParts,
    own_parts: Option<DrawnParts>,
    /// Draws of the check and of the corrected answer.
    q_samples: &'a Samples,
    samples: &'a Samples,
}

impl<'a> Building<'a> {
    fn new(
        space: &'a dyn ModelSpace,
        sources: Sources<'a>,
        by: By<'a>,
        samples: &'a Samples,
        q_samples: Option<&'a Samples>,
        q_distance: Option<f64>,
    ) -> Self {
        let Sources { check, chains, exact } = sources;
        let q_parts = DrawnParts::new(space, &check.draws);
        let own_parts = by.draws().map(|draws| DrawnParts::new(space, draws));
        let q_samples = q_samples.unwrap_or(samples);
        Self { space, check, by, chains, exact, q_distance, q_parts, own_parts, q_samples, samples }
    }

    /// The answer, and all models that were met.
    fn answer(&self, subject: &Subject<'_>, run: Run) -> Result<(Answer, Vec<ModelAnswer>), GraphError> {
        let counting = match &subject.asked {
            Asked::Count(counting) => Some(*counting),
            _ => None,
        };
        let models: Vec<ModelAnswer> = self.corrections().iter().map(|model| self.model(model, counting)).collect();
        let Estimate { value, se } = match self.by {
            By::Particles(opinion) => opinion.surest_log_evidence(),
            By::Weights | By::Chains(_) => self.check.log_evidence,
        };
        let facts = |refined: &Refined| ChainFacts {
            rhat: Some(refined.rhat).filter(|rhat| rhat.is_finite()),
            effective: refined.effective,
            accepted_jumps: refined.accepted_jumps,
        };
        let answer = Answer {
            version: VERSION.into(),
            title: subject.title.clone(),
            data: subject.data.clone(),
            fit: None,
            verdict: self.verdict(),
            elbo: Some(Bound { mean: self.check.elbo.value, se: self.check.elbo.se }),
            log_evidence: LogEvidence { estimate: value, se, khat: self.check.khat.filter(|khat| khat.is_finite()) },
            correction: self.method(),
            found: match &subject.asked {
                Asked::Own => Found::Own(self.terms()),
                Asked::Select(_) => Found::Select(self.terms()),
                Asked::Dag(dag, truth) => {
                    let coefficients = subject.has_coefficients().then(|| Ordered(dag.in_use(self.coefficients().0)));
                    Found::Dag(Box::new(self.graphs(dag, truth.as_ref(), coefficients)?))
                }
                Asked::Count(counting) => Found::Count(Box::new(self.count(*counting, &models))),
            },
            models: models[..models.len().min(MAX_MODELS)].to_vec(),
            exact: self.exact.map(|exact| self.compare(exact)),
            chains: self.chains.map(facts),
            search: None,
            run,
        };
        Ok((answer, models))
    }

    /// What is said of chains counts only where the check has looked beyond what they start from.
    fn verdict(&self) -> Verdict {
        let checked = &self.check.verdict;
        match (self.by, self.chains) {
            (By::Chains(refined), _) if checked.kind != VerdictKind::DoNotTrust => refined.verdict.clone(),
            (By::Chains(refined), _) => refined.verdict.clone().without_opinion(),
            (By::Particles(opinion), Some(refined)) => {
                let off =
                    opinion.parts.iter().zip(self.counted(refined)).map(|(part, share)| (part.value - share).abs());
                checked.with_chains(off.fold(0.0, f64::max))
            }
            _ => checked.clone(),
        }
    }

    fn method(&self) -> Method {
        match (self.by, &self.check.blocks) {
            (By::Chains(_), _) => Method::Chains,
            (By::Particles(_), _) => Method::Particles,
            (By::Weights, Some(blocks)) if blocks.annealed() => Method::Annealed,
            (By::Weights, Some(_)) => Method::Blocks,
            (By::Weights, None) => Method::Weights,
        }
    }

    /// The corrected mean of a function of the draws.
    fn corrected(&self, f: impl Fn(usize) -> f64) -> Estimate {
        match self.by {
            // There is a weight, or the check would have failed, and coefficients are finite.
            By::Weights => self.check.mean(f).unwrap_or(Estimate { value: f64::NAN, se: f64::NAN }),
            By::Particles(opinion) => opinion.mean(f),
            By::Chains(Refined { chains, .. }) => {
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
    fn parts(&self) -> Vec<Quantity> {
        match (self.by, &self.check.blocks) {
            (By::Particles(opinion), _) => {
                self.known_parts(&opinion.parts_q, &opinion.parts, PARTICLES_WORTH * opinion.draws.len() as f64)
            }
            (By::Weights, Some(blocks)) => {
                self.known_parts(&blocks.features_q, &blocks.features, self.check.draws.len() as f64)
            }
            _ => self.drawn_parts(),
        }
    }

    fn exact_part(&self, part: usize) -> Option<f64> {
        self.exact.and_then(|exact| exact.parts.get(part)).map(|probability| probability.clamp(0.0, 1.0))
    }

    /// Probabilities of parts that are known already. Where runs or evidences leave no doubt, so many draws may still have missed
    /// something.
    fn known_parts(&self, q: &[f64], corrected: &[Estimate], effective: f64) -> Vec<Quantity> {
        let part = |(place, (&q, &Estimate { value, se })): (usize, (&f64, &Estimate))| {
            let value = value.clamp(0.0, 1.0);
            Quantity {
                q: q.clamp(0.0, 1.0),
                corrected: value,
                se: if se > 0.0 { se } else { share_error(value, effective) },
                exact: self.exact_part(place),
            }
        };
        q.iter().zip(corrected).enumerate().map(part).collect()
    }

    /// What draws, and chains where there are any, say about parts.
    fn drawn_parts(&self) -> Vec<Quantity> {
        let own_parts = self.own_parts.as_ref().unwrap_or(&self.q_parts);
        let counted = match self.by {
            By::Chains(refined) => Some(self.counted(refined)),
            _ => None,
        };
        let part = |part: usize| {
            let mean = self.corrected(|row| own_parts.indicator(row, part));
            let corrected = self.share(counted.as_ref().map(|counted| counted[part]), mean);
            Quantity {
                q: self.under_q(|row| self.q_parts.indicator(row, part)).clamp(0.0, 1.0),
                corrected: corrected.value.clamp(0.0, 1.0),
                se: corrected.se,
                exact: self.exact_part(part),
            }
        };
        (0..self.q_parts.count()).map(part).collect()
    }

    /// The share of each part in all models that chains visited. They keep some of their iterations as draws, but count the
    /// models of all.
    fn counted(&self, refined: &Refined) -> Vec<f64> {
        let mut shares = vec![0.0; self.q_parts.count()];
        for model in &refined.correction.models {
            let has = parts(self.space, &model.model);
            shares.iter_mut().zip(has).filter(|(_, has)| *has).for_each(|(share, _)| *share += model.corrected.value);
        }
        shares
    }

    /// The probability of a part, from its mean over the draws and from what chains counted. What no draw was ever without
    /// may still have been missed.
    fn share(&self, counted: Option<f64>, mean: Estimate) -> Estimate {
        let value = counted.unwrap_or(mean.value);
        let effective = match self.by {
            By::Chains(refined) => refined.effective,
            _ => self.check.effective_draws,
        };
        let se = if mean.se > 0.0 { mean.se } else { share_error(value.clamp(0.0, 1.0), effective) };
        Estimate { value, se }
    }

    fn coefficients(&self) -> Ordered<Coefficient> {
        let weights = self.samples.weights();
        let parameters = self.samples.names.iter().enumerate().map(|(parameter, name)| {
            let value = |samples: &Samples, row| samples.value(row, parameter).unwrap_or(0.0);
            let corrected = self.corrected(|row| value(self.samples, row));
            let mut pairs: Vec<(f64, f64)> =
                weights.iter().enumerate().map(|(row, &weight)| (value(self.samples, row), weight)).collect();
            let variance: f64 = pairs.iter().map(|(x, weight)| weight * (x - corrected.value).powi(2)).sum();
            let mean = Quantity {
                q: self.under_q(|row| value(self.q_samples, row)),
                corrected: corrected.value,
                se: corrected.se,
                exact: self.exact.and_then(|exact| exact.means.as_ref()?.get(parameter).copied()),
            };
            let coefficient =
                Coefficient { mean, sd: variance.sqrt(), interval: quantiles(&mut pairs, [0.025, 0.975]) };
            (name.clone(), coefficient)
        });
        parameters.collect()
    }

    fn terms(&self) -> Terms {
        let highest = self.corrections().first().map_or_else(String::new, |model| model.label.clone());
        Terms::of_parts(self.space, self.parts(), highest, self.coefficients())
    }

    fn count(&self, counting: &dyn Counting, models: &[ModelAnswer]) -> Count {
        let own_parts = self.own_parts.as_ref().unwrap_or(&self.q_parts);
        let mean = self.corrected(|row| counting.count(own_parts.word(row)) as f64);
        let always = counting.always();
        let coefficients = self.coefficients().0.into_iter().filter(|(name, _)| always.contains(name)).collect();
        let unmet = share_error(0.0, self.check.effective_draws);
        let counts = Counts::of_models(counting, models, self.exact, unmet, mean.se, coefficients);
        counts.described(counting.counted(), counting.describe(self.samples, &self.samples.weights()))
    }

    fn graphs(
        &self,
        dag: &Dag,
        truth: Option<&(String, Graph)>,
        coefficients: Option<Ordered<Coefficient>>,
    ) -> Result<Graphs, GraphError> {
        let edges = Edges::new(dag.space().names(), &self.parts());
        let graphs = Weighted::new(dag, &self.corrected_models());
        let best = self.corrections().first().and_then(|model| dag.graph(&model.model));
        let q = || Weighted::new(dag, &self.q_parts.weighted_words(&self.check.q_weights));
        let truth = truth.map(|(path, truth)| graphs.distance(path, truth, Some(&q()), &edges)).transpose()?;
        let graph = graphs.statistics(best.as_ref(), &self.corrected_words(), &edges);
        Ok(Graphs { edges, graph, truth, coefficients })
    }

    /// Words that were drawn, with their corrected probabilities.
    fn corrected_words(&self) -> Vec<(Model, f64)> {
        let weights = match self.by {
            By::Weights => return self.check.corrected_words(),
            By::Chains(Refined { draws, .. }) => vec![1.0 / draws.len() as f64; draws.len()],
            By::Particles(opinion) => opinion.log_weights.iter().map(|log_weight| log_weight.exp()).collect(),
        };
        self.own_parts.as_ref().map_or_else(Vec::new, |parts| parts.weighted_words(&weights))
    }

    /// Models that were met, with their corrected probabilities. Chains count the models of all iterations, not only of
    /// those that they keep as draws.
    fn corrected_models(&self) -> Vec<(Model, f64)> {
        match self.by {
            By::Weights => self.corrected_words(),
            _ => self.corrections().iter().map(|model| (model.model.clone(), model.corrected.value)).collect(),
        }
    }

    /// All models that were met.
    fn corrections(&self) -> &[ModelCorrection] {
        let correction = match self.by {
            By::Weights => &self.check.correction,
            By::Chains(refined) => &refined.correction,
            By::Particles(opinion) => &opinion.correction,
        };
        &correction.models
    }

    fn model(&self, model: &ModelCorrection, counting: Option<&dyn Counting>) -> ModelAnswer {
        // Chains know nothing about evidences of single models; the check may.
        let checked = match self.by {
            By::Weights => Some(model),
            _ => self.check.correction.models.iter().find(|other| other.model == model.model),
        };
        ModelAnswer {
            word: model.model.to_string(),
            size: match counting {
                Some(counting) => counting.count(&model.model),
                None => parts(self.space, &model.model).into_iter().filter(|has| *has).count(),
            },
            label: match counting {
                Some(counting) => counting.counted().number(counting.count(&model.model)),
                None => model.label.clone(),
            },
            probability: Quantity {
                q: model.q,
                corrected: model.corrected.value,
                se: model.corrected.se.min(f64::MAX),
                exact: self.exact.and_then(|exact| exact.probability(&model.model)),
            },
            log_evidence: model.evidence.or(checked.and_then(|checked| checked.evidence)).map(|found| found.estimate()),
            khat: checked.and_then(|checked| checked.khat).filter(|khat| khat.is_finite()),
        }
    }

    fn compare(&self, exact: &Exact) -> ExactComparison {
        let truth = |model: &ModelCorrection| exact.probability(&model.model).unwrap_or(f64::NAN);
        let sum =
            |probability: &dyn Fn(&ModelCorrection) -> f64| self.corrections().iter().map(probability).sum::<f64>();
        let met = sum(&truth);
        // Among models that were met: of the others nothing is known but that.
        let distance = |probability: &dyn Fn(&ModelCorrection) -> f64| {
            let own = sum(probability);
            0.5 * sum(&|model| (probability(model) / own - truth(model) / met).abs())
        };
        ExactComparison {
            log_evidence: exact.log_evidence,
            total_variation: Some(Distances {
                q: self.q_distance.unwrap_or_else(|| distance(&|model| model.q)),
                corrected: distance(&|model| model.corrected.value),
                met: Some(met.min(1.0)).filter(|met| met.is_finite()),
            }),
        }
    }
}
