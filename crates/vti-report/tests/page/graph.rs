//! Laws of pages about causal graphs.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};
use vti::answer::{
    Answer, Bound, Class, Classes, Distances, Edges, ExactComparison, Found, GraphStatistics, Graphs, Metric,
    ModelAnswer, NamedEdge, Ordered, ProbableClass, Quantity, SampledModel, Samples, Trivial, Truth,
};
use vti::graph::metrics::Better;

use super::{AWKWARD, Shown, check_page, check_snapshot, parse, quantity, sections};

/// Probabilities of edges, zero where nothing is said.
fn matrix(nodes: usize, edges: &[(usize, usize, f64)]) -> Vec<Vec<Quantity>> {
    let exactly = |p: f64| Quantity { q: p * 0.98, corrected: p, se: 0.01, exact: None };
    let mut all = vec![vec![exactly(0.0); nodes]; nodes];
    edges.iter().for_each(|&(from, to, p)| all[from][to] = exactly(p));
    all
}

/// Edges by the names of their ends.
fn named(names: &[String], edges: &[(usize, usize)]) -> Vec<NamedEdge> {
    edges.iter().map(|&(from, to)| [names[from].clone(), names[to].clone()]).collect()
}

fn by_node(names: &[String], values: &[f64]) -> Ordered<f64> {
    names.iter().cloned().zip(values.iter().copied()).collect()
}

fn names() -> Vec<String> {
    ["smoke", "tar", "cancer", "cough", "age"].map(str::to_owned).to_vec()
}

fn metric(label: &str, meaning: &str, better: Better, [value, trivial]: [f64; 2]) -> Metric {
    Metric {
        label: label.into(),
        meaning: meaning.into(),
        better,
        corrected: Some(value),
        baselines: vec![Some(trivial)],
        ..Metric::default()
    }
}

/// Five nodes with every kind of edge: certain, probable, improbable, left out, without direction.
fn five() -> Graphs {
    five_of(&names())
}

fn classes(names: &[String]) -> Classes {
    let class = Class { directed: named(names, &[(1, 2)]), undirected: named(names, &[(0, 1), (2, 3)]) };
    let half = |yes: bool| if yes { 0.5 } else { 0.0 };
    let matrix = |has: fn(usize, usize) -> bool| -> Vec<Vec<f64>> {
        (0..5).map(|a| (0..5).map(|b| half(has(a, b))).collect()).collect()
    };
    Classes {
        is_exact: false,
        met: 2,
        leading: vec![ProbableClass { class, probability: 0.625, graphs: 3 }],
        joined: matrix(|a, b| a.abs_diff(b) == 1),
        compelled: matrix(|a, b| (a, b) == (1, 2)),
    }
}

fn five_of(names: &[String]) -> Graphs {
    let probabilities =
        matrix(5, &[(0, 1, 0.97), (1, 2, 0.7), (0, 3, 0.3), (2, 3, 0.48), (3, 2, 0.44), (4, 2, 0.05), (1, 3, 0.06)]);
    Graphs {
        edges: Edges { nodes: names.to_vec(), probabilities },
        graph: GraphStatistics {
            most_probable: named(names, &[(0, 1), (1, 2), (2, 3)]),
            cpdag: Class { directed: named(names, &[(1, 2)]), undirected: named(names, &[(0, 1), (2, 3)]) },
            mean_position: by_node(names, &[0.5, 1.5, 2.6, 3.1, 2.3]),
            parents: by_node(names, &[0.0, 0.97, 1.2, 0.84, 0.0]),
            ancestor: (0..5).map(|i| (0..5).map(|j| if i < j { 0.5 } else { 0.0 }).collect()).collect(),
            edge_counts: vec![(2, 0.3), (3, 0.6), (4, 0.1)],
            expected_edges: 3.0,
            classes: classes(names),
        },
        truth: Some(Truth {
            path: "somewhere/truth.csv".into(),
            edges: named(names, &[(0, 1), (2, 1), (3, 2), (4, 0)]),
            baselines: vec![Trivial { name: "no edges".into(), meaning: String::new() }],
            metrics: vec![
                metric("SHD", "a reversed edge counts once", Better::Lower, [2.0, 4.0]),
                metric("F1", "", Better::Higher, [0.5, 0.75]),
            ],
        }),
        coefficients: Some(Ordered::default()),
    }
}

