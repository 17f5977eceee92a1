//! Problems of one's own: shapes that are hard to find or to follow, each a density with integral 1 times a given evidence.

use std::f64::consts::{PI, TAU};
use std::sync::Arc;

use anyhow::Result;
use vti::problem;
use vti::space::{OneOf, Subsets};

use super::known::{LogEvidence, Plan, Question};

/// A log density with integral 1 of so many parameters, which also writes its gradient.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// Nothing to learn.
    Point,
    /// Independent normal parameters.
    Normal { dim: usize, mean: f64, sd: f64 },
    /// Two normal densities, the first of which holds `share`, that are `apart` from each other around 0.
    Two { share: f64, apart: f64, sds: [f64; 2] },
    /// x ~ N(0, s²), y | x ~ N(bend (x² − s²), 0.5²).
    Banana { s: f64, bend: f64 },
    /// v ~ N(0, s²), the others N(0, exp(v)²).
    Funnel { dim: usize, s: f64 },
    /// Normal, of which one half is undefined.
    Half { dim: usize },
    /// At distance r ~ N(radius, width²) from 0, at least nearly.
    Ring { radius: f64, width: f64 },
}

impl Shape {
    pub(super) fn dim(self) -> usize {
        match self {
            Self::Point => 0,
            Self::Two { .. } => 1,
            Self::Banana { .. } | Self::Ring { .. } => 2,
            Self::Normal { dim, .. } | Self::Funnel { dim, .. } | Self::Half { dim } => dim,
        }
    }

    pub(super) fn log_density(self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        match self {
            Self::Point => 0.0,
            Self::Normal { mean, sd, .. } => normals(theta, gradient, mean, sd),
            Self::Two { share, apart, sds } => two(theta[0], &mut gradient[0], share, apart, sds),
            Self::Banana { s, bend } => {
                let (x, y) = (theta[0], theta[1]);
                let e = (y - bend * (x * x - s * s)) / 0.5;
                (gradient[0], gradient[1]) = (-x / (s * s) + e * 2.0 * bend * x / 0.5, -e / 0.5);
                normal(x, 0.0, s) - 0.5 * e * e - 0.5f64.ln() - 0.5 * TAU.ln()
            }
            Self::Funnel { s, .. } => {
                let (v, others) = (theta[0], &theta[1..]);
                let mut log = normal(v, 0.0, s);
                gradient[0] = -v / (s * s);
                for (x, g) in others.iter().zip(&mut gradient[1..]) {
                    let e = x * (-v).exp();
                    log -= 0.5 * e * e + v + 0.5 * TAU.ln();
                    *g = -e * (-v).exp();
                }
                gradient[0] += others.iter().map(|x| (x * (-v).exp()).powi(2) - 1.0).sum::<f64>();
                log
            }
            Self::Half { .. } => {
                if theta[0] > 0.0 {
                    return f64::NAN;
                }
                2f64.ln() + normals(theta, gradient, 0.0, 1.0)
            }
            // ∫ 2πr N(r; R, w²) dr = 2πR, but for what little lies below 0.
            Self::Ring { radius, width } => {
                let r = f64::hypot(theta[0], theta[1]).max(1e-9);
                let slope = (radius - r) / (width * width);
                (gradient[0], gradient[1]) = (slope * theta[0] / r, slope * theta[1] / r);
                normal(r, radius, width) - (2.0 * PI * radius).ln()
            }
        }
    }
}

fn normal(x: f64, mean: f64, sd: f64) -> f64 {
    -0.5 * ((x - mean) / sd).powi(2) - sd.ln() - 0.5 * TAU.ln()
}

fn normals(theta: &[f64], gradient: &mut [f64], mean: f64, sd: f64) -> f64 {
    gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = (mean - t) / (sd * sd));
    theta.iter().map(|&t| normal(t, mean, sd)).sum()
}

fn two(x: f64, gradient: &mut f64, share: f64, apart: f64, [first, second]: [f64; 2]) -> f64 {
    let (left, right) = (-0.5 * apart, 0.5 * apart);
    let (a, b) = (share.ln() + normal(x, left, first), (1.0 - share).ln() + normal(x, right, second));
    let log = a.max(b) + (-(a - b).abs()).exp().ln_1p();
    *gradient = (a - log).exp() * (left - x) / (first * first) + (b - log).exp() * (right - x) / (second * second);
    log
}

/// Where particles start, if that is said.
type Reference = Option<(f64, f64)>;

/// One of several shapes with their log evidences.
fn one_of(name: &'static str, models: Vec<(f64, Shape)>, reference: Reference) -> Plan {
    let evidences: Vec<f64> = models.iter().map(|(log, _)| *log).collect();
    let log_evidence = move |model: &[u16]| evidences[usize::from(model[0])];
    let question = move || {
        let dims: Vec<usize> = models.iter().map(|(_, shape)| shape.dim()).collect();
        let (most, own) = (dims.iter().copied().max().unwrap_or(0), models.clone());
        let mut problem = problem::from_fn(OneOf::with_dims(&dims)?, move |model, theta, gradient| {
            let (log_evidence, shape) = own[usize::from(model[0])];
            log_evidence + shape.log_density(theta, gradient)
        });
        if let Some(reference) = reference {
            problem = problem.with_reference(vec![reference; most]);
        }
        Ok(Question::Own(Arc::new(problem)))
    };
    own(name, question, log_evidence)
}

