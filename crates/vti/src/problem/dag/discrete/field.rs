//! What independent normal parameters say about a node of categories: a bound of its evidence, up to an approximation.
//!
//! Given q, each predictor of a row is a sum of products of many independent numbers, and about normal. Its mean and variance have the
//! closed forms of [`MeanField`](crate::problem::dag::MeanField); what is left is the mean of `log p(category)` over the predictors and
//! the node's own parameters, D numbers in all. It is taken over 2 D points, at a distance of √D standard deviations along each axis to
//! both sides (the spherical cubature rule), which is exact for polynomials of third degree.

use super::{Discrete, Node};
use crate::graph::nodes_of;
use crate::problem::dag::layout::Layout;
use crate::problem::dag::response::Response;
use crate::stats::{normal_cdf, normal_log_density};

/// Variances below this have no effect, and would be divided by.
const MIN_VARIANCE: f64 = 1e-12;

/// What is known of one hidden unit in one row.
#[derive(Clone, Copy, Default)]
struct Unit {
    /// E relu and E relu².
    first: f64,
    second: f64,
    /// Φ(m/s), and φ(m/s)/(2s).
    share: f64,
    density: f64,
}

impl Unit {
    fn new(mean: f64, variance: f64) -> Self {
        let variance = variance.max(MIN_VARIANCE);
        let s = variance.sqrt();
        let (share, phi) = (normal_cdf(mean / s), normal_log_density(mean / s).exp());
        let first = mean * share + s * phi;
        Self { first, second: mean * first + variance * share, share, density: 0.5 * phi / s }
    }
}

impl Discrete {
    /// About `E_q[log p(x_j, θ_j | x_pa) − log q(θ_j)]`, and its gradient; `q` holds means of free coordinates and then the logarithms
    /// of their standard deviations.
    pub(super) fn lower_bound(
        &self,
        node: &Node,
        layout: Layout,
        parents: u64,
        q: &[f64],
        gradient: &mut [f64],
    ) -> f64 {
        if !q.iter().all(|x| x.is_finite()) {
            gradient.fill(f64::NAN);
            return f64::NAN;
        }
        let dim = q.len() / 2;
        let (mean, log_scale) = q.split_at(dim);
        let variance: Vec<f64> = log_scale.iter().map(|l| (2.0 * l).exp()).collect();
        gradient.fill(0.0);
        let (by_mean, by_variance) = gradient.split_at_mut(dim);
        let inputs: Vec<&[f64]> = nodes_of(parents).map(|column| &node.inputs[column][..]).collect();
        let mut axes = Axes::new(node.response, &mean[..layout.own], &variance[..layout.own]);
        let mut bound = axes.expected_prior();
        let mut units = vec![Unit::default(); layout.hidden];
        for (row, &category) in node.observed.iter().enumerate() {
            // What goes into hidden units; a bias is the weight of what is always 1.
            for (h, unit) in units.iter_mut().enumerate() {
                let bias = layout.hidden_biases().map(|biases| biases.start + h);
                let (mut m, mut v) = bias.map_or((0.0, 0.0), |place| (mean[place], variance[place]));
                for (rank, input) in inputs.iter().enumerate() {
                    let (place, x) = (layout.column(rank).start + h, input[row]);
                    m += mean[place] * x;
                    v += variance[place] * x * x;
                }
                *unit = Unit::new(m, v);
            }
            for (output, weights) in layout.outputs().enumerate() {
                let bias = layout.output_bias().map(|first| first + output);
                let (mut m, mut v) = bias.map_or((0.0, 0.0), |place| (mean[place], variance[place]));
                for (unit, place) in units.iter().zip(weights) {
                    let (w, t) = (mean[place], variance[place]);
                    m += w * unit.first;
                    v += (w * w + t) * unit.second - w * w * unit.first * unit.first;
                }
                axes.set_predictor(output, m, v);
            }
            bound += axes.expected_log_density(category);
            pull_back(layout, (mean, &variance), &inputs, row, &units, &axes, (by_mean, by_variance));
        }
        by_mean.iter_mut().zip(&axes.by_own_mean).for_each(|(to, x)| *to += x);
        by_variance.iter_mut().zip(&axes.by_own_variance).for_each(|(to, x)| *to += x);
        let precision = self.weight_scale.powi(-2);
        for place in layout.own..dim {
            let square = mean[place] * mean[place] + variance[place];
            bound -= 0.5 * (precision * square - precision.ln() + std::f64::consts::TAU.ln());
            by_mean[place] -= precision * mean[place];
            by_variance[place] -= 0.5 * precision;
        }
        // The entropy of q.
        for place in 0..dim {
            bound += log_scale[place] + 0.5 * (1.0 + std::f64::consts::TAU.ln());
            by_variance[place] = 2.0 * variance[place] * by_variance[place] + 1.0;
        }
        bound
    }
}

