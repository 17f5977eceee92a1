//! Priors that cannot be.

/// A prior that cannot be, or a text that names none.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PriorError {
    /// A parameter that must be positive and finite.
    #[error("{name} of the {kind} prior must be positive, not {value}")]
    NotPositive {
        /// Kind of the prior.
        kind: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// A parameter that must be a finite number.
    #[error("{name} of the {kind} prior must be a finite number, not {value}")]
    NotFinite {
        /// Kind of the prior.
        kind: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// Ends of an interval in the wrong order, or without any number between them.
    #[error("the {kind} prior has no numbers between its ends {low} and {high}")]
    Empty {
        /// Kind of the prior.
        kind: &'static str,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// A probability that is none.
    #[error("{name} of the {kind} prior must be more than 0 and less than 1, not {value}")]
    NotProbability {
        /// Kind of the prior.
        kind: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// No count with a positive probability.
    #[error("the {kind} prior gives no probability to any count from {first} to {last}")]
    NoCounts {
        /// Kind of the prior.
        kind: &'static str,
        /// First count of the range.
        first: usize,
        /// Last count of the range.
        last: usize,
    },
    /// Weights of counts that are negative or not numbers.
    #[error("weight {place} of the counts must be a finite number and not negative, not {value}")]
    BadWeight {
        /// The how many-th it is, from 1.
        place: usize,
        /// Its weight.
        value: f64,
    },
    /// Weights for more or fewer counts than the range has.
    #[error("{weights} weights for {counts} counts from {first} to {last}: one each is needed")]
    WeightsDoNotFit {
        /// How many weights there are.
        weights: usize,
        /// How many counts there are.
        counts: usize,
        /// First count of the range.
        first: usize,
        /// Last count of the range.
        last: usize,
    },
    /// A density that is not a number somewhere, or cannot be normalised.
    #[error("the density of a prior cannot be used: {0}")]
    Density(String),
    /// A text that names no prior.
    #[error("“{text}” is no prior; known are {known}")]
    Unknown {
        /// The text.
        text: String,
        /// What could be said.
        known: &'static str,
    },
}

/// The parameter, if it is positive and finite.
pub(super) fn positive(kind: &'static str, name: &'static str, value: f64) -> Result<(), PriorError> {
    if value > 0.0 && value.is_finite() { Ok(()) } else { Err(PriorError::NotPositive { kind, name, value }) }
}

/// The parameter, if it is finite.
pub(super) fn finite(kind: &'static str, name: &'static str, value: f64) -> Result<(), PriorError> {
    if value.is_finite() { Ok(()) } else { Err(PriorError::NotFinite { kind, name, value }) }
}
