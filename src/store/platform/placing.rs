//! Where a new task goes: its workspace, its workflow and the steps of that, by one statement. On SQLite all other
//! writers wait while a task is made, so each statement counts, and this one is asked of a reader before.

use sea_orm::{
    ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
    sea_query::{Alias, Expr, ExprTrait as _, Order, Query, SelectStatement},
};

use super::{PlatformError, PlatformStore, Work, board::seen_workspaces, tasks::within};
use crate::{
    domain::platform::{
        Scope,
        text::may_be_id,
        workflow::{Destination, Lane, Slot},
    },
    entities::{workflow, workflow_step, workspace},
};

/// A workspace with a step of its workflow; with the workflow alone when that has no step, and alone without one.
#[derive(FromQueryResult)]
struct Row {
    workspace_id: String,
    task_prefix: String,
    deleting: bool,
    workflow_id: Option<String>,
    workflow_of: Option<String>,
    step_id: Option<String>,
    is_start_step: Option<bool>,
}

impl PlatformStore {
    /// As [`Work::destination`], before the work: what it names may be gone or closed when the work begins. A row of
    /// the task that refers to what is gone is then a conflict (`DbFault::Conflict`), and the work looks again.
    pub async fn destination(
        &self,
        scope: &Scope,
        workspace_id: &str,
        workflow_id: &str,
    ) -> Result<Option<Destination>, PlatformError> {
        let Some(query) = query(scope, workspace_id, workflow_id) else { return Ok(None) };
        let work = async || Ok::<_, PlatformError>(query.clone().into_model::<Row>().all(self.db.reader()).await?);
        Ok(of(self.db.repeat(work).await?))
    }
}

impl Work {
    /// Where a task goes that names these; an empty id names the only workspace of the scope, or the first workflow
    /// that is not hidden. A named workflow may be of another workspace that the scope sees. `None` without such a
    /// workspace. Nothing is locked.
    pub async fn destination(
        &self,
        workspace_id: &str,
        workflow_id: &str,
    ) -> Result<Option<Destination>, PlatformError> {
        let Some(query) = query(self.scope(), workspace_id, workflow_id) else { return Ok(None) };
        Ok(of(query.into_model::<Row>().all(self.transaction()).await?))
    }
}

/// None for a workspace that cannot be.
pub(super) fn query(scope: &Scope, workspace_id: &str, workflow_id: &str) -> Option<Select<workspace::Entity>> {
    use workspace::Column;
    let mut query = match workspace_id {
        // Two are as good as many.
        "" => {
            let some = seen_workspaces(scope).select_only().column(Column::Id).limit(2);
            workspace::Entity::find().filter(Column::Id.in_subquery(some.into_query()))
        }
        id if !may_be_id(id) => return None,
        id => seen_workspaces(scope).filter(Column::Id.eq(id)),
    };
    let id_of_workflow = Expr::col((workflow::Entity, workflow::Column::Id));
    let workflow = match workflow_id {
        "" => id_of_workflow.eq(Expr::SubQuery(None, Box::new(first_workflow().into()))),
        id if !may_be_id(id) => Expr::value(false),
        id => id_of_workflow.eq(id),
    };
    let workflow = match within(scope, None) {
        None => workflow,
        Some(seen) => workflow.and(Expr::col((workflow::Entity, workflow::Column::WorkspaceId)).is_in(seen)),
    };
    let workflow_of_step = Expr::col((workflow_step::Entity, workflow_step::Column::WorkflowId));
    let step = workflow_of_step.equals((workflow::Entity, workflow::Column::Id));
    QueryTrait::query(&mut query).left_join(workflow::Entity, workflow).left_join(workflow_step::Entity, step);
    let query = query
        .select_only()
        .column_as(Column::Id, "workspace_id")
        .column(Column::TaskPrefix)
        .column(Column::Deleting)
        .column_as(workflow::Column::Id, "workflow_id")
        .column_as(workflow::Column::WorkspaceId, "workflow_of")
        .column_as(workflow_step::Column::Id, "step_id")
        .column(workflow_step::Column::IsStartStep);
    Some(query.order_by_asc(workflow_step::Column::Position).order_by_asc(workflow_step::Column::Id))
}

/// The id of the first one that is not hidden, of the workspace of the row around it.
fn first_workflow() -> SelectStatement {
    use workflow::Column;
    let first = |column: Column| (Alias::new("first_one"), column);
    Query::select()
        .column(first(Column::Id))
        .from_as(workflow::Entity, Alias::new("first_one"))
        .and_where(Expr::col(first(Column::WorkspaceId)).equals((workspace::Entity, workspace::Column::Id)))
        .and_where(Expr::col(first(Column::Hidden)).eq(false))
        .order_by(first(Column::SortOrder), Order::Asc)
        .order_by(first(Column::CreatedAt), Order::Asc)
        .order_by(first(Column::Id), Order::Asc)
        .limit(1)
        .take()
}

/// The rows of one workspace; `None` for those of several.
fn of(rows: Vec<Row>) -> Option<Destination> {
    let first = rows.first()?;
    if rows.iter().any(|row| row.workspace_id != first.workspace_id) {
        return None;
    }
    let (workspace_id, numbers_tasks) = (first.workspace_id.clone(), !first.task_prefix.is_empty());
    let closed = first.deleting;
    let lane = first.workflow_id.clone().zip(first.workflow_of.clone());
    let slot = |row: Row| Some(Slot { id: row.step_id?, is_start_step: row.is_start_step? });
    let steps = rows.into_iter().filter_map(slot).collect();
    let lane = lane.map(|(id, workspace_id)| Lane { id, workspace_id, steps });
    Some(Destination { workspace_id, numbers_tasks, closed, lane })
}
