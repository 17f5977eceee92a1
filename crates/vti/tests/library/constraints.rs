//! Laws of constraints: bijections with their Jacobians and gradients, at ordinary points and far out.

use vti::problem::Constraint::{Interval, Positive, Real, Simplex};
use vti::problem::{Constraint, ConstraintError, Constraints};
use vti::random::{Purpose, Stream};

/// A list of constraints and coordinates of it that may be active together.
fn cases() -> Vec<(Vec<Constraint>, Vec<u32>)> {
    let interval = Interval { low: -1.5, high: 4.0 };
    let mixed = vec![Real, Simplex { parts: 3 }, Positive, interval, Simplex { parts: 5 }, Real];
    vec![
        (vec![Real], vec![0]),
        (vec![Positive], vec![0]),
        (vec![interval], vec![0]),
        (vec![Simplex { parts: 2 }], vec![0]),
        (vec![Simplex { parts: 4 }], vec![0, 1, 2]),
        (mixed.clone(), (0..10).collect()),
        (mixed.clone(), vec![1, 2, 4, 9]),
        (mixed.clone(), vec![0, 3, 5, 6, 7, 8]),
        (mixed, vec![]),
    ]
}

fn points(stream: &mut Stream, count: usize, scale: f64) -> Vec<f64> {
    (0..count).map(|_| scale * stream.normal()).collect()
}

/// Runs a law for each case at some points: constraints, active coordinates, u.
fn for_each_point(scale: f64, mut law: impl FnMut(&Constraints, &[u32], &[f64])) {
    let mut stream = Stream::new(3, Purpose::Other(1), 0, 0);
    for (list, active) in cases() {
        let constraints = Constraints::new(list).unwrap();
        constraints.check_active(&active).unwrap();
        for _ in 0..20 {
            law(&constraints, &active, &points(&mut stream, active.len(), scale));
        }
    }
}

fn natural(constraints: &Constraints, active: &[u32], free: &[f64]) -> (Vec<f64>, f64) {
    let mut natural = vec![f64::NAN; constraints.natural_dim(active)];
    let log_jacobian = constraints.to_natural(active, free, &mut natural);
    (natural, log_jacobian)
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} is not {b}");
}

#[test]
fn free_numbers_come_back() {
    for_each_point(2.0, |constraints, active, free| {
        let (natural, log_jacobian) = natural(constraints, active, free);
        let mut back = vec![f64::NAN; free.len()];
        let again = constraints.to_free(active, &natural, &mut back);
        close(again, log_jacobian, 1e-10);
        back.iter().zip(free).for_each(|(&back, &free)| close(back, free, 1e-10));
    });
}

/// The natural numbers with respect to which the Jacobian is taken: all but the last part of each simplex.
fn independent(constraints: &Constraints, active: &[u32], natural: &[f64]) -> Vec<f64> {
    let (mut kept, mut coordinate, mut place) = (Vec::new(), 0, 0);
    for constraint in constraints.list().into_iter().flatten() {
        if active.contains(&coordinate) {
            kept.extend_from_slice(&natural[place..place + constraint.free()]);
            place += constraint.natural();
        }
        coordinate += constraint.free() as u32;
    }
    kept
}

/// ln |det| by elimination with row exchanges.
fn log_determinant(mut rows: Vec<Vec<f64>>) -> f64 {
    let n = rows.len();
    let mut log = 0.0;
    for column in 0..n {
        let pivot = (column..n).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs())).unwrap();
        rows.swap(column, pivot);
        log += rows[column][column].abs().ln();
        let (above, below) = rows.split_at_mut(column + 1);
        let pivot = &above[column];
        for row in below {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(pivot).for_each(|(entry, &pivot)| *entry -= factor * pivot);
        }
    }
    log
}

#[test]
fn log_jacobian_is_that_of_differences() {
    for_each_point(1.0, |constraints, active, free| {
        let h = 1e-5;
        let columns = (0..free.len()).map(|i| {
            let at = |step: f64| {
                let mut moved = free.to_vec();
                moved[i] += step;
                independent(constraints, active, &natural(constraints, active, &moved).0)
            };
            at(h).iter().zip(at(-h)).map(|(up, down)| (up - down) / (2.0 * h)).collect()
        });
        let (_, log_jacobian) = natural(constraints, active, free);
        close(log_jacobian, log_determinant(columns.collect()), 1e-6);
    });
}

