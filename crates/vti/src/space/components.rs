//! How many? Identical blocks of parameters, of which a model has any number.

use std::ops::RangeInclusive;

use super::error::at_most;
use super::neighbours::change_or_exchange;
use super::{MAX_DIM, ModelSpace, SpaceError};
use crate::prior::{CountPrior, Normal, Prior, PriorError};
use crate::random::Stream;

/// How the values of one parameter are distributed over the blocks of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// Independent of each other and of all else.
    Independent(Prior),
    /// Independent, but blocks are numbered in ascending order of this parameter: order statistics, with the density k! ∏ p(θᵢ).
    Ordered(Prior),
    /// Ascending positions between two fixed ends. Of what is left beside a smallest spacing for each, the k + 1 spacings have
    /// Dirichlet shares; a concentration of 1 is that of uniform positions.
    Spaced {
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
        /// The smallest spacing, also between a position and an end.
        minimum: f64,
        /// Of the Dirichlet distribution.
        concentration: f64,
    },
    /// Shares that sum to 1 whatever k is, with a symmetric Dirichlet distribution of this concentration.
    Shares(f64),
    /// Known, the same number for all blocks or one for each: nothing is inferred.
    Known(Vec<f64>),
}

impl Law {
    /// Whether it puts blocks in order.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Self::Ordered(_) | Self::Spaced { .. })
    }

    /// Whether it is known.
    pub fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    fn check(&self) -> Result<(), PriorError> {
        match self {
            Self::Independent(prior) | Self::Ordered(prior) => prior.check(),
            _ => Ok(()),
        }
    }
}

/// A parameter of each block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockParameter {
    /// What it is called.
    pub name: String,
    /// Its distribution.
    pub law: Law,
}

/// A kind of component: identical blocks, of which a model has some number.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentKind {
    /// What one of them is called.
    pub name: String,
    /// How many there may be.
    pub counts: RangeInclusive<usize>,
    /// How probable each number is; none where whoever makes a problem of the space says.
    pub count_prior: Option<CountPrior>,
    /// Parameters of each block.
    pub parameters: Vec<BlockParameter>,
    /// Whether blocks have labels, so that none is like another: nothing is then put in order.
    pub is_labelled: bool,
}

impl ComponentKind {
    /// Parameters of a block.
    pub fn width(&self) -> usize {
        self.parameters.len()
    }

    /// The parameter that puts blocks in order.
    pub fn key(&self) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.law.is_ordered())
    }

    /// The parameter that is a share of 1.
    pub fn share(&self) -> Option<usize> {
        self.parameters.iter().position(|parameter| matches!(parameter.law, Law::Shares(_)))
    }

    /// Parameters of a block that are inferred.
    pub fn free_width(&self) -> usize {
        self.free_before(self.width())
    }

    /// How many of a block's parameters before this one are inferred.
    pub(crate) fn free_before(&self, parameter: usize) -> usize {
        self.parameters[..parameter].iter().filter(|parameter| !parameter.law.is_known()).count()
    }

    /// Parameters of a block that have a prior of their own: all that are inferred but a share.
    pub(crate) fn score_width(&self) -> usize {
        self.free_width() - usize::from(self.share().is_some())
    }

    /// The place of a parameter among those.
    pub(crate) fn score_place(&self, parameter: usize) -> usize {
        self.free_before(parameter) - usize::from(self.share().is_some_and(|share| share < parameter))
    }

    /// Free coordinates of so many blocks: k shares take k − 1.
    pub fn free_dim(&self, count: usize) -> usize {
        (count * self.free_width()).saturating_sub(usize::from(self.share().is_some()))
    }

    fn max_count(&self) -> usize {
        *self.counts.end()
    }
}

