//! The numbers behind a selection: columns in one place, standardised, and their products.

use super::data::{RegressionData, TableError, Term};

/// How a column was changed: `standardised = (measured − center) / scale`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Scaling {
    /// What was subtracted.
    pub center: f64,
    /// What it was divided by.
    pub scale: f64,
}

impl Scaling {
    const NONE: Self = Self { center: 0.0, scale: 1.0 };
}

/// What is done to the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Standardise {
    /// Nothing.
    Raw,
    /// Means become 0.
    Centred,
    /// Means become 0 and standard deviations 1. Columns of categorical terms (more than one) are centred only, so that
    /// their coefficients stay differences between levels.
    #[default]
    Full,
}

/// Columns of all terms, those of terms that are always in first, after the intercept.
#[derive(Clone, Debug)]
pub struct Design {
    rows: usize,
    /// Column-major: the intercept, then the columns.
    values: Vec<f64>,
    names: Vec<String>,
    scaling: Vec<Scaling>,
    /// Columns in every model, the intercept included.
    always: usize,
    /// Names of the optional terms, and how many columns each has.
    terms: Vec<(String, usize)>,
    response: Vec<f64>,
    response_name: String,
    /// Of a response that is one of several categories.
    categories: Vec<String>,
    /// Empty if there is none.
    offset: Vec<f64>,
    /// Of the rows, 1 where they count alike.
    weights: Vec<f64>,
}

impl Design {
    /// Checks a table and lays it out.
    pub fn new(table: &RegressionData, standardise: Standardise) -> Result<Self, TableError> {
        check(table)?;
        let rows = table.response.len();
        let weights = if table.weights.is_empty() { vec![1.0; rows] } else { table.weights.clone() };
        let ordered = |always: bool| table.terms.iter().filter(move |term| term.always == always);
        let mut design = Self {
            rows,
            values: vec![1.0; rows],
            names: vec!["intercept".into()],
            scaling: vec![Scaling::NONE],
            always: 1,
            terms: ordered(false).map(|term| (term.name.clone(), term.columns.len())).collect(),
            response: table.response.clone(),
            response_name: table.response_name.clone(),
            categories: Vec::new(),
            offset: table.offset.clone(),
            weights,
        };
        for term in ordered(true).chain(ordered(false)) {
            design.push(term, standardise)?;
        }
        design.always += ordered(true).map(|term| term.columns.len()).sum::<usize>();
        Ok(design)
    }

