//! go-plugin's ping: the standard health check of the service `plugin`.

use std::time::Duration;

use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::error::PingError;
use crate::HEALTH_SERVICE;
use crate::text::{clean, error_chain};

/// How much of the plugin's own message an error quotes, in bytes.
const QUOTE_BYTES: usize = 200;

/// Asks once whether the plugin serves.
pub(crate) async fn ping(channel: &Channel, deadline: Duration) -> Result<(), PingError> {
    let mut request = Request::new(HealthCheckRequest { service: HEALTH_SERVICE.to_owned() });
    // The plugin is told too, a little later, so that our own clock decides and its handler ends all the same.
    request.set_timeout(deadline + deadline / 8);
    let answer = timeout(deadline, HealthClient::new(channel.clone()).check(request)).await;
    match answer.map_err(|_| PingError::TimedOut { after: deadline })? {
        Ok(response) => match response.get_ref().status() {
            ServingStatus::Serving => Ok(()),
            other => Err(PingError::NotServing { status: other.as_str_name() }),
        },
        Err(status) => Err(refusal(&status)),
    }
}

fn refusal(status: &Status) -> PingError {
    match std::error::Error::source(status) {
        Some(cause) => PingError::Transport(error_chain(cause)),
        None if status.code() == Code::Unavailable => PingError::Transport("unavailable".to_owned()),
        None => {
            let message = clean(status.message().as_bytes(), QUOTE_BYTES);
            PingError::Refused { status: format!("{:?}: {message}", status.code()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::Pin;

    use tokio_stream::Stream;
    use tonic::Response;
    use tonic::service::Routes;
    use tonic_health::pb::HealthCheckResponse;
    use tonic_health::pb::health_server::{Health, HealthServer};

    use super::*;
    use crate::host::in_process::channel_to;

    /// Answers every check the same, or never.
    struct Answer(Option<Result<ServingStatus, Status>>);

    #[tonic::async_trait]
    impl Health for Answer {
        type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

        async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
            assert_eq!(request.get_ref().service, "plugin");
            match self.0.clone() {
                Some(answer) => Ok(Response::new(HealthCheckResponse { status: answer?.into() })),
                None => pending().await,
            }
        }

        async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
            Err(Status::unimplemented("not asked for"))
        }
    }

    async fn ping_of(answer: Option<Result<ServingStatus, Status>>, deadline: Duration) -> Result<(), PingError> {
        ping(&channel_to(Routes::new(HealthServer::new(Answer(answer)))).await, deadline).await
    }

    #[tokio::test]
    async fn only_serving_is_a_good_answer() {
        const LIMIT: Duration = Duration::from_secs(10);
        assert_eq!(ping_of(Some(Ok(ServingStatus::Serving)), LIMIT).await, Ok(()));
        for (answer, status) in [(ServingStatus::NotServing, "NOT_SERVING"), (ServingStatus::Unknown, "UNKNOWN")] {
            assert_eq!(ping_of(Some(Ok(answer)), LIMIT).await, Err(PingError::NotServing { status }));
        }
        let refused = PingError::Refused { status: "NotFound: no such service".to_owned() };
        assert_eq!(ping_of(Some(Err(Status::not_found("no such\n service"))), LIMIT).await, Err(refused));
        let missing = ping(&channel_to(Routes::default()).await, LIMIT).await;
        assert!(matches!(missing, Err(PingError::Refused { .. })), "{missing:?}");
    }

    #[tokio::test]
    async fn no_answer_is_told_with_the_deadline() {
        let deadline = Duration::from_millis(50);
        assert_eq!(ping_of(None, deadline).await, Err(PingError::TimedOut { after: deadline }));
    }
}
