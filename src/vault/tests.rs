//! The promises of the vault, each a function over a [`Db`], so that every database runs the same suite.

use std::path::PathBuf;

use sea_orm::EntityTrait;
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::{
    config::Limits,
    domain::shared_secret::{SecretFilter, SecretScope},
    store::{
        db::tests::{on_both_databases, sqlite, tamper},
        plugin_state::{Scope, StateStore},
    },
};

/// A folder with a key file, and vaults of one database opened with it.
struct World {
    db: Db,
    home: TempDir,
    limits: Limits,
}

impl World {
    fn new(db: Db) -> Self {
        let limits = Limits { secret_value_bytes: 100, plugin_secrets: 2, shared_secrets: 5, ..Limits::default() };
        Self { db, home: tempfile::tempdir().unwrap(), limits }
    }

    fn key_file(&self) -> PathBuf {
        self.home.path().join(FILE_NAME)
    }

    async fn open_with(&self, source: KeySource) -> Result<Vault, VaultOpenError> {
        Vault::open(self.db.clone(), source, &self.limits).await
    }

    async fn vault(&self) -> Vault {
        self.open_with(KeySource::File(self.key_file())).await.unwrap()
    }

    async fn given(&self, keys: &str) -> Result<Vault, VaultOpenError> {
        self.open_with(KeySource::Given { variable: "KANDEV_VAULT_KEY", keys: keys.to_owned().into() }).await
    }

    fn keys_on_disk(&self) -> KeyRing {
        KeyRing::parse(&std::fs::read_to_string(self.key_file()).unwrap()).unwrap()
    }

    async fn sql(&self, statement: &str) {
        tamper(&self.db, statement).await;
    }

    /// Every row, to show that nothing was changed.
    async fn rows(&self) -> Vec<(String, String, Vec<u8>)> {
        let mut ids = Vec::new();
        for row in vault_entry::Entity::find().all(self.db.reader()).await.unwrap() {
            ids.push((row.id, row.key_id, row.ciphertext));
        }
        ids.sort();
        ids
    }
}

fn plugin(id: &str) -> PluginId {
    PluginId::new(id).unwrap()
}

fn config(field: &str) -> VaultId {
    VaultId::config(&plugin("acme"), field)
}

fn own(id: &str, key: &str) -> VaultId {
    VaultId::own(&plugin(id), key).unwrap()
}

fn secret(text: &str) -> SecretString {
    text.to_owned().into()
}

fn shown(value: Option<SecretString>) -> Option<String> {
    value.map(|value| value.expose_secret().to_owned())
}

async fn value(vault: &Vault, id: &VaultId) -> Option<String> {
    shown(vault.get(id).await.unwrap())
}

fn new_shared(name: &str, scope: SecretScope) -> NewSecret {
    NewSecret { name: name.to_owned(), scope, value: secret("hunter2") }
}

async fn a_secret_is_kept_replaced_and_deleted_and_a_missing_one_is_none(db: Db) {
    let vault = World::new(db).vault().await;
    assert_eq!(value(&vault, &own("acme", "k")).await, None);
    vault.delete(&own("acme", "k")).await.unwrap();
    for text in ["one", "", "two \u{0} \u{1F600}\n"] {
        vault.set(&own("acme", "k"), secret(text)).await.unwrap();
        assert_eq!(value(&vault, &own("acme", "k")).await.as_deref(), Some(text));
    }
    assert_eq!(value(&vault, &own("acme", "K")).await, None);
    assert_eq!(value(&vault, &VaultId::config(&plugin("acme"), "k")).await, None);
    vault.delete(&own("acme", "k")).await.unwrap();
    assert_eq!(value(&vault, &own("acme", "k")).await, None);
}

async fn several_are_read_in_the_order_asked_for(db: Db) {
    let vault = World::new(db).vault().await;
    let ids: Vec<VaultId> = (0..40).map(|n| config(&format!("field {n}"))).collect();
    let changes = ids.iter().step_by(2).map(|id| (id.clone(), Some(secret(id.as_str())))).collect();
    vault.apply(changes).await.unwrap();
    let mut asked: Vec<VaultId> = ids.into_iter().rev().collect();
    asked.push(config("a\0b"));
    asked.push(asked[1].clone());
    let found: Vec<_> = vault.get_many(&asked).await.unwrap().into_iter().map(shown).collect();
    let expected: Vec<_> = (0..40)
        .rev()
        .map(|n| (n % 2 == 0).then(|| format!("plugin:acme:config:field {n}")))
        .chain([None, Some("plugin:acme:config:field 38".to_owned())])
        .collect();
    assert_eq!(found, expected);
    assert_eq!(vault.get_many(&[]).await.unwrap().len(), 0);
}

