from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Event(_message.Message):
    __slots__ = ("event_id", "event_type", "occurred_at", "workspace_id", "payload")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    event_type: str
    occurred_at: str
    workspace_id: str
    payload: _struct_pb2.Struct
    def __init__(self, event_id: _Optional[str] = ..., event_type: _Optional[str] = ..., occurred_at: _Optional[str] = ..., workspace_id: _Optional[str] = ..., payload: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class EventAck(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WebhookRequest(_message.Message):
    __slots__ = ("webhook_key", "method", "path", "query", "headers", "body")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WEBHOOK_KEY_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    webhook_key: str
    method: str
    path: str
    query: str
    headers: _containers.ScalarMap[str, str]
    body: bytes
    def __init__(self, webhook_key: _Optional[str] = ..., method: _Optional[str] = ..., path: _Optional[str] = ..., query: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., body: _Optional[bytes] = ...) -> None: ...

class WebhookResponse(_message.Message):
    __slots__ = ("status", "headers", "body")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    STATUS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    status: int
    headers: _containers.ScalarMap[str, str]
    body: bytes
    def __init__(self, status: _Optional[int] = ..., headers: _Optional[_Mapping[str, str]] = ..., body: _Optional[bytes] = ...) -> None: ...

class VerifiedActionContext(_message.Message):
    __slots__ = ("actor_id", "workspace_id", "task_id", "repository_id", "session_id", "head_branch")
    ACTOR_ID_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    REPOSITORY_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    HEAD_BRANCH_FIELD_NUMBER: _ClassVar[int]
    actor_id: str
    workspace_id: str
    task_id: str
    repository_id: str
    session_id: str
    head_branch: str
    def __init__(self, actor_id: _Optional[str] = ..., workspace_id: _Optional[str] = ..., task_id: _Optional[str] = ..., repository_id: _Optional[str] = ..., session_id: _Optional[str] = ..., head_branch: _Optional[str] = ...) -> None: ...

class PluginActionRequest(_message.Message):
    __slots__ = ("action_key", "context", "body")
    ACTION_KEY_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    action_key: str
    context: VerifiedActionContext
    body: bytes
    def __init__(self, action_key: _Optional[str] = ..., context: _Optional[_Union[VerifiedActionContext, _Mapping]] = ..., body: _Optional[bytes] = ...) -> None: ...

class PluginActionResponse(_message.Message):
    __slots__ = ("body", "headers", "status")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BODY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    body: bytes
    headers: _containers.ScalarMap[str, str]
    status: int
    def __init__(self, body: _Optional[bytes] = ..., headers: _Optional[_Mapping[str, str]] = ..., status: _Optional[int] = ...) -> None: ...

class SearchEntityReferencesRequest(_message.Message):
    __slots__ = ("source", "workspace_id", "query", "limit")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    source: str
    workspace_id: str
    query: str
    limit: int
    def __init__(self, source: _Optional[str] = ..., workspace_id: _Optional[str] = ..., query: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class EntityReferenceCandidate(_message.Message):
    __slots__ = ("provider_local_id", "title", "url", "attributes")
    PROVIDER_LOCAL_ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    provider_local_id: str
    title: str
    url: str
    attributes: _struct_pb2.Struct
    def __init__(self, provider_local_id: _Optional[str] = ..., title: _Optional[str] = ..., url: _Optional[str] = ..., attributes: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class SearchEntityReferencesResponse(_message.Message):
    __slots__ = ("candidates",)
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    candidates: _containers.RepeatedCompositeFieldContainer[EntityReferenceCandidate]
    def __init__(self, candidates: _Optional[_Iterable[_Union[EntityReferenceCandidate, _Mapping]]] = ...) -> None: ...

class AuthorizeEntityReferenceRequest(_message.Message):
    __slots__ = ("source", "workspace_id", "purpose", "reference")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    source: str
    workspace_id: str
    purpose: str
    reference: _struct_pb2.Struct
    def __init__(self, source: _Optional[str] = ..., workspace_id: _Optional[str] = ..., purpose: _Optional[str] = ..., reference: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class AuthorizeEntityReferenceResponse(_message.Message):
    __slots__ = ("allowed", "reason")
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    allowed: bool
    reason: str
    def __init__(self, allowed: bool = ..., reason: _Optional[str] = ...) -> None: ...

class ResolveGitCredentialRequest(_message.Message):
    __slots__ = ("provider_id", "workspace_id", "task_id", "session_id", "repository_id", "host", "path")
    PROVIDER_ID_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REPOSITORY_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    provider_id: str
    workspace_id: str
    task_id: str
    session_id: str
    repository_id: str
    host: str
    path: str
    def __init__(self, provider_id: _Optional[str] = ..., workspace_id: _Optional[str] = ..., task_id: _Optional[str] = ..., session_id: _Optional[str] = ..., repository_id: _Optional[str] = ..., host: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class ResolveGitCredentialResponse(_message.Message):
    __slots__ = ("username", "secret", "expires_at")
    USERNAME_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    username: str
    secret: str
    expires_at: str
    def __init__(self, username: _Optional[str] = ..., secret: _Optional[str] = ..., expires_at: _Optional[str] = ...) -> None: ...

class GitCredentialBindingRequest(_message.Message):
    __slots__ = ("provider_id", "workspace_id", "task_id", "session_id", "repository_id", "host", "path")
    PROVIDER_ID_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REPOSITORY_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    provider_id: str
    workspace_id: str
    task_id: str
    session_id: str
    repository_id: str
    host: str
    path: str
    def __init__(self, provider_id: _Optional[str] = ..., workspace_id: _Optional[str] = ..., task_id: _Optional[str] = ..., session_id: _Optional[str] = ..., repository_id: _Optional[str] = ..., host: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class GitCredentialBindingResponse(_message.Message):
    __slots__ = ("binding",)
    BINDING_FIELD_NUMBER: _ClassVar[int]
    binding: str
    def __init__(self, binding: _Optional[str] = ...) -> None: ...

class AgentToolContext(_message.Message):
    __slots__ = ("task_id", "session_id", "workspace_id", "surface")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SURFACE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    session_id: str
    workspace_id: str
    surface: str
    def __init__(self, task_id: _Optional[str] = ..., session_id: _Optional[str] = ..., workspace_id: _Optional[str] = ..., surface: _Optional[str] = ...) -> None: ...

class AgentToolRequest(_message.Message):
    __slots__ = ("invocation_id", "name", "arguments", "context")
    INVOCATION_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    invocation_id: str
    name: str
    arguments: _struct_pb2.Struct
    context: AgentToolContext
    def __init__(self, invocation_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., context: _Optional[_Union[AgentToolContext, _Mapping]] = ...) -> None: ...

class AgentToolResponse(_message.Message):
    __slots__ = ("text", "structured_content", "is_error")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STRUCTURED_CONTENT_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    text: str
    structured_content: _struct_pb2.Struct
    is_error: bool
    def __init__(self, text: _Optional[str] = ..., structured_content: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., is_error: bool = ...) -> None: ...

class GetStateRequest(_message.Message):
    __slots__ = ("scope", "scope_id", "key")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    scope: str
    scope_id: str
    key: str
    def __init__(self, scope: _Optional[str] = ..., scope_id: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class GetStateResponse(_message.Message):
    __slots__ = ("found", "value")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    found: bool
    value: _struct_pb2.Struct
    def __init__(self, found: bool = ..., value: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class SetStateRequest(_message.Message):
    __slots__ = ("scope", "scope_id", "key", "value")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    scope: str
    scope_id: str
    key: str
    value: _struct_pb2.Struct
    def __init__(self, scope: _Optional[str] = ..., scope_id: _Optional[str] = ..., key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class SetStateResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteStateRequest(_message.Message):
    __slots__ = ("scope", "scope_id", "key")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    scope: str
    scope_id: str
    key: str
    def __init__(self, scope: _Optional[str] = ..., scope_id: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class DeleteStateResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListStateRequest(_message.Message):
    __slots__ = ("scope", "scope_id")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_ID_FIELD_NUMBER: _ClassVar[int]
    scope: str
    scope_id: str
    def __init__(self, scope: _Optional[str] = ..., scope_id: _Optional[str] = ...) -> None: ...

class StateEntry(_message.Message):
    __slots__ = ("key", "value", "updated_at")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _struct_pb2.Struct
    updated_at: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., updated_at: _Optional[str] = ...) -> None: ...

class ListStateResponse(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[StateEntry]
    def __init__(self, entries: _Optional[_Iterable[_Union[StateEntry, _Mapping]]] = ...) -> None: ...

class GetConfigRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetConfigResponse(_message.Message):
    __slots__ = ("config",)
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    config: _struct_pb2.Struct
    def __init__(self, config: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class GetSecretRequest(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class GetSecretResponse(_message.Message):
    __slots__ = ("found", "value")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    found: bool
    value: str
    def __init__(self, found: bool = ..., value: _Optional[str] = ...) -> None: ...

class SetSecretRequest(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class SetSecretResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteSecretRequest(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class DeleteSecretResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RevealSecretRequest(_message.Message):
    __slots__ = ("ref",)
    REF_FIELD_NUMBER: _ClassVar[int]
    ref: str
    def __init__(self, ref: _Optional[str] = ...) -> None: ...

class RevealSecretResponse(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: str
    def __init__(self, value: _Optional[str] = ...) -> None: ...

class EmitEventRequest(_message.Message):
    __slots__ = ("event_name", "payload")
    EVENT_NAME_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    event_name: str
    payload: _struct_pb2.Struct
    def __init__(self, event_name: _Optional[str] = ..., payload: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class EmitEventResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Page(_message.Message):
    __slots__ = ("limit", "cursor")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    limit: int
    cursor: str
    def __init__(self, limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class PageInfo(_message.Message):
    __slots__ = ("next_cursor", "has_more")
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    next_cursor: str
    has_more: bool
    def __init__(self, next_cursor: _Optional[str] = ..., has_more: bool = ...) -> None: ...

class TaskRepository(_message.Message):
    __slots__ = ("id", "repository_id", "base_branch", "position", "checkout_branch")
    ID_FIELD_NUMBER: _ClassVar[int]
    REPOSITORY_ID_FIELD_NUMBER: _ClassVar[int]
    BASE_BRANCH_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CHECKOUT_BRANCH_FIELD_NUMBER: _ClassVar[int]
    id: str
    repository_id: str
    base_branch: str
    position: int
    checkout_branch: str
    def __init__(self, id: _Optional[str] = ..., repository_id: _Optional[str] = ..., base_branch: _Optional[str] = ..., position: _Optional[int] = ..., checkout_branch: _Optional[str] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("id", "workspace_id", "workflow_id", "title", "description", "state", "priority", "created_by", "created_at", "updated_at", "started_at", "completed_at", "parent_id", "identifier", "is_ephemeral", "repositories", "metadata")
    ID_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    IS_EPHEMERAL_FIELD_NUMBER: _ClassVar[int]
    REPOSITORIES_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    id: str
    workspace_id: str
    workflow_id: str
    title: str
    description: str
    state: str
    priority: str
    created_by: str
    created_at: str
    updated_at: str
    started_at: str
    completed_at: str
    parent_id: str
    identifier: str
    is_ephemeral: bool
    repositories: _containers.RepeatedCompositeFieldContainer[TaskRepository]
    metadata: _struct_pb2.Struct
    def __init__(self, id: _Optional[str] = ..., workspace_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., title: _Optional[str] = ..., description: _Optional[str] = ..., state: _Optional[str] = ..., priority: _Optional[str] = ..., created_by: _Optional[str] = ..., created_at: _Optional[str] = ..., updated_at: _Optional[str] = ..., started_at: _Optional[str] = ..., completed_at: _Optional[str] = ..., parent_id: _Optional[str] = ..., identifier: _Optional[str] = ..., is_ephemeral: bool = ..., repositories: _Optional[_Iterable[_Union[TaskRepository, _Mapping]]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class TaskFilter(_message.Message):
    __slots__ = ("workspace_ids", "workflow_ids", "states", "parent_id", "include_ephemeral")
    WORKSPACE_IDS_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_IDS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EPHEMERAL_FIELD_NUMBER: _ClassVar[int]
    workspace_ids: _containers.RepeatedScalarFieldContainer[str]
    workflow_ids: _containers.RepeatedScalarFieldContainer[str]
    states: _containers.RepeatedScalarFieldContainer[str]
    parent_id: str
    include_ephemeral: bool
    def __init__(self, workspace_ids: _Optional[_Iterable[str]] = ..., workflow_ids: _Optional[_Iterable[str]] = ..., states: _Optional[_Iterable[str]] = ..., parent_id: _Optional[str] = ..., include_ephemeral: bool = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("filter", "page")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    filter: TaskFilter
    page: Page
    def __init__(self, filter: _Optional[_Union[TaskFilter, _Mapping]] = ..., page: _Optional[_Union[Page, _Mapping]] = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("tasks", "page_info")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    PAGE_INFO_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    page_info: PageInfo
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., page_info: _Optional[_Union[PageInfo, _Mapping]] = ...) -> None: ...

class GetTaskRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class GetTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: Task
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...

class Workspace(_message.Message):
    __slots__ = ("id", "name", "description", "owner_id", "default_executor_id", "default_agent_profile_id", "created_at", "updated_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_EXECUTOR_ID_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_AGENT_PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    description: str
    owner_id: str
    default_executor_id: str
    default_agent_profile_id: str
    created_at: str
    updated_at: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., description: _Optional[str] = ..., owner_id: _Optional[str] = ..., default_executor_id: _Optional[str] = ..., default_agent_profile_id: _Optional[str] = ..., created_at: _Optional[str] = ..., updated_at: _Optional[str] = ...) -> None: ...

class ListWorkspacesRequest(_message.Message):
    __slots__ = ("page",)
    PAGE_FIELD_NUMBER: _ClassVar[int]
    page: Page
    def __init__(self, page: _Optional[_Union[Page, _Mapping]] = ...) -> None: ...

class ListWorkspacesResponse(_message.Message):
    __slots__ = ("workspaces", "page_info")
    WORKSPACES_FIELD_NUMBER: _ClassVar[int]
    PAGE_INFO_FIELD_NUMBER: _ClassVar[int]
    workspaces: _containers.RepeatedCompositeFieldContainer[Workspace]
    page_info: PageInfo
    def __init__(self, workspaces: _Optional[_Iterable[_Union[Workspace, _Mapping]]] = ..., page_info: _Optional[_Union[PageInfo, _Mapping]] = ...) -> None: ...

class Workflow(_message.Message):
    __slots__ = ("id", "workspace_id", "name", "description", "sort_order", "created_at", "updated_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SORT_ORDER_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    workspace_id: str
    name: str
    description: str
    sort_order: int
    created_at: str
    updated_at: str
    def __init__(self, id: _Optional[str] = ..., workspace_id: _Optional[str] = ..., name: _Optional[str] = ..., description: _Optional[str] = ..., sort_order: _Optional[int] = ..., created_at: _Optional[str] = ..., updated_at: _Optional[str] = ...) -> None: ...

class ListWorkflowsRequest(_message.Message):
    __slots__ = ("workspace_id", "page")
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    workspace_id: str
    page: Page
    def __init__(self, workspace_id: _Optional[str] = ..., page: _Optional[_Union[Page, _Mapping]] = ...) -> None: ...

class ListWorkflowsResponse(_message.Message):
    __slots__ = ("workflows", "page_info")
    WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    PAGE_INFO_FIELD_NUMBER: _ClassVar[int]
    workflows: _containers.RepeatedCompositeFieldContainer[Workflow]
    page_info: PageInfo
    def __init__(self, workflows: _Optional[_Iterable[_Union[Workflow, _Mapping]]] = ..., page_info: _Optional[_Union[PageInfo, _Mapping]] = ...) -> None: ...

class WorkflowStep(_message.Message):
    __slots__ = ("id", "workflow_id", "name", "position", "stage_type")
    ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    STAGE_TYPE_FIELD_NUMBER: _ClassVar[int]
    id: str
    workflow_id: str
    name: str
    position: int
    stage_type: str
    def __init__(self, id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., name: _Optional[str] = ..., position: _Optional[int] = ..., stage_type: _Optional[str] = ...) -> None: ...

class ListWorkflowStepsRequest(_message.Message):
    __slots__ = ("workflow_id",)
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    def __init__(self, workflow_id: _Optional[str] = ...) -> None: ...

class ListWorkflowStepsResponse(_message.Message):
    __slots__ = ("steps",)
    STEPS_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[WorkflowStep]
    def __init__(self, steps: _Optional[_Iterable[_Union[WorkflowStep, _Mapping]]] = ...) -> None: ...

class AgentProfile(_message.Message):
    __slots__ = ("id", "agent_id", "display_name", "name", "model", "mode")
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    id: str
    agent_id: str
    display_name: str
    name: str
    model: str
    mode: str
    def __init__(self, id: _Optional[str] = ..., agent_id: _Optional[str] = ..., display_name: _Optional[str] = ..., name: _Optional[str] = ..., model: _Optional[str] = ..., mode: _Optional[str] = ...) -> None: ...

class ListAgentProfilesRequest(_message.Message):
    __slots__ = ("page",)
    PAGE_FIELD_NUMBER: _ClassVar[int]
    page: Page
    def __init__(self, page: _Optional[_Union[Page, _Mapping]] = ...) -> None: ...

class ListAgentProfilesResponse(_message.Message):
    __slots__ = ("profiles", "page_info")
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    PAGE_INFO_FIELD_NUMBER: _ClassVar[int]
    profiles: _containers.RepeatedCompositeFieldContainer[AgentProfile]
    page_info: PageInfo
    def __init__(self, profiles: _Optional[_Iterable[_Union[AgentProfile, _Mapping]]] = ..., page_info: _Optional[_Union[PageInfo, _Mapping]] = ...) -> None: ...

class ExecutorProfile(_message.Message):
    __slots__ = ("id", "display_name", "executor_type")
    ID_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_TYPE_FIELD_NUMBER: _ClassVar[int]
    id: str
    display_name: str
    executor_type: str
    def __init__(self, id: _Optional[str] = ..., display_name: _Optional[str] = ..., executor_type: _Optional[str] = ...) -> None: ...

class ListExecutorProfilesRequest(_message.Message):
    __slots__ = ("page",)
    PAGE_FIELD_NUMBER: _ClassVar[int]
    page: Page
    def __init__(self, page: _Optional[_Union[Page, _Mapping]] = ...) -> None: ...

class ListExecutorProfilesResponse(_message.Message):
    __slots__ = ("profiles", "page_info")
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    PAGE_INFO_FIELD_NUMBER: _ClassVar[int]
    profiles: _containers.RepeatedCompositeFieldContainer[ExecutorProfile]
    page_info: PageInfo
    def __init__(self, profiles: _Optional[_Iterable[_Union[ExecutorProfile, _Mapping]]] = ..., page_info: _Optional[_Union[PageInfo, _Mapping]] = ...) -> None: ...

class Repository(_message.Message):
    __slots__ = ("id", "workspace_id", "name", "default_branch", "source_type", "provider_id", "provider_repository_id", "provider_host", "owner_or_project", "provider_name", "remote_url", "provider_scope")
    ID_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BRANCH_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_REPOSITORY_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_HOST_FIELD_NUMBER: _ClassVar[int]
    OWNER_OR_PROJECT_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_NAME_FIELD_NUMBER: _ClassVar[int]
    REMOTE_URL_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_SCOPE_FIELD_NUMBER: _ClassVar[int]
    id: str
    workspace_id: str
    name: str
    default_branch: str
    source_type: str
    provider_id: str
    provider_repository_id: str
    provider_host: str
    owner_or_project: str
    provider_name: str
    remote_url: str
    provider_scope: str
    def __init__(self, id: _Optional[str] = ..., workspace_id: _Optional[str] = ..., name: _Optional[str] = ..., default_branch: _Optional[str] = ..., source_type: _Optional[str] = ..., provider_id: _Optional[str] = ..., provider_repository_id: _Optional[str] = ..., provider_host: _Optional[str] = ..., owner_or_project: _Optional[str] = ..., provider_name: _Optional[str] = ..., remote_url: _Optional[str] = ..., provider_scope: _Optional[str] = ...) -> None: ...

class ListRepositoriesRequest(_message.Message):
    __slots__ = ("workspace_id", "page")
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    workspace_id: str
    page: Page
    def __init__(self, workspace_id: _Optional[str] = ..., page: _Optional[_Union[Page, _Mapping]] = ...) -> None: ...

class ListRepositoriesResponse(_message.Message):
    __slots__ = ("repositories", "page_info")
    REPOSITORIES_FIELD_NUMBER: _ClassVar[int]
    PAGE_INFO_FIELD_NUMBER: _ClassVar[int]
    repositories: _containers.RepeatedCompositeFieldContainer[Repository]
    page_info: PageInfo
    def __init__(self, repositories: _Optional[_Iterable[_Union[Repository, _Mapping]]] = ..., page_info: _Optional[_Union[PageInfo, _Mapping]] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ("id", "task_id", "agent_profile_id", "agent_display_name", "model", "acp_session_id", "state", "started_at", "ended_at", "agent_profile_name")
    ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ACP_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    AGENT_PROFILE_NAME_FIELD_NUMBER: _ClassVar[int]
    id: str
    task_id: str
    agent_profile_id: str
    agent_display_name: str
    model: str
    acp_session_id: str
    state: str
    started_at: str
    ended_at: str
    agent_profile_name: str
    def __init__(self, id: _Optional[str] = ..., task_id: _Optional[str] = ..., agent_profile_id: _Optional[str] = ..., agent_display_name: _Optional[str] = ..., model: _Optional[str] = ..., acp_session_id: _Optional[str] = ..., state: _Optional[str] = ..., started_at: _Optional[str] = ..., ended_at: _Optional[str] = ..., agent_profile_name: _Optional[str] = ...) -> None: ...

class SessionFilter(_message.Message):
    __slots__ = ("task_ids", "workspace_ids", "states")
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_IDS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    workspace_ids: _containers.RepeatedScalarFieldContainer[str]
    states: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task_ids: _Optional[_Iterable[str]] = ..., workspace_ids: _Optional[_Iterable[str]] = ..., states: _Optional[_Iterable[str]] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("filter", "page")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    filter: SessionFilter
    page: Page
    def __init__(self, filter: _Optional[_Union[SessionFilter, _Mapping]] = ..., page: _Optional[_Union[Page, _Mapping]] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions", "page_info")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    PAGE_INFO_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    page_info: PageInfo
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping]]] = ..., page_info: _Optional[_Union[PageInfo, _Mapping]] = ...) -> None: ...

class SessionCodeStats(_message.Message):
    __slots__ = ("session_id", "lines_added_committed", "lines_deleted_committed", "lines_added_peak_pending", "lines_deleted_peak_pending", "committed_lines_available")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LINES_ADDED_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    LINES_DELETED_COMMITTED_FIELD_NUMBER: _ClassVar[int]
    LINES_ADDED_PEAK_PENDING_FIELD_NUMBER: _ClassVar[int]
    LINES_DELETED_PEAK_PENDING_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_LINES_AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    lines_added_committed: int
    lines_deleted_committed: int
    lines_added_peak_pending: int
    lines_deleted_peak_pending: int
    committed_lines_available: bool
    def __init__(self, session_id: _Optional[str] = ..., lines_added_committed: _Optional[int] = ..., lines_deleted_committed: _Optional[int] = ..., lines_added_peak_pending: _Optional[int] = ..., lines_deleted_peak_pending: _Optional[int] = ..., committed_lines_available: bool = ...) -> None: ...

class ListSessionCodeStatsRequest(_message.Message):
    __slots__ = ("filter", "page")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    filter: SessionFilter
    page: Page
    def __init__(self, filter: _Optional[_Union[SessionFilter, _Mapping]] = ..., page: _Optional[_Union[Page, _Mapping]] = ...) -> None: ...

class ListSessionCodeStatsResponse(_message.Message):
    __slots__ = ("stats", "page_info")
    STATS_FIELD_NUMBER: _ClassVar[int]
    PAGE_INFO_FIELD_NUMBER: _ClassVar[int]
    stats: _containers.RepeatedCompositeFieldContainer[SessionCodeStats]
    page_info: PageInfo
    def __init__(self, stats: _Optional[_Iterable[_Union[SessionCodeStats, _Mapping]]] = ..., page_info: _Optional[_Union[PageInfo, _Mapping]] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("id", "session_id", "task_id", "turn_id", "author_type", "content", "type", "created_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_ID_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    session_id: str
    task_id: str
    turn_id: str
    author_type: str
    content: str
    type: str
    created_at: str
    def __init__(self, id: _Optional[str] = ..., session_id: _Optional[str] = ..., task_id: _Optional[str] = ..., turn_id: _Optional[str] = ..., author_type: _Optional[str] = ..., content: _Optional[str] = ..., type: _Optional[str] = ..., created_at: _Optional[str] = ...) -> None: ...

class MessageFilter(_message.Message):
    __slots__ = ("session_ids", "task_ids", "since", "until", "types")
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    since: str
    until: str
    types: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session_ids: _Optional[_Iterable[str]] = ..., task_ids: _Optional[_Iterable[str]] = ..., since: _Optional[str] = ..., until: _Optional[str] = ..., types: _Optional[_Iterable[str]] = ...) -> None: ...

class ListMessagesRequest(_message.Message):
    __slots__ = ("filter", "page")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    filter: MessageFilter
    page: Page
    def __init__(self, filter: _Optional[_Union[MessageFilter, _Mapping]] = ..., page: _Optional[_Union[Page, _Mapping]] = ...) -> None: ...

class ListMessagesResponse(_message.Message):
    __slots__ = ("messages", "page_info")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PAGE_INFO_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    page_info: PageInfo
    def __init__(self, messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., page_info: _Optional[_Union[PageInfo, _Mapping]] = ...) -> None: ...

class InvokeUtilityAgentRequest(_message.Message):
    __slots__ = ("prompt",)
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    prompt: str
    def __init__(self, prompt: _Optional[str] = ...) -> None: ...

class InvokeUtilityAgentResponse(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class RemoteRepositoryDescriptor(_message.Message):
    __slots__ = ("provider_id", "provider_host", "owner_or_project", "provider_repository_id", "name", "clone_url", "default_branch", "base_branch", "head_branch", "pull_request_number", "provider_scope")
    PROVIDER_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_HOST_FIELD_NUMBER: _ClassVar[int]
    OWNER_OR_PROJECT_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_REPOSITORY_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLONE_URL_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BRANCH_FIELD_NUMBER: _ClassVar[int]
    BASE_BRANCH_FIELD_NUMBER: _ClassVar[int]
    HEAD_BRANCH_FIELD_NUMBER: _ClassVar[int]
    PULL_REQUEST_NUMBER_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_SCOPE_FIELD_NUMBER: _ClassVar[int]
    provider_id: str
    provider_host: str
    owner_or_project: str
    provider_repository_id: str
    name: str
    clone_url: str
    default_branch: str
    base_branch: str
    head_branch: str
    pull_request_number: int
    provider_scope: str
    def __init__(self, provider_id: _Optional[str] = ..., provider_host: _Optional[str] = ..., owner_or_project: _Optional[str] = ..., provider_repository_id: _Optional[str] = ..., name: _Optional[str] = ..., clone_url: _Optional[str] = ..., default_branch: _Optional[str] = ..., base_branch: _Optional[str] = ..., head_branch: _Optional[str] = ..., pull_request_number: _Optional[int] = ..., provider_scope: _Optional[str] = ...) -> None: ...

class PluginTaskRepository(_message.Message):
    __slots__ = ("repository_id", "remote", "base_branch", "checkout_branch", "pull_request_number")
    REPOSITORY_ID_FIELD_NUMBER: _ClassVar[int]
    REMOTE_FIELD_NUMBER: _ClassVar[int]
    BASE_BRANCH_FIELD_NUMBER: _ClassVar[int]
    CHECKOUT_BRANCH_FIELD_NUMBER: _ClassVar[int]
    PULL_REQUEST_NUMBER_FIELD_NUMBER: _ClassVar[int]
    repository_id: str
    remote: RemoteRepositoryDescriptor
    base_branch: str
    checkout_branch: str
    pull_request_number: int
    def __init__(self, repository_id: _Optional[str] = ..., remote: _Optional[_Union[RemoteRepositoryDescriptor, _Mapping]] = ..., base_branch: _Optional[str] = ..., checkout_branch: _Optional[str] = ..., pull_request_number: _Optional[int] = ...) -> None: ...

class PluginTaskLaunchOptions(_message.Message):
    __slots__ = ("agent_profile_id", "executor_profile_id", "prompt", "plan_mode")
    AGENT_PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    PLAN_MODE_FIELD_NUMBER: _ClassVar[int]
    agent_profile_id: str
    executor_profile_id: str
    prompt: str
    plan_mode: str
    def __init__(self, agent_profile_id: _Optional[str] = ..., executor_profile_id: _Optional[str] = ..., prompt: _Optional[str] = ..., plan_mode: _Optional[str] = ...) -> None: ...

class CreateTaskRequest(_message.Message):
    __slots__ = ("workspace_id", "workflow_id", "workflow_step_id", "title", "description", "parent_id", "start_agent", "repositories", "launch", "metadata")
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    START_AGENT_FIELD_NUMBER: _ClassVar[int]
    REPOSITORIES_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    workspace_id: str
    workflow_id: str
    workflow_step_id: str
    title: str
    description: str
    parent_id: str
    start_agent: bool
    repositories: _containers.RepeatedCompositeFieldContainer[PluginTaskRepository]
    launch: PluginTaskLaunchOptions
    metadata: _struct_pb2.Struct
    def __init__(self, workspace_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., workflow_step_id: _Optional[str] = ..., title: _Optional[str] = ..., description: _Optional[str] = ..., parent_id: _Optional[str] = ..., start_agent: bool = ..., repositories: _Optional[_Iterable[_Union[PluginTaskRepository, _Mapping]]] = ..., launch: _Optional[_Union[PluginTaskLaunchOptions, _Mapping]] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class CreateTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: Task
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...

class UpdateTaskRequest(_message.Message):
    __slots__ = ("id", "title", "description", "state", "workflow_step_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    description: str
    state: str
    workflow_step_id: str
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., description: _Optional[str] = ..., state: _Optional[str] = ..., workflow_step_id: _Optional[str] = ...) -> None: ...

class UpdateTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: Task
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...

class SendMessageRequest(_message.Message):
    __slots__ = ("task_id", "session_id", "text")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    session_id: str
    text: str
    def __init__(self, task_id: _Optional[str] = ..., session_id: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class SendMessageResponse(_message.Message):
    __slots__ = ("session_id", "status")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    status: str
    def __init__(self, session_id: _Optional[str] = ..., status: _Optional[str] = ...) -> None: ...

class PreviewPluginOwnedTaskTreeRequest(_message.Message):
    __slots__ = ("root_task_id",)
    ROOT_TASK_ID_FIELD_NUMBER: _ClassVar[int]
    root_task_id: str
    def __init__(self, root_task_id: _Optional[str] = ...) -> None: ...

class PreviewPluginOwnedTaskTreeResponse(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ...) -> None: ...

class DeletePluginOwnedTaskTreeRequest(_message.Message):
    __slots__ = ("root_task_id",)
    ROOT_TASK_ID_FIELD_NUMBER: _ClassVar[int]
    root_task_id: str
    def __init__(self, root_task_id: _Optional[str] = ...) -> None: ...

class DeletePluginOwnedTaskTreeResponse(_message.Message):
    __slots__ = ("deleted_task_ids",)
    DELETED_TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    deleted_task_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, deleted_task_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class DeletePluginOwnedTaskTreeProgress(_message.Message):
    __slots__ = ("deleted_task_ids",)
    DELETED_TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    deleted_task_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, deleted_task_ids: _Optional[_Iterable[str]] = ...) -> None: ...
