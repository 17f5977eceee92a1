//! Whether a density's gradient may be followed, and a look at whether it is right.

use super::{DensityError, FreeRows, Problem};
use crate::random::{Purpose, Stream};
use crate::workers::Workers;

/// What a density's gradient is good for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Gradient {
    /// It is the derivative of the log density, which is smooth.
    #[default]
    Exact,
    /// There is none, or the density jumps: following it would be wrong even at the right answer (Lee, Yu and Yang 2018). Everything is
    /// then done with values alone.
    None,
}

/// A gradient that is not that of its density.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GradientError {
    /// The derivative is another one.
    #[error("{model}: the derivative by {parameter} is given as {given:.6}, but by differences it is {found:.6}")]
    Wrong {
        /// The model.
        model: String,
        /// The parameter, or the free coordinate it comes from.
        parameter: String,
        /// As it is given, in free coordinates.
        given: f64,
        /// As differences have it.
        found: f64,
    },
    /// The density jumps: it changes by more than its derivative says.
    #[error(
        "{model}: along {parameter} the log density changes by {found:.6}, but its derivative sums to {given:.6}: it jumps, and must be \
         declared to have no gradient"
    )]
    Jumps {
        /// The model.
        model: String,
        /// The parameter, or the free coordinate it comes from.
        parameter: String,
        /// What the derivative sums to.
        given: f64,
        /// By how much the log density changes.
        found: f64,
    },
    /// The density could not be evaluated at all.
    #[error(transparent)]
    Density(#[from] DensityError),
}

/// Nodes and weights of Gauss and Legendre's rule on (−1, 1).
const NODES: [(f64, f64); 4] = [
    (-0.861_136_311_594_052_6, 0.347_854_845_137_453_85),
    (-0.339_981_043_584_856_3, 0.652_145_154_862_546_1),
    (0.339_981_043_584_856_3, 0.652_145_154_862_546_1),
    (0.861_136_311_594_052_6, 0.347_854_845_137_453_85),
];

/// Half the length of the segments along which a derivative is summed, in free coordinates, and a smaller one for the derivative
/// itself.
const SEGMENT: f64 = 0.05;
const DIFFERENCE: f64 = 1e-5;

/// How far two numbers may be apart, as a share of their size.
const TOLERANCE: f64 = 1e-3;

/// Compares a density's gradient with differences, along each coordinate at `points` random points: models are drawn alike, free
/// coordinates standard normal or from the problem's reference. What is wrong first is named with both numbers.
///
/// ```
/// use vti::problem::{self, GradientError, check_gradient};
/// use vti::space::OneOf;
/// let right = problem::from_fn(OneOf::with_dims(&[1])?, |_, theta, gradient| {
///     gradient[0] = -theta[0];
///     -0.5 * theta[0] * theta[0]
/// });
/// assert!(check_gradient(&right, 20, 1).is_ok());
/// let wrong = problem::from_fn(OneOf::with_dims(&[1])?, |_, theta, gradient| {
///     gradient[0] = theta[0];
///     -0.5 * theta[0] * theta[0]
/// });
/// assert!(matches!(check_gradient(&wrong, 20, 1), Err(GradientError::Wrong { .. })));
/// # Ok::<(), vti::space::SpaceError>(())
/// ```
pub fn check_gradient(problem: &dyn Problem, points: usize, seed: u64) -> Result<(), GradientError> {
    let space = problem.space();
    let reference = problem.reference().unwrap_or_else(|| vec![(0.0, 1.0); space.max_dim()]);
    let mut mask = vec![false; space.max_dim()];
    for point in 0..points {
        let mut stream = Stream::new(seed, Purpose::Other(1), 0, point as u64);
        let word = super::random_word(space, &mut stream);
        space.mark_active(&word, &mut mask);
        let active: Vec<u32> = (0..mask.len() as u32).filter(|&i| mask[i as usize]).collect();
        let draw = |&i: &u32| reference[i as usize].0 + reference[i as usize].1 * stream.normal();
        let free: Vec<f64> = active.iter().map(draw).collect();
        for place in 0..active.len() {
            let sd = reference[active[place] as usize].1;
            check_along(problem, &word, &active, &free, place, sd)?;
        }
    }
    Ok(())
}

