//! CreateTask and UpdateTask (host-data.md §6.1, §6.2). The services own the rules and tell the events.

use kandev_proto::v1::{CreateTaskRequest, CreateTaskResponse, UpdateTaskRequest, UpdateTaskResponse};
use tonic::{Request, Response, Status, metadata::MetadataValue};

use super::{data::Data, once, status, wire};
use crate::platform::tasks::NO_AGENTS;

/// Metadata of an answer with something to say beside its message.
pub const NOTICE: &str = "kandev-notice";

pub async fn create(data: &Data, request: Request<CreateTaskRequest>) -> Result<Response<CreateTaskResponse>, Status> {
    let once = once::of(data, "CreateTask", request.metadata(), request.get_ref())?;
    let request = request.into_inner();
    let new = wire::new_task(request, |provider| data.providers.contains(provider)).map_err(status::of_refusal)?;
    let task = data.platform.tasks.create(&data.by().with(once), &new).await.map_err(status::of_platform)?.task;
    let mut response = Response::new(CreateTaskResponse { task: Some(task.into()) });
    if new.launch.is_some() {
        response.metadata_mut().insert(NOTICE, MetadataValue::from_static(NO_AGENTS));
    }
    Ok(response)
}

pub async fn update(data: &Data, request: Request<UpdateTaskRequest>) -> Result<UpdateTaskResponse, Status> {
    let once = once::of(data, "UpdateTask", request.metadata(), request.get_ref())?;
    let (id, patch) = wire::task_patch(request.into_inner()).map_err(status::of_refusal)?;
    let task =
        data.platform.tasks.update(&data.by().with(once), &id, &patch, None).await.map_err(status::of_platform)?;
    Ok(UpdateTaskResponse { task: Some(task.into()) })
}
