//! The one place that writes CSV.

use super::FileError;

/// How cells of CSV files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// A text that a spreadsheet would take for a formula has an apostrophe before it.
    #[default]
    Guarded,
    /// As they are.
    Raw,
}

impl Cells {
    /// Raw if so wanted.
    pub fn raw_if(raw: bool) -> Self {
        if raw { Self::Raw } else { Self::Guarded }
    }

    /// A cell as it is written. Numbers are never formulas.
    ///
    /// ```
    /// use vti_report::files::Cells;
    /// assert_eq!(Cells::Guarded.cell("=1+1"), "'=1+1");
    /// assert_eq!(Cells::Guarded.cell("-1.5e3"), "-1.5e3");
    /// assert_eq!(Cells::Raw.cell("=1+1"), "=1+1");
    /// ```
    pub fn cell(self, text: &str) -> String {
        let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
        if self == Self::Guarded && is_formula { format!("'{text}") } else { text.into() }
    }
}

/// A table that is written as CSV.
#[derive(Debug)]
pub struct CsvTable {
    writer: csv::Writer<Vec<u8>>,
    cells: Cells,
}

impl CsvTable {
    /// With the names of its columns.
    pub fn new<S: AsRef<str>>(cells: Cells, names: impl IntoIterator<Item = S>) -> Result<Self, FileError> {
        let mut table = Self { writer: csv::Writer::from_writer(Vec::new()), cells };
        table.row(names)?;
        Ok(table)
    }

    /// Adds a row.
    pub fn row<S: AsRef<str>>(&mut self, row: impl IntoIterator<Item = S>) -> Result<(), FileError> {
        let cells = self.cells;
        Ok(self.writer.write_record(row.into_iter().map(|cell| cells.cell(cell.as_ref())))?)
    }

    /// Its bytes.
    pub fn bytes(self) -> Result<Vec<u8>, FileError> {
        self.writer.into_inner().map_err(|error| csv::Error::from(error.into_error()).into())
    }
}
