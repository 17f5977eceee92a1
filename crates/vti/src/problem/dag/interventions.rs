//! Known interventions: rows in which somebody set a node, whatever its parents were.
//!
//! A node that was set does not follow its equation in that row, so its own factor of the likelihood leaves the row out; the
//! factors of its children do not (the truncated factorisation of perfect interventions: Pearl 2000, Cooper and Yoo 1999).

use super::DagError;
use crate::graph::nodes_of;

/// In which rows which nodes were set from outside.
///
/// ```
/// use vti::problem::dag::Interventions;
/// // Nothing in the first row; node 1 in the second; nodes 0 and 1 in the third.
/// let set = Interventions::new(vec![0b00, 0b10, 0b11]);
/// assert_eq!(set.counts(2), [1, 2]);
/// assert_eq!(set.rows_without(0, 3), [0, 1]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interventions {
    /// By row, bit i for node i; empty where nothing was ever set.
    set: Vec<u64>,
}

impl Interventions {
    /// With fewer rows in which nothing was set, these are not what columns are centred on.
    pub const MIN_UNDISTURBED: usize = 10;

    /// From the nodes that were set in each row, a set whose bit i stands for node i.
    pub fn new(set: Vec<u64>) -> Self {
        if set.iter().all(|nodes| *nodes == 0) { Self::default() } else { Self { set } }
    }

    /// Whether nothing was ever set.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Whether a node was set in a row.
    pub fn is_set(&self, row: usize, node: usize) -> bool {
        self.set.get(row).is_some_and(|nodes| nodes.checked_shr(node as u32).unwrap_or(0) & 1 == 1)
    }

    /// The different sets of nodes that were set together.
    pub fn targets(&self) -> Vec<u64> {
        let mut targets: Vec<u64> = self.set.iter().copied().filter(|nodes| *nodes != 0).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// In how many rows each of so many nodes was set.
    pub fn counts(&self, nodes: usize) -> Vec<usize> {
        let mut counts = vec![0; nodes];
        for node in self.set.iter().flat_map(|set| nodes_of(*set)) {
            if let Some(count) = counts.get_mut(node) {
                *count += 1;
            }
        }
        counts
    }

    /// The rows, of so many, in which a node was not set.
    pub fn rows_without(&self, node: usize, rows: usize) -> Vec<usize> {
        (0..rows).filter(|&row| !self.is_set(row, node)).collect()
    }

    /// The rows, of so many, in which nothing was set.
    pub fn observational(&self, rows: usize) -> Vec<usize> {
        (0..rows).filter(|&row| self.set.get(row).is_none_or(|nodes| *nodes == 0)).collect()
    }

    /// The rows whose mean stands for a node's: those in which nothing was set, as what is set moves all that follows from it;
    /// where these are few, those in which the node was not set; where there are none, all.
    pub(super) fn reference(&self, node: usize, rows: usize) -> Vec<usize> {
        let undisturbed = self.observational(rows);
        if undisturbed.len() >= Self::MIN_UNDISTURBED.min(rows) {
            return undisturbed;
        }
        let own = self.rows_without(node, rows);
        if own.is_empty() { (0..rows).collect() } else { own }
    }

    /// As many rows as the table, and no other nodes.
    pub(super) fn check(&self, nodes: usize, rows: usize) -> Result<(), DagError> {
        if !self.is_empty() && self.set.len() != rows {
            return Err(DagError::SetRows { found: self.set.len(), rows });
        }
        let beyond = |set: &u64| nodes_of(*set).find(|&node| node >= nodes);
        match self.set.iter().enumerate().find_map(|(row, set)| Some((row, beyond(set)?))) {
            Some((row, node)) => Err(DagError::SetNode { row, node, nodes }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_apart() {
        let set: Vec<u64> = (0..30).map(|row| [0, 0b001, 0b110][row % 3]).collect();
        let set = Interventions::new(set);
        assert_eq!((set.counts(3), set.targets()), (vec![10, 10, 10], vec![0b001, 0b110]));
        assert!(set.is_set(1, 0) && !set.is_set(0, 0) && set.is_set(2, 2) && !set.is_set(99, 0) && !set.is_set(1, 64));
        assert_eq!(set.rows_without(0, 6), [0, 2, 3, 5]);
        assert_eq!(set.reference(0, 30), set.observational(30));
        // Few rows are undisturbed: those in which the node itself was not set.
        assert_eq!(set.reference(0, 27).len(), 18);
        assert_eq!(Interventions::new(vec![1; 4]).reference(0, 4), [0, 1, 2, 3]);
        assert!(Interventions::new(vec![0; 4]).is_empty());
    }

    #[test]
    fn what_does_not_belong_to_the_table_is_refused() {
        let set = Interventions::new(vec![0b01, 0b100]);
        assert_eq!(set.check(2, 2), Err(DagError::SetNode { row: 1, node: 2, nodes: 2 }));
        assert_eq!(set.check(3, 5), Err(DagError::SetRows { found: 2, rows: 5 }));
        assert_eq!((set.check(3, 2), Interventions::default().check(1, 7)), (Ok(()), Ok(())));
    }
}
