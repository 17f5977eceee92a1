//! Graphs whose nodes are scored one by one.
//!
//! Where the density has a factor for each node, given its parents, so has the evidence of a graph: `−ℓ(m; φ) = Σ_j s_j(π_j)`
//! with the node's own bound s_j for its parents π_j. The paper's surrogate (section "Estimation via surrogate") then needs a
//! belief for every node and set of parents only, not for every graph, and each of them learns from all graphs that share it:
//!
//! ```text
//! q(P, U) ∝ p(P, U) exp Σ_j (μ_j(π_j) + β σ_j(π_j)).
//! ```
//!
//! The sum over all graphs and orders is exact, so q can be drawn from and evaluated exactly too.

mod layers;
mod orders;
mod scores;
mod sums;
mod table;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::orders::Scores;
pub use self::scores::{NodeScores, ParentProbabilities, ParentScores};
use self::scores::{Ranked, draw_words};
use self::sums::Sums;
use self::table::NodeTable;
use super::{Draw, ModelDistribution, ModelUpdate, ModelsError, Progress, ScoredBatch};
use crate::device::{Device, DeviceError};
use crate::optimise::SettingError;
use crate::problem::{Factors, Problem};
use crate::space::{Dags, EdgeRules, ModelSpace};
use crate::state::{State, StateError};
use crate::workers::Workers;

/// Settings of a [`Modular`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModularSettings {
    /// β: how many standard deviations of optimism.
    pub beta: f64,
    /// Standard deviation of the error of the problem's estimates, in nats.
    pub prior_sd: f64,
    /// Standard deviation of a step of the random walk of scores while φ moves fastest, in nats.
    pub inflation: f64,
    /// Decay of the running mean of the noise variance.
    pub noise_decay: f64,
    /// q starts from the estimates to this power: the smaller, the more graphs are tried at first.
    pub start: f64,
    /// Up to so many sets of parents of a node are all tried; among more, the promising ones are searched for.
    pub most_sets: usize,
    /// In a search, how many of the best sets of a size are tried with one more parent.
    pub beam: usize,
}

impl Default for ModularSettings {
    fn default() -> Self {
        Self { beta: 1.0, prior_sd: 3.0, inflation: 0.1, noise_decay: 0.9, start: 0.1, most_sets: 1 << 11, beam: 48 }
    }
}

impl ModularSettings {
    fn check(&self) -> Result<(), SettingError> {
        let Self { beta, prior_sd, inflation, noise_decay, start, most_sets, beam } = *self;
        let check = SettingError::check;
        check("beta", beta, beta >= 0.0 && beta.is_finite(), "at least 0")?;
        check("prior_sd", prior_sd, prior_sd > 0.0 && prior_sd.is_finite(), "positive")?;
        check("inflation", inflation, inflation >= 0.0 && inflation.is_finite(), "at least 0")?;
        check("noise_decay", noise_decay, (0.0..1.0).contains(&noise_decay), "at least 0 and below 1")?;
        check("start", start, (0.0..=1.0).contains(&start), "from 0 to 1")?;
        check("most_sets", most_sets as f64, most_sets > 0, "at least 1")?;
        check("beam", beam as f64, beam > 0, "at least 1")
    }
}

/// q(m) over graphs, with a belief about every node and set of parents.
pub struct Modular {
    settings: ModularSettings,
    problem: Arc<dyn Problem>,
    rules: EdgeRules,
    /// One for each node; none before anything is asked.
    tables: Vec<NodeTable>,
    sums: Sums,
    /// Updates since the sums were made.
    waiting: u64,
}

impl std::fmt::Debug for Modular {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Modular").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Modular {
    /// Whether a problem's models are graphs of few enough nodes: 20, or 12 where graphs count rather than orders.
    pub fn suits(space: &dyn ModelSpace, factors: &dyn Factors) -> bool {
        space.graphs().is_some_and(|graphs| (2..=Sums::most_nodes(factors.topology())).contains(&graphs.nodes()))
    }

