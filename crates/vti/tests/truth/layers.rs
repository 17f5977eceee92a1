//! Layers under a magnetotelluric sounding, against the quadrature of an independent program (`bench/reference/layers`).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vti::evidence::{AnnealSettings, Evidences};
use vti::prior::Prior;
use vti::problem::layers::{
    Earth, Forward, LayerPriors, LayerProblem, LayerSettings, Magnetotelluric, Sounding, layers,
};
use vti::problem::{DensityError, Gradient, Problem};
use vti::rjmcmc::{RjmcmcSettings, rjmcmc};
use vti::space::Model;
use vti::workers::Workers;

/// Of one layer and of two, with all digits that the finest grids agree in.
const LOG_EVIDENCES: [f64; 2] = [-17.5934, -16.3153];

fn sounding() -> Sounding {
    let mut sounding = Sounding::default();
    for line in include_str!("../../../../bench/reference/layers/sounding.csv").lines().skip(1) {
        let numbers: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        sounding.periods.push(numbers[0]);
        sounding.resistivity.push(numbers[1]);
        sounding.resistivity_error.push(numbers[2]);
        sounding.phase.push(numbers[3]);
        sounding.phase_error.push(numbers[4]);
    }
    sounding
}

fn problem(forward: Arc<dyn Forward>) -> LayerProblem {
    let settings = LayerSettings {
        max_layers: 2,
        prior: LayerPriors {
            depth: Some(Prior::LogUniform { low: 100.0, high: 30_000.0 }),
            value: Some(Prior::LogUniform { low: 1.0, high: 1000.0 }),
            factor: None,
        },
        ..LayerSettings::default()
    };
    layers(sounding().observed().unwrap(), forward, "resistivity", &settings).unwrap()
}

/// The same without its gradient, as any program is, and counted.
#[derive(Debug)]
struct Counted(Magnetotelluric, AtomicU64);

impl Forward for Counted {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn predict(&self, earths: &[Earth], predicted: &mut [f64], workers: &Workers) -> Result<(), DensityError> {
        self.1.fetch_add(earths.len() as u64, Ordering::Relaxed);
        self.0.predict(earths, predicted, workers)
    }
}

fn words() -> [Model; 2] {
    [vec![0].into(), vec![1].into()]
}

#[test]
fn evidences_of_one_and_two_layers_are_those_of_quadrature() {
    let problem = problem(Arc::new(Magnetotelluric::new(&sounding().periods)));
    let settings = AnnealSettings { runs: 8, particles: 768, ..AnnealSettings::default() };
    let evidences = Evidences::new(&problem, &settings, 1).unwrap();
    let found = evidences.annealed(&words(), &Workers::new(2).unwrap()).unwrap();
    for (found, truth) in found.into_iter().zip(LOG_EVIDENCES) {
        let found = found.unwrap();
        let off = (found.log_evidence - truth).abs();
        assert!(off < 4.0 * found.se && off < 0.02 && found.se < 0.03, "{found:?}, {truth}");
    }
}

/// Annealed evidences and chains, both without a gradient, find the probability of an interface; calls of the
/// forward function that chains need for the same error are more.
#[test]
fn annealing_and_chains_agree_without_a_gradient() {
    let exact = 1.0 / (1.0 + (LOG_EVIDENCES[0] - LOG_EVIDENCES[1]).exp());
    let counted = Arc::new(Counted(Magnetotelluric::new(&sounding().periods), AtomicU64::new(0)));
    let problem = problem(counted.clone());
    assert_eq!(problem.gradient(), Gradient::None);
    let workers = Workers::new(2).unwrap();
    let settings = AnnealSettings { runs: 8, particles: 256, ..AnnealSettings::default() };
    let found = Evidences::new(&problem, &settings, 2).unwrap().annealed(&words(), &workers).unwrap();
    let [one, two] = [found[0].unwrap(), found[1].unwrap()];
    let annealed = 1.0 / (1.0 + (one.log_evidence - two.log_evidence).exp());
    let annealed_se = annealed * (1.0 - annealed) * one.se.hypot(two.se);
    let annealed_calls = counted.1.swap(0, Ordering::Relaxed) as f64;
    let settings = RjmcmcSettings { chains: 8, sweeps: 20_000, burn_in: 2_000, thin: 20, ..RjmcmcSettings::default() };
    let chains = rjmcmc(&problem, &workers, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
    let share = chains.models.iter().find(|share| share.model == words()[1]).unwrap().probability;
    // Those of the burn-in are not counted.
    let calls = counted.1.load(Ordering::Relaxed) as f64 / 1.1;
    // Calls that each needs for the same error.
    let ratio = calls * share.se.powi(2) / (annealed_calls * annealed_se.powi(2));
    assert!((annealed - exact).abs() < 4.0 * annealed_se, "{annealed} ± {annealed_se}, {exact}");
    assert!((share.value - exact).abs() < 4.0 * share.se, "{share:?}, {exact}");
    assert!(ratio > 1.0, "chains need {ratio} times as many calls");
}
