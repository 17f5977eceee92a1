//! `vti simulate`: tables made to order, so that the answer is known.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use vti::problem::changepoints::simulate::SimulateSettings as SeriesSettings;
use vti::problem::changepoints::{self, Series};
use vti::problem::dag::Sem;
use vti::problem::dag::simulate::{SimulationSettings, simulate};
use vti::problem::layers::simulate::{self as layers, SimulateSettings as SoundingSettings};
use vti::problem::selection::RegressionData;
use vti::problem::selection::simulate::{
    CorrelatedSettings, Misspecification, RobustSettings, Simulated, correlated, robust,
};
use vti::problem::{mixture, peaks};
use vti_report::files::{Cells, CsvTable};

use crate::args::{KindName, ShapeName};
use crate::failure::Usage;
use crate::memory;

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
    /// A series with changes at equal distances
    Changepoints(ChangesArgs),
    /// Observations from normal components that lie apart
    Mixture(MixtureArgs),
    /// A spectrum of peaks over a sloping background, or a sum of sinusoids
    Peaks(PeaksArgs),
    /// A magnetotelluric sounding over layers of 100 Ωm and 10 Ωm in turn
    Layers(LayersArgs),
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

#[derive(Args)]
struct ChangesArgs {
    /// What is constant between changes
    #[arg(long, value_enum, default_value_t = KindName::Means)]
    kind: KindName,
    /// Rows; of events about how many there are
    #[arg(long, default_value_t = SeriesSettings::default().rows)]
    rows: usize,
    /// Changes
    #[arg(long, default_value_t = SeriesSettings::default().changes)]
    changes: usize,
    /// By how much levels differ, in standard deviations of the noise; rates by the factor 1 + SIZE
    #[arg(long, allow_negative_numbers = true, default_value_t = SeriesSettings::default().size)]
    size: f64,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write
    #[arg(long, value_name = "FILE.csv")]
    out: PathBuf,
}

impl ChangesArgs {
    fn run(&self, talk: &dyn Fn(&str)) -> Result<()> {
        let Self { kind, rows, changes, size, seed, out } = self;
        let settings =
            SeriesSettings { kind: (*kind).into(), rows: *rows, changes: *changes, size: *size, seed: *seed };
        let simulated = changepoints::simulate::simulate(&settings)?;
        let (names, columns): (&[&str], Vec<&[f64]>) = match &simulated.series {
            Series::Events { times, .. } => (&["time"], vec![times]),
            Series::Rows { times, values, .. } => (&["time", "y"], vec![times, values]),
        };
        write(names.iter().copied(), &columns, out)?;
        talk(&format!("wrote {} rows to {}", simulated.series.len(), out.display()));
        if let Series::Events { start, end, .. } = simulated.series {
            talk(&format!("events were observed from {start} to {end}"));
        }
        let places: Vec<String> = simulated.positions.iter().map(f64::to_string).collect();
        talk(&format!("changes: {}", if places.is_empty() { "none".into() } else { places.join(", ") }));
        Ok(())
    }
}

#[derive(Args)]
struct MixtureArgs {
    /// Rows
    #[arg(long, default_value_t = 200)]
    rows: usize,
    /// Components
    #[arg(long, default_value_t = 3)]
    components: usize,
    /// Columns
    #[arg(long, default_value_t = 1)]
    columns: usize,
    /// Distance of neighbouring components, in standard deviations
    #[arg(long, allow_negative_numbers = true, default_value_t = 4.0)]
    separation: f64,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write
    #[arg(long, value_name = "FILE.csv")]
    out: PathBuf,
}

impl MixtureArgs {
    fn run(&self, talk: &dyn Fn(&str)) -> Result<()> {
        let Self { rows, components, columns, separation, seed, out } = self;
        if *components == 0 || *columns == 0 || !separation.is_finite() {
            return Err(Usage("components and columns must be at least 1, and a separation finite".into()).into());
        }
        let truth = mixture::simulate::Truth::apart(*components, *columns, *separation);
        let (values, _) = truth.draw(*rows, *seed);
        let names = mixture::simulate::names(*columns);
        let columns: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
        write(names.iter().map(String::as_str), &columns, out)?;
        talk(&format!("wrote {rows} rows of {components} components to {}", out.display()));
        Ok(())
    }
}

