//! ListSessions and ListSessionCodeStats, in one order (host-data.md §3, §5, §11 row 2).

use kandev_proto::v1::{
    ListSessionCodeStatsRequest, ListSessionCodeStatsResponse, ListSessionsRequest, ListSessionsResponse,
};
use tonic::Status;

use super::{data::Data, status, wire};

pub async fn list(data: &Data, request: ListSessionsRequest) -> Result<ListSessionsResponse, Status> {
    let (sessions, scope, filter) =
        (&data.platform.sessions, &data.scope(), &request.filter.unwrap_or_default().into());
    let found = wire::page(request.page, |page| async move { sessions.list(scope, filter, &page).await }).await;
    let (sessions, page_info) = found.map_err(status::of_platform)?;
    Ok(ListSessionsResponse { sessions, page_info })
}

pub async fn code_stats(
    data: &Data,
    request: ListSessionCodeStatsRequest,
) -> Result<ListSessionCodeStatsResponse, Status> {
    let (code, scope, filter) = (&data.platform.code, &data.scope(), &request.filter.unwrap_or_default().into());
    let found = wire::page(request.page, |page| async move { code.stats(scope, filter, &page).await }).await;
    let (stats, page_info) = found.map_err(status::of_platform)?;
    Ok(ListSessionCodeStatsResponse { stats, page_info })
}
