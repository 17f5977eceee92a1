//! How good answers are with default settings, and what they cost.

mod families;
mod graphs;
mod selection;

use anyhow::Result;
use vti::device::Cpu;

use crate::Options;
use crate::report::{Line, Report, number};

/// Runs everything.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut notes = vec![format!("Default settings, {} threads, f32.", options.threads)];
    notes.extend(selection::notes());
    notes.extend(graphs::notes());
    notes.push(families::note());
    let mut report = Report::new("quality", options, notes);
    let device = Cpu::<f32>::new(options.threads)?;
    selection::run(&mut report, &device, options)?;
    graphs::run(&mut report, &device, options)?;
    families::run(&mut report, &device, options)?;
    report.save(options)
}

/// A mean of several figures, with the largest of them in words.
struct Figures(Vec<f64>);

impl Figures {
    fn line(&self, case: &str, what: &str, unit: &'static str, target: &str) -> Line {
        let worst = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = self.0.iter().sum::<f64>() / self.0.len() as f64;
        Line::figure(case, &format!("{what} (largest {})", number(worst)), mean, unit, target)
    }
}

/// The most memory this process ever held, in megabytes, where the system says.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1e3)
}
