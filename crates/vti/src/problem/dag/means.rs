//! What structural equations say about single rows.

use super::Dag;
use super::discrete::response;
use super::equations::Equations;
use super::sem::Likelihood;

impl Dag {
    /// Means of a node of numbers in some rows of the table, given its parents, ascending, and its parameters as
    /// [`Blocks::log_density`](crate::problem::Blocks::log_density) has them. Rows, parents or parameters that do not exist count
    /// as 0.
    ///
    /// ```
    /// use vti::problem::dag::{Dag, DagSettings, NodeData, Sem};
    /// let table = NodeData::new(vec!["a".into(), "b".into()], vec![vec![1.0, 2.0], vec![0.0, 0.0]]);
    /// let dag = Dag::new(table, DagSettings { sem: Sem::Linear {}, ..DagSettings::default() })?;
    /// let mut means = [f64::NAN];
    /// dag.node_means(1, &[0], &[0.5, 3.0], &[1], &mut means);
    /// assert_eq!(means, [6.0]);
    /// # Ok::<(), vti::problem::dag::DagError>(())
    /// ```
    pub fn node_means(&self, node: usize, parents: &[usize], theta: &[f64], rows: &[usize], to: &mut [f64]) {
        to.fill(self.intercept(node, parents, theta));
        self.add_predictors(node, parents, theta, rows, to);
    }

    /// Logarithms of the probabilities of all categories of a node, row after row, otherwise as [`Dag::node_means`]. Not numbers for
    /// a node of numbers.
    pub fn category_log_probabilities(
        &self,
        node: usize,
        parents: &[usize],
        theta: &[f64],
        rows: &[usize],
    ) -> Vec<f64> {
        let Some(response) = response(self.table(), node) else { return vec![f64::NAN; rows.len()] };
        let mut own = theta.to_vec();
        own.resize(own.len().max(response.own()), 0.0);
        let mut predictors = vec![0.0; rows.len() * response.predictors()];
        self.add_predictors(node, parents, theta, rows, &mut predictors);
        let mut found = vec![f64::NAN; rows.len() * response.categories];
        for (row, to) in found.chunks_exact_mut(response.categories).enumerate() {
            let here: Vec<f64> = predictors.iter().skip(row).step_by(rows.len()).copied().collect();
            response.log_probabilities(&own[..response.own()], &here, to);
        }
        found
    }

    /// Adds f of a node in some rows, one output after another.
    fn add_predictors(&self, node: usize, parents: &[usize], theta: &[f64], rows: &[usize], to: &mut [f64]) {
        let own = self.space.parameters(node).always;
        let outputs = response(self.table(), node).map_or(1, |response| response.predictors());
        let equations = Equations::new(self.settings.sem, own, outputs);
        let columns = &self.inputs.table(self.table()).columns;
        let known = parents.iter().flat_map(|&parent| self.inputs.columns(parent));
        let value = |column: usize, row: usize| columns[column].get(row).copied().unwrap_or(0.0);
        let inputs: Vec<Vec<f64>> = known.map(|column| rows.iter().map(|&row| value(column, row)).collect()).collect();
        let inputs: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
        let mut theta = theta.to_vec();
        theta.resize(theta.len().max(equations.dim(inputs.len())), 0.0);
        equations.predictors(&theta, &inputs, &mut Vec::new(), to);
    }

    /// What a node has without any parent: 0, but for the intercept that BGe integrates out, of which this is the mean.
    fn intercept(&self, node: usize, parents: &[usize], theta: &[f64]) -> f64 {
        match &*self.likelihood {
            Likelihood::Bge(bge) => bge.intercept(node, parents, theta.get(1..).unwrap_or_default()),
            Likelihood::Linear(_) | Likelihood::Single(_) | Likelihood::Double(_) => 0.0,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::problem::Blocks;
    use crate::problem::dag::{DagSettings, NodeData, Noise, Sem};
    use crate::random::{Purpose, Stream};

    #[test]
    fn normal_errors_around_means_are_the_likelihood() {
        let mut stream = Stream::new(4, Purpose::Other(0), 0, 0);
        let columns: Vec<Vec<f64>> = (0..3).map(|_| (0..17).map(|_| stream.normal()).collect()).collect();
        let names = ["a", "b", "c"].map(String::from).to_vec();
        for sem in [Sem::Linear {}, Sem::Mlp { hidden: 3, bias: false }, Sem::Mlp { hidden: 3, bias: true }] {
            for noise in [Noise::Unknown {}, Noise::Known { sigma: 0.7 }] {
                let table = NodeData::new(names.clone(), columns.clone());
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
                let prior = dag.add_prior(1, &theta, &mut gradient);
                let density = Blocks::log_density(&dag, 1, 0b101, &theta, &mut gradient).unwrap();
                assert!((density - prior - expected).abs() < 1e-9, "{sem:?} {noise:?}: {density} {prior} {expected}");
            }
        }
    }
}
