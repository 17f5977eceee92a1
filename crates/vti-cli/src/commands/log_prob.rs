//! `vti log-prob`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti::answer::Subject;
use vti::device::Device;
use vti::posterior::{Point, Posterior};
use vti::problem::Problem;
use vti::space::{Model, ModelSpace};
use vti_report::files::{Cells, CsvTable, column_name};

use super::deliver;
use crate::closed_form;
use crate::data::{Cell, DataError, Raw, Source, Words};
use crate::failure::{Ending, Usage};
use crate::question::{Job, Question, start};
use crate::rundir::RunDir;
use crate::session::Session;

/// Options of `vti log-prob`.
#[derive(Args)]
pub(crate) struct LogProbArgs {
    /// The run directory
    dir: PathBuf,
    /// A table with a column for each parameter in the units of the data; empty cells are of parameters that the model does
    /// not have. Where several words mean one model, as orders do a graph, a column `word` may say which
    points: String,
    /// A CSV file; standard output by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Leave cells as they are, also those that a spreadsheet would take for formulas
    #[arg(long)]
    raw_csv: bool,
}

pub(crate) fn run(args: &LogProbArgs) -> Result<Ending> {
    let (dir, config) = RunDir::open(&args.dir)?;
    start(config, Densities { dir: &dir, args })
}

struct Densities<'a> {
    dir: &'a RunDir,
    args: &'a LogProbArgs,
}

impl Job for Densities<'_> {
    fn run<Q: Question, D: Device>(self, session: Session<Q>, device: D) -> Result<Ending> {
        let Self { dir, args } = self;
        let found = of_run(&session, dir, &device, &Source::read(&args.points)?)?;
        let mut table = CsvTable::new(Cells::raw_if(args.raw_csv), ["model", "word", "log_q", "log_target"])?;
        for PointDensity { label, word, log_q, log_target } in found {
            table.row([label, word, log_q.to_string(), log_target.to_string()])?;
        }
        deliver(args.out.as_deref(), &table.bytes()?)
    }
}

/// What is known of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct PointDensity {
    /// Its model, as people read it.
    pub label: String,
    /// Its model's symbols.
    pub word: String,
    /// `log q(m, θ)`, in the units of the data; of exact answers `log p(m, θ | y)`.
    pub log_q: f64,
    /// `log p(m) p(y, θ | m)`, likewise.
    pub log_target: f64,
}

/// Log densities of a finished run at the points that a table lists.
pub(crate) fn of_run<Q: Question, D: Device>(
    session: &Session<Q>,
    dir: &RunDir,
    device: &D,
    source: &Source,
) -> Result<Vec<PointDensity>> {
    let known = if session.config.is_learned() {
        Known::Learned(Box::new(session.posterior(dir, device)?))
    } else {
        Known::InClosedForm(closed_form::posterior(session, dir, device.workers())?)
    };
    densities(source, &session.question.subject(&session.config), &known, &*session.problem())
}

/// Log densities at the points that a table lists.
pub(crate) fn densities<D: Device>(
    source: &Source,
    subject: &Subject<'_>,
    known: &Known<'_, D>,
    problem: &dyn Problem,
) -> Result<Vec<PointDensity>> {
    let (raw, words) = (source.parse(&Words::default())?, source.texts("word")?);
    raw.check_names()?;
    let points = points(&raw, words.as_deref(), subject, known, problem.space())?;
    let possible: Vec<Point> = points.iter().filter(|place| place.possible).map(|place| place.point.clone()).collect();
    let mut found = known.log_q(&possible)?.into_iter();
    let density = |Place { point: Point { model, theta }, log_jacobian, possible }: &Place| {
        let (mut log_q, mut log_target) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        if *possible {
            let log_density = problem.log_density(model, theta, &mut vec![0.0; theta.len()])?;
            log_q = found.next().unwrap_or(f64::NAN) + log_jacobian;
            log_target = problem.log_prior(model) + log_density + log_jacobian;
        }
        Ok(PointDensity { label: problem.space().label(model), word: model.to_string(), log_q, log_target })
    };
    points.iter().map(density).collect()
}

/// A point in learned parameters.
struct Place {
    point: Point,
    /// By how much log densities rise in the units of the data.
    log_jacobian: f64,
    /// Whether densities are positive there.
    possible: bool,
}

