//! The formula of `--terms`: which columns, products and squares are selected from.
//!
//! ```text
//! formula = item { ("," | "+") item }
//! item    = part [ "*" part [ "*" part ] ] | part [ ":" part [ ":" part ] ] | part "^" ( "2" | "3" )
//! part    = column | "." | "(" part { ("," | "+") part } ")"
//! column  = letters up to the next of , + * : ^ ( ) or `, or anything between two `
//! ```

use std::ops::Range;

use vti_report::plain;

use crate::shown::shown;

/// The most columns of a product.
pub(super) const MAX_FACTORS: usize = 3;

/// One or several columns, as they were written.
pub(super) type Part = Vec<Written>;

/// A column, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// None for all.
    pub(super) column: Option<String>,
    /// Where it stands, in bytes.
    pub(super) place: Range<usize>,
}

/// What is selected from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Each of these.
    Each(Part),
    /// Products of one of each of two or three parts; with these themselves, and products of fewer of them, if `each`.
    Products {
        parts: Vec<Part>,
        each: bool,
    },
    /// Each of these, and the products of up to so many of them.
    UpTo(Part, usize),
    Square(Written),
}

impl Item {
    /// Everything it mentions.
    pub(super) fn written(&self) -> impl Iterator<Item = &Written> {
        let parts: Vec<&[Written]> = match self {
            Self::Each(part) | Self::UpTo(part, _) => vec![part],
            Self::Products { parts, .. } => parts.iter().map(Vec::as_slice).collect(),
            Self::Square(column) => vec![std::slice::from_ref(column)],
        };
        parts.into_iter().flatten()
    }
}

/// A formula that makes no sense, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--terms: {message}\n{}\nhint: {hint}", pointed(formula, place))]
pub(crate) struct FormulaError {
    formula: String,
    place: Range<usize>,
    message: String,
    hint: String,
}

/// What can be written.
const GRAMMAR: &str = "a, a:b or a:b:c (products), a*b (a, b and a:b), a^2 (square), . (all columns), (a+b)^2 or .^2 (each \
                       and all pairs), (a+b+c)^3 (and products of three), (a+b):c; separated by commas; `…` around names with such signs";

impl FormulaError {
    pub(super) fn new(formula: &str, place: Range<usize>, message: String, hint: impl Into<String>) -> Self {
        Self { formula: formula.into(), place, message, hint: hint.into() }
    }
}

/// So many characters are shown on both sides of a place.
const AROUND: usize = 30;

/// The formula around a place, with a line under it that points there.
fn pointed(formula: &str, place: &Range<usize>) -> String {
    let before: Vec<char> = formula[..place.start].chars().rev().take(AROUND + 1).collect();
    let start: String = before.iter().rev().skip(usize::from(before.len() > AROUND)).collect();
    let start = plain(&if before.len() > AROUND { format!("…{start}") } else { start });
    let own = shown(&formula[place.clone()]);
    let rest: String = formula[place.end..].chars().take(AROUND).collect();
    let marks = "^".repeat(own.chars().count().max(1));
    format!("  {start}{own}{}\n  {}{marks}", plain(&rest), " ".repeat(start.chars().count()))
}

