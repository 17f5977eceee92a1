//! Spaces of models: each model is a word of symbols and says which coordinates of θ it uses.
//!
//! | space | word | length |
//! |---|---|---|
//! | [`OneOf`] K models | one symbol | 1 |
//! | [`Subsets`] of n things | a bit per thing | n |
//! | [`Dags`] over n nodes | Lehmer digits of an order, a bit per pair of positions | n − 1 + n(n − 1)/2 |
//! | [`Components`]: how many of each kind | a symbol per kind | number of kinds |
//! | [`Product`] of two spaces | both words, one after the other | sum of both |
//! | [`Restricted`] to a predicate | as before, fewer of them | as before |
//!
//! A [`Catalogue`] numbers the words of a space that is small enough.

mod catalogue;
mod components;
mod dags;
mod edge_rules;
mod error;
mod heredity;
mod model;
mod neighbours;
mod one_of;
mod product;
mod restricted;
mod subsets;
mod words;

pub use catalogue::Catalogue;
pub use components::{BlockParameter, ComponentKind, Components, Law};
pub use dags::{Dags, NodeParameters};
pub use edge_rules::{EdgeRules, RulesError};
pub use error::SpaceError;
pub use heredity::Heredity;
pub use model::Model;
pub use one_of::OneOf;
pub use product::Product;
pub use restricted::Restricted;
pub use subsets::Subsets;

pub(crate) use neighbours::change;

use crate::random::Stream;

/// The most symbols a word can have in the spaces of this module.
const MAX_SYMBOLS: usize = 1 << 24;

/// The most coordinates θ can have: they are numbered by `u32`.
const MAX_DIM: usize = u32::MAX as usize;

/// A set 𝓜 of models, written as words of symbols.
///
/// Three methods are required; the rest has defaults that suit a space where every word is a model of its own.
///
/// The methods that take a `word` expect one of this space; [`check`](Self::check) tells. With any other word they do
/// something harmless that means nothing. Nothing here panics.
///
/// ```
/// use vti::space::ModelSpace;
///
/// /// A polynomial of degree 0 to 3.
/// struct Degree;
///
/// impl ModelSpace for Degree {
///     fn arities(&self) -> &[u16] {
///         &[4]
///     }
///     fn max_dim(&self) -> usize {
///         4
///     }
///     fn mark_active(&self, word: &[u16], active: &mut [bool]) {
///         let degree = word.first().map_or(0, |&symbol| usize::from(symbol));
///         active.iter_mut().enumerate().for_each(|(power, active)| *active = power <= degree);
///     }
/// }
///
/// let mut active = [false; 4];
/// Degree.mark_active(&[1], &mut active);
/// assert_eq!(active, [true, true, false, false]);
/// assert!(Degree.is_allowed(&[3]) && !Degree.is_allowed(&[4]));
/// ```
pub trait ModelSpace: Send + Sync {
    /// Number of symbols there are at each position of a word.
    fn arities(&self) -> &[u16];

    /// The saturated dimension `d_max`: how many coordinates θ has over all models.
    fn max_dim(&self) -> usize;

    /// Overwrites `active`, of length [`max_dim`](Self::max_dim), with A(m): which coordinates of θ the model uses.
    fn mark_active(&self, word: &[u16], active: &mut [bool]);

    /// What people read. By default the symbols.
    fn label(&self, word: &[u16]) -> String {
        let mut label = String::new();
        // Writing to a string cannot fail.
        let _ = model::write_word(word, &mut label);
        label
    }

    /// Which symbols may follow `prefix`, a word's beginning that was itself allowed and is shorter than a word.
    ///
    /// `allowed` has an entry for each symbol at that position and is overwritten. Every prefix of allowed symbols has at
    /// least one allowed continuation: there are no dead ends. By default all symbols are allowed.
    fn allow(&self, prefix: &[u16], allowed: &mut [bool]) {
        let _ = prefix;
        allowed.fill(true);
    }

    /// Whether [`allow`](Self::allow) ever forbids a symbol. By default it does not.
    fn is_constrained(&self) -> bool {
        false
    }

    /// Logarithm of the number of allowed words, ln |𝓜| where each word is a model of its own.
    ///
    /// By default Σ ln arity; not a number for a constrained space that does not say.
    fn log_count(&self) -> f64 {
        if self.is_constrained() {
            return f64::NAN;
        }
        self.arities().iter().map(|&arity| f64::from(arity).ln()).sum()
    }

    /// Number of [`features`](Self::features) of a model. By default one for a bit and `arity` for any other symbol.
    fn feature_count(&self) -> usize {
        self.arities().iter().map(|&arity| feature_width(arity)).sum()
    }

    /// Overwrites `to`, of length [`feature_count`](Self::feature_count), with what a network sees of a model.
    ///
    /// By default bits are −1 or 1, and other symbols are one-hot. Words of one model have the same features.
    fn features(&self, word: &[u16], to: &mut [f64]) {
        to.fill(0.0);
        let mut start = 0;
        for (&symbol, &arity) in word.iter().zip(self.arities()) {
            let (place, value) = if arity == 2 {
                (start, if symbol == 0 { -1.0 } else { 1.0 })
            } else {
                (start + usize::from(symbol), 1.0)
            };
            if let Some(feature) = to.get_mut(place) {
                *feature = value;
            }
            start += feature_width(arity);
        }
    }

