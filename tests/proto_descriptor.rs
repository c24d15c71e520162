//! The compiled proto is the contract's: every message, field and RPC is compared with a table written from
//! contract/wire.md §2 and §3 (not from the proto file, so that a slip in the proto shows).
//!
//! Names are compared too: JSON forms and reflection use them. Comments and the order of declarations are not.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

/// RPC, request, response of the service that the plugin serves (wire.md §2).
const PLUGIN_RPCS: &str = "
DeliverEvent             Event                           EventAck
HandleWebhook            WebhookRequest                  WebhookResponse
HandleAction             PluginActionRequest             PluginActionResponse
SearchEntityReferences   SearchEntityReferencesRequest   SearchEntityReferencesResponse
AuthorizeEntityReference AuthorizeEntityReferenceRequest AuthorizeEntityReferenceResponse
ResolveGitCredential     ResolveGitCredentialRequest     ResolveGitCredentialResponse
GetGitCredentialBinding  GitCredentialBindingRequest     GitCredentialBindingResponse
InvokeAgentTool          AgentToolRequest                AgentToolResponse
";

/// RPC, request, response of the service that the host serves (wire.md §3).
const HOST_RPCS: &str = "
GetState                   GetStateRequest                   GetStateResponse
SetState                   SetStateRequest                   SetStateResponse
DeleteState                DeleteStateRequest                DeleteStateResponse
ListState                  ListStateRequest                  ListStateResponse
RevealSecret               RevealSecretRequest               RevealSecretResponse
EmitEvent                  EmitEventRequest                  EmitEventResponse
GetConfig                  GetConfigRequest                  GetConfigResponse
GetSecret                  GetSecretRequest                  GetSecretResponse
SetSecret                  SetSecretRequest                  SetSecretResponse
DeleteSecret               DeleteSecretRequest               DeleteSecretResponse
ListTasks                  ListTasksRequest                  ListTasksResponse
GetTask                    GetTaskRequest                    GetTaskResponse
ListWorkspaces             ListWorkspacesRequest             ListWorkspacesResponse
ListWorkflows              ListWorkflowsRequest              ListWorkflowsResponse
ListWorkflowSteps          ListWorkflowStepsRequest          ListWorkflowStepsResponse
ListAgentProfiles          ListAgentProfilesRequest          ListAgentProfilesResponse
ListExecutorProfiles       ListExecutorProfilesRequest       ListExecutorProfilesResponse
ListRepositories           ListRepositoriesRequest           ListRepositoriesResponse
ListSessions               ListSessionsRequest               ListSessionsResponse
ListSessionCodeStats       ListSessionCodeStatsRequest       ListSessionCodeStatsResponse
ListMessages               ListMessagesRequest               ListMessagesResponse
InvokeUtilityAgent         InvokeUtilityAgentRequest         InvokeUtilityAgentResponse
CreateTask                 CreateTaskRequest                 CreateTaskResponse
UpdateTask                 UpdateTaskRequest                 UpdateTaskResponse
SendMessage                SendMessageRequest                SendMessageResponse
PreviewPluginOwnedTaskTree PreviewPluginOwnedTaskTreeRequest PreviewPluginOwnedTaskTreeResponse
DeletePluginOwnedTaskTree  DeletePluginOwnedTaskTreeRequest  DeletePluginOwnedTaskTreeResponse
";