/// Draws of the weight of one edge.
fn weights(name: String) -> Samples {
    Samples {
        names: vec![name],
        models: vec![SampledModel { active: vec![true], ..SampledModel::default() }],
        model: vec![0; 3],
        values: vec![0.7, 0.8, 0.9],
        log_weight: vec![0.0; 3],
        ..Samples::default()
    }
}

fn shown(graphs: Graphs) -> Shown {
    let label = |edges: &str| ModelAnswer {
        word: edges.into(),
        label: edges.into(),
        size: 2,
        probability: quantity(0.4),
        ..ModelAnswer::default()
    };
    let samples = Some(weights("smoke→tar".into()));
    let answer = Answer {
        models: vec![label("smoke→tar, tar→cancer"), label("smoke→tar"), label("no edges")],
        found: Found::Dag(Box::new(graphs)),
        correction: vti::answer::Method::Annealed,
        elbo: Some(Bound::default()),
        exact: Some(ExactComparison { log_evidence: 0.0, total_variation: Some(Distances::default()) }),
        ..Answer::default()
    };
    Shown { answer, samples, ..Shown::default() }
}

/// A graph without cycle on many nodes, and a posterior around it; its most probable edges.
fn random(nodes: usize, seed: u64) -> (Graphs, Vec<(usize, usize)>) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut even = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let node = |place: usize| (place * 7 + 3) % nodes;
    let (mut edges, mut best) = (Vec::new(), Vec::new());
    for i in 0..nodes {
        for j in i + 1..nodes {
            let p = if even() < 3.0 / nodes as f64 { even() } else { 0.1 * even() };
            let back = if even() < 0.3 { 0.8 * p.min(1.0 - p) } else { 0.0 };
            edges.extend([(node(i), node(j), p), (node(j), node(i), back)]);
            if p > 0.5 {
                best.push((node(i), node(j)));
            }
        }
    }
    let truth: Vec<_> =
        best.iter().copied().step_by(2).map(|(a, b)| if a % 3 == 0 { (b, a) } else { (a, b) }).collect();
    let names: Vec<String> = (0..nodes).map(|i| format!("{}_{i}", "name".repeat(i % 5 + 1))).collect();
    let all = named(&names, &best);
    let graphs = Graphs {
        truth: Some(Truth { edges: named(&names, &truth), ..Truth::default() }),
        edges: Edges { nodes: names, probabilities: matrix(nodes, &edges) },
        graph: GraphStatistics {
            cpdag: Class { directed: all.clone(), undirected: Vec::new() },
            most_probable: all,
            ..GraphStatistics::default()
        },
        coefficients: None,
    };
    (graphs, best)
}

/// Node counts that are a shuffle by sevens.
const SIZES: [usize; 6] = [2, 3, 4, 11, 20, 25];

fn has_class(node: &Node<'_, '_>, class: &str) -> bool {
    node.attribute("class").is_some_and(|all| all.split(' ').any(|one| one == class))
}

fn with_class<'a>(within: Node<'a, 'a>, class: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    within.descendants().filter(move |node| has_class(node, class))
}

fn drawing<'a>(document: &'a Document<'a>) -> Node<'a, 'a> {
    with_class(document.root(), "graph").next().unwrap()
}

/// The lines of a view.
fn edges<'a>(document: &'a Document<'a>, view: &'static str) -> Vec<Node<'a, 'a>> {
    let group = with_class(drawing(document), view).next().unwrap();
    with_class(group, "edge").collect()
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

/// Left, top, right, bottom of each node.
fn boxes(document: &Document<'_>) -> BTreeMap<usize, [f64; 4]> {
    let one = |node: Node<'_, '_>| {
        let rect = node.children().find(|child| child.has_tag_name("rect")).unwrap();
        let (x, y) = (number(rect, "x"), number(rect, "y"));
        (number(node, "data-nodes") as usize, [x, y, x + number(rect, "width"), y + number(rect, "height")])
    };
    with_class(drawing(document), "node").map(one).collect()
}

fn nodes_of(edge: Node<'_, '_>) -> (usize, usize) {
    let (from, to) = edge.attribute("data-nodes").unwrap().split_once(' ').unwrap();
    (from.parse().unwrap(), to.parse().unwrap())
}

fn part<'a>(edge: Node<'a, 'a>, class: &'static str) -> Option<Node<'a, 'a>> {
    with_class(edge, class).next()
}

