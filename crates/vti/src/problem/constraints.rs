//! A constraint for each coordinate, or a bijection of all of a model's.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Constraint;

/// A bijection between all free coordinates of a model and its natural parameters: for parameters that depend on each other in more
/// ways than a list of [`Constraint`]s can say, such as positions in ascending order.
///
/// As for [`Constraints`], `active` are the free coordinates of one model, ascending, and values are left-aligned.
pub trait Bijection: std::fmt::Debug + Send + Sync {
    /// Free coordinates of all models: `d_max`.
    fn free_len(&self) -> usize;

    /// Natural parameters of all models.
    fn natural_len(&self) -> usize;

    /// How many natural parameters these active coordinates give.
    fn natural_dim(&self, active: &[u32]) -> usize;

    /// Which of all natural parameters these active coordinates give, ascending.
    fn natural_places(&self, active: &[u32]) -> Vec<usize>;

    /// θ from u; log |det ∂θ/∂u|.
    fn to_natural(&self, active: &[u32], free: &[f64], natural: &mut [f64]) -> f64;

    /// u from θ; log |det ∂θ/∂u|. Neither is finite outside the support of θ.
    fn to_free(&self, active: &[u32], natural: &[f64], free: &mut [f64]) -> f64;

    /// Overwrites `gradient` with d/du of f(θ(u)) + log |det ∂θ/∂u|, given df/dθ.
    fn pull_back(&self, active: &[u32], free: &[f64], natural_gradient: &[f64], gradient: &mut [f64]);
}

/// The most free coordinates a list can cover.
const MAX_FREE: usize = 1 << 24;

/// Constraints that cannot be met, or active coordinates that do not fit them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstraintError {
    /// An interval without inside, or with ends that are not finite.
    #[error("constraint {index}: an interval needs finite ends in ascending order, not {low} and {high}")]
    Interval {
        /// Which constraint, counted from 0.
        index: usize,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// A simplex with fewer than two parts.
    #[error("constraint {index}: a simplex needs at least 2 parts, not {parts}")]
    Parts {
        /// Which constraint, counted from 0.
        index: usize,
        /// Number of parts.
        parts: usize,
    },
    /// More coordinates than a list can cover.
    #[error("constraint {index} goes beyond {max} coordinates")]
    TooMany {
        /// The first constraint that goes beyond.
        index: usize,
        /// How many coordinates there can be.
        max: usize,
    },
    /// An active coordinate that does not exist.
    #[error("coordinate {coordinate} is active, but constraints cover {free}")]
    Coordinate {
        /// The coordinate.
        coordinate: u32,
        /// How many there are.
        free: usize,
    },
    /// Active coordinates that do not ascend.
    #[error("coordinate {coordinate} is active after a coordinate that is not below it")]
    NotAscending {
        /// The coordinate.
        coordinate: u32,
    },
    /// A simplex of which only some coordinates are active.
    #[error("coordinate {coordinate} belongs to a simplex of which another coordinate is not active")]
    PartOfSimplex {
        /// An active coordinate of the simplex.
        coordinate: u32,
    },
}

/// A constraint for each of the saturated coordinates of θ, in order; a simplex of k parts covers k − 1 of them.
///
/// The methods below work on one model: `active` are its free coordinates, ascending, and values are left-aligned, those
/// of the first active coordinate first. They allocate nothing. Where [`check_active`](Self::check_active) fails or a
/// slice is too short, results are not a number.
///
/// ```
/// use vti::problem::{Constraint, Constraints};
/// let list = vec![Constraint::Real, Constraint::Positive, Constraint::Simplex { parts: 3 }];
/// let constraints = Constraints::new(list)?;
/// assert_eq!((constraints.free_len(), constraints.natural_len()), (4, 5));
///
/// let active = [1, 2, 3]; // without the first coordinate
/// let mut natural = [0.0; 4];
/// let log_jacobian = constraints.to_natural(&active, &[0.5, 0.0, 0.0], &mut natural);
/// assert_eq!(natural[0], 0.5f64.exp());
/// assert!((natural[3] - 1.0 / 3.0).abs() < 1e-15);
/// assert!((log_jacobian - (0.5 - 3.0 * 3f64.ln())).abs() < 1e-12);
/// # Ok::<(), vti::problem::ConstraintError>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<Constraint>", into = "Vec<Constraint>")]
pub struct Constraints {
    /// Instead of the list, where there is one.
    whole: Option<Arc<dyn Bijection>>,
    list: Vec<Constraint>,
    /// The constraint each free coordinate belongs to.
    owners: Vec<u32>,
    /// The first free coordinate of each constraint.
    starts: Vec<u32>,
    natural_len: usize,
    trivial: bool,
}

