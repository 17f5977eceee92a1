//! Evidences of nodes of categories beside what even grids say, which know nothing of this code.

use super::*;
use crate::problem::dag::{Dag, DagError, DagSettings, Enumeration, ExactError, Noise, Score};
use crate::problem::{Blocks, Problem};
use crate::random::{Purpose, Stream};
use crate::stats::log_sum_exp;

fn levels(count: usize) -> Vec<String> {
    (0..count).map(|level| format!("l{level}")).collect()
}

/// A node of numbers, a binary one, one of three categories, and one of three ordered ones: each follows the one before.
fn table(rows: usize) -> NodeData {
    let mut stream = Stream::new(5, Purpose::Other(5), 0, 0);
    let mut columns = vec![Vec::new(); 4];
    for _ in 0..rows {
        let x = stream.normal();
        let two = f64::from(u8::from(stream.uniform() < 1.0 / (1.0 + (-1.5 * x).exp())));
        let three = if stream.uniform() < 0.6 { 2.0 * two } else { stream.below(3) as f64 };
        let size = if stream.uniform() < 0.5 { (three + 1.0) % 3.0 } else { stream.below(3) as f64 };
        columns.iter_mut().zip([x, two, three, size]).for_each(|(column, x)| column.push(x));
    }
    let kind = |count, is_ordered| NodeKind::Categories { levels: levels(count), is_ordered };
    let names = ["x", "two", "three", "size"].map(String::from).to_vec();
    NodeData { names, columns, kinds: vec![NodeKind::Number, kind(2, false), kind(3, false), kind(3, true)] }
}

fn dag(rows: usize, sem: Sem) -> Dag {
    Dag::new(table(rows), DagSettings { sem, weight_scale: 0.8, ..DagSettings::default() }).unwrap()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// log N(x; 0, 0.8²).
fn log_weight_prior(x: f64) -> f64 {
    -0.5 * (x / 0.8).powi(2) - 0.8f64.ln() - 0.5 * std::f64::consts::TAU.ln()
}

/// The logarithm of an integral by an even grid, that reaches so far to both sides along each axis, in such steps.
fn integral(axes: &[(f64, f64)], log_density: &dyn Fn(&[f64]) -> f64) -> f64 {
    let count = |(reach, step): &(f64, f64)| (2.0 * reach / step).round() as usize + 1;
    let all: usize = axes.iter().map(count).product();
    let mut values = Vec::with_capacity(all);
    let mut point = vec![0.0; axes.len()];
    for number in 0..all {
        let mut rest = number;
        for (x, axis) in point.iter_mut().zip(axes) {
            *x = -axis.0 + axis.1 * (rest % count(axis)) as f64;
            rest /= count(axis);
        }
        let value = log_density(&point);
        values.push(if value.is_nan() { f64::NEG_INFINITY } else { value });
    }
    log_sum_exp(&values) + axes.iter().map(|(_, step)| step.ln()).sum::<f64>()
}

/// How far intercepts reach, and weights.
const INTERCEPT: (f64, f64) = (14.0, 0.28);
const WEIGHT: (f64, f64) = (4.4, 0.22);

/// Inputs as the model has them, from the table: numbers as they are, 0 and 1 less their mean, scores standardised.
fn centred(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|x| x - mean).collect()
}

/// Evidence of the binary node given x, of linear equations: one intercept, uniform probability beforehand, one weight.
fn binary_given_number(table: &NodeData) -> f64 {
    integral(&[INTERCEPT, WEIGHT], &|point| {
        let (a, w) = (point[0], point[1]);
        let prior = (sigmoid(a) * sigmoid(-a)).ln() + log_weight_prior(w);
        let rows = table.columns[0].iter().zip(&table.columns[1]).map(|(x, y)| {
            let p = sigmoid(a + w * x);
            if *y == 1.0 { p.ln() } else { (1.0 - p).ln() }
        });
        prior + rows.sum::<f64>()
    })
}

/// Of three ordered categories given the binary node: cut points are two sorted draws of the logistic distribution.
fn ordered_given_binary(table: &NodeData) -> f64 {
    let x = centred(&table.columns[1]);
    integral(&[INTERCEPT, INTERCEPT, WEIGHT], &|point| {
        let (low, high, w) = (point[0], point[1], point[2]);
        if low >= high {
            return f64::NEG_INFINITY;
        }
        let density = |c: f64| sigmoid(c) * sigmoid(-c);
        let prior = 2f64.ln() + density(low).ln() + density(high).ln() + log_weight_prior(w);
        let rows = x.iter().zip(&table.columns[3]).map(|(x, y)| {
            let (below, above) = (sigmoid(low - w * x), sigmoid(high - w * x));
            [below, above - below, 1.0 - above][*y as usize].ln()
        });
        prior + rows.sum::<f64>()
    })
}

