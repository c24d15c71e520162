//! Cleaning of text that a plugin controls, before it is stored, logged or shown.
//!
//! Owns the bounded forms: one line, plain text of several lines, and text inside quotes for use in messages.
//! It does not remove secrets: that is `redaction`.

/// Longest quoted extract of foreign text inside a message, in bytes.
const QUOTE_LIMIT: usize = 200;

/// Marks the place where text was cut off; three bytes of UTF-8.
pub(crate) const ELLIPSIS: &str = "…";

/// Makes `text` one line of at most `limit` bytes: every run of white space and control characters becomes one
/// space, the ends are trimmed, invisible direction and joining marks are dropped. When cut, the result ends in `…`
/// and the cut is on a character boundary; a limit below three bytes gives an empty text.
pub fn single_line(text: &str, limit: usize) -> String {
    // Most words of a log are like this.
    if text.len() <= limit && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len().min(limit.saturating_add(ELLIPSIS.len())));
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            gap = true;
        } else if !is_invisible(c) {
            if gap && !line.is_empty() {
                line.push(' ');
            }
            gap = false;
            line.push(c);
            if line.len() > limit {
                break;
            }
        }
    }
    cut(line, limit)
}

/// Makes `text` plain text of at most `limit` bytes: line ends and tabs stay, other control characters and invisible
/// marks are dropped.
pub fn plain_text(text: &str, limit: usize) -> String {
    let kept = |c: &char| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(*c));
    cut(text.chars().filter(kept).collect(), limit)
}

/// Cuts `text` to at most `limit` bytes with `…` inside the limit.
pub fn cut(mut text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let Some(mut end) = limit.checked_sub(ELLIPSIS.len()) else {
        return String::new();
    };
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push_str(ELLIPSIS);
    text
}

/// Foreign text in double quotes for a message: cut to about 200 bytes, with quotes and control characters escaped.
pub fn quote(text: &str) -> String {
    let bounded = match text.char_indices().nth(QUOTE_LIMIT) {
        Some(_) => cut(text.to_owned(), QUOTE_LIMIT),
        None => text.to_owned(),
    };
    format!("{bounded:?}")
}

/// Characters that change how other text is displayed without being seen: bidirectional controls, zero-width marks,
/// byte-order mark.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn white_space_and_control_characters_become_one_space() {
        assert_eq!(single_line("  a\t\r\n\u{1b}[31mb\u{0}\u{85}c ", 100), "a [31mb c");
        assert_eq!(single_line("a\u{202e}b\u{200b}c", 100), "abc");
    }

    #[test]
    fn plain_text_keeps_its_lines() {
        assert_eq!(plain_text("a\r\n\tb\u{1b}c\u{202e}d", 100), "a\n\tbcd");
        assert_eq!(plain_text("abcdefg", 6), "abc…");
    }

    #[test]
    fn a_cut_is_marked_and_stays_inside_the_limit() {
        assert_eq!(single_line("abcdef", 6), "abcdef");
        assert_eq!(single_line("abcdefg", 6), "abc…");
        assert_eq!(single_line("ééééé", 8), "éé…");
        assert_eq!(single_line("abc", 2), "");
    }

    #[test]
    fn quotes_escape_what_would_break_out_of_a_message() {
        assert_eq!(quote("a\"b\n"), r#""a\"b\n""#);
        assert!(quote(&"x".repeat(1000)).len() <= QUOTE_LIMIT + 2);
    }

    proptest! {
        #[test]
        fn a_cleaned_line_is_bounded_and_has_no_control_character(text in "\\PC*|.*", limit in 0usize..64) {
            let line = single_line(&text, limit);
            prop_assert!(line.len() <= limit);
            prop_assert!(!line.chars().any(char::is_control));
        }
    }
}
