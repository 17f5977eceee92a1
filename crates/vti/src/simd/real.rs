//! The two precisions, with elementary functions that vectorise.
//!
//! `exp` and `ln` of the standard library are calls to scalar routines, which stop the compiler from vectorising the
//! loop around them. The ones here are straight-line arithmetic: range reduction by the bits of the number, then a
//! polynomial. They *saturate* instead of overflowing: `exp` stays within the finite positive numbers and `ln` of
//! anything below the smallest normal number is the logarithm of that number, so that a saturated conditioner gives a
//! very small scale instead of an infinity. Infinite and NaN arguments of `ln`, and NaN arguments of `exp`, give NaN:
//! nothing non-finite is ever hidden.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use super::{Quad, Vector};

mod sealed {
    /// Kernels rely on what the two implementations of [`super::Real`] promise; there are no others.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A floating-point number the devices compute with: `f32` or `f64`.
pub trait Real:
    sealed::Sealed
    + Copy
    + Send
    + Sync
    + Debug
    + Display
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
    + 'static
{
    /// 512-bit registers of this precision.
    #[cfg(target_arch = "x86_64")]
    type Wide512: Vector<Self>;
    /// 256-bit registers of this precision.
    #[cfg(target_arch = "x86_64")]
    type Wide256: Vector<Self>;
    /// Registers for any machine.
    type Portable: Vector<Self>;

    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// ∞.
    const INFINITY: Self;
    /// −∞.
    const NEG_INFINITY: Self;
    /// Distance from 1 to the next number.
    const EPSILON: Self;
    /// The smallest positive number of full precision.
    const MIN_POSITIVE: Self;
    /// Beyond ± this, a spline's logistic is so close to its asymptote that the tail formula is exact to rounding.
    const TAIL: Self;
    /// What the precision is called.
    const NAME: &'static str;

    /// The nearest number of this precision.
    fn from_f64(x: f64) -> Self;
    /// Exactly the same number in double precision.
    fn to_f64(self) -> f64;
    /// `eˣ`, saturating.
    fn exp(self) -> Self;
    /// Natural logarithm, saturating below the smallest normal number.
    fn ln(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// `self · factor + term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// 1 for true, 0 for false.
    #[inline(always)]
    fn from_bool(x: bool) -> Self {
        if x { Self::ONE } else { Self::ZERO }
    }
    /// The larger of two numbers; `self` if either is NaN.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if self < other { other } else { self }
    }
    /// The smaller of two numbers; `self` if either is NaN.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
    /// `max(x, 0)`; NaN stays NaN.
    #[inline(always)]
    fn relu(self) -> Self {
        if self < Self::ZERO { Self::ZERO } else { self }
    }
    /// `σ(x) = 1 / (1 + e⁻ˣ)`.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp())
    }
    /// `ln(1 + eˣ)`, to absolute accuracy.
    #[inline(always)]
    fn softplus(self) -> Self {
        self.relu() + (Self::ONE + (-self.abs()).exp()).ln()
    }
}

