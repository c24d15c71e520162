use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::domain::manifest;

fn manifest_of(version: &str, capabilities: &str) -> Manifest {
    let text = format!(
        "{{id: acme, api_version: 1, version: '{version}', capabilities: {capabilities}, \
         runtime: {{type: binary, executables: {{linux-amd64: p}}}}}}"
    );
    manifest::parse(text.as_bytes()).unwrap().manifest
}

/// Signed by the trusted key of this name, which is its name in capitals.
fn side<'a>(manifest: &'a Manifest, signer: Option<&str>) -> Side<'a> {
    let word = if signer.is_some() { "trusted" } else { "absent" };
    let signed = Signed { word, name: signer.map(str::to_owned), key: signer.map(str::to_uppercase) };
    Side { manifest, signed }
}

#[test]
fn capabilities_are_compared_by_kind_and_events_by_what_they_match() {
    let old = manifest_of("1.0.0", "{events: ['task.*', 'a.b'], api_read: [tasks, unheard], state: true}");
    let new = manifest_of(
        "1.1.0",
        "{events: ['task.created', 'a.>'], api_read: [tasks, messages], api_write: [tasks], secrets: true}",
    );
    let difference = compare(Some(side(&old, None)), side(&new, None), true);
    assert_eq!(difference.widened, ["events:a.>", "api_read:messages", "api_write:tasks", "secrets"]);
    assert_eq!(difference.narrowed, ["events:task.*", "api_read:unheard", "state"]);
    assert_eq!(difference.needs, Kinds::parse("capabilities").unwrap());
    assert_eq!(
        difference.to_string(),
        "asks for more than 1.0.0: events:a.>, api_read:messages, api_write:tasks, secrets"
    );
    let off = compare(Some(side(&old, None)), side(&new, None), false);
    assert!(off.needs.is_empty() && off.widened == difference.widened, "shown, but not asked for");
}

#[test]
fn a_signer_that_goes_or_changes_and_a_version_that_goes_back_need_consent() {
    let (old, new) = (manifest_of("1.0.0", "{}"), manifest_of("1.1.0", "{}"));
    for (before, after, change, needs) in [
        (None, None, SignerChange::None, ""),
        (None, Some("a"), SignerChange::Added, ""),
        (Some("a"), Some("a"), SignerChange::None, ""),
        (Some("a"), None, SignerChange::Dropped, "signer"),
        (Some("a"), Some("b"), SignerChange::Changed, "signer"),
    ] {
        let difference = compare(Some(side(&old, before)), side(&new, after), true);
        assert_eq!((difference.signer_change, difference.needs.to_string().as_str()), (change, needs));
    }
    for (installed, offered, direction, needs) in [
        ("1.0.0", "1.0.1", Direction::Upgrade, ""),
        ("1.0.0", "1.0.0", Direction::Same, ""),
        ("1.0.0", "1.0", Direction::Equal, ""),
        ("1.0.0+a", "1.0.0+b", Direction::Equal, ""),
        ("1.9.0", "1.10.0-rc1", Direction::Upgrade, ""),
        ("1.0.0", "1.0.0-beta", Direction::Downgrade, "downgrade"),
        ("nightly", "alpha", Direction::Downgrade, "downgrade"),
    ] {
        let (installed, offered) = (manifest_of(installed, "{}"), manifest_of(offered, "{}"));
        let difference = compare(Some(side(&installed, None)), side(&offered, None), true);
        assert_eq!((difference.direction, difference.needs.to_string().as_str()), (direction, needs));
    }
}

#[test]
fn the_signer_is_the_key_and_not_its_name() {
    let (old, new) = (manifest_of("1.0.0", "{}"), manifest_of("1.1.0", "{}"));
    let signed = |word, name: Option<&str>, key: Option<&str>| Signed {
        word,
        name: name.map(str::to_owned),
        key: key.map(str::to_owned),
    };
    let acme = || signed("trusted", Some("acme"), Some("K1"));
    for (before, after, change, text) in [
        (acme(), signed("trusted", Some("renamed"), Some("K1")), SignerChange::None, ""),
        (
            acme(),
            signed("trusted", Some("acme"), Some("K2")),
            SignerChange::Changed,
            "is signed by \"acme\" (key K2), the installed version by \"acme\" (key K1)",
        ),
        // Of before keys were noted: the name may be another key's by now.
        (
            signed("trusted", Some("acme"), None),
            acme(),
            SignerChange::Changed,
            "is signed by \"acme\" (key K1), the installed version by \"acme\" (its key is not on record)",
        ),
        (
            acme(),
            signed("unknown_key", None, Some("K2")),
            SignerChange::Dropped,
            "is signed by the key K2, which is not trusted for this plugin, the installed version by \"acme\" (key K1)",
        ),
        // A key that is no longer trusted, or no longer for this plugin.
        (
            acme(),
            signed("unknown_key", None, Some("K1")),
            SignerChange::Dropped,
            "is signed by the key K1, which is not trusted for this plugin, the installed version by \"acme\" (key K1)",
        ),
        (
            acme(),
            signed("absent", None, None),
            SignerChange::Dropped,
            "is signed by nobody, the installed version by \"acme\" (key K1)",
        ),
    ] {
        let (before, after) = (Side { manifest: &old, signed: before }, Side { manifest: &new, signed: after });
        let difference = compare(Some(before), after, true);
        assert_eq!((difference.signer_change, difference.to_string().as_str()), (change, text));
    }
}

