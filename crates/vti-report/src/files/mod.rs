//! An answer as files, one by one or all at once. Every file is written beside its place and then renamed, so it is whole or
//! not there.

mod count;
mod csv_table;
mod draws;
mod graph;
mod guard;
mod models;
mod parquet;

use std::path::{Path, PathBuf};

use ::parquet::errors::ParquetError;
use vti::answer::{Answer, AnswerError, Findings};
use vti::store::StoreError;

pub use self::count::{curves_csv, memberships_csv, positions_csv};
pub use self::csv_table::{Cells, CsvTable};
pub use self::draws::{column_name, draws_csv};
pub use self::graph::{dot, edges_csv, graphml};
pub use self::guard::{open, reading};
pub use self::models::models_csv;
pub use self::parquet::{draws_parquet, parse_draws, read_draws};
use crate::{Beside, page};

/// Draws in the units of the data.
pub const DRAWS: &str = "posterior.parquet";
/// Every model that was met.
pub const MODELS: &str = "models.csv";
/// Every edge there could be, of causal graphs.
pub const EDGES: &str = "edges.csv";
/// A drawing for Graphviz, of causal graphs.
pub const DOT: &str = "graph.dot";
/// Edges for tools that read GraphML, of causal graphs.
pub const GRAPHML: &str = "graph.graphml";
/// Curves with their bands, of answers about a number of components.
pub const CURVES: &str = "curves.csv";
/// Where components are, of the same answers.
pub const POSITIONS: &str = "positions.csv";
/// Which observations belong to which component, of mixtures.
pub const MEMBERSHIPS: &str = "memberships.csv";
/// The page.
pub const PAGE: &str = "report.html";
/// The answer itself.
pub const SUMMARY: &str = "summary.json";

/// All files of an answer.
pub const ALL: [&str; 10] = [DRAWS, MODELS, EDGES, DOT, GRAPHML, CURVES, POSITIONS, MEMBERSHIPS, PAGE, SUMMARY];

/// Those of causal graphs only.
pub const OF_GRAPHS: [&str; 3] = [EDGES, DOT, GRAPHML];

/// Those of answers about a number of components only.
pub const OF_COUNTS: [&str; 2] = [CURVES, POSITIONS];

/// Those of mixtures only.
pub const OF_MIXTURES: [&str; 1] = [MEMBERSHIPS];

/// Columns of draws before those of parameters, and behind them.
const FIRST: [&str; 5] = ["model", "word", "log_q", "log_target", "log_weight"];
const ACTIVE: &str = "active";

/// A file that cannot be made, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be written.
    #[error("could not write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// No draws can be read from it.
    #[error("{}: {error}", path.display())]
    Draws {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ParquetError,
    },
    /// Some other kind of file.
    #[error("{}: not written by vti", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by another version, in another form.
    #[error("{}: not of this version", path.display())]
    Version {
        /// The file.
        path: PathBuf,
    },
    /// A few bytes that stand for any number of draws.
    #[error(
        "{}: says that it holds {cells} numbers in {bytes} bytes, which draws do not\nhint: the file is damaged; `vti check` of its directory writes another", path.display()
    )]
    TooMuch {
        /// The file.
        path: PathBuf,
        /// How many numbers it says it has.
        cells: u64,
        /// How large it is.
        bytes: u64,
    },
    /// A table that is none.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// Draws that make no file.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// What a file says about itself is no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// An answer that is no JSON.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// Puts a file in its place.
pub fn put(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    vti::store::put(path, bytes).map_err(|error| FileError::Write { path: path.into(), error })
}

/// Writes all files of an answer into a directory, which is made where there is none. They take their places once all of them
/// are on the disk, so that a full one leaves those of an earlier answer as they were; the answer itself comes last: where it is,
/// everything is.
///
/// ```
/// use vti::answer::{Answer, Findings, Samples};
/// use vti_report::{Beside, files, write};
///
/// let found = Findings { answer: Answer::default(), models: Vec::new(), samples: Samples::default() };
/// let dir = std::env::temp_dir().join("vti-report-write");
/// write(&found, &Beside::default(), &dir)?;
/// assert_eq!(Answer::from_json(&std::fs::read_to_string(dir.join(files::SUMMARY))?)?, found.answer);
/// # std::fs::remove_dir_all(dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(found: &Findings, beside: &Beside<'_>, dir: &Path) -> Result<(), FileError> {
    let Findings { answer, models, samples } = found;
    std::fs::create_dir_all(dir).map_err(|error| FileError::Write { path: dir.into(), error })?;
    let mut files = vec![(DRAWS, draws_parquet(samples, beside.schema)?), (MODELS, models_csv(models, beside.cells)?)];
    if let Some(graphs) = answer.found.graphs() {
        files.push((EDGES, edges_csv(&graphs.edges, beside.cells)?));
        files.push((DOT, dot(&graphs.edges).into_bytes()));
        files.push((GRAPHML, graphml(&graphs.edges).into_bytes()));
    }
    if let Some(count) = answer.found.count() {
        files.push((CURVES, curves_csv(&count.curves, beside.cells)?));
        files.push((POSITIONS, positions_csv(&count.positions, beside.cells)?));
        if let Some(memberships) = &count.memberships {
            files.push((MEMBERSHIPS, memberships_csv(memberships, beside.cells)?));
        }
    }
    files.push((PAGE, page(answer, Some(samples), beside).into_bytes()));
    files.push((SUMMARY, (answer.to_json()? + "\n").into_bytes()));
    let files: Vec<(PathBuf, Vec<u8>)> = files.into_iter().map(|(name, bytes)| (dir.join(name), bytes)).collect();
    vti::store::put_all(&files).map_err(|error| match error {
        StoreError::Io { path, error } => FileError::Write { path, error },
        other => FileError::Write { path: dir.into(), error: std::io::Error::other(other) },
    })
}

/// The files that [`write()`] makes of an answer.
pub fn of(answer: &Answer) -> Vec<&'static str> {
    let (graphs, count) = (answer.found.graphs().is_some(), answer.found.count().is_some());
    let memberships = answer.found.count().is_some_and(|count| count.memberships.is_some());
    let is_made = |file: &&str| {
        (graphs || !OF_GRAPHS.contains(file))
            && (count || !OF_COUNTS.contains(file))
            && (memberships || !OF_MIXTURES.contains(file))
    };
    ALL.into_iter().filter(is_made).collect()
}
