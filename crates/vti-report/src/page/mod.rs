//! The page: sections in the order in which one reads them.
//!
//! It is written so that it is also well-formed XML, which is how the tests read it.

mod alone;
mod bars;
mod coefficients;
mod count;
mod draws;
mod fit;
mod graph;
mod inclusion;
mod joint;
mod models;
mod table;
mod top;
mod trace;

use std::fmt::Write;

use vti::answer::{Answer, Found, Method, Samples};

pub use self::alone::figure;
use self::draws::Draws;
use self::graph::Known;
use crate::files::Cells;
use crate::markup::escape;
use crate::plot::{Colour, PALETTE, PALETTE_DARK};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("sort.js");
const GRAPH_STYLE: &str = include_str!("graph/graph.css");
const GRAPH_SCRIPT: &str = include_str!("graph/graph.js");

/// Colours of the grounds, lines and levels of trust, for light and dark surroundings.
const LIGHT: &str = "--ground:#f6f7f8;--card:#fff;--ink:#1d2125;--muted:#5c6670;--line:#e1e5e8;--grid:#e8ebee;\
    --frame:#a9b1b8;--good:#1a7f4b;--good-ground:#e8f5ee;--fair:#b07800;--fair-ground:#fdf5e0;\
    --bad:#c0322b;--bad-ground:#fdecea;";
const DARK: &str = "--ground:#14171a;--card:#1c2024;--ink:#e6e9ec;--muted:#9aa5af;--line:#31373d;--grid:#2b3136;\
    --frame:#59636c;--good:#43c083;--good-ground:#152a20;--fair:#e3ad3a;--fair-ground:#2e2612;\
    --bad:#ff7b72;--bad-ground:#331a19;";

/// Colours of what was learned and of its correction, the same in all plots; exact values are in the colour of text.
const LEARNED: Colour = Colour::Series(0);
const CORRECTED: Colour = Colour::Series(1);

/// How training went: a point of its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trace {
    /// Steps done.
    pub step: u64,
    /// Seconds since the start.
    pub seconds: f64,
    /// The bound.
    pub elbo: f64,
    /// Entropy of q(m) in nats.
    pub entropy: f64,
}

/// What goes with an answer into its page and its files; what is not there is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// How training went.
    pub trace: &'a [Trace],
    /// The settings, as TOML.
    pub settings: &'a str,
    /// What the columns of the data mean, for the file of draws.
    pub schema: Option<&'a serde_json::Value>,
    /// How cells of CSV files are written.
    pub cells: Cells,
}

/// Which versions of a number there are.
#[derive(Clone, Copy)]
struct Versions {
    /// What was learned.
    learned: bool,
    /// What its correction is called, or a number with an error where nothing was learned; `None` where all is exact.
    corrected: Option<&'static str>,
    /// What `exact` is called; `None` where nothing exact is known.
    exact: Option<&'static str>,
}

impl Versions {
    /// Whether what was learned has a correction; what chains over models found is none.
    fn are_corrected(self) -> bool {
        self.learned && self.corrected == Some(CORRECTION)
    }
}

/// What a correction is called.
const CORRECTION: &str = "corrected";

/// What sections are made of.
struct Content<'a> {
    answer: &'a Answer,
    versions: Versions,
    draws: Option<Draws<'a>>,
    graph: Option<Known<'a>>,
    trace: &'a [Trace],
}

impl<'a> Content<'a> {
    fn new(answer: &'a Answer, samples: Option<&'a Samples>, beside: &Beside<'a>) -> Self {
        let (exact, draws) = (exact_name(answer), samples.map(Draws::new));
        let corrected = match answer.correction {
            Method::Exact => None,
            Method::Search if answer.is_learned() => Some("by chains"),
            Method::Search => Some("probability"),
            _ => Some(CORRECTION),
        };
        let versions = Versions { learned: answer.is_learned(), corrected, exact };
        let graph = answer.found.graphs().and_then(|graphs| Known::new(graphs, versions, draws.as_ref()));
        Self { answer, versions, draws, graph, trace: beside.trace }
    }

    /// What there is to show: an id, a name and the HTML of each section.
    fn sections(&self, settings: &str) -> [(&'static str, &'static str, Option<String>); 16] {
        let about_graph = |section: fn(&Known<'_>) -> Option<String>| self.graph.as_ref().and_then(section);
        [
            ("graph", "Graph", about_graph(graph::drawing)),
            ("edges", "Edges", about_graph(graph::edges)),
            ("truth", "Truth", about_graph(graph::truth)),
            ("numbers", "How many", count::numbers(self)),
            ("curves", "Curves", count::curves(self)),
            ("positions", "Positions", count::positions(self)),
            ("components", "Components", count::components(self)),
            ("inclusion", "Inclusion", inclusion::section(self)),
            ("models", "Models", models::section(self)),
            ("classes", "Classes", about_graph(graph::classes)),
            ("order", "Order", about_graph(graph::order)),
            ("coefficients", "Coefficients", coefficients::section(self)),
            ("pairs", "Leading model", joint::section(self)),
            ("fit", "Fit", fit::section(self)),
            ("training", "Training", trace::section(self)),
            ("settings", "Settings", settings_section(settings)),
        ]
    }
}

/// An answer as one HTML page that needs no other file.
///
/// `samples` are for plots of parameters. The same answer always gives the same page. Sections without data are left out; numbers that are not finite are shown
/// as a dash.
///
/// ```
/// use vti::answer::Answer;
/// use vti_report::{Beside, page};
///
/// let answer = Answer { title: Some("How many tones are there?".into()), ..Answer::default() };
/// assert!(page(&answer, None, &Beside::default()).contains("<h1>How many tones are there?</h1>"));
/// ```
pub fn page(answer: &Answer, samples: Option<&Samples>, beside: &Beside<'_>) -> String {
    let content = Content::new(answer, samples, beside);
    let mut links = String::new();
    let mut body = String::new();
    for (id, name, content) in content.sections(beside.settings) {
        if let Some(content) = content {
            let _ = write!(links, "<a href=\"#{id}\">{name}</a>");
            let _ = writeln!(body, "<section id=\"{id}\">{content}</section>");
        }
    }
    let (graph_style, graph_script) =
        if answer.found.graphs().is_some() { (GRAPH_STYLE, GRAPH_SCRIPT) } else { Default::default() };
    let title = top::title(answer);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title>\n\
         <style>\n{}{STYLE}{graph_style}</style>\n</head>\n<body>\n<header>\n{}{}</header>\n<main>\n{body}</main>\n\
         <footer>{}</footer>\n<script>\n{SCRIPT}{graph_script}</script>\n</body>\n</html>\n",
        escape(&title),
        colours(),
        top::header(answer, &title),
        if links.is_empty() { links } else { format!("<nav aria-label=\"Sections\">{links}</nav>\n") },
        footer(&content),
    )
}