/// A message a line: `Name: field=number [opt|rep] [Type], …`. The type is `string` unless another is written.
const MESSAGES: &str = "
Event: event_id=1, event_type=2, occurred_at=3, workspace_id=4, payload=5 Struct
EventAck:
WebhookRequest: webhook_key=1, method=2, path=3, query=4, headers=5 map, body=6 bytes
WebhookResponse: status=1 int32, headers=2 map, body=3 bytes
PluginActionRequest: action_key=1, context=2 VerifiedActionContext, body=3 bytes
VerifiedActionContext: actor_id=1, workspace_id=2, task_id=3, repository_id=4, session_id=5, head_branch=6
PluginActionResponse: body=1 bytes, headers=2 map, status=3 int32
SearchEntityReferencesRequest: source=1, workspace_id=2, query=3, limit=4 int32
SearchEntityReferencesResponse: candidates=1 rep EntityReferenceCandidate
EntityReferenceCandidate: provider_local_id=1, title=2, url=3, attributes=4 Struct
AuthorizeEntityReferenceRequest: source=1, workspace_id=2, purpose=3, reference=4 Struct
AuthorizeEntityReferenceResponse: allowed=1 bool, reason=2
ResolveGitCredentialRequest: provider_id=1, workspace_id=2, task_id=3, session_id=4, repository_id=5, host=6, path=7
GitCredentialBindingRequest: provider_id=1, workspace_id=2, task_id=3, session_id=4, repository_id=5, host=6, path=7
ResolveGitCredentialResponse: username=1, secret=2, expires_at=3
GitCredentialBindingResponse: binding=1
AgentToolRequest: invocation_id=1, name=2, arguments=3 Struct, context=4 AgentToolContext
AgentToolContext: task_id=1, session_id=2, workspace_id=3, surface=4
AgentToolResponse: text=1, structured_content=2 Struct, is_error=3 bool

GetStateRequest: scope=1, scope_id=2, key=3
GetStateResponse: found=1 bool, value=2 Struct
SetStateRequest: scope=1, scope_id=2, key=3, value=4 Struct
SetStateResponse:
DeleteStateRequest: scope=1, scope_id=2, key=3
DeleteStateResponse:
ListStateRequest: scope=1, scope_id=2
ListStateResponse: entries=1 rep StateEntry
StateEntry: key=1, value=2 Struct, updated_at=3
GetConfigRequest:
GetConfigResponse: config=1 Struct
GetSecretRequest: key=1
GetSecretResponse: found=1 bool, value=2
SetSecretRequest: key=1, value=2
SetSecretResponse:
DeleteSecretRequest: key=1
DeleteSecretResponse:
RevealSecretRequest: ref=1
RevealSecretResponse: value=1
EmitEventRequest: event_name=1, payload=2 Struct
EmitEventResponse:

Page: limit=1 int32, cursor=2
PageInfo: next_cursor=1, has_more=2 bool

Task: id=1, workspace_id=2, workflow_id=3, title=4, description=5, state=6, priority=7, created_by=8, created_at=9, \
    updated_at=10, started_at=11 opt, completed_at=12 opt, parent_id=13 opt, identifier=14, is_ephemeral=15 bool, \
    repositories=16 rep TaskRepository, metadata=17 Struct
TaskRepository: id=1, repository_id=2, base_branch=3, position=4 int32, checkout_branch=5
TaskFilter: workspace_ids=1 rep, workflow_ids=2 rep, states=3 rep, parent_id=4 opt, include_ephemeral=5 bool
ListTasksRequest: filter=1 TaskFilter, page=2 Page
ListTasksResponse: tasks=1 rep Task, page_info=2 PageInfo
GetTaskRequest: id=1
GetTaskResponse: task=1 Task
Workspace: id=1, name=2, description=3 opt, owner_id=4, default_executor_id=5 opt, default_agent_profile_id=6 opt, \
    created_at=7, updated_at=8
ListWorkspacesRequest: page=1 Page
ListWorkspacesResponse: workspaces=1 rep Workspace, page_info=2 PageInfo
Workflow: id=1, workspace_id=2, name=3, description=4 opt, sort_order=5 int32, created_at=6, updated_at=7
ListWorkflowsRequest: workspace_id=1, page=2 Page
ListWorkflowsResponse: workflows=1 rep Workflow, page_info=2 PageInfo
WorkflowStep: id=1, workflow_id=2, name=3, position=4 int32, stage_type=5
ListWorkflowStepsRequest: workflow_id=1
ListWorkflowStepsResponse: steps=1 rep WorkflowStep
AgentProfile: id=1, agent_id=2, display_name=3, name=4, model=5, mode=6
ListAgentProfilesRequest: page=1 Page
ListAgentProfilesResponse: profiles=1 rep AgentProfile, page_info=2 PageInfo
ExecutorProfile: id=1, display_name=2, executor_type=3
ListExecutorProfilesRequest: page=1 Page
ListExecutorProfilesResponse: profiles=1 rep ExecutorProfile, page_info=2 PageInfo
Repository: id=1, workspace_id=2, name=3, default_branch=4 opt, source_type=5, provider_id=6, \
    provider_repository_id=7, provider_host=8, owner_or_project=9, provider_name=10, remote_url=11, provider_scope=12
