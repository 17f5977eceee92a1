//! All numbers of changes.

use anyhow::Result;
use serde::Serialize;
use vti::answer::{Counting, Ordered};
use vti_report::table;

use super::{FoundModel, ShownArgs};
use crate::config::Config;
use crate::failure::{Ending, Usage};
use crate::print;
use crate::question::{Changes, Question};
use crate::session::Session;

/// What is printed for machines.
#[derive(Serialize)]
struct Found {
    log_evidence: f64,
    components: Ordered<FoundCount>,
}

#[derive(Serialize)]
struct FoundCount {
    probability: f64,
    log_evidence: f64,
}

pub(super) fn run(config: Config, shown: &ShownArgs) -> Result<Ending> {
    let session = Session::<Changes>::new(config)?;
    session.question.notes().iter().for_each(|note| print::talk(note));
    let problem = &session.question.problem;
    let posterior = problem.posterior(&session.workers()?).map_err(|error| Usage(error.to_string()))?;
    let counts = posterior.probabilities().iter().zip(posterior.log_evidences()).enumerate();
    let found = Found {
        log_evidence: posterior.log_evidence(),
        components: counts
            .clone()
            .map(|(count, (&probability, &log_evidence))| (count.to_string(), FoundCount { probability, log_evidence }))
            .collect(),
    };
    let describe = |(count, (&probability, &log_evidence)): (usize, (&f64, &f64))| FoundModel {
        word: problem.word(count).to_string(),
        label: problem.counted().number(count),
        size: count,
        probability,
        log_evidence,
    };
    let mut models: Vec<FoundModel> = counts.map(describe).collect();
    models.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let (_, all) = shown.take(models.into_iter())?;
    shown.print(&found, text, all.as_deref())
}

fn text(found: &Found) -> String {
    let mut rows = vec![["change points", "exact", "log evidence"].map(String::from).to_vec()];
    rows.extend(found.components.0.iter().map(|(count, found)| {
        vec![count.clone(), format!("{:.6}", found.probability), format!("{:.4}", found.log_evidence)]
    }));
    format!("{}\n\nlog evidence: {:.6} (by recursion over segments)", table(&rows), found.log_evidence)
}