/// Of three categories given the binary node: two intercepts and two weights.
fn three_given_binary(table: &NodeData) -> f64 {
    let x = centred(&table.columns[1]);
    integral(&[INTERCEPT, INTERCEPT, (4.4, 0.4), (4.4, 0.4)], &|point| {
        let shares = |x: f64| {
            let e = [1.0, (point[0] + point[2] * x).exp(), (point[1] + point[3] * x).exp()];
            let total: f64 = e.iter().sum();
            e.map(|e| e / total)
        };
        let prior = 2f64.ln() + shares(0.0).map(f64::ln).iter().sum::<f64>();
        let rows = x.iter().zip(&table.columns[2]).map(|(x, y)| shares(*x)[*y as usize].ln());
        prior + log_weight_prior(point[2]) + log_weight_prior(point[3]) + rows.sum::<f64>()
    })
}

/// `log E exp ℓ(z)`, what annealed particles estimate, by a grid of z.
fn seen_from_normal(dag: &Dag, node: usize, parents: u64, dim: usize, step: f64) -> f64 {
    let (_, inputs) = dag.inputs.places(node, parents);
    integral(&vec![(6.0, step); dim], &|z| {
        let normal: f64 = z.iter().map(|z| -0.5 * z * z - 0.5 * std::f64::consts::TAU.ln()).sum();
        normal + dag.discrete.log_likelihood_of_normal(node, inputs, z, &mut vec![0.0; dim])
    })
}

#[test]
fn without_parents_probabilities_are_uniform_beforehand() {
    let dag = dag(30, Sem::Linear {});
    for (node, dim) in [(1, 1), (2, 2), (3, 2)] {
        let exact = dag.log_evidence_estimate(node, 0);
        let counts: Vec<u32> = (0..=dim as u32)
            .map(|level| dag.table().columns[node].iter().filter(|&&x| x == f64::from(level)).count() as u32)
            .collect();
        // Of all sequences with these counts each is equally likely, and so is each list of counts.
        let factorial = |n: u32| (1..=n).map(|k| f64::from(k).ln()).sum::<f64>();
        let lists = if dim == 1 { 31.0 } else { 31.0 * 32.0 / 2.0 };
        let expected = counts.iter().map(|&n| factorial(n)).sum::<f64>() - factorial(30) - f64::ln(lists);
        assert!((exact - expected).abs() < 1e-9, "{node}: {exact} {expected}");
        let found = seen_from_normal(&dag, node, 0, dim, 0.05);
        assert!((found - exact).abs() < 1e-4, "{node}: {found} {exact}");
    }
}

#[test]
fn evidences_given_a_parent_are_those_of_quadrature() {
    let dag = dag(12, Sem::Linear {});
    let table = dag.table();
    let cases = [
        (1, 0b0001, 2, 0.1, binary_given_number(table)),
        (3, 0b0010, 3, 0.2, ordered_given_binary(table)),
        (2, 0b0010, 4, 0.4, three_given_binary(table)),
    ];
    for (node, parents, dim, step, expected) in cases {
        let found = seen_from_normal(&dag, node, parents, dim, step);
        assert!((found - expected).abs() < 2e-3, "{node}: {found} {expected}");
        // Laplace's estimate is near, and with few rows no more than that.
        let estimate = dag.log_evidence_estimate(node, parents);
        assert!((estimate - expected).abs() < 0.25, "{node}: {estimate} {expected}");
    }
}

/// One hidden unit: an intercept and two weights.
#[test]
fn hidden_units_are_near_their_bound() {
    let dag = dag(40, Sem::Mlp { hidden: 1, bias: false });
    let table = dag.table();
    let expected = integral(&[(10.0, 0.2), (4.4, 0.1), (4.4, 0.1)], &|point| {
        let (a, out, into) = (point[0], point[1], point[2]);
        let prior = (sigmoid(a) * sigmoid(-a)).ln() + log_weight_prior(out) + log_weight_prior(into);
        let rows = table.columns[0].iter().zip(&table.columns[1]).map(|(x, y)| {
            let logit = a + out * (into * x).max(0.0);
            (if *y == 1.0 { sigmoid(logit) } else { sigmoid(-logit) }).ln()
        });
        prior + rows.sum::<f64>()
    });
    let found = seen_from_normal(&dag, 1, 0b0001, 3, 0.15);
    assert!((found - expected).abs() < 2e-3, "{found} {expected}");
    // Weights have modes with either sign of the one into the unit, of which independent normal ones find one.
    let node = dag.discrete.node(1).unwrap();
    let Equations::Mlp(layout) = dag.discrete.equations(node) else { panic!("a hidden unit") };
    let own = node.response.start(&node.counts());
    let climb = Climb { layout, weight_scale: 0.8, rows: 40, own, node: 1, parents: 0b0001 };
    let starts: Vec<Start<'_>> = (0..6).map(Start::Random).collect();
    let bound = climb.best(&starts, &|| false, |q, gradient| dag.discrete.lower_bound(node, layout, 1, q, gradient));
    let bound = bound.unwrap().lower_bound;
    assert!(bound < expected + 0.1 && bound > expected - 2.0, "{bound} {expected}");
}

