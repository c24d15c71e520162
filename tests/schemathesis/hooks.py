"""Narrows the document before requests are generated from it, so that they reach more than 404: where an id stands, the
lawful ones are those that seed.py made. What is generated against the rules stays as wild as it is.

KANDEV_SEEDS names the file that seed.py printed.
"""

import copy
import itertools
import json
import os
import re

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData, ServerError
from schemathesis.openapi.checks import RejectedPositiveData

with open(os.environ["KANDEV_SEEDS"], encoding="utf-8") as file:
    SEEDS = json.load(file)

# What `{id}` is below a path; the first that fits.
IDS = [
    (r"/plugins/\{id\}", "plugin"),
    (r"/tasks/\{id\}", "task"),
    (r"/(task-|agent-)?sessions/\{id\}", "session"),
    (r"/workspaces/\{id\}", "workspace"),
    (r"/workflow/steps/\{id\}", "step"),
    (r"/workflow/templates/\{id\}", "template"),
    (r"/workflows/\{id\}", "workflow"),
    (r"/repositories/\{id\}", "repository"),
    (r"/agents/\{id\}", "agent"),
    (r"/agent-profiles/\{id\}", "agent_profile"),
    (r"/executors/\{id\}", "executor"),
    (r"/secrets/\{id\}", "secret"),
    (r"/inbox/\{id\}", "inbox_item"),
]
NAMES = {"profile": "executor_profile", "plugin": "plugin", "name": "trust_key"}

# What stands in a field of a body or a query.
FIELDS = {
    "workspace_id": "workspace",
    "workflow_id": "workflow",
    "workflow_ids": "workflow",
    "source_workflow_id": "workflow",
    "target_workflow_id": "workflow",
    "workflow_step_id": "step",
    "source_step_id": "step",
    "target_step_id": "step",
    "pull_from_step_id": "step",
    "step_ids": "step",
    "task_ids": "task",
    "parent_id": "task",
    "repository_id": "repository",
    "agent_profile_id": "agent_profile",
    "default_agent_profile_id": "agent_profile",
    "default_config_agent_profile_id": "agent_profile",
    "executor_profile_id": "executor_profile",
    "default_executor_id": "executor",
    "message_id": "message",
    "before": "message",
    "template_id": "template",
    "workflow_template_id": "template",
    "item_id": "inbox_item",
    "key": "public_key",
    "external_id": "external_id",
    "plugins": "plugin",
}

# Fields with one lawful value here, whatever the document allows.
WORDS = {
    "confirm_name": ["lose"],  # the name of the workspaces that may be deleted
    "kind": ["plugin_unreachable"],
    "cursor": [""],  # other ones are answers of the host
    "sort": ["asc", "desc"],
    "follow": ["false"],  # a stream has no end
    "scope": [""],  # a secret's goes with its workspace, which no schema tells
}


def narrowed(schema, values):
    """The schema with these values alone; a list with these items, and `null` where it may stand."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "array" in kinds:
        items = {"type": "string", "enum": values}
        rest = {name: schema[name] for name in ("maxItems", "minItems") if name in schema}
        return {"type": kinds, "items": items, **rest}
    if "null" in kinds:
        return {"type": kinds, "enum": [*values, None]}
    return {"type": "string", "enum": values}


def lawful(name):
    if name in WORDS:
        return WORDS[name]
    return SEEDS["keep"].get(FIELDS.get(name))


def narrow_body(schema, document):
    """A copy of a body's schema without references, its fields narrowed. No body contains itself."""
    if isinstance(schema, list):
        return [narrow_body(part, document) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return narrow_body(document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], document)
    schema = {name: narrow_body(part, document) for name, part in schema.items()}
    for name, field in schema.get("properties", {}).items():
        if values := lawful(name):
            schema["properties"][name] = narrowed(field, values)
    return schema


