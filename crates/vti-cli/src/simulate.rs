//! `vti simulate`: tables made to order, so that the answer is known.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use vti::problem::dag::Sem;
use vti::problem::dag::simulate::{SimulationSettings, simulate};
use vti::problem::selection::RegressionData;
use vti::problem::selection::simulate::{
    CorrelatedSettings, Misspecification, RobustSettings, Simulated, correlated, robust,
};
use vti_report::files::{Cells, CsvTable};

/// Options of `vti simulate`.
#[derive(Args)]
pub(crate) struct SimulateArgs {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// The paper's processes for robust variable selection
    RobustSelection(RobustArgs),
    /// A linear model of correlated covariates
    Correlated(CorrelatedArgs),
    /// The paper's process for causal graphs: hidden units along a random graph
    Dag(DagArgs),
    /// Weighted sums along a random graph
    LinearDag(LinearDagArgs),
}

/// How far data are from what the robust likelihood assumes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    /// Noise and coefficients are those of the likelihood
    None,
    /// Other noise, and other coefficients in the second half of the rows
    Mid,
    /// The same, stronger, and irrelevant covariates follow relevant ones a little
    High,
}

impl From<Level> for Misspecification {
    fn from(level: Level) -> Self {
        match level {
            Level::None => Self::None,
            Level::Mid => Self::Mid,
            Level::High => Self::High,
        }
    }
}

#[derive(Args)]
struct RobustArgs {
    /// How far the data are from what the robust likelihood assumes
    #[arg(long, value_enum, default_value_t = Level::None)]
    misspecification: Level,
    /// Rows
    #[arg(long, default_value_t = RobustSettings::default().rows)]
    rows: usize,
    /// Covariates
    #[arg(long, default_value_t = RobustSettings::default().covariates)]
    covariates: usize,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write
    #[arg(long, value_name = "FILE.csv")]
    out: PathBuf,
}

#[derive(Args)]
struct CorrelatedArgs {
    /// Rows
    #[arg(long, default_value_t = CorrelatedSettings::default().rows)]
    rows: usize,
    /// Covariates
    #[arg(long, default_value_t = CorrelatedSettings::default().covariates)]
    covariates: usize,
    /// How many of them are relevant
    #[arg(long, default_value_t = CorrelatedSettings::default().relevant)]
    relevant: usize,
    /// Correlation of neighbouring covariates
    #[arg(long, allow_negative_numbers = true, default_value_t = CorrelatedSettings::default().correlation)]
    correlation: f64,
    /// Size of the coefficients of relevant covariates; their signs are random
    #[arg(long, allow_negative_numbers = true, default_value_t = CorrelatedSettings::default().effect)]
    effect: f64,
    /// Standard deviation of the noise
    #[arg(long, allow_negative_numbers = true, default_value_t = CorrelatedSettings::default().noise)]
    noise: f64,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write
    #[arg(long, value_name = "FILE.csv")]
    out: PathBuf,
}

/// Causal graphs, whatever the equations along them.
#[derive(Args)]
struct LinearDagArgs {
    /// Nodes: the columns x1, x2, …
    #[arg(long, default_value_t = SimulationSettings::default().nodes)]
    nodes: usize,
    /// Rows
    #[arg(long, default_value_t = SimulationSettings::default().rows)]
    rows: usize,
    /// Probability of an edge between two nodes, along a random order
    #[arg(long, value_name = "P", allow_negative_numbers = true, default_value_t = SimulationSettings::default().edge_probability)]
    edge_probability: f64,
    /// Standard deviation of a node given its parents
    #[arg(long, value_name = "SIGMA", allow_negative_numbers = true, default_value_t = SimulationSettings::default().noise)]
    noise: f64,
    /// In about this share of the rows set a node to a random number; the column `set` names it, for `vti dag --interventions set`
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, default_value_t = 0.0)]
    interventions: f64,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write
    #[arg(long, value_name = "FILE.csv")]
    out: PathBuf,
    /// Write the edges of the graph to a file, for `vti dag --truth`
    #[arg(long, value_name = "GRAPH.csv")]
    truth_out: Option<PathBuf>,
}

#[derive(Args)]
struct DagArgs {
    #[command(flatten)]
    graph: LinearDagArgs,
    /// Hidden units of each equation
    #[arg(long, value_name = "H", default_value_t = 10)]
    hidden: usize,
    /// Hidden units and outputs have biases
    #[arg(long)]
    bias: bool,
}

