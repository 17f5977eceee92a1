//! A space with some of its words left out.

use super::words::WordList;
use super::{ModelSpace, SpaceError};
use crate::random::Stream;

/// The words of a space that satisfy a predicate.
///
/// The words are listed once, 8 bytes for most; [`allow`](ModelSpace::allow) looks up which symbols lead to one of them.
///
/// The predicate should treat words that mean one model alike. Where it refuses the representative of a word it accepts,
/// [`canonical`](ModelSpace::canonical) leaves that word as it is.
///
/// ```
/// use vti::space::{ModelSpace, Restricted, Subsets};
/// // The interaction x3 only together with both of its parts.
/// let space = Restricted::new(Subsets::new(3)?, |word| word[2] == 0 || (word[0] == 1 && word[1] == 1))?;
/// assert_eq!(space.log_count().exp().round(), 5.0);
/// let mut allowed = [false; 2];
/// space.allow(&[0, 1], &mut allowed);
/// assert_eq!(allowed, [true, false]);
/// # Ok::<(), vti::space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Restricted<S> {
    space: S,
    words: WordList,
}

impl<S: ModelSpace> Restricted<S> {
    /// The most words a space can have to be restricted.
    pub const LIMIT: usize = 1 << 20;

    /// Keeps the words for which the predicate holds.
    pub fn new(space: S, predicate: impl FnMut(&[u16]) -> bool) -> Result<Self, SpaceError> {
        let words = WordList::new(&space, Self::LIMIT, predicate)?;
        if words.len() == 0 {
            return Err(SpaceError::NoModels);
        }
        Ok(Self { space, words })
    }

    /// The space without the predicate.
    pub fn space(&self) -> &S {
        &self.space
    }
}

impl<S: ModelSpace> ModelSpace for Restricted<S> {
    fn arities(&self) -> &[u16] {
        self.space.arities()
    }

    fn max_dim(&self) -> usize {
        self.space.max_dim()
    }

    fn mark_active(&self, word: &[u16], active: &mut [bool]) {
        self.space.mark_active(word, active);
    }

    fn label(&self, word: &[u16]) -> String {
        self.space.label(word)
    }

    fn allow(&self, prefix: &[u16], allowed: &mut [bool]) {
        self.words.allow(prefix, allowed);
    }

    fn is_constrained(&self) -> bool {
        true
    }

    fn log_count(&self) -> f64 {
        (self.words.len() as f64).ln()
    }

    fn feature_count(&self) -> usize {
        self.space.feature_count()
    }

    fn features(&self, word: &[u16], to: &mut [f64]) {
        self.space.features(word, to);
    }

    fn part_names(&self) -> Vec<String> {
        self.space.part_names()
    }

    fn propose(&self, word: &mut [u16], stream: &mut Stream) -> f64 {
        self.space.propose(word, stream)
    }

    fn canonical(&self, word: &mut [u16]) {
        let before = word.to_vec();
        self.space.canonical(word);
        if !self.is_allowed(word) {
            word.copy_from_slice(&before);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Dags, Subsets};
    use super::*;

    #[test]
    fn nothing_left_and_too_many_are_refused() {
        let space = Subsets::new(3).unwrap();
        assert_eq!(Restricted::new(space, |_| false).unwrap_err(), SpaceError::NoModels);
        let large = Restricted::new(Subsets::new(21).unwrap(), |_| true).unwrap_err();
        assert_eq!(large.to_string(), "2097152 words are too many to list: the limit is 1048576");
    }

    #[test]
    fn a_representative_that_is_left_out_represents_nothing() {
        let dags = Dags::new(2, 1).unwrap();
        // Both orders of two nodes without an edge mean one graph; keep the second.
        let space = Restricted::new(dags, |word| word[0] == 1).unwrap();
        let mut word = [1, 0];
        space.canonical(&mut word);
        assert_eq!(word, [1, 0]);
    }
}