async fn several_changes_are_done_together_or_not_at_all(db: Db) {
    let vault = World::new(db).vault().await;
    vault.set(&config("a"), secret("before")).await.unwrap();
    let too_many = vec![
        (config("a"), None),
        (config("b"), Some(secret("b"))),
        (own("acme", "1"), Some(secret("1"))),
        (own("acme", "2"), Some(secret("2"))),
        (own("acme", "3"), Some(secret("3"))),
    ];
    assert_eq!(vault.apply(too_many).await, Err(VaultError::TooMany { limit: 2 }));
    let too_large = vec![(config("a"), None), (config("b"), Some(secret(&"x".repeat(101))))];
    assert_eq!(vault.apply(too_large).await, Err(VaultError::TooLarge { size: 101, limit: 100 }));
    let no_id = vec![(config("a"), None), (config("a\0b"), Some(secret("b")))];
    assert_eq!(vault.apply(no_id).await, Err(VaultError::Id));
    assert_eq!(value(&vault, &config("a")).await.as_deref(), Some("before"));
    assert_eq!(value(&vault, &config("b")).await, None);
    assert_eq!(value(&vault, &own("acme", "1")).await, None);
    vault.apply(vec![(config("a"), None), (config("b"), Some(secret("b"))), (config("a\0b"), None)]).await.unwrap();
    assert_eq!(value(&vault, &config("a")).await, None);
    assert_eq!(value(&vault, &config("b")).await.as_deref(), Some("b"));
}

async fn a_plugin_has_its_own_room_and_may_replace_when_it_is_full(db: Db) {
    let vault = World::new(db).vault().await;
    for key in ["1", "2"] {
        vault.set(&own("acme", key), secret(key)).await.unwrap();
    }
    assert_eq!(vault.set(&own("acme", "3"), secret("3")).await, Err(VaultError::TooMany { limit: 2 }));
    vault.set(&own("acme", "2"), secret("two")).await.unwrap();
    vault.set(&own("other", "1"), secret("1")).await.unwrap();
    vault.set(&config("field"), secret("f")).await.unwrap();
    vault.delete(&own("acme", "1")).await.unwrap();
    vault.set(&own("acme", "3"), secret("3")).await.unwrap();
}

async fn a_namespace_goes_whole_and_no_other_with_it(db: Db) {
    let vault = World::new(db).vault().await;
    let others = ["acme-2", "acme_", "acm", "a_me"];
    let shared = vault.create_shared(new_shared("s", SecretScope::Global)).await.unwrap().id;
    for id in others.iter().chain(&["acme"]) {
        vault.set(&own(id, "k"), secret("k")).await.unwrap();
        vault.set(&VaultId::config(&plugin(id), "f"), secret("f")).await.unwrap();
        vault.share(shared, &plugin(id)).await.unwrap();
    }
    for _ in 0..2 {
        vault.delete_plugin(&plugin("acme")).await.unwrap();
    }
    assert_eq!(value(&vault, &own("acme", "k")).await, None);
    assert_eq!(value(&vault, &config("f")).await, None);
    let reference = shared.to_string();
    assert_eq!(shown(vault.reveal(&plugin("acme"), &reference).await.unwrap()), None);
    for id in others {
        assert_eq!(value(&vault, &own(id, "k")).await.as_deref(), Some("k"), "{id}");
        assert_eq!(value(&vault, &VaultId::config(&plugin(id), "f")).await.as_deref(), Some("f"), "{id}");
        assert!(vault.reveal(&plugin(id), &reference).await.unwrap().is_some(), "{id}");
    }
}