/// A space whose models differ in how many components of each kind they have: a symbol for each kind, counted from the smallest
/// number allowed. Beside the components there are parameters that all models have.
///
/// Components are alike, so that their order means nothing: blocks are numbered in ascending order of one parameter, the *key*, and
/// the density of a model's parameters is k! times that of blocks in any order. Where none is declared ([`Components::ordered`],
/// [`Components::spaced`]) it is the first parameter that is not a share.
///
/// Free coordinates are standard normal under the prior, in every model: θ = F⁻¹(Φ(u)), for order statistics and shares by stick
/// breaking.
///
/// ```
/// use vti::prior::{HalfNormal, LogNormal, Uniform};
/// use vti::space::{Components, ModelSpace};
/// let peaks = Components::new("peak", 0..=8)
///     .each("position", Uniform(0.0, 10.0))
///     .ordered()
///     .each("height", LogNormal(0.0, 1.0))
///     .with("noise", HalfNormal(1.0))
///     .build()?;
/// assert_eq!((peaks.arities(), peaks.max_dim()), (&[9][..], 17));
/// assert_eq!(peaks.label(&[2]), "2 peaks");
/// # Ok::<(), vti::space::SpaceError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Components {
    kinds: Vec<ComponentKind>,
    globals: Vec<(String, Prior)>,
    arities: Vec<u16>,
    /// The first free coordinate of each kind.
    starts: Vec<usize>,
    max_dim: usize,
    /// What was wrong first, while it is put together.
    error: Option<String>,
}

impl Components {
    /// Components of one kind, in any of these numbers; 0 may be among them.
    pub fn new(name: &str, counts: RangeInclusive<usize>) -> Self {
        let empty = Self {
            kinds: Vec::new(),
            globals: Vec::new(),
            arities: Vec::new(),
            starts: Vec::new(),
            max_dim: 0,
            error: None,
        };
        empty.and(name, counts)
    }

    /// Components of a further kind; what follows is about these.
    pub fn and(mut self, name: &str, counts: RangeInclusive<usize>) -> Self {
        let kind =
            ComponentKind { name: name.into(), counts, count_prior: None, parameters: Vec::new(), is_labelled: false };
        self.kinds.push(kind);
        self
    }

    /// A parameter of each component of the last kind, independent of all others.
    pub fn each(self, name: &str, prior: impl Into<Prior>) -> Self {
        let law = Law::Independent(prior.into());
        self.parameter(name, law)
    }

    /// Components are numbered in ascending order of the last parameter.
    pub fn ordered(mut self) -> Self {
        match self.kinds.last_mut().and_then(|kind| kind.parameters.last_mut()) {
            Some(BlockParameter { law, .. }) if matches!(law, Law::Independent(_)) => {
                if let Law::Independent(prior) = law.clone() {
                    *law = Law::Ordered(prior);
                }
            }
            _ => self.fail("ordered() must follow a parameter with a prior of its own"),
        }
        self
    }

    /// A position of each component between two fixed ends, in ascending order, at least `minimum` from its neighbours and the ends;
    /// spacings have Dirichlet shares of this concentration, 1 for uniform positions.
    pub fn spaced(self, name: &str, ends: (f64, f64), minimum: f64, concentration: f64) -> Self {
        self.parameter(name, Law::Spaced { low: ends.0, high: ends.1, minimum, concentration })
    }

    /// A share of 1 for each component, whatever their number, with a symmetric Dirichlet distribution of this concentration.
    pub fn shares(self, name: &str, concentration: f64) -> Self {
        self.parameter(name, Law::Shares(concentration))
    }

    /// A direction of each component of the last kind, uniform on the circle. It is that of a point in the plane whose two coordinates,
    /// `name.x` and `name.y`, are standard normal: so there is no place where the circle is cut, and how far out the point is means
    /// nothing. [`direction`] is its angle.
    ///
    /// [`direction`]: crate::problem::components::direction
    pub fn direction(self, name: &str) -> Self {
        self.each(&format!("{name}.x"), Normal(0.0, 1.0)).each(&format!("{name}.y"), Normal(0.0, 1.0))
    }

    /// A parameter of the components of the last kind that is known: one number for all of them, or, where they have labels
    /// ([`Components::labelled`]), one for each.
    pub fn known(self, name: &str, values: impl Into<Vec<f64>>) -> Self {
        self.parameter(name, Law::Known(values.into()))
    }

    /// Components of the last kind have labels: none is like another, and nothing is put in order.
    pub fn labelled(mut self) -> Self {
        if let Some(kind) = self.kinds.last_mut() {
            kind.is_labelled = true;
        }
        self
    }

    /// How probable each number of components of the last kind is.
    pub fn counted(mut self, prior: impl Into<CountPrior>) -> Self {
        if let Some(kind) = self.kinds.last_mut() {
            kind.count_prior = Some(prior.into());
        }
        self
    }

