//! `plugin keygen`, `pack --sign`, `verify` and `inspect`, in both directions with openssl, and `trust`.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;

use crate::{
    command::Desk,
    pack::write,
    support::{Guest, Host, OpensslKey, Package, has_openssl, openssl::openssl},
};

const PACKAGE: &str = "demo-1.2.3.tar.gz";

fn desk() -> Desk {
    let desk = Desk::new();
    write(&desk.path().join("p"), &["manifest.yaml", "server/plugin"]);
    desk
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn keys_that_were_made_here_sign_packages_that_verify() {
    let desk = desk();
    let made = desk.run(&["plugin", "keygen", "acme", "--json"]).expect(0).json();
    assert_eq!((&made["private_key"], &made["public_key"]), (&json!("acme.key"), &json!("acme.pub")));
    let mode = fs::metadata(desk.path().join("acme.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let packed = desk.run(&["plugin", "pack", "p", "--sign", "acme.key", "--json"]).expect(0).json();
    assert_eq!((&packed["signed"], &packed["key"]), (&json!(true), &made["key"]));
    let verdict = desk.run(&["plugin", "verify", PACKAGE, "--key", "acme.pub", "--json"]).expect(0).json();
    assert_eq!(
        verdict,
        json!({"id": "demo", "version": "1.2.3", "signature": "trusted", "signer": "acme", "key": made["key"]})
    );
    let shown = desk.run(&["plugin", "verify", PACKAGE, "--key", "acme.pub"]).expect(0).out;
    assert_eq!(shown, format!("plugin:  demo 1.2.3\nsigner:  acme\nkey:     {}\n", made["key"].as_str().unwrap()));

    // The same key over the same files gives the same bytes; over other files the signature is made anew.
    let bytes = fs::read(desk.path().join(PACKAGE)).unwrap();
    desk.run(&["plugin", "pack", "p", "--sign", "acme.key"]).expect(0);
    assert_eq!(fs::read(desk.path().join(PACKAGE)).unwrap(), bytes);
    fs::write(desk.path().join("p/server/plugin"), "another build").unwrap();
    desk.run(&["plugin", "pack", "p", "--sign", "acme.key"]).expect(0);
    desk.run(&["plugin", "verify", PACKAGE, "--key", "acme.pub"]).expect(0);
}

#[test]
fn keys_are_never_replaced_and_a_private_one_must_be_private() {
    let desk = desk();
    desk.run(&["plugin", "keygen", "acme"]).expect(0);
    let key = fs::read(desk.path().join("acme.key")).unwrap();
    let done = desk.run(&["plugin", "keygen", "acme"]).expect(1);
    assert!(done.err.contains("cannot write acme.key") && done.err.contains("never replaced"), "{}", done.err);
    fs::remove_file(desk.path().join("acme.key")).unwrap();
    desk.run(&["plugin", "keygen", "acme"]).expect(1);
    assert!(!desk.path().join("acme.key").exists(), "half a pair is not left");
    let path = desk.path().join("open.key");
    fs::write(&path, &key).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let done = desk.run(&["plugin", "pack", "p", "--sign", "open.key"]).expect(1);
    assert!(done.err.contains("open to other users (mode 644)"), "{}", done.err);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    desk.run(&["plugin", "pack", "p", "--sign", "open.key"]).expect(0);
    // The wrong half, each way; a private key is not shown.
    let public = |path: &str| {
        format!(
            "kandev-host: {path} holds no private key: it is a public key: packages are signed with the private one, the \
             file of `plugin keygen` that ends in .key\n"
        )
    };
    assert_eq!(desk.run(&["plugin", "pack", "p", "--sign", "acme.pub"]).expect(1).err, public("acme.pub"));
    let trusted = format!("plugins: *\n{}", fs::read_to_string(desk.path().join("acme.pub")).unwrap());
    fs::write(desk.path().join("trusted.pub"), trusted).unwrap();
    assert_eq!(desk.run(&["plugin", "pack", "p", "--sign", "trusted.pub"]).expect(1).err, public("trusted.pub"));
    let done = desk.run(&["plugin", "verify", PACKAGE, "--key", "open.key"]).expect(1);
    assert!(done.err.contains("it is a private key"), "{}", done.err);
    assert!(!done.err.contains(String::from_utf8_lossy(&key).lines().nth(1).unwrap()));
}

#[test]
fn what_is_not_there_is_told_once_with_what_to_do() {
    let desk = desk();
    desk.run(&["plugin", "keygen", "acme"]).expect(0);
    std::os::unix::fs::symlink("acme.pub", desk.path().join("link.pub")).unwrap();
    let none = "No such file or directory (os error 2)";
    for (arguments, text) in [
        (&["verify", "none"][..], format!("cannot read none: {none}; name a package file")),
        (&["verify", "p"], "cannot read p: it is not a regular file; name a package file".into()),
        (&["inspect", "none"], format!("cannot read none: {none}; name a package file")),
        (
            &["install", "none", "--host", "http://127.0.0.1:1", "--token", "x"],
            format!("cannot read none: {none}; name a package file or an http(s) address"),
        ),
        (&["pack", "none"], format!("cannot pack none: {none}; name the folder that has manifest.yaml")),
        (&["pack", "p", "--sign", "none"], format!("could not open none: {none}; name a key file")),
        (
            &["verify", "none", "--key", "link.pub"],
            "could not open link.pub: it is a link; put the file itself there; name a key file".into(),
        ),
        (
            &["keygen", "none/acme"],
            format!("cannot write none/acme.key: {none}; make its folder first, or choose another one"),
        ),
        (
            &["keygen", "acme"],
            "cannot write acme.key: File exists (os error 17); an existing key is never replaced: choose another name"
                .into(),
        ),
    ] {
        let done = desk.run(&[&["plugin"], arguments].concat()).expect(1);
        assert_eq!(done.err, format!("kandev-host: {text}\n"), "{arguments:?}");
    }
}

#[test]
fn verify_tells_sound_unsigned_foreign_and_wrong_apart_by_its_exit_code() {
    let desk = desk();
    for name in ["acme", "other"] {
        desk.run(&["plugin", "keygen", name]).expect(0);
    }
    desk.run(&["plugin", "pack", "p"]).expect(0);
    let done = desk.run(&["plugin", "verify", PACKAGE, "--key", "acme.pub", "--json"]).expect(6);
    let unsigned = "the package is unsigned: only its checksums were verified";
    assert_eq!(done.error(), json!({"error": unsigned, "code": "not_trusted", "exit": 6}));
    desk.run(&["plugin", "pack", "p", "--sign", "other.key"]).expect(0);
    let done = desk.run(&["plugin", "verify", PACKAGE, "--key", "acme.pub"]).expect(6);
    assert!(done.err.contains("which is not trusted here"), "{}", done.err);
    desk.run(&["plugin", "verify", PACKAGE, "--key", "acme.pub", "--key", "other.pub"]).expect(0);

    // A signature of the right key over something else; packing checks it too.
    let signature = fs::read(desk.path().join("p/checksums.txt.sig")).unwrap();
    fs::write(desk.path().join("p/server/plugin"), "another build").unwrap();
    fs::remove_file(desk.path().join("p/checksums.txt.sig")).unwrap();
    desk.run(&["plugin", "pack", "p"]).expect(0);
    fs::write(desk.path().join("p/checksums.txt.sig"), signature).unwrap();
    let done = desk.run(&["plugin", "pack", "p", "-o", "wrong.tar.gz"]).expect(1);
    assert!(done.err.contains("signature verification failed"), "{}", done.err);
    fs::write(desk.path().join("bad.tar.gz"), "nothing").unwrap();
    desk.run(&["plugin", "verify", "bad.tar.gz", "--key", "acme.pub"]).expect(1);
}

#[test]
fn without_keys_the_trusted_keys_of_the_home_count_for_their_plugins() {
    let desk = desk();
    desk.run(&["plugin", "keygen", "acme"]).expect(0);
    desk.run(&["plugin", "pack", "p", "--sign", "acme.key"]).expect(0);
    let trust = desk.path().join(".kandev/trust");
    fs::create_dir_all(&trust).unwrap();
    desk.run(&["plugin", "verify", PACKAGE]).expect(6);
    let key = fs::read_to_string(desk.path().join("acme.pub")).unwrap();
    fs::write(trust.join("acme.pub"), format!("plugins: someone-else\n{key}")).unwrap();
    let done = desk.run(&["plugin", "verify", PACKAGE]).expect(6);
    assert!(done.err.contains("the trusted key \"acme\", which may not sign this plugin"), "{}", done.err);
    fs::write(trust.join("acme.pub"), format!("plugins: demo\n{key}")).unwrap();
    fs::write(trust.join("broken.pub"), "nonsense").unwrap();
    let done = desk.run(&["plugin", "verify", PACKAGE]).expect(0);
    assert!(done.err.contains("warning: broken.pub is skipped: "), "{}", done.err);
    let shown = desk.run(&["plugin", "inspect", PACKAGE]).expect(0).out;
    assert!(
        shown.contains("signature:     trusted\nkey:           ") && shown.contains("\nsigner:        acme\n"),
        "{shown}"
    );
}

#[test]
fn openssl_and_the_command_line_understand_each_others_keys_and_signatures() {
    if !has_openssl() {
        return;
    }
    // Made by openssl, used here.
    let desk = desk();
    let theirs = OpensslKey::new();
    desk.run(&["plugin", "pack", "p", "--sign", text(&theirs.private())]).expect(0);
    desk.run(&["plugin", "verify", PACKAGE, "--key", text(&theirs.public())]).expect(0);
    let checksums = fs::read(desk.path().join("p/checksums.txt")).unwrap();
    fs::write(desk.path().join("p/checksums.txt.sig"), theirs.sign(&checksums)).unwrap();
    desk.run(&["plugin", "pack", "p"]).expect(0);
    desk.run(&["plugin", "verify", PACKAGE, "--key", text(&theirs.public())]).expect(0);

    // Made here, used by openssl.
    desk.run(&["plugin", "keygen", "acme"]).expect(0);
    desk.run(&["plugin", "pack", "p", "--sign", "acme.key"]).expect(0);
    let line = fs::read_to_string(desk.path().join("p/checksums.txt.sig")).unwrap();
    let raw = STANDARD.decode(line.trim().rsplit(' ').next().unwrap()).unwrap();
    let at = |name: &str| desk.path().join(name);
    fs::write(at("raw"), raw).unwrap();
    openssl(&["pkey", "-in", text(&at("acme.key")), "-pubout", "-out", text(&at("derived.pub"))]);
    assert_eq!(fs::read(at("derived.pub")).unwrap(), fs::read(at("acme.pub")).unwrap());
    let (key, message, signature) = (at("acme.pub"), at("p/checksums.txt"), at("raw"));
    openssl(&[
        "pkeyutl",
        "-verify",
        "-rawin",
        "-pubin",
        "-inkey",
        text(&key),
        "-in",
        text(&message),
        "-sigfile",
        text(&signature),
    ]);
    // A key of another kind is no key for this.
    openssl(&["genpkey", "-algorithm", "x25519", "-out", text(&at("x.key"))]);
    let done = desk.run(&["plugin", "pack", "p", "--sign", "x.key"]).expect(1);
    assert!(done.err.contains("it is a key of another kind"), "{}", done.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_trusted_listed_and_removed_on_a_running_host() {
    let host = Host::start().await;
    let desk = Desk::at(&host);
    desk.run(&["plugin", "keygen", "acme"]).expect(0);
    assert_eq!(desk.run(&["trust", "list"]).expect(0).out, "no key is trusted\n");
    let done = desk.run(&["trust", "add", "acme", "acme.pub", "--plugins", "demo,other"]).expect(0);
    assert_eq!(done.out, "acme may sign demo, other\n");
    let shown = desk.run(&["--json", "trust", "list"]).expect(0).json();
    let key = shown["keys"][0]["key"].as_str().unwrap().to_owned();
    assert_eq!(shown, json!({"keys": [{"name": "acme", "key": key, "plugins": ["demo", "other"]}], "skipped": []}));
    let table = desk.run(&["trust", "list"]).expect(0).out;
    assert_eq!(table, format!("NAME  KEY{}PLUGINS\nacme  {key}  demo, other\n", " ".repeat(key.len() - 1)));

    let private = fs::read_to_string(desk.path().join("acme.key")).unwrap();
    let private = kandev_host::domain::key::PrivateKey::parse(&private).unwrap();
    let package = Package::of(Guest::Rust, "demo", "1.0.0").signed(|bytes| {
        let signature = private.sign(bytes);
        kandev_host::domain::signature::SignatureFile { key: None, signature }.to_text().into_bytes()
    });
    fs::write(desk.path().join("demo.tar.gz"), package.archive().await).unwrap();
    let done = desk.run(&["plugin", "install", "demo.tar.gz"]).expect(0);
    assert!(!done.err.contains("signed"), "{}", done.err);
    let show = desk.run(&["plugin", "show", "demo"]).expect(0).out;
    assert!(show.contains("\nsigned:        yes, by acme\n"), "{show}");

    assert_eq!(desk.run(&["trust", "remove", "acme"]).expect(0).out, "acme is no longer trusted\n");
    fs::write(host.home().join("trust/broken.pub"), "nonsense").unwrap();
    let done = desk.run(&["trust", "remove", "broken"]).expect(0);
    assert_eq!(done.out, "the file broken.pub is removed; it was no usable key and never counted\n");
    let done = desk.run(&["trust", "remove", "acme"]).expect(4);
    assert!(done.err.contains("no trusted key is named \"acme\""), "{}", done.err);
    desk.run(&["trust", "remove", "../acme"]).expect(2);
    desk.run(&["trust", "add", "acme", "acme.pub"]).expect(2);
    desk.run(&["trust", "add", "acme", "acme.key", "--plugins", "*"]).expect(1);
    desk.run(&["trust", "add", "acme", "acme.pub", "--plugins", "No Id"]).expect(4);
}
