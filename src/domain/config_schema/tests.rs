use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::domain::id::PluginId;

fn id() -> PluginId {
    PluginId::new("acme").unwrap()
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

fn marker(field: &str) -> String {
    format!("vault:plugin:acme:config:{field}")
}

type Secrets = Vec<(String, Option<String>)>;

/// A PATCH of `submitted` over `stored`: the new file and the vault's changes, or the refusal.
fn patch(schema: Value, stored: Value, submitted: Value) -> Result<(Value, Secrets), Refusal> {
    let (schema, stored, id) = (map(schema), map(stored), id());
    let full = FullSchema::compile(&schema).ok();
    let submitted = Submitted::read(json!({"config": submitted}).to_string().as_bytes()).unwrap();
    let draft = Draft::new(Fields::of(&schema), &id, Some(&stored), submitted);
    draft.check(full.as_ref())?;
    let Change { config, secrets } = draft.into_change();
    Ok((Value::Object(config), secrets))
}

fn refused(schema: Value, submitted: Value) -> (String, Vec<(String, String)>) {
    let refusal = patch(schema, json!({}), submitted).unwrap_err();
    let violations = refusal.violations.iter().map(|v| (v.path.clone(), v.message.clone())).collect();
    (refusal.to_string(), violations)
}

fn set(field: &str, secret: &str) -> (String, Option<String>) {
    (field.to_owned(), Some(secret.to_owned()))
}

fn token() -> Value {
    json!({"properties": {"token": {"type": "string", "secret": true}, "url": {"type": "string"}}})
}

#[test]
fn secret_fields_are_top_level_with_secret_true_or_format_password() {
    let schema = map(json!({"properties": {
        "a": {"secret": true}, "b": {"format": "password"}, "c": {"secret": "true"}, "d": {"format": "PASSWORD"},
        "e": {"type": "object", "properties": {"inner": {"secret": true}}}, "f": true, "": {"secret": true}}}));
    let secret: Vec<_> =
        ["a", "b", "c", "d", "e", "f", "", "inner"].into_iter().filter(|f| Fields::of(&schema).is_secret(f)).collect();
    assert_eq!(secret, ["a", "b"]);
}

#[test]
fn secrets_that_are_set_are_masked_and_everything_else_is_verbatim_and_in_order() {
    let secret = json!({"secret": true});
    let names = ["z", "a", "10", "2", "null", "empty", "false", "zero", "negative"];
    let properties: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), secret.clone())).collect();
    let schema = map(json!({"properties": properties}));
    let stored = map(json!({"z": marker("z"), "plain": "********", "a": true, "10": 5, "2": [], "null": null,
        "empty": "", "false": false, "zero": 0, "negative": -0.0}));
    let masked = Value::Object(Fields::of(&schema).mask(&stored));
    let expected = json!({"z": MASK, "plain": MASK, "a": MASK, "10": MASK, "2": MASK, "null": null, "empty": "",
        "false": false, "zero": 0, "negative": -0.0});
    assert_eq!(masked.to_string(), expected.to_string());
}

#[test]
fn a_secret_goes_to_the_vault_and_its_marker_to_the_file() {
    let changed = patch(token(), json!({}), json!({"token": "s3cret", "url": "u", "other": 1}));
    assert_eq!(changed, Ok((json!({"token": marker("token"), "url": "u", "other": 1}), vec![set("token", "s3cret")])));
}

#[test]
fn mask_omission_null_and_empty_text_each_do_what_the_contract_says() {
    let stored = json!({"token": marker("token"), "url": "u"});
    let gone = vec![("token".to_owned(), None)];
    for (submitted, file, secrets) in [
        (json!({"token": MASK, "url": "v"}), json!({"token": marker("token"), "url": "v"}), vec![]),
        (json!({"token": marker("token")}), json!({"token": marker("token")}), vec![]),
        (json!({"url": "v"}), json!({"url": "v"}), gone.clone()),
        (json!({"token": null}), json!({"token": null}), gone.clone()),
        (json!({"token": ""}), json!({"token": ""}), gone.clone()),
        (json!({}), json!({}), gone.clone()),
        (json!({"token": "new"}), json!({"token": marker("token")}), vec![set("token", "new")]),
    ] {
        assert_eq!(patch(token(), stored.clone(), submitted.clone()), Ok((file, secrets)), "{submitted}");
    }
}

