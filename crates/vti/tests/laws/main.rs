//! Laws that every flow obeys, checked over one table of flows, contexts and dimensions, in both precisions.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::needless_range_loop)]

mod bijection;
mod cases;
mod cosmic;
mod gradients;
mod number;
mod operations;
mod plain;
mod robustness;
mod second_device;
mod slow;

use cases::{Case, table};
use vti::simd::Real;

/// More than one tile, not a multiple of one.
pub const ROWS: usize = 83;

/// Calls `law` for every case of the table with its own seed.
pub fn for_all(law: impl Fn(&Case, u64)) {
    for (seed, case) in (1..).zip(table()) {
        law(&case, seed);
    }
}

/// Largest difference, relative to numbers beyond 1.
pub fn max_error<T: Real>(found: &[T], expected: impl Iterator<Item = f64>) -> f64 {
    found.iter().zip(expected).fold(0.0, |worst, (found, expected)| {
        let error = (found.to_f64() - expected).abs() / (1.0 + expected.abs());
        if error.is_nan() { f64::INFINITY } else { worst.max(error) }
    })
}
