//! What is assumed of the parameters, in words.

use super::{CoefficientPrior, Likelihood, Selection, both_scales};
use crate::space::{Heredity, ModelSpace};

impl Selection {
    /// The priors of slopes, intercept and scale, in words.
    pub fn prior_in_words(&self) -> String {
        let rows = self.design().total_weight();
        let prior = match self.settings().prior {
            CoefficientPrior::Normal { scale } => {
                let standardised = self.design().scaling().iter().any(|scaling| scaling.scale != 1.0);
                let columns = if standardised { " of standardised columns" } else { "" };
                format!("coefficients{columns} and intercept normal with mean 0 and standard deviation {scale}")
            }
            CoefficientPrior::G { .. } => format!("slopes by the g-prior with g = {}, intercept flat", self.spread()),
            CoefficientPrior::HyperG { a } => format!("slopes by the hyper-g prior with a = {a}, intercept flat"),
            CoefficientPrior::HyperGN { a } => {
                format!("slopes by the hyper-g/n prior with a = {a} and n = {rows}, intercept flat")
            }
            CoefficientPrior::ZellnerSiow {} => {
                format!("slopes by the Zellner–Siow prior with n = {rows}, intercept flat")
            }
        };
        prior + &self.scale_in_words() + self.heredity_in_words()
    }

    /// Which models are left, to go on with.
    fn heredity_in_words(&self) -> &'static str {
        match self.settings().heredity {
            _ if !self.space().is_constrained() => "",
            Heredity::Strong => "; products only in models that have all their columns",
            Heredity::Weak => "; products only in models that have one of their columns",
            Heredity::None => "",
        }
    }

    /// The prior of σ, to go on with.
    fn scale_in_words(&self) -> String {
        let settings = self.settings();
        match settings.likelihood {
            Likelihood::Gaussian { sigma: Some(sigma) } => format!(", σ = {sigma} known"),
            Likelihood::Robust { alpha, sigma1: Some(sigma1), sigma2 } => {
                let [sigma1, sigma2] = both_scales(Some(sigma1), sigma2, sigma1);
                format!(
                    ", errors of standard deviation σ₁ = {sigma1}, a share of {alpha} of them σ₂ = {sigma2}, both known and in the units of the response"
                )
            }
            Likelihood::Multinomial {} => {
                format!(
                    ", for each category but {}",
                    self.design().categories().first().map_or("the first", |name| name)
                )
            }
            _ if !settings.likelihood.has_scale() => String::new(),
            Likelihood::Robust { alpha, .. } => {
                let ratio = Likelihood::USUAL_RATIO;
                format!("{}; a share of {alpha} of the errors has standard deviation {ratio} σ", self.prior_of_scale())
            }
            _ => self.prior_of_scale(),
        }
    }

    /// The prior of an unknown σ.
    fn prior_of_scale(&self) -> String {
        if self.settings().prior.is_g() {
            return ", p(σ) ∝ 1/σ".into();
        }
        let (centre, sd) = self.log_scale_prior();
        format!(", log σ normal with mean log {:.4} and standard deviation {sd}", centre.exp())
    }
}