#[test]
fn gradients_are_slopes() {
    let sems = [Sem::Linear {}, Sem::Mlp { hidden: 2, bias: false }, Sem::Mlp { hidden: 3, bias: true }];
    for sem in sems {
        let dag = dag(300, sem);
        for (node, parents) in [(1, 0b1101), (2, 0b1011), (3, 0b0111), (1, 0), (2, 0), (3, 0), (2, 0b0001)] {
            let (_, inputs) = dag.inputs.places(node, parents);
            let own = dag.discrete.node(node).unwrap();
            let dim = dag.discrete.equations(own).dim(inputs.count_ones() as usize);
            let mut stream = Stream::new(2, Purpose::Other(5), node as u64, parents);
            let point: Vec<f64> = (0..dim).map(|_| stream.normal()).collect();
            let joint = |point: &[f64], gradient: &mut [f64]| dag.discrete.log_joint(node, inputs, point, gradient);
            check(&point, joint);
            let normal = |point: &[f64], gradient: &mut [f64]| {
                dag.discrete.log_likelihood_of_normal(node, inputs, point, gradient)
            };
            check(&point, normal);
            if let (Equations::Mlp(layout), true) = (dag.discrete.equations(own), parents != 0) {
                let q: Vec<f64> = point.iter().copied().chain((0..dim).map(|_| -1.0 - stream.uniform())).collect();
                check(&q, |q, gradient| dag.discrete.lower_bound(own, layout, inputs, q, gradient));
            }
        }
    }

    fn check(point: &[f64], f: impl Fn(&[f64], &mut [f64]) -> f64) {
        let mut gradient = vec![f64::NAN; point.len()];
        f(point, &mut gradient);
        for place in 0..point.len() {
            let moved = |by: f64| {
                let mut point = point.to_vec();
                point[place] += by;
                f(&point, &mut vec![0.0; point.len()])
            };
            let numeric = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            let tolerance = 2e-4 * (1.0 + numeric.abs());
            assert!((numeric - gradient[place]).abs() < tolerance, "{place}: {numeric} {}", gradient[place]);
        }
    }
}

/// The density of a whole graph is what its parts say: probabilities of categories, and normal errors around means.
#[test]
fn probabilities_and_means_make_the_density() {
    for sem in [Sem::Linear {}, Sem::Mlp { hidden: 2, bias: true }] {
        let dag = dag(25, sem).in_double_precision();
        let rows: Vec<usize> = (0..25).collect();
        for (node, parents) in [(0, vec![1, 2, 3]), (1, vec![0, 2]), (2, vec![0, 1, 3]), (3, vec![2])] {
            let set = parents.iter().fold(0, |set, parent| set | 1 << parent);
            let mut active = vec![false; Blocks::width(&dag)];
            Blocks::mark_active(&dag, node, set, &mut active);
            let dim = active.iter().filter(|active| **active).count();
            let mut stream = Stream::new(9, Purpose::Other(5), node as u64, 0);
            let theta: Vec<f64> = (0..dim).map(|_| 0.2 + stream.uniform()).collect();
            let column = &dag.table().columns[node];
            let expected: f64 = match dag.table().categories(node) {
                Some(levels) => {
                    let logs = dag.category_log_probabilities(node, &parents, &theta, &rows);
                    rows.iter().map(|&row| logs[row * levels.len() + column[row] as usize]).sum()
                }
                None => {
                    let mut means = vec![0.0; 25];
                    dag.node_means(node, &parents, &theta, &rows, &mut means);
                    let errors = column.iter().zip(means).map(|(x, mean)| ((x - mean) / theta[0]).powi(2));
                    -0.5 * errors.sum::<f64>() - 25.0 * (theta[0].ln() + 0.5 * std::f64::consts::TAU.ln())
                }
            };
            let mut gradient = vec![0.0; dim];
            let density = Blocks::log_density(&dag, node, set, &theta, &mut gradient).unwrap();
            let prior = dag.add_prior(node, &theta, &mut gradient);
            assert!((density - prior - expected).abs() < 1e-9, "{sem:?} {node}: {density} {prior} {expected}");
        }
    }
}

