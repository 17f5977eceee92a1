//! Tables as they stand in files.

use std::path::Path;

use super::DataError;

/// Where the numbers come from: a path, or data that come with the program.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// As the user wrote it.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Csv,
    Parquet,
}

/// Data that come with the program.
const BUILTIN: [(&str, &str); 5] = [
    ("prostate", include_str!("../../../../data/prostate.csv")),
    ("hald", include_str!("../../../../data/hald.csv")),
    ("sachs", include_str!("../../../../data/sachs.csv")),
    ("sachs-consensus-17", include_str!("../../../../data/sachs-consensus-17.csv")),
    ("sachs-consensus-18", include_str!("../../../../data/sachs-consensus-18.csv")),
];

/// What the names of built-in data start with.
pub(crate) const BUILTIN_PREFIX: &str = "builtin:";

impl Source {
    /// Reads the bytes.
    pub(crate) fn read(name: &str) -> Result<Self, DataError> {
        if let Some(builtin) = name.strip_prefix(BUILTIN_PREFIX) {
            let Some((_, text)) = BUILTIN.iter().find(|(name, _)| *name == builtin) else {
                let names = BUILTIN.map(|(name, _)| name.to_string()).to_vec();
                return Err(DataError::NoBuiltin { name: builtin.into(), names });
            };
            return Ok(Self { name: name.into(), bytes: text.as_bytes().to_vec(), format: Format::Csv });
        }
        let path = Path::new(name);
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let format = match extension.as_deref() {
            Some("csv" | "tsv" | "txt" | "data") => Format::Csv,
            Some("parquet" | "pq") => Format::Parquet,
            _ if !path.exists() => Format::Csv,
            _ => return Err(DataError::Extension { path: path.into() }),
        };
        let bytes = std::fs::read(path).map_err(|error| DataError::Io { file: name.into(), error })?;
        Ok(Self { name: name.into(), bytes, format })
    }

    /// Tells contents apart.
    pub(crate) fn fingerprint(&self) -> String {
        format!("crc32:{:08x}", crc32fast::hash(&self.bytes))
    }

    /// The cells of a column as they are written, if there is such a column.
    pub(crate) fn texts(&self, column: &str) -> Result<Option<Vec<String>>, DataError> {
        if self.format == Format::Csv {
            let records = super::csv::records(&self.name, &self.bytes)?;
            let place = records.header.iter().position(|name| name == column);
            return Ok(place.map(|place| records.lines.iter().map(|(_, record)| record[place].to_string()).collect()));
        }
        let raw = super::parquet::read(&self.name, &self.bytes)?;
        let found = raw.columns.into_iter().find(|found| found.name == column);
        Ok(found.map(|column| {
            let mut texts: Vec<String> = column.numbers.iter().map(f64::to_string).collect();
            for (row, cell) in column.others {
                if let Cell::Text(text) | Cell::Missing(text) = cell {
                    texts[row] = text;
                }
            }
            texts
        }))
    }

    /// The columns.
    pub(crate) fn parse(&self) -> Result<Raw, DataError> {
        let file = || self.name.clone();
        if self.bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(DataError::Empty { file: file() });
        }
        let mut raw = match self.format {
            Format::Csv => super::csv::read(&self.name, &self.bytes)?,
            Format::Parquet => super::parquet::read(&self.name, &self.bytes)?,
        };
        raw.columns.iter_mut().for_each(RawColumn::decide_kind);
        raw.check_names()?;
        if raw.rows() == 0 {
            return Err(DataError::NoRows { file: file() });
        }
        Ok(raw)
    }
}

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
}

/// Words for a value that is not there, unless the column holds words: then they are words like the others.
const DOUBTFUL: [&str; 3] = ["none", "nil", "."];

impl RawColumn {
    /// Decides what doubtful words mean, once the whole column is known.
    fn decide_kind(&mut self) {
        let lower = |cell: &Cell| match cell {
            Cell::Text(text) => Some(text.to_lowercase()),
            _ => None,
        };
        let is_word = |text: String| !DOUBTFUL.contains(&text.as_str()) && !matches!(text.as_str(), "true" | "false");
        if self.others.iter().any(|(_, cell)| lower(cell).is_some_and(is_word)) {
            return;
        }
        for (_, cell) in &mut self.others {
            if let Some(text) = lower(cell).filter(|text| DOUBTFUL.contains(&text.as_str())) {
                *cell = Cell::Missing(text);
            }
        }
    }
}

/// A table as it stands in a file.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) file: String,
    pub(crate) columns: Vec<RawColumn>,
    /// The line of each row, where rows have lines.
    pub(crate) lines: Vec<u64>,
    /// Whether numbers had a comma for their point.
    pub(crate) decimal_commas: bool,
}

impl Raw {
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.numbers.len())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// Where a row stands, as people count.
    pub(crate) fn place(&self, row: usize) -> String {
        match self.lines.get(row) {
            Some(line) => format!("line {line}"),
            None => format!("row {}", row + 1),
        }
    }

    fn check_names(&self) -> Result<(), DataError> {
        let file = || self.file.clone();
        for (index, column) in self.columns.iter().enumerate() {
            if column.name.is_empty() {
                return Err(DataError::NoName { file: file(), number: index + 1 });
            }
            if let Some(first) = self.columns[..index].iter().position(|other| other.name == column.name) {
                let name = column.name.clone();
                return Err(DataError::SameName { file: file(), name, first: first + 1, second: index + 1 });
            }
        }
        Ok(())
    }
}
