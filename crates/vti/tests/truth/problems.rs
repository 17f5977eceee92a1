//! Problems with known answers.

#[macro_use]
#[path = "../support/wrapped_dag.rs"]
mod wrapped_dag;

use std::f64::consts::TAU;

use vti::problem::dag::{Dag, DagSettings, NodeData, Noise, Rules, Sem};
use vti::problem::{BlockModels, Blocks, DensityError, ModelSums, Problem};
use vti::random::{Purpose, Stream};
use vti::space::{Catalogue, ModelSpace};

/// A problem whose evidences are known.
pub(crate) trait Known: Problem {
    fn catalogue(&self) -> &Catalogue;

    /// `log p(y | m)`.
    fn log_evidence(&self, model: &[u16]) -> f64;

    /// `log p(m) p(y | m)` of all words, by number.
    fn log_joint(&self) -> Vec<f64> {
        let of = |word: &[u16]| self.log_prior(word) + self.log_evidence(word);
        self.catalogue().words().chunks_exact(self.space().arities().len()).map(of).collect()
    }

    /// Posterior probabilities of all models, by the number of the word that represents each; 0 for other words.
    fn probabilities(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.catalogue().len()];
        for (index, probability) in normalise(&self.log_joint()).into_iter().enumerate() {
            let mut word = self.catalogue().model(index).unwrap().to_vec();
            self.space().canonical(&mut word);
            sums[self.catalogue().index(&word).unwrap()] += probability;
        }
        sums
    }

    /// log p(y).
    fn log_total_evidence(&self) -> f64 {
        let logs = self.log_joint();
        log_mean_exp(&logs) + (logs.len() as f64).ln()
    }
}

/// An autoregression of order 1 with correlation ρ from one parameter to the next, with means that depend on the number of
/// things in the model: its log density and, added to it, the gradient.
fn autoregression(rho: f64, things: f64, theta: &[f64], gradient: &mut [f64]) -> f64 {
    let mean = |i: usize| (1.3 * i as f64 + 0.4 * things).sin() * 1.5;
    let scale = |i: usize| 0.5 + 0.4 * (0.7 * i as f64).cos();
    let noise = (1.0 - rho * rho).sqrt();
    let mut log_density = 0.0;
    gradient.fill(0.0);
    let standard = |i: usize| (theta[i] - mean(i)) / scale(i);
    for i in 0..theta.len() {
        let (center, sd) = if i == 0 { (0.0, 1.0) } else { (rho * standard(i - 1), noise) };
        let e = (standard(i) - center) / sd;
        log_density -= 0.5 * e * e + (sd * scale(i)).ln() + 0.5 * TAU.ln();
        gradient[i] -= e / (sd * scale(i));
        if i > 0 {
            gradient[i - 1] += rho * e / (sd * scale(i - 1));
        }
    }
    log_density
}

/// A union of correlated Gaussians: given a model, its parameters follow an autoregression of order 1 with correlation ρ
/// from one active coordinate to the next, with means that depend on the model; the evidences are given.
pub(crate) struct Gaussians<S> {
    space: S,
    catalogue: Catalogue,
    log_evidence: Vec<f64>,
    correlation: f64,
}

impl<S: ModelSpace> Gaussians<S> {
    /// Log evidences are random sums over symbols and pairs of symbols, as those of regressions nearly are, and a little
    /// noise.
    pub(crate) fn new(space: S, correlation: f64, spread: f64, seed: u64) -> Self {
        let catalogue = Catalogue::new(&space, 1 << 20).unwrap();
        let draw = |kind: u64, place: u64| Stream::new(seed, Purpose::Other(7), kind, place).normal();
        let log_evidence = |index: usize| {
            let word = catalogue.model(index).unwrap();
            let term = |i: usize, j: usize| {
                let place = ((i * 64 + j) as u64) << 32 | u64::from(word[i]) << 16 | u64::from(word[j]);
                draw(if i == j { 0 } else { 1 }, place) * if i == j { 1.0 } else { 0.3 }
            };
            let pairs = (0..word.len()).flat_map(|i| (0..=i).map(move |j| (i, j)));
            spread * (pairs.map(|(i, j)| term(i, j)).sum::<f64>() + 0.1 * draw(2, index as u64))
        };
        let log_evidence = (0..catalogue.len()).map(log_evidence).collect();
        Self { space, log_evidence, catalogue, correlation }
    }
}

impl<S: ModelSpace> Known for Gaussians<S> {
    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn log_evidence(&self, model: &[u16]) -> f64 {
        self.log_evidence[self.catalogue.index(model).unwrap()]
    }
}

