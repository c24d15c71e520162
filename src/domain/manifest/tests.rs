//! Promises of the manifest reader: what each rule says, what each YAML oddity gives, what the JSON looks like.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const MINIMAL: &str = "id: acme-chat
api_version: 1
version: 0.3.1
runtime:
  type: binary
  executables:
    linux-amd64: server/plugin-linux-amd64
";

fn with(extra: &str) -> String {
    format!("{MINIMAL}{extra}")
}

/// The minimal manifest with one of its lines replaced.
fn replaced(line: &str, by: &str) -> String {
    assert!(MINIMAL.contains(line), "no line {line}");
    MINIMAL.replace(line, by)
}

#[track_caller]
fn accepted(yaml: &str) -> Parsed {
    match parse(yaml.as_bytes()) {
        Ok(parsed) => parsed,
        Err(error) => panic!("refused: {error}\n{yaml}"),
    }
}

#[track_caller]
fn violations(yaml: &str) -> Vec<String> {
    match parse(yaml.as_bytes()) {
        Err(ManifestError::Invalid(lines)) => lines,
        other => panic!("expected broken rules: {other:?}\n{yaml}"),
    }
}

#[track_caller]
fn yaml_error(yaml: &str) -> String {
    match parse(yaml.as_bytes()) {
        Err(ManifestError::Yaml(text)) => text,
        other => panic!("expected a YAML error: {other:?}"),
    }
}

#[test]
fn a_minimal_manifest_is_accepted_without_warnings() {
    let parsed = accepted(MINIMAL);
    assert_eq!(parsed.warnings, Vec::<String>::new());
    assert_eq!(parsed.manifest.version, "0.3.1");
    assert_eq!(parsed.manifest.runtime.executables["linux-amd64"], "server/plugin-linux-amd64");
}

