//! Whose an event is, when its envelope does not say: what its payload names is looked up.

use crate::{
    domain::platform::event::{self, NewEvent, Origin},
    store::{db::DbFault, platform::PlatformStore},
};

/// Fills in the workspace of each event that says only by its payload whose it is. Tasks and sessions are looked up for
/// all of them at once.
pub(super) async fn name_workspaces(store: &PlatformStore, mut events: Vec<&mut NewEvent>) -> Result<(), DbFault> {
    let (mut tasks, mut sessions) = (Vec::new(), Vec::new());
    for event in events.iter_mut().filter(|event| event.workspace_id.is_empty()) {
        let Origin { workspace_id, task_id, session_id } = event::origin(&event.payload);
        match workspace_id {
            Some(id) => event.workspace_id = id.to_owned(),
            None => {
                tasks.extend(task_id.map(str::to_owned));
                sessions.extend(session_id.map(str::to_owned));
            }
        }
    }
    if tasks.is_empty() && sessions.is_empty() {
        return Ok(());
    }
    let found = store.workspaces_of(&tasks, &sessions).await?;
    for event in events.iter_mut().filter(|event| event.workspace_id.is_empty()) {
        let Origin { task_id, session_id, .. } = event::origin(&event.payload);
        let of_task = || found.tasks.get(task_id?);
        let of_session = || found.sessions.get(session_id?);
        if let Some(id) = of_task().or_else(of_session) {
            event.workspace_id = id.clone();
        }
    }
    Ok(())
}
