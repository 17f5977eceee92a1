//! A search over models that does not depend on what was learned: chains with the target `p(m) p(y | m)`.
//!
//! The parameters of a model are integrated out by whoever gives the evidences: in closed form, or by annealed particles, with
//! errors that are carried on. Chains propose neighbours that the space declares; several temperatures let them cross between
//! groups of models, and they start far apart: [`search`]. What they found, and how sure it is: [`Searched`].

mod conclude;
mod found;
mod known;
mod learned;
mod moves;
mod run;
mod settings;
mod starts;
mod trace;

pub use found::{Estimator, FoundFeature, FoundModel, Searched};
pub use learned::{LearnedModels, LearnedSettings, learn_models};
pub use run::search;
pub use settings::{Ended, SearchError, SearchProgress, SearchSettings};
pub use trace::FeatureTrace;

use crate::evidence::Evidences;
use crate::problem::selection::{ClosedForm, Selection};
use crate::problem::{DensityError, Problem};
use crate::space::{Model, ModelSpace};
use crate::stats::Estimate;
use crate::workers::Workers;

/// Log evidences of models, asked for many at once, from one thread.
pub trait ModelEvidences {
    /// `log p(y | m)` of each of these words, one after the other, with standard errors: 0 where exact. A number that is not
    /// finite means that the model is impossible.
    fn log_evidences(&mut self, words: &[u16], workers: &Workers) -> Result<Vec<Estimate>, DensityError>;
}

impl ModelEvidences for ClosedForm<'_> {
    fn log_evidences(&mut self, words: &[u16], workers: &Workers) -> Result<Vec<Estimate>, DensityError> {
        let values = ClosedForm::log_evidences(self, words, workers);
        Ok(values.into_iter().map(|value| Estimate { value, se: 0.0 }).collect())
    }
}

/// In the cheapest way for each model.
impl ModelEvidences for Evidences<'_> {
    fn log_evidences(&mut self, words: &[u16], workers: &Workers) -> Result<Vec<Estimate>, DensityError> {
        let width = self.problem().space().arities().len();
        let models: Vec<Model> = words.chunks_exact(width).map(Model::from).collect();
        let found = self.of_models(&models, workers).map_err(|error| error.error)?;
        let lost = Estimate { value: f64::NEG_INFINITY, se: 0.0 };
        Ok(found.into_iter().map(|found| found.map_or(lost, |evidence| evidence.estimate())).collect())
    }
}

/// Told how far a search has come, at every step of the climb (iteration 0) and in every iteration, and says whether to go on: with the
/// climb, or with all of it.
pub type Watch<'a> = &'a mut dyn FnMut(&SearchProgress) -> bool;

/// What is searched.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The models.
    pub space: &'a dyn ModelSpace,
    /// `log p(m)` of a word, up to a constant.
    pub log_prior: &'a (dyn Fn(&[u16]) -> f64 + Sync),
    /// Words to start from, besides those that the search thinks of.
    pub starts: &'a [Model],
    /// The host's threads.
    pub workers: &'a Workers,
}

impl std::fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("starts", &self.starts).finish_non_exhaustive()
    }
}

/// Searches the models of a selection whose evidences are in closed form, until chains agree, limits are reached or `watch` returns
/// false.
///
/// ```
/// use vti::problem::selection::simulate::{CorrelatedSettings, correlated};
/// use vti::problem::selection::{Selection, SelectionSettings, Standardise};
/// use vti::search::{SearchSettings, search_selection};
/// use vti::workers::Workers;
/// let table = CorrelatedSettings { rows: 100, covariates: 30, relevant: 2, ..CorrelatedSettings::default() };
/// let selection = Selection::new(&correlated(&table)?.table, Standardise::Full, &SelectionSettings::default())?;
/// let settings = SearchSettings { iterations: 2_000, warmup: 500, ..SearchSettings::default() };
/// let found = search_selection(&selection, &settings, &Workers::SINGLE, &mut |_| true)?;
/// let averages = found.weighed().averages(&selection, &Workers::SINGLE)?;
/// // The scale, the intercept and thirty slopes.
/// assert_eq!((found.features.len(), averages.len()), (30, 32));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn search_selection(
    selection: &Selection,
    settings: &SearchSettings,
    workers: &Workers,
    watch: Watch<'_>,
) -> Result<Searched, SearchError> {
    let log_prior = |word: &[u16]| selection.log_prior(word);
    let target = Target { space: selection.space(), log_prior: &log_prior, starts: &[], workers };
    search(&target, &mut ClosedForm::new(selection)?, settings, watch)
}
