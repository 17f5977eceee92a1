//! Where tables come from: files, standard input, data that come with the program; packed or not.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::DataError;
use super::missing::Words;
use super::raw::{Cell, Raw, RawColumn};
use super::table::Table;

/// A path, standard input, or data that come with the program.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// As the user knows it.
    pub(crate) name: String,
    /// Unpacked.
    pub(crate) bytes: Vec<u8>,
    format: Format,
    /// Bytes that it may come to in memory.
    max_unpacked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Csv,
    Parquet,
}

/// Data that come with the program.
const BUILTIN: [(&str, &str); 8] = [
    ("prostate", include_str!("../../../../data/prostate.csv")),
    ("hald", include_str!("../../../../data/hald.csv")),
    ("coal", include_str!("../../../../data/coal.csv")),
    ("galaxy", include_str!("../../../../data/galaxy.csv")),
    ("sachs", SACHS),
    ("sachs-conditions", SACHS_CONDITIONS),
    ("sachs-consensus-17", include_str!("../../../../data/sachs-consensus-17.csv")),
    ("sachs-consensus-18", include_str!("../../../../data/sachs-consensus-18.csv")),
];

const SACHS: &str = include_str!("../../../../data/sachs.csv");
const SACHS_CONDITIONS: &str = include_str!("../../../../data/sachs-conditions.csv");

/// Sachs' data with the node that was acted on in each row.
const WITH_TARGETS: &str = "sachs-interventions";

/// The contents of data that come with the program.
fn built_in(name: &str) -> Option<Vec<u8>> {
    if name == WITH_TARGETS {
        return Some(with_targets(SACHS, SACHS_CONDITIONS).into_bytes());
    }
    BUILTIN.iter().find(|(other, _)| *other == name).map(|(_, text)| text.as_bytes().to_vec())
}

/// A table with a last column `target`: that of the condition which a row belongs to.
fn with_targets(table: &str, conditions: &str) -> String {
    fn last_row_and_target(line: &str) -> Option<(usize, &str)> {
        let mut cells = line.split(',').skip(1);
        Some((cells.next()?.parse().ok()?, cells.nth(2)?))
    }
    let conditions: Vec<(usize, &str)> = conditions.lines().skip(1).filter_map(last_row_and_target).collect();
    let target = |row: usize| conditions.iter().find(|(last, _)| row <= *last).map_or("", |(_, target)| target);
    let mut lines = table.lines();
    let header = lines.next().map(|line| format!("{line},target\n")).unwrap_or_default();
    header + &(1..).zip(lines).map(|(row, line)| format!("{line},{}\n", target(row))).collect::<String>()
}

/// What the names of built-in data start with.
pub(crate) const BUILTIN_PREFIX: &str = "builtin:";

/// The name of standard input.
pub(crate) const STDIN: &str = "-";

/// Whether a name is that of a file.
pub(crate) fn is_path(name: &str) -> bool {
    name != STDIN && !name.starts_with(BUILTIN_PREFIX)
}

/// What packed contents start with.
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// What a Parquet file starts with.
const PARQUET: &[u8] = b"PAR1";

impl Source {
    /// Reads the bytes and unpacks them.
    pub(crate) fn read(name: &str) -> Result<Self, DataError> {
        if let Some(builtin) = name.strip_prefix(BUILTIN_PREFIX) {
            let Some(bytes) = built_in(builtin) else {
                let names = BUILTIN.iter().map(|(name, _)| *name).chain([WITH_TARGETS]).map(String::from).collect();
                return Err(DataError::NoBuiltin { name: builtin.into(), names });
            };
            return Ok(Self { name: name.into(), bytes, format: Format::Csv, max_unpacked: DEFAULT_MAX_UNPACKED });
        }
        let shown = if name == STDIN { "standard input" } else { name };
        let bytes = if name == STDIN { standard_input() } else { std::fs::read(name) };
        let bytes = bytes.map_err(|error| DataError::Io { file: shown.into(), error })?;
        Self::of_bytes(name, bytes, max_unpacked()?)
    }

