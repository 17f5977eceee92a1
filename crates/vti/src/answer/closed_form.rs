//! Answers without a flow that was learned: from models whose evidences are in closed form, all of them or those that chains met.

use super::{
    Answer, AnswerError, Bound, Coefficient, ExactComparison, Findings, Found, LogEvidence, MAX_MODELS, Method,
    ModelAnswer, Ordered, Quantity, Run, Samples, SearchFacts, Subject, Terms, VERSION, quantiles,
};
use crate::check::{Verdict, VerdictKind};
use crate::posterior::ConjugatePosterior;
use crate::problem::Problem;
use crate::problem::selection::{Average, Enumeration, WeighedModels};
use crate::search::{Ended, Estimator, FoundModel, LearnedModels, SearchSettings, Searched};
use crate::simd::Real;
use crate::space::{Model, ModelSpace};
use crate::stats::Estimate;
use crate::workers::Workers;

/// The most models that are listed in full; of more, the most probable ones.
const MAX_LISTED: usize = 1 << 16;

/// Numbers that draws take up at most, unless that leaves too few draws.
const MAX_NUMBERS: usize = 1 << 24;

/// Draws that are made in any case, if so many are wanted.
const MIN_DRAWS: usize = 2000;

/// How many of so many draws are made of models in closed form with so many parameters.
pub fn affordable_draws(draws: usize, parameters: usize) -> usize {
    draws.min((MAX_NUMBERS / parameters.max(1)).max(MIN_DRAWS))
}

impl Findings {
    /// What follows from the exact posterior of a selection: probabilities and means by sums over all models, and `draws`
    /// draws of models and parameters for intervals, predictions and plots. Numbers under q are not numbers: nothing was
    /// learned. The posterior must be one whose models were enumerated.
    pub fn exact(
        posterior: &ConjugatePosterior<'_>,
        subject: &Subject<'_>,
        draws: usize,
        workers: &Workers,
        run: Run,
    ) -> Result<Self, AnswerError> {
        let enumeration = posterior.enumeration().ok_or(AnswerError::NotEnumerated)?;
        let (count, terms) = (enumeration.count(), enumeration.terms);
        let all = if count >> terms == 1 { format!("2^{terms}") } else { count.to_string() };
        let text = format!(
            "trust: exact, all {all} models were summed in closed form, and draws are independent ones from the posterior"
        );
        let ranking = enumeration.ranking().into_iter().take(MAX_LISTED);
        let known = Known {
            verdict: Verdict { kind: VerdictKind::Trust, text },
            log_evidence: Estimate { value: enumeration.log_evidence, se: 0.0 },
            elbo: None,
            khat: None,
            models: ranking.map(|number| enumerated(posterior, enumeration, number)).collect(),
            search: None,
        };
        let parts = enumeration.inclusion.iter().map(|p| Quantity::exactly(p.clamp(0.0, 1.0))).collect();
        let terms = KnownTerms { parts, mean: &|average| Quantity::exactly(average.mean), of_q: None, known };
        terms.findings(posterior, subject, draws, workers, run)
    }

    /// What follows from a search over models whose evidences are in closed form: probabilities with errors, parameters averaged
    /// over what chains met, and `draws` draws of models and parameters; fewer where there are very many parameters. The
    /// posterior is that of the models which were found; numbers under q are those of q(m), where that has learned them.
    pub fn searched(
        posterior: &ConjugatePosterior<'_>,
        (found, settings): (&Searched, &SearchSettings),
        learned: Option<&LearnedModels>,
        subject: &Subject<'_>,
        draws: usize,
        workers: &Workers,
        run: Run,
    ) -> Result<Self, AnswerError> {
        // Models that were not met may differ from the others by as much as these do among themselves.
        let unmet = if found.estimator == Estimator::Evidences { found.unmet } else { 0.0 };
        let spread = |average: &Average| if average.sd.is_finite() { unmet * average.sd } else { 0.0 };
        let mean = |average: &Average| {
            Quantity::estimated(Estimate { value: average.mean, se: average.se.hypot(spread(average)) })
        };
        let part = |Estimate { value, se }| Quantity::estimated(Estimate { value: value.clamp(0.0, 1.0), se });
        let mut models: Vec<ModelAnswer> = found.models.iter().map(|model| met(posterior, model)).collect();
        let mut parts: Vec<Quantity> = found.features.iter().map(|feature| part(feature.probability)).collect();
        let mut of_q = None;
        if let Some(learned) = learned {
            models.iter_mut().zip(&learned.log_q).for_each(|(model, log_q)| model.probability.q = log_q.exp());
            parts.iter_mut().zip(&learned.features).for_each(|(part, &q)| part.q = q);
            let drawn = WeighedModels::new(parts.len(), learned.words.clone(), &vec![1.0; learned.draws]);
            of_q = Some(drawn.averages(posterior.selection(), workers)?);
        }
        let known = Known {
            verdict: verdict(found, settings, learned),
            log_evidence: found.log_evidence_with(learned),
            elbo: learned.map(|learned| Bound { mean: learned.elbo.value, se: learned.elbo.se }),
            khat: learned.and_then(|learned| learned.tail.khat).filter(|khat| khat.is_finite()),
            models,
            search: Some(facts(found, settings, learned)),
        };
        KnownTerms { parts, mean: &mean, of_q, known }.findings(posterior, subject, draws, workers, run)
    }
}

