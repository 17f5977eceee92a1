//! Files that hold a run: arrays in the safetensors format, and JSON in its metadata.
//!
//! A file is written beside its place, flushed to the disk and then renamed, so that there is always a whole one: whatever
//! happens, the last good file is still there, under its own name or with `.previous` before its extension. Reading checks
//! the sum of all bytes first; every way in which a file can be wrong has an error of its own.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, View};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::state::{Array, State};

/// The version of the format; files of another one are refused.
pub const FORMAT: u32 = 1;

/// Metadata keys of a file.
const JSON: &str = "vti";
const VERSION: &str = "vti_format";
const CHECKSUM: &str = "vti_crc32";

/// What stands in place of the sum while it is computed.
const NO_SUM: &str = "00000000";

/// A file that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The file ends too early.
    #[error("{}: the file is cut short{}", path.display(), hint(path))]
    Truncated {
        /// The file.
        path: PathBuf,
    },
    /// Some other kind of file.
    #[error("{}: not a file written by vti", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A file of another version of the format.
    #[error("{}: written in format {found}, this version reads format {FORMAT}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// Some bytes have changed since the file was written.
    #[error("{}: the file is damaged, its checksum does not fit{}", path.display(), hint(path))]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The file is whole, but does not say what is expected.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Where the file before the last one is kept: `run.safetensors` → `run.previous.safetensors`.
pub fn previous(path: &Path) -> PathBuf {
    let extension = path.extension().map_or_else(String::new, |extension| format!(".{}", extension.to_string_lossy()));
    path.with_extension(format!("previous{extension}"))
}

/// Points to the previous file where there is one.
fn hint(path: &Path) -> String {
    let previous = previous(path);
    if previous.exists() { format!("\nhint: the one before it is {}", previous.display()) } else { String::new() }
}

/// An array as safetensors wants to see it.
struct Tensor<'a> {
    array: &'a Array,
    shape: [usize; 1],
}

impl<'a> Tensor<'a> {
    fn new(array: &'a Array) -> Self {
        Self { array, shape: [array.len()] }
    }
}

impl View for Tensor<'_> {
    fn dtype(&self) -> Dtype {
        match self.array {
            Array::F32(_) => Dtype::F32,
            Array::F64(_) => Dtype::F64,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(match self.array {
            Array::F32(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Array::F64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        })
    }

    fn data_len(&self) -> usize {
        self.shape[0] * if let Array::F32(_) = self.array { 4 } else { 8 }
    }
}

/// Writes a file; whatever goes wrong, the one that was there stays.
pub fn write(path: &Path, content: &impl Serialize, state: &State) -> Result<(), StoreError> {
    let wrong = |reason: String| StoreError::Content { path: path.into(), reason };
    let json = serde_json::to_string(content).map_err(|error| wrong(error.to_string()))?;
    let entries = [(JSON, json.as_str()), (VERSION, &FORMAT.to_string()), (CHECKSUM, NO_SUM)];
    let arrays = state.arrays().iter().map(|(name, array)| (name.as_str(), Tensor::new(array)));
    let bytes = safetensors::serialize(arrays, None).map_err(|error| wrong(error.to_string()))?;
    let mut bytes = with_metadata(&bytes, &entries).ok_or_else(|| wrong("no place for what it says".into()))?;
    let place = checksum_place(&bytes).ok_or_else(|| wrong("no place for the checksum".into()))?;
    let sum = format!("{:08x}", crc32fast::hash(&bytes));
    bytes[place..place + sum.len()].copy_from_slice(sum.as_bytes());
    replace(path, &bytes).map_err(|error| StoreError::Io { path: path.into(), error })
}

/// A file of arrays with metadata in its header, in the order in which it is given: the library keeps metadata in an order
/// that differs from one process to the next, and the same run should give the same bytes.
fn with_metadata(bytes: &[u8], entries: &[(&str, &str)]) -> Option<Vec<u8>> {
    let Header::Whole(arrays) = header(bytes) else { return None };
    let data = &bytes[8 + arrays.len()..];
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let entries: Vec<String> =
        entries.iter().map(|(key, value)| format!("{}:{}", quoted(key), quoted(value))).collect();
    let arrays = std::str::from_utf8(arrays).ok()?.trim_end().strip_prefix('{')?;
    let comma = if arrays == "}" { "" } else { "," };
    let mut header = format!("{{\"__metadata__\":{{{}}}{comma}{arrays}", entries.join(","));
    // Arrays begin where numbers of eight bytes may.
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    Some([&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat())
}

/// Whether a file could be written there: better to know before than after a run.
pub fn probe(path: &Path) -> Result<(), StoreError> {
    let written = write_beside(path, b"vti");
    let _ = fs::remove_file(partial(path));
    written.map_err(|error| StoreError::Io { path: path.into(), error })
}

/// Where a file is written before it takes its place: `run.csv` → `run.csv.partial`.
pub fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".partial");
    path.with_file_name(name)
}

/// Puts a file of any kind in its place, all at once: beside it first, then renamed.
pub fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    place(path, bytes, || Ok(()))
}

/// Puts several files in their places, in this order, once all of them are on the disk: if one cannot be written, those that
/// were there before stay, all of them.
pub fn put_all(files: &[(PathBuf, Vec<u8>)]) -> Result<(), StoreError> {
    let failed = |path: &PathBuf, error| StoreError::Io { path: path.clone(), error };
    let write = |(path, bytes): &(PathBuf, Vec<u8>)| write_beside(path, bytes).map_err(|error| failed(path, error));
    let rename = |(path, _): &(PathBuf, Vec<u8>)| fs::rename(partial(path), path).map_err(|error| failed(path, error));
    let placed = files.iter().try_for_each(write).and_then(|()| files.iter().try_for_each(rename));
    if placed.is_err() {
        for (path, _) in files {
            let _ = fs::remove_file(partial(path));
        }
    }
    files.iter().for_each(|(path, _)| sync_parent(path));
    placed
}

