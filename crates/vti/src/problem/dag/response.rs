//! The distribution of a category given its predictors.

use crate::stats::{ln_gamma, log_logistic, log_sum_exp};

/// How a node of categories follows its predictors.
///
/// Of K categories in no order, k = 1, …, K − 1 have predictors η_k and intercepts a_k, and the first has neither:
///
/// ```text
/// p(y = k) ∝ exp(a_k + η_k),   p(y = 0) ∝ 1.
/// ```
///
/// Two categories are a logistic regression. Ordered ones have one predictor η and cut points c_1 < … < c_{K−1}, and with the
/// logistic function F
///
/// ```text
/// p(y < k) = F(c_k − η).
/// ```
///
/// Where η = 0, all probabilities of the K categories are equally likely beforehand (they are Dirichlet(1, …, 1)): intercepts have the
/// density `(K − 1)! Π_k p(y = k)`, and cut points are K − 1 draws of the standard logistic distribution, sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Response {
    /// K.
    pub categories: usize,
    pub is_ordered: bool,
}

impl Response {
    /// Intercepts, or the first cut point and the gaps to the others: K − 1.
    pub(super) fn own(self) -> usize {
        self.categories - 1
    }

    /// How many predictors there are.
    pub(super) fn predictors(self) -> usize {
        if self.is_ordered { 1 } else { self.own() }
    }

    /// Whether one of its own parameters is positive: the gap between cut points.
    pub(super) fn is_gap(self, place: usize) -> bool {
        self.is_ordered && place > 0
    }

    /// The logarithms of the probabilities of all categories.
    pub(super) fn log_probabilities(self, own: &[f64], predictors: &[f64], to: &mut [f64]) {
        if self.is_ordered {
            let mut cut = f64::NEG_INFINITY;
            for (category, to) in to.iter_mut().enumerate() {
                let next = self.next_cut(own, category, cut);
                *to = between(cut - predictors[0], next - predictors[0])[0];
                cut = next;
            }
        } else {
            to[0] = 0.0;
            to[1..].iter_mut().zip(own).zip(predictors).for_each(|((to, a), predictor)| *to = a + predictor);
            let total = log_sum_exp(to);
            to.iter_mut().for_each(|log| *log -= total);
        }
    }

    /// The upper cut point of a category, from the one below.
    fn next_cut(self, own: &[f64], category: usize, below: f64) -> f64 {
        match (category, own.get(category)) {
            (0, Some(cut)) => *cut,
            (_, Some(gap)) => below + gap,
            (_, None) => f64::INFINITY,
        }
    }

    /// `log p(category)`, and its derivatives with respect to the predictors, overwritten, and to own parameters, added up.
    pub(super) fn log_density(
        self,
        category: usize,
        own: &[f64],
        predictors: &[f64],
        by_predictors: &mut [f64],
        by_own: &mut [f64],
    ) -> f64 {
        if self.is_ordered {
            let below = match category {
                0 => f64::NEG_INFINITY,
                _ => own[..category].iter().sum(),
            };
            let above = self.next_cut(own, category, below);
            let [log, by_below, by_above] = between(below - predictors[0], above - predictors[0]);
            by_predictors[0] = -(by_below + by_above);
            // A cut point is the sum of the first and of all gaps up to it.
            by_own.iter_mut().take(category).for_each(|by| *by += by_below);
            by_own.iter_mut().take(category + 1).for_each(|by| *by += by_above);
            return log;
        }
        let logit = |k: usize| own[k] + predictors[k];
        // Less the largest exponent, so that nothing overflows.
        let top = (0..self.own()).map(logit).fold(0.0, f64::max);
        let mut total = (-top).exp();
        for (k, by) in by_predictors.iter_mut().enumerate() {
            *by = (logit(k) - top).exp();
            total += *by;
        }
        for (k, (by, by_own)) in by_predictors.iter_mut().zip(by_own).enumerate() {
            *by = f64::from(u8::from(category == k + 1)) - *by / total;
            *by_own += *by;
        }
        (if category == 0 { 0.0 } else { logit(category - 1) }) - top - total.ln()
    }

    /// `log p(own parameters)`, its gradient added to `gradient`.
    pub(super) fn add_prior(self, own: &[f64], gradient: &mut [f64]) -> f64 {
        let mut log_prior = ln_gamma(self.categories as f64);
        if self.is_ordered {
            // Of a logistic density the logarithm is log F(c) + log F(−c).
            let mut cut = 0.0;
            for (place, step) in own.iter().enumerate() {
                cut += step;
                log_prior += log_logistic(cut) + log_logistic(-cut);
                let by_cut = 1.0 - 2.0 * log_logistic(cut).exp();
                gradient.iter_mut().take(place + 1).for_each(|by| *by += by_cut);
            }
            return log_prior;
        }
        let nothing = vec![0.0; self.own()];
        let mut by = vec![0.0; self.own()];
        for category in 0..self.categories {
            log_prior += self.log_density(category, own, &nothing, &mut by, gradient);
        }
        log_prior
    }

