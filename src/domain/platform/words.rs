//! The closed vocabularies of the platform (host-data.md §2), each a type with its words.

use serde::{Deserialize, Serialize};

/// An enum whose variants are words: on the wire, in the database and in JSON alike. The words are tokens and not
/// literals, which utoipa would not see within `rename`.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:tt,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
        pub enum $name {
            $($(#[$each])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word, in the contract's order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The variant of a word; words are compared exactly.
            pub fn of(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }

            /// All words, for messages.
            pub fn accepted() -> String {
                [$($word,)+].join(", ")
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// State of a task. Any state a writer may set can follow any other (host-data.md §6.2).
    TaskState {
        /// Planned.
        Todo = "TODO",
        /// New.
        Created = "CREATED",
        /// The host looks for an agent; the host alone sets it.
        Scheduling = "SCHEDULING",
        /// Worked on.
        InProgress = "IN_PROGRESS",
        /// Waits for a review.
        Review = "REVIEW",
        /// Waits for something else.
        Blocked = "BLOCKED",
        /// Waits for a person.
        WaitingForInput = "WAITING_FOR_INPUT",
        /// Done.
        Completed = "COMPLETED",
        /// Given up.
        Failed = "FAILED",
        /// Called off.
        Cancelled = "CANCELLED",
    }
}

impl TaskState {
    /// What a writer may set: all but `SCHEDULING`.
    pub fn of_writer(word: &str) -> Option<Self> {
        Self::of(word).filter(|state| *state != Self::Scheduling)
    }

    /// Whether work is over.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

words! {
    /// How urgent a task is.
    Priority {
        /// First.
        Critical = "critical",
        /// Soon.
        High = "high",
        /// The default.
        Medium = "medium",
        /// Later.
        Low = "low",
    }
}

words! {
    /// How a task came to be; plugins see it as `created_by`.
    Origin {
        /// A person, a program or a plugin made it.
        Manual = "manual",
        /// An agent.
        AgentCreated = "agent_created",
        /// A routine.
        Routine = "routine",
        /// The first steps of a new user.
        Onboarding = "onboarding",
        /// One run of an automation; lists leave it out.
        AutomationRun = "automation_run",
    }
}

words! {
    /// State of a session.
    SessionState {
        /// Made, no agent yet.
        Created = "CREATED",
        /// An agent is starting.
        Starting = "STARTING",
        /// An agent works.
        Running = "RUNNING",
        /// An office agent rests.
        Idle = "IDLE",
        /// A person's turn.
        WaitingForInput = "WAITING_FOR_INPUT",
        /// Ended well.
        Completed = "COMPLETED",
        /// Ended badly.
        Failed = "FAILED",
        /// Called off.
        Cancelled = "CANCELLED",
    }
}

impl SessionState {
    /// Whether the session is over.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

words! {
    /// What a message is.
    MessageType {
        /// Plain; the default.
        Message = "message",
        /// An agent's text.
        Content = "content",
        /// A tool is called.
        ToolCall = "tool_call",
        /// A tool edits.
        ToolEdit = "tool_edit",
        /// A tool reads.
        ToolRead = "tool_read",
        /// A tool runs a command.
        ToolExecute = "tool_execute",
        /// How far it is.
        Progress = "progress",
        /// A log line.
        Log = "log",
        /// Something failed.
        Error = "error",
        /// A note of the host.
        Status = "status",
        /// An agent asks for permission.
        PermissionRequest = "permission_request",
        /// An agent asks a question.
        ClarificationRequest = "clarification_request",
        /// A script runs.
        ScriptExecution = "script_execution",
        /// An agent thinks aloud.
        Thinking = "thinking",
        /// An agent's plan.
        AgentPlan = "agent_plan",
        /// An agent's list.
        Todo = "todo",
    }
}

words! {
    /// Who wrote a message.
    AuthorType {
        /// A person, or someone in a person's place.
        User = "user",
        /// An agent.
        Agent = "agent",
    }
}

words! {
    /// What a step of a workflow is for.
    StageType {
        /// Work; the default.
        Work = "work",
        /// Looking at it.
        Review = "review",
        /// Deciding.
        Approval = "approval",
        /// Anything else.
        Custom = "custom",
    }
}

words! {
    /// What an executor is.
    ExecutorType {
        /// A folder of this machine.
        Local = "local",
        /// A worktree of it.
        Worktree = "worktree",
        /// A container here.
        LocalDocker = "local_docker",
        /// A container elsewhere.
        RemoteDocker = "remote_docker",
        /// A cloud machine.
        Sprites = "sprites",
        /// Another machine.
        Ssh = "ssh",
        /// For tests.
        MockRemote = "mock_remote",
    }
}

words! {
    /// Review of a session; none is the third value.
    ReviewStatus {
        /// Asked for.
        Pending = "pending",
        /// Given.
        Approved = "approved",
    }
}

words! {
    /// Plan mode of a launch (wire.md §3.3, `launch.plan_mode`).
    PlanMode {
        /// Work at once.
        Off = "off",
        /// Plan first.
        On = "on",
        /// Make a new plan.
        Replace = "replace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_its_own_variant_again_and_nothing_else_is() {
        fn round<T: Copy + PartialEq + std::fmt::Debug + Serialize>(
            all: &[T],
            word: fn(T) -> &'static str,
            of: fn(&str) -> Option<T>,
        ) {
            for each in all {
                assert_eq!(of(word(*each)), Some(*each));
                assert_eq!(serde_json::to_value(each).unwrap(), word(*each));
                assert_eq!(of(&format!("{} ", word(*each))), None);
            }
        }
        round(TaskState::ALL, TaskState::as_str, TaskState::of);
        round(Priority::ALL, Priority::as_str, Priority::of);
        round(Origin::ALL, Origin::as_str, Origin::of);
        round(SessionState::ALL, SessionState::as_str, SessionState::of);
        round(MessageType::ALL, MessageType::as_str, MessageType::of);
        round(AuthorType::ALL, AuthorType::as_str, AuthorType::of);
        round(StageType::ALL, StageType::as_str, StageType::of);
        round(ExecutorType::ALL, ExecutorType::as_str, ExecutorType::of);
        round(ReviewStatus::ALL, ReviewStatus::as_str, ReviewStatus::of);
        round(PlanMode::ALL, PlanMode::as_str, PlanMode::of);
    }

    #[test]
    fn a_writer_may_set_every_task_state_but_scheduling() {
        let settable: Vec<_> =
            TaskState::ALL.iter().filter(|state| TaskState::of_writer(state.as_str()).is_some()).collect();
        assert_eq!(settable.len(), TaskState::ALL.len() - 1);
        assert_eq!(TaskState::of_writer("SCHEDULING"), None);
        assert_eq!(TaskState::of_writer("todo"), None);
    }
}