/// Puts new content in the place of a file, all at once, and keeps what was there as the previous one.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    place(path, bytes, || {
        if path.exists() {
            let previous = previous(path);
            let _ = fs::remove_file(&previous);
            // A second name for the old file, so that its own is never vacant; where that cannot be, a new name.
            fs::hard_link(path, &previous).or_else(|_| fs::rename(path, &previous))?;
        }
        Ok(())
    })
}

/// Writes beside a place, does what is to be done before the old content goes, and renames.
fn place(path: &Path, bytes: &[u8], before: impl Fn() -> std::io::Result<()>) -> std::io::Result<()> {
    let placed = write_beside(path, bytes).and_then(|()| before()).and_then(|()| fs::rename(partial(path), path));
    if placed.is_err() {
        // The disk may be full: what was written of it helps nobody.
        let _ = fs::remove_file(partial(path));
    } else {
        sync_parent(path);
    }
    placed
}

/// Writes beside a place, down to the disk.
fn write_beside(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(partial(path))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A renaming must reach the disk too; directories cannot be opened everywhere.
fn sync_parent(path: &Path) {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    if let Ok(directory) = File::open(parent) {
        let _ = directory.sync_all();
    }
}

/// Where the digits of the checksum stand in the header.
fn checksum_place(bytes: &[u8]) -> Option<usize> {
    let Header::Whole(header) = header(bytes) else { return None };
    let key = format!("\"{CHECKSUM}\":\"");
    let place = header.windows(key.len()).position(|window| window == key.as_bytes())?;
    let place = 8 + place + key.len();
    (place + NO_SUM.len() <= bytes.len()).then_some(place)
}

/// The header of a file, if it can be that of safetensors at all.
enum Header<'a> {
    Whole(&'a [u8]),
    /// The file ends before its header does.
    Short,
    None,
}

fn header(bytes: &[u8]) -> Header<'_> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return Header::Short };
    let length = u64::from_le_bytes(*length);
    match rest.first() {
        Some(b'{') | None if length < 1 << 30 => {
            usize::try_from(length).ok().and_then(|length| rest.get(..length)).map_or(Header::Short, Header::Whole)
        }
        _ => Header::None,
    }
}

fn contains(header: &[u8], text: &str) -> bool {
    header.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Whether all bytes are those that were written; none where the file does not say.
fn sum_fits(bytes: &[u8]) -> Option<bool> {
    let place = checksum_place(bytes)?;
    let digits = &bytes[place..place + NO_SUM.len()];
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..place]);
    hasher.update(NO_SUM.as_bytes());
    hasher.update(&bytes[place + NO_SUM.len()..]);
    Some(format!("{:08x}", hasher.finalize()).as_bytes() == digits)
}

/// Reads a file: its JSON content and its arrays.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<(T, State), StoreError> {
    parse(path, &bytes(path)?)
}

/// The bytes of a file.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(|error| StoreError::Io { path: path.into(), error })
}

/// What the bytes of a file say, `path` as errors name it.
pub fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<(T, State), StoreError> {
    let path = || path.to_path_buf();
    match header(bytes) {
        Header::Short => return Err(StoreError::Truncated { path: path() }),
        Header::Whole(header) if contains(header, JSON) => {}
        _ => return Err(StoreError::Foreign { path: path() }),
    }
    let parsed = SafeTensors::read_metadata(bytes);
    match (sum_fits(bytes), &parsed) {
        (Some(true), _) | (None, Ok(_)) => {}
        (_, Err(SafeTensorError::MetadataIncompleteBuffer | SafeTensorError::InvalidHeaderLength)) => {
            return Err(StoreError::Truncated { path: path() });
        }
        _ => return Err(StoreError::Damaged { path: path() }),
    }
    let wrong = |reason: String| StoreError::Content { path: path(), reason };
    let (_, metadata) = parsed.map_err(|error| wrong(error.to_string()))?;
    let entries = metadata.metadata().clone().unwrap_or_default();
    match entries.get(VERSION) {
        None => return Err(StoreError::Foreign { path: path() }),
        Some(version) if *version != FORMAT.to_string() => {
            return Err(StoreError::Version { path: path(), found: version.clone() });
        }
        Some(_) => {}
    }
    if sum_fits(bytes).is_none() {
        return Err(StoreError::Damaged { path: path() });
    }
    let json = entries.get(JSON).ok_or_else(|| StoreError::Foreign { path: path() })?;
    let content = serde_json::from_str(json).map_err(|error| wrong(error.to_string()))?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| wrong(error.to_string()))?;
    let mut state = State::default();
    for (name, tensor) in tensors.iter() {
        let array = match tensor.dtype() {
            Dtype::F32 => Array::F32(numbers(tensor.data(), f32::from_le_bytes)),
            Dtype::F64 => Array::F64(numbers(tensor.data(), f64::from_le_bytes)),
            other => return Err(wrong(format!("the array {name} has numbers of type {other:?}"))),
        };
        state.put_array(name.to_string(), array);
    }
    Ok((content, state))
}

/// Numbers of N bytes each.
fn numbers<T, const N: usize>(bytes: &[u8], from: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|&chunk| from(chunk)).collect()
}
