//! Promises of the package folders, on archives built by hand and a real disk.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use async_compression::tokio::write::GzipEncoder;
use proptest::prelude::*;
use sha2::Digest as _;
use tokio::io::AsyncWriteExt as _;

use super::*;
use crate::domain::key::PrivateKey;
use crate::domain::package::Limits;
use crate::domain::package::sample::{Tar, checksums, manifest, package, pax_record};
use crate::domain::signature::{PackageSignature, SignatureFile, Signer, Trust};
use crate::domain::target::host_platform;
use crate::domain::trust::{KeyName, KeyRing, Scope, TrustedKey};
use crate::store::fs::names_in;

struct World {
    root: tempfile::TempDir,
    store: PackageStore,
    trust: Trust,
}

fn world() -> World {
    let root = tempfile::tempdir().unwrap();
    let store = PackageStore::new(root.path().join("plugins"));
    World { root, store, trust: Trust::default() }
}

fn acme() -> PluginId {
    PluginId::new("acme").unwrap()
}

async fn gzip(tar: &[u8]) -> Vec<u8> {
    let mut encoder = GzipEncoder::new(Vec::new());
    encoder.write_all(tar).await.unwrap();
    encoder.shutdown().await.unwrap();
    encoder.into_inner()
}

impl World {
    async fn stage(&self, bytes: &[u8]) -> Staged {
        let chunks: Vec<Result<Vec<u8>, String>> = bytes.chunks(10_000).map(|c| Ok(c.to_vec())).collect();
        self.store.stage(futures_util::stream::iter(chunks), &Limits::default()).await.unwrap()
    }

    async fn unpack_bytes(&self, bytes: &[u8], limits: Limits) -> Result<Unpacked, PackageStoreError> {
        let staged = self.stage(bytes).await;
        let result = self.store.unpack(staged, limits, &host_platform(), self.trust.clone()).await;
        if result.is_err() {
            assert_eq!(self.staging(), Vec::<String>::new(), "a refused package leaves nothing");
        }
        result
    }

    async fn unpack(&self, tar: &[u8]) -> Result<Unpacked, PackageStoreError> {
        self.unpack_bytes(&gzip(tar).await, Limits::default()).await
    }

    #[track_caller]
    fn staging(&self) -> Vec<String> {
        names_in(&self.store.root().join(STAGING)).unwrap()
    }

