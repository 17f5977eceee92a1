//! How many there are: answers about a number k of components (change points, peaks, layers, parts of a mixture), whatever is
//! counted.
//!
//! A [`Count`] has the probability and the evidence of every k, parameters that are there whatever k is, [`Curve`]s with bands
//! (a rate over time, a predictive density, a spectrum, resistivity over depth), [`Positions`] along an axis, and what is known
//! of each component given the leading numbers ([`GivenCount`]). [`Counted`] says in words what is counted.

mod build;
mod curve;
mod given;
mod memberships;
mod positions;

use serde::{Deserialize, Serialize};

pub(super) use build::Counts;
pub use build::{Counting, Described, KnownCount, leading_counts};
pub use curve::{Band, Curve, Observed, Scale, Shape};
pub use given::{ComponentTable, GivenCount, Marginal};
pub use memberships::Memberships;
pub use positions::Positions;

use super::{Coefficient, Ordered, Quantity, quantity};

/// How many components there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// What is counted, in words.
    pub counted: Counted,
    /// Every number that is possible, "0", "1", …, with its probability and its evidence.
    pub components: Ordered<CountAnswer>,
    /// The most probable number.
    pub most_probable: usize,
    /// The mean number.
    pub mean: Quantity,
    /// Parameters that are there whatever the number is.
    pub coefficients: Ordered<Coefficient>,
    /// What components together say about the data.
    pub curves: Vec<Curve>,
    /// Where components are.
    pub positions: Vec<Positions>,
    /// The components, given the leading numbers of them.
    pub given: Vec<GivenCount>,
    /// Which observations belong together, where that was asked.
    #[serde(skip)]
    pub memberships: Option<Memberships>,
}

/// What is counted, in words.
///
/// ```
/// use vti::answer::Counted;
/// let peaks = Counted::new("peak", "peaks");
/// assert_eq!((peaks.number(0), peaks.number(1), peaks.number(2)), ("no peaks".into(), "1 peak".into(), "2 peaks".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// One of them.
    pub singular: String,
    /// Several.
    pub plural: String,
}

impl Default for Counted {
    fn default() -> Self {
        Self::new("component", "components")
    }
}

impl Counted {
    /// One of them, and several.
    pub fn new(singular: &str, plural: &str) -> Self {
        Self { singular: singular.into(), plural: plural.into() }
    }

    /// A number of them: the label of a model.
    pub fn number(&self, count: usize) -> String {
        match count {
            0 => format!("no {}", self.plural),
            1 => format!("1 {}", self.singular),
            _ => format!("{count} {}", self.plural),
        }
    }
}

/// A number of components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CountAnswer {
    /// `p(k ∣ y)`.
    #[serde(flatten)]
    pub probability: Quantity,
    /// `p(k)`.
    #[serde(deserialize_with = "quantity::or_nan")]
    pub prior: f64,
    /// `log p(y ∣ k)`; none where it is not known.
    pub log_evidence: Option<CountEvidence>,
}

/// `log p(y ∣ k)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CountEvidence {
    /// An estimate, or the exact number where nothing was learned.
    #[serde(deserialize_with = "quantity::or_nan")]
    pub estimate: f64,
    /// Its standard error.
    #[serde(deserialize_with = "quantity::or_nan")]
    pub se: f64,
    /// Exact, where it is known.
    pub exact: Option<f64>,
}

impl Count {
    /// Numbers of components with what was found about each, fewest first.
    pub fn numbers(&self) -> impl Iterator<Item = (usize, &CountAnswer)> {
        self.components.0.iter().filter_map(|(number, found)| Some((number.parse().ok()?, found)))
    }
}
