//! Likelihoods with what is integrated out against dense covariances, and gradients against differences.

#![allow(clippy::unwrap_used)]

use super::simulate::Truth;
use super::*;
use crate::problem::{Gradient, check_gradient};
use crate::random::{Purpose, Stream};
use crate::triangular;

const SHAPES: [PeakShape; 4] = [PeakShape::Gaussian, PeakShape::Lorentzian, PeakShape::Voigt, PeakShape::Sinusoid];

fn peaks(shape: PeakShape, rows: usize, background: usize) -> Peaks {
    let (x, y) = Truth::spread(shape, 2, 0.2).draw(rows, 4);
    let (spectrum, _) = Spectrum::new(&x, &y).unwrap();
    Peaks::new(spectrum, PeakSettings { shape, max_peaks: 3, background, ..PeakSettings::default() }).unwrap()
}

#[test]
fn gradients_are_those_of_the_density() {
    for (degree, shape) in SHAPES.into_iter().enumerate() {
        let peaks = peaks(shape, 43, degree);
        assert_eq!(peaks.problem().gradient(), Gradient::Exact);
        check_gradient(&**peaks.problem(), 20, 3).unwrap();
    }
}

/// A normal density with the covariance written out: σ² I, s² for each polynomial of mean square 1, and for each cosine and sine.
#[test]
fn what_is_integrated_out_has_the_dense_covariance() {
    for shape in SHAPES {
        let peaks = peaks(shape, 17, 2);
        let (x, y) = (peaks.spectrum().x(), peaks.spectrum().y());
        let theta: Vec<f64> = match shape {
            PeakShape::Sinusoid => vec![0.3, 0.55, 0.8],
            PeakShape::Voigt => vec![0.3, 2.0, 1.1, 0.9, 0.4, 7.0, 0.5, 1.4, 0.7],
            _ => vec![0.3, 2.0, 1.1, 0.9, 7.0, 0.5, 1.4],
        };
        let linear = peaks.settings().linear().unwrap();
        let n = x.len();
        // Polynomials by the curve itself: one coefficient at a time, no peaks.
        let mut columns: Vec<(Vec<f64>, f64)> = (0..3)
            .map(|degree| {
                let mut coefficients = vec![0.0; 3];
                coefficients[degree] = 1.0;
                let column: Vec<f64> = x.iter().map(|x| peaks.curve(&theta[..1], &coefficients, *x).1).collect();
                let square = column.iter().map(|value| value * value).sum::<f64>() / n as f64;
                assert!((square - 1.0).abs() < 1e-12, "{square}");
                (column, linear.background)
            })
            .collect();
        let mut left: Vec<f64> = y.iter().map(|y| y - linear.level).collect();
        if shape == PeakShape::Sinusoid {
            for frequency in &theta[1..] {
                let angle = |x: &f64| std::f64::consts::TAU * frequency * x;
                columns.push((x.iter().map(|x| angle(x).cos()).collect(), linear.amplitude));
                columns.push((x.iter().map(|x| angle(x).sin()).collect(), linear.amplitude));
            }
        } else {
            left.iter_mut().zip(x).for_each(|(left, x)| *left -= peaks.curve(&theta, &[0.0; 3], *x).0);
        }
        let mut covariance = Vec::new();
        for i in 0..n {
            for j in 0..=i {
                let shared: f64 = columns.iter().map(|(column, sd)| sd * sd * column[i] * column[j]).sum();
                covariance.push(shared + if i == j { 0.09 } else { 0.0 });
            }
        }
        triangular::cholesky(&mut covariance, n).unwrap();
        triangular::solve(&covariance, &mut left);
        let squares: f64 = left.iter().map(|z| z * z).sum();
        let expected =
            -0.5 * (squares + n as f64 * std::f64::consts::TAU.ln()) - triangular::log_diagonal(&covariance, n);
        let draw = Draw::new(peaks.problem().components(), &[2], &theta);
        let found = peaks.problem().likelihood().log_likelihood(&draw).unwrap();
        assert!((found - expected).abs() < 1e-8 * expected.abs().max(1.0), "{shape:?}: {found} instead of {expected}");
    }
}

/// Coefficients that are drawn anew are where the data say, and off by as much as the noise allows.
#[test]
fn drawn_coefficients_follow_the_data() {
    for shape in [PeakShape::Gaussian, PeakShape::Sinusoid] {
        let truth = Truth::spread(shape, 2, 0.05);
        let (x, y) = truth.draw(200, 9);
        let (spectrum, _) = Spectrum::new(&x, &y).unwrap();
        let settings = PeakSettings { shape, ..PeakSettings::default() };
        let peaks = Peaks::new(spectrum, settings).unwrap();
        let mut theta = vec![0.05];
        for peak in &truth.peaks {
            theta.push(peak.position);
            if shape == PeakShape::Gaussian {
                theta.extend([peak.height, peak.width]);
            }
        }
        let mut stream = Stream::new(1, Purpose::Other(1), 0, 0);
        let coefficients = peaks.draw_coefficients(&theta, || stream.normal());
        for place in [0.3, 2.2, 5.1, 9.4] {
            let (found, expected) = (peaks.curve(&theta, &coefficients, place).0, truth.curve(place));
            assert!((found - expected).abs() < 0.05, "{shape:?} at {place}: {found} instead of {expected}");
        }
    }
}

#[test]
fn what_makes_no_question_is_refused() {
    let x: Vec<f64> = (0..9).map(f64::from).collect();
    let bad = |x: &[f64], y: &[f64]| Spectrum::new(x, y).unwrap_err().to_string();
    assert_eq!(bad(&x[..2], &[1.0, f64::INFINITY]), "row 2: the value is not finite");
    assert!(bad(&x, &[1.0]).contains("9 places and 1 values"));
    assert!(bad(&x, &[2.0; 9]).contains("all values are 2"));
    let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
    let settings = |settings: PeakSettings| {
        let (spectrum, _) = Spectrum::new(&x, &y).unwrap();
        Peaks::new(spectrum, settings).unwrap_err().to_string()
    };
    assert!(settings(PeakSettings { background: 4, ..PeakSettings::default() }).contains("0 to 3"));
    let with = |prior: PeakPriors| settings(PeakSettings { prior, ..PeakSettings::default() });
    let normal = || Some(crate::prior::Normal(0.0, 1.0).into());
    assert!(with(PeakPriors { width: normal(), ..PeakPriors::default() }).contains("must be positive"));
    assert!(with(PeakPriors { frequency: normal(), ..PeakPriors::default() }).contains("have no frequency"));
    let background = Some(crate::prior::Uniform(0.0, 1.0).into());
    assert!(with(PeakPriors { background, ..PeakPriors::default() }).contains("closed form"));
    let (spectrum, notes) = Spectrum::new(&[2.0, 1.0, 1.0], &[1.0, 2.0, 3.0]).unwrap();
    assert_eq!((spectrum.x()[2], notes.len()), (2.0, 2));
    assert!(Peaks::new(spectrum, PeakSettings::default()).unwrap_err().to_string().contains("too few"));
}
