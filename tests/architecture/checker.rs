//! Shows that each rule can fail, and that it does not fail where it must not.

use crate::{
    rules,
    source::{Path, Source, tokens},
};

fn crates() -> Vec<String> {
    ["tokio", "serde", "tonic", "time", "url"].map(str::to_owned).to_vec()
}

fn texts(source: &str) -> Vec<&str> {
    tokens(source).iter().map(|token| token.text).collect()
}

fn paths(name: &str, text: &str) -> Vec<String> {
    let joined = |path: Path| path.segments.join("::");
    Source::new(name, text).paths().into_iter().map(joined).collect()
}

#[test]
fn comments_and_literals_are_no_code() {
    let source = "a // crate::b\n/* c /* d */ e */ f \"g \\\" h\" r#\"i \" j\"# b'\\'' 'k' '\\u{1}' 'l m";
    assert_eq!(texts(source), ["a", "f", "\"\"", "\"\"", "b", "\"\"", "\"\"", "\"\"", "m"]);
}

#[test]
fn lines_are_counted_through_literals_and_comments() {
    let found = tokens("\"a\nb\"\n/*\n*/ c");
    assert_eq!(found.last().map(|token| (token.text, token.line)), Some(("c", 4)));
}

#[test]
fn use_groups_are_unfolded_and_relative_paths_resolved() {
    let found = paths(
        "src/actors/plugin.rs",
        "use super::{events::{Event as E, Bus}, spawn::*};\nuse crate::{domain::id, config};\nfn f() { self::x::y(); }",
    );
    let expected =
        ["crate::actors::events::Event", "crate::actors::events::Bus", "crate::actors::spawn", "crate::domain::id"];
    assert_eq!(found[..4], expected);
    assert_eq!(found[4..], ["crate::config", "crate::actors::plugin::x::y"]);
}

#[test]
fn super_counts_from_an_inline_module() {
    let found = paths("src/config/duration.rs", "mod one { use super::parse; } use super::Config;");
    assert_eq!(found, ["crate::config::duration::parse", "crate::config::Config"]);
}

#[test]
fn methods_and_associated_items_begin_no_path() {
    assert_eq!(paths("src/app.rs", "x.actix::<T>(); <A as B>::c(); ::serde::de();"), ["serde::de"]);
}

#[track_caller]
fn fails(violations: &[String], expected: &str) {
    assert_eq!(violations, [expected]);
}

#[test]
fn an_import_upward_fails_in_every_spelling() {
    let up = "src/store/a.rs:1: store (level 2) must not import actors (level 3)";
    for text in [
        "use crate::actors::PluginView;",
        "use crate::{actors::PluginView, domain::id::PluginId};",
        "fn f() { crate::actors::x() }",
        "use super::super::actors;",
    ] {
        fails(&rules::levels(&Source::new("src/store/a.rs", text)), up);
    }
}

#[test]
fn an_import_beside_fails_unless_the_table_has_it() {
    let levels = |name, text| rules::levels(&Source::new(name, text));
    assert_eq!(levels("src/process/launcher.rs", "use crate::grpc::client::PluginClient;"), [""; 0]);
    assert_eq!(levels("src/fetch.rs", "use crate::store::packages::Staging;"), [""; 0]);
    fails(
        &levels("src/grpc/client/channel.rs", "use crate::process::Launcher;"),
        "src/grpc/client/channel.rs:1: grpc::client (level 2) must not import process (level 2)",
    );
    fails(
        &levels("src/actors/plugin.rs", "use crate::grpc::host::HostService;"),
        "src/actors/plugin.rs:1: actors (level 3) must not import grpc::host (level 4)",
    );
    fails(
        &levels("src/domain/id.rs", "use crate::config::Limits;"),
        "src/domain/id.rs:1: domain (level 0) must not import config (level 1)",
    );
}

#[test]
fn a_module_without_a_level_fails() {
    fails(
        &rules::levels(&Source::new("src/util.rs", "")),
        "src/util.rs:1: a module without a level: give it a line in PARTS (tests/architecture/rules.rs)",
    );
}

#[test]
fn the_binary_reaches_the_library_by_its_name() {
    assert_eq!(rules::levels(&Source::new("src/main.rs", "use kandev_host::cli;")), [""; 0]);
}

