//! Columns of the rows that count for a node, one after another.

use crate::simd::Real;

/// Columns are filled up with zeros to a multiple of this many rows: as many as any kernel takes at a time.
pub(super) const FILL: usize = 64;

/// Where the columns stand that count for a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// Where they begin.
    pub(super) start: usize,
    pub(super) rows: usize,
    /// Distance between columns.
    stride: usize,
}

impl View {
    /// Rows are filled up.
    pub(super) fn new(start: usize, rows: usize) -> Self {
        Self { start, rows, stride: rows.next_multiple_of(FILL) }
    }

    /// Memory for so many nodes and what is always 1.
    pub(super) fn len(self, nodes: usize) -> usize {
        (nodes + 1) * self.stride
    }

    /// Where the column of a node begins; that of what is always 1 comes before all.
    pub(super) fn column(self, node: usize) -> usize {
        self.start + (node + 1) * self.stride
    }

    /// Copies the columns to their places; `rows` are the numbers of those that count.
    pub(super) fn fill<T: Real>(self, to: &mut [T], columns: &[Vec<f64>], bias: bool, rows: &[usize]) {
        if bias {
            to[self.start..][..self.rows].fill(T::ONE);
        }
        for (node, column) in columns.iter().enumerate() {
            let to = &mut to[self.column(node)..][..self.rows];
            to.iter_mut().zip(rows).for_each(|(to, &row)| *to = T::from_f64(column[row]));
        }
    }
}
