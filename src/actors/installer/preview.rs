//! Looking at a package without installing it: the same checks, and the difference to what is installed.

use super::{Installer, warnings};
use crate::{
    actors::registry::RegistryError,
    domain::{
        consent::{Difference, Terms},
        manifest::Manifest,
        signature::PackageSignature,
    },
    store::packages::{Facts, Staged},
};

/// What an install of a package would be.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The validated manifest.
    pub manifest: Manifest,
    /// The signature file.
    pub signature: PackageSignature,
    /// Numbers about the package.
    pub facts: Facts,
    /// What would change.
    pub difference: Difference,
    /// What an operator should know of the package.
    pub warnings: Vec<String>,
}

/// What an install over an unreadable record is.
const UNCOMPARED: &str = "neither capabilities nor the signer can be compared with what was installed, and installing this \
                          package replaces it without asking for consent";

impl Installer {
    /// See [`crate::actors::RegistryHandle::preview`]. Nothing of the package is left when it answers.
    pub async fn preview(&self, staged: Staged, terms: Terms) -> Result<Preview, RegistryError> {
        let (id, unpacked) = self.unpack(staged, &terms).await?;
        let mut warnings = warnings(&unpacked);
        let before = match self.view_of(id.as_str()).await {
            Ok(view) => Some(view.record),
            Err(RegistryError::NotFound(_)) => None,
            // An install repairs it, as a first one.
            Err(RegistryError::RecordUnreadable(id)) => {
                warnings.push(format!("the record {id}.yml cannot be read: {UNCOMPARED}"));
                None
            }
            Err(error) => return Err(error),
        };
        let preview = Preview {
            manifest: unpacked.manifest.clone(),
            signature: unpacked.signature.clone(),
            facts: unpacked.facts.clone(),
            difference: self.difference(before.as_ref(), &unpacked),
            warnings,
        };
        unpacked.discard().await;
        Ok(preview)
    }
}