    /// A direction that all models have, see [`Components::direction`].
    pub fn with_direction(self, name: &str) -> Self {
        self.with(&format!("{name}.x"), Normal(0.0, 1.0)).with(&format!("{name}.y"), Normal(0.0, 1.0))
    }

    /// A parameter that all models have.
    pub fn with(mut self, name: &str, prior: impl Into<Prior>) -> Self {
        self.globals.push((name.into(), prior.into()));
        self
    }

    fn parameter(mut self, name: &str, law: Law) -> Self {
        if let Some(kind) = self.kinds.last_mut() {
            kind.parameters.push(BlockParameter { name: name.into(), law });
        }
        self
    }

    fn fail(&mut self, reason: impl Into<String>) {
        self.error.get_or_insert(reason.into());
    }

    /// Checks what was put together, and lays out its coordinates.
    pub fn build(mut self) -> Result<Self, SpaceError> {
        for kind in 0..self.kinds.len() {
            if let Err(reason) = self.complete(kind) {
                self.fail(reason);
            }
        }
        if let Some((name, error)) =
            self.globals.iter().find_map(|(name, prior)| Some((name.clone(), prior.check().err()?)))
        {
            self.fail(format!("{name}: {error}"));
        }
        if let Some(reason) = self.error.take() {
            return Err(SpaceError::Components { reason });
        }
        let mut next = self.globals.len();
        (self.starts, self.arities) = (Vec::new(), Vec::new());
        for kind in &self.kinds {
            self.starts.push(next);
            next = at_most("coordinates", next.saturating_add(kind.free_dim(kind.max_count())), MAX_DIM)?;
            let numbers = kind.max_count() - kind.counts.start() + 1;
            self.arities.push(at_most("numbers of components", numbers, usize::from(u16::MAX))? as u16);
        }
        self.max_dim = next;
        Ok(self)
    }

    /// Finds what is wrong with a kind, and its key where none is declared.
    fn complete(&mut self, kind: usize) -> Result<(), String> {
        let kind = &mut self.kinds[kind];
        let name = &kind.name;
        if kind.counts.is_empty() {
            return Err(format!("{name}: no number of components lies in {:?}", kind.counts));
        }
        let keys = kind.parameters.iter().filter(|parameter| parameter.law.is_ordered()).count();
        let shares = kind.parameters.iter().filter(|parameter| matches!(parameter.law, Law::Shares(_))).count();
        if keys > 1 || shares > 1 {
            return Err(format!("{name}: at most one parameter can put components in order, and one be a share"));
        }
        if kind.parameters.len() == shares {
            return Err(format!("{name}: components need a parameter, beside a share"));
        }
        for BlockParameter { name: parameter, law } in &kind.parameters {
            law.check().map_err(|error| format!("{name}: {parameter}: {error}"))?;
            match *law {
                Law::Spaced { low, high, minimum, concentration } => {
                    let room = high - low - minimum * (kind.counts.end() + 1) as f64;
                    if !(room > 0.0 && room.is_finite() && minimum >= 0.0) {
                        let most = kind.counts.end();
                        return Err(format!(
                            "{name}: {most} of them do not fit between {low} and {high} with a spacing of {minimum}"
                        ));
                    }
                    positive(name, concentration)?;
                }
                Law::Shares(concentration) => positive(name, concentration)?,
                Law::Known(ref values) => {
                    let is_enough = values.len() == 1 || kind.is_labelled && values.len() >= *kind.counts.end();
                    if !is_enough || values.iter().any(|value| !value.is_finite()) {
                        return Err(format!(
                            "{name}: {parameter}: what is known must be one finite number, or as many as there may be components with \
                             labels"
                        ));
                    }
                }
                Law::Independent(_) | Law::Ordered(_) => {}
            }
        }
        if kind.score_width() == 0 && kind.counts.start() != kind.counts.end() {
            return Err(format!("{name}: where all parameters are known, so must be their number"));
        }
        if keys == 0 && !kind.is_labelled {
            let first = kind.parameters.iter_mut().find(|parameter| matches!(parameter.law, Law::Independent(_)));
            if let Some(BlockParameter { law, .. }) = first
                && let Law::Independent(prior) = law.clone()
            {
                *law = Law::Ordered(prior);
            }
        }
        if kind.is_labelled && keys > 0 {
            return Err(format!("{name}: components with labels are not put in order"));
        }
        Ok(())
    }

