//! `vti log-prob`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti::engine::{CpuEngine, Engine, Real};
use vti::posterior::Point;
use vti::problem::Problem;
use vti::problem::selection::Selection;
use vti::space::{Model, ModelSpace};

use super::deliver;
use crate::config::Precision;
use crate::data::{Cell, DataError, Raw, Source};
use crate::failure::{Ending, Usage};
use crate::output::{column_name, finish_csv};
use crate::rundir::RunDir;
use crate::samples::bits;
use crate::session::Session;
use crate::units::Units;

/// Options of `vti log-prob`.
#[derive(Args)]
pub(crate) struct LogProbArgs {
    /// The run directory
    dir: PathBuf,
    /// A table with a column for each parameter in the units of the data; empty cells are of parameters that the model does
    /// not have
    points: String,
    /// A CSV file; standard output by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &LogProbArgs) -> Result<Ending> {
    let (dir, config) = RunDir::open(&args.dir)?;
    let session = Session::new(config)?;
    match session.config.machine.precision {
        Precision::F32 => run_with::<f32>(&session, &dir, args),
        Precision::F64 => run_with::<f64>(&session, &dir, args),
    }
}

fn run_with<T: Real>(session: &Session, dir: &RunDir, args: &LogProbArgs) -> Result<Ending>
where
    CpuEngine<T>: Engine,
{
    let engine = session.engine::<T>()?;
    let mut posterior = session.posterior(dir, &engine)?;
    let raw = Source::read(&args.points)?.parse()?;
    let selection = &session.selection;
    let points = points(&raw, selection)?;
    let possible: Vec<Point> = points.iter().filter(|place| place.possible).map(|place| place.point.clone()).collect();
    let mut found = posterior.log_q(&possible)?.into_iter();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["model", "word", "log_q", "log_target"])?;
    for Place { point: Point { model, theta }, log_jacobian, possible } in &points {
        let (mut log_q, mut log_target) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        if *possible {
            let log_eta = selection.log_density(model, theta, &mut vec![0.0; theta.len()])?;
            log_q = found.next().unwrap_or(f64::NAN) + log_jacobian;
            log_target = selection.log_prior(model) + log_eta + log_jacobian;
        }
        writer.write_record([
            selection.space().label(model),
            bits(model),
            log_q.to_string(),
            log_target.to_string(),
        ])?;
    }
    deliver(args.out.as_deref(), &finish_csv(writer)?)
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
    let column = called(&column_name(name)).or_else(|| called(name)).ok_or_else(missing)?;
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

fn points(raw: &Raw, selection: &Selection) -> Result<Vec<Place>> {
    let units = Units::of(selection);
    let columns = units.names.iter().map(|name| column(raw, name)).collect::<Result<Vec<_>, _>>()?;
    let places: Vec<usize> = (0..units.names.len()).collect();
    (0..raw.rows())
        .map(|row| {
            let measured: Vec<f64> = columns.iter().map(|column| column[row]).collect();
            let active: Vec<usize> = places.iter().copied().filter(|&place| !measured[place].is_nan()).collect();
            let model = model_of(&active, selection).ok_or_else(|| {
                Usage(format!(
                    "{}: {}: no model has just these parameters\nhint: parameters that are in every model need a value, \
                     and those of one term come together",
                    raw.file,
                    raw.place(row)
                ))
            })?;
            let (theta, log_jacobian) = units.to_learned(&active, &measured);
            let possible = units.is_possible(&measured);
            Ok(Place { point: Point { model, theta }, log_jacobian, possible })
        })
        .collect()
}

/// The model that has just these parameters.
fn model_of(active: &[usize], selection: &Selection) -> Option<Model> {
    let design = selection.design();
    let mut next = selection.space().max_dim() - design.terms().iter().map(|(_, columns)| columns).sum::<usize>();
    let word: Vec<u16> = design
        .terms()
        .iter()
        .map(|(_, columns)| {
            let first = next;
            next += columns;
            u16::from(active.contains(&first))
        })
        .collect();
    let mut mask = vec![false; selection.space().max_dim()];
    selection.space().mark_active(&word, &mut mask);
    let expected: Vec<usize> = (0..mask.len()).filter(|&place| mask[place]).collect();
    (expected == active).then(|| word.into())
}
