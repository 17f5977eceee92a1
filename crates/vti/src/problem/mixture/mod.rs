//! How many components? Mixtures of normal distributions, in one or several columns.
//!
//! ```
//! use vti::problem::Problem;
//! use vti::problem::mixture::{Mixture, MixtureSettings, Observations};
//! let x = vec![1.0, 1.2, 0.9, 1.1, 5.0, 5.3, 4.8];
//! let data = Observations::new(vec!["x".into()], vec![x])?;
//! let mixture = Mixture::new(data, MixtureSettings { max_components: 4, ..MixtureSettings::default() })?;
//! assert_eq!(mixture.problem().space().label(&[1]), "2 components");
//! # Ok::<(), vti::problem::mixture::MixtureError>(())
//! ```

mod data;
mod likelihood;
mod precision;
mod prior;
pub mod simulate;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

pub use data::{Observations, ObservationsError};
pub use likelihood::MixtureLikelihood;
pub use prior::{Key, MixtureError, MixturePriors, MixtureSettings};

use self::likelihood::Normals;
use super::Problem;
use super::components::{ComponentProblem, components_with};

/// A mixture of normal distributions with an unknown number of components.
#[derive(Clone, Debug)]
pub struct Mixture {
    data: Observations,
    settings: MixtureSettings,
    problem: Arc<ComponentProblem<MixtureLikelihood>>,
}

impl Mixture {
    /// With what settings leave out set from the data.
    pub fn new(data: Observations, settings: MixtureSettings) -> Result<Self, MixtureError> {
        let settings = settings.resolve(&data)?;
        let space = settings.space(data.names());
        let likelihood = MixtureLikelihood::new(&data);
        let problem = components_with(space, settings.count_prior.clone(), likelihood)?;
        Ok(Self { data, settings, problem: Arc::new(problem) })
    }

    /// The data.
    pub fn data(&self) -> &Observations {
        &self.data
    }

    /// The settings, with all that was left out.
    pub fn settings(&self) -> &MixtureSettings {
        &self.settings
    }

    /// What is to be inferred.
    pub fn problem(&self) -> &Arc<ComponentProblem<MixtureLikelihood>> {
        &self.problem
    }

    /// The numbers of components that are possible.
    pub fn counts(&self) -> RangeInclusive<usize> {
        1..=self.settings.max_components
    }

    /// `log p(k)`.
    pub fn log_prior(&self, count: usize) -> f64 {
        self.problem.log_prior(&[u16::try_from(count.saturating_sub(1)).unwrap_or(u16::MAX)])
    }

    /// Names of the parameters that are there whatever the number is.
    pub fn always(&self) -> Vec<String> {
        self.problem.components().globals().iter().map(|(name, _)| name.clone()).collect()
    }

    /// Natural parameters of so many components.
    pub fn dim(&self, count: usize) -> usize {
        let space = self.problem.components();
        space.globals().len() + count * space.kinds()[0].width()
    }

    /// Priors in words.
    pub fn prior_in_words(&self) -> String {
        let MixtureSettings { max_components, count_prior, prior, .. } = &self.settings;
        let each =
            |priors: &[crate::prior::Prior]| priors.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
        let precision = match self.data.names().len() {
            1 => format!("precisions 1/sd² gamma:{},beta", prior.shape),
            columns => format!(
                "precision matrices Wishart with {} degrees of freedom and scales beta",
                2.0 * prior.shape + columns as f64 - 1.0
            ),
        };
        format!(
            "number of components {count_prior} on 1 to {max_components}; weights dirichlet:{}; means {}; {precision}; beta {}",
            prior.concentration,
            each(&prior.mean),
            each(&prior.scale)
        )
    }

    /// The mixture of one draw of natural parameters.
    pub fn drawn(&self, theta: &[f64]) -> Drawn {
        Drawn { normals: Normals::new(self.data.names().len(), theta) }
    }
}

/// A mixture of which all parameters are known.
#[derive(Clone, Debug)]
pub struct Drawn {
    normals: Normals,
}

impl Drawn {
    /// How many components there are.
    pub fn count(&self) -> usize {
        self.normals.count()
    }

    /// The density of one column.
    pub fn density(&self, column: usize, y: f64) -> f64 {
        self.normals.marginal(column, y)
    }

    /// The share of a component.
    pub fn weight(&self, component: usize) -> f64 {
        self.normals.weight(component)
    }

    /// The mean of a component's column.
    pub fn mean(&self, component: usize, column: usize) -> f64 {
        self.normals.mean(component, column)
    }

    /// The standard deviation of a component's column.
    pub fn sd(&self, component: usize, column: usize) -> f64 {
        self.normals.sd(component, column)
    }

    /// The correlation of two columns within a component.
    pub fn correlation(&self, component: usize, one: usize, other: usize) -> f64 {
        let covariance = self.normals.covariance(component, one, other);
        covariance / (self.sd(component, one) * self.sd(component, other))
    }

    /// How probable it is that an observation is from each component.
    pub fn responsibilities(&self, y: &[f64], to: &mut [f64]) {
        to.iter_mut().enumerate().for_each(|(component, to)| *to = self.normals.log_density(component, y));
        let total = crate::stats::log_sum_exp(to);
        to.iter_mut().for_each(|to| *to = (*to - total).exp());
    }
}
