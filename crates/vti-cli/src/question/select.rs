//! Which covariates matter for a response?

use anyhow::Result;
use vti::device::Device;
use vti::problem::Problem;
use vti::problem::selection::{Enumeration, EnumerationLimits, Selection, Standardise, enumerate};
use vti::space::{Model, ModelSpace};

use super::{Exact, Question, other_kind};
use crate::answer::Answer;
use crate::config::{Config, ProblemConfig};
use crate::data::{self, Loaded, Schema};
use crate::summary::{DataSummary, Found, Inclusion, Ordered, SelectFound};
use crate::units::Units;

/// Variable selection with its data.
#[derive(Debug)]
pub(crate) struct Select {
    pub(crate) loaded: Loaded,
    pub(crate) selection: Selection,
}

impl Question for Select {
    type Problem = Selection;

    fn load(config: &Config) -> Result<Self> {
        let ProblemConfig::Select(asked) = &config.problem else { return Err(other_kind(config)) };
        let settings = asked.settings();
        let loaded = data::load(&config.source.data, &asked.choice(&config.source), &settings.likelihood)?;
        loaded.check_rows(&settings)?;
        let standardise = if asked.standardize { Standardise::Full } else { Standardise::Raw };
        let selection = Selection::new(&loaded.table, standardise, &settings).map_err(|error| loaded.locate(error))?;
        Ok(Self { loaded, selection })
    }

    fn problem(&self) -> &Selection {
        &self.selection
    }

    fn fingerprint(&self) -> &str {
        &self.loaded.fingerprint
    }

    fn headline(&self) -> String {
        let design = self.selection.design();
        let models = self.selection.space().log_count() / std::f64::consts::LN_2;
        format!(
            "{} rows, {} from {} optional terms (2^{models:.0} models)",
            self.loaded.rows(),
            design.response_name(),
            design.terms().len(),
        )
    }

    fn notes(&self) -> &[String] {
        &self.loaded.notes
    }

    fn units(&self) -> Units {
        Units::of_selection(&self.selection)
    }

    fn model_of(&self, active: &[usize]) -> Option<Model> {
        let (space, terms) = (self.selection.space(), self.selection.design().terms());
        let mut next = space.max_dim() - terms.iter().map(|(_, columns)| columns).sum::<usize>();
        let word: Vec<u16> = terms
            .iter()
            .map(|(_, columns)| {
                let first = next;
                next += columns;
                u16::from(active.contains(&first))
            })
            .collect();
        Some(word.into())
    }

    fn schema(&self) -> Option<&Schema> {
        Some(&self.loaded.schema)
    }

    fn data_bytes(&self) -> f64 {
        let design = self.selection.design();
        let columns = design.columns() as f64;
        8.0 * (3.0 * design.rows() as f64 * columns + 2.0 * columns * columns)
    }

    fn usual_dim(&self) -> f64 {
        // With half of the optional columns.
        let optional: usize = self.selection.design().terms().iter().map(|(_, columns)| columns).sum();
        self.selection.space().max_dim() as f64 - 0.5 * optional as f64
    }

    fn exact<D: Device>(&self, device: &D) -> Option<Result<Exact>> {
        Enumeration::affordable(&self.selection)?;
        let found = enumerate(&self.selection, device, &EnumerationLimits::default());
        Some(found.map(Exact::from).map_err(Into::into))
    }

    fn data(&self, config: &Config) -> DataSummary {
        DataSummary {
            path: config.source.data.clone(),
            fingerprint: self.loaded.fingerprint.clone(),
            response: Some(self.loaded.schema.response.clone()),
            rows: self.loaded.rows(),
            terms: Some(self.selection.design().terms().len()),
            nodes: None,
            scale: None,
        }
    }

    fn found(&self, answer: &Answer<'_>) -> Result<Found> {
        let names = self.selection.design().terms().iter().map(|(name, _)| name.clone());
        let inclusion = Ordered(names.zip(answer.parts()).collect());
        Ok(Found::Select(SelectFound {
            highest_probability_model: answer.top_label(),
            median_probability_model: median_model(&inclusion),
            inclusion,
            coefficients: answer.coefficients(),
        }))
    }
}

/// The model of the terms whose inclusion probability is above one half.
fn median_model(inclusion: &Ordered<Inclusion>) -> String {
    let names: Vec<&str> =
        inclusion.0.iter().filter(|(_, term)| term.corrected > 0.5).map(|(name, _)| name.as_str()).collect();
    format!("{{{}}}", names.join(", "))
}

impl From<Enumeration> for Exact {
    fn from(exact: Enumeration) -> Self {
        Self {
            log_evidence: exact.log_evidence,
            parts: exact.inclusion.clone(),
            probability: Box::new(move |model| exact.probability(model)),
        }
    }
}
