//! From a file to the nodes of a graph: columns of numbers, transformed and scaled.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use vti::graph::Graph;
use vti::problem::dag::Table;

use super::DataError;
use super::raw::{Cell, Raw, RawColumn, Source};
use super::schema::{check_list, check_present, numbers};

/// How columns are brought to a common scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scale {
    /// As they were measured
    None,
    /// Each column less its mean
    Centre,
    /// Each column less its mean, divided by its standard deviation
    Columns,
    /// Each column less its mean, all divided by one standard deviation
    Table,
}

impl Scale {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Centre => "centre",
            Self::Columns => "columns",
            Self::Table => "table",
        }
    }
}

/// Which columns are nodes, and what is done to them.
#[derive(Clone, Debug)]
pub(crate) struct NodeChoice<'a> {
    /// Only these, unless empty.
    pub(crate) include: &'a [String],
    pub(crate) exclude: &'a [String],
    /// Of which columns logarithms are taken; [`ALL`] for every one.
    pub(crate) log: &'a [String],
    pub(crate) scale: Scale,
}

/// Every column, in a list of columns.
pub(crate) const ALL: &str = "*";

/// The nodes of a graph, and where they came from.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// What inference sees.
    pub(crate) table: Table,
    /// What each column was divided by.
    pub(crate) scales: Vec<f64>,
    pub(crate) fingerprint: String,
    /// What the user should know about how the file was understood.
    pub(crate) notes: Vec<String>,
    pub(crate) file: String,
}

/// The fewest rows from which something can be learned.
const FEWEST_ROWS: usize = 3;

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
        let mut table = Table::default();
        for column in raw.columns.iter().filter(wanted) {
            let log = listed(choice.log, &column.name) || listed(choice.log, &ALL.into());
            table.columns.push(node(&raw, column, log)?);
            table.names.push(column.name.clone());
        }
        check_sizes(&raw, table.names.len())?;
        let notes = raw.decimal_commas.then(|| "numbers are read with decimal commas".to_string());
        let mut notes: Vec<String> = notes.into_iter().collect();
        let scales = scale(&mut table, choice.scale);
        notes.extend(far_from_zero(&table));
        Ok(Self { table, scales, fingerprint: source.fingerprint(), notes, file: raw.file })
    }

    pub(crate) fn rows(&self) -> usize {
        self.table.columns.first().map_or(0, Vec::len)
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
    if rows < FEWEST_ROWS {
        return Err(DataError::FewRows { file: file(), rows, needed: FEWEST_ROWS });
    }
    Ok(())
}

fn mean(column: &[f64]) -> f64 {
    column.iter().sum::<f64>() / column.len() as f64
}

/// Brings columns to a scale; what each was divided by.
fn scale(table: &mut Table, scale: Scale) -> Vec<f64> {
    if scale != Scale::None {
        for column in &mut table.columns {
            let centre = mean(column);
            column.iter_mut().for_each(|value| *value -= centre);
        }
    }
    let mean_square = |column: &Vec<f64>| mean(&column.iter().map(|value| value * value).collect::<Vec<f64>>());
    let squares: Vec<f64> = table.columns.iter().map(mean_square).collect();
    let scales: Vec<f64> = match scale {
        Scale::None | Scale::Centre => vec![1.0; squares.len()],
        Scale::Columns => squares.iter().map(|square| square.sqrt()).collect(),
        Scale::Table => vec![mean(&squares).sqrt(); squares.len()],
    };
    for (column, scale) in table.columns.iter_mut().zip(&scales) {
        column.iter_mut().for_each(|value| *value /= scale);
    }
    scales
}

/// A node without parents has mean 0: columns that are far from it do not suit the model.
fn far_from_zero(table: &Table) -> Option<String> {
    let far = |column: &Vec<f64>| {
        let centre = mean(column);
        let variance = mean(&column.iter().map(|value| (value - centre).powi(2)).collect::<Vec<f64>>());
        centre * centre > variance
    };
    let (name, column) = table.names.iter().zip(&table.columns).find(|(_, column)| far(column))?;
    Some(format!(
        "the mean of {name} is {:.4}, but nodes without parents are taken to have mean 0: --scale centre subtracts means",
        mean(column)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let names = ["a", "b"].map(String::from).to_vec();
        Table { names, columns: vec![vec![1.0, 2.0, 6.0], vec![-10.0, 0.0, 40.0]] }
    }

    /// Means and mean squares.
    fn moments(table: &Table) -> Vec<(f64, f64)> {
        let square = |column: &Vec<f64>| mean(&column.iter().map(|value| value * value).collect::<Vec<f64>>());
        table.columns.iter().map(|column| (mean(column), square(column))).collect()
    }

    #[test]
    fn scales_do_what_they_say() {
        let mut raw = table();
        assert_eq!((scale(&mut raw, Scale::None), &raw), (vec![1.0, 1.0], &table()));
        let mut centred = table();
        assert_eq!(scale(&mut centred, Scale::Centre), [1.0, 1.0]);
        assert_eq!(centred.columns, [[-2.0, -1.0, 3.0], [-20.0, -10.0, 30.0]]);
        let mut columns = table();
        let scales = scale(&mut columns, Scale::Columns);
        assert!((scales[1] / scales[0] - 10.0).abs() < 1e-12, "{scales:?}");
        assert!(moments(&columns).iter().all(|(mean, square)| mean.abs() < 1e-12 && (square - 1.0).abs() < 1e-12));
        let mut whole = table();
        let scales = scale(&mut whole, Scale::Table);
        assert_eq!(scales[0], scales[1]);
        let squares = moments(&whole);
        assert!(
            (squares[0].1 + squares[1].1 - 2.0).abs() < 1e-12 && (squares[1].1 / squares[0].1 - 100.0).abs() < 1e-9
        );
    }

    #[test]
    fn means_far_from_zero_are_noted() {
        assert!(far_from_zero(&table()).is_some_and(|note| note.starts_with("the mean of a is 3.0000")));
        let mut centred = table();
        scale(&mut centred, Scale::Centre);
        assert_eq!(far_from_zero(&centred), None);
    }
}
