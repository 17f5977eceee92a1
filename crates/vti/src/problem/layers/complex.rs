//! Complex numbers, as far as impedances need them.

use std::ops::{Add, Div, Mul, Sub};

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Complex {
    pub(super) re: f64,
    pub(super) im: f64,
}

impl Complex {
    pub(super) const ONE: Self = Self { re: 1.0, im: 0.0 };

    pub(super) const fn real(re: f64) -> Self {
        Self { re, im: 0.0 }
    }

    pub(super) fn scale(self, by: f64) -> Self {
        Self { re: self.re * by, im: self.im * by }
    }

    pub(super) fn norm_squared(self) -> f64 {
        self.re * self.re + self.im * self.im
    }

    /// Its angle, in radians.
    pub(super) fn angle(self) -> f64 {
        self.im.atan2(self.re)
    }

    pub(super) fn exp(self) -> Self {
        let (sin, cos) = self.im.sin_cos();
        Self { re: cos, im: sin }.scale(self.re.exp())
    }
}

impl Add for Complex {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Complex {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }
}

impl Mul for Complex {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

impl Div for Complex {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let conjugate = Self { re: other.re, im: -other.im };
        (self * conjugate).scale(1.0 / other.norm_squared())
    }
}
