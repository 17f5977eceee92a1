//! Edges of causal graphs: `edges.csv`, `graph.dot`, `graph.graphml`.

use std::fmt::Write as _;

use vti::answer::{Edge, Edges, Quantity};

use super::{Cells, CsvTable, FileError};
use crate::markup::escape;

/// `edges.csv`: every edge that there could be, most probable first.
pub fn edges_csv(edges: &Edges, cells: Cells) -> Result<Vec<u8>, FileError> {
    let mut table = CsvTable::new(cells, ["from", "to", "q", "corrected", "se", "reverse", "none", "exact"])?;
    for Edge { from, to, probability: Quantity { q, corrected, se, exact }, reverse, none } in edges.ranked() {
        let cell = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let numbers = [corrected, se, reverse, none].map(|number| number.to_string());
        let names = [edges.nodes[from].clone(), edges.nodes[to].clone()];
        table.row(names.into_iter().chain([cell(learned(q))]).chain(numbers).chain([cell(exact)]))?;
    }
    table.bytes()
}

/// What q says, where there is one.
fn learned(q: f64) -> Option<f64> {
    Some(q).filter(|q| !q.is_nan())
}

/// Edges that are less probable are not drawn.
const DRAWN: f64 = 0.1;

/// `graph.dot`, a drawing for Graphviz: the more probable an edge, the darker and thicker; dashed where it is less probable than not.
pub fn dot(edges: &Edges) -> String {
    let mut text = String::from("digraph vti {\n  node [shape=ellipse];\n");
    for name in &edges.nodes {
        // In a label, two backslashes show one.
        let _ = writeln!(text, "  {0} [label={0}];", dot_name(name));
    }
    let drawn = edges.ranked().into_iter().filter(|edge| edge.probability.corrected >= DRAWN);
    for Edge { from, to, probability: Quantity { q, corrected, .. }, .. } in drawn {
        let style = if corrected > 0.5 { "solid" } else { "dashed" };
        let q = learned(q).map_or_else(String::new, |q| format!("q=\"{q}\", "));
        // Colours with the opacity behind them.
        let opacity = (55.0 + 200.0 * corrected).round() as u8;
        let _ = writeln!(
            text,
            "  {} -> {} [label=\"{corrected:.2}\", {q}corrected=\"{corrected}\", style={style}, \
             penwidth=\"{:.2}\", color=\"#1f2933{opacity:02x}\"];",
            dot_name(&edges.nodes[from]),
            dot_name(&edges.nodes[to]),
            0.5 + 2.0 * corrected
        );
    }
    text + "}\n"
}

/// A name in quotes. A backslash before the closing quote would hide it, and line breaks belong to nobody's name.
fn dot_name(name: &str) -> String {
    format!("\"{}\"", plain(name).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Without control characters.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `graph.graphml`: every edge with a positive probability, for tools that read GraphML. Nodes have identifiers, and their names as `name`.
pub fn graphml(edges: &Edges) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns \
         http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd\">\n  \
         <key id=\"name\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n",
    );
    for key in ["q", "corrected", "se"] {
        let _ = writeln!(text, "  <key id=\"{key}\" for=\"edge\" attr.name=\"{key}\" attr.type=\"double\"/>");
    }
    text += "  <graph id=\"vti\" edgedefault=\"directed\">\n";
    for (number, name) in edges.nodes.iter().enumerate() {
        let _ = writeln!(text, "    <node id=\"n{number}\"><data key=\"name\">{}</data></node>", escape(&plain(name)));
    }
    for Edge { from, to, probability: Quantity { q, corrected, se, .. }, .. } in edges.ranked() {
        if q > 0.0 || corrected > 0.0 {
            let data = [("q", learned(q)), ("corrected", Some(corrected)), ("se", Some(se))];
            let data = data.iter().filter_map(|(key, value)| Some(format!("<data key=\"{key}\">{}</data>", (*value)?)));
            let data: String = data.collect();
            let _ = writeln!(text, "    <edge source=\"n{from}\" target=\"n{to}\">{data}</edge>");
        }
    }
    text + "  </graph>\n</graphml>\n"
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn edges() -> Edges {
        let edge = |(q, corrected)| Quantity { q, corrected, se: 0.01, exact: None };
        let rows = [[(0.0, 0.0), (0.7, 0.8), (0.0, 0.0)], [(0.2, 0.15), (0.0, 0.0), (0.05, 0.02)], [(0.0, 0.0); 3]];
        Edges {
            nodes: ["a \"b\" <&>", "back\\", "c"].map(String::from).to_vec(),
            probabilities: rows.map(|row| row.map(edge).to_vec()).to_vec(),
        }
    }

    #[test]
    fn edges_are_listed_most_probable_first_with_what_both_directions_leave() {
        let text = String::from_utf8(edges_csv(&edges(), Cells::Guarded).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 7);
        assert_eq!(lines[0], "from,to,q,corrected,se,reverse,none,exact");
        assert!(lines[1].starts_with("\"a \"\"b\"\" <&>\",back\\,0.7,0.8,0.01,0.15,0.0"), "{}", lines[1]);
        assert!(lines[2].starts_with("back\\,\"a \"\"b\"\" <&>\",0.2,0.15,"), "{}", lines[2]);
    }

    #[test]
    fn names_are_escaped() {
        let text = dot(&edges());
        assert!(text.contains("\"a \\\"b\\\" <&>\" -> \"back\\\\\" [label=\"0.80\""), "{text}");
        assert!(!text.contains("-> \"c\""), "{text}");
        let text = graphml(&edges());
        assert!(text.contains("<data key=\"name\">a &quot;b&quot; &lt;&amp;&gt;</data>"), "{text}");
        assert_eq!(text.matches("<edge ").count(), 3);
    }
}
