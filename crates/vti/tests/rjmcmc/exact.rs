//! Evidences by quadrature against closed forms and against slow sums; what is not affordable.

use vti::problem::Problem;
use vti::problem::selection::{
    CoefficientPrior, Enumeration, EnumerationLimits, ExactError, Likelihood, Method, QuadratureLimits, RegressionData,
    Selection, enumerate, evidence_by_quadrature, log_evidences,
};
use vti::workers::Workers;

use super::{group, selection, small_table};

fn quadrature(selection: &Selection, model: &[u16]) -> f64 {
    let found = evidence_by_quadrature(selection, model, &QuadratureLimits::default()).unwrap();
    assert!(found.se <= 1e-8);
    found.log_evidence
}

#[test]
fn gaussian_evidences_agree_with_their_closed_forms() {
    // From an intercept alone to three parameters; with a known and with an unknown scale; few rows and many.
    for rows in [7, 50, 1500] {
        let table = small_table(rows, 2);
        for sigma in [Some(0.9), None] {
            for prior in [CoefficientPrior::Normal { scale: 1.3 }, CoefficientPrior::G { g: None }] {
                let selection = selection(&table, Likelihood::Gaussian { sigma }, prior);
                let exact = log_evidences(&selection, &Workers::SINGLE).unwrap();
                let most = if sigma.is_some() { 2 } else { 1 };
                for model in [[0u16, 0], [0, 1], [1, 0], [1, 1]] {
                    if model.iter().sum::<u16>() > most {
                        continue;
                    }
                    let closed = exact[usize::from(2 * model[0] + model[1])];
                    let found = quadrature(&selection, &model);
                    assert!((found - closed).abs() < 1e-6, "{rows} {sigma:?} {prior:?} {model:?}: {found} {closed}");
                }
            }
        }
    }
}

/// `log ∫∫ p(y, θ | m) dθ` by a sum over a dense grid around 0.
fn slow(selection: &Selection, model: &[u16], reach: f64) -> f64 {
    const STEPS: i32 = 300;
    let step = reach / f64::from(STEPS);
    let mut values = Vec::new();
    for i in -STEPS..=STEPS {
        for j in -STEPS..=STEPS {
            let theta = [step * f64::from(i), step * f64::from(j)];
            values.push(selection.log_density(model, &theta, &mut [0.0; 2]).unwrap());
        }
    }
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + (values.iter().map(|value| (value - top).exp()).sum::<f64>() * step * step).ln()
}

#[test]
fn two_parameters_agree_with_a_slow_sum() {
    let mut table = small_table(25, 1);
    table.response[4] = 8.0;
    let prior = CoefficientPrior::Normal { scale: 1.5 };
    let check = |likelihood: Likelihood| {
        let selection = selection(&table, likelihood, prior);
        let (found, expected) = (quadrature(&selection, &[1]), slow(&selection, &[1], 7.0));
        assert!((found - expected).abs() < 1e-6, "{likelihood:?}: {found} {expected}");
    };
    check(Likelihood::Robust { alpha: 0.1, sigma1: Some(1.0), sigma2: Some(10.0) });
    // Small noise: several rows can be the ones that are believed, and the posterior has more than one peak.
    check(Likelihood::Robust { alpha: 0.5, sigma1: Some(0.2), sigma2: Some(5.0) });
    let mut counts = table.clone();
    counts.response.iter_mut().for_each(|y| *y = (1.0 + *y).abs().powi(2).round());
    let mixed = selection(&counts, Likelihood::NegativeBinomial { size: Some(1.5) }, prior);
    let (found, expected) = (quadrature(&mixed, &[1]), slow(&mixed, &[1], 7.0));
    assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    // The size of counts, or the scale of robust errors, is a parameter: the evidence is an integral over it, too.
    for (table, likelihood) in [(&counts, Likelihood::NegativeBinomial { size: None }), (&table, Likelihood::ROBUST)] {
        let unknown = selection(table, likelihood, prior);
        let (found, step) = (quadrature(&unknown, &[0]), 0.05);
        let log_joint = |log_own: f64, intercept: f64| {
            unknown.log_density(&[0], &[log_own.exp(), intercept], &mut [0.0; 2]).unwrap() + log_own
        };
        let lines = (-240..=240).map(|i| step * f64::from(i));
        let along = |log_own: f64| (-120..=120).map(move |j| (log_own, step * f64::from(j)));
        let sum: f64 = lines.flat_map(along).map(|(log_own, intercept)| log_joint(log_own, intercept).exp()).sum();
        let expected = (sum * step * step).ln();
        assert!((found - expected).abs() < 1e-6, "{likelihood:?}: {found} {expected}");
    }
    table.response.iter_mut().for_each(|y| *y = f64::from(u8::from(*y > 0.0)));
    let selection = selection(&table, Likelihood::Logistic {}, prior);
    let (found, expected) = (quadrature(&selection, &[1]), slow(&selection, &[1], 7.0));
    assert!((found - expected).abs() < 1e-6, "{found} {expected}");
}