/// All numbers of a path, in order.
fn numbers(path: Node<'_, '_>) -> Vec<f64> {
    let d = path.attribute("d").unwrap().replace('-', " -");
    d.split(|c: char| c.is_ascii_alphabetic() || c == ' ').filter_map(|number| number.parse().ok()).collect()
}

/// Whether a point is on the border of a box, to rounding, or within `reach` above or below it.
fn touches([left, top, right, bottom]: [f64; 4], (x, y): (f64, f64), reach: f64) -> bool {
    let slack = 0.11;
    x >= left - slack && x <= right + slack && y >= top - reach - slack && y <= bottom + reach + slack
}

#[test]
fn the_words_of_a_small_page_about_graphs() {
    check_snapshot("graph.txt", &check_page(&shown(five())));
}

#[test]
fn sections_about_graphs_come_with_their_data() {
    let only = |graphs: Graphs| {
        let answer = Answer { found: Found::Dag(Box::new(graphs)), ..Answer::default() };
        let shown = Shown { answer, ..Shown::default() };
        check_page(&shown);
        sections(&shown)
    };
    assert_eq!(sections(&shown(five())), ["graph", "edges", "truth", "models", "classes", "order"]);
    let page = shown(five()).page();
    for said in
        ["hidden common cause", "Probabilities are from graphs that were drawn; 2 classes were met", "compelled →"]
    {
        assert!(page.contains(said), "{said}");
    }
    assert!(only(Graphs::default()).is_empty());
    let nodes = || Edges { nodes: names(), probabilities: Vec::new() };
    assert_eq!(only(Graphs { edges: nodes(), ..Graphs::default() }), ["graph"]);
    assert_eq!(only(Graphs { edges: five().edges, ..Graphs::default() }), ["graph", "edges"]);
    let none = (Class::default(), Classes::default());
    let order = GraphStatistics { most_probable: Vec::new(), cpdag: none.0, classes: none.1, ..five().graph };
    assert_eq!(only(Graphs { edges: nodes(), graph: order, ..Graphs::default() }), ["graph", "order"]);
    // Pages about other things do not carry what graphs need.
    assert!(!Shown::default().page().contains("graph-box"));
}

#[test]
fn names_of_nodes_are_escaped_and_whole_where_pointed_at() {
    let nasty = |place: &str| format!("{place}<b>\"x\"&'</script>]]>\u{0}");
    let whole = |place: &str| nasty(place).replace('\u{0}', "\u{fffd}");
    let mut graph = five_of(&names().iter().map(|name| nasty(name)).collect::<Vec<_>>());
    let truth = graph.truth.as_mut().unwrap();
    // What is behind the last slash is the name of the file.
    truth.path = "known<b>\"x\"&'".into();
    truth.baselines[0].name = nasty("trivial");
    (truth.metrics[0].label, truth.metrics[0].meaning) = (nasty("metric"), nasty("convention"));
    let mut nasty_shown = shown(graph);
    nasty_shown.answer.models.iter_mut().for_each(|model| model.label = nasty("model"));
    let words = check_page(&nasty_shown);
    let text = nasty_shown.page();
    let document = parse(&text);
    assert!(!document.descendants().any(|node| node.has_tag_name("b")));
    for place in ["smoke", "tar", "cancer", "cough", "age", "trivial", "convention", "model"] {
        assert!(words.contains(&whole(place)), "{place}: {words}");
    }
    assert!(words.contains("metric<b>\"x\"&'</") && words.contains("(known<b>\"x\"&')"), "{words}");
    for node in with_class(drawing(&document), "node") {
        let title = node.children().find(|child| child.has_tag_name("title")).unwrap();
        let place = &names()[number(node, "data-nodes") as usize];
        assert!(title.text().unwrap().starts_with(&whole(place)));
        let shown = node.descendants().find(|child| child.has_tag_name("text")).unwrap().text().unwrap();
        assert!(shown.contains('…') && shown.len() < title.text().unwrap().len(), "{shown}");
    }
}

