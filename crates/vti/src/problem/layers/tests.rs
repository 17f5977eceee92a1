use std::sync::Arc;

use super::simulate::{SimulateSettings, simulate};
use super::*;
use crate::problem::{DensityError, Problem, check_gradient};
use crate::workers::Workers;

fn predict(forward: &dyn Forward, depths: &[f64], values: &[f64]) -> Vec<f64> {
    let mut predicted = vec![f64::NAN; forward.len()];
    let earth = Earth { depths: depths.to_vec(), values: values.to_vec() };
    forward.predict(&[earth], &mut predicted, &Workers::SINGLE).expect("no failure");
    predicted
}

fn problem(settings: LayerSettings) -> LayerProblem {
    let sounding = simulate(&SimulateSettings { rows: 8, ..SimulateSettings::default() }).expect("settings").sounding;
    let settings = settings.for_sounding(&sounding);
    let forward = Arc::new(Magnetotelluric::new(&sounding.periods));
    layers(sounding.observed().expect("data"), forward, "resistivity", &settings).expect("a problem")
}

/// The field below the surface obeys d²E/dz² = iωμ₀/ρ E, and H = dE/dz/(iωμ₀) up to sign: integrated upwards in steps from the half
/// space, with no formula of layers.
fn by_integration(period: f64, depths: &[f64], values: &[f64]) -> (f64, f64) {
    let omega_mu = std::f64::consts::TAU / period * 4e-7 * std::f64::consts::PI;
    // z = E/H in units of √(iωμ₀): dz/dx = √(iωμ₀) (z²/ρ − 1) downwards, a Riccati equation.
    let (re, im) = ((0.5 * omega_mu).sqrt(), (0.5 * omega_mu).sqrt());
    let slope = |(a, b): (f64, f64), rho: f64| {
        let (c, d) = ((a * a - b * b) / rho - 1.0, 2.0 * a * b / rho);
        (re * c - im * d, re * d + im * c)
    };
    let mut z = (values[depths.len()].sqrt(), 0.0);
    for layer in (0..depths.len()).rev() {
        let top = if layer == 0 { 0.0 } else { depths[layer - 1] };
        let steps = 4000;
        let step = -(depths[layer] - top) / f64::from(steps);
        for _ in 0..steps {
            let add = |z: (f64, f64), k: (f64, f64), by: f64| (z.0 + by * k.0, z.1 + by * k.1);
            let k1 = slope(z, values[layer]);
            let k2 = slope(add(z, k1, 0.5 * step), values[layer]);
            let k3 = slope(add(z, k2, 0.5 * step), values[layer]);
            let k4 = slope(add(z, k3, step), values[layer]);
            for (k, weight) in [(k1, 1.0), (k2, 2.0), (k3, 2.0), (k4, 1.0)] {
                z = add(z, k, weight * step / 6.0);
            }
        }
    }
    ((z.0 * z.0 + z.1 * z.1).log10(), 45.0 + z.1.atan2(z.0).to_degrees())
}

#[test]
fn impedances_are_those_of_the_differential_equation() {
    let periods = [0.003, 0.1, 7.0, 300.0];
    let (depths, values) = (&[200.0, 900.0, 6000.0][..], &[30.0, 400.0, 8.0, 1500.0][..]);
    let found = predict(&Magnetotelluric::new(&periods), depths, values);
    for (place, period) in periods.iter().enumerate() {
        let (log, phase) = by_integration(*period, depths, values);
        assert!(
            (found[place] - log).abs() < 1e-8 && (found[4 + place] - phase).abs() < 1e-6,
            "{period}: {log} {phase}"
        );
    }
}

#[test]
fn an_interface_between_equals_changes_nothing_and_a_thick_layer_hides_what_is_below() {
    let forward = Magnetotelluric::new(&[0.01, 1.0, 100.0]);
    let (one, two) = (predict(&forward, &[], &[70.0]), predict(&forward, &[500.0], &[70.0, 70.0]));
    let hidden = predict(&forward, &[1e9], &[70.0, 1.0]);
    for place in 0..6 {
        assert!((one[place] - two[place]).abs() < 1e-12 && (one[place] - hidden[place]).abs() < 1e-12);
    }
}