/// Optional parts, each with its shape; pairs of neighbours hold each other back.
fn subsets(name: &'static str, parts: Vec<(f64, Shape)>, reference: Reference) -> Plan {
    let known = parts.clone();
    let log_evidence = move |model: &[u16]| sum(&known, model);
    let question = move || {
        let dims: Vec<usize> = parts.iter().map(|(_, shape)| shape.dim()).collect();
        let (total, own) = (dims.iter().sum::<usize>(), parts.clone());
        let space = Subsets::of_blocks(0, &dims)?;
        let mut problem = problem::from_fn(space, move |model, theta, gradient| {
            let (mut log, mut start) = (sum(&own, model), 0);
            for ((_, shape), _) in own.iter().zip(model).filter(|(_, is_in)| **is_in == 1) {
                let place = start..start + shape.dim();
                start = place.end;
                log += shape.log_density(&theta[place.clone()], &mut gradient[place]);
            }
            log
        });
        if let Some(reference) = reference {
            problem = problem.with_reference(vec![reference; total]);
        }
        Ok(Question::Own(Arc::new(problem)))
    };
    own(name, question, log_evidence)
}

/// The log evidence of a set of parts.
fn sum(parts: &[(f64, Shape)], model: &[u16]) -> f64 {
    let own: f64 = parts.iter().zip(model).map(|((log, _), is_in)| log * f64::from(*is_in)).sum();
    own - model.windows(2).filter(|pair| pair == &[1, 1]).count() as f64
}

pub(super) fn own(
    name: &str,
    question: impl Fn() -> Result<Question> + 'static,
    log_evidence: impl Fn(&[u16]) -> f64 + 'static,
) -> Plan {
    let log_evidence: LogEvidence = Box::new(log_evidence);
    Plan { group: "own", name: format!("own {name}"), question: Box::new(question), log_evidence: Some(log_evidence) }
}

/// Modes, bends, funnels, rings; posteriors far from where particles start; and half of a space undefined.
pub(super) fn plans() -> Vec<Plan> {
    use Shape::{Banana, Funnel, Half, Normal, Point, Ring, Two};
    let unit = |dim| Normal { dim, mean: 0.0, sd: 1.0 };
    let at = |mean, sd| Normal { dim: 1, mean, sd };
    let two = |share, apart| Two { share, apart, sds: [0.3; 2] };
    let (wide, narrow) = (Some((0.0, 5.0)), Some((0.0, 1.0)));
    vec![
        one_of("two modes", vec![(0.0, Point), (0.5, two(0.7, 8.0)), (0.0, unit(2))], wide),
        one_of("two modes, no reference", vec![(0.0, Point), (0.5, two(0.6, 6.0))], None),
        one_of("two modes near", vec![(0.0, unit(1)), (0.5, two(0.5, 2.0)), (0.2, unit(3))], None),
        one_of("spike and slab", vec![(0.0, Point), (0.3, Two { share: 0.6, apart: 3.0, sds: [0.01, 1.0] })], wide),
        one_of("banana", vec![(0.0, Point), (0.4, Banana { s: 1.5, bend: 0.5 }), (0.2, unit(1))], wide),
        one_of("banana, bent more", vec![(0.0, unit(1)), (0.4, Banana { s: 2.0, bend: 1.0 })], None),
        one_of("funnel", vec![(0.0, Point), (0.3, Funnel { dim: 3, s: 1.0 })], wide),
        one_of("funnel, narrow", vec![(0.0, Point), (0.3, Funnel { dim: 4, s: 2.0 }), (0.2, unit(2))], wide),
        one_of("ring", vec![(0.0, Point), (0.5, Ring { radius: 3.0, width: 0.2 }), (0.1, unit(2))], wide),
        one_of("far", vec![(0.0, Point), (0.6, at(6.0, 1.0)), (0.2, unit(1))], narrow),
        one_of("far and sharp", vec![(0.0, Point), (0.6, at(6.0, 0.1)), (0.2, unit(2))], narrow),
        one_of("far, no reference", vec![(0.0, unit(1)), (0.6, at(20.0, 0.5))], None),
        one_of("half undefined", vec![(0.0, Point), (0.5, Half { dim: 1 }), (0.3, Half { dim: 3 })], wide),
        subsets("parts with two modes", vec![(0.5, two(0.6, 5.0)), (1.0, two(0.5, 3.0)), (0.2, unit(1))], wide),
        subsets("parts", (0..8).map(|i| (0.3 * f64::from(i) - 0.8, at(f64::from(i), 0.5))).collect(), None),
        subsets("parts that are far", vec![(0.5, at(6.0, 0.5)), (1.0, unit(2)), (0.2, at(-6.0, 1.0))], narrow),
        subsets("parts half undefined", vec![(0.5, Half { dim: 1 }), (1.0, unit(1)), (0.2, Half { dim: 2 })], wide),
        subsets("parts bent", vec![(0.5, Banana { s: 1.5, bend: 0.5 }), (0.8, Funnel { dim: 3, s: 1.0 })], wide),
    ]
}