    /// Waits until the staging folder is empty; deleting runs in the background.
    async fn staging_cleared(&self) {
        let cleared = async {
            while !self.staging().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), cleared).await.expect("staging folder removed");
    }

    async fn install(&self, version: &str) -> std::path::PathBuf {
        let unpacked = self.unpack(&package(version, &[]).end()).await.unwrap();
        self.store.promote(&acme(), unpacked).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.store.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn names(&self) -> Vec<String> {
        names_in(self.store.root()).unwrap()
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

async fn refused(tar: &[u8]) -> String {
    world().unpack(tar).await.expect_err("refused").to_string()
}

#[tokio::test]
async fn who_signed_is_known_before_anything_leaves_the_staging_folder() {
    let key = PrivateKey::from_seed(&[1; 32]);
    let (name, plugins) = (KeyName::new("acme-key").unwrap(), Scope::new(["acme"]).unwrap());
    let keys = KeyRing::new(vec![TrustedKey { name: name.clone(), key: key.public(), plugins }]);
    let world = World { trust: Trust { keys, required: false }, ..world() };
    let entries: &[(&str, &[u8])] = &[("server/plugin", b"#!program")];
    let signed = |message: &[u8]| {
        let file = SignatureFile { key: Some(key.public()), signature: key.sign(message) };
        package("1", &[]).file("checksums.txt.sig", file.to_text().as_bytes()).end()
    };
    let listed = checksums(&[&[("manifest.yaml", manifest("1").as_bytes())], entries].concat());
    let unpacked = world.unpack(&signed(listed.as_bytes())).await.unwrap();
    assert_eq!(unpacked.signature, PackageSignature::Trusted(Signer { name, key: key.public() }));
    assert_eq!(unpacked.executable, <[u8; 32]>::from(sha2::Sha256::digest(b"#!program")));
    drop(unpacked);
    world.staging_cleared().await;

    let error = world.unpack(&signed(b"something else")).await.unwrap_err().to_string();
    assert!(error.starts_with("pkgtar: signature verification failed: the signature is not the one that"), "{error}");
    let demanding = World { trust: Trust { required: true, ..world.trust.clone() }, ..world };
    let error = demanding.unpack(&package("1", &[]).end()).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "pkgtar: the package is unsigned: only its checksums were verified; install.signatures is \"require\": trust a \
         key that may sign this plugin, or set it to \"warn\""
    );
    assert!(demanding.unpack(&signed(listed.as_bytes())).await.is_ok());
}

#[tokio::test]
async fn a_lawful_package_is_unpacked_checked_and_placed() {
    let world = world();
    let tar = package("1.2.0", &[("ui/bundle.js", b"js"), ("assets/deep/er/x", b"x")]).folder("./").folder("ui/");
    let tar = tar.file("checksums.txt.sig", &[7; 64]).end();
    let unpacked = world.unpack(&tar).await.unwrap();
    assert_eq!((unpacked.manifest.id.as_str(), unpacked.manifest.version.as_str()), ("acme", "1.2.0"));
    assert_eq!(unpacked.warnings, Vec::<String>::new());
    assert_eq!(unpacked.signature, PackageSignature::NothingToCheck);
    let place = world.store.promote(&acme(), unpacked).unwrap();
    assert_eq!(place, world.store.version_folder(&acme(), "1.2.0"));
    assert_eq!(std::fs::read(place.join("server/plugin")).unwrap(), b"#!program");
    assert_eq!(std::fs::read(place.join("assets/deep/er/x")).unwrap(), b"x");
    assert_eq!(mode(&place), 0o700);
    assert_eq!(mode(&place.join("server/plugin")), 0o755, "executable, and the setuid bit of the archive is gone");
    assert_eq!(mode(&place.join("ui/bundle.js")) & 0o7111, 0, "not executable");
    assert_eq!(std::fs::metadata(place.join("ui/bundle.js")).unwrap().uid(), rustix::process::getuid().as_raw());
    assert_eq!(world.staging(), Vec::<String>::new());
    world.store.verify(&place, &Limits::default(), &host_platform()).unwrap();
}

#[tokio::test]
async fn archives_of_a_common_writer_with_long_names_are_read() {
    let long = format!("ui/{}/{}.js", "d".repeat(120), "f".repeat(150));
    let manifest = manifest("1.0");
    let files: [(&str, &[u8]); 3] = [("manifest.yaml", manifest.as_bytes()), ("server/plugin", b"p"), (&long, b"js")];
    let sums = checksums(&files);
    let mut builder = tokio_tar::Builder::new(Vec::new());
    for (name, data) in files.into_iter().chain([("checksums.txt", sums.as_bytes())]) {
        let mut header = tokio_tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, name, data).await.unwrap();
    }
    let tar = builder.into_inner().await.unwrap();
    let world = world();
    let unpacked = world.unpack(&tar).await.unwrap();
    assert_eq!(std::fs::read(unpacked.folder.join(&long)).unwrap(), b"js");
}

#[tokio::test]
async fn archives_of_the_systems_tar_are_read_in_every_format() {
    if std::process::Command::new("tar").arg("--version").output().is_err() {
        eprintln!("skipped: needs tar");
        return;
    }
    let source = tempfile::tempdir().unwrap();
    let long = format!("ui/{}.js", "n".repeat(90));
    let manifest = manifest("1.0");
    let files: [(&str, &[u8]); 3] = [("manifest.yaml", manifest.as_bytes()), ("server/plugin", b"p"), (&long, b"js")];
    for (name, data) in files.into_iter().chain([("checksums.txt", checksums(&files).as_bytes())]) {
        let path = source.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, data).unwrap();
    }
    for format in ["gnu", "oldgnu", "posix", "ustar", "v7"] {
        let archive = source.path().join(format!("../{}.tar.gz", uuid::Uuid::new_v4()));
        let mut tar = std::process::Command::new("tar");
        tar.arg(format!("--format={format}")).arg("-czf").arg(&archive).arg("-C").arg(source.path()).arg(".");
        assert!(tar.status().unwrap().success());
        let bytes = std::fs::read(&archive).unwrap();
        std::fs::remove_file(&archive).unwrap();
        let world = world();
        let unpacked = world.unpack_bytes(&bytes, Limits::default()).await.unwrap();
        assert_eq!(std::fs::read(unpacked.folder.join(&long)).unwrap(), b"js", "{format}");
    }
}

#[tokio::test]
async fn a_link_is_refused_and_nothing_is_written_through_it() {
    let world = world();
    let outside = world.root.path().join("out");
    let tar = Tar::default().link("ui/x", outside.to_str().unwrap()).file("ui/x", b"data").end();
    let error = world.unpack(&tar).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "pkgtar: unsafe archive path: entry \"ui/x\" has unsupported type (symlinks/hardlinks/devices are not allowed)"
    );
    assert!(!outside.exists());
}

