//! Tables made to order: the paper's data-generating process for causal graphs (appendix G.1, "Data generating process").
//!
//! ```
//! use vti::problem::dag::simulate::{SimulationSettings, simulate};
//! let simulated = simulate(&SimulationSettings { nodes: 4, rows: 100, ..SimulationSettings::default() })?;
//! assert_eq!((simulated.table.columns.len(), simulated.table.columns[0].len()), (4, 100));
//! assert!(simulated.truth.order().is_some());
//! # Ok::<(), vti::optimise::SettingError>(())
//! ```

use serde::{Deserialize, Serialize};

use super::{Interventions, NodeData, Sem};
use crate::graph::{Graph, nodes_of};
use crate::optimise::SettingError;
use crate::random::{Purpose, Stream};

/// Settings of the process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimulationSettings {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of rows. The rows of a smaller number are the first ones of a larger.
    pub rows: usize,
    /// How nodes follow their parents.
    pub sem: Sem,
    /// Probability of an edge from an earlier to a later node of the order.
    pub edge_probability: f64,
    /// Standard deviation of each node given its parents.
    pub noise: f64,
    /// Probability that a row has a node, any of them, set to a standard normal number.
    pub set_probability: f64,
    /// Seed of all randomness.
    pub seed: u64,
}

impl Default for SimulationSettings {
    /// The paper's simulation study.
    fn default() -> Self {
        Self {
            nodes: 10,
            rows: 1024,
            sem: Sem::default(),
            edge_probability: 0.5,
            noise: 1.0,
            set_probability: 0.0,
            seed: 1,
        }
    }
}

/// A table, and the graph that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// The table: columns `x1`, `x2`, ….
    pub table: NodeData,
    /// Which nodes were set in which rows.
    pub interventions: Interventions,
    /// The graph.
    pub truth: Graph,
}

/// Streams of [`Purpose::Simulate`]: steps that no other simulation uses.
const GRAPH: u64 = 100;
const WEIGHTS: u64 = 101;
const ROWS: u64 = 102;
const SETS: u64 = 103;

/// The paper's process: an order of the nodes, uniformly; each edge along it with the same probability; all weights and
/// biases uniform on [−0.7, −0.3] ∪ [0.3, 0.7]; then each row node by node, parents first. A node without parents is noise
/// alone. (The authors' code simulates in the order of the columns instead, and so leaves out the edges against it.)
pub fn simulate(settings: &SimulationSettings) -> Result<Simulated, SettingError> {
    let SimulationSettings { nodes, rows, sem, edge_probability, noise, set_probability, seed } = *settings;
    check(settings)?;
    let (order, truth) = Graph::draw(&mut Stream::new(seed, Purpose::Simulate, GRAPH, 0), nodes, edge_probability);
    let equation = |node: usize| {
        let mut stream = Stream::new(seed, Purpose::Simulate, WEIGHTS, node as u64);
        Equation::draw(&mut stream, sem, truth.parents(node))
    };
    let equations: Vec<Equation> = (0..nodes).map(equation).collect();
    let mut columns = vec![Vec::with_capacity(rows); nodes];
    let mut values = vec![0.0; nodes];
    let mut sets = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut stream = Stream::new(seed, Purpose::Simulate, ROWS, row as u64);
        let mut outside = Stream::new(seed, Purpose::Simulate, SETS, row as u64);
        let set =
            (outside.uniform() < set_probability).then(|| (outside.below(nodes as u64) as usize, outside.normal()));
        for &node in &order {
            let followed = equations[node].mean(&values) + noise * stream.normal();
            values[node] = set.filter(|(other, _)| *other == node).map_or(followed, |(_, value)| value);
        }
        sets.push(set.map_or(0, |(node, _)| 1 << node));
        columns.iter_mut().zip(&values).for_each(|(column, &value)| column.push(value));
    }
    let names = (1..=nodes).map(|number| format!("x{number}")).collect();
    Ok(Simulated { table: NodeData::new(names, columns), interventions: Interventions::new(sets), truth })
}

fn check(settings: &SimulationSettings) -> Result<(), SettingError> {
    let SimulationSettings { nodes, rows, sem, edge_probability: p, noise, set_probability, seed: _ } = *settings;
    SettingError::check("nodes", nodes as f64, (1..=Graph::MAX_NODES).contains(&nodes), "between 1 and 64")?;
    SettingError::check("rows", rows as f64, rows >= 1, "at least 1")?;
    if let Sem::Mlp { hidden, .. } = sem {
        SettingError::check("hidden", hidden as f64, hidden >= 1, "at least 1")?;
    }
    SettingError::check("edge_probability", p, (0.0..=1.0).contains(&p), "between 0 and 1")?;
    let is_share = (0.0..=1.0).contains(&set_probability);
    SettingError::check("set_probability", set_probability, is_share, "between 0 and 1")?;
    SettingError::check("noise", noise, noise > 0.0 && noise.is_finite(), "positive")
}

