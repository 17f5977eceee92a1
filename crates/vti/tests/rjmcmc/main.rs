//! Answers to compare with: reversible jump chains against enumeration, enumeration against sums over dense grids.

#![allow(missing_docs, clippy::unwrap_used)]

mod chains;
mod exact;
#[path = "../tables/hald.rs"]
mod hald;
mod limits;

use vti::problem::selection::simulate::{CorrelatedSettings, correlated};
use vti::problem::selection::{
    CoefficientPrior, Likelihood, RegressionData, Selection, SelectionSettings, Standardise, Term,
};

/// A selection from a table, everything but likelihood and prior being the default.
fn selection(table: &RegressionData, likelihood: Likelihood, prior: CoefficientPrior) -> Selection {
    let settings = SelectionSettings { likelihood, prior, ..SelectionSettings::default() };
    Selection::new(table, Standardise::Full, &settings).unwrap()
}

/// A few correlated covariates, about half of them weakly relevant.
fn small_table(rows: usize, covariates: usize) -> RegressionData {
    let relevant = covariates.div_ceil(2);
    let settings = CorrelatedSettings { rows, covariates, relevant, effect: 0.35, seed: 3, ..Default::default() };
    correlated(&settings).unwrap().table
}

/// Makes one term of two neighbouring ones.
fn group(table: &mut RegressionData, first: usize) {
    let second = table.terms.remove(first + 1);
    let Term { columns, values, .. } = &mut table.terms[first];
    columns.extend(second.columns);
    values.extend(second.values);
}
