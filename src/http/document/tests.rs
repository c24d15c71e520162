//! The document against the routes, both ways, and against itself.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::{
    App, HttpMessage as _,
    body::to_bytes,
    dev::Service,
    http::{Method, StatusCode},
    test::{TestRequest, init_service},
    web::Data,
};
use serde_json::Value;

use super::*;
use crate::{
    domain::{
        platform::words::{MessageType, SessionState, TaskState},
        record::Status,
    },
    http::OperatorToken,
};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

fn written() -> Value {
    serde_json::to_value(document()).unwrap()
}

/// Every `METHOD path` of the document.
fn documented() -> BTreeSet<(String, String)> {
    let written = written();
    let paths = written["paths"].as_object().unwrap();
    let methods = |item: &Value| item.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    paths.iter().flat_map(|(path, item)| methods(item).into_iter().map(|method| (method, path.clone()))).collect()
}

#[test]
fn every_route_is_documented_and_nothing_else() {
    let routes: BTreeSet<_> =
        routes::all().map(|route| (route.method.as_str().to_ascii_lowercase(), route.shown.to_owned())).collect();
    assert_eq!(documented(), routes);
}

/// Asks the real router, so that a path that another pattern takes away would show.
#[actix_web::test]
async fn the_router_knows_every_documented_method_and_no_other_one() {
    let token = OperatorToken::new(&"t0ken".to_owned().into());
    let app = init_service(App::new().app_data(Data::new(token)).configure(routes::configure)).await;
    let documented = documented();
    let paths: BTreeSet<_> = documented.iter().map(|(_, path)| path.clone()).collect();
    for path in &paths {
        let address = names(path).fold(path.clone(), |address, name| address.replace(&format!("{{{name}}}"), "x"));
        for method in METHODS {
            let request = TestRequest::default().method(Method::from_bytes(method.to_uppercase().as_bytes()).unwrap());
            let answer = app.call(request.uri(&address).to_request()).await.unwrap();
            let known = documented.contains(&(method.to_owned(), path.clone()));
            assert_eq!(answer.status() != StatusCode::METHOD_NOT_ALLOWED, known, "{method} {path}");
            let shown = answer.request().extensions().get::<routes::Pattern>().map(|pattern| pattern.0);
            assert_eq!(shown, Some(path.as_str()), "{method} {address} is another route's");
        }
    }
}

#[test]
fn every_route_says_what_it_does_and_answers() {
    for endpoint in routes::all() {
        let doc = &endpoint.doc;
        assert!(!doc.summary.is_empty(), "{} {}", endpoint.method, endpoint.shown);
        assert!(doc.relayed || doc.answers[0].is_some(), "{} {}", endpoint.method, endpoint.shown);
        let told = doc.query.is_some() == (endpoint.takes == Takes::Parameters) || endpoint.takes == Takes::Anything;
        assert!(told, "{} {}", endpoint.method, endpoint.shown);
    }
}

#[test]
fn operations_have_names_of_their_own() {
    let written = written();
    let mut names = BTreeMap::new();
    for (path, item) in written["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert_eq!(names.insert(name.clone(), format!("{method} {path}")), None, "{name}");
        }
    }
}

#[test]
fn one_name_stands_for_one_shape_and_every_reference_leads_to_one() {
    let mut shapes = Shapes::new();
    for endpoint in routes::all() {
        let contents = endpoint.doc.answers.iter().flatten().map(|(_, content)| *content).chain(endpoint.doc.body);
        for content in contents {
            match content {
                Content::Json(shape) | Content::Form(_, shape) => drop(shape(&mut shapes)),
                Content::Empty | Content::Media(_) => {}
            }
        }
    }
    let mut known = BTreeMap::new();
    for (name, shape) in shapes {
        let shape = serde_json::to_value(shape).unwrap();
        let earlier = known.entry(name.clone()).or_insert_with(|| shape.clone());
        assert_eq!(*earlier, shape, "two shapes are called {name}");
    }
    let written = written();
    let schemas = written["components"]["schemas"].as_object().unwrap();
    let text = written.to_string();
    for reference in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(schemas.contains_key(reference), "{reference}");
    }
}

