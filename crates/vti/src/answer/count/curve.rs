//! Curves with bands around them, and what was observed behind them.

use serde::{Deserialize, Serialize};

use crate::answer::{quantiles, quantity};

/// A curve that components make together, averaged over their numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// What it is, as a heading.
    pub name: String,
    /// The horizontal axis in words.
    pub x_label: String,
    /// The vertical axis in words.
    pub y_label: String,
    /// How the horizontal axis is drawn.
    #[serde(default)]
    pub x_scale: Scale,
    /// How the vertical axis is drawn.
    #[serde(default)]
    pub y_scale: Scale,
    /// Drawn with x downwards and y across the page, as depths are.
    #[serde(default)]
    pub downwards: bool,
    /// What lies between two places.
    pub shape: Shape,
    /// Places, ascending.
    pub x: Vec<f64>,
    /// The posterior mean at each place.
    #[serde(deserialize_with = "quantity::or_nans")]
    pub mean: Vec<f64>,
    /// The posterior median at each place.
    #[serde(deserialize_with = "quantity::or_nans")]
    pub median: Vec<f64>,
    /// Central intervals at each place, each on its own: widest last.
    pub bands: Vec<Band>,
    /// What was observed.
    pub observed: Option<Observed>,
}

/// How values lie along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal differences take equal room.
    #[default]
    Linear,
    /// Equal ratios take equal room.
    Log,
}

/// What lies between two places of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A straight line.
    #[default]
    Line,
    /// The value of the first of them, up to the second. The last value is that of the last but one.
    Steps,
}

/// A central interval at every place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// The probability that it holds, at each place.
    pub level: f64,
    /// Its lower ends.
    #[serde(deserialize_with = "quantity::or_nans")]
    pub low: Vec<f64>,
    /// Its upper ends.
    #[serde(deserialize_with = "quantity::or_nans")]
    pub high: Vec<f64>,
}

/// What was observed, as it is drawn behind a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Observed {
    /// Values at places.
    Points {
        /// Places.
        #[serde(deserialize_with = "quantity::or_nans")]
        x: Vec<f64>,
        /// Values.
        #[serde(deserialize_with = "quantity::or_nans")]
        y: Vec<f64>,
    },
    /// Heights of bars between edges, of which there is one more, in the units of the curve.
    Histogram {
        /// Edges, ascending.
        edges: Vec<f64>,
        /// Heights.
        #[serde(deserialize_with = "quantity::or_nans")]
        heights: Vec<f64>,
    },
}

impl Observed {
    /// A histogram of places between two ends: as many bars as wanted, heights multiplied by `unit` over their widths.
    pub fn histogram(places: &[f64], (start, end): (f64, f64), bars: usize, unit: f64) -> Self {
        let (bars, length) = (bars.max(1), end - start);
        let edges: Vec<f64> = (0..=bars).map(|bar| start + length * bar as f64 / bars as f64).collect();
        let mut heights = vec![0.0; bars];
        for place in places.iter().filter(|place| (start..=end).contains(*place)) {
            let bar = ((place - start) / length * bars as f64) as usize;
            heights[bar.min(bars - 1)] += unit * bars as f64 / length;
        }
        Self::Histogram { edges, heights }
    }
}

/// Probabilities of the bands that curves have.
const LEVELS: [f64; 2] = [0.5, 0.9];

impl Curve {
    /// Mean, median and bands at `x`, from weighted draws of whole curves: `curve(draw)` has a value for each place. The other
    /// fields are left as they are.
    ///
    /// ```
    /// use vti::answer::Curve;
    /// let curve = Curve::default().from_draws(vec![0.0, 1.0], &[0.25, 0.75], |draw, values| values.fill(draw as f64));
    /// assert_eq!(curve.mean, [0.75, 0.75]);
    /// ```
    pub fn from_draws(self, x: Vec<f64>, weights: &[f64], curve: impl Fn(usize, &mut [f64])) -> Self {
        let (places, draws) = (x.len(), weights.len());
        let mut values = vec![0.0; places * draws];
        if places > 0 {
            values.chunks_exact_mut(places).enumerate().for_each(|(draw, values)| curve(draw, values));
        }
        let total: f64 = weights.iter().sum();
        let mut bands: Vec<Band> = LEVELS.iter().map(|&level| Band { level, ..Band::default() }).collect();
        let (mut mean, mut median) = (Vec::with_capacity(places), Vec::with_capacity(places));
        for place in 0..places {
            let mut pairs: Vec<(f64, f64)> =
                weights.iter().enumerate().map(|(draw, weight)| (values[draw * places + place], *weight)).collect();
            mean.push(pairs.iter().map(|(value, weight)| value * weight).sum::<f64>() / total);
            let [a, b, middle, c, d] = quantiles(&mut pairs, [0.05, 0.25, 0.5, 0.75, 0.95]);
            median.push(middle);
            for (band, (low, high)) in bands.iter_mut().zip([(b, c), (a, d)]) {
                band.low.push(low);
                band.high.push(high);
            }
        }
        Self { x, mean, median, bands, ..self }
    }
}
