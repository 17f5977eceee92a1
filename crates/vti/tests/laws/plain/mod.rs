//! A second device, plain and slow, on which everything runs unchanged: what a device must do is all in its trait.
//!
//! Matrices are lists of rows, and every row computes exactly what it needs. It can be told to fail, or to do wrong.

mod memory;
mod operations;
mod symbols;
mod transforms;
mod updates;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vti::device::DeviceError;
use vti::workers::Workers;

/// What is wrong with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    /// The operation of this number, counted from 1, fails.
    Operation(u64),
    /// Where saturated rows are read, the first inactive coordinate of each is written too.
    Inactive,
}

/// The device. Clones count their operations together.
#[derive(Clone)]
pub struct Plain {
    workers: Workers,
    fault: Fault,
    operations: Arc<AtomicU64>,
}

impl Plain {
    pub fn new(workers: Workers, fault: Fault) -> Self {
        Self { workers, fault, operations: Arc::default() }
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::SeqCst)
    }

    /// Begins an operation.
    fn begin(&self, operation: &'static str) -> Result<(), DeviceError> {
        let number = 1 + self.operations.fetch_add(1, Ordering::SeqCst);
        if self.fault == Fault::Operation(number) {
            return Err(DeviceError::Failed { operation, reason: format!("it is number {number}") });
        }
        Ok(())
    }
}
