//! Observations from a mixture that is known.

use super::Observations;
use crate::random::{Purpose, Stream};

/// A mixture to draw from.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// How large each component is; they need not sum to 1.
    pub weights: Vec<f64>,
    /// The mean of each, column by column.
    pub means: Vec<Vec<f64>>,
    /// The standard deviation of each in all columns.
    pub sds: Vec<f64>,
}

impl Truth {
    /// So many components in so many columns, whose neighbours are `separation` standard deviations apart: along the first column
    /// in order, along others back and forth.
    ///
    /// ```
    /// use vti::problem::mixture::simulate::Truth;
    /// let truth = Truth::apart(3, 1, 4.0);
    /// assert_eq!(truth.means, [[0.0], [4.0], [8.0]]);
    /// ```
    pub fn apart(components: usize, columns: usize, separation: f64) -> Self {
        let mean = |component: usize, column: usize| match column {
            0 => separation * component as f64,
            _ => separation * ((component + column) % 2) as f64,
        };
        Self {
            weights: vec![1.0; components],
            means: (0..components)
                .map(|component| (0..columns).map(|column| mean(component, column)).collect())
                .collect(),
            sds: vec![1.0; components],
        }
    }

    /// So many observations: a row of columns each, and the component it is from.
    pub fn draw(&self, rows: usize, seed: u64) -> (Vec<Vec<f64>>, Vec<usize>) {
        let columns = self.means.first().map_or(0, Vec::len);
        let total: f64 = self.weights.iter().sum();
        let (mut values, mut from) = (vec![Vec::with_capacity(rows); columns], Vec::with_capacity(rows));
        for row in 0..rows {
            let mut stream = Stream::new(seed, Purpose::Simulate, 0, row as u64);
            let (mut left, mut component) = (total * stream.uniform(), 0);
            while component + 1 < self.weights.len() && left >= self.weights[component] {
                left -= self.weights[component];
                component += 1;
            }
            for (column, values) in values.iter_mut().enumerate() {
                values.push(self.means[component][column] + self.sds[component] * stream.normal());
            }
            from.push(component);
        }
        (values, from)
    }

    /// The same as observations, in columns `x`, or `x1`, `x2`, ….
    pub fn observations(&self, rows: usize, seed: u64) -> Result<Observations, super::ObservationsError> {
        let (columns, _) = self.draw(rows, seed);
        Observations::new(names(columns.len()), columns)
    }
}

/// Names of so many columns.
pub fn names(columns: usize) -> Vec<String> {
    match columns {
        1 => vec!["x".into()],
        _ => (1..=columns).map(|column| format!("x{column}")).collect(),
    }
}
