//! The tools that active plugins offer to agents: which there are, calling one, and being told that the list changed.
//!
//! For every edge that serves agents. Who asks and where it works was verified before; the schemas, bounds and
//! deadline of a call are kept here, whoever calls (contract/manifest.md §2, wire.md §2.1). No call is repeated.

use std::sync::{Arc, OnceLock};

use kandev_proto::{json_from_struct, struct_from_json, v1};
use serde_json::{Map, Value};
use tokio::sync::watch;
use uuid::Uuid;

use super::{CallKind, CallOutcome, CallRefused, PluginHandle, RegistryError, RegistryHandle};
use crate::{
    domain::{
        calls::{
            place::Place,
            tool::{ResultFault, Surface, ToolResult, check_arguments, check_result},
        },
        clean,
        config_schema::{FullSchema, Unusable, Violation},
        id::PluginId,
        manifest::{AgentTool, Manifest, Schema},
    },
    grpc::client::CallError,
};

/// Longest part of a foreign name in a message, in bytes.
const SHOWN_NAME_BYTES: usize = 128;

/// A call's arguments.
pub type Arguments = Map<String, Value>;

/// A tool of an active plugin.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    /// Whose.
    pub plugin: PluginId,
    manifest: Arc<Manifest>,
    index: usize,
}

impl OfferedTool {
    /// Its plugin's name for people.
    pub fn plugin_name(&self) -> &str {
        &self.manifest.display_name
    }

    /// What its manifest says of it.
    pub fn tool(&self) -> &AgentTool {
        &self.manifest.agent_tools[self.index]
    }
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// As the plugin knows the call.
    pub invocation_id: String,
    /// What the tool answered; it may say that the tool failed.
    pub result: ToolResult,
}

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// No such plugin.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The plugin declares no such tool.
    #[error("plugin \"{plugin}\" has no tool \"{name}\"")]
    NoTool {
        /// Which plugin.
        plugin: PluginId,
        /// The name, cleaned.
        name: String,
    },
    /// Its manifest does not offer it where the agent works.
    #[error("the tool \"{name}\" is not offered on {surface}", surface = .surface.word())]
    NotOffered {
        /// Which tool.
        name: String,
        /// Where the agent works.
        surface: Surface,
    },
    /// The arguments break the tool's schema or a bound.
    #[error("the arguments do not fit the tool \"{name}\": {told}", told = summary(.violations))]
    Arguments {
        /// Which tool.
        name: String,
        /// All of them, at most 50.
        violations: Vec<Violation>,
    },
    /// A schema that an earlier host let pass.
    #[error("a schema of the tool \"{name}\" cannot be used: {reason}")]
    Unusable {
        /// Which tool.
        name: String,
        /// Why.
        reason: Unusable,
    },
    /// The plugin takes no call now.
    #[error("plugin \"{0}\": {1}")]
    Refused(PluginId, CallRefused),
    /// No answer.
    #[error("plugin \"{0}\": {1}")]
    Call(PluginId, CallError),
    /// An answer that no agent may get.
    #[error("plugin \"{plugin}\": the tool \"{name}\" {fault}")]
    Result {
        /// Which plugin.
        plugin: PluginId,
        /// Which tool.
        name: String,
        /// What is wrong with it.
        fault: ResultFault,
    },
    /// The host could not judge it.
    #[error("the check of a tool's arguments or result was lost: {0}")]
    Lost(#[from] tokio::task::JoinError),
}

/// The first violations in one line.
fn summary(violations: &[Violation]) -> String {
    const SHOWN: usize = 5;
    let lines = violations.iter().take(SHOWN).map(|Violation { path, message, .. }| match path.as_str() {
        "" => message.clone(),
        path => format!("{path}: {message}"),
    });
    let more = violations.len().saturating_sub(SHOWN);
    lines.chain((more > 0).then(|| format!("… and {more} more"))).collect::<Vec<_>>().join("; ")
}

