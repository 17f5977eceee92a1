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
use crate::data::{DataError, Raw, Source};
use crate::failure::{Ending, Usage};
use crate::output::finish_csv;
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
    let found = posterior.log_q(&points.iter().map(|(point, _)| point.clone()).collect::<Vec<_>>())?;
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["model", "word", "log_q", "log_target"])?;
    for ((point, log_jacobian), log_q) in points.iter().zip(found) {
        let Point { model, theta } = point;
        let log_eta = selection.log_density(model, theta, &mut vec![0.0; theta.len()])?;
        let log_target = selection.log_prior(model) + log_eta + log_jacobian;
        writer.write_record([
            selection.space().label(model),
            bits(model),
            (log_q + log_jacobian).to_string(),
            log_target.to_string(),
        ])?;
    }
    deliver(args.out.as_deref(), &finish_csv(writer)?)
}

/// Points in learned parameters, and by how much log densities rise in the units of the data.
fn points(raw: &Raw, selection: &Selection) -> Result<Vec<(Point, f64)>> {
    let units = Units::of(selection);
    let columns: Vec<Option<&[f64]>> = units
        .names
        .iter()
        .map(|name| raw.columns.iter().find(|column| column.name == *name).map(|column| column.numbers.as_slice()))
        .collect();
    // Columns of no parameter may stand beside them: those that `vti sample` writes.
    let places: Vec<usize> = (0..units.names.len()).collect();
    let missing = |place: &&usize| columns[**place].is_none();
    if let Some(place) = places.iter().find(missing) {
        let name = units.names[*place].clone();
        return Err(DataError::MissingColumn { file: raw.file.clone(), name, names: raw.names() }.into());
    }
    let value = |row: usize, place: usize| columns[place].map_or(f64::NAN, |column| column[row]);
    (0..raw.rows())
        .map(|row| {
            let measured: Vec<f64> = places.iter().map(|&place| value(row, place)).collect();
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
            Ok((Point { model, theta }, log_jacobian))
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
