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

use super::response::Response;
use super::{Interventions, NodeData, NodeKind, Sem};
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
    /// How many nodes are categories, the last ones: in turn binary, of three categories in no order, and of three ordered ones.
    pub categories: usize,
    /// Probability that a row has a node, any of them, set to a standard normal number, or to any of its categories.
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
            categories: 0,
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
///
/// Nodes of categories follow the same equations, one for each category but the first where they have no order, whose values are
/// divided by the scale of a logistic error of the same standard deviation, and are predictors of categories that are equally
/// probable without parents. As parents they are 0 or 1, indicators, or scores, less what their means are without parents.
pub fn simulate(settings: &SimulationSettings) -> Result<Simulated, SettingError> {
    let SimulationSettings { nodes, rows, sem, edge_probability, noise, categories, set_probability, seed } = *settings;
    check(settings)?;
    let (order, truth) = Graph::draw(&mut Stream::new(seed, Purpose::Simulate, GRAPH, 0), nodes, edge_probability);
    let kinds: Vec<Kind> = (0..nodes).map(|node| Kind::of(node, nodes - categories)).collect();
    // Where the inputs of each node stand among all.
    let starts: Vec<usize> = kinds
        .iter()
        .scan(0, |next, kind| {
            *next += kind.inputs();
            Some(*next - kind.inputs())
        })
        .collect();
    let equations_of = |node: usize| -> Vec<Equation> {
        let mut stream = Stream::new(seed, Purpose::Simulate, WEIGHTS, node as u64);
        let parents = nodes_of(truth.parents(node));
        let inputs: Vec<usize> =
            parents.flat_map(|parent| starts[parent]..starts[parent] + kinds[parent].inputs()).collect();
        (0..kinds[node].predictors()).map(|_| Equation::draw(&mut stream, sem, &inputs)).collect()
    };
    let equations: Vec<Vec<Equation>> = (0..nodes).map(equations_of).collect();
    let mut columns = vec![Vec::with_capacity(rows); nodes];
    let mut inputs = vec![0.0; kinds.iter().map(|kind| kind.inputs()).sum()];
    let mut values = vec![0.0; nodes];
    let mut sets = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut stream = Stream::new(seed, Purpose::Simulate, ROWS, row as u64);
        let mut outside = Stream::new(seed, Purpose::Simulate, SETS, row as u64);
        let set = (outside.uniform() < set_probability).then(|| {
            let node = outside.below(nodes as u64) as usize;
            (node, kinds[node].set(&mut outside))
        });
        for &node in &order {
            let means: Vec<f64> = equations[node].iter().map(|equation| equation.mean(&inputs)).collect();
            let followed = kinds[node].follow(&means, noise, &mut stream);
            values[node] = set.filter(|(other, _)| *other == node).map_or(followed, |(_, value)| value);
            kinds[node].write_inputs(values[node], &mut inputs[starts[node]..]);
        }
        sets.push(set.map_or(0, |(node, _)| 1 << node));
        columns.iter_mut().zip(&values).for_each(|(column, &value)| column.push(value));
    }
    let names = (1..=nodes).map(|number| format!("x{number}")).collect();
    let kinds = kinds.into_iter().map(Kind::described).collect();
    Ok(Simulated { table: NodeData { names, columns, kinds }, interventions: Interventions::new(sets), truth })
}

/// What a node is.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Number,
    Categories(Response),
}

impl Kind {
    /// Of a node after so many of numbers.
    fn of(node: usize, numbers: usize) -> Self {
        let response = |categories, is_ordered| Self::Categories(Response { categories, is_ordered });
        match node.checked_sub(numbers).map(|place| place % 3) {
            None => Self::Number,
            Some(0) => response(2, false),
            Some(1) => response(3, false),
            Some(_) => response(3, true),
        }
    }

