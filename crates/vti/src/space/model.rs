//! A model as a word of symbols.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// A model m: a word of symbols, `word[i] < arities[i]` in its [`ModelSpace`](super::ModelSpace).
///
/// It reads and hashes like its slice of symbols, and is shown as its symbols: run together where all are digits.
///
/// ```
/// use vti::space::Model;
/// let model = Model::from(vec![1, 0, 1]);
/// assert_eq!(model.to_string(), "101");
/// assert_eq!(Model::from(vec![12, 0]).to_string(), "12 0");
/// assert_eq!(model.iter().sum::<u16>(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Model(Box<[u16]>);

impl Deref for Model {
    type Target = [u16];

    fn deref(&self) -> &[u16] {
        &self.0
    }
}

// Equality, order and hash are those of the slice, so a map from models can be asked with a slice.
impl Borrow<[u16]> for Model {
    fn borrow(&self) -> &[u16] {
        &self.0
    }
}

impl From<&[u16]> for Model {
    fn from(word: &[u16]) -> Self {
        Self(word.into())
    }
}

impl From<Vec<u16>> for Model {
    fn from(word: Vec<u16>) -> Self {
        Self(word.into())
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_word(&self.0, f)
    }
}

/// Symbols joined by spaces, or run together when all are below 10.
pub(super) fn write_word(word: &[u16], to: &mut impl fmt::Write) -> fmt::Result {
    let apart = word.iter().any(|&symbol| symbol >= 10);
    for (place, symbol) in word.iter().enumerate() {
        if apart && place > 0 {
            to.write_char(' ')?;
        }
        write!(to, "{symbol}")?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn a_map_from_models_can_be_asked_with_a_slice() {
        let map = HashMap::from([(Model::from(vec![0, 1]), 7)]);
        assert_eq!(map.get([0, 1].as_slice()), Some(&7));
    }

    #[test]
    fn a_model_is_written_as_its_list_of_symbols() {
        let model = Model::from([3, 11].as_slice());
        let text = serde_json::to_string(&model).unwrap();
        assert_eq!(text, "[3,11]");
        assert_eq!(serde_json::from_str::<Model>(&text).unwrap(), model);
    }
}
