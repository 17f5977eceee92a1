//! Modes of smooth functions of a few numbers: where they are, and how sharp.

/// A place and the height there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mode {
    pub(crate) point: Vec<f64>,
    pub(crate) value: f64,
}

/// The share of the promised rise that a step must bring (Armijo).
const SUFFICIENT: f64 = 1e-4;
/// Half the promised rise below which there is nothing left to gain.
const FLAT: f64 = 1e-12;

/// A computation that asks for values and gradients of a function point by point, so that several can be served by one call of
/// whoever knows the function.
pub(crate) trait Asks {
    /// The point at which it wants the function; nothing when it has finished.
    fn asked(&self) -> Option<&[f64]>;
    /// Goes on with what was asked for.
    fn tell(&mut self, value: f64, gradient: &[f64]);
}

/// Serves a computation until it has finished.
fn serve<A: Asks>(mut asks: A, mut f: impl FnMut(&[f64], &mut [f64]) -> f64) -> A {
    let mut gradient = Vec::new();
    while let Some(point) = asks.asked() {
        gradient.resize(point.len(), 0.0);
        let value = f(point, &mut gradient);
        asks.tell(value, &gradient);
    }
    asks
}

/// Climbs `f`, which returns its value and writes its gradient ([`Climb`]).
pub(crate) fn maximise(start: &[f64], steps: usize, f: impl FnMut(&[f64], &mut [f64]) -> f64) -> Option<Mode> {
    serve(Climb::new(start, steps), f).mode()
}

/// A climb by BFGS with a backtracking search (Nocedal and Wright, Numerical Optimization, 2006, chapter 6), in at most so many steps.
pub(crate) struct Climb {
    /// Steps that are left.
    steps: usize,
    mode: Mode,
    gradient: Vec<f64>,
    /// The inverse of the negative Hessian, as far as it is known.
    inverse: Vec<f64>,
    direction: Vec<f64>,
    /// What a step along the direction promises, and the share of it that is tried.
    rise: f64,
    length: f64,
    /// Where the function is wanted.
    next: Vec<f64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Nothing is known yet.
    Start,
    /// No step was taken yet.
    FirstStep,
    Climbing,
    Finished,
    /// The function is not finite at the start.
    Failed,
}

impl Climb {
    pub(crate) fn new(start: &[f64], steps: usize) -> Self {
        let size = start.len();
        Self {
            steps,
            mode: Mode { point: start.to_vec(), value: f64::NAN },
            gradient: vec![0.0; size],
            inverse: vec![0.0; size * size],
            direction: vec![0.0; size],
            rise: 0.0,
            length: 1.0,
            next: start.to_vec(),
            state: State::Start,
        }
    }

    /// Where it has arrived; nothing where the function is not finite at the start.
    pub(crate) fn mode(self) -> Option<Mode> {
        (self.state != State::Failed).then_some(self.mode)
    }

    fn begin(&mut self, value: f64, gradient: &[f64]) {
        if !(value.is_finite() && gradient.iter().all(|g| g.is_finite())) {
            self.state = State::Failed;
            return;
        }
        self.mode.value = value;
        self.gradient.copy_from_slice(gradient);
        // The first step is at most one unit long.
        let (size, unit) = (gradient.len(), 1.0 / norm(gradient).max(1.0));
        (0..size).for_each(|i| self.inverse[i * size + i] = unit);
        self.state = State::FirstStep;
        self.head_for();
    }

    /// A new direction, unless there is nothing left to gain.
    fn head_for(&mut self) {
        let rows = self.inverse.chunks_exact(self.gradient.len().max(1));
        self.direction = rows.map(|row| dot(row, &self.gradient)).collect();
        self.rise = dot(&self.direction, &self.gradient);
        if self.steps == 0 || self.rise <= FLAT {
            self.state = State::Finished;
            return;
        }
        self.steps -= 1;
        self.length = 1.0;
        self.look_ahead();
    }

    fn look_ahead(&mut self) {
        let Self { next, mode, direction, length, .. } = self;
        next.iter_mut().zip(&mode.point).zip(direction).for_each(|((next, x), d)| *next = x + *length * *d);
    }

    fn decide(&mut self, value: f64, gradient: &[f64]) {
        let is_enough = value >= self.mode.value + SUFFICIENT * self.length * self.rise;
        if is_enough && gradient.iter().all(|g| g.is_finite()) {
            let s: Vec<f64> = self.next.iter().zip(&self.mode.point).map(|(a, b)| a - b).collect();
            let y: Vec<f64> = self.gradient.iter().zip(gradient).map(|(a, b)| a - b).collect();
            update(&mut self.inverse, &s, &y, self.state == State::FirstStep);
            self.state = State::Climbing;
            self.mode.value = value;
            self.mode.point.copy_from_slice(&self.next);
            self.gradient.copy_from_slice(gradient);
            return self.head_for();
        }
        self.length *= 0.5;
        if self.length < 1e-10 {
            self.state = State::Finished;
        } else {
            self.look_ahead();
        }
    }
}

