//! Terms of a formula: columns, products of two or three of them, and squares.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use vti::space::Heredity;

use super::formula::{self, FormulaError, Item, Part, Written};
use super::raw::{Raw, RawColumn};
use super::schema::{Choice, TermKind, TermSchema};
use super::{DataError, encode};
use crate::shown::{listed, shown};
use crate::suggest::nearest;

/// One part of a product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Factor {
    pub(super) term: TermSchema,
    /// What is taken from it first: its mean, or 0 where it has levels or columns are left as they were measured.
    pub(super) centre: f64,
}

impl TermSchema {
    /// The terms that it is a product of, or itself.
    pub(super) fn bases(&self) -> Vec<&Self> {
        match &self.kind {
            TermKind::Product { factors, .. } => factors.iter().map(|factor| &factor.term).collect(),
            _ => vec![self],
        }
    }

    /// Names of the terms that it is a product of; none of others.
    pub(super) fn parents(&self) -> Vec<String> {
        let TermKind::Product { factors, .. } = &self.kind else { return Vec::new() };
        let mut names: Vec<String> = factors.iter().map(|factor| factor.term.name.clone()).collect();
        names.dedup();
        names
    }
}

/// A formula that was read.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    formula: &'a str,
    items: Vec<Item>,
}

/// What products are made with.
pub(super) struct Making<'a> {
    pub(super) raw: &'a Raw,
    /// Empty if all rows count alike.
    pub(super) weights: &'a [f64],
    /// Whether means are taken from numbers first.
    pub(super) centred: bool,
    pub(super) heredity: Heredity,
}

/// More products are a mistake.
const MAX_PRODUCTS: usize = 5000;

impl<'a> Wanted<'a> {
    pub(super) fn new(formula: &'a str) -> Result<Self, FormulaError> {
        Ok(Self { formula, items: formula::parse(formula)? })
    }

    fn written(&self) -> impl Iterator<Item = &Written> {
        self.items.iter().flat_map(Item::written)
    }

    /// Whether it speaks of all columns.
    pub(super) fn has_all(&self) -> bool {
        self.written().any(|written| written.column.is_none())
    }

    /// Columns that it names.
    pub(super) fn names(&self) -> HashSet<&str> {
        self.written().filter_map(|written| written.column.as_deref()).collect()
    }

    fn error(&self, place: &Range<usize>, message: String, hint: impl Into<String>) -> FormulaError {
        FormulaError::new(self.formula, place.clone(), message, hint)
    }

    /// The columns that it names must be there and be covariates.
    pub(super) fn check(&self, raw: &Raw, choice: &Choice) -> Result<(), FormulaError> {
        let known = raw.by_name();
        for Written { column, place } in self.written() {
            let Some(name) = column.as_deref() else { continue };
            let flaw = |message: &str, hint: &str| Err(self.error(place, format!("{} {message}", shown(name)), hint));
            if !known.contains_key(name) {
                let names = raw.names();
                let all = || listed(names.iter().map(|name| (name.as_str(), String::new())), names.len());
                let hint = nearest(name, &names)
                    .map_or_else(|| format!("there are {}", all()), |near| format!("did you mean {}?", shown(near)));
                return Err(self.error(place, format!("there is no column {}", shown(name)), hint));
            }
            if name == choice.response {
                return flaw("is the response", "terms are what it is explained by");
            }
            if choice.exclude.iter().any(|excluded| excluded == name) {
                return flaw("is listed in --exclude", "take it out of one of them");
            }
            if choice.weights.as_deref() == Some(name) || choice.offsets.iter().any(|offset| offset.column == name) {
                return flaw("is an offset, exposure or weight, and no covariate", "take it out of the formula");
            }
        }
        Ok(())
    }

    /// The terms of the formula, of columns that are terms by themselves; with what is to be said about them.
    pub(super) fn terms(
        &self,
        columns: Vec<TermSchema>,
        making: &Making<'_>,
    ) -> Result<(Vec<TermSchema>, Vec<String>), DataError> {
        let mut picked = Picked::new(self, &columns, making.raw);
        self.items.iter().try_for_each(|item| picked.add(item))?;
        let Picked { alone, products, .. } = picked;
        self.check_heredity(&columns, &alone, &products, making.heredity)?;
        let (mut made, mut notes) = (Vec::new(), Vec::new());
        let mut factors: HashMap<usize, Factor> = HashMap::new();
        for (of, _) in products {
            for &column in &of {
                if let Entry::Vacant(place) = factors.entry(column) {
                    place.insert(factor(&columns[column], making)?);
                }
            }
            let product = product(of.iter().map(|column| factors[column].clone()).collect(), making.raw)?;
            if product.columns().is_empty() {
                notes.push(format!("left out {}: it is the same in every row", shown(&product.name)));
            } else {
                made.push(product);
            }
        }
        let mut centres: Vec<&Factor> = factors.values().filter(|factor| factor.centre != 0.0).collect();
        centres.sort_by_key(|factor| &factor.term.name);
        if !centres.is_empty() {
            let means = centres.iter().map(|factor| (factor.term.name.as_str(), format!(" − {:.6}", factor.centre)));
            notes.push(format!(
                "products and squares are of columns less their means: {}",
                listed(means, centres.len())
            ));
        }
        let alone = columns.into_iter().enumerate().filter(|(place, _)| alone[*place]).map(|(_, column)| column);
        Ok((alone.chain(made).collect(), notes))
    }

