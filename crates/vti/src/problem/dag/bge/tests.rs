use super::*;
use crate::graph::{Cpdag, all_dags};
use crate::problem::Blocks;
use crate::problem::dag::{
    Dag, DagError, DagSettings, Enumeration, GraphPrior, Interventions, NodeData, Noise, Score, Sem,
};
use crate::random::Purpose;
use crate::stats::log_sum_exp;

/// Columns that follow each other, far from mean 0.
fn table(nodes: usize, rows: usize) -> NodeData {
    let mut stream = Stream::new(11, Purpose::Other(7), 0, 0);
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for node in 0..nodes {
        let follow = |row: usize| columns.iter().enumerate().map(|(i, x)| 0.4 * (i as f64 - 0.7) * x[row]).sum::<f64>();
        let column = (0..rows).map(|row| 0.3 + follow(row) + (0.5 + 0.2 * node as f64) * stream.normal()).collect();
        columns.push(column);
    }
    NodeData::new((0..nodes).map(|node| format!("x{node}")).collect(), columns)
}

fn settings(prior: GraphPrior) -> DagSettings {
    DagSettings { sem: Sem::Linear {}, score: Score::bge(), prior, ..DagSettings::default() }
}

fn dag(nodes: usize, rows: usize, prior: GraphPrior) -> Dag {
    Dag::new(table(nodes, rows), settings(prior)).unwrap()
}

/// A determinant by elimination.
fn log_determinant(mut matrix: Vec<Vec<f64>>) -> f64 {
    let mut log = 0.0;
    for i in 0..matrix.len() {
        let (done, rest) = matrix.split_at_mut(i + 1);
        let pivot = &done[i];
        log += pivot[i].ln();
        for row in rest {
            let share = row[i] / pivot[i];
            row.iter_mut().zip(pivot).for_each(|(x, p)| *x -= share * p);
        }
    }
    log
}

/// `log Γ_l(x)`, but for π^{l(l−1)/4}, which comes out in the wash of the formula below.
fn log_multigamma(l: usize, x: f64) -> f64 {
    (0..l).map(|i| ln_gamma(x - 0.5 * i as f64)).sum()
}

/// The evidence of some nodes under a complete graph: eq. 2 of Kuipers, Moffa and Heckerman, term by term.
fn log_complete(table: &NodeData, nodes: &[usize], rows: &[usize], (mean_rows, degrees): (f64, f64)) -> f64 {
    let (all, l, n) = (table.columns.len() as f64, nodes.len(), rows.len() as f64);
    let (alpha_w, t) = (all + degrees, mean_rows * (degrees - 1.0) / (mean_rows + 1.0));
    let x = |node: usize, row: usize| table.columns[node][row];
    let mean = |node: usize| rows.iter().map(|&row| x(node, row)).sum::<f64>() / n;
    let scatter = |a: usize, b: usize| {
        let product = |&row: &usize| (x(a, row) - mean(a)) * (x(b, row) - mean(b));
        rows.iter().map(product).sum::<f64>() + n * mean_rows / (n + mean_rows) * mean(a) * mean(b)
    };
    let prior = |a: usize, b: usize| if a == b { t } else { 0.0 };
    let matrix = |of: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
        nodes.iter().map(|&a| nodes.iter().map(|&b| of(a, b)).collect()).collect()
    };
    let (before, after) = (0.5 * (alpha_w - all + l as f64), 0.5 * (n + alpha_w - all + l as f64));
    0.5 * l as f64 * (mean_rows / (n + mean_rows)).ln() + log_multigamma(l, after)
        - log_multigamma(l, before)
        - 0.5 * l as f64 * n * std::f64::consts::PI.ln()
        + before * log_determinant(matrix(&prior))
        - after * log_determinant(matrix(&|a, b| prior(a, b) + scatter(a, b)))
}

#[test]
fn evidences_are_ratios_of_those_of_complete_graphs() {
    let data = table(4, 23);
    let set = Interventions::new((0..23).map(|row| if row % 5 == 0 { 0b0100 } else { 0 }).collect());
    for (mean_rows, degrees) in [(1.0, 2.0), (0.1, 7.5)] {
        let score = Score::Bge { mean_rows, degrees };
        let settings = DagSettings { score, ..settings(GraphPrior::Graphs) };
        let dag = Dag::with_interventions(data.clone(), set.clone(), settings).unwrap();
        for (node, parents) in (0..4).flat_map(|node| (0..16u64).map(move |set| (node, set & !(1 << node)))) {
            let rows = set.rows_without(node, 23);
            let of: Vec<usize> = nodes_of(parents).collect();
            let with: Vec<usize> = of.iter().copied().chain([node]).collect();
            let complete = |nodes: &[usize]| log_complete(&data, nodes, &rows, (mean_rows, degrees));
            let expected = complete(&with) - complete(&of);
            let found = dag.log_evidence_estimate(node, parents);
            assert!((found - expected).abs() < 1e-9, "{node} {parents:b}: {found} {expected}");
        }
    }
}