#[test]
fn whatever_a_graph_says_there_is_a_page() {
    for value in AWKWARD {
        let mut graphs = five();
        let awkward = Quantity { q: value, corrected: value, se: value, exact: Some(value) };
        graphs.edges.probabilities.iter_mut().flatten().for_each(|edge| *edge = awkward);
        let GraphStatistics { mean_position, parents, ancestor, edge_counts, .. } = &mut graphs.graph;
        mean_position.0.iter_mut().for_each(|(_, place)| *place = value);
        parents.0[2].1 = value;
        ancestor.iter_mut().for_each(|row| row.fill(value));
        edge_counts[1] = (usize::MAX, value);
        let truth = graphs.truth.as_mut().unwrap();
        truth.metrics[0].corrected = Some(value);
        truth.metrics[1].baselines[0] = Some(value);
        check_page(&shown(graphs));
    }
    let mut graphs = five();
    graphs.edges.probabilities[1].truncate(2);
    graphs.edges.probabilities.truncate(3);
    graphs.graph.mean_position.0.truncate(1);
    graphs.graph.ancestor.truncate(1);
    graphs.graph.edge_counts = vec![(0, 0.5), (usize::MAX, 0.5)];
    let edge = |from: &str, to: &str| [from.to_owned(), to.to_owned()];
    let outside =
        [("smoke", "smoke"), ("nobody", "tar"), ("tar", ""), ("smoke", "tar"), ("smoke", "tar"), ("tar", "smoke")];
    let outside: Vec<NamedEdge> = outside.iter().map(|(from, to)| edge(from, to)).collect();
    graphs.graph.most_probable = outside.clone();
    graphs.graph.cpdag = Class { directed: outside.clone(), undirected: outside.clone() };
    let truth = graphs.truth.as_mut().unwrap();
    truth.edges = outside;
    truth.metrics[0].baselines.clear();
    check_page(&shown(graphs));
    let alone = Edges { nodes: vec!["one".into()], ..five().edges };
    check_page(&shown(Graphs { edges: alone, ..five() }));
}

#[test]
fn nodes_do_not_overlap_and_lines_end_at_theirs() {
    for (size, seed) in SIZES.into_iter().flat_map(|size| (1..4).map(move |seed| (size, seed))) {
        let text = shown(random(size, seed).0).page();
        let document = parse(&text);
        let boxes = boxes(&document);
        assert_eq!(boxes.len(), size);
        for (i, a) in &boxes {
            for (_, b) in boxes.range(i + 1..) {
                assert!(a[2] < b[0] || b[2] < a[0] || a[3] < b[1] || b[3] < a[1], "{a:?} {b:?}");
            }
        }
        for view in ["in-probabilities", "in-best", "in-class"] {
            for edge in edges(&document, view) {
                let (from, to) = nodes_of(edge);
                let line = numbers(part(edge, "line").unwrap());
                let first = (line[0], line[1]);
                let last = (line[line.len() - 2], line[line.len() - 1]);
                // Lines stop before their arrowheads.
                let reach = 9.0;
                let straight = touches(boxes[&from], first, reach) && touches(boxes[&to], last, reach);
                let turned = touches(boxes[&to], first, reach) && touches(boxes[&from], last, reach);
                assert!(straight || turned, "{from} {to}: {line:?}");
                if let Some(head) = part(edge, "head") {
                    let tip = numbers(head);
                    assert!(touches(boxes[&to], (tip[0], tip[1]), 0.0), "the head of {from} → {to} is elsewhere");
                }
            }
        }
    }
}

