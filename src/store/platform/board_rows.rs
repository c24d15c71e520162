//! Rows of workspaces, workflows, repositories, agents and executors.

use super::{
    Owner,
    record::{Record, at, json, maybe_micros, parse, word},
};
use crate::{
    domain::platform::{
        micros,
        profile::{
            Agent, AgentProfile, AgentProfileFields, Executor, ExecutorFields, ExecutorProfile, ExecutorProfileFields,
        },
        refusal::Kind,
        repository::{Repository, RepositoryFields},
        words::{ExecutorType, StageType},
        workflow::{Step, Workflow},
        workspace::Workspace,
    },
    entities::{agent, agent_profile, executor, executor_profile, repository, workflow, workflow_step, workspace},
    store::db::DbFault,
};

impl Record for Workspace {
    const KIND: Kind = Kind::Workspace;
    type Entity = workspace::Entity;
    type Row = workspace::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Workspace(&self.id)
    }

    fn row(&self) -> workspace::Model {
        workspace::Model {
            id: self.id.clone(),
            name: self.name.clone(),
            description: self.description.clone(),
            owner_id: self.owner_id.clone(),
            default_executor_id: self.default_executor_id.clone(),
            default_environment_id: self.default_environment_id.clone(),
            default_agent_profile_id: self.default_agent_profile_id.clone(),
            default_config_agent_profile_id: self.default_config_agent_profile_id.clone(),
            task_prefix: self.task_prefix.clone(),
            task_sequence: self.task_sequence,
            created_at: micros(self.created_at),
            updated_at: micros(self.updated_at),
            version: self.version,
            deleting: self.deleting,
        }
    }

    fn of(row: workspace::Model) -> Result<Self, DbFault> {
        Ok(Self {
            id: row.id,
            name: row.name,
            description: row.description,
            owner_id: row.owner_id,
            default_executor_id: row.default_executor_id,
            default_environment_id: row.default_environment_id,
            default_agent_profile_id: row.default_agent_profile_id,
            default_config_agent_profile_id: row.default_config_agent_profile_id,
            task_prefix: row.task_prefix,
            task_sequence: row.task_sequence,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
            version: row.version,
            deleting: row.deleting,
        })
    }
}

impl Record for Workflow {
    const KIND: Kind = Kind::Workflow;
    type Entity = workflow::Entity;
    type Row = workflow::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Workspace(&self.workspace_id)
    }

    fn row(&self) -> workflow::Model {
        workflow::Model {
            id: self.id.clone(),
            workspace_id: self.workspace_id.clone(),
            name: self.name.clone(),
            description: self.description.clone(),
            prompt: self.prompt.clone(),
            agent_profile_id: self.agent_profile_id.clone(),
            sort_order: self.sort_order,
            hidden: self.hidden,
            created_at: micros(self.created_at),
            updated_at: micros(self.updated_at),
            version: self.version,
        }
    }

    fn of(row: workflow::Model) -> Result<Self, DbFault> {
        Ok(Self {
            id: row.id,
            workspace_id: row.workspace_id,
            name: row.name,
            description: row.description,
            prompt: row.prompt,
            agent_profile_id: row.agent_profile_id,
            sort_order: row.sort_order,
            hidden: row.hidden,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
            version: row.version,
        })
    }
}

