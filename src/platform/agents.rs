//! Agents and their profiles.

use super::{By, PlatformError, Versioned as _, new_id};
use crate::{
    domain::platform::{
        Map, Scope,
        event::{self, Happened},
        merged,
        page::{Page, PageRequest},
        profile::{Agent, AgentProfile, AgentProfileFields},
        refusal::{Kind, Refusal},
        text::check_required,
        workspace::Workspace,
    },
    store::platform::{PlatformStore, Work},
};

/// The service.
#[derive(Debug, Clone)]
pub struct Agents {
    store: PlatformStore,
}

impl Agents {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// All agents, in display order.
    pub async fn list(&self, scope: &Scope) -> Result<Vec<Agent>, PlatformError> {
        self.store.agents(scope).await
    }

    /// A page of the instance's profiles (those of one workspace are left out): agents in display order, then the oldest
    /// profile first.
    pub async fn profiles(&self, scope: &Scope, page: &PageRequest) -> Result<Page<AgentProfile>, PlatformError> {
        self.store.agent_profiles(scope, page).await
    }

    /// One profile.
    pub async fn profile(&self, scope: &Scope, id: &str) -> Result<AgentProfile, PlatformError> {
        self.store.find(scope, id).await
    }

    /// Makes an agent known, or changes its name and place; its profiles follow. Tells nothing.
    pub async fn register(
        &self,
        by: &By,
        id: &str,
        name: &str,
        position: i64,
        supports_mcp: bool,
    ) -> Result<Agent, PlatformError> {
        check_required("id", id)?;
        check_required("name", name)?;
        if !by.scope.sees_instance() {
            return Err(Refusal::not_found(Kind::Agent, id).into());
        }
        let work = |work: Work| async move {
            let now = work.now();
            let old = work.find::<Agent>(id).await?;
            let is_new = old.is_none();
            let mut agent = old.unwrap_or_else(|| Agent {
                id: id.to_owned(),
                name: String::new(),
                position,
                supports_mcp,
                created_at: now,
                updated_at: now,
                version: 0,
            });
            name.clone_into(&mut agent.name);
            (agent.position, agent.supports_mcp, agent.updated_at) = (position, supports_mcp, now);
            agent.version += 1;
            if is_new {
                work.insert(&agent).await?;
                return Ok(agent);
            }
            work.update(&agent).await?;
            for mut profile in work.profiles_of_agent(id).await? {
                profile.agent_display_name.clone_from(&agent.name);
                profile.agent_position = position;
                work.update(&profile).await?;
            }
            Ok(agent)
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

    /// Changes the fields that the patch names. Tells `agent_profile.updated`; nothing when nothing changes.
    pub async fn update_profile(
        &self,
        by: &By,
        id: &str,
        patch: &Map,
        expected: Option<i64>,
    ) -> Result<AgentProfile, PlatformError> {
        let work = |work: Work| async move {
            let mut profile: AgentProfile = work.get(id).await?;
            profile.expect(expected)?;
            let fields = merged(&profile.fields, patch)?.checked()?;
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

async fn check_workspace(work: &Work, fields: &AgentProfileFields) -> Result<(), PlatformError> {
    if let Some(workspace) = &fields.workspace_id {
        work.get::<Workspace>(workspace).await?;
    }
    Ok(())
}
