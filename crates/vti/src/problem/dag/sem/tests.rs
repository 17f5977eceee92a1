//! Densities, priors, preconditioners and names of graph problems.

use std::collections::HashMap;
use std::f64::consts::TAU;

use super::*;
use crate::problem::BlockModels;
use crate::problem::dag::simulate::{SimulationSettings, simulate};
use crate::problem::dag::{LinearEvidence, Rules};
use crate::random::{Purpose, Stream};
use crate::space::Catalogue;

const SEMS: [Sem; 3] = [Sem::Linear {}, Sem::Mlp { hidden: 3, bias: false }, Sem::Mlp { hidden: 2, bias: true }];
const NOISES: [Noise; 2] = [Noise::Known { sigma: 0.7 }, Noise::Unknown {}];

fn table(nodes: usize, rows: usize) -> NodeData {
    let settings = SimulationSettings { nodes, rows, sem: Sem::Linear {}, seed: 3, ..Default::default() };
    simulate(&settings).unwrap().table
}

fn dag(nodes: usize, rows: usize, settings: DagSettings) -> Dag {
    Dag::new(table(nodes, rows), settings).unwrap()
}

/// All words, one after another.
fn words(problem: &Dag) -> Vec<Vec<u16>> {
    let catalogue = Catalogue::new(problem.space(), 1 << 20).unwrap();
    (0..catalogue.len()).map(|index| catalogue.model(index).unwrap().to_vec()).collect()
}

/// Names of the parameters that a word uses, in order.
fn active_names(problem: &Dag, word: &[u16]) -> Vec<String> {
    let mut active = vec![false; problem.space().max_dim()];
    problem.space().mark_active(word, &mut active);
    problem.parameter_names().into_iter().zip(active).filter(|(_, active)| *active).map(|(name, _)| name).collect()
}

/// Parameters about 0, and scales about 1.
fn parameters(names: &[String], seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::Other(1), 0, 0);
    names.iter().map(|name| if name.starts_with("sigma") { 0.6 + stream.uniform() } else { stream.normal() }).collect()
}

/// The log density as one would read it: parameters by their names, row by row.
fn naive(problem: &Dag, word: &[u16], theta: &HashMap<String, f64>) -> f64 {
    let normal = |x: f64, sd: f64| -0.5 * (x / sd).powi(2) - sd.ln() - 0.5 * TAU.ln();
    let (table, settings) = (problem.table(), problem.settings());
    let graph = problem.graph(word).unwrap();
    let mut sum = 0.0;
    for (name, &value) in theta {
        sum += match name.starts_with("sigma") {
            true => normal(value.ln(), 1.0) - value.ln(),
            false => normal(value, settings.weight_scale),
        };
    }
    for (node, name) in table.names.iter().enumerate() {
        let parents: Vec<usize> = (0..table.names.len()).filter(|&from| graph.has(from, node)).collect();
        let sigma = match settings.noise {
            Noise::Known { sigma } => sigma,
            Noise::Unknown {} => theta[&format!("sigma.{name}")],
        };
        for (row, &observed) in table.columns[node].iter().enumerate() {
            let inputs = || parents.iter().map(|&from| (&table.names[from], table.columns[from][row]));
            let mean = match settings.sem {
                _ if parents.is_empty() => 0.0,
                Sem::Linear {} => inputs().map(|(from, x)| theta[&format!("{from}→{name}")] * x).sum(),
                Sem::Mlp { hidden, bias } => {
                    let if_biased = |name: String| if bias { theta[&name] } else { 0.0 };
                    let unit = |h: usize| {
                        let sum: f64 = inputs().map(|(from, x)| theta[&format!("w1.{from}→{name}.{h}")] * x).sum();
                        (sum + if_biased(format!("b1.{name}.{h}"))).max(0.0) * theta[&format!("w2.{name}.{h}")]
                    };
                    (1..=hidden).map(unit).sum::<f64>() + if_biased(format!("b2.{name}"))
                }
            };
            sum += normal(observed - mean, sigma);
        }
    }
    sum
}

