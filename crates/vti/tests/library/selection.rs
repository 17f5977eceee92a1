//! Variable selection: densities against finite differences, evidences against closed forms and published figures.

use std::sync::Arc;

use vti::device::Cpu;
use vti::family::{Family, FamilySettings};
use vti::posterior::{Point, Posterior};
use vti::problem::Problem;
use vti::problem::selection::{
    CoefficientPrior, Likelihood, ModelPrior, RegressionData, Selection, SelectionSettings, Standardise, TableError,
    Term, log_evidences,
};
use vti::random::{Purpose, Stream};
use vti::workers::Workers;

use crate::hald::hald;

/// A covariate.
fn term(name: &str, values: Vec<f64>) -> Term {
    Term { name: name.into(), columns: vec![name.into()], values, always: false, parents: Vec::new() }
}

/// Random covariates, one of them a group of two columns, one always in; the response suits the likelihood.
pub(crate) fn random_table(rows: usize, likelihood: &Likelihood) -> RegressionData {
    let mut stream = Stream::new(5, Purpose::Other(0), 0, 0);
    let mut normals = |n: usize| (0..n).map(|_| stream.normal()).collect::<Vec<f64>>();
    let (a, b, c, d) = (normals(rows), normals(rows), normals(2 * rows), normals(rows));
    let noise = normals(rows);
    let response = (0..rows)
        .map(|i| {
            let eta = 0.4 + 0.8 * a[i] - 0.5 * c[i];
            match likelihood {
                Likelihood::Logistic {} => f64::from(u8::from(eta + noise[i] > 0.0)),
                likelihood if likelihood.has_counts() => (eta + 0.5 * noise[i]).exp().round(),
                _ => eta + noise[i],
            }
        })
        .collect();
    let group = Term {
        name: "c".into(),
        columns: vec!["c1".into(), "c2".into()],
        values: c,
        always: false,
        parents: Vec::new(),
    };
    let always = Term { always: true, ..term("d", d) };
    RegressionData {
        response_name: "y".into(),
        response,
        terms: vec![term("a", a), always, term("b", b), group],
        ..RegressionData::default()
    }
}

/// Part of what is to be explained is known: a third of the first covariate.
pub(crate) fn with_offset(table: RegressionData) -> RegressionData {
    let offset = table.terms[0].values.iter().map(|x| 0.3 * x - 0.2).collect();
    RegressionData { offset, ..table }
}

/// Rows count once to three times.
pub(crate) fn with_weights(table: RegressionData) -> RegressionData {
    let weights = (0..table.response.len()).map(|row| (1 + row % 3) as f64).collect();
    RegressionData { weights, ..table }
}

#[test]
fn gradients_agree_with_central_differences() {
    let likelihoods = [
        Likelihood::Gaussian { sigma: Some(0.7) },
        Likelihood::Gaussian { sigma: None },
        Likelihood::Robust { alpha: 0.1, sigma1: Some(1.0), sigma2: Some(10.0) },
        Likelihood::ROBUST,
        Likelihood::StudentT { df: 4.0 },
        Likelihood::Logistic {},
        Likelihood::Poisson {},
        Likelihood::NegativeBinomial { size: None },
        Likelihood::NegativeBinomial { size: Some(2.5) },
    ];
    for likelihood in likelihoods {
        for prior in [CoefficientPrior::Normal { scale: 1.5 }, CoefficientPrior::G { g: None }] {
            let table = with_weights(with_offset(random_table(37, &likelihood)));
            let settings = SelectionSettings { likelihood, prior, ..SelectionSettings::default() };
            let selection = Selection::new(&table, Standardise::Full, &settings).unwrap();
            for model in [[0, 0, 0], [1, 0, 1], [1, 1, 1]] {
                let dim = likelihood.own_parameters()
                    + 2
                    + usize::from(model[0])
                    + usize::from(model[1])
                    + 2 * usize::from(model[2]);
                let theta: Vec<f64> =
                    (0..dim).map(|i| 0.9 - 0.23 * i as f64 + if i == 0 { 0.3 } else { 0.0 }).collect();
                let mut gradient = vec![f64::NAN; dim];
                selection.log_density(&model, &theta, &mut gradient).unwrap();
                for i in 0..dim {
                    let value = |step: f64| {
                        let mut moved = theta.clone();
                        moved[i] += step;
                        selection.log_density(&model, &moved, &mut vec![0.0; dim]).unwrap()
                    };
                    let numeric = (value(1e-5) - value(-1e-5)) / 2e-5;
                    assert!(
                        (numeric - gradient[i]).abs() < 1e-6 * (1.0 + numeric.abs()),
                        "{likelihood:?} {prior:?} {model:?} {i}: {} {numeric}",
                        gradient[i]
                    );
                }
            }
        }
    }
}