    /// The log evidence without parents, of the number of rows of each category: the probabilities are integrated out.
    pub(super) fn log_evidence_alone(self, counts: &[usize]) -> f64 {
        let rows: usize = counts.iter().sum();
        let choices: f64 = counts.iter().map(|&count| ln_gamma(count as f64 + 1.0)).sum();
        ln_gamma(self.categories as f64) + choices - ln_gamma((rows + self.categories) as f64)
    }

    /// Own parameters for which probabilities without parents are those of the data, with one more row of each category; gaps as
    /// logarithms.
    pub(super) fn start(self, counts: &[usize]) -> Vec<f64> {
        let share =
            |range: std::ops::Range<usize>| -> f64 { counts[range].iter().map(|&count| count as f64 + 1.0).sum() };
        if !self.is_ordered {
            return (1..self.categories).map(|k| (share(k..k + 1) / share(0..1)).ln()).collect();
        }
        let cut = |k: usize| (share(0..k) / share(k..self.categories)).ln();
        let gaps = (2..self.categories).map(|k| (cut(k) - cut(k - 1)).ln());
        std::iter::once(cut(1)).chain(gaps).collect()
    }
}

/// `log(F(b) − F(a))` for a < b, with its derivatives with respect to a and b; a may be −∞, and b be ∞.
///
/// `F(b) − F(a) = F(b) F(−a) (1 − e^{a − b})`, in which nothing cancels.
fn between(a: f64, b: f64) -> [f64; 3] {
    let gap = b - a;
    // e^{a − b}/(1 − e^{a − b}).
    let edge = if gap == f64::INFINITY { 0.0 } else { gap.exp_m1().recip() };
    let log_gap = if gap == f64::INFINITY { 0.0 } else { (-(-gap).exp_m1()).ln() };
    let outside = |x: f64| if x == f64::INFINITY { 0.0 } else { log_logistic(x) };
    let by_a = if a == f64::NEG_INFINITY { 0.0 } else { -log_logistic(a).exp() - edge };
    let by_b = if b == f64::INFINITY { 0.0 } else { log_logistic(-b).exp() + edge };
    [outside(b) + outside(-a) + log_gap, by_a, by_b]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    const ALL: [Response; 4] = [
        Response { categories: 2, is_ordered: false },
        Response { categories: 4, is_ordered: false },
        Response { categories: 3, is_ordered: true },
        Response { categories: 5, is_ordered: true },
    ];

    fn point(response: Response, number: u64) -> (Vec<f64>, Vec<f64>) {
        let mut stream = Stream::new(number, Purpose::Other(3), 0, 0);
        let own = (0..response.own())
            .map(|place| if response.is_gap(place) { 0.2 + stream.uniform() } else { stream.normal() });
        let own = own.collect();
        (own, (0..response.predictors()).map(|_| 2.0 * stream.normal()).collect())
    }

    #[test]
    fn probabilities_sum_to_one_and_are_those_of_the_density() {
        for (response, number) in ALL.into_iter().flat_map(|response| (0..20).map(move |number| (response, number))) {
            let (own, predictors) = point(response, number);
            let mut logs = vec![f64::NAN; response.categories];
            response.log_probabilities(&own, &predictors, &mut logs);
            assert!((logs.iter().map(|log| log.exp()).sum::<f64>() - 1.0).abs() < 1e-12);
            for (category, log) in logs.iter().enumerate() {
                let (mut by, mut by_own) = (vec![0.0; predictors.len()], vec![0.0; own.len()]);
                let found = response.log_density(category, &own, &predictors, &mut by, &mut by_own);
                assert!((found - log).abs() < 1e-12, "{response:?} {category}: {found} {log}");
            }
            // The definition, by the logistic function itself.
            if response.is_ordered {
                let cdf = |x: f64| 1.0 / (1.0 + (-x).exp());
                let mut cut = 0.0;
                let mut below = 0.0;
                for (category, gap) in own.iter().enumerate() {
                    cut += gap;
                    let share = cdf(cut - predictors[0]);
                    assert!((logs[category].exp() - (share - below)).abs() < 1e-12);
                    below = share;
                }
            } else {
                for k in 1..response.categories {
                    assert!((logs[k] - logs[0] - own[k - 1] - predictors[k - 1]).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn derivatives_are_slopes() {
        for (response, number) in ALL.into_iter().flat_map(|response| (0..6).map(move |number| (response, number))) {
            let (own, predictors) = point(response, number);
            for category in 0..response.categories {
                let at = |own: &[f64], predictors: &[f64]| {
                    let (mut by, mut by_own) = (vec![0.0; predictors.len()], vec![0.0; own.len()]);
                    let log = response.log_density(category, own, predictors, &mut by, &mut by_own);
                    let mut by_prior = vec![0.0; own.len()];
                    (log, by, by_own, response.add_prior(own, &mut by_prior), by_prior)
                };
                let (_, by, by_own, _, by_prior) = at(&own, &predictors);
                let step = 1e-5;
                let moved = |list: &[f64], place: usize, by: f64| {
                    let mut list = list.to_vec();
                    list[place] += by;
                    list
                };
                for (place, by) in by.iter().enumerate() {
                    let log = |sign: f64| at(&own, &moved(&predictors, place, sign * step)).0;
                    assert!(((log(1.0) - log(-1.0)) / (2.0 * step) - by).abs() < 1e-8, "{response:?} {category}");
                }
                for place in 0..own.len() {
                    let both = |sign: f64| at(&moved(&own, place, sign * step), &predictors);
                    let (above, below) = (both(1.0), both(-1.0));
                    assert!(
                        ((above.0 - below.0) / (2.0 * step) - by_own[place]).abs() < 1e-8,
                        "{response:?} {category}"
                    );
                    assert!(((above.3 - below.3) / (2.0 * step) - by_prior[place]).abs() < 1e-8, "{response:?}");
                }
            }
        }
    }

    #[test]
    fn far_tails_stay_finite() {
        for category in 0..3 {
            for predictor in [-800.0, 800.0] {
                for is_ordered in [false, true] {
                    let response = Response { categories: 3, is_ordered };
                    let predictors = vec![predictor; response.predictors()];
                    let (mut by, mut by_own) = (vec![0.0; predictors.len()], vec![0.0; 2]);
                    let log = response.log_density(category, &[0.3, 0.5], &predictors, &mut by, &mut by_own);
                    assert!(log.is_finite() && by.iter().chain(&by_own).all(|x| x.is_finite()), "{response:?} {log}");
                }
            }
        }
    }

    /// The integral of the density of rows over the prior, by an even grid, is the closed form: the prior is the one it claims to be.
    #[test]
    fn without_parents_the_evidence_is_that_of_uniform_probabilities() {
        let (step, reach) = (0.1, 300);
        let grid = || (-reach..=reach).map(|i| step * f64::from(i));
        for is_ordered in [false, true] {
            for counts in [[0usize, 0, 0], [3, 1, 2], [0, 5, 1]] {
                let response = Response { categories: 3, is_ordered };
                let mut total = 0.0;
                for first in grid() {
                    for second in grid().filter(|&second| !is_ordered || second > -20.0) {
                        // A gap by its logarithm.
                        let own = if is_ordered { [first, second.exp()] } else { [first, second] };
                        let log_jacobian = if is_ordered { second } else { 0.0 };
                        let nothing = vec![0.0; response.predictors()];
                        let mut logs = [0.0; 3];
                        response.log_probabilities(&own, &nothing, &mut logs);
                        let rows: f64 =
                            counts.iter().zip(logs).map(|(&n, log)| if n == 0 { 0.0 } else { n as f64 * log }).sum();
                        let density = rows + response.add_prior(&own, &mut [0.0; 2]) + log_jacobian;
                        total += if density.is_nan() { 0.0 } else { density.exp() * step * step };
                    }
                }
                let expected = response.log_evidence_alone(&counts);
                assert!((total.ln() - expected).abs() < 1e-5, "{is_ordered} {counts:?}: {} {expected}", total.ln());
            }
        }
        // Two categories: a Beta function, 1/(n + 1) for rows that are all alike.
        let two = Response { categories: 2, is_ordered: false };
        assert!((two.log_evidence_alone(&[0, 9]) - 0.1f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn starts_are_shares() {
        let counts = [4usize, 0, 2, 9];
        for is_ordered in [false, true] {
            let response = Response { categories: 4, is_ordered };
            let mut own = response.start(&counts);
            (0..3).filter(|&place| response.is_gap(place)).for_each(|place| own[place] = own[place].exp());
            let mut logs = [0.0; 4];
            response.log_probabilities(&own, &vec![0.0; response.predictors()], &mut logs);
            for (log, count) in logs.iter().zip(counts) {
                assert!((log.exp() - (count as f64 + 1.0) / 19.0).abs() < 1e-12, "{logs:?}");
            }
        }
    }
}
