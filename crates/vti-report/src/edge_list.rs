//! Graphs in few words: long lists of edges by what they have more and less than the leading one.

/// Up to this many edges are simply written.
pub(crate) const SHORT: usize = 10;
/// Of longer lists this many are shown.
pub(crate) const SHOWN: usize = 6;

/// The edges of a label, `a → b, b → c`.
pub(crate) fn edges(label: &str) -> Vec<&str> {
    label.split(", ").filter(|edge| !edge.is_empty()).collect()
}

/// What a graph has less and more than the leading one; none where that takes as many words as the graph.
pub(crate) fn changes<'a>(leading: &'a str, edges: &[&'a str]) -> Option<[Vec<&'a str>; 2]> {
    let old = self::edges(leading);
    let lost: Vec<&str> = old.iter().copied().filter(|edge| !edges.contains(edge)).collect();
    let gained: Vec<&str> = edges.iter().copied().filter(|edge| !old.contains(edge)).collect();
    let changed = lost.len() + gained.len();
    (changed > 0 && 2 * changed <= edges.len()).then_some([lost, gained])
}

/// A graph in a line of text.
pub(crate) fn brief(label: &str, leading: Option<&str>) -> String {
    let edges = edges(label);
    if edges.len() <= SHORT {
        return label.into();
    }
    match leading.and_then(|leading| changes(leading, &edges)) {
        None => format!("{} edges: {}", edges.len(), some(&edges)),
        Some(changed) => {
            let parts = ["without", "with"].into_iter().zip(&changed).filter(|(_, edges)| !edges.is_empty());
            let parts: Vec<String> = parts.map(|(word, edges)| format!("{word} {}", some(edges))).collect();
            format!("leading graph {}", parts.join("; "))
        }
    }
}

/// The first few.
fn some(edges: &[&str]) -> String {
    if edges.len() <= SHOWN + 1 {
        return edges.join(", ");
    }
    format!("{} and {} more", edges[..SHOWN].join(", "), edges.len() - SHOWN)
}

/// All edges of a graph that is too long for a line, several to a line.
pub(crate) fn written_out(label: &str) -> Option<String> {
    const WIDTH: usize = 90;
    let edges = edges(label);
    if edges.len() <= SHORT {
        return None;
    }
    let mut lines = vec![String::new()];
    for (place, edge) in edges.iter().enumerate() {
        let item = format!("{edge}{}", if place + 1 < edges.len() { "," } else { "" });
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + item.chars().count() > WIDTH {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            let space = if line.is_empty() { "  " } else { " " };
            *line += &format!("{space}{item}");
        }
    }
    Some(lines.join("\n"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn long_graphs_are_said_in_few_words() {
        let edge = |i: usize| format!("node{i}→node{}", i + 1);
        let all: Vec<String> = (0..30).map(edge).collect();
        let leading = all.join(", ");
        let other = all[1..].iter().cloned().chain(["a→b".into()]).collect::<Vec<_>>().join(", ");
        assert_eq!(brief("a→b, b→c", None), "a→b, b→c");
        assert_eq!(brief(&other, Some(&leading)), "leading graph without node0→node1; with a→b");
        let first = brief(&leading, None);
        assert!(first.starts_with("30 edges: node0→node1, ") && first.ends_with(" and 24 more"), "{first}");
        // Nothing is shorter than what has nothing in common.
        assert!(brief(&leading.replace("node", "n"), Some(&leading)).starts_with("30 edges"));
        let whole = written_out(&leading).unwrap();
        assert!(whole.lines().all(|line| line.chars().count() <= 92) && whole.lines().count() > 3, "{whole}");
        assert!(all.iter().all(|edge| whole.contains(edge.as_str())));
        assert_eq!(written_out("a→b"), None);
    }
}