#[test]
fn a_first_install_shows_everything_and_asks_for_nothing() {
    let offered = manifest_of("1.0.0", "{events: ['a.*'], secrets: true}");
    let difference = compare(None, side(&offered, Some("key")), true);
    assert_eq!(
        serde_json::to_value(&difference).unwrap(),
        json!({"installed": null, "offered": "1.0.0", "direction": "first", "widened": ["events:a.*", "secrets"],
            "narrowed": [], "signer_installed": null, "signer_key_installed": null, "signer_offered": "key",
            "signer_key_offered": "KEY", "signature_offered": "trusted", "signer_change": "added", "needs": []})
    );
}

#[test]
fn a_difference_is_bounded_and_cannot_steer_a_terminal() {
    let many = (0..60).map(|n| format!("'n{n:02}'")).collect::<Vec<_>>().join(", ");
    let long = format!("\"{}\\e[2J\"", "x".repeat(300));
    let offered = manifest_of("1.0.0", &format!("{{api_read: [{many}], api_write: [{long}]}}"));
    let difference = compare(None, side(&offered, None), true);
    assert_eq!(difference.widened.len(), MAX_WORDS + 1);
    assert_eq!(difference.widened[MAX_WORDS], "… and 11 more");
    let offered = manifest_of("1.0.0", &format!("{{api_write: [{long}]}}"));
    let word = &compare(None, side(&offered, None), true).widened[0];
    assert!(word.len() <= MAX_WORD_BYTES && !word.contains(char::is_control), "{word}");
}

#[test]
fn kinds_are_read_and_written_in_the_form_of_the_parameter() {
    let kinds = Kinds::parse(" downgrade, capabilities,,").unwrap();
    assert_eq!(kinds.to_string(), "capabilities,downgrade");
    assert!(kinds.holds(&Kinds::parse("downgrade").unwrap()) && !kinds.holds(&Kinds::parse("signer").unwrap()));
    assert!(Kinds::parse("").unwrap().is_empty());
    let error = Kinds::parse("everything\u{1b}").unwrap_err().to_string();
    assert!(error.contains("capabilities, signer, downgrade") && !error.contains('\u{1b}'), "{error}");
}

fn capabilities() -> impl Strategy<Value = Capabilities> {
    let patterns = proptest::collection::vec("[ab*](\\.[ab*]){0,2}(\\.>)?|>", 0..4);
    let words = || proptest::collection::vec("[a-d]", 0..3);
    (patterns, words(), words(), any::<[bool; 5]>()).prop_map(|(events, api_read, api_write, flags)| Capabilities {
        events,
        api_read,
        api_write,
        state: flags[0],
        secrets: flags[1],
        agent_invoke: flags[2],
        auth: flags[3],
        user_state: flags[4],
    })
}

proptest! {
    #[test]
    fn nothing_is_gained_without_being_named(old in capabilities(), new in capabilities(), subject in "[abc](\\.[abc]){0,4}") {
        let named = beyond(&new, &old);
        let hears = |of: &Capabilities| of.events.iter().any(|pattern| subject::matches(pattern, &subject));
        if hears(&new) && !hears(&old) {
            prop_assert!(named.iter().any(|word| word.starts_with("events:")));
        }
        for granted in new.granted().iter().filter(|granted| !old.granted().allows(*granted)) {
            prop_assert!(named.iter().any(|word| word == granted.name()), "{}", granted);
        }
    }

    #[test]
    fn what_asks_for_less_or_the_same_names_nothing(mut old in capabilities(), more in capabilities()) {
        let new = old.clone();
        old.events.extend(more.events);
        old.api_read.extend(more.api_read);
        old.api_write.extend(more.api_write);
        old.state |= more.state;
        old.secrets |= more.secrets;
        prop_assert_eq!(beyond(&new, &old), Vec::<String>::new());
    }

    #[test]
    fn a_mirrored_comparison_swaps_what_is_wider_and_narrower(old in capabilities(), new in capabilities()) {
        let of = |version: &str, capabilities| Manifest { version: version.to_owned(), capabilities, ..Manifest::default() };
        let (old, new) = (of("1.0.0", old), of("1.1.0", new));
        let there = compare(Some(side(&old, None)), side(&new, None), true);
        let back = compare(Some(side(&new, None)), side(&old, None), true);
        prop_assert_eq!((&there.widened, &there.narrowed), (&back.narrowed, &back.widened));
        prop_assert!(back.needs.holds(&Kinds::parse("downgrade").unwrap()));
    }
}
