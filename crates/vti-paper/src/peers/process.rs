//! A Python process that answers one job after the other.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vti::problem::dag::NodeData;
use vti_report::files::{Cells, CsvTable};

/// Of an answer that makes no sense.
const UNREADABLE: &str = "the peers' answer cannot be read";

/// What answers jobs.
const SCRIPT: &str = include_str!("../../../../bench/peer/graphs.py");

/// A process that runs DAGMA and DiBS when asked, and ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Peers {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Collects what it complains about.
    complaints: Option<JoinHandle<String>>,
    versions: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Ready {
    versions: BTreeMap<String, String>,
}

/// See the script.
#[derive(Serialize)]
struct Job<'a, S> {
    csv: &'a Path,
    method: &'static str,
    seed: u64,
    settings: &'a S,
}

/// Tables handed over so far, so that each has a file of its own.
static TABLES: AtomicUsize = AtomicUsize::new(0);

impl Peers {
    /// Starts a Python that has the packages of `bench/peer/graphs-requirements.txt`, with so many threads.
    pub(crate) fn start(python: &Path, threads: usize) -> Result<Self> {
        let refused = |source: std::io::Error| {
            let hint = "give the path of a Python, for instance of a virtual environment";
            anyhow!("{}: could not be started: {source}\nhint: {hint}", python.display())
        };
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT, "--threads", &threads.max(1).to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(refused)?;
        let (Some(input), Some(output), Some(mut errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            bail!(refused(std::io::ErrorKind::BrokenPipe.into()));
        };
        let complaints = std::thread::spawn(move || {
            let mut text = Vec::new();
            // What was read before it broke off is good enough.
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).trim().to_owned()
        });
        let output = BufReader::new(output);
        let mut peers = Self { child, input, output, complaints: Some(complaints), versions: BTreeMap::new() };
        peers.versions = serde_json::from_str::<Ready>(&peers.line()?).context(UNREADABLE)?.versions;
        Ok(peers)
    }

    /// The packages it computes with, and their versions.
    pub(crate) fn versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }

    /// What a method finds in the first rows of a table; it may fail here and be sound with the next.
    pub(crate) fn ask<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        table: &NodeData,
        rows: usize,
        seed: u64,
        settings: &impl Serialize,
    ) -> Result<T> {
        let file = TableFile::write(table, rows)?;
        let job = serde_json::to_string(&Job { csv: &file.0, method, seed, settings })?;
        if writeln!(self.input, "{job}").and_then(|()| self.input.flush()).is_err() {
            return Err(self.ended());
        }
        let answer: serde_json::Value = serde_json::from_str(&self.line()?).context(UNREADABLE)?;
        match answer.get("error").and_then(serde_json::Value::as_str) {
            Some(reason) => bail!("the peers failed: {reason}"),
            None => serde_json::from_value(answer).context(UNREADABLE),
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(read) if read > 0 => Ok(line),
            _ => Err(self.ended()),
        }
    }

    fn ended(&mut self) -> anyhow::Error {
        // It may still linger, and then never end what it says.
        let _ = self.child.kill();
        let said = self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        anyhow!(if said.is_empty() { "the peers ended".into() } else { format!("the peers ended: {said}") })
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // It may be gone already; there is nothing left to do about it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A table on its way; the file goes with it.
struct TableFile(PathBuf);

impl TableFile {
    fn write(table: &NodeData, rows: usize) -> Result<Self> {
        // Names as they are: those of the answer must be the same.
        let mut text = CsvTable::new(Cells::Raw, &table.names)?;
        for row in 0..rows.min(table.columns.first().map_or(0, Vec::len)) {
            text.row(table.columns.iter().map(|column| column[row].to_string()))?;
        }
        let number = TABLES.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("vti-peers-{}-{number}.csv", std::process::id()));
        let file = Self(path);
        std::fs::write(&file.0, text.bytes()?)
            .with_context(|| format!("{}: could not be written", file.0.display()))?;
        Ok(file)
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        // A file that is left behind does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Dagma, DagmaSettings, Dibs, DibsSettings};
    use super::*;

    #[test]
    fn tables_have_a_line_of_names_and_as_many_rows_as_wanted() {
        let table = NodeData::new(vec!["a".into(), "b".into()], vec![vec![0.1, 2.0], vec![-1.5, 1e-9]]);
        let file = TableFile::write(&table, 1).unwrap();
        let path = file.0.clone();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a,b\n0.1,-1.5\n");
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_python_says_so() {
        let error = Peers::start(Path::new("no-such-python"), 1).unwrap_err();
        assert!(error.to_string().starts_with("no-such-python: could not be started"), "{error}");
    }

    /// Where VTI_PEERS names a Python with the packages.
    #[test]
    fn both_peers_answer() {
        let Some(python) = std::env::var_os("VTI_PEERS") else { return };
        let mut peers = Peers::start(Path::new(&python), 1).unwrap();
        assert!(peers.versions().contains_key("dagma") && peers.versions().contains_key("dibs-lib"));
        let settings = vti::problem::dag::simulate::SimulationSettings { nodes: 3, rows: 30, ..Default::default() };
        let table = vti::problem::dag::simulate::simulate(&settings).unwrap().table;
        let quick = DagmaSettings {
            lambdas: vec![0.01, 10.0],
            warm_iter: 300,
            max_iter: 400,
            lr: 5e-3,
            hidden: 4,
            checkpoint: 100,
        };
        let dagma: Dagma = peers.ask("dagma", &table, 20, 1, &quick).unwrap();
        assert_eq!(dagma.path.iter().map(|point| point.lambda).collect::<Vec<_>>(), [0.01, 10.0]);
        assert_eq!(dagma.path[1].graph.edge_count(), 0, "nothing survives such a penalty");
        let quick = DibsSettings { particles: 3, steps: 20, n_grad_mc_samples: 2, ..DibsSettings::default() };
        let dibs: Dibs = peers.ask("dibs", &table, 20, 1, &quick).unwrap();
        for weighted in [dibs.weighted(&dibs.plain), dibs.weighted(&dibs.plus)] {
            let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
            assert!(weighted.len() == 3 && (total - 1.0).abs() < 1e-6 || weighted.is_empty(), "{weighted:?}");
        }
        let unknown = peers.ask::<Dagma>("nonsense", &table, 20, 1, &quick).unwrap_err();
        assert!(unknown.to_string().contains("unknown method nonsense"), "{unknown}");
    }
}
