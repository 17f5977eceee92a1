//! What a fit found, beside the reference.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use vti::device::Cpu;
use vti::posterior::{Point, Posterior};
use vti::problem::selection::simulate::Misspecification;
use vti::rjmcmc::Chains;

use super::settings::Settings;
use crate::results::moments;
use crate::study::{self, Prior, Study, checked, data_seed, khat, point};
use crate::text::{self, cell, named};

/// The three distributions over models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Distribution {
    Surrogate,
    Categorical,
    Autoregressive,
}

impl Distribution {
    /// In the order of their bars.
    pub(super) const ALL: [Self; 3] = [Self::Surrogate, Self::Autoregressive, Self::Categorical];
}

named!(Distribution);

/// Which fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) misspecification: Misspecification,
    /// There are 2 to this models.
    pub(super) exponent: usize,
    pub(super) data_set: usize,
    pub(super) distribution: Distribution,
}

impl study::Case for Case {
    type Finished = Finished;

    fn of(finished: &Finished) -> Self {
        finished.case
    }

    fn data(self) -> String {
        let Self { misspecification, exponent, data_set, .. } = self;
        format!("{misspecification} misspecification, 2^{exponent} models, data set {data_set}")
    }

    fn study(self, seed: u64) -> Result<Study> {
        Study::new(self.misspecification, Prior::Focused, self.exponent, data_seed(seed, self.data_set))
    }
}

/// A finished fit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Finished {
    pub(super) case: Case,
    /// `H(π, q) = −E_{(m, θ) ~ π} log q(m, θ)` over states of the chains, and the standard error that chains show.
    pub(super) cross_entropy: Option<f64>,
    pub(super) cross_entropy_se: Option<f64>,
    pub(super) elbo: Option<f64>,
    pub(super) khat: Option<f64>,
    /// Seconds of training.
    pub(super) seconds: f64,
    /// R̂ of the reference; none for chains that stand still.
    pub(super) rhat: Option<f64>,
    /// Effective sample size of the reference.
    pub(super) effective: f64,
}

impl Finished {
    pub(super) fn new(
        case: Case,
        chains: &Chains,
        posterior: &Posterior<Cpu<f32>>,
        seconds: f64,
        settings: &Settings,
    ) -> Result<Self> {
        let (value, se) = cross_entropy(posterior, chains, settings.states)?;
        let check = checked(posterior, settings.check_draws);
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        Ok(Self {
            case,
            cross_entropy: finite(value),
            cross_entropy_se: finite(se),
            elbo: check.as_ref().and_then(|check| finite(check.elbo.value)),
            khat: khat(check.as_ref()),
            seconds,
            rhat: finite(chains.rhat),
            effective: chains.effective,
        })
    }
}

/// Each chain gives a mean over its share of the states; their spread gives the standard error.
fn cross_entropy(posterior: &Posterior<Cpu<f32>>, chains: &Chains, states: usize) -> Result<(f64, f64)> {
    let each = (states / chains.chains).clamp(1, chains.kept);
    let place = |chain: usize, state: usize| chain * chains.kept + state * chains.kept / each;
    let rows = (0..chains.chains).flat_map(|chain| (0..each).map(move |state| place(chain, state)));
    let points: Vec<Point> = rows.map(|row| point(chains, row)).collect();
    let log_q = posterior.log_q(&points)?;
    let means: Vec<f64> = log_q.chunks_exact(each).map(|own| -moments(own).0).collect();
    let (mean, sd) = moments(&means);
    Ok((mean, sd / (means.len() as f64).sqrt()))
}

/// Every fit, and those that were left out with the reason.
pub(super) fn table(fits: &[Finished], left_out: &[(Case, String)]) -> Result<String> {
    let names = [
        "misspecification",
        "log2_models",
        "distribution",
        "data_set",
        "cross_entropy",
        "cross_entropy_se",
        "elbo",
        "khat",
        "seconds",
        "reference_rhat",
        "reference_effective",
        "left_out",
    ];
    let line = |case: Case, cells: [String; 8]| -> Vec<String> {
        let Case { misspecification, exponent, data_set, distribution } = case;
        let case = [misspecification.to_string(), exponent.to_string(), distribution.to_string(), data_set.to_string()];
        case.into_iter().chain(cells).collect()
    };
    let finished = fits.iter().map(|fit| {
        let [a, b, c, d] = [fit.cross_entropy, fit.cross_entropy_se, fit.elbo, fit.khat].map(cell);
        let [seconds, effective] = [format!("{:.2}", fit.seconds), format!("{:.0}", fit.effective)];
        line(fit.case, [a, b, c, d, seconds, cell(fit.rhat), effective, String::new()])
    });
    let others = left_out.iter().map(|(case, reason)| {
        let mut cells = [const { String::new() }; 8];
        cells[7].clone_from(reason);
        line(*case, cells)
    });
    text::table(names, finished.chain(others))
}