#[test]
fn linear_densities_and_gradients_are_those_of_the_formula() {
    for noise in NOISES {
        let problem = dag(4, 40, DagSettings { sem: SEMS[0], noise, weight_scale: 1.3, ..DagSettings::default() });
        for (seed, word) in words(&problem).into_iter().enumerate().step_by(97) {
            let names = active_names(&problem, &word);
            let theta = parameters(&names, seed as u64);
            let at = |theta: &[f64]| naive(&problem, &word, &named(&names, theta));
            let mut gradient = vec![0.0; theta.len()];
            let found = Problem::log_density(&problem, &word, &theta, &mut gradient).unwrap();
            let expected = at(&theta);
            assert!((found - expected).abs() < 1e-9 * expected.abs(), "{noise:?}: {found} {expected}");
            for (place, &found) in gradient.iter().enumerate() {
                let numeric = difference(&theta, place, 1e-5, at);
                assert!((found - numeric).abs() < 1e-6 * (1.0 + numeric.abs()), "{}: {found} {numeric}", names[place]);
            }
        }
    }
}

/// A central difference.
fn difference(theta: &[f64], place: usize, step: f64, at: impl Fn(&[f64]) -> f64) -> f64 {
    let moved = |by: f64| {
        let mut theta = theta.to_vec();
        theta[place] += by;
        at(&theta)
    };
    (moved(step) - moved(-step)) / (2.0 * step)
}

fn named(names: &[String], theta: &[f64]) -> HashMap<String, f64> {
    names.iter().cloned().zip(theta.iter().copied()).collect()
}

/// θ with two hidden units of a node in each other's place.
fn swapped(names: &[String], theta: &[f64], node: &str, units: (usize, usize)) -> Vec<f64> {
    let place = |name: &str| names.iter().position(|other| other == name).unwrap();
    let of = |name: &str| {
        let (own, unit) = name.rsplit_once('.').filter(|(own, _)| !own.starts_with("sigma"))?;
        let ends_here =
            own.ends_with(&format!("→{node}")) || own == format!("w2.{node}") || own == format!("b1.{node}");
        Some((own.to_string(), unit.parse::<usize>().ok()?)).filter(|_| ends_here)
    };
    let from = |name: &String| match of(name) {
        Some((own, unit)) if unit == units.0 => place(&format!("{own}.{}", units.1)),
        Some((own, unit)) if unit == units.1 => place(&format!("{own}.{}", units.0)),
        _ => place(name),
    };
    names.iter().map(|name| theta[from(name)]).collect()
}

#[test]
fn arrangements_of_hidden_units_share_the_density_of_the_formula() {
    // Two units, and one node with parents: two arrangements, whose mean is the density.
    for (bias, noise) in [false, true].into_iter().flat_map(|bias| NOISES.map(|noise| (bias, noise))) {
        let sem = Sem::Mlp { hidden: 2, bias };
        let problem = dag(3, 40, DagSettings { sem, noise, weight_scale: 1.3, ..DagSettings::default() });
        // Orders x1, x2, x3 and x3, x1, x2; edges from the first two to the last.
        for (seed, (word, node)) in
            [([0, 0, 0, 1, 1], "x3"), ([2, 0, 0, 1, 1], "x2"), ([2, 0, 0, 1, 0], "x2")].iter().enumerate()
        {
            let names = active_names(&problem, word);
            let theta = parameters(&names, seed as u64);
            let at = |theta: &[f64]| Problem::log_density(&problem, word, theta, &mut vec![0.0; theta.len()]).unwrap();
            let other = swapped(&names, &theta, node, (1, 2));
            assert_ne!(other, theta);
            let found = crate::stats::log_sum_exp(&[at(&theta), at(&other)]) - 2f64.ln();
            let expected = naive(&problem, word, &named(&names, &theta));
            // The kernel is in single precision.
            assert!((found - expected).abs() < 1e-4 * expected.abs(), "{sem:?} {noise:?}: {found} {expected}");
        }
    }
}