/// Field case 58.
async fn a_plugin_goes_with_its_state_or_not_at_all_and_nothing_comes_after(db: Db) {
    let world = World::new(db.clone());
    let (acme, tenancy) = (plugin("acme"), Tenancy::default());
    let vault = world.vault().await.under(&tenancy);
    let state = StateStore::new(db, &world.limits).under(&tenancy);
    let here = Scope { name: "s".to_owned(), id: String::new() };
    let now = OffsetDateTime::UNIX_EPOCH;
    vault.set(&own("acme", "k"), secret("kept")).await.unwrap();
    state.set(&acme, &here, "k", &serde_json::json!({}), now).await.unwrap();
    world.sql("ALTER TABLE plugin_state RENAME TO elsewhere").await;
    assert!(matches!(vault.delete_plugin(&acme).await, Err(VaultError::Database(_))));
    world.sql("ALTER TABLE elsewhere RENAME TO plugin_state").await;
    assert_eq!(value(&vault, &own("acme", "k")).await.as_deref(), Some("kept"), "the whole is undone");
    assert!(state.get(&acme, &here, "k").await.unwrap().is_some());
    tenancy.end();
    vault.delete_plugin(&acme).await.unwrap();
    assert_eq!(vault.set(&own("acme", "k"), secret("late")).await, Err(VaultError::Uninstalled));
    assert_eq!(value(&vault, &own("acme", "k")).await, None);
    assert_eq!(state.get(&acme, &here, "k").await.unwrap(), None);
    world.vault().await.under(&Tenancy::default()).set(&own("acme", "k"), secret("new")).await.unwrap();
}

async fn a_row_that_was_changed_or_moved_is_an_error_and_never_none(db: Db) {
    let world = World::new(db);
    let vault = world.vault().await;
    for field in ["a", "b", "c"] {
        vault.set(&config(field), secret(field)).await.unwrap();
    }
    let damaged = |id: &VaultId| VaultError::Damaged { id: id.as_str().to_owned() };
    world
        .sql(
            "UPDATE vault_entry SET ciphertext = (SELECT ciphertext FROM vault_entry WHERE id = 'plugin:acme:config:b'), \
             nonce = (SELECT nonce FROM vault_entry WHERE id = 'plugin:acme:config:b') \
             WHERE id = 'plugin:acme:config:a'",
        )
        .await;
    assert_eq!(vault.get(&config("a")).await.map(shown), Err(damaged(&config("a"))));
    let all = [config("c"), config("b"), config("a")];
    assert_eq!(vault.get_many(&all).await.map(drop), Err(damaged(&config("a"))));
    assert_eq!(value(&vault, &config("b")).await.as_deref(), Some("b"));
    world.sql("UPDATE vault_entry SET key_id = 'ffffffffffffffff' WHERE id = 'plugin:acme:config:b'").await;
    let foreign = VaultError::ForeignKey { id: config("b").as_str().to_owned(), key_id: "f".repeat(16) };
    assert_eq!(vault.get(&config("b")).await.map(shown), Err(foreign));
    vault.set(&config("a"), secret("again")).await.unwrap();
    assert_eq!(value(&vault, &config("a")).await.as_deref(), Some("again"));
}

async fn a_wrong_or_missing_key_ends_the_opening_and_touches_nothing(db: Db) {
    let world = World::new(db);
    let vault = world.vault().await;
    let key = world.keys_on_disk();
    let wanted = key.current().id().to_owned();
    vault.set(&config("a"), secret("a")).await.unwrap();
    let before = world.rows().await;

    std::fs::remove_file(world.key_file()).unwrap();
    let missing = world.open_with(KeySource::File(world.key_file())).await.map(drop).unwrap_err().to_string();
    let path = world.key_file();
    let expected = format!(
        "the vault holds 1 entries that are sealed with the key {wanted}, and {} is missing: put your backup of the file back, or give the key by \
         KANDEV_VAULT_KEY_FILE",
        path.display()
    );
    assert_eq!(missing, expected);
    let early = Vault::refuse_foreign_key(&world.db, &KeySource::File(world.key_file())).await.unwrap_err();
    assert_eq!(early.to_string(), expected);
    assert_eq!(std::fs::read_dir(world.home.path()).unwrap().count(), 0, "no key was made");

    let other = Key::random().unwrap();
    let other_id = other.id().to_owned();
    let wrong = world.given(&KeyRing::of(other).text()).await.map(drop).unwrap_err().to_string();
    let expected = format!(
        "the vault holds 1 entries that are sealed with the key {wanted}, and KANDEV_VAULT_KEY has {other_id}: use the \
         key that this database was last used with"
    );
    assert_eq!(wrong, expected);
    assert_eq!(world.rows().await, before);

    world.given(&key.text()).await.unwrap();
    world.sql("DELETE FROM vault_entry WHERE id = 'host:key-check'").await;
    let damaged = world.given(&key.text()).await.map(drop).unwrap_err();
    assert!(matches!(damaged, VaultOpenError::Damaged { entries: 1 }), "{damaged}");
}

