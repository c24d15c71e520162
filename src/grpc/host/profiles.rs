//! ListAgentProfiles and ListExecutorProfiles (host-data.md §3).

use kandev_proto::v1::{
    ListAgentProfilesRequest, ListAgentProfilesResponse, ListExecutorProfilesRequest, ListExecutorProfilesResponse,
};
use tonic::Status;

use super::{data::Data, status, wire};

pub async fn of_agents(data: &Data, request: ListAgentProfilesRequest) -> Result<ListAgentProfilesResponse, Status> {
    let page = wire::page_request(request.page);
    let found = data.platform.agents.profiles(&data.scope(), &page).await.map_err(status::of_platform)?;
    let (profiles, page_info) = wire::page(found);
    Ok(ListAgentProfilesResponse { profiles, page_info })
}

pub async fn of_executors(
    data: &Data,
    request: ListExecutorProfilesRequest,
) -> Result<ListExecutorProfilesResponse, Status> {
    let page = wire::page_request(request.page);
    let found = data.platform.executors.profiles(&data.scope(), &page).await.map_err(status::of_platform)?;
    let (profiles, page_info) = wire::page(found);
    Ok(ListExecutorProfilesResponse { profiles, page_info })
}