impl ToolError {
    fn outcome(&self) -> CallOutcome {
        match self {
            Self::Call(_, CallError::TimedOut(_)) => CallOutcome::TimedOut,
            Self::Call(..) | Self::Result { .. } | Self::Lost(_) => CallOutcome::Failed,
            Self::Registry(_)
            | Self::NoTool { .. }
            | Self::NotOffered { .. }
            | Self::Arguments { .. }
            | Self::Unusable { .. }
            | Self::Refused(..) => CallOutcome::Refused,
        }
    }
}

/// The compiled schemas of one installed version's tools, made when they are first needed.
#[derive(Default)]
pub(super) struct ToolSchemas(OnceLock<Vec<Compiled>>);

struct Compiled {
    input: Result<FullSchema, Unusable>,
    output: Option<Result<FullSchema, Unusable>>,
}

impl ToolSchemas {
    /// Blocks at first: compiling takes a while.
    fn of(&self, tools: &[AgentTool], index: usize) -> Option<&Compiled> {
        let compile = |schema: &Schema| FullSchema::compile_draft7(schema);
        let compiled = self.0.get_or_init(|| {
            let tools = tools.iter();
            let both = |tool: &AgentTool| Compiled {
                input: compile(&tool.input_schema),
                output: (!tool.output_schema.is_empty()).then(|| compile(&tool.output_schema)),
            };
            tools.map(both).collect()
        });
        compiled.get(index)
    }
}

/// One tool of one installed version, for checks that block.
#[derive(Clone)]
struct Bench {
    plugin: PluginHandle,
    index: usize,
}

impl Bench {
    fn tool(&self) -> &AgentTool {
        &self.plugin.manifest().agent_tools[self.index]
    }

    fn schema<'a>(&self, schema: &'a Result<FullSchema, Unusable>) -> Result<&'a FullSchema, ToolError> {
        let unusable =
            |reason: &Unusable| ToolError::Unusable { name: self.tool().name.clone(), reason: reason.clone() };
        schema.as_ref().map_err(unusable)
    }

    fn compiled(&self) -> Option<&Compiled> {
        self.plugin.schemas().of(&self.plugin.manifest().agent_tools, self.index)
    }

    fn check_arguments(&self, arguments: &Arguments) -> Result<(), ToolError> {
        let Some(compiled) = self.compiled() else { return Ok(()) };
        let violations = check_arguments(arguments, self.schema(&compiled.input)?);
        match violations.is_empty() {
            true => Ok(()),
            false => Err(ToolError::Arguments { name: self.tool().name.clone(), violations }),
        }
    }

    fn check_result(&self, answer: v1::AgentToolResponse) -> Result<ToolResult, ToolError> {
        let output = self.compiled().and_then(|compiled| compiled.output.as_ref());
        let output = output.map(|schema| self.schema(schema)).transpose()?;
        let v1::AgentToolResponse { text, structured_content, is_error } = answer;
        check_result(text, structured_content.map(json_from_struct), is_error, output).map_err(|fault| {
            ToolError::Result { plugin: self.plugin.id().clone(), name: self.tool().name.clone(), fault }
        })
    }
}

impl RegistryHandle {
    /// The tools of all active plugins, by plugin and in the manifests' order; with a surface those offered there.
    pub fn tools(&self, surface: Option<Surface>) -> Vec<OfferedTool> {
        let offered = |plugin: PluginHandle| {
            let manifest = Arc::clone(plugin.manifest());
            let indices = 0..manifest.agent_tools.len();
            indices
                .filter(|index| surface.is_none_or(|surface| is_offered(&manifest.agent_tools[*index], surface)))
                .map(|index| OfferedTool { plugin: plugin.id().clone(), manifest: Arc::clone(&manifest), index })
                .collect::<Vec<_>>()
        };
        self.active().into_iter().flat_map(offered).collect()
    }

    /// Tells when that list has become another one.
    pub fn tool_changes(&self) -> ToolChanges {
        let signal = self.shared.directory.changes();
        ToolChanges { registry: self.clone(), signal, seen: self.tools(None) }
    }

