//! Weights of rows, against rows that are repeated.

use vti::problem::Problem;
use vti::problem::selection::{
    ClosedForm, CoefficientPrior, Conjugate, Likelihood, RegressionData, Selection, SelectionSettings, Standardise,
    TableError, Term, log_evidences,
};
use vti::random::{Purpose, Stream};
use vti::workers::Workers;

use crate::selection::{random_table, with_offset, with_weights};

/// A table with as many copies of each row as its weight says.
fn repeated(weighted: &RegressionData) -> RegressionData {
    let repeat = |values: &[f64]| -> Vec<f64> {
        let rows = values.iter().zip(weighted.weights.iter().cycle());
        rows.flat_map(|(x, weight)| std::iter::repeat_n(*x, *weight as usize)).collect()
    };
    RegressionData {
        response: repeat(&weighted.response),
        offset: repeat(&weighted.offset),
        terms: weighted.terms.iter().map(|term| Term { values: repeat(&term.values), ..term.clone() }).collect(),
        weights: Vec::new(),
        ..weighted.clone()
    }
}

/// A table with weights, and the same with copies.
fn both(weighted: &RegressionData, settings: &SelectionSettings) -> [Selection; 2] {
    [weighted, &repeated(weighted)].map(|table| Selection::new(table, Standardise::Full, settings).unwrap())
}

#[test]
fn a_row_of_weight_two_is_there_twice() {
    let likelihoods = [
        Likelihood::Gaussian { sigma: None },
        Likelihood::Gaussian { sigma: Some(1.1) },
        Likelihood::Robust { alpha: 0.1, sigma1: Some(1.0), sigma2: Some(10.0) },
        Likelihood::ROBUST,
        Likelihood::StudentT { df: 4.0 },
        Likelihood::Logistic {},
        Likelihood::Poisson {},
        Likelihood::NegativeBinomial { size: None },
    ];
    for likelihood in likelihoods {
        let weighted = with_weights(with_offset(random_table(24, &likelihood)));
        for prior in [CoefficientPrior::Normal { scale: 1.5 }, CoefficientPrior::G { g: None }] {
            let settings = SelectionSettings { likelihood, prior, ..SelectionSettings::default() };
            let [weighted, repeated] = both(&weighted, &settings);
            let theta = &[1.3, 0.2, -0.1, 0.5][1 - likelihood.own_parameters()..];
            let density =
                |selection: &Selection| selection.log_density(&[1, 0, 0], theta, &mut vec![0.0; theta.len()]).unwrap();
            let (found, expected) = (density(&weighted), density(&repeated));
            assert!((found - expected).abs() < 1e-9 * expected.abs(), "{likelihood:?} {prior:?}: {found} {expected}");
            assert_eq!(weighted.reference().unwrap().len(), repeated.reference().unwrap().len());
            let [a, b] = [&weighted, &repeated].map(|selection| selection.preconditioner(&[1, 0, 0]).unwrap());
            assert!((a.log_jacobian() - b.log_jacobian()).abs() < 1e-3, "{likelihood:?} {prior:?}");
        }
    }
}

#[test]
fn closed_forms_see_weights_as_repeated_rows() {
    let priors = [
        CoefficientPrior::Normal { scale: 1.5 },
        CoefficientPrior::G { g: None },
        CoefficientPrior::HyperG { a: 3.0 },
        CoefficientPrior::HyperGN { a: 3.0 },
        CoefficientPrior::ZellnerSiow {},
    ];
    for sigma in [Some(1.1), None] {
        let likelihood = Likelihood::Gaussian { sigma };
        let table = with_weights(with_offset(random_table(30, &likelihood)));
        for prior in priors {
            let [weighted, repeated] = both(&table, &SelectionSettings { likelihood, prior, ..Default::default() });
            let expected = log_evidences(&repeated, &Workers::SINGLE).unwrap();
            let found = log_evidences(&weighted, &Workers::SINGLE).unwrap();
            for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let model: Vec<u16> = (0..3).map(|term| (number >> (2 - term) & 1) as u16).collect();
                let closed = ClosedForm::new(&weighted).unwrap().log_evidence(&model);
                assert!((found - expected).abs() < 1e-8, "{sigma:?} {prior:?} {model:?}: {found} {expected}");
                assert!((closed - expected).abs() < 1e-8, "{sigma:?} {prior:?} {model:?}: {closed} {expected}");
                // Bayes' theorem: joint density over posterior is the evidence.
                let Ok(posterior) = Conjugate::new(&weighted, &model) else { continue };
                let theta = posterior.draw(&mut Stream::new(1, Purpose::Other(0), 0, 0));
                let joint = weighted.log_density(&model, &theta, &mut vec![0.0; theta.len()]).unwrap();
                let evidence = joint - posterior.log_density(&theta);
                assert!((evidence - expected).abs() < 1e-6, "{sigma:?} {prior:?} {model:?}: {evidence} {expected}");
            }
        }
    }
}

#[test]
fn shares_are_not_taken_for_frequencies() {
    let mut table = with_weights(random_table(30, &Likelihood::Gaussian { sigma: None }));
    table.weights.iter_mut().for_each(|weight| *weight /= 60.0);
    let refused = Selection::new(&table, Standardise::Full, &SelectionSettings::default()).unwrap_err();
    assert!(matches!(refused, vti::problem::selection::SelectionError::Data(TableError::TotalWeight { .. })));
}
