//! ListWorkspaces (host-data.md §3).

use kandev_proto::v1::{ListWorkspacesRequest, ListWorkspacesResponse};
use tonic::Status;

use super::{data::Data, status, wire};

pub async fn list(data: &Data, request: ListWorkspacesRequest) -> Result<ListWorkspacesResponse, Status> {
    let page = wire::page_request(request.page);
    let found = data.platform.workspaces.list(&data.scope(), &page).await.map_err(status::of_platform)?;
    let (workspaces, page_info) = wire::page(found);
    Ok(ListWorkspacesResponse { workspaces, page_info })
}
