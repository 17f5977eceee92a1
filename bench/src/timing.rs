//! Medians of measured times.

use std::time::Instant;

use anyhow::Result;

/// Seconds that `work` takes.
pub(crate) fn seconds(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// The median of times in seconds, in milliseconds.
pub(crate) fn milliseconds(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    1e3 * times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The shortest of times in seconds, in milliseconds.
pub(crate) fn fastest(times: &[f64]) -> f64 {
    1e3 * times.iter().copied().fold(f64::INFINITY, f64::min)
}
