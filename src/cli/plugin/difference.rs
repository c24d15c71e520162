//! What a package would change, as the host tells it: shown for a dry run, and asked about when it needs consent.

use serde::Deserialize;
use serde_json::Value;

use super::{install::Query, operate::part, view};
use crate::{
    cli::{
        client::ClientError,
        error::CliError,
        output::{Output, fields, size},
    },
    domain::consent::signed_by,
};

/// The difference (docs/api.md, "Consent"). The host may be of another version: every key may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Difference {
    installed: Option<String>,
    offered: String,
    direction: String,
    widened: Vec<String>,
    narrowed: Vec<String>,
    signer_installed: Option<String>,
    signer_key_installed: Option<String>,
    signer_offered: Option<String>,
    signer_key_offered: Option<String>,
    signature_offered: String,
    needs: Vec<String>,
}

/// What a dry run answers (docs/api.md, "Dry run").
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Preview {
    manifest: Value,
    sha256: String,
    size: u64,
    unpacked_size: u64,
    files: u64,
    platforms: Vec<Platform>,
    signature: String,
    difference: Difference,
    warnings: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Platform {
    platform: String,
    present: bool,
}

impl Difference {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let offered = (self.signer_offered.as_deref(), self.signer_key_offered.as_deref());
        let offered = signed_by(&self.signature_offered, offered.0, offered.1);
        let installed = (self.signer_installed.as_deref(), self.signer_key_installed.as_deref());
        let installed = signed_by("", installed.0, installed.1);
        vec![
            ("installed", self.installed.clone().unwrap_or_else(|| "nothing".to_owned())),
            ("offered", format!("{} ({})", self.offered, self.direction)),
            ("asks beyond", self.widened.join("\n")),
            ("asks no more", self.narrowed.join("\n")),
            ("signed by", format!("{offered}\ninstalled version: {installed}")),
            ("needs consent", if self.needs.is_empty() { "no".to_owned() } else { self.needs.join(", ") }),
        ]
    }
}

/// Prints a dry run's answer.
pub fn show(answer: &Value, output: &Output) -> Result<(), CliError> {
    let preview: Preview = part(answer)?;
    let text = |name: &str| preview.manifest[name].as_str().unwrap_or_default().to_owned();
    let platforms = preview.platforms.iter().map(|Platform { platform, present }| match present {
        true => platform.clone(),
        false => format!("{platform} (declared, not in the package)"),
    });
    let sizes = format!("{}, unpacked {}, {} files", size(preview.size), size(preview.unpacked_size), preview.files);
    let mut lines = vec![
        ("id", text("id")),
        ("version", text("version")),
        ("name", text("display_name")),
        ("author", text("author")),
        ("needs host", text("min_kandev_version")),
        ("platforms", platforms.collect::<Vec<_>>().join("\n")),
        ("capabilities", view::capabilities(&preview.manifest["capabilities"])),
        ("size", sizes),
        ("sha256", preview.sha256.clone()),
        ("signature", preview.signature.clone()),
        ("warnings", preview.warnings.join("\n")),
    ];
    lines.extend(preview.difference.fields());
    output.result(answer, || fields(&lines))
}

/// Asks the person at the terminal when the host wants consent. What comes back accepts what was shown, of that package
/// and no other; `None` when there is nobody to ask, or the answer is no.
pub fn consent(refused: &ClientError, output: &Output) -> Option<Query> {
    let ClientError::Refused { code, details, .. } = refused else { return None };
    if code != "consent_needed" {
        return None;
    }
    let difference = Difference::deserialize(&details["difference"]).ok()?;
    let (accept, sha256) = (details["accept"].as_str()?, details["sha256"].as_str()?);
    let agreed = output.confirms(&fields(&difference.fields()), "Install it all the same?");
    agreed.then(|| Query { dry_run: false, accept: Some(accept.to_owned()), sha256: Some(sha256.to_owned()) })
}
