//! What was made can be sent to another thread, and a posterior read from several.

use std::thread;

use vti::check::{Check, CheckSettings, OpinionSettings, Refined, check};
use vti::device::Cpu;
use vti::family::Family;
use vti::posterior::{Draws, Point, Posterior};
use vti::smc::SmcSettings;
use vti::train::{Fit, Silent, Stop, Trainer};
use vti::workers::Workers;

use crate::{families, normal, settings};

fn assert_send<T: Send + 'static>() {}
fn assert_sync<T: Sync + 'static>() {}

/// Checked when it is compiled.
#[test]
fn trainers_posteriors_and_checks_can_be_sent_and_posteriors_shared() {
    assert_send::<Trainer<Cpu<f32>>>();
    assert_send::<Fit<Cpu<f64>>>();
    assert_send::<Posterior<Cpu<f32>>>();
    assert_send::<Family<Cpu<f32>>>();
    assert_send::<Check>();
    assert_send::<Refined>();
    assert_send::<Workers>();
    assert_sync::<Posterior<Cpu<f32>>>();
    assert_sync::<Posterior<Cpu<f64>>>();
    assert_sync::<Check>();
    assert_sync::<Refined>();
    assert_sync::<Workers>();
}

#[test]
fn a_run_may_end_in_another_thread_than_it_began() {
    let device = Cpu::<f32>::new(2).unwrap();
    let new = || Trainer::new(normal(0.5), device.clone(), &families()[2], &settings()).unwrap();
    let expected = new().run(&mut Silent).unwrap().posterior.draw(50, 0).unwrap();
    let mut trainer = new();
    trainer.step().unwrap();
    let fit = thread::spawn(move || trainer.run(&mut Silent).unwrap()).join().unwrap();
    assert_eq!(fit.stop, Stop::Steps { steps: 60 });
    let found = thread::spawn(move || fit.posterior.draw(50, 0).unwrap()).join().unwrap();
    assert_eq!(bits(&found), bits(&expected));
}

/// Draws as bits: padding is not a number.
fn bits(draws: &Draws) -> Vec<u64> {
    draws.theta.iter().chain(&draws.log_q).chain(&draws.log_target).map(|x| x.to_bits()).collect()
}

#[test]
fn several_threads_read_one_posterior_at_the_same_time() {
    let device = Cpu::<f32>::new(2).unwrap();
    for family in families() {
        let fit = Trainer::new(normal(0.5), device.clone(), &family, &settings()).unwrap().run(&mut Silent).unwrap();
        let posterior = &fit.posterior;
        // Draws, densities, probabilities and a check, all of a batch of its own.
        let read = |batch: u32| {
            let draws = posterior.draw_with_target(1500, batch).unwrap();
            let points: Vec<Point> =
                (0..200).map(|row| Point { model: draws.model(row), theta: draws.theta(row).to_vec() }).collect();
            let log_q = posterior.log_q(&points).unwrap();
            let probabilities = posterior.model_probabilities(1).unwrap();
            let numbers = log_q.into_iter().chain(probabilities.iter().map(|model| model.probability.value));
            let smc = SmcSettings { particles: 32, sweeps: 1, kept: 1, ..SmcSettings::default() };
            let opinion = OpinionSettings { smc, repeats: 0, ..OpinionSettings::default() };
            let settings = CheckSettings { draws: 500, opinion, ..CheckSettings::default() };
            let checked = check(posterior, &settings).unwrap();
            let numbers = numbers.chain([checked.elbo.value, checked.log_evidence.value]);
            (draws.words.clone(), bits(&draws), numbers.map(f64::to_bits).collect::<Vec<u64>>())
        };
        let one_after_the_other = [read(1), read(2)];
        let at_the_same_time = thread::scope(|scope| {
            let threads = [1, 2].map(|batch| scope.spawn(move || read(batch)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(one_after_the_other == at_the_same_time, "{:?}", family.models);
    }
}