#[test]
fn gradients_of_non_linear_densities_are_their_slopes() {
    for (sem, noise) in SEMS[1..].iter().flat_map(|&sem| NOISES.map(|noise| (sem, noise))) {
        let problem = dag(3, 12, DagSettings { sem, noise, ..DagSettings::default() });
        for (seed, word) in words(&problem).into_iter().enumerate().step_by(7) {
            let names = active_names(&problem, &word);
            let theta = parameters(&names, seed as u64);
            let at = |theta: &[f64]| Problem::log_density(&problem, &word, theta, &mut vec![0.0; theta.len()]).unwrap();
            let mut gradient = vec![0.0; theta.len()];
            Problem::log_density(&problem, &word, &theta, &mut gradient).unwrap();
            for (place, &found) in gradient.iter().enumerate() {
                // Corners of rectifiers spoil long differences, single precision spoils short ones; one of them tells.
                let numeric = [1e-2, 3e-3, 1e-3].map(|step| difference(&theta, place, step, at));
                let agrees = numeric.iter().any(|numeric| (found - numeric).abs() < 0.02 * (1.0 + numeric.abs()));
                assert!(agrees, "{sem:?} {noise:?}: {} of {word:?}: {found} {numeric:?}", names[place]);
            }
        }
    }
}

#[test]
fn a_node_without_parents_is_noise_around_nothing() {
    for (sem, noise) in SEMS.into_iter().flat_map(|sem| NOISES.map(|noise| (sem, noise))) {
        let problem = dag(3, 25, DagSettings { sem, noise, ..DagSettings::default() });
        let none = vec![0; problem.space().arities().len()];
        let names = active_names(&problem, &none);
        match noise {
            Noise::Known { .. } => assert!(names.is_empty()),
            Noise::Unknown {} => assert_eq!(names, ["sigma.x1", "sigma.x2", "sigma.x3"]),
        }
        let theta = parameters(&names, 1);
        let found = Problem::log_density(&problem, &none, &theta, &mut vec![0.0; theta.len()]).unwrap();
        let expected: f64 = (problem.table().columns.iter().enumerate())
            .map(|(node, column)| {
                let sigma = theta.get(node).copied().unwrap_or(0.7);
                let squares: f64 = column.iter().map(|x| (x / sigma).powi(2)).sum();
                let prior = theta.get(node).map_or(0.0, |s| -0.5 * s.ln().powi(2) - s.ln() - 0.5 * TAU.ln());
                prior - 0.5 * squares - column.len() as f64 * (sigma.ln() + 0.5 * TAU.ln())
            })
            .sum();
        // The squares of single precision data.
        assert!((found - expected).abs() < 1e-5 * expected.abs(), "{sem:?} {noise:?}: {found} {expected}");
    }
}

#[test]
fn names_are_those_of_the_blocks() {
    let names = |sem, noise| dag(2, 5, DagSettings { sem, noise, ..DagSettings::default() }).parameter_names();
    assert_eq!(names(Sem::Linear {}, Noise::Unknown {}), ["sigma.x1", "x2→x1", "sigma.x2", "x1→x2"]);
    let biased = names(Sem::Mlp { hidden: 1, bias: true }, Noise::Known { sigma: 1.0 });
    assert_eq!(biased, ["b1.x1.1", "w2.x1.1", "b2.x1", "w1.x2→x1.1", "b1.x2.1", "w2.x2.1", "b2.x2", "w1.x1→x2.1"]);
    for (sem, noise) in SEMS.into_iter().flat_map(|sem| NOISES.map(|noise| (sem, noise))) {
        let problem = dag(4, 5, DagSettings { sem, noise, ..DagSettings::default() });
        assert_eq!(problem.parameter_names().len(), problem.space().max_dim());
        // x1 → x2 and nothing else: no other edge, and no output weights elsewhere.
        let word = [0, 0, 0, 1, 0, 0, 0, 0, 0];
        let of_means = |name: &&String| !name.starts_with("sigma");
        let names = active_names(&problem, &word);
        assert!(names.iter().filter(of_means).all(|name| name.contains("x2")), "{names:?}");
        assert_eq!(
            names.iter().filter(|name| name.contains('→')).count(),
            match sem {
                Sem::Linear {} => 1,
                Sem::Mlp { hidden, .. } => hidden,
            }
        );
    }
}