/// What is known of models, and how well.
pub(super) struct Known {
    pub(super) verdict: Verdict,
    pub(super) log_evidence: Estimate,
    /// Where there is a q.
    pub(super) elbo: Option<Bound>,
    /// Of weights of q, where there is one.
    pub(super) khat: Option<f64>,
    /// Most probable first.
    pub(super) models: Vec<ModelAnswer>,
    pub(super) search: Option<SearchFacts>,
}

impl Known {
    /// With the question's own answer and draws.
    pub(super) fn findings(
        self,
        subject: &Subject<'_>,
        found: Found,
        samples: Samples,
        seed: u64,
        run: Run,
    ) -> Findings {
        let Estimate { value, se } = self.log_evidence;
        let exact = ExactComparison { log_evidence: value, total_variation: None };
        let answer = Answer {
            version: VERSION.into(),
            title: subject.title.clone(),
            data: subject.data.clone(),
            fit: None,
            verdict: self.verdict,
            elbo: self.elbo,
            log_evidence: LogEvidence { estimate: value, se, khat: self.khat },
            correction: if self.search.is_some() { Method::Search } else { Method::Exact },
            found,
            models: self.models[..self.models.len().min(MAX_MODELS)].to_vec(),
            exact: self.search.is_none().then_some(exact),
            chains: None,
            search: self.search,
            run: Run { seed, precision: f64::NAME.into(), ..run },
        };
        Findings { answer, models: self.models, samples }
    }
}

/// What is known of the terms of a selection.
struct KnownTerms<'a> {
    parts: Vec<Quantity>,
    /// What the mean of a parameter becomes.
    mean: &'a dyn Fn(&Average) -> Quantity,
    /// Parameters under q, where there is one.
    of_q: Option<Vec<Average>>,
    known: Known,
}

impl KnownTerms<'_> {
    fn findings(
        self,
        posterior: &ConjugatePosterior<'_>,
        subject: &Subject<'_>,
        draws: usize,
        workers: &Workers,
        run: Run,
    ) -> Result<Findings, AnswerError> {
        let (found, expected) = (subject.units().names().len(), posterior.selection().parameter_names().len());
        if found != expected {
            return Err(AnswerError::OtherProblem { found, expected });
        }
        let draws = affordable_draws(draws, expected);
        let samples = Samples::draw_conjugate(posterior, subject.units(), draws, 0, workers)?;
        let Self { parts, mean, of_q, known } = self;
        let highest = known.models.first().map_or_else(String::new, |model| model.label.clone());
        let mut parameters = coefficients(&posterior.averages(workers)?, mean, &samples, workers);
        let of_q = of_q.into_iter().flatten();
        parameters.0.iter_mut().zip(of_q).for_each(|((_, found), q)| found.mean.q = q.mean);
        let terms = Terms::of_parts(posterior.selection().space(), parts, highest, parameters);
        Ok(known.findings(subject, Found::Select(terms), samples, posterior.seed(), run))
    }
}

/// A model of all, by its number.
fn enumerated(posterior: &ConjugatePosterior<'_>, enumeration: &Enumeration, number: usize) -> ModelAnswer {
    let log_evidence = Estimate { value: enumeration.log_evidences[number], se: 0.0 };
    let probability = Quantity::exactly(enumeration.probabilities[number]);
    model(posterior, &enumeration.model(number), probability, log_evidence)
}

/// A model that chains met.
fn met(posterior: &ConjugatePosterior<'_>, found: &FoundModel) -> ModelAnswer {
    model(posterior, &found.word[..].into(), Quantity::estimated(found.probability), found.log_evidence)
}

fn model(
    posterior: &ConjugatePosterior<'_>,
    word: &Model,
    probability: Quantity,
    log_evidence: Estimate,
) -> ModelAnswer {
    ModelAnswer {
        label: posterior.selection().space().label(word),
        size: word.iter().filter(|&&bit| bit == 1).count(),
        word: word.to_string(),
        probability,
        log_evidence: Some(log_evidence),
        khat: None,
    }
}