#[test]
fn gradients_are_those_of_the_density() {
    for errors in [Errors::Known, Errors::Scaled] {
        check_gradient(&problem(LayerSettings { errors, ..LayerSettings::default() }), 60, 3).expect("right");
    }
}

#[test]
fn missing_data_count_for_nothing() {
    let settings = LayerSettings { errors: Errors::Scaled, ..LayerSettings::default() };
    let simulated = simulate(&SimulateSettings { rows: 4, ..SimulateSettings::default() }).expect("settings").sounding;
    let settings = settings.for_sounding(&simulated);
    let density = |sounding: &Sounding| {
        let forward = Arc::new(Magnetotelluric::new(&sounding.periods));
        let problem = layers(sounding.observed().expect("data"), forward, "resistivity", &settings).expect("a problem");
        problem.log_density(&[1], &[50.0, 1.3, 800.0, 20.0], &mut [0.0; 4]).expect("a density")
    };
    let mut missing = simulated.clone();
    missing.resistivity[2] = f64::NAN;
    missing.phase[2] = f64::NAN;
    let mut shorter = simulated;
    let columns = [&mut shorter.periods, &mut shorter.resistivity, &mut shorter.resistivity_error];
    columns.into_iter().chain([&mut shorter.phase, &mut shorter.phase_error]).for_each(|column| {
        column.remove(2);
    });
    assert!((density(&missing) - density(&shorter)).abs() < 1e-9);
}

#[test]
fn bad_soundings_are_refused_with_their_row() {
    let good = simulate(&SimulateSettings { rows: 3, ..SimulateSettings::default() }).expect("settings").sounding;
    let refused = |spoil: &dyn Fn(&mut Sounding)| {
        let mut sounding = good.clone();
        spoil(&mut sounding);
        sounding.observed().expect_err("bad").to_string()
    };
    assert!(refused(&|bad| bad.periods[1] = 0.0).contains("row 2: the period is 0"));
    assert!(refused(&|bad| bad.resistivity[2] = -1.0).contains("row 3: the apparent resistivity is -1"));
    assert!(refused(&|bad| bad.phase[0] = -135.0).contains("add 180"));
    assert!(refused(&|bad| bad.phase_error[0] = 0.0).contains("row 1: the error of the phase is 0"));
    assert!(refused(&|bad| (bad.resistivity, bad.phase) = (vec![f64::NAN; 3], vec![f64::NAN; 3])).contains("no data"));
}

#[cfg(unix)]
mod programs {
    use std::time::{Duration, Instant};

    use super::program::ProgramSettings;
    use super::*;

    /// A program that answers with the property of the first layer and the number of layers.
    const TOP: &str = "while read line; do set -- $line; n=$1; shift $n; echo $1, $n; done";

    fn program(script: &str, processes: usize, timeout: f64) -> Program {
        let command = ["sh", "-c", script].map(String::from).to_vec();
        Program::new(&ProgramSettings { command, processes: Some(processes), timeout }, 2).expect("settings")
    }

    fn earths(count: usize) -> Vec<Earth> {
        let earth = |number: usize| {
            let layers = 1 + number % 3;
            Earth {
                depths: (1..layers).map(|depth| depth as f64).collect(),
                values: (0..layers).map(|layer| number as f64 + 0.125 * layer as f64).collect(),
            }
        };
        (0..count).map(earth).collect()
    }

    fn ask(program: &Program, count: usize) -> Result<Vec<f64>, DensityError> {
        let mut predicted = vec![0.0; 2 * count];
        program.predict(&earths(count), &mut predicted, &Workers::SINGLE).map(|()| predicted)
    }

