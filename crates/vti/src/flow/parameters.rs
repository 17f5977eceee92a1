//! Where each parameter of a network stands in φ, what it is called and how it starts.

use std::ops::Range;

use crate::device::{Linear, Reach, Staircase};
use crate::random::{Purpose, Stream};
use crate::simd::Real;

/// How parameters start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Initialise {
    /// 0.
    Zero,
    /// Uniform on ±bound.
    Uniform { bound: f64 },
    /// Weights of an output that reads `n` inputs: uniform on ±1/√n.
    FanIn,
}

/// A named piece of the parameters: a matrix or a vector, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Where it belongs, from the outside in: `layers.0.blocks.1.linear2.weight`.
    pub name: String,
    /// Where it starts in φ.
    pub offset: usize,
    /// Its dimensions.
    pub shape: Vec<usize>,
}

impl Tensor {
    /// The numbers of φ it covers.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.shape.iter().product::<usize>()
    }
}

/// Builds up the parameters of a network, one piece after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    len: usize,
    path: Vec<String>,
    tensors: Vec<Tensor>,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Block(Range<usize>, Initialise),
    Linear(Linear, Initialise),
}

impl Layout {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Names what `build` allocates as parts of `name`.
    pub(crate) fn within<R>(&mut self, name: impl Into<String>, build: impl FnOnce(&mut Self) -> R) -> R {
        self.path.push(name.into());
        let built = build(self);
        self.path.pop();
        built
    }

    fn name(&mut self, name: &str, offset: usize, shape: &[usize]) {
        let name = self.path.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".");
        self.tensors.push(Tensor { name, offset, shape: shape.to_vec() });
    }

    /// A matrix or vector of parameters.
    pub(crate) fn block(&mut self, name: &str, shape: &[usize], how: Initialise) -> usize {
        let at = self.len;
        self.len += shape.iter().product::<usize>();
        self.name(name, at, shape);
        self.pieces.push(Piece::Block(at..self.len, how));
        at
    }

    /// Weights and biases of a linear map.
    pub(crate) fn linear(&mut self, stairs: Staircase, outputs: Reach, inputs: Reach, how: Initialise) -> Linear {
        let linear = Linear::allocate(&mut self.len, stairs, outputs, inputs);
        let (rows, columns) = (linear.stairs.outputs(), linear.stairs.inputs());
        self.name("weight", linear.weight, &[rows, columns]);
        self.name("bias", linear.bias, &[rows]);
        self.pieces.push(Piece::Linear(linear.clone(), how));
        linear
    }

    /// Starts a range at 0 after all.
    pub(crate) fn zero(&mut self, range: Range<usize>) {
        self.pieces.push(Piece::Block(range, Initialise::Zero));
    }

    /// Initial values: each piece of each network from a random stream of its own.
    pub(crate) fn initial<T: Real>(&self, seed: u64, network: u64) -> Vec<T> {
        let mut values = vec![T::ZERO; self.len];
        for (index, piece) in self.pieces.iter().enumerate() {
            let mut stream = Stream::new(seed, Purpose::Initialise, network, index as u64);
            let mut draw = |bound: f64| T::from_f64(bound * (2.0 * stream.uniform() - 1.0));
            match piece {
                Piece::Block(range, Initialise::Uniform { bound }) => {
                    values[range.clone()].fill_with(|| draw(*bound));
                }
                Piece::Block(range, Initialise::Zero | Initialise::FanIn) => values[range.clone()].fill(T::ZERO),
                Piece::Linear(linear, how) => {
                    let (stairs, inputs) = (&linear.stairs, linear.stairs.inputs());
                    for output in 0..stairs.outputs() {
                        let bound = |n: usize| match how {
                            Initialise::Zero => 0.0,
                            Initialise::Uniform { bound } => *bound,
                            Initialise::FanIn => 1.0 / (n.max(1) as f64).sqrt(),
                        };
                        let prefix = stairs.prefix(output);
                        let row = &mut values[linear.weight + output * inputs..][..prefix];
                        row.fill_with(|| draw(bound(prefix)));
                        values[linear.bias + output] = draw(bound(inputs));
                    }
                }
            }
        }
        values
    }
}
