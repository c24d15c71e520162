//! Rows of tasks, sessions, turns, messages, commits and snapshots.

use super::{
    Owner,
    record::{Record, at, json, maybe_at, maybe_micros, parse, word},
};
use crate::{
    domain::platform::{
        message::Message,
        micros,
        refusal::Kind,
        session::{Session, Turn},
        stats::{Commit, CommitFields, Snapshot, SnapshotFields},
        task::{Task, TaskRepository},
        words::{AuthorType, MessageType, Origin, Priority, ReviewStatus, SessionState, TaskState},
    },
    entities::{session_commit, session_message, session_snapshot, session_turn, task, task_repository, task_session},
    store::db::DbFault,
};

impl Record for Task {
    const KIND: Kind = Kind::Task;
    type Entity = task::Entity;
    type Row = task::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Workspace(&self.workspace_id)
    }

    fn row(&self) -> task::Model {
        task::Model {
            id: self.id.clone(),
            workspace_id: self.workspace_id.clone(),
            workflow_id: self.workflow_id.clone(),
            workflow_step_id: self.workflow_step_id.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            state: self.state.as_str().to_owned(),
            priority: self.priority.as_str().to_owned(),
            origin: self.origin.as_str().to_owned(),
            position: self.position,
            identifier: self.identifier.clone(),
            external_id: self.external_id.clone(),
            parent_id: self.parent_id.clone(),
            is_ephemeral: self.is_ephemeral,
            is_internal: self.origin == Origin::AutomationRun || self.is_config_mode(),
            source: self.source().unwrap_or_default().to_owned(),
            archived_at: maybe_micros(self.archived_at),
            started_at: maybe_micros(self.started_at),
            completed_at: maybe_micros(self.completed_at),
            metadata: json(&self.metadata),
            created_at: micros(self.created_at),
            updated_at: micros(self.updated_at),
            version: self.version,
        }
    }

    /// What it works on is in other rows.
    fn of(row: task::Model) -> Result<Self, DbFault> {
        Ok(Self {
            state: word("the state of a task", &row.state, TaskState::of)?,
            priority: word("the priority of a task", &row.priority, Priority::of)?,
            origin: word("the origin of a task", &row.origin, Origin::of)?,
            metadata: parse("the metadata of a task", &row.metadata)?,
            id: row.id,
            workspace_id: row.workspace_id,
            workflow_id: row.workflow_id,
            workflow_step_id: row.workflow_step_id,
            title: row.title,
            description: row.description,
            position: row.position,
            identifier: row.identifier,
            external_id: row.external_id,
            parent_id: row.parent_id,
            is_ephemeral: row.is_ephemeral,
            archived_at: maybe_at(row.archived_at),
            started_at: maybe_at(row.started_at),
            completed_at: maybe_at(row.completed_at),
            repositories: Vec::new(),
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
            version: row.version,
        })
    }
}

/// The row of what a task works on.
pub(super) fn task_repository_row(task_id: &str, repository: &TaskRepository) -> task_repository::Model {
    task_repository::Model {
        id: repository.id.clone(),
        task_id: task_id.to_owned(),
        repository_id: repository.repository_id.clone(),
        base_branch: repository.base_branch.clone(),
        checkout_branch: repository.checkout_branch.clone(),
        pull_request_number: repository.pull_request_number,
        position: repository.position,
    }
}

/// What a task works on, from its row.
pub(super) fn task_repository(row: task_repository::Model) -> TaskRepository {
    TaskRepository {
        id: row.id,
        repository_id: row.repository_id,
        base_branch: row.base_branch,
        checkout_branch: row.checkout_branch,
        pull_request_number: row.pull_request_number,
        position: row.position,
    }
}

impl Record for Session {
    const KIND: Kind = Kind::Session;
    type Entity = task_session::Entity;
    type Row = task_session::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Workspace(&self.workspace_id)
    }

    fn row(&self) -> task_session::Model {
        task_session::Model {
            id: self.id.clone(),
            task_id: self.task_id.clone(),
            workspace_id: self.workspace_id.clone(),
            name: self.name.clone(),
            state: self.state.as_str().to_owned(),
            error_message: self.error_message.clone(),
            agent_profile_id: self.agent_profile_id.clone(),
            agent_profile_snapshot: json(&self.agent_profile_snapshot),
            executor_id: self.executor_id.clone(),
            executor_profile_id: self.executor_profile_id.clone(),
            executor_snapshot: json(&self.executor_snapshot),
            repository_id: self.repository_id.clone(),
            base_branch: self.base_branch.clone(),
            metadata: json(&self.metadata),
            is_primary: self.is_primary,
            review_status: self.review_status.map(|status| status.as_str().to_owned()),
            last_read_message_id: self.last_read_message_id.clone(),
            started_at: micros(self.started_at),
            completed_at: maybe_micros(self.completed_at),
            updated_at: micros(self.updated_at),
            version: self.version,
        }
    }

    fn of(row: task_session::Model) -> Result<Self, DbFault> {
        let review = |text: &str| word("the review of a session", text, ReviewStatus::of);
        Ok(Self {
            state: word("the state of a session", &row.state, SessionState::of)?,
            agent_profile_snapshot: parse("the profile of a session", &row.agent_profile_snapshot)?,
            executor_snapshot: parse("the executor of a session", &row.executor_snapshot)?,
            metadata: parse("the metadata of a session", &row.metadata)?,
            review_status: row.review_status.as_deref().map(review).transpose()?,
            id: row.id,
            task_id: row.task_id,
            workspace_id: row.workspace_id,
            name: row.name,
            error_message: row.error_message,
            agent_profile_id: row.agent_profile_id,
            executor_id: row.executor_id,
            executor_profile_id: row.executor_profile_id,
            repository_id: row.repository_id,
            base_branch: row.base_branch,
            is_primary: row.is_primary,
            last_read_message_id: row.last_read_message_id,
            started_at: at(row.started_at),
            completed_at: maybe_at(row.completed_at),
            updated_at: at(row.updated_at),
            version: row.version,
        })
    }
}