    fn failure(script: &str) -> String {
        match ask(&program(script, 2, 0.5), 9) {
            Err(DensityError::Fatal { reason }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn answers_come_to_their_earths_whoever_gives_them() {
        let program = program(TOP, 3, 20.0);
        for count in [1, 2, 700] {
            let found = ask(&program, count).expect("answers");
            let expected = (0..count).flat_map(|number| [number as f64, (1 + number % 3) as f64]);
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_that_ends_is_started_again() {
        // It answers seven lines and goes.
        let script =
            "for i in 1 2 3 4 5 6 7; do read line || exit; set -- $line; n=$1; shift $n; echo $1 $n; done; exit 3";
        let found = ask(&program(script, 2, 20.0), 40).expect("answers");
        assert!((0..40).all(|number| found[2 * number] == number as f64));
    }

    #[test]
    fn earths_without_an_answer_are_not_numbers() {
        let script = "for answer in nan '1 inf' '1 2'; do read earth || exit; echo $answer; done";
        let found = ask(&program(script, 1, 20.0), 3).expect("answers");
        assert!(found[0].is_nan() && found[1].is_nan() && found[3].is_nan());
        assert_eq!((found[2], found[4], found[5]), (1.0, 1.0, 2.0));
    }

    #[test]
    fn what_makes_no_sense_ends_everything_with_what_was_said() {
        let found = failure("echo 'no such file' >&2; exit 7");
        assert!(
            found.contains("ended (exit status: 7) without an answer") && found.contains("no such file"),
            "{found}"
        );
        assert!(found.contains("it was asked for `"), "{found}");
        assert!(failure("read a; echo hello").contains("printed `hello`, which is not numbers"));
        assert!(failure("read a; echo 1 2 3").contains("printed 3 numbers for one earth, but there are 2 data"));
        assert!(failure("while read a; do echo 1 2; echo 3 4; done").contains("more lines than it was asked for"));
        let command = vec!["./no-such-program".into()];
        let none = Program::new(&ProgramSettings { command, ..ProgramSettings::default() }, 2).expect("settings");
        assert!(ask(&none, 1).expect_err("none").to_string().contains("could not be started"));
        // Half a line is no answer.
        assert!(failure("read a; printf '1 2'").contains("without an answer"));
    }

    #[test]
    fn one_that_hangs_is_ended_with_all_that_it_started() {
        let since = Instant::now();
        let marker = std::env::temp_dir().join(format!("vti-layers-{}", std::process::id()));
        let script = format!("sleep 30 & echo $! > {}; wait", marker.display());
        let found = failure(&script);
        assert!(found.contains("gave no answer within 0.5 s") && found.contains("flush"), "{found}");
        assert!(since.elapsed() < Duration::from_secs(15));
        let sleeper = std::fs::read_to_string(&marker).expect("a process number");
        let _ = std::fs::remove_file(&marker);
        let mut probe = std::process::Command::new("kill");
        probe.args(["-0", sleeper.trim()]).stderr(std::process::Stdio::null());
        let mut is_there = || probe.status().is_ok_and(|is| is.success());
        let since = Instant::now();
        while is_there() && since.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!is_there());
    }

    #[test]
    fn a_program_answers_for_a_whole_problem() {
        let observed = Observed::new(vec![3.0, 2.0], vec![1.0, 0.5]).expect("data");
        let settings = LayerSettings {
            prior: LayerPriors {
                depth: Some("log-uniform:1,100".parse().expect("a prior")),
                value: Some("uniform:0,10".parse().expect("a prior")),
                factor: None,
            },
            ..LayerSettings::default()
        };
        let problem = layers(observed, Arc::new(program(TOP, 2, 20.0)), "speed", &settings).expect("a problem");
        let found = problem.log_density(&[1], &[2.5, 10.0, 7.0], &mut [0.0; 3]).expect("a density");
        let log_likelihood = -0.5 * 0.25 - 0.5f64.ln() - std::f64::consts::TAU.ln();
        let log_prior = -2.0 * 10f64.ln() - 100f64.ln().ln() - 10f64.ln();
        assert!((found - log_likelihood - log_prior).abs() < 1e-12, "{found}");
    }
}
