//! How many peaks, or sinusoids?

use std::sync::Arc;

use anyhow::Result;
use vti::answer::Subject;
use vti::problem::Problem;
use vti::problem::peaks::{PeakError, Peaks, Spectrum};

use super::{InClosedForm, Question, other_kind};
use crate::config::{Config, ProblemConfig};
use crate::data::{ColumnChoice, LoadedColumns};
use crate::failure::Usage;

/// A search for peaks with its data.
#[derive(Debug)]
pub(crate) struct PeakSearch {
    loaded: LoadedColumns,
    notes: Vec<String>,
    peaks: Peaks,
}

impl Question for PeakSearch {
    fn load(config: &Config) -> Result<Self> {
        let ProblemConfig::Peaks(asked) = &config.problem else { return Err(other_kind(config)) };
        let source = &config.source;
        let columns = vec![(asked.x.as_deref(), "--x"), (asked.y.as_deref(), "--y")];
        let choice = ColumnChoice { columns, missing: source.missing, missing_values: &source.missing_values };
        let loaded = LoadedColumns::load(&source.read()?, &choice)?;
        let explain = |error: PeakError| Usage(format!("{}: {error}", loaded.file));
        let (x, y) = (&loaded.columns[0], &loaded.columns[1]);
        let (spectrum, remarks) = Spectrum::new(x, y).map_err(|error| explain(error.into()))?;
        let peaks = Peaks::new(spectrum, asked.settings()).map_err(explain)?;
        let peaks = peaks.with_names(&loaded.names[0], &loaded.names[1]);
        let notes = loaded.notes.iter().cloned().chain(remarks).collect();
        Ok(Self { loaded, notes, peaks })
    }

    fn problem(&self) -> Arc<dyn Problem> {
        self.peaks.problem().clone()
    }

    fn fingerprint(&self) -> &str {
        &self.loaded.fingerprint
    }

    fn headline(&self) -> String {
        let settings = self.peaks.settings();
        let what = match settings.shape.words() {
            ("peak", peaks) => format!("{} {peaks}", settings.shape.name()),
            (_, others) => others.into(),
        };
        let rows = self.peaks.spectrum().rows();
        format!("{rows} rows, 0 to {} {what} over a background of degree {}", settings.max_peaks, settings.background)
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn subject(&self, config: &Config) -> Subject<'_> {
        let names = self.peaks.problem().parameter_names();
        let rows = self.peaks.spectrum().rows();
        let subject = Subject::of_count(&self.peaks, names, rows, &self.peaks.prior_in_words());
        subject.with_source(&config.source.data, self.fingerprint(), None)
    }

    fn in_closed_form(&self) -> Result<InClosedForm<'_>, String> {
        Err("evidences of peaks are not in closed form".into())
    }

    fn data_bytes(&self) -> f64 {
        16.0 * self.peaks.spectrum().rows() as f64
    }

    fn write_out(&self, config: &mut Config) {
        if let ProblemConfig::Peaks(asked) = &mut config.problem {
            (asked.x, asked.y) = (Some(self.loaded.names[0].clone()), Some(self.loaded.names[1].clone()));
            asked.prior = self.peaks.settings().prior.clone();
        }
    }
}
