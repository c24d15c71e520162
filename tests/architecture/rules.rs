//! The rules, as tables and one function each. A function answers with the violations of one file, each as
//! `<file>:<line>: <what and what instead>`.

use crate::source::{Path, Source, Token};

/// A part of the server and what it may import: every lower level, itself, and the parts named `beside` it.
struct Part {
    name: &'static str,
    level: u8,
    beside: &'static [&'static str],
}

const fn part(level: u8, name: &'static str, beside: &'static [&'static str]) -> Part {
    Part { name, level, beside }
}

/// docs/architecture.md, "Levels".
const PARTS: [Part; 21] = [
    part(0, "domain", &[]),
    part(1, "config", &[]),
    part(1, "entities", &[]),
    part(1, "failpoint", &[]),
    part(1, "pace", &[]),
    part(2, "store", &[]),
    part(2, "vault", &["store"]),
    part(2, "fetch", &["store"]),
    part(2, "grpc::client", &[]),
    part(2, "process", &["grpc::client"]),
    part(3, "actors", &["actors::events"]),
    part(3, "actors::events", &["actors"]),
    // Services follow the bus; of the plugins' actors they know nothing.
    part(3, "platform", &["actors::events"]),
    // Installs what it has found.
    part(3, "marketplace", &["actors"]),
    part(4, "http", &[]),
    part(4, "grpc::host", &[]),
    part(5, "app", &[]),
    part(5, "probe", &[]),
    part(5, "cli", &["app", "probe"]),
    part(5, "main", &["cli"]),
    // Only declare modules.
    part(0, "lib", &[]),
];

/// What `domain` may name beside `std`: crates without I/O, clock and async.
const PURE_CRATES: [&str; 20] = [
    "std",
    "core",
    "alloc",
    "aho_corasick",
    "base64",
    "ed25519_dalek",
    // Without its features that fetch: the offline option refuses what is left.
    "jsonschema",
    "regex",
    "secrecy",
    "semver",
    "serde",
    "serde_json",
    "serde_saphyr",
    "sha2",
    "subtle",
    "thiserror",
    "time",
    "unicode_normalization",
    // Describes a shape, as serde does.
    "utoipa",
    // Making one needs a clock or dice, which the callers have.
    "uuid",
];

/// Pure as well, kept apart because only its parser is.
const PURE_PARSER: &str = "url";

/// Parts of `std` that touch the world.
const WORLD: [&str; 5] = ["fs", "process", "thread", "env", "os"];

/// Who alone may name a crate.
const OWNED_CRATES: [(&str, &[&str]); 9] = [
    ("actix", &["actors", "app"]),
    ("actix_rt", &["actors", "app"]),
    ("actix_web", &["http", "app"]),
    ("actix_multipart", &["http"]),
    ("aws_lc_rs", &["vault"]),
    ("rmcp", &["http"]),
    ("sea_orm", &["store", "vault", "entities"]),
    ("sea_orm_migration", &["store"]),
    ("sqlx", &["store"]),
];

/// Never in a `Cargo.toml`: what would run a plugin inside the host (the process boundary is a promise), and `anyhow`.
pub const BANNED_DEPENDENCIES: [&str; 8] =
    ["libloading", "dlopen2", "abi_stable", "wasmtime", "wasmer", "wasmi", "extism", "anyhow"];

/// Longest file, in lines outside of test modules.
pub const MAX_LINES: usize = 500;

/// Columns of a line, as in rustfmt.toml.
const MAX_COLUMNS: usize = 120;

/// The part that a module path below `crate` belongs to.
fn part_of(module: &[String]) -> Option<&'static Part> {
    let first = module.first().map(String::as_str);
    let second = module.get(1).map(String::as_str);
    let name = match (first, second) {
        (Some("grpc"), Some("client")) => "grpc::client",
        (Some("grpc"), Some("host")) => "grpc::host",
        (Some("actors"), Some("events")) => "actors::events",
        (Some(first), _) => first,
        (None, _) => "lib",
    };
    PARTS.iter().find(|part| part.name == name)
}

