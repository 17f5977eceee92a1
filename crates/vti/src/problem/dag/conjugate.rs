//! The posterior of a node's parameters given its parents, of linear equations: its density, moments, and exact draws.
//!
//! Given σ_j the weights are normal. What is left is σ_j: known, or a density of one variable.

use super::Dag;
use super::bge::BgePosterior;
use super::linear::{Linear, Weights};
use super::sem::Likelihood;
use crate::graph::nodes_of;
use crate::problem::scales::ScaleSteps;
use crate::random::Stream;
use crate::triangular::{log_diagonal, multiply_transposed, solve, solve_transposed};

/// The posterior of the parameters of one node of a linear graph: σ where it is unknown, then a weight for each parent.
///
/// ```
/// use vti::problem::dag::{Dag, DagSettings, NodeData, Sem};
/// use vti::problem::{Blocks, Problem};
/// use vti::random::{Purpose, Stream};
/// let columns = vec![vec![0.3, -1.2, 0.8, 0.1], vec![0.5, -0.9, 1.1, -0.4]];
/// let data = NodeData::new(["a", "b"].map(String::from).to_vec(), columns);
/// let dag = Dag::new(data, DagSettings { sem: Sem::Linear {}, ..DagSettings::default() })?;
/// let posterior = dag.node_posterior(1, 0b01).expect("equations are linear");
/// let theta = posterior.draw(&mut Stream::new(1, Purpose::Other(0), 0, 0));
/// // Bayes' theorem: what the joint density has over the posterior is the evidence, wherever that is looked at.
/// let joint = dag.blocks().expect("nodes are blocks").log_density(1, 0b01, &theta, &mut vec![0.0; theta.len()])?;
/// let evidence = dag.log_evidence_estimate(1, 0b01);
/// assert!((joint - posterior.log_density(&theta) - evidence).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NodePosterior<'a>(Kind<'a>);

/// By the prior.
#[derive(Debug)]
enum Kind<'a> {
    Independent(Independent<'a>),
    /// None where rounding leaves a matrix without its decomposition; and the number of parameters.
    Bge(Option<BgePosterior>, usize),
}

impl NodePosterior<'_> {
    /// A draw of θ; parameters are not numbers where rounding leaves a matrix without its decomposition.
    pub fn draw(&self, stream: &mut Stream) -> Vec<f64> {
        match &self.0 {
            Kind::Independent(posterior) => posterior.draw(stream),
            Kind::Bge(Some(posterior), _) => posterior.draw(stream),
            Kind::Bge(None, dim) => vec![f64::NAN; *dim],
        }
    }

    /// `log p(θ_j | y, π_j)`; −∞ where σ is not positive, not a number where there are more or fewer parameters.
    pub fn log_density(&self, theta: &[f64]) -> f64 {
        match &self.0 {
            Kind::Independent(posterior) => posterior.log_density(theta),
            Kind::Bge(posterior, _) => posterior.as_ref().map_or(f64::NAN, |posterior| posterior.log_density(theta)),
        }
    }

    /// First and second moments of all parameters.
    pub fn moments(&self) -> Vec<[f64; 2]> {
        match &self.0 {
            Kind::Independent(posterior) => posterior.moments(),
            Kind::Bge(Some(posterior), _) => posterior.moments(),
            Kind::Bge(None, dim) => vec![[0.0; 2]; *dim],
        }
    }
}

/// Under independent priors of weights and noise.
#[derive(Debug)]
struct Independent<'a> {
    linear: &'a Linear,
    node: usize,
    parents: Vec<usize>,
    /// None where σ is known.
    scale: Option<ScaleSteps>,
}

impl Dag {
    /// The posterior of the parameters of a node given its parents, a set whose bit i stands for node i; none where equations are
    /// not linear, or where a node holds categories.
    pub fn node_posterior(&self, node: usize, parents: u64) -> Option<NodePosterior<'_>> {
        match &*self.likelihood {
            _ if !self.discrete.is_empty() => None,
            Likelihood::Linear(linear) => {
                let posterior = Independent::new(linear, node, nodes_of(parents).collect());
                Some(NodePosterior(Kind::Independent(posterior)))
            }
            Likelihood::Bge(bge) => {
                let dim = 1 + parents.count_ones() as usize;
                Some(NodePosterior(Kind::Bge(bge.posterior(node, parents), dim)))
            }
            Likelihood::Single(_) | Likelihood::Double(_) => None,
        }
    }
}

/// Mean and standard deviation of the prior of log σ.
const LOG_SCALE_PRIOR: (f64, f64) = (0.0, 1.0);

