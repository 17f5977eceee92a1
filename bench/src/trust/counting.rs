//! Numbers of components whose evidences an independent program found: bench/reference/counting.

use std::sync::Arc;

use anyhow::{Context, Result};
use vti::problem::Problem;
use vti::problem::mixture::{Key, Mixture, MixtureSettings, Observations};
use vti::problem::peaks::{PeakSettings, PeakShape, Peaks, Spectrum};

use super::known::{Plan, Question};
use super::own::own;

const POINTS: &str = include_str!("../../reference/counting/points12.csv");
const BUMPS: &str = include_str!("../../reference/counting/bumps.csv");
const TONES: &str = include_str!("../../reference/counting/tones.csv");

/// log p(y | k), fewest components first.
const OF_POINTS: &[f64] = &[-31.1458, -30.2341, -27.8270, -27.6468, -27.7152, -27.8592];
const OF_BUMPS: &[f64] = &[-15.2839, -14.5520, -12.7668];
const OF_TONES: &[f64] = &[-46.2785, -47.1014, -47.0811, -49.0448];

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

fn plan(name: &str, known: &'static [f64], problem: impl Fn() -> Result<Arc<dyn Problem>> + 'static) -> Plan {
    own(name, move || Ok(Question::Own(problem()?)), move |model: &[u16]| known[usize::from(model[0])])
}

/// A mixture under two keys, peaks, and sinusoids.
pub(super) fn plans() -> Vec<Plan> {
    vec![
        plan("mixture, by means", OF_POINTS, || mixture(Key::Mean)),
        plan("mixture, by precisions", OF_POINTS, || mixture(Key::Precision)),
        plan("peaks", OF_BUMPS, || peaks(PeakShape::Gaussian, BUMPS, OF_BUMPS.len() - 1)),
        plan("sinusoids", OF_TONES, || peaks(PeakShape::Sinusoid, TONES, OF_TONES.len() - 1)),
    ]
}
