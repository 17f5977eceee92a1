//! Columns of categories as nodes of a graph.

use std::collections::BTreeMap;

use vti::problem::dag::NodeKind;

use super::DataError;
use super::raw::{Raw, RawColumn};
use super::schema::{MAX_LEVELS, check_kind, check_list, is_boolean, is_text, levels, texts, truth};
use crate::shown::shown;

/// What is said about columns of categories.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<'a> {
    /// These hold categories, though they may be numbers.
    pub(crate) categorical: &'a [String],
    /// These hold ordered ones: their levels, lowest first; numbers by their size where none are given.
    pub(crate) ordered: &'a BTreeMap<String, Vec<String>>,
}

impl Said<'_> {
    /// All columns that are named.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.categorical.iter().chain(self.ordered.keys()).map(String::as_str)
    }

    /// They must be there, in one list only, and take part.
    pub(super) fn check(&self, raw: &Raw, exclude: &[String]) -> Result<(), DataError> {
        let ordered: Vec<String> = self.ordered.keys().cloned().collect();
        check_list(raw, self.categorical, "--categorical", exclude)?;
        check_list(raw, &ordered, "--ordered", exclude)?;
        match self.categorical.iter().find(|name| self.ordered.contains_key(*name)) {
            Some(name) => Err(DataError::TwoKinds { name: name.clone() }),
            None => Ok(()),
        }
    }

    /// The levels of a column of categories with the place of each cell among them; none where it holds numbers.
    pub(super) fn categories(&self, raw: &Raw, column: &RawColumn) -> Result<Option<(NodeKind, Vec<f64>)>, DataError> {
        check_kind(raw, column)?;
        let (file, name) = (|| raw.file.clone(), || column.name.clone());
        let order = self.ordered.get(&column.name);
        let is_named = order.is_some() || self.categorical.contains(&column.name);
        let is_truth = is_boolean(column);
        if !is_named && !is_truth && !is_text(raw, column).map_err(as_node)? {
            return Ok(None);
        }
        let found = if is_truth { ["false", "true"].map(String::from).to_vec() } else { levels(column) };
        if let Some(value) = column.constant() {
            return Err(DataError::ConstantNode { file: file(), column: name(), value });
        }
        if !is_named && 2 * found.len() > raw.rows() {
            return Err(DataError::Identifier { file: file(), column: name(), levels: found.len(), rows: raw.rows() });
        }
        let levels = match order {
            Some(order) => self.ordered_levels(raw, column, order, found)?,
            None => found,
        };
        if levels.len() > MAX_LEVELS {
            return Err(DataError::Levels { file: file(), column: name(), levels: levels.len(), most: MAX_LEVELS });
        }
        let place = |text: String| {
            let text = if is_truth { if truth(&text) == Some(true) { "true" } else { "false" } } else { &text };
            levels.iter().position(|level| level == text).map_or(f64::NAN, |place| place as f64)
        };
        let places = texts(column).into_iter().map(place).collect();
        Ok(Some((NodeKind::Categories { levels, is_ordered: order.is_some() }, places)))
    }

    /// Levels in their order: every one that there is must be among them.
    fn ordered_levels(
        &self,
        raw: &Raw,
        column: &RawColumn,
        order: &[String],
        found: Vec<String>,
    ) -> Result<Vec<String>, DataError> {
        let (file, name) = (raw.file.clone(), column.name.clone());
        if order.is_empty() {
            return match column.texts().next() {
                None => Ok(found),
                Some(_) => Err(DataError::NoOrder { file, column: name, levels: found }),
            };
        }
        if let Some(level) =
            order.iter().enumerate().find_map(|(at, level)| order[..at].contains(level).then_some(level))
        {
            return Err(DataError::LevelTwice { column: name, level: level.clone() });
        }
        match found.into_iter().find(|level| !order.contains(level)) {
            Some(level) => Err(DataError::NotInOrder { file, column: name, level, order: order.to_vec() }),
            None => Ok(order.to_vec()),
        }
    }
}

/// A few texts among numbers, said of a node.
fn as_node(error: DataError) -> DataError {
    match error {
        DataError::TextCell { file, place, column, cell, count } => {
            DataError::TextNode { file, place, column, cell, count }
        }
        other => other,
    }
}

/// What a reader may want to know about a column.
pub(super) fn note(name: &str, kind: &NodeKind, values: &[f64]) -> Option<String> {
    let name = shown(name);
    match kind {
        NodeKind::Number if values.iter().all(|x| *x == 0.0 || *x == 1.0) => {
            Some(format!("{name} is 0 or 1, and taken for a number: --categorical {name} makes it a binary node"))
        }
        NodeKind::Number => None,
        NodeKind::Categories { levels, is_ordered } => {
            let all: Vec<String> = levels.iter().map(|level| shown(level)).collect();
            Some(match &all[..] {
                [zero, one] => format!("{name}: binary, {one} is 1 and {zero} is 0"),
                all if *is_ordered => format!("{name}: ordered categories {}", all.join(" < ")),
                all => format!("{name}: categories {}", all.join(", ")),
            })
        }
    }
}
