//! Packages through the real route: every refusal leaves no trace, what is lawful is installed
//! (contract/manifest.md §4 and §5, rest.md §3; field cases §1 rows 1–2, §3, §4 rows 51–53).

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tokio_tar::EntryType;

use crate::{
    on_both,
    support::{
        FileServer, Guest, Host, Package, Settings, eventually,
        files::File,
        host::TOKEN,
        package::{Entry, executable_path, gzip},
        raw::{Raw, chunked, exchange, request},
    },
};

const MIB: usize = 1024 * 1024;

/// A small package that follows every rule; its program ends at once.
fn small() -> Package {
    Package::with_program("#!/bin/sh\nexit 3\n", "demo", "1.0.0")
}

/// No record, no folder, nothing staged.
async fn assert_no_trace(host: &Host, what: &str) {
    assert_eq!(host.get("/api/plugins").await.expect(200), json!({"plugins": []}), "{what}");
    let names = |folder: &str| -> Vec<_> {
        let entries = std::fs::read_dir(host.plugins().join(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).filter(|name| name != ".staging").collect()
    };
    assert_eq!(names(""), Vec::<std::ffi::OsString>::new(), "{what}");
    eventually(&format!("{what}: the staging folder is empty"), || async { names(".staging").is_empty() }).await;
}

/// Uploads; fails unless it is refused with this code and text, and without a trace.
async fn refused(host: &Host, what: &str, archive: Vec<u8>, code: &str, text: &str) {
    let answer = host.upload(archive).await;
    assert_eq!((answer.status, &answer.body["code"]), (400, &json!(code)), "{what}: {}", answer.body);
    let error = answer.body["error"].as_str().unwrap();
    assert!(error.contains(text) && !error.contains(char::is_control), "{what}: {error:?}");
    assert_no_trace(host, what).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unlawful_entries_are_refused_without_a_trace() {
    let host = Host::start().await;
    let outside = host.home().join("outside");
    let absolute = outside.to_str().unwrap().to_owned();
    let (links, paths) = ("has unsupported type (symlinks/hardlinks/devices are not allowed)", "unsafe archive path");
    let cases: Vec<(&str, Vec<Entry>, &str)> = vec![
        ("symlink", vec![Entry::link(EntryType::Symlink, "ui/x", "/etc/passwd"), Entry::file("ui/x")], links),
        ("hard link", vec![Entry::file("a"), Entry::link(EntryType::Link, "b", "a")], links),
        ("character device", vec![Entry::new(EntryType::Char, "dev")], links),
        ("block device", vec![Entry::new(EntryType::Block, "dev")], links),
        ("fifo", vec![Entry::new(EntryType::Fifo, "pipe")], links),
        ("sparse", vec![Entry::new(EntryType::GNUSparse, "sparse")], links),
        ("unknown type", vec![Entry::new(EntryType::new(b'Z'), "odd")], links),
        ("absolute", vec![Entry::file(absolute)], "is absolute"),
        ("parent", vec![Entry::file("../../outside")], "has a \"..\" part"),
        ("parent inside", vec![Entry::file("ui/../../../outside")], "has a \"..\" part"),
        ("empty part", vec![Entry::file("ui//x")], "has an empty or \".\" part inside"),
        ("empty name", vec![Entry::file("")], paths),
        ("backslash", vec![Entry::file("ui\\..\\x")], "has a backslash"),
        ("control character", vec![Entry::file("ui/\u{1b}[31mx")], "has a control character"),
        ("not utf-8", vec![Entry::file(*b"ui/\xff")], "is not valid UTF-8"),
        ("device name", vec![Entry::file("ui/CON")], "has a part that names a device"),
        ("trailing dot", vec![Entry::file("ui/x.")], "has a part ending in a dot or a space"),
        ("duplicate", vec![Entry::file("a"), Entry::file("./a")], "collides with"),
        ("second program", vec![Entry::file(executable_path())], "collides with"),
        ("case", vec![Entry::file("UI/x"), Entry::file("ui/x")], "collides with"),
        ("unicode", vec![Entry::file("ui/\u{e9}"), Entry::file("ui/e\u{301}")], "collides with"),
        ("file as folder", vec![Entry::file("a"), Entry::file("a/b")], paths),
    ];
    for (what, entries, text) in cases {
        refused(&host, what, small().archive_behind(&entries).await, "unsafe_path", text).await;
    }
    assert!(!outside.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archives_that_are_broken_or_ambiguous_are_refused_without_a_trace() {
    let host = Host::start().await;
    let good = small().archive().await;
    let mut flipped = good.clone();
    let last = flipped.len() - 6;
    flipped[last] ^= 1;
    let mut negative = Entry::file("a").header();
    negative.as_old_mut().size = [0xff; 12];
    negative.set_cksum();
    let mut wrong_sum = Entry::file("a").header();
    wrong_sum.as_old_mut().cksum = *b"0000001\0";
    let pax = Entry { bytes: b"99 path=a\n".to_vec(), ..Entry::new(EntryType::XHeader, "pax") };
    for (what, archive, text) in [
        ("text", b"hello".to_vec(), "not a gzip-compressed archive"),
        ("empty field", Vec::new(), "not a gzip-compressed archive: the file is empty"),
        ("cut", good[..good.len() / 2].to_vec(), "pkgtar: bad archive: the gzip stream is cut off"),
        ("wrong gzip checksum", flipped, "not a gzip-compressed archive"),
        ("rubbish behind", [good.as_slice(), b"rubbish"].concat(), "not a gzip-compressed archive"),
        ("gzip of text", gzip(b"hello").await, "bad archive"),
        ("gzip of nothing", gzip(b"").await, "bad archive"),
        ("negative size", gzip(negative.as_bytes()).await, "bad archive"),
        ("header checksum", gzip(wrong_sum.as_bytes()).await, "bad archive"),
        ("pax length", small().archive_behind(&[pax, Entry::file("b")]).await, "bad archive"),
        ("data behind the end", gzip(&[&[0; 1024][..], b"x"].concat()).await, "bad archive"),
    ] {
        refused(&host, what, archive, "bad_archive", text).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checksums_must_cover_every_file_and_match() {
    let host = Host::start().await;
    let package = small().file("ui/a.js", "a");
    let checksums = package.checksums();
    let without: String =
        checksums.lines().filter(|line| !line.ends_with("ui/a.js")).map(|l| format!("{l}\n")).collect();
    let with = |line: &str| format!("{checksums}{line}\n");
    let zeros = "0".repeat(64);
    for (what, text, code, error) in [
        ("unlisted", without.clone(), "file_not_listed", "file not listed in checksums.txt: ui/a.js"),
        ("mismatch", format!("{without}{zeros}  ui/a.js\n"), "checksum_mismatch", "checksum mismatch: ui/a.js"),
        ("absent", with(&format!("{zeros}  gone")), "listed_file_missing", "references missing file gone"),
        ("malformed", with("nonsense"), "malformed_checksums", "malformed checksums.txt line: \"nonsense\""),
        ("binary mode", with(&format!("{zeros} *x")), "malformed_checksums", "list the bare path"),
        ("twice", with(&format!("{zeros}  ui/a.js")), "malformed_checksums", "the path is listed twice"),
        ("escaping", with(&format!("{zeros}  ../x")), "unsafe_path", "has a \"..\" part"),
        ("empty", String::new(), "file_not_listed", "file not listed in checksums.txt: "),
    ] {
        refused(&host, what, package.archive_with_checksums(&text).await, code, error).await;
    }
    let bare = gzip(&tar(&[("manifest.yaml", b"id: demo")])).await;
    refused(&host, "no checksums", bare, "missing_checksums", "pkgtar: missing checksums.txt").await;
    let bare = gzip(&tar(&[("checksums.txt", b"")])).await;
    refused(&host, "no manifest", bare, "missing_manifest", "pkgtar: missing manifest.yaml").await;
    let upper = checksums.split_inclusive('\n').map(|line| line[..64].to_uppercase() + &line[64..]).collect::<String>();
    host.upload(package.archive_with_checksums(&upper).await).await.expect(201);
}

/// An archive of these files and nothing else.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in files {
        bytes.extend_from_slice(Entry { bytes: content.to_vec(), ..Entry::file(*name) }.header().as_bytes());
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manifest_with_several_violations_is_told_all_of_them() {
    let host = Host::start().await;
    let broken = "id: Bad Id\napi_version: 2\nversion: data\ncategories: [games]\nbase_url: http://x\n\
        runtime: {type: binary, executables: {linux-amd64: /abs}}\nwebhooks: [{key: a}, {key: a, access: maybe}]\n\
        ui: {bundle: x.js}\nmin_kandev_version: abc\n";
    let answer = host.upload(small().manifest(|_| broken.to_owned()).archive().await).await.expect(400);
    assert_eq!(answer["code"], "manifest_invalid");
    let text = answer["error"].as_str().unwrap();
    for violation in [
        "invalid plugin id \"Bad Id\"",
        "unsupported api_version 2: only 1 is supported",
        "version \"data\" must not be \"data\"",
        "unknown category \"games\"",
        "base_url must be empty for a runtime-managed plugin",
        "runtime.executables[\"linux-amd64\"]: path \"/abs\" must be relative",
        "duplicate webhook key \"a\"",
        "webhook \"a\" access \"maybe\" is invalid",
        "ui.bundle \"x.js\" must be a root-relative path",
        "min_kandev_version \"abc\" is not a release version",
    ] {
        assert!(text.contains(violation), "{violation}: {text}");
    }
    assert_eq!(text.lines().count(), 10, "one a line: {text}");
    assert_no_trace(&host, "violations").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_that_no_reader_should_trust_are_refused_without_a_trace() {
    let host = Host::start().await;
    let bomb = (1..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
        let aliases = vec![format!("*a{}", n - 1); 9].join(", ");
        format!("{text}a{n}: &a{n} [{aliases}]\n")
    });
    let add = |text: &'static str| small().manifest(|manifest| manifest + text);
    let id = |id: &'static str| small().manifest(move |text| text.replace("id: \"demo\"", &format!("id: \"{id}\"")));
    for (what, package, code, text) in [
        ("alias bomb", small().manifest(|text| text + &bomb), "manifest_invalid", ""),
        ("nesting", small().manifest(|t| t + "x: " + &"[".repeat(10_000)), "manifest_invalid", ""),
        ("duplicate key", add("capabilities: {secrets: true}\n"), "manifest_invalid", "capabilities"),
        ("two documents", add("---\nid: other\n"), "manifest_invalid", ""),
        ("no yaml", small().manifest(|_| "\u{0}{".to_owned()), "manifest_invalid", ""),
        ("empty", small().manifest(|_| String::new()), "manifest_invalid", ""),
        ("reserved id", id("install"), "manifest_invalid", "install"),
        ("escaping id", id("../x"), "manifest_invalid", "invalid plugin id"),
        ("long id", id(&*"x".repeat(129).leak()), "manifest_invalid", "128"),
        (
            "other platform",
            small().manifest(|text| text.replace("linux-amd64", "darwin-amd64").replace("linux-arm64", "darwin-arm64")),
            "platform_unsupported",
            "host platform not supported by package: linux-",
        ),
        ("no program", small().without(&executable_path()), "executable_missing", "not found in package"),
        (
            "newer host wanted",
            add("min_kandev_version: v0.91.1\n"),
            "host_too_old",
            "requires kandev >= v0.91.1, running 0.91.0",
        ),
    ] {
        let answer = host.upload(package.archive().await).await;
        assert_eq!((answer.status, &answer.body["code"]), (400, &json!(code)), "{what}: {}", answer.body);
        assert!(answer.body["error"].as_str().unwrap().contains(text), "{what}: {}", answer.body);
        assert_no_trace(&host, what).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_expands_beyond_a_limit_is_refused_at_the_limit_without_a_trace() {
    let host = Host::start().await;
    let member = gzip(&vec![0; 64 * MIB]).await;
    let zeros = member.repeat(32);
    assert!(zeros.len() < 12 * MIB, "2 GiB of zeros are small when compressed: {}", zeros.len());
    let mut huge = Entry::file("huge").header();
    huge.set_size(2048 * MIB as u64);
    huge.set_cksum();
    let bomb = [gzip(huge.as_bytes()).await, zeros.clone()].concat();
    refused(&host, "one huge file", bomb, "package_expands_too_large", "536870912 bytes").await;
    refused(&host, "zeros", zeros, "bad_archive", "data after the end of the archive").await;

    // Entries that are lawful each, over the limit together.
    let mut parts = Vec::new();
    for n in 0..9 {
        let mut header = Entry::file(format!("part{n}")).header();
        header.set_size(64 * MIB as u64);
        header.set_cksum();
        parts.extend(gzip(header.as_bytes()).await);
        parts.extend_from_slice(&member);
    }
    refused(&host, "many files", parts, "package_expands_too_large", "max total size of 536870912 bytes").await;
    let empty: Vec<u8> =
        (0..10_001).flat_map(|n| *Entry::new(EntryType::Regular, format!("f/{n}")).header().as_bytes()).collect();
    refused(&host, "entries", gzip(&empty).await, "too_many_entries", "10000 entries").await;

    for (name, limit) in [("manifest.yaml", 2 * MIB), ("checksums.txt", 2 * MIB), ("checksums.txt.sig", 4096)] {
        let archive = gzip(&tar(&[(name, &vec![b'#'; limit + 1])])).await;
        let text = format!("{name} exceeds max size of {limit} bytes").replace(name, &format!("\"{name}\""));
        refused(&host, name, archive, "package_expands_too_large", &text).await;
    }
}

/// A multipart body with these fields.
fn form(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in fields {
        let head = format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"p\"\r\n\r\n");
        bytes.extend([head.as_bytes(), content, b"\r\n"].concat());
    }
    [bytes.as_slice(), b"--b--\r\n"].concat()
}

const FORM: &str = "Content-Type: multipart/form-data; boundary=b";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_hold_no_package_are_refused_with_the_way_out() {
    let host = Host::start().await;
    let login = format!("Authorization: Bearer {TOKEN}");
    let json_type = "Content-Type: application/json";
    let no_url = "invalid payload: url required (or a multipart \"package\" upload)";
    let (good, missing) = (small().archive().await, "missing multipart field \"package\"");
    for (what, kind, body, code, text) in [
        ("nothing", "X-None: 1", vec![], "invalid_payload", no_url),
        ("empty json", json_type, b"{}".to_vec(), "invalid_payload", no_url),
        ("bad json", json_type, b"{".to_vec(), "invalid_payload", no_url),
        ("empty url", json_type, b"{\"url\":\" \"}".to_vec(), "invalid_payload", no_url),
        ("url of a wrong type", json_type, b"{\"url\":1}".to_vec(), "invalid_payload", no_url),
        (
            "a misspelt digest",
            json_type,
            b"{\"url\":\"https://a.test/p\",\"package_sha265\":\"\"}".to_vec(),
            "invalid_payload",
            "unknown field `package_sha265`, expected `url` or `package_sha256`",
        ),
        ("the archive alone", "Content-Type: application/gzip", good.clone(), "invalid_payload", no_url),
        ("other field", FORM, form(&[("file", b"x")]), "missing_package", missing),
        ("no field", FORM, b"--b--\r\n".to_vec(), "missing_package", missing),
        ("two packages", FORM, form(&[("package", &good), ("package", &good)]), "two_packages", "upload one package"),
        ("no boundary", "Content-Type: multipart/form-data", form(&[]), "invalid_multipart", "invalid multipart body"),
        ("ftp", json_type, b"{\"url\":\"ftp://a/b\"}".to_vec(), "invalid_url", "unsupported scheme \"ftp\""),
        ("file", json_type, b"{\"url\":\"file:///etc/passwd\"}".to_vec(), "invalid_url", "unsupported scheme \"file\""),
        ("no host", json_type, b"{\"url\":\"http://\"}".to_vec(), "invalid_url", "invalid install URL"),
        ("no address", json_type, b"{\"url\":\"nonsense\"}".to_vec(), "invalid_url", "invalid install URL"),
    ] {
        let answer = exchange(&host, request("POST", "/api/plugins/install", &[&login, kind], &body)).await;
        assert_eq!(answer.status, 400, "{what}: {answer:?}");
        let error = answer.expect_error(400, code);
        assert!(error.contains(text), "{what}: {error}");
        assert_no_trace(&host, what).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_over_the_compressed_limit_is_413_with_the_limit_and_the_connection_is_answered() {
    let login = format!("Authorization: Bearer {TOKEN}");
    let host = Host::start_with(Settings::toml("[limits]\npackage_compressed = 1000000\n")).await;
    let text = "pkgtar: package exceeds max compressed size of 1000000 bytes";
    for size in [1_000_001, 8_000_000] {
        let body = form(&[("package", &vec![b'x'; size])]);
        let whole = request("POST", "/api/plugins/install", &[&login, FORM], &body);
        let answer = Raw::connect(&host).await.send_and_read(whole).await;
        assert_eq!(answer.expect_error(413, "package_too_large"), text);

        let head = format!(
            "POST /api/plugins/install HTTP/1.1\r\nHost: x\r\n{login}\r\n{FORM}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let whole = [head.as_bytes(), &chunked(&body, 60_000)].concat();
        let answer = Raw::connect(&host).await.send_and_read(whole).await;
        assert_eq!(answer.expect_error(413, "package_too_large"), text, "in chunks");
    }
    assert_no_trace(&host, "413").await;

    let host = Host::start().await;
    let head = format!(
        "POST /api/plugins/install HTTP/1.1\r\nHost: x\r\n{login}\r\n{FORM}\r\nContent-Length: 110000000\r\n\r\n"
    );
    let answer = exchange(&host, head).await;
    assert!(answer.expect_error(413, "package_too_large").contains("104857600 bytes"), "the default limit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_of_95_mb_installs_with_the_default_limits() {
    let host = Host::start().await;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let noise: Vec<u8> = (0..90_000_000 / 8)
        .flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        })
        .collect();
    let archive = Package::of(Guest::Rust, "demo", "1.0.0").file("assets/noise", noise).archive().await;
    assert!((92_000_000..104_857_600).contains(&archive.len()), "{}", archive.len());
    assert_eq!(host.upload(archive).await.expect(201)["plugin"]["status"], "active");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modes_of_the_archive_do_not_count() {
    let host = Host::start().await;
    let package = Package::of(Guest::Rust, "demo", "1.0.0")
        .mode(&executable_path(), 0o6644)
        .file("assets/tool", "#!/bin/sh\n")
        .mode("assets/tool", 0o6777);
    host.install(&package).await;
    let mode = |path: &str| {
        let path = host.plugins().join("demo/1.0.0").join(path);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    };
    assert_eq!((mode(&executable_path()), mode("assets/tool"), mode("manifest.yaml")), (0o755, 0o644, 0o644));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_upgrade_leaves_the_running_version_alone() {
    let host = Host::start().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let (before, pid) = (host.record("demo").await, host.plugin_pid("demo"));
    let newer = Package::of(Guest::Rust, "demo", "2.0.0");
    let too_new = newer.clone().manifest(|text| text + "min_kandev_version: \"1.0\"\n");
    assert_eq!(host.upload(too_new.archive().await).await.expect(400)["code"], "host_too_old");
    let spoilt = newer.archive_with_checksums("nonsense\n").await;
    assert_eq!(host.upload(spoilt).await.expect(400)["code"], "malformed_checksums");
    let again = host.upload(Package::of(Guest::Rust, "demo", "1.0.0").archive().await).await.expect(409);
    let path = host.plugins().join("demo/1.0.0");
    assert_eq!(again["error"], format!("pkgtar: version already installed: {}", path.display()));
    assert_eq!((host.record("demo").await, host.plugin_pid("demo")), (before, pid));
    assert!(!host.plugins().join("demo/2.0.0").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_on_this_machine_is_refused_in_every_spelling_and_never_visited() {
    let host = Host::start().await;
    let server = FileServer::start(&[("/p", File::Content(small().archive().await))]).await;
    let port = server.port();
    for authority in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::]",
        "0.0.0.0",
        "0",
        "127.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "user:hunter2@127.0.0.1",
        "10.0.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "[fe80::1]",
        "[fd00::1]",
    ] {
        let url = format!("http://{authority}:{port}/p");
        let body = host.post("/api/plugins/install", json!({"url": url})).await.expect(400);
        assert_eq!(body["code"], "address_refused", "{authority}: {body}");
        let text = body["error"].as_str().unwrap();
        assert!(text.contains("install.allow_private_addresses") && !text.contains("hunter2"), "{text}");
    }
    assert_eq!(server.take_hits(), Vec::<String>::new());
    assert!(!host.log().contains("hunter2"));
    assert_no_trace(&host, "addresses").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installs_by_address_follow_a_few_redirects_and_stop_at_every_limit() {
    let toml = "[install]\nallow_private_addresses = true\n[limits]\npackage_compressed = 20000000\n";
    let host = Host::start_with(Settings::toml(toml)).await;
    let archive = Package::of(Guest::Rust, "demo", "1.0.0").archive().await;
    let to = |path: &str| File::Redirect(path.to_owned());
    let server = FileServer::start(&[
        ("/p", File::Content(archive)),
        ("/1", to("/2")),
        ("/2", to("p")),
        ("/loop", to("/loop")),
        ("/file", to("file:///etc/passwd")),
        ("/broken", File::Status(302)),
        ("/gone", File::Status(410)),
        ("/endless", File::Endless),
        ("/large", File::Content(vec![0; 20_000_001])),
        ("/text", File::Content(b"hello".to_vec())),
    ])
    .await;
    let install = |path: &'static str| host.post("/api/plugins/install", json!({"url": server.url(path)}));
    for (path, status, code, text) in [
        ("/loop", 502, "download_failed", "more than 5 redirects"),
        ("/file", 400, "invalid_url", "unsupported scheme \"file\""),
        ("/broken", 502, "download_failed", "server responded 302 without a usable Location"),
        ("/gone", 502, "download_failed", "server responded 410"),
        ("/endless", 413, "package_too_large", "max download size of 20000000 bytes"),
        ("/large", 413, "package_too_large", "max download size of 20000000 bytes"),
        ("/text", 400, "bad_archive", "not a gzip-compressed archive"),
    ] {
        let body = install(path).await.expect(status);
        assert_eq!(body["code"], code, "{path}: {body}");
        assert!(body["error"].as_str().unwrap().contains(text), "{path}: {body}");
        assert_no_trace(&host, path).await;
        let expected = if path == "/loop" { 6 } else { 1 };
        assert_eq!(server.take_hits(), vec![path; expected]);
    }
    let body = install("/1").await.expect(201);
    assert_eq!((&body["plugin"]["id"], &body["plugin"]["status"]), (&json!("demo"), &json!("active")));
    assert_eq!(server.take_hits(), ["/1", "/2", "/p"]);
}

/// Installs what cannot run; fails unless it is 201 with a warning, and gives what record and warning say alike.
async fn lame(host: &Host, package: &Package) -> String {
    let body = host.upload(package.archive().await).await.expect(201);
    assert_eq!(body["plugin"]["status"], "error", "{body}");
    let record = host.plugin(package.id()).await;
    assert_eq!(record["last_error"], body["plugin"]["last_error"]);
    assert!(record["last_error_at"].is_string(), "{record}");
    let warning = body["warning"].as_str().expect("a warning").to_owned();
    assert!(!warning.contains(char::is_control) && warning.len() <= 2048, "{warning}");
    assert_eq!(record["last_error"], Value::String(warning.clone()));
    let path = format!("/api/plugins/{}/webhooks/echo", package.id());
    exchange(host, request("GET", &path, &[], b"")).await.expect_error(503, "plugin_not_running");
    warning
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_that_cannot_run_here_are_installed_with_an_error_that_tells_why() {
    let host = Host::start_with(Settings::toml("[timing]\nstart_timeout = \"3s\"\nrestart_delays = []\n")).await;
    let (foreign, name) = if cfg!(target_arch = "aarch64") { (62, "amd64") } else { (183, "arm64") };
    let mut elf = std::fs::read(Guest::Rust.executable().unwrap()).unwrap()[..4096].to_vec();
    elf[18] = foreign;
    for (id, program, texts) in [
        ("arch", elf, vec![format!("is built for {name}, this machine is"), "/arch/1.0.0/server/".into()]),
        ("text", b"just text\n".to_vec(), vec!["not a program for linux".into(), "/text/1.0.0/server/".into()]),
        ("empty", Vec::new(), vec!["is an empty file, not a program".into()]),
        ("windows", b"MZ\x90\0".to_vec(), vec!["is a windows program".into()]),
        ("nointerp", b"#!/nowhere/sh\n".to_vec(), vec!["names an interpreter or loader that does not exist".into()]),
        (
            "exits",
            b"#!/bin/sh\necho why it ends >&2\nexit 7\n".to_vec(),
            vec!["ended before its handshake line".into(), "7".into(), "why it ends".into()],
        ),
        ("closes", b"#!/bin/sh\nexec >&-\nsleep 60\n".to_vec(), vec!["closed its stdout without a handshake".into()]),
        ("silent", b"#!/bin/sh\nexec sleep 60\n".to_vec(), vec!["no handshake line within 3000 ms".into()]),
        ("prints", b"#!/bin/sh\necho hello there\nexec sleep 60\n".to_vec(), vec!["hello there".into()]),
        ("old", b"#!/bin/sh\necho '1|1|unix|/tmp/x|netrpc'\nexec sleep 60\n".to_vec(), vec!["net/rpc".into()]),
        ("tcp", b"#!/bin/sh\necho '1|1|tcp|127.0.0.1:1|grpc'\nexec sleep 60\n".to_vec(), vec!["listens on tcp".into()]),
        ("core", b"#!/bin/sh\necho '2|1|unix|/tmp/x|grpc'\nexec sleep 60\n".to_vec(), vec!["2".into()]),
    ] {
        let warning = lame(&host, &Package::with_program(program, id, "1.0.0")).await;
        for text in texts {
            assert!(warning.contains(&text), "{id}: {text}: {warning}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_failed_start_tells_is_redacted_everywhere() {
    let host = Host::start_with(Settings::toml("[timing]\nrestart_delays = []\n")).await;
    let program = "#!/bin/sh\necho 'api_key=hunter2 in /home/alice/x' >&2\nexit 7\n";
    let warning = lame(&host, &Package::with_program(program, "leaks", "1.0.0")).await;
    assert!(warning.contains("api_key=[REDACTED] in ~/x"), "{warning}");
    let body = host.command("leaks", "enable").await.expect(500);
    let text = body["error"].as_str().unwrap();
    assert!(text.contains("api_key=[REDACTED] in ~/x") && !text.contains("hunter2"), "{text}");
}

on_both!(a_plugin_that_panics_or_prints_before_its_handshake_is_quoted, |guest| {
    let host = Host::start_with(Settings::toml("[timing]\nrestart_delays = []\n")).await;
    let panics = Package::of(guest, "panics", "1.0.0").switches(&json!({"panic_before_handshake": "boom at once"}));
    let warning = lame(&host, &panics).await;
    assert!(warning.contains("ended before its handshake line") && warning.contains("boom at once"), "{warning}");
    let prints = Package::of(guest, "prints", "1.0.0").switches(&json!({"print_before_handshake": "hello\u{7} there"}));
    let warning = lame(&host, &prints).await;
    assert!(warning.contains("hello") && !warning.contains("handshake line:"), "{warning}");
    eventually("both are reaped", || async { host.plugin_processes().is_empty() }).await;
});