impl Record for Turn {
    const KIND: Kind = Kind::Turn;
    type Entity = session_turn::Entity;
    type Row = session_turn::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Session(&self.session_id)
    }

    fn row(&self) -> session_turn::Model {
        session_turn::Model {
            id: self.id.clone(),
            session_id: self.session_id.clone(),
            task_id: self.task_id.clone(),
            metadata: json(&self.metadata),
            started_at: micros(self.started_at),
            completed_at: maybe_micros(self.completed_at),
            created_at: micros(self.created_at),
            updated_at: micros(self.updated_at),
        }
    }

    fn of(row: session_turn::Model) -> Result<Self, DbFault> {
        Ok(Self {
            metadata: parse("the metadata of a turn", &row.metadata)?,
            id: row.id,
            session_id: row.session_id,
            task_id: row.task_id,
            started_at: at(row.started_at),
            completed_at: maybe_at(row.completed_at),
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
        })
    }
}

impl Record for Message {
    const KIND: Kind = Kind::Message;
    type Entity = session_message::Entity;
    type Row = session_message::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Session(&self.session_id)
    }

    fn row(&self) -> session_message::Model {
        session_message::Model {
            id: self.id.clone(),
            session_id: self.session_id.clone(),
            task_id: self.task_id.clone(),
            turn_id: self.turn_id.clone(),
            author_type: self.author_type.as_str().to_owned(),
            author_id: self.author_id.clone(),
            kind: self.message_type.as_str().to_owned(),
            raw_content: self.raw_content.clone(),
            requests_input: self.requests_input,
            metadata: json(&self.metadata),
            created_at: micros(self.created_at),
            updated_at: micros(self.updated_at),
            version: self.version,
        }
    }

    fn of(row: session_message::Model) -> Result<Self, DbFault> {
        Ok(Self {
            author_type: word("the author of a message", &row.author_type, AuthorType::of)?,
            message_type: word("the type of a message", &row.kind, MessageType::of)?,
            metadata: parse("the metadata of a message", &row.metadata)?,
            id: row.id,
            session_id: row.session_id,
            task_id: row.task_id,
            turn_id: row.turn_id,
            author_id: row.author_id,
            raw_content: row.raw_content,
            requests_input: row.requests_input,
            created_at: at(row.created_at),
            updated_at: at(row.updated_at),
            version: row.version,
        })
    }
}

impl Record for Commit {
    const KIND: Kind = Kind::Session;
    type Entity = session_commit::Entity;
    type Row = session_commit::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Session(&self.session_id)
    }

    fn row(&self) -> session_commit::Model {
        let fields = self.fields.clone();
        session_commit::Model {
            id: self.id.clone(),
            session_id: self.session_id.clone(),
            commit_sha: fields.commit_sha,
            parent_sha: fields.parent_sha,
            commit_message: fields.commit_message,
            author_name: fields.author_name,
            author_email: fields.author_email,
            files_changed: fields.files_changed,
            insertions: fields.insertions,
            deletions: fields.deletions,
            committed_at: micros(self.committed_at),
            created_at: micros(self.created_at),
        }
    }

    fn of(row: session_commit::Model) -> Result<Self, DbFault> {
        Ok(Self {
            id: row.id,
            session_id: row.session_id,
            fields: CommitFields {
                commit_sha: row.commit_sha,
                parent_sha: row.parent_sha,
                commit_message: row.commit_message,
                author_name: row.author_name,
                author_email: row.author_email,
                files_changed: row.files_changed,
                insertions: row.insertions,
                deletions: row.deletions,
            },
            committed_at: at(row.committed_at),
            created_at: at(row.created_at),
        })
    }
}

impl Record for Snapshot {
    const KIND: Kind = Kind::Session;
    type Entity = session_snapshot::Entity;
    type Row = session_snapshot::Model;

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Owner<'_> {
        Owner::Session(&self.session_id)
    }

    fn row(&self) -> session_snapshot::Model {
        session_snapshot::Model {
            id: self.id.clone(),
            session_id: self.session_id.clone(),
            branch: self.fields.branch.clone(),
            head_commit: self.fields.head_commit.clone(),
            files: json(&self.fields.files),
            additions: self.additions,
            deletions: self.deletions,
            created_at: micros(self.created_at),
        }
    }

    fn of(row: session_snapshot::Model) -> Result<Self, DbFault> {
        Ok(Self {
            fields: SnapshotFields {
                files: parse("the files of a snapshot", &row.files)?,
                branch: row.branch,
                head_commit: row.head_commit,
            },
            id: row.id,
            session_id: row.session_id,
            additions: row.additions,
            deletions: row.deletions,
            created_at: at(row.created_at),
        })
    }
}
