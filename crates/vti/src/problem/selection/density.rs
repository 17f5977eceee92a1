//! The density of a selection and its derivatives: likelihood and prior of the parameters of a model.

use super::gaussian::{Products, Squares};
use super::gram::{AddScaled, Dot};
use super::likelihood::Pointwise;
use super::{CoefficientPrior, Likelihood, Selection, counts};
use crate::simd::Instructions;

impl Selection {
    /// `log p(θ | m)` and what its derivatives are made of. Those of a normal prior with respect to the coefficients are added
    /// to `gradient`; a g-prior sees `squares = Σ (Xb)²` over the slopes alone, and its derivatives, half of that sum's times
    /// a negative precision, are left to whoever has computed it.
    fn log_prior_theta(&self, given: &Given<'_>, squares: f64, gradient: &mut [f64]) -> PriorOfTheta {
        let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
        let has_scale = self.settings.likelihood.has_scale();
        let Given { model, columns, scale, coefficients, .. } = *given;
        if let CoefficientPrior::Normal { scale: sd } = self.settings.prior {
            let k = coefficients.len() as f64;
            let precision = 1.0 / self.spread;
            let squares: f64 = coefficients.iter().map(|b| b * b).sum();
            gradient.iter_mut().zip(coefficients).for_each(|(g, b)| *g -= b * precision);
            let mut value = -0.5 * squares * precision - k * (sd.ln() + half_log_tau);
            let mut by_log_scale = 0.0;
            if has_scale {
                let (of_scale, by_log) = self.log_normal_prior(scale);
                value += of_scale;
                by_log_scale = by_log;
            }
            return PriorOfTheta { value, by_log_scale, precision: 0.0 };
        }
        let predictors = self.design.predictors();
        let (k, squares) = ((coefficients.len() - predictors) as f64, squares / (scale * scale));
        // log ∫ g^(−k/2) exp(−squares / 2g) p(g) dg, and E 1/g.
        let (of_g, inverse) = match &self.mixture {
            Some(mixture) => mixture.slopes(k, squares),
            None => (-0.5 * (k * self.spread.ln() + squares / self.spread), 1.0 / self.spread),
        };
        let of_all = 0.5 * predictors as f64 * self.determinant(model, columns);
        let value = of_all - k * (scale.ln() + half_log_tau) + of_g;
        let precision = inverse / (scale * scale);
        if has_scale {
            PriorOfTheta { value: value - scale.ln(), by_log_scale: squares * inverse - k - 1.0, precision }
        } else {
            PriorOfTheta { value, by_log_scale: 0.0, precision }
        }
    }

    /// The prior of coefficients where there is no scale.
    pub(super) fn log_prior_of_coefficients(
        &self,
        model: &[u16],
        columns: &[u32],
        coefficients: &[f64],
        squares: f64,
        gradient: &mut [f64],
    ) -> PriorOfTheta {
        self.log_prior_theta(&Given { model, columns, own: 1.0, scale: 1.0, coefficients }, squares, gradient)
    }

