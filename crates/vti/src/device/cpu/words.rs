//! Symbols and their logits on a tile, 64 rows at a time.
//!
//! A bit has one logit, that of 1; other variables have one per symbol. A forbidden symbol has the logit −∞ (a bit: the
//! logit ∓∞), which makes its probability exactly 0 in every formula below.

use super::memory::{CpuMatrix, CpuRows};
use super::transform::{Lanes, lanes, lanes_mut};
use super::{Cpu, TILE};
use crate::device::{Choice, Entry};
use crate::simd::{Kernel, Real, Vector};
use crate::workers::Chunks;

/// `exp(logit − top)`, exactly 0 for −∞, where the vectorised exponential is merely tiny.
#[inline(always)]
fn weight<T: Real>(logit: T, top: T) -> T {
    if logit == T::NEG_INFINITY { T::ZERO } else { (logit - top).exp() }
}

/// Largest logit of each row, and the sum of `exp(logit − largest)`.
#[inline(always)]
fn normaliser<T: Real>(logits: &[T]) -> (Lanes<T>, Lanes<T>) {
    let (mut top, mut total) = (*lanes(logits, 0), [T::ZERO; TILE]);
    for logits in logits.chunks_exact(TILE) {
        for (top, &logit) in top.iter_mut().zip(logits) {
            *top = top.max(logit);
        }
    }
    for logits in logits.chunks_exact(TILE) {
        for lane in 0..TILE {
            total[lane] += weight(logits[lane], top[lane]);
        }
    }
    (top, total)
}

/// Draws a symbol per row from its logits.
pub(super) struct Choose<'a, T> {
    pub logits: &'a [T],
    pub uniforms: &'a [T],
    pub words: &'a mut [T],
    pub entry: &'a Entry,
    pub inputs: &'a mut [T],
    pub log_prob: &'a mut [T],
}

impl<T: Real> Kernel<T> for Choose<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { logits, uniforms, words, entry, inputs, log_prob } = self;
        let (uniforms, words, log_prob) = (lanes(uniforms, 0), lanes_mut(words, 0), lanes_mut(log_prob, 0));
        if logits.len() == TILE {
            choose_bit(lanes(logits, 0), uniforms, words, log_prob);
        } else {
            choose_digit(logits, uniforms, words, log_prob);
        }
        match entry {
            Entry::Scaled { feature, scale } => {
                let (to, scale) = (lanes_mut(inputs, *feature), T::from_f64(*scale));
                to.iter_mut().zip(words).for_each(|(to, &mut symbol)| *to = symbol * scale);
            }
            Entry::OneHot { features } => {
                for (symbol, feature) in features.clone().enumerate() {
                    let (to, symbol) = (lanes_mut(inputs, feature), T::from_f64(symbol as f64));
                    to.iter_mut().zip(words.iter()).for_each(|(to, &word)| *to = T::from_bool(word == symbol));
                }
            }
        }
    }
}

#[inline(always)]
fn choose_bit<T: Real>(logits: &Lanes<T>, uniforms: &Lanes<T>, words: &mut Lanes<T>, log_prob: &mut Lanes<T>) {
    for lane in 0..TILE {
        let logit = logits[lane];
        // Intervals in order of the symbols: 0 first. Uniform numbers lie below 1, so 1 is never drawn when 0 is certain.
        let certain = logit == T::INFINITY;
        // σ(−logit) from the same exponential as the log probability below, so that there is only one of them.
        let smaller = (-logit.abs()).exp();
        let zero = (if logit > T::ZERO { smaller } else { T::ONE }) / (T::ONE + smaller);
        let one = certain || (uniforms[lane] >= zero && logit > T::NEG_INFINITY);
        words[lane] = T::from_bool(one);
        log_prob[lane] += bit_log_prob(logit, one);
    }
}

/// `log σ(±logit)`: 0 where the bit is certain, −∞ where it is impossible.
#[inline(always)]
fn bit_log_prob<T: Real>(logit: T, one: bool) -> T {
    let against = if one { -logit } else { logit };
    // softplus(∞) = ∞ and softplus(−∞) = 0 hold for the exact function; the vectorised one saturates.
    let bounded = -against.softplus();
    if against.abs() < T::INFINITY {
        bounded
    } else if against < T::ZERO {
        T::ZERO
    } else {
        T::NEG_INFINITY
    }
}

