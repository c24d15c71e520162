//! Agents and their profiles.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{By, PlatformError, Versioned as _, new_id};
use crate::{
    domain::platform::{
        Map, Scope,
        event::{self, Happened},
        merged,
        page::{Page, PageRequest},
        profile::{Agent, AgentProfile, AgentProfileFields},
        refusal::{Kind, Refusal},
        text::{MAX_ID_BYTES, check_required, may_be_id},
        workspace::Workspace,
    },
    store::platform::{PlatformStore, Work},
};

/// An agent with all of its profiles, those of one workspace too, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// It.
    pub agent: Agent,
    /// What it can be started with.
    pub profiles: Vec<AgentProfile>,
}

/// The service.
#[derive(Debug, Clone)]
pub struct Agents {
    store: PlatformStore,
}

impl Agents {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// All agents, in display order, each with all of its profiles.
    pub async fn list(&self, scope: &Scope) -> Result<Vec<Known>, PlatformError> {
        let (agents, all) = self.store.agents_with_profiles(scope).await?;
        let mut profiles: HashMap<String, Vec<AgentProfile>> = HashMap::new();
        for profile in all {
            profiles.entry(profile.agent_id.clone()).or_default().push(profile);
        }
        let known = |agent: Agent| Known { profiles: profiles.remove(&agent.id).unwrap_or_default(), agent };
        Ok(agents.into_iter().map(known).collect())
    }

    /// A page of the instance's profiles (those of one workspace are left out): agents in display order, then the
    /// oldest profile first.
    pub async fn profiles(&self, scope: &Scope, page: &PageRequest) -> Result<Page<AgentProfile>, PlatformError> {
        self.store.agent_profiles(scope, page).await
    }

    /// One profile.
    pub async fn profile(&self, scope: &Scope, id: &str) -> Result<AgentProfile, PlatformError> {
        self.store.find(scope, id).await
    }

    /// Makes an agent known, or changes its name and place. One that is not there has no version that could be
    /// expected. Its profiles follow: tells `agent_profile.updated` of each that shows another name now.
    pub async fn register(
        &self,
        by: &By,
        id: &str,
        name: &str,
        position: i64,
        supports_mcp: bool,
        expected: Option<i64>,
    ) -> Result<Known, PlatformError> {
        if !may_be_id(id) || id.trim().is_empty() {
            let problem = format!("must have 1 to {MAX_ID_BYTES} bytes, not all of them blanks, and no zero byte");
            return Err(Refusal::Invalid { field: "id", problem }.into());
        }
        check_required("name", name)?;
        if !by.scope.sees_instance() {
            return Err(Refusal::not_found(Kind::Agent, id).into());
        }
        let work = |work: Work| async move {
            let Some(mut agent) = work.find::<Agent>(id).await? else {
                if let Some(expected) = expected {
                    return Err(Refusal::Stale { kind: Kind::Agent, id: id.to_owned(), expected, found: 0 }.into());
                }
                let (id, name, now) = (id.to_owned(), name.to_owned(), work.now());
                let agent = Agent { id, name, position, supports_mcp, created_at: now, updated_at: now, version: 1 };
                work.insert(&agent).await?;
                return Ok(Known { agent, profiles: Vec::new() });
            };
            agent.expect(expected)?;
            let before = agent.clone();
            name.clone_into(&mut agent.name);
            (agent.position, agent.supports_mcp) = (position, supports_mcp);
            if agent != before {
                agent.touch(work.now());
                work.update(&agent).await?;
            }
            let mut profiles = work.profiles_of_agent(id).await?;
            for profile in &mut profiles {
                follow(&work, &agent, profile).await?;
            }
            Ok(Known { agent, profiles })
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// A new profile of an agent. Tells `agent_profile.created`.
    pub async fn create_profile(
        &self,
        by: &By,
        agent_id: &str,
        fields: AgentProfileFields,
    ) -> Result<AgentProfile, PlatformError> {
        let fields = &fields.checked()?;
        let work = |work: Work| async move {
            let agent: Agent = work.get(agent_id).await?;
            check_workspace(&work, fields).await?;
            let profile = AgentProfile {
                id: new_id(),
                agent_id: agent.id,
                agent_display_name: agent.name,
                agent_position: agent.position,
                fields: fields.clone(),
                created_at: work.now(),
                updated_at: work.now(),
                version: 1,
            };
            work.insert(&profile).await?;
            work.tell(event::agent_profile(Happened::Created, &profile));
            Ok(profile)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Changes the fields that the patch names, then these entries of its settings. Tells `agent_profile.updated`;
    /// nothing when nothing changes.
    pub async fn update_profile(
        &self,
        by: &By,
        id: &str,
        patch: &Map,
        settings: &Map,
        expected: Option<i64>,
    ) -> Result<AgentProfile, PlatformError> {
        let work = |work: Work| async move {
            let mut profile: AgentProfile = work.get(id).await?;
            profile.expect(expected)?;
            let mut fields: AgentProfileFields = merged(&profile.fields, patch)?;
            fields.settings.extend(settings.clone());
            let fields = fields.checked()?;
            if fields != profile.fields {
                check_workspace(&work, &fields).await?;
                profile.fields = fields;
                profile.touch(work.now());
                work.update(&profile).await?;
                work.tell(event::agent_profile(Happened::Updated, &profile));
            }
            Ok(profile)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Deletes a profile; sessions keep their snapshot of it. Tells `agent_profile.deleted`.
    pub async fn delete_profile(&self, by: &By, id: &str, expected: Option<i64>) -> Result<(), PlatformError> {
        let work = |work: Work| async move {
            let mut profile: AgentProfile = work.get(id).await?;
            profile.expect(expected)?;
            work.delete::<AgentProfile>(id).await?;
            work.tell(event::agent_profile(Happened::Deleted, &profile));
            Ok(())
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }
}

/// A profile shows its agent's name, and stands at its place.
async fn follow(work: &Work, agent: &Agent, profile: &mut AgentProfile) -> Result<(), PlatformError> {
    let renamed = profile.agent_display_name != agent.name;
    if !renamed && profile.agent_position == agent.position {
        return Ok(());
    }
    profile.agent_display_name.clone_from(&agent.name);
    profile.agent_position = agent.position;
    profile.touch(work.now());
    work.update(profile).await?;
    if renamed {
        work.tell(event::agent_profile(Happened::Updated, profile));
    }
    Ok(())
}

async fn check_workspace(work: &Work, fields: &AgentProfileFields) -> Result<(), PlatformError> {
    if let Some(workspace) = &fields.workspace_id {
        work.get::<Workspace>(workspace).await?;
    }
    Ok(())
}
