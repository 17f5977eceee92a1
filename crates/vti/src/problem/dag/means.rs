//! What structural equations say about single rows.

use super::layout::Layout;
use super::sem::Likelihood;
use super::{Dag, Noise, Sem};

impl Dag {
    /// Means of a node in some rows of the table, given its parents, ascending, and its parameters as
    /// [`Blocks::log_density`](crate::problem::Blocks::log_density) has them. Rows, parents or parameters that do not exist count
    /// as 0.
    ///
    /// ```
    /// use vti::problem::dag::{Dag, DagSettings, NodeData, Sem};
    /// let table = NodeData { names: vec!["a".into(), "b".into()], columns: vec![vec![1.0, 2.0], vec![0.0, 0.0]] };
    /// let dag = Dag::new(table, DagSettings { sem: Sem::Linear {}, ..DagSettings::default() })?;
    /// let mut means = [f64::NAN];
    /// dag.node_means(1, &[0], &[0.5, 3.0], &[1], &mut means);
    /// assert_eq!(means, [6.0]);
    /// # Ok::<(), vti::problem::dag::DagError>(())
    /// ```
    pub fn node_means(&self, node: usize, parents: &[usize], theta: &[f64], rows: &[usize], to: &mut [f64]) {
        to.fill(self.intercept(node, parents, theta));
        if parents.is_empty() {
            return;
        }
        let scale = matches!(self.settings().noise, Noise::Unknown {});
        match self.settings().sem {
            Sem::Linear {} => {
                let weights = theta.iter().skip(usize::from(scale));
                parents.iter().zip(weights).for_each(|(&parent, &weight)| self.add_column(parent, weight, rows, to));
            }
            Sem::Mlp { hidden, bias } => {
                let layout = Layout { scale, hidden, bias };
                let at = |place: usize| theta.get(place).copied().unwrap_or(0.0);
                to.fill(layout.output_bias().map_or(0.0, at));
                let mut unit_of_rows = vec![0.0; rows.len()];
                for unit in 0..hidden {
                    let first = if bias { at(usize::from(scale) + unit) } else { 0.0 };
                    unit_of_rows.fill(first);
                    for (rank, &parent) in parents.iter().enumerate() {
                        self.add_column(parent, at(layout.column(rank).start + unit), rows, &mut unit_of_rows);
                    }
                    let weight = at(layout.output().start + unit);
                    to.iter_mut().zip(&unit_of_rows).for_each(|(to, x)| *to += weight * x.max(0.0));
                }
            }
        }
    }

    /// What a node has without any parent: 0, but for the intercept that BGe integrates out, of which this is the mean.
    fn intercept(&self, node: usize, parents: &[usize], theta: &[f64]) -> f64 {
        match &*self.likelihood {
            Likelihood::Bge(bge) => bge.intercept(node, parents, theta.get(1..).unwrap_or_default()),
            Likelihood::Linear(_) | Likelihood::Single(_) | Likelihood::Double(_) => 0.0,
        }
    }

    /// Adds so much of a column.
    fn add_column(&self, node: usize, weight: f64, rows: &[usize], to: &mut [f64]) {
        let Some(column) = self.table().columns.get(node) else { return };
        for (to, &row) in to.iter_mut().zip(rows) {
            *to += weight * column.get(row).copied().unwrap_or(0.0);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::problem::Blocks;
    use crate::problem::dag::{DagSettings, NodeData};
    use crate::random::{Purpose, Stream};

    #[test]
    fn normal_errors_around_means_are_the_likelihood() {
        let mut stream = Stream::new(4, Purpose::Other(0), 0, 0);
        let columns: Vec<Vec<f64>> = (0..3).map(|_| (0..17).map(|_| stream.normal()).collect()).collect();
        let names = ["a", "b", "c"].map(String::from).to_vec();
        for sem in [Sem::Linear {}, Sem::Mlp { hidden: 3, bias: false }, Sem::Mlp { hidden: 3, bias: true }] {
            for noise in [Noise::Unknown {}, Noise::Known { sigma: 0.7 }] {
                let table = NodeData { names: names.clone(), columns: columns.clone() };
                let settings = DagSettings { sem, noise, ..DagSettings::default() };
                let dag = Dag::new(table, settings).unwrap().in_double_precision();
                let unknown = usize::from(noise == Noise::Unknown {});
                let dim = match sem {
                    Sem::Linear {} => unknown + 2,
                    Sem::Mlp { hidden, bias } => unknown + hidden * 3 + if bias { hidden + 1 } else { 0 },
                };
                let mut theta: Vec<f64> = (0..dim).map(|_| stream.normal()).collect();
                if unknown == 1 {
                    theta[0] = 1.3;
                }
                let sigma = if unknown == 1 { 1.3 } else { 0.7 };
                let (rows, mut means): (Vec<usize>, Vec<f64>) = ((0..17).collect(), vec![0.0; 17]);
                dag.node_means(1, &[0, 2], &theta, &rows, &mut means);
                let error = |(x, mean): (&f64, &f64)| {
                    let z = (x - mean) / sigma;
                    -0.5 * z * z - f64::ln(sigma) - 0.5 * std::f64::consts::TAU.ln()
                };
                let expected: f64 = columns[1].iter().zip(&means).map(error).sum();
                let mut gradient = vec![0.0; dim];
                let prior = dag.add_prior(&theta, &mut gradient);
                let density = Blocks::log_density(&dag, 1, 0b101, &theta, &mut gradient).unwrap();
                assert!((density - prior - expected).abs() < 1e-9, "{sem:?} {noise:?}: {density} {prior} {expected}");
            }
        }
    }
}
