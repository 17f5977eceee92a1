#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#[path = "../tests/truth/problems.rs"]
mod problems;
use problems::Gaussians;
use vti::engine::CpuEngine;
use vti::family::*;
use vti::models::*;
use vti::optimise::*;
use vti::space::*;
use vti::train::*;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let which = args[1].as_str();
    let kind = args[2].as_str();
    let steps: u64 = args[3].parse().unwrap();
    let rate: f64 = args[4].parse().unwrap();
    let mrate: f64 = args[5].parse().unwrap();
    let batch: usize = args.get(7).map_or(1024, |x| x.parse().unwrap());
    let models = match kind {
        "cat" => ModelsSettings::Categorical(CategoricalSettings { learning: LearningSettings::new(mrate) }),
        "sgd" => ModelsSettings::Categorical(CategoricalSettings {
            learning: LearningSettings {
                optimiser: OptimiserSettings::Sgd(SgdSettings { clip_norm: None }),
                rate: mrate,
                baseline: Default::default(),
            },
        }),
        "ar" => ModelsSettings::Autoregressive(AutoregressiveSettings {
            learning: LearningSettings::new(mrate),
            ..Default::default()
        }),
        "gp" => ModelsSettings::Surrogate(SurrogateSettings { covariance: Covariance::Full, ..Default::default() }),
        _ => ModelsSettings::Surrogate(SurrogateSettings::default()),
    };
    macro_rules! go {
        ($space:expr) => {{
            let problem = Gaussians::new($space, 0.8, 1.5, 3);
            let engine = CpuEngine::<f32>::new(2).unwrap();
            let family = FamilySettings {
                models,
                flow: match args.get(8).map(|s| s.as_str()) {
                    Some("affine") => FlowKind::Affine { layers: 3, blocks: 1, hidden: 32 },
                    _ => FlowKind::Auto {},
                },
                ..Default::default()
            };
            let settings = TrainSettings {
                steps,
                batch,
                seed: 1,
                schedule: Schedule::WarmupDecay {
                    rate,
                    warmup: std::env::var("WARM").ok().map_or(0.02, |x| x.parse().unwrap()),
                    hold: 0.3,
                },
                optimiser: OptimiserSettings::Adamw(AdamWSettings {
                    clip_norm: std::env::var("CLIP").ok().map(|x| x.parse().unwrap()).or(Some(50.0)),
                    beta2: std::env::var("B2").ok().map_or(0.999, |x| x.parse().unwrap()),
                    ..Default::default()
                }),
                flow_gradient: match args[6].as_str() {
                    "path" => FlowGradient::PathDerivative,
                    "plain" => FlowGradient::Reparameterised,
                    _ => FlowGradient::Adaptive,
                },
                ..Default::default()
            };
            let truth = problem.log_total_evidence();
            let mut obs = |r: &StepReport| {
                if r.step % std::env::var("EV").ok().map_or((steps / 8).max(1), |x| x.parse().unwrap()) == 0 {
                    println!(
                        "{} {:.2}s gap {:.4}±{:.4} H {:.3} |g| {:.3} scale {:.2e}",
                        r.step,
                        r.seconds,
                        truth - r.elbo,
                        r.elbo_se,
                        r.entropy,
                        r.gradient_norm,
                        r.models.scale
                    );
                }
                std::ops::ControlFlow::Continue(())
            };
            let t = Trainer::new(&problem, &engine, &family, &settings).unwrap();
            println!("{:?} params {}", t.family().choices(), t.family().flow().parameter_count());
            let fit = t.run(&mut obs).unwrap();
            let mut post = fit.posterior;
            let probs = problem.probabilities();
            let mut tv = 0.0;
            let q = post.model_probabilities(200_000).unwrap();
            let mut seen = 0.0;
            for m in &q {
                let i = problem.catalogue().index(&m.model).unwrap();
                tv += 0.5 * (m.probability.value - probs[i]).abs();
                seen += probs[i];
            }
            tv += 0.5 * (1.0 - seen);
            let e = post.elbo(20000).unwrap();
            let c = vti::check::check(&mut post, &Default::default()).unwrap();
            let mut z: Vec<f64> = Vec::new();
            let mut ctv = 0.0;
            for m in &c.correction.models {
                let i = problem.catalogue().index(&m.model).unwrap();
                z.push((m.corrected.value - probs[i]) / m.corrected.se);
                ctv += 0.5 * (m.corrected.value - probs[i]).abs();
            }
            println!(
                "check {} khat {:?} evidence err {:.4} se {:.4}, ctv {ctv:.4}, rms z top {:.2} all {:.2}",
                c.verdict.text,
                c.khat,
                c.log_evidence.value - truth,
                c.log_evidence.se,
                (z.iter().take(20).map(|x| x * x).sum::<f64>() / z.len().min(20) as f64).sqrt(),
                (z.iter().map(|x| x * x).sum::<f64>() / z.len() as f64).sqrt()
            );
            let t0 = std::time::Instant::now();
            let r = vti::check::refine(&mut post, &Default::default()).unwrap();
            let mut rtv = 0.0;
            for m in &r.correction.models {
                let i = problem.catalogue().index(&m.model).unwrap();
                rtv += 0.5 * (m.corrected.value - probs[i]).abs();
            }
            println!(
                "refine {} jumps {:.2} moves {:.2} rtv {rtv:.4} {:.1}s",
                r.verdict.text,
                r.accepted_jumps,
                r.accepted_moves,
                t0.elapsed().as_secs_f64()
            );
            println!("TV {tv:.4}  KL {:.4}±{:.4}  {:.1}s", truth - e.value, e.se, fit.seconds);
        }};
    }
    match which {
        "8" => go!(Subsets::new(3).unwrap()),
        "128" => go!(Subsets::with_always(7, 1).unwrap()),
        "1024" => go!(Subsets::new(10).unwrap()),
        "k16" => go!(OneOf::with_dims(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 19, 20]).unwrap()),
        _ => go!(OneOf::with_dims(&[0, 1]).unwrap()),
    }
}
