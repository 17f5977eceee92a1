//! Evidences of numbers of components beside those of independent programs, with settings of the commands: how far they are off, and
//! whether they say so.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use vti::answer::{Findings, Run, Sources};
use vti::check::check_and_learn;
use vti::device::{Cpu, Device};
use vti::family::FamilySettings;
use vti::smc::{Sampler, SmcSettings};
use vti::space::{Catalogue, Model};
use vti::stats::{Estimate, log_sum_exp};
use vti::train::{Silent, Trainer};

use super::counting;
use super::known::{LogEvidence, Plan, Question};
use crate::Options;
use crate::report::print_line;

/// How to run it.
#[derive(Args)]
pub(crate) struct EvidenceOptions {
    #[command(flatten)]
    options: Options,
    /// Seeds for each problem
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// Particles alone, without q
    #[arg(long)]
    particles: bool,
}

/// A log evidence beside the truth.
#[derive(Clone, Debug, Serialize)]
struct Compared {
    model: String,
    estimate: f64,
    se: f64,
    off: f64,
}

impl Compared {
    fn new(model: &str, found: Estimate, truth: f64) -> Self {
        Self { model: model.into(), estimate: found.value, se: found.se, off: found.value - truth }
    }

    fn is_within(&self, errors: f64) -> bool {
        self.off.abs() <= errors * self.se
    }
}

/// What came of a run.
#[derive(Clone, Debug, Serialize)]
struct Outcome {
    case: String,
    seed: u64,
    /// How probabilities were corrected, and what to do with them.
    how: String,
    total: Compared,
    /// `log p(y)` as particles found it on their way from the prior.
    particles: Option<Compared>,
    models: Vec<Compared>,
    /// The largest error of a probability.
    off: f64,
    /// How many earths the forward function was asked for; one with its gradient is one.
    earths: u64,
    seconds: f64,
}

/// Runs all problems with all seeds.
pub(crate) fn run(arguments: &EvidenceOptions) -> Result<()> {
    let options = &arguments.options;
    let device = Cpu::<f32>::new(options.threads)?;
    let mut outcomes: BTreeMap<String, Vec<Outcome>> = BTreeMap::new();
    for plan in counting::plans()
        .iter()
        .filter(|plan| options.wants(&plan.name) && !plan.name.ends_with(counting::GALAXIES_NAME))
    {
        for seed in arguments.first_seed..arguments.first_seed + arguments.seeds {
            let outcome = once(plan, seed, &device, arguments.particles).with_context(|| plan.name.clone())?;
            print_line(&if options.json { serde_json::to_string(&outcome)? } else { line(&outcome) });
            outcomes.entry(plan.name.clone()).or_default().push(outcome);
        }
    }
    if !options.json {
        outcomes.iter().for_each(|(case, outcomes)| print_line(&summary(case, outcomes)));
    }
    Ok(())
}

/// The truth of every model, and of all of them together.
struct Truth {
    logs: BTreeMap<String, f64>,
    probabilities: BTreeMap<String, f64>,
    total: f64,
}

impl Truth {
    fn new(question: &Question, log_evidence: &LogEvidence) -> Result<Self> {
        let problem = question.problem();
        let catalogue = Catalogue::new(problem.space(), 1 << 10)?;
        let models: Vec<Model> = (0..catalogue.len()).map(|place| catalogue.model(place)).collect::<Result<_, _>>()?;
        let joint: Vec<f64> = models.iter().map(|model| log_evidence(model) + problem.log_prior(model)).collect();
        let total = log_sum_exp(&joint);
        let named = |values: &dyn Fn(usize) -> f64| {
            models.iter().enumerate().map(|(place, model)| (model.to_string(), values(place))).collect()
        };
        Ok(Self {
            logs: named(&|place| log_evidence(&models[place])),
            probabilities: named(&|place| (joint[place] - total).exp()),
            total,
        })
    }
}

/// What a run says.
struct Found {
    how: String,
    total: Estimate,
    particles: Option<Estimate>,
    /// Models with probability and evidence.
    models: Vec<(String, f64, Option<Estimate>)>,
}

