//! Parts of models: the terms of a selection, the edges of a graph. A space has a feature for each, positive where the model
//! has the part.

use std::collections::HashMap;

use vti::posterior::Draws;
use vti::space::ModelSpace;

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
    /// Marks of each model that was drawn.
    models: Vec<Vec<bool>>,
    /// The model of each draw.
    of_draw: Vec<usize>,
}

impl Parts {
    pub(crate) fn new(space: &dyn ModelSpace, draws: &Draws) -> Self {
        let mut numbers: HashMap<&[u16], usize> = HashMap::new();
        let (mut models, mut of_draw) = (Vec::new(), Vec::with_capacity(draws.len()));
        for row in 0..draws.len() {
            let word = draws.word(row);
            of_draw.push(*numbers.entry(word).or_insert_with(|| {
                models.push(marks(space, word));
                models.len() - 1
            }));
        }
        Self { count: space.feature_count(), models, of_draw }
    }

    /// How many parts there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether the model of a draw has a part.
    pub(crate) fn has(&self, draw: usize, part: usize) -> bool {
        self.models[self.of_draw[draw]][part]
    }
}