impl<S: ModelSpace> Problem for Gaussians<S> {
    fn space(&self) -> &dyn ModelSpace {
        &self.space
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        let ones = model.iter().filter(|&&symbol| symbol > 0).count() as f64;
        Ok(self.log_evidence(model) + autoregression(self.correlation, ones, theta, gradient))
    }
}

/// Graphs with a density for each node: given its parents, a node's parameters follow an autoregression of their own, and its
/// evidence is a random number. Everything else is that of linear equations.
pub(crate) struct GaussianGraphs {
    dag: Dag,
    catalogue: Catalogue,
    log_prior: fn(usize, u64) -> f64,
    /// What the sum of priors over nodes must be reduced by.
    log_normaliser: f64,
    correlation: f64,
    seed: u64,
}

impl GaussianGraphs {
    /// With a prior of each node and its parents, up to a constant.
    pub(crate) fn new(
        nodes: usize,
        rules: Rules,
        correlation: f64,
        seed: u64,
        log_prior: fn(usize, u64) -> f64,
    ) -> Self {
        let columns = (0..nodes).map(|node| vec![1.0, node as f64]).collect();
        let data = NodeData::new((1..=nodes).map(|node| format!("x{node}")).collect(), columns);
        let noise = Noise::Known { sigma: 1.0 };
        let settings = DagSettings { sem: Sem::Linear {}, noise, rules, ..DagSettings::default() };
        let dag = Dag::new(data, settings).unwrap();
        let catalogue = Catalogue::new(dag.space(), 1 << 20).unwrap();
        let mut graphs = Self { dag, catalogue, log_prior, log_normaliser: 0.0, correlation, seed };
        let words = graphs.catalogue.words();
        let logs: Vec<f64> = words
            .chunks_exact(graphs.dag.space().arities().len())
            .map(|word| Problem::log_prior(&graphs, word))
            .collect();
        graphs.log_normaliser = log_mean_exp(&logs) + (logs.len() as f64).ln();
        graphs
    }

    fn parents(&self, model: &[u16]) -> Vec<u64> {
        let mut parents = vec![0; self.dag.space().nodes()];
        self.dag.space().parents(model, &mut parents);
        parents
    }

    fn node_evidence(&self, node: usize, parents: u64) -> f64 {
        Stream::new(self.seed, Purpose::Other(8), node as u64, parents).normal()
    }
}

impl Known for GaussianGraphs {
    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn log_evidence(&self, model: &[u16]) -> f64 {
        self.parents(model).into_iter().enumerate().map(|(node, parents)| self.node_evidence(node, parents)).sum()
    }
}

impl Problem for GaussianGraphs {
    fn space(&self) -> &dyn ModelSpace {
        self.dag.space()
    }

    fn log_density(&self, model: &[u16], theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        let (mut start, mut sum) = (0, 0.0);
        for (node, parents) in self.parents(model).into_iter().enumerate() {
            let here = start..start + parents.count_ones() as usize;
            start = here.end;
            sum += Blocks::log_density(self, node, parents, &theta[here.clone()], &mut gradient[here])?;
        }
        Ok(sum)
    }

    fn log_prior(&self, model: &[u16]) -> f64 {
        let parents = self.parents(model).into_iter().enumerate();
        parents.map(|(node, parents)| (self.log_prior)(node, parents)).sum::<f64>() - self.log_normaliser
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        Some(self)
    }
}

impl Blocks for GaussianGraphs {
    blocks_of_dag!();

    fn log_density(&self, node: usize, parents: u64, theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        let things = node as f64 + 2.0 * f64::from(parents.count_ones());
        Ok(self.node_evidence(node, parents) + autoregression(self.correlation, things, theta, gradient))
    }

    fn models(&self) -> Option<&dyn BlockModels> {
        Some(self)
    }
}

impl BlockModels for GaussianGraphs {
    fn log_prior(&self, node: usize, parents: u64) -> f64 {
        (self.log_prior)(node, parents)
    }

    block_models_of_dag!();
}

/// Probabilities proportional to exponentials.
pub(crate) fn normalise(logs: &[f64]) -> Vec<f64> {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|l| (l - top).exp()).sum();
    logs.iter().map(|l| (l - top).exp() / total).collect()
}

pub(crate) fn log_mean_exp(logs: &[f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + (logs.iter().map(|l| (l - top).exp()).sum::<f64>() / logs.len() as f64).ln()
}
