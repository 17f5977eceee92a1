//! All models of a selection.

use anyhow::Result;
use serde::Serialize;
use vti::answer::Ordered;
use vti::problem::selection::{Enumeration, EnumerationLimits, Method, Selection, enumerate};
use vti::space::ModelSpace;
use vti_report::table;

use super::{FoundModel, ShownArgs, models_table};
use crate::config::Config;
use crate::failure::Ending;
use crate::print;
use crate::question::{Question, Select};
use crate::session::Session;

/// What is printed for machines.
#[derive(Serialize)]
struct Found {
    method: Method,
    /// The largest error of a log evidence that numerical integration admits.
    error: f64,
    log_evidence: f64,
    inclusion: Ordered<f64>,
    models: Vec<FoundModel>,
}

pub(super) fn run(config: Config, shown: &ShownArgs) -> Result<Ending> {
    let session = Session::<Select>::new(config)?;
    session.question.notes().iter().for_each(|note| print::talk(note));
    let selection = &session.question.selection;
    let exact = enumerate(selection, &session.workers()?, &EnumerationLimits::default())?;
    let models = exact.ranking().into_iter().map(|number| describe(selection, &exact, number));
    let (models, all) = shown.take(models)?;
    let terms = selection.design().terms().iter().enumerate();
    let found = Found {
        method: exact.method,
        error: exact.error,
        log_evidence: exact.log_evidence,
        inclusion: Ordered(terms.map(|(term, (name, _))| (name.clone(), exact.inclusion[term])).collect()),
        models,
    };
    shown.print(&found, text, all.as_deref())
}

fn describe(selection: &Selection, exact: &Enumeration, number: usize) -> FoundModel {
    let word = exact.model(number);
    FoundModel {
        label: selection.space().label(&word),
        size: word.iter().filter(|&&bit| bit == 1).count(),
        word: word.to_string(),
        probability: exact.probabilities[number],
        log_evidence: exact.log_evidences[number],
    }
}

fn text(found: &Found) -> String {
    let mut inclusion = vec![vec!["inclusion probability".to_string(), "exact".into()]];
    inclusion.extend(found.inclusion.0.iter().map(|(name, value)| vec![name.clone(), format!("{value:.6}")]));
    let method = match found.method {
        Method::ClosedForm => "in closed form".to_string(),
        Method::Quadrature => format!("by quadrature, to within {:.0e} nats", found.error),
    };
    let (inclusion, models) = (table(&inclusion), models_table("model", &found.models));
    format!("{inclusion}\n\n{models}\n\nlog evidence: {:.6} ({method})", found.log_evidence)
}
