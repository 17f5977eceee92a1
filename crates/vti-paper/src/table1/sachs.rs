//! The flow cytometry data of Sachs et al., and the graphs that are taken for true.

use anyhow::{Context, Result};
use vti::graph::Graph;
use vti::problem::dag::{NodeData, Scaling};

use crate::graphs::{Answer, Scored};

const DATA: &str = include_str!("../../../../data/sachs.csv");

/// The truths: how many edges each has, and its edges.
pub(super) const TRUTHS: [(&str, &str); 2] = [
    ("consensus-17", include_str!("../../../../data/sachs-consensus-17.csv")),
    ("consensus-18", include_str!("../../../../data/sachs-consensus-18.csv")),
];

/// The data and the truths.
pub(super) struct Sachs {
    pub(super) table: NodeData,
    pub(super) truths: Vec<Graph>,
}

impl Sachs {
    /// Every so many-th row.
    pub(super) fn load(every: usize) -> Result<Self> {
        let mut table = read(DATA)?;
        // As the authors' code does: logarithms, less the means of columns, divided by one standard deviation.
        table.columns.iter_mut().flatten().for_each(|value| *value = value.ln());
        table.scale(Scaling::Table);
        for column in &mut table.columns {
            *column = column.iter().step_by(every).copied().collect();
        }
        let truths = TRUTHS.iter().map(|(_, edges)| graph(edges, &table.names)).collect::<Result<_>>()?;
        Ok(Self { table, truths })
    }

    pub(super) fn score(&self, answers: &[Answer]) -> Result<Vec<Scored>> {
        answers.iter().map(|answer| Scored::new(answer, &self.truths)).collect()
    }
}

/// A table of numbers.
fn read(text: &str) -> Result<NodeData> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = reader.headers()?.iter().map(String::from).collect();
    let mut columns = vec![Vec::new(); names.len()];
    for row in reader.deserialize::<Vec<f64>>() {
        columns.iter_mut().zip(row?).for_each(|(column, value)| column.push(value));
    }
    Ok(NodeData::new(names, columns))
}

/// A graph over these nodes from a list of edges.
fn graph(edges: &str, nodes: &[String]) -> Result<Graph> {
    let place = |name: &String| nodes.iter().position(|node| node == name).with_context(|| format!("no node {name}"));
    let mut reader = csv::Reader::from_reader(edges.as_bytes());
    let edges = reader.deserialize().map(|edge| {
        let (from, to): (String, String) = edge?;
        Ok((place(&from)?, place(&to)?))
    });
    Ok(Graph::from_edges(nodes.len(), &edges.collect::<Result<Vec<_>>>()?)?)
}
