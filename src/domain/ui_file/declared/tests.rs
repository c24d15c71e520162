//! Every spelling of a manifest's path means one file, or none that is said why.

use proptest::prelude::*;

use super::*;

const MANIFEST: &str = "{id: acme, api_version: 1, version: 1.0,
    runtime: {type: binary, executables: {linux-amd64: server/p, linux-arm64: ui/bin/p}}}";

fn with(bundle: &str, styles: &[&str]) -> Manifest {
    let mut manifest = manifest::parse(MANIFEST.as_bytes()).unwrap().manifest;
    manifest.ui.bundle = bundle.to_owned();
    manifest.ui.styles = styles.iter().map(ToString::to_string).collect();
    manifest
}

#[test]
fn a_bundle_and_an_icon_are_found_by_each_of_their_spellings() {
    let clean = |path: &str| Ok(EntryPath::of_file(path.as_bytes()).unwrap());
    for (written, expected) in [
        ("/ui/b.js", clean("ui/b.js")),
        ("/ui//b.js", clean("ui/b.js")),
        ("//ui/b.js", clean("ui/b.js")),
        ("/./ui/./b.js", clean("ui/b.js")),
        ("/ui/../b.js", clean("b.js")),
        ("/a/../ui/b.js", clean("ui/b.js")),
        ("/ui/b%20c.js", clean("ui/b%20c.js")),
        ("/ui/b.js?x", clean("ui/b.js?x")),
        ("", Err(Unserved::Unlawful)),
        ("/", Err(Unserved::Unlawful)),
        ("/../b.js", Err(Unserved::Unlawful)),
        ("/ui/../../ui/b.js", Err(Unserved::Unlawful)),
        ("/ui\\b.js", Err(Unserved::Unlawful)),
        ("/manifest.yaml", Err(Unserved::Withheld)),
        ("/ui/../Checksums.txt", Err(Unserved::Withheld)),
        ("/./server//p", Err(Unserved::Withheld)),
        ("/ui/bin/p", Err(Unserved::Withheld)),
    ] {
        let mut manifest = with(written, &[]);
        assert_eq!(bundle(&manifest), expected, "{written}");
        manifest.icon = written.to_owned();
        assert_eq!(icon(&manifest), expected, "{written}");
    }
}

#[test]
fn a_style_is_an_address_that_stays_as_it_is_written_unless_it_has_to_be_cleaned() {
    let manifest = with("", &[]);
    for (written, address, file) in [
        ("/ui/a.css", "/ui/a.css", "ui/a.css"),
        ("/ui/a b.css", "/ui/a b.css", "ui/a b.css"),
        ("/ui/a%20b.css", "/ui/a%20b.css", "ui/a b.css"),
        ("/ui/a%2520b.css", "/ui/a%2520b.css", "ui/a%20b.css"),
        ("/ui/100%.css", "/ui/100%.css", "ui/100%.css"),
        ("/ui/a.css?v=1/../2#x", "/ui/a.css?v=1/../2#x", "ui/a.css"),
        ("//ui//a.css", "/ui/a.css", "ui/a.css"),
        ("/./ui/%2e/a.css?x", "/ui/a.css?x", "ui/a.css"),
        ("/ui/../dist/a.css", "/dist/a.css", "dist/a.css"),
        ("/ui/%2E./dist/a.css", "/dist/a.css", "dist/a.css"),
    ] {
        let file = EntryPath::of_file(file.as_bytes()).unwrap();
        assert_eq!(style(&manifest, written), Ok(Style { address: address.to_owned(), file }), "{written}");
    }
    for (written, why) in [
        ("/../../evil1.yml", Unserved::Unlawful),
        ("/%2e%2e/evil1.yml", Unserved::Unlawful),
        ("/..\\..\\evil1.yml", Unserved::Unlawful),
        ("/..%2fevil1.yml", Unserved::Unlawful),
        ("/ui%2fa.css", Unserved::Unlawful),
        ("/.\t./a.css", Unserved::Unlawful),
        ("/?x", Unserved::Unlawful),
        ("/%6danifest.yaml", Unserved::Withheld),
        ("/server/p", Unserved::Withheld),
    ] {
        assert_eq!(style(&manifest, written), Err(why), "{written}");
    }
}

#[test]
fn what_is_declared_is_served_by_the_address_that_the_page_gets() {
    let manifest = with("/lib//b.js", &["/dist/./a%20b.css", "/../evil.css"]);
    let found = |segments: &[&str]| candidates(&manifest, segments).first().map(ToString::to_string);
    assert_eq!(found(&["lib", "b.js"]).as_deref(), Some("lib/b.js"));
    assert_eq!(found(&["dist", "a b.css"]).as_deref(), Some("dist/a b.css"));
    assert_eq!(found(&["evil.css"]).as_deref(), Some("ui/evil.css"), "below ui only");
}

#[test]
fn what_browsers_will_not_get_is_told_line_by_line() {
    let has = |path: &str| ["ui/b.js", "ui/a.css", "ui/only.css", "ui/a%20b.css", "manifest.yaml"].contains(&path);
    let told = |bundle: &str, styles: &[&str]| warnings(&with(bundle, styles), has);
    assert_eq!(told("", &[]), [""; 0]);
    assert_eq!(told("//ui/./b.js", &["/ui/a.css?v=1", "/only.css"]), [""; 0]);
    let lines = [
        r#"ui.bundle "/b.js" means "b.js", which is not in the package"#,
        r#"ui.styles entry "/../../evil1.yml" leads out of the package or to no file"#,
        r#"ui.styles entry "/ui/a%20b.css" means "ui/a b.css", which is not in the package"#,
        r#"ui.styles entry "/manifest.yaml" names a file that is the host's alone"#,
    ];
    assert_eq!(
        told("/b.js", &["/../../evil1.yml", "/ui/a%20b.css", "/ui/a.css", "/manifest.yaml"]),
        lines.map(|line| format!("{line}: browsers will not get it"))
    );
    assert_eq!(told("", &["/none.css"; 60]).len(), 51, "50 lines, and how many more");
}

proptest! {
    #[test]
    fn no_style_leads_out_of_the_plugins_files(written in "/([.]{1,2}|%2[eE]|[a?#%\\\\\t]|/|%2f|%5c){0,12}") {
        if let Ok(style) = style(&with("", &[]), &written) {
            let base = url::Url::parse("http://host.test/").unwrap();
            let asked = base.join(&format!("/api/plugins/acme/ui{}", style.address)).unwrap();
            prop_assert!(asked.path().starts_with("/api/plugins/acme/ui/"), "{} is {}", written, asked);
            let segments: Vec<_> = asked.path().split('/').skip(5).map(decoded).collect();
            prop_assert_eq!(segments.join("/"), style.file.as_str());
        }
    }
}