impl Record for Step {
    const KIND: Kind = Kind::WorkflowStep;
    type Entity = workflow_step::Entity;
    type Row = workflow_step::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Workflow(&self.workflow_id)
    }

    fn row(&self) -> workflow_step::Model {
        workflow_step::Model {
            id: self.id.clone(),
            workflow_id: self.workflow_id.clone(),
            name: self.name.clone(),
            position: self.position,
            stage_type: self.stage_type.as_str().to_owned(),
            color: self.color.clone(),
            prompt: self.prompt.clone(),
            events: json(&self.events),
            allow_manual_move: self.allow_manual_move,
            is_start_step: self.is_start_step,
            show_in_command_panel: self.show_in_command_panel,
            auto_archive_after_hours: self.auto_archive_after_hours,
            wip_limit: self.wip_limit,
            pull_from_step_id: self.pull_from_step_id.clone(),
            agent_profile_id: self.agent_profile_id.clone(),
            auto_advance_requires_signal: self.auto_advance_requires_signal,
            cancel_triggers_turn_complete: self.cancel_triggers_turn_complete,
            created_at: micros(self.created_at),
            updated_at: micros(self.updated_at),
            version: self.version,
        }
    }

    fn of(row: workflow_step::Model) -> Result<Self, DbFault> {
        Ok(Self {
            stage_type: word("the stage of a step", &row.stage_type, StageType::of)?,
            events: parse("the events of a step", &row.events)?,
            id: row.id,
            workflow_id: row.workflow_id,
            name: row.name,
            position: row.position,
            color: row.color,
            prompt: row.prompt,
            allow_manual_move: row.allow_manual_move,
            is_start_step: row.is_start_step,
            show_in_command_panel: row.show_in_command_panel,
            auto_archive_after_hours: row.auto_archive_after_hours,
            wip_limit: row.wip_limit,
            pull_from_step_id: row.pull_from_step_id,
            agent_profile_id: row.agent_profile_id,
            auto_advance_requires_signal: row.auto_advance_requires_signal,
            cancel_triggers_turn_complete: row.cancel_triggers_turn_complete,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
            version: row.version,
        })
    }
}

impl Record for Repository {
    const KIND: Kind = Kind::Repository;
    type Entity = repository::Entity;
    type Row = repository::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Workspace(&self.workspace_id)
    }

    fn row(&self) -> repository::Model {
        let fields = self.fields.clone();
        repository::Model {
            id: self.id.clone(),
            workspace_id: self.workspace_id.clone(),
            name: fields.name,
            source_type: fields.source_type,
            local_path: fields.local_path,
            provider: fields.provider,
            provider_repo_id: fields.provider_repo_id,
            provider_host: fields.provider_host,
            provider_scope: fields.provider_scope,
            provider_owner: fields.provider_owner,
            provider_name: fields.provider_name,
            remote_url: fields.remote_url,
            default_branch: fields.default_branch,
            worktree_branch_prefix: fields.worktree_branch_prefix,
            pull_before_worktree: fields.pull_before_worktree,
            setup_script: fields.setup_script,
            cleanup_script: fields.cleanup_script,
            dev_script: fields.dev_script,
            copy_files: fields.copy_files,
            created_at: micros(self.created_at),
            updated_at: micros(self.updated_at),
            version: self.version,
            deleted_at: maybe_micros(self.deleted_at),
        }
    }

    fn of(row: repository::Model) -> Result<Self, DbFault> {
        Ok(Self {
            id: row.id,
            workspace_id: row.workspace_id,
            fields: RepositoryFields {
                name: row.name,
                source_type: row.source_type,
                local_path: row.local_path,
                provider: row.provider,
                provider_repo_id: row.provider_repo_id,
                provider_host: row.provider_host,
                provider_scope: row.provider_scope,
                provider_owner: row.provider_owner,
                provider_name: row.provider_name,
                remote_url: row.remote_url,
                default_branch: row.default_branch,
                worktree_branch_prefix: row.worktree_branch_prefix,
                pull_before_worktree: row.pull_before_worktree,
                setup_script: row.setup_script,
                cleanup_script: row.cleanup_script,
                dev_script: row.dev_script,
                copy_files: row.copy_files,
            },
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
            version: row.version,
            deleted_at: row.deleted_at.map(at),
        })
    }
}

impl Record for Agent {
    const KIND: Kind = Kind::Agent;
    type Entity = agent::Entity;
    type Row = agent::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Instance
    }

    fn row(&self) -> agent::Model {
        agent::Model {
            id: self.id.clone(),
            name: self.name.clone(),
            position: self.position,
            supports_mcp: self.supports_mcp,
            created_at: micros(self.created_at),
            updated_at: micros(self.updated_at),
            version: self.version,
        }
    }

    fn of(row: agent::Model) -> Result<Self, DbFault> {
        Ok(Self {
            id: row.id,
            name: row.name,
            position: row.position,
            supports_mcp: row.supports_mcp,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
            version: row.version,
        })
    }
}