#[derive(Args)]
struct PeaksArgs {
    /// What is added to the background
    #[arg(long, value_enum, default_value_t = ShapeName::Gaussian)]
    shape: ShapeName,
    /// Rows, at even places from 0 to 10
    #[arg(long, default_value_t = 200)]
    rows: usize,
    /// Peaks or sinusoids
    #[arg(long, default_value_t = 3)]
    peaks: usize,
    /// Standard deviation of the noise; peaks are 0.6 to 1.5 high
    #[arg(long, allow_negative_numbers = true, default_value_t = 0.1)]
    noise: f64,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write
    #[arg(long, value_name = "FILE.csv")]
    out: PathBuf,
}

impl PeaksArgs {
    fn run(&self, talk: &dyn Fn(&str)) -> Result<()> {
        let Self { shape, rows, peaks, noise, seed, out } = self;
        if !(*noise >= 0.0 && noise.is_finite()) {
            return Err(Usage(format!("a noise of {noise}: it must be at least 0")).into());
        }
        let truth = peaks::simulate::Truth::spread((*shape).into(), *peaks, *noise);
        let (x, y) = truth.draw(*rows, *seed);
        write(["x", "y"].into_iter(), &[&x, &y], out)?;
        talk(&format!("wrote {rows} rows to {}", out.display()));
        let places: Vec<String> = truth.peaks.iter().map(|peak| format!("{:.3}", peak.position)).collect();
        let what = if matches!(shape, ShapeName::Sinusoid) { "frequencies" } else { "positions" };
        talk(&format!("{what}: {}", if places.is_empty() { "none".into() } else { places.join(", ") }));
        Ok(())
    }
}

#[derive(Args)]
struct LayersArgs {
    /// Periods, from 0.001 s to 1000 s
    #[arg(long, default_value_t = SoundingSettings::default().rows)]
    rows: usize,
    /// Layers, the half space below the others included
    #[arg(long, default_value_t = SoundingSettings::default().layers)]
    layers: usize,
    /// Errors as a share of apparent resistivities; those of phases are half of it, in radians
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, default_value_t = SoundingSettings::default().noise)]
    noise: f64,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write
    #[arg(long, value_name = "FILE.csv")]
    out: PathBuf,
}

impl LayersArgs {
    fn run(&self, talk: &dyn Fn(&str)) -> Result<()> {
        let Self { rows, layers, noise, seed, out } = self;
        let settings = SoundingSettings { rows: *rows, layers: *layers, noise: *noise, seed: *seed };
        let layers::Simulated { sounding, earth } = layers::simulate(&settings)?;
        let names = ["period", "resistivity", "resistivity_error", "phase", "phase_error"];
        let columns = [
            &sounding.periods[..],
            &sounding.resistivity,
            &sounding.resistivity_error,
            &sounding.phase,
            &sounding.phase_error,
        ];
        write(names.into_iter(), &columns, out)?;
        talk(&format!("wrote {rows} rows to {}", out.display()));
        let depths: Vec<String> = earth.depths.iter().map(|depth| format!("{depth:.0} m")).collect();
        talk(&format!("interfaces: {}", if depths.is_empty() { "none".into() } else { depths.join(", ") }));
        let values: Vec<String> = earth.values.iter().map(|value| format!("{value} Ωm")).collect();
        talk(&format!("layers: {}", values.join(", ")));
        Ok(())
    }
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
    /// How many nodes are categories, the last ones: in turn binary (no, yes), of three categories (a, b, c), and of ordered ones
    /// (low, mid, high; for `vti dag --ordered`)
    #[arg(long, value_name = "N", default_value_t = 0)]
    categories: usize,
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
    let (rows, columns) = args.kind.size();
    memory::refuse_cells(rows, columns)?;
    memory::refuse_parameters(args.kind.parameters())?;
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
        Kind::Changepoints(changes) => changes.run(talk),
        Kind::Mixture(mixture) => mixture.run(talk),
        Kind::Peaks(peaks) => peaks.run(talk),
        Kind::Layers(layers) => layers.run(talk),
    }
}