/// The mean of a node given its parents (paper, eq. 50 (apdxmlpdagmapping)).
enum Equation {
    /// A node without parents.
    Zero,
    /// A weight for each parent.
    Linear(Vec<(usize, f64)>),
    /// Hidden units, and the bias of the output.
    Mlp(Vec<Unit>, f64),
}

struct Unit {
    /// A weight of the first layer for each parent.
    inputs: Vec<(usize, f64)>,
    bias: f64,
    /// Its weight of the second layer.
    output: f64,
}

impl Equation {
    fn draw(stream: &mut Stream, sem: Sem, parents: u64) -> Self {
        if parents == 0 {
            return Self::Zero;
        }
        let inputs = |stream: &mut Stream| nodes_of(parents).map(|parent| (parent, weight(stream))).collect();
        match sem {
            Sem::Linear {} => Self::Linear(inputs(stream)),
            Sem::Mlp { hidden, bias } => {
                let bias = |stream: &mut Stream| if bias { weight(stream) } else { 0.0 };
                let unit = |_| Unit { inputs: inputs(stream), bias: bias(stream), output: weight(stream) };
                let units = (0..hidden).map(unit).collect();
                Self::Mlp(units, bias(stream))
            }
        }
    }

    fn mean(&self, values: &[f64]) -> f64 {
        let sum = |inputs: &[(usize, f64)]| inputs.iter().map(|&(parent, weight)| weight * values[parent]).sum::<f64>();
        match self {
            Self::Zero => 0.0,
            Self::Linear(inputs) => sum(inputs),
            Self::Mlp(units, bias) => {
                units.iter().map(|unit| unit.output * (sum(&unit.inputs) + unit.bias).max(0.0)).sum::<f64>() + bias
            }
        }
    }
}

