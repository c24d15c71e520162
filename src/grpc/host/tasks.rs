//! ListTasks and GetTask (host-data.md §3).

use kandev_proto::v1::{GetTaskRequest, GetTaskResponse, ListTasksRequest, ListTasksResponse};
use tonic::Status;

use super::{data::Data, status, wire};

pub async fn list(data: &Data, request: ListTasksRequest) -> Result<ListTasksResponse, Status> {
    let (tasks, scope, filter) = (&data.platform.tasks, &data.scope(), &wire::task_filter(request.filter));
    let found = wire::page(request.page, |page| async move { tasks.list(scope, filter, &page).await }).await;
    let (tasks, page_info) = found.map_err(status::of_platform)?;
    Ok(ListTasksResponse { tasks, page_info })
}

pub async fn get(data: &Data, request: GetTaskRequest) -> Result<GetTaskResponse, Status> {
    let task = data.platform.tasks.get(&data.scope(), &request.id).await.map_err(status::of_platform)?;
    Ok(GetTaskResponse { task: Some(task.into()) })
}
