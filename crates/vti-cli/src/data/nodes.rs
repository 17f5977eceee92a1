//! From a file to the nodes of a graph: columns of numbers, transformed and scaled.

use vti::graph::Graph;
use vti::problem::dag::{NodeData, Scaling};

use super::DataError;
use super::raw::{Cell, Raw, RawColumn, Source};
use super::schema::{check_list, check_present, numbers};

/// Which columns are nodes, and what is done to them.
#[derive(Clone, Debug)]
pub(crate) struct NodeChoice<'a> {
    /// Only these, unless empty.
    pub(crate) include: &'a [String],
    pub(crate) exclude: &'a [String],
    /// Of which columns logarithms are taken; [`ALL`] for every one.
    pub(crate) log: &'a [String],
    pub(crate) scale: Scaling,
}

/// Every column, in a list of columns.
pub(crate) const ALL: &str = "*";

/// The nodes of a graph, and where they came from.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// What inference sees.
    pub(crate) table: NodeData,
    /// What each column was divided by.
    pub(crate) scales: Vec<f64>,
    pub(crate) fingerprint: String,
    /// What the user should know about how the file was understood.
    pub(crate) notes: Vec<String>,
    pub(crate) file: String,
}

/// The fewest rows from which something can be learned.
const MIN_ROWS: usize = 3;

impl Nodes {
    /// Reads a file and makes nodes of its columns.
    pub(crate) fn load(name: &str, choice: &NodeChoice<'_>) -> Result<Self, DataError> {
        let source = Source::read(name)?;
        let raw = source.parse()?;
        let logged: Vec<String> = choice.log.iter().filter(|name| *name != ALL).cloned().collect();
        check_list(&raw, choice.exclude, "--exclude", &[])?;
        check_list(&raw, choice.include, "--include", choice.exclude)?;
        check_list(&raw, &logged, "--log", choice.exclude)?;
        let listed = |list: &[String], name: &String| list.contains(name);
        let wanted = |column: &&RawColumn| {
            (choice.include.is_empty() || listed(choice.include, &column.name)) && !listed(choice.exclude, &column.name)
        };
        let mut table = NodeData::default();
        for column in raw.columns.iter().filter(wanted) {
            let log = listed(choice.log, &column.name) || listed(choice.log, &ALL.into());
            table.columns.push(node(&raw, column, log)?);
            table.names.push(column.name.clone());
        }
        check_sizes(&raw, table.names.len())?;
        let notes = raw.decimal_commas.then(|| "numbers are read with decimal commas".to_string());
        let mut notes: Vec<String> = notes.into_iter().collect();
        let scales = table.scale(choice.scale);
        notes.extend(far_from_zero(&table));
        Ok(Self { table, scales, fingerprint: source.fingerprint(), notes, file: raw.file })
    }

    pub(crate) fn rows(&self) -> usize {
        self.table.rows()
    }
}

/// The numbers of a node.
fn node(raw: &Raw, column: &RawColumn, log: bool) -> Result<Vec<f64>, DataError> {
    check_present(raw, column, false)?;
    let (file, name) = (|| raw.file.clone(), || column.name.clone());
    if let Some((row, Cell::Text(cell))) = column.others.iter().find(|(_, cell)| matches!(cell, Cell::Text(_))) {
        let (place, cell, count) = (raw.place(*row), cell.clone(), column.others.len());
        return Err(DataError::TextNode { file: file(), place, column: name(), cell, count });
    }
    let mut values = numbers(raw, column)?;
    if values.iter().all(|value| *value == values[0]) {
        return Err(DataError::ConstantNode { file: file(), column: name(), value: values[0].to_string() });
    }
    if log {
        if let Some(row) = values.iter().position(|value| *value <= 0.0) {
            let (place, value) = (raw.place(row), values[row]);
            return Err(DataError::NotPositive { file: file(), place, column: name(), value });
        }
        values.iter_mut().for_each(|value| *value = value.ln());
    }
    Ok(values)
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
fn far_from_zero(table: &NodeData) -> Option<String> {
    let (name, mean) = table.far_from_zero()?;
    Some(format!(
        "the mean of {name} is {mean:.4}, but nodes without parents are taken to have mean 0: --scale centre subtracts means"
    ))
}