/// The largest difference between probabilities of equivalent graphs, and the largest between any.
fn differences(exact: &Enumeration, targets: &[u64]) -> [f64; 2] {
    let classes: Vec<Cpdag> = exact.graphs.iter().map(|graph| Cpdag::under(graph, targets).unwrap()).collect();
    let mut largest = [0.0f64; 2];
    for (a, p) in classes.iter().zip(&exact.probabilities) {
        for (b, q) in classes.iter().zip(&exact.probabilities) {
            largest[1] = largest[1].max((p - q).abs());
            if a == b {
                largest[0] = largest[0].max((p - q).abs() / p.max(*q));
            }
        }
    }
    largest
}

#[test]
fn equivalent_graphs_are_equally_probable() {
    for nodes in [3, 4] {
        let [within, between] = differences(&Enumeration::of(&dag(nodes, 40, GraphPrior::Graphs)).unwrap(), &[]);
        assert!(within < 1e-10 && between > 0.01, "{nodes}: {within} {between}");
        // Orders are another prior, and independent priors another score: neither leaves equivalent graphs alike.
        let [by_orders, _] = differences(&Enumeration::of(&dag(nodes, 40, GraphPrior::Orders)).unwrap(), &[]);
        let known =
            DagSettings { score: Score::default(), noise: Noise::Known { sigma: 1.0 }, ..settings(GraphPrior::Graphs) };
        let [by_score, _] = differences(&Enumeration::of(&Dag::new(table(nodes, 40), known).unwrap()).unwrap(), &[]);
        assert!(by_orders > 0.01 && by_score > 0.01, "{nodes}: {by_orders} {by_score}");
        assert_eq!(all_dags(nodes).unwrap().len(), if nodes == 3 { 25 } else { 543 });
    }
}

/// Graphs that interventions do not tell apart are equally probable, and others of the class are not.
#[test]
fn interventions_leave_smaller_classes_of_equal_graphs() {
    let set = Interventions::new((0..40).map(|row| [0, 0b0010, 0b0010, 0b1000][row % 4]).collect());
    let dag = Dag::with_interventions(table(4, 40), set.clone(), settings(GraphPrior::Graphs)).unwrap();
    let exact = Enumeration::of(&dag).unwrap();
    let [within, _] = differences(&exact, &set.targets());
    let [undisturbed, _] = differences(&exact, &[]);
    assert!(within < 1e-10 && undisturbed > 0.01, "{within} {undisturbed}");
}

#[test]
fn interventions_tell_equivalent_graphs_apart() {
    // x1 = x0 + noise; in half of the rows x1 was set, and x0 did not follow.
    let mut stream = Stream::new(3, Purpose::Other(7), 0, 0);
    let rows = 60;
    let cause: Vec<f64> = (0..rows).map(|_| stream.normal()).collect();
    let follow =
        |row: usize, stream: &mut Stream| if row.is_multiple_of(2) { cause[row] } else { 2.0 * stream.normal() };
    let effect: Vec<f64> = (0..rows).map(|row| follow(row, &mut stream) + 0.5 * stream.normal()).collect();
    let data = NodeData::new(["x0", "x1"].map(String::from).to_vec(), vec![cause, effect]);
    let set = Interventions::new((0..rows).map(|row| if row % 2 == 1 { 0b10 } else { 0 }).collect());
    let probability = |set: Interventions, from: usize, to: usize| {
        let dag = Dag::with_interventions(data.clone(), set, settings(GraphPrior::Graphs)).unwrap();
        Enumeration::of(&dag).unwrap().edges[from * 2 + to]
    };
    let blind = Interventions::default;
    assert!((probability(blind(), 0, 1) - probability(blind(), 1, 0)).abs() < 1e-10);
    assert!(probability(set.clone(), 0, 1) > 0.999, "{}", probability(set.clone(), 0, 1));
    assert!(probability(set, 1, 0) < 1e-3);
}

#[test]
fn bayes_theorem_holds_at_draws() {
    let dag = dag(4, 15, GraphPrior::Graphs);
    let mut stream = Stream::new(5, Purpose::Other(7), 0, 0);
    for (node, parents) in [(0, 0), (1, 0b0001), (2, 0b1011)] {
        let posterior = dag.node_posterior(node, parents).unwrap();
        for _ in 0..5 {
            let theta = posterior.draw(&mut stream);
            let mut gradient = vec![0.0; theta.len()];
            let joint = dag.log_density(node, parents, &theta, &mut gradient).unwrap();
            let evidence = dag.log_evidence_estimate(node, parents);
            assert!((joint - posterior.log_density(&theta) - evidence).abs() < 1e-9);
            for place in 0..theta.len() {
                let at = |by: f64| {
                    let mut moved = theta.clone();
                    moved[place] += by;
                    dag.log_density(node, parents, &moved, &mut vec![0.0; theta.len()]).unwrap()
                };
                let numeric = (at(1e-6) - at(-1e-6)) / 2e-6;
                assert!((numeric - gradient[place]).abs() < 1e-4 * (1.0 + numeric.abs()), "{numeric} {gradient:?}");
            }
        }
        assert_eq!(posterior.log_density(&vec![-1.0; 1 + nodes_of(parents).count()]), f64::NEG_INFINITY);
        assert!(posterior.log_density(&[1.0; 9]).is_nan());
    }
}