/// Along one coordinate.
fn check_along(
    problem: &dyn Problem,
    word: &[u16],
    active: &[u32],
    free: &[f64],
    place: usize,
    sd: f64,
) -> Result<(), GradientError> {
    // Both ends of a short and of a long segment, its middle, and the nodes on it.
    let mut offsets = vec![-DIFFERENCE, DIFFERENCE, -SEGMENT, SEGMENT, 0.0];
    offsets.extend(NODES.map(|(node, _)| SEGMENT * node));
    let rows = along(problem, (word, active, free), (place, sd), &offsets)?;
    let value = |row: usize| rows.log_density(row);
    let mut gradient = vec![0.0; active.len()];
    let mut derivative = |row: usize| {
        rows.gradient(row, &mut gradient);
        gradient[place]
    };
    let given = derivative(4);
    let found = (value(1) - value(0)) / (2.0 * sd * DIFFERENCE);
    let sum: f64 =
        NODES.iter().enumerate().map(|(node, (_, weight))| sd * SEGMENT * weight * derivative(5 + node)).sum();
    let change = value(3) - value(2);
    if ![given, found, sum, change].iter().all(|number| number.is_finite()) {
        return Ok(());
    }
    let (model, parameter) = (problem.space().label(word), format!("coordinate {}", active[place] + 1));
    // Differences of rounded numbers.
    let noise = f64::EPSILON * value(4).abs() / DIFFERENCE * 4.0;
    let is_off = |a: f64, b: f64, noise: f64| (a - b).abs() > TOLERANCE * (1.0 + a.abs().max(b.abs())) + noise;
    if is_off(given, found, noise) && is_off(sum, change, noise * SEGMENT) {
        return Err(GradientError::Wrong { model, parameter, given, found });
    }
    // A smooth density may bend within the segment; a jump stays in one of its halves, however often it is halved.
    let mut segment = Segment { middle: 0.0, half: SEGMENT, sum, change };
    for _ in 0..HALVINGS {
        if !segment.is_off() {
            return Ok(());
        }
        let half = 0.5 * segment.half;
        let ends = [segment.middle - half, segment.middle + half];
        let [low, high] = ends.map(|middle| Segment::look(problem, (word, active, free), (place, sd), middle, half));
        let (low, high) = (low?, high?);
        segment = if low.apart() > high.apart() { low } else { high };
    }
    match segment.is_off() {
        true => Err(GradientError::Jumps { model, parameter, given: segment.sum, found: segment.change }),
        false => Ok(()),
    }
}

/// How often a segment is halved.
const HALVINGS: usize = 6;

/// A part of a line: what the derivative along it sums to, and by how much the log density changes.
struct Segment {
    middle: f64,
    half: f64,
    sum: f64,
    change: f64,
}

impl Segment {
    /// Looks at a segment along one coordinate.
    fn look(
        problem: &dyn Problem,
        (word, active, free): (&[u16], &[u32], &[f64]),
        (place, sd): (usize, f64),
        middle: f64,
        half: f64,
    ) -> Result<Self, DensityError> {
        let mut offsets = vec![middle - half, middle + half];
        offsets.extend(NODES.map(|(node, _)| middle + half * node));
        let rows = along(problem, (word, active, free), (place, sd), &offsets)?;
        let mut gradient = vec![0.0; active.len()];
        let mut sum = 0.0;
        for (node, (_, weight)) in NODES.iter().enumerate() {
            rows.gradient(2 + node, &mut gradient);
            sum += sd * half * weight * gradient[place];
        }
        Ok(Self { middle, half, sum, change: rows.log_density(1) - rows.log_density(0) })
    }

    fn apart(&self) -> f64 {
        (self.sum - self.change).abs()
    }

    fn is_off(&self) -> bool {
        self.apart() > 0.05 * (1.0 + self.change.abs())
    }
}

/// Densities at places along one coordinate.
fn along<'p>(
    problem: &'p dyn Problem,
    (word, active, free): (&[u16], &[u32], &[f64]),
    (place, sd): (usize, f64),
    offsets: &[f64],
) -> Result<FreeRows<'p>, DensityError> {
    let mut rows = FreeRows::new(problem, offsets.len());
    for (row, offset) in offsets.iter().enumerate() {
        let to = rows.row(row);
        to.word.copy_from_slice(word);
        to.active.clear();
        to.active.extend_from_slice(active);
        to.free[..free.len()].copy_from_slice(free);
        to.free[place] += sd * offset;
    }
    rows.evaluate(&Workers::SINGLE).map_err(|failed| failed.error)?;
    Ok(rows)
}