#[test]
fn causes_stand_above_their_effects_in_the_most_probable_graph() {
    for (size, seed) in SIZES.into_iter().flat_map(|size| (1..4).map(move |seed| (size, seed))) {
        let (graphs, best) = random(size, seed);
        let text = shown(graphs).page();
        let document = parse(&text);
        let boxes = boxes(&document);
        for (from, to) in &best {
            assert!(boxes[from][3] < boxes[to][1], "{from} → {to}");
        }
        let drawn: Vec<(usize, usize)> =
            edges(&document, "in-best").into_iter().filter(|edge| !has_class(edge, "missing")).map(nodes_of).collect();
        assert_eq!(drawn.len(), best.len());
        assert!(best.iter().all(|edge| drawn.contains(edge)));
    }
}

#[test]
fn the_less_probable_an_edge_the_more_uncertain_it_looks() {
    let text = shown(Graphs { truth: None, ..five() }).page();
    let document = parse(&text);
    let drawn: BTreeMap<(usize, usize), Node<'_, '_>> =
        edges(&document, "in-probabilities").into_iter().map(|edge| (nodes_of(edge), edge)).collect();
    assert_eq!(drawn.keys().copied().collect::<Vec<_>>(), [(0, 1), (0, 3), (1, 2), (2, 3)]);
    let pen = |edge: (usize, usize)| {
        let line = part(drawn[&edge], "line").unwrap();
        (number(line, "stroke-width"), number(line, "stroke-opacity"), line.attribute("stroke-dasharray"))
    };
    let (certain, probable, improbable) = (pen((0, 1)), pen((1, 2)), pen((0, 3)));
    assert!(certain.0 > probable.0 && probable.0 > improbable.0);
    assert!(certain.1 > probable.1 && probable.1 > improbable.1);
    assert!(certain.2.is_none() && probable.2.is_some() && improbable.2.is_some() && probable.2 != improbable.2);
    // Neither direction is twice as probable as the other, but joined they are.
    assert!(part(drawn[&(2, 3)], "head").is_none() && pen((2, 3)).2.is_none());
    assert!(part(drawn[&(0, 3)], "head").is_some());
    let title = drawn[&(2, 3)].children().find(|child| child.has_tag_name("title")).unwrap().text().unwrap();
    for said in
        ["cancer — cough", "cancer → cough: corrected 0.480", "cough → cancer: corrected 0.440", "no edge: 0.080"]
    {
        assert!(title.contains(said), "{said}: {title}");
    }
}

#[test]
fn of_very_many_lines_the_most_probable_are_drawn() {
    let nodes = 20;
    let pairs = (0..nodes).flat_map(|i| (i + 1..nodes).map(move |j| (i, j)));
    let all: Vec<(usize, usize, f64)> =
        pairs.enumerate().map(|(rank, (i, j))| (i, j, 0.45 - 0.001 * rank as f64)).collect();
    let names = (0..nodes).map(|i| format!("x{i}")).collect();
    let edges_of = Edges { nodes: names, probabilities: matrix(nodes, &all) };
    let text = shown(Graphs { edges: edges_of, ..Graphs::default() }).page();
    let document = parse(&text);
    let drawn: Vec<(usize, usize)> = edges(&document, "in-probabilities").into_iter().map(nodes_of).collect();
    assert!(drawn.len() < all.len() && text.contains(&format!("The {} least probable", all.len() - drawn.len())));
    assert!(all[..drawn.len()].iter().all(|&(i, j, _)| drawn.contains(&(i, j))));
}

