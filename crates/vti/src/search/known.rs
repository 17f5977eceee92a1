//! Models whose evidence is known.

use std::collections::HashMap;

use super::{ModelEvidences, SearchError, Target};
use crate::stats::Estimate;

/// A word, packed: its symbols take as many bits each as they need.
pub(super) type Key = Box<[u64]>;

/// How words are packed.
pub(super) struct Packing {
    /// Bits of each symbol.
    bits: Vec<u32>,
    limbs: usize,
    /// Whether every symbol is a bit.
    binary: bool,
}

impl Packing {
    pub(super) fn new(arities: &[u16]) -> Self {
        let bits: Vec<u32> =
            arities.iter().map(|&arity| (u16::BITS - arity.saturating_sub(1).leading_zeros()).max(1)).collect();
        // Symbols do not straddle limbs.
        let (mut limbs, mut used) = (0, u64::BITS);
        for &bits in &bits {
            if used + bits > u64::BITS {
                (limbs, used) = (limbs + 1, 0);
            }
            used += bits;
        }
        Self { binary: bits.iter().all(|&bits| bits == 1), bits, limbs }
    }

    pub(super) fn empty(&self) -> Key {
        vec![0; self.limbs].into()
    }

    /// Calls `visit(position, limb, shift, bits)` for every symbol.
    #[inline(always)]
    fn for_each(&self, mut visit: impl FnMut(usize, usize, u32, u32)) {
        let (mut limb, mut used) = (0, 0);
        for (position, &bits) in self.bits.iter().enumerate() {
            if used + bits > u64::BITS {
                (limb, used) = (limb + 1, 0);
            }
            visit(position, limb, used, bits);
            used += bits;
        }
    }

    pub(super) fn pack(&self, word: &[u16], key: &mut [u64]) {
        if self.binary {
            for (limb, bits) in key.iter_mut().zip(word.chunks(u64::BITS as usize)) {
                *limb = bits.iter().zip(0..).fold(0, |limb, (&bit, shift)| limb | u64::from(bit) << shift);
            }
            return;
        }
        key.fill(0);
        self.for_each(|position, limb, shift, _| key[limb] |= u64::from(word[position]) << shift);
    }

    pub(super) fn unpack(&self, key: &[u64], word: &mut [u16]) {
        self.for_each(|position, limb, shift, bits| word[position] = (key[limb] >> shift & ((1 << bits) - 1)) as u16);
    }
}

/// What is known of a word.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// `log p(m)` of the word.
    pub log_prior: f64,
    /// `log p(y | m)`.
    pub evidence: Estimate,
    /// In which iteration it was asked for.
    pub born: u64,
    /// Iterations that chains with the posterior as their target have spent there.
    pub visits: u64,
}

impl Entry {
    /// `log p(m) p(y | m)`.
    pub(super) fn log_weight(&self) -> f64 {
        self.log_prior + self.evidence.value
    }
}

/// All that is known, of a bounded number of words.
pub(super) struct Known {
    pub packing: Packing,
    pub entries: HashMap<Key, Entry>,
    most: usize,
    /// Evidences asked for.
    pub asked: usize,
}

impl Known {
    pub(super) fn new(arities: &[u16], most: usize) -> Self {
        Self { packing: Packing::new(arities), entries: HashMap::new(), most, asked: 0 }
    }

    /// Makes all these words known: the evidences of those that are not are asked for in one call, once for each model.
    pub(super) fn learn(
        &mut self,
        target: &Target<'_>,
        evidences: &mut dyn ModelEvidences,
        words: &[&[u16]],
        born: u64,
    ) -> Result<(), SearchError> {
        let (mut asked, mut batch) = (HashMap::new(), Vec::new());
        let mut canonical = Vec::new();
        // Words of one model share its evidence, but each has a prior of its own.
        let mut waiting: Vec<(Key, &[u16], Key)> = Vec::new();
        for &word in words {
            let mut key = self.packing.empty();
            self.packing.pack(word, &mut key);
            if self.entries.contains_key(&key) {
                continue;
            }
            canonical.clear();
            canonical.extend_from_slice(word);
            target.space.canonical(&mut canonical);
            let mut model = key.clone();
            if canonical != word {
                self.packing.pack(&canonical, &mut model);
            }
            if let Some(entry) = self.entries.get(&model).filter(|_| model != key) {
                let entry = Entry { log_prior: (target.log_prior)(word), born, visits: 0, ..*entry };
                self.entries.insert(key, entry);
                continue;
            }
            let next = asked.len();
            if *asked.entry(model.clone()).or_insert(next) == next {
                batch.extend_from_slice(&canonical);
                if model != key {
                    // The representative is a word as well.
                    waiting.push((model.clone(), &[], model.clone()));
                }
            }
            waiting.push((key, word, model));
        }
        if asked.is_empty() {
            return Ok(());
        }
        let found = evidences.log_evidences(&batch, target.workers)?;
        if found.len() != asked.len() {
            return Err(SearchError::Count { found: found.len(), asked: asked.len() });
        }
        self.asked += found.len();
        let width = batch.len() / found.len();
        for (key, word, model) in waiting {
            let number = asked[&model];
            let word = if word.is_empty() { &batch[number * width..][..width] } else { word };
            let evidence = usable(found[number]);
            self.entries.insert(key, Entry { log_prior: (target.log_prior)(word), evidence, born, visits: 0 });
        }
        Ok(())
    }

    /// Forgets the less probable half where there are too many.
    pub(super) fn forget(&mut self) {
        if self.entries.len() <= self.most {
            return;
        }
        let mut weights: Vec<f64> = self.entries.values().map(Entry::log_weight).collect();
        let middle = weights.len() / 2;
        let (_, &mut median, _) = weights.select_nth_unstable_by(middle, f64::total_cmp);
        self.entries.retain(|_, entry| entry.log_weight() > median);
    }
}

/// What is no number, or infinite, is no evidence for a model.
fn usable(evidence: Estimate) -> Estimate {
    let Estimate { value, se } = evidence;
    if value.is_nan() || value == f64::INFINITY {
        return Estimate { value: f64::NEG_INFINITY, se: 0.0 };
    }
    Estimate { value, se: if se.is_finite() { se } else { 0.0 } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_words_are_found_again() {
        for arities in [vec![2; 130], vec![3, 2, 7, 1, 300, 2, u16::MAX, 65, 64, 9, 5, 2, 2], vec![]] {
            let packing = Packing::new(&arities);
            let word: Vec<u16> = (1..).zip(&arities).map(|(i, arity)| (i * 7919 % u32::from(*arity)) as u16).collect();
            let (mut key, mut back) = (packing.empty(), vec![0; arities.len()]);
            packing.pack(&word, &mut key);
            packing.unpack(&key, &mut back);
            assert_eq!(word, back);
        }
    }
}
