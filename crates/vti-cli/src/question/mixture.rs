//! How many components has a mixture?

use std::sync::Arc;

use anyhow::Result;
use vti::answer::Subject;
use vti::problem::Problem;
use vti::problem::mixture::{Mixture, MixtureError, Observations};

use super::{InClosedForm, Question, other_kind};
use crate::config::{Config, ProblemConfig};
use crate::data::{ColumnChoice, LoadedColumns};
use crate::failure::Usage;

/// A mixture with its data.
#[derive(Debug)]
pub(crate) struct Mixed {
    loaded: LoadedColumns,
    mixture: Mixture,
}

impl Question for Mixed {
    fn load(config: &Config) -> Result<Self> {
        let ProblemConfig::Mixture(asked) = &config.problem else { return Err(other_kind(config)) };
        let source = &config.source;
        let columns = match asked.columns.as_slice() {
            [] => vec![(None, "--column")],
            named => named.iter().map(|name| (Some(name.as_str()), "--column")).collect(),
        };
        let choice = ColumnChoice { columns, missing: source.missing, missing_values: &source.missing_values };
        let loaded = LoadedColumns::load(&source.read()?, &choice)?;
        let explain = |error: MixtureError| Usage(format!("{}: {error}", loaded.file));
        let data =
            Observations::new(loaded.names.clone(), loaded.columns.clone()).map_err(|error| explain(error.into()))?;
        let mixture = Mixture::new(data, asked.settings()).map_err(explain)?;
        Ok(Self { loaded, mixture })
    }

    fn problem(&self) -> Arc<dyn Problem> {
        self.mixture.problem().clone()
    }

    fn fingerprint(&self) -> &str {
        &self.loaded.fingerprint
    }

    fn headline(&self) -> String {
        let (rows, most) = (self.mixture.data().rows(), self.mixture.counts());
        format!("{rows} rows of {}, 1 to {} normal components", self.loaded.names.join(", "), most.end())
    }

    fn notes(&self) -> &[String] {
        &self.loaded.notes
    }

    fn subject(&self, config: &Config) -> Subject<'_> {
        let names = self.mixture.problem().parameter_names();
        let rows = self.mixture.data().rows();
        let subject = Subject::of_count(&self.mixture, names, rows, &self.mixture.prior_in_words());
        subject.with_source(&config.source.data, self.fingerprint(), None)
    }

    fn in_closed_form(&self) -> Result<InClosedForm<'_>, String> {
        Err("evidences of mixtures are not in closed form".into())
    }

    fn data_bytes(&self) -> f64 {
        8.0 * (self.mixture.data().rows() * self.loaded.names.len()) as f64
    }

    fn write_out(&self, config: &mut Config) {
        if let ProblemConfig::Mixture(asked) = &mut config.problem {
            asked.columns.clone_from(&self.loaded.names);
            asked.prior = self.mixture.settings().prior.clone();
        }
    }
}
