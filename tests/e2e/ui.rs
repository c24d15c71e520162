//! Files of plugins for browsers, and what the page begins with (contract/rest.md §5 and §10; field case 77, and 68
//! but for tags, which send no token).

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::{
    Guest, Host, Package, Settings,
    host::TOKEN,
    package::executable_path,
    raw::{Raw, RawAnswer, exchange, request},
};

const UI: &str = "icon: /pics/icon.svg\nrepository_providers: []\nui:\n  bundle: /ui/bundle.js\n  styles: [/ui/a.css, /dist/b.css]\n";

/// A package with a part in the page.
fn package(version: &str) -> Package {
    Package::of(Guest::Rust, "demo", version)
        .manifest(|text| text + UI)
        .file("ui/bundle.js", format!("register('{version}')"))
        .file("ui/a.css", "a{}")
        .file("dist/b.css", "b{}")
        .file("dist/hidden.js", "hidden")
        .file("pics/icon.svg", "<svg/>")
        .file("assets/data.bin", vec![0, 1, 2, 255])
        .file("ui/sub/page.html", "<p>")
        .file("ui/%2e%2e", "a lawful name")
}

fn login() -> String {
    format!("Authorization: Bearer {TOKEN}")
}

async fn get_with(host: &Host, path: &str, headers: &[&str]) -> RawAnswer {
    let login = login();
    let headers: Vec<&str> = headers.iter().copied().chain([login.as_str()]).collect();
    exchange(host, request("GET", &format!("/api/plugins/demo/{path}"), &headers, b"")).await
}

async fn get(host: &Host, path: &str) -> RawAnswer {
    get_with(host, path, &[]).await
}

async fn head(host: &Host, path: &str) -> RawAnswer {
    let mut raw = Raw::connect(host).await;
    raw.send(request("HEAD", &format!("/api/plugins/demo/{path}"), &[&login()], b"")).await;
    raw.head_answer().await
}

