//! Responses that are one of several categories: against logistic regression, against slow sums, and by hand.

use vti::answer::{CategoryPrediction, Predictor, SampledModel, Samples};
use vti::problem::Problem;
use vti::problem::selection::{
    CoefficientPrior, Likelihood, QuadratureLimits, RegressionData, Selection, SelectionSettings, Standardise, Term,
    evidence_by_quadrature,
};
use vti::random::{Purpose, Stream};

const PRIORS: [CoefficientPrior; 2] = [CoefficientPrior::Normal { scale: 1.5 }, CoefficientPrior::G { g: None }];

/// Two covariates, the first of which moves the categories; rows count once to three times.
fn table(rows: usize, categories: usize) -> RegressionData {
    let mut stream = Stream::new(8, Purpose::Other(0), 0, 0);
    let mut normals = || (0..rows).map(|_| stream.normal()).collect::<Vec<f64>>();
    let (a, b, noise) = (normals(), normals(), normals());
    let category = |i: usize| (0.8 * (a[i] + noise[i]) + 1.0).round().clamp(0.0, (categories - 1) as f64);
    let term = |name: &str, values: &[f64]| Term {
        name: name.into(),
        columns: vec![name.into()],
        values: values.to_vec(),
        always: false,
        parents: Vec::new(),
    };
    RegressionData {
        response_name: "y".into(),
        response: (0..rows).map(category).collect(),
        terms: vec![term("a", &a), term("b", &b)],
        weights: (0..rows).map(|row| (1 + row % 3) as f64).collect(),
        ..RegressionData::default()
    }
}

fn selection(table: &RegressionData, likelihood: Likelihood, prior: CoefficientPrior) -> Selection {
    let settings = SelectionSettings { likelihood, prior, ..SelectionSettings::default() };
    Selection::new(table, Standardise::Full, &settings).unwrap()
}

fn multinomial(table: &RegressionData, prior: CoefficientPrior) -> Selection {
    selection(table, Likelihood::Multinomial {}, prior)
}

#[test]
fn gradients_of_categories_agree_with_central_differences() {
    for prior in PRIORS {
        let selection = multinomial(&table(31, 4), prior);
        assert_eq!(selection.parameter_names()[..4], ["intercept (1)", "intercept (2)", "intercept (3)", "a (1)"]);
        for (model, dim) in [([0, 0], 3), ([0, 1], 6), ([1, 1], 9)] {
            let theta: Vec<f64> = (0..dim).map(|i| 0.9 - 0.23 * i as f64).collect();
            let mut gradient = vec![f64::NAN; dim];
            selection.log_density(&model, &theta, &mut gradient).unwrap();
            for i in 0..dim {
                let value = |step: f64| {
                    let mut moved = theta.clone();
                    moved[i] += step;
                    selection.log_density(&model, &moved, &mut vec![0.0; dim]).unwrap()
                };
                let numeric = (value(1e-5) - value(-1e-5)) / 2e-5;
                assert!((numeric - gradient[i]).abs() < 1e-6 * (1.0 + numeric.abs()), "{prior:?} {model:?} {i}");
            }
        }
    }
}

#[test]
fn two_categories_are_logistic() {
    let table = table(40, 2);
    for prior in PRIORS {
        let (found, expected) = (multinomial(&table, prior), selection(&table, Likelihood::Logistic {}, prior));
        let theta = [0.3, -0.8, 0.5];
        let density = |selection: &Selection| selection.log_density(&[1, 1], &theta, &mut [0.0; 3]).unwrap();
        assert!((density(&found) - density(&expected)).abs() < 1e-10);
        for model in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            let [found, expected] = [&found, &expected].map(|selection| selection.evidence(&model).unwrap());
            assert!((found.log_evidence - expected.log_evidence).abs() < 1e-7, "{prior:?} {model:?}");
        }
        for (found, expected) in found.reference().unwrap().iter().zip(expected.reference().unwrap()) {
            assert!((found.0 - expected.0).abs() < 1e-12 && found.1 == expected.1);
        }
    }
}

