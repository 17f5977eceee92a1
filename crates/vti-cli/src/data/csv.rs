//! Tables as text: separated by commas, semicolons or tabs, whichever the first line has most of.

use super::DataError;
use super::raw::{Cell, Raw, RawColumn};

const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// What stands for a value that is not there, in lower case.
const MISSING: [&str; 6] = ["", "na", "n/a", "nan", "null", "?"];

/// Lines of a table, as texts.
pub(super) struct Records {
    pub(super) header: csv::StringRecord,
    /// With their places in the file, each as long as the header.
    pub(super) lines: Vec<(u64, csv::StringRecord)>,
    separator: u8,
}

pub(super) fn records(file: &str, bytes: &[u8]) -> Result<Records, DataError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    check_text(file, bytes)?;
    let separator = separator(bytes);
    let mut reader =
        csv::ReaderBuilder::new().delimiter(separator).flexible(true).trim(csv::Trim::All).from_reader(bytes);
    let unreadable = |error: csv::Error| DataError::Unreadable { file: file.into(), reason: error.to_string() };
    let header = reader.headers().map_err(unreadable)?.clone();
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != header.len() {
            let (found, expected) = (record.len(), header.len());
            return Err(DataError::Ragged { file: file.into(), line, found, expected });
        }
        lines.push((line, record));
    }
    Ok(Records { header, lines, separator })
}

pub(crate) fn read(file: &str, bytes: &[u8]) -> Result<Raw, DataError> {
    let Records { header, lines: records, separator } = records(file, bytes)?;
    let mut columns: Vec<RawColumn> = header.iter().map(RawColumn::new).collect();
    let decimal_commas = separator == b';' && has_decimal_commas(&records);
    for (_, record) in &records {
        columns.iter_mut().zip(record).for_each(|(column, cell)| column.push(parse(cell, decimal_commas)));
    }
    let lines = records.iter().map(|(line, _)| *line).collect();
    Ok(Raw { file: file.into(), columns, lines, decimal_commas })
}

/// Names the first line that is not text.
fn check_text(file: &str, bytes: &[u8]) -> Result<(), DataError> {
    let Err(error) = std::str::from_utf8(bytes) else { return Ok(()) };
    let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() as u64;
    Err(DataError::NotText { file: file.into(), line })
}

fn separator(bytes: &[u8]) -> u8 {
    let mut quoted = false;
    let mut counts = [0; SEPARATORS.len()];
    for &byte in bytes {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => break,
            _ if quoted => {}
            _ => counts
                .iter_mut()
                .zip(SEPARATORS)
                .for_each(|(count, separator)| *count += usize::from(byte == separator)),
        }
    }
    // The first of several with as many.
    SEPARATORS.into_iter().zip(counts).rev().max_by_key(|(_, count)| *count).map_or(b',', |(separator, _)| separator)
}

/// Whether a cell says that its value is not there.
pub(super) fn is_missing(cell: &str) -> bool {
    MISSING.contains(&cell.to_lowercase().as_str())
}

/// A number with a comma for its point.
pub(super) fn with_decimal_comma(cell: &str) -> Option<f64> {
    let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, rest) = cell.split_once(',')?;
    let digits = rest.find(['e', 'E']).map_or(rest, |exponent| &rest[..exponent]);
    let whole = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    if is_plain(whole) && is_plain(digits) { cell.replacen(',', ".", 1).parse().ok() } else { None }
}

/// Whether some numbers have a comma for their point, and none has a point.
fn has_decimal_commas(records: &[(u64, csv::StringRecord)]) -> bool {
    let cells = || records.iter().flat_map(|(_, record)| record.iter());
    let has_point = |cell: &str| cell.contains('.') && cell.parse::<f64>().is_ok();
    cells().any(|cell| with_decimal_comma(cell).is_some()) && !cells().any(has_point)
}

fn parse(cell: &str, decimal_commas: bool) -> Cell {
    if is_missing(cell) {
        return Cell::Missing(cell.into());
    }
    let number = cell.parse().ok().or_else(|| with_decimal_comma(cell).filter(|_| decimal_commas));
    number.map_or_else(|| Cell::Text(cell.into()), Cell::Number)
}
