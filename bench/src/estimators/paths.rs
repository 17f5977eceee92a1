//! Gradients of φ: plain reparameterised ones against the path derivative.

use anyhow::Result;
use vti::flow::FlowSettings;
use vti::models::{ModelsSettings, SurrogateSettings};

use super::Bench;
use super::fit::Fit;
use super::problem::Gaussians;
use super::variance::Variance;

/// A step at which splines are at their most crooked.
const EARLY: u64 = 50;

/// Runs this part.
pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let (steps, batches) = bench.of((250, 40), (1000, 200));
    let problems = [Gaussians::new(3, 0, 0.0)?, Gaussians::new(7, 1, 0.0)?, Gaussians::new(7, 1, 0.3)?];
    let models = ModelsSettings::Surrogate(SurrogateSettings::default());
    for problem in &problems {
        let flows = [("affine", FlowSettings::affine(3, 1, 32)), ("spline", FlowSettings::spline(4, 2, 32))];
        for (kind, flow) in flows {
            let mut fit = Fit::new(problem, bench.device, &flow, &models, steps)?;
            for (step, when) in [(0, "start"), (EARLY, "early"), (steps / 3, "midway"), (steps, "end")] {
                fit.train(step, |_| {})?;
                compare(bench, &mut fit, &format!("{kind}, {}, {when}", problem.name), batches)?;
            }
        }
    }
    Ok(())
}

/// Variances of both, and how often the shorter gradient of a batch is the one with less variance.
fn compare(bench: &mut Bench<'_>, fit: &mut Fit<'_>, what: &str, batches: u64) -> Result<()> {
    let mut variances = [Variance::new(fit.flow_parameters()), Variance::new(fit.flow_parameters())];
    let (mut path_is_shorter, mut divergence) = (0.0, 0.0);
    for number in 0..batches {
        fit.draw_another(number)?;
        divergence += fit.divergence() / batches as f64;
        let gradients = fit.both_gradients()?;
        let [plain, path] = gradients.each_ref().map(|g| g.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>());
        path_is_shorter += f64::from(u8::from(path < plain)) / batches as f64;
        for (variance, gradient) in variances.iter_mut().zip(gradients) {
            variance.add(gradient.into_iter().map(f64::from));
        }
    }
    let [plain, path] = variances.map(|variance| variance.total());
    let right = if path < plain { path_is_shorter } else { 1.0 - path_is_shorter };
    let right = 100.0 * right;
    let what = format!("{what} (KL {divergence:.2}): path against plain; shorter is right: {right:.0} %");
    bench.push("path", &what, path, plain, "nats²")
}
