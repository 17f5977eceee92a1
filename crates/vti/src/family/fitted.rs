//! Preconditioners that were fitted to draws of the posterior, where a problem has none of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Family, FamilyError};
use crate::device::Device;
use crate::problem::Preconditioner;
use crate::space::ModelSpace;
use crate::state::{State, StateError};
use crate::triangular::{cholesky, packed_len, solve};

/// A full covariance needs so many draws for each coordinate; with fewer, coordinates are taken one by one.
const DRAWS_PER_COORDINATE: usize = 6;

/// The fewest draws of a model that say where its parameters lie.
const MIN_DRAWS: usize = 8;

/// Where parameters lie, by model.
#[derive(Clone, Debug, Default)]
pub(super) struct Fitted(BTreeMap<Box<[u16]>, Arc<Preconditioner>>);

impl Fitted {
    pub(super) fn get(&self, word: &[u16]) -> Option<Preconditioner> {
        self.0.get(word).map(|found| (**found).clone())
    }

    pub(super) fn state(&self) -> State {
        let (mut words, mut numbers) = (Vec::new(), Vec::new());
        for (word, preconditioner) in &self.0 {
            words.extend(word.iter().map(|&symbol| f64::from(symbol)));
            numbers.extend_from_slice(preconditioner.location());
            numbers.extend(preconditioner.packed_factor());
        }
        let mut state = State::default();
        if !words.is_empty() {
            state.put("words", &words);
            state.put("numbers", &numbers);
        }
        state
    }

    pub(super) fn restore(state: &mut State, space: &dyn ModelSpace) -> Result<Self, StateError> {
        let mut fitted = Self::default();
        if state.arrays().is_empty() {
            return Ok(fitted);
        }
        let wrong = |expected| StateError::Values { name: "preconditioners".into(), expected };
        let width = space.arities().len();
        let symbols = state.take_counts("words", None, f64::from(u16::MAX) + 1.0)?;
        let numbers = state.take_any::<f64>("numbers")?;
        let (mut rest, mut mask) = (&numbers[..], vec![false; space.max_dim()]);
        for word in symbols.chunks_exact(width.max(1)) {
            let word: Vec<u16> = word.iter().map(|&symbol| symbol as u16).collect();
            if !space.is_allowed(&word) {
                return Err(wrong("words of the space"));
            }
            space.mark_active(&word, &mut mask);
            let dim = mask.iter().filter(|&&active| active).count();
            let location = rest.split_off(..dim).ok_or_else(|| wrong("as many numbers as coordinates"))?;
            let factor = rest.split_off(..packed_len(dim)).ok_or_else(|| wrong("as many numbers as coordinates"))?;
            let found = Preconditioner::from_factor(location.to_vec(), factor.to_vec());
            fitted.0.insert(word.into(), Arc::new(found.ok_or_else(|| wrong("finite numbers"))?));
        }
        Ok(fitted)
    }
}

impl<D: Device> Family<D> {
    /// Puts the flow of every model where free coordinates of its draws lie. What was learned before means nothing afterwards.
    pub(crate) fn precondition<'a>(
        &mut self,
        draws: impl Iterator<Item = (&'a [u16], &'a [f64])>,
    ) -> Result<(), FamilyError> {
        let space = self.problem.space();
        let mut by_model: BTreeMap<Box<[u16]>, Vec<Vec<f64>>> = BTreeMap::new();
        let mut mask = vec![false; space.max_dim()];
        for (word, theta) in draws {
            space.mark_active(word, &mut mask);
            let active: Vec<u32> = (0..mask.len() as u32).filter(|&i| mask[i as usize]).collect();
            let mut free = vec![0.0; active.len()];
            match self.constraints() {
                Some(constraints) => drop(constraints.to_free(&active, theta, &mut free)),
                None => free.copy_from_slice(theta),
            }
            if free.iter().all(|u| u.is_finite()) {
                by_model.entry(word.into()).or_default().push(free);
            }
        }
        let fit = |(word, draws): (Box<[u16]>, Vec<Vec<f64>>)| Some((word, Arc::new(around(&draws)?)));
        self.fitted = Fitted(by_model.into_iter().filter_map(fit).collect());
        Ok(())
    }
}

/// Mean and covariance of draws.
fn around(draws: &[Vec<f64>]) -> Option<Preconditioner> {
    let (count, dim) = (draws.len(), draws.first()?.len());
    if count < MIN_DRAWS || dim == 0 {
        return None;
    }
    let mean: Vec<f64> = (0..dim).map(|i| draws.iter().map(|draw| draw[i]).sum::<f64>() / count as f64).collect();
    let covariance = |i: usize, j: usize| {
        draws.iter().map(|draw| (draw[i] - mean[i]) * (draw[j] - mean[j])).sum::<f64>() / count as f64
    };
    let is_full = count >= DRAWS_PER_COORDINATE * dim;
    let mut matrix = Vec::with_capacity(packed_len(dim));
    for i in 0..dim {
        for j in 0..=i {
            let value = if i == j { covariance(i, i).max(1e-10) * (1.0 + 1e-6) } else { covariance(i, j) };
            matrix.push(if i == j || is_full { value } else { 0.0 });
        }
    }
    cholesky(&mut matrix, dim).ok()?;
    // With covariance L Lᵀ the precision is L⁻ᵀ L⁻¹, whose columns are those of L⁻¹ against each other.
    let inverse: Vec<Vec<f64>> = (0..dim)
        .map(|column| {
            let mut unit = vec![0.0; dim];
            unit[column] = 1.0;
            solve(&matrix, &mut unit);
            unit
        })
        .collect();
    let dot = |i: usize, j: usize| inverse[i].iter().zip(&inverse[j]).map(|(a, b)| a * b).sum::<f64>();
    let precision = (0..dim).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| dot(i, j)).collect();
    Preconditioner::from_precision(mean, precision)
}
