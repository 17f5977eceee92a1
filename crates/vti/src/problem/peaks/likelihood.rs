//! The likelihood of peaks over a polynomial background with normal noise, the background integrated out.
//!
//! With orthonormal polynomials Q over the data, whose coefficients have the variance τ², and r the values without the peaks,
//!
//! ```text
//! r ~ N(0, σ² I + τ² Q Qᵀ),   −2 log p = |r − Q Qᵀ r|²/σ² + |Qᵀ r|²/(σ² + τ²) + (n − p) log σ² + p log(σ² + τ²) + n log 2π
//! ```

use super::Spectrum;
use super::background::Background;
use super::prior::Linear;
use super::shape::{PeakShape, gaussian, gaussian_slope, lorentzian, lorentzian_slope};
use crate::problem::components::ByParts;
use crate::simd::{Instructions, Kernel, Vector};

/// The likelihood of peaks.
#[derive(Clone, Debug)]
pub(super) struct PeakLikelihood {
    shape: PeakShape,
    /// Places, and values without the mean of the background.
    x: Vec<f64>,
    y: Vec<f64>,
    background: Background,
    level: f64,
    /// The prior variance of coefficients of orthonormal polynomials.
    variance: f64,
    instructions: Instructions,
}

/// Parameters of the noise, and of peaks: position, height, width, and for pseudo-Voigt profiles the mixing.
struct Look<'a> {
    of: &'a PeakLikelihood,
    theta: &'a [f64],
    gradient: Option<&'a mut [f64]>,
}

impl Kernel<f64> for Look<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> f64 {
        match self.of.shape {
            PeakShape::Gaussian => self.look(|u, _| gaussian(u), |u, profile, _| (gaussian_slope(u, profile), 0.0)),
            PeakShape::Lorentzian => {
                self.look(|u, _| lorentzian(u), |u, profile, _| (lorentzian_slope(u, profile), 0.0))
            }
            _ => self.look(
                |u, mixing| mixing * lorentzian(u) + (1.0 - mixing) * gaussian(u),
                |u, _, mixing| {
                    let (wide, narrow) = (lorentzian(u), gaussian(u));
                    let slope = mixing * lorentzian_slope(u, wide) + (1.0 - mixing) * gaussian_slope(u, narrow);
                    (slope, wide - narrow)
                },
            ),
        }
    }
}

impl Look<'_> {
    /// `slopes` are the derivatives of a profile by u and by the mixing.
    #[inline(always)]
    fn look(self, profile: impl Fn(f64, f64) -> f64, slopes: impl Fn(f64, f64, f64) -> (f64, f64)) -> f64 {
        let Self { of, theta, gradient } = self;
        let width = of.width();
        let (noise, peaks) = (theta[0], &theta[1..]);
        let rows = of.x.len();
        let mut left = of.y.clone();
        let mut profiles = vec![0.0; if gradient.is_some() { rows * (peaks.len() / width) } else { rows }];
        for (number, peak) in peaks.chunks_exact(width).enumerate() {
            let (position, height, inverse, mixing) = (peak[0], peak[1], 1.0 / peak[2], mixing(peak));
            let start = if gradient.is_some() { number * rows } else { 0 };
            let own = &mut profiles[start..start + rows];
            for ((left, own), x) in left.iter_mut().zip(own).zip(&of.x) {
                *own = profile((x - position) * inverse, mixing);
                *left -= height * *own;
            }
        }
        let Fit { log, squares, explained, shares, variance, with_background } = of.fit(&mut left, noise);
        let Some(gradient) = gradient else { return log };
        let count = of.background.len();
        let (free, fixed) = ((rows - count) as f64, count as f64);
        let by_variance = 0.5
            * (squares / (variance * variance) + explained / (with_background * with_background)
                - free / variance
                - fixed / with_background);
        gradient[0] = 2.0 * noise * by_variance;
        // What a unit more of the peaks' sum at each place would bring.
        left.iter_mut().for_each(|left| *left /= variance);
        for (share, unit) in shares.iter().zip(&of.background.unit) {
            let share = share / with_background;
            left.iter_mut().zip(unit).for_each(|(left, unit)| *left += share * unit);
        }
        for (number, (peak, by)) in peaks.chunks_exact(width).zip(gradient[1..].chunks_exact_mut(width)).enumerate() {
            let (position, height, inverse, mixing) = (peak[0], peak[1], 1.0 / peak[2], mixing(peak));
            let own = &profiles[number * rows..][..rows];
            let mut lanes = [[0.0f64; 8]; 4];
            for ((x, own), left) in of.x.chunks(8).zip(own.chunks(8)).zip(left.chunks(8)) {
                for (lane, ((x, own), left)) in x.iter().zip(own).zip(left).enumerate() {
                    let u = (x - position) * inverse;
                    let (slope, by_mixing) = slopes(u, *own, mixing);
                    lanes[0][lane] -= left * slope;
                    lanes[1][lane] += left * own;
                    lanes[2][lane] -= left * slope * u;
                    lanes[3][lane] += left * by_mixing;
                }
            }
            let sum = |lanes: &[f64; 8]| lanes.iter().sum::<f64>();
            by[0] = height * inverse * sum(&lanes[0]);
            by[1] = sum(&lanes[1]);
            by[2] = height * inverse * sum(&lanes[2]);
            if width > 3 {
                by[3] = height * sum(&lanes[3]);
            }
        }
        log
    }
}

/// What the background makes of values without the peaks.
struct Fit {
    log: f64,
    /// Of what the background leaves, and of what it explains.
    squares: f64,
    explained: f64,
    /// Coefficients of orthonormal polynomials.
    shares: [f64; super::prior::MAX_DEGREE + 1],
    variance: f64,
    with_background: f64,
}

