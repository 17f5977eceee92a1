//! Numbers for the words of a space.

use super::words::WordList;
use super::{Model, ModelSpace, SpaceError};

/// The allowed words of a space, numbered 0 to M − 1 in ascending order.
///
/// Without constraints the number of a word is computed and nothing is stored. With constraints the words are found once
/// and kept, 8 bytes for each whose symbols have at most 2⁶⁴ combinations.
///
/// ```
/// use vti::space::{Catalogue, Subsets};
/// let catalogue = Catalogue::new(&Subsets::new(5)?.with_sizes(2..=2)?, 1000)?;
/// assert_eq!(catalogue.len(), 10);
/// let mut word = [0; 5];
/// catalogue.word(9, &mut word)?;
/// assert_eq!(word, [1, 1, 0, 0, 0]);
/// assert_eq!(catalogue.index(&word), Some(9));
/// assert_eq!(catalogue.index(&[1, 1, 1, 0, 0]), None);
/// # Ok::<(), vti::space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Catalogue {
    arities: Vec<u16>,
    words: Words,
}

#[derive(Clone, Debug)]
enum Words {
    /// Every word, this many.
    All(usize),
    Listed(WordList),
}

impl Catalogue {
    /// Numbers the words of a space; an error if there are more than `limit`.
    pub fn new(space: &dyn ModelSpace, limit: usize) -> Result<Self, SpaceError> {
        let arities = space.arities().to_vec();
        if arities.contains(&0) {
            return Err(SpaceError::NoModels);
        }
        let words = if space.is_constrained() {
            Words::Listed(WordList::new(space, limit, |_| true)?)
        } else {
            let count = arities.iter().try_fold(1usize, |count, &arity| count.checked_mul(arity.into()));
            match count.filter(|&count| count <= limit) {
                Some(count) => Words::All(count),
                None => return Err(SpaceError::TooMany { log_count: space.log_count(), limit }),
            }
        };
        Ok(Self { arities, words })
    }

    /// Number of words M.
    pub fn len(&self) -> usize {
        match &self.words {
            Words::All(count) => *count,
            Words::Listed(list) => list.len(),
        }
    }

    /// Whether there is no word. There always is one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Overwrites `to` with the word of this number.
    pub fn word(&self, index: usize, to: &mut [u16]) -> Result<(), SpaceError> {
        if index >= self.len() {
            return Err(SpaceError::Index { index, len: self.len() });
        }
        if to.len() != self.arities.len() {
            return Err(SpaceError::WordLength { found: to.len(), expected: self.arities.len() });
        }
        match &self.words {
            Words::All(_) => {
                let mut rest = index;
                for (symbol, &arity) in to.iter_mut().zip(&self.arities).rev() {
                    // Below the arity, so it fits.
                    *symbol = (rest % usize::from(arity)) as u16;
                    rest /= usize::from(arity);
                }
            }
            Words::Listed(list) => list.write(index, to),
        }
        Ok(())
    }

    /// The model of this number.
    pub fn model(&self, index: usize) -> Result<Model, SpaceError> {
        let mut word = vec![0; self.arities.len()];
        self.word(index, &mut word)?;
        Ok(word.into())
    }

    /// All words, one after another.
    pub fn words(&self) -> Vec<u16> {
        let mut words = vec![0; self.len() * self.arities.len()];
        for (index, word) in words.chunks_exact_mut(self.arities.len().max(1)).enumerate() {
            if self.word(index, word).is_err() {
                unreachable!("the number of a word of this catalogue, and room for it");
            }
        }
        words
    }

    /// The number of a word, if it is allowed.
    pub fn index(&self, word: &[u16]) -> Option<usize> {
        let fits =
            word.len() == self.arities.len() && word.iter().zip(&self.arities).all(|(symbol, arity)| symbol < arity);
        if !fits {
            return None;
        }
        match &self.words {
            Words::All(_) => Some(
                word.iter()
                    .zip(&self.arities)
                    .fold(0, |index, (&symbol, &arity)| index * usize::from(arity) + usize::from(symbol)),
            ),
            Words::Listed(list) => {
                let found = list.starting_with(word);
                (!found.is_empty()).then_some(found.start)
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{OneOf, Subsets};
    use super::*;

    #[test]
    fn too_many_words_are_refused_at_once() {
        let all = Catalogue::new(&Subsets::new(200).unwrap(), 1 << 20).unwrap_err();
        assert_eq!(all.to_string(), "about 10^60.2 words are too many to list: the limit is 1048576");
        let some = Subsets::new(200).unwrap().with_sizes(1..=200).unwrap();
        assert!(matches!(Catalogue::new(&some, usize::MAX), Err(SpaceError::TooMany { .. })));
        let five = OneOf::with_dims(&[1; 5]).unwrap();
        assert_eq!(Catalogue::new(&five, 5).unwrap().len(), 5);
        assert!(matches!(Catalogue::new(&five, 4), Err(SpaceError::TooMany { limit: 4, .. })));
        let pairs = Subsets::new(5).unwrap().with_sizes(2..=2).unwrap();
        assert_eq!(Catalogue::new(&pairs, 10).unwrap().len(), 10);
        assert!(matches!(Catalogue::new(&pairs, 9), Err(SpaceError::TooMany { limit: 9, .. })));
    }

    #[test]
    fn wrong_numbers_and_words_are_refused() {
        let catalogue = Catalogue::new(&Subsets::new(2).unwrap(), 4).unwrap();
        assert_eq!(catalogue.word(4, &mut [0; 2]).unwrap_err(), SpaceError::Index { index: 4, len: 4 });
        assert_eq!(catalogue.word(0, &mut [0; 3]).unwrap_err(), SpaceError::WordLength { found: 3, expected: 2 });
        assert_eq!(catalogue.index(&[0, 2]), None);
        assert_eq!(catalogue.index(&[0]), None);
        let nothing = Catalogue::new(&Subsets::new(0).unwrap(), 1).unwrap();
        assert_eq!((nothing.len(), nothing.index(&[])), (1, Some(0)));
    }
}