#[inline(always)]
fn choose_digit<T: Real>(logits: &[T], uniforms: &Lanes<T>, words: &mut Lanes<T>, log_prob: &mut Lanes<T>) {
    let (top, total) = normaliser(logits);
    let mut sum = [T::ZERO; TILE];
    let mut chosen = top;
    words.fill(T::ZERO);
    for (symbol, logits) in logits.chunks_exact(TILE).enumerate() {
        let value = T::from_f64(symbol as f64);
        for lane in 0..TILE {
            // The last possible symbol whose interval starts at or below the uniform number.
            let reached = uniforms[lane] * total[lane] >= sum[lane] && logits[lane] > T::NEG_INFINITY;
            words[lane] = if reached { value } else { words[lane] };
            chosen[lane] = if reached { logits[lane] } else { chosen[lane] };
            sum[lane] += weight(logits[lane], top[lane]);
        }
    }
    for lane in 0..TILE {
        log_prob[lane] += chosen[lane] - top[lane] - total[lane].ln();
    }
}

/// Log probabilities of known symbols.
pub(super) struct LogProb<'a, T> {
    pub logits: &'a [T],
    pub words: &'a [T],
    pub log_prob: &'a mut [T],
}

impl<T: Real> Kernel<T> for LogProb<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { logits, words, log_prob } = self;
        let (words, log_prob) = (lanes(words, 0), lanes_mut(log_prob, 0));
        if logits.len() == TILE {
            let logits = lanes(logits, 0);
            for lane in 0..TILE {
                log_prob[lane] += bit_log_prob(logits[lane], words[lane] > T::ZERO);
            }
            return;
        }
        let (top, total) = normaliser(logits);
        let mut chosen = [T::ZERO; TILE];
        for (symbol, logits) in logits.chunks_exact(TILE).enumerate() {
            let symbol = T::from_f64(symbol as f64);
            for lane in 0..TILE {
                chosen[lane] = if words[lane] == symbol { logits[lane] } else { chosen[lane] };
            }
        }
        for lane in 0..TILE {
            log_prob[lane] += chosen[lane] - top[lane] - total[lane].ln();
        }
    }
}

/// From logits to `weight · (1[symbol] − probability)`.
pub(super) struct Gradient<'a, T> {
    pub logits: &'a mut [T],
    pub words: &'a [T],
    pub weights: &'a [T],
}

impl<T: Real> Kernel<T> for Gradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Self { logits, words, weights } = self;
        let (words, weights) = (lanes(words, 0), lanes(weights, 0));
        if logits.len() == TILE {
            let logits = lanes_mut(logits, 0);
            for lane in 0..TILE {
                let logit = logits[lane];
                let gradient = weights[lane] * (words[lane] - logit.sigmoid());
                // A bit without a choice has no gradient.
                logits[lane] = if logit.abs() < T::INFINITY { gradient } else { T::ZERO };
            }
            return;
        }
        let (top, total) = normaliser(logits);
        for (symbol, logits) in logits.chunks_exact_mut(TILE).enumerate() {
            let symbol = T::from_f64(symbol as f64);
            for lane in 0..TILE {
                let chosen = T::from_bool(words[lane] == symbol);
                logits[lane] = weights[lane] * (chosen - weight(logits[lane], top[lane]) / total[lane]);
            }
        }
    }
}

/// Draws the symbols of all rows.
pub(super) fn choose<T: Real>(device: &Cpu<T>, rows: &CpuRows, choice: Choice<'_, CpuMatrix<T>>) {
    let Choice { variable, outputs, logits, uniforms, words, entry, inputs, log_prob } = choice;
    let lens = (words.tile_len(), inputs.tile_len(), log_prob.tile_len());
    let (words, inputs) = (Chunks::new(&mut words.data, lens.0), Chunks::new(&mut inputs.data, lens.1));
    let parts = (words, (inputs, Chunks::new(&mut log_prob.data, lens.2)));
    let workers = device.workers_for(rows.tiles() * 32 * TILE * outputs.len());
    workers.for_each_part(parts, rows.tiles(), |tile, (words, (inputs, log_prob))| {
        let logits = &logits.tile(tile)[outputs.start * TILE..outputs.end * TILE];
        let uniforms = &uniforms.tile(tile)[variable * TILE..][..TILE];
        let words = &mut words[variable * TILE..][..TILE];
        device.run(Choose { logits, uniforms, words, entry: &entry, inputs, log_prob });
    });
}
