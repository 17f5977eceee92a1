//! A density of one's own, which only the program knows that handed it over.

use std::sync::Arc;

use anyhow::Result;
use vti::answer::Subject;
use vti::problem::Problem;

use super::{InClosedForm, Question};
use crate::config::{Config, ProblemConfig};
use crate::failure::Usage;

/// A problem of a program's own.
pub(crate) struct Own {
    problem: Arc<dyn Problem>,
}

impl Own {
    pub(crate) fn new(problem: Arc<dyn Problem>) -> Self {
        Self { problem }
    }
}

impl Question for Own {
    fn load(config: &Config) -> Result<Self> {
        let hint = "hint: the program that has the function can work with the run: in Python, vti.load(DIR, log_density, space)";
        Err(Usage(format!("{}: the density of this run is a function of a program\n{hint}", config.source.data)).into())
    }

    fn problem(&self) -> Arc<dyn Problem> {
        self.problem.clone()
    }

    /// What was saved knows the problem by its densities.
    fn fingerprint(&self) -> &str {
        "own"
    }

    fn headline(&self) -> String {
        let (space, names) = (self.problem.space(), self.problem.parameter_names());
        format!("words of {} symbols, {} parameters", space.arities().len(), names.len())
    }

    fn notes(&self) -> &[String] {
        &[]
    }

    fn subject(&self, config: &Config) -> Subject<'_> {
        let subject = Subject::of(&*self.problem);
        match &config.problem {
            ProblemConfig::Own(asked) => match &asked.title {
                Some(title) => subject.with_title(title),
                None => subject,
            },
            _ => subject,
        }
    }

    fn in_closed_form(&self) -> Result<InClosedForm<'_>, String> {
        Err("evidences of a density of one's own are not known in closed form".into())
    }

    fn data_bytes(&self) -> f64 {
        0.0
    }
}
