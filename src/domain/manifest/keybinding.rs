//! The grammar of key combinations (contract/frontend.md §4.2).
//!
//! Tokens split on `+`, trimmed, any case, none empty; any number of modifiers and exactly one key. The browser parses
//! the same text with the same grammar: both must agree.

use crate::domain::clean::quote;

/// Keys that are named by a word, beside letters, digits and `f1` to `f12`.
const NAMED_KEYS: [&str; 20] = [
    "enter",
    "escape",
    "esc",
    "tab",
    "space",
    "backspace",
    "delete",
    "insert",
    "arrowup",
    "arrowdown",
    "arrowleft",
    "arrowright",
    "up",
    "down",
    "left",
    "right",
    "home",
    "end",
    "pageup",
    "pagedown",
];

/// Keys of a visible sign, which shift turns into another sign.
const SIGN_KEYS: [&str; 11] = [
    "comma",
    "period",
    "slash",
    "backslash",
    "semicolon",
    "quote",
    "minus",
    "equal",
    "bracketleft",
    "bracketright",
    "backquote",
];

/// What matters of a lawful combination.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Combo {
    /// It holds a modifier other than shift, so it cannot be typed as text.
    pub commanding: bool,
}

/// Parses a combination; the error says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Combo, String> {
    let mut key = None;
    let mut shift = false;
    let mut commanding = false;
    for token in text.split('+') {
        let token = token.trim().to_ascii_lowercase();
        match token.as_str() {
            "" => return Err(format!("combo {} has an empty token", quote(text))),
            "shift" => shift = true,
            "mod" | "ctrl" | "cmd" | "meta" | "alt" | "option" => commanding = true,
            other if !is_key(other) => {
                return Err(format!("combo {} has an unknown key {}", quote(text), quote(other)));
            }
            _ if key.is_some() => return Err(format!("combo {} has more than one key", quote(text))),
            _ => key = Some(token),
        }
    }
    let Some(key) = key else {
        return Err(format!("combo {} has no key", quote(text)));
    };
    if shift && is_shifted_by_layout(&key) {
        return Err(format!("combo {}: shift with a digit or a punctuation key depends on the layout", quote(text)));
    }
    Ok(Combo { commanding })
}

fn is_key(token: &str) -> bool {
    let single = token.len() == 1 && token.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let function = token.strip_prefix('f').is_some_and(|n| {
        !n.starts_with('0')
            && n.bytes().all(|b| b.is_ascii_digit())
            && n.parse().is_ok_and(|n: u8| (1..=12).contains(&n))
    });
    single || function || NAMED_KEYS.contains(&token) || SIGN_KEYS.contains(&token)
}

fn is_shifted_by_layout(key: &str) -> bool {
    key.bytes().all(|b| b.is_ascii_digit()) || SIGN_KEYS.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lawful_combinations_say_whether_they_command() {
        for (text, commanding) in [
            ("mod+k", true),
            (" Ctrl + Shift + F12 ", true),
            ("shift+a", false),
            ("escape", false),
            ("alt+1", true),
            ("cmd+cmd+bracketleft", true),
            ("option+ArrowUp", true),
        ] {
            assert_eq!(parse(text), Ok(Combo { commanding }), "{text}");
        }
    }

    #[test]
    fn each_unlawful_combination_names_its_fault() {
        for (text, fault) in [
            ("", "combo \"\" has an empty token"),
            ("mod+", "combo \"mod+\" has an empty token"),
            ("mod++k", "combo \"mod++k\" has an empty token"),
            ("mod", "combo \"mod\" has no key"),
            ("a+b", "combo \"a+b\" has more than one key"),
            ("control+a", "combo \"control+a\" has an unknown key \"control\""),
            ("super+a", "combo \"super+a\" has an unknown key \"super\""),
            ("mod+f13", "combo \"mod+f13\" has an unknown key \"f13\""),
            ("mod+f0", "combo \"mod+f0\" has an unknown key \"f0\""),
            ("mod+f01", "combo \"mod+f01\" has an unknown key \"f01\""),
            ("mod+,", "combo \"mod+,\" has an unknown key \",\""),
            ("shift+1", "combo \"shift+1\": shift with a digit or a punctuation key depends on the layout"),
            (
                "mod+shift+comma",
                "combo \"mod+shift+comma\": shift with a digit or a punctuation key depends on the layout",
            ),
        ] {
            assert_eq!(parse(text), Err(fault.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn any_text_gets_a_verdict(text in ".{0,40}") {
            let _ = parse(&text);
        }
    }
}
