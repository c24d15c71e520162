//! Sessions, code statistics and messages as messages, and their filters.

use kandev_proto::v1;

use super::moment;
use crate::domain::platform::{
    message::{Message, MessageFilter},
    refusal::Refusal,
    session::{Session, SessionFilter},
    stats::CodeStats,
};

impl From<Session> for v1::Session {
    fn from(session: Session) -> Self {
        Self {
            agent_display_name: session.agent_display_name().to_owned(),
            model: session.model().to_owned(),
            acp_session_id: session.acp_session_id().to_owned(),
            agent_profile_name: session.agent_profile_name().to_owned(),
            id: session.id,
            task_id: session.task_id,
            agent_profile_id: session.agent_profile_id,
            state: session.state.as_str().to_owned(),
            started_at: moment(session.started_at),
            ended_at: session.completed_at.map(moment),
        }
    }
}

impl From<CodeStats> for v1::SessionCodeStats {
    fn from(stats: CodeStats) -> Self {
        Self {
            session_id: stats.session_id,
            lines_added_committed: stats.lines_added_committed,
            lines_deleted_committed: stats.lines_deleted_committed,
            lines_added_peak_pending: stats.lines_added_peak_pending,
            lines_deleted_peak_pending: stats.lines_deleted_peak_pending,
            committed_lines_available: stats.committed_lines_available,
        }
    }
}

/// Its text is the one that anybody may see (host-data.md §4).
impl From<Message> for v1::Message {
    fn from(message: Message) -> Self {
        Self {
            content: message.content(),
            id: message.id,
            session_id: message.session_id,
            task_id: message.task_id,
            turn_id: message.turn_id,
            author_type: message.author_type.as_str().to_owned(),
            r#type: message.message_type.as_str().to_owned(),
            created_at: moment(message.created_at),
        }
    }
}

impl From<v1::SessionFilter> for SessionFilter {
    fn from(filter: v1::SessionFilter) -> Self {
        Self { task_ids: filter.task_ids, workspace_ids: filter.workspace_ids, states: filter.states }
    }
}

impl TryFrom<v1::MessageFilter> for MessageFilter {
    type Error = Refusal;

    fn try_from(filter: v1::MessageFilter) -> Result<Self, Refusal> {
        let v1::MessageFilter { session_ids, task_ids, since, until, types } = filter;
        Self::new(session_ids, task_ids, types, &since.unwrap_or_default(), &until.unwrap_or_default())
    }
}