async fn with_demo() -> Host {
    let host = Host::start().await;
    host.install(&package("1.0.0")).await;
    host
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_gets_bundle_styles_icon_and_what_lies_below_ui_and_assets_with_types_by_name() {
    let host = with_demo().await;
    for (path, kind, body) in [
        ("bundle", "text/javascript; charset=utf-8", b"register('1.0.0')".as_slice()),
        ("bundle?v=0.9", "text/javascript; charset=utf-8", b"register('1.0.0')"),
        ("ui/ui/bundle.js", "text/javascript; charset=utf-8", b"register('1.0.0')"),
        ("ui/ui/a.css", "text/css; charset=utf-8", b"a{}"),
        ("ui/a.css", "text/css; charset=utf-8", b"a{}"),
        ("ui/dist/b.css?x=1&y", "text/css; charset=utf-8", b"b{}"),
        ("ui/pics/icon.svg", "image/svg+xml", b"<svg/>"),
        ("ui/assets/data.bin", "application/octet-stream", b"\x00\x01\x02\xff"),
        ("ui/ui/sub/page.html", "text/html; charset=utf-8", b"<p>"),
        ("%75i/%75i/%61.css", "text/css; charset=utf-8", b"a{}"),
        ("ui/ui/%252e%252e", "application/octet-stream", b"a lawful name"),
    ] {
        let answer = get(&host, path).await;
        assert_eq!((answer.status, answer.body.as_slice()), (200, body), "{path}");
        assert_eq!(answer.values("content-type"), [kind], "{path}");
        assert_eq!(answer.values("x-content-type-options"), ["nosniff"], "{path}");
        assert_eq!(answer.values("cross-origin-resource-policy"), ["same-origin"], "{path}");
        assert!(answer.values("etag")[0].starts_with('"'), "{path}: {answer:?}");
    }
}

/// Paths below `/ui/`, as they stand in the request.
const NOT_SERVED: &str = "
    manifest.yaml checksums.txt dist/hidden.js dist ui ui/ assets ui/sub ui/sub/ ui/none.js ../manifest.yaml
    ui/../manifest.yaml ui/../../manifest.yaml ./manifest.yaml ui/./a.css ui//a.css /ui/a.css ui%2fa.css
    ui%2F..%2Fmanifest.yaml %2e%2e/manifest.yaml %2e%2e%2fmanifest.yaml ui/%2e%2e/manifest.yaml
    ui/.%2e/manifest.yaml ui/%2E./manifest.yaml %252e%252e/manifest.yaml ui/%252e%252e%252fmanifest.yaml
    ui/..%5cmanifest.yaml ui/..;/manifest.yaml ui/%c0%ae%c0%ae/manifest.yaml ui/%e0%80%ae%e0%80%ae/manifest.yaml
    ui/%f0%80%80%ae%f0%80%80%ae/manifest.yaml ui/..%c0%af..%c0%afmanifest.yaml ui/..%e0%80%afmanifest.yaml
    ui/..%c1%9cmanifest.yaml ui/..%5Cmanifest.yaml ui/..%255cmanifest.yaml ui/%5c..%5cmanifest.yaml ui\\a.css
    ui/..\\manifest.yaml ui/%25252e%25252e/manifest.yaml ui/%2e%252e/manifest.yaml ui/.%252e%2fmanifest.yaml
    ui/%ef%bc%8e%ef%bc%8e/manifest.yaml ui/a.css%2500 ui/a.css%c0%80 ui/a.css%c0%80.js ui/%00/a.css %00
    ui/%uff0e%uff0e/manifest.yaml ui/a.css%00 ui/a.css%00.js ui/a.css/ ui/a.css. ui/a.css%20 MANIFEST.YAML
    %6danifest.yaml ../../secret.txt ../../../secret.txt /etc/hostname %2fetc/hostname ui/../../../../secret.txt
    data/starts.jsonl ../data/starts.jsonl
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_else_of_the_package_or_the_disk_is_served_however_it_is_spelt() {
    let host = with_demo().await;
    let executable = executable_path();
    let secret = host.home().join("secret.txt");
    std::fs::write(&secret, "s3cret").unwrap();
    for path in NOT_SERVED.split_whitespace().chain(["", executable.as_str()]) {
        let answer = get(&host, &format!("ui/{path}")).await;
        answer.expect_error(404, "ui_file_not_found");
    }
    let other = get(&host, "webhooks/../ui/manifest.yaml").await;
    assert_eq!(other.status, 404, "{other:?}");
    assert_eq!(host.anonymous(reqwest::Method::GET, "/api/plugins/demo/ui/webhooks/../ui/a.css").await.status, 401);
    for path in ["bundle", "ui/ui/a.css"] {
        host.anonymous(reqwest::Method::GET, &format!("/api/plugins/demo/{path}")).await.expect(401);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executable_below_ui_is_not_downloadable() {
    let host = Host::start().await;
    let below = "ui/server";
    let package = Package::of(Guest::Rust, "demo", "1.0.0");
    let program = std::fs::read(Guest::Rust.executable().unwrap()).unwrap();
    let package = package
        .manifest(|text| text.replace(&executable_path(), below))
        .without(&executable_path())
        .file(below, program)
        .mode(below, 0o755)
        .file("ui/a.css", "a{}");
    host.install(&package).await;
    for path in ["ui/ui/server", "ui/server", "ui/ui/%73erver", "ui/ui/SERVER"] {
        get(&host, path).await.expect_error(404, "ui_file_not_found");
    }
    assert_eq!(get(&host, "ui/a.css").await.status, 200);
    assert_eq!(get(&host, "bundle").await.expect_error(404, "no_ui_bundle"), "plugin has no UI bundle");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_link_in_a_folder_that_was_put_there_by_hand_is_followed() {
    let host = Host::start().await;
    let folder = host.plugins().join("demo/1.0.0");
    std::fs::create_dir_all(&folder).unwrap();
    let archive = host.home().join("put.tar.gz");
    std::fs::write(&archive, package("1.0.0").archive().await).unwrap();
    let done = std::process::Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder).status().unwrap();
    assert!(done.success());
    std::fs::write(host.home().join("secret.txt"), "s3cret").unwrap();
    symlink(host.home().join("secret.txt"), folder.join("ui/secret.txt")).unwrap();
    symlink("../manifest.yaml", folder.join("ui/manifest.txt")).unwrap();
    symlink("/etc", folder.join("ui/etc")).unwrap();
    symlink("sub", folder.join("ui/inside")).unwrap();
    std::fs::rename(folder.join("assets"), folder.join("real")).unwrap();
    symlink("real", folder.join("assets")).unwrap();
    host.post("/api/plugins/sync", json!(null)).await.expect(200);
    host.command("demo", "enable").await.expect(200);
    let linked = ["ui/secret.txt", "ui/manifest.txt", "ui/etc/hostname", "ui/inside/page.html", "assets/data.bin"];
    for path in linked {
        get(&host, &format!("ui/{path}")).await.expect_error(404, "ui_file_not_found");
    }
    assert_eq!(get(&host, "ui/ui/sub/page.html").await.body, b"<p>");
    std::fs::remove_file(folder.join("ui/bundle.js")).unwrap();
    symlink("../manifest.yaml", folder.join("ui/bundle.js")).unwrap();
    get(&host, "bundle").await.expect_error(404, "ui_file_not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_in_the_address_is_kept_and_everything_else_is_asked_for_again() {
    let host = with_demo().await;
    for (path, caching) in [
        ("bundle?v=1.0.0", "private, max-age=31536000, immutable"),
        ("ui/ui/a.css?v=1.0.0&x", "private, max-age=31536000, immutable"),
        ("bundle", "private, no-cache"),
        ("bundle?v=1.0.1", "private, no-cache"),
        ("bundle?v=1.0.0&v=1.0.0", "private, no-cache"),
    ] {
        assert_eq!(get(&host, path).await.values("cache-control"), [caching], "{path}");
    }
    let tag = get(&host, "bundle").await.values("etag")[0].to_owned();
    for known in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
        let answer = get_with(&host, "bundle", &[&format!("If-None-Match: {known}")]).await;
        assert_eq!((answer.status, answer.values("etag"), answer.body.len()), (304, vec![tag.as_str()], 0), "{known}");
    }
    for other in ["\"x\"", "nonsense"] {
        assert_eq!(get_with(&host, "bundle", &[&format!("If-None-Match: {other}")]).await.status, 200, "{other}");
    }

    host.install(&package("2.0.0")).await;
    let answer = get_with(&host, "bundle", &[&format!("If-None-Match: {tag}")]).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"register('2.0.0')".as_slice()));
    assert_ne!(answer.values("etag"), [tag.as_str()]);
    assert_eq!(get(&host, "bundle?v=1.0.0").await.values("cache-control"), ["private, no-cache"]);

    // The same version again, with another content.
    host.uninstall("demo").await.expect(200);
    get(&host, "bundle").await.expect_error(404, "plugin_not_found");
    host.install(&package("2.0.0").file("ui/bundle.js", "other")).await;
    assert_eq!(get(&host, "bundle").await.body, b"other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn head_tells_the_length_and_a_range_gives_a_part_of_small_and_large_files() {
    let host = Host::start_with(Settings::toml("[limits]\nui_cache_bytes = 1048576\n")).await;
    let large: Vec<u8> = (0..2_000_000u32).map(|n| (n % 251) as u8).collect();
    host.install(&package("1.0.0").file("assets/large.bin", large.clone())).await;
    for (path, content) in [("ui/assets/large.bin", large.as_slice()), ("bundle", b"register('1.0.0')")] {
        let whole = get(&host, path).await;
        assert_eq!(whole.body, content, "{path}");
        let (size, tag) = (content.len(), whole.values("etag")[0]);
        let without = head(&host, path).await;
        assert_eq!(without.status, 200);
        assert_eq!(without.values("content-length"), [size.to_string()], "{path}");
        for name in ["etag", "content-type", "cache-control", "accept-ranges", "x-content-type-options"] {
            assert_eq!(without.values(name), whole.values(name), "{path} {name}");
        }
        for (range, start, end) in [("bytes=0-0", 0, 1), ("bytes=3-", 3, size), ("bytes=-5", size - 5, size)] {
            let part = get_with(&host, path, &[&format!("Range: {range}")]).await;
            assert_eq!((part.status, part.body.as_slice()), (206, &content[start..end]), "{path} {range}");
            assert_eq!(part.values("content-range"), [format!("bytes {start}-{}/{size}", end - 1)]);
        }
        let beyond = get_with(&host, path, &[&format!("Range: bytes={size}-")]).await;
        beyond.expect_error(416, "invalid_range");
        assert_eq!(beyond.values("content-range"), [format!("bytes */{size}")]);
        for headers in [
            vec!["Range: bytes=0-1,3-4".to_owned()],
            vec!["Range: lines=1-2".to_owned()],
            vec!["Range: bytes=0-1".to_owned(), "If-Range: \"old\"".to_owned()],
        ] {
            let headers: Vec<_> = headers.iter().map(String::as_str).collect();
            assert_eq!(get_with(&host, path, &headers).await.body.len(), size, "{headers:?}");
        }
        let still = get_with(&host, path, &["Range: bytes=0-1", &format!("If-Range: {tag}")]).await;
        assert_eq!((still.status, still.body.len()), (206, 2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_is_off_shows_nothing_and_an_unknown_one_is_not_found() {
    let host = with_demo().await;
    assert_eq!(get(&host, "bundle").await.status, 200);
    host.command("demo", "disable").await.expect(200);
    for path in ["bundle", "ui/ui/a.css", "ui/none"] {
        assert_eq!(get(&host, path).await.expect_error(503, "plugin_not_active"), "plugin is not active");
    }
    for path in ["/api/plugins/none/bundle", "/api/plugins/none/ui/ui/a.css"] {
        assert_eq!(host.get(path).await.expect(404), json!({"error": "plugin not found", "code": "plugin_not_found"}));
    }
    host.command("demo", "enable").await.expect(200);
    assert_eq!(get(&host, "bundle").await.status, 200);
}

/// Field case 77: a page that has the address has the script; it asks again for another version only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_of_a_bundle_changes_with_the_version_and_only_then() {
    let mut host = with_demo().await;
    let first = app_state(&host, "").await["plugins"].clone();
    assert_eq!(first[0]["bundleUrl"], "/api/plugins/demo/bundle?v=1.0.0");
    for _ in 0..3 {
        host.command("demo", "disable").await.expect(200);
        assert_eq!(app_state(&host, "").await.get("plugins"), None);
        host.command("demo", "enable").await.expect(200);
        assert_eq!(app_state(&host, "").await["plugins"], first, "each plugin once, as before");
    }
    host.stop().await;
    host.spawn().await;
    host.status("demo", "active").await;
    assert_eq!(app_state(&host, "").await["plugins"], first);
    host.install(&package("1.0.1")).await;
    let updated = app_state(&host, "").await["plugins"].clone();
    assert_eq!(
        (updated.as_array().map(Vec::len), &updated[0]["bundleUrl"]),
        (Some(1), &json!("/api/plugins/demo/bundle?v=1.0.1"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manifests_paths_are_cleaned_and_what_cannot_be_served_is_told_and_not_in_the_page() {
    let host = Host::start().await;
    let styles =
        "[//ui//a.css, /./dist/b%2Bc.css, /ui/../ui/a.css, /../../evil1.yml, /%2e%2e/evil1.yml, /manifest.yaml]";
    for bundle in ["/ui//bundle.js", "/./ui/bundle.js", "/dist/../ui/bundle.js"] {
        let ui = format!("ui: {{bundle: {bundle}, styles: {styles}}}\n");
        let package = Package::of(Guest::Rust, "demo", "1.0.0").manifest(|text| text + &ui);
        let package = package.file("ui/bundle.js", "register()").file("ui/a.css", "a{}").file("dist/b+c.css", "b{}");
        let installed = host.install(&package).await;
        let told = |path: &str, why: &str| json!(format!("ui.styles entry \"{path}\" {why}: browsers will not get it"));
        let outside = "leads out of the package or to no file";
        let expected = [
            told("/../../evil1.yml", outside),
            told("/%2e%2e/evil1.yml", outside),
            told("/manifest.yaml", "names a file that is the host's alone"),
        ];
        let lines = installed["warnings"].as_array().unwrap().iter();
        let lines: Vec<_> = lines.filter(|line| line.as_str().unwrap().starts_with("ui.")).cloned().collect();
        assert_eq!(lines, expected, "{bundle}");
        assert_eq!(get(&host, "bundle").await.body, b"register()", "{bundle}");
        let page = app_state(&host, "").await["plugins"][0]["styleUrls"].clone();
        let urls = ["ui/a.css", "dist/b%2Bc.css", "ui/a.css"].map(|path| format!("/api/plugins/demo/ui/{path}"));
        assert_eq!(page, json!(urls));
        for (path, body) in [("ui/ui/a.css", b"a{}"), ("ui/dist/b%2Bc.css", b"b{}")] {
            assert_eq!(get(&host, path).await.body, body, "{path}");
        }
        host.uninstall("demo").await.expect(200);
    }
    for bundle in ["/manifest.yaml", "/../bundle.js", "/none.js"] {
        let ui = format!("ui: {{bundle: {bundle}}}\n");
        let installed = host.install(&Package::of(Guest::Rust, "demo", "1.0.0").manifest(|text| text + &ui)).await;
        let begin = format!("ui.bundle \"{bundle}\" ");
        let lines = installed["warnings"].as_array().unwrap().iter();
        assert_eq!(lines.filter(|line| line.as_str().unwrap().starts_with(&begin)).count(), 1, "{installed}");
        let shown = app_state(&host, "").await.get("plugins").is_some();
        assert_eq!(shown, bundle == "/none.js", "a file may be put there later, a rule stays");
        get(&host, "bundle").await.expect_error(404, "ui_file_not_found");
        host.uninstall("demo").await.expect(200);
    }
}

async fn app_state(host: &Host, query: &str) -> Value {
    host.anonymous(reqwest::Method::GET, &format!("/api/v1/app-state{query}")).await.expect(200)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_begins_with_the_active_plugins_by_id_and_who_is_logged_in() {
    let host = Host::start().await;
    assert_eq!(app_state(&host, "").await.get("plugins"), None);
    host.install(&package("1.0.0+b")).await;
    host.install(&Package::of(Guest::Rust, "bare", "1.0.0")).await;
    let sso = "ui:\n  bundle: /ui/b.js\nauth_providers: [{id: acme, display_name: Acme, initiate: echo}]\n";
    let with_login = |text: String| text.replace("  state: true\n", "  state: true\n  auth: true\n") + sso;
    host.install(&Package::of(Guest::Rust, "alpha", "1.0.0").manifest(with_login).file("ui/b.js", "b")).await;

    let plugins = json!([
        {"id": "alpha", "name": "Fixture", "bundleUrl": "/api/plugins/alpha/bundle?v=1.0.0"},
        {"id": "demo", "name": "Fixture", "bundleUrl": "/api/plugins/demo/bundle?v=1.0.0%2Bb",
         "styleUrls": ["/api/plugins/demo/ui/ui/a.css", "/api/plugins/demo/ui/dist/b.css"], "repositoryProviderIds": []},
    ]);
    let features = json!({"office": false, "auth": true, "plugins": true, "dynamicAgentRouting": false,
        "claudeBackgroundPromptHandoff": false, "claudeMidTurnSteering": false});
    let button = json!({"id": "acme", "displayName": "Acme", "initiateUrl": "/api/plugins/alpha/webhooks/echo"});
    assert_eq!(
        app_state(&host, "?path=/t/task-1").await,
        json!({"version": 1,
            "route": {"kind": "task", "route": "/t/:taskId", "path": "/t/task-1", "params": {"taskId": "task-1"}},
            "runtime": {"apiPrefix": "/api/v1", "webSocketPath": "/ws", "locale": "en"},
            "initialState": {"features": features,
                "auth": {"mode": "enabled", "authenticated": false, "ssoProviders": [button]}},
            "plugins": plugins})
    );
    let known = host.get("/api/v1/app-state").await.expect(200);
    let user = json!({"id": "operator", "email": "", "display_name": "Operator", "role": "admin", "status": "active"});
    assert_eq!(known["initialState"]["auth"], json!({"mode": "enabled", "authenticated": true, "user": user}));
    assert_eq!(host.anonymous(reqwest::Method::GET, "/api/v1/features").await.expect(200), features);

    for entry in plugins.as_array().unwrap() {
        let styles = entry["styleUrls"].as_array().cloned().unwrap_or_default();
        for url in styles.iter().chain([&entry["bundleUrl"]]) {
            host.get(url.as_str().unwrap()).await.expect(200);
        }
    }
    host.command("alpha", "disable").await.expect(200);
    let state = app_state(&host, "").await;
    assert_eq!(state["plugins"], json!([plugins[1]]));
    assert_eq!(state["initialState"]["auth"], json!({"mode": "enabled", "authenticated": false}));
    for (query, told) in [
        ("?path=t", "invalid query: path must begin with a slash"),
        ("?path=", "invalid query: path must begin with a slash"),
        ("?path=/%00", "invalid query: path must not have control characters"),
        ("?path=%ff", "invalid query: it is not UTF-8"),
        ("?path=/%ff", "invalid query: it is not UTF-8"),
    ] {
        let refused = host.anonymous(reqwest::Method::GET, &format!("/api/v1/app-state{query}")).await.expect(400);
        assert_eq!(refused, json!({"error": told, "code": "invalid_query"}), "{query}");
    }
    host.anonymous(reqwest::Method::GET, "/api/v1/app-state?no=1").await.expect(400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_feature_plugins_run_and_have_no_part_in_the_page() {
    let host = Host::start_with(Settings::toml("[features]\nplugins = false\n")).await;
    host.install(&package("1.0.0")).await;
    let state = app_state(&host, "").await;
    assert_eq!((state.get("plugins"), &state["initialState"]["features"]["plugins"]), (None, &json!(false)));
    assert_eq!(get(&host, "bundle").await.status, 200);
}
