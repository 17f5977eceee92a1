//! Numbers that transforms are written in: plain ones, and ones that carry a derivative along.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// What the obvious transforms need of a number.
pub trait Number:
    Copy
    + From<f64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    fn value(self) -> f64;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    /// `log(1 + exp x)`.
    fn softplus(self) -> Self;
}

impl Number for f64 {
    fn value(self) -> f64 {
        self
    }
    fn exp(self) -> Self {
        Self::exp(self)
    }
    fn ln(self) -> Self {
        Self::ln(self)
    }
    fn softplus(self) -> Self {
        self.max(0.0) + (-self.abs()).exp().ln_1p()
    }
}

/// A number and its derivative with respect to something: forward-mode differentiation.
#[derive(Clone, Copy, Debug)]
pub struct Dual {
    pub value: f64,
    pub derivative: f64,
}

impl Dual {
    /// What is differentiated by.
    pub fn variable(value: f64) -> Self {
        Self { value, derivative: 1.0 }
    }
}

impl From<f64> for Dual {
    fn from(value: f64) -> Self {
        Self { value, derivative: 0.0 }
    }
}

impl Add for Dual {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { value: self.value + other.value, derivative: self.derivative + other.derivative }
    }
}

impl Sub for Dual {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Neg for Dual {
    type Output = Self;
    fn neg(self) -> Self {
        Self { value: -self.value, derivative: -self.derivative }
    }
}

impl Mul for Dual {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let derivative = self.derivative * other.value + self.value * other.derivative;
        Self { value: self.value * other.value, derivative }
    }
}

impl Div for Dual {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        Self { value, derivative: (self.derivative - value * other.derivative) / other.value }
    }
}

impl Number for Dual {
    fn value(self) -> f64 {
        self.value
    }
    fn exp(self) -> Self {
        let value = self.value.exp();
        Self { value, derivative: value * self.derivative }
    }
    fn ln(self) -> Self {
        Self { value: self.value.ln(), derivative: self.derivative / self.value }
    }
    fn softplus(self) -> Self {
        let slope = 1.0 / (1.0 + (-self.value).exp());
        Self { value: self.value.softplus(), derivative: slope * self.derivative }
    }
}
