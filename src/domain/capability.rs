//! What a manifest may ask for and what the host grants: a small closed vocabulary.
//!
//! Owns the words (contract/wire.md §3 gives the word each RPC needs) and the set. Which call needs which word is the
//! gate's table; an unknown word is accepted by the manifest with a warning and grants nothing.

use std::fmt;

/// One right that a plugin can hold. Its `Display` form is the word used in `capability '<name>' not declared`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Capability {
    /// Own key-value state.
    State,
    /// Own secrets and revealing references.
    Secrets,
    /// One-shot runs of the operator's utility agent.
    AgentInvoke,
    /// Answering a webhook with a login directive.
    Auth,
    /// Per-user storage reachable from the browser.
    UserState,
    /// Reading tasks.
    ReadTasks,
    /// Reading sessions and their code statistics.
    ReadSessions,
    /// Reading sanitised messages.
    ReadMessages,
    /// Reading workspaces.
    ReadWorkspaces,
    /// Reading workflows and their steps.
    ReadWorkflows,
    /// Reading agent profiles.
    ReadAgentProfiles,
    /// Reading repositories.
    ReadRepositories,
    /// Reading executor profiles.
    ReadExecutorProfiles,
    /// Creating, updating and deleting own tasks.
    WriteTasks,
    /// Sending messages to sessions.
    WriteMessages,
}

use Capability::*;

/// Every capability with its word.
const WORDS: [(Capability, &str); 15] = [
    (State, "state"),
    (Secrets, "secrets"),
    (AgentInvoke, "agent_invoke"),
    (Auth, "auth"),
    (UserState, "user_state"),
    (ReadTasks, "api_read:tasks"),
    (ReadSessions, "api_read:sessions"),
    (ReadMessages, "api_read:messages"),
    (ReadWorkspaces, "api_read:workspaces"),
    (ReadWorkflows, "api_read:workflows"),
    (ReadAgentProfiles, "api_read:agent_profiles"),
    (ReadRepositories, "api_read:repositories"),
    (ReadExecutorProfiles, "api_read:executor_profiles"),
    (WriteTasks, "api_write:tasks"),
    (WriteMessages, "api_write:messages"),
];

impl Capability {
    /// Every capability, in the order of the vocabulary.
    pub fn all() -> impl Iterator<Item = Self> {
        WORDS.iter().map(|(capability, _)| *capability)
    }

    /// The word of the capability, such as `state` or `api_read:tasks`.
    pub fn name(self) -> &'static str {
        WORDS.iter().find(|(capability, _)| *capability == self).map_or("", |(_, word)| word)
    }

    /// The capability of a word; `None` for words this host does not know.
    pub fn from_name(word: &str) -> Option<Self> {
        WORDS.iter().find(|(_, name)| *name == word).map(|(capability, _)| *capability)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The rights granted to one plugin.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct CapabilitySet(u32);

impl CapabilitySet {
    /// Whether the set holds `capability`.
    pub fn allows(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }

    /// Adds one right.
    pub fn grant(&mut self, capability: Capability) {
        self.0 |= 1 << capability as u8;
    }

    /// The granted rights, in the order of the vocabulary.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::all().filter(move |capability| self.allows(*capability))
    }
}

impl FromIterator<Capability> for CapabilitySet {
    fn from_iter<I: IntoIterator<Item = Capability>>(capabilities: I) -> Self {
        let mut set = Self::default();
        capabilities.into_iter().for_each(|capability| set.grant(capability));
        set
    }
}

impl fmt::Debug for CapabilitySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Capability::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_its_capability_and_back() {
        for capability in Capability::all() {
            assert_eq!(Capability::from_name(capability.name()), Some(capability));
        }
        assert_eq!(Capability::from_name("api_read:everything"), None);
    }

    #[test]
    fn a_set_allows_exactly_what_was_granted() {
        for granted in Capability::all() {
            let set = CapabilitySet::from_iter([granted]);
            let allowed: Vec<_> = Capability::all().filter(|c| set.allows(*c)).collect();
            assert_eq!(allowed, [granted]);
        }
        assert_eq!(format!("{:?}", CapabilitySet::from_iter([WriteTasks, State])), r#"{"state", "api_write:tasks"}"#);
    }
}
