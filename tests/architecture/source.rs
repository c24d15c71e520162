//! Reads a Rust source file as far as the rules need it: tokens without comments and literals, the parts that belong to
//! tests, and the paths that are named, with `use` groups unfolded and `self`/`super` resolved.
//!
//! It is no parser: whatever compiles is read rightly, what does not compile may be read wrongly.

use std::ops::Range;

/// A word, a number, `::`, one punctuation character, or `""` for any string or character literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    pub line: usize,
}

/// A path as it is named somewhere: `crate::…` is absolute, anything else begins with a crate or a local name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    pub segments: Vec<String>,
    pub line: usize,
}

/// One file.
pub struct Source<'a> {
    /// As it is in a message.
    pub name: &'a str,
    pub text: &'a str,
    /// Module path below the crate: `src/actors/plugin.rs` is `["actors", "plugin"]`.
    pub module: Vec<String>,
    /// Tokens outside of test modules.
    pub tokens: Vec<Token<'a>>,
    /// Lines, from 1, of the test modules.
    pub test_lines: Vec<Range<usize>>,
    /// Names of modules that are declared for tests only and have a file of their own.
    pub test_modules: Vec<&'a str>,
    /// Lines with a `cfg(test)` that does not stand before a module.
    pub stray_cfg_test: Vec<usize>,
}

impl<'a> Source<'a> {
    /// Reads `text`. `name` is the path below the folder that has `src`.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        let mut source = Self {
            name,
            text,
            module: module_of(name),
            tokens: Vec::new(),
            test_lines: Vec::new(),
            test_modules: Vec::new(),
            stray_cfg_test: Vec::new(),
        };
        source.sort_out(&tokens(text));
        source
    }

    /// Lines that are not in a test module.
    pub fn production_lines(&self) -> usize {
        self.text.lines().count() - self.test_lines.iter().map(|range| range.len()).sum::<usize>()
    }

    /// Keeps what is not for tests.
    fn sort_out(&mut self, all: &[Token<'a>]) {
        let mut at = 0;
        while at < all.len() {
            let Some(after) = cfg_test(all, at) else {
                self.tokens.push(all[at]);
                at += 1;
                continue;
            };
            match module_after(all, after) {
                Some((name, end)) => {
                    if all[end - 1].text == ";" {
                        self.test_modules.push(name);
                    }
                    self.test_lines.push(all[at].line..all[end - 1].line + 1);
                    at = end;
                }
                None => {
                    self.stray_cfg_test.push(all[at].line);
                    self.tokens.extend_from_slice(&all[at..after]);
                    at = after;
                }
            }
        }
    }

    /// Every path of at least two segments, and every `use`.
    pub fn paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        let mut inline: Vec<(&str, usize)> = Vec::new();
        let (mut depth, mut at) = (0, 0);
        while at < self.tokens.len() {
            let token = self.tokens[at];
            match token.text {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inline.retain(|(_, opened)| *opened <= depth);
                }
                "mod" if self.text_at(at + 2) == "{" => inline.push((self.text_at(at + 1), depth + 1)),
                _ => {}
            }
            let mut raw = Vec::new();
            let end = if token.text == "use" && self.text_at(at + 1) != "<" {
                self.tree(at + 1, Vec::new(), &mut raw)
            } else if self.begins_path(at) {
                self.tree(at, Vec::new(), &mut raw)
            } else {
                at + 1
            };
            let module: Vec<String> =
                self.module.iter().cloned().chain(inline.iter().map(|(name, _)| (*name).to_owned())).collect();
            found.extend(
                raw.into_iter().map(|segments| Path { segments: resolve(&module, &segments), line: token.line }),
            );
            at = end.max(at + 1);
        }
        found
    }

    fn text_at(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    fn begins_path(&self, at: usize) -> bool {
        let before = if at == 0 { "" } else { self.text_at(at - 1) };
        // After `::` only a global path begins, and only where nothing stands before it.
        let continues = before == "::" && at > 1 && (is_word(self.text_at(at - 2)) || self.text_at(at - 2) == ">");
        is_word(self.text_at(at)) && self.text_at(at + 1) == "::" && before != "." && !continues
    }

    /// Unfolds a path or use tree from `at`; returns where it ends.
    fn tree(&self, mut at: usize, mut prefix: Vec<&'a str>, found: &mut Vec<Vec<&'a str>>) -> usize {
        if self.text_at(at) == "::" {
            at += 1;
        }
        loop {
            match self.text_at(at) {
                "{" => return self.group(at + 1, &prefix, found),
                "*" => {
                    found.push(prefix);
                    return at + 1;
                }
                word if is_word(word) => prefix.push(word),
                _ => {
                    found.push(prefix);
                    return at;
                }
            }
            at += 1;
            if self.text_at(at) != "::" {
                found.push(prefix);
                return at;
            }
            at += 1;
        }
    }

    /// The members of `{…}`; `at` is behind the brace.
    fn group(&self, mut at: usize, prefix: &[&'a str], found: &mut Vec<Vec<&'a str>>) -> usize {
        while at < self.tokens.len() {
            match self.text_at(at) {
                "}" => return at + 1,
                "," => at += 1,
                // `name as other`: the other name is no path.
                "as" => at += 2,
                _ => at = self.tree(at, prefix.to_vec(), found).max(at + 1),
            }
        }
        at
    }
}

/// `src/a/b.rs` and `src/a/b/mod.rs` are `["a", "b"]`; `lib.rs` and `main.rs` are the crate itself.
fn module_of(name: &str) -> Vec<String> {
    let inner = name.split_once("src/").map_or(name, |(_, inner)| inner);
    let inner = inner.trim_end_matches(".rs").trim_end_matches("/mod");
    match inner {
        "lib" | "main" => Vec::new(),
        inner => inner.split('/').map(str::to_owned).collect(),
    }
}

fn resolve(module: &[String], segments: &[&str]) -> Vec<String> {
    let mut base = module.to_vec();
    let mut rest = segments;
    let absolute = match rest.first() {
        Some(&"crate") => {
            base.clear();
            rest = &rest[1..];
            true
        }
        Some(&("self" | "super")) => {
            while let [first, tail @ ..] = rest {
                match *first {
                    "super" => drop(base.pop()),
                    "self" => {}
                    _ => break,
                }
                rest = tail;
            }
            true
        }
        _ => false,
    };
    let rest = rest.iter().filter(|segment| **segment != "self").map(|segment| (*segment).to_owned());
    if absolute { ["crate".to_owned()].into_iter().chain(base).chain(rest).collect() } else { rest.collect() }
}

/// If an attribute `cfg(… test …)` begins at `at`: where it ends.
fn cfg_test(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let begins =
        ["#", "[", "cfg", "("].iter().enumerate().all(|(n, text)| tokens.get(at + n).is_some_and(|t| t.text == *text));
    let end = if begins { closing(tokens, at + 1)? } else { return None };
    tokens[at..end].iter().any(|token| token.text == "test").then_some(end)
}

/// If a module is declared or written at `at`, after more attributes and a visibility: its name and where it ends.
fn module_after<'a>(tokens: &[Token<'a>], mut at: usize) -> Option<(&'a str, usize)> {
    loop {
        match tokens.get(at)?.text {
            "#" => at = closing(tokens, at + 1)?,
            "pub" => at += 1,
            "(" => at = closing(tokens, at)?,
            "mod" => break,
            _ => return None,
        }
    }
    let name = tokens.get(at + 1)?.text;
    let end = if tokens.get(at + 2)?.text == "{" { closing(tokens, at + 2)? } else { at + 3 };
    Some((name, end))
}

