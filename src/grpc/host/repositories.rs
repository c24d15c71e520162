//! ListRepositories (host-data.md §3).

use kandev_proto::v1::{ListRepositoriesRequest, ListRepositoriesResponse};
use tonic::Status;

use super::{data::Data, status, wire};

/// No workspace: none at all, unlike workflows.
pub async fn list(data: &Data, request: ListRepositoriesRequest) -> Result<ListRepositoriesResponse, Status> {
    let (repositories, scope, workspace) = (&data.platform.repositories, &data.scope(), &request.workspace_id);
    let found = wire::page(request.page, |page| async move { repositories.list(scope, workspace, &page).await }).await;
    let (repositories, page_info) = found.map_err(status::of_platform)?;
    Ok(ListRepositoriesResponse { repositories, page_info })
}
