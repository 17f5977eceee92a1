//! Densities that are products over blocks: the one capability behind which graphs stand.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{BatchError, DensityError, Preconditioner, or_undefined};
use crate::random::Stream;
use crate::state::{State, StateError};
use crate::workers::Workers;

/// A density that is a product over blocks of parameters:
///
/// ```text
/// log η(θ_m | m) = Σ_b log η_b(θ_b | k_b(m)).
/// ```
///
/// Block b owns `width` consecutive coordinates from `b · width` on. Which of them are active, and their density, depend on the
/// block's *key* only, a part of the model that fits into 64 bits. What is learned about a block under a key serves all models
/// that share the key. In a graph the blocks are nodes and their keys are sets of parents: given the graph, each node's
/// parameters have a posterior of their own (paper, appendix G (mlpdagdescription)).
///
/// ```
/// use vti::problem::dag::{Dag, DagSettings, NodeData};
/// use vti::problem::Problem;
///
/// let columns = vec![vec![0.3, -1.2, 0.8, 0.1], vec![0.5, -0.9, 1.1, -0.4], vec![-0.2, 0.4, 0.6, -0.7]];
/// let data = NodeData::new(["a", "b", "c"].map(String::from).to_vec(), columns);
/// let dag = Dag::new(data, DagSettings::default())?;
/// let blocks = dag.blocks().expect("nodes are blocks");
/// let mut keys = [0; 3];
/// blocks.keys(&[0, 0, 1, 0, 1], &mut keys); // a → b → c
/// assert_eq!(keys, [0b000, 0b001, 0b010]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Blocks: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// Coordinates of each.
    fn width(&self) -> usize;

    /// Overwrites `keys` with the key of each block in a model.
    fn keys(&self, word: &[u16], keys: &mut [u64]);

    /// Overwrites `active`, of length [`width`](Self::width), with the coordinates that a block uses under a key.
    fn mark_active(&self, block: usize, key: u64, active: &mut [bool]);

    /// Number of [`features`](Self::features).
    fn feature_count(&self) -> usize;

    /// Overwrites `to` with what a network sees of a block and its key.
    fn features(&self, block: usize, key: u64, to: &mut [f64]);

    /// `log η_b(θ_b | k)` and its gradient, as [`Problem::log_density`](super::Problem::log_density) for the parameters of one
    /// block.
    fn log_density(&self, block: usize, key: u64, theta: &[f64], gradient: &mut [f64]) -> Result<f64, DensityError>;

    /// The logarithm of a weight w(θ_b), its gradient added to `gradient`, where the parameters of a block can be rearranged without
    /// any change of the density (hidden units that change places): it singles one arrangement out, so that a flow need not find
    /// them all, and leaves the evidence as it is, `∫ η_b w = ∫ η_b`. Families and checks multiply the density by it; nobody else
    /// sees it. 0, no weight, by default.
    fn log_arrangement(&self, block: usize, key: u64, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let _ = (block, key, theta, gradient);
        0.0
    }

    /// [`Blocks::log_density`] of all blocks of many rows, asked once for all of them, from one thread. By default rows are
    /// shared out over the host's threads. An undefined density is not a number; an error that is fatal ends it all.
    fn log_density_batch(&self, batch: BlockBatch<'_>, workers: &Workers) -> Result<(), BatchError> {
        batch.share_out(workers, |row| {
            let mut start = 0;
            for block in 0..row.keys.len() {
                let here = start..start + row.dims[block];
                start = here.end;
                let gradient = &mut row.gradient[here.clone()];
                row.log_density[block] =
                    or_undefined(self.log_density(block, row.keys[block], &row.theta[here], gradient))?;
            }
            Ok(())
        })
    }

    /// Where the parameters of a block roughly lie under a key; none as for
    /// [`Problem::preconditioner`](super::Problem::preconditioner).
    fn preconditioner(&self, block: usize, key: u64) -> Option<Preconditioner> {
        let _ = (block, key);
        None
    }

    /// The computational cost of [`log_density`](Self::log_density), in multiplications, about: a check plans its effort by it. 1 by default, so next
    /// to nothing.
    fn work(&self, block: usize, key: u64) -> f64 {
        let _ = (block, key);
        1.0
    }

    /// A first estimate of `log ∫ η_b(θ_b | k) dθ_b`. Only differences between keys of a block matter.
    fn log_evidence_estimate(&self, block: usize, key: u64) -> f64 {
        let _ = (block, key);
        0.0
    }

    /// A flag that somebody may set: [`log_evidence_estimate`](Self::log_evidence_estimate) may then return at once, whatever it has,
    /// because nobody will use it. Ignored by default.
    fn heed(&self, stop: Arc<AtomicBool>) {
        let _ = stop;
    }

    /// Everything that took long to find out for estimates and preconditioners, and that [`Blocks::restore_findings`] spares.
    /// Nothing by default.
    fn findings(&self) -> State {
        State::default()
    }

    /// Takes findings of the same density, bit for bit what it would have found itself.
    fn restore_findings(&self, findings: &mut State) -> Result<(), StateError> {
        let _ = findings;
        Ok(())
    }

    /// Whether [`log_evidence_estimate`](Self::log_evidence_estimate) is the evidence itself. By default it is not.
    fn has_exact_evidences(&self) -> bool {
        false
    }

    /// `ℓ_b(z | k)` of many z, and the gradients, where the parameters of a block are a function of standard normal numbers z, as
    /// many as there are parameters, such that
    ///
    /// ```text
    /// ∫ η_b(θ_b | k) dθ_b = E[exp ℓ_b(z | k)],   z ~ N(0, I):
    /// ```
    ///
    /// the likelihood, seen from a normal prior. A check then finds evidences from the prior as well, whatever q is. Asked once for
    /// all particles of all blocks and keys that are annealed together, from one thread. Not a number where it is undefined; false,
    /// the default, where there is no such way.
    fn log_likelihood_batch(
        &self,
        particles: &mut [BlockParticles<'_>],
        workers: &Workers,
    ) -> Result<bool, BatchError> {
        let _ = (particles, workers);
        Ok(false)
    }

    /// All models as combinations of keys, where sums over them are known. None by default.
    fn models(&self) -> Option<&dyn BlockModels> {
        None
    }
}

