//! Asking REST from inside: the same routes, gate, checks and answers, without a socket. One for each web worker, made
//! when it is first needed.

use actix_http::{HttpMessage as _, Payload, Request, h1};
use actix_service::{
    Service as _, ServiceFactory as _,
    boxed::{RcService, rc_service},
    map_config,
};
use actix_web::{
    App, HttpResponse,
    body::{BoxBody, to_bytes_limited},
    dev::{AppConfig, ServiceResponse},
    http::{
        Method, Uri,
        header::{self, HeaderName, HeaderValue},
    },
    web::{Bytes, Data},
};
use tokio::sync::OnceCell;

use super::super::{Services, routes};
use crate::domain::{
    gateway::{
        frame::{Code, Metadata},
        request::Call,
    },
    principal::Principal,
};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

type Whole = RcService<Request, ServiceResponse<BoxBody>, actix_web::Error>;

/// REST without a socket.
pub struct Inside {
    services: Data<Services>,
    whole: OnceCell<Whole>,
}

/// What REST says.
pub struct Answer {
    /// Of HTTP.
    pub status: u16,
    /// JSON.
    pub body: String,
}

/// Why there is no answer: whose fault it is and a text for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoAnswer(pub Code, pub &'static str);

impl Inside {
    pub fn new(services: Data<Services>) -> Self {
        Self { services, whole: OnceCell::new() }
    }

    /// Asks as this principal. The answer has at most `most` bytes.
    pub async fn ask(
        &self,
        principal: Principal,
        call: Call,
        metadata: &Metadata,
        most: usize,
    ) -> Result<Answer, NoAnswer> {
        let request = request(principal, call, metadata)?;
        let whole = self.whole.get_or_try_init(|| self.make()).await?;
        let response: HttpResponse = match whole.call(request).await {
            Ok(answer) => answer.into_parts().1,
            Err(error) => error.error_response(),
        };
        let status = response.status().as_u16();
        let body = match to_bytes_limited(response.into_body(), most).await {
            Ok(Ok(body)) => body,
            Ok(Err(_)) => return Err(NoAnswer(Code::InternalError, "the answer broke off")),
            Err(_) => {
                return Err(NoAnswer(
                    Code::InternalError,
                    "the answer is larger than a frame may be; ask for a smaller page",
                ));
            }
        };
        let body =
            String::from_utf8(body.into()).map_err(|_| NoAnswer(Code::InternalError, "the answer is no text"))?;
        Ok(Answer { status, body })
    }

    async fn make(&self) -> Result<Whole, NoAnswer> {
        let app = App::new().app_data(self.services.clone()).configure(routes::configure);
        let whole = map_config(app, |()| AppConfig::default()).new_service(()).await;
        Ok(rc_service(whole.map_err(|()| NoAnswer(Code::InternalError, "the routes cannot be set up"))?))
    }
}

fn request(principal: Principal, call: Call, metadata: &Metadata) -> Result<Request, NoAnswer> {
    let method = Method::from_bytes(call.method.as_bytes())
        .map_err(|_| NoAnswer(Code::InternalError, "the method is not lawful"))?;
    let target: Uri = call
        .target
        .parse()
        .map_err(|_| NoAnswer(Code::ValidationError, "the payload makes no address: its ids are too long"))?;
    let (_, mut payload) = h1::Payload::create(true);
    let length = call.body.len();
    payload.unread_data(Bytes::from(call.body));
    let mut request = Request::with_payload(Payload::from(payload));
    let head = request.head_mut();
    (head.method, head.uri) = (method, target);
    let mut set = |name: HeaderName, value: &str| {
        let value = HeaderValue::from_str(value).map_err(|_| {
            NoAnswer(
                Code::ValidationError,
                "if_match and idempotency_key of the metadata have visible ASCII characters only",
            )
        })?;
        head.headers.insert(name, value);
        Ok(())
    };
    set(header::CONTENT_LENGTH, &length.to_string())?;
    if length > 0 {
        set(header::CONTENT_TYPE, "application/json")?;
    }
    if let Some(tag) = &metadata.if_match {
        set(header::IF_MATCH, tag)?;
    }
    if let Some(key) = &call.once {
        set(IDEMPOTENCY_KEY, key)?;
    }
    request.extensions_mut().insert(principal);
    Ok(request)
}
