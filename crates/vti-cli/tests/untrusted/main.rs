//! Whatever comes from outside is read without a panic, without end and without much memory: the files in `fuzz/corpus` and
//! `fuzz/regressions`, and thousands that are made of them by a seeded hand. libFuzzer tries more (CONTRIBUTING.md).
#![allow(clippy::unwrap_used)]

mod mutate;
mod seeds;

use std::path::{Path, PathBuf};

use mutate::mutated;
use vti::random::{Purpose, Stream};
use vti_cli::untrusted::{READERS, Reader};

/// The folder of files of a kind.
fn folder(kind: &str, reader: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(kind).join(reader)
}

/// Files of a folder, in the order of their names; none where there is no folder.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Examples of what a reader reads.
fn examples(reader: &Reader) -> Vec<(PathBuf, Vec<u8>)> {
    [files(&folder("corpus", reader.name)), files(&folder("regressions", reader.name))].concat()
}

/// Files that a reader tries to read: those that make a posterior of it, or a page, take longer.
fn attempts(reader: &Reader) -> u64 {
    match reader.name {
        "checkpoint" | "summary" | "draws" => 2000,
        "arguments" | "points" | "config" | "set" | "progress" => 3000,
        _ => 10_000,
    }
}

#[test]
fn what_comes_from_outside_does_no_harm() {
    seeds::update(&|reader| folder("corpus", reader));
    for reader in READERS {
        let examples = examples(&reader);
        let understood = examples.iter().filter(|(_, bytes)| (reader.read)(bytes)).count();
        assert!(understood > 0, "{}: none of {} examples is understood", reader.name, examples.len());
        let contents: Vec<&[u8]> = examples.iter().map(|(_, bytes)| &bytes[..]).collect();
        for attempt in 0..attempts(&reader) {
            let mut stream = Stream::new(1, Purpose::Other(13), 0, attempt);
            (reader.read)(&mutated(&contents, &mut stream));
        }
    }
    // Most of it is the program itself.
    if let Some(peak) = peak_memory() {
        assert!(peak < 1 << 30, "{peak} bytes of memory were in use");
    }
}

/// The most memory that was in use, in bytes, where the system says so.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[test]
fn examples_are_small() {
    for reader in READERS {
        for (path, bytes) in examples(&reader) {
            assert!(bytes.len() <= 1 << 14, "{}: {} bytes", path.display(), bytes.len());
        }
    }
}
