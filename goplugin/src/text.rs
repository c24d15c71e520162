//! Cleaning and cutting of text that the other process controls, before it is stored, logged or shown.
//!
//! Pure. What a line means (level, hclog fields) is decided in `host::log_line`.

/// What is put where text was cut.
pub(crate) const CUT_MARK: &str = "… (cut)";

/// `bytes` as text without control characters, terminal escape sequences and bidirectional overrides, at most `limit`
/// bytes long and [`CUT_MARK`] after that. Invalid UTF-8 becomes U+FFFD, a tab becomes a space.
pub(crate) fn clean(bytes: &[u8], limit: usize) -> String {
    // Four bytes are the most one character needs, so a longer prefix can only hold what is cut off or removed.
    let mut text = String::with_capacity(bytes.len().min(limit));
    let lossy = String::from_utf8_lossy(bytes);
    let mut chars = lossy.chars().peekable();
    while let Some(char) = chars.next() {
        let kept = match char {
            '\t' | '\u{2028}' | '\u{2029}' => ' ',
            '\u{1b}' => {
                if chars.next_if_eq(&'[').is_some() {
                    // A control sequence ends with its first letter-like character; a broken one ends at anything else.
                    while chars.next_if(|next| matches!(next, '\u{20}'..='\u{3f}')).is_some() {}
                    chars.next_if(|next| matches!(next, '\u{40}'..='\u{7e}'));
                }
                continue;
            }
            hidden if hidden.is_control() || is_bidi_control(hidden) => continue,
            visible => visible,
        };
        if text.len() + kept.len_utf8() > limit {
            text.push_str(CUT_MARK);
            break;
        }
        text.push(kept);
    }
    text
}

/// Characters that reorder the text after them, with which a line can be made to show something it does not say.
fn is_bidi_control(char: char) -> bool {
    matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// An error with everything that caused it, as one cleaned line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    const LIMIT: usize = 1024;
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let next = cause.to_string();
        // Wrappers often repeat what they wrap.
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        source = cause.source();
    }
    clean(text.as_bytes(), LIMIT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_escape_sequences_and_bidi_overrides_are_removed() {
        let dirty = "a\u{1b}[31mred\u{1b}[0m\tb\r\n\0\u{202e}c\u{1b}]d".as_bytes();
        assert_eq!(clean(dirty, 100), "ared bc]d");
    }

    #[test]
    fn text_over_the_limit_is_cut_at_a_character_with_a_mark() {
        assert_eq!(clean("ééé".as_bytes(), 5), "éé… (cut)");
        assert_eq!(clean("ééé".as_bytes(), 6), "ééé");
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(clean(b"a\xffb", 100), "a\u{fffd}b");
    }

    proptest! {
        #[test]
        fn cleaned_text_is_bounded_and_without_control_characters(bytes: Vec<u8>, limit in 0_usize..64) {
            let text = clean(&bytes, limit);
            prop_assert!(text.len() <= limit + CUT_MARK.len());
            prop_assert!(!text.chars().any(|char| char.is_control() || is_bidi_control(char)));
        }
    }
}
