//! Parameters of Gaussian selections in closed form: Bayes' theorem at every draw, and moments by two ways that share nothing.

#![allow(missing_docs, clippy::unwrap_used)]

use vti::posterior::{ConjugatePosterior, GraphPosterior, Point};
use vti::problem::dag::simulate::{SimulationSettings, simulate};
use vti::problem::dag::{self, Dag, DagSettings, GraphPrior, LinearEvidence, Noise, Rules, Sem};
use vti::problem::selection::{
    Average, CoefficientPrior, Conjugate, Enumeration, ExactError, Likelihood, QuadratureLimits, RegressionData,
    Selection, SelectionError, SelectionSettings, Standardise, Term, evidence_by_quadrature, log_evidences,
};
use vti::problem::{Blocks, Problem};
use vti::random::{Purpose, Stream};
use vti::workers::Workers;

/// Covariates far from 0, two of them nearly equal, one a group of two columns, one always in, and a response around `level`.
fn table(rows: usize, level: f64) -> RegressionData {
    let mut stream = Stream::new(3, Purpose::Other(1), 0, rows as u64);
    let mut normals = |n: usize| (0..n).map(|_| stream.normal()).collect::<Vec<f64>>();
    let (a, e, c, d, noise) = (normals(rows), normals(rows), normals(2 * rows), normals(rows), normals(rows));
    let b: Vec<f64> = a.iter().zip(&e).map(|(a, e)| a + 0.05 * e).collect();
    let response = (0..rows).map(|i| level + 0.9 * a[i] - 0.4 * c[i] + 0.2 * d[i] + 0.8 * noise[i]).collect();
    let term = |name: &str, values: &[f64], center: f64| Term {
        name: name.into(),
        columns: vec![name.into()],
        values: values.iter().map(|x| center + x).collect(),
        always: false,
        parents: Vec::new(),
    };
    let group = Term {
        name: "c".into(),
        columns: vec!["c1".into(), "c2".into()],
        values: c,
        always: false,
        parents: Vec::new(),
    };
    let always = Term { always: true, ..term("d", &d, 3.0) };
    RegressionData {
        response_name: "y".into(),
        response,
        terms: vec![term("a", &a, 20.0), always, term("b", &b, -1.0), group],
        ..RegressionData::default()
    }
}

/// Every closed form there is, few and many rows, standardised and raw.
fn cases() -> Vec<(String, Selection)> {
    let mut cases = Vec::new();
    for sigma in [Some(0.7), None] {
        for prior in [
            CoefficientPrior::Normal { scale: 1.5 },
            CoefficientPrior::Normal { scale: 0.05 },
            CoefficientPrior::G { g: None },
            CoefficientPrior::G { g: Some(3.0) },
            CoefficientPrior::HyperG { a: 3.0 },
            CoefficientPrior::HyperGN { a: 4.0 },
            CoefficientPrior::ZellnerSiow {},
        ] {
            for (rows, standardise) in [(9, Standardise::Full), (60, Standardise::Full), (60, Standardise::Raw)] {
                let settings =
                    SelectionSettings { likelihood: Likelihood::Gaussian { sigma }, prior, ..Default::default() };
                let selection = Selection::new(&table(rows, 1.3), standardise, &settings).unwrap();
                cases.push((format!("{sigma:?} {prior:?} {rows} {standardise:?}"), selection));
            }
        }
    }
    cases
}

#[test]
fn joint_density_over_posterior_is_the_evidence_at_every_draw() {
    let workers = Workers::new(2).unwrap();
    for (name, selection) in cases() {
        let evidences = log_evidences(&selection, &workers).unwrap();
        for (number, evidence) in evidences.iter().enumerate() {
            let model: Vec<u16> = (0..3).map(|term| (number >> (2 - term) & 1) as u16).collect();
            let posterior = Conjugate::new(&selection, &model).unwrap();
            assert!((posterior.log_evidence() - evidence).abs() < 1e-8, "{name}: {model:?}");
            for row in 0..50 {
                let theta = posterior.draw(&mut Stream::new(7, Purpose::Other(2), number as u64, row));
                let joint = selection.log_density(&model, &theta, &mut vec![0.0; theta.len()]).unwrap();
                let found = joint - posterior.log_density(&theta);
                assert!((found - evidence).abs() < 1e-7, "{name}: {model:?} {theta:?}: {found} {evidence}");
            }
        }
    }
}

