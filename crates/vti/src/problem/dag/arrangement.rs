//! Hidden units can change places: which of the H! arrangements is meant?
//!
//! A likelihood does not change when the hidden units of a node do, so its posterior η consists of H! copies, and a flow finds
//! one of them; its bound would stay log H! short, and nodes without parents, which have no units, would seem better than they
//! are. So the density that is inferred is that of one arrangement:
//!
//! ```text
//! η'(θ) = η(θ) · H! · r(θ),     r(θ) = Π_k f_k(w_k) / Σ_{h left at k} f_k(w_h),     f_k(w) = Q_k(w) / Σ_j Q_j(w).
//! ```
//!
//! Here w_h are the weights into and out of unit h, Q_k is what the best independent normal parameters ([`MeanFieldFit`]) say
//! of unit k, so that f_k(w) is how well w fits place k among all, and r is the probability that units which are put into
//! places one place after another, each with probability in proportion to how well it fits, end up as they stand. Nothing is
//! lost: η is the same for all arrangements and r sums to 1 over them, so
//! the evidence `∫ η'` is `∫ η` exactly, and so are all means of functions of the node's mean. Units that Q does not tell apart,
//! such as those that fell back to their prior, are shared evenly. Places that are known best come first: a vague one would fit
//! any unit.

use super::layout::Layout;
use super::mean_field_fit::MeanFieldFit;
use crate::random::{Purpose, Stream};

/// The most hidden units that are arranged: beyond, all arrangements are left in.
const MAX_UNITS: usize = 64;

/// Whether there are few enough units.
pub(super) fn is_arranged(layout: Layout) -> bool {
    layout.hidden <= MAX_UNITS
}

/// `log H! r(θ)`, its gradient added to `gradient`.
pub(super) fn log_weight(
    layout: Layout,
    parents: usize,
    fit: &MeanFieldFit,
    theta: &[f64],
    gradient: &mut [f64],
) -> f64 {
    let hidden = layout.hidden;
    // log Q_k(w_h), place by place, but for a constant.
    let mut fits = vec![0.0; hidden * hidden];
    let mut known = vec![0.0; hidden];
    for first in firsts(layout, parents) {
        let units = &theta[first..first + hidden];
        for (k, fits) in fits.chunks_exact_mut(hidden).enumerate() {
            let (mean, precision) = (fit.location[first + k], fit.precision[first + k]);
            let level = 0.5 * precision.ln();
            known[k] += level;
            fits.iter_mut().zip(units).for_each(|(fit, w)| *fit += level - 0.5 * precision * (w - mean) * (w - mean));
        }
    }
    // How well each unit fits each place among all of them; then its logarithm.
    let mut among = fits.clone();
    for h in 0..hidden {
        let column = || (0..hidden).map(|k| k * hidden + h);
        let top = column().fold(f64::NEG_INFINITY, |top, at| top.max(fits[at]));
        let log_total = top + column().map(|at| (fits[at] - top).exp()).sum::<f64>().ln();
        column().for_each(|at| fits[at] -= log_total);
        column().for_each(|at| among[at] = fits[at].exp());
    }
    let mut places: Vec<usize> = (0..hidden).collect();
    places.sort_by(|&a, &b| known[b].total_cmp(&known[a]).then(a.cmp(&b)));
    let mut sum = 0.0;
    for (turn, &k) in places.iter().enumerate() {
        let fits = &mut fits[k * hidden..][..hidden];
        let left = || places[turn..].iter().copied();
        let top = left().fold(f64::NEG_INFINITY, |top, h| top.max(fits[h]));
        let own = fits[k] - top;
        let total: f64 = left().map(|h| (fits[h] - top).exp()).sum();
        sum += own - total.ln();
        // From here on ∂ log r / ∂ log f_k(w_h): less the probability that unit h is put there, one more for the one that is.
        places[..turn].iter().for_each(|&h| fits[h] = 0.0);
        left().for_each(|h| fits[h] = -(fits[h] - top).exp() / total);
        fits[k] += 1.0;
    }
    for h in 0..hidden {
        let column = || (0..hidden).map(|k| k * hidden + h);
        let all: f64 = column().map(|at| fits[at]).sum();
        column().for_each(|at| fits[at] -= all * among[at]);
    }
    for first in firsts(layout, parents) {
        for (k, by_fit) in fits.chunks_exact(hidden).enumerate() {
            let (mean, precision) = (fit.location[first + k], fit.precision[first + k]);
            for (h, by_fit) in by_fit.iter().enumerate() {
                gradient[first + h] -= by_fit * precision * (theta[first + h] - mean);
            }
        }
    }
    log_factorial(hidden) + sum
}