    /// Estimates are asked for by [`ModelDistribution::prepare`].
    pub fn new(problem: Arc<dyn Problem>, settings: &ModularSettings) -> Result<Self, ModelsError> {
        settings.check()?;
        let space = problem.space();
        let factors = problem.factors().ok_or(ModelsError::NotModular)?;
        let graphs = space.graphs().filter(|_| Self::suits(space, factors)).ok_or(ModelsError::NotModular)?;
        let rules = graphs.rules().cloned().map_or_else(|| EdgeRules::none(graphs.nodes()), Ok);
        let rules = rules.map_err(|_| ModelsError::NotModular)?;
        let sums = Sums::new(factors.topology(), graphs.nodes());
        Ok(Self { settings: settings.clone(), rules, tables: Vec::new(), sums, waiting: 0, problem })
    }

    /// The graphs and what is asked about their nodes: [`Modular::new`] has seen that they are there.
    fn parts(problem: &dyn Problem) -> (&Dags, &dyn Factors) {
        match (problem.space().graphs(), problem.factors()) {
            (Some(graphs), Some(factors)) => (graphs, factors),
            _ => unreachable!("a modular distribution is of graphs with factors"),
        }
    }

    /// Asks for the estimates, unless a state has been restored.
    fn ask(&mut self, workers: &Workers, progress: &mut Progress<'_>) -> ControlFlow<()> {
        if self.tables.is_empty() {
            let Self { settings, rules, problem, .. } = self;
            let (_, factors) = Self::parts(&**problem);
            let nodes = rules.nodes();
            let mut tables = Vec::with_capacity(nodes);
            for node in 0..nodes {
                progress(node, nodes)?;
                tables.push(table::log_evidence_estimate(workers, rules, factors, settings, node));
            }
            progress(nodes, nodes)?;
            self.tables = tables;
            self.refresh(workers);
        }
        ControlFlow::Continue(())
    }

    /// Sums over all graphs of the logits as they are.
    fn refresh(&mut self, workers: &Workers) {
        let Self { tables, sums, .. } = self;
        workers.for_each(tables, |_, table| table.rank());
        let tables = &*tables;
        sums.update(workers, |node| Scores { sets: &tables[node].sets, logits: &tables[node].logits });
    }

    /// Log probabilities of words.
    fn log_probs(&self, words: &[u16], log_q: &mut [f64]) {
        let (space, _) = Self::parts(&*self.problem);
        let mut parents = vec![0; space.nodes()];
        for (word, log_q) in words.chunks_exact(space.arities().len()).zip(log_q) {
            space.parents(word, &mut parents);
            let logits = parents.iter().zip(&self.tables).map(|(&set, table)| table.logit(set));
            *log_q = logits.sum::<f64>() - self.sums.log_share(&parents);
        }
    }

    /// Learns what the blocks of a batch say about nodes and their parents.
    fn learn(&mut self, workers: &Workers, batch: &ScoredBatch<'_>) -> bool {
        let Some(blocks) = batch.blocks else { return false };
        let nodes = self.tables.len();
        let drift = self.settings.inflation * batch.pace;
        for (node, table) in self.tables.iter_mut().enumerate() {
            let rows = (0..batch.kept.len()).filter(|&row| batch.kept[row]).map(|row| row * nodes + node);
            let rows = rows.filter_map(|piece| Some((table.index(blocks.keys[piece])?, -blocks.log_h[piece])));
            let rows: Vec<(usize, f64)> = rows.collect();
            if rows.is_empty() {
                return false;
            }
            table.learner.learn(workers, &rows, drift);
        }
        true
    }