#[test]
fn moments_of_draws_are_those_of_the_sweeps() {
    let (workers, count) = (Workers::new(2).unwrap(), 20_000);
    for (name, selection) in cases() {
        let posterior = ConjugatePosterior::enumerate(&selection, &workers, 11).unwrap();
        let draws = posterior.draw(count, 0, &workers).unwrap();
        let averages = posterior.averages(&workers).unwrap();
        let units = vti::answer::Units::of_selection(&selection);
        let names = units.names().len();
        let mut measured = vec![0.0; count * names];
        for (row, measured) in measured.chunks_exact_mut(names).enumerate() {
            units.to_measured(&posterior.active_parameters(draws.word(row)), draws.theta(row), measured);
        }
        for (place, &Average { mean, sd, .. }) in averages.iter().enumerate() {
            let values: Vec<f64> = measured.iter().skip(place).step_by(names).copied().collect();
            let moment = |power: i32| values.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / count as f64;
            let (second, fourth) = (moment(2), moment(4));
            let root = (count as f64).sqrt();
            let parameter = &units.names()[place];
            assert!(moment(1).abs() < 5.0 * sd / root + 1e-12, "{name}: {parameter}: off by {} of {sd}", moment(1));
            // The fourth moment is itself estimated, from tails of up to eight degrees of freedom.
            let error = (fourth - second * second).max(0.0).sqrt() / root;
            assert!((second - sd * sd).abs() < 7.0 * error + 1e-12, "{name}: {parameter}: {second} {}", sd * sd);
        }
        // And shares of models are their probabilities.
        let enumeration = posterior.enumeration().unwrap();
        for (number, &p) in enumeration.probabilities.iter().enumerate() {
            let model = enumeration.model(number);
            let share = (0..count).filter(|&row| *draws.word(row) == model[..]).count() as f64 / count as f64;
            assert!((share - p).abs() < 5.0 * (p / count as f64).sqrt() + 1e-3 * p + 1e-4, "{name}: {share} {p}");
        }
    }
}

/// The share of draws of σ below a value, against a sum of the density over a fine grid of (log σ, b) with one coefficient.
#[test]
fn draws_of_an_unknown_scale_follow_its_density() {
    let term = Term {
        name: "x".into(),
        columns: vec!["x".into()],
        values: vec![0.3, -1.0, 0.4, 2.0, -0.5],
        always: false,
        parents: Vec::new(),
    };
    let table = RegressionData {
        response_name: "y".into(),
        response: vec![0.2, 0.9, -0.4, 1.5, 2.5],
        terms: vec![term],
        ..RegressionData::default()
    };
    let settings = SelectionSettings { prior: CoefficientPrior::Normal { scale: 1.0 }, ..Default::default() };
    let selection = Selection::new(&table, Standardise::Raw, &settings).unwrap();
    let posterior = Conjugate::new(&selection, &[0]).unwrap();
    let (bound, step) = (1.1f64, 0.01);
    let (mut below, mut total) = (0.0, 0.0);
    for i in -500..500 {
        // Cells end at the bound.
        let log_sigma = bound.ln() + step * (f64::from(i) + 0.5);
        for j in -700..700 {
            let density = posterior.log_density(&[log_sigma.exp(), step * f64::from(j)]) + log_sigma;
            total += density.exp() * step * step;
            below += if i < 0 { density.exp() * step * step } else { 0.0 };
        }
    }
    assert!((total - 1.0).abs() < 1e-4, "{total}");
    let count = 40_000;
    let found =
        (0..count).filter(|&row| posterior.draw(&mut Stream::new(5, Purpose::Other(3), 0, row))[0] < bound).count();
    let found = found as f64 / count as f64;
    assert!((found - below).abs() < 5.0 * (below * (1.0 - below) / count as f64).sqrt(), "{found} {below}");
}

#[test]
fn large_means_and_equal_columns_cost_no_digits() {
    let workers = Workers::new(1).unwrap();
    let settings = SelectionSettings { prior: CoefficientPrior::Normal { scale: 2.0 }, ..Default::default() };
    let mut table = table(40, 0.0);
    // Two columns that are the same, which a normal prior keeps apart.
    table.terms[2].values = table.terms[0].values.clone();
    let selection = Selection::new(&table, Standardise::Full, &settings).unwrap();
    let posterior = ConjugatePosterior::enumerate(&selection, &workers, 1).unwrap();
    let averages = posterior.averages(&workers).unwrap();
    assert!((averages[3].mean - averages[4].mean).abs() < 1e-9, "{averages:?}");
    let draws = posterior.draw(100, 0, &workers).unwrap();
    for row in 0..draws.len() {
        let evidence = draws.log_target[row] - draws.log_q[row];
        assert!((evidence - posterior.log_evidence()).abs() < 1e-7, "{evidence}");
    }
    // A flat intercept follows the response wherever it is.
    let level = 1e9;
    let settings = SelectionSettings::default();
    let means = [0.0, level].map(|level| {
        let selection = Selection::new(&crate::table(40, level), Standardise::Full, &settings).unwrap();
        ConjugatePosterior::enumerate(&selection, &workers, 1).unwrap().averages(&workers).unwrap()
    });
    for (place, (near, far)) in means[0].iter().zip(&means[1]).enumerate() {
        let shift = if place == 1 { level } else { 0.0 };
        assert!((far.mean - shift - near.mean).abs() < 1e-4 * near.sd + 1e-6, "{place}: {near:?} {far:?}");
        assert!((far.sd / near.sd - 1.0).abs() < 1e-4, "{place}: {near:?} {far:?}");
    }
}