impl Constraints {
    /// Constraints for coordinates in order.
    pub fn new(list: Vec<Constraint>) -> Result<Self, ConstraintError> {
        let (mut owners, mut starts) = (Vec::with_capacity(list.len()), Vec::with_capacity(list.len()));
        for (index, constraint) in list.iter().enumerate() {
            match *constraint {
                Constraint::Interval { low, high } if !(low < high && (high - low).is_finite()) => {
                    return Err(ConstraintError::Interval { index, low, high });
                }
                Constraint::Simplex { parts } if parts < 2 => return Err(ConstraintError::Parts { index, parts }),
                _ => {}
            }
            if constraint.free() > MAX_FREE - owners.len() {
                return Err(ConstraintError::TooMany { index, max: MAX_FREE });
            }
            starts.push(owners.len() as u32);
            owners.resize(owners.len() + constraint.free(), index as u32);
        }
        let natural_len = list.iter().map(Constraint::natural).sum();
        let trivial = list.iter().all(|constraint| *constraint == Constraint::Real);
        Ok(Self { whole: None, list, owners, starts, natural_len, trivial })
    }

    /// A bijection of all coordinates of a model at once.
    pub fn whole(bijection: Arc<dyn Bijection>) -> Self {
        let natural_len = bijection.natural_len();
        let (list, owners, starts) = (Vec::new(), vec![0; bijection.free_len()], Vec::new());
        Self { whole: Some(bijection), list, owners, starts, natural_len, trivial: false }
    }

    /// `count` coordinates that may be any real numbers.
    pub fn real(count: usize) -> Result<Self, ConstraintError> {
        if count > MAX_FREE {
            return Err(ConstraintError::TooMany { index: MAX_FREE, max: MAX_FREE });
        }
        Self::new(vec![Constraint::Real; count])
    }

    /// The constraints in order; none where a bijection takes all coordinates at once.
    pub fn list(&self) -> Option<&[Constraint]> {
        self.whole.is_none().then_some(&self.list)
    }

    /// Number of free coordinates over all constraints: `d_max`.
    pub fn free_len(&self) -> usize {
        self.owners.len()
    }

    /// Number of natural coordinates over all constraints.
    pub fn natural_len(&self) -> usize {
        self.natural_len
    }

    /// Whether every coordinate may be any real number, so that nothing changes.
    pub fn is_trivial(&self) -> bool {
        self.trivial
    }

    /// How many natural numbers these active coordinates give.
    pub fn natural_dim(&self, active: &[u32]) -> usize {
        if let Some(whole) = &self.whole {
            return whole.natural_dim(active);
        }
        self.pieces(active).map_while(|piece| piece).map(|piece| piece.natural.len()).sum()
    }

    /// Which of all natural parameters these active coordinates give, ascending.
    pub fn natural_places(&self, active: &[u32]) -> Vec<usize> {
        if let Some(whole) = &self.whole {
            return whole.natural_places(active);
        }
        let (mut natural, mut places) = (0, Vec::with_capacity(active.len()));
        for (constraint, start) in self.list.iter().zip(&self.starts) {
            if active.binary_search(start).is_ok() {
                places.extend(natural..natural + constraint.natural());
            }
            natural += constraint.natural();
        }
        places
    }