#[tokio::test]
async fn each_fault_of_a_package_has_its_text() {
    let broken = "id: Acme\napi_version: 1\nversion: 1\nruntime: {type: binary, executables: {a: b}}\n";
    let other = "id: acme\napi_version: 1\nversion: 1\nruntime: {type: binary, executables: {plan9-mips: server/p}}\n";
    let listed = |manifest: &str, more: &str| {
        let files: [(&str, &[u8]); 1] = [("manifest.yaml", manifest.as_bytes())];
        let sums = checksums(&files) + more;
        Tar::default().file("checksums.txt", sums.as_bytes()).file("manifest.yaml", manifest.as_bytes()).end()
    };
    let zeros = "0".repeat(64);
    for (tar, text) in [
        (Tar::default().file("manifest.yaml", b"x").end(), "pkgtar: missing checksums.txt".to_owned()),
        (
            Tar::default().file("checksums.txt", b"").end(),
            "pkgtar: missing manifest.yaml: it must be at the root of the archive".to_owned(),
        ),
        (package("1", &[]).file("ui/more", b"").end(), "pkgtar: file not listed in checksums.txt: ui/more".to_owned()),
        (listed("x", &format!("{zeros} ui/a\n")), "pkgtar: checksums.txt references missing file ui/a".to_owned()),
        (
            Tar::default().file("checksums.txt", format!("{zeros} a\n").as_bytes()).file("a", b"x").end(),
            "pkgtar: checksum mismatch: a".to_owned(),
        ),
        (
            listed("x", "nonsense\n"),
            "pkgtar: malformed checksums.txt line: \"nonsense\": expected a digest and one path without spaces"
                .to_owned(),
        ),
        (
            listed(broken, ""),
            "pkgtar: manifest invalid: invalid plugin id \"Acme\": must match ^[a-z0-9][a-z0-9._-]*$".to_owned(),
        ),
        (
            listed(other, ""),
            format!("pkgtar: host platform not supported by package: {}; it has \"plan9-mips\"", host_platform()),
        ),
        (
            listed(&manifest("1"), ""),
            "pkgtar: manifest invalid: declared executable \"server/plugin\" not found in package".to_owned(),
        ),
        (
            package("1", &[]).file("server/plugin", b"#!other").end(),
            "pkgtar: unsafe archive path: \"server/plugin\" collides with \"server/plugin\"".to_owned(),
        ),
        (
            package("1", &[]).pax(&pax_record("size", "9")).file("a", b"x").end(),
            "pkgtar: bad archive: the PAX size and the header size of an entry disagree".to_owned(),
        ),
        (
            package("1", &[]).pax("9 nonsense\n").file("a", b"x").end(),
            "pkgtar: bad archive: malformed PAX record".to_owned(),
        ),
        (
            package("1", &[]).raw(&[0; 1024]).raw(&[1]).cut(),
            "pkgtar: bad archive: data after the end of the archive".to_owned(),
        ),
    ] {
        assert_eq!(refused(&tar).await, text);
    }
}