    fn described(self) -> NodeKind {
        let Self::Categories(Response { categories, is_ordered }) = self else { return NodeKind::Number };
        let levels = match (categories, is_ordered) {
            (2, _) => &["no", "yes"][..],
            (_, false) => &["a", "b", "c"],
            (_, true) => &["low", "mid", "high"],
        };
        NodeKind::Categories { levels: levels.iter().map(|level| level.to_string()).collect(), is_ordered }
    }

    fn predictors(self) -> usize {
        if let Self::Categories(response) = self { response.predictors() } else { 1 }
    }

    fn inputs(self) -> usize {
        match self {
            Self::Categories(Response { categories, is_ordered: false }) if categories > 2 => categories,
            _ => 1,
        }
    }

    /// What follows from values of the equations.
    fn follow(self, means: &[f64], noise: f64, stream: &mut Stream) -> f64 {
        let Self::Categories(response) = self else { return means[0] + noise * stream.normal() };
        let scale = noise * 3f64.sqrt() / std::f64::consts::PI;
        let predictors: Vec<f64> = means.iter().map(|mean| mean / scale).collect();
        let equal: Vec<f64> = match response.is_ordered {
            // Cut points at the shares 1/3 and 2/3.
            true => vec![0.5f64.ln(), 4f64.ln()],
            false => vec![0.0; response.own()],
        };
        let mut logs = vec![0.0; response.categories];
        response.log_probabilities(&equal, &predictors, &mut logs);
        let mut left = stream.uniform();
        let drawn = logs.iter().position(|log| {
            left -= log.exp();
            left < 0.0
        });
        drawn.unwrap_or(response.categories - 1) as f64
    }

    /// What somebody sets it to.
    fn set(self, stream: &mut Stream) -> f64 {
        match self {
            Self::Number => stream.normal(),
            Self::Categories(response) => stream.below(response.categories as u64) as f64,
        }
    }

    fn write_inputs(self, value: f64, to: &mut [f64]) {
        match self {
            Self::Number => to[0] = value,
            // Scores of equally probable categories have the variance 2/3.
            Self::Categories(Response { is_ordered: true, .. }) => to[0] = (value - 1.0) * 1.5f64.sqrt(),
            Self::Categories(Response { categories: 2, .. }) => to[0] = value - 0.5,
            Self::Categories(Response { categories, .. }) => {
                let share = (categories as f64).recip();
                to[..categories].iter_mut().enumerate().for_each(|(place, to)| {
                    *to = f64::from(u8::from(value == place as f64)) - share;
                });
            }
        }
    }
}

fn check(settings: &SimulationSettings) -> Result<(), SettingError> {
    let SimulationSettings { nodes, rows, sem, edge_probability: p, noise, categories, set_probability, seed: _ } =
        *settings;
    SettingError::check("nodes", nodes as f64, (1..=Graph::MAX_NODES).contains(&nodes), "between 1 and 64")?;
    SettingError::check("categories", categories as f64, categories <= nodes, "at most as many as there are nodes")?;
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
    /// A weight for each input.
    Linear(Vec<(usize, f64)>),
    /// Hidden units, and the bias of the output.
    Mlp(Vec<Unit>, f64),
}

struct Unit {
    /// A weight of the first layer for each input.
    inputs: Vec<(usize, f64)>,
    bias: f64,
    /// Its weight of the second layer.
    output: f64,
}

