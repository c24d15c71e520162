//! Lines in which nothing is left that a terminal obeys: who reads the log later may do so on one.

use std::{borrow::Cow, io};

use tracing_subscriber::fmt::MakeWriter;

use super::backlog::Backlog;

/// Makes control characters visible in the lines that it passes on.
pub struct Visible(pub Backlog);

/// Writes one line.
pub struct Line<'a>(&'a Backlog);

impl io::Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.append(&visible(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Visible {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Line(&self.0)
    }
}

/// The line with every control character but ends of lines and tabs written as Rust writes it in a text.
fn visible(line: &[u8]) -> Cow<'_, [u8]> {
    // 0xc2 begins the control characters beyond ASCII, and other ones.
    if line.iter().all(|byte| matches!(byte, b'\n' | b'\t' | 0x20..=0x7e | 0x80..=0xc1 | 0xc3..)) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for c in String::from_utf8_lossy(line).chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown.into_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_are_shown_and_other_ones_stay() {
        let plain = "a=\"b\"\té §°\n";
        assert_eq!(visible(plain.as_bytes()), plain.as_bytes());
        assert!(matches!(visible("a=\"b\"\té\n".as_bytes()), Cow::Borrowed(_)), "nothing is copied");
        assert_eq!(&*visible("\x1b[31m\r\u{9b}2J\x7f\n".as_bytes()), b"\\u{1b}[31m\\r\\u{9b}2J\\u{7f}\n");
    }

    proptest! {
        #[test]
        fn no_control_character_is_left(text in "(?s:.{0,40})") {
            let shown = String::from_utf8(visible(text.as_bytes()).into_owned()).unwrap();
            prop_assert!(shown.chars().all(|c| matches!(c, '\n' | '\t') || !c.is_control()), "{shown:?}");
            let kept = |text: &str| text.chars().filter(|c| !c.is_control()).count();
            prop_assert!(kept(&shown) >= kept(&text));
        }
    }
}
