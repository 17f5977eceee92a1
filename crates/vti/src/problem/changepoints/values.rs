//! Values around levels or lines, with normal or with robust errors.

use super::robust::{RobustRows, RobustSegments};
use super::segments::{LineSegments, LineSums, Segments, residual_squares};
use crate::random::Stream;

/// Values, whatever their errors are.
#[derive(Clone, Debug)]
pub(super) enum Values {
    Normal(LineSums),
    Robust(RobustRows),
}

/// Their segments at a known scale of errors.
#[derive(Clone, Debug)]
pub(super) enum ValueSegments<'a> {
    Normal(LineSegments<'a>),
    Robust(RobustSegments<'a>),
}

impl Values {
    /// At this standard deviation of normal errors, or scale of robust ones.
    pub(super) fn at(&self, noise: f64) -> ValueSegments<'_> {
        match self {
            Self::Normal(sums) => ValueSegments::Normal(LineSegments::new(sums, noise)),
            Self::Robust(rows) => ValueSegments::Robust(RobustSegments::new(rows, noise)),
        }
    }

    /// The log density of all values as a function of the scale of their errors, given segments and their parameters.
    pub(super) fn of_noise<'a>(
        &'a self,
        pieces: Vec<(usize, usize)>,
        parameters: &'a [f64],
    ) -> Box<dyn Fn(f64) -> f64 + 'a> {
        let width = parameters.len() / pieces.len().max(1);
        let own = move |number: usize| &parameters[width * number..][..width];
        match self {
            Self::Normal(sums) => {
                let rows: usize = pieces.iter().map(|(from, to)| to - from).sum();
                let squares =
                    pieces.iter().enumerate().map(|(n, &(from, to))| residual_squares(sums, from, to, own(n)));
                let squares: f64 = squares.sum();
                Box::new(move |noise| -(rows as f64) * noise.ln() - 0.5 * squares / (noise * noise))
            }
            Self::Robust(rows) => Box::new(move |noise| {
                let of = |(n, &(from, to)): (usize, &(usize, usize))| rows.log_likelihood(from, to, own(n)[0], noise);
                pieces.iter().enumerate().map(of).sum()
            }),
        }
    }
}

impl ValueSegments<'_> {
    /// Whether integrals at this scale are right.
    pub(super) fn is_enough(&self) -> bool {
        match self {
            Self::Normal(_) => true,
            Self::Robust(own) => own.is_enough(),
        }
    }
}

impl Segments for ValueSegments<'_> {
    fn rows(&self) -> usize {
        match self {
            Self::Normal(own) => own.rows(),
            Self::Robust(own) => own.rows(),
        }
    }

    fn log_evidence(&self, from: usize, to: usize) -> f64 {
        match self {
            Self::Normal(own) => own.log_evidence(from, to),
            Self::Robust(own) => own.log_evidence(from, to),
        }
    }

    fn draw(&self, from: usize, to: usize, stream: &mut Stream, parameters: &mut Vec<f64>) {
        match self {
            Self::Normal(own) => own.draw(from, to, stream, parameters),
            Self::Robust(own) => own.draw(from, to, stream, parameters),
        }
    }

    fn log_joint(&self, from: usize, to: usize, parameters: &[f64]) -> f64 {
        match self {
            Self::Normal(own) => own.log_joint(from, to, parameters),
            Self::Robust(own) => own.log_joint(from, to, parameters),
        }
    }
}