    /// A table that a program handed over, called as the file that keeps it.
    pub(crate) fn of_table(name: &str, table: &Table) -> Self {
        let (name, bytes) = (name.into(), table.0.to_vec());
        Self { name, bytes, format: Format::Parquet, max_unpacked: u64::MAX }
    }

    /// What a file of this name says, which may be packed: to so many bytes.
    pub(crate) fn of_bytes(name: &str, bytes: Vec<u8>, max_unpacked: u64) -> Result<Self, DataError> {
        let shown = if name == STDIN { "standard input" } else { name };
        let bytes = unpack(shown, bytes, max_unpacked)?;
        let format = format(name, &bytes)?;
        Ok(Self { name: shown.into(), bytes, format, max_unpacked })
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
        let raw = super::parquet::read(&self.name, &self.bytes, &Words::default(), self.max_unpacked)?;
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

    /// The columns; `words` say that a value is not there.
    pub(crate) fn parse(&self, words: &Words) -> Result<Raw, DataError> {
        let file = || self.name.clone();
        if self.bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(DataError::Empty { file: file() });
        }
        let mut raw = match self.format {
            Format::Csv => super::csv::read(&self.name, &self.bytes, words)?,
            Format::Parquet => super::parquet::read(&self.name, &self.bytes, words, self.max_unpacked)?,
        };
        raw.columns.iter_mut().for_each(RawColumn::decide_kind);
        if raw.rows() == 0 {
            return Err(DataError::NoRows { file: file() });
        }
        Ok(raw)
    }
}

/// All of standard input, which can be read once.
fn standard_input() -> std::io::Result<Vec<u8>> {
    static READ: AtomicBool = AtomicBool::new(false);
    if READ.swap(true, Ordering::Relaxed) {
        return Err(std::io::Error::other("was read already, and cannot be two tables"));
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The variable that says how many bytes packed contents may come to.
const MAX_UNPACKED: &str = "VTI_MAX_UNPACKED";

/// So many bytes packed contents may come to, unless somebody says otherwise.
const DEFAULT_MAX_UNPACKED: u64 = 4 << 30;

/// How many bytes packed contents may come to.
fn max_unpacked() -> Result<u64, DataError> {
    match std::env::var(MAX_UNPACKED) {
        Err(_) => Ok(DEFAULT_MAX_UNPACKED),
        Ok(text) => text.trim().parse().map_err(|_| DataError::UnpackedLimit { variable: MAX_UNPACKED, text }),
    }
}

/// What is packed, as its first bytes say. A few bytes may stand for any number of them, so there is a limit.
fn unpack(file: &str, bytes: Vec<u8>, most: u64) -> Result<Vec<u8>, DataError> {
    let (codec, unpacked) = if bytes.starts_with(GZIP) {
        ("gzip", read_most(flate2::read::MultiGzDecoder::new(&bytes[..]), most))
    } else if bytes.starts_with(ZSTD) {
        ("zstd", zstd::stream::Decoder::with_buffer(&bytes[..]).and_then(|decoder| read_most(decoder, most)))
    } else {
        return Ok(bytes);
    };
    let unpacked = unpacked.map_err(|error| DataError::Unpack { file: file.into(), codec, error })?;
    if unpacked.len() as u64 > most {
        return Err(unpacks_to_more(file, codec, most));
    }
    Ok(unpacked)
}

/// A table that is larger than allowed once it is unpacked.
pub(super) fn unpacks_to_more(file: &str, codec: &'static str, most: u64) -> DataError {
    DataError::UnpacksToMore { file: file.into(), codec, most, variable: MAX_UNPACKED }
}

/// All there is to read, or one byte more than allowed.
fn read_most(from: impl Read, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a table is, as its first bytes say, or else its name.
fn format(name: &str, bytes: &[u8]) -> Result<Format, DataError> {
    if bytes.starts_with(PARQUET) {
        return Ok(Format::Parquet);
    }
    let path = Path::new(name);
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("csv" | "tsv" | "txt" | "data" | "gz" | "zst" | "zstd") => Ok(Format::Csv),
        Some("parquet" | "pq") => Ok(Format::Parquet),
        _ if name == STDIN => Ok(Format::Csv),
        _ => Err(DataError::Extension { path: path.into() }),
    }
}
