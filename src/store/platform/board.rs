//! Lists of workspaces, workflows, steps, repositories, agents and executors.

use std::collections::HashMap;

use sea_orm::{ColumnTrait, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select};

use super::{PlatformError, PlatformStore, Record, Work, listing::Listing, record, tasks::within};
use crate::{
    domain::platform::{
        Scope,
        cursor::List,
        page::{self, Page, PageRequest},
        profile::{Agent, AgentProfile, Executor, ExecutorProfile},
        repository::{Repository, RepositoryFields},
        words::ExecutorType,
        workflow::{Step, Workflow},
        workspace::Workspace,
    },
    entities::{
        agent, agent_profile, executor, executor_profile, repository, task, workflow, workflow_step, workspace,
    },
};

/// Workspaces, the newest first, ids in order.
pub(super) fn workspaces(scope: &Scope) -> Listing<workspace::Entity> {
    use workspace::Column;
    let order = vec![(Column::CreatedAt, Order::Desc), (Column::Id, Order::Asc)];
    Listing {
        list: List::Workspaces,
        select: seen_workspaces(scope),
        order,
        leading: None,
        long: vec![Column::Description],
    }
}

/// Those of the scope.
pub(super) fn seen_workspaces(scope: &Scope) -> Select<workspace::Entity> {
    let all = workspace::Entity::find();
    match within(scope, None) {
        None => all,
        Some(ids) => all.filter(workspace::Column::Id.is_in(ids)),
    }
}

/// Workflows that are not hidden, by place, then the time of their making, then id; of one workspace or of all.
pub(super) fn workflows(scope: &Scope, workspace_id: &str) -> Listing<workflow::Entity> {
    use workflow::{Column, Entity};
    let wanted = (!workspace_id.is_empty()).then(|| page::ids(&[workspace_id.to_owned()]).unwrap_or_default());
    let order = vec![(Column::SortOrder, Order::Asc), (Column::CreatedAt, Order::Asc), (Column::Id, Order::Asc)];
    Listing {
        list: List::Workflows,
        select: Entity::find().filter(Column::Hidden.eq(false)),
        order,
        leading: within(scope, wanted).map(|ids| (Column::WorkspaceId, ids)),
        long: vec![Column::Description, Column::Prompt],
    }
}

/// Repositories of one workspace that were not taken out, the newest first, ids in order.
pub(super) fn repositories(scope: &Scope, workspace_id: &str) -> Listing<repository::Entity> {
    use repository::{Column, Entity};
    let wanted = within(scope, Some(page::ids(&[workspace_id.to_owned()]).unwrap_or_default()));
    Listing {
        list: List::Repositories,
        select: Entity::find().filter(Column::DeletedAt.is_null()),
        order: vec![(Column::CreatedAt, Order::Desc), (Column::Id, Order::Asc)],
        leading: Some((Column::WorkspaceId, wanted.unwrap_or_default())),
        long: vec![Column::SetupScript, Column::CleanupScript, Column::DevScript, Column::CopyFiles],
    }
}

/// Agent profiles of the whole instance: agents in display order, then profiles by the time of their making.
pub(super) fn agent_profiles() -> Listing<agent_profile::Entity> {
    use agent_profile::{Column, Entity};
    let asc = |column| (column, Order::Asc);
    Listing {
        list: List::AgentProfiles,
        select: Entity::find().filter(Column::WorkspaceId.is_null()),
        order: [Column::AgentPosition, Column::AgentId, Column::CreatedAt, Column::Id].map(asc).to_vec(),
        leading: None,
        long: vec![Column::Settings],
    }
}

/// Executor profiles by executor, then name, then id; of one executor, or of all.
pub(super) fn executor_profiles(executor: Option<&str>) -> Listing<executor_profile::Entity> {
    use executor_profile::{Column, Entity};
    let asc = |column| (column, Order::Asc);
    let wanted = executor.map(|id| page::ids(&[id.to_owned()]).unwrap_or_default());
    Listing {
        list: List::ExecutorProfiles,
        select: Entity::find(),
        order: [Column::ExecutorId, Column::Name, Column::Id].map(asc).to_vec(),
        leading: wanted.map(|ids| (Column::ExecutorId, ids)),
        long: vec![Column::Config, Column::PrepareScript, Column::CleanupScript],
    }
}

/// Hidden ones too.
fn workflows_of(workspace_id: &str) -> Select<workflow::Entity> {
    use workflow::{Column, Entity};
    Entity::find()
        .filter(Column::WorkspaceId.eq(workspace_id))
        .order_by_asc(Column::SortOrder)
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::Id)
}

fn steps_of(workflow_id: &str) -> Select<workflow_step::Entity> {
    use workflow_step::{Column, Entity};
    Entity::find()
        .filter(Column::WorkflowId.is_in(page::ids(&[workflow_id.to_owned()]).unwrap_or_default()))
        .order_by_asc(Column::Position)
        .order_by_asc(Column::Id)
}

