//! Keys and signatures made by another program: the openssl command line.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// An Ed25519 key that openssl made.
pub struct OpensslKey {
    folder: TempDir,
}

/// Whether openssl can be had; a case that needs it says that it is skipped, and with `CI=true` fails.
pub fn has_openssl() -> bool {
    let found = Command::new("openssl").arg("version").output().is_ok_and(|output| output.status.success());
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "CI must have openssl");
    if !found {
        println!("skipped: needs openssl");
    }
    found
}

/// Runs openssl; fails unless it succeeds.
#[track_caller]
pub fn openssl(arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).output().expect("openssl runs");
    assert!(output.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

impl OpensslKey {
    /// A new key.
    pub fn new() -> Self {
        let key = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        openssl(&["genpkey", "-algorithm", "ed25519", "-out", text(&key.private())]);
        openssl(&["pkey", "-in", text(&key.private()), "-pubout", "-out", text(&key.public())]);
        key
    }

    /// The file of the private key, PEM.
    pub fn private(&self) -> PathBuf {
        self.folder.path().join("private.pem")
    }

    /// The file of the public key, PEM.
    pub fn public(&self) -> PathBuf {
        self.folder.path().join("public.pem")
    }

    /// The public key, PEM.
    pub fn public_pem(&self) -> String {
        std::fs::read_to_string(self.public()).expect("openssl wrote it")
    }

    /// The public key, base64 of the 32 bytes: what stands in the PEM after its fixed head of 12 bytes.
    pub fn public_base64(&self) -> String {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let pem = self.public_pem();
        let der = STANDARD.decode(pem.lines().nth(1).expect("a line of base64")).expect("base64");
        STANDARD.encode(&der[12..])
    }

    /// The 64 bytes of a signature.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let (input, output) = (self.folder.path().join("message"), self.folder.path().join("signature"));
        std::fs::write(&input, message).expect("a file");
        let key = self.private();
        openssl(&["pkeyutl", "-sign", "-rawin", "-inkey", text(&key), "-in", text(&input), "-out", text(&output)]);
        std::fs::read(output).expect("openssl wrote it")
    }

    /// A signature that names the key, as `plugin pack --sign` writes it.
    pub fn sign_named(&self, message: &[u8]) -> Vec<u8> {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        format!("ed25519 {} {}\n", self.public_base64(), STANDARD.encode(self.sign(message))).into_bytes()
    }
}