#[test]
fn draws_repeat_on_any_number_of_threads_and_densities_are_those_of_points() {
    let selection = Selection::new(&table(30, 1.0), Standardise::Full, &SelectionSettings::default()).unwrap();
    let posterior = |threads: usize| {
        let workers = Workers::new(threads).unwrap();
        let posterior = ConjugatePosterior::enumerate(&selection, &workers, 5).unwrap();
        (posterior.draw(500, 2, &workers).unwrap(), posterior.averages(&workers).unwrap(), posterior)
    };
    let (one, averages, exact) = posterior(1);
    let (three, others, _) = posterior(3);
    assert!(one.log_q == three.log_q && one.words == three.words && averages == others);
    assert!(one.theta.iter().zip(&three.theta).all(|(a, b)| a.to_bits() == b.to_bits()));
    let another = exact.draw(500, 3, &Workers::new(1).unwrap()).unwrap();
    assert_ne!(one.log_q, another.log_q);
    for row in 0..20 {
        let point = Point { model: one.model(row), theta: one.theta(row).to_vec() };
        assert_eq!(exact.log_prob(&point).unwrap(), one.log_q[row]);
        let outside = Point { theta: [&[-1.0], &point.theta[1..]].concat(), ..point.clone() };
        assert_eq!(exact.log_prob(&outside).unwrap(), f64::NEG_INFINITY);
        assert!(exact.log_prob(&Point { theta: point.theta[1..].to_vec(), ..point }).unwrap().is_nan());
    }
}

const MIXTURES: [CoefficientPrior; 3] =
    [CoefficientPrior::HyperG { a: 3.0 }, CoefficientPrior::HyperGN { a: 3.0 }, CoefficientPrior::ZellnerSiow {}];

fn selection_with(table: &RegressionData, sigma: Option<f64>, prior: CoefficientPrior) -> Selection {
    let settings = SelectionSettings { likelihood: Likelihood::Gaussian { sigma }, prior, ..Default::default() };
    Selection::new(table, Standardise::Full, &settings).unwrap()
}

/// `∫ p(y | m, g) p(g) dg` as a plain sum over g-priors with fixed g.
#[test]
fn evidences_of_mixtures_are_averages_of_those_given_g() {
    let (workers, table, step) = (Workers::new(2).unwrap(), table(30, 1.0), 0.05f64);
    for sigma in [Some(0.7), None] {
        let log_gs: Vec<f64> = (-700..1400).map(|place| step * f64::from(place)).collect();
        let given: Vec<Vec<f64>> = log_gs
            .iter()
            .map(|log_g| {
                let prior = CoefficientPrior::G { g: Some(log_g.exp()) };
                log_evidences(&selection_with(&table, sigma, prior), &workers).unwrap()
            })
            .collect();
        for prior in MIXTURES {
            let found = log_evidences(&selection_with(&table, sigma, prior), &workers).unwrap();
            for (model, found) in found.iter().enumerate() {
                let top = given.iter().map(|given| given[model]).fold(f64::NEG_INFINITY, f64::max);
                let density = |g: f64| match prior {
                    CoefficientPrior::HyperG { .. } => 0.5 * (1.0 + g).powf(-1.5),
                    CoefficientPrior::HyperGN { .. } => 0.5 / 30.0 * (1.0 + g / 30.0).powf(-1.5),
                    _ => (15.0 / std::f64::consts::PI).sqrt() * g.powf(-1.5) * (-15.0 / g).exp(),
                };
                let term = |(log_g, given): (&f64, &Vec<f64>)| {
                    (given[model] - top).exp() * density(log_g.exp()) * log_g.exp() * step
                };
                let exact = top + log_gs.iter().zip(&given).map(term).sum::<f64>().ln();
                assert!((found - exact).abs() < 1e-8, "{sigma:?} {prior:?} {model}: {found} {exact}");
            }
        }
    }
}

