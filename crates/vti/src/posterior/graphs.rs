//! The posterior of linear graphs that nobody needs to learn: evidences of nodes in closed form, sums over all graphs.

use std::collections::HashMap;

use super::{Draws, Point, active_parameters};
use crate::models::{BlockProbabilities, BlockScores};
use crate::problem::dag::{Dag, Enumeration, ExactError, NodePosterior};
use crate::problem::{BlockModels, Blocks, KeyScores, ModelSums, Problem};
use crate::random::{Purpose, Stream};
use crate::space::{Model, ModelSpace};
use crate::workers::Workers;

/// The posterior of all graphs and their parameters, where equations are linear and all sets of parents can be looked at: the
/// same questions as to a [`Posterior`](super::Posterior), and exact answers.
pub struct GraphPosterior<'a> {
    dag: &'a Dag,
    /// Scores of all sets of parents: log evidences with their part of the prior.
    scores: BlockScores,
    sums: Box<dyn ModelSums>,
    probabilities: BlockProbabilities,
    /// What `log p(m)` has beyond the parts of nodes.
    log_constant: f64,
    seed: u64,
}

impl std::fmt::Debug for GraphPosterior<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphPosterior").field("probabilities", &self.probabilities).finish_non_exhaustive()
    }
}

/// The most sets of parents that a node may have.
const MAX_SETS: usize = 1 << 14;

/// A node under a set of parents.
type NodeKey = (usize, u64);

impl<'a> GraphPosterior<'a> {
    /// Whether evidences are in closed form and sums over graphs affordable; why not, if not.
    pub fn affordable(dag: &Dag) -> Result<(), ExactError> {
        Enumeration::check_numbers(dag)?;
        if !dag.has_exact_evidences() {
            return Err(ExactError::NotLinear);
        }
        let nodes = dag.space().nodes();
        let models = Blocks::models(dag).ok_or(ExactError::TooManyGraphs { nodes })?;
        match (0..nodes).all(|node| models.all_keys(node, MAX_SETS).is_some()) {
            true => Ok(()),
            false => Err(ExactError::TooManyGraphs { nodes }),
        }
    }

    /// Finds the evidences of all nodes and sets of parents, and sums over all graphs.
    pub fn new(dag: &'a Dag, workers: &Workers, seed: u64) -> Result<Self, ExactError> {
        Self::affordable(dag)?;
        let nodes = dag.space().nodes();
        let models = Blocks::models(dag).ok_or(ExactError::TooManyGraphs { nodes })?;
        let mut scores = BlockScores::default();
        for node in 0..nodes {
            let keys = models.all_keys(node, MAX_SETS).ok_or(ExactError::TooManyGraphs { nodes })?;
            let log_prior: Vec<f64> = keys.iter().map(|&key| models.log_prior(node, key)).collect();
            let mut found = log_prior.clone();
            workers.for_each(&mut found, |place, score| {
                let log_evidence = dag.log_evidence_estimate(node, keys[place]);
                // What rounding leaves without an evidence is no set of parents.
                *score += if log_evidence.is_nan() { f64::NEG_INFINITY } else { log_evidence };
            });
            let mut own = KeyScores { keys, scores: found, log_prior, ranked: Vec::new() };
            own.rank();
            scores.blocks.push(own);
        }
        let probabilities = scores.probabilities(models, dag.space().feature_count(), workers);
        let mut sums = models.sums();
        sums.update(&scores.blocks, workers);
        let mut posterior = Self { dag, scores, sums, probabilities, log_constant: 0.0, seed };
        posterior.log_constant = posterior.constant();
        Ok(posterior)
    }

    /// From any word.
    fn constant(&self) -> f64 {
        let (_, word) = self.draw_word(0, 0);
        let keys = self.keys(&word);
        let of_nodes: f64 =
            keys.iter().enumerate().map(|(node, &key)| BlockModels::log_prior(self.dag, node, key)).sum();
        let shared = if self.dag.words_share() { self.dag.log_words(&keys) } else { 0.0 };
        Problem::log_prior(self.dag, &word) + shared - of_nodes
    }