impl Kind {
    /// Rows and columns of the table, or of the largest that is needed to make it.
    fn size(&self) -> (usize, usize) {
        match self {
            Self::RobustSelection(RobustArgs { rows, covariates, .. })
            | Self::Correlated(CorrelatedArgs { rows, covariates, .. }) => (*rows, covariates.saturating_add(1)),
            Self::Dag(DagArgs { graph: LinearDagArgs { rows, nodes, .. }, .. })
            | Self::LinearDag(LinearDagArgs { rows, nodes, .. }) => (*rows.max(nodes), *nodes),
            Self::Changepoints(ChangesArgs { rows, .. }) | Self::Peaks(PeaksArgs { rows, .. }) => (*rows, 2),
            Self::Mixture(MixtureArgs { rows, columns, .. }) => (*rows, *columns),
            Self::Layers(LayersArgs { rows, .. }) => (*rows, 5),
        }
    }

    /// About how many parameters the table is made of, where they may be more than its cells.
    fn parameters(&self) -> f64 {
        match self {
            Self::Dag(DagArgs { graph: LinearDagArgs { nodes, .. }, hidden, .. }) => {
                (*nodes as f64).powi(2) * *hidden as f64
            }
            Self::Mixture(MixtureArgs { components, columns, .. }) => *components as f64 * (*columns as f64).powi(2),
            Self::Peaks(PeaksArgs { peaks, .. }) => 4.0 * *peaks as f64,
            Self::RobustSelection(_)
            | Self::Correlated(_)
            | Self::LinearDag(_)
            | Self::Changepoints(_)
            | Self::Layers(_) => 0.0,
        }
    }
}

fn write_selection(simulated: &Simulated, out: &Path, talk: &dyn Fn(&str)) -> Result<()> {
    let RegressionData { response_name, response, terms, .. } = &simulated.table;
    let names = std::iter::once(response_name.as_str()).chain(terms.iter().map(|term| term.name.as_str()));
    let columns: Vec<&[f64]> =
        std::iter::once(&response[..]).chain(terms.iter().map(|term| &term.values[..])).collect();
    write(names, &columns, out)?;
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
        let Self { nodes, rows, edge_probability, noise, categories, interventions, seed, out, truth_out } = self;
        let settings = SimulationSettings {
            nodes: *nodes,
            rows: *rows,
            sem,
            edge_probability: *edge_probability,
            noise: *noise,
            categories: *categories,
            set_probability: *interventions,
            seed: *seed,
        };
        let simulated = simulate(&settings)?;
        let names = &simulated.table.names;
        let column = |(node, column): (usize, &'_ Vec<f64>)| -> Vec<String> {
            match simulated.table.categories(node) {
                Some(levels) => column.iter().filter_map(|&place| levels.get(place as usize).cloned()).collect(),
                None => column.iter().map(f64::to_string).collect(),
            }
        };
        let columns: Vec<Vec<String>> = simulated.table.columns.iter().enumerate().map(column).collect();
        let set = |row: usize| (0..*nodes).find(|&node| simulated.interventions.is_set(row, node));
        let set = (*interventions > 0.0).then_some(|row: usize| set(row).map_or("", |node| names[node].as_str()));
        write_cells(names.iter().map(String::as_str), &columns, set.as_ref().map(|set| set as &Words<'_>), out)?;
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

/// Numbers are written so that they read back as the same numbers.
fn write<'a>(names: impl Iterator<Item = &'a str>, columns: &[&[f64]], out: &Path) -> Result<()> {
    let columns: Vec<Vec<String>> = columns.iter().map(|column| column.iter().map(f64::to_string).collect()).collect();
    write_cells(names, &columns, None, out)
}

/// Cells by columns; `set` is a last column.
fn write_cells<'a>(
    names: impl Iterator<Item = &'a str>,
    columns: &[Vec<String>],
    set: Option<&Words<'_>>,
    out: &Path,
) -> Result<()> {
    let mut table = CsvTable::new(Cells::Guarded, names.chain(set.map(|_| "set")))?;
    for row in 0..columns.first().map_or(0, Vec::len) {
        let cells = columns.iter().map(|column| column[row].clone());
        table.row(cells.chain(set.map(|set| set(row).to_string())))?;
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
