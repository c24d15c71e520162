//! Workspaces, workflows, profiles and repositories as messages.

use kandev_proto::v1;

use super::{moment, narrow, unless_empty};
use crate::domain::platform::{
    profile::{AgentProfile, ExecutorProfile},
    repository::{Repository, without_user},
    workflow::{Step, Workflow},
    workspace::Workspace,
};

impl From<Workspace> for v1::Workspace {
    fn from(workspace: Workspace) -> Self {
        Self {
            id: workspace.id,
            name: workspace.name,
            description: workspace.description,
            owner_id: workspace.owner_id,
            default_executor_id: workspace.default_executor_id,
            default_agent_profile_id: workspace.default_agent_profile_id,
            created_at: moment(workspace.created_at),
            updated_at: moment(workspace.updated_at),
        }
    }
}

impl From<Workflow> for v1::Workflow {
    fn from(workflow: Workflow) -> Self {
        Self {
            id: workflow.id,
            workspace_id: workflow.workspace_id,
            name: workflow.name,
            description: workflow.description,
            sort_order: narrow(workflow.sort_order),
            created_at: moment(workflow.created_at),
            updated_at: moment(workflow.updated_at),
        }
    }
}

impl From<Step> for v1::WorkflowStep {
    fn from(step: Step) -> Self {
        Self {
            id: step.id,
            workflow_id: step.workflow_id,
            name: step.name,
            position: narrow(step.position),
            stage_type: step.stage_type.as_str().to_owned(),
        }
    }
}

impl From<AgentProfile> for v1::AgentProfile {
    fn from(profile: AgentProfile) -> Self {
        Self {
            id: profile.id,
            agent_id: profile.agent_id,
            display_name: profile.agent_display_name,
            name: profile.fields.name,
            model: profile.fields.model,
            mode: profile.fields.mode,
        }
    }
}

/// One whose executor is gone has no type (host-data.md §3).
impl From<ExecutorProfile> for v1::ExecutorProfile {
    fn from(profile: ExecutorProfile) -> Self {
        Self {
            id: profile.id,
            display_name: profile.fields.name,
            executor_type: profile.executor_type.map_or("", |kind| kind.as_str()).to_owned(),
        }
    }
}

impl From<Repository> for v1::Repository {
    fn from(repository: Repository) -> Self {
        let Repository { id, workspace_id, fields, .. } = repository;
        Self {
            id,
            workspace_id,
            name: fields.name,
            default_branch: unless_empty(fields.default_branch),
            source_type: fields.source_type,
            provider_id: fields.provider,
            provider_repository_id: fields.provider_repo_id,
            provider_host: fields.provider_host,
            owner_or_project: fields.provider_owner,
            provider_name: fields.provider_name,
            // Taken out when it is written, too; a row from elsewhere may still have one.
            remote_url: without_user(&fields.remote_url),
            provider_scope: fields.provider_scope,
        }
    }
}
