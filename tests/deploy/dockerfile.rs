//! `Dockerfile`: a parser for the part of its language that ours uses, and what must hold.

use std::collections::BTreeMap;

use kandev_host::config::Holds;

use crate::{USER, holds, is_pinned, read, root};

/// One instruction: keyword and the rest, lines joined.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Instruction {
    word: String,
    rest: String,
}

/// Every instruction, by stage; the first of a stage is its `FROM`.
fn stages(text: &str) -> Vec<Vec<Instruction>> {
    let mut stages: Vec<Vec<Instruction>> = Vec::new();
    for Instruction { word, rest } in instructions(text) {
        if word == "FROM" {
            stages.push(Vec::new());
        }
        stages.last_mut().expect("FROM comes first").push(Instruction { word, rest });
    }
    stages
}

fn instructions(text: &str) -> Vec<Instruction> {
    const WORDS: [&str; 14] = [
        "FROM",
        "RUN",
        "COPY",
        "USER",
        "WORKDIR",
        "ENV",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
        "LABEL",
        "ARG",
    ];
    let mut found = Vec::new();
    let mut open = String::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        match line.strip_suffix('\\') {
            Some(part) => open += part,
            None => {
                let whole = std::mem::take(&mut open) + line;
                let Some((word, rest)) = whole.trim().split_once(' ') else {
                    assert_eq!(whole.trim(), "", "an instruction without arguments");
                    continue;
                };
                assert!(WORDS.contains(&word), "not an instruction: {word}");
                found.push(Instruction { word: word.to_owned(), rest: rest.trim().to_owned() });
            }
        }
    }
    assert_eq!(open, "", "the last line goes on into nothing");
    found
}

fn dockerfile() -> Vec<Vec<Instruction>> {
    stages(&read("Dockerfile"))
}

fn last_stage() -> Vec<Instruction> {
    dockerfile().pop().expect("a stage")
}

/// The argument of the only instruction of this word in the image that is run.
#[track_caller]
fn only(word: &str) -> String {
    let mut found = last_stage().into_iter().filter(|instruction| instruction.word == word);
    let first = found.next().unwrap_or_else(|| panic!("no {word}"));
    assert_eq!(found.next(), None, "a second {word}");
    first.rest
}

/// A command in the form that needs no shell: a JSON list.
#[track_caller]
fn exec_form(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("not a JSON list, so a shell would run it: {text}"))
}

fn environment() -> BTreeMap<String, String> {
    let pairs = only("ENV");
    let pair = |text: &str| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    pairs.split_whitespace().map(|text| pair(text).unwrap_or_else(|| panic!("not NAME=value: {text}"))).collect()
}

#[test]
fn bases_are_pinned_and_stages_are_two() {
    let stages = dockerfile();
    assert_eq!(stages.len(), 2);
    for stage in &stages {
        let image = stage[0].rest.split(' ').next().unwrap_or_default();
        assert!(is_pinned(image), "{image} is not pinned");
    }
}

/// The build's own version is the one the workspace asks for, or newer.
#[test]
fn the_compiler_is_new_enough() {
    let image = dockerfile()[0][0].rest.clone();
    let version = image.strip_prefix("rust:").and_then(|rest| rest.split('-').next()).expect("a Rust image");
    let wanted = read("Cargo.toml");
    let wanted =
        wanted.split("rust-version = \"").nth(1).and_then(|rest| rest.split('"').next()).expect("rust-version");
    let numbers = |text: &str| text.split('.').map(|part| part.parse::<u32>().expect("a number")).collect::<Vec<_>>();
    assert!(numbers(version) >= numbers(wanted), "{version} is older than {wanted}");
}

#[test]
fn the_image_runs_without_rights_and_without_a_shell() {
    assert_eq!(only("USER"), USER);
    let binary = "/usr/local/bin/kandev-host";
    assert_eq!(exec_form(&only("ENTRYPOINT")), [binary]);
    assert_eq!(exec_form(&only("CMD")), ["serve"]);
    let health = only("HEALTHCHECK");
    let (options, command) = health.split_once(" CMD ").expect("a command");
    assert_eq!(exec_form(command)[..2], [binary, "health"]);
    assert!(options.split(' ').all(|option| option.starts_with("--")), "{options}");
    let words: Vec<_> = last_stage().into_iter().map(|instruction| instruction.word).collect();
    assert!(!words.iter().any(|word| word == "RUN"), "the image that runs is copied together, nothing is run in it");
}

#[test]
fn variables_and_paths_are_the_hosts() {
    let environment = environment();
    for (name, value) in &environment {
        match holds(name) {
            Holds::Folder => assert!(value.starts_with('/'), "{name}={value}"),
            Holds::Text => {}
            Holds::Secret | Holds::SecretFile => panic!("{name}: a secret does not belong into an image"),
        }
    }
    let home = &environment["KANDEV_HOME"];
    assert_eq!(exec_form(&only("VOLUME")), [home.as_str()]);
    assert_eq!(&only("WORKDIR"), home);
    assert!(environment["KANDEV_LISTEN"].ends_with(&format!(":{}", only("EXPOSE"))));
    let copied = last_stage().into_iter().any(|copy| {
        copy.word == "COPY" && copy.rest.contains(&format!("--chown={USER}")) && copy.rest.ends_with(home.as_str())
    });
    assert!(copied, "the home must belong to the user, or a new volume does not");
}

#[test]
fn what_is_copied_from_this_folder_and_built_is_there() {
    for copy in dockerfile().concat().iter().filter(|instruction| instruction.word == "COPY") {
        let mut arguments = copy.rest.split(' ').filter(|word| !word.starts_with("--"));
        let from = arguments.next().unwrap_or_default();
        if !copy.rest.contains("--from=") {
            assert!(root().join(from).exists(), "COPY {from}");
        }
    }
    let ignored = read(".dockerignore");
    let ignored: Vec<_> = ignored.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!([".git", "secrets", "target", ".home"].iter().all(|name| ignored.contains(name)), "{ignored:?}");
}

#[test]
fn the_parser_joins_lines_and_knows_what_is_no_instruction() {
    let stage = &stages("# text\nFROM a:1.0 AS b\nENV A=1 \\\n    B=2\n\n")[0];
    assert_eq!(stage[1], Instruction { word: "ENV".to_owned(), rest: "A=1     B=2".to_owned() });
    assert!(std::panic::catch_unwind(|| instructions("FORM a:1.0")).is_err());
    assert!(std::panic::catch_unwind(|| instructions("FROM a:1.0 \\")).is_err());
}
