//! Made-up posteriors over causal graphs: draws of graphs around a truth, and what follows from them.

use vti_report::{
    BestGraph, Better, Comparison, Effect, Fact, GraphSection, Level, Metric, ModelRow, OrderStatistics, Report, Truth,
    Verdict,
};

use crate::{Numbers, trace};

/// Draws of graphs.
const DRAWS: usize = 400;

/// Edges `[from][to]`.
type Graph = Vec<Vec<bool>>;

/// `doubt`: 0 for a clear posterior, 1 for one that has hardly learned anything.
pub(crate) fn report(names: &[String], mean_degree: f64, doubt: f64, with_truth: bool) -> Report {
    let mut numbers = Numbers(names.len() as u64 + 3);
    let nodes = names.len();
    let truth = truth(&mut numbers, nodes, mean_degree);
    let draws = draws(&mut numbers, &truth, doubt);
    let best = draws[0].1.clone();
    let fact = |name: &str, value: &str, note: &str| Fact { name: name.into(), value: value.into(), note: note.into() };
    Report {
        title: "Which variables act on which?".into(),
        subtitle: format!("Causal graphs: 853 rows, {nodes} variables, non-linear effects, unknown noise"),
        verdict: Verdict { level: Level::Corrected, text: "k̂ is 0.52: weights can correct q.".into() },
        facts: vec![
            fact("log evidence", "−4 102.4 ± 0.2", "corrected"),
            fact("k̂", "0.52", "below 0.7: weights can be used"),
            fact("graphs met", "4 512", "among 20 000 draws"),
            fact("time", "214 s", "training and check"),
        ],
        trace: trace(&mut numbers),
        log_evidence: Some(-102.418),
        models: models(&mut numbers, names, &draws),
        graph: Some(GraphSection {
            names: names.to_vec(),
            edges: edges(&mut numbers, &draws),
            effects: effects(&mut numbers, &best),
            best: class(&best),
            order: order(&draws),
            truth: with_truth.then(|| compared(&truth, &best)),
        }),
        settings: "seed = 1\n\n[problem]\nkind = \"dag\"\n".into(),
        version: "0.1.0".into(),
        ..Report::default()
    }
}

/// Nodes act on later ones in an order that is not that of the data.
fn truth(numbers: &mut Numbers, nodes: usize, mean_degree: f64) -> Graph {
    let order: Vec<usize> = (0..nodes).map(|place| place * 7 % nodes).collect();
    let is_order = (0..nodes).all(|node| order.contains(&node));
    let order = if is_order { order } else { (0..nodes).collect() };
    let mut graph = vec![vec![false; nodes]; nodes];
    for i in 0..nodes {
        for j in i + 1..nodes {
            graph[order[i]][order[j]] = numbers.even() < mean_degree / (nodes as f64 - 1.0).max(1.0);
        }
    }
    graph
}

/// An order in which causes come first.
fn order_of(graph: &Graph) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < graph.len() {
        let free =
            |node: &usize| !order.contains(node) && (0..graph.len()).all(|i| !graph[i][*node] || order.contains(&i));
        match (0..graph.len()).find(free) {
            Some(node) => order.push(node),
            None => break,
        }
    }
    order
}

/// Graphs near the truth and their orders; the first is the most probable one.
fn draws(numbers: &mut Numbers, truth: &Graph, doubt: f64) -> Vec<(Vec<usize>, Graph)> {
    let nodes = truth.len();
    let strength: Vec<Vec<f64>> = (0..nodes).map(|_| (0..nodes).map(|_| numbers.even()).collect()).collect();
    let base = order_of(truth);
    let mut draw = |sure: bool| {
        let mut order = base.clone();
        for place in (1..nodes).filter(|place| doubt > 0.0 || place % 3 == 1) {
            if numbers.even() < if sure { 0.2 } else { 0.4 } {
                order.swap(place - 1, place);
            }
        }
        let mut graph = vec![vec![false; nodes]; nodes];
        for i in 0..nodes {
            for j in i + 1..nodes {
                let (a, b) = (order[i], order[j]);
                let strength = strength[a.min(b)][a.max(b)];
                let rare = (strength - 0.75).max(0.0) * 4.0 * (2.0 / nodes as f64).min(0.5);
                let p = if truth[a][b] || truth[b][a] { (0.2 + 1.5 * strength).min(1.0) } else { rare };
                let p = (1.0 - doubt) * p + doubt * 0.45 * strength;
                graph[a][b] = if sure { p > 0.5 } else { numbers.even() < p };
            }
        }
        (order, graph)
    };
    (0..DRAWS).map(|index| draw(index == 0)).collect()
}

fn share(draws: &[(Vec<usize>, Graph)], holds: impl Fn(&Graph) -> bool) -> f64 {
    draws.iter().filter(|(_, graph)| holds(graph)).count() as f64 / draws.len() as f64
}

fn edges(numbers: &mut Numbers, draws: &[(Vec<usize>, Graph)]) -> Vec<Vec<Comparison>> {
    let nodes = draws[0].1.len();
    let mut one = |from: usize, to: usize| {
        let p = share(draws, |graph| graph[from][to]);
        let se = 0.02 * (p * (1.0 - p)).sqrt();
        Comparison { q: (p + 2.0 * se * numbers.normal()).clamp(0.0, 1.0), corrected: p, se, exact: None }
    };
    (0..nodes).map(|from| (0..nodes).map(|to| one(from, to)).collect()).collect()
}

