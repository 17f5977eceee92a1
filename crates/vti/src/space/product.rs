//! Two choices at once.

use super::error::at_most;
use super::{MAX_DIM, MAX_SYMBOLS, ModelSpace, SpaceError};
use crate::random::Stream;

/// A model of each of two spaces. Words, coordinates and features are those of `A`, then those of `B`.
///
/// ```
/// use vti::space::{ModelSpace, OneOf, Product, Subsets};
/// let noise = OneOf::with_dims(&[1, 2])?.with_names(vec!["normal".into(), "student".into()])?;
/// let space = Product::new(Subsets::new(3)?, noise)?;
/// assert_eq!(space.arities(), [2, 2, 2, 2]);
/// assert_eq!(space.max_dim(), 5);
/// assert_eq!(space.label(&[1, 0, 1, 1]), "{x1, x3} × student");
/// # Ok::<(), vti::space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Product<A, B> {
    first: A,
    second: B,
    arities: Vec<u16>,
    max_dim: usize,
}

impl<A: ModelSpace, B: ModelSpace> Product<A, B> {
    /// The product of two spaces.
    pub fn new(first: A, second: B) -> Result<Self, SpaceError> {
        at_most("symbols", first.arities().len() + second.arities().len(), MAX_SYMBOLS)?;
        let max_dim = at_most("coordinates", first.max_dim().saturating_add(second.max_dim()), MAX_DIM)?;
        let arities = [first.arities(), second.arities()].concat();
        Ok(Self { first, second, arities, max_dim })
    }

    /// The first space.
    pub fn first(&self) -> &A {
        &self.first
    }

    /// The second space.
    pub fn second(&self) -> &B {
        &self.second
    }

    /// The words of both spaces in a word.
    fn split<'a>(&self, word: &'a [u16]) -> (&'a [u16], &'a [u16]) {
        word.split_at(self.first.arities().len().min(word.len()))
    }
}

impl<A: ModelSpace, B: ModelSpace> ModelSpace for Product<A, B> {
    fn arities(&self) -> &[u16] {
        &self.arities
    }

    fn max_dim(&self) -> usize {
        self.max_dim
    }

    fn mark_active(&self, word: &[u16], active: &mut [bool]) {
        let (first, second) = self.split(word);
        let (to_first, to_second) = active.split_at_mut(self.first.max_dim().min(active.len()));
        self.first.mark_active(first, to_first);
        self.second.mark_active(second, to_second);
    }

    fn label(&self, word: &[u16]) -> String {
        let (first, second) = self.split(word);
        format!("{} × {}", self.first.label(first), self.second.label(second))
    }

    fn allow(&self, prefix: &[u16], allowed: &mut [bool]) {
        let (first, second) = self.split(prefix);
        if first.len() < self.first.arities().len() {
            self.first.allow(first, allowed);
        } else {
            self.second.allow(second, allowed);
        }
    }

    fn is_constrained(&self) -> bool {
        self.first.is_constrained() || self.second.is_constrained()
    }

    fn log_count(&self) -> f64 {
        self.first.log_count() + self.second.log_count()
    }

    fn feature_count(&self) -> usize {
        self.first.feature_count() + self.second.feature_count()
    }

    fn features(&self, word: &[u16], to: &mut [f64]) {
        let (first, second) = self.split(word);
        let (to_first, to_second) = to.split_at_mut(self.first.feature_count().min(to.len()));
        self.first.features(first, to_first);
        self.second.features(second, to_second);
    }

    /// Where both spaces have parts.
    fn part_names(&self) -> Vec<String> {
        let (first, second) = (self.first.part_names(), self.second.part_names());
        if first.is_empty() || second.is_empty() { Vec::new() } else { [first, second].concat() }
    }

    /// A neighbour in one of both, more often in that with the longer word.
    fn propose(&self, word: &mut [u16], stream: &mut Stream) -> f64 {
        let len = word.len();
        let (first, second) = word.split_at_mut(self.first.arities().len().min(len));
        if (stream.below(len as u64) as usize) < first.len() {
            self.first.propose(first, stream)
        } else {
            self.second.propose(second, stream)
        }
    }

    fn canonical(&self, word: &mut [u16]) {
        let (first, second) = word.split_at_mut(self.first.arities().len().min(word.len()));
        self.first.canonical(first);
        self.second.canonical(second);
    }
}
