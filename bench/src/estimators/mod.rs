//! Estimators: measured variances of gradients, and losses after equal effort, behind the defaults.

mod control_variates;
mod digits;
mod fit;
mod learn;
mod optimisers;
mod paths;
mod problem;
mod variance;

use anyhow::Result;
use vti::device::Cpu;

use crate::Options;
use crate::report::{Line, Report};

/// Everything a part of the benchmark needs.
struct Bench<'a> {
    device: &'a Cpu<f32>,
    quick: bool,
    report: &'a mut Report,
}

impl Bench<'_> {
    /// One of two numbers: for a quick run, or for a whole one.
    fn of<T>(&self, quick: T, whole: T) -> T {
        if self.quick { quick } else { whole }
    }

    /// A line: the number of what it names first against that of what it names second, smaller is better.
    fn push(&mut self, case: &str, what: &str, ours: f64, other: f64, unit: &'static str) -> Result<()> {
        self.report.push(Line { unit, ..Line::against(case, what, ours, Some(other), "") })
    }
}

/// Runs everything.
pub(crate) fn run(options: &Options) -> Result<()> {
    let notes = vec![
        format!("f32, {} threads; problems are unions of Gaussians with known evidences.", options.threads),
        "ours: the first of the two that a line names; peer: the second; a ratio below 1 speaks for the first. The default is \
         the first, but for path, where it is whichever has the shorter gradient."
            .into(),
        "baseline, path: variances of gradients, summed over all parameters, over independent batches at fixed \
         parameters; KL: how far q is from the posterior then."
            .into(),
        "path: also how often the shorter gradient of one batch is that of less variance.".into(),
        "digits: means of three seeds, and their range. optimiser: of a categorical; spread: of log evidences, in nats."
            .into(),
    ];
    let mut report = Report::new("estimators", options, notes);
    let device = Cpu::new(options.threads)?;
    let mut bench = Bench { device: &device, quick: options.quick, report: &mut report };
    type Part = fn(&mut Bench<'_>) -> Result<()>;
    let parts: [(&str, Part); 4] = [
        ("baseline", control_variates::run),
        ("path", paths::run),
        ("digits", digits::run),
        ("optimiser", optimisers::run),
    ];
    for (_, part) in parts.into_iter().filter(|(name, _)| options.wants(name)) {
        part(&mut bench)?;
    }
    report.save(options)
}
