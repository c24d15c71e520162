//! `plugin pack` and `plugin inspect`.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    time::{Duration, SystemTime},
};

use kandev_host::domain::target::host_platform;
use serde_json::json;

use crate::command::{Desk, Done, finish};

const MANIFEST: &str = "\
id: demo
api_version: 1
version: \"1.2.3\"
display_name: Demo
description: Shows packing
author: us
categories: [tools]
runtime:
  type: binary
  executables:
    linux-amd64: server/plugin
    linux-arm64: server/plugin
capabilities:
  events: [\"demo.*\"]
webhooks:
  - key: hook
    access: authenticated
";

/// The files of a plugin, in the given order.
pub fn write(folder: &Path, names: &[&str]) {
    for name in names {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = if *name == "manifest.yaml" { MANIFEST.to_owned() } else { format!("content of {name}") };
        fs::write(path, text).unwrap();
    }
}

const LONG: &str = "ui/a-very-long-folder-name-that-alone-is-almost-as-long/as-what-fits-into-the-name-of-an-old-tar-header/and-more.css";

#[test]
fn the_same_files_give_the_same_bytes() {
    let desk = Desk::new();
    let (one, two) = (desk.path().join("one"), desk.path().join("two"));
    let names = ["manifest.yaml", "server/plugin", "ui/b.js", "ui/a.js", LONG];
    write(&one, &names);
    let mut reversed = names;
    reversed.reverse();
    write(&two, &reversed);
    for name in names {
        let path = two.join(name);
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    }
    let first = desk.run(&["plugin", "pack", "one", "-o", "one.tar.gz", "--json"]).expect(0).json();
    let program = env!("CARGO_BIN_EXE_kandev-host");
    let script = format!("umask 077 && TZ=Asia/Tokyo exec {program} plugin pack two -o two.tar.gz --json");
    let second = finish(desk.command("sh").args(["-c", &script])).expect(0).json();
    assert_eq!(first["sha256"], second["sha256"]);
    let bytes = |name: &str| fs::read(desk.path().join(name)).unwrap();
    assert_eq!(bytes("one.tar.gz"), bytes("two.tar.gz"));
    // A third time, over what is there: checksums.txt exists by now.
    desk.run(&["plugin", "pack", "one", "-o", "three.tar.gz"]).expect(0);
    assert_eq!(bytes("one.tar.gz"), bytes("three.tar.gz"));
}

#[test]
fn a_package_is_named_after_the_plugin_and_has_fixed_owners_times_and_modes() {
    let desk = Desk::new();
    write(&desk.path().join("p"), &["manifest.yaml", "server/plugin", "ui/a.js", ".hidden"]);
    let done = desk.run(&["plugin", "pack", "p"]).expect(0);
    assert!(done.out.starts_with("package:    demo-1.2.3.tar.gz\nplugin:     demo 1.2.3\n"), "{}", done.out);
    assert!(done.out.ends_with("\nleft out:   .hidden\n"), "{}", done.out);
    let listed =
        finish(desk.command("tar").env("TZ", "UTC").args(["--numeric-owner", "-tvzf", "demo-1.2.3.tar.gz"])).expect(0);
    let columns = |line: &str| {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        [&words[0], &words[1], &words[3], &words[5]].map(Clone::clone)
    };
    let lines: Vec<_> = listed.out.lines().map(columns).collect();
    let line = |mode: &str, name: &str| [mode, "0/0", "1970-01-01", name].map(str::to_owned);
    let expected = [
        line("-rw-r--r--", "manifest.yaml"),
        line("-rw-r--r--", "checksums.txt"),
        line("-rwxr-xr-x", "server/plugin"),
        line("-rw-r--r--", "ui/a.js"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn what_a_host_would_refuse_is_not_packed() {
    fn refused(change: impl FnOnce(&Path)) -> Done {
        let desk = Desk::new();
        let folder = desk.path().join("p");
        write(&folder, &["manifest.yaml", "server/plugin"]);
        change(&folder);
        let done = desk.run(&["plugin", "pack", "p"]).expect(1);
        let names: Vec<_> = fs::read_dir(desk.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["p"], "nothing is left");
        done
    }
    let bad_manifest =
        refused(|p| fs::write(p.join("manifest.yaml"), MANIFEST.replace("id: demo", "id: De mo")).unwrap());
    assert!(bad_manifest.err.contains("invalid plugin id \"De mo\""), "{}", bad_manifest.err);
    let no_manifest = refused(|p| fs::remove_file(p.join("manifest.yaml")).unwrap());
    assert!(no_manifest.err.contains("p holds no manifest.yaml"), "{}", no_manifest.err);
    let nothing_built = refused(|p| fs::remove_file(p.join("server/plugin")).unwrap());
    assert!(nothing_built.err.contains("build the plugin first"), "{}", nothing_built.err);
    let link = refused(|p| symlink("/etc/hostname", p.join("ui")).unwrap());
    assert!(link.err.contains("a package holds no links"), "{}", link.err);
    let device = refused(|p| fs::write(p.join("aux.js"), "").unwrap());
    assert!(device.err.contains("\"aux.js\""), "{}", device.err);
    let collision = refused(|p| write(p, &["ui/a.js", "ui/A.js"]));
    assert!(
        collision.err.contains("a host would refuse the package") && collision.err.contains("collides"),
        "{collision:?}"
    );
}

#[test]
fn a_signature_stays_only_while_it_signs_what_is_packed() {
    let desk = Desk::new();
    let folder = desk.path().join("p");
    write(&folder, &["manifest.yaml", "server/plugin"]);
    desk.run(&["plugin", "pack", "p"]).expect(0);
    fs::write(folder.join("checksums.txt.sig"), [7; 64]).unwrap();
    assert_eq!(desk.run(&["plugin", "pack", "p", "--json"]).expect(0).json()["signed"], true);
    let shown = desk.run(&["plugin", "inspect", "demo-1.2.3.tar.gz", "--json"]).expect(0).json();
    assert_eq!((&shown["signature"], &shown["signer"]), (&json!("unknown_key"), &json!(null)));
    fs::write(folder.join("server/plugin"), "another build").unwrap();
    let done = desk.run(&["plugin", "pack", "p"]).expect(1);
    assert!(done.err.contains("checksums.txt has changed since checksums.txt.sig was made"), "{}", done.err);
}

#[test]
fn a_package_never_lands_in_the_folder_it_is_made_of() {
    let desk = Desk::new();
    write(desk.path(), &["manifest.yaml", "server/plugin"]);
    for arguments in [&["plugin", "pack", "."][..], &["plugin", "pack", ".", "-o", "server"]] {
        let done = desk.run(arguments).expect(1);
        assert!(done.err.contains("choose another place with --output"), "{}", done.err);
    }
}

#[test]
fn inspect_shows_what_a_package_says_and_holds() {
    let desk = Desk::new();
    write(&desk.path().join("p"), &["manifest.yaml", "server/plugin", "ui/a.js"]);
    desk.run(&["plugin", "pack", "p"]).expect(0);
    let text = desk.run(&["plugin", "inspect", "demo-1.2.3.tar.gz"]).expect(0).out;
    for part in [
        "id:            demo\n",
        "version:       1.2.3\n",
        "platforms:     linux-amd64\n               linux-arm64\n",
        "runs here:     yes\n",
        "capabilities:  events: demo.*\n",
        "webhooks:      hook (authenticated)\n",
        ", 4 files\n",
        "signature:     absent\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let shown = desk.run(&["plugin", "inspect", "demo-1.2.3.tar.gz", "--json"]).expect(0).json();
    assert_eq!((&shown["manifest"]["id"], &shown["runs_here"]), (&json!("demo"), &json!(true)));
    assert_eq!(shown["files"], 4);
}

#[test]
fn a_package_for_another_machine_is_packed_with_a_warning_and_inspected() {
    let desk = Desk::new();
    let other = if host_platform() == "linux-amd64" { "linux-arm64" } else { "linux-amd64" };
    let folder = desk.path().join("p");
    write(&folder, &["server/theirs"]);
    let ours = format!("{}: server/plugin", host_platform());
    let theirs = format!("{other}: server/theirs");
    let manifest = MANIFEST
        .replace(&ours, &format!("{}: server/ours", host_platform()))
        .replace(&format!("{other}: server/plugin"), &theirs);
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    let packed = desk.run(&["plugin", "pack", "p", "--json"]).expect(0).json();
    assert_eq!(packed["platforms"], json!([other]));
    let warning = format!("server/ours is not in the folder: hosts on {} will refuse the package", host_platform());
    assert_eq!(packed["warnings"], json!([warning]));
    let shown = desk.run(&["plugin", "inspect", "demo-1.2.3.tar.gz", "--json"]).expect(0).json();
    assert_eq!(shown["runs_here"], false);
}

#[test]
fn inspect_fails_with_the_text_of_a_host() {
    let desk = Desk::new();
    fs::write(desk.path().join("x.tar.gz"), "no archive").unwrap();
    let done = desk.run(&["plugin", "inspect", "x.tar.gz"]).expect(1);
    assert!(done.err.contains("pkgtar: not a gzip-compressed archive"), "{}", done.err);
    let done = desk.run(&["plugin", "inspect", "absent.tar.gz", "--json"]).expect(1);
    assert!(done.error()["error"].as_str().unwrap().contains("cannot read absent.tar.gz"), "{}", done.err);
    desk.run(&["plugin", "inspect", "."]).expect(1);
}

#[test]
fn what_browsers_will_not_get_is_told_by_pack_and_inspect_and_packed_all_the_same() {
    let desk = Desk::new();
    let folder = desk.path().join("p");
    write(&folder, &["manifest.yaml", "server/plugin", "ui/a.css"]);
    let ui = "ui:\n  bundle: /manifest.yaml\n  styles: [//ui/./a.css, /../../evil.yml, /ui/none.css]\n";
    fs::write(folder.join("manifest.yaml"), format!("{MANIFEST}{ui}")).unwrap();
    let packed = desk.run(&["plugin", "pack", "p", "--json"]).expect(0).json();
    let told = json!([
        "ui.bundle \"/manifest.yaml\" names a file that is the host's alone: browsers will not get it",
        "ui.styles entry \"/../../evil.yml\" leads out of the package or to no file: browsers will not get it",
        "ui.styles entry \"/ui/none.css\" means \"ui/none.css\", which is not in the package: browsers will not get it",
    ]);
    assert_eq!(packed["warnings"], told);
    let shown = desk.run(&["plugin", "inspect", "demo-1.2.3.tar.gz", "--json"]).expect(0).json();
    assert_eq!(shown["warnings"].as_array().unwrap()[..3], told.as_array().unwrap()[..]);
}
