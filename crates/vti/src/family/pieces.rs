//! The pieces that rows of a batch are mapped in: a row as a whole, or each of its blocks.

use std::ops::Range;

use crate::space::ModelSpace;

/// Pieces of the rows of a batch: `count` for each row, all equally many, some perhaps without coordinates.
///
/// Coordinates of a row start at `row · d_max`. Where one flow makes all of them they stand left-aligned. Where each block has
/// a flow of its own (`split`) those of block b stand left-aligned from `b · width` on.
pub(super) struct Pieces {
    pub(super) count: usize,
    pub(super) split: bool,
    width: usize,
    stride: usize,
    /// Coordinates of θ of all pieces, one after another.
    active: Vec<u32>,
    /// Where those of each piece begin, and where the last ends.
    begins: Vec<usize>,
    /// First place of each piece.
    first: Vec<usize>,
    /// Keys of blocks; none where a row is one piece.
    keys: Vec<u64>,
    mask: Vec<bool>,
    row_keys: Vec<u64>,
}

impl Pieces {
    /// Pieces are blocks where the density has factors.
    pub(super) fn new(space: &dyn ModelSpace, factored: bool, split: bool, capacity: usize) -> Self {
        let stride = space.max_dim();
        let blocks = space.blocks().filter(|_| factored);
        let (count, width) = blocks.map_or((1, stride), |blocks| (blocks.count(), blocks.width()));
        Self {
            count,
            split,
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
        if self.split { self.count } else { 1 }
    }

    pub(super) fn clear(&mut self) {
        self.active.clear();
        self.begins.clear();
        self.begins.push(0);
        self.first.clear();
        self.keys.clear();
    }

    /// Adds the pieces of a row; one that is left out has no coordinates.
    pub(super) fn push(&mut self, space: &dyn ModelSpace, word: &[u16], left_out: bool) {
        let row_start = self.first.len() / self.count * self.stride;
        let row_active = self.active.len();
        let blocks = space.blocks().filter(|_| !self.row_keys.is_empty());
        if let Some(blocks) = blocks {
            blocks.keys(word, &mut self.row_keys);
            self.keys.extend_from_slice(&self.row_keys);
        }
        for piece in 0..self.count {
            let offset = if self.split { piece * self.width } else { self.active.len() - row_active };
            self.first.push(row_start + offset);
            if !left_out {
                match blocks {
                    Some(blocks) => blocks.mark_block(piece, self.row_keys[piece], &mut self.mask),
                    None => space.mark_active(word, &mut self.mask),
                }
                let start = piece * self.width;
                let marked = (0..self.width).filter(|&c| self.mask[c]);
                self.active.extend(marked.map(|c| (start + c) as u32));
            }
            self.begins.push(self.active.len());
        }
    }

    /// All pieces of a row.
    pub(super) fn of_row(&self, row: usize) -> Range<usize> {
        row * self.count..(row + 1) * self.count
    }

    /// Which block a piece is.
    pub(super) fn block(&self, piece: usize) -> usize {
        piece % self.count
    }

    /// Keys of all pieces, where they are blocks.
    pub(super) fn keys(&self) -> &[u64] {
        &self.keys
    }

    pub(super) fn dim(&self, piece: usize) -> usize {
        self.begins[piece + 1] - self.begins[piece]
    }

    /// Coordinates of θ that a piece uses.
    pub(super) fn active(&self, piece: usize) -> &[u32] {
        &self.active[self.begins[piece]..self.begins[piece + 1]]
    }

    /// Coordinates of θ that a row uses.
    pub(super) fn row_active(&self, row: usize) -> &[u32] {
        &self.active[self.begins[row * self.count]..self.begins[(row + 1) * self.count]]
    }

    /// Where the numbers of a piece stand.
    pub(super) fn place(&self, piece: usize) -> Range<usize> {
        self.first[piece]..self.first[piece] + self.dim(piece)
    }

    /// Where the numbers of a row stand, in order of its coordinates.
    pub(super) fn places(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        self.of_row(row).flat_map(|piece| self.place(piece))
    }
}
