//! One of K models.

use super::error::{at_most, check_names};
use super::{MAX_DIM, ModelSpace, SpaceError};

/// One of K models, each with coordinates of its own choice. A word is one symbol, the model's number.
///
/// ```
/// use vti::space::{ModelSpace, OneOf};
/// let space = OneOf::new(3, vec![vec![0], vec![0, 2]])?.with_names(vec!["flat".into(), "sloped".into()])?;
/// let mut active = [false; 3];
/// space.mark_active(&[1], &mut active);
/// assert_eq!(active, [true, false, true]);
/// assert_eq!(space.label(&[1]), "sloped");
/// # Ok::<(), vti::space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OneOf {
    arity: [u16; 1],
    max_dim: usize,
    active: Active,
    names: Option<Vec<String>>,
}

/// Which coordinates each model uses.
#[derive(Clone, Debug)]
enum Active {
    Listed(Vec<Vec<u32>>),
    /// The first so many.
    First(Vec<usize>),
}

impl OneOf {
    /// Models that use these of `max_dim` coordinates, in any order but each at most once.
    pub fn new(max_dim: usize, models: Vec<Vec<u32>>) -> Result<Self, SpaceError> {
        let max_dim = at_most("coordinates", max_dim, MAX_DIM)?;
        for (model, coordinates) in models.iter().enumerate() {
            if let Some(&coordinate) = coordinates.iter().find(|&&coordinate| coordinate as usize >= max_dim) {
                return Err(SpaceError::Coordinate { model, coordinate, max_dim });
            }
            let mut sorted = coordinates.clone();
            sorted.sort_unstable();
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(SpaceError::Repeated { model, coordinate: pair[0] });
            }
        }
        Ok(Self { arity: arity(models.len())?, max_dim, active: Active::Listed(models), names: None })
    }

    /// Models of these dimensions: model k uses the first `dims[k]` coordinates.
    ///
    /// ```
    /// use vti::space::{ModelSpace, OneOf};
    /// assert_eq!(OneOf::with_dims(&[1, 4, 2])?.max_dim(), 4);
    /// # Ok::<(), vti::space::SpaceError>(())
    /// ```
    pub fn with_dims(dims: &[usize]) -> Result<Self, SpaceError> {
        let max_dim = at_most("coordinates", dims.iter().copied().max().unwrap_or(0), MAX_DIM)?;
        Ok(Self { arity: arity(dims.len())?, max_dim, active: Active::First(dims.to_vec()), names: None })
    }

    /// Names the models for labels.
    pub fn with_names(mut self, names: Vec<String>) -> Result<Self, SpaceError> {
        check_names(&names, usize::from(self.arity[0]))?;
        self.names = Some(names);
        Ok(self)
    }
}

/// The number of models as an arity.
fn arity(models: usize) -> Result<[u16; 1], SpaceError> {
    let too_many = |_| SpaceError::TooLarge { what: "models", found: models, max: u16::MAX.into() };
    match u16::try_from(models).map_err(too_many)? {
        0 => Err(SpaceError::NoModels),
        arity => Ok([arity]),
    }
}

impl ModelSpace for OneOf {
    fn arities(&self) -> &[u16] {
        &self.arity
    }

    fn max_dim(&self) -> usize {
        self.max_dim
    }

    fn mark_active(&self, word: &[u16], active: &mut [bool]) {
        active.fill(false);
        let Some(model) = word.first().map(|&symbol| usize::from(symbol)) else { return };
        match &self.active {
            Active::Listed(models) => {
                for &coordinate in models.get(model).into_iter().flatten() {
                    if let Some(active) = active.get_mut(coordinate as usize) {
                        *active = true;
                    }
                }
            }
            Active::First(dims) => {
                active.iter_mut().take(dims.get(model).copied().unwrap_or(0)).for_each(|active| *active = true);
            }
        }
    }

    fn label(&self, word: &[u16]) -> String {
        let Some(&symbol) = word.first() else { return String::new() };
        let name = self.names.as_ref().and_then(|names| names.get(usize::from(symbol)));
        name.map_or_else(|| symbol.to_string(), String::clone)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn wrong_models_are_refused() {
        assert_eq!(OneOf::new(3, vec![]).unwrap_err(), SpaceError::NoModels);
        assert_eq!(OneOf::with_dims(&[]).unwrap_err(), SpaceError::NoModels);
        let outside = OneOf::new(3, vec![vec![0], vec![1, 3]]).unwrap_err();
        assert_eq!(outside, SpaceError::Coordinate { model: 1, coordinate: 3, max_dim: 3 });
        let twice = OneOf::new(3, vec![vec![2, 0, 2]]).unwrap_err();
        assert_eq!(twice, SpaceError::Repeated { model: 0, coordinate: 2 });
        assert!(OneOf::with_dims(&vec![1; 65_535]).is_ok());
        let many = OneOf::with_dims(&vec![1; 65_536]).unwrap_err();
        assert_eq!(many.to_string(), "65536 models, but there can be at most 65535");
    }

    #[test]
    fn names_must_fit() {
        let space = OneOf::with_dims(&[1, 2]).unwrap();
        let few = space.clone().with_names(vec!["a".into()]).unwrap_err();
        assert_eq!(few, SpaceError::Names { found: 1, expected: 2 });
        let same = space.clone().with_names(vec!["a".into(), "a".into()]).unwrap_err();
        assert_eq!(same, SpaceError::SameName { name: "a".into() });
        assert_eq!(space.label(&[1]), "1");
    }
}
