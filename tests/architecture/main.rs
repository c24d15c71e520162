//! The architecture as tests: what docs/architecture.md says of levels, homes of crates and file shape holds for the
//! sources as they are.
//!
//! [`rules`] has the tables; [`checker`] shows on bad snippets that each rule can fail; [`documents`] looks for
//! what the documents must name.

mod checker;
mod documents;
mod rules;
mod source;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use source::Source;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The folders of the workspace's crates, the root first.
fn crates() -> Vec<PathBuf> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let parsed: Result<toml::Table, toml::de::Error> = manifest.parse();
    let table = parsed.unwrap_or_else(|error| panic!("Cargo.toml: {}", error.message()));
    let members = table["workspace"]["members"].as_array().expect("workspace.members").clone();
    members.iter().map(|member| root().join(member.as_str().expect("a path"))).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            collect(&entry, files);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            files.push(entry);
        }
    }
}

/// Name and text of every source file below `<crate>/src`, by name.
fn files(crates: &[PathBuf]) -> Vec<(String, String)> {
    let mut paths = Vec::new();
    for folder in crates {
        collect(&folder.join("src"), &mut paths);
    }
    paths.sort();
    let name = |path: &Path| path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let read = |path: &PathBuf| fs::read_to_string(path).expect("a readable source");
    paths.iter().map(|path| (name(path), read(path))).collect()
}

/// The files that hold only tests: named so, or declared under `cfg(test)`, or below such a module.
fn test_files<'a>(sources: &[Source<'a>]) -> BTreeSet<&'a str> {
    let declared: Vec<String> = sources
        .iter()
        .flat_map(|source| {
            let folder = source.name.trim_end_matches(".rs").trim_end_matches("/mod");
            let folder = folder.trim_end_matches("/lib").trim_end_matches("/main");
            source.test_modules.iter().map(move |module| format!("{folder}/{module}"))
        })
        .collect();
    let is_test = |name: &str| {
        let stem = name.trim_end_matches(".rs").trim_end_matches("/mod");
        let named = stem.ends_with("/tests") || stem.ends_with("_tests") || stem.contains("/tests/");
        named || declared.iter().any(|module| stem == module || stem.starts_with(&format!("{module}/")))
    };
    sources.iter().map(|source| source.name).filter(|name| is_test(name)).collect()
}

/// Applies a rule to every production file of these crates.
fn violations(crates: &[PathBuf], rule: impl Fn(&Source<'_>) -> Vec<String>) -> Vec<String> {
    let files = files(crates);
    assert!(!files.is_empty(), "no sources found");
    let sources: Vec<_> = files.iter().map(|(name, text)| Source::new(name, text)).collect();
    let tests = test_files(&sources);
    sources.iter().filter(|source| !tests.contains(source.name)).flat_map(rule).collect()
}

#[track_caller]
fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn imports_go_down_only() {
    assert_none(&violations(&[root()], rules::levels));
}

#[test]
fn the_domain_is_pure() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let crates: Vec<_> = rules::dependencies(&manifest).iter().map(|name| name.replace('-', "_")).collect();
    assert!(crates.contains(&"tokio".to_owned()), "the dependencies were not found");
    assert_none(&violations(&[root()], |source| rules::pure_domain(source, &crates)));
}

#[test]
fn actix_and_the_database_are_named_at_home_only() {
    assert_none(&violations(&[root()], rules::owned_crates));
}

#[test]
fn durations_are_written_in_config_only() {
    assert_none(&violations(&[root()], rules::no_duration_literals));
}

#[test]
fn errors_are_typed_everywhere() {
    assert_none(&violations(&crates(), rules::no_anyhow));
}

#[test]
fn every_source_file_opens_with_what_it_owns() {
    assert_none(&violations(&crates(), rules::header));
}

#[test]
fn no_source_file_is_too_long() {
    assert_none(&violations(&crates(), rules::length));
}

#[test]
fn no_comment_is_too_wide() {
    assert_none(&violations(&crates(), rules::width));
}

#[test]
fn production_code_does_not_change_under_test() {
    assert_none(&violations(&crates(), rules::cfg_test_only_before_modules));
}

#[test]
fn no_crate_can_load_a_plugin_into_the_host() {
    let found: Vec<_> = crates()
        .iter()
        .flat_map(|folder| {
            let path = folder.join("Cargo.toml");
            let manifest = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            rules::banned_dependencies(&path.display().to_string(), &manifest)
        })
        .collect();
    assert_none(&found);
}
