//! Changes between rows: sums over all places by recursion over segments (Fearnhead 2006), in time of the order of n² for each
//! number of changes.

use super::segments::Segments;
use crate::random::Stream;
use crate::stats::log_sum_exp;

/// Terms smaller than the largest by so many nats change no digit.
const NEGLIGIBLE: f64 = 40.0;

/// A sum of exponentials that grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogSum {
    top: f64,
    sum: f64,
}

impl LogSum {
    pub(super) const EMPTY: Self = Self { top: f64::NEG_INFINITY, sum: 0.0 };

    /// Adds `exp(log)`.
    #[inline]
    pub(super) fn add(&mut self, log: f64) {
        if log <= self.top {
            if log > self.top - NEGLIGIBLE {
                self.sum += (log - self.top).exp();
            }
        } else if log.is_nan() || log == f64::INFINITY {
            *self = Self { top: f64::NAN, sum: f64::NAN };
        } else if log > f64::NEG_INFINITY {
            self.sum = self.sum * (self.top - log).exp() + 1.0;
            self.top = log;
        }
    }

    /// The logarithm of the sum.
    pub(super) fn value(self) -> f64 {
        if self.sum == 0.0 { f64::NEG_INFINITY } else { self.top + self.sum.ln() }
    }
}

/// Which segments are long enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    /// For each place the first at which a segment from it may end; one more than there are where none may.
    first_end: Vec<usize>,
}

impl Allowed {
    /// Segments of at least so many rows, and of at least this length. A place between two rows is in the middle of their times,
    /// and the first and the last are at the first and the last row.
    pub(super) fn new(times: &[f64], rows: usize, length: f64) -> Self {
        let count = times.len();
        let first_end = (0..=count).map(|from| {
            let mut to = (from + rows.max(1)).min(count + 1);
            while to <= count && boundary(times, to) - boundary(times, from) < length {
                to += 1;
            }
            to
        });
        Self { first_end: first_end.collect() }
    }

    /// Where a segment from here may end at the earliest.
    pub(super) fn first_end(&self, from: usize) -> usize {
        self.first_end[from]
    }

    fn places(&self) -> usize {
        self.first_end.len()
    }

    /// How many changes fit at most.
    pub(super) fn room(&self) -> usize {
        let (mut at, mut segments) = (0, 0usize);
        while at < self.places() - 1 && self.first_end[at] < self.places() {
            at = self.first_end[at];
            segments += 1;
        }
        segments.saturating_sub(1)
    }

    /// The logarithm of the number of sets of 0, 1, …, `most` places.
    pub(super) fn log_sets(&self, most: usize) -> Vec<f64> {
        let last = self.places() - 1;
        let reaches = |from: usize| from < last && self.first_end[from] <= last;
        let mut sets: Vec<f64> = (0..=last).map(|from| if reaches(from) { 0.0 } else { f64::NEG_INFINITY }).collect();
        let mut found = vec![sets[0]];
        for _ in 0..most {
            // Sums over all later places.
            let mut after = vec![f64::NEG_INFINITY; last + 2];
            for from in (0..last).rev() {
                after[from] = log_sum_exp(&[after[from + 1], sets[from]]);
            }
            sets = (0..=last).map(|from| after[self.first_end[from].min(last + 1)]).collect();
            found.push(sets[0]);
        }
        found
    }
}

/// Where a place between rows is on the axis of time.
pub(super) fn boundary(times: &[f64], place: usize) -> f64 {
    match place {
        0 => times[0],
        _ if place >= times.len() => times[times.len() - 1],
        _ => 0.5 * (times[place - 1] + times[place]),
    }
}

/// Log sums over all sets of 0, 1, … places: of the rows behind each place, and of those before it.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    /// `[k][place]`.
    behind: Vec<Vec<f64>>,
    before: Vec<Vec<f64>>,
}

impl Sums {
    /// Of at most `most` changes, behind places only.
    pub(super) fn new(segments: &impl Segments, allowed: &Allowed, most: usize) -> Self {
        let last = segments.rows();
        let mut behind = vec![vec![f64::NEG_INFINITY; last + 1]; most + 1];
        let mut sums = vec![LogSum::EMPTY; most];
        for from in (0..last).rev() {
            let first = allowed.first_end(from);
            if first > last {
                continue;
            }
            sums.fill(LogSum::EMPTY);
            for to in first..last {
                let log_evidence = segments.log_evidence(from, to);
                for (sum, behind) in sums.iter_mut().zip(&behind) {
                    sum.add(log_evidence + behind[to]);
                }
            }
            behind[0][from] = segments.log_evidence(from, last);
            for (changes, sum) in sums.iter().enumerate() {
                behind[changes + 1][from] = sum.value();
            }
        }
        Self { behind, before: Vec::new() }
    }

    /// With the sums of what is before places, too.
    pub(super) fn look_before(&mut self, segments: &impl Segments, allowed: &Allowed) {
        let (last, most) = (segments.rows(), self.behind.len() - 1);
        let mut before = vec![vec![f64::NEG_INFINITY; last + 1]; most + 1];
        let mut sums = vec![LogSum::EMPTY; most];
        for to in 1..=last {
            sums.fill(LogSum::EMPTY);
            for from in (1..to).filter(|&from| allowed.first_end(from) <= to) {
                let log_evidence = segments.log_evidence(from, to);
                for (sum, before) in sums.iter_mut().zip(&before) {
                    sum.add(log_evidence + before[from]);
                }
            }
            if allowed.first_end(0) <= to {
                before[0][to] = segments.log_evidence(0, to);
            }
            for (changes, sum) in sums.iter().enumerate() {
                before[changes + 1][to] = sum.value();
            }
        }
        self.before = before;
    }

    /// The log sum over all sets of so many places.
    pub(super) fn total(&self, changes: usize) -> f64 {
        self.behind[changes][0]
    }

    /// Adds, for each place, `exp(log_weights[k])` times the sum over all sets of k places of which it is one; what is before
    /// places must be known.
    pub(super) fn add_places(&self, log_weights: &[f64], expected: &mut [f64]) {
        let last = expected.len().saturating_sub(1);
        for (place, expected) in expected.iter_mut().enumerate().take(last).skip(1) {
            let mut sum = LogSum::EMPTY;
            for (changes, log_weight) in log_weights.iter().enumerate().skip(1) {
                for before in 0..changes {
                    sum.add(log_weight + self.before[before][place] + self.behind[changes - 1 - before][place]);
                }
            }
            *expected += sum.value().exp();
        }
    }

    /// Draws a set of so many places from the posterior.
    pub(super) fn draw(
        &self,
        segments: &impl Segments,
        allowed: &Allowed,
        changes: usize,
        stream: &mut Stream,
    ) -> Vec<usize> {
        let (mut places, mut from) = (Vec::with_capacity(changes), 0);
        for left in (0..changes).rev() {
            let first = allowed.first_end(from);
            let log = |to: usize| segments.log_evidence(from, to) + self.behind[left][to];
            // The sum of all is what stands at the place itself.
            let total = self.behind[left + 1][from];
            let mut goal = stream.uniform();
            let mut chosen = first;
            for to in first..segments.rows() {
                let share = (log(to) - total).exp();
                if share > 0.0 {
                    chosen = to;
                }
                goal -= share;
                if goal <= 0.0 {
                    break;
                }
            }
            places.push(chosen);
            from = chosen;
        }
        places
    }
}