/// The joint density of all parameters, g integrated out of the prior, against the evidence, in which coefficients and σ were
/// integrated out first: two ways that share no integral.
#[test]
fn evidences_of_mixtures_are_integrals_of_the_joint_density() {
    let values: Vec<f64> = (0..12).map(|i| f64::from(i) + 0.3 * f64::from(i * i % 5)).collect();
    let response = values.iter().enumerate().map(|(i, x)| 2.0 * x + (3.0 * i as f64).sin()).collect();
    let term = Term { name: "x".into(), columns: vec!["x".into()], values, always: false, parents: Vec::new() };
    let table = RegressionData { response_name: "y".into(), response, terms: vec![term], ..RegressionData::default() };
    for sigma in [Some(0.9), None] {
        for prior in MIXTURES {
            let selection = selection_with(&table, sigma, prior);
            let exact = Conjugate::new(&selection, &[1]).unwrap().log_evidence();
            let found = evidence_by_quadrature(&selection, &[1], &QuadratureLimits::default()).unwrap();
            assert!((found.log_evidence - exact).abs() < 1e-6, "{sigma:?} {prior:?}: {found:?} {exact}");
        }
    }
}

#[test]
fn gradients_under_mixtures_are_differences() {
    for sigma in [Some(0.9), None] {
        for prior in MIXTURES {
            let selection = selection_with(&table(25, 0.5), sigma, prior);
            let model = [1, 0, 1];
            let theta = Conjugate::new(&selection, &model).unwrap().draw(&mut Stream::new(4, Purpose::Other(5), 0, 0));
            let mut gradient = vec![0.0; theta.len()];
            selection.log_density(&model, &theta, &mut gradient).unwrap();
            for (place, by) in gradient.iter().enumerate() {
                let at = |off: f64| {
                    let mut moved = theta.clone();
                    moved[place] += off;
                    selection.log_density(&model, &moved, &mut vec![0.0; moved.len()]).unwrap()
                };
                let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!((by - difference).abs() < 1e-4 * (1.0 + by.abs()), "{prior:?} {place}: {by} {difference}");
            }
        }
    }
}

#[test]
fn mixtures_are_for_gaussian_errors_and_priors_that_have_an_integral() {
    for prior in MIXTURES {
        let settings = SelectionSettings { likelihood: Likelihood::StudentT { df: 4.0 }, prior, ..Default::default() };
        let refused = Selection::new(&table(30, 0.0), Standardise::Full, &settings).unwrap_err();
        assert_eq!(refused, SelectionError::Mixture);
    }
    let settings = SelectionSettings { prior: CoefficientPrior::HyperG { a: 2.0 }, ..Default::default() };
    let refused = Selection::new(&table(30, 0.0), Standardise::Full, &settings).unwrap_err();
    assert!(refused.to_string().contains("greater than 2"), "{refused}");
}

#[test]
fn what_has_no_closed_form_is_refused() {
    let settings = SelectionSettings { likelihood: Likelihood::StudentT { df: 4.0 }, ..Default::default() };
    let selection = Selection::new(&table(30, 0.0), Standardise::Full, &settings).unwrap();
    assert_eq!(Conjugate::new(&selection, &[0, 0, 0]).unwrap_err(), ExactError::Likelihood);
    assert_eq!(Enumeration::closed_form_affordable(&selection), Err(ExactError::Likelihood));
}

/// Linear graphs of four nodes: known and unknown noise, either prior, with a rule or without.
fn linear_graphs() -> Vec<(String, Dag)> {
    let settings = SimulationSettings { nodes: 4, rows: 30, sem: Sem::Linear {}, ..Default::default() };
    let table = simulate(&settings).unwrap().table;
    let mut cases = Vec::new();
    for noise in [Noise::Known { sigma: 0.8 }, Noise::Unknown {}] {
        for prior in [GraphPrior::Orders, GraphPrior::Graphs] {
            for forbidden in [vec![], vec![[0, 2], [3, 1]]] {
                let name = format!("{noise:?} {prior:?} {forbidden:?}");
                let rules = Rules { forbidden, ..Rules::default() };
                let (sem, edge_penalty) = (Sem::Linear {}, 0.5);
                let settings =
                    DagSettings { sem, noise, weight_scale: 1.3, prior, edge_penalty, rules, ..DagSettings::default() };
                cases.push((name, Dag::new(table.clone(), settings).unwrap()));
            }
        }
    }
    cases
}