/// Parameters averaged over models: means and standard deviations by sums, intervals from draws.
pub(super) fn coefficients(
    averages: &[Average],
    mean: &dyn Fn(&Average) -> Quantity,
    samples: &Samples,
    workers: &Workers,
) -> Ordered<Coefficient> {
    let mut intervals = vec![[0.0; 2]; averages.len()];
    workers.for_each(&mut intervals, |parameter, interval| {
        let value = |row: usize| samples.value(row, parameter).unwrap_or(0.0);
        let mut drawn: Vec<(f64, f64)> = (0..samples.len()).map(|row| (value(row), 1.0)).collect();
        *interval = quantiles(&mut drawn, [0.025, 0.975]);
    });
    let parameters = samples.names.iter().zip(averages).zip(intervals);
    parameters
        .map(|((name, average), interval)| {
            (name.clone(), Coefficient { mean: mean(average), sd: average.sd, interval })
        })
        .collect()
}

/// R̂ of every inclusion must not exceed this.
const MAX_RHAT: f64 = 1.01;
/// The effective sample size of every inclusion must reach this.
const MIN_EFFECTIVE: f64 = 400.0;

fn facts(found: &Searched, settings: &SearchSettings, learned: Option<&LearnedModels>) -> SearchFacts {
    SearchFacts {
        chains: settings.chains,
        temperatures: settings.temperatures,
        iterations: found.iterations,
        evidences: found.asked,
        rhat: Some(found.diagnosis.rhat).filter(|rhat| rhat.is_finite()),
        effective: found.diagnosis.effective,
        unmet: found.unmet,
        ended: found.ended,
        weights: learned.map(|learned| learned.log_evidence),
    }
}

/// By how much weights of q(m) and chains may differ in a probability, beyond four of their errors.
const FAR: f64 = 0.01;

/// Chains that agree are to be trusted: each has the posterior as its target, and evidences are exact. Where q(m) has learned what they
/// met, and its weights are reliable, these must agree, too.
fn verdict(found: &Searched, settings: &SearchSettings, learned: Option<&LearnedModels>) -> Verdict {
    let (rhat, effective, chains) = (found.diagnosis.rhat, found.diagnosis.effective, settings.chains);
    let shown = format!(
        "R̂ is {rhat:.3} at most and the effective sample size {effective:.0} at least, over all inclusions; {} evidences were \
         computed, none was estimated",
        found.asked
    );
    if rhat > MAX_RHAT || effective < MIN_EFFECTIVE || rhat.is_nan() {
        let longer = match found.ended {
            Ended::Iterations => "raise search.iterations",
            Ended::Models => "raise search.max_models",
            Ended::Stopped | Ended::Converged => "give it a longer time limit, or none",
        };
        let text = format!(
            "do not trust: {chains} chains over models with exact evidences do not agree yet: {shown}. R̂ of {MAX_RHAT} and a size \
             of {MIN_EFFECTIVE} are needed: {longer}, or raise search.temperatures"
        );
        return Verdict { kind: VerdictKind::DoNotTrust, text };
    }
    let agree = format!("{chains} chains over models with exact evidences, from starts far apart, agree: {shown}");
    let Some(learned) = learned else {
        return Verdict { kind: VerdictKind::Trust, text: format!("trust: nothing was learned; {agree}") };
    };
    let khat = learned.tail.khat.map_or_else(|| "unknown".into(), |khat| format!("{khat:.2}"));
    if !learned.is_reliable() {
        let text = format!(
            "trust: {agree}; q(m), which learned what they met, is not near enough to the posterior for weights to say more (k̂ is \
             {khat})"
        );
        return Verdict { kind: VerdictKind::Trust, text };
    }
    let far = found.features.iter().zip(&learned.weighed).map(|(chains, weights)| {
        let chains = chains.probability;
        ((chains.value - weights.value).abs(), 4.0 * chains.se.hypot(weights.se) + FAR)
    });
    let (far, allowed) = far.max_by(|a, b| (a.0 - a.1).total_cmp(&(b.0 - b.1))).unwrap_or((0.0, FAR));
    if far > allowed {
        let text = format!(
            "do not trust: {agree}, but weights of q(m), which learned what they met (k̂ is {khat}), find an inclusion that differs \
             by {far:.3}: raise search.chains and search.temperatures"
        );
        return Verdict { kind: VerdictKind::DoNotTrust, text };
    }
    let text = format!(
        "trust: {agree}; q(m) learned what they met, and weights of its own draws (k̂ is {khat}) find the same inclusions"
    );
    Verdict { kind: VerdictKind::Trust, text }
}
