//! The paper's robust variable selection (appendix "Robust variable selection example details"): data, problem, reference
//! and fit.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vti::check::{Check, CheckSettings, Depth, OpinionSettings, check};
use vti::device::{Cpu, Device};
use vti::family::{FamilySettings, FlowKind, PreconditionerSettings};
use vti::models::ModelsSettings;
use vti::posterior::{Point, Posterior};
use vti::problem::Problem;
use vti::problem::selection::simulate::Misspecification;
use vti::problem::selection::simulate::{RobustSettings, robust};
use vti::problem::selection::{CoefficientPrior, Likelihood, ModelPrior, Selection, SelectionSettings, Standardise};
use vti::rjmcmc::{Chains, Pseudo, RjmcmcSettings, rjmcmc};
use vti::space::Model;
use vti::train::{Fit, Silent, TrainSettings, Trainer};

use crate::results::Results;
use crate::session::Session;
use crate::text::named;

/// What inference assumes in all cases: α = 0.1, σ₁ = 1, σ₂ = 10.
pub(super) const LIKELIHOOD: Likelihood = Likelihood::Robust { alpha: 0.1, sigma1: Some(1.0), sigma2: Some(10.0) };

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
}

named!(Prior);

/// A data set with a prior: what is to be inferred, and what made it.
pub(super) struct Study {
    prior: Prior,
    pub(super) selection: Arc<Selection>,
    /// The model of the covariates that made the data.
    pub(super) generating: Model,
    pub(super) seed: u64,
}

/// The seed of a data set: `vti simulate` makes the same table of it.
pub(super) fn data_seed(seed: u64, data_set: usize) -> u64 {
    seed.wrapping_mul(1000).wrapping_add(data_set as u64)
}

impl Study {
    pub(super) fn new(level: Misspecification, prior: Prior, covariates: usize, seed: u64) -> Result<Self> {
        let settings = RobustSettings { misspecification: level, covariates, seed, ..RobustSettings::default() };
        let simulated = robust(&settings)?;
        let assumed = SelectionSettings {
            likelihood: LIKELIHOOD,
            prior: CoefficientPrior::Normal { scale: prior.scale() },
            model_prior: ModelPrior::Uniform {},
            ..SelectionSettings::default()
        };
        let selection = Selection::new(&simulated.table, Standardise::Raw, &assumed)?;
        let generating: Vec<u16> = simulated.relevant.iter().map(|&relevant| u16::from(relevant)).collect();
        Ok(Self { prior, selection: Arc::new(selection), generating: generating.into(), seed })
    }

    /// Reversible jump chains. Coefficients that a jump brings in come from the prior, as in the paper's appendix; a wide one
    /// would hardly ever propose one that is accepted, and is replaced by what was seen during burn-in.
    pub(super) fn reference(&self, device: &Cpu<f32>, settings: &RjmcmcSettings) -> Result<Chains> {
        let pseudo = match self.prior {
            Prior::Focused => Pseudo::of_selection(&self.selection),
            Prior::Wide => Pseudo::Adapted {},
        };
        let settings = RjmcmcSettings { seed: self.seed, pseudo, ..settings.clone() };
        Ok(rjmcmc(&*self.selection, device.workers(), &settings, &mut |_| ControlFlow::Continue(()))?)
    }

    /// Trains a family that starts from unit scale, as the paper's do.
    pub(super) fn fit(
        &self,
        device: &Cpu<f32>,
        flow: &FlowKind,
        models: &ModelsSettings,
        train: &TrainSettings,
    ) -> Result<Fit<Cpu<f32>>> {
        let family = FamilySettings {
            flow: flow.clone(),
            models: models.clone(),
            preconditioner: PreconditionerSettings::Unit,
            ..FamilySettings::default()
        };
        let train = TrainSettings { seed: self.seed, ..train.clone() };
        let problem: Arc<dyn Problem> = self.selection.clone();
        Ok(Trainer::new(problem, device.clone(), &family, &train)?.run(&mut Silent)?)
    }
}

/// Which fit of an experiment.
pub(super) trait Case: Copy + PartialEq {
    /// A finished one.
    type Finished: Serialize + DeserializeOwned;

    fn of(finished: &Self::Finished) -> Self;

    /// What its data are called; cases of the same data share their chains.
    fn data(self) -> String;

    fn study(self, seed: u64) -> Result<Study>;
}

/// The cases that are not finished, those of the same data one after another. `fit` gives what was found, and says it.
pub(super) fn fit_all<C: Case>(
    session: &mut Session<'_>,
    results: &mut Results<C::Finished>,
    cases: &[C],
    (seed, reference): (u64, &RjmcmcSettings),
    fit: impl Fn(&Session<'_>, C, &Study, &Chains) -> Result<(C::Finished, String)>,
) -> Result<()> {
    for group in cases.chunk_by(|a, b| a.data() == b.data()) {
        let is_left = |case: &&C| !results.has(|finished| C::of(finished) == **case);
        let left: Vec<C> = group.iter().filter(is_left).copied().collect();
        let Some(first) = left.first() else { continue };
        let (clock, data, study) = (Instant::now(), first.data(), first.study(seed)?);
        let chains = study.reference(&session.device, reference)?;
        let (seconds, Chains { rhat, effective, .. }) = (clock.elapsed().as_secs_f64(), &chains);
        session.say(&format!(
            "{data}: reference chains {seconds:.1} s, R̂ {rhat:.3}, effective sample size {effective:.0}"
        ));
        for case in left {
            let (finished, said) = fit(session, case, &study, &chains)?;
            results.add(finished)?;
            session.finished(&format!("{data}, {said}"));
        }
    }
    Ok(())
}

/// A check of a fit, or nothing where no draw has weight. By weights alone: reversible jump chains are the second opinion here.
pub(super) fn checked(posterior: &Posterior<Cpu<f32>>, draws: usize) -> Option<Check> {
    let opinion = OpinionSettings { depth: Depth::None, ..OpinionSettings::default() };
    check(posterior, &CheckSettings { draws, opinion, ..CheckSettings::default() }).ok()
}

/// Chains with a larger R̂ do not mix: what they say about probabilities is doubtful.
pub(super) const MIXED: f64 = 1.05;

/// A sentence about problems whose chains do not mix, each given with its R̂ (none for chains that stand still).
pub(super) fn doubtful(problems: impl Iterator<Item = (String, Option<f64>)>) -> String {
    let mut seen: Vec<(String, Option<f64>)> = problems.collect();
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    seen.dedup();
    let all = seen.len();
    seen.retain(|(_, rhat)| rhat.is_none_or(|rhat| rhat > MIXED));
    if seen.is_empty() {
        return format!("The chains of all {all} problems mix (R̂ at most {MIXED})");
    }
    let shown = |(name, rhat): &(String, Option<f64>)| match rhat {
        Some(rhat) => format!("{name}: R̂ {rhat:.2}"),
        None => format!("{name}: R̂ ∞"),
    };
    format!(
        "The chains of {} of {all} problems do not mix (R̂ above {MIXED}): they differ in where they stay, so comparisons \
         with them are doubtful ({})",
        seen.len(),
        seen.iter().map(shown).collect::<Vec<_>>().join("; ")
    )
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