impl Equation {
    fn draw(stream: &mut Stream, sem: Sem, from: &[usize]) -> Self {
        if from.is_empty() {
            return Self::Zero;
        }
        let inputs = |stream: &mut Stream| from.iter().map(|&input| (input, weight(stream))).collect();
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
        let sum = |inputs: &[(usize, f64)]| inputs.iter().map(|&(input, weight)| weight * values[input]).sum::<f64>();
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

    /// Shares of categories given a cause are those of the response to what the equation says.
    #[test]
    fn categories_follow_their_equations() {
        let (rows, noise) = (40_000, 0.5);
        let kinds = [Kind::of(0, 0), Kind::of(1, 0), Kind::of(2, 0)];
        for kind in kinds {
            let Kind::Categories(response) = kind else { panic!("categories") };
            let means = vec![0.4; response.predictors()];
            let mut stream = Stream::new(3, Purpose::Other(0), 0, 0);
            let mut shares = vec![0.0; response.categories];
            (0..rows).for_each(|_| shares[kind.follow(&means, noise, &mut stream) as usize] += 1.0 / f64::from(rows));
            // A logistic error of standard deviation 0.5.
            let predictor = 0.4 * std::f64::consts::PI / (3f64.sqrt() * 0.5);
            let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
            let expected = match (response.categories, response.is_ordered) {
                (2, _) => vec![sigmoid(-predictor), sigmoid(predictor)],
                (_, false) => {
                    let e = predictor.exp();
                    vec![1.0 / (1.0 + 2.0 * e), e / (1.0 + 2.0 * e), e / (1.0 + 2.0 * e)]
                }
                (_, true) => {
                    let (low, high) = (sigmoid(-2f64.ln() - predictor), sigmoid(2f64.ln() - predictor));
                    vec![low, high - low, 1.0 - high]
                }
            };
            // Five standard errors.
            assert!(shares.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 0.0125), "{shares:?} {expected:?}");
        }
        let mixed = simulate(&SimulationSettings { nodes: 4, categories: 3, ..settings(3) }).unwrap().table;
        let levels: Vec<Option<usize>> = (0..4).map(|node| mixed.categories(node).map(<[String]>::len)).collect();
        assert_eq!(levels, [None, Some(2), Some(3), Some(3)]);
        for (column, levels) in mixed.columns.iter().zip(levels).skip(1) {
            let seen: std::collections::BTreeSet<u8> = column.iter().map(|&x| x as u8).collect();
            assert!(seen.len() > 1 && seen.iter().all(|&place| usize::from(place) < levels.unwrap()), "{seen:?}");
        }
    }

    #[test]
    fn hidden_units_are_rectified_and_biases_are_kept() {
        let unit = |weight, bias, output| Unit { inputs: vec![(1, weight)], bias, output };
        let equation = Equation::Mlp(vec![unit(2.0, 0.5, 3.0), unit(-1.0, 0.25, 7.0)], -1.5);
        assert_eq!(equation.mean(&[99.0, 1.0]), 3.0 * 2.5 - 1.5);
        assert_eq!(equation.mean(&[99.0, -1.0]), 7.0 * 1.25 - 1.5);
        let mut stream = Stream::new(1, Purpose::Other(0), 0, 0);
        let biased = Equation::draw(&mut stream, Sem::Mlp { hidden: 3, bias: true }, &[1]);
        let Equation::Mlp(units, bias) = biased else { panic!("a node with a parent has an equation") };
        assert!(units.len() == 3 && bias != 0.0 && units.iter().all(|unit| unit.bias != 0.0 && unit.inputs.len() == 1));
        let plain = Equation::draw(&mut stream, Sem::Mlp { hidden: 3, bias: false }, &[1]);
        assert_eq!(plain.mean(&[99.0, 0.0]), 0.0);
        assert!(matches!(Equation::draw(&mut stream, Sem::Linear {}, &[]), Equation::Zero));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let what = |settings: SimulationSettings| simulate(&settings).unwrap_err().what;
        assert_eq!(what(SimulationSettings { nodes: 65, ..settings(1) }), "nodes");
        assert_eq!(what(SimulationSettings { rows: 0, ..settings(1) }), "rows");
        assert_eq!(what(SimulationSettings { categories: 6, ..settings(1) }), "categories");
        assert_eq!(what(SimulationSettings { edge_probability: 1.5, ..settings(1) }), "edge_probability");
        assert_eq!(what(SimulationSettings { noise: 0.0, ..settings(1) }), "noise");
        assert_eq!(what(SimulationSettings { sem: Sem::Mlp { hidden: 0, bias: true }, ..settings(1) }), "hidden");
    }
}
