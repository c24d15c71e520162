//! The documents name what is there: every failpoint, setting and error code of the sources. What they show of a plugin
//! is what is built and run.

use std::{collections::BTreeSet, fs};

use kandev_host::domain::manifest::parse;

use crate::{files, root};

fn document(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap_or_else(|error| panic!("docs/{name}: {error}"))
}

/// Every text in quotes that follows `before`, in one source.
fn quoted_after<'a>(source: &'a str, before: &str) -> Vec<&'a str> {
    source.split(before).skip(1).filter_map(quoted).collect()
}

/// The text in quotes that begins here.
fn quoted(rest: &str) -> Option<&str> {
    rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next())
}

/// The public fields of `pub struct <name>`.
fn fields<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
    let Some((_, body)) = source.split_once(&format!("pub struct {name} {{")) else { return Vec::new() };
    let body = body.split("\n}").next().unwrap_or_default();
    body.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next()).collect()
}

/// Error codes: the second argument beside a status in `http`, and the answers of a `fn code`.
fn codes<'a>(name: &str, source: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    if name.starts_with("src/http/error") {
        for rest in source.split("StatusCode::").skip(1) {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_uppercase() || c == '_');
            found.extend(rest.strip_prefix(',').and_then(quoted));
        }
    }
    if let Some((_, body)) = source.split_once("fn code(&self)") {
        found.extend(quoted_after(body.split("\n    }").next().unwrap_or_default(), "=>"));
    }
    found
}

#[track_caller]
fn assert_named<'a>(names: impl IntoIterator<Item = &'a str>, document_name: &str) {
    let text = document(document_name);
    let missing: Vec<_> = names.into_iter().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert_eq!(missing, [""; 0], "not named in docs/{document_name}");
}

#[test]
fn every_failpoint_is_in_the_runtime_semantics() {
    let files = files(&[root()]);
    let found: Vec<_> = files.iter().flat_map(|(_, text)| quoted_after(text, "failpoint::hit(")).collect();
    assert!(found.contains(&"install.staged"), "the failpoints were not found");
    assert_named(found, "runtime-semantics.md");
}

#[test]
fn every_setting_is_in_the_configuration() {
    let files =
        ["", "/timing", "/limits", "/rest", "/observing", "/plugins"].map(|name| format!("src/config{name}.rs"));
    let text = files.map(|name| fs::read_to_string(root().join(name)).expect("settings")).concat();
    let found = ["Config", "Timing", "Limits"].map(|name| fields(&text, name)).concat();
    assert!(found.contains(&"ping_interval") && found.contains(&"log_lines"), "the settings were not found");
    let sections = ["timing", "limits", "http", "install", "plugins", "features", "metrics", "telemetry"];
    assert_named(found.into_iter().filter(|name| !sections.contains(name)), "configuration.md");
    let structs = [
        ("http", "Http"),
        ("install", "Install"),
        ("plugins", "Plugins"),
        ("features", "Features"),
        ("metrics", "Metrics"),
        ("telemetry", "Telemetry"),
    ];
    for (section, name) in structs {
        assert!(!fields(&text, name).is_empty(), "the settings of {section} were not found");
        let keys: Vec<_> = fields(&text, name).iter().map(|key| format!("{section}.{key}")).collect();
        assert_named(keys.iter().map(String::as_str), "configuration.md");
    }
}

#[test]
fn every_error_code_is_in_the_api() {
    let files = files(&[root()]);
    let found: BTreeSet<_> = files.iter().flat_map(|(name, text)| codes(name, text)).collect();
    assert_named(found, "api.md");
}

/// The snippets in this language of docs/plugin-author.md.
fn snippets(language: &str) -> Vec<String> {
    let text = document("plugin-author.md");
    let begin = format!("```{language}\n");
    let begun = text.split(&begin).skip(1);
    begun.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// The template is built, packed and installed by the tests of the command line; the Rust snippet is a test of the
/// SDK's documentation, the Python one of the Python SDK (test_docs.py).
#[test]
fn the_go_that_authors_are_shown_is_a_part_of_the_template() {
    let template = fs::read_to_string(root().join("templates/go/main.go.template")).expect("the template");
    let shown = snippets("go");
    assert_eq!(shown.len(), 1);
    assert!(template.contains(&shown[0]), "{}", shown[0]);
}

#[test]
fn the_manifests_that_authors_are_shown_are_lawful() {
    let shown = snippets("yaml");
    let (whole, settings) = (&shown[0], &shown[1]);
    assert_eq!(shown.len(), 2);
    for manifest in [whole.clone(), format!("{whole}{settings}")] {
        let parsed = parse(manifest.as_bytes()).unwrap_or_else(|error| panic!("{manifest}{error}"));
        assert_eq!((parsed.manifest.id.as_str(), parsed.warnings), ("hello", vec![]));
    }
}

#[test]
fn codes_and_fields_are_found_in_sources_like_ours() {
    let source =
        "plain(StatusCode::NOT_FOUND, \"a_b\", x)\n plain(\n StatusCode::CONFLICT,\n \"c\",\n StatusCode::OK; \"d\"";
    assert_eq!(codes("src/http/error.rs", source), BTreeSet::from(["a_b", "c"]));
    let source = "fn code(&self) -> &str {\n match self {\n A => \"e\",\n }\n    }\n B => \"f\"";
    assert_eq!(codes("src/domain/x.rs", source), BTreeSet::from(["e"]));
    assert_eq!(fields("pub struct A {\n    /// Text: x\n    pub b: u8,\n    c: u8,\n}\npub d: u8", "A"), ["b"]);
}
