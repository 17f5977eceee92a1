//! `vti compare`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::failure::{Ending, Usage};
use crate::output::table;
use crate::print;
use crate::rundir::RunDir;
use crate::summary::{Found, Summary};

/// Options of `vti compare`.
#[derive(Args)]
pub(crate) struct CompareArgs {
    /// Run directories
    #[arg(required = true, num_args = 2..)]
    dirs: Vec<PathBuf>,
}

pub(crate) fn run(args: &CompareArgs) -> Result<Ending> {
    let mut runs = Vec::new();
    for path in &args.dirs {
        let (dir, _) = RunDir::open(path)?;
        runs.push((path.display().to_string(), dir.read_summary()?));
    }
    let first = &runs[0].1;
    if let Some((name, _)) = runs.iter().find(|(_, run)| run.data.response != first.data.response) {
        return Err(Usage(format!("{name}: explains another response than {}", runs[0].0)).into());
    }
    let header =
        ["run", "log evidence", "bound", "k̂", "highest-probability model", "inclusion off", "seconds", "verdict"];
    let mut rows = vec![header.map(String::from).to_vec()];
    rows.extend(runs.iter().map(|(name, run)| line(name, run, first)));
    print::data(&table::plain(&rows))?;
    if runs.iter().any(|(_, run)| run.data.fingerprint != first.data.fingerprint) {
        print::talk("the runs used different data: their evidences cannot be compared");
    }
    Ok(Ending::Done)
}

fn line(name: &str, run: &Summary, first: &Summary) -> Vec<String> {
    let evidence = run.log_evidence;
    vec![
        name.into(),
        format!("{:.4} ± {:.4}", evidence.estimate, evidence.se),
        format!("{:.4}", run.elbo.mean),
        evidence.khat.map_or_else(|| "–".into(), |khat| format!("{khat:.2}")),
        run.models.first().map_or_else(String::new, |model| model.label.clone()),
        format!("{:.4}", farthest(run, first)),
        format!("{:.1}", run.seconds.train),
        run.verdict.text.split(':').next().unwrap_or_default().into(),
    ]
}

/// The largest difference between probabilities of parts that both runs have.
fn farthest(run: &Summary, first: &Summary) -> f64 {
    let (Found::Select(run), Found::Select(first)) = (&run.found, &first.found);
    let pairs = run.inclusion.0.iter().filter_map(|(name, own)| {
        let (_, other) = first.inclusion.0.iter().find(|(other, _)| other == name)?;
        Some((own.corrected - other.corrected).abs())
    });
    pairs.fold(0.0, f64::max)
}