#[test]
fn impure_code_in_domain_fails() {
    let domain = |text| rules::pure_domain(&Source::new("src/domain/a.rs", text), &crates());
    let at = |text: &str| format!("src/domain/a.rs:1: {text}");
    fails(&domain("use tokio::time;"), &at("tokio::time in domain: tokio is not one of the pure crates"));
    fails(&domain("use std::fs;"), &at("std::fs in domain: it touches the world"));
    fails(&domain("use std::net::TcpStream;"), &at("std::net::TcpStream in domain: it touches the world"));
    fails(&domain("fn f() { Instant::now(); }"), &at("Instant::now in domain: time is an argument"));
    fails(&domain("async fn f() {}"), &at("async in domain: decisions do not wait"));
    assert_eq!(
        domain("use std::{env::consts::ARCH, net::IpAddr, time::Instant}; use serde::de; use url::Host;"),
        [""; 0]
    );
}

#[test]
fn a_crate_outside_of_its_home_fails() {
    let owned = |name, text| rules::owned_crates(&Source::new(name, text));
    fails(&owned("src/http/a.rs", "use actix::Addr;"), "src/http/a.rs:1: actix is named in actors and app only");
    fails(
        &owned("src/grpc/host/a.rs", "sea_orm::x();"),
        "src/grpc/host/a.rs:1: sea_orm is named in store and vault and entities only",
    );
    fails(
        &owned("src/actors.rs", "#[derive(actix_web::X)]"),
        "src/actors.rs:1: actix_web is named in http and app only",
    );
    assert_eq!(owned("src/actors/spawn.rs", "use actix::Addr;"), [""; 0]);
}

#[test]
fn a_duration_literal_fails_outside_of_config_and_tests() {
    let durations = |name, text| rules::no_duration_literals(&Source::new(name, text));
    fails(
        &durations("src/http/a.rs", "\nconst A: Duration = Duration::from_secs(5);"),
        "src/http/a.rs:2: a duration literal: make it a field of config::Timing",
    );
    assert_eq!(durations("src/http/a.rs", "Duration::from_millis(millis)"), [""; 0]);
    assert_eq!(durations("src/config.rs", "Duration::from_secs(5)"), [""; 0]);
    assert_eq!(durations("src/http/a.rs", "#[cfg(test)] mod tests { f(Duration::from_secs(5)); }"), [""; 0]);
}

#[test]
fn anyhow_fails() {
    let found = rules::no_anyhow(&Source::new("src/app.rs", "fn f() -> anyhow::Result<()> {}"));
    fails(&found, "src/app.rs:1: anyhow: errors are typed with thiserror");
}

#[test]
fn a_file_without_header_fails() {
    let found = rules::header(&Source::new("src/app.rs", "use std::fs;\n//! late"));
    fails(&found, "src/app.rs:1: the file must open with //! and say what it owns");
}

#[test]
fn only_lines_outside_of_test_modules_count() {
    let line = "fn f() {}\n";
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", line.repeat(600));
    let lawful = format!("{}{tests}", line.repeat(rules::MAX_LINES));
    assert_eq!(rules::length(&Source::new("src/app.rs", &lawful)), [""; 0]);
    let long = format!("{line}{lawful}");
    fails(
        &rules::length(&Source::new("src/app.rs", &long)),
        "src/app.rs:1: 501 lines outside of tests, at most 500: split it",
    );
}

#[test]
fn comments_may_have_120_columns_and_strings_more() {
    let (comment, string) = ("a".repeat(112), "a".repeat(150));
    let lawful = format!("//! {}\n    /// {comment}\nconst A: &str = \"{string}\";\n", "é".repeat(116));
    assert_eq!(rules::width(&Source::new("src/app.rs", &lawful)), [""; 0]);
    let wide = format!("{lawful}    // {comment}bb\n");
    let found = rules::width(&Source::new("src/app.rs", &wide));
    fails(&found, "src/app.rs:4: a comment of more than 120 columns: break the line");
}

#[test]
fn cfg_test_fails_before_anything_but_a_module() {
    let text = "#[cfg(test)] const A: u8 = 1;\n#[cfg(all(test, unix))] fn f() {}\n#[cfg(test)] pub(crate) mod fake;\n";
    let found = rules::cfg_test_only_before_modules(&Source::new("src/app.rs", text));
    let rule = "cfg(test) outside of a module declaration: move the item into `mod tests`";
    assert_eq!(found, [format!("src/app.rs:1: {rule}"), format!("src/app.rs:2: {rule}")]);
}

#[test]
fn a_plugin_loader_fails_also_when_it_is_renamed_or_for_one_target() {
    let renamed = "[target.'cfg(unix)'.dependencies]\nloader = { version = \"1\", package = \"libloading\" }";
    fails(&rules::banned_dependencies("Cargo.toml", renamed), "Cargo.toml: libloading must not be a dependency");
    let inherited = "[workspace.dependencies]\nwasmtime = \"40\"";
    fails(&rules::banned_dependencies("Cargo.toml", inherited), "Cargo.toml: wasmtime must not be a dependency");
}
