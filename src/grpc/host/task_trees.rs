//! PreviewPluginOwnedTaskTree and DeletePluginOwnedTaskTree (host-data.md §6.4). A tree goes as a whole or not at all,
//! so a failure never has the progress that the contract allows.

use kandev_proto::v1::{
    DeletePluginOwnedTaskTreeRequest, DeletePluginOwnedTaskTreeResponse, PreviewPluginOwnedTaskTreeRequest,
    PreviewPluginOwnedTaskTreeResponse,
};
use prost::Message as _;
use tonic::Status;

use super::{data::Data, status};

pub async fn preview(
    data: &Data,
    request: PreviewPluginOwnedTaskTreeRequest,
) -> Result<PreviewPluginOwnedTaskTreeResponse, Status> {
    let tree = data.platform.tasks.owned_tree(&data.scope(), &data.plugin, &request.root_task_id).await;
    let tree = tree.map_err(status::of_platform)?;
    let answer = PreviewPluginOwnedTaskTreeResponse { tasks: tree.into_iter().map(Into::into).collect() };
    let (count, size) = (answer.tasks.len(), answer.encoded_len());
    if size as u64 > data.answer_bytes {
        return Err(status::too_large_a_tree(count, size, data.answer_bytes));
    }
    Ok(answer)
}

pub async fn delete(
    data: &Data,
    request: DeletePluginOwnedTaskTreeRequest,
) -> Result<DeletePluginOwnedTaskTreeResponse, Status> {
    let deleted = data.platform.tasks.delete_owned_tree(&data.scope(), &data.plugin, &request.root_task_id).await;
    Ok(DeletePluginOwnedTaskTreeResponse { deleted_task_ids: deleted.map_err(status::of_platform)? })
}
