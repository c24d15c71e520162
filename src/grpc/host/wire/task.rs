//! Tasks as messages, their filter and their patch.

use kandev_proto::{struct_from_json, v1};

use super::{moment, narrow};
use crate::domain::{
    clean,
    platform::{
        refusal::Refusal,
        task::{Show, Task, TaskFilter, TaskPatch, TaskRepository},
        text::MAX_ID_BYTES,
        words::TaskState,
    },
};

impl From<Task> for v1::Task {
    fn from(task: Task) -> Self {
        Self {
            id: task.id,
            workspace_id: task.workspace_id,
            workflow_id: task.workflow_id,
            title: task.title,
            description: task.description,
            state: task.state.as_str().to_owned(),
            priority: task.priority.as_str().to_owned(),
            created_by: task.origin.as_str().to_owned(),
            created_at: moment(task.created_at),
            updated_at: moment(task.updated_at),
            started_at: task.started_at.map(moment),
            completed_at: task.completed_at.map(moment),
            parent_id: task.parent_id,
            identifier: task.identifier,
            is_ephemeral: task.is_ephemeral,
            repositories: task.repositories.into_iter().map(Into::into).collect(),
            metadata: Some(struct_from_json(task.metadata)),
        }
    }
}

impl From<TaskRepository> for v1::TaskRepository {
    fn from(repository: TaskRepository) -> Self {
        Self {
            id: repository.id,
            repository_id: repository.repository_id,
            base_branch: repository.base_branch,
            position: narrow(repository.position),
            checkout_branch: repository.checkout_branch,
        }
    }
}

/// Which tasks a plugin's list shows: what was put away and what is internal never (host-data.md §3).
pub fn task_filter(filter: Option<v1::TaskFilter>) -> TaskFilter {
    let filter = filter.unwrap_or_default();
    TaskFilter {
        workspace_ids: filter.workspace_ids,
        workflow_ids: filter.workflow_ids,
        states: filter.states,
        parent_id: filter.parent_id,
        ephemeral: if filter.include_ephemeral { Show::With } else { Show::Without },
        ..TaskFilter::default()
    }
}

/// Which task changes, and how (host-data.md §6.2).
pub fn task_patch(request: v1::UpdateTaskRequest) -> Result<(String, TaskPatch), Refusal> {
    if request.id.is_empty() {
        return Err(Refusal::Required("id"));
    }
    let state = |word: String| {
        TaskState::of_writer(&word).ok_or_else(|| Refusal::BadTaskState(clean::single_line(&word, MAX_ID_BYTES)))
    };
    let patch = TaskPatch {
        title: request.title,
        description: request.description,
        state: request.state.map(state).transpose()?,
        workflow_step_id: request.workflow_step_id,
        ..TaskPatch::default()
    };
    Ok((request.id, patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_no_writer_may_set_is_named_cleaned_and_cut() {
        let of = |state: &str| {
            let request = v1::UpdateTaskRequest {
                id: "t".to_owned(),
                state: Some(state.to_owned()),
                ..v1::UpdateTaskRequest::default()
            };
            task_patch(request).map(|(_, patch)| patch.state)
        };
        for state in TaskState::ALL.iter().filter(|state| **state != TaskState::Scheduling) {
            assert_eq!(of(state.as_str()), Ok(Some(*state)));
        }
        for word in ["SCHEDULING", "todo", "", "DONE"] {
            assert_eq!(of(word).unwrap_err().to_string(), format!("invalid task state \"{word}\""));
        }
        let long = of(&"x".repeat(100_000)).unwrap_err().to_string();
        assert!(long.len() < 200, "{} bytes", long.len());
    }

    #[test]
    fn a_parent_that_is_set_to_nothing_asks_for_roots_and_an_unset_one_for_any() {
        let of = |parent_id| task_filter(Some(v1::TaskFilter { parent_id, ..v1::TaskFilter::default() })).parent_id;
        assert_eq!((of(None), of(Some(String::new()))), (None, Some(String::new())));
        assert_eq!(task_filter(None), TaskFilter::default());
    }
}