impl PlatformStore {
    /// A page of workspaces.
    pub async fn workspaces(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Workspace>, PlatformError> {
        self.records(&workspaces(scope), page).await
    }

    /// How many workspaces the list has.
    pub async fn count_workspaces(&self, scope: &Scope) -> Result<u64, PlatformError> {
        self.count(&workspaces(scope)).await
    }

    /// A page of workflows, of one workspace or (empty) of all.
    pub async fn workflows(
        &self,
        scope: &Scope,
        workspace_id: &str,
        page: &PageRequest,
    ) -> Result<Page<Workflow>, PlatformError> {
        self.records(&workflows(scope, workspace_id), page).await
    }

    /// How many workflows the list has.
    pub async fn count_workflows(&self, scope: &Scope, workspace_id: &str) -> Result<u64, PlatformError> {
        self.count(&workflows(scope, workspace_id)).await
    }

    /// All steps of the workflows of a workspace that are not hidden: by workflow, then by place.
    pub async fn steps_of_workspace(&self, workspace_id: &str) -> Result<Vec<Step>, PlatformError> {
        use workflow_step::{Column, Entity};
        let workflows = workflow::Entity::find()
            .select_only()
            .column(workflow::Column::Id)
            .filter(workflow::Column::WorkspaceId.is_in(page::ids(&[workspace_id.to_owned()]).unwrap_or_default()))
            .filter(workflow::Column::Hidden.eq(false));
        let query = Entity::find()
            .filter(Column::WorkflowId.in_subquery(workflows.into_query()))
            .order_by_asc(Column::WorkflowId)
            .order_by_asc(Column::Position)
            .order_by_asc(Column::Id);
        let rows = self.db.repeat(async || Ok::<_, PlatformError>(query.clone().all(self.db.reader()).await?)).await?;
        Ok(record::all_of(rows)?)
    }

    /// All steps of a workflow, by place.
    pub async fn steps(&self, workflow_id: &str) -> Result<Vec<Step>, PlatformError> {
        let query = steps_of(workflow_id);
        let rows = self.db.repeat(async || Ok::<_, PlatformError>(query.clone().all(self.db.reader()).await?)).await?;
        Ok(record::all_of(rows)?)
    }

    /// A page of a workspace's repositories.
    pub async fn repositories(
        &self,
        scope: &Scope,
        workspace_id: &str,
        page: &PageRequest,
    ) -> Result<Page<Repository>, PlatformError> {
        self.records(&repositories(scope, workspace_id), page).await
    }

    /// How many repositories the list has.
    pub async fn count_repositories(&self, scope: &Scope, workspace_id: &str) -> Result<u64, PlatformError> {
        self.count(&repositories(scope, workspace_id)).await
    }

    /// All agents, in display order, and all profiles, those of one workspace too, the oldest first.
    pub async fn agents_with_profiles(&self, scope: &Scope) -> Result<(Vec<Agent>, Vec<AgentProfile>), PlatformError> {
        if !scope.sees_instance() {
            return Ok(Default::default());
        }
        let agents = agent::Entity::find().order_by_asc(agent::Column::Position).order_by_asc(agent::Column::Id);
        let profiles = agent_profile::Entity::find()
            .order_by_asc(agent_profile::Column::CreatedAt)
            .order_by_asc(agent_profile::Column::Id);
        let work = async || {
            let agents = agents.clone().all(self.db.reader()).await?;
            Ok::<_, PlatformError>((agents, profiles.clone().all(self.db.reader()).await?))
        };
        let (agents, profiles) = self.db.repeat(work).await?;
        Ok((record::all_of(agents)?, record::all_of(profiles)?))
    }

    /// A page of the instance's agent profiles.
    pub async fn agent_profiles(&self, scope: &Scope, page: &PageRequest) -> Result<Page<AgentProfile>, PlatformError> {
        if !scope.sees_instance() {
            return Ok(Page::default());
        }
        self.records(&agent_profiles(), page).await
    }

    /// All executors, the oldest first.
    pub async fn executors(&self, scope: &Scope) -> Result<Vec<Executor>, PlatformError> {
        if !scope.sees_instance() {
            return Ok(Vec::new());
        }
        let query =
            executor::Entity::find().order_by_asc(executor::Column::CreatedAt).order_by_asc(executor::Column::Id);
        let rows = self.db.repeat(async || Ok::<_, PlatformError>(query.clone().all(self.db.reader()).await?)).await?;
        Ok(record::all_of(rows)?)
    }

    /// How many executor profiles the list has.
    pub async fn count_executor_profiles(&self, scope: &Scope, executor: Option<&str>) -> Result<u64, PlatformError> {
        if !scope.sees_instance() {
            return Ok(0);
        }
        self.count(&executor_profiles(executor)).await
    }

    /// A page of executor profiles with the types of their executors; of one executor, or of all.
    pub async fn executor_profiles(
        &self,
        scope: &Scope,
        executor: Option<&str>,
        page: &PageRequest,
    ) -> Result<Page<ExecutorProfile>, PlatformError> {
        if !scope.sees_instance() {
            return Ok(Page::default());
        }
        let mut page = self.records::<ExecutorProfile>(&executor_profiles(executor), page).await?;
        let types = self.executor_types(&page.items).await?;
        for profile in &mut page.items {
            profile.executor_type = types.get(&profile.executor_id).copied();
        }
        Ok(page)
    }

    async fn executor_types(
        &self,
        profiles: &[ExecutorProfile],
    ) -> Result<HashMap<String, ExecutorType>, PlatformError> {
        let ids = profiles.iter().map(|profile| profile.executor_id.as_str());
        let query = executor::Entity::find().filter(executor::Column::Id.is_in(ids));
        let rows = self.db.repeat(async || Ok::<_, PlatformError>(query.clone().all(self.db.reader()).await?)).await?;
        let executors: Vec<Executor> = record::all_of(rows)?;
        Ok(executors.into_iter().map(|executor| (executor.id, executor.fields.executor_type)).collect())
    }
}

impl Work {
    /// All workflows of a workspace, hidden ones too, by place; locked until the work is done.
    pub async fn workflows_of(&self, workspace_id: &str) -> Result<Vec<Workflow>, PlatformError> {
        Ok(record::all_of(workflows_of(workspace_id).lock_exclusive().all(self.transaction()).await?)?)
    }

