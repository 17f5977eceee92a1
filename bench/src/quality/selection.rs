//! Variable selection on real and simulated data.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use vti::check::{CheckSettings, check_and_learn};
use vti::device::{Cpu, Device};
use vti::family::FamilySettings;
use vti::problem::selection::simulate::{CorrelatedSettings, correlated};
use vti::problem::selection::{
    CoefficientPrior, EnumerationLimits, Likelihood, ModelPrior, RegressionData, Selection, SelectionSettings,
    Standardise, enumerate,
};
use vti::rjmcmc::{Pseudo, RjmcmcSettings, rjmcmc};
use vti::train::{Silent, TrainSettings, Trainer};

use super::{Figures, peak_memory};
use crate::Options;
use crate::report::{Line, Report};
use crate::table::read;

/// Seeds that results are averaged over.
const SEEDS: u64 = 3;

/// What the cases are.
pub(super) fn notes() -> Vec<String> {
    vec![
        format!(
            "Variable selection: means over {SEEDS} seeds (the scale example: one). Inclusion probabilities: the largest error \
             over all covariates."
        ),
        "Robust: data/robust_high_8.csv with α = 0.526316, σ = (1, 10), N(0, 1.5²) and 128 models. KL is that of q from \
         the posterior of models and parameters, −154.228 (by tempered sequential Monte Carlo, ± 0.03) minus the bound; \
         probabilities are compared with those of long reversible jump chains (64 of 200,000 sweeps)."
            .into(),
    ]
}

/// All cases.
pub(super) fn run(report: &mut Report, device: &Cpu<f32>, options: &Options) -> Result<()> {
    let seeds = if options.quick { 1 } else { SEEDS };
    for (case, data, response) in [
        ("hald", include_str!("../../../data/hald.csv"), "y"),
        ("prostate", include_str!("../../../data/prostate.csv"), "lpsa"),
    ] {
        if options.wants(case) {
            conjugate(report, device, case, &read(data, response, usize::MAX)?, seeds)?;
        }
    }
    if options.wants("robust") {
        robust(report, device, seeds)?;
    }
    if options.wants("scale") {
        scale(report, device, options.quick)?;
    }
    Ok(())
}

