//! What chains refuse, and what does not change their answer.

use std::ops::ControlFlow;

use vti::check::VerdictKind;
use vti::problem::selection::{CoefficientPrior, Likelihood};
use vti::problem::{self, DensityError, Problem};
use vti::rjmcmc::{Pseudo, RjmcmcError, RjmcmcSettings, rjmcmc};
use vti::space::{ModelSpace, OneOf, Subsets};
use vti::workers::Workers;

use super::{selection, small_table};

fn settings() -> RjmcmcSettings {
    RjmcmcSettings { chains: 10, sweeps: 400, burn_in: 200, thin: 2, ..Default::default() }
}

#[test]
fn threads_do_not_matter_and_seeds_do() {
    let selection =
        selection(&small_table(30, 4), Likelihood::StudentT { df: 4.0 }, CoefficientPrior::Normal { scale: 1.0 });
    let draws = |threads: usize, seed: u64| {
        let settings = RjmcmcSettings { seed, ..settings() };
        let workers = Workers::new(threads).unwrap();
        let chains = rjmcmc(&selection, &workers, &settings, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((chains.draws.len(), chains.kept), (10 * 200, 200));
        // Bits, not numbers: padding is not a number.
        chains.draws.theta.iter().map(|x| x.to_bits()).collect::<Vec<u64>>()
    };
    assert_eq!(draws(1, 1), draws(3, 1));
    assert_ne!(draws(1, 1), draws(1, 2));
}

#[test]
fn an_observer_stops_chains_and_gets_what_there_is() {
    let selection = selection(
        &small_table(30, 4),
        Likelihood::Gaussian { sigma: Some(1.0) },
        CoefficientPrior::Normal { scale: 1.0 },
    );
    let stop_at = |sweeps: usize| {
        let mut seen = 0;
        let found = rjmcmc(&selection, &Workers::SINGLE, &settings(), &mut |progress| {
            assert!(progress.sweeps > seen && progress.total == 600);
            assert_eq!(progress.burning_in, progress.sweeps <= 200);
            seen = progress.sweeps;
            if progress.sweeps >= sweeps { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found.map(|chains| (chains.kept, chains.warnings))
    };
    assert_eq!(stop_at(100).unwrap_err(), RjmcmcError::Stopped);
    assert_eq!(stop_at(300).unwrap(), (50, vec!["stopped after 100 of 400 sweeps".to_string()]));
    assert_eq!(stop_at(usize::MAX).unwrap().0, 200);
}

#[test]
fn chains_that_cannot_meet_say_so() {
    // Two models that are far apart: a birth would need luck, a death would lose everything.
    let problem = problem::from_fn(Subsets::new(1).unwrap(), |model, theta, gradient| {
        if model[0] == 0 {
            return 0.0;
        }
        let off = (theta[0] - 3.0) / 1e-9;
        gradient[0] = -off / 1e-9;
        -0.5 * off * off + 20.0
    });
    let pseudo = Pseudo::Normal { location: vec![0.0], scale: vec![1.0] };
    let chains =
        rjmcmc(
            &problem,
            &Workers::SINGLE,
            &RjmcmcSettings { pseudo, ..settings() },
            &mut |_| ControlFlow::Continue(()),
        )
        .unwrap();
    assert_eq!(chains.verdict.kind, VerdictKind::DoNotTrust);
    assert_eq!(chains.rhat, f64::INFINITY);
    assert!(chains.warnings.iter().any(|warning| warning == "10 of 10 chains never left their model"));
}

#[test]
fn chains_that_can_only_swap_stay_where_nothing_can_be_swapped() {
    // One term: every model is empty or full, and neither has anything to exchange.
    let selection =
        selection(&small_table(30, 1), Likelihood::StudentT { df: 4.0 }, CoefficientPrior::Normal { scale: 1.0 });
    let only_swaps = RjmcmcSettings { flips: 0, swaps: 1, ..settings() };
    let chains = rjmcmc(&selection, &Workers::SINGLE, &only_swaps, &mut |_| ControlFlow::Continue(()));
    let chains = chains.unwrap();
    assert!(chains.warnings.iter().any(|warning| warning == "10 of 10 chains never left their model"));
    assert!(chains.draws.log_target.iter().all(|x| x.is_finite()));
}

fn refused(problem: &impl Problem, settings: &RjmcmcSettings) -> String {
    rjmcmc(problem, &Workers::SINGLE, settings, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string()
}

#[test]
fn what_cannot_run_is_refused_by_name() {
    let flat = |_: &[u16], _: &[f64], _: &mut [f64]| 0.0;
    let subsets = problem::from_fn(Subsets::new(2).unwrap(), flat);
    let with = |change: &dyn Fn(&mut RjmcmcSettings)| {
        let mut settings = settings();
        change(&mut settings);
        refused(&subsets, &settings)
    };
    assert_eq!(with(&|s| s.chains = 0), "chains is 0, it must be at least 1");
    assert_eq!(with(&|s| s.sweeps = 7), "sweeps is 7, it must be at least 4 times thin");
    assert_eq!(with(&|s| (s.flips, s.swaps) = (0, 0)), "flips + swaps is 0, it must be at least 1");
    let short = Pseudo::Normal { location: vec![0.0; 2], scale: vec![1.0] };
    let message = with(&|s| s.pseudo = short.clone());
    assert_eq!(message, "the pseudo-prior has 1 numbers in scale, but there are 2 coordinates");
    let one_of = problem::from_fn(OneOf::with_dims(&[1, 2, 3]).unwrap(), flat);
    assert!(refused(&one_of, &settings()).starts_with("symbol 0 has 3 values"));
    let nowhere = problem::from_fn(Subsets::new(2).unwrap(), |_: &[u16], _: &[f64], _: &mut [f64]| f64::NAN);
    assert!(refused(&nowhere, &settings()).starts_with("chain 0 found no place to start from in 20 attempts"));
}

#[test]
fn a_fatal_density_ends_everything() {
    struct Broken(Subsets);
    impl Problem for Broken {
        fn space(&self) -> &dyn ModelSpace {
            &self.0
        }
        fn log_density(&self, _: &[u16], _: &[f64], _: &mut [f64]) -> Result<f64, DensityError> {
            Err(DensityError::Fatal { reason: "no disk".into() })
        }
    }
    let message = refused(&Broken(Subsets::new(2).unwrap()), &settings());
    assert!(message.contains("cannot be evaluated: no disk"), "{message}");
}
