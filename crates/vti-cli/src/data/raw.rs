//! Tables as they stand in files.

use std::collections::HashMap;

use super::missing::is_missing;
use super::{DataError, dates};

/// A cell as it stands in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Number(f64),
    Text(String),
    /// With what stands there.
    Missing(String),
}

/// A column: numbers, and whatever is not a number.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawColumn {
    pub(crate) name: String,
    /// Not a number where the cell is none.
    pub(crate) numbers: Vec<f64>,
    /// Cells that are no numbers, by row.
    pub(crate) others: Vec<(usize, Cell)>,
    /// Whether its numbers are days of dates.
    pub(crate) dates: bool,
    /// What it holds instead of numbers and texts.
    pub(crate) unusable: Option<String>,
}

impl RawColumn {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    pub(crate) fn push(&mut self, cell: Cell) {
        match cell {
            Cell::Number(number) => self.numbers.push(number),
            other => {
                self.others.push((self.numbers.len(), other));
                self.numbers.push(f64::NAN);
            }
        }
    }

    /// Rows whose value is not there.
    pub(crate) fn missing(&self) -> impl Iterator<Item = usize> {
        self.others.iter().filter(|(_, cell)| is_missing(cell)).map(|(row, _)| *row)
    }

    /// Cells that are texts, by row.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (usize, &str)> {
        self.others.iter().filter_map(|(row, cell)| match cell {
            Cell::Text(text) => Some((*row, text.as_str())),
            _ => None,
        })
    }

    /// Cells that are numbers.
    pub(crate) fn present_numbers(&self) -> impl Iterator<Item = f64> {
        self.numbers.iter().copied().filter(|number| !number.is_nan())
    }

    /// What every cell is that is there, if there is some and all are the same.
    pub(super) fn constant(&self) -> Option<String> {
        let (mut texts, mut numbers) = (self.texts().map(|(_, text)| text), self.present_numbers());
        match (texts.next(), numbers.next()) {
            (Some(first), None) => texts.all(|text| text == first).then(|| first.into()),
            (None, Some(first)) => numbers.all(|number| number == first).then(|| first.to_string()),
            _ => None,
        }
    }

    /// Whether it has texts that are dates, and nothing but dates.
    pub(super) fn holds_dates(&self) -> bool {
        let mut texts = self.texts().peekable();
        texts.peek().is_some()
            && texts.all(|(_, text)| dates::days(text).is_some())
            && self.present_numbers().next().is_none()
    }

    /// Texts that are dates become days; numbers among dates are none.
    pub(super) fn read_dates(&mut self) {
        if self.dates {
            return;
        }
        self.dates = true;
        let mut others: Vec<(usize, Cell)> = Vec::new();
        let mut before = std::mem::take(&mut self.others).into_iter().peekable();
        for (row, number) in self.numbers.iter_mut().enumerate() {
            match before.next_if(|(other, _)| *other == row) {
                None => {
                    others.push((row, Cell::Text(number.to_string())));
                    *number = f64::NAN;
                }
                Some((_, Cell::Text(text))) => match dates::days(&text) {
                    Some(days) => *number = days,
                    None => others.push((row, Cell::Text(text))),
                },
                Some(other) => others.push(other),
            }
        }
        self.others = others;
    }
}

/// Words for a value that is not there, unless the column holds words: then they are words like the others.
const DOUBTFUL: [&str; 2] = ["none", "nil"];

impl RawColumn {
    /// Decides what doubtful words mean, once the whole column is known.
    pub(super) fn decide_kind(&mut self) {
        let is_doubtful = |text: &str| DOUBTFUL.iter().any(|word| word.eq_ignore_ascii_case(text));
        let is_truth = |text: &str| ["true", "false"].iter().any(|word| word.eq_ignore_ascii_case(text));
        if self.texts().any(|(_, text)| !is_doubtful(text) && !is_truth(text)) {
            return;
        }
        for (_, cell) in &mut self.others {
            if let Cell::Text(text) = cell
                && is_doubtful(text)
            {
                *cell = Cell::Missing(std::mem::take(text));
            }
        }
    }
}

/// A table as it stands in a file.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) file: String,
    pub(crate) columns: Vec<RawColumn>,
    /// Where each row stands: its line, or its number among the rows, counted from 1.
    pub(crate) places: Vec<u64>,
    /// Whether places are lines.
    pub(crate) has_lines: bool,
    /// Whether numbers had a comma for their point.
    pub(crate) decimal_commas: bool,
}

impl Raw {
    pub(crate) fn rows(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// Columns by their names.
    pub(crate) fn by_name(&self) -> HashMap<&str, &RawColumn> {
        self.columns.iter().map(|column| (column.name.as_str(), column)).collect()
    }

    /// Where a row stands, as people count.
    pub(crate) fn place(&self, row: usize) -> String {
        format!("{} {}", if self.has_lines { "line" } else { "row" }, self.places.get(row).copied().unwrap_or_default())
    }

    /// Leaves out rows.
    pub(super) fn keep_rows(&mut self, keep: impl Fn(usize) -> bool) {
        // New numbers of rows; those that are left out have none.
        let mut count = 0;
        let kept: Vec<Option<usize>> = (0..self.rows())
            .map(|row| {
                let number = keep(row).then_some(count);
                count += usize::from(number.is_some());
                number
            })
            .collect();
        for column in &mut self.columns {
            let mut row = 0..;
            column.numbers.retain(|_| row.next().is_some_and(|row: usize| kept[row].is_some()));
            let others = std::mem::take(&mut column.others).into_iter();
            column.others = others.filter_map(|(row, cell)| Some((kept[row]?, cell))).collect();
        }
        let mut row = 0..;
        self.places.retain(|_| row.next().is_some_and(|row: usize| kept[row].is_some()));
    }

    /// All columns need names of their own.
    pub(crate) fn check_names(&self) -> Result<(), DataError> {
        let unnamed: Vec<usize> =
            (1..).zip(&self.columns).filter(|(_, column)| column.name.is_empty()).map(|(number, _)| number).collect();
        if !unnamed.is_empty() {
            return Err(DataError::NoName { file: self.file.clone(), numbers: unnamed });
        }
        let mut first: HashMap<&str, usize> = HashMap::with_capacity(self.columns.len());
        let mut same = Vec::new();
        for (number, column) in (1..).zip(&self.columns) {
            match first.get(column.name.as_str()) {
                Some(earlier) => same.push((column.name.clone(), *earlier, number)),
                None => {
                    first.insert(&column.name, number);
                }
            }
        }
        if same.is_empty() { Ok(()) } else { Err(DataError::SameName { file: self.file.clone(), same }) }
    }
}
