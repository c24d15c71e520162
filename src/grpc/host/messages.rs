//! ListMessages (host-data.md §3, §4).

use kandev_proto::v1::{ListMessagesRequest, ListMessagesResponse};
use tonic::Status;

use super::{data::Data, status, wire};
use crate::domain::platform::message::MessageFilter;

pub async fn list(data: &Data, request: ListMessagesRequest) -> Result<ListMessagesResponse, Status> {
    let filter = MessageFilter::try_from(request.filter.unwrap_or_default()).map_err(status::of_refusal)?;
    let page = wire::page_request(request.page);
    let found = data.platform.messages.list(&data.scope(), &filter, false, &page).await;
    let (messages, page_info) = wire::page(found.map_err(status::of_platform)?);
    Ok(ListMessagesResponse { messages, page_info })
}
