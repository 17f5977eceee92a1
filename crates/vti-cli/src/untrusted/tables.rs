//! Tables: text, Parquet, packed; and graphs as lists of edges.

use std::collections::BTreeMap;

use vti::problem::dag::Scaling;
use vti::problem::selection::{CoefficientPrior, Selection, SelectionSettings, Standardise};
use vti::space::Heredity;

use crate::data::{Choice, Missing, NodeChoice, Nodes, Said, Source, Words, load, parse_edges};

/// What packed tables may come to here.
const MAX_UNPACKED: u64 = 1 << 16;

pub(super) fn csv(bytes: &[u8]) -> bool {
    // What only begins like something else is not text.
    Source::of_bytes("table.csv", bytes.to_vec(), 0).is_ok_and(|source| table(&source))
}

pub(super) fn parquet(bytes: &[u8]) -> bool {
    Source::of_bytes("table.parquet", bytes.to_vec(), MAX_UNPACKED).is_ok_and(|source| table(&source))
}

pub(super) fn packed(bytes: &[u8]) -> bool {
    Source::of_bytes("table.csv.gz", bytes.to_vec(), MAX_UNPACKED).is_ok_and(|source| source.bytes.len() > bytes.len())
}

/// A table as a response with terms, and as the nodes of a graph.
fn table(source: &Source) -> bool {
    let Ok(raw) = source.parse(&Words::default()) else { return false };
    let Some(response) = raw.columns.first().map(|column| column.name.clone()) else { return false };
    let settings = SelectionSettings::default();
    let mut is_read = false;
    for missing in [Missing::Error, Missing::Drop, Missing::Indicator] {
        let choice = Choice { response: response.clone(), missing, ..Choice::default() };
        match load(source, &choice, &settings.likelihood) {
            Ok(loaded) => is_read |= loaded.check_rows(&settings).is_ok(),
            Err(error) => drop(error.to_string()),
        }
    }
    let (targets, ordered) = (BTreeMap::new(), BTreeMap::new());
    let choice = NodeChoice {
        include: &[],
        exclude: &[],
        log: &[],
        scale: Scaling::Columns,
        said: Said { categorical: &[], ordered: &ordered },
        missing: Missing::Drop,
        missing_values: &[],
        interventions: None,
        targets: &targets,
    };
    match Nodes::load(source, &choice) {
        Ok(nodes) => is_read |= nodes.rows() > 0,
        Err(error) => drop(error.to_string()),
    }
    is_read
}

/// A table with every kind of column that a formula can name.
const COLUMNS: &str = "y,a,b,c d,g,t\n1,0.5,2,7,red,true\n3,1.5,1,5,blue,false\n2,2.5,4,6,red,false\n5,0,3,9,green,true\n\
                       4,3,0,8,blue,true\n2,1,5,4,green,false\n6,2,7,3,red,true\n3,4,6,2,blue,false\n";

/// Terms of a small table, under each heredity.
pub(super) fn formula(bytes: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    let Ok(source) = Source::of_bytes("table.csv", COLUMNS.into(), 0) else { return false };
    let mut is_read = false;
    for heredity in [Heredity::None, Heredity::Weak, Heredity::Strong] {
        let terms = Some(text.to_string());
        let choice = Choice { response: "y".into(), terms, heredity, centred: true, ..Choice::default() };
        let prior = CoefficientPrior::Normal { scale: 1.0 };
        let settings = SelectionSettings { prior, heredity, ..SelectionSettings::default() };
        match load(&source, &choice, &settings.likelihood) {
            Ok(loaded) => is_read |= Selection::new(&loaded.table, Standardise::Full, &settings).is_ok(),
            Err(error) => drop(error.to_string()),
        }
    }
    is_read
}

/// A graph over four nodes.
pub(super) fn graph(bytes: &[u8]) -> bool {
    let nodes = ["a", "b", "a b", "\u{e4}"].map(String::from);
    let Ok(source) = Source::of_bytes("graph.csv", bytes.to_vec(), 0) else { return false };
    match parse_edges(&source, &nodes) {
        Ok(edges) => edges.graph.edges().count() > 0,
        Err(error) => {
            drop(error.to_string());
            false
        }
    }
}