/// Posterior inclusion probabilities under a uniform prior from evidences by number.
fn inclusion(log_evidences: &[f64], terms: usize) -> Vec<f64> {
    let top = log_evidences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = log_evidences.iter().map(|l| (l - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    let with = |term: usize| move |number: &usize| number >> (terms - 1 - term) & 1 == 1;
    (0..terms).map(|term| (0..weights.len()).filter(with(term)).map(|m| weights[m]).sum::<f64>() / total).collect()
}

#[test]
fn the_g_prior_answers_of_halds_data_are_the_known_ones() {
    let selection = Selection::new(&hald(), Standardise::Full, &SelectionSettings::default()).unwrap();
    let found = log_evidences(&selection, &Workers::new(2).unwrap()).unwrap();
    let known = [0.899_812, 0.636_125, 0.339_798, 0.563_684];
    for (found, known) in inclusion(&found, 4).into_iter().zip(known) {
        assert!((found - known).abs() < 1e-6, "{found} {known}");
    }
}

/// `log ∫ p(y, θ | m) dθ` by a grid over θ for a model with an intercept and nothing else, σ on a log grid where unknown.
fn by_quadrature(selection: &Selection, scaled: bool, center: f64, spread: f64) -> f64 {
    let model = vec![0; selection.design().terms().len()];
    let sum = |sigma: Option<f64>| -> f64 {
        let step = spread / 200.0;
        (-2000..=2000)
            .map(|i| {
                let intercept = center + step * f64::from(i) * 0.5;
                let theta: Vec<f64> = sigma.into_iter().chain([intercept]).collect();
                selection.log_density(&model, &theta, &mut vec![0.0; theta.len()]).unwrap().exp() * step * 0.5
            })
            .sum()
    };
    if !scaled {
        return sum(None).ln();
    }
    let step = 0.01;
    (-500..=500).map(|i| (step * f64::from(i)).exp()).map(|sigma| sum(Some(sigma)) * sigma * step).sum::<f64>().ln()
}

#[test]
fn evidences_of_the_null_model_agree_with_quadrature() {
    let mut table = random_table(9, &Likelihood::Gaussian { sigma: None });
    table.terms.retain(|term| !term.always);
    let mean = table.response.iter().sum::<f64>() / 9.0;
    for sigma in [Some(0.8), None] {
        for prior in [CoefficientPrior::Normal { scale: 2.0 }, CoefficientPrior::G { g: Some(5.0) }] {
            let settings =
                SelectionSettings { likelihood: Likelihood::Gaussian { sigma }, prior, ..Default::default() };
            let selection = Selection::new(&table, Standardise::Full, &settings).unwrap();
            let exact = log_evidences(&selection, &Workers::SINGLE).unwrap()[0];
            let numeric = by_quadrature(&selection, sigma.is_none(), mean, 2.0);
            assert!((exact - numeric).abs() < 1e-4, "{sigma:?} {prior:?}: {exact} {numeric}");
        }
    }
}

#[test]
fn gray_codes_visit_every_model_once_and_agree_with_a_direct_solution() {
    // Fourteen covariates: several tasks; groups and columns that are always in among them.
    let mut stream = Stream::new(6, Purpose::Other(0), 0, 0);
    let rows = 40;
    let mut terms: Vec<Term> =
        (0..13).map(|i| term(&format!("x{i}"), (0..rows).map(|_| stream.normal()).collect())).collect();
    let values = (0..2 * rows).map(|_| stream.normal()).collect();
    terms.push(Term {
        name: "g".into(),
        columns: vec!["g1".into(), "g2".into()],
        values,
        always: false,
        parents: Vec::new(),
    });
    terms[4].always = true;
    let response = (0..rows).map(|i| terms[0].values[i] - terms[2].values[i] + stream.normal()).collect();
    let table = RegressionData { response_name: "y".into(), response, terms, ..RegressionData::default() };
    let prior = CoefficientPrior::Normal { scale: 1.5 };
    let settings = SelectionSettings {
        likelihood: Likelihood::Gaussian { sigma: Some(1.1) },
        prior,
        ..SelectionSettings::default()
    };
    let selection = Selection::new(&table, Standardise::Full, &settings).unwrap();
    let found = log_evidences(&selection, &Workers::new(2).unwrap()).unwrap();
    assert_eq!(found.len(), 1 << 13);
    for number in (0..1usize << 13).step_by(211) {
        let model: Vec<u16> = (0..13).map(|term| (number >> (12 - term) & 1) as u16).collect();
        let direct = direct(&selection, &model, 1.1, 1.5);
        assert!((found[number] - direct).abs() < 1e-8, "{model:?}: {} {direct}", found[number]);
    }
}

/// log N(y; 0, σ²I + s²XXᵀ) by Cholesky's decomposition of the covariance.
fn direct(selection: &Selection, model: &[u16], sigma: f64, scale: f64) -> f64 {
    let design = selection.design();
    let (mut columns, n) = (Vec::new(), design.rows());
    design.model_columns(model, &mut columns);
    let covariance = |i: usize, j: usize| {
        let product: f64 = columns.iter().map(|&c| design.column(c as usize)[i] * design.column(c as usize)[j]).sum();
        scale * scale * product + if i == j { sigma * sigma } else { 0.0 }
    };
    let mut l = vec![vec![0.0; n]; n];
    let (mut log_density, mut solved) = (0.0, vec![0.0; n]);
    for i in 0..n {
        for j in 0..=i {
            let sum = covariance(i, j) - (0..j).map(|k| l[i][k] * l[j][k]).sum::<f64>();
            l[i][j] = if i == j { sum.sqrt() } else { sum / l[j][j] };
        }
        solved[i] = (design.response()[i] - (0..i).map(|k| l[i][k] * solved[k]).sum::<f64>()) / l[i][i];
        log_density -= l[i][i].ln() + 0.5 * solved[i] * solved[i] + 0.5 * std::f64::consts::TAU.ln();
    }
    log_density
}

#[test]
fn model_priors_are_distributions() {
    for prior in [ModelPrior::Uniform {}, ModelPrior::Bernoulli { p: 0.3 }, ModelPrior::BetaBinomial { a: 1.5, b: 4.0 }]
    {
        let choose = |n: usize, k: usize| (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product::<f64>();
        let total: f64 = (0..=9).map(|k| choose(9, k) * prior.log_prob(k, 9).exp()).sum();
        assert!((total - 1.0).abs() < 1e-9, "{prior:?}: {total}");
    }
}

#[test]
fn tables_that_say_nothing_are_refused_by_name() {
    let refused = |change: &dyn Fn(&mut RegressionData)| {
        let mut table = hald();
        change(&mut table);
        Selection::new(&table, Standardise::Full, &SelectionSettings::default()).unwrap_err().to_string()
    };
    assert!(refused(&|t| t.terms[1].values = vec![3.0; 13]).contains("column x2 is constant"));
    assert!(refused(&|t| t.terms[1].values[4] = f64::NAN).contains("column x2, row 5"));
    assert!(refused(&|t| t.terms[1].columns[0] = "x1".into()).contains("two columns called x1"));
    assert!(refused(&|t| t.terms[1].columns[0] = "y".into()).contains("two columns called y"));
    assert!(refused(&|t| t.terms[1].values.truncate(7)).contains("has 7 values"));
    assert!(refused(&|t| t.terms.iter_mut().for_each(|term| term.always = true)).contains("nothing to select"));
    assert!(refused(&|t| t.terms[3].values = t.terms[0].values.clone()).contains("linearly independent"));
    let settings = SelectionSettings { likelihood: Likelihood::Logistic {}, ..SelectionSettings::default() };
    let error = Selection::new(&hald(), Standardise::Full, &settings).unwrap_err();
    let expected = TableError::Response { row: 1, value: "78.5".into(), expected: "0 or 1" };
    assert_eq!(error.to_string(), expected.to_string());
}

/// Draws from a family before anything was learned.
fn untrained(selection: &Arc<Selection>) -> Posterior<Cpu<f64>> {
    let problem = Arc::clone(selection) as Arc<dyn Problem>;
    let family = Family::new(problem, Cpu::single(), &FamilySettings::default(), 256, 1).unwrap();
    Posterior::new(family, 1, Vec::new())
}

#[test]
fn frames_of_gaussian_models_with_known_noise_are_their_posteriors() {
    let likelihood = Likelihood::Gaussian { sigma: Some(0.7) };
    for prior in [CoefficientPrior::Normal { scale: 1.5 }, CoefficientPrior::G { g: None }] {
        let settings = SelectionSettings { likelihood, prior, ..SelectionSettings::default() };
        let selection = Arc::new(Selection::new(&random_table(37, &likelihood), Standardise::Full, &settings).unwrap());
        let exact = log_evidences(&selection, &Workers::SINGLE).unwrap();
        // Flows start as the identity: every draw weighs as much as the evidence of its model.
        let draws = untrained(&selection).draw_with_target(256, 0).unwrap();
        for row in 0..draws.len() {
            let word = draws.word(row);
            let number = word.iter().fold(0, |number, &bit| 2 * number + usize::from(bit));
            let log_q_theta = draws.log_q[row] - draws.log_q_model[row];
            let found = draws.log_target[row] - selection.log_prior(word) - log_q_theta;
            assert!((found - exact[number]).abs() < 1e-9, "{prior:?} {word:?}: {found}, exact {}", exact[number]);
        }
    }
}

#[test]
fn frames_lie_where_posteriors_do() {
    let likelihoods = [
        Likelihood::Gaussian { sigma: None },
        Likelihood::Robust { alpha: 0.1, sigma1: Some(1.0), sigma2: Some(2.0) },
        Likelihood::ROBUST,
        Likelihood::StudentT { df: 4.0 },
        Likelihood::Logistic {},
        Likelihood::Poisson {},
        Likelihood::NegativeBinomial { size: None },
        Likelihood::NegativeBinomial { size: Some(2.5) },
    ];
    for likelihood in likelihoods {
        for prior in [CoefficientPrior::Normal { scale: 1.5 }, CoefficientPrior::G { g: None }] {
            let mut table = with_weights(with_offset(random_table(60, &likelihood)));
            if likelihood.has_scale() {
                // Far from unit scale.
                table.response.iter_mut().for_each(|y| *y = 1e4 + 300.0 * *y);
            }
            let scale = if likelihood.has_scale() { 1e5 } else { 1.5 };
            let prior =
                if let CoefficientPrior::Normal { .. } = prior { CoefficientPrior::Normal { scale } } else { prior };
            let settings = SelectionSettings { likelihood, prior, ..SelectionSettings::default() };
            let selection = Arc::new(Selection::new(&table, Standardise::Full, &settings).unwrap());
            let posterior = untrained(&selection);
            let draws = posterior.draw_with_target(1024, 0).unwrap();
            let mut spread: Vec<f64> = Vec::new();
            for model in draws.words.chunks_exact(3).collect::<std::collections::HashSet<_>>() {
                let rows = || (0..draws.len()).filter(|&row| draws.word(row) == model);
                let weights = rows().map(|row| draws.log_target[row] - draws.log_q[row]).collect::<Vec<f64>>();
                let mean = weights.iter().sum::<f64>() / weights.len() as f64;
                let variance = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / weights.len() as f64;
                spread.push(variance.sqrt());
            }
            // Log weights of a density that is off by a standard deviation or two vary by a few nats; one of the wrong
            // scale altogether varies by hundreds.
            let worst = spread.iter().copied().fold(0.0, f64::max);
            assert!(worst < 4.0, "{likelihood:?} {prior:?}: {worst}");
            // Back through constraint and preconditioner.
            let points: Vec<Point> =
                (0..64).map(|row| Point { model: draws.model(row), theta: draws.theta(row).to_vec() }).collect();
            for (row, log_q) in posterior.log_q(&points).unwrap().into_iter().enumerate() {
                assert!((log_q - draws.log_q[row]).abs() < 1e-6, "{likelihood:?} {prior:?}, draw {row}");
            }
        }
    }
}

#[test]
fn a_response_far_from_zero_costs_no_digits() {
    let likelihoods = [
        Likelihood::Gaussian { sigma: None },
        Likelihood::Gaussian { sigma: Some(0.9) },
        Likelihood::StudentT { df: 4.0 },
    ];
    for likelihood in likelihoods {
        let table = random_table(60, &likelihood);
        let settings = SelectionSettings { likelihood, ..SelectionSettings::default() };
        let shifted = |shift: f64| {
            let mut table = table.clone();
            table.response.iter_mut().for_each(|y| *y += shift);
            Selection::new(&table, Standardise::Full, &settings).unwrap()
        };
        let near = shifted(0.0);
        for shift in [1e6, 1e8] {
            let far = shifted(shift);
            if let Likelihood::Gaussian { .. } = likelihood {
                let evidences = |selection: &Selection| log_evidences(selection, &Workers::SINGLE).unwrap();
                for (near, far) in evidences(&near).into_iter().zip(evidences(&far)) {
                    assert!((near - far).abs() < 1e-5, "{likelihood:?} {shift}: {near} {far}");
                }
            }
            let (near, far) = (near.preconditioner(&[1, 0, 1]).unwrap(), far.preconditioner(&[1, 0, 1]).unwrap());
            assert!((near.log_jacobian() - far.log_jacobian()).abs() < 1e-5, "{likelihood:?} {shift}");
            let intercept = usize::from(likelihood.has_scale());
            let (mut a, mut b) = (vec![1.0; near.dim()], vec![1.0; near.dim()]);
            near.to_free(&mut a);
            far.to_free(&mut b);
            b[intercept] -= shift;
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5), "{likelihood:?} {shift}: {a:?} {b:?}");
        }
    }
}

#[test]
fn the_g_that_is_asked_for_is_the_g_of_the_prior() {
    // Unit information of a logistic likelihood is four times the number of rows.
    let likelihood = Likelihood::Logistic {};
    let table = random_table(40, &likelihood);
    let value = |g: Option<f64>| {
        let settings = SelectionSettings { likelihood, prior: CoefficientPrior::G { g }, ..Default::default() };
        let selection = Selection::new(&table, Standardise::Full, &settings).unwrap();
        selection.log_density(&[1, 0, 0], &[0.1, 0.2, 0.3], &mut [0.0; 3]).unwrap()
    };
    assert_eq!(value(None), value(Some(160.0)));
    assert_ne!(value(None), value(Some(40.0)));
}

#[test]
fn an_offset_shifts_the_predictors() {
    let scale = 1.5;
    let log_prior = |b: f64| -0.5 * (b / scale).powi(2);
    let mixed = Likelihood::NegativeBinomial { size: Some(2.5) };
    for likelihood in [Likelihood::Logistic {}, Likelihood::Poisson {}, mixed] {
        let prior = CoefficientPrior::Normal { scale };
        let settings = SelectionSettings { likelihood, prior, ..SelectionSettings::default() };
        let table = random_table(37, &likelihood);
        let density = |table: &RegressionData, intercept: f64, slope: f64| {
            let selection = Selection::new(table, Standardise::Raw, &settings).unwrap();
            let theta = [intercept, 0.4, slope];
            let value = selection.log_density(&[1, 0, 0], &theta, &mut [0.0; 3]).unwrap();
            value - log_prior(intercept) - log_prior(slope)
        };
        let (with, without) = (density(&with_offset(table.clone()), 0.6, 0.5), density(&table, 0.6 - 0.2, 0.5 + 0.3));
        assert!((with - without).abs() < 1e-9, "{likelihood:?}: {with} {without}");
    }
}

#[test]
fn an_offset_is_taken_from_a_gaussian_response() {
    for likelihood in [Likelihood::Gaussian { sigma: None }, Likelihood::StudentT { df: 4.0 }] {
        let with = with_offset(random_table(37, &likelihood));
        let mut without = RegressionData { offset: Vec::new(), ..with.clone() };
        without.response.iter_mut().zip(&with.offset).for_each(|(y, offset)| *y -= offset);
        let settings = SelectionSettings { likelihood, ..SelectionSettings::default() };
        let [with, without] =
            [with, without].map(|table| Selection::new(&table, Standardise::Full, &settings).unwrap());
        let density = |selection: &Selection| {
            let theta = [0.8, 0.2, -0.1, 0.5];
            selection.log_density(&[1, 0, 0], &theta, &mut [0.0; 4]).unwrap()
        };
        assert_eq!(density(&with), density(&without));
        if let Likelihood::Gaussian { .. } = likelihood {
            let evidences = |selection: &Selection| log_evidences(selection, &Workers::SINGLE).unwrap();
            assert_eq!(evidences(&with), evidences(&without));
        }
    }
}

/// `log p(y | μ, r)` of a negative binomial count as textbooks have it, by products.
fn log_mixed_count(y: f64, mean: f64, size: f64) -> f64 {
    let p = size / (size + mean);
    let ways: f64 = (0..y as u32).map(|k| ((size + f64::from(k)) / f64::from(k + 1)).ln()).sum();
    ways + size * p.ln() + y * (1.0 - p).ln()
}

#[test]
fn negative_binomial_densities_are_those_of_textbooks() {
    let mut table = random_table(37, &Likelihood::Poisson {});
    // Counts that are not summed one by one as well.
    (table.response[3], table.response[4]) = (129.0, 1000.0);
    let prior = CoefficientPrior::Normal { scale: 1.5 };
    let theta = [0.5, 0.2, 0.7];
    let predictor = |selection: &Selection, row: usize| {
        let design = selection.design();
        theta.iter().enumerate().map(|(column, b)| b * design.column(column)[row]).sum::<f64>()
    };
    let log_prior: f64 =
        theta.iter().map(|b| -0.5 * (b / 1.5f64).powi(2) - 1.5f64.ln() - 0.5 * std::f64::consts::TAU.ln()).sum();
    for size in [0.2, 3.0, 500.0] {
        let likelihood = Likelihood::NegativeBinomial { size: Some(size) };
        let settings = SelectionSettings { likelihood, prior, ..SelectionSettings::default() };
        let selection = Selection::new(&table, Standardise::Full, &settings).unwrap();
        let found = selection.log_density(&[1, 0, 0], &theta, &mut [0.0; 3]).unwrap();
        let rows = table.response.iter().enumerate();
        let truth: f64 = rows.map(|(row, y)| log_mixed_count(*y, predictor(&selection, row).exp(), size)).sum();
        assert!((found - truth - log_prior).abs() < 1e-8 * truth.abs(), "{size}: {found} {truth}");
    }
    // Of a large size they are Poisson counts.
    let value = |likelihood: Likelihood| {
        let settings = SelectionSettings { likelihood, prior, ..SelectionSettings::default() };
        let table = random_table(37, &likelihood);
        let selection = Selection::new(&table, Standardise::Full, &settings).unwrap();
        selection.log_density(&[1, 0, 0], &theta, &mut [0.0; 3]).unwrap()
    };
    let (mixed, poisson) = (value(Likelihood::NegativeBinomial { size: Some(1e7) }), value(Likelihood::Poisson {}));
    assert!((mixed - poisson).abs() < 1e-3, "{mixed} {poisson}");
}
