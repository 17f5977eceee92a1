//! What a likelihood sees: the parameters of one model, by their names.

use crate::space::{ComponentKind, Components};

/// The angle of the point (x, y), from −π to π.
pub fn direction(x: f64, y: f64) -> f64 {
    y.atan2(x)
}

/// One model with its parameters.
///
/// Names that the space does not have give no components, or a value that is not a number.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a> {
    pub(super) space: &'a Components,
    pub(super) word: &'a [u16],
    /// Natural parameters: those that all models have, then those of each block.
    pub(super) theta: &'a [f64],
}

/// The components of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    kind: Option<&'a ComponentKind>,
    values: &'a [f64],
}

impl<'a> Draw<'a> {
    /// Parameters of a model of a space.
    pub fn new(space: &'a Components, word: &'a [u16], theta: &'a [f64]) -> Self {
        Self { space, word, theta }
    }

    /// A parameter that all models have.
    pub fn global(&self, name: &str) -> f64 {
        let place = self.space.globals().iter().position(|(own, _)| own == name);
        place.and_then(|place| self.theta.get(place)).copied().unwrap_or(f64::NAN)
    }

    /// The angle of a direction that all models have ([`Components::with_direction`]), from −π to π.
    pub fn global_direction(&self, name: &str) -> f64 {
        direction(self.global(&format!("{name}.x")), self.global(&format!("{name}.y")))
    }

    /// All parameters that all models have, in the order in which they were declared.
    pub fn globals(&self) -> &'a [f64] {
        &self.theta[..self.space.globals().len().min(self.theta.len())]
    }

    /// The components of a kind.
    pub fn block(&self, name: &str) -> Block<'a> {
        match self.space.kinds().iter().position(|kind| kind.name == name) {
            Some(kind) => self.kind(kind),
            None => Block { kind: None, values: &[] },
        }
    }

    /// The components of a kind, by its number.
    pub fn kind(&self, kind: usize) -> Block<'a> {
        let size = |kind: usize| self.space.kinds()[kind].width() * self.space.count(kind, self.word);
        let start = self.space.globals().len() + (0..kind).map(size).sum::<usize>();
        let values = self.theta.get(start..start + size(kind)).unwrap_or_default();
        Block { kind: self.space.kinds().get(kind), values }
    }

    /// All parameters, as they are laid out: those that all models have, then block after block.
    pub fn theta(&self) -> &'a [f64] {
        self.theta
    }
}

impl<'a> Block<'a> {
    /// How many components there are.
    pub fn len(&self) -> usize {
        self.kind.map_or(0, |kind| self.values.len() / kind.width().max(1))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The parameters of each component, in the order in which they were declared.
    pub fn iter(&self) -> std::slice::ChunksExact<'a, f64> {
        self.values.chunks_exact(self.kind.map_or(1, |kind| kind.width().max(1)))
    }

    /// The angle of a direction of each component ([`Components::direction`]), from −π to π.
    pub fn directions(&self, name: &str) -> impl Iterator<Item = f64> + use<'a> {
        let (x, y) = (self.column(&format!("{name}.x")), self.column(&format!("{name}.y")));
        x.zip(y).map(|(x, y)| direction(x, y))
    }

    /// One parameter of each component.
    pub fn column(&self, name: &str) -> impl Iterator<Item = f64> + use<'a> {
        let place = self.kind.and_then(|kind| kind.parameters.iter().position(|parameter| parameter.name == name));
        self.iter().map(move |values| place.map_or(f64::NAN, |place| values[place]))
    }
}
