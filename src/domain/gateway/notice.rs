//! What clients are told of an event: under which name, and which of them (platform-rest.md §12).

use std::borrow::Cow;

/// Who is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// All that are signed in: what boards show.
    Everyone,
    /// Those that follow the session of the event, or its task: what is inside of a session.
    Session,
    /// Those that follow the task of the event.
    Task,
    /// The connections of the event's user.
    User,
}

/// The frame's action, and who gets it; `None` for what stays inside.
///
/// `task.moved` stays inside: boards learn of a move by `task.updated`.
pub fn notice(subject: &str) -> Option<(Cow<'_, str>, Audience)> {
    let same = |audience| Some((Cow::Borrowed(subject), audience));
    let (kind, rest) = subject.split_once('.')?;
    match (kind, rest) {
        ("task", "created" | "updated" | "deleted" | "state_changed") => same(Audience::Everyone),
        ("workspace" | "workflow" | "repository" | "executor", _) => same(Audience::Everyone),
        ("plugin", "user-state.updated") | ("user", "settings.updated") => same(Audience::User),
        ("plugin", rest) if rest.starts_with("lifecycle.") => same(Audience::Everyone),
        ("workflow_step", rest) => Some((format!("workflow.step.{rest}").into(), Audience::Everyone)),
        ("agent_profile", rest) => Some((format!("agent.profile.{rest}").into(), Audience::Everyone)),
        ("task_plan", rest) => Some((format!("task.plan.{rest}").into(), Audience::Task)),
        ("message", "added" | "updated" | "deleted") => {
            Some((format!("session.message.{rest}").into(), Audience::Session))
        }
        // Boards show how sessions stand.
        ("task_session", "state_changed" | "activity_changed" | "cancellation_changed") => {
            Some((format!("session.{rest}").into(), Audience::Everyone))
        }
        ("turn", "started" | "completed") => Some((format!("session.turn.{rest}").into(), Audience::Session)),
        ("agentctl", "starting" | "ready" | "error") => {
            Some((format!("session.agentctl_{rest}").into(), Audience::Session))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_names_and_audiences_of_the_contract() {
        use Audience::{Everyone, Session, Task, User};
        let told = [
            ("task.created", "task.created", Everyone),
            ("task.state_changed", "task.state_changed", Everyone),
            ("workspace.deleted", "workspace.deleted", Everyone),
            ("workflow.created", "workflow.created", Everyone),
            ("workflow_step.updated", "workflow.step.updated", Everyone),
            ("repository.updated", "repository.updated", Everyone),
            ("executor.profile.created", "executor.profile.created", Everyone),
            ("agent_profile.deleted", "agent.profile.deleted", Everyone),
            ("task_plan.updated", "task.plan.updated", Task),
            ("message.added", "session.message.added", Session),
            ("task_session.state_changed", "session.state_changed", Everyone),
            ("turn.completed", "session.turn.completed", Session),
            ("agentctl.ready", "session.agentctl_ready", Session),
            ("user.settings.updated", "user.settings.updated", User),
            ("plugin.user-state.updated", "plugin.user-state.updated", User),
            ("plugin.lifecycle.active", "plugin.lifecycle.active", Everyone),
        ];
        for (subject, action, audience) in told {
            assert_eq!(notice(subject), Some((action.into(), audience)), "{subject}");
        }
        for inside in
            ["task.moved", "plugin.acme.thing", "shell.output.s1", "message.queue.added", "task", "", "office.x"]
        {
            assert_eq!(notice(inside), None, "{inside}");
        }
    }
}
