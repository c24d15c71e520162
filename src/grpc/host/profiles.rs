//! ListAgentProfiles and ListExecutorProfiles (host-data.md §3).

use kandev_proto::v1::{
    ListAgentProfilesRequest, ListAgentProfilesResponse, ListExecutorProfilesRequest, ListExecutorProfilesResponse,
};
use tonic::Status;

use super::{data::Data, status, wire};

pub async fn of_agents(data: &Data, request: ListAgentProfilesRequest) -> Result<ListAgentProfilesResponse, Status> {
    let (agents, scope) = (&data.platform.agents, &data.scope());
    let found = wire::page(request.page, |page| async move { agents.profiles(scope, &page).await }).await;
    let (profiles, page_info) = found.map_err(status::of_platform)?;
    Ok(ListAgentProfilesResponse { profiles, page_info })
}

pub async fn of_executors(
    data: &Data,
    request: ListExecutorProfilesRequest,
) -> Result<ListExecutorProfilesResponse, Status> {
    let (executors, scope) = (&data.platform.executors, &data.scope());
    let found = wire::page(request.page, |page| async move { executors.profiles(scope, &page).await }).await;
    let (profiles, page_info) = found.map_err(status::of_platform)?;
    Ok(ListExecutorProfilesResponse { profiles, page_info })
}
