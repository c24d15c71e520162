//! Tools, results and refusals in the words of the Model Context Protocol.
//!
//! What is wrong with a request as a whole is a JSON-RPC error. What a model can act on, wrong arguments or a plugin
//! that failed, is a result with `isError`: models see its text, and clients hide errors (MCP specification, Tools:
//! error handling). The texts and codes are those of REST.

use actix_web::http::StatusCode;
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ListToolsResult, MetaObject, Tool, ToolAnnotations},
};
use serde_json::{Map, Value, json};

use crate::{
    actors::{Called, OfferedTool, ToolError},
    domain::{
        calls::{exposed::exposed_name, tool::ToolResult},
        clean,
    },
    http::ApiError,
};

/// Most tools of one page.
const PAGE_TOOLS: usize = 50;

/// Most bytes of a page's tools, but for its first tool. Official clients take messages of 1 MiB.
const PAGE_BYTES: usize = 512 * 1024;

/// Longest title, in bytes.
const TITLE_BYTES: usize = 128;

/// Longest description, in bytes: as manifests have it.
const DESCRIPTION_BYTES: usize = 1024;

/// A tool as clients see it, by the name that is theirs alone.
pub fn tool(name: String, offered: &OfferedTool) -> Tool {
    let declared = offered.tool();
    let plugin = match offered.plugin_name() {
        "" => offered.plugin.as_str(),
        name => name,
    };
    let title = clean::single_line(&format!("{plugin}: {}", declared.name), TITLE_BYTES);
    let hints = declared.annotations;
    let annotations = ToolAnnotations::from_raw(
        None,
        Some(hints.read_only_hint),
        Some(hints.destructive_hint),
        Some(hints.idempotent_hint),
        Some(hints.open_world_hint),
    );
    let whence = [
        ("plugin", json!(offered.plugin.as_str())),
        ("tool", json!(declared.name)),
        ("surfaces", json!(declared.surfaces)),
    ];
    let description = clean::plain_text(&declared.description, DESCRIPTION_BYTES);
    let tool = Tool::new(name, description, declared.input_schema.clone())
        .with_title(title)
        .with_annotations(annotations)
        .with_meta(meta(whence));
    match declared.output_schema.is_empty() {
        true => tool,
        false => tool.with_raw_output_schema(declared.output_schema.clone().into()),
    }
}

/// The page behind the tool of this name, in the order of names. The next page begins behind its last tool, whatever
/// becomes of that one.
pub fn page(offered: Vec<OfferedTool>, after: &str) -> ListToolsResult {
    let named = offered.into_iter().map(|tool| (exposed_name(&tool.plugin, &tool.tool().name), tool));
    let mut named: Vec<_> = named.filter(|(name, _)| name.as_str() > after).collect();
    named.sort_by(|(one, _), (other, _)| one.cmp(other));
    let whole = named.len();
    let (mut tools, mut bytes) = (Vec::new(), 0);
    for (name, offered) in named.into_iter().take(PAGE_TOOLS) {
        let tool = tool(name, &offered);
        bytes += serde_json::to_string(&tool).map_or(0, |text| text.len());
        if bytes > PAGE_BYTES && !tools.is_empty() {
            break;
        }
        tools.push(tool);
    }
    let last = tools.last().filter(|_| tools.len() < whole).map(|tool: &Tool| tool.name.to_string());
    let mut page = ListToolsResult::with_all_items(tools);
    page.next_cursor = last;
    page
}

/// What a tool answered.
pub fn result(Called { invocation_id, result }: Called) -> CallToolResult {
    let ToolResult { text, structured, is_error } = result;
    let mut answer = CallToolResult::success(vec![ContentBlock::text(text)]);
    answer.structured_content = structured.map(Value::Object);
    answer.is_error = Some(is_error);
    answer.meta = Some(meta([("invocation_id", json!(invocation_id))]));
    answer
}

/// What a call came to that has no result.
pub fn no_result(error: ToolError) -> Result<CallToolResult, ErrorData> {
    let for_models = match &error {
        ToolError::Registry(_) | ToolError::NoTool { .. } | ToolError::Lost(_) => false,
        ToolError::NotOffered { .. }
        | ToolError::Arguments { .. }
        | ToolError::Unusable { .. }
        | ToolError::Refused(..)
        | ToolError::Call(..)
        | ToolError::Result { .. } => true,
    };
    if !for_models {
        return Err(refusal(&error.into()));
    }
    let (_, code, text) = ApiError::from(error).told();
    let mut answer = CallToolResult::error(vec![ContentBlock::text(text)]);
    answer.meta = Some(meta([("code", json!(code))]));
    Ok(answer)
}

