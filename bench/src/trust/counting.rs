//! Numbers of components whose evidences an independent program found: bench/reference/counting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use vti::prior::Prior;
use vti::problem::layers::{Earth, Forward, LayerPriors, LayerSettings, Magnetotelluric, Sounding, layers};
use vti::problem::mixture::{Key, Mixture, MixtureSettings, Observations};
use vti::problem::peaks::{PeakSettings, PeakShape, Peaks, Spectrum};
use vti::problem::{DensityError, Problem};
use vti::workers::Workers;

use super::known::{Plan, Question};
use super::own::own;

const POINTS: &str = include_str!("../../reference/counting/points12.csv");
const BUMPS: &str = include_str!("../../reference/counting/bumps.csv");
const TONES: &str = include_str!("../../reference/counting/tones.csv");
const GALAXIES: &str = include_str!("../../../data/galaxy.csv");
const SOUNDING: &str = include_str!("../../reference/layers/sounding.csv");

/// log p(y | k), fewest components first.
const OF_POINTS: &[f64] = &[-31.1458, -30.2341, -27.8270, -27.6468, -27.7152, -27.8592];
const OF_BUMPS: &[f64] = &[-15.2839, -14.5520, -12.7668];
const OF_TONES: &[f64] = &[-46.2785, -47.1014, -47.0811, -49.0448];
const OF_LAYERS: &[f64] = &[-17.5934, -16.3153];

/// P(3), P(4), … of galaxies, by long chains, right to 0.0005; fewer than three are all but impossible.
const OF_GALAXIES: &[f64] = &[0.0598, 0.1346, 0.1876, 0.1949, 0.1581, 0.1092, 0.0680, 0.0397, 0.0222, 0.0121];

/// What more components have together, less and less by this factor.
const MORE_GALAXIES: f64 = 0.0138;
const FALL: f64 = 0.533;

/// The columns of a small table.
fn columns(text: &str) -> Result<Vec<Vec<f64>>> {
    let mut columns = vec![Vec::new(); text.lines().next().context("an empty table")?.split(',').count()];
    for line in text.lines().skip(1) {
        for (column, cell) in columns.iter_mut().zip(line.split(',')) {
            column.push(cell.parse()?);
        }
    }
    Ok(columns)
}

fn mixture(key: Key) -> Result<Arc<dyn Problem>> {
    let data = Observations::new(vec!["x".into()], columns(POINTS)?)?;
    let settings = MixtureSettings { max_components: OF_POINTS.len(), key, ..MixtureSettings::default() };
    Ok(Mixture::new(data, settings)?.problem().clone())
}

fn peaks(shape: PeakShape, text: &str, max_peaks: usize) -> Result<Arc<dyn Problem>> {
    let columns = columns(text)?;
    let (spectrum, _) = Spectrum::new(&columns[0], &columns[1])?;
    let settings = PeakSettings { shape, max_peaks, background: 0, ..PeakSettings::default() };
    Ok(Peaks::new(spectrum, settings)?.problem().clone())
}

fn galaxies() -> Result<Arc<dyn Problem>> {
    let data = Observations::new(vec!["velocity".into()], columns(GALAXIES)?)?;
    Ok(Mixture::new(data, MixtureSettings::default())?.problem().clone())
}

/// `log P(k)` of galaxies, which is as good as an evidence where all numbers are equally probable before.
fn log_galaxies(model: &[u16]) -> f64 {
    let count = usize::from(model[0]) + 1;
    let Some(place) = count.checked_sub(3) else { return -40.0 };
    let beyond = || MORE_GALAXIES * (1.0 - FALL) * FALL.powi((place - OF_GALAXIES.len()) as i32);
    OF_GALAXIES.get(place).copied().unwrap_or_else(beyond).ln()
}

/// Earths that [`Counted`] was asked for.
static EARTHS: AtomicU64 = AtomicU64::new(0);

/// How many earths forward functions were asked for so far; one with its gradient is one.
pub(super) fn earths_asked() -> u64 {
    EARTHS.load(Ordering::Relaxed)
}

/// Magnetotelluric data whose earths are counted.
#[derive(Debug)]
struct Counted(Magnetotelluric);

impl Forward for Counted {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn predict(&self, earths: &[Earth], predicted: &mut [f64], workers: &Workers) -> Result<(), DensityError> {
        EARTHS.fetch_add(earths.len() as u64, Ordering::Relaxed);
        self.0.predict(earths, predicted, workers)
    }

    fn has_gradient(&self) -> bool {
        true
    }

    fn pull_back(&self, earth: &Earth, by_predicted: &[f64], by_depth: &mut [f64], by_value: &mut [f64]) {
        self.0.pull_back(earth, by_predicted, by_depth, by_value);
    }
}

fn earths() -> Result<Arc<dyn Problem>> {
    let columns = columns(SOUNDING)?;
    let [periods, resistivity, resistivity_error, phase, phase_error] =
        <[Vec<f64>; 5]>::try_from(columns).map_err(|_| anyhow::anyhow!("five columns"))?;
    let sounding = Sounding { periods, resistivity, resistivity_error, phase, phase_error };
    let prior = LayerPriors {
        depth: Some(Prior::LogUniform { low: 100.0, high: 30_000.0 }),
        value: Some(Prior::LogUniform { low: 1.0, high: 1000.0 }),
        factor: None,
    };
    let settings = LayerSettings { max_layers: OF_LAYERS.len(), prior, ..LayerSettings::default() };
    let forward = Arc::new(Counted(Magnetotelluric::new(&sounding.periods)));
    Ok(Arc::new(layers(sounding.observed()?, forward, "resistivity", &settings)?))
}

fn plan(name: &str, known: &'static [f64], problem: impl Fn() -> Result<Arc<dyn Problem>> + 'static) -> Plan {
    own(name, move || Ok(Question::Count(problem()?)), move |model: &[u16]| known[usize::from(model[0])])
}

/// Of galaxies only probabilities are known.
pub(super) const GALAXIES_NAME: &str = "galaxies";

/// A mixture under two keys, peaks, sinusoids, galaxies, and layers. Change points of events (coal) are not learned: their exact answer
/// is compared with its reference by the library's tests.
pub(super) fn plans() -> Vec<Plan> {
    vec![
        plan("mixture, by means", OF_POINTS, || mixture(Key::Mean)),
        plan("mixture, by precisions", OF_POINTS, || mixture(Key::Precision)),
        plan("peaks", OF_BUMPS, || peaks(PeakShape::Gaussian, BUMPS, OF_BUMPS.len() - 1)),
        plan("sinusoids", OF_TONES, || peaks(PeakShape::Sinusoid, TONES, OF_TONES.len() - 1)),
        own(GALAXIES_NAME, || Ok(Question::Count(galaxies()?)), log_galaxies),
        own("layers", || Ok(Question::Slow(earths()?)), |model: &[u16]| OF_LAYERS[usize::from(model[0])]),
    ]
}