    /// Calls a tool for an agent that works at `place`, which the host has verified; an agent at a task is on
    /// the surface of tasks. `timing.tool_timeout` bounds the plugin's part. Dropped, it cancels the call.
    pub async fn call_tool(
        &self,
        plugin: &str,
        name: &str,
        arguments: Arguments,
        place: Place,
    ) -> Result<Called, ToolError> {
        let plugin = self.plugin(plugin)?;
        let span = tracing::debug_span!("tool", plugin.id = %plugin.id(), tool.name = %shown(name));
        let watch = plugin.vitals().begin(CallKind::Tool);
        let called = tracing::Instrument::instrument(self.call(&plugin, name, arguments, place), span).await;
        watch.end(called.as_ref().map_or_else(ToolError::outcome, |_| CallOutcome::Answered));
        called
    }

    async fn call(
        &self,
        plugin: &PluginHandle,
        name: &str,
        arguments: Arguments,
        place: Place,
    ) -> Result<Called, ToolError> {
        let no_tool = || ToolError::NoTool { plugin: plugin.id().clone(), name: shown(name) };
        let index = plugin.manifest().agent_tools.iter().position(|tool| tool.name == name).ok_or_else(no_tool)?;
        let bench = Bench { plugin: plugin.clone(), index };
        let surface = (!place.task.is_empty()).then_some(Surface::KanbanTask);
        if let Some(surface) = surface.filter(|surface| !is_offered(bench.tool(), *surface)) {
            return Err(ToolError::NotOffered { name: shown(name), surface });
        }
        if plugin.run().is_none() {
            return Err(ToolError::Refused(plugin.id().clone(), CallRefused::NotRunning));
        }
        let arguments = blocking(&bench, |bench| bench.check_arguments(&arguments).map(|()| arguments)).await?;
        let invocation_id = Uuid::now_v7().to_string();
        let request = v1::AgentToolRequest {
            invocation_id: invocation_id.clone(),
            name: name.to_owned(),
            arguments: Some(struct_from_json(arguments)),
            context: Some(v1::AgentToolContext {
                task_id: place.task,
                session_id: place.session,
                workspace_id: place.workspace,
                surface: surface.map(Surface::word).unwrap_or_default().to_owned(),
            }),
        };
        let permit =
            self.begin(plugin, CallKind::Tool).map_err(|refused| ToolError::Refused(plugin.id().clone(), refused))?;
        let answer = permit.client().invoke_agent_tool(request, self.shared.config.timing.tool_timeout).await;
        drop(permit);
        let answer = answer.map_err(|error| ToolError::Call(plugin.id().clone(), plugin.without_secrets(error)))?;
        let result = blocking(&bench, |bench| bench.check_result(answer)).await?;
        Ok(Called { invocation_id, result })
    }
}

/// Schemas are compiled and values checked off the threads that serve requests.
async fn blocking<T: Send + 'static>(
    bench: &Bench,
    work: impl FnOnce(&Bench) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let bench = bench.clone();
    tokio::task::spawn_blocking(move || work(&bench)).await?
}

fn is_offered(tool: &AgentTool, surface: Surface) -> bool {
    tool.surfaces.iter().any(|word| word == surface.word())
}

fn shown(name: &str) -> String {
    clean::single_line(name, SHOWN_NAME_BYTES)
}

/// Follows the list of tools. It holds the list that was seen last and nothing more, however slow its holder is.
pub struct ToolChanges {
    registry: RegistryHandle,
    signal: watch::Receiver<u64>,
    seen: Vec<OfferedTool>,
}

impl ToolChanges {
    /// Waits until the list is another one than at the last call, or than when following began. `None` when the host
    /// ends. Dropped, it forgets nothing.
    pub async fn changed(&mut self) -> Option<Vec<OfferedTool>> {
        loop {
            self.signal.changed().await.ok()?;
            let now = self.registry.tools(None);
            let same =
                |(one, other): (&OfferedTool, &OfferedTool)| one.plugin == other.plugin && one.tool() == other.tool();
            if now.len() != self.seen.len() || !now.iter().zip(&self.seen).all(same) {
                self.seen.clone_from(&now);
                return Some(now);
            }
        }
    }
}
