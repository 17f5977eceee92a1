//! `vti compare`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::failure::{Ending, Usage};
use crate::output::table;
use crate::print;
use crate::question::pairs;
use crate::rundir::RunDir;
use crate::summary::{EdgesSummary, Found, Summary};

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
    for (name, run) in &runs {
        check_same(name, run, &runs[0])?;
    }
    let (model, parts) = match first.found {
        Found::Select(_) => ("highest-probability model", "inclusion off"),
        Found::Dag(_) => ("edges of the most probable graph", "edges off"),
    };
    let header = ["run", "log evidence", "bound", "k̂", model, parts, "seconds", "verdict"];
    let mut rows = vec![header.map(String::from).to_vec()];
    rows.extend(runs.iter().map(|(name, run)| line(name, run, first)));
    let mut text = table::plain(&rows);
    if let Some(edges) = edges(&runs) {
        text = format!("{text}\n\n{edges}");
    }
    print::data(&text)?;
    let other = |run: &Summary| run.data.fingerprint != first.data.fingerprint || run.data.scale != first.data.scale;
    if runs.iter().any(|(_, run)| other(run)) {
        print::talk("the runs used different data: their evidences cannot be compared");
    }
    Ok(Ending::Done)
}

/// Refuses runs that answer different questions.
fn check_same(name: &str, run: &Summary, (first_name, first): &(String, Summary)) -> Result<()> {
    let refuse = |what: &str| Err(Usage(format!("{name}: {what} than {first_name}")).into());
    match (&run.found, &first.found) {
        (Found::Select(_), Found::Select(_)) if run.data.response == first.data.response => Ok(()),
        (Found::Select(_), Found::Select(_)) => refuse("explains another response"),
        (Found::Dag(own), Found::Dag(other)) if own.edges.nodes == other.edges.nodes => Ok(()),
        (Found::Dag(_), Found::Dag(_)) => refuse("has graphs over other nodes"),
        _ => refuse("answers another kind of question"),
    }
}

fn line(name: &str, run: &Summary, first: &Summary) -> Vec<String> {
    let evidence = run.log_evidence;
    let model = match &run.found {
        Found::Select(found) => found.highest_probability_model.clone(),
        Found::Dag(found) => found.graph.most_probable.len().to_string(),
    };
    vec![
        name.into(),
        format!("{:.4} ± {:.4}", evidence.estimate, evidence.se),
        format!("{:.4}", run.elbo.mean),
        evidence.khat.map_or_else(|| "–".into(), |khat| format!("{khat:.2}")),
        model,
        format!("{:.4}", farthest(run, first)),
        format!("{:.1}", run.seconds.train),
        run.verdict.text.split(':').next().unwrap_or_default().into(),
    ]
}

/// The largest difference between probabilities of terms or edges that both runs have.
fn farthest(run: &Summary, first: &Summary) -> f64 {
    let differences: Vec<f64> = match (&run.found, &first.found) {
        (Found::Select(run), Found::Select(first)) => {
            let pairs = run.inclusion.0.iter().filter_map(|(name, own)| {
                let (_, other) = first.inclusion.0.iter().find(|(other, _)| other == name)?;
                Some((own.corrected - other.corrected).abs())
            });
            pairs.collect()
        }
        (Found::Dag(run), Found::Dag(first)) => {
            let pairs = run.edges.corrected.iter().flatten().zip(first.edges.corrected.iter().flatten());
            pairs.map(|(own, other)| (own - other).abs()).collect()
        }
        _ => Vec::new(),
    };
    differences.into_iter().fold(0.0, f64::max)
}

/// Edges that are listed at most.
const EDGES: usize = 12;

/// The edges about which runs differ most, with their probabilities in each.
fn edges(runs: &[(String, Summary)]) -> Option<String> {
    let found: Vec<&EdgesSummary> = runs
        .iter()
        .filter_map(|(_, run)| match &run.found {
            Found::Dag(found) => Some(&found.edges),
            Found::Select(_) => None,
        })
        .collect();
    let nodes = &found.first()?.nodes;
    let of = |(from, to): (usize, usize)| found.iter().map(move |edges| edges.corrected[from][to]);
    let spread = |edge| of(edge).fold(f64::NEG_INFINITY, f64::max) - of(edge).fold(f64::INFINITY, f64::min);
    let mut edges: Vec<(usize, usize)> = pairs(nodes.len()).collect();
    edges.sort_by(|a, b| spread(*b).total_cmp(&spread(*a)));
    let mut rows = vec![vec!["edge".to_string()]];
    rows[0].extend(runs.iter().map(|(name, _)| name.clone()));
    rows[0].push("differ by".into());
    rows.extend(edges.into_iter().take(EDGES).map(|edge| {
        let mut row = vec![format!("{}→{}", nodes[edge.0], nodes[edge.1])];
        row.extend(of(edge).map(|probability| format!("{probability:.4}")));
        row.push(format!("{:.4}", spread(edge)));
        row
    }));
    Some(table::plain(&rows))
}
