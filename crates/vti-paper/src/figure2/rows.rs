//! What a fit found, beside the reference.

use std::collections::HashMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use vti::check::Check;
use vti::device::Cpu;
use vti::posterior::Posterior;
use vti::problem::selection::simulate::Misspecification;
use vti::rjmcmc::{Chains, ModelShare};
use vti::space::Model;
use vti::stats::share_error;

use super::settings::{COVARIATES, Settings};
use crate::results::moments;
use crate::study::{self, Prior, Study, checked, data_seed, khat, label, point, spread, states_by_model};
use crate::text::{self, cell, named, probability};

/// The three families, least expressive first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Family {
    Diagonal,
    Affine,
    Spline,
}

impl Family {
    pub(super) const ALL: [Self; 3] = [Self::Diagonal, Self::Affine, Self::Spline];
}

named!(Family);

/// Which fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) misspecification: Misspecification,
    pub(super) prior: Prior,
    pub(super) data_set: usize,
    pub(super) family: Family,
}

/// The names of a case's cells.
const CASE: [&str; 4] = ["misspecification", "prior", "family", "data_set"];

impl Case {
    /// In tables for machines.
    fn cells(&self) -> [String; 4] {
        let Self { misspecification, prior, family, data_set } = self;
        [misspecification.to_string(), prior.to_string(), family.to_string(), data_set.to_string()]
    }
}

impl study::Case for Case {
    type Finished = Finished;

    fn of(finished: &Finished) -> Self {
        finished.case
    }

    fn data(self) -> String {
        let Self { misspecification, prior, data_set, .. } = self;
        format!("{misspecification} misspecification, {prior} prior, data set {data_set}")
    }

    fn study(self, seed: u64) -> Result<Study> {
        Study::new(self.misspecification, self.prior, COVARIATES, data_seed(seed, self.data_set))
    }
}

/// A finished fit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Finished {
    pub(super) case: Case,
    /// A lower bound of the log evidence, and its gap's k̂.
    pub(super) elbo: Option<f64>,
    pub(super) khat: Option<f64>,
    /// ½ Σ |corrected(m) − π(m)|, q corrected by importance weights: whether the chains are right where q is good.
    pub(super) corrected_total_variation: Option<f64>,
    /// Seconds of training.
    pub(super) seconds: f64,
    /// R̂ of the reference; none for chains that stand still.
    pub(super) rhat: Option<f64>,
    /// Effective sample size of the reference.
    pub(super) effective: f64,
    /// All models, in the order of their words.
    pub(super) models: Vec<ModelRow>,
}

/// A model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ModelRow {
    pub(super) model: String,
    /// Covariates in it.
    pub(super) size: usize,
    /// q(m).
    pub(super) q: f64,
    /// π(m) by the chains, and its standard error.
    pub(super) pi: f64,
    pub(super) pi_se: f64,
    /// States of the chains at it.
    pub(super) states: usize,
    /// `H(π(θ | m), q(θ | m)) = −E_{θ ~ π(· | m)} log q(θ | m)` and its standard error, where there are enough states.
    pub(super) cross_entropy: Option<(f64, f64)>,
    /// The model without covariates.
    pub(super) null: bool,
    /// The model that made the data.
    pub(super) generating: bool,
}

impl Finished {
    pub(super) fn new(
        case: Case,
        study: &Study,
        chains: &Chains,
        posterior: &Posterior<Cpu<f32>>,
        seconds: f64,
        settings: &Settings,
    ) -> Result<Self> {
        let shares: HashMap<&Model, &ModelShare> = chains.models.iter().map(|share| (&share.model, share)).collect();
        let mut found = posterior.model_probabilities(0)?;
        found.sort_by(|a, b| a.model.cmp(&b.model));
        let q: HashMap<Model, f64> = found.iter().map(|found| (found.model.clone(), found.probability.value)).collect();
        let cross_entropies = cross_entropies(posterior, chains, &q, settings)?;
        let row = |model: Model| {
            let share = shares.get(&model);
            let (pi, pi_se) = share.map_or((0.0, share_error(0.0, chains.effective)), |share| {
                (share.probability.value, share.probability.se)
            });
            ModelRow {
                size: model.iter().filter(|&&bit| bit == 1).count(),
                q: q[&model],
                pi,
                pi_se,
                states: share.map_or(0, |share| share.draws),
                cross_entropy: cross_entropies.get(&model).copied(),
                null: model.iter().all(|&bit| bit == 0),
                generating: model == study.generating,
                model: label(&model),
            }
        };
        let models = found.into_iter().map(|found| row(found.model)).collect();
        let probability = |model: &Model| shares.get(model).map_or(0.0, |share| share.probability.value);
        let check = checked(posterior, settings.check_draws);
        Ok(Self {
            case,
            elbo: check.as_ref().map(|check| check.elbo.value).filter(|elbo| elbo.is_finite()),
            khat: khat(check.as_ref()),
            corrected_total_variation: check.as_ref().map(|check| corrected_distance(check, probability)),
            seconds,
            rhat: Some(chains.rhat).filter(|rhat| rhat.is_finite()),
            effective: chains.effective,
            models,
        })
    }

