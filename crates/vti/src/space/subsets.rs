//! Subsets of optional things.

use std::ops::RangeInclusive;

use super::error::{at_most, check_names, default_names};
use super::heredity::{Descent, Heredity, log_binomials};
use super::neighbours::{Choices, add_drop_or_swap};
use super::{MAX_DIM, MAX_SYMBOLS, ModelSpace, SpaceError};
use crate::random::Stream;
use crate::stats::log_sum_exp;

/// Subsets of n optional things. A word is a bit per thing: whether it is in.
///
/// Each thing owns a block of coordinates, usually one. Coordinates that are always in come first, then the blocks in
/// order.
///
/// ```
/// use vti::space::{ModelSpace, Subsets};
/// // An intercept, and up to two of four covariates.
/// let space = Subsets::with_always(4, 1)?.with_sizes(0..=2)?;
/// let mut active = [false; 5];
/// space.mark_active(&[1, 0, 0, 1], &mut active);
/// assert_eq!(active, [true, true, false, false, true]);
/// assert_eq!(space.label(&[1, 0, 0, 1]), "{x1, x4}");
/// assert!(!space.is_allowed(&[1, 1, 0, 1]));
/// assert_eq!(space.log_count().exp().round(), 11.0); // 1 + 4 + 6
/// # Ok::<(), vti::space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Subsets {
    arities: Vec<u16>,
    /// Where each thing's block starts, and where the last ends.
    starts: Vec<usize>,
    names: Vec<String>,
    low: usize,
    high: usize,
    /// Which things need others.
    descent: Option<Descent>,
    /// Logarithms of the numbers of subsets of each size, where things need others.
    log_sizes: Vec<f64>,
}

impl Subsets {
    /// Subsets of n coordinates: thing i owns coordinate i.
    pub fn new(things: usize) -> Result<Self, SpaceError> {
        Self::with_always(things, 0)
    }

    /// Subsets of `things` coordinates, after `always` coordinates that are always in.
    pub fn with_always(things: usize, always: usize) -> Result<Self, SpaceError> {
        at_most("optional things", things, MAX_SYMBOLS)?;
        Self::of_blocks(always, &vec![1; things])
    }

    /// Things that own this many coordinates each, after `always` coordinates that are always in.
    ///
    /// ```
    /// use vti::space::{ModelSpace, Subsets};
    /// let space = Subsets::of_blocks(1, &[2, 1])?;
    /// let mut active = [false; 4];
    /// space.mark_active(&[1, 0], &mut active);
    /// assert_eq!(active, [true, true, true, false]);
    /// # Ok::<(), vti::space::SpaceError>(())
    /// ```
    pub fn of_blocks(always: usize, blocks: &[usize]) -> Result<Self, SpaceError> {
        let things = at_most("optional things", blocks.len(), MAX_SYMBOLS)?;
        let mut starts = Vec::with_capacity(things + 1);
        let mut end = at_most("coordinates", always, MAX_DIM)?;
        starts.push(end);
        for &block in blocks {
            end = at_most("coordinates", end.saturating_add(block), MAX_DIM)?;
            starts.push(end);
        }
        Ok(Self {
            arities: vec![2; things],
            starts,
            names: default_names(things),
            low: 0,
            high: things,
            descent: None,
            log_sizes: Vec::new(),
        })
    }

    /// Names the optional things for labels; by default `x1`, `x2`, ….
    pub fn with_names(mut self, names: Vec<String>) -> Result<Self, SpaceError> {
        check_names(&names, self.things())?;
        self.names = names;
        Ok(self)
    }

    /// Restricts the number of optional things that are in. An end beyond the number of things is no restriction.
    pub fn with_sizes(mut self, sizes: RangeInclusive<usize>) -> Result<Self, SpaceError> {
        let (low, high) = (*sizes.start(), *sizes.end());
        if low > high || low > self.things() {
            return Err(SpaceError::Sizes { low, high, things: self.things() });
        }
        if low > 0 && self.descent.is_some() {
            return Err(SpaceError::LeastSize);
        }
        (self.low, self.high) = (low, high.min(self.things()));
        Ok(self)
    }

    /// Things that have parents are in only with one of these, or with all of them. Parents come before their children and
    /// have none themselves; so many must not depend on one another that subsets cannot be counted.
    ///
    /// ```
    /// use vti::space::{Heredity, ModelSpace, Subsets};
    /// // The product of the first two only together with both.
    /// let space = Subsets::new(3)?.with_parents(vec![vec![], vec![], vec![0, 1]], Heredity::Strong)?;
    /// assert!(space.is_allowed(&[1, 1, 1]) && !space.is_allowed(&[1, 0, 1]));
    /// assert_eq!(space.log_count().exp().round(), 5.0);
    /// # Ok::<(), vti::space::SpaceError>(())
    /// ```
    pub fn with_parents(mut self, parents: Vec<Vec<usize>>, heredity: Heredity) -> Result<Self, SpaceError> {
        if heredity == Heredity::None || parents.iter().all(Vec::is_empty) {
            return Ok(self);
        }
        let descent = Descent::new(parents, self.things(), heredity == Heredity::Strong)?;
        if self.low > 0 {
            return Err(SpaceError::LeastSize);
        }
        self.log_sizes = descent.log_sizes()?;
        self.descent = Some(descent);
        Ok(self)
    }

