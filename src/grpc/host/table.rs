//! The one table of Host RPCs: what each needs and whether this host serves it yet (wire.md §3).

use crate::domain::capability::Capability::{self, *};

/// One RPC of `kandev.plugin.v1.Host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Method name, as in the request path.
    pub rpc: &'static str,
    /// What the plugin's manifest must declare; `None` for RPCs open to every plugin.
    pub needs: Option<Capability>,
    /// `Err` with the name of the resource for an RPC that this host does not serve yet (wire.md §4).
    pub served: Result<(), &'static str>,
}

const fn served(rpc: &'static str, needs: Option<Capability>) -> Rule {
    Rule { rpc, needs, served: Ok(()) }
}

const fn later(rpc: &'static str, needs: Capability, resource: &'static str) -> Rule {
    Rule { rpc, needs: Some(needs), served: Err(resource) }
}

/// Every RPC; a test compares it with the compiled proto.
pub const RULES: [Rule; 27] = [
    served("GetState", Some(State)),
    served("SetState", Some(State)),
    served("DeleteState", Some(State)),
    served("ListState", Some(State)),
    served("EmitEvent", None),
    served("GetConfig", None),
    served("RevealSecret", Some(Secrets)),
    served("GetSecret", Some(Secrets)),
    served("SetSecret", Some(Secrets)),
    served("DeleteSecret", Some(Secrets)),
    later("ListTasks", ReadTasks, "tasks"),
    later("GetTask", ReadTasks, "tasks"),
    later("ListWorkspaces", ReadWorkspaces, "workspaces"),
    later("ListWorkflows", ReadWorkflows, "workflows"),
    later("ListWorkflowSteps", ReadWorkflows, "workflows"),
    later("ListAgentProfiles", ReadAgentProfiles, "agent_profiles"),
    later("ListExecutorProfiles", ReadExecutorProfiles, "executor_profiles"),
    later("ListRepositories", ReadRepositories, "repositories"),
    later("ListSessions", ReadSessions, "sessions"),
    later("ListSessionCodeStats", ReadSessions, "sessions"),
    later("ListMessages", ReadMessages, "messages"),
    later("InvokeUtilityAgent", AgentInvoke, "utility_agent"),
    later("CreateTask", WriteTasks, "tasks"),
    later("UpdateTask", WriteTasks, "tasks"),
    later("SendMessage", WriteMessages, "messages"),
    later("PreviewPluginOwnedTaskTree", WriteTasks, "plugin_owned_task_trees"),
    later("DeletePluginOwnedTaskTree", WriteTasks, "plugin_owned_task_trees"),
];

/// The rule of a method; `None` for a name that no known version of the contract has.
pub fn rule(rpc: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.rpc == rpc)
}