/// The colours as variables. Print is always light.
fn colours() -> String {
    let series = |palette: &[&str]| -> String {
        palette.iter().enumerate().map(|(i, colour)| format!("--s{i}:{colour};")).collect()
    };
    format!(
        ":root {{ {LIGHT}{} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {DARK}{} }} }}\n",
        series(&PALETTE),
        series(&PALETTE_DARK)
    )
}

/// What `exact` is called here; `None` where nothing exact is known.
fn exact_name(answer: &Answer) -> Option<&'static str> {
    answer.exact.map(|_| match answer.found {
        Found::Own(_) | Found::Count(_) => "exact",
        Found::Select(_) | Found::Dag(_) => "exact (enumeration)",
    })
}

/// A name without its remark in brackets, for headings of columns.
fn short(name: &str) -> &str {
    name.split_once(" (").map_or(name, |(head, _)| head)
}

fn settings_section(settings: &str) -> Option<String> {
    let text = settings.trim_end();
    let shown = format!(
        "<details><summary><h2>Settings</h2></summary><p class=\"caption\">All settings as they were used, including \
         those left at their defaults.</p><pre>{}</pre></details>",
        escape(text)
    );
    (!text.is_empty()).then_some(shown)
}

/// What `corrected` means, in words that go on from "Corrected …".
fn correction(method: Method) -> &'static str {
    match method {
        Method::Weights => "weighs draws from q by how probable the posterior finds them",
        Method::Blocks => "weighs draws from q, node by node, by how probable the posterior finds them",
        Method::Annealed => {
            "has evidences of nodes, found from the prior by annealed particles, in the place of q's bounds"
        }
        Method::Chains => "is what chains found that have q as their proposal",
        Method::Particles => "is what particles found that were tempered from the prior and know nothing of q",
        Method::Exact => "is exact",
        Method::Search => "is what chains over models found, whose evidences are exact",
    }
}

/// Before the words draws and probabilities.
fn corrected(versions: Versions) -> &'static str {
    if versions.are_corrected() { " corrected" } else { "" }
}

fn footer(content: &Content<'_>) -> String {
    let mut text = match content.answer.correction {
        Method::Exact if content.answer.found.count().is_some() => EXACT_COUNTS.into(),
        Method::Exact => EXACT_NUMBERS.into(),
        Method::Search if content.answer.is_learned() => SEARCHED_NUMBERS.replace(UNLEARNED, LEARNED_MODELS),
        Method::Search => SEARCHED_NUMBERS.into(),
        _ => three_numbers(content),
    };
    if !content.answer.version.is_empty() {
        let _ = write!(text, "<p>Made by vti {}.</p>", escape(&content.answer.version));
    }
    text
}

const EXACT_NUMBERS: &str = "<p><strong>How to read the numbers.</strong> Nothing was learned: all models were summed in \
    closed form. Probabilities, means, standard deviations and evidences are exact; plots and intervals are made of \
    independent draws from the posterior.</p>";

const EXACT_COUNTS: &str = "<p><strong>How to read the numbers.</strong> Nothing was learned: evidences of all numbers were \
    computed. Probabilities and evidences are exact; curves, bands and tables of components are made of independent draws from \
    the posterior.</p>";

const SEARCHED_NUMBERS: &str = "<p><strong>How to read the numbers.</strong> Nothing was learned. Evidences of models are exact, \
    but there are too many models to sum all of them: chains over models, which start far apart, found those that matter. \
    Standard errors say how much other chains would change a number. Given a model, parameters are known in closed form; \
    plots and intervals are made of draws from it.</p>";

/// What is said of answers without a q, and in its place where q(m) has learned what chains met.
const UNLEARNED: &str = "Nothing was learned.";
const LEARNED_MODELS: &str = "Numbers <em>by chains</em> are the answer; <em>q</em> is what q(m) says, a density over models that \
    learned what chains met.";

fn three_numbers(content: &Content<'_>) -> String {
    let mut text = format!(
        "<p><strong>How to read the three numbers.</strong> <em>q</em> is what the learned density says by itself. \
         <em>Corrected</em> {}; its standard error says how much another set of draws would change it.",
        escape(correction(content.answer.correction))
    );
    if let Some(name) = content.versions.exact {
        let _ = write!(text, " <em>{}</em> was computed without q, for comparison.", escape(name));
    }
    text + "</p>"
}
