//! Tables as text: separated by commas, semicolons or tabs, whichever the first line has most of.

use super::DataError;
use super::raw::{Cell, Raw, RawColumn};

const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// What stands for a value that is not there, in lower case.
const MISSING: [&str; 9] = ["", "na", "n/a", "nan", "null", "none", "nil", "?", "."];

pub(crate) fn read(file: &str, bytes: &[u8]) -> Result<Raw, DataError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    check_text(file, bytes)?;
    let mut reader =
        csv::ReaderBuilder::new().delimiter(separator(bytes)).flexible(true).trim(csv::Trim::All).from_reader(bytes);
    let unreadable = |error: csv::Error| DataError::Unreadable { file: file.into(), reason: error.to_string() };
    let mut columns: Vec<RawColumn> = reader.headers().map_err(unreadable)?.iter().map(RawColumn::new).collect();
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != columns.len() {
            let (found, expected) = (record.len(), columns.len());
            return Err(DataError::Ragged { file: file.into(), line, found, expected });
        }
        columns.iter_mut().zip(&record).for_each(|(column, cell)| column.push(parse(cell)));
        lines.push(line);
    }
    Ok(Raw { file: file.into(), columns, lines })
}

/// Names the first line that is not text.
fn check_text(file: &str, bytes: &[u8]) -> Result<(), DataError> {
    let Err(error) = std::str::from_utf8(bytes) else { return Ok(()) };
    let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() as u64;
    Err(DataError::NotText { file: file.into(), line })
}

fn separator(bytes: &[u8]) -> u8 {
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let count = |separator: u8| first.iter().filter(|&&byte| byte == separator).count();
    // The first of several with as many.
    SEPARATORS.into_iter().rev().max_by_key(|&separator| count(separator)).unwrap_or(b',')
}

/// Whether a cell says that its value is not there.
pub(super) fn is_missing(cell: &str) -> bool {
    MISSING.contains(&cell.to_lowercase().as_str())
}

fn parse(cell: &str) -> Cell {
    if is_missing(cell) {
        return Cell::Missing(cell.into());
    }
    cell.parse().map_or_else(|_| Cell::Text(cell.into()), Cell::Number)
}
