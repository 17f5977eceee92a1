//! Registers and elementary functions of every instruction set against one number at a time, at random lengths and offsets.

use super::*;
use crate::random::{Purpose, Stream};

/// Lengths from nothing to several registers of any width.
const LONGEST: u64 = 150;

/// Numbers of all magnitudes and both signs, with the odd ones among them.
fn numbers<T: Real>(stream: &mut Stream, count: usize) -> Vec<T> {
    let odd = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-310, -1e-310, 1e-42, 1.0];
    let mut next = || match stream.below(12) {
        0 => odd[stream.below(odd.len() as u64) as usize],
        1..4 => stream.normal() * 10f64.powf(80.0 * (stream.uniform() - 0.5)),
        _ => 5.0 * stream.normal(),
    };
    (0..count).map(|_| T::from_f64(next())).collect()
}

/// The bits, but for those of a NaN, which differ from instruction to instruction.
fn bits<T: Real>(x: T) -> u64 {
    let x = x.to_f64();
    if x.is_nan() { u64::MAX } else { x.to_bits() }
}

fn same<T: Real>(what: &str, instructions: Instructions, found: &[T], expected: impl Iterator<Item = T>) {
    for (place, (&found, expected)) in found.iter().zip(expected).enumerate() {
        let equal = bits(found) == bits(expected);
        assert!(equal, "{what}, {} {instructions:?}, place {place}: {found:?} ≠ {expected:?}", T::NAME);
    }
}

/// All operations of registers on three slices of one length; what does not fill a register is left out.
struct Registers<'a, T> {
    a: &'a [T],
    b: &'a [T],
    c: &'a [T],
}

/// One result for each number.
struct Found<T> {
    splat: Vec<T>,
    mul_add: Vec<T>,
    add: Vec<T>,
    relu: Vec<T>,
    gated: Vec<T>,
}

#[allow(unsafe_code)]
impl<T: Real> Kernel<T> for Registers<'_, T> {
    type Output = Found<T>;

    #[inline(always)]
    fn run<V: Vector<T>>(self) -> Found<T> {
        let whole = self.a.len() / V::LANES * V::LANES;
        let zeros = || vec![T::ZERO; whole];
        let mut found = Found { splat: zeros(), mul_add: zeros(), add: zeros(), relu: zeros(), gated: zeros() };
        for at in (0..whole).step_by(V::LANES) {
            // SAFETY: `LANES` numbers start at `at` in all slices, and the instructions are those that `run` enabled.
            unsafe {
                let load = |from: &[T]| V::load(from[at..at + V::LANES].as_ptr());
                let (a, b, c) = (load(self.a), load(self.b), load(self.c));
                let store = |value: V, to: &mut [T]| value.store(to[at..at + V::LANES].as_mut_ptr());
                store(V::splat(self.a[at]), &mut found.splat);
                store(a.mul_add(b, c), &mut found.mul_add);
                store(a.add(b), &mut found.add);
                store(a.relu(), &mut found.relu);
                store(a.gated(b), &mut found.gated);
            }
        }
        found
    }
}

/// How many numbers a register holds.
struct Lanes;

impl<T: Real> Kernel<T> for Lanes {
    type Output = usize;

    #[inline(always)]
    fn run<V: Vector<T>>(self) -> usize {
        V::LANES
    }
}

fn registers<T: Real>(seed: u64) {
    let mut stream = Stream::new(seed, Purpose::Other(1), 0, 0);
    let (len, offset) = (stream.below(LONGEST) as usize, stream.below(4) as usize);
    let mut next = || numbers::<T>(&mut stream, offset + len);
    let (a, b, c) = (next(), next(), next());
    let (a, b, c) = (&a[offset..], &b[offset..], &c[offset..]);
    for instructions in Instructions::available() {
        let found = instructions.run(Registers { a, b, c });
        let lanes = instructions.run::<T, _>(Lanes);
        assert_eq!(found.add.len(), len / lanes * lanes);
        let fused = instructions != Instructions::Portable;
        let mul_add = |i: usize| if fused { a[i].mul_add(b[i], c[i]) } else { a[i] * b[i] + c[i] };
        let same = |what: &str, found: &[T], expected: &dyn Fn(usize) -> T| {
            same(what, instructions, found, (0..found.len()).map(expected));
        };
        same("splat", &found.splat, &|i| a[i / lanes * lanes]);
        same("mul_add", &found.mul_add, &mul_add);
        same("add", &found.add, &|i| a[i] + b[i]);
        same("relu", &found.relu, &|i| a[i].relu());
        same("gated", &found.gated, &|i| if b[i] > T::ZERO { a[i] } else { T::ZERO });
    }
}

/// Moves a square block of `from`, whose lines are `stride` apart, to `to`, transposed.
struct Transposed<'a, T> {
    from: &'a [T],
    from_stride: usize,
    to: &'a mut [T],
    to_stride: usize,
}

