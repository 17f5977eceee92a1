//! What can be wrong with a table.

use std::path::PathBuf;

use super::formula::FormulaError;
use crate::shown::{joined, listed, short, shown};
use crate::suggest::did_you_mean;

/// A table that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataError {
    #[error("{file}: {error}{}", hint_for(error))]
    Io { file: String, error: std::io::Error },
    #[error("{file}: the file is empty\nhint: the first line must hold the names of the columns")]
    Empty { file: String },
    #[error("{file}: there are names of columns, but no rows below them")]
    NoRows { file: String },
    #[error("{file}: line {line} is not UTF-8 text\nhint: save the file as UTF-8")]
    NotText { file: String, line: u64 },
    #[error(
        "{file}: line {line} has {found} cells, but there are {expected} columns\nhint: a cell with a separator in it must be quoted"
    )]
    Ragged { file: String, line: u64, found: usize, expected: usize },
    #[error("{file}: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{file}: not a Parquet file: {reason}")]
    NotParquet { file: String, reason: String },
    #[error(
        "{file}: column {c} is of a kind that cannot be used ({kind})\nhint: leave it out with --exclude {c}", c = shown(column))]
    Kind { file: String, column: String, kind: String },
    #[error("{file}: {} no name\nhint: the first line must hold the names of the columns", unnamed(numbers))]
    NoName { file: String, numbers: Vec<usize> },
    #[error("{file}: {}\nhint: rename all but one of them", twice(same))]
    SameName { file: String, same: Vec<(String, usize, usize)> },
    #[error("{file}: there is no column {n}, which is the response{}", did_you_mean(name, names), n = shown(name))]
    NoResponse { file: String, name: String, names: Vec<String> },
    #[error("{file}: there is no column {n}, which {option} names{}", did_you_mean(name, names), n = shown(name))]
    NoColumn { file: String, name: String, option: &'static str, names: Vec<String> },
    #[error(
        "{file}: column {c} names what is none of the nodes: {words}{}\nhint: --targets {}=NODE says what a word means, {1}= that it \
         sets no node", did_you_mean(first, names), shown(first), c = shown(column))]
    UnknownTargets { file: String, column: String, words: String, first: String, names: Vec<String> },
    #[error("{n} is the response and cannot be listed in {option} as well\nhint: take it out of {option}", n = shown(name))]
    ResponseListed { name: String, option: &'static str },
    #[error(
        "{n} is what {option} names and cannot be listed in {other} as well\nhint: take it out of one of them", n = shown(name))]
    OffsetListed { name: String, option: &'static str, other: &'static str },
    #[error(
        "--exposure {n}: exposures are of counts, which this likelihood does not have\nhint: --likelihood poisson or negative-binomial; --offset {n} adds the column as it is", n = shown(name))]
    NoCounts { name: String },
    #[error(
        "{file}: {place}, column {c}: the exposure {value} is not positive, and counts are proportional to it\nhint: mend the cell, or leave the row out", c = shown(column))]
    Exposure { file: String, place: String, column: String, value: f64 },
    #[error(
        "{file}: {place}, column {c}: the weight {value} is negative\nhint: rows of weight 0 do not count", c = shown(column))]
    Weight { file: String, place: String, column: String, value: f64 },
    #[error("{n} is listed in both --exclude and {option}\nhint: take it out of one of them", n = shown(name))]
    ListedTwice { name: String, option: &'static str },
    #[error(
        "{file}: a column cannot be called {n}, which is what the model's own parameter is called\nhint: rename it, or leave it out with --exclude {n}", n = shown(name))]
    Reserved { file: String, name: String },
    #[error("{0}")]
    Missing(Box<MissingValues>),
    #[error(
        "{file}: each of the {rows} rows has a missing value: {counts}\nhint: leave out the columns that have most of them with --exclude"
    )]
    AllMissing { file: String, rows: usize, counts: String },
    #[error("{file}: {} columns cannot be used as they are{}", columns.len(), flaws(columns))]
    Columns { file: String, columns: Vec<(String, DataError)> },
    #[error(
        "{file}: there is a column {} already, which is what --missing indicator would call one that says where {} is missing\nhint: rename it, or leave it out with --exclude",
        shown(name),
        shown(column)
    )]
    IndicatorName { file: String, name: String, column: String },
    #[error(
        "--missing indicator: indicators of missing values are for variable selection, not for graphs\nhint: --missing drop leaves out rows with missing values"
    )]
    IndicatorOfGraph,
    #[error("{file}: cannot be unpacked ({codec}): {error}\nhint: the file may be damaged or cut short")]
    Unpack { file: String, codec: &'static str, error: std::io::Error },
    #[error(
        "{file}: unpacks ({codec}) to more than {most} bytes\nhint: if it is meant to be that large, {variable}=BYTES in the environment allows more, or unpack it first"
    )]
    UnpacksToMore { file: String, codec: &'static str, most: u64, variable: &'static str },
    #[error("{variable}={text}: a number of bytes is needed")]
    UnpackedLimit { variable: &'static str, text: String },
    #[error("{file}: {place}, column {c}: {k:?} is not a number, though most of the column's cells are{}\nhint: mend the cell, or say that the column holds categories: --categorical {c}", more(*count), c = shown(column), k = short(cell))]
    TextCell { file: String, place: String, column: String, cell: String, count: usize },
    #[error(
        "{file}: {place}, column {c}: {k:?} is not a number\nhint: leave the cell empty if the model has no such parameter", c = shown(column), k = short(cell))]
    NotNumber { file: String, place: String, column: String, cell: String },
    #[error("{file}: {place}, column {c}: {k:?} looks like a number with a decimal comma{}\nhint: write decimal points, or decimal commas everywhere and semicolons between the cells", more(*count), c = shown(column), k = short(cell))]
    DecimalComma { file: String, place: String, column: String, cell: String, count: usize },
    #[error("{file}: {place}, column {c}: {value} is not finite", c = shown(column))]
    NotFinite { file: String, place: String, column: String, value: f64 },
    #[error(
        "{file}: column {c} is constant, every cell is {v}: it says nothing that the intercept does not\nhint: leave it out with --exclude {c}", c = shown(column), v = shown(value))]
    Constant { file: String, column: String, value: String },
    #[error("{file}: the response {c} is constant, every cell is {v}: there is nothing to explain", c = shown(column), v = shown(value))]
    ConstantResponse { file: String, column: String, value: String },
    #[error(
        "{file}: column {c} has {levels} different texts, more than {most}: probably an identifier\nhint: leave it out with --exclude {c}", c = shown(column))]
    Levels { file: String, column: String, levels: usize, most: usize },
    #[error(
        "{file}: column {c} has {levels} different texts in {rows} rows: probably an identifier\nhint: leave it out with --exclude {c}; if these are categories, --categorical {c}", c = shown(column))]
    Identifier { file: String, column: String, levels: usize, rows: usize },
    #[error(
        "{file}: the response {c} is text with {levels} different values; numbers are needed, or categories (two values: --likelihood logistic)\nhint: --likelihood multinomial", c = shown(column))]
    TextResponse { file: String, column: String, levels: usize },
    #[error(
        "{file}: the response {c} has {levels} different values, more than {most} categories\nhint: choose another --likelihood", c = shown(column))]
    ResponseLevels { file: String, column: String, levels: usize, most: usize },
    #[error(
        "{file}: the response {c} has the values {first} and {second}, which suits the logistic likelihood only\nhint: --likelihood logistic", c = shown(column))]
    TwoLevels { file: String, column: String, first: String, second: String },
    #[error(
        "{file}: {place}, column {c}: the response {v} is not {expected}, which this likelihood needs\nhint: mend the data, or choose another --likelihood", c = shown(column), v = shown(value))]
    Response { file: String, place: String, column: String, value: String, expected: &'static str },
    #[error("{file}: {rows} rows are too few, at least {needed} are needed")]
    FewRows { file: String, rows: usize, needed: usize },
    #[error("{file}: {rows} rows are too few for {columns} columns with the g-prior, at least {} are needed\nhint: leave columns out with --exclude, or use --prior normal:SCALE", columns + 2)]
    FewRowsForG { file: String, rows: usize, columns: usize },
    #[error("{file}: {place}, column {c}: {k:?} is not a number, though most of the column's cells are{}\nhint: mend the cell, or say that the column holds categories with --categorical {c}, or leave it out with --exclude {c}", more(*count), c = shown(column), k = short(cell))]
    TextNode { file: String, place: String, column: String, cell: String, count: usize },
    #[error(
        "{name} is listed in both --categorical and --ordered\nhint: take it out of --categorical, if its categories have an order"
    )]
    TwoKinds { name: String },
    #[error("{file}: column {c} holds texts, whose order is not known: {}\nhint: lowest first, --ordered '{c}={}'", joined(levels), levels.join("<"), c = shown(column))]
    NoOrder { file: String, column: String, levels: Vec<String> },
    #[error("{file}: column {c} has the category {l}, which --ordered does not name: {}\nhint: name all of them, lowest first", order.join("<"), c = shown(column), l = shown(level))]
    NotInOrder { file: String, column: String, level: String, order: Vec<String> },
    #[error("--ordered names {l} twice for {c}\nhint: each category has one place", c = shown(column), l = shown(level))]
    LevelTwice { column: String, level: String },
    #[error("{file}: column {c} holds categories, which have no logarithm\nhint: leave {c} out of --log", c = shown(column))]
    LogOfCategories { file: String, column: String },
    #[error(
        "{file}: column {c} is constant, every cell is {v}: nothing can depend on it\nhint: leave it out with --exclude {c}", c = shown(column), v = shown(value))]
    ConstantNode { file: String, column: String, value: String },
    #[error(
        "{file}: {place}, column {c}: {value} has no logarithm\nhint: leave the column out of --log, or out of the graph with --exclude {c}", c = shown(column))]
    NotPositive { file: String, place: String, column: String, value: f64 },
    #[error("{file}: a graph needs at least 2 nodes, and {nodes} columns are left\nhint: see --include and --exclude")]
    FewNodes { file: String, nodes: usize },
    #[error(
        "{file}: {nodes} columns are too many, graphs have at most {most} nodes\nhint: leave columns out with --exclude, or name those that take part with --include"
    )]
    ManyNodes { file: String, nodes: usize, most: usize },
    #[error("{file}: {error}")]
    Series { file: String, error: String },
    #[error("{file}: {option} must say which column it is, there are {}", listed(names.iter().map(|name| (name.as_str(), String::new())), names.len()))]
    WhichColumn { file: String, option: &'static str, names: Vec<String> },
    #[error("{column} is named twice")]
    ColumnTwice { column: String },
    #[error("--missing indicator is for variable selection\nhint: --missing drop leaves out rows with missing values")]
    IndicatorOfSeries,
    #[error(transparent)]
    Formula(#[from] FormulaError),
    #[error("{file}: nothing is left to select from: every column is the response, excluded or always in")]
    NoTerms { file: String },
    #[error("{file}: column {n} is missing, which the run was trained with{}", did_you_mean(name, names), n = shown(name))]
    MissingColumn { file: String, name: String, names: Vec<String> },
    #[error("{}: neither a CSV nor a Parquet file by its name\nhint: name it .csv, .tsv, .txt or .parquet; CSV may be packed by gzip or zstd", path.display())]
    Extension { path: PathBuf },
    #[error("there are no built-in data called {n}{}", did_you_mean(name, names), n = shown(name))]
    NoBuiltin { name: String, names: Vec<String> },
}

/// Values that are missing, of all columns.
#[derive(Debug)]
pub(crate) struct MissingValues {
    pub(super) file: String,
    /// By column, in words.
    pub(super) counts: String,
    pub(super) count: usize,
    pub(super) columns: usize,
    /// Where the first is.
    pub(super) first: String,
    /// Rows that have one, and how many have none.
    pub(super) rows: [usize; 2],
    /// Columns that could be left out.
    pub(super) others: Vec<String>,
    pub(super) graph: bool,
}

impl std::fmt::Display for MissingValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, counts, count, columns, first, .. } = self;
        write!(
            f,
            "{file}: {count} values are missing in {columns} columns, the first in {first}: {counts}\nhint: {}",
            self.treatments()
        )
    }
}

