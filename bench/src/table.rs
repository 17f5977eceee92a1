//! Tables of numbers.

use anyhow::{Context, Result};
use vti::problem::selection::{RegressionData, Term};

/// A table of numbers from its text, the first `rows` of it.
pub(crate) fn read(text: &str, response: &str, rows: usize) -> Result<RegressionData> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().context("an empty table")?.split(',').collect();
    let rows: Vec<Vec<f64>> = lines
        .take(rows)
        .map(|line| line.split(',').map(str::parse).collect())
        .collect::<Result<_, _>>()
        .context("not a number")?;
    let column = |place: usize| rows.iter().map(|row| row[place]).collect::<Vec<f64>>();
    let place = names.iter().position(|name| *name == response).context("no such response")?;
    let others = (0..names.len()).filter(|&other| other != place);
    Ok(RegressionData {
        response_name: response.into(),
        response: column(place),
        terms: others.map(|other| term(names[other], column(other))).collect(),
        ..RegressionData::default()
    })
}

/// A term of one column.
pub(crate) fn term(name: &str, values: Vec<f64>) -> Term {
    Term { name: name.into(), columns: vec![name.into()], values, always: false, parents: Vec::new() }
}
