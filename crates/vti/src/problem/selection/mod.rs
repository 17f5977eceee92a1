//! Variable selection: which covariates matter for a response (paper, section 5.1, "Bayesian misspecified robust variable
//! selection").

mod averages;
mod categories;
mod closed_form;
mod conjugate;
mod counts;
mod data;
mod density;
mod design;
mod eigen;
mod enumerate;
mod exact;
mod gaussian;
mod gram;
mod heredity;
mod likelihood;
mod mixture;
mod preconditioner;
mod prior;
mod quadrature;
mod reference;
mod scale;
pub mod simulate;
mod starts;
mod weighed;
mod words;

use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

pub use averages::{Average, averages};
pub use categories::coefficient_name;
pub(crate) use categories::softmax;
pub use closed_form::ClosedForm;
pub use conjugate::Conjugate;
pub(crate) use counts::log_rising;
pub use data::{RegressionData, TableError, Term};
pub use design::{Design, Scaling, Standardise};
pub use enumerate::{Enumeration, EnumerationLimits, Method, enumerate};
pub use exact::{ExactError, log_evidences};
pub use likelihood::Likelihood;
pub(crate) use likelihood::both_scales;
pub use prior::{CoefficientPrior, ModelPrior};
pub use quadrature::{QuadratureLimits, evidence_by_quadrature};
pub use weighed::WeighedModels;

use self::categories::CategoryQuadratic;
use self::counts::Rising;
use self::density::Work;
use self::exact::PriorOfG;
use self::gaussian::Products;
use self::gram::{gram, log_determinant};
use self::mixture::Mixture;
use self::preconditioner::Quadratic;
use super::{BatchError, Constraint, Constraints, DensityBatch, DensityError, Preconditioner, Problem};
use crate::optimise::SettingError;
use crate::space::{Heredity, ModelSpace, SpaceError, Subsets};
use crate::stats::Evidence;
use crate::workers::Workers;

/// What is assumed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SelectionSettings {
    /// Of the response.
    pub likelihood: Likelihood,
    /// Of the coefficients.
    pub prior: CoefficientPrior,
    /// Of the models.
    pub model_prior: ModelPrior,
    /// Which models may have terms that are products of others.
    pub heredity: Heredity,
}

impl Default for SelectionSettings {
    fn default() -> Self {
        Self {
            likelihood: Likelihood::Gaussian { sigma: None },
            prior: CoefficientPrior::default(),
            model_prior: ModelPrior::default(),
            heredity: Heredity::default(),
        }
    }
}

/// A selection that cannot be set up.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The table is unusable.
    #[error(transparent)]
    Data(#[from] TableError),
    /// A setting out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The space cannot be built.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// A g-prior needs the columns of every model to be independent.
    #[error(
        "the g-prior needs linearly independent columns, but {column} is a combination of others\nhint: leave it out, or use --prior normal:SCALE"
    )]
    Collinear {
        /// One of them.
        column: String,
    },
    /// A mixture of g-priors with another likelihood.
    #[error(
        "the priors hyper-g, hyper-g-n and zellner-siow are mixtures of g-priors for gaussian errors alone\nhint: use --prior g or --prior normal:SCALE with other likelihoods"
    )]
    Mixture,
    /// A response without errors, whose evidence a mixture of g-priors cannot bound.
    #[error(
        "the columns explain the response without errors, so its evidence under a mixture of g-priors is infinite\nhint: leave out the column that gives the response away, or use --prior g"
    )]
    PerfectFit,
}

/// Which covariates matter for a response?
#[derive(Debug)]
pub struct Selection {
    settings: SelectionSettings,
    design: Design,
    space: Subsets,
    /// log of the prior probability that models have which are in the space, before those that are not are left out.
    log_prior_of_all: f64,
    constraints: Option<Constraints>,
    /// XᵀWX of all columns, W being the weights of the rows.
    gram: Vec<f64>,
    /// g σ-free: prior covariance is `spread · σ² (XᵀX)⁻¹`. A mixture has that of unit information, for what is but a start.
    spread: f64,
    /// The prior of g, where it has one.
    mixture: Option<Mixture>,
    /// Constant part of the log likelihood.
    constant: f64,
    /// Centre of the proper prior of the log scale, or of the log size.
    log_scale: f64,
    /// log |XᵀX| of models met so far.
    determinants: RwLock<HashMap<Box<[u16]>, f64>>,
    /// Of negative binomial counts.
    rising: Option<Rising>,
    /// What Gaussian errors need of the response; the others need all of it.
    products: Option<Products>,
    /// What preconditioners are made of.
    quadratic: OnceLock<Option<Quadratic>>,
    /// The same of categories.
    category_quadratic: OnceLock<Option<CategoryQuadratic>>,
}