macro_rules! real {
    ($real:ident, $bits:ident, $int:ident, $wide512:ident, $wide256:ident, name: $name:expr, mantissa: $mantissa:expr,
     bias: $bias:expr, magic: $magic:expr, ln2: ($ln2_high:expr, $ln2_low:expr), exp_range: ($low:expr, $high:expr),
     exp_terms: $exp_terms:expr, ln_terms: $ln_terms:expr, tail: $tail:expr) => {
        impl Real for $real {
            #[cfg(target_arch = "x86_64")]
            type Wide512 = std::arch::x86_64::$wide512;
            #[cfg(target_arch = "x86_64")]
            type Wide256 = std::arch::x86_64::$wide256;
            type Portable = Quad<Self>;

            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = $real::INFINITY;
            const NEG_INFINITY: Self = $real::NEG_INFINITY;
            const EPSILON: Self = $real::EPSILON;
            const MIN_POSITIVE: Self = $real::MIN_POSITIVE;
            const TAIL: Self = $tail;
            const NAME: &'static str = $name;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $real
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                // eˣ = 2ⁿ eʳ with n = round(x / ln 2). Adding `magic` rounds to an integer and leaves it in the low bits.
                const COEFFICIENTS: [$real; $exp_terms] = {
                    let mut c = [1.0; $exp_terms];
                    let mut i = 1;
                    while i < $exp_terms {
                        c[i] = c[i - 1] / i as $real;
                        i += 1;
                    }
                    c
                };
                let x = if self < $low { $low } else { self };
                let x = if x > $high { $high } else { x };
                let shifted = x.mul_add(std::$real::consts::LOG2_E, $magic);
                let n = shifted - $magic;
                let r = n.mul_add(-$ln2_low, n.mul_add(-$ln2_high, x));
                let mut sum = COEFFICIENTS[$exp_terms - 1];
                let mut i = $exp_terms - 1;
                while i > 0 {
                    i -= 1;
                    sum = sum.mul_add(r, COEFFICIENTS[i]);
                }
                let exponent = shifted.to_bits().wrapping_add($bias as $bits) << $mantissa;
                sum * $real::from_bits(exponent)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                // x = m 2ᵉ with √½ ≤ m < √2, and ln m = 2 artanh s with s = (m − 1) / (m + 1).
                const SQRT_HALF: $bits = std::$real::consts::FRAC_1_SQRT_2.to_bits();
                let x = if self < $real::MIN_POSITIVE { $real::MIN_POSITIVE } else { self };
                let shifted = x.to_bits().wrapping_sub(SQRT_HALF);
                let exponent = (shifted as $int) >> $mantissa;
                let m = $real::from_bits(x.to_bits().wrapping_sub((exponent << $mantissa) as $bits));
                let e = $real::from_bits(($magic as $real).to_bits().wrapping_add(exponent as $bits)) - $magic;
                let s = (m - 1.0) / (m + 1.0);
                let q = s * s;
                let mut sum: $real = 0.0;
                let mut k = $ln_terms;
                while k > 0 {
                    sum = sum.mul_add(q, 1.0 / (2 * k + 1) as $real);
                    k -= 1;
                }
                // 2s + 2s·q·sum, with the exponent's part split in two for accuracy; x − x carries NaN and ∞ through.
                let tail = (2.0 * s * q).mul_add(sum, e * $ln2_low);
                e.mul_add($ln2_high, 2.0 * s + tail) + (x - x)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, term: Self) -> Self {
                self.mul_add(factor, term)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    };
}

real!(f32, u32, i32, __m512, __m256, name: "f32", mantissa: 23, bias: 127, magic: 12_582_912.0,
    ln2: (0.693_359_4, -2.121_944_4e-4), exp_range: (-87.3, 88.3), exp_terms: 8, ln_terms: 5, tail: 45.0);
real!(f64, u64, i64, __m512d, __m256d, name: "f64", mantissa: 52, bias: 1023, magic: 6_755_399_441_055_744.0,
    ln2: (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10), exp_range: (-708.0, 709.0), exp_terms: 14,
    ln_terms: 11, tail: 60.0);

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest error of `fast` against `exact` over `points`, in units of the last place of the exact value.
    fn worst<T: Real>(points: impl Iterator<Item = f64>, fast: fn(T) -> T, exact: fn(f64) -> f64) -> f64 {
        points.fold(0.0, |worst: f64, x| {
            let x = T::from_f64(x);
            let truth = exact(x.to_f64());
            let error = (fast(x).to_f64() - truth).abs() / truth.abs().max(f64::MIN_POSITIVE);
            worst.max(error / T::EPSILON.to_f64())
        })
    }

    fn spread(low: f64, high: f64) -> impl Iterator<Item = f64> {
        (0..200_001).map(move |i| low + (high - low) * f64::from(i) / 200_000.0)
    }

    #[test]
    fn exp_is_accurate_to_two_units_in_the_last_place() {
        assert!(worst::<f32>(spread(-87.0, 88.0), Real::exp, f64::exp) < 2.0);
        assert!(worst::<f64>(spread(-700.0, 700.0), Real::exp, f64::exp) < 2.0);
    }

    #[test]
    fn ln_is_accurate_to_two_units_in_the_last_place() {
        assert!(worst::<f32>(spread(1e-6, 20.0), Real::ln, f64::ln) < 2.0);
        assert!(worst::<f64>(spread(1e-12, 20.0), Real::ln, f64::ln) < 2.0);
        let magnitudes = || (-290..290).map(|e| 1.37 * 10f64.powi(e));
        assert!(worst::<f64>(magnitudes(), Real::ln, f64::ln) < 2.0);
        assert!(worst::<f32>((-36..38).map(|e| 1.37 * 10f64.powi(e)), Real::ln, f64::ln) < 2.0);
    }

    #[test]
    fn elementary_functions_saturate_and_pass_nan_on() {
        fn check<T: Real>() {
            let huge = T::from_f64(1e30);
            assert!(huge.exp().is_finite() && huge.exp() > T::ONE);
            assert!((-huge).exp() > T::ZERO);
            assert!(T::ZERO.ln().is_finite() && T::ZERO.ln() < T::from_f64(-80.0));
            let nan = T::from_f64(f64::NAN);
            assert!(!nan.exp().is_finite() && !nan.ln().is_finite() && !nan.relu().is_finite());
            assert!(!T::from_f64(f64::INFINITY).ln().is_finite());
            assert_eq!(huge.softplus().to_f64(), huge.to_f64());
            assert!((-huge).softplus() >= T::ZERO);
        }
        check::<f32>();
        check::<f64>();
    }
}
