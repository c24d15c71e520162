//! The tools that the plugin offers to agents: listed, with schemas that compile; called only when that is asked for.

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    CheckError,
    report::{Finding, Topic},
    session::{Session, millis, span},
};
use crate::domain::{config_schema::FullSchema, manifest::AgentTool};

const SCHEMA: &str = "correct the schema: root type object, references inside of it, valid JSON Schema";
const RESULT: &str = "a tool must answer within its deadline with a text, and with what output_schema says";

/// Tries every tool.
pub async fn check(session: &mut Session<'_>, call_them: bool) -> Result<(), CheckError> {
    let manifest = session.manifest;
    if manifest.agent_tools.is_empty() {
        session.add(Finding::skipped(Topic::Tools, "it offers none"));
        return Ok(());
    }
    session.output.progress("tools");
    if !session.runs().await? {
        session.add(Finding::skipped(Topic::Tools, "tools are offered while the plugin runs, and it does not"));
        return Ok(());
    }
    let list = session.api.get(&["api", "v1", "tools"], session.timing.answer).await?;
    let listed: Vec<&str> = list["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|tool| tool["plugin"] == manifest.id.as_str())
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    for tool in &manifest.agent_tools {
        let finding = match (compile(tool), listed.contains(&tool.name.as_str())) {
            (Err(why), _) => Finding::fail(Topic::Tools, why, SCHEMA),
            (Ok(_), false) => Finding::fail(Topic::Tools, "the host does not list it", SCHEMA),
            (Ok(input), true) if call_them => call(session, tool, &input).await?,
            (Ok(_), true) => Finding::pass(Topic::Tools, "it is listed, and its schemas compile"),
        };
        session.add(finding.of(&tool.name));
    }
    Ok(())
}

/// The schema of the arguments, when both can be used.
fn compile(tool: &AgentTool) -> Result<FullSchema, String> {
    let input = FullSchema::compile_draft7(&tool.input_schema).map_err(|why| format!("input_schema: {why}"))?;
    if !tool.output_schema.is_empty() {
        FullSchema::compile_draft7(&tool.output_schema).map_err(|why| format!("output_schema: {why}"))?;
    }
    Ok(input)
}

/// Calls it without arguments, when it takes none.
async fn call(session: &Session<'_>, tool: &AgentTool, input: &FullSchema) -> Result<Finding, CheckError> {
    if !input.check(&json!({})).is_empty() {
        let text = "it is listed, and its schemas compile; it needs arguments, so it was not called";
        return Ok(Finding::pass(Topic::Tools, text));
    }
    if !session.runs().await? {
        let why = format!("the plugin does not run: {}", session.last_error().await?);
        return Ok(Finding::skipped(Topic::Tools, why));
    }
    let path = ["api", "v1", "tools", session.id(), tool.name.as_str()];
    let request = session.api.request(Method::POST, &path).json(&json!({"arguments": {}}));
    let answer = session.api.send(request, session.timing.answer).await?;
    if matches!(answer.status, 502 | 503) {
        session.settle().await?;
    }
    let finding = match answer.status {
        200 if answer.json()["is_error"] == Value::Bool(true) => {
            Finding::pass(Topic::Tools, format!("it says that it could not do it, in {}", span(answer.took)))
        }
        200 => Finding::pass(Topic::Tools, format!("it answers, in {}", span(answer.took))),
        _ => Finding::fail(Topic::Tools, answer.fault(), RESULT),
    };
    Ok(finding.fact("status", answer.status).fact("ms", millis(answer.took)))
}
