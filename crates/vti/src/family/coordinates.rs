//! From the flow's coordinates v to natural parameters θ and back: the preconditioner of the model or block, then the constraints.

use std::collections::HashMap;
use std::sync::Arc;

use super::pass::block_symbols;
use super::row_blocks::RowBlocks;
use super::{Family, FamilyError};
use crate::device::Device;
use crate::problem::{Constraints, Preconditioner};

/// The most numbers of preconditioners that are kept: 128 MiB.
const MAX_KEPT_NUMBERS: usize = 1 << 24;

/// Preconditioners met so far, of models or of blocks under their keys, and of the row_blocks of a batch.
#[derive(Default)]
pub(super) struct Preconditioners {
    known: HashMap<Box<[u16]>, Option<Arc<Preconditioner>>>,
    numbers: usize,
    row_blocks: Vec<Option<Arc<Preconditioner>>>,
}

/// A row_block whose preconditioner is not known yet.
struct New {
    row_block: usize,
    part: Box<[u16]>,
    preconditioner: Option<Preconditioner>,
}

impl Preconditioners {
    /// Finds the preconditioners of all row_blocks, new ones side by side.
    pub(super) fn find<D: Device>(
        &mut self,
        family: &Family<D>,
        words: &[u16],
        row_blocks: &RowBlocks,
    ) -> Result<(), FamilyError> {
        self.row_blocks.clear();
        if !family.preconditioned() {
            return Ok(());
        }
        if self.numbers > MAX_KEPT_NUMBERS {
            self.known.clear();
            self.numbers = 0;
        }
        let width = family.space().arities().len();
        let (blocks, keys) = (family.problem.blocks(), row_blocks.keys());
        let count = words.len() / width * row_blocks.count;
        let word = |row_block: usize| &words[row_block / row_blocks.count * width..][..width];
        let part = |row_block: usize| match blocks {
            None => Part::Word(word(row_block)),
            Some(_) => Part::Block(block_symbols(row_blocks.block(row_block), keys[row_block])),
        };
        let mut new: Vec<New> = Vec::new();
        for row_block in 0..count {
            let part = part(row_block);
            if !self.known.contains_key(part.symbols()) {
                self.known.insert(part.symbols().into(), None);
                new.push(New { row_block, part: part.symbols().into(), preconditioner: None });
            }
        }
        family.device.workers().for_each(&mut new, |_, New { row_block, preconditioner, .. }| {
            *preconditioner = match blocks {
                None => family.preconditioner(word(*row_block)),
                Some(blocks) => blocks.preconditioner(row_blocks.block(*row_block), keys[*row_block]),
            };
        });
        for New { row_block, preconditioner, .. } in &new {
            let checked = check_dim(family, word(*row_block), row_blocks, *row_block, preconditioner.as_ref());
            if checked.is_err() {
                // Nothing is known of the new ones.
                new.iter().for_each(|new| drop(self.known.remove(&*new.part)));
                return checked;
            }
        }
        for New { part, preconditioner, .. } in new {
            self.numbers += part.len() + preconditioner.as_ref().map_or(0, Preconditioner::numbers);
            self.known.insert(part, preconditioner.map(Arc::new));
        }
        self.row_blocks
            .extend((0..count).map(|row_block| self.known.get(part(row_block).symbols()).cloned().flatten()));
        Ok(())
    }

    /// The preconditioner of a row_block, where it has one.
    pub(super) fn row_block(&self, row_block: usize) -> Option<&Preconditioner> {
        self.row_blocks.get(row_block).and_then(Option::as_deref)
    }
}

/// What a preconditioner belongs to.
enum Part<'a> {
    Word(&'a [u16]),
    Block([u16; 5]),
}

impl Part<'_> {
    fn symbols(&self) -> &[u16] {
        match self {
            Self::Word(word) => word,
            Self::Block(part) => part,
        }
    }
}

/// A preconditioner has as many coordinates as its model, or as its block under its key.
fn check_dim<D: Device>(
    family: &Family<D>,
    word: &[u16],
    row_blocks: &RowBlocks,
    row_block: usize,
    preconditioner: Option<&Preconditioner>,
) -> Result<(), FamilyError> {
    let Some(preconditioner) = preconditioner else { return Ok(()) };
    let space = family.space();
    let mut mask = vec![false; space.max_dim()];
    let (start, width) = match family.problem.blocks() {
        None => (0, mask.len()),
        Some(blocks) => (row_blocks.block(row_block) * blocks.width(), blocks.width()),
    };
    space.mark_active(word, &mut mask);
    let dim = mask[start..start + width].iter().filter(|&&active| active).count();
    if preconditioner.dim() == dim {
        return Ok(());
    }
    Err(FamilyError::Preconditioner { model: space.label(word), found: preconditioner.dim(), dim })
}

/// The way of one row_block between its coordinates.
pub(super) struct Coordinates<'a> {
    pub(super) preconditioner: Option<&'a Preconditioner>,
    pub(super) constraints: Option<&'a Constraints>,
    pub(super) active: &'a [u32],
}