/// Simulates and writes a table; `talk` is told what became of it.
pub(crate) fn run(args: &SimulateArgs, talk: &dyn Fn(&str)) -> Result<()> {
    match &args.kind {
        Kind::RobustSelection(RobustArgs { misspecification, rows, covariates, seed, out }) => {
            let (misspecification, rows, covariates, seed) = ((*misspecification).into(), *rows, *covariates, *seed);
            let simulated = robust(&RobustSettings { misspecification, rows, covariates, seed })?;
            write_selection(&simulated, out, talk)
        }
        Kind::Correlated(CorrelatedArgs { rows, covariates, relevant, correlation, effect, noise, seed, out }) => {
            let settings = CorrelatedSettings {
                rows: *rows,
                covariates: *covariates,
                relevant: *relevant,
                correlation: *correlation,
                effect: *effect,
                noise: *noise,
                seed: *seed,
            };
            write_selection(&correlated(&settings)?, out, talk)
        }
        Kind::Dag(DagArgs { graph, hidden, bias }) => graph.run(Sem::Mlp { hidden: *hidden, bias: *bias }, talk),
        Kind::LinearDag(graph) => graph.run(Sem::Linear {}, talk),
    }
}

fn write_selection(simulated: &Simulated, out: &Path, talk: &dyn Fn(&str)) -> Result<()> {
    let RegressionData { response_name, response, terms, .. } = &simulated.table;
    let names = std::iter::once(response_name.as_str()).chain(terms.iter().map(|term| term.name.as_str()));
    let columns: Vec<&[f64]> =
        std::iter::once(&response[..]).chain(terms.iter().map(|term| &term.values[..])).collect();
    write(names, &columns, None, out)?;
    talk(&format!("wrote {} rows of y and {} covariates to {}", response.len(), terms.len(), out.display()));
    talk(&format!("relevant covariates: {}", relevant(simulated)));
    Ok(())
}

fn relevant(simulated: &Simulated) -> String {
    let terms = simulated.table.terms.iter().zip(&simulated.relevant);
    let names: Vec<&str> = terms.filter(|(_, relevant)| **relevant).map(|(term, _)| term.name.as_str()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

impl LinearDagArgs {
    fn run(&self, sem: Sem, talk: &dyn Fn(&str)) -> Result<()> {
        let Self { nodes, rows, edge_probability, noise, interventions, seed, out, truth_out } = self;
        let settings = SimulationSettings {
            nodes: *nodes,
            rows: *rows,
            sem,
            edge_probability: *edge_probability,
            noise: *noise,
            set_probability: *interventions,
            seed: *seed,
        };
        let simulated = simulate(&settings)?;
        let names = &simulated.table.names;
        let columns: Vec<&[f64]> = simulated.table.columns.iter().map(Vec::as_slice).collect();
        let set = |row: usize| (0..*nodes).find(|&node| simulated.interventions.is_set(row, node));
        let set = (*interventions > 0.0).then_some(|row: usize| set(row).map_or("", |node| names[node].as_str()));
        write(names.iter().map(String::as_str), &columns, set.as_ref().map(|set| set as &Words<'_>), out)?;
        talk(&format!("wrote {rows} rows of {nodes} nodes to {}", out.display()));
        let edges: Vec<(&str, &str)> =
            simulated.truth.edges().map(|(from, to)| (names[from].as_str(), names[to].as_str())).collect();
        let listed: Vec<String> = edges.iter().map(|(from, to)| format!("{from}→{to}")).collect();
        talk(&format!("edges: {}", if listed.is_empty() { "none".into() } else { listed.join(", ") }));
        match truth_out {
            None => Ok(()),
            Some(path) => {
                let mut table = CsvTable::new(Cells::Guarded, ["from", "to"])?;
                edges.iter().try_for_each(|(from, to)| table.row([from, to]))?;
                save(&table.bytes()?, path)
            }
        }
    }
}

/// What a row says in words.
type Words<'a> = dyn Fn(usize) -> &'a str + 'a;

/// Numbers are written so that they read back as the same numbers; `set` is a last column.
fn write<'a>(
    names: impl Iterator<Item = &'a str>,
    columns: &[&[f64]],
    set: Option<&Words<'_>>,
    out: &Path,
) -> Result<()> {
    let mut table = CsvTable::new(Cells::Guarded, names.chain(set.map(|_| "set")))?;
    for row in 0..columns.first().map_or(0, |column| column.len()) {
        let numbers = columns.iter().map(|column| column[row].to_string());
        table.row(numbers.chain(set.map(|set| set(row).to_string())))?;
    }
    save(&table.bytes()?, out)
}

fn save(bytes: &[u8], out: &Path) -> Result<()> {
    fs::write(out, bytes).map_err(|error| {
        anyhow!(
            "{}: could not be written: {error}\nhint: its folder must exist, and you must be allowed to write there",
            out.display()
        )
    })
}
