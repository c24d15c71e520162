//! ListMessages (host-data.md §3, §4).

use kandev_proto::v1::{ListMessagesRequest, ListMessagesResponse};
use tonic::Status;

use super::{data::Data, status, wire};
use crate::domain::platform::message::MessageFilter;

pub async fn list(data: &Data, request: ListMessagesRequest) -> Result<ListMessagesResponse, Status> {
    let filter = MessageFilter::try_from(request.filter.unwrap_or_default()).map_err(status::of_refusal)?;
    let (messages, scope, filter) = (&data.platform.messages, &data.scope(), &filter);
    let found = wire::page(request.page, |page| async move { messages.list(scope, filter, false, &page).await }).await;
    let (messages, page_info) = found.map_err(status::of_platform)?;
    Ok(ListMessagesResponse { messages, page_info })
}
