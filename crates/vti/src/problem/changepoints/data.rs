//! What changes: times of events, or rows in their order.

use thiserror::Error;

/// Events, or values in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub enum Series {
    /// Times of events between two ends.
    Events {
        /// Ascending; several may be equal, as where time was recorded in days.
        times: Vec<f64>,
        /// When observation began.
        start: f64,
        /// When it ended.
        end: f64,
    },
    /// A value in every row.
    Rows {
        /// Ascending, all different; 1, 2, … where rows have no times.
        times: Vec<f64>,
        /// Whether they have.
        timed: bool,
        /// Values.
        values: Vec<f64>,
        /// What counts are in proportion to beside their rate: duration, area, population. Empty if it is always the same.
        exposure: Vec<f64>,
    },
}

/// Data in which no change can be looked for.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SeriesError {
    /// A number that is infinite or not a number.
    #[error("row {row}: the {what} is not finite")]
    NotFinite {
        /// Which row, counted from 1.
        row: usize,
        /// What it is.
        what: &'static str,
    },
    /// A window of no length.
    #[error("observation begins at {start} and ends at {end}: the end must be later")]
    Window {
        /// Its start.
        start: f64,
        /// Its end.
        end: f64,
    },
    /// Events before the start or after the end.
    #[error(
        "{count} events are outside of the window from {start} to {end}; the first is in row {row}, at {time}\nhint: --start and --end say when observation began and ended"
    )]
    Outside {
        /// How many.
        count: usize,
        /// The row of the first, counted from 1.
        row: usize,
        /// Its time.
        time: f64,
        /// The start of the window.
        start: f64,
        /// Its end.
        end: f64,
    },
    /// Rows of one time, between which no change can lie.
    #[error(
        "rows {first} and {second} have the same time {time}: no change can lie between them\nhint: sum or average rows of one time"
    )]
    EqualTimes {
        /// A row, counted from 1.
        first: usize,
        /// Another.
        second: usize,
        /// Their time.
        time: f64,
    },
    /// A count that is none.
    #[error("row {row}: {value} is not a count (0, 1, 2, …)")]
    NotCount {
        /// Which row, counted from 1.
        row: usize,
        /// What stands there.
        value: f64,
    },
    /// An exposure that is not positive.
    #[error("row {row}: the exposure {value} is not positive")]
    Exposure {
        /// Which row, counted from 1.
        row: usize,
        /// What stands there.
        value: f64,
    },
    /// Too little to look for changes in.
    #[error("{found} {what} are too few, at least {needed} are needed")]
    TooFew {
        /// How many there are.
        found: usize,
        /// Of what.
        what: &'static str,
        /// How many there must be.
        needed: usize,
    },
    /// Columns of different lengths.
    #[error("there are {times} times and {values} values")]
    Length {
        /// Times.
        times: usize,
        /// Values, or exposures.
        values: usize,
    },
}

/// A series in order, and what is worth knowing about how it came to be.
type Ordered = (Series, Vec<String>);

impl Series {
    /// Events at these times, in any order, between `start` and `end`; where nobody says, from the first event to the last. Says
    /// what was found on the way: events out of order, at equal times.
    pub fn events(times: &[f64], start: Option<f64>, end: Option<f64>) -> Result<Ordered, SeriesError> {
        check_finite(times, "time")?;
        let mut remarks = Vec::new();
        let unordered = times.windows(2).filter(|pair| pair[0] > pair[1]).count();
        if unordered > 0 {
            let row = times.windows(2).position(|pair| pair[0] > pair[1]).map_or(0, |at| at + 2);
            remarks.push(format!(
                "events were sorted by time: {unordered} came before the one above them, the first in row {row}"
            ));
        }
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let equal = sorted.windows(2).filter(|pair| pair[0] == pair[1]).count();
        if equal > 0 {
            let first = sorted.windows(2).find(|pair| pair[0] == pair[1]).map_or(f64::NAN, |pair| pair[0]);
            remarks.push(format!(
                "{} the same time as another one, the first at {first}: no change lies between them",
                if equal == 1 { "1 event has".into() } else { format!("{equal} events have") }
            ));
        }
        let (Some(&first), Some(&last)) = (sorted.first(), sorted.last()) else {
            return Err(SeriesError::TooFew { found: 0, what: "events", needed: 1 });
        };
        if start.is_none() || end.is_none() {
            remarks.push(
                "the window ends with an event where nobody said otherwise, which makes rates a little too high: --start and --end \
                 say when observation began and ended"
                    .into(),
            );
        }
        let (start, end) = (start.unwrap_or(first), end.unwrap_or(last));
        if !(start < end && (end - start).is_finite()) {
            return Err(SeriesError::Window { start, end });
        }
        let is_outside = |time: &f64| !(start..=end).contains(time);
        if let Some(row) = times.iter().position(is_outside) {
            let count = times.iter().filter(|time| is_outside(time)).count();
            return Err(SeriesError::Outside { count, row: row + 1, time: times[row], start, end });
        }
        Ok((Self::Events { times: sorted, start, end }, remarks))
    }

