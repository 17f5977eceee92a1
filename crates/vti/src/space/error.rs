//! What can go wrong with a space of models.

use super::Model;

/// A space that cannot be built, a word that is not in it, or too many words to list.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// A space without any word.
    #[error("no model is left: a space needs at least one")]
    NoModels,
    /// More of something than a space can have.
    #[error("{found} {what}, but there can be at most {max}")]
    TooLarge {
        /// What there are too many of.
        what: &'static str,
        /// How many there are; at the top of the range if that number overflows.
        found: usize,
        /// How many there can be.
        max: usize,
    },
    /// A model that uses a coordinate that does not exist.
    #[error("model {model} uses coordinate {coordinate}, but there are {max_dim}")]
    Coordinate {
        /// Which model, counted from 0.
        model: usize,
        /// The coordinate.
        coordinate: u32,
        /// The saturated dimension.
        max_dim: usize,
    },
    /// A model that lists a coordinate twice.
    #[error("model {model} lists coordinate {coordinate} twice")]
    Repeated {
        /// Which model, counted from 0.
        model: usize,
        /// The coordinate.
        coordinate: u32,
    },
    /// Rules for another number of nodes.
    #[error("rules for {found} nodes, but there are {nodes}")]
    Rules {
        /// Nodes of the rules.
        found: usize,
        /// Nodes of the graphs.
        nodes: usize,
    },
    /// Components that contradict themselves.
    #[error("components: {reason}")]
    Components {
        /// Why.
        reason: String,
    },
    /// More or fewer names than things to name.
    #[error("{found} names for {expected} things")]
    Names {
        /// Names given.
        found: usize,
        /// Names needed.
        expected: usize,
    },
    /// A name given to two things.
    #[error("two things are called `{name}`")]
    SameName {
        /// The name.
        name: String,
    },
    /// Sizes that no subset has.
    #[error("no subset of {things} things has a size from {low} to {high}")]
    Sizes {
        /// Smallest size asked for.
        low: usize,
        /// Largest size asked for.
        high: usize,
        /// Number of optional things.
        things: usize,
    },
    /// A parent that does not come before its child, or that has parents itself.
    #[error("thing {thing} cannot need thing {parent}: parents come first and need nothing themselves")]
    Parent {
        /// The child, counted from 0.
        thing: usize,
        /// The parent.
        parent: usize,
    },
    /// Things that need others, and a least size.
    #[error("where things need others a least size cannot be asked for")]
    LeastSize,
    /// More things depend on one another than can be counted.
    #[error(
        "products link {found} terms in so many ways that the models which are left cannot be counted\nhint: leave some products out, take those of every pair, or say --heredity none"
    )]
    Linked {
        /// How many things have children.
        found: usize,
    },
    /// A word of the wrong length.
    #[error("a word of {found} symbols, but models have {expected}")]
    WordLength {
        /// Symbols of the word.
        found: usize,
        /// Symbols of the space's words.
        expected: usize,
    },
    /// A symbol that does not exist.
    #[error("symbol {symbol} at position {position}, where symbols are below {arity}")]
    Symbol {
        /// Where in the word, counted from 0.
        position: usize,
        /// What stands there.
        symbol: u16,
        /// How many symbols there are at that position.
        arity: u16,
    },
    /// A symbol that may not follow what comes before it.
    #[error("symbol {symbol} at position {position} may not follow what comes before it")]
    Forbidden {
        /// Where in the word, counted from 0.
        position: usize,
        /// What stands there.
        symbol: u16,
    },
    /// A space that allows a beginning but no symbol after it.
    #[error("no symbol may follow `{prefix}`: a space must not lead into dead ends")]
    DeadEnd {
        /// The beginning.
        prefix: Model,
    },
    /// More words than may be listed.
    #[error("{} words are too many to list: the limit is {limit}", words(*log_count))]
    TooMany {
        /// Logarithm of the number of words, not a number where the space does not know it.
        log_count: f64,
        /// How many may be listed.
        limit: usize,
    },
    /// A number that no word has.
    #[error("word {index} was asked for, but there are {len}, counted from 0")]
    Index {
        /// What was asked for.
        index: usize,
        /// How many there are.
        len: usize,
    },
    /// An adjacency matrix of the wrong size.
    #[error("an adjacency matrix of {found} entries, but {nodes} nodes need {}", nodes * nodes)]
    Adjacency {
        /// Entries given.
        found: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// A graph with a cycle.
    #[error("the graph has a cycle through `{name}`")]
    Cycle {
        /// A node on the cycle.
        node: usize,
        /// Its name.
        name: String,
    },
}

/// A number of words for people, from its logarithm.
fn words(log_count: f64) -> String {
    let count = log_count.exp();
    if log_count.is_nan() {
        "the space's".into()
    } else if count < 1e9 {
        format!("{count:.0}")
    } else {
        format!("about 10^{:.1}", log_count / std::f64::consts::LN_10)
    }
}

/// Refuses more of something than there can be.
pub(super) fn at_most(what: &'static str, found: usize, max: usize) -> Result<usize, SpaceError> {
    if found <= max { Ok(found) } else { Err(SpaceError::TooLarge { what, found, max }) }
}

/// Refuses names that are too few, too many, or the same twice.
pub(super) fn check_names(names: &[String], expected: usize) -> Result<(), SpaceError> {
    if names.len() != expected {
        return Err(SpaceError::Names { found: names.len(), expected });
    }
    let mut seen = std::collections::HashSet::with_capacity(names.len());
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => Err(SpaceError::SameName { name: name.clone() }),
        None => Ok(()),
    }
}

/// `x1`, `x2`, …
pub(super) fn default_names(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("x{number}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_words_are_readable_at_any_size() {
        assert_eq!(words(1025f64.ln()), "1025");
        assert_eq!(words(200.0 * 2f64.ln()), "about 10^60.2");
        assert_eq!(words(1e5), "about 10^43429.4");
        assert_eq!(words(f64::NAN), "the space's");
    }
}
