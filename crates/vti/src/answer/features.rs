//! Parts of models: the terms of a selection, the edges of a graph. A space has a feature for each, positive where the model
//! has the part.

use std::collections::HashMap;

use crate::posterior::Draws;
use crate::space::{Model, ModelSpace};

/// Which parts a model has.
pub(super) fn parts(space: &dyn ModelSpace, word: &[u16]) -> Vec<bool> {
    let mut features = vec![0.0; space.feature_count()];
    space.features(word, &mut features);
    features.into_iter().map(|feature| feature > 0.0).collect()
}

/// Which parts the model of each draw has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DrawnParts {
    count: usize,
    /// Words that were drawn, and the parts that each has.
    words: Vec<Model>,
    parts: Vec<Vec<bool>>,
    /// The word of each draw.
    of_draw: Vec<usize>,
}

impl DrawnParts {
    pub(super) fn new(space: &dyn ModelSpace, draws: &Draws) -> Self {
        let mut numbers: HashMap<&[u16], usize> = HashMap::new();
        let (mut words, mut of_word, mut of_draw) = (Vec::new(), Vec::new(), Vec::with_capacity(draws.len()));
        for row in 0..draws.len() {
            let word = draws.word(row);
            of_draw.push(*numbers.entry(word).or_insert_with(|| {
                words.push(word.into());
                of_word.push(parts(space, word));
                of_word.len() - 1
            }));
        }
        Self { count: space.feature_count(), words, parts: of_word, of_draw }
    }

    /// How many parts there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The word of a draw.
    pub(super) fn word(&self, draw: usize) -> &[u16] {
        &self.words[self.of_draw[draw]]
    }

    /// 1 where the model of a draw has a part, 0 where it does not.
    pub(super) fn indicator(&self, draw: usize, part: usize) -> f64 {
        f64::from(u8::from(self.parts[self.of_draw[draw]][part]))
    }

    /// Words with the sums of their draws' weights.
    pub(super) fn weighted_words(&self, weights: &[f64]) -> Vec<(Model, f64)> {
        let mut sums = vec![0.0; self.words.len()];
        self.of_draw.iter().zip(weights).for_each(|(word, weight)| sums[*word] += weight);
        self.words.iter().cloned().zip(sums).collect()
    }
}
