//! A full disk: what the operator is told, that nothing is left, and that it works again when there is room.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::json;

use crate::support::{Guest, Host, Package, eventually};

/// A small file system in a folder, until it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// None where this process may not mount.
    fn at(folder: &Path, bytes: u64) -> Option<Self> {
        std::fs::create_dir_all(folder).expect("the folder is made");
        let options = format!("size={bytes},mode=0700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Self(folder.to_owned()));
        }
        println!("skipped: needs the right to mount");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_that_does_not_fit_on_the_disk_is_507_and_leaves_nothing() {
    let host = Host::start().await;
    let staging = host.plugins().join(".staging");
    let Some(mounted) = Mounted::at(&staging, 4 << 20) else { return };
    // What does not compress fills it while it is received, what does while it is unpacked.
    let mut random = 1_u64;
    let noise = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random.to_be_bytes()[0]
    });
    let noise: Vec<u8> = noise.take(8 << 20).collect();
    for bulk in [noise, vec![0; 8 << 20]] {
        let package = Package::with_program("#!/bin/sh\n", "bulky", "1.0.0").file("ui/bulk.bin", bulk);
        let refused = host.upload(package.archive().await).await;
        assert_eq!((refused.status, &refused.body["code"]), (507, &json!("disk_full")), "{}", refused.body);
        let text = refused.body["error"].as_str().expect("a text");
        assert!(!text.contains(host.home().to_str().expect("a path")), "{text}");
        eventually("the staging folder is empty", || async {
            std::fs::read_dir(&staging).is_ok_and(|mut entries| entries.next().is_none())
        })
        .await;
    }
    assert_eq!(host.get("/api/plugins").await.expect(200)["plugins"], json!([]));
    drop(mounted);
    host.install(&Package::of(Guest::Rust, "fits", "1.0.0")).await;
    host.status("fits", "active").await;
}
