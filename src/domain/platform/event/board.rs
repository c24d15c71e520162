//! Events about workspaces, workflows, repositories, agents and executors (events.md §5, §7).

use serde_json::json;

use super::{
    super::{
        profile::{AgentProfile, Executor, ExecutorProfile},
        repository::Repository,
        workflow::{Step, Workflow},
        workspace::Workspace,
    },
    Happened, NewEvent, event, time,
};

/// `workspace.*`.
pub fn workspace(happened: Happened, workspace: &Workspace) -> NewEvent {
    let payload = json!({
        "id": workspace.id,
        "name": workspace.name,
        "description": workspace.description,
        "owner_id": workspace.owner_id,
        "default_executor_id": workspace.default_executor_id,
        "default_environment_id": workspace.default_environment_id,
        "default_agent_profile_id": workspace.default_agent_profile_id,
        "default_config_agent_profile_id": workspace.default_config_agent_profile_id,
        "created_at": time(workspace.created_at),
        "updated_at": time(workspace.updated_at),
    });
    event(format!("workspace.{}", happened.as_str()), &workspace.id, payload)
}

/// `workflow.*`.
pub fn workflow(happened: Happened, workflow: &Workflow) -> NewEvent {
    let payload = json!({
        "id": workflow.id,
        "workspace_id": workflow.workspace_id,
        "name": workflow.name,
        "description": workflow.description,
        "prompt": workflow.prompt,
        "agent_profile_id": workflow.agent_profile_id,
        "hidden": workflow.hidden,
        "source": "",
        "source_path": "",
        "created_at": time(workflow.created_at),
        "updated_at": time(workflow.updated_at),
    });
    event(format!("workflow.{}", happened.as_str()), &workflow.workspace_id, payload)
}

/// `workflow_step.*`.
pub fn step(happened: Happened, workspace_id: &str, step: &Step) -> NewEvent {
    let payload = json!({ "step": {
        "id": step.id,
        "workflow_id": step.workflow_id,
        "name": step.name,
        "position": step.position,
        "color": step.color,
        "prompt": step.prompt,
        "events": step.events,
        "show_in_command_panel": step.show_in_command_panel,
        "allow_manual_move": step.allow_manual_move,
        "is_start_step": step.is_start_step,
        "auto_archive_after_hours": step.auto_archive_after_hours,
        "wip_limit": step.wip_limit,
        "pull_from_step_id": step.pull_from_step_id,
        "agent_profile_id": step.agent_profile_id,
        "stage_type": step.stage_type,
        "auto_advance_requires_signal": step.auto_advance_requires_signal,
        "cancel_triggers_turn_complete": step.cancel_triggers_turn_complete,
        "created_at": time(step.created_at),
        "updated_at": time(step.updated_at),
    }});
    event(format!("workflow_step.{}", happened.as_str()), workspace_id, payload)
}

/// `repository.*`.
pub fn repository(happened: Happened, repository: &Repository) -> NewEvent {
    let fields = &repository.fields;
    let payload = json!({
        "id": repository.id,
        "workspace_id": repository.workspace_id,
        "name": fields.name,
        "source_type": fields.source_type,
        "local_path": fields.local_path,
        "provider": fields.provider,
        "provider_repo_id": fields.provider_repo_id,
        "provider_host": fields.provider_host,
        "provider_scope": fields.provider_scope,
        "provider_owner": fields.provider_owner,
        "provider_name": fields.provider_name,
        "default_branch": fields.default_branch,
        "worktree_branch_prefix": fields.worktree_branch_prefix,
        "pull_before_worktree": fields.pull_before_worktree,
        "setup_script": fields.setup_script,
        "cleanup_script": fields.cleanup_script,
        "dev_script": fields.dev_script,
        "copy_files": fields.copy_files,
        "secret_bindings": [],
        "created_at": time(repository.created_at),
        "updated_at": time(repository.updated_at),
    });
    event(format!("repository.{}", happened.as_str()), &repository.workspace_id, payload)
}

/// `agent_profile.*`.
pub fn agent_profile(happened: Happened, profile: &AgentProfile) -> NewEvent {
    let fields = &profile.fields;
    let payload = json!({ "profile": {
        "id": profile.id,
        "agent_id": profile.agent_id,
        "agent_display_name": profile.agent_display_name,
        "name": fields.name,
        "model": fields.model,
        "mode": fields.mode,
        "workspace_id": fields.workspace_id,
        "enabled": fields.enabled,
        "created_at": time(profile.created_at),
        "updated_at": time(profile.updated_at),
    }});
    let workspace = fields.workspace_id.as_deref().unwrap_or_default();
    event(format!("agent_profile.{}", happened.as_str()), workspace, payload)
}

/// `executor.*`.
pub fn executor(happened: Happened, executor: &Executor) -> NewEvent {
    let fields = &executor.fields;
    let payload = json!({
        "id": executor.id,
        "name": fields.name,
        "type": fields.executor_type,
        "status": fields.status,
        "is_system": fields.is_system,
        "resumable": fields.resumable,
        "config": fields.config,
        "created_at": time(executor.created_at),
        "updated_at": time(executor.updated_at),
    });
    event(format!("executor.{}", happened.as_str()), "", payload)
}

/// `executor.profile.*`.
pub fn executor_profile(happened: Happened, profile: &ExecutorProfile) -> NewEvent {
    let fields = &profile.fields;
    let payload = json!({
        "id": profile.id,
        "executor_id": profile.executor_id,
        "name": fields.name,
        "mcp_policy": fields.mcp_policy,
        "config": fields.config,
        "prepare_script": fields.prepare_script,
        "cleanup_script": fields.cleanup_script,
        "created_at": time(profile.created_at),
        "updated_at": time(profile.updated_at),
    });
    event(format!("executor.profile.{}", happened.as_str()), "", payload)
}
