//! How many peaks, or sinusoids? Sums of Gaussian, Lorentzian or pseudo-Voigt peaks, or of sinusoids, over a polynomial background, with
//! normal noise of an unknown size. None is a model like any other.
//!
//! ```
//! use vti::problem::Problem;
//! use vti::problem::peaks::{Peaks, PeakSettings, Spectrum};
//! let x: Vec<f64> = (0..50).map(|i| 0.2 * f64::from(i)).collect();
//! let y: Vec<f64> = x.iter().map(|x| (-(x - 4.0).powi(2)).exp() + 0.01 * (37.0 * x).sin()).collect();
//! let (spectrum, _) = Spectrum::new(&x, &y)?;
//! let peaks = Peaks::new(spectrum, PeakSettings { max_peaks: 3, ..PeakSettings::default() })?;
//! assert_eq!(peaks.problem().space().label(&[1]), "1 peak");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod background;
mod data;
mod likelihood;
mod prior;
mod shape;
pub mod simulate;
mod sinusoids;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

pub use data::{Spectrum, SpectrumError};
pub use prior::{MAX_DEGREE, PeakError, PeakPriors, PeakSettings};
pub use shape::PeakShape;

use self::background::Background;
use self::likelihood::PeakLikelihood;
use self::sinusoids::SinusoidLikelihood;
use super::components::{ByParts, ComponentLikelihood, ComponentProblem, Draw, components_with};
use super::{DensityError, Problem};

/// A search for peaks.
#[derive(Clone, Debug)]
pub struct Peaks {
    spectrum: Spectrum,
    settings: PeakSettings,
    problem: Arc<ComponentProblem<SpectrumLikelihood>>,
    /// Of places and of values.
    names: [String; 2],
}

/// The likelihood of a spectrum.
#[derive(Clone, Debug)]
pub struct SpectrumLikelihood(Own);

#[derive(Clone, Debug)]
enum Own {
    Peaks(PeakLikelihood),
    Sinusoids(SinusoidLikelihood),
}

impl ComponentLikelihood for SpectrumLikelihood {
    fn log_likelihood(&self, draw: &Draw<'_>) -> Result<f64, DensityError> {
        Ok(match &self.0 {
            Own::Peaks(own) => own.log_likelihood(draw.theta(), None),
            Own::Sinusoids(own) => own.log_likelihood(draw.theta(), None),
        })
    }

    fn by_parts(&self) -> Option<&dyn ByParts> {
        Some(match &self.0 {
            Own::Peaks(own) => own,
            Own::Sinusoids(own) => own,
        })
    }

    fn has_gradient(&self) -> bool {
        true
    }

    fn with_gradient(&self, draw: &Draw<'_>, gradient: &mut [f64]) -> Result<f64, DensityError> {
        Ok(match &self.0 {
            Own::Peaks(own) => own.log_likelihood(draw.theta(), Some(gradient)),
            Own::Sinusoids(own) => own.log_likelihood(draw.theta(), Some(gradient)),
        })
    }
}

/// Coefficients that were integrated out, drawn anew: those of the background, then a cosine and a sine of each sinusoid.
pub type Coefficients = Vec<f64>;

impl Peaks {
    /// With what settings leave out set from the data.
    pub fn new(spectrum: Spectrum, settings: PeakSettings) -> Result<Self, PeakError> {
        let settings = settings.resolve(&spectrum)?;
        let background = Background::new(&spectrum, settings.background);
        let linear = settings.linear()?;
        let own = match settings.shape {
            PeakShape::Sinusoid => Own::Sinusoids(SinusoidLikelihood::new(&spectrum, background, linear)),
            shape => Own::Peaks(PeakLikelihood::new(&spectrum, shape, background, linear)),
        };
        let problem = components_with(settings.space(), settings.count_prior.clone(), SpectrumLikelihood(own))?;
        Ok(Self { spectrum, settings, problem: Arc::new(problem), names: ["x".into(), "y".into()] })
    }

    /// With names of the columns of places and of values.
    pub fn with_names(self, x: &str, y: &str) -> Self {
        Self { names: [x.into(), y.into()], ..self }
    }

    /// Names of places and of values.
    pub fn names(&self) -> &[String; 2] {
        &self.names
    }

    /// The data.
    pub fn spectrum(&self) -> &Spectrum {
        &self.spectrum
    }

    /// The settings, with all that was left out.
    pub fn settings(&self) -> &PeakSettings {
        &self.settings
    }

    /// What is to be inferred.
    pub fn problem(&self) -> &Arc<ComponentProblem<SpectrumLikelihood>> {
        &self.problem
    }

    /// The numbers that are possible.
    pub fn counts(&self) -> RangeInclusive<usize> {
        0..=self.settings.max_peaks
    }

    /// `log p(k)`.
    pub fn log_prior(&self, count: usize) -> f64 {
        self.problem.log_prior(&[u16::try_from(count).unwrap_or(u16::MAX)])
    }

    /// Names of the parameters that are there whatever the number is.
    pub fn always(&self) -> Vec<String> {
        self.problem.components().globals().iter().map(|(name, _)| name.clone()).collect()
    }

    /// Parameters of each peak, by their names.
    pub fn parameters(&self) -> Vec<String> {
        self.problem.components().kinds()[0].parameters.iter().map(|parameter| parameter.name.clone()).collect()
    }

    /// Natural parameters of so many peaks.
    pub fn dim(&self, count: usize) -> usize {
        let space = self.problem.components();
        space.globals().len() + count * space.kinds()[0].width()
    }

    /// Priors in words.
    pub fn prior_in_words(&self) -> String {
        self.settings.in_words()
    }

    /// Coefficients that were integrated out, given all other parameters, from standard normal numbers.
    pub fn draw_coefficients(&self, theta: &[f64], normal: impl FnMut() -> f64) -> Coefficients {
        match &self.problem.likelihood().0 {
            Own::Peaks(own) => own.draw_background(theta, normal),
            Own::Sinusoids(own) => own.draw_coefficients(theta, normal),
        }
    }

    /// The whole curve, and the background alone, at a place.
    pub fn curve(&self, theta: &[f64], coefficients: &[f64], x: f64) -> (f64, f64) {
        match &self.problem.likelihood().0 {
            Own::Peaks(own) => own.at(theta, coefficients, x),
            Own::Sinusoids(own) => own.at(theta, coefficients, x),
        }
    }
}
