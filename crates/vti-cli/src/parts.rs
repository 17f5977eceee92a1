//! Parts of models: the terms of a selection, the edges of a graph. A space has a feature for each, positive where the model
//! has the part.

use std::collections::HashMap;

use vti::posterior::Draws;
use vti::space::{Model, ModelSpace};

/// Which parts a model has.
pub(crate) fn marks(space: &dyn ModelSpace, word: &[u16]) -> Vec<bool> {
    let mut features = vec![0.0; space.feature_count()];
    space.features(word, &mut features);
    features.into_iter().map(|feature| feature > 0.0).collect()
}

/// Which parts the model of each draw has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parts {
    count: usize,
    /// Words that were drawn, and their marks.
    words: Vec<Model>,
    models: Vec<Vec<bool>>,
    /// The model of each draw.
    of_draw: Vec<usize>,
}

impl Parts {
    pub(crate) fn new(space: &dyn ModelSpace, draws: &Draws) -> Self {
        let mut numbers: HashMap<&[u16], usize> = HashMap::new();
        let (mut words, mut models, mut of_draw) = (Vec::new(), Vec::new(), Vec::with_capacity(draws.len()));
        for row in 0..draws.len() {
            let word = draws.word(row);
            of_draw.push(*numbers.entry(word).or_insert_with(|| {
                words.push(word.into());
                models.push(marks(space, word));
                models.len() - 1
            }));
        }
        Self { count: space.feature_count(), words, models, of_draw }
    }

    /// How many parts there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether the model of a draw has a part.
    pub(crate) fn has(&self, draw: usize, part: usize) -> bool {
        self.models[self.of_draw[draw]][part]
    }

    /// Words with the sums of their draws' weights.
    pub(crate) fn weighted_words(&self, weights: &[f64]) -> Vec<(Model, f64)> {
        let mut sums = vec![0.0; self.words.len()];
        self.of_draw.iter().zip(weights).for_each(|(word, weight)| sums[*word] += weight);
        self.words.iter().cloned().zip(sums).collect()
    }
}
