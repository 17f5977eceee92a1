//! Graphs with nodes of categories, where even grids know the evidence of every node given its parents.

use std::f64::consts::TAU;
use std::sync::Arc;

use vti::check::VerdictKind;
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::problem::dag::{
    Dag, DagSettings, Enumeration, GraphPrior, LinearEvidence, NodeData, NodeKind, Noise, Sem, enumerate,
};
use vti::random::{Purpose, Stream};
use vti::stats::log_sum_exp;

use crate::{check_with, train};

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn log_normal(x: f64) -> f64 {
    -0.5 * (x * x + TAU.ln())
}

/// Numbers with a binary node, and with one of three ordered categories.
fn table(rows: usize, seed: u64) -> NodeData {
    let mut stream = Stream::new(seed, Purpose::Other(7), 0, 0);
    let mut columns = vec![Vec::new(); 3];
    for _ in 0..rows {
        let x = stream.normal();
        let two = f64::from(u8::from(stream.uniform() < sigmoid(1.2 * x)));
        let latent = 1.2 * (two - 0.5) + 1.5 * (stream.uniform() - 0.5);
        let size = if latent < -0.4 {
            0.0
        } else if latent < 0.4 {
            1.0
        } else {
            2.0
        };
        columns.iter_mut().zip([x, two, size]).for_each(|(column, value)| column.push(value));
    }
    let kind = |levels: &[&str], is_ordered| {
        let levels = levels.iter().map(|level| level.to_string()).collect();
        NodeKind::Categories { levels, is_ordered }
    };
    NodeData {
        names: ["x", "two", "size"].map(String::from).to_vec(),
        columns,
        kinds: vec![NodeKind::Number, kind(&["no", "yes"], false), kind(&["low", "mid", "high"], true)],
    }
}

/// What equations take in: numbers, 0 or 1 less the mean, and scores of mean 0 and standard deviation 1.
fn inputs(table: &NodeData) -> NodeData {
    let rows = table.columns[0].len() as f64;
    let centred = |column: &Vec<f64>| -> Vec<f64> {
        let mean = column.iter().sum::<f64>() / rows;
        column.iter().map(|x| x - mean).collect()
    };
    let scores = centred(&table.columns[2]);
    let sd = (scores.iter().map(|x| x * x).sum::<f64>() / rows).sqrt();
    let columns = vec![table.columns[0].clone(), centred(&table.columns[1]), scores.iter().map(|x| x / sd).collect()];
    NodeData::new(table.names.clone(), columns)
}

/// The logarithm of an integral by an even grid; each axis reaches so far to both sides, in such steps.
fn integral(axes: &[(f64, f64)], log_density: impl Fn(&[f64]) -> f64) -> f64 {
    let count = |(reach, step): &(f64, f64)| (2.0 * reach / step).round() as usize + 1;
    let mut point = vec![0.0; axes.len()];
    let values: Vec<f64> = (0..axes.iter().map(count).product())
        .map(|number: usize| {
            let mut rest = number;
            for (x, axis) in point.iter_mut().zip(axes) {
                *x = -axis.0 + axis.1 * (rest % count(axis)) as f64;
                rest /= count(axis);
            }
            let value = log_density(&point);
            if value.is_nan() { f64::NEG_INFINITY } else { value }
        })
        .collect();
    log_sum_exp(&values) + axes.iter().map(|(_, step)| step.ln()).sum::<f64>()
}

const INTERCEPT: (f64, f64) = (9.0, 0.36);
const WEIGHT: (f64, f64) = (4.2, 0.3);

/// The binary node: a uniform probability where predictors are 0, and normal weights.
fn binary(table: &NodeData, inputs: &[&Vec<f64>]) -> f64 {
    let axes = [&[INTERCEPT][..], &vec![WEIGHT; inputs.len()]].concat();
    integral(&axes, |point| {
        let (a, weights) = (point[0], &point[1..]);
        let rows = table.columns[1].iter().enumerate().map(|(row, y)| {
            let logit = a + weights.iter().zip(inputs).map(|(w, input)| w * input[row]).sum::<f64>();
            (if *y == 1.0 { sigmoid(logit) } else { sigmoid(-logit) }).ln()
        });
        let prior = (sigmoid(a) * sigmoid(-a)).ln() + weights.iter().map(|w| log_normal(*w)).sum::<f64>();
        prior + rows.sum::<f64>()
    })
}

/// The ordered one: two cut points, sorted draws of the logistic distribution.
fn ordered(table: &NodeData, inputs: &[&Vec<f64>]) -> f64 {
    let axes = [&[INTERCEPT, INTERCEPT][..], &vec![WEIGHT; inputs.len()]].concat();
    integral(&axes, |point| {
        let (low, high, weights) = (point[0], point[1], &point[2..]);
        if low >= high {
            return f64::NEG_INFINITY;
        }
        let rows = table.columns[2].iter().enumerate().map(|(row, y)| {
            let mean: f64 = weights.iter().zip(inputs).map(|(w, input)| w * input[row]).sum();
            let (below, above) = (sigmoid(low - mean), sigmoid(high - mean));
            [below, above - below, 1.0 - above][*y as usize].ln()
        });
        let density = |c: f64| (sigmoid(c) * sigmoid(-c)).ln();
        let prior = 2f64.ln() + density(low) + density(high) + weights.iter().map(|w| log_normal(*w)).sum::<f64>();
        prior + rows.sum::<f64>()
    })
}

