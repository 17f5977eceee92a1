//! The right panel of the figure, and the appendix's multivariate one: the posterior of the parameters of one model, by
//! chains and as learned.

use anyhow::{Context, Result};
use vti::device::Cpu;
use vti::models::ModelsSettings;
use vti::posterior::Posterior;
use vti::problem::selection::simulate::Misspecification;
use vti::rjmcmc::Chains;
use vti::space::Model;
use vti_report::plot::{Axis, Colour, Contours, Figure, Panel, Points, Sample, pairs};

use super::settings::JointSettings;
use crate::results::Results;
use crate::session::Session;
use crate::study::{Prior, Study, data_seed, label, spread, states_by_model};

/// Data sets among which one is looked for whose data-generating model has both covariates.
const MAX_DATA_SETS: usize = 1000;
/// Batches of draws from q among which those of the model are looked for, and draws of each.
const BATCHES: u32 = 40;
const BATCH: usize = 20_000;

/// Fits one data set, writes the plots, and says in words what they show.
pub(super) fn run<T>(session: &Session<'_>, results: &Results<T>, settings: &JointSettings, seed: u64) -> Result<String>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let Chosen { data_set, study, chains, model, rows } = choose(session, settings, seed)?;
    let fit = study.fit(&session.device, &settings.flow, &ModelsSettings::Auto {}, &settings.train)?;
    let reference = by_parameter(spread(&rows, settings.draws).map(|row| chains.draws.theta(row)));
    let learned = draws(&fit.posterior, &model, settings.draws)?;
    let names = parameters(&model);
    let samples = [("RJMCMC", &reference), ("VTI", &learned)].map(|(name, draws)| Sample {
        name: name.into(),
        draws: draws.clone(),
        weights: Vec::new(),
    });
    results.write("multivariate.svg", &pairs(&names, &samples).svg())?;
    results.write("bivariate.svg", &bivariate(&names, &samples, settings).svg())?;
    session.say(&format!(
        "one posterior: plots of {} draws by chains and {} as learned",
        rows.len(),
        counted(&learned)
    ));
    let what =
        if model == study.generating { "the data-generating model" } else { "the most probable model with both" };
    Ok(format!(
        "bivariate.svg and multivariate.svg show the posterior of {what}, {}, of data set {data_set} (high \
         misspecification, focused prior, 2⁷ models): {} states of the chains and {} draws from q. It is the first data set \
         whose data-generating model has both covariates that the paper shows, x{} and x{}; that model itself is shown where \
         the chains were there often enough.",
        label(&model),
        rows.len(),
        counted(&learned),
        settings.shown[0],
        settings.shown[1],
    ))
}

fn counted(draws: &[Vec<f64>]) -> usize {
    draws.first().map_or(0, Vec::len)
}

/// A data set, and a model of it with the states that chains had there.
struct Chosen {
    data_set: usize,
    study: Study,
    chains: Chains,
    model: Model,
    rows: Vec<usize>,
}

/// The first data set whose data-generating model has both covariates that are shown; that model if the chains were there
/// often, else the most probable one with both.
fn choose(session: &Session<'_>, settings: &JointSettings, seed: u64) -> Result<Chosen> {
    let both = |model: &Model| settings.shown.iter().all(|&covariate| model[covariate - 1] == 1);
    for data_set in 1..=MAX_DATA_SETS {
        let study = Study::new(Misspecification::High, Prior::Focused, settings.covariates, data_seed(seed, data_set))?;
        if !both(&study.generating) {
            continue;
        }
        let chains = study.reference(&session.device, &settings.reference)?;
        session.say(&format!("one posterior: reference chains done, R̂ {:.3}", chains.rhat));
        let mut states = states_by_model(&chains);
        let own = states.remove(&study.generating).unwrap_or_default();
        let other = states.into_iter().filter(|(model, _)| both(model)).max_by_key(|(_, rows)| rows.len());
        let other = other.filter(|(_, rows)| own.len() < settings.least_states && rows.len() > own.len());
        let (model, rows) = other.unwrap_or_else(|| (study.generating.clone(), own));
        return Ok(Chosen { data_set, study, chains, model, rows });
    }
    None.context("no data set has both covariates that are to be shown")
}

/// The intercept is θ₀.
fn parameters(model: &[u16]) -> Vec<String> {
    let covariates = model.iter().enumerate().filter(|(_, bit)| **bit == 1).map(|(place, _)| place + 1);
    std::iter::once(0).chain(covariates).map(name).collect()
}

fn name(parameter: usize) -> String {
    format!("θ{}", ['₀', '₁', '₂', '₃', '₄', '₅', '₆', '₇', '₈', '₉'].get(parameter).copied().unwrap_or('?'))
}

/// Draws of the parameters of a model, one list per parameter.
fn draws(posterior: &Posterior<Cpu<f32>>, model: &Model, count: usize) -> Result<Vec<Vec<f64>>> {
    let mut found: Vec<Vec<f64>> = Vec::new();
    for batch in 0..BATCHES {
        let drawn = posterior.draw(BATCH, batch)?;
        let own = (0..drawn.len()).filter(|&row| *drawn.word(row) == **model).map(|row| drawn.theta(row).to_vec());
        found.extend(own);
        if found.len() >= count {
            break;
        }
    }
    found.truncate(count);
    Ok(by_parameter(found.iter().map(Vec::as_slice)))
}

fn by_parameter<'a>(draws: impl Iterator<Item = &'a [f64]>) -> Vec<Vec<f64>> {
    let mut lists: Vec<Vec<f64>> = Vec::new();
    for draw in draws {
        lists.resize(draw.len(), Vec::new());
        lists.iter_mut().zip(draw).for_each(|(list, &value)| list.push(value));
    }
    lists
}

/// Two panels side by side, with the same ranges.
fn bivariate(names: &[String], samples: &[Sample; 2], settings: &JointSettings) -> Figure {
    let shown = settings.shown.map(name);
    let place = |wanted: &String| names.iter().position(|name| name == wanted);
    let list = |sample: &Sample, wanted: &String| {
        place(wanted).and_then(|place| sample.draws.get(place)).cloned().unwrap_or_default()
    };
    let range = |wanted: &String| {
        let mut all: Vec<f64> = samples.iter().flat_map(|sample| list(sample, wanted)).collect();
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all.get((share * all.len() as f64) as usize).copied().unwrap_or(share);
        let room = 0.1 * (at(0.998) - at(0.002));
        (at(0.002) - room, at(0.998) + room)
    };
    let (x, y) = (range(&shown[0]), range(&shown[1]));
    let panel = |(place, sample): (usize, &Sample)| {
        let points: Vec<(f64, f64)> = list(sample, &shown[0]).into_iter().zip(list(sample, &shown[1])).collect();
        let colour = Colour::Series(place);
        let dots = Points { points: points.clone(), colour, radius: 0.9, opacity: 0.35, ..Points::default() };
        let shares = vec![0.1, 0.3, 0.5, 0.7, 0.9];
        Panel {
            title: sample.name.clone(),
            x: Axis::linear(&shown[0]).within(x.0, x.1),
            y: Axis::linear(if place == 0 { shown[1].as_str() } else { "" }).within(y.0, y.1),
            layers: vec![dots.into(), Contours { points, shares, colour, ..Contours::default() }.into()],
            ..Panel::default()
        }
    };
    Figure {
        panels: samples.iter().enumerate().map(panel).collect(),
        columns: 2,
        panel_size: (260.0, 240.0),
        ..Figure::default()
    }
}