    /// The kinds of components.
    pub fn kinds(&self) -> &[ComponentKind] {
        &self.kinds
    }

    /// Parameters that all models have, with their priors.
    pub fn globals(&self) -> &[(String, Prior)] {
        &self.globals
    }

    /// How many components of a kind a model has.
    pub fn count(&self, kind: usize, word: &[u16]) -> usize {
        match (self.kinds.get(kind), word.get(kind)) {
            (Some(kind), Some(&symbol)) => (kind.counts.start() + usize::from(symbol)).min(kind.max_count()),
            _ => 0,
        }
    }

    /// How many natural parameters all models have together.
    pub fn natural_len(&self) -> usize {
        self.globals.len() + self.kinds.iter().map(|kind| kind.max_count() * kind.width()).sum::<usize>()
    }

    /// How many components of each kind there are, by the active free coordinates.
    pub(crate) fn counts_of(&self, active: &[u32]) -> impl Iterator<Item = usize> {
        self.kinds.iter().zip(&self.starts).map(|(kind, &start)| {
            if kind.score_width() == 0 {
                return kind.max_count();
            }
            let end = start + kind.free_dim(kind.max_count());
            let own = |end: usize| active.partition_point(|&place| (place as usize) < end);
            let dim = own(end) - own(start);
            // k blocks with shares have a coordinate less than others.
            (dim + usize::from(kind.share().is_some() && dim > 0)) / kind.free_width()
        })
    }

    /// Names of all natural parameters: those that all models have, then `peak1.position`, `peak1.height`, `peak2.position`, ….
    pub fn parameter_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.globals.iter().map(|(name, _)| name.clone()).collect();
        for kind in &self.kinds {
            let of_block = |block: usize| {
                kind.parameters.iter().map(move |parameter| format!("{}{}.{}", kind.name, block + 1, parameter.name))
            };
            names.extend((0..kind.max_count()).flat_map(of_block));
        }
        names
    }
}

fn positive(name: &str, concentration: f64) -> Result<(), String> {
    if concentration > 0.0 && concentration.is_finite() {
        return Ok(());
    }
    Err(format!("{name}: a concentration must be positive and finite, not {concentration}"))
}

impl ModelSpace for Components {
    fn arities(&self) -> &[u16] {
        &self.arities
    }

    fn max_dim(&self) -> usize {
        self.max_dim
    }

    fn mark_active(&self, word: &[u16], active: &mut [bool]) {
        active.fill(false);
        let always = self.globals.len().min(active.len());
        active[..always].fill(true);
        for (kind, (of_kind, &start)) in self.kinds.iter().zip(&self.starts).enumerate() {
            let end = (start + of_kind.free_dim(self.count(kind, word))).min(active.len());
            active[start.min(end)..end].fill(true);
        }
    }

    fn label(&self, word: &[u16]) -> String {
        let of_kind = |(number, kind): (usize, &ComponentKind)| match self.count(number, word) {
            1 => format!("1 {}", kind.name),
            count => format!("{count} {}s", kind.name),
        };
        self.kinds.iter().enumerate().map(of_kind).collect::<Vec<_>>().join(", ")
    }

    /// One more or one less of a kind.
    fn propose(&self, word: &mut [u16], stream: &mut Stream) -> f64 {
        let choices: Vec<usize> = (0..word.len()).filter(|&kind| self.arities[kind] > 1).collect();
        let Some(&kind) = choices.get(stream.below(choices.len().max(1) as u64) as usize) else {
            return change_or_exchange(&self.arities, word, stream);
        };
        let ways = |symbol: u16| if symbol == 0 || symbol + 1 == self.arities[kind] { 1.0f64 } else { 2.0 };
        let before = word[kind];
        word[kind] = match before {
            0 => 1,
            last if last + 1 == self.arities[kind] => last - 1,
            _ if stream.below(2) == 0 => before - 1,
            _ => before + 1,
        };
        (ways(before) / ways(word[kind])).ln()
    }
}
