//! How many bumps are in a curve? Components with priors, a plain likelihood without a gradient, and a page.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use vti::answer::{Findings, Run, Sources, Subject};
use vti::check::{CheckSettings, check};
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::prior::{HalfNormal, LogNormal, Poisson, Uniform};
use vti::problem;
use vti::smc::SmcSettings;
use vti::space::Components;
use vti::train::{Silent, TrainSettings, Trainer};
use vti_report::Beside;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Forty measurements of two bumps of width 0.6, with errors of standard deviation 0.2 or so.
    let bump = |x: f64, at: f64| (-0.5 * ((x - at) / 0.6).powi(2)).exp();
    let error = |i: usize| 0.28 * (2.5 * i as f64).sin();
    let x = |i: usize| 0.25 * i as f64;
    let y: Vec<f64> = (0..40).map(|i| 1.5 * bump(x(i), 3.0) + 0.9 * bump(x(i), 6.5) + error(i)).collect();

    let space = Components::new("bump", 0..=3)
        .each("position", Uniform(0.0, 10.0))
        .ordered()
        .each("height", LogNormal(0.0, 1.0))
        .with("noise", HalfNormal(1.0));
    let problem = problem::components(space, Poisson(1.0), move |draw| {
        let (bumps, noise) = (draw.block("bump"), draw.global("noise"));
        let curve = |i: usize| bumps.iter().map(|of| of[1] * bump(x(i), of[0])).sum::<f64>();
        let fit = |(i, y): (usize, &f64)| -0.5 * ((y - curve(i)) / noise).powi(2) - noise.ln();
        y.iter().enumerate().map(fit).sum()
    })?;
    let problem = Arc::new(problem);

    let particles = SmcSettings { runs: 4, particles: 256, sweeps: 4, jumps: 4, steps: 8, ..SmcSettings::default() };
    let settings = TrainSettings { steps: 500, batch: 256, particles: particles.clone(), ..TrainSettings::default() };
    let trainer = Trainer::new(problem.clone(), Cpu::<f32>::new(2)?, &FamilySettings::default(), &settings)?;
    let fit = trainer.run(&mut Silent)?;
    let mut checking = CheckSettings::default();
    checking.opinion.smc = particles;
    let check = check(&fit.posterior, &checking)?;

    let subject = Subject::of_components(&*problem).with_title("How many bumps are in the curve?");
    let found = Findings::new(&fit.posterior, &subject, &Sources::from(&check), Run::of(&fit))?;
    writeln!(std::io::stdout(), "{}", vti_report::text(&found.answer))?;
    vti_report::write(&found, &Beside::default(), Path::new("bumps.vti"))?;
    Ok(())
}
