//! ListTasks and GetTask (host-data.md §3).

use kandev_proto::v1::{GetTaskRequest, GetTaskResponse, ListTasksRequest, ListTasksResponse};
use tonic::Status;

use super::{data::Data, status, wire};

pub async fn list(data: &Data, request: ListTasksRequest) -> Result<ListTasksResponse, Status> {
    let (filter, page) = (wire::task_filter(request.filter), wire::page_request(request.page));
    let found = data.platform.tasks.list(&data.scope(), &filter, &page).await.map_err(status::of_platform)?;
    let (tasks, page_info) = wire::page(found);
    Ok(ListTasksResponse { tasks, page_info })
}

pub async fn get(data: &Data, request: GetTaskRequest) -> Result<GetTaskResponse, Status> {
    let task = data.platform.tasks.get(&data.scope(), &request.id).await.map_err(status::of_platform)?;
    Ok(GetTaskResponse { task: Some(task.into()) })
}
