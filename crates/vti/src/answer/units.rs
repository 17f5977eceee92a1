//! Between the parameters that are learned, of columns on scales of their own, and those of the columns as they were
//! measured.
//!
//! Every parameter is multiplied by a factor. Where columns are centred and there is an intercept, it takes up the rest: with
//! `x̃ = (x − c)/s` a predictor `a + Σ b x̃` is `(a − Σ b c/s) + Σ (b/s) x`.

use std::ops::Range;

use crate::problem::dag::{Dag, Sem};
use crate::problem::selection::{Scaling, Selection};
use crate::problem::{Constraint, Constraints, Problem};
use crate::space::{ModelSpace, NodeParameters};

/// How parameters change with the units of the data.
///
/// ```
/// use vti::answer::Units;
/// let units = Units::identity(vec!["a".into(), "b".into()]);
/// let mut measured = [f64::NAN; 2];
/// assert_eq!(units.to_measured(&[1], &[3.0], &mut measured), 0.0);
/// assert!(measured[0].is_nan() && measured[1] == 3.0);
/// assert_eq!(units.to_learned(&[1], &measured), (vec![3.0], 0.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Units {
    names: Vec<String>,
    /// Measured over learned.
    factors: Vec<f64>,
    /// What was subtracted from the column that a parameter multiplies.
    centres: Vec<f64>,
    /// The intercepts that know it: of several, each has every so many of the parameters that follow.
    intercepts: Range<usize>,
    /// Which parameters are positive.
    positive: Vec<bool>,
}

impl Units {
    /// Parameters of these names that are learned in the units of the data.
    pub fn identity(names: Vec<String>) -> Self {
        let count = names.len();
        Self {
            names,
            factors: vec![1.0; count],
            centres: vec![0.0; count],
            intercepts: 0..0,
            positive: vec![false; count],
        }
    }

    /// Of a selection: its design knows how columns were centred and scaled.
    pub fn of_selection(selection: &Selection) -> Self {
        // The scale of the errors, or the size of counts, stands before the intercept, where there is one.
        let before = selection.settings().likelihood.own_parameters();
        let (scaling, predictors) = (selection.design().scaling(), selection.design().predictors());
        let fixed = before + predictors;
        let slopes = |of: fn(&Scaling) -> f64| {
            scaling.iter().skip(1).flat_map(move |scaling| std::iter::repeat_n(of(scaling), predictors))
        };
        let names = selection.parameter_names();
        Self {
            factors: std::iter::repeat_n(1.0, fixed).chain(slopes(|scaling| 1.0 / scaling.scale)).collect(),
            centres: std::iter::repeat_n(0.0, fixed).chain(slopes(|scaling| scaling.center)).collect(),
            intercepts: before..fixed,
            positive: (0..names.len()).map(|place| place < before).collect(),
            names,
        }
    }

    /// Of structural equations whose columns were divided by `scales`, one for each node (1 for categories), and stay centred: with `x̃ = x/s`,
    /// `x̃_j = W² relu(W¹ x̃ + b¹) + b²` is `x_j = s_j W² relu(W¹ x/s + b¹) + s_j b²`, and a weight `w` of a linear equation is
    /// `w s_j/s_i`.
    pub fn of_dag(dag: &Dag, scales: &[f64]) -> Self {
        let (space, nodes) = (dag.space(), dag.space().nodes());
        let mut factors = vec![1.0; space.max_dim()];
        for (node, own) in scales.iter().enumerate().take(nodes) {
            let NodeParameters { always, with_parents, .. } = space.parameters(node);
            let start = node * space.node_width();
            let (first, rest) = factors[start..start + always + with_parents].split_at_mut(always);
            first.fill(*own);
            let edges = |from: usize| space.edge_coordinates(from, node).into_iter().flatten();
            let others = scales.iter().enumerate().take(nodes);
            match dag.settings().sem {
                Sem::Linear {} => {
                    others.for_each(|(from, scale)| edges(from).for_each(|place| factors[place] = own / scale));
                }
                Sem::Mlp { hidden, bias } => {
                    rest.iter_mut().skip(if bias { hidden } else { 0 }).for_each(|factor| *factor = *own);
                    others.for_each(|(from, scale)| edges(from).for_each(|place| factors[place] = 1.0 / scale));
                }
            }
        }
        let is_positive = |constraint: &Constraint| *constraint == Constraint::Positive;
        let positive = dag.constraints().and_then(Constraints::list);
        Self {
            centres: vec![0.0; factors.len()],
            intercepts: 0..0,
            positive: positive
                .map_or_else(|| vec![false; factors.len()], |list| list.iter().map(is_positive).collect()),
            names: dag.parameter_names(),
            factors,
        }
    }

    /// Names of the parameters.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Writes the parameters of a model in the units of the data at their places and leaves the others as they are; by how
    /// much log densities rise. `active` are the places of `theta`, ascending.
    pub fn to_measured(&self, active: &[usize], theta: &[f64], measured: &mut [f64]) -> f64 {
        let mut log_jacobian = 0.0;
        for (&place, &value) in active.iter().zip(theta) {
            measured[place] = value * self.factors[place];
            log_jacobian -= self.factors[place].ln();
        }
        for intercept in self.intercepts.clone() {
            measured[intercept] -= self.shift(intercept, active, measured);
        }
        log_jacobian
    }

    /// What centring took from the predictor of an intercept.
    fn shift(&self, intercept: usize, active: &[usize], measured: &[f64]) -> f64 {
        let own = |place: &&usize| **place >= intercept && (**place - intercept).is_multiple_of(self.intercepts.len());
        active.iter().filter(own).map(|&place| measured[place] * self.centres[place]).sum()
    }

    /// Whether all parameters that must be positive are, of those that the model has.
    pub fn is_possible(&self, measured: &[f64]) -> bool {
        // What the model does not have is not a number.
        measured.iter().zip(&self.positive).all(|(value, positive)| !positive || *value > 0.0 || value.is_nan())
    }

    /// The reverse: parameters as they are learned, those of the model only, and by how much log densities rise in the units
    /// of the data.
    pub fn to_learned(&self, active: &[usize], measured: &[f64]) -> (Vec<f64>, f64) {
        let log_jacobian: f64 = active.iter().map(|&place| -self.factors[place].ln()).sum();
        let learned = |&place: &usize| {
            let shift = if self.intercepts.contains(&place) { self.shift(place, active, measured) } else { 0.0 };
            (measured[place] + shift) / self.factors[place]
        };
        (active.iter().map(learned).collect(), log_jacobian)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictors_stay_the_same_and_both_directions_agree() {
        let names = ["sigma", "intercept", "a", "b", "c"].map(String::from).to_vec();
        let units = Units {
            names,
            factors: vec![1.0, 1.0, 1.0 / 2.0, 1.0 / 0.5, 1.0 / 4.0],
            centres: vec![0.0, 0.0, 3.0, -1.0, 10.0],
            intercepts: 1..2,
            positive: vec![true, false, false, false, false],
        };
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
        assert!(units.is_possible(&measured) && !units.is_possible(&[0.0, 1.0, 1.0, 1.0, 1.0]));
    }
}