impl Record for AgentProfile {
    const KIND: Kind = Kind::AgentProfile;
    type Entity = agent_profile::Entity;
    type Row = agent_profile::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        self.fields.workspace_id.as_deref().map_or(Owner::Instance, Owner::Workspace)
    }

    fn row(&self) -> agent_profile::Model {
        let fields = &self.fields;
        agent_profile::Model {
            id: self.id.clone(),
            agent_id: self.agent_id.clone(),
            agent_display_name: self.agent_display_name.clone(),
            agent_position: self.agent_position,
            name: fields.name.clone(),
            model: fields.model.clone(),
            mode: fields.mode.clone(),
            workspace_id: fields.workspace_id.clone(),
            enabled: fields.enabled,
            settings: json(&fields.settings),
            created_at: micros(self.created_at),
            updated_at: micros(self.updated_at),
            version: self.version,
        }
    }

    fn of(row: agent_profile::Model) -> Result<Self, DbFault> {
        Ok(Self {
            fields: AgentProfileFields {
                settings: parse("the settings of an agent profile", &row.settings)?,
                name: row.name,
                model: row.model,
                mode: row.mode,
                workspace_id: row.workspace_id,
                enabled: row.enabled,
            },
            id: row.id,
            agent_id: row.agent_id,
            agent_display_name: row.agent_display_name,
            agent_position: row.agent_position,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
            version: row.version,
        })
    }
}

impl Record for Executor {
    const KIND: Kind = Kind::Executor;
    type Entity = executor::Entity;
    type Row = executor::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Instance
    }

    fn row(&self) -> executor::Model {
        let fields = &self.fields;
        executor::Model {
            id: self.id.clone(),
            name: fields.name.clone(),
            kind: fields.executor_type.as_str().to_owned(),
            status: fields.status.clone(),
            is_system: fields.is_system,
            resumable: fields.resumable,
            config: json(&fields.config),
            created_at: micros(self.created_at),
            updated_at: micros(self.updated_at),
            version: self.version,
        }
    }

    fn of(row: executor::Model) -> Result<Self, DbFault> {
        Ok(Self {
            fields: ExecutorFields {
                executor_type: word("the type of an executor", &row.kind, ExecutorType::of)?,
                config: parse("the config of an executor", &row.config)?,
                name: row.name,
                status: row.status,
                is_system: row.is_system,
                resumable: row.resumable,
            },
            id: row.id,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
            version: row.version,
        })
    }
}

impl Record for ExecutorProfile {
    const KIND: Kind = Kind::ExecutorProfile;
    type Entity = executor_profile::Entity;
    type Row = executor_profile::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Instance
    }

    fn row(&self) -> executor_profile::Model {
        let fields = &self.fields;
        executor_profile::Model {
            id: self.id.clone(),
            executor_id: self.executor_id.clone(),
            name: fields.name.clone(),
            mcp_policy: fields.mcp_policy.clone(),
            config: json(&fields.config),
            prepare_script: fields.prepare_script.clone(),
            cleanup_script: fields.cleanup_script.clone(),
            created_at: micros(self.created_at),
            updated_at: micros(self.updated_at),
            version: self.version,
        }
    }

    /// The executor's type is another row's.
    fn of(row: executor_profile::Model) -> Result<Self, DbFault> {
        Ok(Self {
            fields: ExecutorProfileFields {
                config: parse("the config of an executor profile", &row.config)?,
                name: row.name,
                mcp_policy: row.mcp_policy,
                prepare_script: row.prepare_script,
                cleanup_script: row.cleanup_script,
            },
            id: row.id,
            executor_id: row.executor_id,
            executor_type: None,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
            version: row.version,
        })
    }
}
