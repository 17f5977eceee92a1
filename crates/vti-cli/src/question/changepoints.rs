//! How many changes, and when?

use std::sync::Arc;

use anyhow::Result;
use vti::answer::Subject;
use vti::problem::Problem;
use vti::problem::changepoints::{ChangePointError, ChangePoints, Kind, Series};

use super::{InClosedForm, Question, other_kind};
use crate::config::{Config, ProblemConfig};
use crate::data::{LoadedSeries, SeriesChoice};
use crate::failure::Usage;

/// A search for changes with its data.
#[derive(Debug)]
pub(crate) struct Changes {
    loaded: LoadedSeries,
    pub(crate) problem: Arc<ChangePoints>,
}

impl Question for Changes {
    fn load(config: &Config) -> Result<Self> {
        let ProblemConfig::Changepoints(asked) = &config.problem else { return Err(other_kind(config)) };
        let source = &config.source;
        let choice = SeriesChoice {
            kind: asked.series,
            time: asked.time.as_deref(),
            value: asked.value.as_deref(),
            exposure: asked.exposure.as_deref(),
            window: [asked.start, asked.end],
            missing: source.missing,
            missing_values: &source.missing_values,
        };
        let loaded = LoadedSeries::load(&source.read()?, &choice)?;
        let explain = |error: ChangePointError| Usage(format!("{}: {error}", loaded.file));
        let problem = ChangePoints::new(loaded.series.clone(), asked.settings()).map_err(explain)?;
        let problem = problem.with_names(loaded.time.as_deref(), loaded.value.as_deref());
        Ok(Self { loaded, problem: Arc::new(problem) })
    }

    fn problem(&self) -> Arc<dyn Problem> {
        self.problem.clone()
    }

    fn fingerprint(&self) -> &str {
        &self.loaded.fingerprint
    }

    fn headline(&self) -> String {
        let count = self.loaded.series.len();
        let what = match self.problem.settings().kind {
            Kind::Events => "events, changes of their rate",
            Kind::Counts => "rows, changes of the rate of counts",
            Kind::Means => "rows, changes of the mean",
            Kind::Slopes => "rows, changes of the line",
        };
        let window = match &self.loaded.series {
            Series::Events { start, end, .. } => format!(" from {start} to {end}"),
            Series::Rows { .. } => String::new(),
        };
        format!("{count} {what}{window}, at most {} changes", self.problem.max_changes())
    }

    fn notes(&self) -> &[String] {
        &self.loaded.notes
    }

    fn subject(&self, config: &Config) -> Subject<'_> {
        let names = self.problem.parameter_names();
        let subject =
            Subject::of_count(&*self.problem, names, self.loaded.series.len(), &self.problem.prior_in_words());
        subject.with_source(&config.source.data, self.fingerprint(), None)
    }

    fn in_closed_form(&self) -> Result<InClosedForm<'_>, String> {
        Ok(InClosedForm::Changes(&self.problem))
    }

    fn data_bytes(&self) -> f64 {
        24.0 * self.loaded.series.len() as f64
    }

    fn write_out(&self, config: &mut Config) {
        if let ProblemConfig::Changepoints(asked) = &mut config.problem {
            let settings = self.problem.settings();
            asked.max_changes = settings.max_changes;
            asked.prior = settings.prior.clone();
        }
    }
}