fn once(plan: &Plan, seed: u64, device: &Cpu<f32>, only_particles: bool) -> Result<Outcome> {
    let question = (plan.question)()?;
    let truth = Truth::new(&question, plan.log_evidence.as_ref().context("no evidences")?)?;
    let (start, before) = (Instant::now(), counting::earths_asked());
    let Found { how, total, particles, models: found } = match only_particles {
        true => particles(&question, seed, device)?,
        false => learned(&question, seed, device)?,
    };
    let off =
        found.iter().map(|(word, probability, _)| (probability - truth.probabilities[word]).abs()).fold(0.0, f64::max);
    let mut models: Vec<Compared> =
        found.iter().filter_map(|(word, _, log)| Some(Compared::new(word, (*log)?, truth.logs[word]))).collect();
    models.sort_by(|a, b| a.model.cmp(&b.model));
    Ok(Outcome {
        case: plan.name.clone(),
        seed,
        how,
        total: Compared::new("all", total, truth.total),
        particles: particles.map(|found| Compared::new("all", found, truth.total)),
        models,
        off,
        earths: counting::earths_asked() - before,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// As the command does it.
fn learned(question: &Question, seed: u64, device: &Cpu<f32>) -> Result<Found> {
    let settings = question.train_settings(seed);
    let fit =
        Trainer::new(question.problem(), device.clone(), &FamilySettings::default(), &settings)?.run(&mut Silent)?;
    let run = Run::of(&fit);
    let (posterior, check, lessons) = check_and_learn(fit.posterior, &question.check_settings(), None, &mut |_| true)?;
    let Findings { answer, models, .. } = Findings::new(&posterior, &question.subject(), &Sources::from(&check), run)?;
    let how = format!("{:?}, {:?}, {lessons} lessons", answer.correction, answer.verdict.kind).to_lowercase();
    let total = Estimate { value: answer.log_evidence.estimate, se: answer.log_evidence.se };
    let found = models.into_iter().map(|model| (model.word, model.probability.corrected, model.log_evidence));
    let particles = check.opinion.as_ref().map(|opinion| opinion.log_evidence);
    Ok(Found { how, total, particles, models: found.collect() })
}

/// By the particles of the first round of the check.
fn particles(question: &Question, seed: u64, device: &Cpu<f32>) -> Result<Found> {
    let (problem, smc) = (question.problem(), question.check_settings().opinion.smc);
    let reference = problem.reference().context("no reference")?;
    let mut sampler = Sampler::new(&*problem, &reference, &smc, seed)?;
    sampler.run(smc.runs, device.workers(), &mut |_| true)?;
    let sampled = sampler.found().context("all particles were lost")?;
    let total = sampled.log_evidence;
    let SmcSettings { runs, particles, .. } = smc;
    let found = sampled.models.iter().map(|found| {
        let Estimate { value, se } = found.probability;
        let log = value.ln() + total.value - problem.log_prior(&found.model);
        (found.model.to_string(), value, Some(Estimate { value: log, se: f64::hypot(se / value, total.se) }))
    });
    let how = format!("{runs} × {particles} particles");
    Ok(Found { how, total, particles: Some(total), models: found.collect() })
}

fn line(outcome: &Outcome) -> String {
    let Outcome { case, seed, how, total, particles, models, off, earths, seconds } = outcome;
    let shown = |one: &Compared| format!("{:+.3} ± {:.3}", one.off, one.se);
    let models: Vec<String> = models.iter().map(shown).collect();
    let earths = if *earths > 0 { format!(", {earths} earths") } else { String::new() };
    let particles = particles.as_ref().map_or(String::new(), |own| format!(" (particles alone {})", shown(own)));
    format!(
        "{case}, seed {seed} ({how}, {seconds:.0} s{earths}): P off by {off:.4}; log p(y) {}{particles}; of each {}",
        shown(total),
        models.join(", ")
    )
}

fn summary(case: &str, outcomes: &[Outcome]) -> String {
    let all: Vec<&Compared> = outcomes.iter().flat_map(|outcome| &outcome.models).collect();
    let share =
        |errors: f64| 100.0 * all.iter().filter(|one| one.is_within(errors)).count() as f64 / all.len().max(1) as f64;
    let largest = all.iter().map(|one| one.off.abs()).fold(0.0, f64::max);
    let (runs, off) = (outcomes.len() as f64, outcomes.iter().map(|outcome| outcome.total.off).sum::<f64>());
    let square = outcomes.iter().map(|outcome| outcome.total.off.powi(2)).sum::<f64>();
    let said = outcomes.iter().map(|outcome| outcome.total.se.powi(2)).sum::<f64>();
    format!(
        "{case}: {} evidences of {runs} runs, off by {largest:.3} at most, {:.0} % within one error and {:.0} % within two; log p(y) off by \
         {:+.4} on average, root mean square {:.4}, errors {:.4}",
        all.len(),
        share(1.0),
        share(2.0),
        off / runs,
        (square / runs).sqrt(),
        (said / runs).sqrt()
    )
}
