//! The platform key of this host, `<goos>-<goarch>` in Go spelling (contract/manifest.md §3).

/// The key under which a manifest's `runtime.executables` must list a program for this host.
pub fn host_platform() -> String {
    platform_key(std::env::consts::OS, std::env::consts::ARCH)
}

/// Translates Rust's names of a system and a processor into Go's; names that are equal in both pass unchanged.
pub fn platform_key(os: &str, arch: &str) -> String {
    let goos = match os {
        "macos" => "darwin",
        other => other,
    };
    let goarch = match arch {
        "x86_64" => "amd64",
        "x86" => "386",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64",
        "loongarch64" => "loong64",
        other => other,
    };
    format!("{goos}-{goarch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_names_become_go_names() {
        for (os, arch, key) in [
            ("linux", "x86_64", "linux-amd64"),
            ("linux", "aarch64", "linux-arm64"),
            ("macos", "aarch64", "darwin-arm64"),
            ("windows", "x86", "windows-386"),
            ("linux", "riscv64", "linux-riscv64"),
        ] {
            assert_eq!(platform_key(os, arch), key);
        }
    }
}
