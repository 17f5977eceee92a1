//! What is seen first: the question, the verdict, the key figures, the warnings.

use std::fmt::Write;

use vti::answer::{Answer, Distances, Found, LeftOut, LogEvidence, MAX_MODELS, Method, SearchFacts};
use vti::check::VerdictKind;

use super::graph::HIDDEN_CAUSES;
use super::{count, fit};
use crate::markup::escape;
use crate::number::{self, MISSING};

/// What was asked.
pub(super) fn title(answer: &Answer) -> String {
    match (&answer.title, &answer.found) {
        (Some(title), _) => title.clone(),
        (None, Found::Select(_)) => {
            format!("Which covariates matter for {}?", answer.data.response.as_deref().unwrap_or_default())
        }
        (None, Found::Dag(graphs)) => format!("What causes what among {} variables?", graphs.edges.nodes.len()),
        (None, Found::Count(found)) => count::title(&found.counted),
        (None, Found::Own(_)) => "Report".into(),
    }
}

/// What was done, in one line.
fn subtitle(answer: &Answer) -> String {
    let (data, run) = (&answer.data, &answer.run);
    let rows = || format!("{} rows, ", data.rows.unwrap_or_default());
    let mut text = match &answer.found {
        Found::Select(_) => format!("{}{} optional terms, ", rows(), data.terms.unwrap_or_default()),
        Found::Dag(graphs) => format!("{}{} nodes, ", rows(), graphs.edges.nodes.len()),
        Found::Own(_) | Found::Count(_) => data.rows.map_or_else(String::new, |_| rows()),
    };
    let _ = match answer.correction {
        Method::Exact => {
            let models = match &answer.found {
                Found::Dag(_) => "graphs",
                Found::Count(_) => "numbers",
                Found::Select(_) | Found::Own(_) => "models",
            };
            write!(text, "all {models} in closed form in {} s", fixed(run.seconds.check, 1))
        }
        Method::Search => {
            write!(text, "chains over models with exact evidences in {} s", fixed(run.seconds.check, 1))
        }
        _ => write!(text, "{} steps in {} s", run.steps, fixed(run.seconds.train, 0)),
    };
    if run.threads > 0 {
        let _ = write!(text, " on {} threads", run.threads);
    }
    if let Some(path) = &data.path {
        let _ = write!(text, " ({path})");
    }
    text
}

pub(super) fn header(answer: &Answer, title: &str) -> String {
    let mut heading = format!("<h1>{}</h1>\n<p class=\"subtitle\">{}</p>\n", escape(title), escape(&subtitle(answer)));
    if let Some(prior) = &answer.data.prior {
        let _ = writeln!(heading, "<p class=\"subtitle\">Prior: {}.</p>", escape(prior));
    }
    if let Some(set) = &answer.data.interventions {
        let set = set.0.iter().filter(|(_, rows)| *rows > 0).map(|(name, rows)| format!("{name} in {rows}"));
        let set = escape(&set.collect::<Vec<String>>().join(", "));
        let _ = writeln!(heading, "<p class=\"subtitle\">Nodes were set from outside in some rows: {set}.</p>");
    }
    if answer.found.graphs().is_some() {
        let _ = writeln!(heading, "<p class=\"subtitle\">{HIDDEN_CAUSES}</p>");
    }
    heading += &left_out(&answer.data.left_out);
    let fit = answer.fit.as_ref().map_or_else(String::new, fit::banner);
    heading + &verdict(answer) + &fit + &facts(answer) + &warnings(&answer.run.warnings)
}

/// Columns that did not take part: behind a line, as there may be many.
fn left_out(columns: &[LeftOut]) -> String {
    if columns.is_empty() {
        return String::new();
    }
    let item = |LeftOut { column, reason }: &LeftOut| {
        let name = if column.is_empty() { "the first column" } else { column };
        format!("<li>{}: {}</li>", escape(name), escape(reason))
    };
    let items: String = columns.iter().map(item).collect();
    let count = columns.len();
    let many = if count == 1 { "1 column was".to_string() } else { format!("{count} columns were") };
    format!("<details class=\"subtitle\"><summary>{many} left out</summary><ul>{items}</ul></details>\n")
}

