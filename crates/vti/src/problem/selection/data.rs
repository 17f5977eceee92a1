//! The table of a selection: a response, and terms that may or may not matter.

use thiserror::Error;

/// Something that is in or out as a whole: a covariate, or all indicators of a categorical one.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// What people call it.
    pub name: String,
    /// Names of its columns: its own, or one per level.
    pub columns: Vec<String>,
    /// Numbers of its columns, one after another.
    pub values: Vec<f64>,
    /// Whether it is in every model.
    pub always: bool,
    /// Names of the terms that it is a product of, if it is one: whether it may be in without them is a matter of
    /// [`Heredity`](crate::space::Heredity).
    pub parents: Vec<String>,
}

/// A response and terms, as they were measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegressionData {
    /// Name of the response.
    pub response_name: String,
    /// The response.
    pub response: Vec<f64>,
    /// Names of its categories, where it is one of several: the first is what others are compared with. Numbers if empty.
    pub categories: Vec<String>,
    /// The terms.
    pub terms: Vec<Term>,
    /// What is added to each row's predictor beforehand, its coefficient being 1; empty if there is nothing.
    pub offset: Vec<f64>,
    /// How often each row counts: its log likelihood is multiplied by its weight, so that a row of weight 2 is there twice, in
    /// means of columns and in g-priors, too. Empty if all count once.
    pub weights: Vec<f64>,
}

/// A table that nothing can be learned from.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TableError {
    /// A column of another length.
    #[error("column {column} has {found} values, but the response has {expected}")]
    Length {
        /// Its name.
        column: String,
        /// Its length.
        found: usize,
        /// The response's.
        expected: usize,
    },
    /// A value that is infinite or not a number.
    #[error("column {column}, row {row}: the value is not finite")]
    NotFinite {
        /// Its name.
        column: String,
        /// Which row, counted from 1.
        row: usize,
    },
    /// A column that is the same throughout, which an intercept already is.
    #[error(
        "column {column} is constant: it says nothing that the intercept does not\nhint: leave it out with --exclude {column}"
    )]
    Constant {
        /// Its name.
        column: String,
    },
    /// A weight that is not positive: whoever has rows that do not count leaves them out.
    #[error("row {row}: the weight {value} is not positive")]
    Weight {
        /// Which row, counted from 1.
        row: usize,
        /// What stands there.
        value: String,
    },
    /// Weights that leave less than a few rows.
    #[error(
        "the weights sum to {total}: all rows together count as less than {needed}\nhint: a row of weight 2 counts twice; multiply weights that are shares by the number of rows"
    )]
    TotalWeight {
        /// Their sum.
        total: String,
        /// What it must be.
        needed: usize,
    },
    /// A product of something that is no term.
    #[error("{term} could never be in: {parent}, which it is a product of, is no term\nhint: --heredity none")]
    NoParent {
        /// The product.
        term: String,
        /// What it lacks.
        parent: String,
    },
    /// Two columns of one name.
    #[error("there are two columns called {column}")]
    Duplicate {
        /// Their name.
        column: String,
    },
    /// Too few rows.
    #[error("{rows} rows are too few, at least {needed} are needed")]
    TooFewRows {
        /// How many there are.
        rows: usize,
        /// How many there must be.
        needed: usize,
    },
    /// Categories have several predictors.
    #[error("an offset has no meaning for categories, which have several predictors\nhint: leave out --offset")]
    OffsetOfCategories,
    /// No term to choose from.
    #[error("there is nothing to select from: no optional covariate")]
    NoTerms,
    /// A response that the likelihood cannot have made.
    #[error("row {row}: the response {value} is not {expected}, which this likelihood needs")]
    Response {
        /// Which row, counted from 1.
        row: usize,
        /// What stands there.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
}
