//! The distribution of one symbol, from its definition.

use crate::number::Number;

/// Log probabilities of all symbols: a bit has one logit, that of 1, a digit one for each symbol.
pub(super) fn log_probabilities(logits: &[f64]) -> Vec<f64> {
    if let [logit] = *logits {
        return vec![-logit.softplus(), -(-logit).softplus()];
    }
    let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log_total = logits.iter().map(|logit| (logit - top).exp()).sum::<f64>().ln();
    logits.iter().map(|logit| logit - top - log_total).collect()
}

/// The symbol whose interval of the distribution function holds the uniform number, never one of probability 0.
pub(super) fn choose(log_probabilities: &[f64], uniform: f64) -> usize {
    let mut start = 0.0;
    let mut chosen = 0;
    for (symbol, log_probability) in log_probabilities.iter().enumerate() {
        if uniform >= start && *log_probability > f64::NEG_INFINITY {
            chosen = symbol;
        }
        start += log_probability.exp();
    }
    chosen
}

/// The gradient of a symbol's log probability with respect to the logits.
pub(super) fn gradient(logits: &[f64], symbol: usize) -> Vec<f64> {
    let log_probabilities = log_probabilities(logits);
    let one = |place: usize| f64::from(u8::from(place == symbol)) - log_probabilities[place].exp();
    if logits.len() == 1 { vec![one(1)] } else { (0..logits.len()).map(one).collect() }
}