def narrow_parameter(parameter, path, method):
    name, place = parameter["name"], parameter["in"]
    values = None
    if place == "path":
        seeds = SEEDS["lose" if method == "delete" and not path.endswith("{plugin}") else "keep"]
        kind = NAMES.get(name) or next((kind for pattern, kind in IDS if re.search(pattern, path)), None)
        # What is deleted below something that stays is the last name alone.
        if method == "delete" and not path.endswith("{" + name + "}"):
            seeds = SEEDS["keep"]
        values = ["swagger-ui.css", "index.html"] if name == "file" else seeds.get(kind)
    elif place == "query":
        values = lawful(name) or (SEEDS["keep"]["message"] if name == "after" and "messages" in path else None)
        values = [""] if name == "after" and path == "/api/v1/events" else values
    if values:
        parameter["schema"] = narrowed({"type": "string"}, values)


@schemathesis.hook
def before_load_schema(context, document):
    for path, item in document["paths"].items():
        for method, operation in item.items():
            for parameter in operation.get("parameters", []):
                narrow_parameter(parameter, path, method)
            if path == "/api/plugins/install":
                # Fetching from generated addresses would reach for other people's hosts.
                del operation["requestBody"]["content"]["application/json"]
            for content in operation.get("requestBody", {}).get("content", {}).values():
                if "schema" in content:
                    content["schema"] = narrow_body(copy.deepcopy(content["schema"]), document)


COUNTER = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """A key that came before with another request is a conflict, which would hide what else there is to see."""
    headers = case.headers or {}
    key = headers.get("Idempotency-Key")
    if key and re.fullmatch("[!-~]{1,200}", str(key)):
        headers["Idempotency-Key"] = f"{key}-{next(COUNTER)}"


# What no schema says: where, and how the host refuses it.
RULES = [
    ("", "invalid type: floating point"),  # for JSON Schema 1.0 is an integer
    ("", "entity tag in quotes|tags in double quotes"),  # the generator sends a bare 0, which the pattern does not allow
    ("/workflows$", "name is required"),  # a new one has a name of its own or its template's
    ("/workflow/steps$", "position must be between"),  # behind one that has the last place already
    ("/vault/rotate$", "invalid_key"),  # another key than the present one
    ("/git-credentials$", "expires_in_seconds must be|repository_id is required"),  # by a setting, and by the session
    ("/references/search$", "query must have"),  # bytes, not characters
    ("/tasks$", "workspace_id is required|workflow_id is required"),  # it may be left out while there is one only
    ("/tasks", "invalid parent_id"),  # no task is a part of itself
    ("/tasks", "invalid task state"),  # SCHEDULING is the host's word
    ("/tasks", "repository_id or remote|repository_id and remote|remote repository"),  # by its id or as a whole
]

# Parameters that are more than text.
NUMBERS = "limit|include_global|dry_run"

# What the document allows and this file does not.
NARROWED = set(FIELDS) | set(WORDS) | set(NAMES) | {"id", "file", "after"}


# Of a plugin that does not run these answer 503, as the contract has it.
NOT_RUNNING = r"/api/plugins/\{id\}/(bundle|ui/|actions/)|/api/v1/tools/\{plugin\}|/branches$"


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """False for what is the host's right, whatever the schema that was handed to the generator says."""
    if isinstance(failure, ServerError):
        return response.status_code != 503 or not re.search(NOT_RUNNING, case.operation.path)
    if isinstance(failure, AcceptedNegativeData):
        reason = failure.message.partition("Invalid component:")[2]
        if "enum" in reason and NARROWED & set(re.findall(r"\w+", reason)):
            return False
        # In an address everything is text, whatever it was, and an empty value of a query counts as left out.
        if re.search("in (path|query) .*incorrect type", reason, re.IGNORECASE) and not re.search(NUMBERS, reason):
            return False
        return not re.search(r"=(&|$)", response.request.url)
    if isinstance(failure, RejectedPositiveData):
        path = case.operation.path
        return not any(re.search(where, path) and re.search(text, response.text) for where, text in RULES)
    return True