#[test]
fn linear_graphs_are_those_of_enumeration() {
    let workers = Workers::new(2).unwrap();
    for (name, dag) in linear_graphs() {
        let evidence = match dag.settings().noise {
            Noise::Known { sigma } => LinearEvidence::new(dag.table(), sigma, 1.3),
            Noise::Unknown {} => LinearEvidence::with_unknown_noise(dag.table(), 1.3),
        };
        let evidence = evidence.unwrap();
        let exact = dag::enumerate(dag.prior(), |node, parents| evidence.log_evidence(node, parents)).unwrap();
        let posterior = GraphPosterior::new(&dag, &workers, 3).unwrap();
        assert!((posterior.log_evidence() - exact.log_evidence).abs() < 1e-8, "{name}");
        let edges = dag.edge_matrix(posterior.edges());
        assert!(edges.iter().zip(&exact.edges).all(|(a, b)| (a - b).abs() < 1e-9), "{name}");
        for (graph, &probability) in exact.graphs.iter().zip(&exact.probabilities) {
            let (found, log_evidence) = posterior.graph(&dag.word(graph).unwrap());
            assert!((found - probability).abs() < 1e-9, "{name}: {found} {probability}");
            let expected: f64 = (0..4).map(|node| evidence.log_evidence(node, graph.parents(node))).sum();
            assert!((log_evidence - expected).abs() < 1e-8, "{name}");
        }
    }
}

#[test]
fn draws_of_linear_graphs_follow_bayes_theorem_and_their_moments() {
    let (workers, count) = (Workers::new(2).unwrap(), 8_000);
    for (name, dag) in linear_graphs() {
        let posterior = GraphPosterior::new(&dag, &workers, 3).unwrap();
        let draws = posterior.draw(count, 1, &workers);
        let parameters = dag.parameter_names().len();
        let mut values = vec![0.0; count * parameters];
        for row in 0..count {
            let evidence = draws.log_target[row] - draws.log_q[row];
            assert!((evidence - posterior.log_evidence()).abs() < 1e-7, "{name}: {evidence}");
            let places = posterior.active_parameters(draws.word(row));
            places.iter().zip(draws.theta(row)).for_each(|(place, value)| values[row * parameters + place] = *value);
        }
        let point = Point { model: draws.model(0), theta: draws.theta(0).to_vec() };
        assert!((posterior.log_prob(&point) - draws.log_q[0]).abs() < 1e-12, "{name}");
        assert!(posterior.log_prob(&Point { theta: vec![1.0; 40], ..point }).is_nan(), "{name}");
        for (place, [mean, second]) in posterior.moments(&workers).into_iter().enumerate() {
            let own: Vec<f64> = values.iter().skip(place).step_by(parameters).copied().collect();
            let sd = (second - mean * mean).max(0.0).sqrt();
            let found = own.iter().sum::<f64>() / count as f64;
            assert!((found - mean).abs() < 5.0 * sd / (count as f64).sqrt() + 1e-12, "{name}, {place}: {found} {mean}");
            let squares: Vec<f64> = own.iter().map(|x| (x - mean).powi(2)).collect();
            let variance = squares.iter().sum::<f64>() / count as f64;
            let spread = squares.iter().map(|x| (x - variance).powi(2)).sum::<f64>().sqrt() / count as f64;
            assert!((variance - sd * sd).abs() < 6.0 * spread + 1e-12, "{name}, {place}: {variance} {}", sd * sd);
        }
        let again = posterior.draw(count, 1, &Workers::SINGLE);
        assert!(again.log_q == draws.log_q && again.words == draws.words, "{name}");
    }
}

#[test]
fn graphs_without_closed_forms_or_too_many_are_refused() {
    let settings = SimulationSettings { nodes: 3, rows: 10, ..Default::default() };
    let table = simulate(&settings).unwrap().table;
    let hidden = Dag::new(table, DagSettings::default()).unwrap();
    assert_eq!(GraphPosterior::affordable(&hidden), Err(dag::ExactError::NotLinear));
    assert!(hidden.node_posterior(0, 0b10).is_none());
    let settings = SimulationSettings { nodes: 16, rows: 40, sem: Sem::Linear {}, ..Default::default() };
    let many = simulate(&settings).unwrap().table;
    let many = Dag::new(many, DagSettings { sem: Sem::Linear {}, ..DagSettings::default() }).unwrap();
    assert_eq!(GraphPosterior::affordable(&many), Err(dag::ExactError::TooManyGraphs { nodes: 16 }));
    assert!(many.has_exact_evidences());
}
