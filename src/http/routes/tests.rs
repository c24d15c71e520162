//! The table as promises: every route asks for its action, and whatever is not a route is answered in JSON.

use std::collections::BTreeSet;

use actix_web::{
    App,
    body::to_bytes,
    dev::{Service, ServiceResponse},
    http::{Method, header},
    test::{TestRequest, init_service},
    web::Data,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    domain::{
        action::Action,
        authorize::{Decision, authorize},
        principal::Principal,
    },
    http::{OperatorToken, endpoint::get, query::Takes},
};

/// Actions that a handler asks for on top of its route's.
const ASKED_IN_HANDLERS: [Action; 2] = [Action::PluginWebhookAuthenticated, Action::MetricsRead];

/// Sends a request to the routes, without the services behind them: what passes the gate ends in a 500.
async fn send(request: TestRequest) -> ServiceResponse {
    let token = OperatorToken::new(&"t0ken".to_owned().into());
    let app = init_service(App::new().app_data(Data::new(token)).configure(configure)).await;
    app.call(request.to_request()).await.unwrap()
}

async fn body(answer: ServiceResponse) -> Value {
    assert_eq!(answer.headers().get(header::CONTENT_TYPE).unwrap(), "application/json");
    serde_json::from_slice(&to_bytes(answer.into_body()).await.unwrap()).unwrap()
}

fn example(path: &str) -> String {
    path.replace("{tail:.*}", "in/x").replace("{file:.*}", "index.html").replace(['{', '}'], "")
}

fn request(endpoint: &Endpoint) -> TestRequest {
    TestRequest::default().method(endpoint.method.clone()).uri(&example(endpoint.path))
}

fn is_public(action: Action) -> bool {
    authorize(Principal::Anonymous, action) == Decision::Allow
}

#[test]
fn every_action_of_the_catalogue_is_asked_for_somewhere() {
    let asked: BTreeSet<_> = all().map(|endpoint| endpoint.action).chain(ASKED_IN_HANDLERS).collect();
    assert_eq!(asked, Action::ALL.iter().copied().collect());
}

#[test]
fn the_table_is_what_the_documents_say() {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split('`');
        let (route, action) = (cells.next()?, cells.nth(1)?);
        route.contains(" /").then(|| format!("{route} {action}"))
    };
    let documented: BTreeSet<_> = include_str!("../../../docs/api.md").lines().filter_map(row).collect();
    let routes: BTreeSet<_> = all().map(|e| format!("{} {} {}", e.method, e.shown, e.action)).collect();
    assert_eq!(routes, documented, "left: the routes; right: docs/api.md");
    let unique: BTreeSet<_> = all().map(|e| (e.method.as_str(), e.path)).collect();
    assert_eq!(unique.len(), all().count());
}

#[test]
fn what_is_shown_of_a_path_has_names_in_braces_and_no_notation_of_the_router() {
    for endpoint in all() {
        let shown = endpoint.shown;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '{' | '}' | '-' | '.');
        assert!(shown.chars().all(plain), "{shown}");
        let begin = endpoint.path.split_once('{').map_or(endpoint.path, |(begin, _)| begin);
        assert!(shown.starts_with(begin), "{shown} is another path than {}", endpoint.path);
    }
}

#[actix_web::test]
async fn every_route_that_is_not_public_answers_401_without_the_token() {
    for endpoint in all() {
        for wrong in [None, Some("Bearer wrong"), Some("Basic t0ken")] {
            let request = request(endpoint);
            let request = match wrong {
                Some(value) => request.insert_header((header::AUTHORIZATION, value)),
                None => request,
            };
            let answer = send(request).await;
            if is_public(endpoint.action) {
                assert_ne!(answer.status(), 401, "{}", endpoint.path);
                continue;
            }
            assert_eq!(answer.status(), 401, "{} {}", endpoint.method, endpoint.path);
            assert_eq!(answer.headers().get(header::WWW_AUTHENTICATE).unwrap(), "Bearer");
            assert_eq!(body(answer).await, json!({"error": "authentication required", "code": "unauthenticated"}));
        }
    }
}

#[actix_web::test]
async fn a_page_of_another_origin_is_refused_by_every_route_that_takes_credentials() {
    for endpoint in all() {
        let foreign = (header::ORIGIN, "https://evil.test");
        let request = request(endpoint).insert_header((header::AUTHORIZATION, "Bearer t0ken")).insert_header(foreign);
        let answer = send(request).await;
        let open = is_public(endpoint.action) && endpoint.action != Action::GitCredentialResolve;
        let refused = answer.status() == 403 && body(answer).await["code"] == "foreign_origin";
        assert_eq!(refused, !open, "{} {}", endpoint.method, endpoint.path);
    }
}

