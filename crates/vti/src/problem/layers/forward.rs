//! From an earth to the data it would give.

use std::fmt;

use crate::problem::DensityError;
use crate::workers::Workers;

/// A layered earth: a property of every layer, and where each layer below the first begins. The last one has no end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Earth {
    /// Depths of the interfaces, ascending: one less than layers.
    pub depths: Vec<f64>,
    /// The property of every layer, from the top.
    pub values: Vec<f64>,
}

impl Earth {
    /// The property at a depth.
    ///
    /// ```
    /// use vti::problem::layers::Earth;
    /// let earth = Earth { depths: vec![10.0], values: vec![100.0, 5.0] };
    /// assert_eq!((earth.at(9.0), earth.at(10.0)), (100.0, 5.0));
    /// ```
    pub fn at(&self, depth: f64) -> f64 {
        let layer = self.depths.partition_point(|top| *top <= depth);
        self.values.get(layer).copied().unwrap_or(f64::NAN)
    }
}

/// How data are shown: some of the numbers that are predicted, over an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// What they are.
    pub name: String,
    /// The axis in words.
    pub x_label: String,
    /// What they are over.
    pub x: Vec<f64>,
    /// Whether equal ratios of it take equal room.
    pub is_log: bool,
    /// The first of them.
    pub first: usize,
    /// Whether they are logarithms to the base of 10, of which numbers are shown.
    pub is_power: bool,
}

/// What predicts data. One that can differentiate itself says so; one that is asked for many earths at once, too.
pub trait Forward: fmt::Debug + Send + Sync {
    /// How many numbers are predicted.
    fn len(&self) -> usize;

    /// Whether none is.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What each earth would give, one after another; not a number where it gives nothing.
    fn predict(&self, earths: &[Earth], predicted: &mut [f64], workers: &Workers) -> Result<(), DensityError>;

    /// How its data are shown.
    fn views(&self) -> Vec<View> {
        Vec::new()
    }

    /// Units of depths and of the property, where they are known.
    fn units(&self) -> Option<[&'static str; 2]> {
        None
    }

    /// Whether it wants as many earths at once as there are.
    fn is_batched(&self) -> bool {
        false
    }

    /// Whether [`Forward::pull_back`] is there.
    fn has_gradient(&self) -> bool {
        false
    }

    /// From the derivative of anything with respect to what is predicted to that with respect to depths and values, which it is
    /// added to.
    fn pull_back(&self, earth: &Earth, by_predicted: &[f64], by_depth: &mut [f64], by_value: &mut [f64]) {
        let _ = (earth, by_predicted, by_depth, by_value);
    }
}