/// Reads a formula.
pub(super) fn parse(formula: &str) -> Result<Vec<Item>, FormulaError> {
    let mut reader = Reader { formula, signs: signs(formula)?, next: 0 };
    let mut items = vec![reader.item()?];
    while let Some(Sign { kind: Kind::And, .. }) = reader.peek() {
        reader.next += 1;
        items.push(reader.item()?);
    }
    match reader.peek() {
        None => Ok(items),
        Some(_) => Err(reader.unexpected("a comma or the end")),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Name(String),
    All,
    /// Comma or plus.
    And,
    Times,
    Colon,
    Power,
    Open,
    Close,
}

#[derive(Clone, Debug)]
struct Sign {
    kind: Kind,
    place: Range<usize>,
}

/// Cuts a formula into signs.
fn signs(formula: &str) -> Result<Vec<Sign>, FormulaError> {
    let (mut signs, mut start) = (Vec::new(), 0);
    while let Some(first) = formula[start..].chars().next() {
        let rest = &formula[start..];
        let single = match first {
            ',' | '+' => Some(Kind::And),
            '*' => Some(Kind::Times),
            ':' => Some(Kind::Colon),
            '^' => Some(Kind::Power),
            '(' => Some(Kind::Open),
            ')' => Some(Kind::Close),
            _ => None,
        };
        let end = if let Some(kind) = single {
            signs.push(Sign { kind, place: start..start + 1 });
            start + 1
        } else if first == '`' {
            let Some(length) = rest[1..].find('`') else {
                let message = "a name that starts with ` does not end".to_string();
                return Err(FormulaError::new(formula, start..start + 1, message, "put another ` behind it"));
            };
            let place = start..start + length + 2;
            signs.push(Sign { kind: Kind::Name(rest[1..=length].into()), place: place.clone() });
            place.end
        } else {
            let end = rest.find([',', '+', '*', ':', '^', '(', ')', '`']).unwrap_or(rest.len());
            let name = rest[..end].trim();
            if !name.is_empty() {
                let from = start + rest[..end].len() - rest[..end].trim_start().len();
                let kind = if name == "." { Kind::All } else { Kind::Name(name.into()) };
                signs.push(Sign { kind, place: from..from + name.len() });
            }
            start + end
        };
        start = end;
    }
    Ok(signs)
}

struct Reader<'a> {
    formula: &'a str,
    signs: Vec<Sign>,
    next: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Sign> {
        self.signs.get(self.next)
    }

    /// Steps over a sign if it is there; where it stood.
    fn take(&mut self, kind: &Kind) -> Option<Range<usize>> {
        let place = self.peek().filter(|sign| sign.kind == *kind)?.place.clone();
        self.next += 1;
        Some(place)
    }

    /// What stands next, or the end, is not what is needed.
    fn unexpected(&self, needed: &str) -> FormulaError {
        let end = self.formula.len();
        let place = self.peek().map_or(end..end, |sign| sign.place.clone());
        let found = if place.is_empty() {
            "it ends".to_string()
        } else {
            format!("{} stands", shown(&self.formula[place.clone()]))
        };
        FormulaError::new(self.formula, place, format!("{found} where {needed} is needed"), GRAMMAR)
    }

    fn item(&mut self) -> Result<Item, FormulaError> {
        let (left, is_group) = self.part()?;
        if let Some(power) = self.take(&Kind::Power) {
            return self.power(left, is_group, power);
        }
        let sign = match self.peek() {
            Some(Sign { kind: kind @ (Kind::Times | Kind::Colon), .. }) => kind.clone(),
            _ => return Ok(Item::Each(left)),
        };
        let mut parts = vec![left];
        while parts.len() < MAX_FACTORS && self.take(&sign).is_some() {
            parts.push(self.part()?.0);
        }
        match self.peek() {
            Some(Sign { kind: Kind::Times | Kind::Colon | Kind::Power, place }) => {
                let message = "products are of two or three columns, with one sign between them".to_string();
                let hint = "write a*b*c or a:b:c, or several products with commas between them";
                Err(FormulaError::new(self.formula, place.clone(), message, hint))
            }
            _ => Ok(Item::Products { parts, each: sign == Kind::Times }),
        }
    }

    /// What stands before a power, which must be 2, or 3 of several columns.
    fn power(&mut self, mut part: Part, is_group: bool, power: Range<usize>) -> Result<Item, FormulaError> {
        let number = match self.peek() {
            Some(Sign { kind: Kind::Name(two), .. }) if two == "2" => 2,
            Some(Sign { kind: Kind::Name(three), .. }) if three == "3" && is_group => 3,
            other => {
                let place = other.map_or(power, |sign| sign.place.clone());
                let message = if is_group { "2 and 3 are the only powers" } else { "2 is the only power of a column" };
                return Err(FormulaError::new(self.formula, place, message.into(), GRAMMAR));
            }
        };
        self.next += 1;
        match part.pop() {
            Some(column) if !is_group => Ok(Item::Square(column)),
            last => Ok(Item::UpTo(part.into_iter().chain(last).collect(), number)),
        }
    }

    /// Columns, and whether there may be several.
    fn part(&mut self) -> Result<(Part, bool), FormulaError> {
        if self.take(&Kind::Open).is_some() {
            let mut part = Vec::new();
            loop {
                part.push(self.column()?);
                if self.take(&Kind::Close).is_some() {
                    return Ok((part, true));
                }
                if self.take(&Kind::And).is_none() {
                    return Err(self.unexpected("+ or )"));
                }
            }
        }
        let column = self.column()?;
        let is_group = column.column.is_none();
        Ok((vec![column], is_group))
    }

    fn column(&mut self) -> Result<Written, FormulaError> {
        let column = match self.peek().map(|sign| &sign.kind) {
            Some(Kind::Name(name)) => Some(name.clone()),
            Some(Kind::All) => None,
            _ => return Err(self.unexpected("a column")),
        };
        let place = self.signs[self.next].place.clone();
        self.next += 1;
        Ok(Written { column, place })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Items in a few words.
    fn read(formula: &str) -> Vec<String> {
        let part = |part: &Part| {
            part.iter()
                .map(|written| written.column.clone().unwrap_or_else(|| ".".into()))
                .collect::<Vec<_>>()
                .join("+")
        };
        let item = |item: &Item| match item {
            Item::Each(each) => part(each),
            Item::Products { parts, each } => {
                parts.iter().map(part).collect::<Vec<_>>().join(if *each { " * " } else { " : " })
            }
            Item::UpTo(columns, most) => format!("up to {most} of {}", part(columns)),
            Item::Square(column) => format!("square {}", part(&vec![column.clone()])),
        };
        parse(formula).unwrap().iter().map(item).collect()
    }

    #[test]
    fn formulas_are_read() {
        assert_eq!(read("a*b, a^2"), ["a * b", "square a"]);
        assert_eq!(read(" fixed acidity : pH + . "), ["fixed acidity : pH", "."]);
        assert_eq!(read("(a + b)^2,.^3,(a,b):`c:d`"), ["up to 2 of a+b", "up to 3 of .", "a+b : c:d"]);
        assert_eq!(read("a*b*c, a:(b+c):d"), ["a * b * c", "a : b+c : d"]);
        assert_eq!(read("`.`*x.1"), [". * x.1"]);
    }

    #[test]
    fn what_makes_no_sense_is_pointed_at() {
        for (formula, message, marks) in [
            ("", "it ends where a column is needed", "  \n  ^"),
            ("a,,b", ", stands where a column is needed", "  a,,b\n    ^"),
            ("a*b*c*d", "products are of two or three columns", "  a*b*c*d\n       ^"),
            ("a*b:c", "with one sign between them", "  a*b:c\n     ^"),
            ("a^3", "2 is the only power of a column", "  a^3\n    ^"),
            ("(a+b)^4", "2 and 3 are the only powers", "  (a+b)^4\n        ^"),
            ("a, `b", "a name that starts with ` does not end", "  a, `b\n     ^"),
            ("(a+b", "it ends where + or ) is needed", "  (a+b\n      ^"),
            ("a) + b", ") stands where a comma or the end is needed", "  a) + b\n   ^"),
            ("ä * ", "it ends where a column is needed", "  ä * \n      ^"),
        ] {
            let said = parse(formula).unwrap_err().to_string();
            assert!(said.contains(message) && said.contains(marks), "{said}");
        }
        let long = "x,".repeat(100_000) + "*";
        assert!(parse(&long).unwrap_err().to_string().len() < 700);
    }
}