#[test]
fn a_mask_without_anything_stored_is_dropped_and_in_a_plain_field_it_is_a_text() {
    assert_eq!(patch(token(), json!({}), json!({"token": MASK, "url": MASK})), Ok((json!({"url": MASK}), vec![])));
    let required = json!({"required": ["token"], "properties": {"token": {"secret": true}}});
    assert_eq!(refused(required, json!({"token": MASK})).0, "plugin config invalid: missing required field \"token\"");
}

#[test]
fn only_the_exact_marker_of_plugin_and_field_is_a_reference() {
    for text in [
        "vault:plugin:other:config:token",
        "vault:plugin:acme:config:url",
        "vault:plugin:acme:config:token ",
        "Vault:plugin:acme:config:token",
        "vault:plugin:acme:secret:token",
    ] {
        let changed = patch(token(), json!({"token": marker("token")}), json!({"token": text}));
        assert_eq!(changed, Ok((json!({"token": marker("token")}), vec![set("token", text)])), "{text}");
    }
    let changed = patch(token(), json!({}), json!({"url": "vault:plugin:other:config:url", "token": marker("token")}));
    assert_eq!(changed, Ok((json!({"url": "vault:plugin:other:config:url"}), vec![])));
}

#[test]
fn a_field_that_was_secret_before_an_upgrade_keeps_its_reference_and_a_made_up_one_is_refused() {
    let stored = json!({"url": marker("url")});
    let kept = patch(token(), stored.clone(), json!({"url": marker("url")}));
    assert_eq!(kept, Ok((stored.clone(), vec![])));
    let plain = patch(token(), stored, json!({"url": "u"}));
    assert_eq!(plain, Ok((json!({"url": "u"}), vec![("url".to_owned(), None)])));
    let (text, _) = refused(token(), json!({"url": marker("url")}));
    assert_eq!(text, "plugin config invalid: field \"url\" refers to a secret that is not stored");
}

#[test]
fn a_clear_text_that_became_secret_by_an_upgrade_moves_to_the_vault_when_it_is_kept() {
    let kept = patch(token(), json!({"token": "clear"}), json!({"token": MASK}));
    assert_eq!(kept, Ok((json!({"token": marker("token")}), vec![set("token", "clear")])));
}

#[test]
fn the_fixed_rules_have_their_texts_and_their_order() {
    let schema = json!({"required": ["r"], "properties": {
        "n": {"type": "number"}, "s": {"type": "string"}, "b": {"type": "boolean"}, "i": {"type": "integer"},
        "e": {"type": "integer", "enum": [1, 2.5, "x"]}, "t": {"type": "tuple"}, "k": {"secret": true}}});
    let submitted = json!({"n": "1", "s": null, "b": 0, "i": 1.5, "e": 3, "t": 1, "k": 7});
    let expected = [
        ("/r", "missing required field \"r\""),
        ("/k", "secret field \"k\" must be a string"),
        ("/n", "field \"n\" must be a number"),
        ("/s", "field \"s\" must be a string"),
        ("/b", "field \"b\" must be a boolean"),
        ("/i", "field \"i\" must be a integer"),
        ("/e", "field \"e\" must be one of the declared enum values"),
    ];
    let expected: Vec<_> = expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let (text, violations) = refused(schema.clone(), submitted);
    assert_eq!(violations, expected);
    assert_eq!(text, "plugin config invalid: missing required field \"r\"");
    // Presence is enough, integral floats are integers, numbers are compared by value, unknown types are not checked.
    for lawful in [json!({"r": null}), json!({"r": "", "i": 2.0, "e": 1.0, "t": {}}), json!({"r": 0, "k": null})] {
        assert!(patch(schema.clone(), json!({}), lawful.clone()).is_ok(), "{lawful}");
    }
}

