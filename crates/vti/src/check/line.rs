//! What a few known points say about others.

/// A straight line by least squares.
#[derive(Clone, Copy)]
pub(super) struct Line {
    count: f64,
    /// Means, and the sum of squared distances of places from theirs.
    centre: (f64, f64),
    squares: f64,
    slope: f64,
    /// Standard deviation of points around the line.
    spread: f64,
}

impl Line {
    /// A constant where all points have one place, 0 without any. Fewer than three points show no spread: it is taken to be 1.
    pub(super) fn through(points: &[(f64, f64)]) -> Self {
        let count = points.len() as f64;
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
        let (x, y) = (sum(&|p| p.0) / count.max(1.0), sum(&|p| p.1) / count.max(1.0));
        let squares = sum(&|p| (p.0 - x).powi(2));
        let slope = if squares > 0.0 { sum(&|p| (p.0 - x) * (p.1 - y)) / squares } else { 0.0 };
        let off = sum(&|p| (p.1 - y - slope * (p.0 - x)).powi(2));
        let spread = if count < 3.0 { 1.0 } else { (off / (count - 2.0)).sqrt() };
        Self { count, centre: (x, y), squares, slope, spread }
    }

    pub(super) fn at(&self, x: f64) -> f64 {
        self.centre.1 + self.slope * (x - self.centre.0)
    }

    /// The standard error of another point, further away the larger.
    pub(super) fn error(&self, x: f64) -> f64 {
        let far = if self.squares > 0.0 { (x - self.centre.0).powi(2) / self.squares } else { 0.0 };
        self.spread * (1.0 + 1.0 / self.count.max(1.0) + far).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_through_points() {
        let line = Line::through(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]);
        assert!((line.at(3.0) - 7.0).abs() < 1e-12 && line.error(3.0) < 1e-12);
        assert_eq!(Line::through(&[(2.0, 5.0)]).at(7.0), 5.0);
        assert_eq!(Line::through(&[]).at(1.0), 0.0);
        // Two of four numbers are fitted: √((1 + 1 + 1 + 1) / 2), times √(1 + 1/4 + 4/1) at 2.5.
        let off = Line::through(&[(0.0, 1.0), (0.0, -1.0), (1.0, 1.0), (1.0, -1.0)]);
        assert!((off.error(2.5) - (2.0 * 5.25f64).sqrt()).abs() < 1e-12, "{}", off.error(2.5));
    }
}
