//! How many files the host may have open at once: each connection is one. Its soft limit is raised to the hard one,
//! which systems leave far above it for programs that ask.
//!
//! A plugin's process gets the soft limit back that the host found ([`OpenFiles::found`]): a program that uses `select`
//! breaks when a descriptor has a number beyond 1023, and was never asked.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Limits;

/// Of one plugin: its connections both ways, its output, its process and its log.
const OF_A_PLUGIN: u64 = 16;

/// Of one connection to the database: on SQLite a file and two beside it.
const OF_A_DATABASE_CONNECTION: u64 = 3;

/// Of the host itself: runtimes, listener, locks, and packages that come and go.
const OWN: u64 = 128;

/// The soft limit of this process; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// As whoever started the host gave it.
    pub found: Option<u64>,
    /// As it is now.
    pub now: Option<u64>,
}

impl OpenFiles {
    /// Raises the soft limit of this process to its hard one.
    pub fn raise() -> Self {
        let Rlimit { current: found, maximum } = getrlimit(Resource::Nofile);
        let now = match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            Ok(()) => maximum,
            Err(error) => {
                tracing::warn!(%error, hard = maximum, "the limit of open files cannot be raised to the hard one: lower that one");
                found
            }
        };
        Self { found, now }
    }

    /// Whether so many fit in.
    pub fn suffices(self, needed: u64) -> bool {
        self.now.is_none_or(|most| most >= needed)
    }

    /// Tells the operator of the limit; one that is not told is none.
    pub fn tell(self, needed: u64) {
        let Self { found, now: most } = self;
        match self.suffices(needed) {
            true => tracing::info!(most, found, needed, "files that may be open"),
            false => tracing::warn!(
                most,
                found,
                needed,
                "fewer files may be open than limits.http_connections and the plugins need: raise the hard limit \
                 (LimitNOFILE of systemd, ulimit -Hn), or lower limits.http_connections"
            ),
        }
    }
}

/// Files that may be open when every connection is taken and so many plugins run.
pub fn needed(limits: &Limits, plugins: usize) -> u64 {
    let clients = (limits.http_connections as u64).saturating_mul(limits.http_workers as u64);
    let database = u64::from(limits.database_connections).saturating_add(1).saturating_mul(OF_A_DATABASE_CONNECTION);
    clients.saturating_add(database).saturating_add((plugins as u64).saturating_mul(OF_A_PLUGIN)).saturating_add(OWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let before = getrlimit(Resource::Nofile);
        let files = OpenFiles::raise();
        assert_eq!(files, OpenFiles { found: before.current, now: before.maximum });
        let raised = Rlimit { current: before.maximum, maximum: before.maximum };
        assert_eq!(getrlimit(Resource::Nofile), raised);
        setrlimit(Resource::Nofile, before).unwrap();
    }

    #[test]
    fn what_is_needed_grows_with_connections_and_plugins_and_a_limit_just_as_high_suffices() {
        let limits = Limits { http_workers: 2, http_connections: 100, database_connections: 8, ..Limits::default() };
        assert_eq!((needed(&limits, 0), needed(&limits, 10)), (355, 515));
        let of = |now| OpenFiles { found: Some(1), now };
        assert_eq!([Some(354), Some(355), None].map(|now| of(now).suffices(355)), [false, true, true]);
    }
}