ListRepositoriesRequest: workspace_id=1, page=2 Page
ListRepositoriesResponse: repositories=1 rep Repository, page_info=2 PageInfo
Session: id=1, task_id=2, agent_profile_id=3, agent_display_name=4, model=5, acp_session_id=6, state=7, \
    started_at=8, ended_at=9 opt, agent_profile_name=10
SessionFilter: task_ids=1 rep, workspace_ids=2 rep, states=3 rep
ListSessionsRequest: filter=1 SessionFilter, page=2 Page
ListSessionsResponse: sessions=1 rep Session, page_info=2 PageInfo
SessionCodeStats: session_id=1, lines_added_committed=2 int64, lines_deleted_committed=3 int64, \
    lines_added_peak_pending=4 int64, lines_deleted_peak_pending=5 int64, committed_lines_available=6 bool
ListSessionCodeStatsRequest: filter=1 SessionFilter, page=2 Page
ListSessionCodeStatsResponse: stats=1 rep SessionCodeStats, page_info=2 PageInfo
Message: id=1, session_id=2, task_id=3, turn_id=4, author_type=5, content=6, type=7, created_at=8
MessageFilter: session_ids=1 rep, task_ids=2 rep, since=3 opt, until=4 opt, types=5 rep
ListMessagesRequest: filter=1 MessageFilter, page=2 Page
ListMessagesResponse: messages=1 rep Message, page_info=2 PageInfo
InvokeUtilityAgentRequest: prompt=1
InvokeUtilityAgentResponse: text=1
CreateTaskRequest: workspace_id=1, workflow_id=2, workflow_step_id=3 opt, title=4, description=5, parent_id=6 opt, \
    start_agent=7 bool, repositories=8 rep PluginTaskRepository, launch=9 opt PluginTaskLaunchOptions, \
    metadata=10 Struct
CreateTaskResponse: task=1 Task
PluginTaskRepository: repository_id=1, remote=2 opt RemoteRepositoryDescriptor, base_branch=3 opt, \
    checkout_branch=4 opt, pull_request_number=5 opt int64
RemoteRepositoryDescriptor: provider_id=1, provider_host=2, owner_or_project=3, provider_repository_id=4, name=5, \
    clone_url=6, default_branch=7 opt, base_branch=8 opt, head_branch=9 opt, pull_request_number=10 opt int64, \
    provider_scope=11
PluginTaskLaunchOptions: agent_profile_id=1 opt, executor_profile_id=2 opt, prompt=3 opt, plan_mode=4 opt
UpdateTaskRequest: id=1, title=2 opt, description=3 opt, state=4 opt, workflow_step_id=5 opt
UpdateTaskResponse: task=1 Task
SendMessageRequest: task_id=1, session_id=2, text=3
SendMessageResponse: session_id=1, status=2
PreviewPluginOwnedTaskTreeRequest: root_task_id=1
PreviewPluginOwnedTaskTreeResponse: tasks=1 rep Task
DeletePluginOwnedTaskTreeRequest: root_task_id=1
DeletePluginOwnedTaskTreeResponse: deleted_task_ids=1 rep
DeletePluginOwnedTaskTreeProgress: deleted_task_ids=1 rep
";

/// A field as `name=number label type`, a message as the set of its fields.
type Messages = BTreeMap<String, BTreeSet<String>>;

/// `PLUGIN_RPCS` and `HOST_RPCS` as they read in the compiled file.
type Rpcs = BTreeSet<String>;