impl<'a> Independent<'a> {
    fn new(linear: &'a Linear, node: usize, parents: Vec<usize>) -> Self {
        let scale = linear.sigma.is_none().then(|| {
            ScaleSteps::new(linear.products.rows(node), LOG_SCALE_PRIOR, |log_sigma| {
                log_joint(linear, node, &parents, log_sigma)
            })
        });
        Self { linear, node, parents, scale }
    }

    fn given(&self, sigma: f64) -> Option<Weights> {
        self.linear.weights(self.node, &self.parents, sigma)
    }

    /// A draw of θ; weights are not numbers where rounding leaves a matrix without its decomposition.
    fn draw(&self, stream: &mut Stream) -> Vec<f64> {
        let (mut theta, sigma) = match (self.linear.sigma, &self.scale) {
            (None, Some(steps)) => {
                let density = |log_sigma| log_joint(self.linear, self.node, &self.parents, log_sigma);
                let sigma = steps.draw(density, stream).exp();
                (vec![sigma], sigma)
            }
            (sigma, _) => (Vec::new(), sigma.unwrap_or(f64::NAN)),
        };
        let Some(Weights { mean, factor, .. }) = self.given(sigma) else {
            theta.extend(self.parents.iter().map(|_| f64::NAN));
            return theta;
        };
        let mut off: Vec<f64> = mean.iter().map(|_| stream.normal()).collect();
        solve_transposed(&factor, &mut off);
        theta.extend(mean.iter().zip(off).map(|(mean, off)| mean + off));
        theta
    }

    /// `log p(θ_j | y, π_j)`; −∞ where σ is not positive, not a number where there are more or fewer parameters.
    fn log_density(&self, theta: &[f64]) -> f64 {
        let (sigma, weights, of_scale) = match (self.linear.sigma, &self.scale, theta) {
            (None, Some(_), [sigma, ..]) if *sigma <= 0.0 => return f64::NEG_INFINITY,
            (None, Some(steps), [sigma, weights @ ..]) => {
                let log_sigma = sigma.ln();
                let joint = log_joint(self.linear, self.node, &self.parents, log_sigma);
                // The density of σ, not of its logarithm.
                (*sigma, weights, joint - steps.log_total() - log_sigma)
            }
            (Some(sigma), _, weights) => (sigma, weights, 0.0),
            _ => return f64::NAN,
        };
        let dim = self.parents.len();
        let Some(Weights { mean, factor, .. }) = self.given(sigma).filter(|_| weights.len() == dim) else {
            return f64::NAN;
        };
        let mut off: Vec<f64> = weights.iter().zip(&mean).map(|(weight, mean)| weight - mean).collect();
        multiply_transposed(&factor, &mut off);
        let squares: f64 = off.iter().map(|x| x * x).sum();
        of_scale + log_diagonal(&factor, dim) - 0.5 * (squares + dim as f64 * std::f64::consts::TAU.ln())
    }

    /// First and second moments of all parameters.
    fn moments(&self) -> Vec<[f64; 2]> {
        let unknown = usize::from(self.scale.is_some());
        let mut found = vec![[0.0; 2]; unknown + self.parents.len()];
        let scales = match (self.linear.sigma, &self.scale) {
            (None, Some(steps)) => steps.weights().filter(|(_, share)| *share > 1e-12).collect(),
            (sigma, _) => vec![(sigma.unwrap_or(f64::NAN), 1.0)],
        };
        for (sigma, share) in scales {
            let Some(Weights { mean, factor, .. }) = self.given(sigma) else { continue };
            let mut put = |place: usize, mean: f64, variance: f64| {
                found[place][0] += share * mean;
                found[place][1] += share * (mean * mean + variance);
            };
            if unknown == 1 {
                put(0, sigma, 0.0);
            }
            for (place, mean) in mean.iter().enumerate() {
                // A variance is the squared length of a column of C⁻¹.
                let mut column = vec![0.0; self.parents.len()];
                column[place] = 1.0;
                solve(&factor, &mut column);
                put(unknown + place, *mean, column.iter().map(|x| x * x).sum());
            }
        }
        found
    }
}

/// `log p(x_j | σ, π_j) p(log σ)`; −∞ where σ is so small that rounding leaves a matrix without its decomposition.
fn log_joint(linear: &Linear, node: usize, parents: &[usize], log_sigma: f64) -> f64 {
    let given = linear.weights(node, parents, log_sigma.exp()).map_or(f64::NEG_INFINITY, |found| found.log_evidence);
    let (center, sd) = LOG_SCALE_PRIOR;
    let off = (log_sigma - center) / sd;
    given - 0.5 * (off * off + std::f64::consts::TAU.ln()) - sd.ln()
}