/// Colour, sign and words say the same.
fn verdict(answer: &Answer) -> String {
    let verdict = &answer.verdict;
    let (class, word, sign) = match verdict.kind {
        VerdictKind::Trust => {
            let word = match answer.correction {
                Method::Exact => "Trust it: the answer is exact",
                Method::Search => "Trust it: chains over models agree",
                _ => "Trust it: q can be used as it is",
            };
            ("trust", word, "M10 18.5l5.5 5.5L27 12")
        }
        VerdictKind::Corrected => ("corrected", "Use the corrected numbers", "M10 15c4-5 7 4 17-1M10 23c4-5 7 4 17-1"),
        VerdictKind::DoNotTrust => ("do-not-trust", "Do not trust these numbers", "M12 12l12 12M24 12L12 24"),
    };
    format!(
        "<div class=\"verdict {class}\" role=\"status\">\
         <svg width=\"36\" height=\"36\" viewBox=\"0 0 36 36\" aria-hidden=\"true\" fill=\"none\" stroke=\"currentColor\" \
         stroke-width=\"3\" stroke-linecap=\"round\" stroke-linejoin=\"round\"><circle cx=\"18\" cy=\"18\" r=\"16\"/>\
         <path d=\"{sign}\"/></svg><div><strong>{word}</strong>{}</div></div>\n",
        escape(&verdict.text)
    )
}

/// So many decimals; a dash for what is no number.
fn fixed(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { MISSING.into() }
}

/// Key figures.
fn facts(answer: &Answer) -> String {
    let evidence = answer.log_evidence;
    // A line may end before an error, but not within it.
    let with_error = |value: f64, se: f64| format!("{} ±\u{a0}{}", fixed(value, 3), fixed(se, 3));
    let models = match answer.found {
        Found::Dag(_) => "graphs met",
        Found::Count(_) => "numbers met",
        Found::Select(_) | Found::Own(_) => "models met",
    };
    let khat = match answer.correction {
        _ if evidence.khat.is_none() => "no number: weights are all equal, or too few to have a tail",
        Method::Annealed => "of q's parameters; edges and graphs are corrected without weights",
        Method::Particles => "of q's draws; the correction is made without them",
        Method::Weights | Method::Blocks | Method::Chains | Method::Exact | Method::Search => {
            "below 0.7: weights can correct q"
        }
    };
    let seconds = answer.run.seconds.train + answer.run.seconds.check;
    if let Some(search) = &answer.search {
        return search_facts(answer, search);
    }
    if answer.is_exact() {
        return exact_facts(answer);
    }
    let (bound, bound_se) = answer.elbo.map_or((f64::NAN, f64::NAN), |bound| (bound.mean, bound.se));
    let mut html = [
        fact("log evidence", &with_error(evidence.estimate, evidence.se), "log p(y), corrected"),
        fact("bound", &with_error(bound, bound_se), "at most the log evidence"),
        fact("k̂", &fixed(evidence.khat.unwrap_or(f64::NAN), 2), khat),
        fact(models, &models_met(answer.models.len()), "among the draws"),
        fact("time", &format!("{} s", fixed(seconds, 0)), "training and check"),
    ]
    .concat();
    if let Some(distances) = answer.exact.and_then(|exact| exact.total_variation) {
        let value = format!("{} → {}", fixed(distances.q, 4), fixed(distances.corrected, 4));
        html += &fact("distance to exact", &value, &distance_note(distances));
    }
    match answer.correction {
        Method::Weights | Method::Blocks | Method::Exact | Method::Search => {}
        Method::Annealed => html += &fact("corrected by", "annealing", "evidences of nodes from the prior"),
        Method::Chains => html += &fact("corrected by", "chains", "exact in the limit"),
        Method::Particles => html += &fact("corrected by", "particles", "that know nothing of q"),
    }
    format!("<div class=\"facts\">{html}</div>\n")
}

/// What the distance to the exact answer means, and what it means that there is none.
fn distance_note(Distances { q, corrected, met }: Distances) -> String {
    if !q.is_finite() || !corrected.is_finite() {
        return "no number: some probabilities are not known".into();
    }
    let among = met.filter(|met| *met < WHOLE).map_or_else(String::new, |met| {
        format!(" (among models met, which hold {} of the exact probability)", number::probability(met))
    });
    format!("total variation, learned → corrected{among}")
}

