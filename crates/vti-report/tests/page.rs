//! Laws of pages and figures: well-formed, self-contained, every text escaped, no coordinate that is not a number.
//!
//! The words of small pages are compared with those in `snapshots`; `UPDATE_SNAPSHOTS=1` writes them anew.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use roxmltree::{Document, Node, ParsingOptions};
use vti_report::plot::{
    Area, Axis, Bar, Bars, BoxPlot, Boxes, Colour, Contours, Figure, Key, Layer, Line, Marker, Note, Panel, Points,
    Rule, Sample, Sign, grouped, pairs,
};
use vti_report::{Coefficient, Comparison, Fact, Inclusion, Level, ModelRow, Pairs, Report, Trace, Verdict, page};

#[path = "page/graph.rs"]
mod graph;

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

/// Well-formed, numbers are numbers, nothing is fetched; returns the words.
fn check_page(report: &Report) -> String {
    let text = page(report);
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

fn comparison(q: f64) -> Comparison {
    Comparison { q, corrected: q * 0.9, se: 0.01, exact: Some(q * 0.91) }
}

/// A page with every section.
fn small() -> Report {
    let draws: Vec<f64> = (0..50).map(|i| f64::from(i * i % 53) / 53.0).collect();
    let others: Vec<f64> = (0..50).map(|i| f64::from(i * 7 % 50) / 10.0).collect();
    Report {
        title: "Which covariates matter for lpsa?".into(),
        subtitle: "Variable selection on 97 rows".into(),
        verdict: Verdict { level: Level::Corrected, text: "Weights are well behaved.".into() },
        facts: vec![Fact { name: "log evidence".into(), value: "−102.4 ± 0.1".into(), note: "corrected".into() }],
        warnings: vec!["two covariates are nearly equal".into()],
        trace: (1..=40)
            .map(|i| Trace {
                step: i * 50,
                seconds: i as f64 * 0.1,
                elbo: -103.0 - 5.0 / i as f64,
                entropy: 1.0 + 1.0 / i as f64,
            })
            .collect(),
        log_evidence: Some(-102.4),
        correction: String::new(),
        exact_name: Some("exact (enumeration)".into()),
        models: ["lcavol + lweight", "lcavol", ""]
            .iter()
            .zip([0.6, 0.3, 0.00004])
            .map(|(label, q)| ModelRow {
                label: (*label).into(),
                size: label.split_whitespace().count().div_ceil(2),
                probability: comparison(q),
                log_evidence: Some((-100.0 + q, 0.02)),
                khat: Some(1.0 - q),
            })
            .collect(),
        inclusion: [("lcavol", 0.98), ("lweight", 0.6)]
            .iter()
            .map(|(name, q)| Inclusion { name: (*name).into(), probability: comparison(*q) })
            .collect(),
        coefficients: vec![Coefficient {
            name: "lcavol".into(),
            mean: comparison(0.5),
            sd: 0.1,
            interval: (0.3, 0.8),
            inclusion: 0.98,
            draws: draws.clone(),
            weights: vec![0.02; 50],
        }],
        pairs: Some(Pairs {
            label: "lcavol + lweight".into(),
            names: vec!["lcavol".into(), "lweight".into()],
            draws: vec![draws, others],
            weights: vec![0.02; 50],
        }),
        graph: None,
        settings: "seed = 1\n".into(),
        version: "0.1.0".into(),
    }
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
fn the_same_report_gives_the_same_page() {
    assert_eq!(page(&small()), page(&small()));
}

#[test]
fn sections_without_data_are_left_out() {
    let sections = |report: &Report| -> Vec<String> {
        let text = page(report);
        let document = parse(&text);
        let sections = document.descendants().filter(|node| node.has_tag_name("section"));
        sections.filter_map(|node| node.attribute("id")).map(str::to_owned).collect()
    };
    let none = Report::default();
    assert!(sections(&none).is_empty());
    let words = check_page(&none);
    assert!(!words.to_lowercase().contains("warning") && words.contains("Do not trust"), "{words}");
    let full = small();
    assert_eq!(sections(&full), ["inclusion", "models", "coefficients", "pairs", "training", "settings"]);
    let alone = [
        ("inclusion", Report { inclusion: full.inclusion.clone(), ..none.clone() }),
        ("models", Report { models: full.models.clone(), ..none.clone() }),
        ("coefficients", Report { coefficients: full.coefficients.clone(), ..none.clone() }),
        ("pairs", Report { pairs: full.pairs.clone(), ..none.clone() }),
        ("training", Report { trace: full.trace.clone(), ..none.clone() }),
        ("settings", Report { settings: full.settings.clone(), ..none.clone() }),
    ];
    for (id, report) in alone {
        assert_eq!(sections(&report), [id]);
        check_page(&report);
    }
}

#[test]
fn every_text_is_escaped() {
    let nasty = |place: &str| format!("{place}<b>\"x\"&'</script>]]>\u{0}");
    let mut report = small();
    report.title = nasty("title");
    report.subtitle = nasty("subtitle");
    report.verdict.text = nasty("verdict");
    report.facts[0] = Fact { name: nasty("fact"), value: nasty("value"), note: nasty("note") };
    report.warnings[0] = nasty("warning");
    report.exact_name = Some(nasty("exact"));
    report.models = (0..10).map(|_| ModelRow { label: nasty("model"), ..report.models[0].clone() }).collect();
    report.inclusion[0].name = nasty("term");
    report.coefficients[0].name = nasty("coefficient");
    let joint = report.pairs.as_mut().unwrap();
    joint.label = nasty("leading");
    joint.names[0] = nasty("parameter");
    report.settings = nasty("settings");
    report.version = nasty("version");
    let words = check_page(&report);
    let text = page(&report);
    let document = parse(&text);
    assert!(!document.descendants().any(|node| node.has_tag_name("b")));
    assert_eq!(document.descendants().filter(|node| node.has_tag_name("script")).count(), 1);
    let places = [
        "title", "subtitle", "verdict", "fact", "value", "note", "warning", "exact", "model", "leading", "settings",
        "version",
    ];
    for place in places {
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
        let awkward = Comparison { q: value, corrected: value, se: value, exact: Some(value) };
        let mut report = small();
        report.log_evidence = Some(value);
        for (i, point) in report.trace.iter_mut().enumerate() {
            if i % 3 == 0 {
                *point = Trace { step: point.step, seconds: value, elbo: value, entropy: value };
            }
        }
        for model in &mut report.models {
            model.probability = awkward;
            model.log_evidence = Some((value, value));
            model.khat = Some(value);
        }
        report.models = report.models.iter().cycle().take(12).cloned().collect();
        report.inclusion[0].probability = awkward;
        let coefficient = &mut report.coefficients[0];
        coefficient.mean = awkward;
        (coefficient.sd, coefficient.interval, coefficient.inclusion) = (value, (value, value), value);
        coefficient.draws[3] = value;
        coefficient.weights[5] = value;
        let joint = report.pairs.as_mut().unwrap();
        joint.draws[0][2] = value;
        joint.draws[1][4] = value;
        joint.weights[7] = value;
        check_page(&report);
        // All at once.
        report.trace.iter_mut().for_each(|point| point.elbo = value);
        report.coefficients[0].draws.fill(value);
        report.coefficients[0].weights.clear();
        let joint = report.pairs.as_mut().unwrap();
        joint.draws.iter_mut().for_each(|draws| draws.fill(value));
        joint.weights.truncate(3);
        check_page(&report);
    }
}

#[test]
fn many_rows_are_folded_and_counted() {
    let mut report = small();
    report.inclusion =
        (0..200).map(|i| Inclusion { name: format!("x{i}"), probability: comparison(f64::from(i) / 200.0) }).collect();
    report.models = (0..300).map(|i| ModelRow { label: format!("m{i}"), ..report.models[0].clone() }).collect();
    let joint = report.pairs.as_mut().unwrap();
    joint.names = (0..11).map(|i| format!("p{i}")).collect();
    joint.draws = (0..11).map(|_| joint.draws[0].clone()).collect();
    let words = check_page(&report);
    for said in
        ["of 200 terms", "The other 170 terms", "The next 185 models", "100 less probable models", "first 8 of its 11"]
    {
        assert!(words.contains(said), "{said}: {words}");
    }
    // The most probable term is the first.
    let text = page(&report);
    let document = parse(&text);
    let first = document.descendants().find(|node| node.has_tag_name("td")).unwrap();
    assert_eq!(first.text(), Some("x199"));
}

#[test]
fn each_verdict_has_its_own_word() {
    let word = |level| {
        let text = page(&Report { verdict: Verdict { level, text: String::new() }, ..Report::default() });
        let document = parse(&text);
        let banner = document.descendants().find(|node| node.attribute("role") == Some("status")).unwrap();
        let strong = banner.descendants().find(|node| node.has_tag_name("strong")).unwrap();
        strong.text().unwrap().to_owned()
    };
    assert!(word(Level::Trust).starts_with("Trust it"));
    assert!(word(Level::Corrected).contains("corrected"));
    assert!(word(Level::DoNotTrust).starts_with("Do not trust"));
}

/// Every kind of layer, with some values that have no place.
fn layers(value: f64) -> Vec<Layer> {
    let points = vec![(0.1, 0.2), (value, 0.5), (0.5, value), (2.0, 3.0)];
    let bars = vec![Bar { at: 0.0, value: 2.0, error: Some((1.0, value)) }, Bar { at: 1.0, value, error: None }];
    let boxes = vec![BoxPlot::of(1.0, &[1.0, 2.0, value, 4.0]).unwrap(), BoxPlot { at: value, ..BoxPlot::default() }];
    let name = "a <name> & more";
    let mut layers = vec![
        Layer::Diagonal,
        Line { points: points.clone(), name: name.into(), ..Line::default() }.into(),
        Area { points: points.clone(), ..Area::default() }.into(),
        Rule { at: value, ..Rule::default() }.into(),
        Rule { at: value, upright: true, ..Rule::default() }.into(),
        Bars { bars: bars.clone(), ..Bars::default() }.into(),
        Boxes { boxes, ..Boxes::default() }.into(),
        Contours { points: points.clone(), ..Contours::default() }.into(),
        Note { at: (0.5, 0.5), text: name.into(), ..Note::default() }.into(),
    ];
    let markers = [Marker::Circle, Marker::Triangle, Marker::Square, Marker::Diamond, Marker::Cross];
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
            keys: vec![Key { name: "key".into(), sign: Sign::Marker(Marker::Cross), colour: Colour::Ink }],
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
    let mut report = small();
    assert!(page(&report).contains("P(= 0)"));
    report.coefficients.iter_mut().for_each(|row| row.inclusion = 1.0);
    assert!(!page(&report).contains("P(= 0)"));
}
