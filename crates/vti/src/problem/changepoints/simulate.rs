//! Series with known changes.
//!
//! ```
//! use vti::problem::changepoints::simulate::{SimulateSettings, simulate};
//! let simulated = simulate(&SimulateSettings::default())?;
//! assert_eq!((simulated.series.len(), simulated.positions.len()), (200, 3));
//! # Ok::<(), vti::optimise::SettingError>(())
//! ```

use serde::{Deserialize, Serialize};

use super::{Kind, Series};
use crate::optimise::SettingError;
use crate::random::{Purpose, Stream};

/// What to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimulateSettings {
    /// What is constant between changes.
    pub kind: Kind,
    /// Rows; of events about how many there are.
    pub rows: usize,
    /// Changes, at equal distances.
    pub changes: usize,
    /// By how much levels differ from each other, in standard deviations of the noise; rates by the factor 1 + size.
    pub size: f64,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for SimulateSettings {
    fn default() -> Self {
        Self { kind: Kind::Means, rows: 200, changes: 3, size: 2.0, seed: 0 }
    }
}

/// A series, and what it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// The series.
    pub series: Series,
    /// Where its changes are.
    pub positions: Vec<f64>,
}

/// A series with changes at equal distances, between levels that go up and down in turn. Noise has the standard deviation 1.
pub fn simulate(settings: &SimulateSettings) -> Result<Simulated, SettingError> {
    let SimulateSettings { kind, rows, changes, size, seed } = *settings;
    SettingError::check("rows", rows as f64, rows > changes + 1, "more than the segments")?;
    SettingError::check("size", size, size.is_finite() && size >= 0.0, "0 or more")?;
    let mut stream = Stream::new(seed, Purpose::Simulate, 0, 0);
    let length = rows as f64;
    let place = |change: usize| (rows * change).div_ceil(changes + 1);
    let segment = |row: usize| (1..=changes).filter(|&change| row >= place(change)).count();
    let high = |segment: usize| !segment.is_multiple_of(2);
    let series = if kind == Kind::Events {
        // About as many events as rows: one per unit of time.
        let mean = if changes == 0 { 1.0 } else { 1.0 + 0.5 * size };
        let rates = [1.0 / mean, (1.0 + size) / mean];
        let ends: Vec<f64> = (0..=changes + 1).map(|end| length * end as f64 / (changes as f64 + 1.0)).collect();
        let mut times = Vec::new();
        for (number, ends) in ends.windows(2).enumerate() {
            let count = stream.poisson(rates[usize::from(high(number))] * (ends[1] - ends[0])) as usize;
            times.extend((0..count).map(|_| ends[0] + (ends[1] - ends[0]) * stream.uniform()));
        }
        times.sort_by(f64::total_cmp);
        Series::Events { times, start: 0.0, end: length }
    } else {
        let value = |row: usize| {
            let number = segment(row);
            match kind {
                Kind::Counts => stream.poisson(4.0 * if high(number) { 1.0 + size } else { 1.0 }),
                Kind::Slopes => {
                    let (start, end) = (place(number) as f64, place(number + 1).min(rows) as f64);
                    let share = (row as f64 - start) / (end - start);
                    2.0 * size * if high(number) { 1.0 - share } else { share } + stream.normal()
                }
                Kind::Means | Kind::Events => f64::from(u8::from(high(number))) * size + stream.normal(),
            }
        };
        let values = (0..rows).map(value).collect();
        let times = (1..=rows).map(|row| row as f64).collect();
        Series::Rows { times, timed: false, values, exposure: Vec::new() }
    };
    let position = |change: usize| match kind {
        Kind::Events => length * change as f64 / (changes as f64 + 1.0),
        _ => place(change) as f64 + 0.5,
    };
    Ok(Simulated { series, positions: (1..=changes).map(position).collect() })
}
