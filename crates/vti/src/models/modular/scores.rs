//! Scores of the keys of blocks, and the distribution over models that follows from them.

use crate::models::Draw;
use crate::problem::{BlockModels, KeyScores, ModelSums};
use crate::workers::Workers;

/// A distribution over models that is a product over blocks: `q ∝ exp Σ_b s_b(k_b)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockScores {
    /// One for each block.
    pub blocks: Vec<KeyScores>,
}

/// Probabilities that follow from scores.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockProbabilities {
    /// For each block, the probability of each of its keys.
    pub blocks: Vec<Vec<f64>>,
    /// Probability of each feature of the space, as far as keys stand for features: those of edges, where models are graphs.
    pub features: Vec<f64>,
    /// The logarithm of the sum over all models.
    pub log_total: f64,
}

/// Draws words from sums over models; their log probabilities.
pub(super) fn draw_words(
    workers: &Workers,
    sums: &dyn ModelSums,
    scores: &[KeyScores],
    draw: Draw,
    words: &mut [u16],
    log_q: &mut [f64],
) {
    let width = words.len() / log_q.len().max(1);
    let mut rows: Vec<(&mut [u16], &mut f64)> = words.chunks_exact_mut(width.max(1)).zip(log_q).collect();
    workers.for_each(&mut rows, |row, (word, log_q)| **log_q = sums.draw(scores, &mut draw.row(row), word));
}

impl BlockScores {
    /// Exact probabilities, by sums over all models of a space with so many features.
    pub fn probabilities(&self, models: &dyn BlockModels, features: usize, workers: &Workers) -> BlockProbabilities {
        let sums = self.sums(models, workers);
        let blocks = sums.marginals(&self.blocks, workers);
        let mut by_feature = vec![0.0; features];
        for (block, (scores, probabilities)) in self.blocks.iter().zip(&blocks).enumerate() {
            for (&key, probability) in scores.keys.iter().zip(probabilities) {
                models.for_each_feature(block, key, &mut |feature| by_feature[feature] += probability);
            }
        }
        // Rounding may take a certain feature beyond 1.
        by_feature.iter_mut().for_each(|probability: &mut f64| *probability = probability.min(1.0));
        BlockProbabilities { blocks, features: by_feature, log_total: sums.log_total() }
    }

    /// Independent draws of words of `width` symbols.
    pub fn draw(
        &self,
        models: &dyn BlockModels,
        workers: &Workers,
        draw: Draw,
        (count, width): (usize, usize),
    ) -> Vec<u16> {
        let mut ranked = self.blocks.clone();
        ranked.iter_mut().for_each(KeyScores::rank);
        let mut words = vec![0; count * width];
        draw_words(workers, &*self.sums(models, workers), &ranked, draw, &mut words, &mut vec![0.0; count]);
        words
    }

    fn sums(&self, models: &dyn BlockModels, workers: &Workers) -> Box<dyn ModelSums> {
        let mut sums = models.sums();
        sums.update(&self.blocks, workers);
        sums
    }
}