/// Uniform on [−0.7, −0.3] ∪ [0.3, 0.7].
fn weight(stream: &mut Stream) -> f64 {
    let size = 0.3 + 0.4 * stream.uniform();
    if stream.uniform() < 0.5 { -size } else { size }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn settings(seed: u64) -> SimulationSettings {
        SimulationSettings { nodes: 5, rows: 40, seed, ..SimulationSettings::default() }
    }

    #[test]
    fn nodes_that_are_set_do_not_follow_their_parents() {
        let set = simulate(&SimulationSettings { set_probability: 0.4, rows: 2000, ..settings(3) }).unwrap();
        let free = simulate(&SimulationSettings { rows: 2000, ..settings(3) }).unwrap();
        assert!(free.interventions.is_empty());
        let counts = set.interventions.counts(5);
        assert!((700..900).contains(&counts.iter().sum::<usize>()), "{counts:?}");
        for row in 0..2000 {
            let other = (0..5).find(|&node| set.interventions.is_set(row, node));
            let differs = |node: &usize| set.table.columns[*node][row] != free.table.columns[*node][row];
            match other {
                // What was set changes itself, and beyond it only what follows from it.
                Some(node) => assert!(differs(&node)),
                None => assert!(!(0..5).any(|node| differs(&node))),
            }
        }
    }

    #[test]
    fn fewer_rows_are_the_first_of_more() {
        let few = simulate(&settings(3)).unwrap();
        let many = simulate(&SimulationSettings { rows: 100, ..settings(3) }).unwrap();
        assert_eq!(few.truth, many.truth);
        for (few, many) in few.table.columns.iter().zip(&many.table.columns) {
            assert_eq!(few[..], many[..40]);
        }
        assert_ne!(simulate(&settings(4)).unwrap().table, few.table);
    }

    #[test]
    fn graphs_have_a_uniform_order_and_as_many_edges_as_expected() {
        let draws = 4000;
        let (mut edges, mut pairs) = (0, [0u32; 25]);
        for seed in 0..draws {
            let truth =
                simulate(&SimulationSettings { rows: 1, edge_probability: 0.3, ..settings(seed) }).unwrap().truth;
            edges += truth.edge_count();
            truth.edges().for_each(|(from, to)| pairs[from * 5 + to] += 1);
        }
        // Of 10 pairs each, with 5 standard errors; and each direction of each pair half as often.
        let (n, mean) = (10.0 * draws as f64, edges as f64);
        assert!((mean - 0.3 * n).abs() < 5.0 * (n * 0.3 * 0.7).sqrt(), "{mean}");
        for (place, &count) in pairs.iter().enumerate().filter(|(place, _)| place % 6 != 0) {
            let n = draws as f64;
            assert!((f64::from(count) - 0.15 * n).abs() < 5.0 * (n * 0.15 * 0.85).sqrt(), "{place}: {count}");
        }
    }

    #[test]
    fn weights_are_never_small() {
        let mut stream = Stream::new(1, Purpose::Other(0), 0, 0);
        let draws: Vec<f64> = (0..20_000).map(|_| weight(&mut stream)).collect();
        assert!(draws.iter().all(|weight| (0.3..=0.7).contains(&weight.abs())));
        let negative = draws.iter().filter(|&&weight| weight < 0.0).count() as f64;
        let size = draws.iter().map(|weight| weight.abs()).sum::<f64>() / 20_000.0;
        // Five standard errors: √(n/4), and 0.4/√(12 n).
        assert!((negative - 1e4).abs() < 354.0 && (size - 0.5).abs() < 0.0041);
    }

    /// Least squares of a node on its parents finds weights of the right size and residuals that are noise.
    #[test]
    fn linear_data_come_from_the_graph_they_claim() {
        for seed in 0..6 {
            let settings = SimulationSettings { rows: 20_000, sem: Sem::Linear {}, noise: 0.5, ..settings(seed) };
            let Simulated { table, truth, .. } = simulate(&settings).unwrap();
            for node in 0..5 {
                let parents: Vec<usize> = nodes_of(truth.parents(node)).collect();
                let (weights, variance) = least_squares(&table, node, &parents);
                assert!(weights.iter().all(|weight| (0.25..0.75).contains(&weight.abs())), "{weights:?}");
                assert!((variance / 0.25 - 1.0).abs() < 5.0 * (2.0 / 20_000f64).sqrt(), "{variance}");
            }
        }
    }

    /// Weights and residual variance, by Gauss and Jordan's elimination.
    fn least_squares(table: &NodeData, node: usize, parents: &[usize]) -> (Vec<f64>, f64) {
        let of = |a: usize, b: usize| table.columns[a].iter().zip(&table.columns[b]).map(|(a, b)| a * b).sum::<f64>();
        let all: Vec<usize> = parents.iter().copied().chain([node]).collect();
        let mut matrix: Vec<Vec<f64>> = all.iter().map(|&a| all.iter().map(|&b| of(a, b)).collect()).collect();
        for k in 0..parents.len() {
            let pivot: Vec<f64> = matrix[k].iter().map(|x| x / matrix[k][k]).collect();
            for (row, line) in matrix.iter_mut().enumerate() {
                let factor = if row == k { 0.0 } else { line[k] };
                line.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
            }
            matrix[k] = pivot;
        }
        let last = parents.len();
        let weights = matrix[..last].iter().map(|row| row[last]).collect();
        (weights, matrix[last][last] / table.columns[0].len() as f64)
    }

    #[test]
    fn hidden_units_are_rectified_and_biases_are_kept() {
        let unit = |weight, bias, output| Unit { inputs: vec![(1, weight)], bias, output };
        let equation = Equation::Mlp(vec![unit(2.0, 0.5, 3.0), unit(-1.0, 0.25, 7.0)], -1.5);
        assert_eq!(equation.mean(&[99.0, 1.0]), 3.0 * 2.5 - 1.5);
        assert_eq!(equation.mean(&[99.0, -1.0]), 7.0 * 1.25 - 1.5);
        let mut stream = Stream::new(1, Purpose::Other(0), 0, 0);
        let biased = Equation::draw(&mut stream, Sem::Mlp { hidden: 3, bias: true }, 0b10);
        let Equation::Mlp(units, bias) = biased else { panic!("a node with a parent has an equation") };
        assert!(units.len() == 3 && bias != 0.0 && units.iter().all(|unit| unit.bias != 0.0 && unit.inputs.len() == 1));
        let plain = Equation::draw(&mut stream, Sem::Mlp { hidden: 3, bias: false }, 0b10);
        assert_eq!(plain.mean(&[99.0, 0.0]), 0.0);
        assert!(matches!(Equation::draw(&mut stream, Sem::Linear {}, 0), Equation::Zero));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let what = |settings: SimulationSettings| simulate(&settings).unwrap_err().what;
        assert_eq!(what(SimulationSettings { nodes: 65, ..settings(1) }), "nodes");
        assert_eq!(what(SimulationSettings { rows: 0, ..settings(1) }), "rows");
        assert_eq!(what(SimulationSettings { edge_probability: 1.5, ..settings(1) }), "edge_probability");
        assert_eq!(what(SimulationSettings { noise: 0.0, ..settings(1) }), "noise");
        assert_eq!(what(SimulationSettings { sem: Sem::Mlp { hidden: 0, bias: true }, ..settings(1) }), "hidden");
    }
}
