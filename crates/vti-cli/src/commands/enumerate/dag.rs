//! All graphs over a few nodes.

use anyhow::Result;
use serde::Serialize;
use vti::graph::ordered_pairs;
use vti::problem::dag::Enumeration;
use vti::space::ModelSpace;
use vti_report::table;

use super::{FoundModel, ShownArgs, models_table};
use crate::config::Config;
use crate::failure::Ending;
use crate::print;
use crate::question::{Causal, Question};
use crate::session::Session;

/// What is printed for machines.
#[derive(Serialize)]
struct Found {
    log_evidence: f64,
    edges: Edges,
    graphs: usize,
    models: Vec<FoundModel>,
}

#[derive(Serialize)]
struct Edges {
    nodes: Vec<String>,
    /// `[i][j]`: the probability of i → j.
    probability: Vec<Vec<f64>>,
}

pub(super) fn run(config: Config, shown: &ShownArgs) -> Result<Ending> {
    let session = Session::<Causal>::new(config)?;
    session.question.notes().iter().for_each(|note| print::talk(note));
    let Causal { dag, nodes, .. } = &session.question;
    let exact = Enumeration::of(dag)?;
    let describe = |place: usize| {
        let (graph, probability) = (&exact.graphs[place], exact.probabilities[place]);
        let word = dag.word(graph).unwrap_or_default();
        FoundModel {
            label: dag.space().label(&word),
            word: word.to_string(),
            size: graph.edge_count(),
            probability,
            log_evidence: probability.ln() + exact.log_evidence - dag.prior().log_graph(graph),
        }
    };
    let (models, all) = shown.take(exact.ranking().into_iter().map(describe))?;
    let names = nodes.table.names.clone();
    let count = names.len();
    let found = Found {
        log_evidence: exact.log_evidence,
        edges: Edges { probability: exact.edges.chunks(count).map(<[f64]>::to_vec).collect(), nodes: names },
        graphs: exact.graphs.len(),
        models,
    };
    shown.print(&found, text, all.as_deref())
}

fn text(found: &Found) -> String {
    let Edges { nodes, probability } = &found.edges;
    let mut edges: Vec<(usize, usize)> = ordered_pairs(nodes.len()).collect();
    edges.sort_by(|a, b| probability[b.0][b.1].total_cmp(&probability[a.0][a.1]));
    let mut rows = vec![["edge", "exact", "reversed"].map(String::from).to_vec()];
    rows.extend(edges.into_iter().map(|(from, to)| {
        let shown = [probability[from][to], probability[to][from]].map(|probability| format!("{probability:.6}"));
        std::iter::once(format!("{}→{}", nodes[from], nodes[to])).chain(shown).collect()
    }));
    format!(
        "{}\n\n{}\n\nlog evidence: {:.6} (in closed form, {} graphs)",
        table(&rows),
        models_table("graph", &found.models),
        found.log_evidence,
        found.graphs
    )
}