/// A JSON-RPC error with the text of REST, and its code under `data`.
pub fn refusal(error: &ApiError) -> ErrorData {
    let (status, code, text) = error.told();
    let data = Some(json!({"code": code}));
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ErrorData::invalid_request(text, data),
        status if status.is_client_error() => ErrorData::invalid_params(text, data),
        _ => ErrorData::internal_error(text, data),
    }
}

/// No active plugin offers a tool of this name.
pub fn unknown(name: &str) -> ErrorData {
    let text = format!("no active plugin offers a tool {}; tools/list has those that are offered", clean::quote(name));
    ErrorData::invalid_params(text, Some(json!({"code": "tool_not_found"})))
}

/// A request whose params are not what its method takes.
pub fn misread(method: &str) -> ErrorData {
    ErrorData::invalid_params(format!("params are not those of {method}"), None)
}

/// Facts of the host beside the protocol's own.
fn meta<const N: usize>(facts: [(&str, Value); N]) -> MetaObject {
    MetaObject(facts.into_iter().map(|(name, value)| (format!("kandev-host/{name}"), value)).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rmcp::model::ErrorCode;

    use super::*;
    use crate::{
        actors::{CallKind, CallRefused},
        domain::{calls::place::Misplaced, id::PluginId},
        grpc::client::CallError,
        platform::context::PlaceError,
    };

    fn acme() -> PluginId {
        PluginId::new("acme").unwrap()
    }

    fn written(value: &impl serde::Serialize) -> Value {
        serde_json::to_value(value).unwrap()
    }

    #[test]
    fn a_result_has_text_structure_and_the_calls_id() {
        let structured = json!({"n": 1}).as_object().cloned();
        let called = |structured, is_error| Called {
            invocation_id: "i1".to_owned(),
            result: ToolResult { text: "done".to_owned(), structured, is_error },
        };
        let answer = written(&result(called(structured, false)));
        assert_eq!(answer["content"], json!([{"type": "text", "text": "done"}]));
        assert_eq!((&answer["structuredContent"], &answer["isError"]), (&json!({"n": 1}), &json!(false)));
        assert_eq!(answer["_meta"], json!({"kandev-host/invocation_id": "i1"}));
        let failed = written(&result(called(None, true)));
        assert_eq!((failed.get("structuredContent"), &failed["isError"]), (None, &json!(true)));
    }

    #[test]
    fn what_a_model_can_act_on_is_a_result_with_the_text_and_code_of_rest() {
        for (error, text, code) in [
            (
                ToolError::Call(acme(), CallError::TimedOut(Duration::ZERO)),
                "plugin \"acme\" did not answer the tool call in time",
                "tool_timeout",
            ),
            (
                ToolError::Refused(acme(), CallRefused::TooMany(CallKind::Tool)),
                "plugin \"acme\" has too many tool calls under way",
                "too_many_calls",
            ),
        ] {
            let answer = written(&no_result(error).unwrap());
            assert_eq!(answer["content"], json!([{"type": "text", "text": text}]));
            assert_eq!((&answer["isError"], &answer["_meta"]["kandev-host/code"]), (&json!(true), &json!(code)));
        }
    }

    #[test]
    fn what_is_wrong_with_the_request_is_an_error() {
        let absent = ToolError::NoTool { plugin: acme(), name: "x".to_owned() };
        let error = no_result(absent).unwrap_err();
        assert_eq!((error.code, error.data), (ErrorCode::INVALID_PARAMS, Some(json!({"code": "tool_not_found"}))));
        let error = refusal(&ApiError::Place(PlaceError::Misplaced(Misplaced::NoTask)));
        assert_eq!((error.code, error.message.as_ref()), (ErrorCode::INVALID_PARAMS, "task not found"));
        let error = refusal(&ApiError::Unauthenticated);
        assert_eq!(error.code, ErrorCode::INVALID_REQUEST);
        let error = refusal(&ApiError::internal(std::io::Error::other("/secret/path")));
        assert_eq!(error.code, ErrorCode::INTERNAL_ERROR);
        assert!(!error.message.contains("secret"), "{}", error.message);
        assert_eq!(
            unknown("a\nb").message,
            "no active plugin offers a tool \"a\\nb\"; tools/list has those that are offered"
        );
    }
}
