//! ListRepositories (host-data.md §3).

use kandev_proto::v1::{ListRepositoriesRequest, ListRepositoriesResponse};
use tonic::Status;

use super::{data::Data, status, wire};

/// No workspace: none at all, unlike workflows.
pub async fn list(data: &Data, request: ListRepositoriesRequest) -> Result<ListRepositoriesResponse, Status> {
    let page = wire::page_request(request.page);
    let found = data.platform.repositories.list(&data.scope(), &request.workspace_id, &page).await;
    let (repositories, page_info) = wire::page(found.map_err(status::of_platform)?);
    Ok(ListRepositoriesResponse { repositories, page_info })
}
