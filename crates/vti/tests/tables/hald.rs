//! Hald's cement data: heat against four compounds.

use vti::problem::selection::{RegressionData, Term};

/// The table that stands in `data/`.
pub(crate) fn hald() -> RegressionData {
    let mut lines = include_str!("../../../../data/hald.csv").lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<f64>> = lines.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    let column = |place: usize| rows.iter().map(|row| row[place]).collect::<Vec<f64>>();
    let term = |place: usize| {
        let name = names[place].to_string();
        Term { columns: vec![name.clone()], name, values: column(place), always: false, parents: Vec::new() }
    };
    // The response comes last.
    RegressionData {
        response_name: names[4].into(),
        response: column(4),
        terms: (0..4).map(term).collect(),
        ..RegressionData::default()
    }
}
