//! Messages. What is for agents only is kept, and shown to nobody else.

use time::Duration;

use super::{By, PlatformError, Versioned as _, new_id, sessions};
use crate::{
    domain::platform::{
        Scope,
        cursor::{self, Key, List},
        event::{self, Happened},
        message::{Message, MessageFilter, MessagePatch, NewMessage},
        micros,
        page::{Page, PageRequest},
        refusal::Refusal,
        session::Session,
        task::{SOURCE, check_new_metadata},
        text::{MAX_CONTENT_BYTES, check, check_name, check_object},
    },
    store::platform::{PlatformStore, Work},
};

/// Which messages, by another one of the same session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// Those before it.
    Before(Message),
    /// Those after it.
    After(Message),
}

impl Side {
    fn has(&self, found: &Message) -> bool {
        let key = |message: &Message| (message.created_at, message.id.clone());
        match self {
            Self::Before(message) => key(found) < key(message),
            Self::After(message) => key(found) > key(message),
        }
    }
}

/// Where the list goes on after this message.
fn beyond(message: &Message, newest_first: bool) -> String {
    let list = if newest_first { List::MessagesNewestFirst } else { List::Messages };
    cursor::encode(list, &[Key::Int(micros(message.created_at)), Key::Text(message.id.clone())])
}

/// The service.
#[derive(Debug, Clone)]
pub struct Messages {
    store: PlatformStore,
}

impl Messages {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// A page of messages, the oldest first, ids in order; or exactly the other way round. [`Message::content`] is what
    /// a plugin may see of each.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &MessageFilter,
        newest_first: bool,
        page: &PageRequest,
    ) -> Result<Page<Message>, PlatformError> {
        self.store.messages(scope, filter, newest_first, page).await
    }

    /// How many messages such a list has.
    pub async fn count(&self, scope: &Scope, filter: &MessageFilter) -> Result<u64, PlatformError> {
        self.store.count_messages(scope, filter).await
    }

    /// At most `limit` messages of a session on one side of others of it, the oldest or the newest first.
    pub async fn around(
        &self,
        scope: &Scope,
        session_id: &str,
        sides: &[Side],
        newest_first: bool,
        limit: u32,
    ) -> Result<Page<Message>, PlatformError> {
        let mut filter = MessageFilter { session_ids: vec![session_id.to_owned()], ..MessageFilter::default() };
        let mut begin = String::new();
        for side in sides {
            match (side, newest_first) {
                (Side::After(message), false) | (Side::Before(message), true) => begin = beyond(message, newest_first),
                (Side::Before(message), false) => filter.until = Some(message.created_at + Duration::microseconds(1)),
                (Side::After(message), true) => filter.since = Some(message.created_at),
            }
        }
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let mut page = self.list(scope, &filter, newest_first, &PageRequest::new(limit, &begin)).await?;
        // Messages of one moment are told apart by their ids.
        let outside = |found: &Message| sides.iter().any(|side| !side.has(found));
        if let Some(end) = page.items.iter().position(outside) {
            page.items.truncate(end);
            page.next_cursor = None;
        }
        Ok(page)
    }

    /// A page of a session's messages that contain a text, the newest first, and how many there are. The whole text is
    /// looked at, what is for agents only too.
    pub async fn search(
        &self,
        scope: &Scope,
        session_id: &str,
        text: &str,
        page: &PageRequest,
    ) -> Result<(Page<Message>, u64), PlatformError> {
        if text.is_empty() {
            return Err(Refusal::Required("query").into());
        }
        check_name("query", text)?;
        self.store.search_messages(scope, session_id, text, page).await
    }

    /// One message.
    pub async fn get(&self, scope: &Scope, id: &str) -> Result<Message, PlatformError> {
        self.store.find(scope, id).await
    }

    /// Records a message in the open turn of its session, or in a new one. Tells `turn.started` of a new one, and
    /// `message.added`.
    pub async fn add(&self, by: &By, new: &NewMessage) -> Result<Message, PlatformError> {
        check("content", &new.content, MAX_CONTENT_BYTES)?;
        check_name("author_id", &new.author_id)?;
        check_new_metadata(&new.metadata)?;
        let id = &new_id();
        self.store.write(&by.scope, by.once.as_ref(), |work| async move { add(&work, by, id, new).await }).await
    }

    /// Changes a message. Tells `message.updated`; nothing when nothing changes.
    pub async fn update(
        &self,
        by: &By,
        id: &str,
        patch: &MessagePatch,
        expected: Option<i64>,
    ) -> Result<Message, PlatformError> {
        patch.content.as_deref().map_or(Ok(()), |text| check("content", text, MAX_CONTENT_BYTES))?;
        patch.metadata.as_ref().map_or(Ok(()), |metadata| check_object("metadata", metadata))?;
        let work = |work: Work| async move {
            let mut message: Message = work.get(id).await?;
            message.expect(expected)?;
            let before = message.clone();
            apply(&mut message, patch);
            if message != before {
                message.touch(work.now());
                work.update(&message).await?;
                tell(&work, Happened::Updated, &message).await?;
            }
            Ok(message)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Deletes a message. Tells `message.deleted`.
    pub async fn delete(&self, by: &By, id: &str, expected: Option<i64>) -> Result<(), PlatformError> {
        let work = |work: Work| async move {
            let mut message: Message = work.get(id).await?;
            message.expect(expected)?;
            work.delete::<Message>(id).await?;
            tell(&work, Happened::Deleted, &message).await
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }
}

async fn add(work: &Work, by: &By, id: &str, new: &NewMessage) -> Result<Message, PlatformError> {
    let session: Session = work.get(&new.session_id).await?;
    let turn = sessions::open_turn(work, &session).await?;
    let mut metadata = new.metadata.clone();
    if let Some(tag) = by.author.tag() {
        metadata.insert(SOURCE.to_owned(), tag.into());
    }
    let message = Message {
        id: id.to_owned(),
        session_id: session.id,
        task_id: session.task_id,
        turn_id: turn.id,
        author_type: new.author_type,
        author_id: new.author_id.clone(),
        message_type: new.message_type,
        raw_content: new.content.clone(),
        requests_input: new.requests_input,
        metadata,
        created_at: work.now(),
        updated_at: work.now(),
        version: 1,
    };
    work.insert(&message).await?;
    work.tell(event::message(Happened::Created, &session.workspace_id, &message));
    Ok(message)
}

fn apply(message: &mut Message, patch: &MessagePatch) {
    if let Some(content) = &patch.content {
        message.raw_content.clone_from(content);
    }
    if let Some(metadata) = &patch.metadata {
        message.metadata.clone_from(metadata);
    }
    message.message_type = patch.message_type.unwrap_or(message.message_type);
    message.requests_input = patch.requests_input.unwrap_or(message.requests_input);
}

async fn tell(work: &Work, happened: Happened, message: &Message) -> Result<(), PlatformError> {
    let session: Option<Session> = work.peek(&message.session_id).await?;
    let workspace = session.map(|session| session.workspace_id).unwrap_or_default();
    work.tell(event::message(happened, &workspace, message));
    Ok(())
}
