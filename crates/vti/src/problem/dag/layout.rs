//! Where the parameters of a node stand.

use std::ops::Range;

/// Places of the parameters of a node: σ where it is unknown; and, if it has parents, hidden biases b¹ (with biases),
/// output weights W², the output bias b² (with biases), and for each parent, ascending, its column of W¹.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Whether σ is a parameter.
    pub scale: bool,
    /// Hidden units.
    pub hidden: usize,
    /// Whether there are biases.
    pub bias: bool,
}

impl Layout {
    /// Number of parameters of a node with so many parents.
    pub(super) fn dim(self, parents: usize) -> usize {
        if parents > 0 { self.columns() + parents * self.hidden } else { self.before() }
    }

    /// Parameters that a node without parents has.
    fn before(self) -> usize {
        usize::from(self.scale)
    }

    /// W².
    pub(super) fn output(self) -> Range<usize> {
        let start = self.before() + if self.bias { self.hidden } else { 0 };
        start..start + self.hidden
    }

    /// b².
    pub(super) fn output_bias(self) -> Option<usize> {
        self.bias.then_some(self.output().end)
    }

    /// Where the columns of W¹ begin.
    fn columns(self) -> usize {
        self.output().end + usize::from(self.bias)
    }

    /// The column of W¹ of a parent, by its rank among them.
    pub(super) fn column(self, rank: usize) -> Range<usize> {
        let start = self.columns() + rank * self.hidden;
        start..start + self.hidden
    }

    /// Weights of every input of the hidden units: b¹, whose input is always 1, and the columns of W¹.
    pub(super) fn inputs(self, parents: usize) -> impl Iterator<Item = Range<usize>> {
        let biases = self.bias.then(|| self.before()..self.before() + self.hidden);
        biases.into_iter().chain((0..parents).map(move |rank| self.column(rank)))
    }
}