    /// All steps of a workflow, by place; locked until the work is done: who deletes a step of another workflow changes
    /// those that pull from it.
    pub async fn steps_of(&self, workflow_id: &str) -> Result<Vec<Step>, PlatformError> {
        Ok(record::all_of(steps_of(workflow_id).lock_exclusive().all(self.transaction()).await?)?)
    }

    /// The steps of a workspace's workflows that pull from one of these, by workflow and place; locked until the work
    /// is done.
    pub async fn steps_pulling_from(&self, workspace_id: &str, ids: &[&str]) -> Result<Vec<Step>, PlatformError> {
        use workflow_step::{Column, Entity};
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let workflows = workflow::Entity::find()
            .select_only()
            .column(workflow::Column::Id)
            .filter(workflow::Column::WorkspaceId.eq(workspace_id));
        let query = Entity::find()
            .filter(Column::WorkflowId.in_subquery(workflows.into_query()))
            .filter(Column::PullFromStepId.is_in(ids.iter().copied()))
            .order_by_asc(Column::WorkflowId)
            .order_by_asc(Column::Position)
            .order_by_asc(Column::Id);
        Ok(record::all_of(query.lock_exclusive().all(self.transaction()).await?)?)
    }

    /// Whether a workflow has tasks.
    pub async fn workflow_has_tasks(&self, id: &str) -> Result<bool, PlatformError> {
        self.any_task(task::Column::WorkflowId, id).await
    }

    /// Whether a step has tasks.
    pub async fn step_has_tasks(&self, id: &str) -> Result<bool, PlatformError> {
        self.any_task(task::Column::WorkflowStepId, id).await
    }

    /// The repository of a workspace that a provider knows by these names, unless it was taken out.
    pub async fn repository_of_provider(
        &self,
        workspace_id: &str,
        fields: &RepositoryFields,
    ) -> Result<Option<Repository>, PlatformError> {
        use repository::{Column, Entity};
        let query = Entity::find()
            .filter(Column::WorkspaceId.eq(workspace_id))
            .filter(Column::Provider.eq(&fields.provider))
            .filter(Column::ProviderHost.eq(&fields.provider_host))
            .filter(Column::ProviderRepoId.eq(&fields.provider_repo_id))
            .filter(Column::ProviderScope.eq(&fields.provider_scope))
            .filter(Column::DeletedAt.is_null());
        Ok(query.one(self.transaction()).await?.map(Repository::of).transpose()?)
    }

    /// The repositories with these ids, of any workspace.
    pub async fn repositories_by_id(&self, ids: &[&str]) -> Result<Vec<Repository>, PlatformError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let query = repository::Entity::find().filter(repository::Column::Id.is_in(ids.iter().copied()));
        Ok(record::all_of(query.all(self.transaction()).await?)?)
    }

    /// The profiles of an agent, those of one workspace too, the oldest first; locked until the work is done.
    pub async fn profiles_of_agent(&self, agent_id: &str) -> Result<Vec<AgentProfile>, PlatformError> {
        let query = agent_profile::Entity::find()
            .filter(agent_profile::Column::AgentId.eq(agent_id))
            .order_by_asc(agent_profile::Column::CreatedAt)
            .order_by_asc(agent_profile::Column::Id);
        Ok(record::all_of(query.lock_exclusive().all(self.transaction()).await?)?)
    }
}
