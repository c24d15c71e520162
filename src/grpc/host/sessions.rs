//! ListSessions and ListSessionCodeStats, in one order (host-data.md §3, §5, §11 row 2).

use kandev_proto::v1::{
    ListSessionCodeStatsRequest, ListSessionCodeStatsResponse, ListSessionsRequest, ListSessionsResponse,
};
use tonic::Status;

use super::{data::Data, status, wire};

pub async fn list(data: &Data, request: ListSessionsRequest) -> Result<ListSessionsResponse, Status> {
    let (filter, page) = (request.filter.unwrap_or_default().into(), wire::page_request(request.page));
    let found = data.platform.sessions.list(&data.scope(), &filter, &page).await.map_err(status::of_platform)?;
    let (sessions, page_info) = wire::page(found);
    Ok(ListSessionsResponse { sessions, page_info })
}

pub async fn code_stats(
    data: &Data,
    request: ListSessionCodeStatsRequest,
) -> Result<ListSessionCodeStatsResponse, Status> {
    let (filter, page) = (request.filter.unwrap_or_default().into(), wire::page_request(request.page));
    let found = data.platform.code.stats(&data.scope(), &filter, &page).await.map_err(status::of_platform)?;
    let (stats, page_info) = wire::page(found);
    Ok(ListSessionCodeStatsResponse { stats, page_info })
}