/// The column of a parameter, called as `vti sample` calls it or as the parameter itself. Columns of no parameter may stand
/// beside them.
fn column<'a>(raw: &'a Raw, name: &str) -> Result<&'a [f64], DataError> {
    let called = |wanted: &str| raw.columns.iter().find(|column| column.name == wanted);
    let missing = || DataError::MissingColumn { file: raw.file.clone(), name: name.into(), names: raw.names() };
    let own = column_name(name);
    let column = called(&own).or_else(|| called(&Cells::Guarded.cell(&own))).or_else(|| called(name));
    let column = column.ok_or_else(missing)?;
    let (file, column_name) = (|| raw.file.clone(), || column.name.clone());
    for (row, cell) in &column.others {
        if let Cell::Text(cell) = cell {
            let (place, cell) = (raw.place(*row), cell.clone());
            return Err(DataError::NotNumber { file: file(), place, column: column_name(), cell });
        }
    }
    match column.numbers.iter().position(|number| number.is_infinite()) {
        None => Ok(&column.numbers),
        Some(row) => {
            let (place, value) = (raw.place(row), column.numbers[row]);
            Err(DataError::NotFinite { file: file(), place, column: column_name(), value })
        }
    }
}

/// What densities are asked of.
pub(crate) enum Known<'a, D: Device> {
    Learned(Box<Posterior<D>>),
    InClosedForm(closed_form::Known<'a>),
}

impl<D: Device> Known<'_, D> {
    fn active_parameters(&self, model: &Model) -> Vec<usize> {
        match self {
            Self::Learned(posterior) => posterior.active_parameters(model),
            Self::InClosedForm(posterior) => posterior.active_parameters(model),
        }
    }

    /// `log q(m, θ)`, or `log p(m, θ | y)` where that is known.
    fn log_q(&self, points: &[Point]) -> Result<Vec<f64>> {
        match self {
            Self::Learned(posterior) => Ok(posterior.log_q(points)?),
            Self::InClosedForm(posterior) => {
                Ok(points.iter().map(|point| posterior.log_prob(point)).collect::<Result<_, _>>()?)
            }
        }
    }
}

fn points<D: Device>(
    raw: &Raw,
    words: Option<&[String]>,
    subject: &Subject<'_>,
    known: &Known<'_, D>,
    space: &dyn ModelSpace,
) -> Result<Vec<Place>> {
    let units = subject.units();
    let columns = units.names().iter().map(|name| column(raw, name)).collect::<Result<Vec<_>, _>>()?;
    let point = |row: usize| {
        let measured: Vec<f64> = columns.iter().map(|column| column[row]).collect();
        let active: Vec<usize> = (0..measured.len()).filter(|&place| !measured[place].is_nan()).collect();
        let fits = |model: &Model| known.active_parameters(model) == active;
        let found = subject.model_of(&active).filter(fits);
        let word = words.map(|words| words[row].as_str()).filter(|word| !word.is_empty());
        let (file, place) = (&raw.file, raw.place(row));
        let no_model = || {
            Usage(format!(
                "{file}: {place}: no model has just these parameters\nhint: parameters that are in every model need a value, and \
                 those of one term come together"
            ))
        };
        let model = match (found, word) {
            (Some(model), None) => model,
            (Some(model), Some(word)) => named(word, &model, space).ok_or_else(|| {
                Usage(format!(
                    "{file}: {place}: the word {word} does not mean the model of these parameters ({model} does)\nhint: \
                     take the column `word` out"
                ))
            })?,
            // Of a problem of one's own nobody knows the model by its parameters.
            (None, Some(word)) => allowed(word, space).filter(fits).ok_or_else(no_model)?,
            (None, None) => return Err(no_model().into()),
        };
        let (theta, log_jacobian) = units.to_learned(&active, &measured);
        let possible = units.is_possible(&measured);
        Ok(Place { point: Point { model, theta }, log_jacobian, possible })
    };
    (0..raw.rows()).map(point).collect()
}

/// A word as it is written, if it means this model.
fn named(text: &str, model: &Model, space: &dyn ModelSpace) -> Option<Model> {
    let word = allowed(text, space)?;
    let mut canonical = word.to_vec();
    space.canonical(&mut canonical);
    (canonical[..] == model[..]).then_some(word)
}

/// A word as it is written, if it is one of the space.
fn allowed(text: &str, space: &dyn ModelSpace) -> Option<Model> {
    let symbols: Result<Vec<u16>, _> = if text.contains(' ') || space.arities().len() == 1 {
        text.split_whitespace().map(str::parse).collect()
    } else {
        text.chars().map(|symbol| symbol.to_string().parse()).collect()
    };
    symbols.ok().filter(|word| space.is_allowed(word)).map(Model::from)
}
