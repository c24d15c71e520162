//! The plugin's secrets in the host's vault: GetSecret, SetSecret, DeleteSecret, RevealSecret. Capability `secrets`.

use kandev_proto::v1;
use secrecy::{ExposeSecret, SecretString};

use super::Host;
use crate::Result;

impl Host {
    /// A secret of this plugin; `None` when it was never set. `GetSecret`. Keys begin with a letter or digit and go on
    /// with letters, digits, `.`, `_` and `-`, 128 in all.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// use kandev_plugin_sdk::{ExposeSecret, SecretString};
    ///
    /// host.set_secret("session", &SecretString::from("s3cr3t")).await?;
    /// if let Some(secret) = host.secret("session").await? {
    ///     println!("it has {} bytes", secret.expose_secret().len());
    /// }
    /// host.delete_secret("session").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn secret(&self, key: &str) -> Result<Option<SecretString>> {
        let request = v1::GetSecretRequest { key: key.to_owned() };
        let answer = self.call(|mut host| async move { host.get_secret(request).await }).await?;
        Ok(answer.found.then(|| SecretString::from(answer.value)))
    }

    /// Stores a secret. `SetSecret`.
    pub async fn set_secret(&self, key: &str, value: &SecretString) -> Result<()> {
        let request = v1::SetSecretRequest { key: key.to_owned(), value: value.expose_secret().to_owned() };
        self.call(|mut host| async move { host.set_secret(request).await }).await?;
        Ok(())
    }

    /// Removes a secret; no error when there is none. `DeleteSecret`.
    pub async fn delete_secret(&self, key: &str) -> Result<()> {
        let request = v1::DeleteSecretRequest { key: key.to_owned() };
        self.call(|mut host| async move { host.delete_secret(request).await }).await?;
        Ok(())
    }

    /// The secret behind a reference that the host gave out. `RevealSecret`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let secret = host.reveal_secret("plugin:demo:config:token").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reveal_secret(&self, reference: &str) -> Result<SecretString> {
        let request = v1::RevealSecretRequest { r#ref: reference.to_owned() };
        let answer = self.call(|mut host| async move { host.reveal_secret(request).await }).await?;
        Ok(SecretString::from(answer.value))
    }
}