    fn push(&mut self, term: &Term, standardise: Standardise) -> Result<(), TableError> {
        for (name, values) in term.columns.iter().zip(term.values.chunks_exact(self.rows)) {
            let n = self.total_weight();
            let mean = self.mean_of(values);
            let squares = values.iter().zip(&self.weights).map(|(x, weight)| weight * (x - mean) * (x - mean));
            let variance = squares.sum::<f64>() / (n - 1.0);
            // Rounding leaves a little variance in a column of equal numbers.
            if variance.sqrt() <= 1e-12 * (1.0 + mean.abs()) {
                return Err(TableError::Constant { column: name.clone() });
            }
            let scaling = match (standardise, term.columns.len()) {
                (Standardise::Raw, _) => Scaling::NONE,
                (Standardise::Full, 1) => Scaling { center: mean, scale: variance.sqrt() },
                _ => Scaling { center: mean, scale: 1.0 },
            };
            self.values.extend(values.iter().map(|x| (x - scaling.center) / scaling.scale));
            self.names.push(name.clone());
            self.scaling.push(scaling);
        }
        Ok(())
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, the intercept included.
    pub fn columns(&self) -> usize {
        self.names.len()
    }

    /// A column.
    pub fn column(&self, column: usize) -> &[f64] {
        &self.values[column * self.rows..][..self.rows]
    }

    /// Names of all columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How each column was changed.
    pub fn scaling(&self) -> &[Scaling] {
        &self.scaling
    }

    /// Columns in every model, which come first.
    pub fn always(&self) -> usize {
        self.always
    }

    /// Names of the optional terms with their numbers of columns.
    pub fn terms(&self) -> &[(String, usize)] {
        &self.terms
    }

    /// The response.
    pub fn response(&self) -> &[f64] {
        &self.response
    }

    /// Name of the response.
    pub fn response_name(&self) -> &str {
        &self.response_name
    }

    /// Names of the categories of the response, where it is one of several.
    pub fn categories(&self) -> &[String] {
        &self.categories
    }

    /// How many linear predictors a row has: one, or one for each category but the first.
    pub fn predictors(&self) -> usize {
        self.categories.len().saturating_sub(1).max(1)
    }

    /// Takes the response for one of several categories, at least two; those without a name are called by their numbers.
    pub(super) fn name_categories(&mut self, names: &[String]) {
        let most = self.response.iter().copied().fold(1.0, f64::max) as usize;
        let numbers = (names.len()..=most).map(|category| category.to_string());
        self.categories = names.iter().cloned().chain(numbers).collect();
    }

    /// What is added to the predictors beforehand; empty if there is nothing.
    pub fn offset(&self) -> &[f64] {
        &self.offset
    }

    /// Weights of the rows: 1 where they count alike.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// As how many rows they all count.
    pub fn total_weight(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The weighted mean of a column.
    pub(super) fn mean_of(&self, values: &[f64]) -> f64 {
        values.iter().zip(&self.weights).map(|(x, weight)| x * weight).sum::<f64>() / self.total_weight()
    }

    /// Takes the offset from the response, where that comes to the same as adding it to the predictors.
    pub(super) fn subtract_offset(&mut self) {
        let offset = std::mem::take(&mut self.offset);
        self.response.iter_mut().zip(offset).for_each(|(y, offset)| *y -= offset);
    }

    /// Columns of a model: those that are always in, and those of the terms whose bit is 1.
    pub fn model_columns(&self, model: &[u16], columns: &mut Vec<u32>) {
        columns.clear();
        columns.extend(0..self.always as u32);
        let mut next = self.always as u32;
        for ((_, count), &bit) in self.terms.iter().zip(model) {
            let end = next + *count as u32;
            if bit == 1 {
                columns.extend(next..end);
            }
            next = end;
        }
    }
}

/// What messages call the offset and the weights.
const OFFSET: &str = "offset";
const WEIGHTS: &str = "weights";

/// Fewer leave nothing for errors.
const LEAST_ROWS: usize = 3;

fn check(table: &RegressionData) -> Result<(), TableError> {
    let rows = table.response.len();
    let mut names = std::collections::HashSet::from([table.response_name.as_str()]);
    if rows < LEAST_ROWS {
        return Err(TableError::TooFewRows { rows, needed: LEAST_ROWS });
    }
    if table.terms.iter().all(|term| term.always) {
        return Err(TableError::NoTerms);
    }
    let finite = |column: &str, values: &[f64]| match values.iter().position(|x| !x.is_finite()) {
        Some(row) => Err(TableError::NotFinite { column: column.into(), row: row + 1 }),
        None => Ok(()),
    };
    finite(&table.response_name, &table.response)?;
    if !table.offset.is_empty() && table.offset.len() != rows {
        return Err(TableError::Length { column: OFFSET.into(), found: table.offset.len(), expected: rows });
    }
    finite(OFFSET, &table.offset)?;
    if !table.weights.is_empty() && table.weights.len() != rows {
        return Err(TableError::Length { column: WEIGHTS.into(), found: table.weights.len(), expected: rows });
    }
    finite(WEIGHTS, &table.weights)?;
    if let Some(row) = table.weights.iter().position(|weight| *weight <= 0.0) {
        return Err(TableError::Weight { row: row + 1, value: table.weights[row].to_string() });
    }
    let total: f64 = table.weights.iter().sum();
    if !table.weights.is_empty() && total < LEAST_ROWS as f64 {
        return Err(TableError::TotalWeight { total: total.to_string(), needed: LEAST_ROWS });
    }
    for term in &table.terms {
        if term.values.len() != rows * term.columns.len() {
            let found = term.values.len() / term.columns.len().max(1);
            return Err(TableError::Length { column: term.name.clone(), found, expected: rows });
        }
        for (name, values) in term.columns.iter().zip(term.values.chunks_exact(rows)) {
            if !names.insert(name) {
                return Err(TableError::Duplicate { column: name.clone() });
            }
            finite(name, values)?;
        }
    }
    Ok(())
}
