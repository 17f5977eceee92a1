//! How many layers, where, and of what?

use std::sync::Arc;

use anyhow::Result;
use vti::answer::Subject;
use vti::prior::Distribution;
use vti::problem::Problem;
use vti::problem::layers::{
    Earth, Forward, LayerError, LayerProblem, LayerSettings, Magnetotelluric, Observed, Program, Sounding, View, layers,
};
use vti::workers::Workers;

use super::{InClosedForm, Question, other_kind};
use crate::config::{Config, LayersConfig, ProblemConfig};
use crate::data::{LayerChoice, LoadedLayers, Measured};
use crate::failure::Usage;

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
        try_out(&*forward, &settings)?;
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

/// Asks a program for two earths, so that one that does not work is found out before anything else.
fn try_out(forward: &dyn Forward, settings: &LayerSettings) -> Result<()> {
    let (Some(depth), Some(value)) = (&settings.prior.depth, &settings.prior.value) else { return Ok(()) };
    if !forward.is_batched() {
        return Ok(());
    }
    let earth = |interfaces: usize| Earth {
        depths: vec![depth.start(); interfaces],
        values: vec![value.start(); interfaces + 1],
    };
    let earths = if settings.max_layers > 1 { vec![earth(0), earth(1)] } else { vec![earth(0)] };
    let mut predicted = vec![f64::NAN; earths.len() * forward.len()];
    forward.predict(&earths, &mut predicted, &Workers::SINGLE).map_err(|error| Usage(error.to_string()))?;
    Ok(())
}
