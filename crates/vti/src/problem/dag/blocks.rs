//! Nodes as blocks, sets of parents as their keys.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::sem::Likelihood;
use super::{Dag, GraphPrior};
use crate::graph::nodes_of;
use crate::graph::sums::{GraphSums, RankedSets, SetScores, SumOver, log_orders};
use crate::problem::{
    BatchError, BlockModels, BlockParticles, Blocks, DensityError, KeyScores, ModelSums, Preconditioner,
};
use crate::random::Stream;
use crate::space::{Dags, EdgeRules};
use crate::state::{State, StateError};
use crate::workers::Workers;

/// Where findings about nodes of categories are kept.
const CATEGORIES: &str = "categories";

/// A block for each node, its parents being the key.
impl Blocks for Dag {
    fn count(&self) -> usize {
        self.space.nodes()
    }

    fn width(&self) -> usize {
        self.space.node_width()
    }

    fn keys(&self, word: &[u16], keys: &mut [u64]) {
        self.space.parents(word, keys);
    }

    fn mark_active(&self, node: usize, parents: u64, active: &mut [bool]) {
        self.space.mark_node(node, parents, active);
    }

    fn feature_count(&self) -> usize {
        self.space.node_feature_count()
    }

    fn features(&self, node: usize, parents: u64, to: &mut [f64]) {
        self.space.node_features(node, parents, to);
    }