impl PeakLikelihood {
    /// Takes the background out of values without the peaks.
    #[inline(always)]
    fn fit(&self, left: &mut [f64], noise: f64) -> Fit {
        let (variance, rows, count) = (noise * noise, left.len(), self.background.len());
        let with_background = variance + self.variance;
        let mut shares = [0.0; super::prior::MAX_DEGREE + 1];
        for (share, unit) in shares.iter_mut().zip(&self.background.unit) {
            *share = dot(left, unit);
        }
        for (share, unit) in shares.iter().zip(&self.background.unit) {
            left.iter_mut().zip(unit).for_each(|(left, unit)| *left -= share * unit);
        }
        let (squares, explained) = (dot(left, left), shares.iter().map(|share| share * share).sum::<f64>());
        let (free, fixed) = ((rows - count) as f64, count as f64);
        let log = -0.5
            * (squares / variance
                + explained / with_background
                + free * variance.ln()
                + fixed * with_background.ln()
                + rows as f64 * std::f64::consts::TAU.ln());
        Fit { log, squares, explained, shares, variance, with_background }
    }
}

/// One peak at every place.
struct Part<'a> {
    of: &'a PeakLikelihood,
    peak: &'a [f64],
    to: &'a mut [f64],
}

impl Kernel<f64> for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        match self.of.shape {
            PeakShape::Gaussian => self.fill(|u, _| gaussian(u)),
            PeakShape::Lorentzian => self.fill(|u, _| lorentzian(u)),
            _ => self.fill(|u, mixing| mixing * lorentzian(u) + (1.0 - mixing) * gaussian(u)),
        }
    }
}

impl Part<'_> {
    #[inline(always)]
    fn fill(self, profile: impl Fn(f64, f64) -> f64) {
        let Self { of, peak, to } = self;
        let (position, height, inverse, mixing) = (peak[0], peak[1], 1.0 / peak[2], mixing(peak));
        for (to, x) in to.iter_mut().zip(&of.x) {
            *to = height * profile((x - position) * inverse, mixing);
        }
    }
}

/// What is left beside peaks that are known at every place.
struct Whole<'a> {
    of: &'a PeakLikelihood,
    noise: f64,
    parts: &'a [f64],
}

impl Kernel<f64> for Whole<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> f64 {
        let Self { of, noise, parts } = self;
        let mut left = of.y.clone();
        for part in parts.chunks_exact(left.len()) {
            left.iter_mut().zip(part).for_each(|(left, part)| *left -= part);
        }
        of.fit(&mut left, noise).log
    }
}

impl ByParts for PeakLikelihood {
    fn part_len(&self) -> usize {
        self.x.len()
    }

    fn part(&self, _: &[f64], block: &[f64], to: &mut [f64]) {
        self.instructions.run(Part { of: self, peak: block, to });
    }

    fn is_global(&self) -> bool {
        false
    }

    fn whole(&self, theta: &[f64], parts: &[f64]) -> f64 {
        self.instructions.run(Whole { of: self, noise: theta[0], parts })
    }
}

/// The mixing of a peak, where it has one.
#[inline(always)]
fn mixing(peak: &[f64]) -> f64 {
    peak.get(3).copied().unwrap_or(0.0)
}

#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        lanes.iter_mut().zip(a.iter().zip(b)).for_each(|(lane, (a, b))| *lane += a * b);
    }
    lanes.iter().sum()
}

impl PeakLikelihood {
    pub(super) fn new(spectrum: &Spectrum, shape: PeakShape, background: Background, linear: Linear) -> Self {
        Self {
            shape,
            x: spectrum.x().to_vec(),
            y: spectrum.y().iter().map(|y| y - linear.level).collect(),
            background,
            level: linear.level,
            variance: linear.background.powi(2) * spectrum.rows() as f64,
            instructions: Instructions::detect(),
        }
    }

    /// Parameters of a peak.
    fn width(&self) -> usize {
        if self.shape == PeakShape::Voigt { 4 } else { 3 }
    }

    pub(super) fn log_likelihood(&self, theta: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        self.instructions.run(Look { of: self, theta, gradient })
    }

    /// The sum of peaks at a place.
    fn peaks_at(&self, theta: &[f64], x: f64) -> f64 {
        let at = |peak: &[f64]| peak[1] * self.shape.profile((x - peak[0]) / peak[2], mixing(peak));
        theta[1..].chunks_exact(self.width()).map(at).sum()
    }

    /// Coefficients of the background given all others, from standard normal numbers.
    pub(super) fn draw_background(&self, theta: &[f64], mut normal: impl FnMut() -> f64) -> Vec<f64> {
        let left: Vec<f64> = self.x.iter().zip(&self.y).map(|(x, y)| y - self.peaks_at(theta, *x)).collect();
        let noise = theta[0] * theta[0];
        let share = self.variance / (noise + self.variance);
        let root = (self.x.len() as f64).sqrt();
        let draw = |unit: &Vec<f64>| (share * dot(&left, unit) + (share * noise).sqrt() * normal()) / root;
        let mut coefficients: Vec<f64> = self.background.unit.iter().map(draw).collect();
        coefficients[0] += self.level;
        coefficients
    }

    /// The whole curve, and the background alone, at a place.
    pub(super) fn at(&self, theta: &[f64], coefficients: &[f64], x: f64) -> (f64, f64) {
        let background = self.background.at(coefficients, x);
        (background + self.peaks_at(theta, x), background)
    }
}
