//! The machine's limit: multiply-adds per second with everything in registers.

use std::time::Instant;

/// Billions of single-precision floating-point operations per second, a multiply-add counting as two, on `threads` threads.
pub(crate) fn gflops(threads: usize, seconds: f64) -> f64 {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(move || one_thread(seconds))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or(0.0)).sum()
    })
}

/// Rounds of a kernel until time is up.
fn one_thread(seconds: f64) -> f64 {
    const ROUNDS: usize = 100_000;
    let start = Instant::now();
    let mut operations = 0.0;
    while start.elapsed().as_secs_f64() < seconds {
        operations += round(ROUNDS);
    }
    operations / start.elapsed().as_secs_f64() / 1e9
}

/// Operations done by `rounds` rounds of independent multiply-adds in the widest registers there are.
#[allow(unsafe_code)]
fn round(rounds: usize) -> f64 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was just found.
            return unsafe { avx512(rounds) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the features were just found.
            return unsafe { avx2(rounds) };
        }
    }
    let mut sums = std::hint::black_box([1.0f32; 32]);
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = *sum * 0.999 + 0.001;
        }
    }
    std::hint::black_box(sums);
    (2 * 32 * rounds) as f64
}

/// Enough independent sums to hide the latency of a multiply-add.
#[cfg(target_arch = "x86_64")]
const SUMS: usize = 12;

/// Rounds of multiply-adds in registers of so many numbers.
#[cfg(target_arch = "x86_64")]
macro_rules! register_rounds {
    ($name:ident, $features:literal, $lanes:literal, $set:ident, $fma:ident) => {
        #[target_feature(enable = $features)]
        fn $name(rounds: usize) -> f64 {
            use std::arch::x86_64::{$fma, $set};
            // Numbers the compiler does not know: it would work the sums out beforehand.
            let one = std::hint::black_box(1.0f32);
            let (factor, term) = ($set(0.999 * one), $set(0.001 * one));
            let mut sums: [_; SUMS] = std::array::from_fn(|i| $set(one * i as f32));
            for _ in 0..rounds {
                for sum in &mut sums {
                    *sum = $fma(*sum, factor, term);
                }
            }
            std::hint::black_box(sums);
            (2 * $lanes * SUMS * rounds) as f64
        }
    };
}

#[cfg(target_arch = "x86_64")]
register_rounds!(avx512, "avx512f", 16, _mm512_set1_ps, _mm512_fmadd_ps);
#[cfg(target_arch = "x86_64")]
register_rounds!(avx2, "avx2,fma", 8, _mm256_set1_ps, _mm256_fmadd_ps);
