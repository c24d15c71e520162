//! A span and one access line for each request.
//!
//! Neither holds the query, a header or the raw path: all three may carry secrets (a webhook's address often does).
//! The route's pattern and the plugin's id are enough to find the request.

use std::future::Future;

use actix_web::{
    Error, HttpMessage,
    dev::{ServiceRequest, ServiceResponse},
    http::header::{HeaderName, HeaderValue},
    web,
};
use tokio::time::Instant;
use tracing::{Instrument, Span};
use uuid::{NoContext, Timestamp, Uuid};

use super::{Services, gate, routes::Pattern, trace_context};
use crate::domain::clean;

/// Carries the request's id in the answer, unless a plugin's answer has its own.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest plugin id in a line; ids of plugins are shorter, other text is cut.
const SHOWN_ID_BYTES: usize = 128;

/// Stands around `next`.
pub async fn request<B, Answer>(
    request: ServiceRequest,
    next: impl FnOnce(ServiceRequest) -> Answer,
) -> Result<ServiceResponse<B>, Error>
where
    Answer: Future<Output = Result<ServiceResponse<B>, Error>>,
{
    let mut text = Uuid::encode_buffer();
    // Without a counter that all workers share: ids of one millisecond have no order, and nobody reads a time out of
    // them.
    let id: &str = Uuid::new_v7(Timestamp::now(NoContext)).hyphenated().encode_lower(&mut text);
    let principal = gate::identify(&request);
    let span = tracing::info_span!("request", request.id = %id, principal = %principal);
    trace_context::take_over(request.headers(), &span);
    async {
        let begin = Instant::now();
        let mut answer = next(request).await?;
        if !answer.headers().contains_key(&REQUEST_ID)
            && let Ok(value) = HeaderValue::from_str(id)
        {
            answer.headers_mut().insert(REQUEST_ID, value);
        }
        let request = answer.request();
        let (method, peer) = (request.method(), request.peer_addr().map(|address| address.ip()));
        let route = request.extensions().get::<Pattern>().map_or("none", |Pattern(path)| *path);
        if let Some(services) = request.app_data::<web::Data<Services>>() {
            if services.traced {
                trace_context::describe(&Span::current(), method.as_str(), route, answer.status().as_u16());
            }
            services.requests.answered(route, method.as_str(), answer.status().as_u16(), begin.elapsed());
        }
        // Routes of the platform have ids of other things there.
        let names = request.match_info();
        let id = names.get("id").filter(|_| route.contains("/plugins/{id}")).or_else(|| names.get("plugin"));
        let plugin = id.map(|id| clean::single_line(id, SHOWN_ID_BYTES));
        tracing::info!(
            http.method = %clean::single_line(method.as_str(), 16),
            http.route = route,
            http.status = answer.status().as_u16(),
            plugin.id = plugin,
            peer = peer.map(tracing::field::display),
            duration_ms = begin.elapsed().as_millis() as u64,
            "request served"
        );
        Ok(answer)
    }
    .instrument(span)
    .await
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use actix_web::{
        App, HttpResponse,
        dev::Service,
        http::header,
        middleware::{Next, from_fn},
        test::{TestRequest, init_service},
        web,
    };

    use super::*;

    /// A log in memory.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The log of one request to a webhook-like route, and the answer.
    fn logged(request: TestRequest) -> (String, ServiceResponse) {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let answer = tracing::subscriber::with_default(subscriber, || {
            actix_web::rt::System::new().block_on(async {
                let known = from_fn(|request: ServiceRequest, next: Next<_>| {
                    request.extensions_mut().insert(Pattern("/plugins/{id}/{tail}"));
                    next.call(request)
                });
                let own_id = || async { HttpResponse::Ok().insert_header((REQUEST_ID, "own")).finish() };
                let app = App::new()
                    .route("/plugins/{id}/{tail:.*}", web::post().to(HttpResponse::Ok).wrap(known))
                    .route("/own", web::get().to(own_id))
                    .wrap(from_fn(|request, next: Next<_>| super::request(request, move |request| next.call(request))));
                let answer = init_service(app).await.call(request.to_request()).await.unwrap();
                answer.map_into_boxed_body()
            })
        });
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        (text, answer)
    }

    #[test]
    fn the_access_line_names_the_route_and_the_plugin_and_no_secret() {
        let request = TestRequest::post()
            .uri("/plugins/acme/hunter1?token=hunter2")
            .insert_header((header::AUTHORIZATION, "Bearer hunter3"))
            .insert_header((header::COOKIE, "hunter4"));
        let (text, answer) = logged(request);
        for part in [
            "http.method=POST",
            "http.route=\"/plugins/{id}/{tail}\"",
            "http.status=200",
            "plugin.id=\"acme\"",
            "duration_ms=",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("hunter"), "{text}");
        let id = answer.headers().get(&REQUEST_ID).unwrap().to_str().unwrap();
        assert!(text.contains(&format!("request.id={id}")), "{text}");
    }

    #[test]
    fn an_answers_own_request_id_stays() {
        let (_, answer) = logged(TestRequest::get().uri("/own"));
        assert_eq!(answer.headers().get(&REQUEST_ID).unwrap(), "own");
    }

    #[test]
    fn a_request_without_a_route_is_logged_without_its_path() {
        let (text, _) = logged(TestRequest::get().uri("/hunter"));
        assert!(text.contains("http.route=\"none\"") && text.contains("http.status=404"), "{text}");
        assert!(!text.contains("hunter"), "{text}");
    }
}