/// From derivatives with respect to mean and variance of predictors to those of q's means and variances.
fn pull_back(
    layout: Layout,
    (mean, variance): (&[f64], &[f64]),
    inputs: &[&[f64]],
    row: usize,
    units: &[Unit],
    axes: &Axes,
    (by_mean, by_variance): (&mut [f64], &mut [f64]),
) {
    for (output, place) in (0..layout.outputs).zip(layout.output_bias().into_iter().flat_map(|first| first..)) {
        by_mean[place] += axes.by_mean[output];
        by_variance[place] += axes.by_variance[output];
    }
    for (h, unit) in units.iter().enumerate() {
        let (mut by_first, mut by_second) = (0.0, 0.0);
        for (output, weights) in layout.outputs().enumerate() {
            let (by_m, by_v, place) = (axes.by_mean[output], axes.by_variance[output], weights.start + h);
            let (w, t) = (mean[place], variance[place]);
            let spread = unit.second - unit.first * unit.first;
            by_mean[place] += by_m * unit.first + 2.0 * by_v * w * spread;
            by_variance[place] += by_v * unit.second;
            by_first += by_m * w - 2.0 * by_v * w * w * unit.first;
            by_second += by_v * (w * w + t);
        }
        let by_m = by_first * unit.share + 2.0 * by_second * unit.first;
        let by_v = by_first * unit.density + by_second * unit.share;
        if let Some(biases) = layout.hidden_biases() {
            by_mean[biases.start + h] += by_m;
            by_variance[biases.start + h] += by_v;
        }
        for (rank, input) in inputs.iter().enumerate() {
            let (place, x) = (layout.column(rank).start + h, input[row]);
            by_mean[place] += by_m * x;
            by_variance[place] += by_v * x * x;
        }
    }
}

/// The predictors of a row and the own parameters of its node, all independent and normal.
struct Axes {
    response: Response,
    /// Of predictors, then of own parameters.
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// Derivatives with respect to mean and variance of the predictors of the row.
    by_mean: Vec<f64>,
    by_variance: Vec<f64>,
    /// And of own parameters, of all rows.
    by_own_mean: Vec<f64>,
    by_own_variance: Vec<f64>,
}

impl Axes {
    fn new(response: Response, own_mean: &[f64], own_variance: &[f64]) -> Self {
        let (own, predictors) = (response.own(), response.predictors());
        Self {
            response,
            mean: [&vec![0.0; predictors][..], own_mean].concat(),
            variance: [&vec![0.0; predictors][..], own_variance].concat(),
            by_mean: vec![0.0; predictors],
            by_variance: vec![0.0; predictors],
            by_own_mean: vec![0.0; own],
            by_own_variance: vec![0.0; own],
        }
    }

    fn set_predictor(&mut self, output: usize, mean: f64, variance: f64) {
        (self.mean[output], self.variance[output]) = (mean, variance.max(MIN_VARIANCE));
    }

    /// The mean of a function of predictors and natural own parameters over the points of the rule, for axes from `first` on; `f`
    /// writes its gradients, the latter one also with respect to what free coordinates add to it. Its derivatives are added to those
    /// with respect to all means and variances.
    fn expected(&mut self, first: usize, f: impl Fn(&Response, &[f64], &[f64], &mut [f64], &mut [f64]) -> f64) -> f64 {
        let (response, predictors) = (self.response, self.response.predictors());
        let all = self.mean.len();
        let count = (all - first) as f64;
        let share = 0.5 / count;
        let (mut value, mut point) = (0.0, self.mean.clone());
        let (mut by_predictors, mut by_own) = (vec![0.0; predictors], vec![0.0; response.own()]);
        for axis in first..all {
            let spread = (count * self.variance[axis].max(MIN_VARIANCE)).sqrt();
            for sign in [-1.0, 1.0] {
                point[axis] = self.mean[axis] + sign * spread;
                let mut own = point[predictors..].to_vec();
                (0..own.len()).filter(|&place| response.is_gap(place)).for_each(|place| own[place] = own[place].exp());
                by_predictors.fill(0.0);
                by_own.fill(0.0);
                value += share * f(&response, &point[..predictors], &own, &mut by_predictors, &mut by_own);
                (0..own.len()).filter(|&place| response.is_gap(place)).for_each(|place| by_own[place] *= own[place]);
                self.by_mean.iter_mut().zip(&by_predictors).for_each(|(to, by)| *to += share * by);
                self.by_own_mean.iter_mut().zip(&by_own).for_each(|(to, by)| *to += share * by);
                // ∂ point/∂ variance.
                let by_spread = sign * 0.5 * count / spread;
                match axis.checked_sub(predictors) {
                    None => self.by_variance[axis] += share * by_predictors[axis] * by_spread,
                    Some(place) => self.by_own_variance[place] += share * by_own[place] * by_spread,
                }
            }
            point[axis] = self.mean[axis];
        }
        value
    }

    /// `E log p(category)`.
    fn expected_log_density(&mut self, category: usize) -> f64 {
        self.by_mean.fill(0.0);
        self.by_variance.fill(0.0);
        self.expected(0, |response, predictors, own, by_predictors, by_own| {
            response.log_density(category, own, predictors, by_predictors, by_own)
        })
    }

    /// `E log p` of the own parameters, in free coordinates.
    fn expected_prior(&mut self) -> f64 {
        let response = self.response;
        let prior = self.expected(response.predictors(), |response, _, own, _, by_own| response.add_prior(own, by_own));
        // The logarithms of gaps are what they add.
        let gaps = (0..response.own()).filter(|&place| response.is_gap(place));
        prior
            + gaps
                .map(|place| {
                    self.by_own_mean[place] += 1.0;
                    self.mean[response.predictors() + place]
                })
                .sum::<f64>()
    }
}
