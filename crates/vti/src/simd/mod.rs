//! The few vector operations the product kernel needs, once per instruction set.
//!
//! Element-wise passes are plain loops that the compiler vectorises; only the matrix product is written with explicit
//! registers, because its speed depends on which values stay in them.

mod aligned;
mod real;

pub use aligned::AlignedVec;
pub use real::Real;

/// The instruction sets the kernels are compiled for; the best one present is found once, when a device is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// 512-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Whatever the compilation target guarantees.
    Portable,
}

impl Instructions {
    /// The widest instruction set this machine has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("fma")
            {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Every instruction set this machine has, widest first: what tests compare with one another.
    pub fn available() -> Vec<Self> {
        let best = Self::detect();
        let mut all = vec![best];
        #[cfg(target_arch = "x86_64")]
        if best == Self::Avx512 {
            all.push(Self::Avx2);
        }
        if best != Self::Portable {
            all.push(Self::Portable);
        }
        all
    }

    /// Runs `kernel` compiled for this instruction set.
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) fn run<T: Real, K: Kernel<T>>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx512` is only made by `detect` and `available`, after the features were found.
            Self::Avx512 => unsafe { run_avx512(kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above, for `Avx2`.
            Self::Avx2 => unsafe { run_avx2(kernel) },
            Self::Portable => kernel.run::<T::Portable>(),
        }
    }
}

/// A piece of work that is compiled once per instruction set. Implementations mark `run` and everything it calls
/// `#[inline(always)]`, so that the code lands inside the function that enables the instructions.
pub(crate) trait Kernel<T: Real> {
    /// What the work returns.
    type Output;
    /// Does the work with vectors of type `V`.
    fn run<V: Vector<T>>(self) -> Self::Output;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
#[allow(unsafe_code)]
unsafe fn run_avx512<T: Real, K: Kernel<T>>(kernel: K) -> K::Output {
    kernel.run::<T::Wide512>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[allow(unsafe_code)]
unsafe fn run_avx2<T: Real, K: Kernel<T>>(kernel: K) -> K::Output {
    kernel.run::<T::Wide256>()
}

/// A register of `LANES` numbers.
///
/// # Safety
///
/// Methods are safe to call only where the instruction set of the type is enabled, which `Instructions::run`
/// arranges; `load` and `store` need `LANES` valid elements behind the pointer.
#[allow(unsafe_code)]
pub trait Vector<T>: Copy {
    /// How many numbers it holds.
    const LANES: usize;
    /// How many of them side by side fill the register file best in the product kernel (4 or 2).
    const ABREAST: usize;
    /// All lanes `x`.
    #[allow(clippy::missing_safety_doc)]
    unsafe fn splat(x: T) -> Self;
    /// `LANES` elements from memory.
    #[allow(clippy::missing_safety_doc)]
    unsafe fn load(from: *const T) -> Self;
    /// `LANES` elements to memory.
    #[allow(clippy::missing_safety_doc)]
    unsafe fn store(self, to: *mut T);
    /// `self · factor + term`, rounded once where the machine can.
    #[allow(clippy::missing_safety_doc)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self;
    /// `self + other`.
    #[allow(clippy::missing_safety_doc)]
    unsafe fn add(self, other: Self) -> Self;
    /// `max(self, 0)`.
    #[allow(clippy::missing_safety_doc)]
    unsafe fn relu(self) -> Self;
    /// `self` where `gate > 0`, else 0.
    #[allow(clippy::missing_safety_doc)]
    unsafe fn gated(self, gate: Self) -> Self;
    /// Transposes a block: number `j` of the line at `line(i)` goes to `to + j · stride + i`.
    #[inline(always)]
    #[allow(clippy::missing_safety_doc)]
    unsafe fn transpose(line: impl Fn(usize) -> *const T, to: *mut T, stride: usize)
    where
        T: Copy,
    {
        for i in 0..SIDE {
            let line = line(i);
            for j in 0..SIDE {
                // SAFETY: the caller vouches for `SIDE` numbers in each line and `SIDE` × `SIDE` places.
                unsafe { *to.add(j * stride + i) = *line.add(j) };
            }
        }
    }
}

/// Side of the square blocks that [`Vector::transpose`] moves.
pub const SIDE: usize = 16;

macro_rules! x86_vector {
    ($real:ty, $vector:ident, $lanes:expr, $abreast:expr, $set:ident, $load:ident, $store:ident, $fma:ident, $add:ident,
     $max:ident, $zero:ident, |$x:ident, $gate:ident| $gated:expr $(, transpose: $transpose:ident)?) => {
        #[cfg(target_arch = "x86_64")]
        #[allow(unsafe_code, clippy::missing_safety_doc)]
        impl Vector<$real> for std::arch::x86_64::$vector {
            const LANES: usize = $lanes;
            const ABREAST: usize = $abreast;
            #[inline(always)]
            unsafe fn splat(x: $real) -> Self {
                // SAFETY: the caller enabled the instruction set.
                unsafe { std::arch::x86_64::$set(x) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $real) -> Self {
                // SAFETY: the caller enabled the instruction set and vouches for the memory.
                unsafe { std::arch::x86_64::$load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $real) {
                // SAFETY: as in `load`.
                unsafe { std::arch::x86_64::$store(to, self) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
                // SAFETY: the caller enabled the instruction set.
                unsafe { std::arch::x86_64::$fma(self, factor, term) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: the caller enabled the instruction set.
                unsafe { std::arch::x86_64::$add(self, other) }
            }
            #[inline(always)]
            unsafe fn relu(self) -> Self {
                // SAFETY: the caller enabled the instruction set. The order of the operands lets NaN through.
                unsafe { std::arch::x86_64::$max(std::arch::x86_64::$zero(), self) }
            }
            #[inline(always)]
            unsafe fn gated(self, gate: Self) -> Self {
                use std::arch::x86_64::*;
                let ($x, $gate) = (self, gate);
                // SAFETY: the caller enabled the instruction set.
                unsafe { $gated }
            }
            $(
                #[inline(always)]
                unsafe fn transpose(line: impl Fn(usize) -> *const $real, to: *mut $real, stride: usize) {
                    // SAFETY: the caller enabled the instruction set and vouches for the memory.
                    unsafe { $transpose(line, to, stride) }
                }
            )?
        }
    };
}

x86_vector!(
    f32,
    __m512,
    16,
    4,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_fmadd_ps,
    _mm512_add_ps,
    _mm512_max_ps,
    _mm512_setzero_ps,
    |x, gate| _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(gate, _mm512_setzero_ps()), x),
    transpose: transpose_ps
);
x86_vector!(
    f64,
    __m512d,
    8,
    4,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_fmadd_pd,
    _mm512_add_pd,
    _mm512_max_pd,
    _mm512_setzero_pd,
    |x, gate| _mm512_maskz_mov_pd(_mm512_cmp_pd_mask::<_CMP_GT_OQ>(gate, _mm512_setzero_pd()), x),
    transpose: transpose_pd
);
x86_vector!(
    f32,
    __m256,
    8,
    2,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_fmadd_ps,
    _mm256_add_ps,
    _mm256_max_ps,
    _mm256_setzero_ps,
    |x, gate| _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(gate, _mm256_setzero_ps()), x)
);
x86_vector!(
    f64,
    __m256d,
    4,
    2,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_fmadd_pd,
    _mm256_add_pd,
    _mm256_max_pd,
    _mm256_setzero_pd,
    |x, gate| _mm256_and_pd(_mm256_cmp_pd::<_CMP_GT_OQ>(gate, _mm256_setzero_pd()), x)
);

/// Which lanes of a pair of registers `(a, b)` of `lanes` lanes make the new `a` (and, with `high`, the new `b`) when the
/// off-diagonal quarters of blocks of `apart` lanes change places.
#[cfg(target_arch = "x86_64")]
const fn exchange<const LANES: usize>(apart: usize, high: bool) -> [u64; LANES] {
    let mut lanes = [0; LANES];
    let mut l = 0;
    while l < LANES {
        // The new a keeps its lower quarters and takes b's lower ones, the new b takes a's upper and keeps its upper.
        let from_b = l & apart != 0;
        let source = if from_b == high { l } else { l ^ apart };
        lanes[l] = (source + if from_b { LANES } else { 0 }) as u64;
        l += 1;
    }
    lanes
}

/// Transposes a square of registers: rounds exchange ever smaller quarters between pairs of lines. Everything is known at
/// compile time, so that the square never leaves the registers.
#[cfg(target_arch = "x86_64")]
macro_rules! x86_transpose {
    ($name:ident, $real:ty, $index:ty, $lanes:expr, $load:ident, $store:ident, $permute:ident,
     [$($apart:expr),*]) => {
        #[target_feature(enable = "avx512f")]
        #[inline]
        #[allow(unsafe_code)]
        unsafe fn $name(line: impl Fn(usize) -> *const $real, to: *mut $real, stride: usize) {
            use std::arch::x86_64::{$load, $permute, $store, _mm512_loadu_si512};
            const LANES: usize = $lanes;
            for upper in (0..SIDE).step_by(LANES) {
                for left in (0..SIDE).step_by(LANES) {
                    // SAFETY: the caller vouches for `SIDE` numbers in each line and `SIDE` × `SIDE` places.
                    unsafe {
                        let mut rows = [$load(line(upper).add(left)); LANES];
                        for i in 1..LANES {
                            rows[i] = $load(line(upper + i).add(left));
                        }
                        $({
                            const LOW: [$index; LANES] = narrow(exchange::<LANES>($apart, false));
                            const HIGH: [$index; LANES] = narrow(exchange::<LANES>($apart, true));
                            let low = _mm512_loadu_si512(LOW.as_ptr().cast());
                            let high = _mm512_loadu_si512(HIGH.as_ptr().cast());
                            for i in 0..LANES {
                                if i & $apart == 0 {
                                    let (a, b) = (rows[i], rows[i + $apart]);
                                    rows[i] = $permute(a, low, b);
                                    rows[i + $apart] = $permute(a, high, b);
                                }
                            }
                        })*
                        for j in 0..LANES {
                            $store(to.add((left + j) * stride + upper), rows[j]);
                        }
                    }
                }
            }
            /// Lane numbers as wide as the lanes.
            const fn narrow(lanes: [u64; LANES]) -> [$index; LANES] {
                let mut narrow = [0; LANES];
                let mut l = 0;
                while l < LANES {
                    narrow[l] = lanes[l] as $index;
                    l += 1;
                }
                narrow
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
x86_transpose!(transpose_ps, f32, u32, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_permutex2var_ps, [8, 4, 2, 1]);
#[cfg(target_arch = "x86_64")]
x86_transpose!(transpose_pd, f64, u64, 8, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_permutex2var_pd, [4, 2, 1]);

/// Four numbers the compiler may or may not keep in one register.
#[derive(Clone, Copy, Debug)]
pub struct Quad<T>([T; 4]);

#[allow(unsafe_code, clippy::missing_safety_doc)]
impl<T: Real> Vector<T> for Quad<T> {
    const LANES: usize = 4;
    const ABREAST: usize = 2;
    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Self([x; 4])
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller vouches for four elements; `T` has no alignment beyond its own.
        Self(unsafe { from.cast::<[T; 4]>().read() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: as in `load`.
        unsafe { to.cast::<[T; 4]>().write(self.0) }
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        // A separate product and sum: without the instruction a fused one is a slow library call.
        Self(std::array::from_fn(|i| self.0[i] * factor.0[i] + term.0[i]))
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
    #[inline(always)]
    unsafe fn relu(self) -> Self {
        Self(self.0.map(Real::relu))
    }
    #[inline(always)]
    unsafe fn gated(self, gate: Self) -> Self {
        Self(std::array::from_fn(|i| if gate.0[i] > T::ZERO { self.0[i] } else { T::ZERO }))
    }
}

#[cfg(test)]
mod tests;