/// Behind the bracket that closes the one at `at`.
fn closing(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (n, token) in tokens.iter().enumerate().skip(at) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(n + 1);
        }
    }
    None
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Splits source text into tokens.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < text.len() {
        let rest = &text[at..];
        let (length, token) = next(rest);
        if let Some(token) = token {
            found.push(Token { text: token, line });
        }
        line += rest[..length].matches('\n').count();
        at += length;
    }
    found
}

/// Length of what comes next and, unless it is to be skipped, its token.
fn next(rest: &str) -> (usize, Option<&str>) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), None);
    }
    if let Some(length) = raw_string(rest) {
        return (length, Some("\"\""));
    }
    let first = rest.chars().next().unwrap_or(' ');
    match first {
        '"' => (quoted(rest, '"'), Some("\"\"")),
        '\'' => match character(rest) {
            Some(length) => (length, Some("\"\"")),
            // A lifetime.
            None => (1 + word(&rest[1..]), None),
        },
        c if c.is_whitespace() => (c.len_utf8(), None),
        c if c.is_alphanumeric() || c == '_' => (word(rest), Some(&rest[..word(rest)])),
        _ if rest.starts_with("::") => (2, Some("::")),
        c => (c.len_utf8(), Some(&rest[..c.len_utf8()])),
    }
}

fn word(rest: &str) -> usize {
    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
}

/// They nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#` and the same with `br` and `cr`.
fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let hashes = rest[prefix.len()..].len() - rest[prefix.len()..].trim_start_matches('#').len();
    let open = prefix.len() + hashes;
    if !rest[open..].starts_with('"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    Some(rest[open + 1..].find(&close).map_or(rest.len(), |found| open + 1 + found + close.len()))
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character literal, as against a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    let (second_at, second) = chars.next()?;
    match (first, second) {
        ('\\', _) => Some(quoted(rest, '\'')),
        (_, '\'') => Some(second_at + 1),
        _ => None,
    }
}