#[test]
fn the_whole_schema_is_checked_and_all_violations_are_told_at_once() {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "proxy": {"type": "object", "required": ["host"], "properties": {"host": {"type": "string"}}},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "maxItems": 2}},
        "$defs": {"tag": {"type": "string", "minLength": 2}}});
    let (text, violations) = refused(
        schema.clone(),
        json!({"name": "A", "port": 0, "proxy": {"host": 1}, "tags": ["ok", "x", "yy"], "extra": 1}),
    );
    let mut paths: Vec<_> = violations.iter().map(|(path, _)| path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["", "/name", "/port", "/proxy/host", "/tags", "/tags/1"]);
    assert!(text.starts_with("plugin config invalid: ") && text.contains("/port: the value is less than"), "{text}");
    let lawful = json!({"name": "a", "port": 1, "proxy": {"host": "h"}, "tags": ["ok"]});
    assert!(patch(schema.clone(), json!({}), lawful).is_ok());
    // A fixed rule speaks first and alone in the text; what the schema says beside it is in the list.
    let (text, violations) = refused(schema, json!({"port": 0, "proxy": {}}));
    assert_eq!(text, "plugin config invalid: missing required field \"name\"");
    let paths: Vec<_> = violations.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/name", "/port", "/proxy/host"]);
}

#[test]
fn violations_are_bounded_and_hold_no_value() {
    let schema = json!({"properties": {"s": {"secret": true, "type": "string", "pattern": "^x", "maxLength": 3},
        "l": {"items": {"type": "string"}}}});
    let (text, violations) = refused(schema, json!({"s": "marker-secret", "l": vec![1; 200]}));
    assert!(!format!("{text}{violations:?}").contains("marker-secret"), "{violations:?}");
    assert_eq!(violations.len(), 50);
    assert!(text.len() < 1000 && text.ends_with("… and 45 more"), "{text}");
    let long = json!({"properties": {"k": {"enum": ["y".repeat(5000)]}}, "allOf": [{"properties": {"k": {"const": "y".repeat(5000)}}}]});
    assert!(refused(long, json!({"k": 1})).1.iter().all(|(path, text)| path.len() <= 300 && text.len() <= 300));
}

#[test]
fn kept_and_null_secrets_pass_whatever_the_schema_wants_of_their_values() {
    let schema = json!({"required": ["token"], "minProperties": 1, "anyOf": [{"required": ["token"]}, {"required": ["user"]}],
        "allOf": [{"if": {"properties": {"token": {"pattern": "^a"}}}, "then": {"required": ["token"]}}],
        "properties": {"token": {"secret": true, "type": "string", "pattern": "^ab+$", "minLength": 20, "enum": ["abbbb"]}}});
    let stored = json!({"token": marker("token")});
    for submitted in [json!({"token": MASK}), json!({"token": null})] {
        assert!(patch(schema.clone(), stored.clone(), submitted.clone()).is_ok(), "{submitted}");
    }
    let root = json!({"properties": {"token": {"secret": true}}, "not": {"properties": {"token": {"minLength": 3}}, "required": ["token"]}});
    assert!(patch(root, stored, json!({"token": MASK})).is_ok(), "the stand-in is not held against the operator");
    assert!(patch(schema, json!({}), json!({"token": "b"})).is_err());
}