    /// One row of a batch.
    pub(super) fn evaluate(&self, work: &mut Work, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> f64 {
        let likelihood = self.settings.likelihood;
        let before = likelihood.own_parameters();
        let own = if before == 1 { theta[0] } else { self.known_scale() };
        let scale = if likelihood.has_scale() { own } else { self.known_scale() };
        self.design.model_columns(model, &mut work.columns);
        gradient.fill(0.0);
        let Work { columns, rows } = work;
        if likelihood == (Likelihood::Multinomial {}) {
            return self.evaluate_categories(model, columns, theta, rows, gradient) + self.constant;
        }
        let given = Given { model, columns, own, scale, coefficients: &theta[before..] };
        let by_coefficients = &mut gradient[before..];
        let (value, by_log_own) = match &self.products {
            Some(products) => self.evaluate_by_products(products, &given, rows, by_coefficients),
            None => self.evaluate_by_rows(&given, rows, by_coefficients),
        };
        if before == 1 {
            gradient[0] = by_log_own / own;
        }
        value + self.constant
    }

    /// Gaussian errors, in a time that does not depend on the number of rows.
    fn evaluate_by_products(
        &self,
        products: &Products,
        given: &Given<'_>,
        [by_residual, by_slopes]: &mut [Vec<f64>; 2],
        gradient: &mut [f64],
    ) -> (f64, f64) {
        let Given { columns, scale, coefficients, .. } = *given;
        let Squares { residual, slopes } = products.squares(self, columns, coefficients, by_residual, by_slopes);
        let prior = self.log_prior_theta(given, slopes, gradient);
        let (n, precision) = (self.design.total_weight(), scale.powi(-2));
        for (g, (residual, slopes)) in gradient.iter_mut().zip(by_residual.iter().zip(by_slopes)) {
            *g += residual * precision + *slopes * prior.precision;
        }
        let value = -0.5 * residual * precision - n * scale.ln();
        (value + prior.value, residual * precision - n + prior.by_log_scale)
    }

    /// Any errors, row by row of the data.
    fn evaluate_by_rows(
        &self,
        given: &Given<'_>,
        [slopes, by_predictor]: &mut [Vec<f64>; 2],
        gradient: &mut [f64],
    ) -> (f64, f64) {
        let Given { columns, own, coefficients, .. } = *given;
        let instructions = Instructions::detect();
        let rows = self.design.rows();
        // Slopes first: a g-prior looks at them alone.
        slopes.clear();
        slopes.resize(rows, 0.0);
        for (&column, &b) in columns.iter().zip(coefficients).skip(1) {
            instructions.run(AddScaled { factor: b, from: self.design.column(column as usize), to: slopes });
        }
        by_predictor.clear();
        by_predictor.extend(slopes.iter().map(|x| x + coefficients[0]));
        by_predictor.iter_mut().zip(self.design.offset()).for_each(|(predictor, offset)| *predictor += offset);
        let (response, weights, likelihood) = (self.design.response(), self.design.weights(), self.settings.likelihood);
        let (value, by_log_own) =
            instructions.run(Pointwise { likelihood, response, weights, scale: own, predictor: by_predictor });
        let (beside, beside_by_log_own) = self.beside(own);
        let g_prior = self.settings.prior.is_g();
        let weighted = slopes.iter().zip(weights).map(|(x, weight)| weight * x * x);
        let squares = if g_prior { weighted.sum() } else { 0.0 };
        let prior = self.log_prior_theta(given, squares, gradient);
        if g_prior {
            let slopes = slopes.iter().zip(weights);
            by_predictor.iter_mut().zip(slopes).for_each(|(d, (x, weight))| *d -= weight * x * prior.precision);
        }
        for (&column, g) in columns.iter().zip(gradient) {
            *g += instructions.run(Dot { a: self.design.column(column as usize), b: by_predictor });
        }
        (value + beside + prior.value, by_log_own + beside_by_log_own + prior.by_log_scale)
    }

    /// What negative binomial counts have beside a sum over rows: what depends on their size alone, and its prior.
    fn beside(&self, own: f64) -> (f64, f64) {
        let (mut value, mut by_log_own) = counts::beside(self, own);
        if let Likelihood::NegativeBinomial { size: None } = self.settings.likelihood {
            let (prior, by_log) = self.log_normal_prior(own);
            (value, by_log_own) = (value + prior, by_log_own + by_log);
        }
        (value, by_log_own)
    }
}

/// Where a density is wanted.
#[derive(Clone, Copy)]
struct Given<'a> {
    model: &'a [u16],
    columns: &'a [u32],
    /// The likelihood's own parameter, or what is known of it.
    own: f64,
    /// What a g-prior means by σ.
    scale: f64,
    coefficients: &'a [f64],
}

/// A prior density and its derivatives.
pub(super) struct PriorOfTheta {
    /// Its log.
    pub(super) value: f64,
    by_log_scale: f64,
    /// The precision that a g-prior gives to Xb of the slopes; a normal prior does not look at it.
    pub(super) precision: f64,
}

/// Memory for evaluations.
#[derive(Default)]
pub(super) struct Work {
    columns: Vec<u32>,
    rows: [Vec<f64>; 2],
}
