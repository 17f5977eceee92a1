//! Going through the words of a space, and keeping a sorted list of some of them.

use std::ops::Range;

use super::{Model, ModelSpace, SpaceError};

/// Calls `visit` with every allowed word, ascending; an error if there are more than `limit`.
pub(super) fn walk<S: ModelSpace + ?Sized>(
    space: &S,
    limit: usize,
    mut visit: impl FnMut(&[u16]),
) -> Result<(), SpaceError> {
    let log_count = space.log_count();
    // Refuse at once what is far too many; what the space says is rounded, so the count below has the last word.
    if log_count.exp() > limit as f64 * (1.0 + 1e-6) + 0.5 {
        return Err(SpaceError::TooMany { log_count, limit });
    }
    let arities = space.arities();
    let mut word = vec![0; arities.len()];
    // What may stand at each position after the current prefix, and the next symbol to try there.
    let mut allowed: Vec<Vec<bool>> = arities.iter().map(|&arity| vec![false; arity.into()]).collect();
    let mut next = vec![0; arities.len()];
    let (mut depth, mut count, mut entered) = (0, 0, true);
    loop {
        if depth == arities.len() {
            count += 1;
            if count > limit {
                return Err(SpaceError::TooMany { log_count, limit });
            }
            visit(&word);
        } else {
            if entered {
                space.allow(&word[..depth], &mut allowed[depth]);
                next[depth] = 0;
            }
            let found = allowed[depth].iter().skip(next[depth]).position(|&allowed| allowed);
            if let Some(ahead) = found {
                let symbol = next[depth] + ahead;
                word[depth] = symbol as u16;
                next[depth] = symbol + 1;
                depth += 1;
                entered = true;
                continue;
            }
            if entered {
                return Err(SpaceError::DeadEnd { prefix: Model::from(&word[..depth]) });
            }
        }
        if depth == 0 {
            return Ok(());
        }
        depth -= 1;
        entered = false;
    }
}

/// Words in ascending order, each stored as the number it is in mixed radix.
///
/// A number takes one `u64`, or several, most significant first, where the radices multiply to more than that.
#[derive(Clone, Debug)]
pub(super) struct WordList {
    arities: Vec<u16>,
    /// Positions that share a `u64`.
    limbs: Vec<Range<usize>>,
    /// What a symbol counts in its `u64`.
    strides: Vec<u64>,
    codes: Vec<u64>,
}

impl WordList {
    /// The allowed words of a space that `keep` keeps; an error if more than `limit` words are allowed.
    pub(super) fn new<S: ModelSpace + ?Sized>(
        space: &S,
        limit: usize,
        mut keep: impl FnMut(&[u16]) -> bool,
    ) -> Result<Self, SpaceError> {
        let arities = space.arities().to_vec();
        let (limbs, strides) = split(&arities);
        let mut list = Self { arities, limbs, strides, codes: Vec::new() };
        let mut codes = Vec::new();
        walk(space, limit, |word| {
            if keep(word) {
                codes.extend(list.limbs.iter().map(|positions| list.code(word, positions.clone())));
            }
        })?;
        codes.shrink_to_fit();
        list.codes = codes;
        Ok(list)
    }

    pub(super) fn len(&self) -> usize {
        self.codes.len() / self.limbs.len()
    }

    /// Overwrites the start of `to` with word `index`, which exists.
    pub(super) fn write(&self, index: usize, to: &mut [u16]) {
        for (limb, positions) in self.limbs.iter().enumerate() {
            let code = self.entry(index, limb);
            for position in positions.clone() {
                to[position] = self.symbol(code, position);
            }
        }
    }

    /// The indices of the words that start with `prefix`.
    pub(super) fn starting_with(&self, prefix: &[u16]) -> Range<usize> {
        let mut range = 0..self.len();
        for (limb, positions) in self.limbs.iter().enumerate() {
            let known = positions.start..positions.end.min(prefix.len());
            if known.is_empty() {
                break;
            }
            // Codes from `low` on that start like this; earlier limbs are equal throughout the range.
            let (low, span) = (self.code(prefix, known.clone()), self.strides[known.end - 1]);
            let start = partition(range.clone(), |index| self.entry(index, limb) < low);
            let end = partition(start..range.end, |index| self.entry(index, limb).wrapping_sub(low) < span);
            range = start..end;
        }
        range
    }

