//! Where the parameters of a node with hidden units stand.

use std::ops::Range;

/// Places of the parameters of a node: those it always has (σ where it is unknown; intercepts or cut points of categories); and, if
/// it has parents, hidden biases b¹ (with biases), output weights W² of each output, output biases b² (with biases), and for each
/// input, ascending, its column of W¹. Numbers have one output, the mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Parameters that a node without parents has, too.
    pub own: usize,
    /// Hidden units.
    pub hidden: usize,
    /// Whether there are biases.
    pub bias: bool,
    /// Outputs.
    pub outputs: usize,
}

impl Layout {
    /// Number of parameters of a node with so many inputs.
    pub(super) fn dim(self, inputs: usize) -> usize {
        if inputs > 0 { self.columns() + inputs * self.hidden } else { self.own }
    }

    /// W², one output after another.
    pub(super) fn output(self) -> Range<usize> {
        let start = self.own + if self.bias { self.hidden } else { 0 };
        start..start + self.outputs * self.hidden
    }

    /// W² of each output.
    pub(super) fn outputs(self) -> impl Iterator<Item = Range<usize>> {
        let start = self.output().start;
        (0..self.outputs).map(move |output| start + output * self.hidden..start + (output + 1) * self.hidden)
    }

    /// b² of the first output; those of others follow.
    pub(super) fn output_bias(self) -> Option<usize> {
        self.bias.then_some(self.output().end)
    }

    /// Where the columns of W¹ begin.
    fn columns(self) -> usize {
        self.output().end + if self.bias { self.outputs } else { 0 }
    }

    /// The column of W¹ of an input, by its rank among them.
    pub(super) fn column(self, rank: usize) -> Range<usize> {
        let start = self.columns() + rank * self.hidden;
        start..start + self.hidden
    }

    /// b¹, where there are biases.
    pub(super) fn hidden_biases(self) -> Option<Range<usize>> {
        self.bias.then_some(self.own..self.own + self.hidden)
    }

    /// Weights of every input of the hidden units: b¹, whose input is always 1, and the columns of W¹.
    pub(super) fn inputs(self, inputs: usize) -> impl Iterator<Item = Range<usize>> {
        self.hidden_biases().into_iter().chain((0..inputs).map(move |rank| self.column(rank)))
    }
}
