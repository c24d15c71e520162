//! GetSecret, SetSecret, DeleteSecret, RevealSecret, and the secrets of GetConfig, on both databases (host-data.md §7).

use secrecy::SecretString;

use super::*;
use crate::{
    domain::{secret::VaultId, shared_secret::SecretScope},
    store::db::tests::on_both_databases,
    vault::NewSecret,
};

fn acme() -> PluginId {
    PluginId::new("acme").unwrap()
}

fn secret(text: &str) -> SecretString {
    text.to_owned().into()
}

impl World {
    async fn trusted(&self) -> HostClient<Channel> {
        HostClient::new(self.channel([Capability::Secrets]).await)
    }

    async fn damage(&self, id: &VaultId) {
        db::tests::tamper(&self.db, &format!("UPDATE vault_entry SET nonce = ciphertext WHERE id = '{id}'")).await;
    }

    fn write_config(&self, text: &str) {
        std::fs::write(self.folder.path().join("acme.config.yml"), text).unwrap();
    }
}

fn key(key: &str) -> String {
    key.to_owned()
}

async fn get(client: &mut HostClient<Channel>, name: &str) -> Result<GetSecretResponse, Status> {
    client.get_secret(GetSecretRequest { key: key(name) }).await.map(Response::into_inner)
}

async fn a_plugins_own_secrets_are_kept_under_its_id_and_deleted(db: db::Db) {
    let world = world_of(db).await;
    let mut client = world.trusted().await;
    let missing = GetSecretResponse { found: false, value: String::new() };
    assert_eq!(get(&mut client, "token").await.unwrap(), missing);
    for value in ["hunter2", ""] {
        client.set_secret(SetSecretRequest { key: key("token"), value: value.to_owned() }).await.unwrap();
        let found = GetSecretResponse { found: true, value: value.to_owned() };
        assert_eq!(get(&mut client, "token").await.unwrap(), found);
    }
    assert!(world.vault.get(&VaultId::own(&acme(), "token").unwrap()).await.unwrap().is_some());
    for _ in 0..2 {
        client.delete_secret(DeleteSecretRequest { key: key("token") }).await.unwrap();
    }
    assert_eq!(get(&mut client, "token").await.unwrap(), missing);
}

async fn malformed_keys_and_large_values_are_refused_with_their_text(db: db::Db) {
    let limits = Limits { secret_value_bytes: 5, plugin_secrets: 1, ..Limits::default() };
    let world = world_with(db, limits).await;
    let mut client = world.trusted().await;
    for (name, shown) in [("", "\"\""), ("../x", "\"../x\""), ("a:b", "\"a:b\""), ("a\n", "\"a\\n\"")] {
        let refused = get(&mut client, name).await.unwrap_err();
        let message = format!("invalid secret key {shown}");
        assert_eq!((refused.code(), refused.message()), (Code::InvalidArgument, message.as_str()));
        let set = client.set_secret(SetSecretRequest { key: key(name), value: String::new() }).await.unwrap_err();
        assert_eq!(set.code(), Code::InvalidArgument);
        let deleted = client.delete_secret(DeleteSecretRequest { key: key(name) }).await.unwrap_err();
        assert_eq!(deleted.code(), Code::InvalidArgument);
    }
    let large = client.set_secret(SetSecretRequest { key: key("k"), value: "hunter".to_owned() }).await.unwrap_err();
    let message = "the secret has 6 bytes, at most 5 are allowed";
    assert_eq!((large.code(), large.message()), (Code::ResourceExhausted, message));
    client.set_secret(SetSecretRequest { key: key("k"), value: String::new() }).await.unwrap();
    let full = client.set_secret(SetSecretRequest { key: key("l"), value: String::new() }).await.unwrap_err();
    let message = "there are 1 secrets already, which is the limit; delete what is not needed";
    assert_eq!((full.code(), full.message()), (Code::ResourceExhausted, message));
}

/// Field case 58.
async fn a_secret_that_cannot_be_had_is_an_error_and_not_missing(db: db::Db) {
    let world = world_of(db).await;
    let mut client = world.trusted().await;
    client.set_secret(SetSecretRequest { key: key("k"), value: "hunter2".to_owned() }).await.unwrap();
    world.damage(&VaultId::own(&acme(), "k").unwrap()).await;
    let broken = get(&mut client, "k").await.unwrap_err();
    let message = "the secret cannot be decrypted, the host's log has the reason";
    assert_eq!((broken.code(), broken.message()), (Code::DataLoss, message));
}

