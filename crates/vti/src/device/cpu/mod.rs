//! The CPU device: tiles of 64 rows, explicit registers in the products, the host's own threads.

// Loops over the rows of a tile read several arrays at once and must stay simple enough to vectorise.
#![allow(clippy::needless_range_loop)]

mod lookup;
mod memory;
mod operations;
mod optimiser;
mod product;
mod residual;
mod spline;
mod transform;
mod weights;
mod words;

use self::memory::{CpuMatrix, CpuRows};
use crate::simd::{Instructions, Kernel, Real};
use crate::workers::{Chunks, ThreadError, Workers};

/// Rows per tile: four 512-bit vectors of `f32`.
pub(crate) const TILE: usize = 64;

/// Work below this many multiply-adds is not worth waking another thread for.
const WORTH_A_THREAD: usize = 200_000;

/// Computes on this machine's cores.
///
/// ```
/// use vti::device::{Cpu, Device};
/// let device = Cpu::<f64>::new(2)?;
/// let mut buffer = device.buffer(3)?;
/// device.write(&[3.0, 0.0, 4.0], &mut buffer)?;
/// let mut back = [0.0; 3];
/// device.read(&buffer, &mut back)?;
/// assert_eq!(back, [3.0, 0.0, 4.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cpu<T> {
    workers: Workers,
    instructions: Instructions,
    precision: std::marker::PhantomData<T>,
}

impl<T: Real> Cpu<T> {
    /// A device on `threads` threads, the caller's included. Clones share them.
    pub fn new(threads: usize) -> Result<Self, ThreadError> {
        Ok(Self::on(Workers::new(threads)?))
    }

    /// A device on the caller's thread alone.
    pub fn single() -> Self {
        Self::on(Workers::SINGLE)
    }

    /// A device on threads that others may share.
    pub fn on(workers: Workers) -> Self {
        Self { workers, instructions: Instructions::detect(), precision: std::marker::PhantomData }
    }

    /// The same device restricted to other instructions, if this machine has them: what tests compare with one another.
    pub fn with_instructions(mut self, instructions: Instructions) -> Self {
        if Instructions::available().contains(&instructions) {
            self.instructions = instructions;
        }
        self
    }

    /// All threads, or the caller's alone where `work` multiply-adds are not worth waking another.
    fn workers_for(&self, work: usize) -> &Workers {
        if work >= WORTH_A_THREAD { &self.workers } else { &Workers::SINGLE }
    }

    /// Calls `work(tile, slice)` for each tile of a matrix.
    fn each_tile(&self, rows: &CpuRows, matrix: &mut CpuMatrix<T>, cost: usize, work: impl Fn(usize, &mut [T]) + Sync) {
        let (tiles, len) = (rows.tiles(), matrix.tile_len());
        self.workers_for(tiles * cost).for_each_part(Chunks::new(&mut matrix.data, len), tiles, work);
    }

    /// Calls `work(tile, slice, slice)` for each tile of two matrices.
    fn each_tile_pair(
        &self,
        rows: &CpuRows,
        (one, two): (&mut CpuMatrix<T>, &mut CpuMatrix<T>),
        cost: usize,
        work: impl Fn(usize, &mut [T], &mut [T]) + Sync,
    ) {
        let (tiles, len_one, len_two) = (rows.tiles(), one.tile_len(), two.tile_len());
        let pairs = (Chunks::new(&mut one.data, len_one), Chunks::new(&mut two.data, len_two));
        let workers = self.workers_for(tiles * cost);
        workers.for_each_part(pairs, tiles, |tile, (one, two)| work(tile, one, two));
    }

    fn run<K: Kernel<T>>(&self, kernel: K) -> K::Output {
        self.instructions.run(kernel)
    }
}