    fn log_density(&self, node: usize, parents: u64, theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError> {
        let (column, inputs) = self.inputs.places(node, parents);
        let mut value = [f64::NAN];
        match &*self.likelihood {
            _ if self.discrete.has(node) => value[0] = self.discrete.log_likelihood(node, inputs, theta, gradient),
            Likelihood::Linear(linear) => value[0] = linear.log_likelihood(column, inputs, theta, gradient),
            Likelihood::Bge(bge) => value[0] = bge.log_likelihood(column, inputs, theta, gradient),
            Likelihood::Single(mlp) => mlp.log_likelihoods(column, inputs, theta, &mut value, gradient),
            Likelihood::Double(mlp) => mlp.log_likelihoods(column, inputs, theta, &mut value, gradient),
        }
        Ok(value[0] + self.add_prior(node, theta, gradient))
    }

    fn log_arrangement(&self, node: usize, parents: u64, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let (column, inputs) = self.inputs.places(node, parents);
        match &*self.likelihood {
            _ if self.discrete.has(node) => self.discrete.log_arrangement(node, inputs, theta, gradient),
            Likelihood::Linear(_) | Likelihood::Bge(_) => 0.0,
            Likelihood::Single(mlp) => mlp.log_arrangement(column, inputs, theta, gradient),
            Likelihood::Double(mlp) => mlp.log_arrangement(column, inputs, theta, gradient),
        }
    }

    fn preconditioner(&self, node: usize, parents: u64) -> Option<Preconditioner> {
        let (column, inputs) = self.inputs.places(node, parents);
        match &*self.likelihood {
            _ if self.discrete.has(node) => self.discrete.preconditioner(node, inputs),
            Likelihood::Linear(linear) => linear.preconditioner(column, inputs),
            Likelihood::Bge(bge) => bge.preconditioner(column, inputs),
            Likelihood::Single(mlp) => mlp.preconditioner(column, inputs),
            Likelihood::Double(mlp) => mlp.preconditioner(column, inputs),
        }
    }

    fn work(&self, node: usize, parents: u64) -> f64 {
        let (column, inputs) = self.inputs.places(node, parents);
        match &*self.likelihood {
            _ if self.discrete.has(node) => self.discrete.work(node, inputs),
            Likelihood::Linear(_) | Likelihood::Bge(_) => 1.0,
            Likelihood::Single(mlp) => mlp.work(column, inputs),
            Likelihood::Double(mlp) => mlp.work(column, inputs),
        }
    }

    /// Of linear equations the evidence itself; of non-linear ones a lower bound.
    fn log_evidence_estimate(&self, node: usize, parents: u64) -> f64 {
        let (column, inputs) = self.inputs.places(node, parents);
        match &*self.likelihood {
            _ if self.discrete.has(node) => self.discrete.log_evidence_estimate(node, inputs),
            Likelihood::Linear(linear) => linear.log_evidence(column, inputs),
            Likelihood::Bge(bge) => bge.log_evidence(column, inputs),
            Likelihood::Single(mlp) => mlp.log_evidence_estimate(column, inputs),
            Likelihood::Double(mlp) => mlp.log_evidence_estimate(column, inputs),
        }
    }

    fn heed(&self, stop: Arc<AtomicBool>) {
        self.discrete.heed(Arc::clone(&stop));
        match &*self.likelihood {
            Likelihood::Linear(_) | Likelihood::Bge(_) => {}
            Likelihood::Single(mlp) => mlp.heed(stop),
            Likelihood::Double(mlp) => mlp.heed(stop),
        }
    }

    fn findings(&self) -> State {
        let mut findings = match &*self.likelihood {
            Likelihood::Linear(_) | Likelihood::Bge(_) => State::default(),
            Likelihood::Single(mlp) => mlp.findings(),
            Likelihood::Double(mlp) => mlp.findings(),
        };
        if !self.discrete.is_empty() {
            findings.put_state(CATEGORIES, self.discrete.findings());
        }
        findings
    }

    fn restore_findings(&self, findings: &mut State) -> Result<(), StateError> {
        let mut of_categories = findings.take_state(CATEGORIES);
        if !of_categories.arrays().is_empty() {
            self.discrete.restore_findings(&mut of_categories, self.inputs.count())?;
            if findings.arrays().is_empty() {
                return Ok(());
            }
        }
        match &*self.likelihood {
            Likelihood::Linear(_) | Likelihood::Bge(_) => Ok(()),
            Likelihood::Single(mlp) => mlp.restore_findings(findings),
            Likelihood::Double(mlp) => mlp.restore_findings(findings),
        }
    }

    fn has_exact_evidences(&self) -> bool {
        self.discrete.is_empty() && matches!(&*self.likelihood, Likelihood::Linear(_) | Likelihood::Bge(_))
    }

    fn log_likelihood_batch(
        &self,
        particles: &mut [BlockParticles<'_>],
        workers: &Workers,
    ) -> Result<bool, BatchError> {
        // Under BGe weights depend on σ beforehand: their evidences are known without any particles.
        if matches!(&*self.likelihood, Likelihood::Bge(_)) {
            return Ok(false);
        }
        workers.for_each(particles, |_, particles| self.log_likelihoods(particles));
        Ok(true)
    }

    fn models(&self) -> Option<&dyn BlockModels> {
        (2..=self.sum_over().max_nodes()).contains(&self.space.nodes()).then_some(self)
    }
}

impl Dag {
    /// Weights are s z, and log σ is z. All arrangements of hidden units at once: none of them is special seen from the prior.
    fn log_likelihoods(&self, particles: &mut BlockParticles<'_>) {
        let BlockParticles { block: node, key: parents, z, values, gradients } = particles;
        let (node, scale) = (*node, self.settings.weight_scale);
        let dim = z.len() / values.len().max(1);
        let (column, inputs) = self.inputs.places(node, *parents);
        if self.discrete.has(node) {
            for (row, value) in values.iter_mut().enumerate() {
                let place = row * dim..(row + 1) * dim;
                let gradient = &mut gradients[place.clone()];
                *value = self.discrete.log_likelihood_of_normal(node, inputs, &z[place], gradient);
            }
            return;
        }
        let unknown = self.space.parameters(node).always;
        let is_sigma = |place: usize| place % dim < unknown;
        let natural = |(place, &z): (usize, &f64)| if is_sigma(place) { z.exp() } else { scale * z };
        let theta: Vec<f64> = z.iter().enumerate().map(natural).collect();
        match &*self.likelihood {
            Likelihood::Linear(linear) => {
                for (row, value) in values.iter_mut().enumerate() {
                    let place = row * dim..(row + 1) * dim;
                    *value = linear.log_likelihood(column, inputs, &theta[place.clone()], &mut gradients[place]);
                }
            }
            Likelihood::Bge(_) => values.fill(f64::NAN),
            Likelihood::Single(mlp) => mlp.log_likelihoods(column, inputs, &theta, values, gradients),
            Likelihood::Double(mlp) => mlp.log_likelihoods(column, inputs, &theta, values, gradients),
        }
        for (place, (gradient, theta)) in gradients.iter_mut().zip(&theta).enumerate() {
            *gradient *= if is_sigma(place) { *theta } else { scale };
        }
    }

    /// What the prior is a distribution of.
    fn sum_over(&self) -> SumOver {
        match self.settings.prior {
            GraphPrior::Orders => SumOver::Orders,
            GraphPrior::Graphs => SumOver::Graphs,
        }
    }

    fn rules(&self) -> &EdgeRules {
        self.prior.rules()
    }

    /// Probabilities of all edges, n × n row by row with `[i · n + j]` that of i → j, from those of the space's features.
    pub fn edge_matrix(&self, features: &[f64]) -> Vec<f64> {
        let nodes = self.space.nodes();
        let edge = |place: usize| match (place / nodes, place % nodes) {
            (from, to) if from == to => 0.0,
            (from, to) => features[self.space.edge_feature(from, to)],
        };
        (0..nodes * nodes).map(edge).collect()
    }
}

/// Graphs as combinations of sets of parents.
impl BlockModels for Dag {
    fn log_prior(&self, _: usize, parents: u64) -> f64 {
        -self.settings.edge_penalty * f64::from(parents.count_ones())
    }

    fn all_keys(&self, node: usize, max: usize) -> Option<Vec<u64>> {
        let rules = self.rules();
        let optional = rules.optional(node);
        1usize.checked_shl(optional.count_ones()).filter(|&count| count <= max)?;
        let (mut sets, mut part) = (Vec::new(), 0u64);
        loop {
            sets.push(rules.required(node) | part);
            // The next larger subset of the optional parents.
            part = part.wrapping_sub(optional) & optional;
            if part == 0 {
                break;
            }
        }
        sets.retain(|&set| rules.allows(node, set));
        Some(sets)
    }

    fn has_key(&self, node: usize, parents: u64) -> bool {
        let rules = self.rules();
        let outside = parents & !(rules.required(node) | rules.optional(node));
        outside | (rules.required(node) & !parents) == 0 && rules.allows(node, parents)
    }

    fn smallest_key(&self, node: usize) -> u64 {
        self.rules().required(node)
    }

    fn larger_keys(&self, node: usize, parents: u64) -> Vec<u64> {
        let rules = self.rules();
        let larger = nodes_of(rules.optional(node) & !parents).map(|parent| parents | 1 << parent);
        larger.filter(|&set| rules.allows(node, set)).collect()
    }

    fn size(&self, parents: u64) -> u32 {
        parents.count_ones()
    }

    fn for_each_feature(&self, node: usize, parents: u64, visit: &mut dyn FnMut(usize)) {
        nodes_of(parents).for_each(|from| visit(self.space.edge_feature(from, node)));
    }

    fn log_words(&self, parents: &[u64]) -> f64 {
        log_orders(parents)
    }

    fn words_share(&self) -> bool {
        self.sum_over() == SumOver::Graphs
    }

    fn sums(&self) -> Box<dyn ModelSums> {
        Box::new(DagSums { sums: GraphSums::new(self.sum_over(), self.space.nodes()), space: self.space.clone() })
    }
}

/// Sums over graphs, and the words that are drawn from them.
struct DagSums {
    sums: GraphSums,
    space: Dags,
}

fn scores_of(node: &KeyScores) -> SetScores<'_> {
    SetScores { sets: &node.keys, scores: &node.scores }
}

impl ModelSums for DagSums {
    fn update(&mut self, scores: &[KeyScores], workers: &Workers) {
        let nodes: Vec<SetScores<'_>> = scores.iter().map(scores_of).collect();
        self.sums.update(workers, &nodes);
    }

    fn log_total(&self) -> f64 {
        self.sums.log_total()
    }

    fn marginals(&self, scores: &[KeyScores], workers: &Workers) -> Vec<Vec<f64>> {
        let nodes: Vec<SetScores<'_>> = scores.iter().map(scores_of).collect();
        self.sums.marginals(workers, &nodes)
    }

    fn draw(&self, scores: &[KeyScores], stream: &mut Stream, word: &mut [u16]) -> f64 {
        let nodes: Vec<RankedSets<'_>> =
            scores.iter().map(|node| RankedSets { of: scores_of(node), ranked: &node.ranked }).collect();
        let (mut order, mut parents) = (vec![0u16; nodes.len()], vec![0u64; nodes.len()]);
        let log_q = self.sums.draw(stream, &nodes, &mut parents, &mut order);
        self.space.write_word(&order, &parents, word);
        log_q
    }

    fn terms(&self) -> u64 {
        self.sums.terms()
    }
}
