//! The paper's robust variable selection (appendix "Robust variable selection example details"): data, problem, reference
//! and fit.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use vti::baseline::{Chains, Pseudo, RjmcmcSettings, rjmcmc};
use vti::check::{Check, CheckSettings, check};
use vti::engine::CpuEngine;
use vti::family::{FamilySettings, FlowKind, FrameSettings};
use vti::models::ModelsSettings;
use vti::posterior::{Point, Posterior};
use vti::problem::selection::simulate::{RobustSettings, robust};
use vti::problem::selection::{CoefficientPrior, Likelihood, ModelPrior, Selection, SelectionSettings, Standardise};
use vti::space::Model;
use vti::train::{Fit, Silent, TrainSettings, Trainer};

use crate::simulate::Level;

/// What inference assumes in all cases: α = 0.1, σ₁ = 1, σ₂ = 10.
pub(super) const LIKELIHOOD: Likelihood = Likelihood::Robust { alpha: 0.1, sigma1: 1.0, sigma2: 10.0 };

/// Prior of all coefficients, the intercept's included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Prior {
    Focused,
    Wide,
}

impl Prior {
    /// σ_β.
    pub(super) fn scale(self) -> f64 {
        match self {
            Self::Focused => 1.5,
            Self::Wide => 10.0,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Focused => "focused",
            Self::Wide => "wide",
        }
    }
}

/// A data set with a prior: what is to be inferred, and what made it.
pub(super) struct Study {
    pub(super) selection: Selection,
    pub(super) prior: Prior,
    /// The model of the covariates that made the data.
    pub(super) generating: Model,
    pub(super) seed: u64,
}

/// The seed of a data set: `vti simulate` makes the same table of it.
pub(super) fn data_seed(seed: u64, data_set: usize) -> u64 {
    seed.wrapping_mul(1000).wrapping_add(data_set as u64)
}

impl Study {
    pub(super) fn new(level: Level, prior: Prior, covariates: usize, seed: u64) -> Result<Self> {
        let settings = RobustSettings { misspecification: level.into(), covariates, seed, ..RobustSettings::default() };
        let simulated = robust(&settings)?;
        let assumed = SelectionSettings {
            likelihood: LIKELIHOOD,
            prior: CoefficientPrior::Normal { scale: prior.scale() },
            model_prior: ModelPrior::Uniform {},
        };
        let selection = Selection::new(&simulated.table, Standardise::Raw, &assumed)?;
        let generating: Vec<u16> = simulated.relevant.iter().map(|&relevant| u16::from(relevant)).collect();
        Ok(Self { selection, prior, generating: generating.into(), seed })
    }

    /// Reversible jump chains. The pseudo-prior is the prior, as in the paper's appendix; a wide prior would hardly ever
    /// propose a coefficient that is accepted, so there it is adapted to the posterior.
    pub(super) fn reference(&self, engine: &CpuEngine<f32>, settings: &RjmcmcSettings) -> Result<Chains> {
        let pseudo = match self.prior {
            Prior::Focused => Pseudo::of_selection(&self.selection),
            Prior::Wide => Pseudo::Adapted {},
        };
        let settings = RjmcmcSettings { seed: self.seed, pseudo, ..settings.clone() };
        Ok(rjmcmc(&self.selection, engine, &settings, &mut |_| ControlFlow::Continue(()))?)
    }

    /// Trains a family that starts from unit scale, as the paper's do.
    pub(super) fn fit<'a>(
        &'a self,
        engine: &'a CpuEngine<f32>,
        flow: &FlowKind,
        models: &ModelsSettings,
        train: &TrainSettings,
    ) -> Result<Fit<'a, Selection, CpuEngine<f32>>> {
        let family = FamilySettings {
            flow: flow.clone(),
            models: models.clone(),
            frame: FrameSettings::Unit,
            ..FamilySettings::default()
        };
        let train = TrainSettings { seed: self.seed, ..train.clone() };
        Ok(Trainer::new(&self.selection, engine, &family, &train)?.run(&mut Silent)?)
    }
}

/// A check of a fit, or nothing where no draw has weight.
pub(super) fn checked(posterior: &mut Posterior<'_, Selection, CpuEngine<f32>>, draws: usize) -> Option<Check> {
    check(posterior, &CheckSettings { draws, ..CheckSettings::default() }).ok()
}

/// k̂ where it is a number.
pub(super) fn khat(check: Option<&Check>) -> Option<f64> {
    check.and_then(|check| check.khat).filter(|khat| khat.is_finite())
}

/// Which states of the chains were at each model.
pub(super) fn states_by_model(chains: &Chains) -> BTreeMap<Model, Vec<usize>> {
    let mut states: BTreeMap<Model, Vec<usize>> = BTreeMap::new();
    for row in 0..chains.draws.len() {
        states.entry(chains.draws.model(row)).or_default().push(row);
    }
    states
}

/// At most `most` of `rows`, evenly spaced.
pub(super) fn spread(rows: &[usize], most: usize) -> impl Iterator<Item = usize> + '_ {
    let count = rows.len().min(most);
    (0..count).map(move |place| rows[place * rows.len() / count])
}

/// A state of the chains as a point.
pub(super) fn point(chains: &Chains, row: usize) -> Point {
    Point { model: chains.draws.model(row), theta: chains.draws.theta(row).to_vec() }
}

/// A model as text without commas: `x1+x4`, or `null` without any covariate.
pub(super) fn label(model: &[u16]) -> String {
    let names = model.iter().enumerate().filter(|(_, bit)| **bit == 1).map(|(place, _)| format!("x{}", place + 1));
    let names: Vec<String> = names.collect();
    if names.is_empty() { "null".into() } else { names.join("+") }
}
