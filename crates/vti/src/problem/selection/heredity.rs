//! Terms that are products of others: which models may have them, and the prior of those models.

use std::collections::HashMap;

use super::data::{RegressionData, TableError};
use super::prior::ModelPrior;
use crate::space::{Heredity, ModelSpace, Subsets};
use crate::stats::log_sum_exp;

/// Places of the optional terms that each optional term needs. Those that are in every model are always there; those that are
/// no terms never are.
pub(super) fn parents(table: &RegressionData, heredity: Heredity) -> Result<Vec<Vec<usize>>, TableError> {
    let optional = || table.terms.iter().filter(|term| !term.always);
    let places: HashMap<&str, usize> =
        optional().enumerate().map(|(place, term)| (term.name.as_str(), place)).collect();
    let is_always = |name: &String| table.terms.iter().any(|term| term.always && term.name == *name);
    let mut all = Vec::new();
    for term in optional() {
        let (always, others): (Vec<&String>, Vec<&String>) = term.parents.iter().partition(|name| is_always(name));
        let own: Vec<usize> = others.iter().filter_map(|name| places.get(name.as_str()).copied()).collect();
        let lost = || others.iter().find(|name| !places.contains_key(name.as_str()));
        let (needs, lacks) = match heredity {
            Heredity::None => (Vec::new(), None),
            Heredity::Weak if !always.is_empty() => (Vec::new(), None),
            Heredity::Weak => (own.clone(), lost().filter(|_| own.is_empty())),
            Heredity::Strong => (own.clone(), lost()),
        };
        if let Some(parent) = lacks {
            return Err(TableError::NoParent { term: term.name.clone(), parent: (*parent).clone() });
        }
        all.push(needs);
    }
    Ok(all)
}

/// The logarithm of the prior probability of all models that a space allows.
pub(super) fn log_prior_of_all(space: &Subsets, prior: &ModelPrior) -> f64 {
    if !space.is_constrained() {
        return 0.0;
    }
    let things = space.things();
    let of_size = |(size, log_count): (usize, f64)| log_count + prior.log_prob(size, things);
    log_sum_exp(&space.log_sizes().into_iter().enumerate().map(of_size).collect::<Vec<f64>>())
}