/// Models that hold so much are as good as all.
const WHOLE: f64 = 0.9995;

/// Key figures where nothing was learned.
fn exact_facts(answer: &Answer) -> String {
    let models = match &answer.found {
        Found::Dag(graphs) => fact("nodes", &graphs.edges.nodes.len().to_string(), "all graphs over them"),
        Found::Count(found) => {
            let note = format!("the most probable number; mean {}", number::significant(found.mean.corrected, 3));
            fact(&found.counted.plural, &found.most_probable.to_string(), &note)
        }
        _ => fact("models", &format!("2^{}", answer.data.terms.unwrap_or_default()), "all of them"),
    };
    let html = [
        fact("log evidence", &fixed(answer.log_evidence.estimate, 3), "log p(y), exact"),
        models,
        fact("time", &format!("{} s", fixed(answer.run.seconds.check, 1)), "sums over models, and draws"),
    ];
    format!("<div class=\"facts\">{}</div>\n", html.concat())
}

/// The largest k̂ at which weights of many draws are reliable.
const MAX_KHAT: f64 = 0.7;

/// Key figures where chains over models answered.
fn search_facts(answer: &Answer, search: &SearchFacts) -> String {
    let LogEvidence { estimate, se, khat } = answer.log_evidence;
    let html = [
        fact("log evidence", &format!("{} ±\u{a0}{}", fixed(estimate, 3), fixed(se, 3)), "log p(y), over all models"),
        fact(
            "R̂",
            &fixed(search.rhat.unwrap_or(f64::NAN), 3),
            "the largest of an inclusion; at most 1.01 if chains agree",
        ),
        fact("effective size", &fixed(search.effective, 0), "the smallest of an inclusion"),
        fact(
            "chains",
            &format!("{} × {}", search.chains, search.iterations),
            &format!("iterations, with {} temperatures each", search.temperatures),
        ),
        fact("evidences", &search.evidences.to_string(), "computed in closed form"),
        fact("time", &format!("{} s", fixed(answer.run.seconds.check, 1)), "chains, and draws"),
    ];
    let of_q = answer.elbo.map_or_else(String::new, |bound| {
        let note = match khat {
            Some(khat) if khat < MAX_KHAT => "below 0.7: weights of q(m) say what chains say",
            Some(_) => "q(m) is not near enough for its weights to say more than chains",
            None => "no number: weights of q(m) are all equal, or too few to have a tail",
        };
        let shown = format!("{} ±\u{a0}{}", fixed(bound.mean, 3), fixed(bound.se, 3));
        fact("bound", &shown, "of q(m), which learned what chains met")
            + &fact("k̂", &fixed(khat.unwrap_or(f64::NAN), 2), note)
    });
    format!("<div class=\"facts\">{}{of_q}</div>\n", html.concat())
}

fn fact(name: &str, value: &str, note: &str) -> String {
    let note = format!("<dd class=\"note\">{}</dd>", escape(note));
    format!("<dl class=\"fact\"><dt>{}</dt><dd class=\"value\">{}</dd>{note}</dl>", escape(name), escape(value))
}

/// An answer lists a limited number.
fn models_met(count: usize) -> String {
    if count < MAX_MODELS { count.to_string() } else { format!("≥ {count}") }
}

fn warnings(warnings: &[String]) -> String {
    if warnings.is_empty() {
        return String::new();
    }
    let items: String = warnings.iter().map(|warning| format!("<li>{}</li>", escape(warning))).collect();
    let title = if warnings.len() == 1 { "One warning" } else { "Warnings" };
    format!("<div class=\"warnings\"><strong>⚠ {title}</strong><ul>{items}</ul></div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_say_what_they_are_of() {
        let note = |q: f64, met: f64| distance_note(Distances { q, corrected: 0.1, met: Some(met) });
        assert!(note(f64::NAN, 1.0).starts_with("no number"));
        assert_eq!(note(0.2, 0.9999), "total variation, learned → corrected");
        assert!(
            note(0.2, 0.9).ends_with("(among models met, which hold 0.900 of the exact probability)"),
            "{}",
            note(0.2, 0.9)
        );
    }
}