async fn a_database_without_a_vault_yet_has_no_key_to_prove(db: Db) {
    let world = World::new(db);
    world.sql("ALTER TABLE vault_entry RENAME TO elsewhere").await;
    Vault::refuse_foreign_key(&world.db, &KeySource::File(world.key_file())).await.unwrap();
}

async fn an_empty_vault_takes_any_key(db: Db) {
    let world = World::new(db);
    world.vault().await;
    let first = world.keys_on_disk().ids();
    std::fs::remove_file(world.key_file()).unwrap();
    let vault = world.vault().await;
    assert_ne!(world.keys_on_disk().ids(), first);
    vault.set(&config("a"), secret("a")).await.unwrap();
    assert_eq!(value(&world.vault().await, &config("a")).await.as_deref(), Some("a"));
}

async fn a_rotation_keeps_every_secret_and_the_old_key_opens_none(db: Db) {
    let world = World::new(db);
    let vault = world.vault().await;
    let old = world.keys_on_disk();
    let ids: Vec<VaultId> = (0..230).map(|n| config(&n.to_string())).collect();
    vault.apply(ids.iter().map(|id| (id.clone(), Some(secret(id.as_str())))).collect()).await.unwrap();
    let shared = vault.create_shared(new_shared("s", SecretScope::Global)).await.unwrap();
    let Rotation { key_id, resealed } = vault.rotate(None).await.unwrap();
    assert_eq!(resealed, 231);
    assert_eq!(world.keys_on_disk().ids(), key_id);
    let status = vault.status().await.unwrap();
    let secrets = vec![(SecretKind::Config, 230), (SecretKind::Own, 0), (SecretKind::Shared, 1)];
    let key_from = world.key_file().display().to_string();
    assert_eq!(status, VaultStatus { key_from, key_id: key_id.clone(), secrets, pending: 0 });
    assert_eq!(vault.shared(shared.id).await.unwrap(), shared, "a rotation is no change of the secret");
    let again = Key::random().unwrap();
    let again_id = again.id().to_owned();
    let given = KeyRing::of(again).text();
    assert_eq!(vault.rotate(Some(secret(&given))).await.unwrap().key_id, again_id);
    assert!(matches!(vault.rotate(Some(secret(&given))).await, Err(RotateError::Same)));
    assert!(matches!(vault.rotate(Some(secret("hunter2"))).await, Err(RotateError::Text(KeyTextError::Form))));
    for vault in [vault, world.vault().await] {
        let found: Vec<_> = vault.get_many(&ids).await.unwrap().into_iter().map(shown).collect();
        assert!(found.iter().zip(&ids).all(|(value, id)| value.as_deref() == Some(id.as_str())));
    }
    let wrong = world.given(&old.text()).await.map(drop).unwrap_err();
    assert!(matches!(wrong, VaultOpenError::Wrong { entries: 231, .. }), "{wrong}");
}

async fn an_unfinished_rotation_is_finished_before_one_to_another_key(db: Db) {
    let world = World::new(db);
    let vault = world.vault().await;
    vault.set(&config("a"), secret("a")).await.unwrap();
    vault.set(&config("b"), secret("b")).await.unwrap();
    world.sql("UPDATE vault_entry SET nonce = ciphertext WHERE id = 'plugin:acme:config:b'").await;
    let begun = KeyRing::of(Key::random().unwrap());
    assert!(vault.rotate(Some(secret(&begun.text()))).await.is_err());
    vault.set(&config("b"), secret("again")).await.unwrap();
    let again = vault.rotate(Some(secret(&begun.text()))).await.unwrap();
    assert_eq!(again.key_id, begun.ids(), "the same key once more is the same rotation");
    let other = KeyRing::of(Key::random().unwrap());
    assert_eq!(vault.rotate(Some(secret(&other.text()))).await.unwrap().key_id, other.ids());
    assert_eq!(world.keys_on_disk().ids(), other.ids());
}