#[allow(unsafe_code)]
impl<T: Real> Kernel<T> for Transposed<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { from, from_stride, to, to_stride } = self;
        assert!(from.len() >= (SIDE - 1) * from_stride + SIDE && to.len() >= (SIDE - 1) * to_stride + SIDE);
        // SAFETY: both hold `SIDE` lines of `SIDE` numbers, as just seen.
        unsafe { V::transpose(|i| from[i * from_stride..].as_ptr(), to.as_mut_ptr(), to_stride) };
    }
}

fn transposes<T: Real>(seed: u64) {
    let mut stream = Stream::new(seed, Purpose::Other(2), 0, 0);
    let (from_stride, to_stride) = (SIDE + stream.below(70) as usize, SIDE + stream.below(70) as usize);
    let from: Vec<T> = numbers(&mut stream, SIDE * from_stride);
    let before: Vec<T> = numbers(&mut stream, SIDE * to_stride);
    for instructions in Instructions::available() {
        let mut to = before.clone();
        instructions.run(Transposed { from: &from, from_stride, to: &mut to, to_stride });
        let expected = |place: usize| match (place / to_stride, place % to_stride) {
            (line, i) if i < SIDE => from[i * from_stride + line],
            // Between the lines nothing is written.
            _ => before[place],
        };
        same("transpose", instructions, &to, (0..to.len()).map(expected));
    }
}

/// An elementary function of every number of a slice, in a loop that the compiler vectorises.
struct Elementary<'a, T> {
    x: &'a [T],
    y: &'a mut [T],
    which: Function,
}

#[derive(Clone, Copy, Debug)]
enum Function {
    Exp,
    Ln,
    Sigmoid,
    Softplus,
    Sqrt,
}

impl Function {
    const ALL: [Self; 5] = [Self::Exp, Self::Ln, Self::Sigmoid, Self::Softplus, Self::Sqrt];

    #[inline(always)]
    fn of<T: Real>(self, x: T) -> T {
        match self {
            Self::Exp => x.exp(),
            Self::Ln => x.ln(),
            Self::Sigmoid => x.sigmoid(),
            Self::Softplus => x.softplus(),
            Self::Sqrt => x.sqrt(),
        }
    }

    /// By the standard library, in double precision.
    fn exact(self, x: f64) -> f64 {
        match self {
            Self::Exp => x.exp(),
            Self::Ln => x.ln(),
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Self::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Self::Sqrt => x.sqrt(),
        }
    }
}

impl<T: Real> Kernel<T> for Elementary<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { x, y, which } = self;
        match which {
            Function::Exp => y.iter_mut().zip(x).for_each(|(y, &x)| *y = Function::Exp.of(x)),
            Function::Ln => y.iter_mut().zip(x).for_each(|(y, &x)| *y = Function::Ln.of(x)),
            Function::Sigmoid => y.iter_mut().zip(x).for_each(|(y, &x)| *y = Function::Sigmoid.of(x)),
            Function::Softplus => y.iter_mut().zip(x).for_each(|(y, &x)| *y = Function::Softplus.of(x)),
            Function::Sqrt => y.iter_mut().zip(x).for_each(|(y, &x)| *y = Function::Sqrt.of(x)),
        }
    }
}

fn elementary<T: Real>(seed: u64) {
    let mut stream = Stream::new(seed, Purpose::Other(3), 0, 0);
    let (len, offset) = (stream.below(LONGEST) as usize, stream.below(4) as usize);
    let x = &numbers::<T>(&mut stream, offset + len)[offset..];
    for which in Function::ALL {
        for instructions in Instructions::available() {
            let mut y = vec![T::ZERO; len];
            instructions.run(Elementary { x, y: &mut y, which });
            same(&format!("{which:?}"), instructions, &y, x.iter().map(|&x| which.of(x)));
        }
        // Where nothing saturates, it is the function it is called after.
        for x in x.iter().map(|x| x.to_f64()).filter(|x| x.abs() < 80.0) {
            let (found, exact) = (which.of(T::from_f64(x)).to_f64(), which.exact(x));
            let defined = exact.is_finite() && !(matches!(which, Function::Ln) && x < T::MIN_POSITIVE.to_f64());
            let off = (found - exact).abs() / (1.0 + exact.abs());
            assert!(!defined || off <= 4.0 * T::EPSILON.to_f64(), "{which:?} of {x}: {found} ≠ {exact}");
        }
    }
}

/// Fewer where every instruction is interpreted.
const SEEDS: u64 = if cfg!(miri) { 3 } else { 300 };

#[test]
fn registers_hold_what_single_numbers_are() {
    for seed in 0..SEEDS {
        registers::<f32>(seed);
        registers::<f64>(seed);
    }
}

#[test]
fn blocks_are_transposed_and_nothing_else_is_touched() {
    for seed in 0..SEEDS {
        transposes::<f32>(seed);
        transposes::<f64>(seed);
    }
}

#[test]
fn elementary_functions_are_the_same_in_loops_of_any_length() {
    for seed in 0..SEEDS {
        elementary::<f32>(seed);
        elementary::<f64>(seed);
    }
}
