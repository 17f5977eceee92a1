//! Which observations belong together.

/// How probable it is that each observation is from each component, given their most probable number. It is written to a file of its
/// own, and no part of `summary.json`: there are as many rows as in the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memberships {
    /// How many components there are.
    pub count: usize,
    /// Names of the columns.
    pub names: Vec<String>,
    /// Observations, row by row.
    pub values: Vec<Vec<f64>>,
    /// The probability of each component, row by row.
    pub probabilities: Vec<Vec<f64>>,
}