/// Keys of a block that are listed to look for one.
const MAX_LISTED_KEYS: usize = 1 << 12;

/// Models as combinations of keys, and exact sums over all of them.
pub trait BlockModels: Send + Sync {
    /// The block's part of `log p(m)`, which is `Σ_b` of these and a constant, less
    /// [`log_words`](Self::log_words) where words [share](Self::words_share) it.
    fn log_prior(&self, block: usize, key: u64) -> f64;

    /// The keys a block may have; none where there are more than `max`.
    fn all_keys(&self, block: usize, max: usize) -> Option<Vec<u64>>;

    /// Whether a block may have this key. By default it is looked for among all of them where they are few enough, and believed where
    /// they are not.
    fn has_key(&self, block: usize, key: u64) -> bool {
        self.all_keys(block, MAX_LISTED_KEYS).is_none_or(|keys| keys.contains(&key))
    }

    /// The smallest key of a block, from which all others are reached by [`larger_keys`](Self::larger_keys).
    fn smallest_key(&self, block: usize) -> u64;

    /// The keys that are larger by one.
    fn larger_keys(&self, block: usize, key: u64) -> Vec<u64>;

    /// How large a key is: what the evidence of a block grows or falls with.
    fn size(&self, key: u64) -> u32;

    /// Calls `visit` with each feature of the space (see [`ModelSpace::features`](crate::space::ModelSpace::features)) that
    /// models have because of this key.
    fn for_each_feature(&self, block: usize, key: u64, visit: &mut dyn FnMut(usize));

    /// The logarithm of the number of words that have these keys; −∞ where none has.
    fn log_words(&self, keys: &[u64]) -> f64;

    /// Whether the words of a model share its weight, rather than each having all of it.
    fn words_share(&self) -> bool;

    /// Sums over all models.
    fn sums(&self) -> Box<dyn ModelSums>;
}

/// Sums over all models of `exp Σ_b s_b(k_b(m))`, given the scores s_b of all keys.
pub trait ModelSums: Send + Sync {
    /// Takes scores up.
    fn update(&mut self, scores: &[KeyScores], workers: &Workers);