#[test]
fn pull_back_is_the_gradient() {
    for_each_point(1.0, |constraints, active, free| {
        // f(θ) = Σ wᵢ sin θᵢ.
        let weight = |i: usize| 1.0 + i as f64;
        let value = |free: &[f64]| {
            let (natural, log_jacobian) = natural(constraints, active, free);
            natural.iter().enumerate().map(|(i, theta)| weight(i) * theta.sin()).sum::<f64>() + log_jacobian
        };
        let (natural, _) = natural(constraints, active, free);
        let given: Vec<f64> = natural.iter().enumerate().map(|(i, theta)| weight(i) * theta.cos()).collect();
        let mut gradient = vec![f64::NAN; free.len()];
        constraints.pull_back(active, free, &given, &mut gradient);
        for (i, &found) in gradient.iter().enumerate() {
            let h = 1e-5;
            let at = |step: f64| {
                let mut moved = free.to_vec();
                moved[i] += step;
                value(&moved)
            };
            close(found, (at(h) - at(-h)) / (2.0 * h), 1e-6);
        }
    });
}

#[test]
fn natural_numbers_are_where_they_should_be() {
    let constraints = Constraints::new(vec![Positive, Interval { low: 2.0, high: 3.0 }, Simplex { parts: 6 }]).unwrap();
    let active: Vec<u32> = (0..7).collect();
    let mut stream = Stream::new(5, Purpose::Other(2), 0, 0);
    for scale in [0.0, 1.0, 10.0] {
        for _ in 0..50 {
            let (theta, _) = natural(&constraints, &active, &points(&mut stream, 7, scale));
            assert!(theta[0] > 0.0 && (2.0..=3.0).contains(&theta[1]));
            assert!(theta[2..].iter().all(|part| (0.0..=1.0).contains(part)));
            close(theta[2..].iter().sum(), 1.0, 1e-14);
        }
    }
    let (centre, _) = natural(&constraints, &active, &[0.0; 7]);
    assert_eq!(centre[..2], [1.0, 2.5]);
    centre[2..].iter().for_each(|&part| close(part, 1.0 / 6.0, 1e-15));
}

#[test]
fn far_out_everything_stays_finite() {
    for (list, _) in cases() {
        let constraints = Constraints::new(list).unwrap();
        let active: Vec<u32> = (0..constraints.free_len() as u32).collect();
        for size in [40.0, 700.0] {
            for pattern in 0..4 {
                let sign = |i: usize| if (pattern >> (i % 2)) & 1 == 1 { 1.0 } else { -1.0 };
                let free: Vec<f64> = (0..active.len()).map(|i| size * sign(i)).collect();
                let (theta, log_jacobian) = natural(&constraints, &active, &free);
                assert!(theta.iter().all(|theta| theta.is_finite()), "{theta:?}");
                assert!(log_jacobian.is_finite());
                let mut gradient = vec![f64::NAN; free.len()];
                constraints.pull_back(&active, &free, &vec![0.5; theta.len()], &mut gradient);
                assert!(gradient.iter().all(|slope| slope.is_finite()), "{gradient:?}");
            }
        }
    }
    let interval = Constraints::new(vec![Interval { low: 0.0, high: 2.0 }]).unwrap();
    close(natural(&interval, &[0], &[700.0]).1, 2f64.ln() - 700.0, 1e-14);
    close(natural(&interval, &[0], &[-40.0]).0[0], 2.0 * (-40f64).exp(), 1e-14);
    // Parts of very different size come back: nothing is found by subtraction.
    let simplex = Constraints::new(vec![Simplex { parts: 4 }]).unwrap();
    let free = [40.0, -40.0, 40.0];
    let (theta, log_jacobian) = natural(&simplex, &[0, 1, 2], &free);
    let mut back = [0.0; 3];
    close(simplex.to_free(&[0, 1, 2], &theta, &mut back), log_jacobian, 1e-13);
    back.iter().zip(free).for_each(|(&back, free)| close(back, free, 1e-13));
}

