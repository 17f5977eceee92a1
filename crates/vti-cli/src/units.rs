//! Between the parameters that are learned, of standardised columns, and those of the columns as they were measured.
//!
//! With `x̃ = (x − c)/s` a predictor `a + Σ b x̃` is `(a − Σ b c/s) + Σ (b/s) x`.

use vti::problem::Problem;
use vti::problem::selection::{Scaling, Selection};

/// How parameters change with the units of the columns.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    pub(crate) names: Vec<String>,
    /// Parameters before the intercept: the scale of the errors, where it is one.
    before: usize,
    scaling: Vec<Scaling>,
}

impl Units {
    pub(crate) fn of(selection: &Selection) -> Self {
        Self {
            names: selection.parameter_names(),
            before: usize::from(selection.settings().likelihood.has_scale()),
            scaling: selection.design().scaling().to_vec(),
        }
    }

    /// Parameters of measured columns at their places, the others left as they are; and by how much log densities rise.
    /// `active` are the places of `theta`, ascending.
    pub(crate) fn to_measured(&self, active: &[usize], theta: &[f64], measured: &mut [f64]) -> f64 {
        let (mut shift, mut log_jacobian) = (0.0, 0.0);
        for (&place, &value) in active.iter().zip(theta) {
            let Some(scaling) = self.slope(place) else {
                measured[place] = value;
                continue;
            };
            measured[place] = value / scaling.scale;
            shift += value * scaling.center / scaling.scale;
            log_jacobian += scaling.scale.ln();
        }
        measured[self.before] -= shift;
        log_jacobian
    }

    /// Whether the scale of the errors is positive, where there is one.
    pub(crate) fn is_possible(&self, measured: &[f64]) -> bool {
        self.before == 0 || measured[0] > 0.0
    }

    /// The reverse: parameters of standardised columns, those of the model only.
    pub(crate) fn to_learned(&self, active: &[usize], measured: &[f64]) -> (Vec<f64>, f64) {
        let mut theta: Vec<f64> = active.iter().map(|&place| measured[place]).collect();
        let (mut shift, mut log_jacobian) = (0.0, 0.0);
        for (value, &place) in theta.iter_mut().zip(active) {
            if let Some(scaling) = self.slope(place) {
                shift += *value * scaling.center;
                *value *= scaling.scale;
                log_jacobian += scaling.scale.ln();
            }
        }
        if let Some(intercept) = active.iter().position(|&place| place == self.before) {
            theta[intercept] += shift;
        }
        (theta, log_jacobian)
    }

    fn slope(&self, place: usize) -> Option<&Scaling> {
        place.checked_sub(self.before + 1).and_then(|slope| self.scaling.get(slope + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictors_stay_the_same_and_both_directions_agree() {
        let names = ["sigma", "intercept", "a", "b", "c"].map(String::from).to_vec();
        let scaling = [(0.0, 1.0), (3.0, 2.0), (-1.0, 0.5), (10.0, 4.0)];
        let scaling = scaling.map(|(center, scale)| Scaling { center, scale }).to_vec();
        let units = Units { names, before: 1, scaling: scaling.clone() };
        let (active, theta) = ([0, 1, 2, 4], [0.7, 1.5, -0.4, 2.5]);
        let mut measured = [f64::NAN; 5];
        let log_jacobian = units.to_measured(&active, &theta, &mut measured);
        assert_eq!((measured[0], measured[3].is_nan()), (0.7, true));
        assert!((log_jacobian - 8f64.ln()).abs() < 1e-12);
        let (xa, xc) = (1.7, -2.3);
        let learned = 1.5 - 0.4 * (xa - 3.0) / 2.0 + 2.5 * (xc - 10.0) / 4.0;
        assert!((measured[1] + measured[2] * xa + measured[4] * xc - learned).abs() < 1e-12);
        let (back, reverse) = units.to_learned(&active, &measured);
        assert!(back.iter().zip(theta).all(|(a, b)| (a - b).abs() < 1e-12) && reverse == log_jacobian);
    }
}