    /// The logarithm of the sum.
    fn log_total(&self) -> f64;

    /// The probability of each key of each block, for the scores it was made of.
    fn marginals(&self, scores: &[KeyScores], workers: &Workers) -> Vec<Vec<f64>>;

    /// Draws a word; the logarithm of its probability.
    fn draw(&self, scores: &[KeyScores], stream: &mut Stream, word: &mut [u16]) -> f64;

    /// About how many terms there are: with many, making the sums anew takes longer than everything else.
    fn terms(&self) -> u64;
}

/// The keys of a block that are known, ascending, with their scores.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyScores {
    /// The keys.
    pub keys: Vec<u64>,
    /// Their scores s_b(k), log prior included.
    pub scores: Vec<f64>,
    /// Their part of the log prior.
    pub log_prior: Vec<f64>,
    /// Their places, best first: so that draws find theirs early.
    pub ranked: Vec<u32>,
}

impl KeyScores {
    /// The place of a key.
    pub fn place(&self, key: u64) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }

    /// Ranks the keys by their scores.
    pub fn rank(&mut self) {
        let Self { keys, scores, ranked, .. } = self;
        if ranked.len() != keys.len() {
            *ranked = (0..keys.len() as u32).collect();
        }
        let score = |&place: &u32| scores[place as usize];
        ranked.sort_unstable_by(|a, b| score(b).total_cmp(&score(a)).then(a.cmp(b)));
    }
}

/// Particles of one block under a key, whose log likelihoods are wanted.
#[derive(Debug)]
pub struct BlockParticles<'a> {
    /// The block.
    pub block: usize,
    /// Its key.
    pub key: u64,
    /// Places, one after another.
    pub z: &'a [f64],
    /// Written: `ℓ_b` of each.
    pub values: &'a mut [f64],
    /// Written: gradients, laid out like `z`.
    pub gradients: &'a mut [f64],
}

/// Rows whose densities are wanted block by block.
#[derive(Debug)]
pub struct BlockBatch<'a> {
    /// Blocks of a row.
    pub count: usize,
    /// Keys, one for each block of each row.
    pub keys: &'a [u64],
    /// Natural parameters of each block of each row.
    pub dims: &'a [usize],
    /// Natural parameters: those of row r stand from `r · stride` on, one block after another.
    pub theta: &'a [f64],
    /// Distance between rows of `theta` and `gradient`.
    pub stride: usize,
    /// Written: `log η_b` of each block of each row.
    pub log_density: &'a mut [f64],
    /// Written: gradients, laid out like `theta`.
    pub gradient: &'a mut [f64],
}

/// One row of a [`BlockBatch`].
#[derive(Debug)]
pub struct BlockRow<'a> {
    /// Keys of its blocks.
    pub keys: &'a [u64],
    /// Natural parameters of each block.
    pub dims: &'a [usize],
    /// Natural parameters, one block after another.
    pub theta: &'a [f64],
    /// Written: `log η_b`.
    pub log_density: &'a mut [f64],
    /// Written: gradients, laid out like `theta`.
    pub gradient: &'a mut [f64],
}

impl<'a> BlockBatch<'a> {
    /// Its rows, one by one.
    pub fn into_rows(self) -> Vec<BlockRow<'a>> {
        let Self { count, keys, dims, theta, stride, log_density, gradient } = self;
        let mut gradients = gradient.chunks_mut(stride.max(1));
        let rows = log_density.chunks_mut(count).enumerate().map(|(row, log_density)| BlockRow {
            keys: &keys[row * count..][..count],
            dims: &dims[row * count..][..count],
            theta: &theta[row * stride..][..stride],
            log_density,
            // A space without parameters still has rows.
            gradient: gradients.next().unwrap_or_default(),
        });
        rows.collect()
    }

    /// Calls `work` with every row, side by side on the host's threads; the error of the first row that has one.
    pub fn share_out(
        self,
        workers: &Workers,
        work: impl Fn(&mut BlockRow<'_>) -> Result<(), DensityError> + Sync,
    ) -> Result<(), BatchError> {
        let mut rows = self.into_rows();
        workers.try_for_each(&mut rows, |row, blocks| work(blocks).map_err(|error| BatchError { row, error }))
    }
}