#[test]
fn lines_are_marked_against_the_truth() {
    let text = shown(five()).page();
    let document = parse(&text);
    let marks = |view| -> BTreeMap<(usize, usize), String> {
        let mark = |edge: Node<'_, '_>| (nodes_of(edge), edge.attribute("class").unwrap().replace("edge ", ""));
        edges(&document, view).into_iter().map(mark).collect()
    };
    let expected = |pairs: &[((usize, usize), &str)]| -> BTreeMap<(usize, usize), String> {
        pairs.iter().map(|(edge, mark)| (*edge, (*mark).to_owned())).collect()
    };
    // 2 – 3 has no direction among probabilities and in the class, so it cannot be reversed there.
    let shared = [((0, 1), "right"), ((1, 2), "reversed"), ((4, 0), "missing")];
    let with = |more: &[((usize, usize), &'static str)]| expected(&[&shared, more].concat());
    assert_eq!(marks("in-probabilities"), with(&[((2, 3), "right"), ((0, 3), "extra")]));
    assert_eq!(marks("in-best"), with(&[((2, 3), "reversed")]));
    assert_eq!(marks("in-class"), with(&[((2, 3), "right")]));
    // Not by colour alone.
    for edge in edges(&document, "in-probabilities") {
        let is_wrong = has_class(&edge, "reversed") || has_class(&edge, "extra");
        assert_eq!(part(edge, "sign").is_some(), is_wrong);
    }
}

#[test]
fn each_view_has_a_button_and_one_is_chosen() {
    let text = shown(five()).page();
    let document = parse(&text);
    let buttons: Vec<Node<'_, '_>> =
        document.descendants().filter(|node| node.attribute("type") == Some("radio")).collect();
    assert_eq!(buttons.len(), 3);
    assert_eq!(buttons.iter().filter(|button| button.has_attribute("checked")).count(), 1);
    for button in buttons {
        let id = button.attribute("id").unwrap();
        assert!(document.descendants().any(|node| node.has_tag_name("label") && node.attribute("for") == Some(id)));
        // The style shows the view of the button that is chosen.
        let view = id.replace("view-", "in-");
        assert!(text.contains(&format!("#{id}:checked ~ .scroll .{view}")), "{id}");
        assert!(drawing(&document).descendants().any(|node| has_class(&node, &view)), "{id}");
    }
}

#[test]
fn the_matrix_has_a_cell_for_each_ordered_pair() {
    for size in [4, 11, 20] {
        let (graphs, _) = random(size, 5);
        let text = shown(graphs.clone()).page();
        let document = parse(&text);
        let matrix = with_class(document.root(), "matrix").next().unwrap();
        let cells: Vec<_> = with_class(matrix, "cell").collect();
        assert_eq!(cells.len(), size * (size - 1));
        assert_eq!(with_class(matrix, "framed").count(), graphs.truth.unwrap().edges.len());
        let written = cells.iter().any(|cell| cell.children().any(|child| child.has_tag_name("text")));
        assert_eq!(written, size <= 15);
        // Rows are causes.
        let title = cells[0].children().find(|child| child.has_tag_name("title")).unwrap();
        assert!(title.text().unwrap().starts_with("name_0 → namename_1\n"), "{:?}", title.text());
    }
}

#[test]
fn trivial_answers_are_judged_like_this_one() {
    let text = shown(five()).page();
    let document = parse(&text);
    let section = document.descendants().find(|node| node.attribute("id") == Some("truth")).unwrap();
    let bold: Vec<&str> =
        section.descendants().filter(|node| node.has_tag_name("strong")).filter_map(|node| node.text()).collect();
    assert_eq!(bold, ["2", "0.750"]);
    assert!(text.contains("In 1 of 2 rows a trivial answer is as good or better."));
}

#[test]
fn long_graphs_are_told_by_what_differs_from_the_leading_one() {
    let edges: Vec<String> = (0..20).map(|i| format!("a{i} → b{i}")).collect();
    let other: Vec<String> = edges[1..].iter().cloned().chain(["x → y".to_owned()]).collect();
    let mut shown = shown(five());
    shown.answer.models[0].label = edges.join(", ").replace(" → ", "→");
    shown.answer.models[1].label = other.join(", ").replace(" → ", "→");
    let text = shown.page();
    let document = parse(&text);
    let folds: Vec<Node<'_, '_>> = with_class(document.root(), "fold").collect();
    assert_eq!(folds.len(), 2);
    let said = |node: Node<'_, '_>| {
        node.descendants().filter_map(|node| node.text().filter(|_| node.is_text())).collect::<String>()
    };
    let summary = |fold: Node<'_, '_>| said(fold.children().find(|node| node.has_tag_name("summary")).unwrap());
    assert_eq!(summary(folds[1]), "leading graph without a0 → b0; with x → y");
    assert!(summary(folds[0]).ends_with("and 14 more"), "{}", summary(folds[0]));
    for (fold, label) in folds.iter().zip([edges.join(", "), other.join(", ")]) {
        assert_eq!(said(fold.children().find(|node| node.has_tag_name("div")).unwrap()), label);
    }
    assert!(text.contains("no edges"));
}