#[test]
fn the_json_is_the_one_of_the_rest_contract() {
    let yaml = with(
        "display_name: Acme chat
author: acme
categories: [connector]
capabilities: {events: [\"task.*\"], api_read: [tasks], state: true, secrets: true}
webhooks: [{key: in, method: POST, access: public}]
config_schema: {type: object, properties: {}}
ui: {bundle: /ui/bundle.js, styles: [/ui/a.css]}
",
    );
    let json = serde_json::to_string(&accepted(&yaml).manifest).unwrap();
    assert_eq!(
        json,
        concat!(
            r#"{"id":"acme-chat","api_version":1,"version":"0.3.1","display_name":"Acme chat","description":"","#,
            r#""author":"acme","categories":["connector"],"base_url":"","endpoints":{"health":"","events":"","webhooks":""},"#,
            r#""capabilities":{"events":["task.*"],"api_read":["tasks"],"state":true,"secrets":true},"#,
            r#""webhooks":[{"key":"in","method":"POST","access":"public"}],"config_schema":{"type":"object","properties":{}},"#,
            r#""ui":{"bundle":"/ui/bundle.js","styles":["/ui/a.css"]},"#,
            r#""runtime":{"type":"binary","executables":{"linux-amd64":"server/plugin-linux-amd64"}}}"#
        )
    );
}

#[test]
fn absent_keys_are_omitted_and_categories_are_null() {
    assert_eq!(
        serde_json::to_value(accepted(MINIMAL).manifest).unwrap(),
        json!({"id": "acme-chat", "api_version": 1, "version": "0.3.1", "display_name": "", "description": "",
               "author": "", "categories": null, "base_url": "",
               "endpoints": {"health": "", "events": "", "webhooks": ""}, "capabilities": {}, "ui": {},
               "runtime": {"type": "binary", "executables": {"linux-amd64": "server/plugin-linux-amd64"}}})
    );
}

#[test]
fn null_counts_as_absent_at_every_level() {
    let yaml = with(
        "webhooks:
categories: null
description: ~
capabilities:
  events:
  state: null
  api_read: [null, tasks]
ui:
  pages:
config_schema:
actions: [null]
endpoints: {health: null}
min_kandev_version:
",
    );
    let mut plain = accepted(MINIMAL).manifest;
    plain.capabilities.api_read = vec!["tasks".to_owned()];
    assert_eq!(accepted(&yaml).manifest, plain);
}

#[test]
fn scalars_keep_their_source_text_where_text_is_expected() {
    for (source, text) in [
        ("1.0", "1.0"),
        ("1e3", "1e3"),
        ("010", "010"),
        ("0x1F", "0x1F"),
        ("true", "true"),
        ("'7'", "7"),
        ("1_0", "1_0"),
    ] {
        let yaml = replaced("version: 0.3.1", &format!("version: {source}"));
        assert_eq!(accepted(&yaml).manifest.version, text, "{source}");
    }
    for id in ["no", "yes", "on", "off", "y", "true", "1"] {
        let yaml = replaced("id: acme-chat", &format!("id: {id}"));
        assert_eq!(accepted(&yaml).manifest.id, id);
    }
}

#[test]
fn booleans_take_the_words_go_takes_and_no_others() {
    for word in ["true", "True", "yes", "on", "y"] {
        assert!(accepted(&with(&format!("capabilities: {{state: {word}}}\n"))).manifest.capabilities.state, "{word}");
    }
    for word in ["false", "no", "off", "n", "null"] {
        assert!(!accepted(&with(&format!("capabilities: {{state: {word}}}\n"))).manifest.capabilities.state, "{word}");
    }
    for word in ["1", "maybe", "'true'", "[]"] {
        let text = yaml_error(&with(&format!("capabilities: {{state: {word}}}\n")));
        assert!(text.contains("true or false"), "{text}");
    }
}

#[test]
fn free_schemas_keep_key_order_and_plain_words() {
    let yaml = with(
        "config_schema:
  type: object
  properties:
    z: {type: string, default: no}
    a: {default: null}
    10: {default: 010}
    2: {default: 2.50}
",
    );
    let json = serde_json::to_string(&accepted(&yaml).manifest.config_schema).unwrap();
    assert_eq!(
        json,
        r#"{"type":"object","properties":{"z":{"type":"string","default":"no"},"a":{"default":null},"10":{"default":"010"},"2":{"default":2.5}}}"#
    );
}

#[test]
fn unknown_keys_are_ignored_and_unknown_capability_words_warned() {
    let yaml =
        with("surprise: {deep: [1, 2]}\ncapabilities: {api_read: [tasks, moon], api_write: [sun], telepathy: true}\n");
    let parsed = accepted(&yaml);
    assert_eq!(
        parsed.warnings,
        [
            "unknown capability \"telepathy\" grants nothing on this host",
            "unknown capability \"api_read:moon\" grants nothing on this host",
            "unknown capability \"api_write:sun\" grants nothing on this host"
        ]
    );
    let granted: Vec<_> = parsed.manifest.capabilities.granted().iter().map(|c| c.name()).collect();
    assert_eq!(granted, ["api_read:tasks"]);
}

#[test]
fn a_pattern_that_can_never_match_is_warned_of() {
    let parsed = accepted(&with("capabilities: {events: ['task.*', 'ta*', 'task.>.x']}\n"));
    let warning = |pattern: &str| {
        format!(
            "event pattern \"{pattern}\" can never match: `*` stands for one whole segment, a final `>` for all that follow"
        )
    };
    assert_eq!(parsed.warnings, [warning("ta*"), warning("task.>.x")]);
}

#[test]
fn every_flag_grants_its_capability() {
    let yaml = with(
        "capabilities: {state: true, secrets: true, agent_invoke: true, auth: true, user_state: true,
  api_read: [tasks, sessions, messages, workspaces, workflows, agent_profiles, repositories, executor_profiles],
  api_write: [tasks, messages]}
config_schema: {properties: {utility_agent: {type: string, format: utility-agent}}}
",
    );
    let parsed = accepted(&yaml);
    assert_eq!(parsed.warnings, Vec::<String>::new());
    assert_eq!(parsed.manifest.capabilities.granted(), crate::domain::capability::Capability::all().collect());
}

#[test]
fn lawful_but_doubtful_manifests_are_warned() {
    let yaml = with("capabilities: {agent_invoke: true}\nwebhooks: [{key: in}, {key: ''}, {key: a, access: public}]\n");
    assert_eq!(
        accepted(&yaml).warnings,
        [
            "capability agent_invoke needs a config_schema property utility_agent with format \"utility-agent\": the \
             operator has no way to choose an agent",
            "webhook \"in\" declares no access and is public: anyone can call it",
            "a webhook with an empty key can never be called"
        ]
    );
}

#[test]
fn all_violations_are_reported_together_one_a_line() {
    let error = parse(b"id: Acme\napi_version: 2\ncategories: [games]\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid plugin id \"Acme\": must match ^[a-z0-9][a-z0-9._-]*$
unsupported api_version 2: only 1 is supported
version must not be empty
unknown category \"games\"
manifest is not runtime-managed (runtime.type must be \"binary\")"
    );
}

#[test]
fn each_broken_rule_has_its_text() {
    for (extra, text) in [
        ("repo_url: ftp://x", "repo_url \"ftp://x\" must be an http(s) URL"),
        ("base_url: http://x", "base_url must be empty for a runtime-managed plugin (runtime.type: binary)"),
        ("endpoints: {health: /h}", "endpoints must be empty for a runtime-managed plugin (runtime.type: binary)"),
        ("min_kandev_version: abc", "plugins: min_kandev_version \"abc\" is not a release version"),
        ("webhooks: [{key: a, access: public}, {key: a, access: public}]", "duplicate webhook key \"a\""),
        ("webhooks: [{key: a, access: maybe}]", "webhook \"a\" access \"maybe\" is invalid"),
        (
            "webhooks: [{key: a, access: authenticated, max_body_bytes: 16777217}]",
            "webhook \"a\" max_body_bytes must be between 1 and 16777216 when set",
        ),
        (
            "webhooks: [{key: a, access: public, max_body_bytes: -1}]",
            "webhook \"a\" max_body_bytes must be between 1 and 16777216 when set",
        ),
        (
            "webhooks: [{key: a, access: public, max_body_bytes: 4194305}]",
            "webhook \"a\" must use authenticated access when max_body_bytes exceeds 4194304",
        ),
        ("actions: [{key: A, scope: task, max_body_bytes: 1}]", "action key \"A\" must match ^[a-z0-9][a-z0-9._-]*$"),
        (
            "actions: [{key: a, scope: task, max_body_bytes: 1}, {key: a, scope: task, max_body_bytes: 1}]",
            "duplicate action key \"a\"",
        ),
        ("actions: [{key: a, scope: galaxy, max_body_bytes: 1}]", "action \"a\" has invalid scope \"galaxy\""),
        (
            "actions: [{key: a, scope: task, resource_scope: workspace, max_body_bytes: 1}]",
            "action scope and resource_scope disagree",
        ),
        ("actions: [{key: a, scope: task}]", "action \"a\" max_body_bytes must be between 1 and 1048576"),
        (
            "actions: [{key: a, scope: task, max_body_bytes: 1048577}]",
            "action \"a\" max_body_bytes must be between 1 and 1048576",
        ),
        (
            "repository_providers: [Git]",
            "repository provider \"Git\" must be a lowercase identifier matching ^[a-z0-9][a-z0-9._-]*$",
        ),
        ("repository_providers: [git, git]", "duplicate repository provider \"git\""),
        (
            "reference_sources: [{source: A, provider: p, kind: k, display_name: d, kind_label: l}]",
            "reference source \"A\" must use lowercase source, provider and kind matching ^[a-z0-9][a-z0-9._:-]{0,127}$",
        ),
        (
            "reference_sources: [{source: a, provider: p, kind: k, display_name: ' d', kind_label: l}]",
            "reference source \"a\" display_name must be trimmed and 1 to 100 characters",
        ),
        (
            "reference_sources: [{source: a, provider: p, kind: k, display_name: d, kind_label: l}, \
             {source: b, provider: p, kind: k, display_name: d, kind_label: l}]",
            "duplicate reference source \"b\"",
        ),
        ("ui: {bundle: ui/x.js}", "ui.bundle \"ui/x.js\" must be a root-relative path (start with \"/\")"),
        ("ui: {styles: [a.css]}", "ui.styles entry \"a.css\" must be a root-relative path (start with \"/\")"),
        ("ui: {pages: [{key: p, surface: moon}]}", "unknown ui surface \"moon\" for page \"p\""),
        ("ui: {keybindings: [{id: a, default: mod+k, description: d}]}", "ui.keybindings requires ui.bundle to be set"),
        (
            "ui: {bundle: /b, keybindings: [{id: a, default: mod+k, description: d}, {id: a, default: mod+k, description: d}]}",
            "duplicate ui.keybindings id \"a\"",
        ),
        (
            "ui: {bundle: /b, keybindings: [{id: A, default: mod+k, description: d}]}",
            "ui.keybindings[\"A\"]: id must match ^[a-z0-9][a-z0-9-]*$",
        ),
        (
            "ui: {bundle: /b, keybindings: [{id: a, default: mod+k, description: ' '}]}",
            "ui.keybindings[\"a\"]: description must not be empty",
        ),
        (
            "ui: {bundle: /b, keybindings: [{id: a, default: hyper+k, description: d}]}",
            "ui.keybindings[\"a\"]: combo \"hyper+k\" has an unknown key \"hyper\"",
        ),
        (
            "ui: {bundle: /b, keybindings: [{id: a, default: shift+k, description: d, allow_in_editor: true}]}",
            "ui.keybindings[\"a\"]: allow_in_editor needs a modifier other than shift",
        ),
    ] {
        assert_eq!(violations(&with(&format!("{extra}\n"))), [text], "{extra}");
    }
}

#[test]
fn each_broken_rule_of_the_required_fields_has_its_text() {
    for (line, by, text) in [
        ("version: 0.3.1", "version: 'a b'", "version \"a b\" must not contain whitespace"),
        ("version: 0.3.1", "version: a/b", "version \"a/b\" must be a single path segment (no \"/\" or \"\\\")"),
        ("version: 0.3.1", "version: '..'", "version \"..\" must not be \".\" or \"..\""),
        ("version: 0.3.1", "version: .tmp", "version \".tmp\" must not start with a dot"),
        (
            "version: 0.3.1",
            "version: data",
            "version \"data\" must not be \"data\": the plugin's data folder has this name",
        ),
        ("id: acme-chat", "id: a.config", "invalid plugin id \"a.config\": must not end in \".config\""),
        (
            "id: acme-chat",
            "id: lifecycle",
            "invalid plugin id \"lifecycle\": the word is reserved by the host, choose another id",
        ),
        ("api_version: 1", "", "unsupported api_version 0: only 1 is supported"),
        ("type: binary", "type: wasm", "runtime.type \"wasm\" is invalid: only \"binary\" is supported"),
        (
            "linux-amd64: server/plugin-linux-amd64",
            "linux-amd64: ''",
            "runtime.executables[\"linux-amd64\"]: path must not be empty",
        ),
        (
            "linux-amd64: server/plugin-linux-amd64",
            "linux-amd64: /bin/sh",
            "runtime.executables[\"linux-amd64\"]: path \"/bin/sh\" must be relative",
        ),
        (
            "linux-amd64: server/plugin-linux-amd64",
            "linux-amd64: a/../../b",
            "runtime.executables[\"linux-amd64\"]: path \"a/../../b\" must be a clean relative path with no \"..\" segments",
        ),
        (
            "linux-amd64: server/plugin-linux-amd64",
            "linux-amd64: ./a",
            "runtime.executables[\"linux-amd64\"]: path \"./a\" must be a clean relative path with no \"..\" segments",
        ),
        (
            "    linux-amd64: server/plugin-linux-amd64",
            "",
            "runtime.executables must declare at least one entry when runtime.type is \"binary\"",
        ),
    ] {
        assert_eq!(violations(&replaced(line, by)), [text]);
    }
}

#[test]
fn agent_tools_follow_their_rules() {
    let tool = "{name: look_up, description: d, surfaces: [kanban-task], input_schema: {type: object}}";
    assert_eq!(accepted(&with(&format!("agent_tools: [{tool}]\n"))).manifest.agent_tools[0].name, "look_up");
    let bad = "{name: Look, description: '', surfaces: [moon, moon], input_schema: {type: array},
        output_schema: {type: string}, annotations: {readOnlyHint: true, destructive_hint: true}}";
    assert_eq!(
        violations(&with(&format!("agent_tools: [{bad}, {tool}, {tool}, {{name: a, description: d}}]\n"))),
        [
            "agent_tools[0].name \"Look\" must match ^[a-z0-9][a-z0-9_]{0,31}$",
            "agent_tools[0].description must be 1 to 1024 bytes",
            "agent_tools[0].surfaces has an unknown surface \"moon\"",
            "agent_tools[0].surfaces has an unknown surface \"moon\"",
            "agent_tools[0].surfaces lists \"moon\" twice",
            "agent_tools[0].input_schema must have root type \"object\"",
            "agent_tools[0].output_schema must have root type \"object\"",
            "agent_tools[0].annotations: a tool cannot be both read-only and destructive",
            "agent_tools[2].name \"look_up\" is a duplicate",
            "agent_tools[3].surfaces must not be empty",
            "agent_tools[3].input_schema must be a non-empty JSON Schema object",
        ]
    );
    let many = [tool; 17].join(", ");
    assert_eq!(violations(&with(&format!("agent_tools: [{many}]\n")))[0], "agent_tools must declare at most 16 tools");
}

#[test]
fn resource_scope_is_read_as_scope_and_never_written() {
    let parsed = accepted(&with("actions: [{key: a, resource_scope: task, max_body_bytes: 10}]\n"));
    assert_eq!(parsed.manifest.actions[0].parsed_scope(), Some(ActionScope::Task));
    assert_eq!(
        serde_json::to_value(&parsed.manifest.actions).unwrap(),
        json!([{"key": "a", "scope": "task", "max_body_bytes": 10}])
    );
}

#[test]
fn texts_for_people_are_cleaned() {
    let yaml = with(
        r#"display_name: "A\u001b[2J\nB"
author: " me\u202e "
description: "one\ntwo\u0007"
"#,
    );
    let manifest = accepted(&yaml).manifest;
    assert_eq!(
        (manifest.display_name.as_str(), manifest.author.as_str(), manifest.description.as_str()),
        ("A [2J B", "me", "one\ntwo")
    );
}

#[test]
fn repo_url_is_trimmed_in_place() {
    assert_eq!(accepted(&with("repo_url: ' HTTPS://git.test/r '\n")).manifest.repo_url, "HTTPS://git.test/r");
}

#[test]
fn a_duplicate_key_is_refused_at_every_level() {
    for extra in [
        "capabilities: {state: false}\ncapabilities: {state: true, secrets: true}\n",
        "capabilities: {state: false, state: true}\n",
        "config_schema: {a: 1, a: 2}\n",
        "surprise: {a: 1, a: 2}\n",
    ] {
        let text = yaml_error(&with(extra));
        assert!(text.contains("duplicate"), "{text}");
    }
}

#[test]
fn each_yaml_oddity_has_a_clear_verdict() {
    let merged = with("x: &base {state: true}\ncapabilities: {<<: *base, secrets: true}\n");
    let merged = accepted(&merged).manifest.capabilities;
    assert!(merged.state && merged.secrets, "merge keys are understood");
    assert_eq!(accepted(&format!("\u{feff}{MINIMAL}")).manifest.id, "acme-chat", "a byte-order mark is skipped");
    assert_eq!(accepted(&format!("---\n{MINIMAL}...\n")).manifest.id, "acme-chat", "one marked document is lawful");
    assert_eq!(accepted(&MINIMAL.replace('\n', "\r\n")).manifest.version, "0.3.1");
    assert_eq!(accepted(&replaced("id: acme-chat", "id: !!str 12")).manifest.id, "12");
    assert_eq!(accepted(&with("x: &a [1]\ny: *a\n")).manifest.id, "acme-chat", "ordinary anchors are lawful");
    for (yaml, word) in [
        (format!("{MINIMAL}---\n{MINIMAL}"), "multiple"),
        (with("surprise: !foo bar\n"), "tag"),
        (with("author: !foo bar\n"), "tag"),
        (with("ui:\n\tbundle: /x\n"), "tab"),
        (String::new(), "empty"),
        ("# only a comment\n".to_owned(), "empty"),
        ("[1, 2]".to_owned(), "map"),
        ("just text".to_owned(), "map"),
        (with("config_schema: [1]\n"), "map"),
        (with("display_name: [1]\n"), "string"),
        (with("surprise: *nowhere\n"), "anchor"),
    ] {
        let text = yaml_error(&yaml);
        assert!(text.to_lowercase().contains(word), "{word}: {text}");
        assert!(!text.contains('\n') && text.len() <= 500, "{text}");
    }
    assert!(matches!(parse(b"id: \xff\n"), Err(ManifestError::Yaml(_))));
    let binary = replaced("id: acme-chat", "id: !!binary YWNtZQ==");
    assert_eq!(accepted(&binary).manifest.id, "acme", "!!binary text is decoded as Go does and then validated");
}

#[test]
fn bombs_meet_a_budget() {
    let mut aliases = with("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..=9 {
        let refs = vec![format!("*a{}", level - 1); 10].join(", ");
        aliases.push_str(&format!("a{level}: &a{level} [{refs}]\n"));
    }
    let deep_flow = with(&format!("a: {}{}\n", "[".repeat(10_000), "]".repeat(10_000)));
    let deep_maps = with(&format!("a: {}{}\n", "{a: ".repeat(10_000), "}".repeat(10_000)));
    let deep_block = (0..5_000).fold(with("a:\n"), |mut text, i| {
        text.push_str(&" ".repeat(i % 300 + 1));
        text.push_str("- \n");
        text
    });
    let dashes = with(&format!("a:\n  {}x\n", "- ".repeat(10_000)));
    let many_nodes = with(&format!("a: [{}]\n", "x,".repeat(200_000)));
    let merges = (0..500).fold(with("b: &b {k: v}\n"), |mut text, i| {
        text.push_str(&format!("m{i}: {{<<: *b}}\n"));
        text
    });
    let huge = with(&format!("a: {}\n", "x".repeat(MAX_MANIFEST_BYTES)));
    for (yaml, budget) in [
        (aliases, "RecordedAnchorEvents"),
        (deep_flow, "recursion limit"),
        (deep_maps, "Depth"),
        (deep_block, "Depth"),
        (dashes, "Depth"),
        (many_nodes, "Nodes"),
        (merges, "MergeKeys"),
        (huge, "the document exceeds 2097152 bytes"),
    ] {
        let text = yaml_error(&yaml);
        assert!(text.contains(budget), "{budget}: {text}");
        assert!(text.len() <= 500, "{budget}: {text}");
    }
}

#[test]
fn ten_thousand_violations_stay_a_short_report() {
    let categories = vec!["x"; 10_000].join(", ");
    let lines = violations(&with(&format!("categories: [{categories}]\n")));
    assert_eq!(lines.len(), 51);
    assert_eq!(lines[50], "… and 9950 more");
}

proptest! {
    #[test]
    fn random_bytes_get_a_verdict(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn random_yaml_like_text_gets_a_verdict(text in "[a-z0-9:\\-\\[\\]{}&*!|>'\"#%@, \n\t]{0,200}") {
        let _ = parse(text.as_bytes());
    }

    #[test]
    fn a_manifest_survives_json(name in "\\PC{0,30}", author in ".{0,30}", words in proptest::collection::vec("[a-z]{1,8}", 0..4)) {
        let mut manifest = accepted(MINIMAL).manifest;
        manifest.display_name = name;
        manifest.author = author;
        manifest.capabilities.api_read = words;
        let json = serde_json::to_string(&manifest).unwrap();
        prop_assert_eq!(serde_json::from_str::<Manifest>(&json).unwrap(), manifest);
    }
}

#[test]
fn aliases_of_large_texts_do_not_multiply_them() {
    let scalar = "x".repeat(60_000);
    let refs = |n: usize, name: &str| vec![format!("*{name}"); n].join(", ");
    let flat = with(&format!("x: &x {}\nconfig_schema: {{enum: [{}]}}\n", "x".repeat(1_000_000), refs(190, "x")));
    let nested =
        with(&format!("x: &x {scalar}\ny: &y [{}]\nconfig_schema: {{enum: [{}]}}\n", refs(90, "x"), refs(90, "y")));
    for (name, yaml) in [("flat", flat), ("nested", nested)] {
        let text = yaml_error(&yaml);
        assert!(text.contains("ScalarBytes"), "{name}: {text}");
    }
}