    /// The problem.
    pub fn dag(&self) -> &'a Dag {
        self.dag
    }

    /// Seed of its draws.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// `log p(y)`, over all graphs.
    pub fn log_evidence(&self) -> f64 {
        self.sums.log_total() + self.log_constant
    }

    /// Posterior probabilities of all edges, in the order of the space's features.
    pub fn edges(&self) -> &[f64] {
        &self.probabilities.features
    }

    /// Parameters that a model uses, as places among their names.
    pub fn active_parameters(&self, model: &[u16]) -> Vec<usize> {
        active_parameters(self.dag, model)
    }

    fn keys(&self, word: &[u16]) -> Vec<u64> {
        let mut keys = vec![0; self.scores.blocks.len()];
        Blocks::keys(self.dag, word, &mut keys);
        keys
    }

    /// `Σ_j` of the scores of a word's sets of parents, less the total.
    fn log_share(&self, keys: &[u64]) -> f64 {
        let score =
            |(own, &key): (&KeyScores, &u64)| own.place(key).map_or(f64::NEG_INFINITY, |place| own.scores[place]);
        self.scores.blocks.iter().zip(keys).map(score).sum::<f64>() - self.sums.log_total()
    }

    /// `log p(m | y)` of a word.
    fn log_word(&self, keys: &[u64]) -> f64 {
        self.log_share(keys) - if self.dag.words_share() { self.dag.log_words(keys) } else { 0.0 }
    }

    /// The posterior probability of the graph that a word means, and its log evidence.
    pub fn graph(&self, word: &[u16]) -> (f64, f64) {
        let keys = self.keys(word);
        let log_probability =
            self.log_share(&keys) + if self.dag.words_share() { 0.0 } else { self.dag.log_words(&keys) };
        let evidence =
            |(own, &key): (&KeyScores, &u64)| own.place(key).map_or(f64::NAN, |at| own.scores[at] - own.log_prior[at]);
        (log_probability.exp(), self.scores.blocks.iter().zip(&keys).map(evidence).sum())
    }

    /// First and second moments of all parameters over all graphs, in their order; a parameter counts as 0 where a graph does not
    /// have it.
    pub fn moments(&self, workers: &Workers) -> Vec<[f64; 2]> {
        /// Sets of parents that are less probable change no digit that anybody reads.
        const NEGLIGIBLE: f64 = 1e-12;
        let width = self.dag.width();
        let mut found = vec![vec![[0.0; 2]; width]; self.scores.blocks.len()];
        workers.for_each(&mut found, |node, found| {
            let own = self.scores.blocks[node].keys.iter().zip(&self.probabilities.blocks[node]);
            for (&key, &probability) in own.filter(|(_, probability)| **probability > NEGLIGIBLE) {
                let Some(posterior) = self.dag.node_posterior(node, key) else { continue };
                let mut active = vec![false; width];
                Blocks::mark_active(self.dag, node, key, &mut active);
                let places = (0..width).filter(|&place| active[place]);
                for (place, [first, second]) in places.zip(posterior.moments()) {
                    found[place][0] += probability * first;
                    found[place][1] += probability * second;
                }
            }
        });
        found.concat()
    }

    /// The stream of a draw, and its word.
    fn draw_word(&self, batch: u32, row: usize) -> (Stream, Vec<u16>) {
        let mut stream = Stream::new(self.seed, Purpose::Evaluation, u64::from(batch), row as u64);
        let mut word = vec![0; self.dag.space().arities().len()];
        self.sums.draw(&self.scores.blocks, &mut stream, &mut word);
        (stream, word)
    }

    /// `count` independent draws; the same `batch` gives the same draws again, on any number of threads. What stands in the
    /// place of q is the posterior itself.
    pub fn draw(&self, count: usize, batch: u32, workers: &Workers) -> Draws {
        let mut rows: Vec<Row> = (0..count).map(|_| Row::default()).collect();
        workers.for_each(&mut rows, |number, row| {
            let (stream, word) = self.draw_word(batch, number);
            *row = Row { keys: self.keys(&word), stream: Some(stream), word, ..Row::default() };
        });
        // What is known of a node under a set of parents serves all draws of it.
        let mut known: Vec<NodeKey> = rows.iter().flat_map(|row| row.keys.iter().copied().enumerate()).collect();
        known.sort_unstable();
        known.dedup();
        let mut posteriors: Vec<Option<NodePosterior<'_>>> = known.iter().map(|_| None).collect();
        workers.for_each(&mut posteriors, |place, posterior| {
            let (node, parents) = known[place];
            *posterior = self.dag.node_posterior(node, parents);
        });
        let posteriors: HashMap<NodeKey, NodePosterior<'_>> =
            known.into_iter().zip(posteriors).filter_map(|(key, posterior)| Some((key, posterior?))).collect();
        workers.for_each(&mut rows, |_, row| self.fill(row, &posteriors));
        self.gather(&rows)
    }

    /// Draws the parameters of all nodes.
    fn fill(&self, row: &mut Row, posteriors: &HashMap<NodeKey, NodePosterior<'_>>) {
        let Some(stream) = &mut row.stream else { return };
        row.log_q_model = self.log_word(&row.keys);
        row.log_q = row.log_q_model;
        for (node, &parents) in row.keys.iter().enumerate() {
            let Some(posterior) = posteriors.get(&(node, parents)) else { continue };
            let theta = posterior.draw(stream);
            row.log_q += posterior.log_density(&theta);
            row.theta.extend(theta);
        }
        let log_joint = Problem::log_density(self.dag, &row.word, &row.theta, &mut vec![0.0; row.theta.len()]);
        row.log_target = Problem::log_prior(self.dag, &row.word) + log_joint.unwrap_or(f64::NAN);
    }

    fn gather(&self, rows: &[Row]) -> Draws {
        let (count, width, stride) = (rows.len(), self.dag.space().arities().len(), self.dag.space().max_dim());
        let mut draws = Draws {
            width,
            stride,
            theta: vec![f64::NAN; count * stride],
            log_arrangement: vec![0.0; count],
            ..Draws::default()
        };
        for (number, row) in rows.iter().enumerate() {
            draws.words.extend_from_slice(&row.word);
            draws.dims.push(row.theta.len());
            draws.theta[number * stride..][..row.theta.len()].copy_from_slice(&row.theta);
            draws.log_q_model.push(row.log_q_model);
            draws.log_q.push(row.log_q);
            draws.log_target.push(row.log_target);
        }
        draws
    }

    /// `log p(m, θ | y)` at a point; −∞ for parameters outside their support, not a number for what is no word, and where there
    /// are more or fewer parameters than the model has.
    pub fn log_prob(&self, point: &Point) -> f64 {
        if !self.dag.space().is_allowed(&point.model) {
            return f64::NAN;
        }
        let (keys, mut rest) = (self.keys(&point.model), &point.theta[..]);
        let mut log_q = self.log_word(&keys);
        let mut active = vec![false; self.dag.width()];
        for (node, &parents) in keys.iter().enumerate() {
            Blocks::mark_active(self.dag, node, parents, &mut active);
            let dim = active.iter().filter(|active| **active).count();
            let (Some(posterior), Some((own, others))) =
                (self.dag.node_posterior(node, parents), rest.split_at_checked(dim))
            else {
                return f64::NAN;
            };
            log_q += posterior.log_density(own);
            rest = others;
        }
        if rest.is_empty() { log_q } else { f64::NAN }
    }

    /// The canonical word of each draw's graph.
    pub fn canonical(&self, word: &[u16]) -> Model {
        let mut canonical = word.to_vec();
        self.dag.space().canonical(&mut canonical);
        canonical.into()
    }
}

/// A draw.
#[derive(Default)]
struct Row {
    stream: Option<Stream>,
    word: Vec<u16>,
    keys: Vec<u64>,
    theta: Vec<f64>,
    log_q_model: f64,
    log_q: f64,
    log_target: f64,
}