    /// Moves the logits towards `log p + μ + βσ` as far as the entropy changes by about `limit` at most; the share of the way.
    ///
    /// With Δ the sum over nodes of what is left of the way, the entropy changes by −Cov_q(log q, Δ) for each unit of the share,
    /// which the batch, drawn from q, estimates.
    fn approach(&mut self, beta: f64, limit: f64, batch: Option<&ScoredBatch<'_>>) -> f64 {
        if limit <= 0.0 {
            return 0.0;
        }
        let share = match (batch, batch.and_then(|batch| batch.blocks)) {
            (Some(batch), Some(blocks)) if limit < f64::INFINITY => {
                let way = |keys: &[u64]| {
                    let nodes = keys.iter().zip(&self.tables);
                    nodes
                        .map(|(&set, table)| table.index(set).map_or(0.0, |i| table.goal(i, beta) - table.logits[i]))
                        .sum()
                };
                let ways: Vec<f64> = blocks.keys.chunks_exact(self.tables.len()).map(way).collect();
                let change = covariance(batch.log_q, &ways).abs();
                if change > limit { limit / change } else { 1.0 }
            }
            _ => 1.0,
        };
        self.tables.iter_mut().for_each(|table| table.approach(beta, share));
        share
    }
}

/// The covariance of two lists of numbers.
fn covariance(x: &[f64], y: &[f64]) -> f64 {
    let count = x.len().max(1) as f64;
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / count, y.iter().sum::<f64>() / count);
    x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / count
}

impl<D: Device> ModelDistribution<D> for Modular {
    fn prepare(&mut self, device: &D, progress: &mut Progress<'_>) -> ControlFlow<()> {
        self.ask(device.workers(), progress)
    }

    fn sample(&self, device: &D, draw: Draw, words: &mut [u16], log_q: &mut [f64]) -> Result<(), ModelsError> {
        let nodes: Vec<Ranked<'_>> = self.tables.iter().map(NodeTable::ranked).collect();
        let (space, _) = Self::parts(&*self.problem);
        draw_words(device.workers(), (space, &self.sums), &nodes, draw, words, log_q);
        Ok(())
    }

    fn log_prob(&self, _: &D, words: &[u16], log_q: &mut [f64]) -> Result<(), ModelsError> {
        self.log_probs(words, log_q);
        Ok(())
    }

    fn update(&mut self, device: &D, batch: &ScoredBatch<'_>) -> Result<ModelUpdate, ModelsError> {
        let learned = self.learn(device.workers(), batch);
        self.waiting += 1;
        let mut scale = 0.0;
        if learned && self.waiting >= self.sums.patience(self.tables.len()) {
            let limit = batch.information_limit * self.waiting as f64;
            self.waiting = 0;
            scale = self.approach(self.settings.beta, limit, Some(batch));
            if scale > 0.0 {
                self.refresh(device.workers());
            }
        }
        Ok(ModelUpdate { scale })
    }

    fn state(&self, _: &D) -> Result<State, DeviceError> {
        let mut state = State::default();
        state.put("waiting", &[self.waiting as f64]);
        for (node, table) in self.tables.iter().enumerate() {
            state.put_state(&format!("nodes.{node}"), table.state());
        }
        Ok(state)
    }

    fn restore(&mut self, device: &D, state: &mut State) -> Result<(), StateError> {
        let waiting = state.take_number("waiting")?;
        let Self { settings, problem, .. } = self;
        let (space, factors) = Self::parts(&**problem);
        let nodes = 0..space.nodes();
        // A run that was saved before its first step has no tables yet.
        let tables: Vec<State> = nodes.map(|node| state.take_state(&format!("nodes.{node}"))).collect();
        self.tables.clear();
        if tables.iter().all(|table| !table.arrays().is_empty()) {
            let tables = tables.into_iter().enumerate();
            let tables = tables.map(|(node, mut state)| NodeTable::restore(node, factors, settings, &mut state));
            self.tables = tables.collect::<Result<_, _>>()?;
            // The sums belong to the logits of the last refresh, and those have not moved since.
            self.refresh(device.workers());
        }
        self.waiting = waiting as u64;
        Ok(())
    }

    fn parent_scores(&self) -> Option<ParentScores> {
        let (_, factors) = Self::parts(&*self.problem);
        Some(ParentScores { topology: factors.topology(), nodes: self.tables.iter().map(NodeTable::scores).collect() })
    }

    /// What remains of the upper confidence bounds is the means of the beliefs.
    fn end_exploration(&mut self, device: &D) {
        if !self.tables.is_empty() {
            self.approach(0.0, f64::INFINITY, None);
            self.refresh(device.workers());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
