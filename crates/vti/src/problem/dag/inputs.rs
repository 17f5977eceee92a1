//! What equations take in: a column of numbers for each node of numbers, and columns that stand for categories.

use std::ops::Range;

use super::{Interventions, NodeData, NodeKind};
use crate::graph::nodes_of;

/// Where nodes stand among the columns of numbers that equations take in.
///
/// A node of two categories is 0 or 1; one of several in no order has a column for each, 1 where it is that category; ordered
/// categories are scores 0, 1, 2, …. Equations have no intercepts, so from all of these the mean is taken, and scores are divided by
/// their standard deviation: both of the rows that other columns are [centred](NodeData::scale_undisturbed) on.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    /// Columns before those of each node, and all.
    before: Vec<usize>,
    /// The columns with their names; none where all nodes are numbers and the table has them already.
    table: Option<NodeData>,
}

impl Inputs {
    pub(super) fn new(table: &NodeData, interventions: &Interventions) -> Self {
        let nodes = table.columns.len();
        if !(0..nodes).any(|node| table.categories(node).is_some()) {
            return Self { before: (0..=nodes).collect(), table: None };
        }
        let (mut before, mut names, mut columns) = (vec![0], Vec::new(), Vec::new());
        for (node, (name, column)) in table.names.iter().zip(&table.columns).enumerate() {
            let rows = interventions.reference(node, column.len());
            match table.kind(node) {
                NodeKind::Number => {
                    names.push(name.clone());
                    columns.push(column.clone());
                }
                NodeKind::Categories { levels, is_ordered } if *is_ordered || levels.len() == 2 => {
                    names.push(name.clone());
                    columns.push(centred(column.clone(), &rows, *is_ordered));
                }
                NodeKind::Categories { levels, .. } => {
                    for (place, level) in levels.iter().enumerate() {
                        let indicator = column.iter().map(|&x| f64::from(u8::from(x == place as f64))).collect();
                        names.push(format!("{name}={level}"));
                        columns.push(centred(indicator, &rows, false));
                    }
                }
            }
            before.push(columns.len());
        }
        Self { before, table: Some(NodeData::new(names, columns)) }
    }

    /// How many columns there are.
    pub(super) fn count(&self) -> usize {
        self.before[self.before.len() - 1]
    }

    /// Those of a node; none where there is no such node.
    pub(super) fn columns(&self, node: usize) -> Range<usize> {
        match self.before.get(node..node + 2) {
            Some([start, end]) => *start..*end,
            _ => 0..0,
        }
    }

    /// The first column of a node, and the set of the columns of its parents.
    pub(super) fn places(&self, node: usize, parents: u64) -> (usize, u64) {
        if self.table.is_none() {
            return (node, parents);
        }
        let columns = nodes_of(parents).flat_map(|parent| self.columns(parent));
        (self.columns(node).start, columns.fold(0, |set, column| set | 1 << column))
    }

    /// All columns with their names.
    pub(super) fn table<'a>(&'a self, table: &'a NodeData) -> &'a NodeData {
        self.table.as_ref().unwrap_or(table)
    }

    /// In which rows which columns were set.
    pub(super) fn interventions(&self, interventions: &Interventions, rows: usize) -> Interventions {
        if self.table.is_none() {
            return interventions.clone();
        }
        let nodes = self.before.len() - 1;
        let set = |row: usize| {
            let nodes = (0..nodes).filter(|&node| interventions.is_set(row, node));
            nodes.fold(0, |set, node| set | 1 << self.columns(node).start)
        };
        Interventions::new((0..rows).map(set).collect())
    }
}

/// Less the mean of some rows and, if that is wanted, divided by their standard deviation.
fn centred(mut column: Vec<f64>, rows: &[usize], is_scaled: bool) -> Vec<f64> {
    let count = rows.len().max(1) as f64;
    let mean = rows.iter().map(|&row| column[row]).sum::<f64>() / count;
    column.iter_mut().for_each(|x| *x -= mean);
    let spread = (rows.iter().map(|&row| column[row] * column[row]).sum::<f64>() / count).sqrt();
    if is_scaled && spread > 0.0 {
        column.iter_mut().for_each(|x| *x /= spread);
    }
    column
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> NodeData {
        let levels = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let kind = |names: &[&str], is_ordered| NodeKind::Categories { levels: levels(names), is_ordered };
        NodeData {
            names: ["x", "two", "three", "size"].map(String::from).to_vec(),
            columns: vec![
                vec![0.5, -0.5, 2.0, -2.0],
                vec![0.0, 1.0, 1.0, 1.0],
                vec![2.0, 0.0, 1.0, 0.0],
                vec![0.0, 2.0, 2.0, 0.0],
            ],
            kinds: vec![
                NodeKind::Number,
                kind(&["no", "yes"], false),
                kind(&["a", "b", "c"], false),
                kind(&["low", "mid", "high"], true),
            ],
        }
    }

    #[test]
    fn categories_become_columns() {
        let (table, none) = (table(), Interventions::default());
        let inputs = Inputs::new(&table, &none);
        let found = inputs.table(&table);
        assert_eq!(found.names, ["x", "two", "three=a", "three=b", "three=c", "size"]);
        assert_eq!(found.columns[0], table.columns[0]);
        assert_eq!(found.columns[1], [-0.75, 0.25, 0.25, 0.25]);
        assert_eq!(found.columns[2], [-0.5, 0.5, -0.5, 0.5]);
        assert_eq!(found.columns[4], [0.75, -0.25, -0.25, -0.25]);
        assert_eq!(found.columns[5], [-1.0, 1.0, 1.0, -1.0]);
        assert_eq!((inputs.count(), inputs.places(3, 0b0111)), (6, (5, 0b011111)));
        assert_eq!(inputs.places(0, 0b1010), (0, 0b100010));
        let set = inputs.interventions(&Interventions::new(vec![0, 0b1000, 0, 0b0001]), 4);
        assert!(set.is_set(1, 5) && set.is_set(3, 0) && set.counts(6).iter().sum::<usize>() == 2);
    }

    #[test]
    fn numbers_alone_stay_where_they_are() {
        let table = NodeData::new(vec!["a".into(), "b".into()], vec![vec![1.0, 2.0], vec![3.0, 5.0]]);
        let inputs = Inputs::new(&table, &Interventions::default());
        assert!(std::ptr::eq(inputs.table(&table), &table));
        assert_eq!((inputs.count(), inputs.places(1, 0b01), inputs.columns(1)), (2, (1, 0b01), 1..2));
    }

    /// Rows in which a node was set have no part in its mean.
    #[test]
    fn means_are_those_of_undisturbed_rows() {
        let mut table = table();
        table.columns.iter_mut().for_each(|column| *column = column.repeat(6));
        let set = Interventions::new((0..24).map(|row| if row % 4 == 0 { 0b10 } else { 0 }).collect());
        let inputs = Inputs::new(&table, &set);
        assert_eq!(inputs.table(&table).columns[1][..4], [-1.0, 0.0, 0.0, 0.0]);
    }
}
