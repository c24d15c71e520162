//! ListWorkflows and ListWorkflowSteps (host-data.md §3).

use kandev_proto::v1::{
    ListWorkflowStepsRequest, ListWorkflowStepsResponse, ListWorkflowsRequest, ListWorkflowsResponse,
};
use tonic::Status;

use super::{data::Data, status, wire};

/// No workspace: those of all.
pub async fn list(data: &Data, request: ListWorkflowsRequest) -> Result<ListWorkflowsResponse, Status> {
    let (workflows, scope, workspace) = (&data.platform.workflows, &data.scope(), &request.workspace_id);
    let found = wire::page(request.page, |page| async move { workflows.list(scope, workspace, &page).await }).await;
    let (workflows, page_info) = found.map_err(status::of_platform)?;
    Ok(ListWorkflowsResponse { workflows, page_info })
}

/// The only list without pages; none when there is no such workflow.
pub async fn steps(data: &Data, request: ListWorkflowStepsRequest) -> Result<ListWorkflowStepsResponse, Status> {
    let steps = data.platform.workflows.steps(&data.scope(), &request.workflow_id).await;
    let steps = steps.map_err(status::of_platform)?;
    Ok(ListWorkflowStepsResponse { steps: steps.into_iter().map(Into::into).collect() })
}
