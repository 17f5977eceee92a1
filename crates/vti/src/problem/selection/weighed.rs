//! Some models out of many, with their shares of the posterior.

use std::collections::HashMap;

use super::averages::{Average, Measured, Moment, Sums};
use super::exact::ExactError;
use super::{Likelihood, Selection};
use crate::stats::standard_error;
use crate::workers::Workers;

/// Some models of a selection, with shares of the posterior that add up to 1: by their evidences, or by how long chains stayed.
///
/// ```
/// use vti::problem::selection::WeighedModels;
/// // Two chains over the models of two terms.
/// let models = WeighedModels::of_chains(2, &[vec![0, 1, 0, 1], vec![0, 1, 1, 1]]);
/// assert_eq!((models.len(), models.word(0), models.shares()), (2, &[0, 1][..], &[0.75, 0.25][..]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WeighedModels {
    width: usize,
    /// One word after the other.
    words: Vec<u16>,
    shares: Vec<f64>,
    /// Where shares are those of chains: the places of their states among the models.
    chains: Vec<Vec<usize>>,
}

/// States of a chain are looked at in so many blocks at most.
const MOST_BLOCKS: usize = 512;

impl WeighedModels {
    /// Words of so many symbols, one after the other, with weights that need not add up to 1.
    pub fn new(width: usize, words: Vec<u16>, weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        Self { width, words, shares: weights.iter().map(|weight| weight / total).collect(), chains: Vec::new() }
    }

    /// States of chains, one word after the other, that all count alike.
    pub fn of_chains(width: usize, chains: &[Vec<u16>]) -> Self {
        let mut places: HashMap<&[u16], usize> = HashMap::new();
        let (mut words, mut counts) = (Vec::new(), Vec::new());
        let mut place = |word| {
            let place = *places.entry(word).or_insert(counts.len());
            if place == counts.len() {
                words.extend_from_slice(word);
                counts.push(0.0);
            }
            counts[place] += 1.0;
            place
        };
        let chains = chains.iter().map(|chain| chain.chunks_exact(width.max(1)).map(&mut place).collect()).collect();
        Self { chains, ..Self::new(width, words, &counts) }
    }

    /// How many models there are.
    pub fn len(&self) -> usize {
        self.shares.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// A model by its place.
    pub fn word(&self, place: usize) -> &[u16] {
        &self.words[place * self.width..][..self.width]
    }

    /// All models, one word after the other.
    pub fn words(&self) -> &[u16] {
        &self.words
    }

    /// The models' shares, which add up to 1.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// The parameters of a selection whose likelihood is Gaussian in the units of the data, in their order, averaged over these
    /// models: moments given a model are exact (Rao and Blackwell), standard errors say how fast chains moved.
    pub fn averages(&self, selection: &Selection, workers: &Workers) -> Result<Vec<Average>, ExactError> {
        if !matches!(selection.settings().likelihood, Likelihood::Gaussian { .. }) {
            return Err(ExactError::Likelihood);
        }
        let map = Measured::new(selection);
        let mut moments: Vec<Vec<Moment>> = vec![Vec::new(); self.len()];
        workers.try_for_each(&mut moments, |place, found| {
            *found = map.moments(selection, self.word(place))?;
            Ok::<(), ExactError>(())
        })?;
        let mut sums = Sums::new(&map);
        moments.iter().zip(&self.shares).for_each(|(moments, &share)| sums.add_moments(share, moments));
        let mut found = sums.averages(&map);
        let traces: Vec<Blocks> = self.chains.iter().map(|chain| Blocks::new(chain, &moments, map.count())).collect();
        workers.for_each(&mut found, |parameter, average| {
            let means: Vec<Vec<f64>> = traces.iter().map(|blocks| blocks.of(parameter)).collect();
            let means: Vec<&[f64]> = means.iter().map(Vec::as_slice).collect();
            average.se = standard_error(&means).unwrap_or(0.0);
        });
        Ok(found)
    }
}

/// Means of all parameters given the model, averaged over blocks of a chain's states.
struct Blocks {
    count: usize,
    means: Vec<f64>,
}

impl Blocks {
    fn new(chain: &[usize], moments: &[Vec<Moment>], count: usize) -> Self {
        let length = chain.len().div_ceil(MOST_BLOCKS).max(1);
        let blocks = chain.chunks_exact(length);
        let mut means = vec![0.0; blocks.len() * count];
        for (block, means) in blocks.zip(means.chunks_exact_mut(count)) {
            for &(place, [first, _]) in block.iter().flat_map(|&state| &moments[state]) {
                means[place] += first / length as f64;
            }
        }
        Self { count, means }
    }

    /// One parameter along the chain.
    fn of(&self, parameter: usize) -> Vec<f64> {
        self.means.iter().skip(parameter).step_by(self.count).copied().collect()
    }
}
