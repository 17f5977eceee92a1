//! Draws as plots need them: with weights that sum to 1, or thinned until all count alike.

use vti::answer::Samples;

/// Draws with their weights.
pub(super) struct Draws<'a> {
    pub(super) samples: &'a Samples,
    pub(super) weights: Vec<f64>,
}

impl<'a> Draws<'a> {
    pub(super) fn new(samples: &'a Samples) -> Self {
        Self { samples, weights: samples.weights() }
    }

    /// Draws of a parameter that count, where the model has it.
    pub(super) fn rows_with(&self, parameter: usize) -> Vec<usize> {
        let counts = |&row: &usize| self.samples.value(row, parameter).is_some() && self.weights[row] > 0.0;
        (0..self.samples.len()).filter(counts).collect()
    }

    /// A parameter at these rows.
    pub(super) fn values(&self, rows: &[usize], parameter: usize) -> Vec<f64> {
        rows.iter().filter_map(|&row| self.samples.value(row, parameter)).collect()
    }

    /// At most so many rows, as often as their weights say (systematic resampling): they then count alike.
    pub(super) fn thin(&self, rows: &[usize], most: usize) -> Vec<usize> {
        self.samples.resample(&self.weights, rows, most.min(rows.len()))
    }
}
