//! Which covariates matter for a response?

use std::sync::Arc;

use anyhow::Result;
use vti::answer::Subject;
use vti::problem::Problem;
use vti::problem::selection::{ClosedForm, Selection, Standardise};
use vti::space::ModelSpace;

use super::{InClosedForm, Question, other_kind};
use crate::config::{Config, ProblemConfig};
use crate::data::{self, Loaded, Schema};

/// Variable selection with its data.
#[derive(Debug)]
pub(crate) struct Select {
    pub(crate) loaded: Loaded,
    pub(crate) selection: Arc<Selection>,
}

impl Question for Select {
    fn load(config: &Config) -> Result<Self> {
        let ProblemConfig::Select(asked) = &config.problem else { return Err(other_kind(config)) };
        let settings = asked.settings();
        let loaded = data::load(&config.source.read()?, &asked.choice(&config.source), &settings.likelihood)?;
        loaded.check_rows(&settings)?;
        let standardise = if asked.standardize { Standardise::Full } else { Standardise::Raw };
        let selection = Selection::new(&loaded.table, standardise, &settings).map_err(|error| loaded.locate(error))?;
        Ok(Self { loaded, selection: Arc::new(selection) })
    }

    fn problem(&self) -> Arc<dyn Problem> {
        self.selection.clone()
    }

    fn fingerprint(&self) -> &str {
        &self.loaded.fingerprint
    }

    fn headline(&self) -> String {
        let design = self.selection.design();
        let space = self.selection.space();
        let models = match space.log_count() {
            few if space.is_constrained() && few < 1e6f64.ln() => format!("{:.0}", few.exp()),
            log_count => format!("2^{:.0}", log_count / std::f64::consts::LN_2),
        };
        format!(
            "{} rows, {} from {} optional terms ({models} models)",
            self.loaded.rows(),
            design.response_name(),
            design.terms().len(),
        )
    }

    fn notes(&self) -> &[String] {
        &self.loaded.notes
    }

    fn subject(&self, config: &Config) -> Subject<'_> {
        let subject = Subject::of_selection(&self.selection);
        let subject = subject.with_source(&config.source.data, self.fingerprint(), None);
        subject.with_left_out(&self.loaded.schema.left_out)
    }

    fn schema(&self) -> Option<&Schema> {
        Some(&self.loaded.schema)
    }

    fn in_closed_form(&self) -> Result<InClosedForm<'_>, String> {
        let closed = ClosedForm::new(&self.selection).map_err(|error| error.to_string())?;
        Ok(InClosedForm::Selection(closed.selection()))
    }

    fn data_bytes(&self) -> f64 {
        let design = self.selection.design();
        let columns = design.columns() as f64;
        8.0 * (3.0 * design.rows() as f64 * columns + 2.0 * columns * columns)
    }
}
