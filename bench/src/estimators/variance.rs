//! Total variance of a vector that was estimated again and again.

/// Sums over the estimates seen so far.
pub(crate) struct Variance {
    count: f64,
    sum: Vec<f64>,
    squares: f64,
}

impl Variance {
    /// Of vectors of this length.
    pub(crate) fn new(len: usize) -> Self {
        Self { count: 0.0, sum: vec![0.0; len], squares: 0.0 }
    }

    /// Takes an estimate in.
    pub(crate) fn add(&mut self, estimate: impl Iterator<Item = f64>) {
        self.count += 1.0;
        for (sum, x) in self.sum.iter_mut().zip(estimate) {
            *sum += x;
            self.squares += x * x;
        }
    }

    /// The trace of the covariance.
    pub(crate) fn total(&self) -> f64 {
        let of_mean = self.sum.iter().map(|sum| sum * sum).sum::<f64>() / self.count;
        (self.squares - of_mean) / (self.count - 1.0)
    }
}