/// Two clouds of rows, around −15 and 15, each of which may be the one that is believed.
fn two_clouds() -> RegressionData {
    let mut table = small_table(50, 1);
    for row in 0..25 {
        let noise = table.response[row];
        (table.response[row], table.response[row + 25]) = (noise - 15.0, 15.0 - noise);
        table.terms[0].values[row + 25] = table.terms[0].values[row];
    }
    table
}

#[test]
fn separated_peaks_are_all_found() {
    let robust = Likelihood::Robust { alpha: 0.1, sigma1: Some(1.0), sigma2: Some(10.0) };
    let selection = selection(&two_clouds(), robust, CoefficientPrior::G { g: None });
    let (found, expected) = (quadrature(&selection, &[1]), slow(&selection, &[1], 20.0));
    assert!((found - expected).abs() < 1e-6, "{found} {expected}");
}

#[test]
fn a_flat_intercept_takes_up_any_shift_of_the_response() {
    for likelihood in
        [Likelihood::Robust { alpha: 0.1, sigma1: Some(1.0), sigma2: Some(10.0) }, Likelihood::StudentT { df: 3.0 }]
    {
        for model in [[0u16], [1]] {
            let evidence = |shift: f64| {
                let mut table = two_clouds();
                table.response.iter_mut().for_each(|y| *y += shift);
                quadrature(&selection(&table, likelihood, CoefficientPrior::G { g: None }), &model)
            };
            let expected = evidence(0.0);
            for shift in [-15.0, 3.7, 15.0, 200.0, -1e4] {
                let found = evidence(shift);
                assert!((found - expected).abs() < 1e-6, "{likelihood:?} {model:?} {shift}: {found} {expected}");
            }
        }
    }
}

#[test]
fn a_g_prior_does_not_depend_on_the_units_of_the_response() {
    let table = small_table(25, 2);
    let probabilities = |unit: f64| {
        let mut table = table.clone();
        table.response.iter_mut().for_each(|y| *y *= unit);
        let robust = Likelihood::Robust { alpha: 0.1, sigma1: Some(unit), sigma2: Some(10.0 * unit) };
        let selection = selection(&table, robust, CoefficientPrior::G { g: None });
        enumerate(&selection, &Workers::SINGLE, &EnumerationLimits::default()).unwrap().probabilities
    };
    let expected = probabilities(1.0);
    for unit in [1e-3, 50.0] {
        let found = probabilities(unit);
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{unit}: {found:?} {expected:?}");
    }
}

#[test]
fn the_scale_of_robust_errors_is_in_the_units_of_the_response() {
    let mut table = small_table(25, 1);
    (table.response[3], table.response[9]) = (11.0, -8.0);
    let (shift, unit) = (3.0f64, 40.0f64);
    let mut scaled = table.clone();
    scaled.response.iter_mut().for_each(|y| *y = unit * *y + shift);
    let of = |table: &RegressionData, prior| selection(table, Likelihood::ROBUST, prior);
    // Under a g-prior the density of σ and of the coefficients goes with them, but for the volume of θ.
    let (plain, larger) = (of(&table, CoefficientPrior::G { g: None }), of(&scaled, CoefficientPrior::G { g: None }));
    for theta in [[0.7, 0.2, -0.4], [2.5, -1.0, 0.3]] {
        let at = |selection: &Selection, theta: &[f64]| selection.log_density(&[1], theta, &mut [0.0; 3]).unwrap();
        let (found, expected) = (
            at(&larger, &[unit * theta[0], unit * theta[1] + shift, unit * theta[2]]),
            at(&plain, &theta) - 27.0 * unit.ln(),
        );
        assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    }
    // A proper prior has its centre there, too, and outliers do not move it far.
    let centre = |table: &RegressionData| of(table, CoefficientPrior::Normal { scale: 1e3 }).reference().unwrap()[0].0;
    assert!((centre(&scaled) - centre(&table) - unit.ln()).abs() < 1e-12);
    assert!((centre(&table) - centre(&small_table(25, 1))).abs() < 0.3);
    // Three parameters by a slow sum: log σ, the intercept and a slope.
    let step = 0.08;
    let along = |reach: i32| (-reach..=reach).map(move |i| step * f64::from(i));
    let mut sum = 0.0;
    for log_sigma in along(40) {
        for intercept in along(45) {
            for slope in along(45) {
                let theta = [f64::exp(log_sigma), intercept, slope];
                sum += (plain.log_density(&[1], &theta, &mut [0.0; 3]).unwrap() + log_sigma).exp();
            }
        }
    }
    let (found, expected) = (quadrature(&plain, &[1]), sum.ln() + 3.0 * f64::ln(step));
    assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    let probabilities = |selection: &Selection| {
        enumerate(selection, &Workers::SINGLE, &EnumerationLimits::default()).unwrap().inclusion
    };
    assert!((probabilities(&plain)[0] - probabilities(&larger)[0]).abs() < 1e-6);
}