fn exact(problem: &Dag) -> Enumeration {
    let (table, inputs) = (problem.table(), inputs(problem.table()));
    let numbers = LinearEvidence::with_unknown_noise(&inputs, 1.0).unwrap();
    let log_evidence = |node: usize, parents: u64| {
        let columns: Vec<&Vec<f64>> =
            (0..3).filter(|parent| parents >> parent & 1 == 1).map(|parent| &inputs.columns[parent]).collect();
        match node {
            0 => numbers.log_evidence(0, parents),
            1 => binary(table, &columns),
            _ => ordered(table, &columns),
        }
    };
    enumerate(problem.prior(), log_evidence).unwrap()
}

#[test]
fn linear_graphs_are_those_of_the_enumeration() {
    for (prior, seed) in [(GraphPrior::Orders, 1), (GraphPrior::Graphs, 2)] {
        let settings = DagSettings { sem: Sem::Linear {}, prior, ..DagSettings::default() };
        let problem = Arc::new(Dag::new(table(25, seed), settings).unwrap());
        let exact = exact(&problem);
        assert!(exact.probabilities[exact.ranking()[0]] < 0.8, "there is something to be unsure about");
        let device = Cpu::<f32>::new(2).unwrap();
        let posterior = train(&problem, &device, &FamilySettings::default(), 600, 128);
        let check = check_with(&posterior, 4000);
        assert_ne!(check.verdict.kind, VerdictKind::DoNotTrust, "{}", check.verdict.text);
        let blocks = check.blocks.as_ref().unwrap();
        let edges = problem.edge_matrix(&blocks.features.iter().map(|edge| edge.value).collect::<Vec<_>>());
        let q = problem.edge_matrix(&blocks.features_q);
        for (place, &truth) in exact.edges.iter().enumerate() {
            let (found, learned) = (edges[place], q[place]);
            assert!((found - truth).abs() < 0.02, "{prior:?}: edge {place}: {found}, truth {truth}");
            assert!((learned - truth).abs() < 0.1, "{prior:?}: edge {place}: q says {learned}, truth {truth}");
        }
        let found = check.log_evidence;
        let off = (found.value - exact.log_evidence).abs();
        assert!(off < 4.0 * found.se + 0.03, "{prior:?}: {found:?}, {}", exact.log_evidence);
    }
}

/// Two nodes and one hidden unit: three evidences decide.
#[test]
fn graphs_of_hidden_units_are_corrected_from_the_prior() {
    let rows = 40;
    let whole = table(rows, 3);
    let part = NodeData {
        names: whole.names[..2].to_vec(),
        columns: whole.columns[..2].to_vec(),
        kinds: whole.kinds[..2].to_vec(),
    };
    let (sem, noise) = (Sem::Mlp { hidden: 1, bias: false }, Noise::Known { sigma: 1.0 });
    let problem = Arc::new(Dag::new(part, DagSettings { sem, noise, ..DagSettings::default() }).unwrap());
    let (x, two) = (&whole.columns[0], &inputs(&whole).columns[1]);
    let alone = x.iter().map(|x| log_normal(*x)).sum::<f64>();
    let number = integral(&[(4.5, 0.1), (4.5, 0.1)], |weights| {
        let error = |(x, two): (&f64, &f64)| log_normal(x - weights[0] * (weights[1] * two).max(0.0));
        log_normal(weights[0]) + log_normal(weights[1]) + x.iter().zip(two).map(error).sum::<f64>()
    });
    let node = integral(&[INTERCEPT, (4.5, 0.15), (4.5, 0.15)], |point| {
        let (a, out, into) = (point[0], point[1], point[2]);
        let rows = x.iter().zip(&whole.columns[1]).map(|(x, y)| {
            let logit = a + out * (into * x).max(0.0);
            (if *y == 1.0 { sigmoid(logit) } else { sigmoid(-logit) }).ln()
        });
        (sigmoid(a) * sigmoid(-a)).ln() + log_normal(out) + log_normal(into) + rows.sum::<f64>()
    });
    // The graph without an edge has two orders.
    let without = binary(&whole, &[]);
    let logs = [alone + node, number + without, 2f64.ln() + alone + without];
    let total = log_sum_exp(&logs);
    let device = Cpu::<f32>::new(2).unwrap();
    let posterior = train(&problem, &device, &FamilySettings::default(), 300, 128);
    let check = check_with(&posterior, 4000);
    for (edge, log) in check.blocks.as_ref().unwrap().features.iter().zip(logs) {
        let truth = (log - total).exp();
        assert!((edge.value - truth).abs() < 4.0 * edge.se + 0.005, "{edge:?}, truth {truth}");
        assert!(edge.se < 0.05, "{edge:?}");
    }
    let (found, truth) = (check.log_evidence, total - 4f64.ln());
    assert!((found.value - truth).abs() < 4.0 * found.se + 0.02, "{found:?}, {truth}");
}