#[test]
fn priors_of_words_sum_to_one() {
    let rules = [
        Rules::default(),
        Rules { required: vec![[2, 0]], max_parents: Some(1), ..Rules::default() },
        Rules { forbidden: vec![[0, 1], [2, 1]], tiers: vec![vec![1], vec![2]], ..Rules::default() },
    ];
    for (nodes, prior) in [3, 4].into_iter().flat_map(|n| [GraphPrior::Orders, GraphPrior::Graphs].map(|p| (n, p))) {
        for rules in &rules {
            let settings = DagSettings {
                sem: Sem::Linear {},
                prior,
                edge_penalty: 0.6,
                rules: rules.clone(),
                ..Default::default()
            };
            let problem = dag(nodes, 5, settings);
            let free = dag(nodes, 5, DagSettings { sem: Sem::Linear {}, ..DagSettings::default() });
            let mut total = 0.0;
            for word in words(&free) {
                let log = Problem::log_prior(&problem, &word);
                assert_eq!(log > f64::NEG_INFINITY, problem.space().is_allowed(&word), "{word:?} {rules:?}");
                total += log.exp();
            }
            assert!((total - 1.0).abs() < 1e-11, "{nodes} {prior:?} {rules:?}: {total}");
            // The prior is a constant and a part for each node, and for graphs a share for each order.
            let mut parents = vec![0; nodes];
            let constants = words(&problem).into_iter().map(|word| {
                problem.space().parents(&word, &mut parents);
                let parts: f64 = (0..nodes).map(|node| BlockModels::log_prior(&problem, node, parents[node])).sum();
                let orders = match prior {
                    GraphPrior::Orders => 0.0,
                    GraphPrior::Graphs => problem.graph(&word).unwrap().log_orders().unwrap(),
                };
                assert_eq!(problem.log_words(&parents), problem.graph(&word).unwrap().log_orders().unwrap());
                Problem::log_prior(&problem, &word) + orders - parts
            });
            let constants: Vec<f64> = constants.collect();
            assert!(constants.iter().all(|constant| (constant - constants[0]).abs() < 1e-11));
        }
    }
}

#[test]
fn with_known_noise_the_preconditioner_is_the_posterior() {
    let (nodes, sigma, weight_scale) = (5, 0.8, 1.5);
    let settings =
        DagSettings { sem: Sem::Linear {}, noise: Noise::Known { sigma }, weight_scale, ..Default::default() };
    let problem = dag(nodes, 30, settings);
    let evidence = LinearEvidence::new(problem.table(), sigma, weight_scale).unwrap();
    for (node, parents) in (0..nodes).flat_map(|node| (0..32u64).map(move |set| (node, set))) {
        if parents >> node & 1 == 1 {
            continue;
        }
        let expected = evidence.log_evidence(node, parents);
        assert_eq!(problem.log_evidence_estimate(node, parents), expected);
        let preconditioner = Blocks::preconditioner(&problem, node, parents).unwrap();
        assert_eq!(preconditioner.dim(), parents.count_ones() as usize);
        // log η(θ) − log N(θ; preconditioner) is the evidence wherever θ is.
        for seed in 0..3 {
            let mut stream = Stream::new(seed, Purpose::Other(2), node as u64, parents);
            let v: Vec<f64> = (0..preconditioner.dim()).map(|_| 2.0 * stream.normal()).collect();
            let log_normal: f64 =
                v.iter().map(|v| -0.5 * v * v - 0.5 * TAU.ln()).sum::<f64>() - preconditioner.log_jacobian();
            let mut theta = v;
            preconditioner.to_free(&mut theta);
            let log_density =
                Blocks::log_density(&problem, node, parents, &theta, &mut vec![0.0; theta.len()]).unwrap();
            let found = log_density - log_normal;
            assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{node} {parents:b}: {found} {expected}");
        }
    }
}