#[test]
fn draws_have_the_moments() {
    const DRAWS: u64 = 20_000;
    let dag = dag(3, 12, GraphPrior::Graphs);
    let posterior = dag.node_posterior(2, 0b011).unwrap();
    let (expected, mut sums) = (posterior.moments(), [[0.0f64; 2]; 3]);
    for row in 0..DRAWS {
        let theta = posterior.draw(&mut Stream::new(1, Purpose::Other(7), 0, row));
        theta.iter().zip(&mut sums).for_each(|(x, sums)| {
            sums[0] += x / DRAWS as f64;
            sums[1] += x * x / DRAWS as f64;
        });
    }
    for (found, expected) in sums.iter().zip(&expected) {
        let sd = (expected[1] - expected[0] * expected[0]).sqrt();
        // Five standard errors; the second moment's is about 3 times larger for these tails.
        let error = 5.0 * sd / (DRAWS as f64).sqrt();
        assert!((found[0] - expected[0]).abs() < error, "{found:?} {expected:?}");
        assert!((found[1] - expected[1]).abs() < 3.0 * error * (1.0 + sd), "{found:?} {expected:?}");
    }
}

/// The precision of a whole graph, drawn from the prior of its nodes, does not depend on which way its edges point.
#[test]
fn priors_of_equivalent_graphs_are_one_prior_of_the_covariance() {
    const DRAWS: u64 = 40_000;
    let bge = Bge::new(Products::new(&table(2, 3), &Interventions::default()), 1.0, 12.0);
    let draw = |parents: usize, stream: &mut Stream| {
        let (shape, rate) = bge.noise_prior(parents);
        let sigma = (2.0 * rate / stream.chi_squared(2.0 * shape)).sqrt();
        (sigma, if parents == 1 { sigma * stream.normal() / bge.spread.sqrt() } else { 0.0 })
    };
    // Var x0 and Var x1 where x0 → x1 have the same mean.
    let mut sums = [0.0, 0.0];
    for row in 0..DRAWS {
        let mut stream = Stream::new(2, Purpose::Other(7), 1, row);
        let ((first, _), (second, w)) = (draw(0, &mut stream), draw(1, &mut stream));
        sums[0] += first * first / DRAWS as f64;
        sums[1] += (w * w * first * first + second * second) / DRAWS as f64;
    }
    assert!((sums[0] / sums[1] - 1.0).abs() < 0.02, "{sums:?}");
}

#[test]
fn evidences_are_integrals() {
    let dag = dag(3, 9, GraphPrior::Graphs);
    // One weight and σ, on a grid in log σ and w.
    let (node, parents) = (1, 0b001);
    let step = [0.02, 0.01];
    let mut logs = Vec::new();
    for u in -200..=150 {
        let log_sigma = step[0] * f64::from(u);
        for v in -400..=400 {
            let theta = [log_sigma.exp(), step[1] * f64::from(v)];
            logs.push(dag.log_density(node, parents, &theta, &mut [0.0; 2]).unwrap() + log_sigma);
        }
    }
    let expected = log_sum_exp(&logs) + step[0].ln() + step[1].ln();
    let found = dag.log_evidence_estimate(node, parents);
    assert!((found - expected).abs() < 1e-6, "{found} {expected}");
}

#[test]
fn a_node_that_was_always_set_says_nothing() {
    let set = Interventions::new(vec![0b001; 12]);
    for score in [Score::bge(), Score::default()] {
        let settings = DagSettings { score, ..settings(GraphPrior::Graphs) };
        let dag = Dag::with_interventions(table(3, 12), set.clone(), settings).unwrap();
        for parents in [0b000, 0b010, 0b110] {
            assert!(dag.log_evidence_estimate(0, parents).abs() < 1e-6, "{score:?} {parents:b}");
            assert!(
                dag.node_posterior(0, parents).unwrap().draw(&mut Stream::new(1, Purpose::Other(7), 0, 0))[0] > 0.0
            );
        }
    }
}

#[test]
fn what_bge_is_no_score_of_is_refused() {
    let error = |settings: DagSettings| Dag::new(table(2, 9), settings).unwrap_err();
    let bge = settings(GraphPrior::Graphs);
    assert_eq!(error(DagSettings { sem: Sem::default(), ..bge.clone() }), DagError::NotLinearGaussian);
    let known = Noise::Known { sigma: 1.0 };
    assert_eq!(error(DagSettings { noise: known, ..bge.clone() }), DagError::NotLinearGaussian);
    let score = Score::Bge { mean_rows: 1.0, degrees: 1.0 };
    assert!(matches!(error(DagSettings { score, ..bge }), DagError::Setting(error) if error.what == "degrees"));
}