/// Where the numbers of the first unit stand: those of the others follow it.
fn firsts(layout: Layout, parents: usize) -> impl Iterator<Item = usize> {
    layout.inputs(parents).chain(layout.outputs()).map(|range| range.start)
}

fn log_factorial(n: usize) -> f64 {
    (2..=n).map(|k| (k as f64).ln()).sum()
}

/// `E_Q log H! r(θ)`: what choosing an arrangement adds to the bound of Q. By draws, always the same ones.
pub(super) fn expected_log_weight(layout: Layout, parents: usize, fit: &MeanFieldFit) -> f64 {
    const DRAWS: u64 = 8;
    let dim = fit.location.len();
    let (mut theta, mut gradient) = (vec![0.0; dim], vec![0.0; dim]);
    let draws = (0..DRAWS).map(|number| {
        let mut stream = Stream::new(0, Purpose::Initialise, u64::MAX, number);
        for (x, (mean, precision)) in theta.iter_mut().zip(fit.location.iter().zip(&fit.precision)) {
            *x = mean + stream.normal() / precision.sqrt();
        }
        log_weight(layout, parents, fit, &theta, &mut gradient)
    });
    draws.sum::<f64>() / DRAWS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(layout: Layout, parents: usize) -> MeanFieldFit {
        let dim = layout.dim(parents);
        let mut stream = Stream::new(3, Purpose::Other(6), 0, 0);
        let location = (0..dim).map(|_| stream.normal()).collect();
        let precision = (0..dim).map(|_| (1.0 + 2.0 * stream.uniform()).exp()).collect();
        MeanFieldFit { location, precision, lower_bound: 0.0 }
    }

    /// θ with its units in another order.
    fn arranged(layout: Layout, parents: usize, theta: &[f64], order: &[usize]) -> Vec<f64> {
        let mut moved = theta.to_vec();
        for first in firsts(layout, parents) {
            (0..layout.hidden).for_each(|h| moved[first + h] = theta[first + order[h]]);
        }
        moved
    }

    #[test]
    fn arrangements_share_one() {
        for (own, bias, outputs) in [(0, false, 1), (1, true, 1), (2, true, 3)] {
            let layout = Layout { own, hidden: 4, bias, outputs };
            let fit = fit(layout, 2);
            let mut stream = Stream::new(4, Purpose::Other(6), 0, 0);
            let theta: Vec<f64> = (0..layout.dim(2)).map(|_| stream.normal()).collect();
            let mut sum = 0.0;
            for a in 0..4 {
                for b in (0..4).filter(|&b| b != a) {
                    for c in (0..4).filter(|&c| c != a && c != b) {
                        let moved = arranged(layout, 2, &theta, &[a, b, c, 6 - a - b - c]);
                        sum += log_weight(layout, 2, &fit, &moved, &mut vec![0.0; theta.len()]).exp();
                    }
                }
            }
            assert!((sum / 24.0 - 1.0).abs() < 1e-8, "{sum}");
        }
    }

    #[test]
    fn gradients_are_those_of_the_weight() {
        let layout = Layout { own: 1, hidden: 5, bias: true, outputs: 2 };
        let fit = fit(layout, 3);
        let mut stream = Stream::new(5, Purpose::Other(6), 0, 0);
        let theta: Vec<f64> = (0..layout.dim(3)).map(|_| stream.normal()).collect();
        let mut gradient = vec![0.0; theta.len()];
        log_weight(layout, 3, &fit, &theta, &mut gradient);
        for i in 0..theta.len() {
            let moved = |by: f64| {
                let mut theta = theta.clone();
                theta[i] += by;
                log_weight(layout, 3, &fit, &theta, &mut vec![0.0; theta.len()])
            };
            let numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((numeric - gradient[i]).abs() < 1e-5 * (1.0 + numeric.abs()), "{i}: {numeric} {}", gradient[i]);
        }
    }

    #[test]
    fn units_that_are_alike_are_not_told_apart() {
        let layout = Layout { own: 0, hidden: 6, bias: false, outputs: 1 };
        let dim = layout.dim(2);
        let alike = MeanFieldFit { location: vec![0.0; dim], precision: vec![1.0; dim], lower_bound: 0.0 };
        let theta: Vec<f64> = (0..dim).map(|i| (i as f64).sin()).collect();
        assert!(log_weight(layout, 2, &alike, &theta, &mut vec![0.0; dim]).abs() < 1e-9);
        let apart = MeanFieldFit { location: theta.clone(), precision: vec![1e4; dim], lower_bound: 0.0 };
        let expected = 720f64.ln();
        assert!((log_weight(layout, 2, &apart, &theta, &mut vec![0.0; dim]) - expected).abs() < 1e-9);
        assert!((expected_log_weight(layout, 2, &apart) - expected).abs() < 1e-6);
    }
}
