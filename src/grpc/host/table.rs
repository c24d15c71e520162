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
    served("ListTasks", Some(ReadTasks)),
    served("GetTask", Some(ReadTasks)),
    served("ListWorkspaces", Some(ReadWorkspaces)),
    served("ListWorkflows", Some(ReadWorkflows)),
    served("ListWorkflowSteps", Some(ReadWorkflows)),
    served("ListAgentProfiles", Some(ReadAgentProfiles)),
    served("ListExecutorProfiles", Some(ReadExecutorProfiles)),
    served("ListRepositories", Some(ReadRepositories)),
    served("ListSessions", Some(ReadSessions)),
    served("ListSessionCodeStats", Some(ReadSessions)),
    served("ListMessages", Some(ReadMessages)),
    later("InvokeUtilityAgent", AgentInvoke, "utility_agent"),
    served("CreateTask", Some(WriteTasks)),
    served("UpdateTask", Some(WriteTasks)),
    later("SendMessage", WriteMessages, "messages"),
    served("PreviewPluginOwnedTaskTree", Some(WriteTasks)),
    served("DeletePluginOwnedTaskTree", Some(WriteTasks)),
];

/// The rule of a method; `None` for a name that no known version of the contract has.
pub fn rule(rpc: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.rpc == rpc)
}
