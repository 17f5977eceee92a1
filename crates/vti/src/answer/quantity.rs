//! Numbers of an answer: as learned, as corrected, as known exactly.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stats::Estimate;

/// A number that JSON may not be able to write: null is not a number.
pub(super) fn or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Numbers that JSON may not be able to write.
pub(super) fn or_nans<'de, D: Deserializer<'de>, T: FromIterator<f64>>(deserializer: D) -> Result<T, D::Error> {
    let numbers: Vec<Option<f64>> = Vec::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

/// The same of two.
pub(super) fn or_nan_pair<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[f64; 2], D::Error> {
    Ok(<[Option<f64>; 2]>::deserialize(deserializer)?.map(|number| number.unwrap_or(f64::NAN)))
}

/// One number: under q, corrected with its standard error, and exact where that is known.
///
/// ```
/// use vti::answer::Quantity;
/// let quantity = Quantity { q: 0.5, corrected: 0.48, se: 0.01, exact: None };
/// let json = serde_json::to_string(&quantity)?;
/// assert_eq!(json, r#"{"q":0.5,"corrected":0.48,"se":0.01,"exact":null}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantity {
    /// Under q; not a number where nothing was learned.
    #[serde(deserialize_with = "or_nan")]
    pub q: f64,
    /// Corrected; the exact number, or that of chains over models, where nothing was learned.
    #[serde(deserialize_with = "or_nan")]
    pub corrected: f64,
    /// Standard error of the correction.
    #[serde(deserialize_with = "or_nan")]
    pub se: f64,
    /// Exact, where it is known.
    pub exact: Option<f64>,
}

impl Quantity {
    /// A number that was computed and not learned.
    pub fn exactly(value: f64) -> Self {
        Self { q: f64::NAN, corrected: value, se: 0.0, exact: Some(value) }
    }

    /// A number that was estimated without anything that was learned.
    pub fn estimated(Estimate { value, se }: Estimate) -> Self {
        Self { q: f64::NAN, corrected: value, se, exact: None }
    }
}

/// A parameter averaged over all models, in the units of the data; it counts as 0 where a model does not have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// Its mean.
    #[serde(flatten)]
    pub mean: Quantity,
    /// Its standard deviation, corrected.
    #[serde(deserialize_with = "or_nan")]
    pub sd: f64,
    /// Its central 95 % interval, corrected.
    #[serde(deserialize_with = "or_nan_pair")]
    pub interval: [f64; 2],
}

/// A map that keeps its order, in JSON as well.
///
/// ```
/// use vti::answer::Ordered;
/// let map = Ordered(vec![("b".to_string(), 1), ("a".to_string(), 2)]);
/// assert_eq!((map.get("a"), map.get("c")), (Some(&2), None));
/// assert_eq!(serde_json::to_string(&map)?, r#"{"b":1,"a":2}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T> Ordered<T> {
    /// What stands under a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<(String, T)> for Ordered<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Ordered<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_is_null_and_comes_back() {
        let mean = Quantity { q: f64::NAN, corrected: 0.5, se: f64::INFINITY, exact: None };
        let json = serde_json::to_string(&Coefficient { mean, sd: f64::NAN, interval: [0.0, 1.0] }).unwrap();
        let Coefficient { mean, sd, .. } = serde_json::from_str(&json).unwrap();
        assert!(mean.q.is_nan() && mean.se.is_nan() && sd.is_nan(), "{json}");
        assert_eq!((mean.corrected, mean.exact), (0.5, None));
    }
}
