//! `vti compare`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use vti::answer::{Answer, Edges, Found};
use vti::graph::ordered_pairs;
use vti_report::table;

use crate::failure::{Ending, Usage};
use crate::print;
use crate::rundir::RunDir;

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
        runs.push((path.display().to_string(), dir.read_answer()?));
    }
    let first = &runs[0].1;
    for (name, run) in &runs {
        check_same(name, run, &runs[0])?;
    }
    let (model, parts) = match first.found {
        Found::Select(_) | Found::Own(_) => ("highest-probability model", "inclusion off"),
        Found::Dag(_) => ("edges of the most probable graph", "edges off"),
        Found::Count(_) => ("most probable number", "probability off"),
    };
    let header = ["run", "log evidence", "bound", "k̂", model, parts, "seconds", "verdict"];
    let mut rows = vec![header.map(String::from).to_vec()];
    rows.extend(runs.iter().map(|(name, run)| line(name, run, first)));
    let mut text = table(&rows);
    if let Some(edges) = edges(&runs) {
        text = format!("{text}\n\n{edges}");
    }
    print::data(&text)?;
    let other = |run: &Answer| run.data.fingerprint != first.data.fingerprint || run.data.scale != first.data.scale;
    if runs.iter().any(|(_, run)| other(run)) {
        print::talk("the runs used different data: their evidences cannot be compared");
    }
    Ok(Ending::Done)
}

/// Refuses runs that answer different questions.
fn check_same(name: &str, run: &Answer, (first_name, first): &(String, Answer)) -> Result<()> {
    let refuse = |what: &str| Err(Usage(format!("{name}: {what} than {first_name}")).into());
    match (&run.found, &first.found) {
        (Found::Select(_), Found::Select(_)) if run.data.response == first.data.response => Ok(()),
        (Found::Select(_), Found::Select(_)) => refuse("explains another response"),
        (Found::Own(_), Found::Own(_)) if run.title == first.title => Ok(()),
        (Found::Dag(own), Found::Dag(other)) if own.edges.nodes == other.edges.nodes => Ok(()),
        (Found::Dag(_), Found::Dag(_)) => refuse("has graphs over other nodes"),
        (Found::Count(own), Found::Count(other)) if own.counted == other.counted => Ok(()),
        (Found::Count(_), Found::Count(_)) => refuse("counts something else"),
        _ => refuse("answers another kind of question"),
    }
}

fn line(name: &str, run: &Answer, first: &Answer) -> Vec<String> {
    let evidence = run.log_evidence;
    let model = match &run.found {
        Found::Select(found) | Found::Own(found) => found.highest_probability_model.clone(),
        Found::Dag(found) => found.graph.most_probable.len().to_string(),
        Found::Count(found) => found.most_probable.to_string(),
    };
    vec![
        name.into(),
        if run.is_exact() {
            format!("{:.4}", evidence.estimate)
        } else {
            format!("{:.4} ± {:.4}", evidence.estimate, evidence.se)
        },
        run.elbo.map_or_else(|| "–".into(), |bound| format!("{:.4}", bound.mean)),
        evidence.khat.map_or_else(|| "–".into(), |khat| format!("{khat:.2}")),
        model,
        format!("{:.4}", farthest(run, first)),
        format!("{:.1}", if !run.is_learned() { run.run.seconds.check } else { run.run.seconds.train }),
        if run.is_exact() { "exact".into() } else { run.verdict.text.split(':').next().unwrap_or_default().into() },
    ]
}

/// The largest difference between probabilities of terms or edges that both runs have.
fn farthest(run: &Answer, first: &Answer) -> f64 {
    let edges = |run: &Answer| -> Vec<f64> {
        let edges = run.found.graphs().into_iter().flat_map(|found| found.edges.probabilities.iter().flatten());
        edges.map(|edge| edge.corrected).collect()
    };
    let terms = run.found.inclusion().iter().filter_map(|(name, own)| {
        let (_, other) = first.found.inclusion().iter().find(|(other, _)| other == name)?;
        Some((own.corrected - other.corrected).abs())
    });
    let edges = edges(run).into_iter().zip(edges(first)).map(|(own, other)| (own - other).abs());
    // A number that one of them does not allow has no probability there.
    let of = |run: &Answer, count: &str| {
        run.found.count().and_then(|found| found.components.get(count)).map_or(0.0, |found| found.probability.corrected)
    };
    let counts = run.found.count().into_iter().flat_map(|found| found.components.0.iter());
    let counts = counts.map(|(count, found)| (found.probability.corrected - of(first, count)).abs());
    terms.chain(edges).chain(counts).fold(0.0, f64::max)
}

/// Edges that are listed at most.
const EDGES: usize = 12;

/// The edges about which runs differ most, with their probabilities in each.
fn edges(runs: &[(String, Answer)]) -> Option<String> {
    let found: Vec<&Edges> =
        runs.iter().filter_map(|(_, run)| run.found.graphs()).map(|graphs| &graphs.edges).collect();
    let nodes = &found.first()?.nodes;
    let of = |(from, to): (usize, usize)| found.iter().map(move |edges| edges.get(from, to).corrected);
    let spread = |edge| of(edge).fold(f64::NEG_INFINITY, f64::max) - of(edge).fold(f64::INFINITY, f64::min);
    let mut edges: Vec<(usize, usize)> = ordered_pairs(nodes.len()).collect();
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
    Some(table(&rows))
}
