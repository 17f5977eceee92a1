//! What each score means, for tables.

use serde::{Deserialize, Serialize};

use super::Scores;

/// Which way a score improves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Larger is better.
    #[default]
    Higher,
    /// Smaller is better.
    Lower,
}

/// What a score means.
#[derive(Clone, Copy, Debug)]
pub struct Convention {
    /// The field of [`Scores`].
    pub name: &'static str,
    /// A heading.
    pub label: &'static str,
    /// In words.
    pub meaning: &'static str,
    /// Which way it improves.
    pub better: Better,
    /// Takes it out.
    pub value: fn(&Scores) -> Option<f64>,
}

/// All scores, those of the paper first.
///
/// ```
/// use vti::graph::{Graph, metrics};
/// let truth = Graph::from_edges(2, &[(0, 1)])?;
/// let scores = metrics::Scores::of_samples(&truth, &[(truth.clone(), 1.0)])?;
/// for convention in metrics::conventions() {
///     let best = if convention.better == metrics::Better::Higher { 1.0 } else { 0.0 };
///     assert_eq!((convention.value)(&scores), Some(best), "{}", convention.label);
/// }
/// # Ok::<(), vti::graph::GraphError>(())
/// ```
pub fn conventions() -> &'static [Convention] {
    &CONVENTIONS
}

macro_rules! convention {
    ($name:ident, $label:literal, $better:ident, $meaning:literal) => {
        Convention {
            name: stringify!($name),
            label: $label,
            meaning: $meaning,
            better: Better::$better,
            value: |scores| scores.$name,
        }
    };
}

static CONVENTIONS: [Convention; 14] = [
    convention!(f1_mean, "F1", Higher, "F1 over directed edges, mean over graphs (the paper's)"),
    convention!(
        expected_shd2,
        "SHD",
        Lower,
        "entries of the adjacency matrix that differ, so a reversed edge counts 2, mean over graphs (the paper's)"
    ),
    convention!(brier_sum, "Brier", Lower, "squared error of edge probabilities, sum over all entries (the paper's)"),
    convention!(
        auroc_paper,
        "AUROC, single graphs",
        Higher,
        "balanced accuracy with the diagonal among the non-edges, mean over graphs (the paper's AUROC)"
    ),
    convention!(
        auroc,
        "AUROC",
        Higher,
        "area under the receiver operating curve of edge probabilities, ties counted half, diagonal left out"
    ),
    convention!(
        balanced_accuracy,
        "balanced accuracy",
        Higher,
        "mean of the shares of edges found and of non-edges left out, diagonal left out, mean over graphs"
    ),
    convention!(
        expected_shd1,
        "SHD, reversal 1",
        Lower,
        "pairs of nodes between which the graphs differ, so a reversed edge counts 1, mean over graphs"
    ),
    convention!(
        shd2_threshold,
        "SHD at ½",
        Lower,
        "entries that differ, of the one graph of edges more probable than ½; a reversed edge counts 2"
    ),
    convention!(
        shd1_threshold,
        "SHD at ½, reversal 1",
        Lower,
        "pairs of nodes that differ, of the one graph of edges more probable than ½; a reversed edge counts 1"
    ),
    convention!(f1_threshold, "F1 at ½", Higher, "F1 of the one graph of edges more probable than ½"),
    convention!(
        brier_mean,
        "Brier, mean",
        Lower,
        "squared error of edge probabilities, mean over entries off the diagonal"
    ),
    convention!(
        expected_cpdag_shd2,
        "CPDAG SHD",
        Lower,
        "entries in which the equivalence classes differ, an undirected edge having both, mean over graphs"
    ),
    convention!(
        expected_cpdag_shd1,
        "CPDAG SHD, pairs",
        Lower,
        "pairs of nodes between which the equivalence classes differ, mean over graphs"
    ),
    convention!(
        cpdag_f1_mean,
        "CPDAG F1",
        Higher,
        "F1 over entries of the equivalence classes, an undirected edge having both, mean over graphs"
    ),
];