    /// Values at these times, in any order; without times, in the order of rows.
    pub fn rows(values: &[f64], times: Option<&[f64]>, exposure: Option<&[f64]>) -> Result<Ordered, SeriesError> {
        check_finite(values, "value")?;
        let lengths = [times.map(<[f64]>::len), exposure.map(<[f64]>::len)];
        if let Some(other) = lengths.into_iter().flatten().find(|length| *length != values.len()) {
            return Err(SeriesError::Length { times: other, values: values.len() });
        }
        if values.len() < 2 {
            return Err(SeriesError::TooFew { found: values.len(), what: "rows", needed: 2 });
        }
        for (row, &value) in exposure.into_iter().flatten().enumerate() {
            if !(value > 0.0 && value.is_finite()) {
                return Err(SeriesError::Exposure { row: row + 1, value });
            }
        }
        let mut remarks = Vec::new();
        let mut order: Vec<usize> = (0..values.len()).collect();
        let timed = times.is_some();
        let times = match times {
            None => (1..=values.len()).map(|row| row as f64).collect(),
            Some(times) => {
                check_finite(times, "time")?;
                order.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
                if let Some(pair) = order.windows(2).find(|pair| times[pair[0]] == times[pair[1]]) {
                    let (first, second) = (pair[0] + 1, pair[1] + 1);
                    return Err(SeriesError::EqualTimes { first, second, time: times[pair[0]] });
                }
                let unordered = times.windows(2).filter(|pair| pair[0] > pair[1]).count();
                if unordered > 0 {
                    let row = times.windows(2).position(|pair| pair[0] > pair[1]).map_or(0, |at| at + 2);
                    remarks.push(format!(
                        "rows were sorted by time: {unordered} came before the one above them, the first is row {row}"
                    ));
                }
                order.iter().map(|&row| times[row]).collect()
            }
        };
        let sorted = |column: &[f64]| order.iter().map(|&row| column[row]).collect::<Vec<f64>>();
        let exposure = exposure.map_or_else(Vec::new, sorted);
        Ok((Self::Rows { times, timed, values: sorted(values), exposure }, remarks))
    }

    /// How many events or rows there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Events { times, .. } | Self::Rows { times, .. } => times.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where it begins and ends.
    pub fn ends(&self) -> (f64, f64) {
        match self {
            Self::Events { start, end, .. } => (*start, *end),
            Self::Rows { times, .. } => {
                (times.first().copied().unwrap_or(f64::NAN), times.last().copied().unwrap_or(f64::NAN))
            }
        }
    }

    /// Fails unless all values are counts.
    pub(super) fn check_counts(&self) -> Result<(), SeriesError> {
        let Self::Rows { values, .. } = self else { return Ok(()) };
        let bad = values.iter().position(|value| *value < 0.0 || value.fract() != 0.0);
        bad.map_or(Ok(()), |row| Err(SeriesError::NotCount { row: row + 1, value: values[row] }))
    }
}

fn check_finite(numbers: &[f64], what: &'static str) -> Result<(), SeriesError> {
    let bad = numbers.iter().position(|number| !number.is_finite());
    bad.map_or(Ok(()), |row| Err(SeriesError::NotFinite { row: row + 1, what }))
}