impl Coordinates<'_> {
    /// How many natural parameters there are.
    pub(super) fn natural_dim(&self) -> usize {
        self.constraints.map_or(self.active.len(), |constraints| constraints.natural_dim(self.active))
    }

    /// v becomes u in `free`, and θ is written; returns `log |det ∂θ/∂v|`.
    pub(super) fn to_natural(&self, free: &mut [f64], natural: &mut [f64]) -> f64 {
        let preconditioned = self.preconditioner.map_or(0.0, |preconditioner| {
            preconditioner.to_free(free);
            preconditioner.log_jacobian()
        });
        match self.constraints {
            None => {
                natural.copy_from_slice(free);
                preconditioned
            }
            Some(constraints) => preconditioned + constraints.to_natural(self.active, free, natural),
        }
    }

    /// θ becomes v; returns `log |det ∂θ/∂v|`. Outside the support of θ neither is finite.
    pub(super) fn to_flow(&self, natural: &[f64], v: &mut [f64]) -> f64 {
        let constrained = match self.constraints {
            None => {
                v.copy_from_slice(natural);
                0.0
            }
            Some(constraints) => constraints.to_free(self.active, natural, v),
        };
        constrained
            + self.preconditioner.map_or(0.0, |preconditioner| {
                preconditioner.from_free(v);
                preconditioner.log_jacobian()
            })
    }

    /// d/dv of a function of θ plus `log |det ∂θ/∂v|`, from its d/dθ at u.
    pub(super) fn pull_back(&self, free: &[f64], natural_gradient: &[f64], gradient: &mut [f64]) {
        match self.constraints {
            None => gradient.copy_from_slice(natural_gradient),
            Some(constraints) => constraints.pull_back(self.active, free, natural_gradient, gradient),
        }
        if let Some(preconditioner) = self.preconditioner {
            preconditioner.pull_back(gradient);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Constraint;

    /// log of something smooth in θ, plus the Jacobian, seen from v.
    fn seen(coordinates: &Coordinates<'_>, v: &[f64]) -> f64 {
        let (mut free, mut natural) = (v.to_vec(), vec![0.0; v.len()]);
        let log_jacobian = coordinates.to_natural(&mut free, &mut natural);
        natural.iter().enumerate().map(|(i, x)| (x * (i + 1) as f64).sin()).sum::<f64>() + log_jacobian
    }

    #[test]
    fn preconditioners_and_constraints_together_keep_the_laws() {
        let preconditioner = Preconditioner::from_precision(vec![0.3, -2.0, 7.0], vec![4.0, 0.5, 1.0, -0.2, 0.1, 9.0])
            .expect("definite");
        let constraints =
            Constraints::new(vec![Constraint::Positive, Constraint::Real, Constraint::Real]).expect("fine");
        let active = [0, 1, 2];
        for (preconditioner, constraints) in
            [(Some(&preconditioner), Some(&constraints)), (Some(&preconditioner), None), (None, Some(&constraints))]
        {
            let coordinates = Coordinates { preconditioner, constraints, active: &active };
            let v = [0.4, -0.7, 1.1];
            let (mut free, mut natural) = (v.to_vec(), vec![0.0; 3]);
            let log_jacobian = coordinates.to_natural(&mut free, &mut natural);
            let mut back = [0.0; 3];
            assert!((coordinates.to_flow(&natural, &mut back) - log_jacobian).abs() < 1e-12);
            assert!(v.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-12), "{back:?}");
            let by_natural: Vec<f64> =
                natural.iter().enumerate().map(|(i, x)| (i + 1) as f64 * (x * (i + 1) as f64).cos()).collect();
            let mut gradient = [0.0; 3];
            coordinates.pull_back(&free, &by_natural, &mut gradient);
            for i in 0..3 {
                let moved = |step: f64| {
                    let mut v = v;
                    v[i] += step;
                    seen(&coordinates, &v)
                };
                let numeric = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                assert!((numeric - gradient[i]).abs() < 1e-6, "coordinate {i}: {numeric} against {}", gradient[i]);
            }
        }
    }

    #[test]
    fn the_jacobian_of_a_preconditioner_is_that_of_its_map() {
        let preconditioner = Preconditioner::from_precision(vec![1.0, 2.0], vec![4.0, 1.5, 9.0]).expect("definite");
        let column = |j: usize| {
            let mut v = [0.0, 0.0];
            v[j] = 1.0;
            preconditioner.to_free(&mut v);
            [v[0] - 1.0, v[1] - 2.0]
        };
        let (a, b) = (column(0), column(1));
        assert!((preconditioner.log_jacobian() - (a[0] * b[1] - a[1] * b[0]).abs().ln()).abs() < 1e-12);
        // The covariance is the inverse of the precision: the identity after multiplication.
        let covariance = |i: usize, j: usize| a[i] * a[j] + b[i] * b[j];
        assert!((4.0 * covariance(0, 0) + 1.5 * covariance(0, 1) - 1.0).abs() < 1e-12);
        assert!((1.5 * covariance(0, 0) + 9.0 * covariance(0, 1)).abs() < 1e-12);
    }
}
