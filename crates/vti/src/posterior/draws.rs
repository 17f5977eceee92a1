//! Draws from the posterior.

use crate::space::Model;

/// Draws of models and parameters, with their densities. Parameters are natural ones, those of the model first, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draws {
    /// Symbols of a word.
    pub width: usize,
    /// Words, row-major.
    pub words: Vec<u16>,
    /// Room for parameters in each row.
    pub stride: usize,
    /// Parameters of each row.
    pub dims: Vec<usize>,
    /// Parameters: row r owns the first `dims[r]` numbers from `r · stride` on; the others are not numbers.
    pub theta: Vec<f64>,
    /// `log q(m)`.
    pub log_q_model: Vec<f64>,
    /// `log q(m, θ)`.
    pub log_q: Vec<f64>,
    /// `log p(m) + log p(y, θ | m)`, where it was asked for. Not a number where it could not be evaluated.
    pub log_target: Vec<f64>,
    /// The logarithm of the weight by which a family multiplies the target of a draw whose blocks can be rearranged
    /// ([`Blocks::log_arrangement`](crate::problem::Blocks::log_arrangement)); where the target was asked for.
    pub log_arrangement: Vec<f64>,
    /// Blocks of each draw, where each has a flow of its own and the target was asked for.
    pub blocks: BlockDraws,
}

/// Blocks of draws, one after another for each draw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockDraws {
    /// Their keys.
    pub keys: Vec<u64>,
    /// `log η_b(θ_b | k) − log q(θ_b | k)`.
    pub log_weights: Vec<f64>,
}

impl Draws {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.dims.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.dims.is_empty()
    }

    /// The word of a draw.
    pub fn word(&self, row: usize) -> &[u16] {
        &self.words[row * self.width..][..self.width]
    }

    /// The model of a draw.
    pub fn model(&self, row: usize) -> Model {
        self.word(row).into()
    }

    /// The parameters of a draw.
    pub fn theta(&self, row: usize) -> &[f64] {
        &self.theta[row * self.stride..][..self.dims[row]]
    }

    /// The logarithm of the target, with the weight of its arrangement, over q: the draw's importance weight. Not a number
    /// where the target was not asked for.
    pub fn log_ratio(&self, row: usize) -> f64 {
        let target = self.log_target.get(row).zip(self.log_arrangement.get(row));
        target.map_or(f64::NAN, |(log_target, log_arrangement)| log_target + log_arrangement - self.log_q[row])
    }

    /// Adds the draws of another batch.
    pub fn append(&mut self, mut other: Self) {
        (self.width, self.stride) = (other.width, other.stride);
        self.words.append(&mut other.words);
        self.dims.append(&mut other.dims);
        self.theta.append(&mut other.theta);
        self.log_q_model.append(&mut other.log_q_model);
        self.log_q.append(&mut other.log_q);
        self.log_target.append(&mut other.log_target);
        self.log_arrangement.append(&mut other.log_arrangement);
        self.blocks.keys.append(&mut other.blocks.keys);
        self.blocks.log_weights.append(&mut other.blocks.log_weights);
    }
}