async fn a_configs_revision_is_no_secret_that_is_counted(db: Db) {
    let world = World::new(db);
    let vault = world.vault().await;
    let changes = [config("a"), config("x:config:"), VaultId::revision(&plugin("acme"))];
    vault.apply(changes.map(|id| (id, Some(secret("s")))).into()).await.unwrap();
    assert_eq!(vault.status().await.unwrap().secrets[0], (SecretKind::Config, 2));
    assert_eq!(vault.rotate(None).await.unwrap().resealed, 2);
    assert_eq!(value(&vault, &VaultId::revision(&plugin("acme"))).await.as_deref(), Some("s"));
}

async fn readers_and_writers_go_on_while_the_key_changes(db: Db) {
    let world = World::new(db);
    let vault = world.vault().await;
    let ids: Vec<VaultId> = (0..150).map(|n| config(&n.to_string())).collect();
    vault.apply(ids.iter().map(|id| (id.clone(), Some(secret("before")))).collect()).await.unwrap();
    let busy = |first: usize| {
        let (vault, ids) = (vault.clone(), ids.clone());
        tokio::spawn(async move {
            for id in ids.iter().skip(first).step_by(2) {
                vault.set(id, secret("after")).await.unwrap();
                assert!(vault.get_many(&ids).await.unwrap().iter().all(Option::is_some));
            }
        })
    };
    let others = [busy(0), busy(1)];
    for _ in 0..3 {
        vault.rotate(None).await.unwrap();
    }
    for other in others {
        other.await.unwrap();
    }
    assert_eq!(vault.status().await.unwrap().pending, 0);
    let found = world.vault().await.get_many(&ids).await.unwrap();
    assert!(found.into_iter().all(|value| shown(value).as_deref() == Some("after")));
}

async fn an_interrupted_rotation_is_finished_at_the_next_opening(db: Db) {
    let world = World::new(db);
    let vault = world.vault().await;
    let ids: Vec<VaultId> = (0..120).map(|n| config(&n.to_string())).collect();
    vault.apply(ids.iter().map(|id| (id.clone(), Some(secret("kept")))).collect()).await.unwrap();
    // As a crash leaves it: after the file, then after a part of the rows.
    for batches in [0, 1] {
        let key = Arc::new(Key::random().unwrap());
        let ring = world.keys_on_disk().led_by(key.clone());
        source::write(&world.key_file(), &ring).unwrap();
        let crashed = Vault::prove(world.db.clone(), KeySource::File(world.key_file()), &world.limits).await.unwrap().0;
        for _ in 0..batches {
            crashed.reseal_batch(&key).await.unwrap();
        }
        let vault = world.vault().await;
        assert_eq!(world.keys_on_disk().ids(), key.id());
        assert_eq!(vault.status().await.unwrap().pending, 0);
        assert!(vault.get_many(&ids).await.unwrap().iter().all(Option::is_some));
    }
}

async fn a_key_in_a_variable_is_changed_by_putting_the_new_one_first(db: Db) {
    let world = World::new(db);
    let (old, new) = (KeyRing::of(Key::random().unwrap()).text(), KeyRing::of(Key::random().unwrap()).text());
    let vault = world.given(&old).await.unwrap();
    vault.set(&config("a"), secret("a")).await.unwrap();
    assert_eq!(
        vault.rotate(None).await.unwrap_err().to_string(),
        "the vault's key comes from KANDEV_VAULT_KEY: put the new key before the old one in it, separated by a comma or \
         a line break, restart the host, and take the old key out when `kandev-host vault status` shows nothing pending"
    );
    let vault = world.given(&format!("{},{}", new.trim(), old.trim())).await.unwrap();
    assert_eq!(vault.status().await.unwrap().pending, 0);
    let vault = world.given(&new).await.unwrap();
    assert_eq!(value(&vault, &config("a")).await.as_deref(), Some("a"));
    assert!(matches!(world.given(&old).await.map(drop), Err(VaultOpenError::Wrong { .. })));
}