    /// Products whose columns are no terms could never be in.
    fn check_heredity(
        &self,
        columns: &[TermSchema],
        alone: &[bool],
        products: &[(Vec<usize>, Range<usize>)],
        heredity: Heredity,
    ) -> Result<(), FormulaError> {
        for (of, place) in products {
            let lost: Vec<usize> = of.iter().copied().filter(|&column| !alone[column]).collect();
            let (fine, kind) = match heredity {
                Heredity::None => continue,
                Heredity::Weak => (lost.len() < of.len(), "weak"),
                Heredity::Strong => (lost.is_empty(), "strong"),
            };
            if !fine {
                let name = name(of.iter().map(|&column| &columns[column]));
                let column = shown(&columns[lost[0]].name);
                let message = format!("{} could never be in, as {column} is no term itself", shown(&name));
                let hint = format!("with {kind} heredity write {column} as well, or say --heredity none");
                return Err(self.error(place, message, hint));
            }
        }
        Ok(())
    }
}

/// What a formula picks.
struct Picked<'a> {
    wanted: &'a Wanted<'a>,
    columns: &'a [TermSchema],
    places: HashMap<&'a str, usize>,
    /// Which columns have a square of their own.
    squares: Vec<bool>,
    /// Which columns are terms themselves.
    alone: Vec<bool>,
    /// Columns of products, in the order of the formula, and where they were written.
    products: Vec<(Vec<usize>, Range<usize>)>,
    seen: HashSet<Vec<usize>>,
}

impl<'a> Picked<'a> {
    fn new(wanted: &'a Wanted<'a>, columns: &'a [TermSchema], raw: &'a Raw) -> Self {
        let cells = raw.by_name();
        let is_indicator = |column: &TermSchema| matches!(column.kind, TermKind::Missing { .. });
        Self {
            wanted,
            columns,
            places: columns.iter().enumerate().map(|(place, column)| (column.name.as_str(), place)).collect(),
            squares: columns.iter().map(|term| has_square(term, cells.get(term.name.as_str()).copied())).collect(),
            alone: columns.iter().map(|column| column.always || is_indicator(column)).collect(),
            products: Vec::new(),
            seen: HashSet::new(),
        }
    }

    fn add(&mut self, item: &Item) -> Result<(), FormulaError> {
        match item {
            Item::Each(part) => self.pick(part).map(|_| ()),
            Item::UpTo(part, most) => {
                let columns = self.pick(part)?;
                for (place, &left) in columns.iter().enumerate() {
                    for &right in &columns[place + 1..] {
                        self.product(&[left, right], &whole(part))?;
                    }
                }
                if *most > 2 {
                    for (place, &first) in columns.iter().enumerate() {
                        for (after, &second) in columns.iter().enumerate().skip(place + 1) {
                            for &third in &columns[after + 1..] {
                                self.product(&[first, second, third], &whole(part))?;
                            }
                        }
                    }
                }
                Ok(())
            }
            Item::Square(column) => self.square(column),
            Item::Products { parts, each } => self.products(parts, *each),
        }
    }

    /// Products of one of each part; of fewer of them as well, and these themselves, if `each`.
    fn products(&mut self, parts: &[Part], each: bool) -> Result<(), FormulaError> {
        let place = parts.first().map_or(0, |part| whole(part).start)..parts.last().map_or(0, |part| whole(part).end);
        if let [left, right] = parts
            && let ([first], [second]) = (&left[..], &right[..])
            && first.column.is_some()
            && first.column == second.column
        {
            if each {
                self.pick(left)?;
            }
            return self.square(first);
        }
        let mut columns = Vec::with_capacity(parts.len());
        for part in parts {
            columns.push(if each { self.pick(part)? } else { self.find(part)? });
        }
        match &columns[..] {
            [left, right] => self.pairs(left, right, &place),
            [first, second, third] => {
                if each {
                    self.pairs(first, second, &place)?;
                    self.pairs(first, third, &place)?;
                    self.pairs(second, third, &place)?;
                }
                self.triples([first, second, third], &place)
            }
            _ => Ok(()),
        }
    }

    /// Products of one of each side; a column with itself is its square.
    fn pairs(&mut self, left: &[usize], right: &[usize], place: &Range<usize>) -> Result<(), FormulaError> {
        for &left in left {
            for &right in right {
                if left != right || self.squares[left] {
                    self.product(&[left, right], place)?;
                }
            }
        }
        Ok(())
    }

