//! Services of the domain: what the host offers beside running plugins. They keep rows and follow the event bus; of
//! HTTP, gRPC and the plugins' actors they know nothing.
//!
//! [`Platform`] holds them. Each reads in the scope it is given, refuses what a rule is against
//! (`domain::platform::refusal`), and writes a change together with its events (`store::platform::Work`).
//! docs/platform.md describes them for their callers.

pub mod agents;
mod clearing;
pub mod code;
pub mod context;
pub mod event_writer;
pub mod events;
pub mod executors;
pub mod git_tokens;
pub mod housekeeping;
pub mod inbox;
pub mod messages;
pub mod publisher;
pub mod repositories;
pub mod seed;
pub mod sessions;
pub mod tasks;
pub mod user_state;
pub mod workflows;
pub mod workspaces;

use time::OffsetDateTime;

pub use crate::store::platform::{Once, PlatformError};
use crate::{
    domain::platform::{
        Scope,
        refusal::{Kind, Refusal},
        task::Author,
    },
    store::platform::PlatformStore,
};

/// The services of the platform; clones share the database.
#[derive(Debug, Clone)]
pub struct Platform {
    /// Workspaces.
    pub workspaces: workspaces::Workspaces,
    /// Workflows and their steps.
    pub workflows: workflows::Workflows,
    /// Tasks.
    pub tasks: tasks::Tasks,
    /// Repositories.
    pub repositories: repositories::Repositories,
    /// Agents and their profiles.
    pub agents: agents::Agents,
    /// Executors and their profiles.
    pub executors: executors::Executors,
    /// Sessions and their turns.
    pub sessions: sessions::Sessions,
    /// Messages.
    pub messages: messages::Messages,
    /// Commits, snapshots and code statistics.
    pub code: code::Code,
    /// The event log.
    pub events: events::Events,
    /// Tokens with which git asks for credentials.
    pub git_tokens: git_tokens::GitTokens,
}

impl Platform {
    /// Over these rows.
    pub fn new(store: &PlatformStore) -> Self {
        Self {
            workspaces: workspaces::Workspaces::new(store.clone()),
            workflows: workflows::Workflows::new(store.clone()),
            tasks: tasks::Tasks::new(store.clone()),
            repositories: repositories::Repositories::new(store.clone()),
            agents: agents::Agents::new(store.clone()),
            executors: executors::Executors::new(store.clone()),
            sessions: sessions::Sessions::new(store.clone()),
            messages: messages::Messages::new(store.clone()),
            code: code::Code::new(store.clone()),
            events: events::Events::new(store.clone()),
            git_tokens: git_tokens::GitTokens::new(store.clone()),
        }
    }
}

/// Who asks for a change, in which scope, and with which idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// Who.
    pub author: Author,
    /// What is out of it cannot be changed: it is not found.
    pub scope: Scope,
    /// Done once for this key: asked again, the first answer is given again.
    pub once: Option<Once>,
}

impl By {
    /// The operator, everywhere, without a key.
    pub fn operator() -> Self {
        Self { author: Author::Operator, scope: Scope::All, once: None }
    }

    /// A plugin, everywhere, without a key.
    pub fn plugin(id: &crate::domain::id::PluginId) -> Self {
        Self { author: Author::Plugin(id.clone()), scope: Scope::All, once: None }
    }

    /// In this scope only.
    pub fn within(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// With this key.
    pub fn with(self, once: Option<Once>) -> Self {
        Self { once, ..self }
    }
}

/// A thing that goes up by one version with every change.
trait Versioned {
    const KIND: Kind;

    fn id(&self) -> &str;
    fn version(&mut self) -> (&mut i64, &mut OffsetDateTime);

    /// Refuses a writer that has seen another version.
    fn expect(&mut self, expected: Option<i64>) -> Result<(), Refusal> {
        let found = *self.version().0;
        match expected {
            Some(expected) if expected != found => {
                Err(Refusal::Stale { kind: Self::KIND, id: self.id().to_owned(), expected, found })
            }
            _ => Ok(()),
        }
    }

    /// It changes now.
    fn touch(&mut self, now: OffsetDateTime) {
        let (version, updated_at) = self.version();
        *version += 1;
        *updated_at = now;
    }
}

macro_rules! versioned {
    ($($thing:ty),+) => {
        $(impl Versioned for $thing {
            const KIND: Kind = <$thing as crate::store::platform::Record>::KIND;

            fn id(&self) -> &str {
                &self.id
            }

            fn version(&mut self) -> (&mut i64, &mut OffsetDateTime) {
                (&mut self.version, &mut self.updated_at)
            }
        })+
    };
}

versioned!(
    crate::domain::platform::workspace::Workspace,
    crate::domain::platform::workflow::Workflow,
    crate::domain::platform::workflow::Step,
    crate::domain::platform::repository::Repository,
    crate::domain::platform::profile::Agent,
    crate::domain::platform::profile::AgentProfile,
    crate::domain::platform::profile::Executor,
    crate::domain::platform::profile::ExecutorProfile,
    crate::domain::platform::task::Task,
    crate::domain::platform::session::Session,
    crate::domain::platform::message::Message
);

/// A new id, in the order of making.
fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

#[cfg(test)]
mod tests;