#[test]
fn parameters_are_named() {
    let names = dag(20, Sem::Linear {}).parameter_names();
    let width = names.len() / 4;
    assert_eq!(names[..7], ["sigma.x", "two→x", "three=l0→x", "three=l1→x", "three=l2→x", "size→x", "unused.x.1"]);
    assert_eq!(names[width..width + 2], ["intercept.two", "x→two"]);
    let three =
        ["intercept.three=l1", "intercept.three=l2", "x→three=l1", "x→three=l2", "two→three=l1", "two→three=l2"];
    assert_eq!(names[2 * width..2 * width + 6], three);
    assert_eq!(names[3 * width..3 * width + 3], ["cut.size.l0|l1", "gap.size.l1|l2", "x→size"]);
    let hidden = dag(20, Sem::Mlp { hidden: 1, bias: true }).parameter_names();
    assert!(hidden.contains(&"w2.three=l2.1".to_string()) && hidden.contains(&"w1.three=l2→size.1".to_string()));
    let distinct: std::collections::HashSet<&String> = hidden.iter().collect();
    assert_eq!(distinct.len(), hidden.len());
}

#[test]
fn tables_that_make_no_problem_are_refused() {
    let error = |change: &dyn Fn(&mut NodeData, &mut DagSettings)| {
        let (mut table, mut settings) = (table(20), DagSettings::default());
        change(&mut table, &mut settings);
        Dag::new(table, settings).unwrap_err()
    };
    let place = error(&|table, _| table.columns[2][7] = 3.0);
    assert_eq!(place, DagError::NotCategory { column: 2, row: 7, levels: 3 });
    assert_eq!(error(&|table, _| table.columns[1][4] = 0.5), DagError::NotCategory { column: 1, row: 4, levels: 2 });
    let one = NodeKind::Categories { levels: levels(1), is_ordered: false };
    assert_eq!(error(&|table, _| table.kinds[3] = one.clone()), DagError::FewLevels { column: 3, levels: 1 });
    // A number, a binary node, an ordered one, and an indicator for each of the others.
    let many = NodeKind::Categories { levels: levels(62), is_ordered: false };
    assert_eq!(error(&|table, _| table.kinds[2] = many.clone()), DagError::ManyInputs { columns: 65, most: 64 });
    let bge = error(&|_, settings| (settings.sem, settings.score) = (Sem::Linear {}, Score::bge()));
    assert_eq!(bge, DagError::BgeOfCategories { name: "two".into() });
    let linear = dag(20, Sem::Linear {});
    assert!(!linear.has_exact_evidences() && linear.node_posterior(0, 0b0010).is_none());
    assert_eq!(Enumeration::of(&linear).unwrap_err(), ExactError::Categories { name: "two".into() });
}

/// A row in which a node was set does not count for it, and counts for the others.
#[test]
fn rows_in_which_a_node_was_set_do_not_count_for_it() {
    let (table, rows) = (table(60), 60);
    let settings = DagSettings { sem: Sem::Linear {}, noise: Noise::Unknown {}, ..DagSettings::default() };
    // Half of the rows, so that the others are the ones means are taken from.
    let set = Interventions::new((0..rows).map(|row| if row % 2 == 1 { 0b0010 } else { 0 }).collect());
    let made = Dag::with_interventions(table.clone(), set.clone(), settings.clone()).unwrap();
    let kept = set.rows_without(1, rows);
    let columns = table.columns.iter().map(|column| kept.iter().map(|&row| column[row]).collect()).collect();
    let part = Dag::new(NodeData { columns, ..table.clone() }, settings).unwrap();
    for parents in [0, 0b0001, 0b1101] {
        assert_eq!(made.log_evidence_estimate(1, parents), part.log_evidence_estimate(1, parents));
        assert_ne!(made.log_evidence_estimate(2, parents & 0b1001), part.log_evidence_estimate(2, parents & 0b1001));
    }
}

#[test]
fn findings_are_found_again() {
    let sem = Sem::Mlp { hidden: 2, bias: false };
    let (first, second) = (dag(40, sem), dag(40, sem));
    let keys = [(0, 0b1110), (1, 0b0101), (2, 0b0001), (3, 0b0110)];
    let estimates: Vec<f64> = keys.iter().map(|&(node, key)| first.log_evidence_estimate(node, key)).collect();
    let mut findings = first.findings();
    second.restore_findings(&mut findings).unwrap();
    assert_eq!(format!("{:?}", second.findings()), format!("{:?}", first.findings()));
    let again: Vec<f64> = keys.iter().map(|&(node, key)| second.log_evidence_estimate(node, key)).collect();
    assert_eq!(estimates, again);
}