/// The most determinants that are kept.
const MAX_KEPT_DETERMINANTS: usize = 1 << 20;

/// A share of the response that is smaller than this is rounding.
const MIN_UNEXPLAINED: f64 = 1e-12;

impl Selection {
    /// Subsets of the optional terms.
    pub fn space(&self) -> &Subsets {
        &self.space
    }

    /// Sets a selection up. Where the prior needs it, columns are centred whatever `standardise` says.
    pub fn new(
        table: &RegressionData,
        standardise: Standardise,
        settings: &SelectionSettings,
    ) -> Result<Self, SelectionError> {
        settings.prior.check()?;
        settings.model_prior.check()?;
        settings.likelihood.check_settings()?;
        settings.likelihood.check(&table.response)?;
        let gaussian = matches!(settings.likelihood, Likelihood::Gaussian { .. });
        let g_prior = settings.prior.is_g();
        let standardise = if g_prior && standardise == Standardise::Raw { Standardise::Centred } else { standardise };
        let mut design = Design::new(table, standardise)?;
        let mixture = Mixture::of(&settings.prior, design.total_weight());
        if mixture.is_some() && !gaussian {
            return Err(SelectionError::Mixture);
        }
        if settings.likelihood.has_identity_link() {
            design.subtract_offset();
        }
        if settings.likelihood == (Likelihood::Multinomial {}) {
            design.name_categories(&table.categories);
            if !design.offset().is_empty() {
                return Err(TableError::OffsetOfCategories.into());
            }
        }
        let (own, predictors) = (settings.likelihood.own_parameters(), design.predictors());
        let blocks: Vec<usize> = design.terms().iter().map(|(_, columns)| columns * predictors).collect();
        let names = design.terms().iter().map(|(name, _)| name.clone()).collect();
        let space = Subsets::of_blocks(design.always() * predictors + own, &blocks)?
            .with_names(names)?
            .with_parents(heredity::parents(table, settings.heredity)?, settings.heredity)?;
        let constraints = (own == 1).then(|| {
            let reals = std::iter::repeat_n(Constraint::Real, design.columns());
            Constraints::new(std::iter::once(Constraint::Positive).chain(reals).collect())
        });
        let constraints = match constraints {
            Some(Ok(constraints)) => Some(constraints),
            Some(Err(_)) => unreachable!("positive and real numbers have no settings"),
            None => None,
        };
        let n = design.total_weight();
        let (response, weights) = (design.response(), design.weights());
        let spread = match settings.prior {
            CoefficientPrior::G { g: Some(g) } => g,
            // A logit carries a quarter of the information of a unit normal at best.
            CoefficientPrior::G { g: None } if settings.likelihood.has_categories() => 4.0 * n,
            CoefficientPrior::G { g: None }
            | CoefficientPrior::HyperG { .. }
            | CoefficientPrior::HyperGN { .. }
            | CoefficientPrior::ZellnerSiow {} => n,
            CoefficientPrior::Normal { scale } => scale * scale,
        };
        let mut selection = Self {
            gram: gram(&design),
            spread,
            mixture,
            constant: settings.likelihood.constant(response, weights),
            log_scale: scale::centre(&settings.likelihood, &design),
            rising: matches!(settings.likelihood, Likelihood::NegativeBinomial { .. })
                .then(|| Rising::new(response, weights)),
            determinants: RwLock::new(HashMap::new()),
            products: None,
            quadratic: OnceLock::new(),
            category_quadratic: OnceLock::new(),
            log_prior_of_all: heredity::log_prior_of_all(&space, &settings.model_prior),
            settings: *settings,
            design,
            space,
            constraints,
        };
        if g_prior {
            selection.check_independent()?;
        }
        selection.products = gaussian.then(|| Products::new(&selection));
        // The larger a model the smaller its residuals: if any has none, the whole has none.
        if mixture.is_some()
            && settings.likelihood.has_scale()
            && ClosedForm::new(&selection).is_ok_and(|form| form.unexplained() < MIN_UNEXPLAINED)
        {
            return Err(SelectionError::PerfectFit);
        }
        Ok(selection)
    }