async fn a_damaged_entry_keeps_both_keys_until_it_is_gone(db: Db) {
    let world = World::new(db);
    let vault = world.vault().await;
    vault.set(&config("a"), secret("a")).await.unwrap();
    vault.set(&config("b"), secret("b")).await.unwrap();
    world.sql("UPDATE vault_entry SET nonce = ciphertext WHERE id = 'plugin:acme:config:b'").await;
    let error = vault.rotate(None).await.unwrap_err();
    assert!(matches!(&error, RotateError::Unfinished(VaultError::Damaged { id }) if id == config("b").as_str()));
    assert_eq!(world.keys_on_disk().count(), 2);
    let both = world.keys_on_disk().ids();
    for _ in 0..3 {
        assert!(matches!(vault.rotate(None).await, Err(RotateError::Unfinished(_))));
        let other = KeyRing::of(Key::random().unwrap()).text();
        assert!(matches!(vault.rotate(Some(secret(&other))).await, Err(RotateError::Unfinished(_))));
        assert_eq!(world.keys_on_disk().ids(), both, "no further key comes into the file");
    }
    let vault = world.vault().await;
    assert_eq!(value(&vault, &config("a")).await.as_deref(), Some("a"));
    vault.delete(&config("b")).await.unwrap();
    let finished = vault.rotate(None).await.unwrap();
    assert_eq!(world.keys_on_disk().ids(), finished.key_id, "the rotation that was begun is finished");
    assert!(both.starts_with(&finished.key_id));
    assert_eq!(value(&world.vault().await, &config("a")).await.as_deref(), Some("a"));
}

async fn a_key_file_that_was_changed_is_not_overwritten(db: Db) {
    let world = World::new(db);
    let vault = world.vault().await;
    source::write(&world.key_file(), &KeyRing::of(Key::random().unwrap())).unwrap();
    let before = world.keys_on_disk().ids();
    assert!(matches!(vault.rotate(None).await, Err(RotateError::Changed)));
    assert_eq!(world.keys_on_disk().ids(), before);
    std::fs::remove_file(world.key_file()).unwrap();
    assert!(matches!(vault.rotate(None).await, Err(RotateError::Changed)));
    assert!(!world.key_file().exists());
}

async fn a_shared_secret_is_told_of_and_revealed_to_its_plugins_only(db: Db) {
    let vault = World::new(db).vault().await;
    let made = vault.create_shared(new_shared("token", SecretScope::Global)).await.unwrap();
    assert_eq!((made.name.as_str(), made.has_value, made.plugins.len()), ("token", true, 0));
    let reference = made.id.to_string();
    assert!(vault.reveal(&plugin("acme"), &reference).await.unwrap().is_none());
    for id in ["zeta", "acme", "acme"] {
        vault.share(made.id, &plugin(id)).await.unwrap();
    }
    let told = vault.shared(made.id).await.unwrap();
    assert_eq!(told.plugins, [plugin("acme"), plugin("zeta")]);
    assert_eq!(told.updated_at, made.updated_at);
    assert_eq!(shown(vault.reveal(&plugin("acme"), &reference).await.unwrap()).as_deref(), Some("hunter2"));
    assert!(vault.reveal(&plugin("other"), &reference).await.unwrap().is_none());
    for reference in [reference.to_uppercase(), format!("vault:{reference}"), "plugin:acme:secret:k".to_owned()] {
        vault.set(&own("acme", "k"), secret("k")).await.unwrap();
        assert!(vault.reveal(&plugin("acme"), &reference).await.unwrap().is_none(), "{reference}");
    }
    let change = SecretChange { value: Some(secret("")), name: Some("renamed".to_owned()), scope: None };
    let changed = vault.change_shared(made.id, change).await.unwrap();
    assert_eq!((changed.name.as_str(), changed.has_value), ("renamed", false));
    assert_eq!(shown(vault.reveal(&plugin("acme"), &reference).await.unwrap()).as_deref(), Some(""));
    vault.unshare(made.id, &plugin("acme")).await.unwrap();
    vault.unshare(made.id, &plugin("acme")).await.unwrap();
    assert!(vault.reveal(&plugin("acme"), &reference).await.unwrap().is_none());
    vault.delete_shared(made.id).await.unwrap();
    assert!(vault.reveal(&plugin("zeta"), &reference).await.unwrap().is_none());
    assert_eq!(vault.delete_shared(made.id).await, Err(SharedError::NotFound));
    assert_eq!(vault.share(made.id, &plugin("acme")).await, Err(SharedError::NotFound));
    assert_eq!(vault.unshare(made.id, &plugin("acme")).await, Err(SharedError::NotFound));
    assert_eq!(vault.shared(Uuid::nil()).await, Err(SharedError::NotFound));
}