    /// What the parts of models are called whose presence the [`features`](Self::features) say, one for each: the things of a
    /// subset, the edges of a graph. Empty by default, where features are something else.
    ///
    /// ```
    /// use vti::space::{Dags, ModelSpace, Subsets};
    /// assert_eq!(Subsets::new(2)?.part_names(), ["x1", "x2"]);
    /// assert_eq!(Dags::new(2, 1)?.part_names(), ["x1→x2", "x2→x1"]);
    /// # Ok::<(), vti::space::SpaceError>(())
    /// ```
    fn part_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Where several words mean one model, replaces a word by the one that represents them. By default nothing changes.
    ///
    /// The representative is allowed, has the same active coordinates and features, and represents itself.
    fn canonical(&self, word: &mut [u16]) {
        let _ = word;
    }

    /// Replaces an allowed word by a random neighbour of it, which need not be allowed nor another; the log of how probable the way
    /// back is, divided by how probable this move was.
    ///
    /// By default one symbol becomes another, or two positions with equally many symbols exchange theirs.
    ///
    /// ```
    /// use vti::random::{Purpose, Stream};
    /// use vti::space::{ModelSpace, Subsets};
    /// // From nothing, one of three is taken in; the way back is one of four kinds of move.
    /// let mut word = [0, 0, 0];
    /// let log_ratio = Subsets::new(3)?.propose(&mut word, &mut Stream::new(1, Purpose::Search, 0, 0));
    /// assert_eq!((word.iter().sum::<u16>(), log_ratio), (1, 0.25f64.ln() - (1.0f64 / 3.0).ln()));
    /// # Ok::<(), vti::space::SpaceError>(())
    /// ```
    fn propose(&self, word: &mut [u16], stream: &mut Stream) -> f64 {
        neighbours::change_or_exchange(self.arities(), word, stream)
    }

    /// Says what is wrong with a word that is not one of this space: its length, a symbol, or a constraint.
    fn check(&self, word: &[u16]) -> Result<(), SpaceError> {
        let arities = self.arities();
        if word.len() != arities.len() {
            return Err(SpaceError::WordLength { found: word.len(), expected: arities.len() });
        }
        let outside = word.iter().zip(arities).enumerate().find(|(_, (symbol, arity))| symbol >= arity);
        if let Some((position, (&symbol, &arity))) = outside {
            return Err(SpaceError::Symbol { position, symbol, arity });
        }
        if self.is_constrained() {
            let mut allowed = vec![false; arities.iter().copied().max().map_or(0, usize::from)];
            for (position, (&symbol, &arity)) in word.iter().zip(arities).enumerate() {
                self.allow(&word[..position], &mut allowed[..usize::from(arity)]);
                if !allowed[usize::from(symbol)] {
                    return Err(SpaceError::Forbidden { position, symbol });
                }
            }
        }
        Ok(())
    }

    /// Whether a word has the right length and each of its symbols exists and is allowed after those before it.
    fn is_allowed(&self, word: &[u16]) -> bool {
        self.check(word).is_ok()
    }
}

/// Features of one symbol by default.
fn feature_width(arity: u16) -> usize {
    if arity == 2 { 1 } else { usize::from(arity) }
}

/// A pointer to a space is that space.
macro_rules! pass_on {
    ($($pointer:ty),*) => {$(
        impl<S: ModelSpace + ?Sized> ModelSpace for $pointer {
            fn arities(&self) -> &[u16] {
                (**self).arities()
            }
            fn max_dim(&self) -> usize {
                (**self).max_dim()
            }
            fn mark_active(&self, word: &[u16], active: &mut [bool]) {
                (**self).mark_active(word, active);
            }
            fn label(&self, word: &[u16]) -> String {
                (**self).label(word)
            }
            fn allow(&self, prefix: &[u16], allowed: &mut [bool]) {
                (**self).allow(prefix, allowed);
            }
            fn is_constrained(&self) -> bool {
                (**self).is_constrained()
            }
            fn log_count(&self) -> f64 {
                (**self).log_count()
            }
            fn feature_count(&self) -> usize {
                (**self).feature_count()
            }
            fn features(&self, word: &[u16], to: &mut [f64]) {
                (**self).features(word, to);
            }
            fn part_names(&self) -> Vec<String> {
                (**self).part_names()
            }
            fn canonical(&self, word: &mut [u16]) {
                (**self).canonical(word);
            }
            fn propose(&self, word: &mut [u16], stream: &mut Stream) -> f64 {
                (**self).propose(word, stream)
            }
            fn check(&self, word: &[u16]) -> Result<(), SpaceError> {
                (**self).check(word)
            }
            fn is_allowed(&self, word: &[u16]) -> bool {
                (**self).is_allowed(word)
            }
        }
    )*};
}

pass_on!(&S, Box<S>, std::sync::Arc<S>);
