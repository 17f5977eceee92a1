//! What optimisers have seen, read from a device when somebody asks.

/// The updates of a run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UpdateRecord {
    /// Updates by gradients that were finite.
    pub updates: u32,
    /// Gradients in a row, up to the last one, that were not finite.
    pub failures: u32,
    /// Norm of the last gradient, before clipping.
    pub norm: f64,
    /// Sum of the norms of all gradients so far, finite or not.
    pub norm_sum: f64,
}

impl UpdateRecord {
    /// The record after another gradient of this norm; whether it is to be followed.
    pub fn observe(&mut self, norm: f64) -> bool {
        self.norm = norm;
        self.norm_sum += norm;
        if norm.is_finite() {
            (self.updates, self.failures) = (self.updates.saturating_add(1), 0);
        } else {
            self.failures = self.failures.saturating_add(1);
        }
        norm.is_finite()
    }

    /// `1 − βᵗ` after t updates, this one included.
    pub fn bias_correction(&self, beta: f64) -> f64 {
        1.0 - beta.powi(i32::try_from(self.updates).unwrap_or(i32::MAX))
    }
}