async fn shared_secrets_are_listed_by_scope_and_bounded(db: Db) {
    let vault = World::new(db).vault().await;
    let in_workspace = |id: &str| SecretScope::Workspace(id.to_owned());
    for (name, scope) in
        [("b", SecretScope::Global), ("a", in_workspace("w1")), ("c", in_workspace("w2")), ("B", SecretScope::Global)]
    {
        vault.create_shared(new_shared(name, scope)).await.unwrap();
    }
    vault.set(&own("acme", "k"), secret("not listed")).await.unwrap();
    let of = |id: &str, include_global| SecretFilter::Workspace { id: id.to_owned(), include_global };
    for (filter, names) in [
        (SecretFilter::All, "Babc"),
        (SecretFilter::Global, "Bb"),
        (SecretFilter::AnyWorkspace, "ac"),
        (of("w1", false), "a"),
        (of("w1", true), "Bab"),
        (of("w3", false), ""),
    ] {
        let listed: String = vault.list_shared(&filter).await.unwrap().into_iter().map(|secret| secret.name).collect();
        assert_eq!(listed, names, "{filter:?}");
    }
    let moved = vault.list_shared(&of("w1", false)).await.unwrap()[0].id;
    let change = SecretChange { scope: Some(SecretScope::Global), ..SecretChange::default() };
    assert_eq!(vault.change_shared(moved, change).await.unwrap().scope, SecretScope::Global);
    vault.create_shared(new_shared("fifth", SecretScope::Global)).await.unwrap();
    let sixth = vault.create_shared(new_shared("sixth", SecretScope::Global)).await;
    assert_eq!(sixth, Err(VaultError::TooMany { limit: 5 }.into()));
}

on_both_databases!(
    a_secret_is_kept_replaced_and_deleted_and_a_missing_one_is_none,
    several_are_read_in_the_order_asked_for,
    several_changes_are_done_together_or_not_at_all,
    a_plugin_has_its_own_room_and_may_replace_when_it_is_full,
    a_namespace_goes_whole_and_no_other_with_it,
    a_plugin_goes_with_its_state_or_not_at_all_and_nothing_comes_after,
    a_row_that_was_changed_or_moved_is_an_error_and_never_none,
    a_wrong_or_missing_key_ends_the_opening_and_touches_nothing,
    a_database_without_a_vault_yet_has_no_key_to_prove,
    an_empty_vault_takes_any_key,
    a_rotation_keeps_every_secret_and_the_old_key_opens_none,
    an_unfinished_rotation_is_finished_before_one_to_another_key,
    a_configs_revision_is_no_secret_that_is_counted,
    readers_and_writers_go_on_while_the_key_changes,
    an_interrupted_rotation_is_finished_at_the_next_opening,
    a_key_in_a_variable_is_changed_by_putting_the_new_one_first,
    a_damaged_entry_keeps_both_keys_until_it_is_gone,
    a_key_file_that_was_changed_is_not_overwritten,
    a_shared_secret_is_told_of_and_revealed_to_its_plugins_only,
    shared_secrets_are_listed_by_scope_and_bounded,
);

#[tokio::test]
async fn a_database_that_is_gone_is_an_error_and_never_none() {
    let (_folder, db) = sqlite().await;
    let vault = World::new(db.clone()).vault().await;
    db.close().await.unwrap();
    assert!(matches!(vault.get(&config("a")).await.map(drop), Err(VaultError::Database(_))));
    assert!(matches!(vault.set(&config("a"), secret("a")).await, Err(VaultError::Database(_))));
    let reference = Uuid::nil().to_string();
    assert!(matches!(vault.reveal(&plugin("acme"), &reference).await.map(drop), Err(VaultError::Database(_))));
}