fn part_of_file(source: &Source<'_>) -> Option<&'static Part> {
    match source.name {
        name if name.ends_with("src/main.rs") => PARTS.iter().find(|part| part.name == "main"),
        _ => part_of(&source.module),
    }
}

fn violation(source: &Source<'_>, line: usize, text: &str) -> String {
    format!("{}:{line}: {text}", source.name)
}

/// Imports go down only.
pub fn levels(source: &Source<'_>) -> Vec<String> {
    // It declares the two halves, which are parts of their own, and has nothing else.
    let is_grpc = source.module == ["grpc"];
    let Some(from) = part_of_file(source).or(is_grpc.then_some(&PARTS[0])) else {
        return vec![violation(
            source,
            1,
            "a module without a level: give it a line in PARTS (tests/architecture/rules.rs)",
        )];
    };
    let inner = source.paths().into_iter().filter_map(|path| match path.segments.first().map(String::as_str) {
        Some("crate" | "kandev_host") => Some((path.segments[1..].to_vec(), path.line)),
        _ => None,
    });
    inner
        .filter(|(target, _)| target.first().is_some_and(|first| !is_grpc || first != "grpc"))
        .filter_map(|(target, line)| match part_of(&target) {
            None => {
                let text = format!("crate::{} is in no part that has a level", target.join("::"));
                Some(violation(source, line, &text))
            }
            Some(to) if to.level < from.level || to.name == from.name || from.beside.contains(&to.name) => None,
            Some(to) => Some(violation(
                source,
                line,
                &format!("{} (level {}) must not import {} (level {})", from.name, from.level, to.name, to.level),
            )),
        })
        .collect()
}

/// `domain` decides: pure crates only, no world, no clock, no async.
pub fn pure_domain(source: &Source<'_>, dependencies: &[String]) -> Vec<String> {
    if source.module.first().is_none_or(|first| first != "domain") {
        return Vec::new();
    }
    let paths = source.paths();
    let foreign =
        paths.iter().filter_map(|path| impure(path, dependencies).map(|text| violation(source, path.line, &text)));
    let words = source
        .tokens
        .iter()
        .filter(|token| matches!(token.text, "async" | "await"))
        .map(|token| violation(source, token.line, &format!("{} in domain: decisions do not wait", token.text)));
    foreign.chain(words).collect()
}

fn impure(path: &Path, dependencies: &[String]) -> Option<String> {
    let segment = |n: usize| path.segments.get(n).map_or("", String::as_str);
    let full = path.segments.join("::");
    let pure = PURE_CRATES.contains(&segment(0)) || segment(0) == PURE_PARSER;
    if dependencies.iter().any(|name| name == segment(0)) && !pure {
        return Some(format!("{full} in domain: {} is not one of the pure crates", segment(0)));
    }
    let world = segment(0) == "std" && WORLD.contains(&segment(1)) && !full.starts_with("std::env::consts");
    let socket = full.starts_with("std::net::") && (segment(2).starts_with("Tcp") || segment(2).starts_with("Udp"));
    if world || socket {
        return Some(format!("{full} in domain: it touches the world"));
    }
    let last = path.segments.last().map_or("", String::as_str);
    matches!(last, "now" | "now_utc" | "now_local").then(|| format!("{full} in domain: time is an argument"))
}

/// Crates that have a home.
pub fn owned_crates(source: &Source<'_>) -> Vec<String> {
    // A part of a part has its home.
    let part = part_of_file(source).and_then(|part| part.name.split("::").next()).unwrap_or_default();
    let mut found = Vec::new();
    for path in source.paths() {
        let named = path.segments.first().map_or("", String::as_str);
        if let Some((_, owners)) = OWNED_CRATES.iter().find(|(name, _)| *name == named)
            && !owners.contains(&part)
        {
            found.push(violation(source, path.line, &format!("{named} is named in {} only", owners.join(" and "))));
        }
    }
    found
}

/// Errors are typed.
pub fn no_anyhow(source: &Source<'_>) -> Vec<String> {
    let named = source.tokens.iter().filter(|token| token.text == "anyhow");
    named.map(|token| violation(source, token.line, "anyhow: errors are typed with thiserror")).collect()
}

/// Durations have a name, a default and a place where an operator can change them: `config`.
pub fn no_duration_literals(source: &Source<'_>) -> Vec<String> {
    if source.module.first().is_some_and(|first| first == "config") {
        return Vec::new();
    }
    let literal = |window: &&[Token<'_>]| {
        window[0].text == "Duration"
            && window[1].text == "::"
            && window[2].text.starts_with("from_")
            && window[3].text == "("
            && window[4].text.starts_with(|c: char| c.is_ascii_digit())
    };
    source
        .tokens
        .windows(5)
        .filter(literal)
        .map(|window| violation(source, window[0].line, "a duration literal: make it a field of config::Timing"))
        .collect()
}

/// A file says first what it owns.
pub fn header(source: &Source<'_>) -> Vec<String> {
    if source.text.starts_with("//!") {
        return Vec::new();
    }
    vec![violation(source, 1, "the file must open with //! and say what it owns")]
}

/// Files stay readable.
pub fn length(source: &Source<'_>) -> Vec<String> {
    let lines = source.production_lines();
    if lines <= MAX_LINES {
        return Vec::new();
    }
    vec![violation(source, 1, &format!("{lines} lines outside of tests, at most {MAX_LINES}: split it"))]
}

/// Comments are as narrow as the code, which rustfmt sees to.
pub fn width(source: &Source<'_>) -> Vec<String> {
    let wide = |line: &str| line.trim_start().starts_with("//") && line.chars().count() > MAX_COLUMNS;
    let text = format!("a comment of more than {MAX_COLUMNS} columns: break the line");
    (1..).zip(source.text.lines()).filter(|(_, line)| wide(line)).map(|(at, _)| violation(source, at, &text)).collect()
}

/// Production types do not change under test.
pub fn cfg_test_only_before_modules(source: &Source<'_>) -> Vec<String> {
    let text = "cfg(test) outside of a module declaration: move the item into `mod tests`";
    source.stray_cfg_test.iter().map(|line| violation(source, *line, text)).collect()
}

/// Dependencies of a `Cargo.toml` that must not be there.
pub fn banned_dependencies(name: &str, manifest: &str) -> Vec<String> {
    let found = dependencies(manifest).into_iter().filter(|dependency| BANNED_DEPENDENCIES.contains(&&**dependency));
    found.map(|dependency| format!("{name}: {dependency} must not be a dependency")).collect()
}

/// The crates that a `Cargo.toml` names in any of its dependency tables: the keys and what they are renamed from.
pub fn dependencies(manifest: &str) -> Vec<String> {
    let Ok(table) = manifest.parse::<toml::Table>() else { return vec!["unreadable".to_owned()] };
    let mut found = Vec::new();
    collect(&table, &mut found);
    found
}

fn collect(table: &toml::Table, found: &mut Vec<String>) {
    for (key, value) in table {
        let Some(inner) = value.as_table() else { continue };
        if key.ends_with("dependencies") {
            for (name, details) in inner {
                found.push(name.clone());
                found.extend(details.get("package").and_then(|package| package.as_str()).map(str::to_owned));
            }
        } else {
            collect(inner, found);
        }
    }
}