/// A table whose evidences are known in closed form, with the g-prior.
fn conjugate(report: &mut Report, device: &Cpu<f32>, case: &str, table: &RegressionData, seeds: u64) -> Result<()> {
    let selection = Arc::new(Selection::new(table, Standardise::Full, &SelectionSettings::default())?);
    let exact = enumerate(&selection, device.workers(), &EnumerationLimits::default())?.inclusion;
    let (mut q, mut corrected, mut khat, mut seconds) = (vec![], vec![], vec![], vec![]);
    for seed in 1..=seeds {
        let settings = TrainSettings { seed, ..TrainSettings::default() };
        let found = answer(&selection, device, &settings)?;
        let worst = |found: &[f64]| exact.iter().zip(found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        q.push(worst(&found.inclusion(|model| model.0)));
        corrected.push(worst(&found.inclusion(|model| model.1)));
        khat.push(found.khat);
        seconds.push(found.seconds);
    }
    report.push(Figures(q).line(case, "error of inclusion probabilities, q", "", "≤ 0.02"))?;
    report.push(Figures(corrected).line(case, "error of inclusion probabilities, corrected", "", "≤ 0.005"))?;
    report.push(Figures(khat).line(case, "k̂", "", ""))?;
    report.push(Figures(seconds).line(case, "training and check", "s", ""))
}

/// What a run found.
struct Answer {
    words: Vec<Vec<u16>>,
    /// q and corrected probability of each word.
    probabilities: Vec<(f64, f64)>,
    elbo: f64,
    khat: f64,
    seconds: f64,
}

impl Answer {
    fn inclusion(&self, which: impl Fn(&(f64, f64)) -> f64) -> Vec<f64> {
        let terms = self.words.first().map_or(0, Vec::len);
        let pairs = || self.words.iter().zip(&self.probabilities);
        let one = |term: usize| pairs().filter(|(word, _)| word[term] == 1).map(|(_, p)| which(p)).sum();
        (0..terms).map(one).collect()
    }
}

fn answer(selection: &Arc<Selection>, device: &Cpu<f32>, settings: &TrainSettings) -> Result<Answer> {
    let start = Instant::now();
    let trainer = Trainer::new(selection.clone(), device.clone(), &FamilySettings::default(), settings)?;
    let fit = trainer.run(&mut Silent)?;
    let (posterior, check, _) = check_and_learn(fit.posterior, &CheckSettings::default(), None, &mut |_| true)?;
    let seconds = start.elapsed().as_secs_f64();
    let models = &check.correction.models;
    Ok(Answer {
        words: models.iter().map(|model| model.model.to_vec()).collect(),
        probabilities: models.iter().map(|model| (model.q, model.corrected.value)).collect(),
        elbo: posterior.elbo(100_000)?.value,
        khat: check.khat.unwrap_or(f64::NAN),
        seconds,
    })
}

/// The exact log evidence of the robust example.
const ROBUST_LOG_EVIDENCE: f64 = -154.228;

/// The robust example.
fn robust(report: &mut Report, device: &Cpu<f32>, seeds: u64) -> Result<()> {
    let case = "robust";
    let settings = SelectionSettings {
        likelihood: Likelihood::Robust { alpha: 0.526316, sigma1: Some(1.0), sigma2: Some(10.0) },
        prior: CoefficientPrior::Normal { scale: 1.5 },
        model_prior: ModelPrior::Uniform {},
        ..SelectionSettings::default()
    };
    let table = read(include_str!("../../../data/robust_high_8.csv"), "y", usize::MAX)?;
    let selection = Arc::new(Selection::new(&table, Standardise::Raw, &settings)?);
    let exact = reference(&selection, device)?;
    let (mut kl, mut q, mut corrected, mut khat, mut seconds) = (vec![], vec![], vec![], vec![], vec![]);
    for seed in 1..=seeds {
        let found = answer(&selection, device, &TrainSettings { seed, ..TrainSettings::default() })?;
        kl.push(ROBUST_LOG_EVIDENCE - found.elbo);
        let distance = |which: fn(&(f64, f64)) -> f64| {
            let own = |word: &Vec<u16>| found.words.iter().position(|other| other == word);
            let found = |word| own(word).map_or(0.0, |place| which(&found.probabilities[place]));
            0.5 * exact.iter().map(|(word, exact)| (exact - found(word)).abs()).sum::<f64>()
        };
        q.push(distance(|p| p.0));
        corrected.push(distance(|p| p.1));
        khat.push(found.khat);
        seconds.push(found.seconds);
    }
    report.push(Figures(kl).line(case, "KL of q from the posterior", "nats", "≤ 0.15"))?;
    report.push(Figures(q).line(case, "total variation of model probabilities, q", "", "≤ 0.08"))?;
    report.push(Figures(corrected).line(case, "total variation of model probabilities, corrected", "", "≤ 0.03"))?;
    report.push(Figures(khat).line(case, "k̂", "", "< 0.7"))?;
    report.push(Figures(seconds).line(case, "training and check", "s", ""))
}

/// Model probabilities by long chains.
fn reference(selection: &Selection, device: &Cpu<f32>) -> Result<Vec<(Vec<u16>, f64)>> {
    let settings = RjmcmcSettings {
        chains: 64,
        sweeps: 200_000,
        burn_in: 10_000,
        thin: 20,
        pseudo: Pseudo::of_selection(selection),
        ..RjmcmcSettings::default()
    };
    let chains = rjmcmc(selection, device.workers(), &settings, &mut |_| std::ops::ControlFlow::Continue(()))?;
    if chains.rhat > 1.01 {
        bail!("the reference chains did not mix: {}", chains.verdict.text);
    }
    Ok(chains.models.iter().map(|model| (model.model.to_vec(), model.probability.value)).collect())
}

/// 200 covariates, ten of them relevant.
fn scale(report: &mut Report, device: &Cpu<f32>, quick: bool) -> Result<()> {
    let simulated = correlated(&CorrelatedSettings::default())?;
    let selection = Arc::new(Selection::new(&simulated.table, Standardise::Full, &SelectionSettings::default())?);
    let mut settings = TrainSettings::default();
    if quick {
        settings.steps /= 10;
    }
    let found = answer(&selection, device, &settings)?;
    let included = found.inclusion(|model| model.1);
    let pick = |relevant: bool| included.iter().zip(&simulated.relevant).filter(move |(_, is)| **is == relevant);
    let least = pick(true).map(|(p, _)| *p).fold(f64::INFINITY, f64::min);
    let most = pick(false).map(|(p, _)| *p).fold(0.0, f64::max);
    let mean = pick(false).map(|(p, _)| *p).sum::<f64>() / pick(false).count() as f64;
    let line = |what: &str, value, unit, target: &str| Line::figure("scale-200", what, value, unit, target);
    report.push(line(
        "smallest inclusion probability of the 10 relevant covariates, corrected",
        least,
        "",
        "near 1",
    ))?;
    report.push(line("largest of the 190 others", most, "", ""))?;
    report.push(line("mean of the 190 others", mean, "", "near 0"))?;
    report.push(line("k̂", found.khat, "", ""))?;
    report.push(line("training and check", found.seconds, "s", "minutes"))?;
    if let Some(peak) = peak_memory() {
        report.push(line("peak memory of the process", peak, "MB", "< 2000"))?;
    }
    Ok(())
}