#[test]
fn the_words_of_a_vocabulary_are_those_that_serde_writes() {
    let written = written();
    let words = |name: &str| &written["components"]["schemas"][name]["enum"];
    assert_eq!(words("TaskState"), &serde_json::to_value(TaskState::ALL).unwrap());
    assert_eq!(words("SessionState"), &serde_json::to_value(SessionState::ALL).unwrap());
    assert_eq!(words("MessageType"), &serde_json::to_value(MessageType::ALL).unwrap());
    assert_eq!(words("PluginStatus"), &serde_json::to_value(Status::ALL).unwrap());
}

/// A route with a token of its own says so, and that it is not the operator's.
#[test]
fn git_gets_in_by_a_token_of_its_own() {
    let written = written();
    let scheme = &written["components"]["securitySchemes"]["git_token"];
    assert_eq!((&scheme["type"], &scheme["scheme"]), (&Value::from("http"), &Value::from("bearer")));
    let git = &written["paths"]["/api/v1/git-credential"]["post"];
    assert_eq!(git["security"], serde_json::json!([{"git_token": []}]));
    assert!(git["responses"].get("401").is_some() && git["responses"].get("403").is_some(), "{git}");
}

#[test]
fn it_is_openapi_3_1_with_a_login() {
    let written = written();
    assert_eq!(written["openapi"], "3.1.0");
    assert_eq!(written["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    let closed = &written["paths"]["/api/v1/tasks"]["post"];
    assert_eq!(closed["security"], serde_json::json!([{"bearer": []}]));
    assert!(written["paths"]["/health"]["get"].get("security").is_none());
}

/// A file of the page: its media type and text.
async fn file(name: &str) -> (String, String) {
    let answer = page_file(web::Path::from(name.to_owned())).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers().get(header::CONTENT_SECURITY_POLICY).unwrap(), PAGE_POLICY);
    let media = answer.headers().get(header::CONTENT_TYPE).unwrap().to_str().unwrap().to_owned();
    (media, String::from_utf8_lossy(&to_bytes(answer.into_body()).await.unwrap()).into_owned())
}

/// The values of an attribute in HTML.
fn attributes<'a>(html: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(name).skip(1).filter_map(|rest| rest.strip_prefix("=\"")?.split('"').next())
}

#[actix_web::test]
async fn the_page_loads_only_files_that_are_there_and_shows_this_document() {
    let (media, html) = file("").await;
    assert_eq!((media.as_str(), &html), ("text/html", &file("index.html").await.1));
    let loaded: BTreeSet<_> = attributes(&html, "src").chain(attributes(&html, "href")).collect();
    assert!(loaded.len() >= 5, "{loaded:?}");
    for name in loaded {
        let name = name.trim_start_matches("./");
        let expected = match name.rsplit('.').next() {
            Some("js") => "text/javascript",
            Some("css") => "text/css",
            _ => "image/png",
        };
        assert_eq!(file(name).await.0, expected, "{name}");
    }
    let (_, begin) = file("swagger-initializer.js").await;
    assert!(begin.contains("\"url\": \"/api/openapi.json\"") && !begin.contains("://"), "{begin}");
}

/// `'self'` forbids them: each script is a file.
#[actix_web::test]
async fn the_page_has_no_scripts_that_its_policy_forbids() {
    let (_, html) = file("index.html").await;
    for script in html.split("<script").skip(1) {
        let (tag, content) = script.split('<').next().unwrap().split_once('>').unwrap();
        assert!(tag.contains("src=\"./") && content.trim().is_empty(), "{script}");
    }
    assert!(!html.contains("javascript:") && !html.contains(" onload") && !html.contains("<style"), "{html}");
    for directive in ["default-src 'self';", "style-src 'self' 'unsafe-inline';", "img-src 'self' data:;"] {
        assert!(PAGE_POLICY.contains(directive), "{directive}");
    }
}

#[actix_web::test]
async fn no_other_file_is_served_with_the_page() {
    for file in ["../Cargo.toml", "none.js", "/etc/passwd"] {
        assert!(page_file(web::Path::from(file.to_owned())).await.is_err(), "{file}");
    }
}