#[test]
fn an_enumeration_adds_up() {
    let mut table = small_table(20, 2);
    table.response.iter_mut().for_each(|y| *y = f64::from(u8::from(*y > 0.0)));
    let selection = selection(&table, Likelihood::Logistic {}, CoefficientPrior::G { g: None });
    assert_eq!(Enumeration::affordable(&selection), Some(Method::Quadrature));
    let found = enumerate(&selection, &Workers::new(2).unwrap(), &EnumerationLimits::default()).unwrap();
    assert!((found.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(found.error < 1e-8);
    let mut inclusion = [0.0; 2];
    for number in 0..4 {
        let model = found.model(number);
        assert_eq!(found.number(&model), Some(number));
        assert_eq!(found.log_evidences[number], quadrature(&selection, &model));
        let joint = found.log_evidences[number] + selection.log_prior(&model);
        assert!((joint - found.log_evidence - found.probabilities[number].ln()).abs() < 1e-12);
        inclusion
            .iter_mut()
            .zip(model.iter())
            .for_each(|(sum, &bit)| *sum += f64::from(bit) * found.probabilities[number]);
    }
    assert!(inclusion.iter().zip(&found.inclusion).all(|(a, b)| (a - b).abs() < 1e-12));
    let ranking = found.ranking();
    assert!(ranking.windows(2).all(|pair| found.probabilities[pair[0]] >= found.probabilities[pair[1]]));
}

#[test]
fn what_is_not_affordable_is_said_at_once() {
    let mut table = small_table(40, 3);
    let robust = Likelihood::Robust { alpha: 0.1, sigma1: Some(1.0), sigma2: Some(10.0) };
    let prior = CoefficientPrior::Normal { scale: 1.5 };
    let limits = EnumerationLimits::default();
    let four = selection(&table, robust, prior);
    assert_eq!(Enumeration::affordable(&four), None);
    let error = enumerate(&four, &Workers::SINGLE, &limits).unwrap_err();
    let expected = ExactError::TooManyParameters { model: "{x1, x2, x3}".into(), parameters: 4, most: 3 };
    assert_eq!(error, expected);
    // A group enters as a whole: still four.
    group(&mut table, 0);
    assert!(enumerate(&selection(&table, robust, prior), &Workers::SINGLE, &limits).is_err());
    let many = small_table(60, 21);
    let gaussian = selection(&many, Likelihood::Gaussian { sigma: None }, CoefficientPrior::G { g: None });
    assert_eq!(
        enumerate(&gaussian, &Workers::SINGLE, &limits).unwrap_err(),
        ExactError::TooMany { terms: 21, most: 20 }
    );
    let fewer = small_table(60, 19);
    let closed = selection(&fewer, Likelihood::Gaussian { sigma: None }, CoefficientPrior::G { g: None });
    assert_eq!(Enumeration::affordable(&closed), Some(Method::ClosedForm));
    let integrated = selection(&fewer, Likelihood::Gaussian { sigma: None }, prior);
    assert_eq!(Enumeration::affordable(&integrated), Some(Method::ClosedForm));
}

#[test]
fn an_improper_posterior_is_not_integrated() {
    // All responses are 1 and the intercept is flat: its posterior never ends.
    let mut table = small_table(12, 1);
    table.response.fill(1.0);
    let selection = selection(&table, Likelihood::Logistic {}, CoefficientPrior::G { g: None });
    let error = evidence_by_quadrature(&selection, &[0], &QuadratureLimits::default()).unwrap_err();
    assert!(matches!(error, ExactError::NotConverged { .. }), "{error:?}");
}