impl MissingValues {
    /// What can be done about them.
    fn treatments(&self) -> String {
        let Self { rows: [rows, left], others, graph, .. } = self;
        let mut text = format!("--missing drop leaves out the {rows} rows that have one, {left} remain");
        if !graph {
            text += "; --missing indicator puts the mean there and adds a column that says where";
        }
        if !others.is_empty() {
            text += &format!("; --exclude {} leaves out the columns", joined(others));
        }
        text
    }
}

/// How many more cells are like this one.
fn more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        2 => ", and one more cell of this column like it".into(),
        _ => format!(", and {} more cells of this column like it", count - 1),
    }
}

/// "columns 2, 5 have".
fn unnamed(numbers: &[usize]) -> String {
    let texts: Vec<String> = numbers.iter().map(usize::to_string).collect();
    let all = listed(texts.iter().map(|text| (text.as_str(), String::new())), numbers.len());
    if numbers.len() == 1 { format!("column {all} has") } else { format!("columns {all} have") }
}

/// Which columns have the same name.
fn twice(same: &[(String, usize, usize)]) -> String {
    let text = |(name, first, second): &(String, usize, usize)| {
        format!("columns {first} and {second} are both called {}", shown(name))
    };
    let more = if same.len() > SHOWN { format!(", … ({} in all)", same.len()) } else { String::new() };
    same.iter().take(SHOWN).map(text).collect::<Vec<_>>().join(", ") + &more
}

