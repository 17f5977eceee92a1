//! How many layers, where, and of what?

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use vti::answer::Subject;
use vti::check::Depth;
use vti::prior::Distribution;
use vti::problem::Problem;
use vti::problem::layers::{
    Earth, Forward, LayerError, LayerProblem, LayerSettings, Magnetotelluric, Observed, Program, Sounding, View, layers,
};
use vti::train::BOUND_EVERY;
use vti::workers::Workers;

use super::{InClosedForm, Question, other_kind};
use crate::config::{Config, LayersConfig, ProblemConfig};
use crate::data::{LayerChoice, LoadedLayers, Measured};
use crate::failure::Usage;
use crate::progress::duration;

/// What layers have under magnetotelluric data.
const RESISTIVITY: &str = "resistivity";

/// A search for layers with its data.
#[derive(Debug)]
pub(crate) struct Layered {
    loaded: LoadedLayers,
    settings: LayerSettings,
    property: String,
    problem: Arc<LayerProblem>,
}

impl Layered {
    /// Magnetotelluric data: priors that nobody gave follow from them.
    fn of_sounding(
        sounding: &Sounding,
        settings: LayerSettings,
    ) -> Result<(Observed, Arc<dyn Forward>, LayerSettings), LayerError> {
        let forward = Arc::new(Magnetotelluric::new(&sounding.periods));
        Ok((sounding.observed()?, forward, settings.for_sounding(sounding)))
    }

    /// Whatever a program predicts.
    fn of_program(
        asked: &LayersConfig,
        loaded: &LoadedLayers,
        x: Option<&Vec<f64>>,
        rows: usize,
    ) -> Result<Arc<dyn Forward>> {
        let program = Program::new(&asked.program().map_err(Usage)?, rows)?;
        let numbers = || (1..=rows).map(|row| row as f64).collect();
        let view = View {
            name: loaded.columns.value.clone().unwrap_or_default(),
            x_label: x.and(loaded.columns.x.clone()).unwrap_or_else(|| "row".into()),
            x: x.cloned().unwrap_or_else(numbers),
            ..View::default()
        };
        Ok(Arc::new(program.with_view(view)))
    }
}

impl Question for Layered {
    fn load(config: &Config) -> Result<Self> {
        let ProblemConfig::Layers(asked) = &config.problem else { return Err(other_kind(config)) };
        let (source, is_sounding) = (&config.source, asked.is_sounding());
        let share = asked.relative_error;
        if !(share > 0.0 && share.is_finite()) {
            return Err(Usage(format!("relative_error is {share}, it must be positive")).into());
        }
        let choice = LayerChoice {
            columns: &asked.columns,
            is_sounding,
            relative_error: share,
            missing: source.missing,
            missing_values: &source.missing_values,
        };
        let mut loaded = LoadedLayers::load(&source.read()?, &choice)?;
        if !loaded.has_errors {
            loaded.notes.push(format!(
                "no column has errors: they are taken as {} % of {}, {}",
                100.0 * share,
                if is_sounding {
                    "apparent resistivities, half as many radians of phases"
                } else {
                    "the data's spread"
                },
                if asked.errors.is_none() { "times a factor that is inferred" } else { "as asked for" },
            ));
        }
        let property = if is_sounding { RESISTIVITY.to_string() } else { asked.property.clone() };
        let settings = asked.settings(loaded.has_errors);
        let explain = |error: LayerError| Usage(format!("{}: {}", source.data, told(&error)));
        let (observed, forward, settings) = match &loaded.measured {
            Measured::Sounding(sounding) => Self::of_sounding(sounding, settings).map_err(explain)?,
            Measured::Data(observed, x) => {
                let forward = Self::of_program(asked, &loaded, x.as_ref(), observed.values.len())?;
                (observed.clone(), forward, settings.with_factor())
            }
        };
        let problem = layers(observed, Arc::clone(&forward), &property, &settings).map_err(explain)?;
        if let Some(each) = try_out(&*forward, &settings)? {
            loaded.notes.push(in_words(about_calls(config), each));
        }
        Ok(Self { loaded, settings, property, problem: Arc::new(problem) })
    }

    fn problem(&self) -> Arc<dyn Problem> {
        self.problem.clone()
    }

    fn fingerprint(&self) -> &str {
        &self.loaded.fingerprint
    }

