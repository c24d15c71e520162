//! Named moments at which a test can have the host killed (docs/runtime-semantics.md lists them). Without the feature
//! `failpoints` a hit compiles to nothing.

/// The host came to the moment `name`. With `KANDEV_FAILPOINT=<name>[:<n>]` the process kills itself there, at the
/// n-th hit (default the first). `KANDEV_FAILPOINT_FILE` names a file that may hold the same text instead: hits count
/// from when the file is there, so that a test can arm a running host.
#[cfg(feature = "failpoints")]
pub fn hit(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static HITS: AtomicU32 = AtomicU32::new(0);
    let Some(armed) = armed() else { return };
    let (wanted, count) = armed.split_once(':').unwrap_or((&armed, "1"));
    if wanted == name && HITS.fetch_add(1, Ordering::SeqCst) + 1 == count.parse().unwrap_or(1) {
        eprintln!("failpoint {name}: killed");
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // The signal may take a moment; nothing after this point may run.
        loop {
            std::thread::park();
        }
    }
}

#[cfg(feature = "failpoints")]
fn armed() -> Option<String> {
    let in_file = || std::fs::read_to_string(std::env::var_os("KANDEV_FAILPOINT_FILE")?).ok();
    std::env::var("KANDEV_FAILPOINT").ok().or_else(in_file)
}

/// The host came to the moment `name`.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn hit(_name: &str) {}