#[test]
fn with_unknown_noise_the_preconditioner_stands_on_the_mode() {
    for weight_scale in [0.2, 1.0, 30.0] {
        let settings =
            DagSettings { sem: Sem::Linear {}, noise: Noise::Unknown {}, weight_scale, ..Default::default() };
        let problem = dag(4, 30, settings);
        for (node, parents) in [(0, 0), (1, 0b1101), (2, 0b0001), (3, 0b0110)] {
            let preconditioner = Blocks::preconditioner(&problem, node, parents).unwrap();
            let mut theta = preconditioner.location().to_vec();
            theta[0] = theta[0].exp();
            let mut gradient = vec![0.0; theta.len()];
            Blocks::log_density(&problem, node, parents, &theta, &mut gradient).unwrap();
            // The density of log σ is that of σ times σ.
            gradient[0] = gradient[0] * theta[0] + 1.0;
            assert!(gradient.iter().all(|slope| slope.abs() < 1e-6), "{node} {parents:b}: {gradient:?}");
        }
    }
}

#[test]
fn tables_and_settings_that_make_no_problem_are_refused() {
    let error = |change: &dyn Fn(&mut NodeData, &mut DagSettings)| {
        let (mut table, mut settings) = (table(3, 5), DagSettings::default());
        change(&mut table, &mut settings);
        Dag::new(table, settings).unwrap_err()
    };
    assert_eq!(error(&|table, _| table.columns = vec![vec![]; 3]), DagError::NoRows);
    assert_eq!(error(&|table, _| table.columns[1].truncate(4)), DagError::Rows { column: 1, found: 4, rows: 5 });
    assert_eq!(error(&|table, _| table.columns[2][3] = f64::NAN), DagError::NotFinite { column: 2, row: 3 });
    assert!(matches!(error(&|table, _| table.names.truncate(2)), DagError::Space(SpaceError::Names { .. })));
    assert!(matches!(error(&|table, _| table.names[2] = "x1".into()), DagError::Space(SpaceError::SameName { .. })));
    let setting = |change: &dyn Fn(&mut DagSettings)| match error(&|_, settings| change(settings)) {
        DagError::Setting(error) => error.what,
        other => panic!("{other}"),
    };
    assert_eq!(setting(&|settings| settings.weight_scale = 0.0), "weight_scale");
    assert_eq!(setting(&|settings| settings.noise = Noise::Known { sigma: -1.0 }), "sigma");
    assert_eq!(setting(&|settings| settings.sem = Sem::Mlp { hidden: 0, bias: false }), "hidden");
    assert_eq!(setting(&|settings| settings.edge_penalty = -0.1), "edge_penalty");
    assert!(matches!(error(&|_, settings| settings.rules.required = vec![[0, 0]]), DagError::Rules(_)));
}

