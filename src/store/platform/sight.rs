//! Who sees a thing that was found by its id: the one place where a scope is held against a row. Lists have it in their
//! statements (`tasks::within`).

use sea_orm::{ConnectionTrait, EntityTrait, QuerySelect};

use super::{PlatformError, Record};
use crate::{
    domain::platform::Scope,
    entities::{task_session, workflow},
};

/// Whose a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// The whole instance's.
    Instance,
    /// This workspace's.
    Workspace(&'a str),
    /// The workspace's that has this workflow.
    Workflow(&'a str),
    /// The workspace's that has this session.
    Session(&'a str),
}

/// Whether the scope sees it. No statement for a scope that sees everything.
pub(super) async fn sees<R: Record>(
    connection: &impl ConnectionTrait,
    scope: &Scope,
    record: &R,
) -> Result<bool, PlatformError> {
    if *scope == Scope::All {
        return Ok(true);
    }
    let workspace: Option<String> = match record.owner() {
        Owner::Instance => return Ok(scope.sees_instance()),
        Owner::Workspace(id) => return Ok(scope.sees(id)),
        Owner::Workflow(id) => {
            let query = workflow::Entity::find_by_id(id.to_owned()).select_only().column(workflow::Column::WorkspaceId);
            query.into_tuple().one(connection).await?
        }
        Owner::Session(id) => {
            let query = task_session::Entity::find_by_id(id.to_owned());
            query.select_only().column(task_session::Column::WorkspaceId).into_tuple().one(connection).await?
        }
    };
    Ok(workspace.is_some_and(|workspace| scope.sees(&workspace)))
}
