//! Which lines each view of the graph shows.

use super::{FAINT, Known};

/// A view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// Every edge that is not improbable.
    Probabilities,
    /// The most probable graph.
    Best,
    /// Its equivalence class.
    Class,
}

impl View {
    pub(super) const ALL: [Self; 3] = [Self::Probabilities, Self::Best, Self::Class];

    /// For markup.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Probabilities => "probabilities",
            Self::Best => "best",
            Self::Class => "class",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Probabilities => "Edge probabilities",
            Self::Best => "Most probable graph",
            Self::Class => "Its equivalence class (CPDAG)",
        }
    }
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// The more probable direction where both are possible.
    pub(super) from: usize,
    pub(super) to: usize,
    /// Whether it has an arrowhead.
    pub(super) is_directed: bool,
    /// How probable what it shows is: the edge, or, without direction, either of both. `None` where the view does not
    /// speak of probabilities.
    pub(super) probability: Option<f64>,
    /// Compared with the truth; `None` without it.
    pub(super) mark: Option<Mark>,
}

/// A line compared with the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// It is in the truth.
    Right,
    /// It is in the truth the other way round.
    Reversed,
    /// It is not in the truth.
    Extra,
    /// It is in the truth but not in this view.
    Missing,
}

impl Mark {
    pub(super) const ALL: [Self; 4] = [Self::Right, Self::Reversed, Self::Extra, Self::Missing];

    /// For markup.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Reversed => "reversed",
            Self::Extra => "extra",
            Self::Missing => "missing",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Right => "in the truth",
            Self::Reversed => "in the truth the other way round",
            Self::Extra => "not in the truth",
            Self::Missing => "in the truth, missing here",
        }
    }
}

/// The lines of a view, most probable first; those that are missing last.
pub(super) fn lines(known: &Known<'_>, view: View) -> Vec<Line> {
    let mut lines: Vec<Line> = match view {
        View::Probabilities => known.pairs().filter_map(|pair| probable(known, pair)).collect(),
        View::Best => known.best.iter().map(|&edge| plain(known, edge, true)).collect(),
        View::Class => {
            let directed = known.directed.iter().map(|&edge| plain(known, edge, true));
            directed.chain(known.undirected.iter().map(|&edge| plain(known, edge, false))).collect()
        }
    };
    lines.sort_by(|a, b| b.probability.unwrap_or(1.0).total_cmp(&a.probability.unwrap_or(1.0)));
    if view == View::Probabilities {
        lines.truncate(most(known));
    }
    let missing: Vec<Line> = known
        .truth
        .iter()
        .flatten()
        .filter(|&&(from, to)| !lines.iter().any(|line| [(from, to), (to, from)].contains(&(line.from, line.to))))
        .map(|&(from, to)| Line { from, to, is_directed: true, probability: None, mark: Some(Mark::Missing) })
        .collect();
    lines.extend(missing);
    lines
}

/// More lines than this hide each other.
fn most(known: &Known<'_>) -> usize {
    4 * known.nodes + 20
}

/// How many pairs are probable enough for a line but not among the most probable ones.
pub(super) fn left_out(known: &Known<'_>) -> usize {
    known.pairs().filter_map(|pair| probable(known, pair)).count().saturating_sub(most(known))
}

/// The line of a pair among probabilities: without direction unless one is at least twice as probable as the other.
fn probable(known: &Known<'_>, (a, b): (usize, usize)) -> Option<Line> {
    let (from, to) = if known.weight(a, b) >= known.weight(b, a) { (a, b) } else { (b, a) };
    let (more, less) = (known.weight(from, to), known.weight(to, from));
    let is_directed = more >= 2.0 * less;
    let shown = if is_directed { more } else { (more + less).min(1.0) };
    (shown >= FAINT).then(|| Line {
        from,
        to,
        is_directed,
        probability: Some(shown),
        mark: mark(known, (from, to), is_directed),
    })
}

fn plain(known: &Known<'_>, (from, to): (usize, usize), is_directed: bool) -> Line {
    Line { from, to, is_directed, probability: None, mark: mark(known, (from, to), is_directed) }
}

fn mark(known: &Known<'_>, (from, to): (usize, usize), is_directed: bool) -> Option<Mark> {
    let (forward, backward) = (known.is_true(from, to)?, known.is_true(to, from)?);
    Some(match (forward, backward) {
        (true, _) => Mark::Right,
        (false, true) if is_directed => Mark::Reversed,
        (false, true) => Mark::Right,
        (false, false) => Mark::Extra,
    })
}
