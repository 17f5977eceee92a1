//! The means in words, and whether they say what the paper says.

use std::fmt::Write;

use super::rows::{Case, METHODS, Mean, Means};
use super::settings::Settings;
use crate::graphs::{Finished, Method, conventions_note, is_better, paper_conventions, run_by};
use crate::text::{Findings, listed, shown};

/// Everything in words.
pub(super) fn page(means: &[Means<'_>], fits: &[Finished<Case>], settings: &Settings) -> String {
    let mut text = format!(
        "# Figure 3: causal graphs over {} nodes\n\n\
         Scale `{}`; {} data sets, each time their first rows; seed {}; {} steps of {} draws (all sizes: settings.json). Mean ± \
         standard error over data sets. SHD counts a reversed edge as 2, Brier is a sum over entries, AUROC is the mean over \
         single graphs with the diagonal among the non-edges: the paper's conventions. All other conventions, named, are in \
         summary.csv and fits.csv. Seconds of VTI are training and check on all threads; those of the peers are a job of theirs \
         (DAGMA: all λ) on a share of the threads, while another runs.\n\n\
         | rows | method | data sets | expected edges |{} seconds |\n|---|---|---|---|{}---|\n",
        settings.simulation.nodes,
        settings.scale,
        settings.data_sets,
        settings.seed,
        settings.train.steps,
        settings.train.batch,
        paper_conventions().iter().map(|convention| format!(" {} |", convention.label)).collect::<String>(),
        "---|".repeat(paper_conventions().len()),
    );
    for means in means {
        let scores: String = paper_conventions()
            .iter()
            .map(|convention| format!(" {} |", with_error(means.of(convention), 2)))
            .collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |{scores} {} |",
            means.rows,
            means.method.title(),
            means.data_sets(),
            shown(means.edges().map(|mean| mean.value), 1),
            shown(means.seconds().map(|mean| mean.value), 1),
        );
    }
    text + &findings(means, fits, settings) + &notes(fits, settings)
}

fn with_error(mean: Option<Mean>, digits: usize) -> String {
    let error = mean.and_then(|mean| mean.se).map_or(String::new(), |se| format!(" ± {se:.digits$}"));
    shown(mean.map(|mean| mean.value), digits) + &error
}

/// What the paper says, one by one, and what these say.
fn findings(means: &[Means<'_>], fits: &[Finished<Case>], settings: &Settings) -> String {
    let mut findings = Findings(String::from("\n## What the paper says, and these\n\n"));
    let at = |rows: usize, method, convention| {
        means.iter().find(|means| (means.rows, means.method) == (rows, method))?.of(convention)
    };
    for convention in paper_conventions() {
        let values: Vec<f64> =
            settings.rows.iter().filter_map(|&rows| Some(at(rows, Method::Vti, convention)?.value)).collect();
        if let [first, .., last] = values[..] {
            let claim = format!("{} of VTI improves with rows", convention.label);
            findings.say(&claim, is_better(convention, last, first), listed(&values, 2));
        }
        for peer in [Method::DagmaBestF1, Method::DagmaEdgeCount, Method::Dibs, Method::DibsPlus] {
            let pairs = settings
                .rows
                .iter()
                .filter_map(|&rows| Some((rows, at(rows, Method::Vti, convention)?, at(rows, peer, convention)?)));
            let pairs: Vec<(usize, Mean, Mean)> = pairs.collect();
            if pairs.is_empty() {
                continue;
            }
            let competitive = |(_, own, other): &(usize, Mean, Mean)| {
                let open = own.se.unwrap_or(0.0).hypot(other.se.unwrap_or(0.0));
                (own.value - other.value).abs() <= open || is_better(convention, own.value, other.value)
            };
            let listed =
                pairs.iter().map(|(rows, own, other)| format!("{rows} rows: {:.2}, {:.2}", own.value, other.value));
            findings.say(
                &format!("VTI is competitive with {} by {}", peer.title(), convention.label),
                pairs.iter().all(competitive),
                listed.collect::<Vec<_>>().join("; "),
            );
        }
    }
    if let Some((chosen, all)) = by_edge_count(fits) {
        findings.say(
            "Choosing λ by the number of true edges flatters DAGMA",
            chosen > all,
            format!("F1 {chosen:.2} instead of {all:.2}, the mean over its λ"),
        );
    }
    findings.0
}

/// Mean F1 of DAGMA with λ by edge count, and over all λ.
fn by_edge_count(fits: &[Finished<Case>]) -> Option<(f64, f64)> {
    let mean = |method| {
        let answers = fits.iter().flat_map(|fit| &fit.answers).filter(|answer| answer.method == method);
        let values: Vec<f64> = answers.filter_map(|answer| answer.scores.first()?.f1_mean).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    Some((mean(Method::DagmaEdgeCount)?, mean(Method::Dagma)?))
}

fn notes(fits: &[Finished<Case>], settings: &Settings) -> String {
    let mut text = String::from("\n## Notes\n\n");
    let _ = writeln!(text, "- Run by {}.", run_by(fits));
    let present = |method| fits.iter().flat_map(|fit| &fit.answers).any(|answer| answer.method == method);
    let missing: Vec<&str> =
        METHODS.into_iter().filter(|&method| !present(method)).map(Method::title).chain(["JSP-GFN"]).collect();
    let _ = writeln!(text, "- Not run: {}.", missing.join(", "));
    let dagma = &settings.dagma;
    let lambdas: Vec<String> = dagma.lambdas.iter().map(|lambda| format!("{lambda:.4}")).collect();
    let _ = writeln!(
        text,
        "- DAGMA: its networks have sigmoid units and biases, which its package cannot leave out; λ from {}; {} and {} steps of \
         size {} (its own: 50,000 and 80,000 of 0.0002). Both of its rows choose λ by looking at the truth, which a user cannot.",
        lambdas.join(", "),
        dagma.warm_iter,
        dagma.max_iter,
        dagma.lr,
    );
    let dibs = &settings.dibs;
    let _ = writeln!(
        text,
        "- DiBS: {} particles, {} steps of size {} with {} draws for each gradient (its own: 5,000 of 0.005 with 128); the \
         model, prior and noise are those of the simulation. Particles with cycles do not count.",
        dibs.particles, dibs.steps, dibs.stepsize, dibs.n_grad_mc_samples,
    );
    text.push_str(
        "- The graph of each data set is the one that made it: data are simulated in its topological order. The authors' code \
         simulates in the order of the columns and so ignores half of the edges, so numbers cannot be compared with the paper's \
         figure one by one.\n\
         - VTI: edge probabilities are exact sums over all graphs under the learned q; single graphs are drawn from it. Corrected: \
         evidences of nodes, found from the prior by annealed particles, instead of their bounds.\n\
         - Competitive: better, or worse by less than the standard error of the difference.\n",
    );
    let _ = writeln!(text, "- {}", conventions_note());
    text
}