/// So many columns are listed.
const SHOWN: usize = 12;

/// What is wrong with each of several columns, and what can be done about all of them.
fn flaws(columns: &[(String, DataError)]) -> String {
    let first_line = |error: &DataError| {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        line.split_once(": ").map_or(line, |(_, rest)| rest).to_string()
    };
    let mut text = String::new();
    for (_, error) in columns.iter().take(SHOWN) {
        text += &format!("\n  {}", first_line(error));
    }
    if columns.len() > SHOWN {
        text += &format!("\n  … and {} more", columns.len() - SHOWN);
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    text += &format!("\nhint: leave them out with --exclude {}", joined(&names));
    let those = |is: fn(&DataError) -> bool| -> Vec<&str> {
        columns.iter().filter(|(_, error)| is(error)).map(|(name, _)| name.as_str()).collect()
    };
    let texts = those(|error| matches!(error, DataError::Identifier { .. } | DataError::TextCell { .. }));
    if !texts.is_empty() {
        text += &format!("; if they hold categories, --categorical {}", joined(&texts));
    }
    let logs = those(|error| matches!(error, DataError::NotPositive { .. }));
    if !logs.is_empty() {
        text += &format!("; or leave {} out of --log", joined(&logs));
    }
    text
}

fn hint_for(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::NotFound => "\nhint: check the path; it is relative to where you are",
        std::io::ErrorKind::IsADirectory => "\nhint: this is a directory, a file is needed",
        _ => "",
    }
}