/// A node that was set in some rows is as if these had never been measured; other nodes do not notice.
#[test]
fn rows_in_which_a_node_was_set_do_not_count_for_it() {
    let (nodes, rows) = (3, 150);
    let whole = table(nodes, rows);
    let set = Interventions::new((0..rows).map(|row| [0b000, 0b010, 0b000, 0b110][row % 4]).collect());
    for (sem, noise) in SEMS.into_iter().flat_map(|sem| NOISES.map(|noise| (sem, noise))) {
        let settings = DagSettings { sem, noise, ..DagSettings::default() };
        let made = Dag::with_interventions(whole.clone(), set.clone(), settings.clone()).unwrap();
        for double in [false, true] {
            let made = if double {
                let made = Dag::with_interventions(whole.clone(), set.clone(), settings.clone());
                made.unwrap().in_double_precision()
            } else {
                made.with_prior(GraphPrior::Graphs, 0.5).unwrap()
            };
            for (node, parents) in [(0, 0b110), (1, 0b101), (2, 0b001), (1, 0b000)] {
                let kept = set.rows_without(node, rows);
                let columns = whole.columns.iter().map(|column| kept.iter().map(|&row| column[row]).collect());
                let part = NodeData::new(whole.names.clone(), columns.collect());
                let part = Dag::new(part, settings.clone()).unwrap();
                let part = if double { part.in_double_precision() } else { part };
                let mut active = vec![false; made.space().node_width()];
                made.space().mark_node(node, parents, &mut active);
                let dim = active.iter().filter(|active| **active).count();
                let mut stream = Stream::new(4, Purpose::Other(1), node as u64, parents);
                let mut theta: Vec<f64> = (0..dim).map(|_| stream.normal()).collect();
                if noise == (Noise::Unknown {}) {
                    theta[0] = 0.8;
                }
                let value = |of: &Dag| {
                    let mut gradient = vec![0.0; dim];
                    (Blocks::log_density(of, node, parents, &theta, &mut gradient).unwrap(), gradient)
                };
                assert_eq!(value(&made), value(&part), "{sem:?} {noise:?} {node} {parents:b}");
                let evidence = |of: &Dag| of.log_evidence_estimate(node, parents);
                assert_eq!(evidence(&made), evidence(&part), "{sem:?} {noise:?} {node} {parents:b}");
            }
        }
    }
}

/// One direction fits rows in which the effect was set, the other does not: numbers are those of determinants of sub-tables.
#[test]
fn interventions_say_which_way_an_edge_points() {
    let (rows, sigma) = (40, 1.0);
    let mut stream = Stream::new(8, Purpose::Other(1), 0, 0);
    let cause: Vec<f64> = (0..rows).map(|_| stream.normal()).collect();
    let is_set = |row: usize| row % 2 == 1;
    let effect: Vec<f64> = (0..rows)
        .map(|row| if is_set(row) { 3.0 * stream.normal() } else { 2.0 * cause[row] + stream.normal() })
        .collect();
    let set = Interventions::new((0..rows).map(|row| if is_set(row) { 0b10 } else { 0 }).collect());
    let data = NodeData::new(["a", "b"].map(String::from).to_vec(), vec![cause.clone(), effect.clone()]);
    let noise = Noise::Known { sigma };
    let settings = DagSettings { sem: Sem::Linear {}, noise, prior: GraphPrior::Graphs, ..DagSettings::default() };
    let made = Dag::with_interventions(data, set, settings).unwrap();
    // log N(x; 0, I + z zᵀ) by the rank-one formulas of determinant and inverse.
    let log_normal = |x: &[f64], z: &[f64]| {
        let (zz, xz): (f64, f64) = (z.iter().map(|z| z * z).sum(), x.iter().zip(z).map(|(x, z)| x * z).sum());
        let xx: f64 = x.iter().map(|x| x * x).sum();
        -0.5 * (x.len() as f64 * TAU.ln() + (1.0 + zz).ln() + xx - xz * xz / (1.0 + zz))
    };
    let unset = |column: &[f64]| -> Vec<f64> { (0..rows).filter(|&row| !is_set(row)).map(|row| column[row]).collect() };
    let nothing = vec![0.0; rows];
    let (a, b) = (log_normal(&cause, &nothing), log_normal(&unset(&effect), &nothing[..rows / 2]));
    let forwards = a + log_normal(&unset(&effect), &unset(&cause));
    let backwards = b + log_normal(&cause, &effect);
    let top = [a + b, forwards, backwards].into_iter().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = [a + b, forwards, backwards].iter().map(|log| (log - top).exp()).sum();
    let exact = crate::problem::dag::Enumeration::of(&made).unwrap();
    assert!((exact.edges[1] - (forwards - top).exp() / total).abs() < 1e-10, "{:?}", exact.edges);
    assert!((exact.edges[2] - (backwards - top).exp() / total).abs() < 1e-10, "{:?}", exact.edges);
    assert!(exact.edges[1] > 0.99);
}