    /// ½ Σ |q(m) − π(m)|.
    pub(super) fn total_variation(&self) -> f64 {
        0.5 * self.models.iter().map(|row| (row.q - row.pi).abs()).sum::<f64>()
    }

    /// The mean cross entropy of models that have one, weighted by π(m).
    pub(super) fn cross_entropy(&self) -> Option<f64> {
        let (mut sum, mut weight) = (0.0, 0.0);
        for (row, (value, _)) in self.models.iter().filter_map(|row| Some((row, row.cross_entropy?))) {
            sum += row.pi * value;
            weight += row.pi;
        }
        (weight > 0.0).then(|| sum / weight)
    }

    /// The correlation of the cross entropy and log π(m) over models that have both.
    pub(super) fn slope(&self) -> Option<f64> {
        let both = |row: &ModelRow| Some((row.pi.ln(), row.cross_entropy?.0));
        let (x, y): (Vec<f64>, Vec<f64>) = self.models.iter().filter_map(both).unzip();
        let ((x_mean, x_sd), (y_mean, y_sd)) = (moments(&x), moments(&y));
        let products: f64 = x.iter().zip(&y).map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
        let value = products / (x.len() as f64 - 1.0) / (x_sd * y_sd);
        value.is_finite().then_some(value)
    }

    /// The model without covariates, and the one that made the data.
    pub(super) fn null_and_generating(&self) -> Option<(&ModelRow, &ModelRow)> {
        Some((self.models.iter().find(|row| row.null)?, self.models.iter().find(|row| row.generating)?))
    }
}

/// Models that no draw met count as 0 in the correction.
fn corrected_distance(check: &Check, pi: impl Fn(&Model) -> f64) -> f64 {
    let met = || check.correction.models.iter().map(|found| (found.corrected.value, pi(&found.model)));
    let others = 1.0 - met().map(|(_, pi)| pi).sum::<f64>();
    0.5 * (met().map(|(corrected, pi)| (corrected - pi).abs()).sum::<f64>() + others.max(0.0))
}

/// `−E log q(θ | m)` over states of the chains, with its standard error as if they were independent.
fn cross_entropies(
    posterior: &Posterior<Cpu<f32>>,
    chains: &Chains,
    q: &HashMap<Model, f64>,
    settings: &Settings,
) -> Result<HashMap<Model, (f64, f64)>> {
    let states = states_by_model(chains);
    let enough: Vec<(&Model, &Vec<usize>)> =
        states.iter().filter(|(model, rows)| rows.len() >= settings.least_states && q[*model] > 0.0).collect();
    let rows = |all: &Vec<usize>| spread(all, settings.most_states).collect::<Vec<_>>();
    let points: Vec<_> = enough.iter().flat_map(|(_, all)| rows(all)).map(|row| point(chains, row)).collect();
    let log_q = posterior.log_q(&points)?;
    let mut rest = log_q.as_slice();
    let mut found = HashMap::new();
    for (model, all) in enough {
        let (own, later) = rest.split_at(all.len().min(settings.most_states));
        rest = later;
        let surprise: Vec<f64> = own.iter().map(|log_q| q[model].ln() - log_q).collect();
        let (mean, sd) = moments(&surprise);
        if mean.is_finite() {
            found.insert(model.clone(), (mean, sd / (surprise.len() as f64).sqrt()));
        }
    }
    Ok(found)
}

/// Every model of every fit.
pub(super) fn models_table(fits: &[Finished]) -> Result<String> {
    let own = ["model", "size", "q", "pi", "pi_se", "cross_entropy", "cross_entropy_se", "draws", "null", "generating"];
    let rows = fits.iter().flat_map(|fit| fit.models.iter().map(move |row| (fit, row)));
    let cells = |(fit, row): (&Finished, &ModelRow)| {
        let cells = [
            row.model.clone(),
            row.size.to_string(),
            probability(row.q),
            probability(row.pi),
            probability(row.pi_se),
            cell(row.cross_entropy.map(|(value, _)| value)),
            cell(row.cross_entropy.map(|(_, se)| se)),
            row.states.to_string(),
            row.null.to_string(),
            row.generating.to_string(),
        ];
        fit.case.cells().into_iter().chain(cells).collect()
    };
    text::table(CASE.into_iter().chain(own), rows.map(cells))
}

/// Every fit.
pub(super) fn fits_table(fits: &[Finished]) -> Result<String> {
    let own = [
        "total_variation",
        "corrected_total_variation",
        "cross_entropy",
        "elbo",
        "khat",
        "seconds",
        "reference_rhat",
        "reference_effective",
    ];
    let cells = |fit: &Finished| {
        let cells = [
            cell(Some(fit.total_variation())),
            cell(fit.corrected_total_variation),
            cell(fit.cross_entropy()),
            cell(fit.elbo),
            cell(fit.khat),
            format!("{:.2}", fit.seconds),
            cell(fit.rhat),
            format!("{:.0}", fit.effective),
        ];
        fit.case.cells().into_iter().chain(cells).collect()
    };
    text::table(CASE.into_iter().chain(own), fits.iter().map(cells))
}
