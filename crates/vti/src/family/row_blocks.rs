//! The blocks of the rows of a batch: those of the problem, or each row as one block.

use std::ops::Range;

use crate::problem::{Blocks, Problem};

/// Blocks of the rows of a batch: `count` for each row, all equally many, some perhaps without coordinates.
///
/// Coordinates of a row start at `row · d_max`. Where one flow makes all of them they stand left-aligned. Where each block has
/// a flow of its own (`blockwise`) those of block b stand left-aligned from `b · width` on.
pub(super) struct RowBlocks {
    pub(super) count: usize,
    pub(super) blockwise: bool,
    width: usize,
    stride: usize,
    /// Coordinates of θ of all blocks, one after another.
    active: Vec<u32>,
    /// Where those of each block begin, and where the last ends.
    begins: Vec<usize>,
    /// First place of each block.
    first: Vec<usize>,
    /// Their keys; none where a row is one block.
    keys: Vec<u64>,
    mask: Vec<bool>,
    row_keys: Vec<u64>,
}

impl RowBlocks {
    /// The problem's blocks, or each row as one.
    pub(super) fn new(problem: &dyn Problem, blockwise: bool, capacity: usize) -> Self {
        let stride = problem.space().max_dim();
        let blocks = problem.blocks();
        let (count, width) = blocks.map_or((1, stride), |blocks| (blocks.count(), blocks.width()));
        Self {
            count,
            blockwise,
            width,
            stride,
            active: Vec::with_capacity(capacity * stride),
            begins: Vec::with_capacity(capacity * count + 1),
            first: Vec::with_capacity(capacity * count),
            keys: Vec::with_capacity(if blocks.is_some() { capacity * count } else { 0 }),
            mask: vec![false; width],
            row_keys: vec![0; if blocks.is_some() { count } else { 0 }],
        }
    }

    /// Rows of the flow for each row of the batch.
    pub(super) fn flow_rows(&self) -> usize {
        if self.blockwise { self.count } else { 1 }
    }

    pub(super) fn clear(&mut self) {
        self.active.clear();
        self.begins.clear();
        self.begins.push(0);
        self.first.clear();
        self.keys.clear();
    }

    /// Adds the blocks of a row; one that is left out has no coordinates.
    pub(super) fn push(&mut self, problem: &dyn Problem, word: &[u16], left_out: bool) {
        let row_start = self.first.len() / self.count * self.stride;
        let row_active = self.active.len();
        let blocks: Option<&dyn Blocks> = problem.blocks();
        if let Some(blocks) = blocks {
            blocks.keys(word, &mut self.row_keys);
            self.keys.extend_from_slice(&self.row_keys);
        }
        for row_block in 0..self.count {
            let offset = if self.blockwise { row_block * self.width } else { self.active.len() - row_active };
            self.first.push(row_start + offset);
            if !left_out {
                match blocks {
                    Some(blocks) => blocks.mark_active(row_block, self.row_keys[row_block], &mut self.mask),
                    None => problem.space().mark_active(word, &mut self.mask),
                }
                let start = row_block * self.width;
                let marked = (0..self.width).filter(|&c| self.mask[c]);
                self.active.extend(marked.map(|c| (start + c) as u32));
            }
            self.begins.push(self.active.len());
        }
    }

    /// All blocks of a row.
    pub(super) fn of_row(&self, row: usize) -> Range<usize> {
        row * self.count..(row + 1) * self.count
    }

    /// Which of its row's blocks it is.
    pub(super) fn block(&self, row_block: usize) -> usize {
        row_block % self.count
    }

    /// Keys of all blocks, where the problem has blocks.
    pub(super) fn keys(&self) -> &[u64] {
        &self.keys
    }

    pub(super) fn dim(&self, row_block: usize) -> usize {
        self.begins[row_block + 1] - self.begins[row_block]
    }

    /// Coordinates of θ that a block uses.
    pub(super) fn active(&self, row_block: usize) -> &[u32] {
        &self.active[self.begins[row_block]..self.begins[row_block + 1]]
    }

    /// Coordinates of θ that a row uses.
    pub(super) fn row_active(&self, row: usize) -> &[u32] {
        &self.active[self.begins[row * self.count]..self.begins[(row + 1) * self.count]]
    }

    /// Where the numbers of a block stand.
    pub(super) fn place(&self, row_block: usize) -> Range<usize> {
        self.first[row_block]..self.first[row_block] + self.dim(row_block)
    }

    /// Where the numbers of a row stand, in order of its coordinates.
    pub(super) fn places(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        self.of_row(row).flat_map(|row_block| self.place(row_block))
    }
}