    /// What is assumed.
    pub fn settings(&self) -> &SelectionSettings {
        &self.settings
    }

    /// The numbers.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// g of the prior, or the variance of normal coefficients.
    fn spread(&self) -> f64 {
        self.spread
    }

    /// g of a g-prior.
    fn prior_of_g(&self) -> PriorOfG {
        self.mixture.map_or(PriorOfG::Fixed(self.spread), PriorOfG::Mixture)
    }

    /// XᵀX of all columns, row-major.
    fn gram(&self) -> &[f64] {
        &self.gram
    }

    /// The whole model must have independent columns, and then every model has.
    fn check_independent(&self) -> Result<(), SelectionError> {
        let all: Vec<u32> = (1..self.design.columns() as u32).collect();
        match log_determinant(&self.gram, self.design.columns(), &all) {
            Ok(_) => Ok(()),
            Err(column) => Err(SelectionError::Collinear { column: self.design.names()[column].clone() }),
        }
    }

    /// log |XᵀX| of the slopes of a model.
    fn determinant(&self, model: &[u16], columns: &[u32]) -> f64 {
        let read = self.determinants.read().unwrap_or_else(PoisonError::into_inner).get(model).copied();
        read.unwrap_or_else(|| {
            let value = log_determinant(&self.gram, self.design.columns(), &columns[1..]).unwrap_or(f64::NAN);
            let mut kept = self.determinants.write().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < MAX_KEPT_DETERMINANTS {
                kept.insert(model.into(), value);
            }
            value
        })
    }

    /// The scale where it is no parameter: what a g-prior means by σ.
    fn known_scale(&self) -> f64 {
        match self.settings.likelihood {
            Likelihood::Gaussian { sigma: Some(sigma) } => sigma,
            Likelihood::Robust { sigma1: Some(sigma1), .. } => sigma1,
            _ => 1.0,
        }
    }
}

impl Problem for Selection {
    fn space(&self) -> &dyn ModelSpace {
        &self.space
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        Ok(self.evaluate(&mut Work::default(), model, theta, gradient))
    }

    fn reference(&self) -> Option<Vec<(f64, f64)>> {
        Some(reference::reference(self))
    }

    fn log_prior(&self, model: &[u16]) -> f64 {
        if self.space.is_constrained() && !self.space.is_allowed(model) {
            return f64::NEG_INFINITY;
        }
        let size = model.iter().filter(|&&bit| bit == 1).count();
        self.settings.model_prior.log_prob(size, model.len()) - self.log_prior_of_all
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.constraints.as_ref()
    }

    fn evidence(&self, model: &[u16]) -> Option<Evidence> {
        match ClosedForm::new(self) {
            Ok(closed) => {
                Some(Evidence::exactly(closed.log_evidence(model))).filter(|found| found.log_evidence.is_finite())
            }
            Err(_) => evidence_by_quadrature(self, model, &QuadratureLimits::default()).ok(),
        }
    }

    fn preconditioner(&self, model: &[u16]) -> Option<Preconditioner> {
        let mut columns = Vec::new();
        self.design.model_columns(model, &mut columns);
        if self.settings.likelihood == (Likelihood::Multinomial {}) {
            let whole = self.category_quadratic.get_or_init(|| CategoryQuadratic::new(self));
            return whole.as_ref()?.preconditioner(self, &columns);
        }
        self.quadratic.get_or_init(|| Quadratic::new(self)).as_ref()?.preconditioner(self, &columns)
    }

    fn parameter_names(&self) -> Vec<String> {
        let own = self.settings.likelihood.own_parameter().map(String::from);
        let of_column = |name: &String| match self.design.categories() {
            [] => vec![name.clone()],
            [_, others @ ..] => others.iter().map(|category| coefficient_name(name, category)).collect(),
        };
        own.into_iter().chain(self.design.names().iter().flat_map(of_column)).collect()
    }

    fn log_density_batch(&self, batch: DensityBatch<'_>, workers: &Workers) -> Result<(), BatchError> {
        batch.share_out(workers, |rows| {
            let mut work = Work::default();
            for row in 0..rows.rows() {
                let (model, theta, gradient) = rows.row(row);
                rows.log_density[row] = self.evaluate(&mut work, model, theta, gradient);
            }
            Ok(())
        })
    }
}