    /// Says what is wrong with active coordinates that do not ascend, do not exist, or split a simplex.
    pub fn check_active(&self, active: &[u32]) -> Result<(), ConstraintError> {
        if let Some(pair) = active.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(ConstraintError::NotAscending { coordinate: pair[1] });
        }
        if let Some(&coordinate) = active.iter().find(|&&coordinate| coordinate as usize >= self.free_len()) {
            return Err(ConstraintError::Coordinate { coordinate, free: self.free_len() });
        }
        if self.whole.is_some() {
            return Ok(());
        }
        let mut checked = 0;
        for piece in self.pieces(active) {
            let Some(piece) = piece else { break };
            checked = piece.free.end;
        }
        active.get(checked).map_or(Ok(()), |&coordinate| Err(ConstraintError::PartOfSimplex { coordinate }))
    }

    /// Natural numbers θ from free numbers u; returns log |det ∂θ/∂u|.
    ///
    /// The log-Jacobian stays finite for every finite u, even where θ rounds to the edge of its support.
    pub fn to_natural(&self, active: &[u32], free: &[f64], natural: &mut [f64]) -> f64 {
        if let Some(whole) = &self.whole {
            return whole.to_natural(active, free, natural);
        }
        let mut log_jacobian = 0.0;
        for piece in self.pieces(active) {
            let Some(Piece { constraint, free: from, natural: to }) = piece else { return f64::NAN };
            let (Some(u), Some(theta)) = (free.get(from), natural.get_mut(to)) else { return f64::NAN };
            log_jacobian += constraint.to_natural(u, theta);
        }
        log_jacobian
    }

    /// Free numbers u from natural numbers θ; returns log |det ∂θ/∂u|, as [`to_natural`](Self::to_natural) does.
    ///
    /// On the edge of the support that is −∞, and u is infinite (or not a number where several parts of a simplex are 0);
    /// outside both are not a number. The parts of a simplex must sum to 1 within 10⁻⁶.
    pub fn to_free(&self, active: &[u32], natural: &[f64], free: &mut [f64]) -> f64 {
        if let Some(whole) = &self.whole {
            return whole.to_free(active, natural, free);
        }
        let mut log_jacobian = 0.0;
        for piece in self.pieces(active) {
            let Some(Piece { constraint, free: to, natural: from }) = piece else { return f64::NAN };
            let (Some(theta), Some(u)) = (natural.get(from), free.get_mut(to)) else { return f64::NAN };
            log_jacobian += constraint.to_free(theta, u);
        }
        log_jacobian
    }

    /// Overwrites `gradient` with d/du of f(θ(u)) + log |det ∂θ/∂u|, given df/dθ.
    pub fn pull_back(&self, active: &[u32], free: &[f64], natural_gradient: &[f64], gradient: &mut [f64]) {
        if let Some(whole) = &self.whole {
            return whole.pull_back(active, free, natural_gradient, gradient);
        }
        for piece in self.pieces(active) {
            let slices = piece.and_then(|Piece { constraint, free: own, natural }| {
                let (u, given) = (free.get(own.clone())?, natural_gradient.get(natural)?);
                Some((constraint, u, given, gradient.get_mut(own)?))
            });
            let Some((constraint, u, given, to)) = slices else {
                gradient.fill(f64::NAN);
                return;
            };
            constraint.pull_back(u, given, to);
        }
    }

    /// The active constraints one after the other, and none where the active coordinates do not fit them.
    fn pieces<'a>(&'a self, active: &'a [u32]) -> impl Iterator<Item = Option<Piece>> + 'a {
        let (mut free, mut natural) = (0, 0);
        std::iter::from_fn(move || {
            let &first = active.get(free)?;
            Some(self.owners.get(first as usize).and_then(|&owner| {
                let constraint = self.list[owner as usize];
                let start = self.starts[owner as usize];
                let piece = Piece {
                    constraint,
                    free: free..free + constraint.free(),
                    natural: natural..natural + constraint.natural(),
                };
                // Active coordinates ascend, so both ends in place means all are there.
                let whole =
                    first == start && active.get(piece.free.end - 1) == Some(&(start + constraint.free() as u32 - 1));
                (free, natural) = (piece.free.end, piece.natural.end);
                whole.then_some(piece)
            }))
        })
    }
}

/// Lists are compared; two bijections are the same if they are one object.
impl PartialEq for Constraints {
    fn eq(&self, other: &Self) -> bool {
        match (&self.whole, &other.whole) {
            (None, None) => self.list == other.list,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// An active constraint, and where its numbers are in a row.
struct Piece {
    constraint: Constraint,
    free: Range<usize>,
    natural: Range<usize>,
}

impl TryFrom<Vec<Constraint>> for Constraints {
    type Error = ConstraintError;

    fn try_from(list: Vec<Constraint>) -> Result<Self, ConstraintError> {
        Self::new(list)
    }
}

impl From<Constraints> for Vec<Constraint> {
    fn from(constraints: Constraints) -> Self {
        constraints.list
    }
}
