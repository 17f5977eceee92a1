//! Products of columns over the rows that count for a node: all that linear equations need to know of the data.

use super::{Interventions, NodeData};
use crate::triangular::dot;

/// Products of all pairs of columns, over all rows and, for each node that was set in some, over the others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Products {
    nodes: usize,
    /// Which of the tables counts for each node.
    table_of: Vec<usize>,
    tables: Vec<Table>,
}

#[derive(Clone, Debug, PartialEq)]
struct Table {
    rows: f64,
    sums: Vec<f64>,
    /// Row-major.
    products: Vec<f64>,
}

impl Table {
    fn new(columns: &[Vec<f64>]) -> Self {
        Self {
            rows: columns.first().map_or(0, Vec::len) as f64,
            sums: columns.iter().map(|column| column.iter().sum()).collect(),
            products: columns.iter().flat_map(|a| columns.iter().map(move |b| dot(a, b))).collect(),
        }
    }
}

impl Products {
    pub(super) fn new(table: &NodeData, interventions: &Interventions) -> Self {
        let (nodes, rows) = (table.columns.len(), table.rows());
        let mut tables = vec![Table::new(&table.columns)];
        let table_of = interventions.counts(nodes).into_iter().enumerate().map(|(node, set)| {
            if set > 0 {
                let kept = interventions.rows_without(node, rows);
                let columns: Vec<Vec<f64>> =
                    table.columns.iter().map(|column| kept.iter().map(|&row| column[row]).collect()).collect();
                tables.push(Table::new(&columns));
                return tables.len() - 1;
            }
            0
        });
        let table_of = table_of.collect();
        Self { nodes, table_of, tables }
    }

    /// With `(Σ x_a)(Σ x_b)/(N + α)` taken from each product: an intercept that counts as α rows, integrated out.
    pub(super) fn without_mean(mut self, alpha: f64) -> Self {
        for table in &mut self.tables {
            let share = (table.rows + alpha).recip();
            for (place, product) in table.products.iter_mut().enumerate() {
                *product -= share * table.sums[place / self.nodes] * table.sums[place % self.nodes];
            }
        }
        self
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    fn table(&self, node: usize) -> &Table {
        &self.tables[self.table_of[node]]
    }

    /// Rows that count for a node.
    pub(super) fn rows(&self, node: usize) -> f64 {
        self.table(node).rows
    }

    /// Σ x_a over the rows of `node`.
    pub(super) fn sum(&self, node: usize, a: usize) -> f64 {
        self.table(node).sums[a]
    }

    /// `x_aᵀ x_b` over the rows of `node`.
    pub(super) fn get(&self, node: usize, a: usize, b: usize) -> f64 {
        self.table(node).products[a * self.nodes + b]
    }
}
