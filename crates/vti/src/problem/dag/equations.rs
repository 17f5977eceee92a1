//! The function f_j by which a node follows its inputs, row by row: the obvious loops, in double precision.

use super::Sem;
use super::layout::Layout;
use crate::space::NodeParameters;
use crate::triangular::dot;

/// The equations of a node, with the places of its parameters: those it always has, then, for linear equations, a weight of each
/// output for each input, ascending; for hidden units as [`Layout`] has them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Equations {
    Linear {
        /// Parameters that a node without parents has, too.
        own: usize,
        outputs: usize,
    },
    Mlp(Layout),
}

impl Equations {
    pub(super) fn new(sem: Sem, own: usize, outputs: usize) -> Self {
        match sem {
            Sem::Linear {} => Self::Linear { own, outputs },
            Sem::Mlp { hidden, bias } => Self::Mlp(Layout { own, hidden, bias, outputs }),
        }
    }

    fn outputs(self) -> usize {
        match self {
            Self::Linear { outputs, .. } | Self::Mlp(Layout { outputs, .. }) => outputs,
        }
    }

    /// How many parameters there are, per input of a parent.
    pub(super) fn counts(self) -> NodeParameters {
        match self {
            Self::Linear { own, outputs } => NodeParameters { always: own, with_parents: 0, per_edge: outputs },
            Self::Mlp(layout) => NodeParameters {
                always: layout.own,
                with_parents: layout.dim(1) - layout.own - layout.hidden,
                per_edge: layout.hidden,
            },
        }
    }

    /// Number of parameters with so many inputs.
    pub(super) fn dim(self, inputs: usize) -> usize {
        match self {
            Self::Linear { own, outputs } => own + inputs * outputs,
            Self::Mlp(layout) => layout.dim(inputs),
        }
    }

    /// Adds f of some rows, one output after another; 0 without inputs. `units` becomes what goes into hidden units, one after another.
    pub(super) fn predictors(self, theta: &[f64], inputs: &[&[f64]], units: &mut Vec<f64>, to: &mut [f64]) {
        let rows = to.len() / self.outputs();
        if inputs.is_empty() || rows == 0 {
            return;
        }
        match self {
            Self::Linear { own, outputs } => {
                for (input, weights) in inputs.iter().zip(theta[own..].chunks_exact(outputs)) {
                    to.chunks_exact_mut(rows).zip(weights).for_each(|(to, weight)| add(*weight, input, to));
                }
            }
            Self::Mlp(layout) => {
                units.clear();
                units.resize(layout.hidden * rows, 0.0);
                for (unit, sums) in units.chunks_exact_mut(rows).enumerate() {
                    sums.fill(layout.hidden_biases().map_or(0.0, |biases| theta[biases.start + unit]));
                    let weights = (0..inputs.len()).map(|rank| theta[layout.column(rank).start + unit]);
                    inputs.iter().zip(weights).for_each(|(input, weight)| add(weight, input, sums));
                }
                for ((output, to), weights) in to.chunks_exact_mut(rows).enumerate().zip(layout.outputs()) {
                    let bias = layout.output_bias().map_or(0.0, |first| theta[first + output]);
                    to.iter_mut().for_each(|to| *to += bias);
                    for (sums, weight) in units.chunks_exact(rows).zip(&theta[weights]) {
                        to.iter_mut().zip(sums).for_each(|(to, x)| *to += weight * x.max(0.0));
                    }
                }
            }
        }
    }

    /// Adds to `gradient` what follows from derivatives with respect to f of the same rows, laid out like f; `units` as they were left.
    pub(super) fn pull_back(self, theta: &[f64], inputs: &[&[f64]], units: &[f64], by: &[f64], gradient: &mut [f64]) {
        let rows = by.len() / self.outputs();
        if inputs.is_empty() || rows == 0 {
            return;
        }
        match self {
            Self::Linear { own, outputs } => {
                for (input, gradient) in inputs.iter().zip(gradient[own..].chunks_exact_mut(outputs)) {
                    gradient.iter_mut().zip(by.chunks_exact(rows)).for_each(|(to, by)| *to += dot(by, input));
                }
            }
            Self::Mlp(layout) => {
                let mut by_unit = vec![0.0; rows];
                for (unit, sums) in units.chunks_exact(rows).enumerate() {
                    by_unit.fill(0.0);
                    for (by, weights) in by.chunks_exact(rows).zip(layout.outputs()) {
                        let place = weights.start + unit;
                        for ((by_unit, x), by) in by_unit.iter_mut().zip(sums).zip(by) {
                            if *x > 0.0 {
                                *by_unit += theta[place] * by;
                                gradient[place] += x * by;
                            }
                        }
                    }
                    if let Some(biases) = layout.hidden_biases() {
                        gradient[biases.start + unit] += by_unit.iter().sum::<f64>();
                    }
                    for (rank, input) in inputs.iter().enumerate() {
                        gradient[layout.column(rank).start + unit] += dot(&by_unit, input);
                    }
                }
                if let Some(first) = layout.output_bias() {
                    let biases = gradient[first..].iter_mut().zip(by.chunks_exact(rows));
                    biases.for_each(|(to, by)| *to += by.iter().sum::<f64>());
                }
            }
        }
    }
}

/// Adds so much of a column.
fn add(weight: f64, column: &[f64], to: &mut [f64]) {
    to.iter_mut().zip(column).for_each(|(to, x)| *to += weight * x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    #[test]
    fn gradients_are_slopes() {
        let mut stream = Stream::new(7, Purpose::Other(4), 0, 0);
        let columns: Vec<Vec<f64>> = (0..3).map(|_| (0..9).map(|_| stream.normal()).collect()).collect();
        let inputs: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let sems = [Sem::Linear {}, Sem::Mlp { hidden: 4, bias: false }, Sem::Mlp { hidden: 3, bias: true }];
        for (sem, outputs) in sems.into_iter().flat_map(|sem| [1, 3].map(|outputs| (sem, outputs))) {
            let equations = Equations::new(sem, 2, outputs);
            let NodeParameters { always, with_parents, per_edge } = equations.counts();
            let dim = equations.dim(3);
            assert_eq!(dim, always + with_parents + 3 * per_edge);
            let theta: Vec<f64> = (0..dim).map(|_| stream.normal()).collect();
            let by: Vec<f64> = (0..9 * outputs).map(|_| stream.normal()).collect();
            let mut units = Vec::new();
            let mut sum = |theta: &[f64]| {
                let mut to = vec![0.0; 9 * outputs];
                equations.predictors(theta, &inputs, &mut units, &mut to);
                dot(&to, &by)
            };
            let numeric: Vec<f64> = (0..dim)
                .map(|place| {
                    let mut moved = |by: f64| {
                        let mut theta = theta.clone();
                        theta[place] += by;
                        sum(&theta)
                    };
                    (moved(1e-6) - moved(-1e-6)) / 2e-6
                })
                .collect();
            sum(&theta);
            let mut gradient = vec![0.0; dim];
            equations.pull_back(&theta, &inputs, &units, &by, &mut gradient);
            for (place, (found, numeric)) in gradient.iter().zip(numeric).enumerate() {
                assert!((found - numeric).abs() < 1e-6 * (1.0 + numeric.abs()), "{sem:?} {place}: {found} {numeric}");
            }
        }
    }
}
