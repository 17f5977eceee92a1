//! Components one by one, given how many there are.

use serde::{Deserialize, Serialize};

use crate::answer::{Samples, quantiles, quantity};

/// The components, given how many there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GivenCount {
    /// How many there are.
    pub count: usize,
    /// Tables: of the components, and of what lies between them where that has parameters of its own.
    pub tables: Vec<ComponentTable>,
}

/// Parameters of components of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComponentTable {
    /// What a row is: "change point", "segment".
    pub component: String,
    /// Names of the parameters that each row has.
    pub parameters: Vec<String>,
    /// For each component, in their order, its parameters.
    pub rows: Vec<Vec<Marginal>>,
}

/// A parameter of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Marginal {
    /// Its mean.
    #[serde(deserialize_with = "quantity::or_nan")]
    pub mean: f64,
    /// Its standard deviation.
    #[serde(deserialize_with = "quantity::or_nan")]
    pub sd: f64,
    /// Its central 90 % interval.
    #[serde(deserialize_with = "quantity::or_nan_pair")]
    pub interval: [f64; 2],
}

impl Marginal {
    /// Of weighted draws `(x, w)`, which are sorted on the way.
    ///
    /// ```
    /// use vti::answer::Marginal;
    /// let found = Marginal::of(&mut [(1.0, 1.0), (3.0, 3.0)]);
    /// assert_eq!((found.mean, found.sd), (2.5, 0.75f64.sqrt()));
    /// ```
    pub fn of(pairs: &mut [(f64, f64)]) -> Self {
        let total: f64 = pairs.iter().map(|(_, weight)| weight).sum();
        let mean = pairs.iter().map(|(x, weight)| x * weight).sum::<f64>() / total;
        let variance = pairs.iter().map(|(x, weight)| weight * (x - mean).powi(2)).sum::<f64>() / total;
        Self { mean, sd: variance.sqrt(), interval: quantiles(pairs, [0.05, 0.95]) }
    }
}

impl ComponentTable {
    /// From weighted draws, those at `rows`; `places[component][parameter]` is where the parameter stands among those of the
    /// samples.
    pub fn from_draws(
        component: &str,
        parameters: &[&str],
        places: &[Vec<usize>],
        samples: &Samples,
        weights: &[f64],
        rows: &[usize],
    ) -> Self {
        let marginal = |&place: &usize| {
            let drawn = rows.iter().filter_map(|&row| Some((samples.value(row, place)?, weights[row])));
            Marginal::of(&mut drawn.collect::<Vec<_>>())
        };
        Self {
            component: component.into(),
            parameters: parameters.iter().map(|name| String::from(*name)).collect(),
            rows: places.iter().map(|component| component.iter().map(marginal).collect()).collect(),
        }
    }
}
