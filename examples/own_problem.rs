//! Which tones are in a noisy signal? A problem of one's own, from its density to tables, files and a page.

use std::f64::consts::TAU;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use vti::answer::{Findings, Run, Sources, Subject};
use vti::check::{CheckSettings, check};
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::problem;
use vti::space::Subsets;
use vti::train::{Silent, TrainSettings, Trainer};
use vti_report::Beside;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Forty measurements of two of four tones, with errors of standard deviation 0.5 or so.
    let tone = |k: usize, i: usize| (0.37 * (k + 1) as f64 * i as f64).sin();
    let error = |i: usize| 0.7 * (12.9898 * i as f64).sin();
    let y: Vec<f64> = (0..40).map(|i| 0.8 * tone(0, i) - 0.3 * tone(2, i) + error(i)).collect();

    // A model is a set of tones, and θ holds the amplitudes of those in it: log p(y, θ | m) = log N(y; Xθ, 0.5²) N(θ; 0, 1).
    let names = ["low", "middle", "high", "shrill"].map(String::from).to_vec();
    let problem = problem::from_fn(Subsets::new(4)?.with_names(names.clone())?, move |model, theta, gradient| {
        let mut log_density = -0.5 * (y.len() + theta.len()) as f64 * TAU.ln() - y.len() as f64 * 0.5f64.ln();
        for (a, gradient) in theta.iter().zip(gradient.iter_mut()) {
            log_density -= 0.5 * a * a;
            *gradient = -a;
        }
        for (i, y) in y.iter().enumerate() {
            let tones: Vec<f64> = (0..4).filter(|&k| model[k] == 1).map(|k| tone(k, i)).collect();
            let rest = y - tones.iter().zip(theta).map(|(x, a)| x * a).sum::<f64>();
            log_density -= 0.5 * (rest / 0.5).powi(2);
            gradient.iter_mut().zip(&tones).for_each(|(gradient, x)| *gradient += x * rest / 0.25);
        }
        log_density
    });
    let problem = problem.with_parameter_names(names);

    let settings = TrainSettings { steps: 500, batch: 256, ..TrainSettings::default() };
    let trainer = Trainer::new(Arc::new(problem), Cpu::<f32>::new(2)?, &FamilySettings::default(), &settings)?;
    let fit = trainer.run(&mut Silent)?;
    let check = check(&fit.posterior, &CheckSettings::default())?;

    let subject = Subject::of(&**fit.posterior.problem()).with_title("Which tones are in the signal?");
    let found = Findings::new(&fit.posterior, &subject, &Sources::from(&check), Run::of(&fit))?;
    writeln!(std::io::stdout(), "{}", vti_report::text(&found.answer))?;
    vti_report::write(&found, &Beside::default(), Path::new("tones.vti"))?;
    Ok(())
}