#[test]
fn numbers_outside_the_support_are_told() {
    let check = |constraint: Constraint, theta: &[f64]| {
        let constraints = Constraints::new(vec![constraint]).unwrap();
        let active: Vec<u32> = (0..constraints.free_len() as u32).collect();
        let mut free = vec![0.0; active.len()];
        let log_jacobian = constraints.to_free(&active, theta, &mut free);
        (free[0], log_jacobian)
    };
    let interval = Interval { low: 0.0, high: 2.0 };
    let simplex = Simplex { parts: 3 };
    assert_eq!(check(Positive, &[0.0]), (f64::NEG_INFINITY, f64::NEG_INFINITY));
    assert_eq!(check(interval, &[2.0]), (f64::INFINITY, f64::NEG_INFINITY));
    assert_eq!(check(simplex, &[0.0, 0.5, 0.5]), (f64::NEG_INFINITY, f64::NEG_INFINITY));
    let outside: [(Constraint, &[f64]); 6] = [
        (Positive, &[-1.0]),
        (interval, &[2.5]),
        (interval, &[f64::NAN]),
        (simplex, &[0.5, 0.5, 0.1]),
        (simplex, &[-0.5, -0.5, 2.0]),
        (simplex, &[f64::NAN, 0.5, 0.5]),
    ];
    for (constraint, theta) in outside {
        let (free, log_jacobian) = check(constraint, theta);
        assert!(free.is_nan() && log_jacobian.is_nan(), "{constraint:?} {theta:?}");
    }
}

#[test]
fn wrong_constraints_are_refused() {
    for (low, high) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (-1.7e308, 1.7e308)] {
        let error = Constraints::new(vec![Real, Interval { low, high }]).unwrap_err();
        assert!(matches!(error, ConstraintError::Interval { index: 1, .. }), "{error}");
    }
    assert_eq!(Constraints::new(vec![Simplex { parts: 1 }]), Err(ConstraintError::Parts { index: 0, parts: 1 }));
    let huge = Constraints::new(vec![Real, Simplex { parts: usize::MAX }]);
    assert!(matches!(huge, Err(ConstraintError::TooMany { index: 1, .. })));
    assert!(Constraints::real(usize::MAX).is_err());
}

#[test]
fn wrong_active_coordinates_are_named_and_do_no_harm() {
    let constraints = Constraints::new(vec![Real, Simplex { parts: 4 }, Positive]).unwrap();
    let part = |coordinate| ConstraintError::PartOfSimplex { coordinate };
    let wrong: [(&[u32], ConstraintError); 6] = [
        (&[0, 2, 3], part(2)),
        (&[1, 3], part(1)),
        (&[0, 1, 2, 4], part(1)),
        (&[0, 5], ConstraintError::Coordinate { coordinate: 5, free: 5 }),
        (&[4, 0], ConstraintError::NotAscending { coordinate: 0 }),
        (&[0, 0], ConstraintError::NotAscending { coordinate: 0 }),
    ];
    for (active, error) in wrong {
        assert_eq!(constraints.check_active(active), Err(error));
        constraints.natural_dim(active);
    }
    assert!(constraints.to_natural(&[1, 3], &[0.0; 2], &mut [0.0; 4]).is_nan());
    assert!(constraints.to_natural(&[0, 1, 2, 3], &[0.0; 3], &mut [0.0; 5]).is_nan());
    assert!(constraints.to_free(&[9], &[0.0], &mut [0.0]).is_nan());
    let mut gradient = [0.0; 2];
    constraints.pull_back(&[0, 4], &[0.0; 2], &[0.0; 1], &mut gradient);
    assert!(gradient.iter().all(|slope| slope.is_nan()));
}

#[test]
fn lists_without_constraints_are_trivial() {
    assert!(Constraints::real(3).unwrap().is_trivial());
    assert!(Constraints::real(0).unwrap().is_trivial());
    assert!(!Constraints::new(vec![Real, Positive]).unwrap().is_trivial());
}

#[test]
fn constraints_are_written_by_kind() {
    let text = r#"[{"kind":"real"},{"kind":"interval","low":0.0,"high":1.0},{"kind":"simplex","parts":3}]"#;
    let constraints: Constraints = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&constraints).unwrap(), text);
    let error = serde_json::from_str::<Constraints>(r#"[{"kind":"simplex","parts":1}]"#).unwrap_err();
    assert!(error.to_string().contains("at least 2 parts"), "{error}");
    assert!(serde_json::from_str::<Constraint>(r#"{"kind":"simplex","parts":2,"low":0.0}"#).is_err());
    assert!(serde_json::from_str::<Constraint>(r#"{"kind":"real","low":0.0}"#).is_err());
}
