//! The CPU engine: tiles of 64 rows, explicit registers in the products, a team of threads.

// Loops over the rows of a tile read several arrays at once and must stay simple enough to vectorise.
#![allow(clippy::needless_range_loop)]

mod lookup;
mod memory;
mod operations;
mod optimiser;
mod product;
mod residual;
pub mod simd;
mod spline;
mod team;
mod transform;
mod weights;
mod words;

use std::sync::Arc;

pub(crate) use self::memory::CpuBuffer;
use self::memory::{CpuMatrix, CpuRows};
use self::simd::{Instructions, Kernel};
use self::team::{Chunks, Team, for_each};
use super::Real;

/// Rows per tile: four 512-bit vectors of `f32`.
pub(crate) const TILE: usize = 64;

/// Work below this many multiply-adds is not worth waking another thread for.
const WORTH_A_THREAD: usize = 200_000;

/// Computes on this machine's cores.
///
/// ```
/// use vti::engine::{CpuEngine, Engine};
/// let engine = CpuEngine::<f64>::new(2)?;
/// let mut buffer = engine.buffer(3);
/// engine.write(&[3.0, 0.0, 4.0], &mut buffer);
/// let mut back = [0.0; 3];
/// engine.read(&buffer, &mut back);
/// assert_eq!(back, [3.0, 0.0, 4.0]);
/// # Ok::<(), vti::engine::cpu::ThreadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CpuEngine<T> {
    team: Option<Arc<Team>>,
    instructions: Instructions,
    precision: std::marker::PhantomData<T>,
}

/// The threads of an engine could not be started.
#[derive(Debug, thiserror::Error)]
#[error("could not start {threads} threads: {reason}")]
pub struct ThreadError {
    /// How many were asked for.
    pub threads: usize,
    /// What the system said.
    pub reason: String,
}

impl<T: Real> CpuEngine<T> {
    /// An engine on `threads` threads, the caller's included. Clones share them.
    pub fn new(threads: usize) -> Result<Self, ThreadError> {
        const MOST: usize = 1024;
        if threads > MOST {
            return Err(ThreadError { threads, reason: format!("at most {MOST} are supported") });
        }
        let team = match threads {
            0 | 1 => None,
            _ => Some(Team::new(threads).map_err(|error| ThreadError { threads, reason: error.to_string() })?),
        };
        let (team, instructions) = (team.map(Arc::new), Instructions::detect());
        Ok(Self { team, instructions, precision: std::marker::PhantomData })
    }

    /// An engine on the caller's thread alone.
    pub fn single() -> Self {
        Self { team: None, instructions: Instructions::detect(), precision: std::marker::PhantomData }
    }

    /// The same engine restricted to other instructions, if this machine has them: what tests compare with one another.
    pub fn with_instructions(mut self, instructions: Instructions) -> Self {
        if Instructions::available().contains(&instructions) {
            self.instructions = instructions;
        }
        self
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.team.as_ref().map_or(1, |team| team.threads())
    }

    /// The team, if `work` multiply-adds are worth its while.
    fn team_for(&self, work: usize) -> Option<&Team> {
        self.team.as_deref().filter(|_| work >= WORTH_A_THREAD)
    }

    /// Calls `work(tile, slice)` for each tile of a matrix.
    fn each_tile(&self, rows: &CpuRows, matrix: &mut CpuMatrix<T>, cost: usize, work: impl Fn(usize, &mut [T]) + Sync) {
        let (tiles, len) = (rows.tiles(), matrix.tile_len());
        for_each(self.team_for(tiles * cost), Chunks::new(&mut matrix.data, len), tiles, work);
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
        for_each(self.team_for(tiles * cost), pairs, tiles, |tile, (one, two)| work(tile, one, two));
    }

    fn run<K: Kernel<T>>(&self, kernel: K) -> K::Output {
        self.instructions.run(kernel)
    }
}
