//! The univariate bijections τ_ρ, described; the devices compute them.

/// A positive number from an unconstrained one: `minimum + softplus(raw + offset)`, with the offset for which raw 0
/// gives exactly 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The smallest value.
    pub minimum: f64,
}

impl Scale {
    /// What is added to the raw number so that 0 means 1.
    pub fn offset(self) -> f64 {
        (1.0 - self.minimum).exp_m1().ln()
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self { minimum: 1e-3 }
    }
}

/// A monotone rational-quadratic spline (Durkan et al. 2019) on (0, 1), entered by a logistic function and left by its
/// inverse, so that the whole maps the real line onto itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spline {
    /// Number of bins.
    pub bins: usize,
    /// Smallest width of a bin.
    pub min_width: f64,
    /// Smallest height of a bin.
    pub min_height: f64,
    /// Slopes at the knots.
    pub slope: Scale,
}

impl Default for Spline {
    fn default() -> Self {
        Self { bins: 10, min_width: 1e-3, min_height: 1e-3, slope: Scale::default() }
    }
}

impl Spline {
    /// The most bins a device's stack holds.
    pub const MAX_BINS: usize = 32;
}

/// A univariate bijection `τ_ρ` of the real line, applied to every active coordinate with parameters of its own.
///
/// Raw parameters 0 are the static point `ρ^Id`: the identity (paper, section 2). Inactive coordinates are never touched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transform {
    /// `y = ρ₀ + s(ρ₁) x`.
    Affine(Scale),
    /// Rational-quadratic spline; ρ holds widths, heights, then slopes at the knots.
    Spline(Spline),
}

impl Transform {
    /// How many parameters ρ_i each coordinate has.
    pub fn parameters(&self) -> usize {
        match self {
            Self::Affine(_) => 2,
            Self::Spline(spline) => 3 * spline.bins + 1,
        }
    }
}
