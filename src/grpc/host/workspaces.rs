//! ListWorkspaces (host-data.md §3).

use kandev_proto::v1::{ListWorkspacesRequest, ListWorkspacesResponse};
use tonic::Status;

use super::{data::Data, status, wire};

pub async fn list(data: &Data, request: ListWorkspacesRequest) -> Result<ListWorkspacesResponse, Status> {
    let (workspaces, scope) = (&data.platform.workspaces, &data.scope());
    let found = wire::page(request.page, |page| async move { workspaces.list(scope, &page).await }).await;
    let (workspaces, page_info) = found.map_err(status::of_platform)?;
    Ok(ListWorkspacesResponse { workspaces, page_info })
}
