//! Shapes of masked linear maps.

/// For each row dimension `D`, how many leading units a row with `D` active coordinates needs.
///
/// ```
/// use vti::device::Reach;
/// let reach = Reach::new(vec![0, 2, 4]);
/// assert_eq!(reach.units(1), 2);
/// assert_eq!(reach.all(), 4);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach(Box<[u32]>);

impl Reach {
    /// From the number of units for dimensions `0..=d_max`, which must not decrease.
    pub fn new(units: Vec<u32>) -> Self {
        assert!(!units.is_empty() && units.is_sorted(), "units must not decrease with the dimension");
        Self(units.into())
    }

    /// All of `units` for every row that has any coordinate at all.
    pub fn whole(max_dim: usize, units: usize) -> Self {
        Self::new((0..=max_dim).map(|dim| if dim == 0 { 0 } else { units as u32 }).collect())
    }

    /// Units needed for dimension `dim`, or for the largest one if that is smaller.
    #[inline]
    pub fn units(&self, dim: u32) -> usize {
        self.0[(dim as usize).min(self.0.len() - 1)] as usize
    }

    /// Units needed for the largest dimension.
    pub fn all(&self) -> usize {
        self.0[self.0.len() - 1] as usize
    }
}

/// A masked weight matrix whose units are sorted by degree: output `o` reads inputs `0..prefix(o)`, and prefixes do not
/// shrink from one output to the next.
///
/// ```
/// use vti::device::Staircase;
/// let stairs = Staircase::new(vec![0, 2, 2, 3], 3);
/// assert_eq!(stairs.prefix(1), 2);
/// assert_eq!(stairs.first(2), 3); // only the last output reads input 2
/// assert_eq!(stairs.nonzeros(), 7);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staircase {
    prefix: Box<[u32]>,
    first: Box<[u32]>,
}

impl Staircase {
    /// From the prefix of each output.
    pub fn new(prefix: Vec<u32>, inputs: usize) -> Self {
        let fits = prefix.last().is_none_or(|&last| last as usize <= inputs);
        assert!(prefix.is_sorted() && fits, "prefixes must not shrink nor exceed the inputs");
        let first = (0..inputs).map(|i| prefix.partition_point(|&p| p as usize <= i) as u32).collect();
        Self { prefix: prefix.into(), first }
    }

    /// Every output reads every input.
    pub fn dense(outputs: usize, inputs: usize) -> Self {
        Self::new(vec![inputs as u32; outputs], inputs)
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.prefix.len()
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.first.len()
    }

    /// How many leading inputs output `o` reads.
    #[inline]
    pub fn prefix(&self, output: usize) -> usize {
        self.prefix[output] as usize
    }

    /// The first output that reads input `i`; all later ones do too.
    #[inline]
    pub fn first(&self, input: usize) -> usize {
        self.first[input] as usize
    }

    /// Weights that are not structurally zero.
    pub fn nonzeros(&self) -> usize {
        self.prefix.iter().map(|&p| p as usize).sum()
    }
}

/// A linear map `y = W x + b` whose weights live somewhere in the parameters φ, row-major, with exact zeros outside the
/// staircase.
#[derive(Clone, Debug)]
pub struct Linear {
    pub(crate) weight: usize,
    pub(crate) bias: usize,
    pub(crate) stairs: Staircase,
    pub(crate) outputs: Reach,
    pub(crate) inputs: Reach,
}

impl Linear {
    /// Allocates parameters for a map at the end of a layout of `len` numbers so far.
    pub fn allocate(len: &mut usize, stairs: Staircase, outputs: Reach, inputs: Reach) -> Self {
        assert_eq!((stairs.outputs(), stairs.inputs()), (outputs.all(), inputs.all()), "reaches must fit the map");
        let weight = *len;
        let bias = weight + stairs.outputs() * stairs.inputs();
        *len = bias + stairs.outputs();
        Self { weight, bias, stairs, outputs, inputs }
    }

    /// Where the weights start.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Where the biases start.
    pub fn bias(&self) -> usize {
        self.bias
    }

    /// Which weights are not structurally zero.
    pub fn stairs(&self) -> &Staircase {
        &self.stairs
    }

    /// Outputs a row needs.
    pub fn outputs(&self) -> &Reach {
        &self.outputs
    }

    /// Inputs a row has.
    pub fn inputs(&self) -> &Reach {
        &self.inputs
    }
}
