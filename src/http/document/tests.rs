//! The document against the routes, both ways, and against itself.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::{
    App, HttpMessage as _,
    dev::Service,
    http::{Method, StatusCode},
    test::{TestRequest, init_service},
    web::Data,
};
use serde_json::Value;

use super::*;
use crate::http::OperatorToken;

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
        assert!(doc.query.is_some() == (endpoint.takes == Takes::Parameters), "{} {}", endpoint.method, endpoint.shown);
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
fn it_is_openapi_3_1_with_a_login() {
    let written = written();
    assert_eq!(written["openapi"], "3.1.0");
    assert_eq!(written["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    let closed = &written["paths"]["/api/v1/tasks"]["post"];
    assert_eq!(closed["security"], serde_json::json!([{"bearer": []}]));
    assert!(written["paths"]["/health"]["get"].get("security").is_none());
}

#[actix_web::test]
async fn the_page_and_what_it_loads_are_there_and_nothing_else() {
    for (file, media) in
        [("", "text/html"), ("swagger-ui.css", "text/css"), ("swagger-ui-bundle.js", "text/javascript")]
    {
        let answer = page_file(web::Path::from(file.to_owned())).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers().get(header::CONTENT_TYPE).unwrap(), media, "{file}");
        assert!(answer.headers().contains_key(header::CONTENT_SECURITY_POLICY));
    }
    for file in ["../Cargo.toml", "none.js"] {
        assert!(page_file(web::Path::from(file.to_owned())).await.is_err(), "{file}");
    }
}
