//! An answer as text.

mod count;

use std::path::Path;

use vti::answer::{
    Answer, Class, Classes, Coefficient, Count, Edge, Edges, Found, Graphs, Method, ModelAnswer, ProbableClass,
    Quantity, Terms, Truth,
};
use vti::graph::metrics::Better;
use vti::predictive::{FitKind, ModelFit};

use crate::edge_list;
use crate::number::MISSING;

/// Models that are listed.
const MODELS: usize = 8;

/// Models that hold so much of the exact probability are as good as all.
const WHOLE: f64 = 0.9995;

/// A text with its control characters, and those that turn the direction of writing, written out: a terminal would obey
/// them.
///
/// ```
/// assert_eq!(vti_report::plain("a\x1b[2J"), "a\\u{1b}[2J");
/// ```
pub fn plain(text: &str) -> String {
    let is_unsafe = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(is_unsafe) {
        return text.into();
    }
    text.chars().map(|c| if is_unsafe(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// Columns of text, the first to the left and the others to the right.
///
/// ```
/// let rows = [["term", "q"], ["age", "0.25"]].map(|row| row.map(String::from).to_vec());
/// assert_eq!(vti_report::table(&rows), "term     q\nage   0.25");
/// ```
pub fn table(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let space = " ".repeat(width - cell.chars().count());
            if column == 0 { format!("{cell}{space}") } else { format!("{space}{cell}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row(cells: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    cells.into_iter().map(Into::into).collect()
}

/// Four digits behind the point, or so many that count.
fn number(value: f64) -> String {
    if value.is_nan() {
        return MISSING.into();
    }
    let size = value.abs();
    if value == 0.0 || (1e-3..1e5).contains(&size) { format!("{value:.4}") } else { format!("{value:.3e}") }
}

fn with_error(value: f64, se: f64) -> String {
    format!("{} ± {}", number(value), number(se))
}

/// So many digits behind the point; a dash for what is no number.
fn fixed(value: f64, digits: usize) -> String {
    if value.is_nan() { MISSING.into() } else { format!("{value:.digits$}") }
}

fn probability(value: f64) -> String {
    fixed(value, 4)
}

/// An answer as tables: parts of models, the leading models, coefficients, evidence and verdict.
///
/// ```
/// use vti::answer::Answer;
/// use vti::check::{Verdict, VerdictKind};
/// let verdict = Verdict { kind: VerdictKind::Trust, text: "trust: weights are all but equal".into() };
/// let answer = Answer { verdict, ..Answer::default() };
/// assert!(vti_report::text(&answer).ends_with("trust: weights are all but equal"));
/// ```
pub fn text(answer: &Answer) -> String {
    let corrected = match answer.correction {
        Method::Weights | Method::Blocks | Method::Annealed => "corrected",
        Method::Search if !answer.is_learned() => return unlearned(answer),
        Method::Chains | Method::Search => "by chains",
        Method::Particles => "by particles",
        Method::Exact => return unlearned(answer),
    };
    let sections = match &answer.found {
        Found::Select(found) | Found::Own(found) => terms(answer, found, corrected),
        Found::Dag(found) => graphs(answer, found, Some(corrected)),
        Found::Count(found) => counted(found, true, Some(corrected)),
    };
    sections.into_iter().chain([closing(answer)]).collect::<Vec<_>>().join("\n\n")
}

fn header(first: &str, corrected: &str, exact: bool) -> Vec<String> {
    let mut header = row([first, "q", corrected]);
    header.extend(exact.then(|| "exact".to_string()));
    header
}

/// Tables of an answer without a q: one number for each thing, exact or with its error.
fn unlearned(answer: &Answer) -> String {
    let is_exact = answer.is_exact();
    let column = if is_exact { "exact" } else { "by chains" };
    let listed = |name: &str, found: Vec<(&String, &Quantity)>| {
        let said = |found: &Quantity| {
            if is_exact { probability(found.corrected) } else { with_probability(found.corrected, found.se) }
        };
        let lines = found.into_iter().map(|(name, found)| row([name.clone(), said(found)]));
        table(&std::iter::once(row([name, column])).chain(lines).collect::<Vec<_>>())
    };
    if let Found::Dag(found) = &answer.found {
        return [graphs(answer, found, None), vec![evidence_and_remarks(answer)]].concat().join("\n\n");
    }
    if let Found::Count(found) = &answer.found {
        let sections = counted(found, false, (!is_exact).then_some(column));
        return [sections, vec![evidence_and_remarks(answer)]].concat().join("\n\n");
    }
    let mut sections = Vec::new();
    let models = answer.models.iter().take(MODELS).map(|model| (&model.label, &model.probability)).collect();
    let mut models = listed("model", models);
    if let Found::Select(found) | Found::Own(found) = &answer.found {
        let parts: Vec<(&String, &Quantity)> = found.inclusion.0.iter().map(|(name, part)| (name, part)).collect();
        let (parts, rest) = leading(parts, |(_, part)| part.corrected);
        sections.push(listed("inclusion probability", parts) + &rest.map_or_else(String::new, less("terms")));
        models += &most_probable(found);
    }
    sections.push(models);
    let (shown, rest) = surest(answer.found.coefficients().iter().collect());
    sections.push(coefficients("averaged over models", shown, false, (!is_exact).then_some(column)) + &rest);
    sections.push(evidence_and_remarks(answer));
    sections.join("\n\n")
}

/// The end of an answer without a q.
fn evidence_and_remarks(answer: &Answer) -> String {
    let evidence = &answer.log_evidence;
    let error = if answer.is_exact() { String::new() } else { format!(" ± {}", fixed(evidence.se, 4)) };
    let first = format!("log evidence: {}{error}", fixed(evidence.estimate, 4));
    std::iter::once(first).chain(remarks(answer)).collect::<Vec<_>>().join("\n")
}

/// Of many things those with the largest numbers, in their order, and how many are left out.
fn leading<T: Copy>(all: Vec<T>, size: impl Fn(T) -> f64) -> (Vec<T>, Option<usize>) {
    /// So many are shown at most.
    const SHOWN: usize = 60;
    if all.len() <= SHOWN {
        return (all, None);
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    // What is no number comes last.
    let rank = |place: usize| Some(size(all[place])).filter(|size| !size.is_nan()).unwrap_or(-1.0);
    order.sort_by(|&a, &b| rank(b).total_cmp(&rank(a)));
    order.truncate(SHOWN);
    order.sort_unstable();
    (order.into_iter().map(|place| all[place]).collect(), Some(all.len() - SHOWN))
}

/// Parameters that are farthest from 0 by their standard deviations, and a line about those that are left out.
fn surest(all: Vec<&(String, Coefficient)>) -> (Vec<&(String, Coefficient)>, String) {
    let (shown, rest) = leading(all, |(_, found)| (found.mean.corrected / found.sd).abs());
    (shown, rest.map_or_else(String::new, less("parameters")))
}

/// A line about what is not shown.
fn less(what: &str) -> impl Fn(usize) -> String {
    move |count| format!("\n{count} more {what} are in summary.json and report.html")
}

/// How many components there are, and the parameters that are always there.
fn counted(found: &Count, is_learned: bool, corrected: Option<&str>) -> Vec<String> {
    let mut sections = count::count(found, is_learned, corrected);
    if !found.coefficients.0.is_empty() {
        sections.push(coefficients("whatever the number", &found.coefficients.0, is_learned, corrected));
    }
    sections
}

/// The models that stand for all.
fn most_probable(found: &Terms) -> String {
    let median = found.median_probability_model.as_ref();
    let median = median.map_or_else(String::new, |median| format!("\nmedian-probability model:  {median}"));
    format!("\nhighest-probability model: {}{median}", found.highest_probability_model)
}

/// Which parts models have, and their parameters.
fn terms(answer: &Answer, found: &Terms, corrected: &str) -> Vec<String> {
    let models = models(answer, "model", Some(corrected)) + &most_probable(found);
    let inclusion = (!found.inclusion.0.is_empty()).then(|| inclusion(answer, found, corrected));
    let coefficients = (!found.coefficients.0.is_empty()).then(|| {
        let (shown, rest) = surest(found.coefficients.0.iter().collect());
        coefficients("averaged over models", shown, true, Some(corrected)) + &rest
    });
    inclusion.into_iter().chain([models]).chain(coefficients).collect()
}

/// Edges that are less probable are not listed.
const LIKELY: f64 = 0.1;

/// Edges that are listed at most.
const EDGES: usize = 30;

/// What was found about causal graphs, `corrected` as it is called here, unless all is exact.
fn graphs(answer: &Answer, found: &Graphs, corrected: Option<&str>) -> Vec<String> {
    let mut sections = vec![edges(&found.edges, corrected)];
    let class = &found.graph.cpdag;
    sections.push(format!(
        "{}\nexpected number of edges: {:.2}\nof the {} edges of the most probable graph, {} have the same direction in all \
         Markov equivalent graphs",
        models(answer, "graph", corrected),
        found.graph.expected_edges,
        found.graph.most_probable.len(),
        class.directed.len(),
    ));
    sections.extend(classes(&found.graph.classes));
    sections.extend(interventions(answer));
    sections.extend(found.coefficients.as_ref().map(|weights| {
        let listed: Vec<String> = likely(&found.edges).0.iter().map(|edge| found.edges.name(edge)).collect();
        let weights: Vec<(String, Coefficient)> =
            weights.0.iter().filter(|(name, _)| listed.contains(name)).cloned().collect();
        coefficients("weight, averaged over graphs", &weights, corrected.is_some(), corrected)
    }));
    sections.extend(found.truth.as_ref().map(|found| truth(found, corrected)));
    sections
}

/// Equivalence classes that are listed at most.
const CLASSES: usize = 5;

/// The leading Markov equivalence classes.
fn classes(found: &Classes) -> Option<String> {
    let line = |listed: &ProbableClass| row([cut(&listed.class), probability(listed.probability)]);
    let head = row(["equivalence class (— may point either way)", if found.is_exact { "exact" } else { "from draws" }]);
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(found.leading.iter().take(CLASSES).map(line)).collect();
    (!found.leading.is_empty()).then(|| {
        let more = found.met.saturating_sub(CLASSES);
        let rest = if more > 0 {
            format!("\n{more} less probable classes, and pairs, are in summary.json")
        } else {
            String::new()
        };
        format!(
            "{}{rest}\nan arrow is a direct cause only if no hidden common cause stands behind its ends",
            table(&rows)
        )
    })
}

/// The edges of a class, as many as a line has room for.
fn cut(class: &Class) -> String {
    const ROOM: usize = 90;
    let label = class.label();
    if label.chars().count() <= ROOM {
        return label;
    }
    let kept: String = label.chars().take(ROOM).collect();
    let end = kept.rfind(", ").unwrap_or(0);
    format!("{}, … ({} edges)", &kept[..end], class.directed.len() + class.undirected.len())
}

/// In how many rows nodes were set.
fn interventions(answer: &Answer) -> Option<String> {
    let set = answer.data.interventions.as_ref()?.0.iter().filter(|(_, rows)| *rows > 0);
    let set: Vec<String> = set.map(|(name, rows)| format!("{} {rows}", plain(name))).collect();
    Some(format!("rows in which a node was set, which do not count for its own equation: {}", set.join(", ")))
}

/// Edges that are listed, and how many there could be.
fn likely(found: &Edges) -> (Vec<Edge>, usize) {
    let ranked = found.ranked();
    let likely = ranked.iter().filter(|edge| edge.probability.corrected >= LIKELY).take(EDGES).copied().collect();
    (likely, ranked.len())
}

fn edges(found: &Edges, corrected: Option<&str>) -> String {
    let (listed, all) = likely(found);
    let known = found.probabilities.iter().flatten().all(|edge| edge.exact.is_some()).then_some("exact");
    // Where nothing was learned, the exact number stands where the others would.
    let (first, last) = if corrected.is_some() { (None, known) } else { (known, None) };
    let learned = corrected.into_iter().flat_map(|corrected| ["q", corrected]);
    let head = row(["edge"].into_iter().chain(learned).chain(first).chain(["reversed", "none"]).chain(last));
    let line = |edge: &Edge| {
        let Quantity { q, corrected: value, se, exact } = edge.probability;
        let learned = corrected.map(|_| [probability(q), with_probability(value, se)]);
        let exact = exact.map(probability);
        let others = [probability(edge.reverse), probability(edge.none)];
        let numbers =
            learned.into_iter().flatten().chain(first.and(exact.clone())).chain(others).chain(last.and(exact));
        std::iter::once(found.name(edge)).chain(numbers).collect()
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(listed.iter().map(line)).collect();
    match listed.len() {
        0 => format!("no edge has a probability of {LIKELY} or more; all {all} are in edges.csv"),
        shown if shown == all => table(&rows),
        shown => format!("{}\n{} less probable edges are in edges.csv", table(&rows), all - shown),
    }
}

/// How far the answer is from a known graph, every convention with its meaning.
fn truth(found: &Truth, corrected: Option<&str>) -> String {
    let name = Path::new(&found.path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut head = row([format!("{name} ({} edges)", found.edges.len()).as_str(), "better"]);
    head.extend(corrected.map(|_| "q".into()));
    head.push(corrected.unwrap_or("exact").into());
    head.extend(found.baselines.iter().map(|baseline| baseline.name.clone()));
    let cell = |value: &Option<f64>| value.map_or_else(|| "–".into(), |value| format!("{value:.3}"));
    let mut rows = vec![head];
    for metric in &found.metrics {
        let better = match metric.better {
            Better::Higher => "high",
            Better::Lower => "low",
        };
        let mut cells = vec![metric.label.clone(), better.into()];
        cells.extend(corrected.map(|_| cell(&metric.q)));
        cells.push(cell(&metric.corrected));
        cells.extend(metric.baselines.iter().map(cell));
        rows.push(cells);
    }
    let meanings = found.metrics.iter().map(|metric| format!("{}: {}", metric.label, metric.meaning));
    format!("{}\n{}", table(&rows), meanings.collect::<Vec<_>>().join("\n"))
}

fn inclusion(answer: &Answer, found: &Terms, corrected: &str) -> String {
    let line = |(name, found): &(String, Quantity)| std::iter::once(name.clone()).chain(numbers(found)).collect();
    let head = header("inclusion probability", corrected, answer.exact.is_some());
    let (shown, rest) = leading(found.inclusion.0.iter().collect(), |(_, part)| part.corrected);
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(shown.into_iter().map(line)).collect();
    table(&rows) + &rest.map_or_else(String::new, less("terms"))
}

/// A probability as learned, corrected and exact.
fn numbers(found: &Quantity) -> impl Iterator<Item = String> {
    let learned = [probability(found.q), with_probability(found.corrected, found.se)];
    learned.into_iter().chain(found.exact.map(probability))
}

fn with_probability(value: f64, se: f64) -> String {
    format!("{} ± {}", probability(value), probability(se))
}

fn models(answer: &Answer, name: &str, corrected: Option<&str>) -> String {
    let leading = answer.models.first().map_or("", |model| model.label.as_str());
    let is_graph = answer.found.graphs().is_some();
    let label = |(place, model): (usize, &ModelAnswer)| {
        if is_graph { edge_list::brief(&model.label, (place > 0).then_some(leading)) } else { model.label.clone() }
    };
    let line = |(place, model): (usize, &ModelAnswer)| {
        // Only the exact number where nothing was learned.
        let skipped = if corrected.is_some() { 0 } else { 2 };
        std::iter::once(label((place, model))).chain(numbers(&model.probability).skip(skipped)).collect()
    };
    let head = match corrected {
        Some(corrected) => header(name, corrected, answer.exact.is_some()),
        None => row([name, "exact"]),
    };
    let lines = answer.models.iter().take(MODELS).enumerate().map(line);
    let shown = table(&std::iter::once(head).chain(lines).collect::<Vec<_>>());
    match edge_list::written_out(leading).filter(|_| is_graph) {
        Some(edges) => format!("{shown}\nthe leading graph:\n{edges}"),
        None => shown,
    }
}

/// Parameters averaged over models: as learned where they were, `corrected` as it is called here, unless all is exact; and
/// exact where that is known.
fn coefficients<'a>(
    name: &str,
    found: impl IntoIterator<Item = &'a (String, Coefficient)>,
    is_learned: bool,
    corrected: Option<&str>,
) -> String {
    let found: Vec<&(String, Coefficient)> = found.into_iter().collect();
    let known = found.iter().any(|(_, found)| found.mean.exact.is_some());
    let mut head = vec![name];
    head.extend(is_learned.then_some("q"));
    head.extend(corrected);
    head.extend(known.then_some("exact"));
    head.extend(["sd", "2.5 %", "97.5 %"]);
    let line = |(name, found): &&(String, Coefficient)| {
        let Coefficient { mean, sd, interval: [low, high] } = *found;
        let learned = is_learned.then(|| number(mean.q));
        let corrected = corrected.map(|_| with_error(mean.corrected, mean.se));
        let exact = known.then(|| mean.exact.map_or_else(|| "–".into(), number));
        let numbers = learned.into_iter().chain(corrected).chain(exact).chain([sd, low, high].map(number));
        std::iter::once(name.clone()).chain(numbers).collect()
    };
    let rows: Vec<Vec<String>> = std::iter::once(row(head)).chain(found.iter().map(line)).collect();
    table(&rows)
}

fn closing(answer: &Answer) -> String {
    let evidence = &answer.log_evidence;
    let mut lines = vec![format!("log evidence: {} ± {}", fixed(evidence.estimate, 4), fixed(evidence.se, 4))];
    if let Some(exact) = &answer.exact {
        lines[0] += &format!(", exact {}", fixed(exact.log_evidence, 4));
        lines.extend(exact.total_variation.map(|distances| {
            let among = distances.met.filter(|met| *met < WHOLE).map_or_else(String::new, |met| {
                format!(" among the models met, which hold {met:.4} of the exact probability")
            });
            format!(
                "total variation to the exact model probabilities: {} learned, {} corrected{among}",
                fixed(distances.q, 4),
                fixed(distances.corrected, 4)
            )
        }));
    }
    lines.extend(remarks(answer));
    lines.join("\n")
}

/// Warnings, the verdict, and whether the model fits.
fn remarks(answer: &Answer) -> impl Iterator<Item = String> {
    let warnings = answer.run.warnings.iter().map(|warning| format!("warning: {warning}"));
    warnings.chain([answer.verdict.text.clone()]).chain(answer.fit.iter().flat_map(fit))
}

/// Whether the model fits the data, and what can be done where it does not. The verdict, which stands before, is about another
/// question.
fn fit(found: &ModelFit) -> Vec<String> {
    let aside = "the verdict above says whether this is the posterior of the model, not whether the model is right";
    let aside = (found.kind == FitKind::DoesNotFit).then(|| format!("     {aside}"));
    let advice = found.advice.iter().map(|advice| format!("hint: {advice}"));
    [format!("fit: {}", found.text)].into_iter().chain(aside).chain(advice).collect()
}
