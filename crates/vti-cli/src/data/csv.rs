//! Tables as text: separated by commas, semicolons or tabs, whichever the first line has most of.

use super::DataError;
use super::missing::Words;
use super::raw::{Cell, Raw, RawColumn};

const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// Lines of a table, one after another.
struct Lines<'a> {
    file: &'a str,
    header: csv::StringRecord,
    reader: csv::Reader<&'a [u8]>,
    separator: u8,
    record: csv::StringRecord,
}

impl<'a> Lines<'a> {
    fn new(file: &'a str, bytes: &'a [u8]) -> Result<Self, DataError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        check_text(file, bytes)?;
        let separator = separator(bytes);
        let mut builder = csv::ReaderBuilder::new();
        let mut reader = builder.delimiter(separator).flexible(true).trim(csv::Trim::All).from_reader(bytes);
        let header = reader.headers().map_err(|error| unreadable(file, &error))?.clone();
        Ok(Self { file, header, reader, separator, record: csv::StringRecord::new() })
    }

    /// The next line with its place in the file, as long as the header.
    fn next(&mut self) -> Result<Option<(u64, &csv::StringRecord)>, DataError> {
        if !self.reader.read_record(&mut self.record).map_err(|error| unreadable(self.file, &error))? {
            return Ok(None);
        }
        let line = self.record.position().map_or(0, csv::Position::line);
        let (found, expected) = (self.record.len(), self.header.len());
        if found != expected {
            return Err(DataError::Ragged { file: self.file.into(), line, found, expected });
        }
        Ok(Some((line, &self.record)))
    }
}

fn unreadable(file: &str, error: &csv::Error) -> DataError {
    DataError::Unreadable { file: file.into(), reason: error.to_string() }
}

/// Lines of a table, as texts.
pub(super) struct Records {
    pub(super) header: csv::StringRecord,
    /// With their places in the file, each as long as the header.
    pub(super) lines: Vec<(u64, csv::StringRecord)>,
}

pub(super) fn records(file: &str, bytes: &[u8]) -> Result<Records, DataError> {
    let (mut from, mut lines) = (Lines::new(file, bytes)?, Vec::new());
    while let Some((line, record)) = from.next()? {
        lines.push((line, record.clone()));
    }
    Ok(Records { header: from.header, lines })
}

pub(crate) fn read(file: &str, bytes: &[u8], words: &Words) -> Result<Raw, DataError> {
    let mut lines = Lines::new(file, bytes)?;
    let mut columns: Vec<RawColumn> = lines.header.iter().map(RawColumn::new).collect();
    let decimal_commas = lines.separator == b';' && has_decimal_commas(Lines::new(file, bytes)?)?;
    let mut places = Vec::new();
    while let Some((line, record)) = lines.next()? {
        places.push(line);
        columns.iter_mut().zip(record).for_each(|(column, cell)| column.push(parse(cell, decimal_commas, words)));
    }
    Ok(Raw { file: file.into(), columns, places, has_lines: true, decimal_commas })
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

/// A number with a comma for its point.
pub(super) fn with_decimal_comma(cell: &str) -> Option<f64> {
    let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, rest) = cell.split_once(',')?;
    let digits = rest.find(['e', 'E']).map_or(rest, |exponent| &rest[..exponent]);
    let whole = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    if is_plain(whole) && is_plain(digits) { cell.replacen(',', ".", 1).parse().ok() } else { None }
}

/// Whether some numbers have a comma for their point, and none has a point.
fn has_decimal_commas(mut lines: Lines<'_>) -> Result<bool, DataError> {
    let has_point = |cell: &str| cell.contains('.') && cell.parse::<f64>().is_ok();
    let mut found = false;
    while let Some((_, record)) = lines.next()? {
        if record.iter().any(has_point) {
            return Ok(false);
        }
        found |= record.iter().any(|cell| with_decimal_comma(cell).is_some());
    }
    Ok(found)
}

fn parse(cell: &str, decimal_commas: bool, words: &Words) -> Cell {
    let number = cell.parse().ok().or_else(|| with_decimal_comma(cell).filter(|_| decimal_commas));
    match number {
        Some(number) if !words.are_number(number) => Cell::Number(number),
        None if !words.are(cell) => Cell::Text(cell.into()),
        _ => Cell::Missing(cell.into()),
    }
}