    /// Overwrites `allowed`: which symbols follow `prefix` in a word of the list.
    pub(super) fn allow(&self, prefix: &[u16], allowed: &mut [bool]) {
        allowed.fill(false);
        let position = prefix.len();
        let limb = self.limbs.partition_point(|positions| positions.end <= position);
        if limb == self.limbs.len() {
            return;
        }
        let Range { mut start, end } = self.starting_with(prefix);
        while start < end {
            let symbol = self.symbol(self.entry(start, limb), position);
            if let Some(allowed) = allowed.get_mut(usize::from(symbol)) {
                *allowed = true;
            }
            // On to the first word with a greater symbol.
            start = partition(start..end, |index| self.symbol(self.entry(index, limb), position) <= symbol);
        }
    }

    /// What these positions of a word count. Symbols that do not exist give a number that means nothing.
    fn code(&self, word: &[u16], positions: Range<usize>) -> u64 {
        let terms = word[positions.clone()].iter().zip(&self.strides[positions]);
        terms.fold(0, |code, (&symbol, &stride)| u64::from(symbol).wrapping_mul(stride).wrapping_add(code))
    }

    fn symbol(&self, code: u64, position: usize) -> u16 {
        // Below the arity, so it fits.
        (code / self.strides[position] % u64::from(self.arities[position])) as u16
    }

    fn entry(&self, index: usize, limb: usize) -> u64 {
        self.codes[index * self.limbs.len() + limb]
    }
}

/// Groups of positions whose radices multiply to a `u64`, and what a symbol counts in its group.
fn split(arities: &[u16]) -> (Vec<Range<usize>>, Vec<u64>) {
    let mut limbs = Vec::new();
    let (mut start, mut size) = (0, 1u64);
    for (position, &arity) in arities.iter().enumerate() {
        // A space with an arity of 0 has no words; any stride does.
        let arity = u64::from(arity.max(1));
        size = size.checked_mul(arity).unwrap_or_else(|| {
            limbs.push(start..position);
            start = position;
            arity
        });
    }
    limbs.push(start..arities.len());
    let mut strides = vec![1; arities.len()];
    for positions in &limbs {
        let mut stride = 1u64;
        for position in positions.clone().rev() {
            strides[position] = stride;
            // The last product is the group's size, which fits.
            stride = stride.wrapping_mul(u64::from(arities[position]));
        }
    }
    (limbs, strides)
}

/// The first index for which `before` does not hold, where it holds for all before it and for none after.
fn partition(range: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start + (end - start) / 2;
        if before(middle) {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    start
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Subsets;
    use super::*;

    #[test]
    fn codes_of_long_words_take_several_numbers() {
        let (limbs, strides) = split(&[2; 130]);
        assert_eq!(limbs, [0..63, 63..126, 126..130]);
        assert_eq!((strides[0], strides[62], strides[126]), (1 << 62, 1, 8));
        let (limbs, strides) = split(&[]);
        assert_eq!((limbs.len(), strides.len()), (1, 0));
    }

    #[test]
    fn lists_of_long_words_allow_what_is_in_them() {
        let space = Subsets::new(130).unwrap().with_sizes(1..=2).unwrap();
        let list = WordList::new(&space, 10_000, |word| word[5] == 1).unwrap();
        assert_eq!(list.len(), 130);
        let mut word = [0; 130];
        for index in 0..list.len() {
            list.write(index, &mut word);
            assert_eq!(list.starting_with(&word), index..index + 1);
            let mut allowed = [false; 2];
            for position in 0..130 {
                list.allow(&word[..position], &mut allowed);
                let before: u16 = word[..position].iter().sum();
                let must = [position == 5, false];
                let may = [position != 5, position == 5 || before + u16::from(position < 5) < 2];
                assert_eq!(allowed, [may[0] && !must[0], may[1]], "{position} {word:?}");
            }
        }
    }

    /// Allows a first 1 but nothing after it.
    struct Broken;

    impl ModelSpace for Broken {
        fn arities(&self) -> &[u16] {
            &[2; 3]
        }
        fn max_dim(&self) -> usize {
            0
        }
        fn mark_active(&self, _: &[u16], _: &mut [bool]) {}
        fn is_constrained(&self) -> bool {
            true
        }
        fn allow(&self, prefix: &[u16], allowed: &mut [bool]) {
            allowed.fill(prefix != [1]);
        }
    }

    #[test]
    fn dead_ends_are_found() {
        let dead_end = walk(&Broken, 100, |_| ()).unwrap_err();
        assert_eq!(dead_end, SpaceError::DeadEnd { prefix: Model::from(vec![1]) });
        let too_many = walk(&Broken, 3, |_| ()).unwrap_err();
        assert_eq!(too_many.to_string(), "the space's words are too many to list: the limit is 3");
    }
}