async fn only_what_the_operator_shared_with_this_plugin_is_revealed(db: db::Db) {
    let world = world_of(db).await;
    let mut client = world.trusted().await;
    let new = NewSecret { name: "n".to_owned(), scope: SecretScope::Global, value: secret("hunter2") };
    let id = world.vault.create_shared(new).await.unwrap().id;
    world.vault.share(id, &PluginId::new("other").unwrap()).await.unwrap();
    world.vault.set(&VaultId::own(&acme(), "k").unwrap(), secret("k")).await.unwrap();
    world.vault.set(&VaultId::own(&PluginId::new("other").unwrap(), "k").unwrap(), secret("k")).await.unwrap();
    let unknown = [
        id.to_string(),
        "plugin:other:secret:k".to_owned(),
        "PLUGIN:other:secret:k".to_owned(),
        "plugin:acme:secret:k".to_owned(),
        "plugin%3Aacme%3Asecret%3Ak".to_owned(),
        "host:key-check".to_owned(),
        String::new(),
    ];
    for r#ref in unknown {
        let message = format!("secret not found: {}", r#ref);
        let refused = client.reveal_secret(RevealSecretRequest { r#ref }).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::NotFound, message.as_str()));
    }
    world.vault.share(id, &acme()).await.unwrap();
    let request = || RevealSecretRequest { r#ref: id.to_string() };
    let revealed = client.reveal_secret(request()).await.unwrap().into_inner();
    assert_eq!(revealed, RevealSecretResponse { value: "hunter2".to_owned() });
    world.vault.unshare(id, &acme()).await.unwrap();
    assert_eq!(client.reveal_secret(request()).await.unwrap_err().code(), Code::NotFound);
}

async fn config_has_its_secrets_in_clear_and_takes_no_other_text_for_a_marker(db: db::Db) {
    let world = world_of(db).await;
    let mut client = world.client().await;
    world.vault.set(&VaultId::config(&acme(), "token"), secret("hunter2")).await.unwrap();
    world.vault.set(&VaultId::config(&acme(), "other"), secret("not this")).await.unwrap();
    world.write_config(
        "token: vault:plugin:acme:config:token\nurl: vault:plugin:acme:config:other\n\
         foreign: vault:plugin:else:config:foreign\nempty: ''\nlist: [vault:plugin:acme:config:list]\n",
    );
    let config = client.get_config(GetConfigRequest {}).await.unwrap().into_inner().config;
    let expected = json!({"token": "hunter2", "url": "vault:plugin:acme:config:other",
                          "foreign": "vault:plugin:else:config:foreign", "empty": "",
                          "list": ["vault:plugin:acme:config:list"]});
    assert_eq!(config, object(expected));
}

async fn one_secret_of_the_config_that_cannot_be_had_fails_the_call(db: db::Db) {
    let world = world_of(db).await;
    let mut client = world.client().await;
    let (good, bad) = (VaultId::config(&acme(), "good"), VaultId::config(&acme(), "bad"));
    world.vault.set(&good, secret("hunter2")).await.unwrap();
    world.write_config(&format!("good: {}\nbad: {}\n", good.marker(), bad.marker()));
    let missing = client.get_config(GetConfigRequest {}).await.unwrap_err();
    let message =
        "plugins: resolve secret config field \"bad\": secret not found; the operator must set the field again";
    assert_eq!((missing.code(), missing.message()), (Code::FailedPrecondition, message));
    world.vault.set(&bad, secret("x")).await.unwrap();
    world.damage(&bad).await;
    let broken = client.get_config(GetConfigRequest {}).await.unwrap_err();
    let message =
        "plugins: resolve secret config field \"bad\": the secret cannot be decrypted, the host's log has the reason";
    assert_eq!((broken.code(), broken.message()), (Code::DataLoss, message));
}

/// As after an upgrade to a version that declares the field a secret.
async fn a_secret_that_is_still_in_the_file_in_clear_is_known_too(db: db::Db) {
    let world = world_of(db).await;
    world.write_config("token: in-clear\nurl: no-secret\n");
    let granted = Granted { secret_fields: ["token".to_owned()].into(), ..Granted::default() };
    let pipe = serve(world.services.routes(&acme(), &granted, &world.tenancy)).0;
    let mut client = HostClient::new(channel(pipe, "http://localhost").await);
    client.get_config(GetConfigRequest {}).await.unwrap();
    assert_eq!(world.tenancy.secrets().redact("in-clear no-secret"), "[REDACTED] no-secret");
}

async fn whatever_passes_between_a_plugin_and_the_vault_is_known_from_then_on(db: db::Db) {
    let world = world_of(db).await;
    let mut client = world.trusted().await;
    let new = NewSecret { name: "n".to_owned(), scope: SecretScope::Global, value: secret("revealed") };
    let shared = world.vault.create_shared(new).await.unwrap().id;
    world.vault.share(shared, &acme()).await.unwrap();
    world.vault.set(&VaultId::own(&acme(), "old").unwrap(), secret("of-before")).await.unwrap();
    world.vault.set(&VaultId::config(&acme(), "f"), secret("configured")).await.unwrap();
    world.write_config("f: vault:plugin:acme:config:f\nplain: not-secret\n");
    let text = "revealed of-before configured set-now not-secret refused-one";
    assert_eq!(world.tenancy.secrets().redact(text), text, "nothing passed yet");
    client.get_config(GetConfigRequest {}).await.unwrap();
    get(&mut client, "old").await.unwrap();
    client.reveal_secret(RevealSecretRequest { r#ref: shared.to_string() }).await.unwrap();
    client.set_secret(SetSecretRequest { key: key("new"), value: "set-now".to_owned() }).await.unwrap();
    client.set_secret(SetSecretRequest { key: key("-"), value: "refused-one".to_owned() }).await.unwrap_err();
    let shown = "[REDACTED] [REDACTED] [REDACTED] [REDACTED] not-secret [REDACTED]";
    assert_eq!(world.tenancy.secrets().redact(text), shown);
}

on_both_databases!(
    a_plugins_own_secrets_are_kept_under_its_id_and_deleted,
    malformed_keys_and_large_values_are_refused_with_their_text,
    a_secret_that_cannot_be_had_is_an_error_and_not_missing,
    only_what_the_operator_shared_with_this_plugin_is_revealed,
    config_has_its_secrets_in_clear_and_takes_no_other_text_for_a_marker,
    one_secret_of_the_config_that_cannot_be_had_fails_the_call,
    a_secret_that_is_still_in_the_file_in_clear_is_known_too,
    whatever_passes_between_a_plugin_and_the_vault_is_known_from_then_on,
);
