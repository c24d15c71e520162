//! `GET /api/plugins/{id}/config` and `PATCH /api/plugins/{id}`: a plugin's settings (contract/rest.md §4).
//!
//! The config has an `ETag`; `If-Match` makes a save conditional, `If-None-Match` saves reading the same again.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, HeaderName},
    web,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    ApiError, Services,
    body::{self, Bounds},
    endpoint::{Content, Endpoint, get, patch},
};
use crate::{
    actors::{Expected, ShownConfig},
    domain::{action::Action, config_schema::Submitted},
};

pub static ROUTES: &[Endpoint] = &[
    patch("/api/plugins/{id}", Action::PluginConfigWrite, || web::to(update))
        .about("Save a plugin's config; a plugin that runs is started again with it")
        .body::<NewConfig>()
        .gives::<Updated>(200)
        .versioned()
        .refuses(&[409, 429, 504]),
    get("/api/plugins/{id}/config", Action::PluginConfigRead, || web::to(read))
        .about("A plugin's config, secrets masked")
        .gives::<Config>(200)
        .gives_of(304, Content::Empty)
        .versioned()
        .refuses(&[409, 504]),
];

/// A config as it is to be; `Submitted` reads it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is described here and read there")]
struct NewConfig {
    /// All of it, as the plugin's `config_schema` has it; a masked secret stays as it is. Left out: empty.
    #[schema(value_type = Option<Object>, nullable = false)]
    config: Option<Map<String, Value>>,
}

/// A config.
#[derive(Serialize, ToSchema)]
#[schema(as = PluginConfig)]
struct Config {
    #[schema(value_type = Object)]
    config: Map<String, Value>,
}

/// It is saved.
#[derive(Serialize, ToSchema)]
struct Updated {
    updated: bool,
}

/// `GET /api/plugins/{id}/config`.
pub async fn read(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let ShownConfig { config, tag } = services.settings.show(&id).await?;
    let known = match listed(&request, &header::IF_NONE_MATCH)? {
        None => false,
        Some(Expected::Anything) => true,
        Some(Expected::Tags(tags)) => tags.contains(&tag),
    };
    let mut answer = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    answer.insert_header((header::ETAG, format!("\"{tag}\""))).insert_header((header::CACHE_CONTROL, "no-cache"));
    Ok(if known { answer.finish() } else { answer.json(Config { config }) })
}

/// `PATCH /api/plugins/{id}`: answered when the config is saved and the plugin, when it ran, runs again.
pub async fn update(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let expected = listed(&request, &header::IF_MATCH)?.unwrap_or(Expected::Anything);
    let bounds = Bounds::new(services.limits.request_bytes, &services.timing);
    let body = body::whole(&request, payload, bounds).await?;
    // The contract's text: a mistake's place is no part of it, and might hold a secret's first characters.
    let config = Submitted::read(&body).ok_or_else(|| ApiError::Invalid("invalid payload".to_owned()))?;
    let (settings, id) = (services.settings.clone(), id.into_inner());
    let save = async move { settings.save(&id, config, expected).await };
    let ShownConfig { tag, .. } = services.tasks.finish(save).await?;
    Ok(HttpResponse::Ok().insert_header((header::ETAG, format!("\"{tag}\""))).json(Updated { updated: true }))
}

/// The tags of `If-Match` or `If-None-Match`, unquoted; `None` without such a header. Weak ones count as strong for
/// `If-None-Match` and as none for `If-Match` (RFC 9110, 8.8.3.2).
pub(super) fn listed(request: &HttpRequest, name: &HeaderName) -> Result<Option<Expected>, ApiError> {
    let mut tags = None;
    for value in request.headers().get_all(name) {
        let text = value.to_str().ok().map(str::trim);
        if text == Some("*") {
            return Ok(Some(Expected::Anything));
        }
        let found = text.and_then(|text| parse(text, *name == header::IF_NONE_MATCH));
        let found = found.ok_or_else(|| {
            ApiError::Invalid(format!("the header {name} must be * or a list of tags in double quotes"))
        })?;
        tags.get_or_insert_with(Vec::new).extend(found);
    }
    Ok(tags.map(Expected::Tags))
}

/// `"a", W/"b"`; tags hold no quotes.
fn parse(text: &str, weak: bool) -> Option<Vec<String>> {
    let mut tags = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return (!tags.is_empty()).then_some(tags);
        }
        let (is_weak, quoted) = rest.strip_prefix("W/").map_or((false, rest), |quoted| (true, quoted));
        let (tag, after) = quoted.strip_prefix('"')?.split_once('"')?;
        if !after.is_empty() && !after.starts_with([' ', '\t', ',']) {
            return None;
        }
        // A weak tag of `If-Match` matches nothing; the empty tag is never given out.
        tags.push(if is_weak && !weak { String::new() } else { tag.to_owned() });
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use proptest::prelude::*;

    use super::*;

    fn read_header(name: HeaderName, value: &str) -> Result<Option<Expected>, ApiError> {
        listed(&TestRequest::get().insert_header((name.clone(), value)).to_http_request(), &name)
    }

    fn tags(tags: &[&str]) -> Option<Expected> {
        Some(Expected::Tags(tags.iter().map(|tag| (*tag).to_owned()).collect()))
    }

    #[test]
    fn tags_are_read_from_both_headers_as_http_has_them() {
        let none = listed(&TestRequest::get().to_http_request(), &header::IF_MATCH).unwrap();
        assert_eq!(none, None);
        assert_eq!(read_header(header::IF_MATCH, " * ").unwrap(), Some(Expected::Anything));
        assert_eq!(read_header(header::IF_MATCH, "\"a\"").unwrap(), tags(&["a"]));
        assert_eq!(read_header(header::IF_MATCH, "\"a\" , W/\"b\",\"c,d\"").unwrap(), tags(&["a", "", "c,d"]));
        assert_eq!(read_header(header::IF_NONE_MATCH, "W/\"b\"").unwrap(), tags(&["b"]));
    }

    #[test]
    fn a_header_that_is_no_list_of_tags_is_refused_rather_than_overlooked() {
        for value in ["", "abc", "\"a", "\"a\"b", "w/\"a\"", ",", "\"a\" *"] {
            assert!(read_header(header::IF_MATCH, value).is_err(), "{value}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_or_refused(value in "[ -~]{0,30}") {
            drop(read_header(header::IF_MATCH, &value));
        }
    }
}