#[actix_web::test]
async fn the_token_opens_every_route() {
    for endpoint in all() {
        let answer = send(request(endpoint).insert_header((header::AUTHORIZATION, "Bearer t0ken"))).await;
        let status = answer.status();
        // What the host has without services, and does not know the example of, is a 404 of its own.
        let reached = status != 404 || body(answer).await["code"] != "route_not_found";
        assert!(status != 401 && reached, "{} {status}", endpoint.path);
    }
}

#[actix_web::test]
async fn a_parameter_that_a_route_does_not_know_is_refused_but_by_webhooks_and_files_of_plugins() {
    for endpoint in all() {
        let uri = format!("{}?no_such=1", example(endpoint.path));
        let request = TestRequest::default().method(endpoint.method.clone()).uri(&uri);
        let answer = send(request.insert_header((header::AUTHORIZATION, "Bearer t0ken"))).await;
        let refused = answer.status() == 400 && body(answer).await["code"] == "invalid_query";
        // Without services a handler does not get to its query.
        let judged_here = endpoint.takes == Takes::Nothing;
        assert_eq!(refused, judged_here, "{} {uri}", endpoint.method);
        let of_plugins = matches!(endpoint.action, Action::PluginWebhook | Action::PluginUi);
        assert_eq!(endpoint.takes == Takes::Anything, of_plugins);
    }
    for empty in ["?", "?&"] {
        assert_eq!(send(TestRequest::get().uri(&format!("/health{empty}"))).await.status(), 200, "{empty}");
    }
}

#[actix_web::test]
async fn another_method_of_a_known_path_gets_405_with_the_allowed_ones() {
    for endpoint in all() {
        let allowed: Vec<_> = all().filter(|e| e.path == endpoint.path).map(|e| e.method.as_str()).collect();
        for method in ["PUT", "HEAD", "OPTIONS", "PATCH", "BREW"] {
            if allowed.contains(&method) {
                continue;
            }
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let answer = send(TestRequest::default().method(method).uri(&example(endpoint.path))).await;
            assert_eq!(answer.status(), 405, "{}", endpoint.path);
            assert_eq!(answer.headers().get(header::ALLOW).unwrap(), allowed.join(", ").as_str());
            assert_eq!(body(answer).await, json!({"error": "method not allowed", "code": "method_not_allowed"}));
        }
    }
}

#[actix_web::test]
async fn a_webhook_takes_get_and_post_below_its_key_too() {
    for path in ["/api/plugins/a/webhooks/k", "/api/plugins/a/webhooks/k/", "/api/plugins/a/webhooks/k/x%2Fy/z"] {
        let answer = send(TestRequest::put().uri(path)).await;
        assert_eq!(answer.headers().get(header::ALLOW).unwrap(), "GET, POST", "{path}");
    }
}

#[actix_web::test]
async fn an_unknown_path_gets_404_in_json() {
    for path in ["/", "/api", "/api/plugins/", "/api/plugins/a/b", "/api/plugins/a/webhooks", "/api/v1/events/x"] {
        let answer = send(TestRequest::get().uri(path).insert_header((header::AUTHORIZATION, "Bearer t0ken"))).await;
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(body(answer).await, json!({"error": "no such route", "code": "route_not_found"}));
    }
}

#[actix_web::test]
async fn header_values_that_are_not_text_are_never_500() {
    for name in ["authorization", "content-type", "content-length", "x-any"] {
        let value = header::HeaderValue::from_bytes(b"\xff\xe9").unwrap();
        let answer = send(TestRequest::post().uri("/api/plugins/install").insert_header((name, value))).await;
        assert_eq!(answer.status(), 401, "{name}");
    }
}

#[actix_web::test]
async fn a_handler_that_panics_is_answered_500_without_its_text() {
    async fn broken() -> &'static str {
        std::panic::panic_any("s3cret")
    }
    let endpoint = get("/broken", Action::HealthRead, || web::to(broken));
    let app = init_service(App::new().service(web::resource(endpoint.path).route(route(&endpoint)))).await;
    let answer = app.call(TestRequest::get().uri("/broken").to_request()).await.unwrap();
    assert_eq!(answer.status(), 500);
    let expected = json!({"error": "internal error, the host's log has the reason", "code": "internal"});
    assert_eq!(body(answer).await, expected);
    let again = app.call(TestRequest::get().uri("/broken").to_request()).await.unwrap();
    assert_eq!(again.status(), 500);
}

#[actix_web::test]
async fn liveness_needs_no_token() {
    let answer = send(TestRequest::get().uri("/health")).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(body(answer).await, json!({"status": "ok"}));
}

#[test]
fn what_live_clients_ask_is_in_the_table() {
    // Names of parameters are the payload's there.
    let shape = |path: &str| {
        let parts = path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
        parts.collect::<Vec<_>>().join("/")
    };
    let table: BTreeSet<_> =
        all().map(|endpoint| (endpoint.method.as_str().to_owned(), shape(endpoint.path))).collect();
    for (method, path) in crate::domain::gateway::request::routes() {
        assert!(table.contains(&(method.to_owned(), shape(path))), "{method} {path}");
    }
}
