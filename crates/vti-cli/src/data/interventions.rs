//! The column that names, row by row, the nodes that were set from outside.

use std::collections::{BTreeMap, HashMap};

use vti::problem::dag::{Interventions, NodeData, Scaling};

use super::DataError;
use super::raw::Raw;
use super::schema::{check_list, texts};
use crate::shown::{listed, shown};

/// The cells of that column, which takes no other part.
pub(super) struct Cells {
    column: String,
    /// By where their rows stand: rows with missing values may be left out later on.
    cells: HashMap<u64, String>,
}

/// What separates several nodes in a cell.
const SEPARATORS: [char; 2] = [';', '+'];

impl Cells {
    /// Takes the column out of the table.
    pub(super) fn take(raw: &mut Raw, name: &str, exclude: &[String]) -> Result<Self, DataError> {
        check_list(raw, &[name.to_string()], "--interventions", exclude)?;
        let texts = raw.columns.iter().find(|column| column.name == name).map(texts).unwrap_or_default();
        raw.columns.retain(|column| column.name != name);
        Ok(Self { column: name.into(), cells: raw.places.iter().copied().zip(texts).collect() })
    }

    /// The nodes of each row that is left; words that are none are listed.
    pub(super) fn read(
        &self,
        raw: &Raw,
        names: &[String],
        targets: &BTreeMap<String, Vec<String>>,
    ) -> Result<Interventions, DataError> {
        let known = Known::new(names, targets);
        let mut unknown: BTreeMap<&str, usize> = BTreeMap::new();
        let mut set = Vec::with_capacity(raw.rows());
        for place in &raw.places {
            let mut nodes = 0;
            for word in known.words(self.cells.get(place).map_or("", String::as_str)) {
                match known.nodes(word) {
                    Some(meant) => nodes |= meant,
                    None => *unknown.entry(word).or_default() += 1,
                }
            }
            set.push(nodes);
        }
        // A target that is no node is as unknown as a word.
        let mistaken = targets.values().flatten().filter(|name| known.nodes(name).is_none());
        mistaken.for_each(|name| *unknown.entry(name).or_default() += 1);
        if unknown.is_empty() {
            return Ok(Interventions::new(set));
        }
        let counts = unknown.iter().map(|(word, count)| (*word, format!(" {count}")));
        let words = listed(counts, unknown.len());
        let (file, column) = (raw.file.clone(), self.column.clone());
        let first = unknown.keys().next().copied().unwrap_or_default().to_string();
        Err(DataError::UnknownTargets { file, column, words, first, names: names.to_vec() })
    }
}

/// What words mean.
struct Known<'a>(HashMap<&'a str, u64>);

impl<'a> Known<'a> {
    fn new(names: &'a [String], targets: &'a BTreeMap<String, Vec<String>>) -> Self {
        let mut known: HashMap<&str, u64> = names
            .iter()
            .enumerate()
            .map(|(node, name)| (name.as_str(), 1u64.checked_shl(node as u32).unwrap_or(0)))
            .collect();
        let meant =
            |nodes: &Vec<String>| nodes.iter().filter_map(|name| known.get(name.as_str())).fold(0, |a, b| a | b);
        let words: Vec<(&str, u64)> = targets.iter().map(|(word, nodes)| (word.as_str(), meant(nodes))).collect();
        known.extend(words);
        Self(known)
    }

    fn nodes(&self, word: &str) -> Option<u64> {
        self.0.get(word).copied()
    }

    /// The words of a cell: it may be one as a whole.
    fn words<'c>(&self, cell: &'c str) -> Vec<&'c str> {
        let cell = cell.trim();
        if self.0.contains_key(cell) {
            return vec![cell];
        }
        cell.split(SEPARATORS).map(str::trim).filter(|word| !word.is_empty()).collect()
    }
}

/// What the user should know about rows in which nodes were set.
pub(super) fn notes(interventions: &Interventions, table: &NodeData, scaling: Scaling) -> Vec<String> {
    if interventions.is_empty() {
        return Vec::new();
    }
    let (names, rows) = (&table.names, table.rows());
    let counts = interventions.counts(names.len());
    let set = || names.iter().zip(&counts).filter(|(_, count)| **count > 0);
    let counted = listed(set().map(|(name, count)| (name.as_str(), format!(" {count}"))), set().count());
    let mut notes =
        vec![format!("nodes were set in some of {rows} rows, which do not count for their equations: {counted}")];
    let undisturbed = interventions.observational(rows).len();
    if scaling != Scaling::None {
        let by = match undisturbed < Interventions::MIN_UNDISTURBED {
            true => "as these are few, columns are scaled by the rows in which they were not set",
            false => "columns are scaled by their means and standard deviations there",
        };
        notes.push(format!("nothing was set in {undisturbed} rows; {by}"));
    }
    let always = set().filter(|(_, count)| **count == rows).map(|(name, _)| name);
    notes.extend(
        always.map(|name| format!("{} was set in every row: nothing is learned about its causes", shown(name))),
    );
    notes
}