    fn headline(&self) -> String {
        let what = match &self.loaded.measured {
            Measured::Sounding(_) => "periods of magnetotelluric data",
            Measured::Data(..) => "data",
        };
        let most = self.settings.max_layers;
        format!("{} {what}, at most {most} layers, that is {} interfaces", self.loaded.len(), most.saturating_sub(1))
    }

    fn notes(&self) -> &[String] {
        &self.loaded.notes
    }

    fn subject(&self, config: &Config) -> Subject<'_> {
        let (names, prior) = (self.problem.parameter_names(), self.settings.in_words(&self.property));
        let subject = Subject::of_count(&*self.problem, names, self.loaded.len(), &prior);
        subject.with_source(&config.source.data, self.fingerprint(), None)
    }

    fn in_closed_form(&self) -> Result<InClosedForm<'_>, String> {
        Err("evidences of layers are not in closed form".into())
    }

    fn data_bytes(&self) -> f64 {
        48.0 * self.loaded.len() as f64
    }

    fn write_out(&self, config: &mut Config) {
        if let ProblemConfig::Layers(asked) = &mut config.problem {
            asked.errors = Some(self.settings.errors);
            asked.prior = self.settings.prior.clone();
            asked.columns = self.loaded.columns.clone();
        }
    }
}

/// What is wrong, and what to do about it.
fn told(error: &LayerError) -> String {
    match error {
        LayerError::NoPrior { what: "depth" } => format!("{error}\nhint: --depth-prior log-uniform:LOW,HIGH"),
        LayerError::NoPrior { .. } => format!("{error}\nhint: --value-prior uniform:LOW,HIGH or log-uniform:LOW,HIGH"),
        _ => error.to_string(),
    }
}

/// Earths of a batch that is timed, where the first two take less than this.
const BATCH: usize = 128;
const QUICK: Duration = Duration::from_millis(200);

/// Asks a program for two earths, so that one that does not work is found out before anything else, and for more where it is quick. The
/// seconds that each takes; none where what predicts is no program.
fn try_out(forward: &dyn Forward, settings: &LayerSettings) -> Result<Option<f64>> {
    let (Some(depth), Some(value)) = (&settings.prior.depth, &settings.prior.value) else { return Ok(None) };
    if !forward.is_batched() {
        return Ok(None);
    }
    let most = settings.max_layers.saturating_sub(1).min(1);
    let timed = |count: usize| {
        let earth = |number: usize| Earth {
            depths: vec![depth.start(); number % (most + 1)],
            values: vec![value.start(); number % (most + 1) + 1],
        };
        let earths: Vec<Earth> = (0..count).map(earth).collect();
        let mut predicted = vec![f64::NAN; earths.len() * forward.len()];
        let start = Instant::now();
        let asked = forward.predict(&earths, &mut predicted, &Workers::SINGLE);
        asked.map_err(|error| Usage(error.to_string()))?;
        anyhow::Ok(start.elapsed())
    };
    let (mut count, mut took) = (most + 1, timed(most + 1)?);
    if took < QUICK {
        (count, took) = (BATCH, timed(BATCH)?);
    }
    Ok(Some(took.as_secs_f64() / count as f64))
}

/// How often a run asks for a prediction at least: by particles for training and for a first look beyond what was learned, by draws,
/// and by looks at the bound.
fn about_calls(config: &Config) -> f64 {
    let (train, check) = (&config.train, &config.check);
    let opinion = if check.opinion.depth == Depth::None { 0.0 } else { check.opinion.smc.about_calls() };
    let bounds = train.steps as f64 / BOUND_EVERY as f64 * train.batch as f64;
    train.particles.about_calls() + opinion + check.draws as f64 + bounds
}

fn in_words(calls: f64, each: f64) -> String {
    let number =
        if calls < 1e6 { format!("{:.0} thousand", calls / 1e3) } else { format!("{:.1} million", calls / 1e6) };
    format!(
        "the program will be asked for about {number} earths, and for more if a first look beyond what was learned does not settle it: \
         at {} each on one thread, as a first batch took, about {}; fewer with smaller train.particles and check.opinion.smc (--set)",
        short(each),
        duration(calls * each)
    )
}

/// A short time.
fn short(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", 1e6 * s),
        s if s < 1.0 => format!("{:.1} ms", 1e3 * s),
        s => format!("{s:.1} s"),
    }
}
