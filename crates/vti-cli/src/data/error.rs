//! What can be wrong with a table.

use std::path::PathBuf;

use crate::suggest::{did_you_mean, nearest};

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
        "{file}: column {column} is of a kind that cannot be used ({kind})\nhint: leave it out with --exclude {column}"
    )]
    Kind { file: String, column: String, kind: String },
    #[error("{file}: column {number} has no name\nhint: the first line must hold the names of the columns")]
    NoName { file: String, number: usize },
    #[error("{file}: columns {first} and {second} are both called {name}\nhint: rename one of them")]
    SameName { file: String, name: String, first: usize, second: usize },
    #[error("{file}: there is no column {name}, which is the response{}", did_you_mean(name, names))]
    NoResponse { file: String, name: String, names: Vec<String> },
    #[error("{file}: there is no column {name}, which {option} names{}", did_you_mean(name, names))]
    NoColumn { file: String, name: String, option: &'static str, names: Vec<String> },
    #[error("{name} is the response and cannot be listed in {option} as well\nhint: take it out of {option}")]
    ResponseListed { name: String, option: &'static str },
    #[error("{name} is listed in both --exclude and {option}\nhint: take it out of one of them")]
    ListedTwice { name: String, option: &'static str },
    #[error(
        "{file}: a column cannot be called {name}, which is what the model's own parameter is called\nhint: rename it, or leave it out with --exclude {name}"
    )]
    Reserved { file: String, name: String },
    #[error("{file}: {place}, column {column}: the value is missing ({cell}){}\nhint: fill it in, leave out the row, or leave out the column{}", more(*count), exclude(column, *response))]
    Missing { file: String, place: String, column: String, cell: String, count: usize, response: bool },
    #[error("{file}: {place}, column {column}: {cell:?} is not a number, though most of the column's cells are{}\nhint: mend the cell, or say that the column holds categories: --categorical {column}", more(*count))]
    TextCell { file: String, place: String, column: String, cell: String, count: usize },
    #[error(
        "{file}: {place}, column {column}: {cell:?} is not a number\nhint: leave the cell empty if the model has no such parameter"
    )]
    NotNumber { file: String, place: String, column: String, cell: String },
    #[error("{file}: {place}, column {column}: {cell:?} looks like a number with a decimal comma{}\nhint: write decimal points, or decimal commas everywhere and semicolons between the cells", more(*count))]
    DecimalComma { file: String, place: String, column: String, cell: String, count: usize },
    #[error("{file}: {place}, column {column}: {value} is not finite")]
    NotFinite { file: String, place: String, column: String, value: f64 },
    #[error(
        "{file}: column {column} is constant, every cell is {value}: it says nothing that the intercept does not\nhint: leave it out with --exclude {column}"
    )]
    Constant { file: String, column: String, value: String },
    #[error("{file}: the response {column} is constant, every cell is {value}: there is nothing to explain")]
    ConstantResponse { file: String, column: String, value: String },
    #[error(
        "{file}: column {column} has {levels} different texts, more than {most}: probably an identifier\nhint: leave it out with --exclude {column}"
    )]
    Levels { file: String, column: String, levels: usize, most: usize },
    #[error(
        "{file}: column {column} has {levels} different texts in {rows} rows: probably an identifier\nhint: leave it out with --exclude {column}; if these are categories, --categorical {column}"
    )]
    Identifier { file: String, column: String, levels: usize, rows: usize },
    #[error(
        "{file}: the response {column} is text with {levels} different values; numbers are needed, or two values for the logistic likelihood"
    )]
    TextResponse { file: String, column: String, levels: usize },
    #[error(
        "{file}: the response {column} has the values {first} and {second}, which suits the logistic likelihood only\nhint: --likelihood logistic"
    )]
    TwoLevels { file: String, column: String, first: String, second: String },
    #[error(
        "{file}: {place}, column {column}: the response {value} is not {expected}, which this likelihood needs\nhint: mend the data, or choose another --likelihood"
    )]
    Response { file: String, place: String, column: String, value: String, expected: &'static str },
    #[error("{file}: {rows} rows are too few, at least {needed} are needed")]
    FewRows { file: String, rows: usize, needed: usize },
    #[error("{file}: {rows} rows are too few for {columns} columns with the g-prior, at least {} are needed\nhint: leave columns out with --exclude, or use --prior normal:SCALE", columns + 2)]
    FewRowsForG { file: String, rows: usize, columns: usize },
    #[error("{file}: {place}, column {column}: {cell:?} is not a number, and nodes of a graph are numbers{}\nhint: mend the cell, or leave the column out with --exclude {column}", more(*count))]
    TextNode { file: String, place: String, column: String, cell: String, count: usize },
    #[error(
        "{file}: column {column} is constant, every cell is {value}: nothing can depend on it\nhint: leave it out with --exclude {column}"
    )]
    ConstantNode { file: String, column: String, value: String },
    #[error(
        "{file}: {place}, column {column}: {value} has no logarithm\nhint: leave the column out of --log, or out of the graph with --exclude {column}"
    )]
    NotPositive { file: String, place: String, column: String, value: f64 },
    #[error("{file}: a graph needs at least 2 nodes, and {nodes} columns are left\nhint: see --include and --exclude")]
    FewNodes { file: String, nodes: usize },
    #[error(
        "{file}: {nodes} columns are too many, graphs have at most {most} nodes\nhint: leave columns out with --exclude, or name those that take part with --include"
    )]
    ManyNodes { file: String, nodes: usize, most: usize },
    #[error("{file}: nothing is left to select from: every column is the response, excluded or always in")]
    NoTerms { file: String },
    #[error("{file}: {place}, column {column}: {cell:?} is not among the levels the run knows ({})\nhint: a prediction needs levels that were there in training", levels.join(", "))]
    UnknownLevel { file: String, place: String, column: String, cell: String, levels: Vec<String> },
    #[error("{file}: column {name} is missing, which the run was trained with{}", did_you_mean(name, names))]
    MissingColumn { file: String, name: String, names: Vec<String> },
    #[error("{file}: the run knows no column {name}{}", unknown_hint(name, names))]
    UnknownColumn { file: String, name: String, names: Vec<String> },
    #[error("{}: neither a CSV nor a Parquet file by its name\nhint: name it .csv, .tsv, .txt or .parquet", path.display())]
    Extension { path: PathBuf },
    #[error("there are no built-in data called {name}{}", did_you_mean(name, names))]
    NoBuiltin { name: String, names: Vec<String> },
}

/// How many more cells are like this one.
fn more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        2 => ", and one more cell of this column like it".into(),
        _ => format!(", and {} more cells of this column like it", count - 1),
    }
}

fn unknown_hint(name: &str, names: &[String]) -> String {
    match nearest(name, names) {
        Some(near) => format!("\nhint: did you mean {near}? otherwise take the column out of the file"),
        None => "\nhint: take the column out of the file".into(),
    }
}

fn exclude(column: &str, response: bool) -> String {
    if response { String::new() } else { format!(" with --exclude {column}") }
}

fn hint_for(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::NotFound => "\nhint: check the path; it is relative to where you are",
        std::io::ErrorKind::IsADirectory => "\nhint: this is a directory, a file is needed",
        _ => "",
    }
}