fn effects(numbers: &mut Numbers, best: &Graph) -> Vec<Effect> {
    let mut effect = |(from, to)| {
        let slope = numbers.normal();
        let text = format!("slope at the mean {slope:.2} (95 %: {:.2} to {:.2})", slope - 0.2, slope + 0.2);
        Effect { from, to, text }
    };
    list(best).into_iter().map(&mut effect).collect()
}

fn list(graph: &Graph) -> Vec<(usize, usize)> {
    let nodes = graph.len();
    (0..nodes).flat_map(|i| (0..nodes).map(move |j| (i, j))).filter(|&(i, j)| graph[i][j]).collect()
}

/// Edges into a node with two unjoined parents keep their direction; the rest is left open (rougher than the real class).
fn class(graph: &Graph) -> BestGraph {
    let joined = |a: usize, b: usize| graph[a][b] || graph[b][a];
    let kept = |&(from, to): &(usize, usize)| {
        (0..graph.len()).any(|other| other != from && graph[other][to] && !joined(other, from))
    };
    let (directed, undirected) = list(graph).into_iter().partition(kept);
    BestGraph { edges: list(graph), directed, undirected }
}

fn order(draws: &[(Vec<usize>, Graph)]) -> OrderStatistics {
    let nodes = draws[0].1.len();
    let place = |node: usize| {
        let sum: usize = draws.iter().filter_map(|(order, _)| order.iter().position(|&other| other == node)).sum();
        sum as f64 / draws.len() as f64
    };
    let closures: Vec<Graph> = draws.iter().map(|(order, graph)| closure(order, graph)).collect();
    let ancestor = |i: usize, j: usize| closures.iter().filter(|c| c[i][j]).count() as f64 / DRAWS as f64;
    let mut counts: Vec<usize> = draws.iter().map(|(_, graph)| list(graph).len()).collect();
    counts.sort_unstable();
    let first = counts[0];
    let probability = |count: usize| counts.iter().filter(|&&c| c == count).count() as f64 / DRAWS as f64;
    OrderStatistics {
        mean_position: (0..nodes).map(place).collect(),
        parents: (0..nodes).map(|j| (0..nodes).map(|i| share(draws, |graph| graph[i][j])).sum()).collect(),
        ancestor: (0..nodes).map(|i| (0..nodes).map(|j| ancestor(i, j)).collect()).collect(),
        edge_counts: (first..=counts[DRAWS - 1]).map(|count| (count, probability(count))).collect(),
    }
}

/// Who can be reached from whom.
fn closure(order: &[usize], graph: &Graph) -> Graph {
    let mut reach = graph.clone();
    for &j in order {
        for row in &mut reach {
            row[j] = row[j] || (0..graph.len()).any(|k| graph[k][j] && row[k]);
        }
    }
    reach
}

fn models(numbers: &mut Numbers, names: &[String], draws: &[(Vec<usize>, Graph)]) -> Vec<ModelRow> {
    let row = |(rank, (_, graph)): (usize, &(Vec<usize>, Graph))| {
        let edges: Vec<String> = list(graph).iter().map(|&(i, j)| format!("{} → {}", names[i], names[j])).collect();
        let probability = numbers.compare(0.12 * (-0.15 * rank as f64).exp(), false);
        ModelRow { label: edges.join(", "), size: edges.len(), probability, log_evidence: None, khat: Some(0.4) }
    };
    let mut met: Vec<&(Vec<usize>, Graph)> = Vec::new();
    for draw in draws {
        if met.len() < 30 && !met.iter().any(|other| other.1 == draw.1) {
            met.push(draw);
        }
    }
    met.into_iter().enumerate().map(row).collect()
}

fn compared(truth: &Graph, best: &Graph) -> Truth {
    let nodes = truth.len();
    let ordered = (nodes * (nodes - 1)) as f64;
    let found = list(best).iter().filter(|&&(i, j)| truth[i][j]).count() as f64;
    let (all, claimed) = (list(truth).len() as f64, list(best).len() as f64);
    let metric = |name: &str, note: &str, better, value: f64, baselines: [f64; 3]| Metric {
        name: name.into(),
        note: note.into(),
        better,
        value,
        baselines: baselines.to_vec(),
    };
    Truth {
        name: "truth.csv".into(),
        edges: list(truth),
        baselines: ["no edges", "every edge at 0.5", "random graph, same density"].map(str::to_owned).to_vec(),
        metrics: vec![
            metric(
                "F1 of directed edges",
                "Harmonic mean of precision and recall of the edges with probability above 0.5; a reversed edge is wrong \
                 and its true direction is missed.",
                Better::Higher,
                2.0 * found / (all + claimed),
                [0.0, 2.0 * all / (all + ordered), all / ordered],
            ),
            metric(
                "SHD, a reversed edge counts once",
                "Number of insertions, deletions and reversals that turn the median graph into the truth.",
                Better::Lower,
                all + claimed - 2.0 * found,
                [all, ordered / 2.0 - all, 1.5 * all],
            ),
            metric(
                "Brier score, mean over ordered pairs",
                "Mean squared difference between the probability of an edge and 0 or 1.",
                Better::Lower,
                0.042,
                [all / ordered, 0.25, 2.0 * all / ordered],
            ),
            metric(
                "AUROC over ordered pairs",
                "Probability that a true edge is given a higher probability than an ordered pair that is no edge.",
                Better::Higher,
                0.93,
                [0.5; 3],
            ),
        ],
    }
}