    /// Logarithms of the numbers of allowed subsets of each size, from none to all.
    pub fn log_sizes(&self) -> Vec<f64> {
        let all = if self.descent.is_some() { self.log_sizes.clone() } else { log_binomials(self.things()) };
        let is_allowed = |size: usize| (self.low..=self.high).contains(&size);
        all.into_iter().enumerate().map(|(size, log)| if is_allowed(size) { log } else { f64::NEG_INFINITY }).collect()
    }

    /// Number of optional things.
    pub fn things(&self) -> usize {
        self.arities.len()
    }

    /// Names of the optional things.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many optional things may be in.
    pub fn sizes(&self) -> RangeInclusive<usize> {
        self.low..=self.high
    }
}

impl ModelSpace for Subsets {
    fn arities(&self) -> &[u16] {
        &self.arities
    }

    fn max_dim(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    fn mark_active(&self, word: &[u16], active: &mut [bool]) {
        active.fill(false);
        let always = self.starts.first().copied().unwrap_or(0);
        active.iter_mut().take(always).for_each(|active| *active = true);
        for (&symbol, block) in word.iter().zip(self.starts.windows(2)) {
            if symbol != 0
                && let Some(block) = active.get_mut(block[0]..block[1])
            {
                block.fill(true);
            }
        }
    }

    fn label(&self, word: &[u16]) -> String {
        let names: Vec<&str> =
            word.iter().zip(&self.names).filter(|(symbol, _)| **symbol != 0).map(|(_, name)| name.as_str()).collect();
        format!("{{{}}}", names.join(", "))
    }

    fn allow(&self, prefix: &[u16], allowed: &mut [bool]) {
        allowed.fill(true);
        if self.low > 0 || self.high < self.things() {
            let size = prefix.iter().filter(|&&symbol| symbol != 0).count();
            let later = self.things().saturating_sub(prefix.len() + 1);
            for (symbol, allowed) in allowed.iter_mut().enumerate() {
                *allowed = size + symbol <= self.high && size + symbol + later >= self.low;
            }
        }
        if let (Some(descent), Some(allowed)) = (&self.descent, allowed.get_mut(1)) {
            *allowed &= prefix.len() < self.things() && descent.may_be_in(prefix.len(), prefix);
        }
    }

    fn part_names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// One thing in or out, or one in for another.
    fn propose(&self, word: &mut [u16], stream: &mut Stream) -> f64 {
        match &self.descent {
            None => add_drop_or_swap(self.low, self.high, word, stream),
            Some(descent) => Choices::propose(
                word,
                |word, thing| {
                    if word[thing] == 0 { descent.may_be_in(thing, word) } else { descent.may_be_out(thing, word) }
                },
                stream,
            ),
        }
    }

    fn is_constrained(&self) -> bool {
        self.low > 0 || self.high < self.things() || self.descent.is_some()
    }

    fn log_count(&self) -> f64 {
        let things = self.things();
        if !self.is_constrained() {
            return things as f64 * std::f64::consts::LN_2;
        }
        log_sum_exp(&self.log_sizes())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_by_binomials() {
        let count = |n, sizes| Subsets::new(n).unwrap().with_sizes(sizes).unwrap().log_count();
        assert!((count(8, 2..=3).exp() - 84.0).abs() < 1e-9);
        assert!((count(8, 8..=8).exp() - 1.0).abs() < 1e-12);
        assert!((count(8, 0..=100).exp() - 256.0).abs() < 1e-9);
        // C(200, 100), and all subsets of 2,000 but the empty one.
        assert!((count(200, 100..=100) - 135.753_236_081_278_5).abs() < 1e-10);
        assert!((count(2000, 1..=2000) - 2000.0 * 2f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn wrong_subsets_are_refused() {
        let space = Subsets::new(3).unwrap();
        let sizes = space.clone().with_sizes(4..=5).unwrap_err();
        assert_eq!(sizes.to_string(), "no subset of 3 things has a size from 4 to 5");
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = space.clone().with_sizes(2..=1).unwrap_err();
        assert_eq!(reversed, SpaceError::Sizes { low: 2, high: 1, things: 3 });
        assert!(matches!(space.with_names(vec![]), Err(SpaceError::Names { found: 0, expected: 3 })));
        assert!(matches!(Subsets::new(usize::MAX), Err(SpaceError::TooLarge { .. })));
        assert!(matches!(Subsets::of_blocks(1, &[usize::MAX, 2]), Err(SpaceError::TooLarge { .. })));
    }
}
