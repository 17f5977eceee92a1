//! Laws of pages and figures: well-formed, self-contained, every text escaped, no coordinate that is not a number.
//!
//! The words of small pages are compared with those in `snapshots`; `UPDATE_SNAPSHOTS=1` writes them anew.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use roxmltree::{Document, Node, ParsingOptions};
use vti::answer::{
    Answer, Bound, Coefficient, DataFacts, Distances, ExactComparison, Found, ModelAnswer, Ordered, Quantity, Run,
    SampledModel, Samples, Seconds, Terms,
};
use vti::check::{Verdict, VerdictKind};
use vti::stats::Estimate;
use vti_report::plot::{
    Area, Axis, Bar, Bars, Colour, Contours, Figure, Key, Layer, Line, Marker, Note, Panel, Points, Ribbon, Rule,
    Sample, Sign, grouped, pairs,
};
use vti_report::{Beside, Trace};

#[path = "page/count.rs"]
mod count;
#[path = "page/fit.rs"]
mod fit;
#[path = "page/graph.rs"]
mod graph;
#[path = "page/unlearned.rs"]
mod unlearned;

const AWKWARD: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e308, 5e-324, 0.0, -1.0];

fn parse(text: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The text a reader sees, one line for each piece.
fn words(document: &Document<'_>) -> String {
    let shown = |node: &Node<'_, '_>| {
        node.is_text() && !node.ancestors().any(|above| ["style", "script"].contains(&above.tag_name().name()))
    };
    let texts = document.descendants().filter(shown).filter_map(|node| node.text());
    texts.map(str::trim).filter(|text| !text.is_empty()).map(|text| format!("{text}\n")).collect()
}

/// Fails unless every number in a geometric attribute is one.
fn check_coordinates(document: &Document<'_>) {
    const GEOMETRY: [&str; 17] = [
        "x",
        "y",
        "x1",
        "x2",
        "y1",
        "y2",
        "cx",
        "cy",
        "r",
        "rx",
        "width",
        "height",
        "d",
        "viewBox",
        "transform",
        "font-size",
        "stroke-width",
    ];
    for node in document.descendants().filter(Node::is_element) {
        for attribute in node.attributes().filter(|attribute| GEOMETRY.contains(&attribute.name())) {
            let value = attribute.value().replace("rotate", "");
            let spaced = value.replace('-', " -");
            let is_separator = |c: char| c.is_ascii_alphabetic() && c != 'N' || " ,%()".contains(c);
            for number in spaced.split(is_separator).filter(|number| !number.is_empty()) {
                let parsed: f64 = number.parse().unwrap_or_else(|_| panic!("{number:?} in {:?}", attribute.value()));
                assert!(parsed.abs() <= 2e5, "{number} in {:?}", attribute.value());
            }
            assert!(!value.to_lowercase().contains("nan") && !value.to_lowercase().contains("inf"), "{value}");
        }
    }
}

/// An answer with what its page shows beside it.
#[derive(Clone, Default)]
struct Shown {
    answer: Answer,
    samples: Option<Samples>,
    trace: Vec<Trace>,
    settings: String,
}

impl Shown {
    fn page(&self) -> String {
        let Self { answer, samples, trace, settings } = self;
        vti_report::page(answer, samples.as_ref(), &Beside { trace, settings, ..Beside::default() })
    }

    /// The terms of a selection or of a problem of one's own.
    fn terms(&mut self) -> &mut Terms {
        match &mut self.answer.found {
            Found::Select(terms) | Found::Own(terms) => terms,
            Found::Dag(_) | Found::Count(_) => panic!("these have no terms"),
        }
    }
}

/// Well-formed, numbers are numbers, nothing is fetched; returns the words.
fn check_page(shown: &Shown) -> String {
    let text = shown.page();
    let document = parse(&text);
    check_coordinates(&document);
    for node in document.descendants() {
        assert!(node.attribute("src").is_none());
        assert!(node.attribute("href").is_none_or(|href| href.starts_with('#')));
    }
    assert!(!text.contains("http") && !text.contains("@import") && !text.contains("url("));
    let words = words(&document);
    for word in words.split(|c: char| !c.is_alphanumeric()) {
        assert!(word != "NaN" && word != "inf", "{words}");
    }
    words
}

/// The sections of a page.
fn sections(shown: &Shown) -> Vec<String> {
    let text = shown.page();
    let document = parse(&text);
    let sections = document.descendants().filter(|node| node.has_tag_name("section"));
    sections.filter_map(|node| node.attribute("id")).map(str::to_owned).collect()
}

fn quantity(q: f64) -> Quantity {
    Quantity { q, corrected: q * 0.9, se: 0.01, exact: Some(q * 0.91) }
}

fn named<T>(name: &str, value: T) -> (String, T) {
    (name.to_owned(), value)
}

/// Draws of two models: of one with both parameters, and the last one of that without any.
fn samples() -> Samples {
    let model =
        |word: &str, active: bool| SampledModel { word: word.into(), label: word.into(), active: vec![active; 2] };
    let row = |i: i32| [f64::from(i * i % 53) / 53.0, f64::from(i * 7 % 50) / 10.0];
    Samples {
        names: vec!["lcavol".into(), "lweight".into()],
        models: vec![model("11", true), model("00", false)],
        model: (0..50).map(|i| usize::from(i == 49)).collect(),
        values: (0..50).flat_map(row).collect(),
        log_weight: vec![0.0; 50],
        ..Samples::default()
    }
}

/// A page with every section.
fn small() -> Shown {
    let coefficient = |mean| Coefficient { mean: quantity(mean), sd: 0.1, interval: [0.3, 0.8] };
    let model = |(word, q): (&str, f64)| ModelAnswer {
        word: word.into(),
        label: word.into(),
        size: word.matches('1').count(),
        probability: quantity(q),
        log_evidence: Some(Estimate { value: -100.0 + q, se: 0.02 }),
        khat: Some(1.0 - q),
    };
    let answer = Answer {
        version: "0.1.0".into(),
        data: DataFacts { response: Some("lpsa".into()), rows: Some(97), terms: Some(2), ..DataFacts::default() },
        verdict: Verdict { kind: VerdictKind::Corrected, text: "Weights are well behaved.".into() },
        log_evidence: vti::answer::LogEvidence { estimate: -102.4, se: 0.1, khat: Some(0.41) },
        found: Found::Select(Terms {
            inclusion: Ordered(vec![named("lcavol", quantity(0.98)), named("lweight", quantity(0.6))]),
            coefficients: Ordered(vec![named("lcavol", coefficient(0.5)), named("lweight", coefficient(0.4))]),
            ..Terms::default()
        }),
        models: [("11", 0.6), ("10", 0.3), ("00", 0.00004)].map(model).to_vec(),
        elbo: Some(Bound::default()),
        exact: Some(ExactComparison { log_evidence: -102.4, total_variation: Some(Distances::default()) }),
        run: Run {
            steps: 2000,
            threads: 2,
            seconds: Seconds { train: 4.0, check: 1.0 },
            warnings: vec!["two covariates are nearly equal".into()],
            ..Run::default()
        },
        ..Answer::default()
    };
    let trace = (1..=40).map(|i| Trace {
        step: i * 50,
        seconds: i as f64 * 0.1,
        elbo: -103.0 - 5.0 / i as f64,
        entropy: 1.0 + 1.0 / i as f64,
    });
    Shown { answer, samples: Some(samples()), trace: trace.collect(), settings: "seed = 1\n".into() }
}

#[test]
fn the_words_of_a_small_page() {
    check_snapshot("page.txt", &check_page(&small()));
}

/// Fails unless `found` is what the snapshot says.
fn check_snapshot(name: &str, found: &str) {
    let path = format!("{}/tests/snapshots/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(found == expected, "the page says something else; UPDATE_SNAPSHOTS=1 accepts it:\n{found}");
}

#[test]
fn the_same_answer_gives_the_same_page() {
    assert_eq!(small().page(), small().page());
}

#[test]
fn sections_without_data_are_left_out() {
    let none = Shown::default();
    assert!(sections(&none).is_empty());
    let words = check_page(&none);
    assert!(!words.to_lowercase().contains("warning") && words.contains("Do not trust"), "{words}");
    let mut full = small();
    assert_eq!(sections(&full), ["inclusion", "models", "coefficients", "pairs", "training", "settings"]);
    let terms = full.terms().clone();
    let with = |answer: Answer| Shown { answer, ..Shown::default() };
    let found = |found: Terms| with(Answer { found: Found::Own(found), ..Answer::default() });
    let models = with(Answer { models: full.answer.models.clone(), ..Answer::default() });
    let alone = [
        (vec!["inclusion"], found(Terms { inclusion: terms.inclusion, ..Terms::default() })),
        (vec!["models"], models.clone()),
        (vec!["coefficients"], found(Terms { coefficients: terms.coefficients, ..Terms::default() })),
        (vec!["models", "pairs"], Shown { samples: full.samples.clone(), ..models }),
        (vec!["training"], Shown { trace: full.trace.clone(), ..Shown::default() }),
        (vec!["settings"], Shown { settings: full.settings.clone(), ..Shown::default() }),
    ];
    for (ids, shown) in alone {
        assert_eq!(sections(&shown), ids);
        check_page(&shown);
    }
}

#[test]
fn every_text_is_escaped() {
    let nasty = |place: &str| format!("{place}<b>\"x\"&'</script>]]>\u{0}");
    let mut shown = small();
    shown.answer.found = Found::Own(shown.terms().clone());
    shown.answer.title = Some(nasty("title"));
    shown.answer.data.path = Some(nasty("path"));
    shown.answer.verdict.text = nasty("verdict");
    shown.answer.run.warnings[0] = nasty("warning");
    let model = &shown.answer.models[0];
    shown.answer.models = (0..10).map(|_| ModelAnswer { label: nasty("model"), ..model.clone() }).collect();
    shown.terms().inclusion.0[0].0 = nasty("term");
    shown.terms().coefficients.0[0].0 = nasty("coefficient");
    shown.samples.as_mut().unwrap().names[0] = nasty("parameter");
    shown.settings = nasty("settings");
    shown.answer.version = nasty("version");
    let words = check_page(&shown);
    let text = shown.page();
    let document = parse(&text);
    assert!(!document.descendants().any(|node| node.has_tag_name("b")));
    assert_eq!(document.descendants().filter(|node| node.has_tag_name("script")).count(), 1);
    for place in ["title", "path", "verdict", "warning", "model", "settings", "version"] {
        let whole = nasty(place).replace('\u{0}', "\u{fffd}");
        assert!(words.contains(&whole), "{place}: {words}");
    }
    // Names of terms may be broken after punctuation, those at axes are shortened.
    for start in ["term<b>\"x\"&'</", "coefficient<b>\"x\"&'</", "parameter<b>"] {
        assert!(words.contains(start), "{start}: {words}");
    }
}

#[test]
fn numbers_that_are_none_never_reach_the_page() {
    for value in AWKWARD {
        let awkward = Quantity { q: value, corrected: value, se: value, exact: Some(value) };
        let mut shown = small();
        let answer = &mut shown.answer;
        answer.log_evidence = vti::answer::LogEvidence { estimate: value, se: value, khat: Some(value) };
        answer.elbo = Some(Bound { mean: value, se: value });
        answer.run.seconds = Seconds { train: value, check: value };
        for model in &mut answer.models {
            model.probability = awkward;
            model.log_evidence = Some(Estimate { value, se: value });
            model.khat = Some(value);
        }
        answer.models = answer.models.iter().cycle().take(12).cloned().collect();
        for (i, point) in shown.trace.iter_mut().enumerate() {
            if i % 3 == 0 {
                *point = Trace { step: point.step, seconds: value, elbo: value, entropy: value };
            }
        }
        let terms = shown.terms();
        terms.inclusion.0[0].1 = awkward;
        terms.coefficients.0[0].1 = Coefficient { mean: awkward, sd: value, interval: [value; 2] };
        let samples = shown.samples.as_mut().unwrap();
        samples.values[3] = value;
        samples.log_weight[5] = value;
        check_page(&shown);
        // All at once.
        shown.trace.iter_mut().for_each(|point| point.elbo = value);
        let samples = shown.samples.as_mut().unwrap();
        samples.values.fill(value);
        samples.log_weight.fill(value);
        check_page(&shown);
    }
}

#[test]
fn many_rows_are_folded_and_counted() {
    let mut shown = small();
    let terms = shown.terms();
    terms.inclusion = (0..200).map(|i| (format!("x{i}"), quantity(f64::from(i) / 200.0))).collect();
    terms.coefficients = (0..30).map(|i| (format!("x{i}"), Coefficient::default())).collect();
    let model = &shown.answer.models[0];
    shown.answer.models = vec![model.clone(); 300];
    let words = check_page(&shown);
    for said in ["of 200 terms", "The other 170 terms", "The next 15 models", "The other 10 coefficients"] {
        assert!(words.contains(said), "{said}: {words}");
    }
    // The most probable term is the first.
    let text = shown.page();
    let document = parse(&text);
    let first = document.descendants().find(|node| node.has_tag_name("td")).unwrap();
    assert_eq!(first.text(), Some("x199"));
}

#[test]
fn each_verdict_has_its_own_word() {
    let word = |kind| {
        let verdict = Verdict { kind, text: String::new() };
        let shown = Shown { answer: Answer { verdict, ..Answer::default() }, ..Shown::default() };
        let text = shown.page();
        let document = parse(&text);
        let banner = document.descendants().find(|node| node.attribute("role") == Some("status")).unwrap();
        let strong = banner.descendants().find(|node| node.has_tag_name("strong")).unwrap();
        strong.text().unwrap().to_owned()
    };
    assert!(word(VerdictKind::Trust).starts_with("Trust it"));
    assert!(word(VerdictKind::Corrected).contains("corrected"));
    assert!(word(VerdictKind::DoNotTrust).starts_with("Do not trust"));
}

/// Every kind of layer, with some values that have no place.
fn layers(value: f64) -> Vec<Layer> {
    let points = vec![(0.1, 0.2), (value, 0.5), (0.5, value), (2.0, 3.0)];
    let bars = vec![Bar { at: 0.0, value: 2.0, error: Some((1.0, value)) }, Bar { at: 1.0, value, error: None }];
    let name = "a <name> & more";
    let mut layers = vec![
        Layer::Diagonal,
        Line { points: points.clone(), name: name.into(), ..Line::default() }.into(),
        Area { points: points.clone(), ..Area::default() }.into(),
        Ribbon { low: points.clone(), high: points.clone(), name: name.into(), ..Ribbon::default() }.into(),
        Rule { at: value, ..Rule::default() }.into(),
        Rule { at: value, upright: true, ..Rule::default() }.into(),
        Bars { bars: bars.clone(), ..Bars::default() }.into(),
        Contours { points: points.clone(), ..Contours::default() }.into(),
        Note { at: (0.5, 0.5), text: name.into(), ..Note::default() }.into(),
    ];
    let markers = [Marker::Circle, Marker::Triangle, Marker::Square];
    for marker in markers {
        for outlined in [false, true] {
            let titles = vec![name.into()];
            layers.push(Points { points: points.clone(), marker, outlined, titles, ..Points::default() }.into());
        }
    }
    layers.extend(grouped(vec![("one".into(), bars.clone()), ("two".into(), bars)]));
    layers
}

#[test]
fn figures_are_documents_whatever_they_show() {
    for value in AWKWARD {
        let panel = |x: Axis, y: Axis| Panel { title: "<&>".into(), x, y, layers: layers(value), ..Panel::default() };
        let figure = Figure {
            title: "\"title\" <&>".into(),
            panels: vec![
                panel(Axis::linear("x <"), Axis::linear("y &")),
                panel(Axis::log("x"), Axis::log("y")),
                panel(Axis::names("names", vec!["<a>".into(), "b".repeat(60)]), Axis::hidden()),
                panel(Axis::linear("x").within(value, 1.0), Axis::log("y").within(1.0, value)),
            ],
            columns: 3,
            keys: vec![Key { name: "key".into(), sign: Sign::Marker(Marker::Square), colour: Colour::Ink }],
            ..Figure::default()
        };
        let svg = figure.svg();
        let document = parse(&svg);
        check_coordinates(&document);
        assert_eq!(document.root_element().tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
        let words = words(&document);
        for said in ["\"title\" <&>", "a <name> & more", "key", "one", "two"] {
            assert!(words.contains(said), "{said}: {words}");
        }
    }
    for figure in [Figure::default(), Figure { columns: 0, panels: vec![Panel::default()], ..Figure::default() }] {
        check_coordinates(&parse(&figure.svg()));
    }
    for samples in [vec![], vec![Sample::default(), Sample { draws: vec![vec![1.0, 2.0]], ..Sample::default() }]] {
        check_coordinates(&parse(&pairs(&["a".into(), "b".into()], &samples).svg()));
    }
}

#[test]
fn points_are_where_their_values_say() {
    let points = vec![(0.0, 0.0), (10.0, 5.0), (5.0, 10.0)];
    let panel = Panel {
        x: Axis::hidden().within(0.0, 10.0),
        y: Axis::hidden().within(0.0, 10.0),
        layers: vec![Points { points, titles: vec!["a".into(), "b".into(), "c".into()], ..Points::default() }.into()],
        ..Panel::default()
    };
    let svg = Figure { panels: vec![panel], panel_size: (100.0, 100.0), ..Figure::default() }.svg();
    let document = parse(&svg);
    let place = |title: &str| -> (f64, f64) {
        let title =
            document.descendants().find(|node| node.has_tag_name("title") && node.text() == Some(title)).unwrap();
        let path = title.parent().unwrap().attribute("d").unwrap();
        let (x, y) = path.trim_start_matches('M').trim_end_matches("h0").split_once(' ').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    let (a, b, c) = (place("a"), place("b"), place("c"));
    assert_eq!((b.0 - a.0, a.1 - b.1), (100.0, 50.0));
    assert_eq!((c.0 - a.0, a.1 - c.1), (50.0, 100.0));
}

#[test]
fn big_scatter_plots_stay_small() {
    let points: Vec<_> = (0..20_000).map(|i| (f64::from(i % 173) / 173.0, f64::from(i % 911) / 911.0)).collect();
    let panel = Panel { layers: vec![Points { points, ..Points::default() }.into()], ..Panel::default() };
    let svg = Figure { panels: vec![panel], ..Figure::default() }.svg();
    assert_eq!(svg.matches("h0").count(), 20_000);
    assert!(svg.len() < 20_000 * 15 + 5_000, "{}", svg.len());
}

#[test]
fn what_is_in_every_model_is_never_0() {
    let mut shown = small();
    assert!(shown.page().contains("P(= 0)"));
    shown.samples.as_mut().unwrap().models.iter_mut().for_each(|model| model.active.fill(true));
    assert!(!shown.page().contains("P(= 0)"));
}
