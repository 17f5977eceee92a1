//! How many components there are, what they say together, where they are, and each of them.

mod curves;
mod numbers;
mod tables;

pub(super) use curves::{curves, positions};
pub(super) use numbers::numbers;
pub(super) use tables::components;

use vti::answer::Counted;

/// With a capital letter, as headings are.
fn heading(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    first + characters.as_str()
}

/// What was asked, where nobody said it in other words.
pub(super) fn title(counted: &Counted) -> String {
    format!("How many {} are there?", counted.plural)
}
