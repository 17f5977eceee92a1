//! Graphs in files: lists of edges under the header `from,to`.

use vti::graph::Graph;

use super::{DataError, Source};
use crate::shown::shown;
use crate::suggest::did_you_mean;

/// A list of edges that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EdgesError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(
        "{file}: there is no column {column}\nhint: the first line must be from,to and each line below it an edge, for instance {example}"
    )]
    NoColumn { file: String, column: &'static str, example: String },
    #[error("{file}: line {line}: an end of the edge is missing\nhint: each line is an edge, for instance {example}")]
    MissingEnd { file: String, line: u64, example: String },
    #[error("{file}: line {line}: the data have no column {}{}", shown(name), did_you_mean(name, names))]
    UnknownNode { file: String, line: u64, name: String, names: Vec<String> },
    #[error("{file}: line {line}: {} cannot be its own cause\nhint: take the line out", shown(name))]
    Loop { file: String, line: u64, name: String },
}

/// A graph that was read, and what to know about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Edges {
    /// It may have cycles: published ones do.
    pub(crate) graph: Graph,
    pub(crate) notes: Vec<String>,
}

/// Reads a graph over these nodes.
pub(crate) fn read(name: &str, nodes: &[String]) -> Result<Edges, EdgesError> {
    parse(&Source::read(name)?, nodes)
}

/// The same of what was read already.
pub(crate) fn parse(source: &Source, nodes: &[String]) -> Result<Edges, EdgesError> {
    let name = &source.name;
    let file = || source.name.clone();
    let records = super::csv::records(&source.name, &source.bytes)?;
    let example = || nodes.iter().take(2).cloned().collect::<Vec<_>>().join(",");
    let column = |wanted: &'static str| {
        let place = records.header.iter().position(|column| column == wanted);
        place.ok_or_else(|| EdgesError::NoColumn { file: file(), column: wanted, example: example() })
    };
    let (from, to) = (column("from")?, column("to")?);
    let mut edges: Vec<(usize, usize)> = Vec::new();
    let mut twice = 0;
    for (line, record) in &records.lines {
        let line = *line;
        let end = |place: usize| {
            let name = record.get(place).unwrap_or_default();
            if name.is_empty() {
                return Err(EdgesError::MissingEnd { file: file(), line, example: example() });
            }
            nodes.iter().position(|node| node == name).ok_or_else(|| EdgesError::UnknownNode {
                file: file(),
                line,
                name: name.into(),
                names: nodes.to_vec(),
            })
        };
        let edge = (end(from)?, end(to)?);
        if edge.0 == edge.1 {
            return Err(EdgesError::Loop { file: file(), line, name: nodes[edge.0].clone() });
        }
        if edges.contains(&edge) { twice += 1 } else { edges.push(edge) }
    }
    // All ends are nodes and no edge is a loop, so this is a graph.
    let mut parents = vec![0u64; nodes.len()];
    edges.iter().for_each(|(from, to)| parents[*to] |= 1 << from);
    let graph = Graph::from_parents(parents)
        .map_err(|error| DataError::Unreadable { file: file(), reason: error.to_string() })?;
    let mut notes = Vec::new();
    if twice > 0 {
        notes.push(format!("{name}: {twice} edges are listed more than once and counted once"));
    }
    if let Some(node) = graph.node_on_cycle() {
        notes.push(format!(
            "{name}: the graph has a cycle through {}, so no acyclic graph has all its edges, and it has no equivalence class",
            nodes[node]
        ));
    }
    Ok(Edges { graph, notes })
}