#[test]
fn evidences_of_three_categories_agree_with_a_slow_sum() {
    let table = table(25, 3);
    for prior in PRIORS {
        let selection = multinomial(&table, prior);
        // Two intercepts; with a slope for each, four parameters.
        for (model, dim) in [([0, 0], 2), ([1, 0], 4)] {
            let limits = QuadratureLimits { parameters: 4, ..QuadratureLimits::default() };
            let found = evidence_by_quadrature(&selection, &model, &limits).unwrap().log_evidence;
            // A grid around the preconditioner, which reaches six of its standard deviations: what lies beyond does not matter.
            let (preconditioner, step, points) = (selection.preconditioner(&model).unwrap(), 0.5, 25usize);
            let at = |mut number: usize| {
                let mut point: Vec<f64> = (0..dim)
                    .map(|_| {
                        let place = number % points;
                        number /= points;
                        step * (place as f64 - 12.0)
                    })
                    .collect();
                preconditioner.to_free(&mut point);
                selection.log_density(&model, &point, &mut vec![0.0; dim]).unwrap()
            };
            let values: Vec<f64> = (0..points.pow(dim as u32)).map(at).collect();
            let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum = values.iter().map(|value| (value - top).exp()).sum::<f64>().ln() + top;
            let expected = sum + dim as f64 * f64::ln(step) + preconditioner.log_jacobian();
            assert!((found - expected).abs() < 1e-3, "{prior:?} {model:?}: {found} {expected}");
        }
    }
}

#[test]
fn categories_of_weight_two_are_there_twice() {
    let weighted = table(24, 3);
    let repeat = |values: &[f64]| -> Vec<f64> {
        let rows = values.iter().zip(&weighted.weights);
        rows.flat_map(|(x, weight)| std::iter::repeat_n(*x, *weight as usize)).collect()
    };
    let repeated = RegressionData {
        response: repeat(&weighted.response),
        terms: weighted.terms.iter().map(|term| Term { values: repeat(&term.values), ..term.clone() }).collect(),
        weights: Vec::new(),
        ..weighted.clone()
    };
    for prior in PRIORS {
        let [a, b] = [&weighted, &repeated].map(|table| multinomial(table, prior));
        let density =
            |selection: &Selection| selection.log_density(&[1, 0], &[0.2, -0.4, 0.9, 0.1], &mut [0.0; 4]).unwrap();
        assert!((density(&a) - density(&b)).abs() < 1e-9);
        let [a, b] = [&a, &b].map(|selection| selection.preconditioner(&[1, 0]).unwrap());
        assert!((a.log_jacobian() - b.log_jacobian()).abs() < 1e-6);
    }
}

#[test]
fn probabilities_of_categories_are_predicted_by_hand() {
    let samples = Samples {
        names: ["intercept (b)", "intercept (c)", "x (b)", "x (c)"].map(String::from).to_vec(),
        models: vec![
            SampledModel { word: "1".into(), label: "{x}".into(), active: vec![true; 4] },
            SampledModel { word: "0".into(), label: "{}".into(), active: vec![true, true, false, false] },
        ],
        model: vec![0, 1],
        values: vec![0.5, -0.5, 1.0, 2.0, 0.0, 0.0, f64::NAN, f64::NAN],
        log_weight: vec![0.0, 0.0],
        ..Samples::default()
    };
    let x =
        [Term { name: "x".into(), columns: vec!["x".into()], values: vec![2.0], always: false, parents: Vec::new() }];
    let categories = ["a", "b", "c"].map(String::from);
    let predictor = Predictor::new(&samples, Likelihood::Multinomial {}, &x, 1).with_categories(&categories, &x);
    let found: Vec<f64> =
        predictor.categories(0, 0.9).iter().map(|CategoryPrediction { probability, .. }| *probability).collect();
    let (b, c) = (2.5f64.exp(), 3.5f64.exp());
    for (found, first) in found.iter().zip([1.0, b, c]) {
        let expected = 0.5 * (first / (1.0 + b + c) + 1.0 / 3.0);
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

#[test]
fn what_is_no_category_is_refused() {
    let mut wrong = table(20, 3);
    wrong.response[4] = 1.5;
    let refused = |table: &RegressionData| {
        let settings = SelectionSettings { likelihood: Likelihood::Multinomial {}, ..SelectionSettings::default() };
        Selection::new(table, Standardise::Full, &settings).unwrap_err().to_string()
    };
    assert!(refused(&wrong).contains("row 5: the response 1.5 is not the number of a category"));
    let offset = RegressionData { offset: vec![0.1; 20], ..table(20, 3) };
    assert!(refused(&offset).contains("an offset has no meaning for categories"));
}