    /// Products of three different columns, one of each side.
    fn triples(&mut self, sides: [&Vec<usize>; 3], place: &Range<usize>) -> Result<(), FormulaError> {
        let before = self.products.len();
        let mut any = false;
        for &first in sides[0] {
            for &second in sides[1].iter().filter(|second| **second != first) {
                for &third in sides[2].iter().filter(|third| **third != first && **third != second) {
                    any = true;
                    self.product(&[first, second, third], place)?;
                }
            }
        }
        if !any && before == self.products.len() {
            let message = "a product of three is of different columns".to_string();
            return Err(self.wanted.error(place, message, "write a^2 for a square; there are no cubes"));
        }
        Ok(())
    }

    /// Places of columns.
    fn find(&self, part: &[Written]) -> Result<Vec<usize>, FormulaError> {
        let mut found = Vec::new();
        for Written { column, place } in part {
            match column.as_deref() {
                None => {
                    let is_column = |column: &TermSchema| !matches!(column.kind, TermKind::Missing { .. });
                    found.extend((0..self.columns.len()).filter(|&place| is_column(&self.columns[place])));
                }
                Some(name) => found.push(*self.places.get(name).ok_or_else(|| {
                    let message = format!("{} is no covariate", shown(name));
                    self.wanted.error(place, message, "leave it out")
                })?),
            }
        }
        let mut seen = HashSet::new();
        found.retain(|place| seen.insert(*place));
        Ok(found)
    }

    /// The same, and they are terms themselves.
    fn pick(&mut self, part: &[Written]) -> Result<Vec<usize>, FormulaError> {
        let found = self.find(part)?;
        found.iter().for_each(|&place| self.alone[place] = true);
        Ok(found)
    }

    fn product(&mut self, of: &[usize], place: &Range<usize>) -> Result<(), FormulaError> {
        let mut sorted = of.to_vec();
        sorted.sort_unstable();
        if self.seen.insert(sorted) {
            self.products.push((of.to_vec(), place.clone()));
        }
        if self.products.len() > MAX_PRODUCTS {
            let message = format!("there are more than {MAX_PRODUCTS} products");
            return Err(self.wanted.error(place, message, "name the columns whose products may matter"));
        }
        Ok(())
    }

    fn square(&mut self, column: &Written) -> Result<(), FormulaError> {
        for place in self.find(std::slice::from_ref(column))? {
            if !self.squares[place] {
                let name = shown(&self.columns[place].name);
                let message = format!("the square of {name} says what {name} says, which has but two values or levels");
                return Err(self.wanted.error(&column.place, message, "leave the square out"));
            }
            self.product(&[place, place], &column.place)?;
        }
        Ok(())
    }
}

/// Whether the square of a column says something that the column does not.
fn has_square(term: &TermSchema, column: Option<&RawColumn>) -> bool {
    let mut different = HashSet::new();
    let is_third = |number: f64| different.insert(number.to_bits()) && different.len() > 2;
    matches!(term.kind, TermKind::Number {} | TermKind::Date {})
        && column.is_some_and(|column| column.present_numbers().any(is_third))
}

/// From the first to the last of several.
fn whole(part: &Part) -> Range<usize> {
    let start = part.first().map_or(0, |written| written.place.start);
    start..part.last().map_or(start, |written| written.place.end)
}

/// What a product of columns is called.
fn name<'a>(of: impl Iterator<Item = &'a TermSchema>) -> String {
    let names: Vec<&str> = of.map(|term| term.name.as_str()).collect();
    match &names[..] {
        [left, right] if left == right => format!("{left}^2"),
        _ => names.join(":"),
    }
}

/// A column as a part of products.
fn factor(column: &TermSchema, making: &Making<'_>) -> Result<Factor, DataError> {
    let is_number = matches!(column.kind, TermKind::Number {} | TermKind::Date {});
    let centre = if is_number && making.centred {
        let values = encode::numbers_of(column, making.raw)?;
        encode::mean(&values, making.weights)
    } else {
        0.0
    };
    Ok(Factor { term: column.clone(), centre })
}

/// The product of two or three columns, or of those of their indicators that occur together.
fn product(factors: Vec<Factor>, raw: &Raw) -> Result<TermSchema, DataError> {
    let (rows, name) = (raw.rows().max(1), name(factors.iter().map(|factor| &factor.term)));
    // Places of columns, one of each factor, with their product.
    let mut found: Vec<(Vec<usize>, Vec<f64>)> = vec![(Vec::new(), vec![1.0; raw.rows()])];
    for factor in &factors {
        let values = encode::numbers_of(&factor.term, raw)?;
        let with = |(places, product): &(Vec<usize>, Vec<f64>)| -> Vec<(Vec<usize>, Vec<f64>)> {
            let one = |(place, column): (usize, &[f64])| {
                let places = places.iter().copied().chain([place]).collect();
                (places, product.iter().zip(column).map(|(x, y)| x * y).collect())
            };
            values.chunks(rows).enumerate().map(one).collect()
        };
        found = found.iter().flat_map(with).collect();
    }
    let varies = |(_, product): &(Vec<usize>, Vec<f64>)| product.iter().any(|x| *x != product[0]);
    let pairs = found.into_iter().filter(varies).map(|(places, _)| places).collect();
    Ok(TermSchema { name, always: false, kind: TermKind::Product { factors, pairs }, fill: None })
}