#[tokio::test]
async fn a_damaged_or_foreign_stream_is_a_bad_archive() {
    let world = world();
    let good = gzip(&package("1", &[]).end()).await;
    let mut wrong_sum = good.clone();
    let at = wrong_sum.len() - 8;
    wrong_sum[at] ^= 1;
    let plain_tar = package("1", &[]).end();
    let (cut, foreign) = (
        "pkgtar: bad archive: the gzip stream is cut off before its end: fetch or copy the whole package again",
        "pkgtar: not a gzip-compressed archive: ",
    );
    for (name, bytes, text) in [
        ("its first byte", &good[..1], cut),
        ("cut in the header", &good[..9], cut),
        ("cut", &good[..good.len() / 2], cut),
        ("without trailer", &good[..good.len() - 8], cut),
        ("without the last byte", &good[..good.len() - 1], cut),
        ("wrong sum", &wrong_sum, foreign),
        ("trailing junk", &[good.as_slice(), b"junk"].concat(), foreign),
        ("plain tar", &plain_tar, foreign),
        ("text", b"<html>not found</html>", foreign),
        ("short text", b"no", foreign),
        ("empty", b"", "pkgtar: not a gzip-compressed archive: the file is empty"),
    ] {
        match world.unpack_bytes(bytes, Limits::default()).await {
            Err(PackageStoreError::Package(error)) => {
                assert_eq!(error.code(), "bad_archive", "{name}: {error}");
                assert!(error.to_string().starts_with(text), "{name}: {error}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    let split = [gzip(&plain_tar[..700]).await, gzip(&plain_tar[700..]).await].concat();
    assert!(world.unpack_bytes(&split, Limits::default()).await.is_ok(), "two gzip members are one stream");
}

#[tokio::test]
async fn every_bomb_stops_at_its_limit() {
    let world = world();
    let limits = Limits { expanded: 300_000, files: 50, ..Limits::default() };
    let many = (0..2_000).fold(Tar::default(), |tar, i| tar.file(&format!("f{i}"), b"")).end();
    let big = (0..100).fold(Tar::default(), |tar, i| tar.file(&format!("f{i}"), &[0; 10_000])).end();
    let one = Tar::default().file("f", &vec![0; 4_000_000]).end();
    let zeros = vec![0; 8_000_000];
    for (tar, text) in [
        (many, "pkgtar: package exceeds max number of 50 entries"),
        (big, "pkgtar: package exceeds max total size of 300000 bytes"),
        (one, "pkgtar: file \"f\" exceeds max size of 300000 bytes"),
        (zeros, "pkgtar: bad archive: data after the end of the archive"),
    ] {
        assert_eq!(world.unpack_bytes(&gzip(&tar).await, limits).await.unwrap_err().to_string(), text);
    }
}

#[tokio::test]
async fn receiving_stops_at_the_limit_and_leaves_nothing() {
    let world = world();
    let limits = Limits { compressed: 1000, ..Limits::default() };
    let endless = futures_util::stream::repeat_with(|| Ok::<_, String>(vec![0; 400]));
    let error = world.store.stage(endless, &limits).await.unwrap_err();
    assert_eq!(error.to_string(), "pkgtar: package exceeds max compressed size of 1000 bytes");
    let broken = futures_util::stream::iter([Ok(vec![0; 10]), Err("connection reset".to_owned())]);
    let error = world.store.stage(broken, &limits).await.unwrap_err();
    assert_eq!(error.to_string(), "receiving the package failed: connection reset");
    let silent = futures_util::stream::pending::<Result<Vec<u8>, String>>();
    let timed_out = tokio::time::timeout(Duration::from_millis(20), world.store.stage(silent, &limits)).await;
    assert!(timed_out.is_err());
    world.staging_cleared().await;
    let exact = futures_util::stream::iter([Ok::<_, String>(vec![0; 1000])]);
    assert_eq!(world.store.stage(exact, &limits).await.unwrap().size, 1000);
    world.staging_cleared().await;
}

#[tokio::test]
async fn an_unpacked_package_that_is_not_placed_disappears() {
    let world = world();
    let unpacked = world.unpack(&package("1", &[]).end()).await.unwrap();
    assert_eq!(world.staging().len(), 1);
    drop(unpacked);
    world.staging_cleared().await;
}

#[tokio::test]
async fn a_version_that_is_there_is_not_replaced() {
    let world = world();
    let place = world.install("1.0").await;
    let again = package("1.0", &[("ui/new", b"")]).end();
    let again = world.unpack(&again).await.unwrap();
    let error = world.store.promote(&acme(), again).unwrap_err();
    assert_eq!(error.to_string(), format!("pkgtar: version already installed: {}", place.display()));
    assert!(!place.join("ui/new").exists());
    assert_eq!(world.staging(), Vec::<String>::new());
}

#[tokio::test]
async fn versions_are_listed_by_name_and_removed_one_by_one() {
    let world = world();
    for version in ["1.9.0", "1.10.0", "1.10.0-rc.1"] {
        world.install(version).await;
    }
    world.write("acme/data/x", "");
    world.write("acme/.tmp-1/x", "");
    symlink("/tmp", world.store.root().join("acme/2.0")).unwrap();
    assert_eq!(world.store.versions(&acme()).unwrap(), ["1.10.0", "1.10.0-rc.1", "1.9.0"]);
    world.store.remove_version(&acme(), "1.9.0").unwrap();
    world.store.remove_version(&acme(), "1.9.0").unwrap();
    assert_eq!(world.store.versions(&acme()).unwrap(), ["1.10.0", "1.10.0-rc.1"]);
    assert!(world.store.data_folder(&acme()).join("x").exists());
}

#[tokio::test]
async fn an_installed_version_that_was_changed_is_not_verified() {
    for (change, text) in [
        ("tampered", "pkgtar: checksum mismatch: server/plugin"),
        ("added", "pkgtar: file not listed in checksums.txt: ui/evil"),
        ("linked", "pkgtar: file not listed in checksums.txt: link"),
        ("removed", "pkgtar: checksums.txt references missing file manifest.yaml"),
        ("emptied", "pkgtar: missing checksums.txt"),
    ] {
        let world = world();
        let place = world.install("1.0").await;
        match change {
            "tampered" => std::fs::write(place.join("server/plugin"), b"#!evil").unwrap(),
            "added" => world.write("acme/1.0/ui/evil", ""),
            "linked" => symlink("/etc/passwd", place.join("link")).unwrap(),
            "removed" => std::fs::remove_file(place.join("manifest.yaml")).unwrap(),
            _ => std::fs::remove_file(place.join("checksums.txt")).unwrap(),
        }
        let error = world.store.verify(&place, &Limits::default(), &host_platform()).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
}

#[tokio::test]
async fn removing_a_plugin_takes_all_of_it_and_nothing_else() {
    let world = world();
    world.install("1.0").await;
    for name in ["acme.yml", "acme.config.yml", "acme/data/x", "acme-two.yml", "acme-two/1/x"] {
        world.write(name, "");
    }
    world.store.set_aside(&acme()).unwrap();
    world.store.finish_removal(&acme()).unwrap();
    world.store.finish_removal(&acme()).unwrap();
    assert_eq!(world.names(), [".staging", "acme-two", "acme-two.yml"]);
}

#[tokio::test]
async fn a_removal_that_cannot_go_on_is_undone() {
    let world = world();
    for name in ["acme.yml", "acme.config.yml", "acme/data/x"] {
        world.write(name, name);
    }
    world.store.set_aside(&acme()).unwrap();
    world.store.take_back(&acme()).unwrap();
    assert_eq!(world.names(), ["acme", "acme.config.yml", "acme.yml"]);
    assert!(world.store.root().join("acme/data/x").exists());
}

#[tokio::test]
async fn the_sweep_finds_a_removal_from_every_point_of_interruption() {
    for state in [
        &[".removing-acme.yml", "acme.config.yml", "acme/1.0/x"][..],
        &[".removing-acme.yml", ".removing-acme.config.yml", "acme/1.0/x"],
        &[".removing-acme.yml", ".removing-acme.config.yml", ".removing-acme/1.0/x"],
        &[".removing-acme.yml", ".removing-acme.config.yml"],
        &[".removing-acme.yml"],
        &[".removing-acme/1.0/x"],
    ] {
        let world = world();
        state.iter().for_each(|name| world.write(name, ""));
        world.write("other.yml", "");
        assert_eq!(world.store.sweep().unwrap(), Swept { removed: vec![acme()], leftovers: 0 }, "{state:?}");
        assert!(!world.names().iter().any(|name| name.starts_with("acme")), "{state:?}");
        assert_eq!(world.store.sweep().unwrap(), Swept { removed: vec![acme()], leftovers: 0 }, "{state:?}: not lost");
        world.store.finish_removal(&acme()).unwrap();
        assert_eq!(world.names(), ["other.yml"], "{state:?}");
    }
}

#[tokio::test]
async fn the_sweep_does_not_touch_a_later_install_of_the_same_id() {
    let world = world();
    for name in [".removing-acme.yml", "acme.yml", "acme/2.0/x"] {
        world.write(name, "");
    }
    assert_eq!(world.store.sweep().unwrap(), Swept::default());
    assert_eq!(world.names(), ["acme", "acme.yml"]);
}

#[tokio::test]
async fn the_sweep_deletes_what_installs_and_writes_left_behind() {
    let world = world();
    for name in
        [".staging/a/package.tar.gz", ".staging/b/pkg/x", ".tmp-1", "acme/.tmp-2/x", "acme/1.0/.tmp-3", "acme.yml"]
    {
        world.write(name, "");
    }
    assert_eq!(world.store.sweep().unwrap(), Swept { removed: vec![], leftovers: 4 });
    assert_eq!(world.names(), [".staging", "acme", "acme.yml"]);
    assert!(world.store.root().join("acme/1.0/.tmp-3").exists(), "a plugin's own file");
    assert_eq!(PackageStore::new(world.root.path().join("absent")).sweep().unwrap(), Swept::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_archive_is_refused_or_unpacked_as_promised(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)
    ) {
        let mut tar = package("1.0.0", &[("ui/a", b"x")]).folder("ui/").pax(&pax_record("path", "checksums.txt.sig"))
            .file("short", b"y").end();
        for (at, byte) in damage {
            let at = at.index(tar.len());
            tar[at] = byte;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = world();
            // Whatever was damaged, what is accepted has the promised content.
            if let Ok(unpacked) = world.unpack(&tar).await {
                assert_eq!(std::fs::read(unpacked.folder.join("server/plugin")).unwrap(), b"#!program");
                assert_eq!(std::fs::read(unpacked.folder.join("ui/a")).unwrap(), b"x");
            }
        });
    }
}
