//! Several runs at once on the same cores: how much longer four take together than one alone.

use std::sync::Arc;

use anyhow::{Context, Result};
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::problem::selection::{CoefficientPrior, Likelihood, Selection, SelectionSettings, Standardise};
use vti::train::{Silent, TrainSettings, Trainer};

use crate::Options;
use crate::report::{Line, Report};
use crate::table;
use crate::timing::seconds;

/// Runs that share the cores.
const RUNS: usize = 4;

/// A training run of its own, on threads of its own.
fn train(threads: usize, steps: u64, batch: usize) -> Result<()> {
    let text = include_str!("../../data/robust_high_8.csv");
    let data = table::read(text, "y", usize::MAX)?;
    let settings = SelectionSettings {
        likelihood: Likelihood::Robust { alpha: 0.526316, sigma1: Some(1.0), sigma2: Some(10.0) },
        prior: CoefficientPrior::Normal { scale: 1.5 },
        ..SelectionSettings::default()
    };
    let problem = Selection::new(&data, Standardise::Raw, &settings)?;
    let settings = TrainSettings { steps, batch, ..TrainSettings::default() };
    let trainer = Trainer::new(Arc::new(problem), Cpu::<f32>::new(threads)?, &FamilySettings::default(), &settings)?;
    trainer.run(&mut Silent)?;
    Ok(())
}

/// So many runs side by side: seconds until all have ended, and seconds of all cores.
fn together(runs: usize, run: impl Fn() -> Result<()> + Sync) -> Result<(f64, f64)> {
    let before = processor_seconds()?;
    let wall = seconds(|| {
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..runs).map(|_| scope.spawn(&run)).collect();
            handles.into_iter().try_for_each(|handle| handle.join().map_err(|_| anyhow::anyhow!("a run panicked"))?)
        })
    })?;
    Ok((wall, processor_seconds()? - before))
}

/// Seconds that this process has had of all cores, in itself and in the system, where the system says (Linux).
fn processor_seconds() -> Result<f64> {
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").context("seconds of cores are known on Linux only")?;
    // The name before the last bracket may contain anything.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN);
    Ok((ticks(11) + ticks(12)) / TICKS)
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let notes = vec![
        format!(
            "Training runs of the robust selection of {} threads each: one alone, then {RUNS} at once on the same cores, rounds \
             interleaved, medians of ratios.",
            options.threads
        ),
        "Ratios of seconds of cores do not depend on what else the machine does; those of time do.".into(),
    ];
    let mut report = Report::new("sharing", options, notes);
    for (case, batch, steps) in [("batch 256", 256, 600), ("batch 1024", 1024, 200)] {
        if !options.wants(case) {
            continue;
        }
        let steps = if options.quick { steps / 4 } else { steps };
        let work = || train(options.threads, steps, batch);
        let (mut walls, mut cores) = (Vec::new(), Vec::new());
        let mut alone = Vec::new();
        for _ in 0..if options.quick { 1 } else { 5 } {
            let (one_wall, one_cores) = together(1, work)?;
            let (all_wall, all_cores) = together(RUNS, work)?;
            walls.push(all_wall / one_wall);
            cores.push(all_cores / (RUNS as f64 * one_cores));
            alone.push(one_cores);
        }
        let median = |mut numbers: Vec<f64>| {
            numbers.sort_by(f64::total_cmp);
            numbers[numbers.len() / 2]
        };
        report.push(Line::figure(case, "one run alone, time of all cores", median(alone), "s", ""))?;
        report.push(Line::figure(case, "time of four at once / time of one", median(walls), "", "<= 4.5"))?;
        report.push(Line::figure(case, "seconds of cores of each of four / of one", median(cores), "", "<= 1.1"))?;
    }
    report.save(options)
}
