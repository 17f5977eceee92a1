//! From a file to the nodes of a graph: columns of numbers, transformed and scaled, and of categories.

use std::collections::BTreeMap;

use vti::answer::LeftOut;
use vti::graph::Graph;
use vti::problem::dag::{Interventions, NodeData, NodeKind, Scaling};

use super::categories::{self, Said};
use super::interventions::{self, Cells};
use super::missing::{Missing, Words};
use super::raw::{Raw, RawColumn};
use super::schema::{all_or, check_list, numbers, set};
use super::tidy::{Known, note, take_index, tidy};
use super::{DataError, Source};

/// Which columns are nodes, and what is done to them.
#[derive(Clone, Debug)]
pub(crate) struct NodeChoice<'a> {
    /// Only these, unless empty.
    pub(crate) include: &'a [String],
    pub(crate) exclude: &'a [String],
    /// Of which columns logarithms are taken; [`ALL`] for every one.
    pub(crate) log: &'a [String],
    pub(crate) scale: Scaling,
    /// Which columns hold categories, as far as it is said.
    pub(crate) said: Said<'a>,
    pub(crate) missing: Missing,
    /// Words for a missing value beside the usual ones.
    pub(crate) missing_values: &'a [String],
    /// The column that names the nodes which were set in a row.
    pub(crate) interventions: Option<&'a str>,
    /// Nodes that other words in it mean.
    pub(crate) targets: &'a BTreeMap<String, Vec<String>>,
}

/// Every column, in a list of columns.
pub(crate) const ALL: &str = "*";

/// The nodes of a graph, and where they came from.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// What inference sees.
    pub(crate) table: NodeData,
    /// Which nodes were set in which rows.
    pub(crate) interventions: Interventions,
    /// What each column was divided by.
    pub(crate) scales: Vec<f64>,
    pub(crate) fingerprint: String,
    /// What the user should know about how the file was understood.
    pub(crate) notes: Vec<String>,
    /// Columns that are no nodes, though nobody said so.
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) file: String,
}

/// The fewest rows from which something can be learned.
const MIN_ROWS: usize = 3;

impl Nodes {
    /// Makes nodes of the columns of a table.
    pub(crate) fn load(source: &Source, choice: &NodeChoice<'_>) -> Result<Self, DataError> {
        if choice.missing == Missing::Indicator {
            return Err(DataError::IndicatorOfGraph);
        }
        let mut raw = source.parse(&Words::new(choice.missing_values))?;
        let (include, exclude, logged) = (set(choice.include), set(choice.exclude), set(choice.log));
        let index = take_index(&mut raw, &include);
        raw.check_names()?;
        let named_logs: Vec<String> = choice.log.iter().filter(|name| *name != ALL).cloned().collect();
        check_list(&raw, choice.exclude, "--exclude", &[])?;
        check_list(&raw, choice.include, "--include", choice.exclude)?;
        check_list(&raw, &named_logs, "--log", choice.exclude)?;
        choice.said.check(&raw, choice.exclude)?;
        let cells = choice.interventions.map(|name| Cells::take(&mut raw, name, choice.exclude)).transpose()?;
        raw.columns.retain(|column| {
            let name = column.name.as_str();
            (include.is_empty() || include.contains(name)) && !exclude.contains(name)
        });
        let known = Known {
            response: None,
            required: set(&[]),
            named: include,
            categorical: choice.said.names().collect(),
            missing: choice.missing,
        };
        let tidied = tidy(&mut raw, &known)?;
        let (mut table, mut flaws) = (NodeData::default(), Vec::new());
        for column in &raw.columns {
            let log = if logged.contains(column.name.as_str()) { Log::Named } else { Log::from(logged.contains(ALL)) };
            match node(&raw, column, &choice.said, log) {
                Ok((kind, values)) => {
                    table.columns.push(values);
                    table.kinds.push(kind);
                    table.names.push(column.name.clone());
                }
                Err(error) => flaws.push((column.name.clone(), error)),
            }
        }
        all_or(&raw, flaws)?;
        check_sizes(&raw, table.names.len())?;
        let left_out: Vec<LeftOut> = index.into_iter().chain(tidied.left_out).collect();
        let mut notes: Vec<String> = left_out.iter().map(note).chain(tidied.notes).collect();
        let nodes = table.names.iter().zip(&table.kinds).zip(&table.columns);
        notes.extend(nodes.filter_map(|((name, kind), values)| categories::note(name, kind, values)));
        notes.extend(raw.decimal_commas.then(|| "numbers are read with decimal commas".to_string()));
        let interventions = match &cells {
            Some(cells) => cells.read(&raw, &table.names, choice.targets)?,
            None => Interventions::default(),
        };
        notes.extend(interventions::notes(&interventions, &table, choice.scale));
        let scales = table.scale_undisturbed(choice.scale, &interventions);
        notes.extend(far_from_zero(&table, &interventions));
        Ok(Self { table, interventions, scales, fingerprint: source.fingerprint(), notes, left_out, file: raw.file })
    }

    pub(crate) fn rows(&self) -> usize {
        self.table.rows()
    }
}

/// Whether the logarithm of a column is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    No,
    /// Of all columns of numbers.
    Numbers,
    /// Of this one.
    Named,
}

impl From<bool> for Log {
    fn from(of_all: bool) -> Self {
        if of_all { Self::Numbers } else { Self::No }
    }
}

/// What a node is, and its numbers.
fn node(raw: &Raw, column: &RawColumn, said: &Said<'_>, log: Log) -> Result<(NodeKind, Vec<f64>), DataError> {
    let (file, name) = (|| raw.file.clone(), || column.name.clone());
    if let Some(found) = said.categories(raw, column)? {
        return match log {
            Log::Named => Err(DataError::LogOfCategories { file: file(), column: name() }),
            Log::No | Log::Numbers => Ok(found),
        };
    }
    let mut values = numbers(raw, column)?;
    if values.iter().all(|value| *value == values[0]) {
        return Err(DataError::ConstantNode { file: file(), column: name(), value: values[0].to_string() });
    }
    if log != Log::No {
        if let Some(row) = values.iter().position(|value| *value <= 0.0) {
            let (place, value) = (raw.place(row), values[row]);
            return Err(DataError::NotPositive { file: file(), place, column: name(), value });
        }
        values.iter_mut().for_each(|value| *value = value.ln());
    }
    Ok((NodeKind::Number, values))
}

fn check_sizes(raw: &Raw, nodes: usize) -> Result<(), DataError> {
    let (file, rows) = (|| raw.file.clone(), raw.rows());
    if nodes < 2 {
        return Err(DataError::FewNodes { file: file(), nodes });
    }
    if nodes > Graph::MAX_NODES {
        return Err(DataError::ManyNodes { file: file(), nodes, most: Graph::MAX_NODES });
    }
    if rows < MIN_ROWS {
        return Err(DataError::FewRows { file: file(), rows, needed: MIN_ROWS });
    }
    Ok(())
}

/// A node without parents has mean 0: columns that are far from it do not suit the model.
fn far_from_zero(table: &NodeData, interventions: &Interventions) -> Option<String> {
    let (name, mean) = table.far_from_zero(interventions)?;
    Some(format!(
        "the mean of {name} is {mean:.4}, but nodes without parents are taken to have mean 0: --scale centre subtracts means"
    ))
}
