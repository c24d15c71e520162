//! Agents' tools over REST: the list of what active plugins offer, and calling one. The service is
//! `actors::RegistryHandle`'s; an agent's place is verified as an action's.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::{
    ApiError, Services,
    body::{self, Bounds, or_default},
    change::scope,
    endpoint::{Endpoint, get, post},
    query::Query,
};
use crate::{
    actors::{Called, OfferedTool},
    domain::{
        action::Action,
        calls::{
            envelope::MAX_ENVELOPE_BYTES,
            place::Named,
            tool::{Surface, ToolResult},
        },
        clean,
        manifest::ToolAnnotations,
    },
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/tools", Action::ToolRead, || web::to(list))
        .about("The tools that active plugins offer to agents")
        .query::<Wanted>()
        .gives::<ToolList>(200),
    post("/api/v1/tools/{plugin}/{tool}", Action::ToolCall, || web::to(call))
        .about("Call a plugin's tool as an agent does")
        .body::<ToolCall>()
        .gives::<ToolAnswer>(200)
        .refuses(&[400, 404, 408, 413, 429, 502, 503, 504]),
];

/// Longest unknown word in a message, in bytes.
const SHOWN_WORD_BYTES: usize = 64;

/// Which tools.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Only those offered there: `kanban-task` or `office-task`.
    surface: Option<String>,
}

/// Tools.
#[derive(Debug, Serialize, ToSchema)]
struct ToolList {
    tools: Vec<ToolView>,
}

/// A tool of an active plugin.
#[derive(Debug, Serialize, ToSchema)]
struct ToolView {
    plugin: String,
    name: String,
    description: String,
    surfaces: Vec<String>,
    #[schema(value_type = Object)]
    input_schema: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object, required = false)]
    output_schema: Map<String, Value>,
    annotations: AnnotationsView,
}

/// Hints about what a tool does, as its plugin says; nothing holds it to them.
#[derive(Debug, Serialize, ToSchema)]
struct AnnotationsView {
    /// It changes nothing.
    read_only_hint: bool,
    /// It can destroy something.
    destructive_hint: bool,
    /// Calling it twice is as calling it once.
    idempotent_hint: bool,
    /// It talks to the outside world.
    open_world_hint: bool,
}

impl From<ToolAnnotations> for AnnotationsView {
    fn from(hints: ToolAnnotations) -> Self {
        let ToolAnnotations { read_only_hint, destructive_hint, idempotent_hint, open_world_hint } = hints;
        Self { read_only_hint, destructive_hint, idempotent_hint, open_world_hint }
    }
}

impl From<OfferedTool> for ToolView {
    fn from(offered: OfferedTool) -> Self {
        let tool = offered.tool();
        Self {
            plugin: offered.plugin.to_string(),
            name: tool.name.clone(),
            description: tool.description.clone(),
            surfaces: tool.surfaces.clone(),
            input_schema: tool.input_schema.clone(),
            output_schema: tool.output_schema.clone(),
            annotations: tool.annotations.into(),
        }
    }
}

/// A call of a tool. The agent works at the task, at the session and its task, or nowhere.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ToolCall {
    /// By the tool's `input_schema`.
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Object)]
    arguments: Map<String, Value>,
    #[serde(default, deserialize_with = "or_default")]
    task_id: String,
    #[serde(default, deserialize_with = "or_default")]
    session_id: String,
}

/// What a tool answered.
#[derive(Debug, Serialize, ToSchema)]
struct ToolAnswer {
    /// The call's id, which the plugin knows too.
    invocation_id: String,
    /// For the agent.
    text: String,
    /// Fits the tool's `output_schema`, unless it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    structured_content: Option<Map<String, Value>>,
    /// Whether the tool failed; the text says why.
    is_error: bool,
}

impl From<Called> for ToolAnswer {
    fn from(Called { invocation_id, result }: Called) -> Self {
        let ToolResult { text, structured, is_error } = result;
        Self { invocation_id, text, structured_content: structured, is_error }
    }
}

async fn list(services: web::Data<Services>, Query(wanted): Query<Wanted>) -> Result<HttpResponse, ApiError> {
    let known = |word: String| {
        Surface::from_word(&word).ok_or_else(|| {
            let shown = clean::single_line(&word, SHOWN_WORD_BYTES);
            ApiError::Query(format!("invalid query: surface {shown} is none of kanban-task, office-task"))
        })
    };
    let surface = wanted.surface.map(known).transpose()?;
    let tools = services.registry.tools(surface).into_iter().map(ToolView::from).collect();
    Ok(HttpResponse::Ok().json(ToolList { tools }))
}

/// The call belongs to its client's connection: it is cancelled when that ends.
async fn call(
    services: web::Data<Services>,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let (plugin, tool) = path.into_inner();
    services.registry.plugin(&plugin)?;
    let bounds = Bounds::new(MAX_ENVELOPE_BYTES, &services.timing);
    let bytes = body::whole(&request, payload, bounds).await?;
    let text = if bytes.is_empty() { b"{}" } else { &bytes[..] };
    let ToolCall { arguments, task_id, session_id } = body::parse(text)?;
    let named = Named { task: task_id, session: session_id, ..Named::default() };
    let place = services.platform.place(&scope(&request), &named.for_tool()).await.map_err(ApiError::Place)?;
    let called = services.registry.call_tool(&plugin, &tool, arguments, place).await?;
    Ok(HttpResponse::Ok().json(ToolAnswer::from(called)))
}