impl Asks for Climb {
    fn asked(&self) -> Option<&[f64]> {
        (!matches!(self.state, State::Finished | State::Failed)).then_some(&self.next)
    }

    fn tell(&mut self, value: f64, gradient: &[f64]) {
        if self.state == State::Start { self.begin(value, gradient) } else { self.decide(value, gradient) }
    }
}

/// The BFGS update of an inverse after a step s that lowered the gradient by y.
fn update(inverse: &mut [f64], s: &[f64], y: &[f64], first: bool) {
    let (size, curvature) = (s.len(), dot(s, y));
    if curvature <= 1e-12 * norm(s) * norm(y) {
        return;
    }
    if first {
        let scale = curvature / dot(y, y);
        inverse.fill(0.0);
        (0..size).for_each(|i| inverse[i * size + i] = scale);
    }
    let product: Vec<f64> = inverse.chunks_exact(size.max(1)).map(|row| dot(row, y)).collect();
    let factor = (1.0 + dot(y, &product) / curvature) / curvature;
    for i in 0..size {
        for j in 0..size {
            inverse[i * size + j] += factor * s[i] * s[j] - (product[i] * s[j] + s[i] * product[j]) / curvature;
        }
    }
}

/// The negative Hessian at a point, row-major ([`Curvature`]).
pub(crate) fn curvature(point: &[f64], f: impl FnMut(&[f64], &mut [f64]) -> f64) -> Vec<f64> {
    serve(Curvature::new(point), f).matrix
}

/// The negative Hessian at a point by central differences of the gradient.
pub(crate) struct Curvature {
    point: Vec<f64>,
    moved: Vec<f64>,
    /// The coordinate that is moved, and the gradient above the point once it is known.
    coordinate: usize,
    above: Option<Vec<f64>>,
    /// Row-major.
    pub(crate) matrix: Vec<f64>,
}

impl Curvature {
    pub(crate) fn new(point: &[f64]) -> Self {
        let size = point.len();
        let matrix = vec![0.0; size * size];
        let mut new = Self { point: point.to_vec(), moved: point.to_vec(), coordinate: 0, above: None, matrix };
        new.move_by(1.0);
        new
    }

    fn step(&self) -> f64 {
        1e-5 * (1.0 + self.point[self.coordinate].abs())
    }

    fn move_by(&mut self, sign: f64) {
        if self.coordinate < self.point.len() {
            self.moved[self.coordinate] = self.point[self.coordinate] + sign * self.step();
        }
    }
}

impl Asks for Curvature {
    fn asked(&self) -> Option<&[f64]> {
        (self.coordinate < self.point.len()).then_some(&self.moved)
    }

    fn tell(&mut self, _: f64, gradient: &[f64]) {
        let Some(above) = self.above.take() else {
            self.above = Some(gradient.to_vec());
            return self.move_by(-1.0);
        };
        let (i, size, step) = (self.coordinate, self.point.len(), self.step());
        for j in 0..size {
            // Half to each of both triangles: rounding is not symmetric.
            let half = 0.25 * (gradient[j] - above[j]) / step;
            self.matrix[i * size + j] += half;
            self.matrix[j * size + i] += half;
        }
        self.moved[i] = self.point[i];
        self.coordinate += 1;
        self.move_by(1.0);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A bent ridge with its mode at (1, 1), −100 and −1 in height along its axes.
    fn ridge(x: &[f64], gradient: &mut [f64]) -> f64 {
        let bend = x[1] - x[0] * x[0];
        gradient[0] = 400.0 * bend * x[0] + 2.0 * (1.0 - x[0]);
        gradient[1] = -200.0 * bend;
        -100.0 * bend * bend - (1.0 - x[0]).powi(2)
    }

    #[test]
    fn a_bent_ridge_is_climbed() {
        let mode = maximise(&[-1.2, 1.0], 200, ridge).unwrap();
        assert!((mode.point[0] - 1.0).abs() < 1e-5 && (mode.point[1] - 1.0).abs() < 1e-5, "{mode:?}");
        assert!(maximise(&[f64::NAN, 0.0], 5, ridge).is_none());
    }

    #[test]
    fn curvature_is_the_negative_hessian() {
        let found = curvature(&[1.0, 1.0], ridge);
        for (found, expected) in found.iter().zip([802.0, -400.0, -400.0, 200.0]) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }
}
