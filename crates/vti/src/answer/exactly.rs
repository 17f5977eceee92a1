//! The exact answer as findings, without anything that was learned.

use super::{
    Answer, AnswerError, Coefficient, ExactComparison, Findings, Found, LogEvidence, MAX_MODELS, Method, ModelAnswer,
    Ordered, Quantity, Run, Samples, Subject, Terms, VERSION, quantiles,
};
use crate::check::{Verdict, VerdictKind};
use crate::posterior::ExactPosterior;
use crate::problem::Problem;
use crate::simd::Real;
use crate::space::ModelSpace;
use crate::stats::Estimate;
use crate::workers::Workers;

/// The most models that are listed in full; of more, the most probable ones.
const MAX_LISTED: usize = 1 << 16;

impl Findings {
    /// What follows from the exact posterior of a selection: probabilities and means by sums over all models, and `draws`
    /// draws of models and parameters for intervals, predictions and plots. Numbers under q are not numbers: nothing was
    /// learned.
    pub fn exact(
        posterior: &ExactPosterior<'_>,
        subject: &Subject<'_>,
        draws: usize,
        workers: &Workers,
        run: Run,
    ) -> Result<Self, AnswerError> {
        let (found, expected) = (subject.units().names().len(), posterior.selection().parameter_names().len());
        if found != expected {
            return Err(AnswerError::OtherProblem { found, expected });
        }
        let samples = Samples::draw_exactly(posterior, subject.units(), draws, 0, workers)?;
        let (enumeration, space) = (posterior.enumeration(), posterior.selection().space());
        let models: Vec<ModelAnswer> =
            enumeration.ranking().into_iter().take(MAX_LISTED).map(|number| model(posterior, number)).collect();
        let parts = enumeration.inclusion.iter().map(|p| Quantity::exactly(p.clamp(0.0, 1.0))).collect();
        let highest = models.first().map_or_else(String::new, |model| model.label.clone());
        let terms = Terms::of_parts(space, parts, highest, coefficients(posterior, &samples, workers)?);
        let log_evidence = enumeration.log_evidence;
        let text = format!(
            "trust: exact, all 2^{} models were summed in closed form, and draws are independent ones from the posterior",
            enumeration.terms
        );
        let answer = Answer {
            version: VERSION.into(),
            title: subject.title.clone(),
            data: subject.data.clone(),
            fit: None,
            verdict: Verdict { kind: VerdictKind::Trust, text },
            elbo: None,
            log_evidence: LogEvidence { estimate: log_evidence, se: 0.0, khat: None },
            correction: Method::Exact,
            found: Found::Select(terms),
            models: models[..models.len().min(MAX_MODELS)].to_vec(),
            exact: Some(ExactComparison { log_evidence, total_variation: None }),
            chains: None,
            run: Run { seed: posterior.seed(), precision: f64::NAME.into(), ..run },
        };
        Ok(Self { answer, models, samples })
    }
}

/// A model by its number.
fn model(posterior: &ExactPosterior<'_>, number: usize) -> ModelAnswer {
    let enumeration = posterior.enumeration();
    let word = enumeration.model(number);
    ModelAnswer {
        label: posterior.selection().space().label(&word),
        size: word.iter().filter(|&&bit| bit == 1).count(),
        word: word.to_string(),
        probability: Quantity::exactly(enumeration.probabilities[number]),
        log_evidence: Some(Estimate { value: enumeration.log_evidences[number], se: 0.0 }),
        khat: None,
    }
}

/// Parameters averaged over all models: means and standard deviations by sums, intervals from draws.
fn coefficients(
    posterior: &ExactPosterior<'_>,
    samples: &Samples,
    workers: &Workers,
) -> Result<Ordered<Coefficient>, AnswerError> {
    let averages = posterior.averages(workers)?;
    let parameters = samples.names.iter().zip(&averages).enumerate().map(|(parameter, (name, average))| {
        let value = |row: usize| samples.value(row, parameter).unwrap_or(0.0);
        let mut drawn: Vec<(f64, f64)> = (0..samples.len()).map(|row| (value(row), 1.0)).collect();
        let interval = quantiles(&mut drawn, [0.025, 0.975]);
        (name.clone(), Coefficient { mean: Quantity::exactly(average.mean), sd: average.sd, interval })
    });
    Ok(parameters.collect())
}
