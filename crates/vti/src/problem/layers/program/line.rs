//! Earths and data as lines of text.

use crate::problem::layers::Earth;

/// The longest part of a line that a message shows.
const SHOWN: usize = 80;

/// An earth: the number of layers, depths of the interfaces, and the property of every layer.
pub(super) fn write(earth: &Earth) -> String {
    let mut text = earth.values.len().to_string();
    for number in earth.depths.iter().chain(&earth.values) {
        text += &format!(" {number}");
    }
    text
}

/// The numbers of an answer; none of them is a number where the earth has no answer. Fails where they are not numbers, or not so
/// many.
pub(super) fn read(text: &str, to: &mut [f64]) -> Result<(), String> {
    let words = || text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let is_nan = |word: &str| word.eq_ignore_ascii_case("nan");
    if words().count() == 1 && words().all(is_nan) {
        to.fill(f64::NAN);
        return Ok(());
    }
    let mut count = 0;
    for word in words() {
        let number: f64 = word.parse().map_err(|_| format!("printed `{}`, which is not numbers", shown(text)))?;
        if let Some(to) = to.get_mut(count) {
            *to = if number.is_finite() { number } else { f64::NAN };
        }
        count += 1;
    }
    match count == to.len() {
        true => Ok(()),
        false => {
            Err(format!("printed {count} numbers for one earth, but there are {} data: `{}`", to.len(), shown(text)))
        }
    }
}

/// The beginning of a text, without characters that terminals obey.
pub(super) fn shown(text: &str) -> String {
    let clean: String = text.trim().chars().take(SHOWN).map(|c| if c.is_control() { '·' } else { c }).collect();
    if text.trim().chars().count() > SHOWN { clean + "…" } else { clean }
}
