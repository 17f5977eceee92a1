//! What is believed about one node: its sets of parents and their scores.

use std::collections::HashMap;

use super::scores::{Ranked, rank};
use super::{ModularSettings, NodeScores};
use crate::graph::nodes_of;
use crate::models::surrogate::belief::Belief;
use crate::models::surrogate::learner::Learner;
use crate::problem::Factors;
use crate::space::EdgeRules;
use crate::state::{State, StateError};
use crate::workers::Workers;

/// The sets of parents of a node.
pub(super) struct NodeTable {
    /// Ascending.
    pub(super) sets: Vec<u64>,
    /// What q is made of: on its way to `log p + μ + βσ`.
    pub(super) logits: Vec<f64>,
    log_prior: Vec<f64>,
    pub(super) learner: Learner,
    places: HashMap<u64, u32>,
    /// Sets, most probable first.
    ranked: Vec<u32>,
}

impl NodeTable {
    fn new(node: usize, factors: &dyn Factors, settings: &ModularSettings, mut estimates: Vec<(u64, f64)>) -> Self {
        estimates.sort_unstable_by_key(|&(set, _)| set);
        fill_gaps(&mut estimates);
        let sets: Vec<u64> = estimates.iter().map(|&(set, _)| set).collect();
        let mean: Vec<f64> = estimates.iter().map(|&(_, estimate)| estimate).collect();
        let log_prior: Vec<f64> = sets.iter().map(|&set| factors.log_prior(node, set)).collect();
        let belief = Belief::diagonal(sets.len(), settings.prior_sd * settings.prior_sd);
        Self {
            logits: log_prior
                .iter()
                .zip(&mean)
                .map(|(log_prior, estimate)| log_prior + settings.start * estimate)
                .collect(),
            log_prior,
            learner: Learner::new(mean, belief, settings.noise_decay),
            places: sets.iter().enumerate().map(|(place, &set)| (set, place as u32)).collect(),
            ranked: (0..sets.len() as u32).collect(),
            sets,
        }
    }

    pub(super) fn scores(&self) -> NodeScores {
        NodeScores { sets: self.sets.clone(), logits: self.logits.clone(), log_prior: self.log_prior.clone() }
    }

    /// The place of a set.
    pub(super) fn index(&self, set: u64) -> Option<usize> {
        self.places.get(&set).map(|&place| place as usize)
    }

    /// The logit of a set; −∞ for one that is not there.
    pub(super) fn logit(&self, set: u64) -> f64 {
        self.index(set).map_or(f64::NEG_INFINITY, |index| self.logits[index])
    }

    /// `log p + μ + βσ`.
    pub(super) fn goal(&self, index: usize, beta: f64) -> f64 {
        self.log_prior[index] + self.learner.upper_confidence(index, beta)
    }

    /// Moves all logits a share of the way to their goals.
    pub(super) fn approach(&mut self, beta: f64, share: f64) {
        for index in 0..self.logits.len() {
            let goal = self.goal(index, beta);
            // What the prior forbids stays forbidden.
            if goal > f64::NEG_INFINITY {
                self.logits[index] += share * (goal - self.logits[index]);
            }
        }
    }

    /// Sorts sets by their logits, so that draws find theirs early.
    pub(super) fn rank(&mut self) {
        rank(&self.logits, &mut self.ranked);
    }

    /// What draws are made from.
    pub(super) fn ranked(&self) -> Ranked<'_> {
        Ranked { sets: &self.sets, logits: &self.logits, ranked: &self.ranked }
    }

    pub(super) fn state(&self) -> State {
        let mut state = State::default();
        // Sets of at most 20 nodes are exact as numbers.
        state.put("sets", &self.sets.iter().map(|&set| set as f64).collect::<Vec<_>>());
        state.put("logits", &self.logits);
        self.learner.put(&mut state);
        state
    }

    pub(super) fn restore(
        node: usize,
        factors: &dyn Factors,
        settings: &ModularSettings,
        state: &mut State,
    ) -> Result<Self, StateError> {
        let sets = state.take_any::<f64>("sets")?;
        let estimates = sets.into_iter().map(|set| (set as u64, 0.0)).collect();
        let mut table = Self::new(node, factors, settings, estimates);
        table.logits = state.take("logits", table.sets.len())?;
        table.learner.restore(state)?;
        Ok(table)
    }
}

/// Where there is no estimate, the worst of the others has to do: a set must not be lost for want of a estimate.
fn fill_gaps(estimates: &mut [(u64, f64)]) {
    let finite = estimates.iter().map(|&(_, estimate)| estimate).filter(|estimate| estimate.is_finite());
    let worst = finite.reduce(f64::min).unwrap_or(0.0);
    estimates.iter_mut().filter(|(_, estimate)| !estimate.is_finite()).for_each(|(_, estimate)| *estimate = worst);
}

/// The table of a node, with the problem's estimates.
pub(super) fn log_evidence_estimate(
    workers: &Workers,
    rules: &EdgeRules,
    factors: &dyn Factors,
    settings: &ModularSettings,
    node: usize,
) -> NodeTable {
    let ask = |sets: Vec<u64>| {
        let mut estimates: Vec<(u64, f64)> = sets.into_iter().map(|set| (set, 0.0)).collect();
        workers.for_each(&mut estimates, |_, (set, estimate)| {
            *estimate = Some(factors.log_evidence_estimate(node, *set))
                .filter(|estimate| !estimate.is_nan())
                .unwrap_or(f64::NEG_INFINITY);
        });
        estimates
    };
    let all = 1usize.checked_shl(rules.optional(node).count_ones()).filter(|&count| count <= settings.most_sets);
    let estimates = match all {
        Some(_) => ask(all_sets(rules, node)),
        None => search(rules, node, settings.beam, ask),
    };
    NodeTable::new(node, factors, settings, estimates)
}

/// Every set of parents that the rules allow.
pub(super) fn all_sets(rules: &EdgeRules, node: usize) -> Vec<u64> {
    let optional = rules.optional(node);
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
    sets
}

/// Sets found by adding parents one by one to the best sets of each size, until no larger set is better than the best so far.
/// All sets with one or two optional parents are among them.
pub(super) fn search(
    rules: &EdgeRules,
    node: usize,
    beam: usize,
    ask: impl Fn(Vec<u64>) -> Vec<(u64, f64)>,
) -> Vec<(u64, f64)> {
    let optional = rules.optional(node);
    let mut found = ask(vec![rules.required(node)]);
    let mut last = found.clone();
    let mut best = found[0].1;
    for size in 1.. {
        let larger = last.iter().flat_map(|&(set, _)| nodes_of(optional & !set).map(move |parent| set | 1 << parent));
        let mut larger: Vec<u64> = larger.filter(|&set| rules.allows(node, set)).collect();
        larger.sort_unstable();
        larger.dedup();
        let mut estimates = ask(larger);
        found.extend_from_slice(&estimates);
        estimates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let Some(&(_, top)) = estimates.first() else { break };
        if size > 2 && top < best {
            break;
        }
        best = best.max(top);
        if size > 1 {
            estimates.truncate(beam);
        }
        last = estimates;
    }
    found
}
