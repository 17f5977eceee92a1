//! Text that is safe inside markup.

/// `text` for element content and quoted attributes. What markup has a meaning for is written as references; characters
/// that no document may contain become the replacement character.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' | '\r' => safe.push(character),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            _ if character.is_control() => safe.push('\u{fffd}'),
            _ => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn what_markup_would_read_is_escaped() {
        assert_eq!(escape("<b>\"x\"&'y'"), "&lt;b&gt;&quot;x&quot;&amp;&#39;y&#39;");
    }

    #[test]
    fn forbidden_characters_are_replaced() {
        assert_eq!(escape("a\u{0}b\u{7f}\n\u{ffff}"), "a\u{fffd}b\u{fffd}\n\u{fffd}");
    }
}
