//! The controller service: Shutdown ends [`serve`](super::serve).

use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::proto::Empty;
use crate::proto::grpc_controller_server::GrpcController;

pub(crate) struct Controller {
    pub(crate) stop: CancellationToken,
}

#[tonic::async_trait]
impl GrpcController for Controller {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.stop.cancel();
        Ok(Response::new(Empty {}))
    }
}