#[test]
fn every_message_has_the_contracts_fields_numbers_types_and_labels() {
    let expected = table();
    let compiled: Messages = file()
        .message_type
        .iter()
        .map(|message| {
            let fields = message.field.iter().map(|field| describe_field(message, field)).collect();
            (message.name().to_owned(), fields)
        })
        .collect();

    let names = |messages: &Messages| messages.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&compiled), names(&expected), "the messages themselves");
    for (name, fields) in &expected {
        assert_eq!(&compiled[name], fields, "{name}");
    }
}

#[test]
fn both_services_have_the_contracts_rpcs_and_none_streams() {
    let compiled: BTreeMap<String, Rpcs> = file()
        .service
        .iter()
        .map(|service| {
            let rpcs = service.method.iter().map(|method| {
                assert!(!method.client_streaming() && !method.server_streaming(), "{} streams", method.name());
                format!("{} {} {}", method.name(), local(method.input_type()), local(method.output_type()))
            });
            (service.name().to_owned(), rpcs.collect())
        })
        .collect();

    let rows = |text: &str| -> Rpcs {
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let expected = BTreeMap::from([("Plugin".into(), rows(PLUGIN_RPCS)), ("Host".into(), rows(HOST_RPCS))]);
    assert_eq!(compiled, expected);
}

#[test]
fn the_file_is_proto3_and_defines_no_enum_or_extension() {
    let file = file();
    assert_eq!(file.syntax(), "proto3");
    assert!(file.enum_type.is_empty() && file.extension.is_empty());
}

/// The descriptors of `plugin.proto`, found by its package.
fn file() -> FileDescriptorProto {
    let set = FileDescriptorSet::decode(kandev_proto::FILE_DESCRIPTOR_SET).expect("the crate's own descriptors");
    let found = set.file.into_iter().find(|file| file.package() == "kandev.plugin.v1");
    found.expect("package kandev.plugin.v1 is compiled")
}

fn describe_field(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let kind = match field.r#type() {
        Type::String => "string".to_owned(),
        Type::Bytes => "bytes".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::Message => local(field.type_name()),
        other => format!("{other:?}"),
    };
    let (label, kind) = match (is_text_map(message, field), field.proto3_optional(), field.label()) {
        (true, _, _) => ("plain", "map".to_owned()),
        (_, true, _) => ("opt", kind),
        (_, _, Label::Repeated) => ("rep", kind),
        (_, _, Label::Optional) => ("plain", kind),
        (_, _, Label::Required) => ("required", kind),
    };
    format!("{}={} {label} {kind}", field.name(), field.number())
}

/// True for `map<string, string>`, which is compiled to a repeated nested entry message.
fn is_text_map(message: &DescriptorProto, field: &FieldDescriptorProto) -> bool {
    let entry = message.nested_type.iter().find(|nested| field.type_name().ends_with(&format!(".{}", nested.name())));
    entry.is_some_and(|entry| {
        let is_map = entry.options.as_ref().is_some_and(|options| options.map_entry());
        is_map && entry.field.len() == 2 && entry.field.iter().all(|part| part.r#type() == Type::String)
    })
}

/// A type's name without its package; a type of any other package than the two in use keeps it and so fails.
fn local(name: &str) -> String {
    let own = name.strip_prefix(".kandev.plugin.v1.");
    own.or_else(|| name.strip_prefix(".google.protobuf.")).unwrap_or(name).to_owned()
}

/// `MESSAGES`, in the form that `describe_field` gives.
fn table() -> Messages {
    let mut messages = Messages::new();
    for line in MESSAGES.lines().filter(|line| !line.is_empty()) {
        let (name, fields) = line.split_once(':').expect("a row names its message");
        let fields = fields.split(',').map(str::trim).filter(|field| !field.is_empty()).map(expected_field).collect();
        assert!(messages.insert(name.to_owned(), fields).is_none(), "{name} is in the table twice");
    }
    messages
}

fn expected_field(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (label, kind) = match words[1..] {
        [] => ("plain", "string"),
        [label @ ("opt" | "rep")] => (label, "string"),
        [label @ ("opt" | "rep"), kind] => (label, kind),
        [kind] => ("plain", kind),
        _ => panic!("cannot read `{text}`"),
    };
    format!("{} {label} {kind}", words[0])
}