#[test]
fn schemas_that_would_cost_too_much_or_reach_too_far_are_not_used() {
    let compile = |schema: Value| FullSchema::compile(&map(schema)).map(drop);
    let doubling: Map<String, Value> = (0..40)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"allOf": [next.clone(), next]}))
        })
        .chain([("d40".to_owned(), json!({"type": "string"}))])
        .collect();
    assert!(matches!(compile(json!({"$defs": doubling, "$ref": "#/$defs/d0"})), Err(Unusable::TooLarge { .. })));
    let patterns: Map<String, Value> = (0..65).map(|n| (format!("f{n}"), json!({"pattern": "a"}))).collect();
    assert!(matches!(compile(json!({"properties": patterns})), Err(Unusable::TooLarge { .. })));
    for circle in [json!({"$ref": "#"}), json!({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"})]
    {
        assert!(matches!(compile(circle.clone()), Err(Unusable::Circle(_))), "{circle}");
    }
    assert!(matches!(compile(json!({"$ref": "#/$defs/none"})), Err(Unusable::Target(_))));
    for invalid in [
        json!({"type": "text"}),
        json!({"properties": {"a": {"required": true}}}),
        json!({"properties": {"a": {"pattern": "(a+"}}}),
        json!({"properties": {"a": {"pattern": "(?=a)b"}}}),
        json!({"properties": {"a": {"pattern": "\\p{L}{10000}"}}}),
        json!({"$schema": "https://example.test/own-dialect"}),
    ] {
        assert!(matches!(compile(invalid.clone()), Err(Unusable::Invalid(_))), "{invalid}");
    }
    for standard in ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"] {
        assert_eq!(compile(json!({"$schema": standard, "properties": {"$ref": {"type": "string"}}})), Ok(()));
    }
}

#[test]
fn a_pattern_that_ruins_a_backtracking_engine_takes_no_time() {
    let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
    let (text, _) = refused(schema, json!({"a": "a".repeat(20_000) + "!"}));
    assert!(text.contains("/a: "), "{text}");
}

#[test]
fn references_out_of_the_document_are_found_and_data_is_no_reference() {
    let found = |schema: Value| foreign_reference(&map(schema)).map(str::to_owned);
    for schema in [
        json!({"$ref": "https://example.test/s.json"}),
        json!({"properties": {"a": {"items": [{"anyOf": [{"$ref": "https://example.test/s.json"}]}]}}}),
        json!({"$defs": {"unused": {"not": {"$dynamicRef": "https://example.test/s.json"}}}}),
    ] {
        assert_eq!(found(schema.clone()).as_deref(), Some("https://example.test/s.json"), "{schema}");
    }
    for file in ["file:///etc/passwd", "other.json", "//host/x", "other.json#/a"] {
        assert_eq!(found(json!({"$ref": file})).as_deref(), Some(file));
    }
    for inside in [
        json!({"$ref": "#/$defs/a", "$schema": "http://json-schema.org/draft-07/schema#"}),
        json!({"properties": {"$ref": {"type": "string"}}, "default": {"$ref": "x"}, "enum": [{"$ref": "x"}]}),
        json!({"$id": "https://example.test/me.json", "$ref": "#"}),
    ] {
        assert_eq!(found(inside.clone()), None, "{inside}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!("")),
        Just(json!(0)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z*:]{0,12}".prop_map(Value::from),
        Just(json!({"a": [1]})),
    ]
}

proptest! {
    #[test]
    fn sending_back_what_was_shown_changes_nothing(fields in prop::collection::btree_map("[a-e]", (any::<bool>(), any::<bool>(), value()), 0..5)) {
        let properties: Map<String, Value> =
            fields.iter().map(|(name, (secret, _, _))| (name.clone(), json!({"secret": secret}))).collect();
        let schema = map(json!({"properties": properties}));
        let stored: Map<String, Value> = fields
            .iter()
            .map(|(name, (secret, in_vault, value))| match (secret, in_vault, value) {
                (true, true, _) => (name.clone(), marker(name).into()),
                // A clear text in a secret field moves to the vault; a text of its own test.
                (true, false, Value::String(_)) => (name.clone(), json!("")),
                (_, _, value) => (name.clone(), value.clone()),
            })
            .collect();
        let (fields, id) = (Fields::of(&schema), id());
        let shown = fields.mask(&stored);
        let text = Value::Object(shown.clone()).to_string();
        prop_assert!(!text.contains("vault:"), "{}", text);
        let draft = Draft::new(fields, &id, Some(&stored), Submitted { fields: shown, ..Submitted::default() });
        prop_assert_eq!(draft.check(None).err().map(|refusal| refusal.violations.len()).unwrap_or(0), stored
            .iter().filter(|(name, value)| fields.is_secret(name) && !is_set(value) && !value.is_null() && **value != "").count());
        let Change { config, secrets } = draft.into_change();
        prop_assert_eq!(Value::Object(config).to_string(), Value::Object(stored).to_string());
        prop_assert_eq!(secrets, vec![]);
    }

    #[test]
    fn a_secret_that_is_no_reference_is_in_the_vault_and_never_in_the_file(text in "[ -~]{1,40}") {
        prop_assume!(text != MASK && text != marker("token"));
        let (file, secrets) = patch(token(), json!({}), json!({"token": text})).unwrap();
        prop_assert_eq!(file, json!({"token": marker("token")}));
        prop_assert_eq!(secrets, vec![set("token", &text)]);
    }
}

#[test]
fn a_fixed_rule_hides_none_of_the_schemas_other_violations_at_the_same_place() {
    let schema = json!({"required": ["m"], "properties": {
        "m": {"type": "string"}, "n": {"type": "integer", "minimum": 10, "multipleOf": 4, "enum": [12, 16]},
        "t": {"type": "string", "enum": ["a"]}}});
    let (text, violations) = refused(schema, json!({"n": 3, "t": 1}));
    assert_eq!(text, "plugin config invalid: missing required field \"m\"");
    let told: Vec<_> = violations.iter().map(|(path, message)| format!("{path} {message}")).collect();
    assert_eq!(
        told[..3],
        [
            "/m missing required field \"m\"",
            "/n field \"n\" must be one of the declared enum values",
            "/t field \"t\" must be a string",
        ]
    );
    let count = |path: &str| violations.iter().filter(|(at, _)| at == path).count();
    assert_eq!((count("/m"), count("/n"), count("/t")), (1, 3, 2), "{told:?}");
}

#[test]
fn a_number_that_would_be_changed_is_refused_with_its_place_and_without_its_digits() {
    let (schema, stored, id) = (map(token()), Map::new(), id());
    let body = br#"{"config":{"url":"u","big":123456789012345678901234567890,"deep":[{"pi":3.14159265358979323846}]}}"#;
    let draft = Draft::new(Fields::of(&schema), &id, Some(&stored), Submitted::read(body).unwrap());
    let refusal = draft.check(None).unwrap_err();
    let text = "the number at /big has more digits than a plugin gets; write it as text, in quotes";
    assert_eq!(refusal.to_string(), format!("plugin config invalid: {text}"));
    let paths: Vec<_> = refusal.violations.iter().map(|violation| violation.path.as_str()).collect();
    assert_eq!(paths, ["/big", "/deep/0/pi"]);
}

#[test]
fn over_a_damaged_file_only_what_is_sent_counts_and_what_would_be_kept_is_named() {
    let (schema, id) = (map(json!({"properties": {"a": {"secret": true}, "b": {"secret": true}, "c": {}}})), id());
    let draft = |config: Value| {
        let body = json!({"config": config}).to_string();
        Draft::new(Fields::of(&schema), &id, None, Submitted::read(body.as_bytes()).unwrap())
    };
    assert_eq!(draft(json!({"a": MASK, "b": marker("b"), "c": MASK})).lost(), ["a", "b"]);
    let whole = draft(json!({"a": "new", "c": MASK}));
    assert_eq!(whole.lost(), [""; 0]);
    let Change { config, secrets } = whole.into_change();
    assert_eq!(Value::Object(config), json!({"a": marker("a"), "c": MASK}));
    assert_eq!(secrets, [set("a", "new"), ("b".to_owned(), None)]);
}
