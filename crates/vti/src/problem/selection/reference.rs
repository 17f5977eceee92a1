//! Where coefficients may lie, before the response is looked at closely.

use super::{CoefficientPrior, Design, Likelihood, Selection};

/// Standard deviation of a logit or of a logarithmic mean that nothing is known about.
const PREDICTOR_SD: f64 = 2.5;

/// Mean and standard deviation of each free coordinate: the prior where it is normal. A g-prior has a marginal prior for each
/// slope; its intercept and its scale, whose priors have no integral, lie around those of the response.
pub(super) fn reference(selection: &Selection) -> Vec<(f64, f64)> {
    let (design, predictors) = (selection.design(), selection.design().predictors());
    let mut found = Vec::with_capacity(design.columns() * predictors + 1);
    if selection.settings.likelihood.own_parameter().is_some() {
        found.push(selection.log_scale_prior());
    }
    match selection.settings.prior {
        CoefficientPrior::Normal { scale } => found.extend((0..design.columns() * predictors).map(|_| (0.0, scale))),
        _ => {
            let scale = if selection.settings.likelihood.has_scale() {
                selection.log_scale.exp()
            } else {
                selection.known_scale()
            };
            match selection.settings.likelihood {
                Likelihood::Multinomial {} => found.extend(intercepts(design)),
                _ => found.push(intercept(selection)),
            }
            let squares = |column: usize| selection.gram[column * design.columns() + column];
            let slope = |column| (0.0, (selection.spread() / squares(column)).sqrt() * scale);
            found.extend((1..design.columns()).flat_map(|column| std::iter::repeat_n(slope(column), predictors)));
        }
    }
    found
}

/// What counts are proportional to, of all rows together: their number where there is no offset.
fn exposure(design: &Design) -> f64 {
    let of_row = |(row, weight): (usize, &f64)| weight * design.offset().get(row).map_or(1.0, |offset| offset.exp());
    design.weights().iter().enumerate().map(of_row).sum()
}

/// Around the logarithms of the shares of categories, over that of the first. Half a row more of each, so that none is
/// impossible.
fn intercepts(design: &Design) -> impl Iterator<Item = (f64, f64)> {
    let mut shares = vec![0.5; design.categories().len()];
    for (&y, weight) in design.response().iter().zip(design.weights()) {
        shares[y as usize] += weight;
    }
    let first = shares[0];
    shares.into_iter().skip(1).map(move |share| ((share / first).ln(), PREDICTOR_SD))
}

/// Around the mean of the response, on the scale of the predictor.
fn intercept(selection: &Selection) -> (f64, f64) {
    let design = selection.design();
    let n = design.total_weight();
    let sum = n * design.mean_of(design.response());
    match selection.settings.likelihood {
        // Half a row more of each kind, so that neither is impossible.
        Likelihood::Logistic {} => {
            let offset = design.offset().iter().sum::<f64>() / design.rows() as f64;
            (((sum + 0.5) / (n - sum + 0.5)).ln() - offset, PREDICTOR_SD)
        }
        Likelihood::Poisson {} | Likelihood::NegativeBinomial { .. } => {
            (((sum + 0.5) / exposure(design)).ln(), PREDICTOR_SD)
        }
        _ => (sum / n, selection.log_scale.exp() + selection.known_scale()),
    }
}
