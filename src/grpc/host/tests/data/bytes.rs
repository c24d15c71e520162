//! Answers have a bound in bytes as they are sent, whatever the rows are.

use prost::Message as _;

use super::*;
use crate::{
    domain::platform::{
        message::NewMessage,
        page::MAX_BYTES,
        words::{AuthorType, MessageType},
    },
    store::db::tests::{on_both_databases, tamper},
};

/// What a page has beside its rows: a cursor.
const ROOM: usize = 1024;

async fn message(desk: &Desk, session: &Session, content: String) -> String {
    let new = NewMessage {
        session_id: session.id.clone(),
        author_type: AuthorType::Agent,
        author_id: String::new(),
        message_type: MessageType::Content,
        content,
        requests_input: false,
        metadata: Map::new(),
    };
    desk.platform.messages.add(&By::operator(), &new).await.unwrap().id
}

/// Ids page by page, to the end.
async fn messages(desk: &mut Desk) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let request = v1::ListMessagesRequest { filter: None, page: page(200, &cursor) };
        let answer = desk.client.list_messages(request).await.unwrap().into_inner();
        let bytes = answer.encoded_len();
        assert!(bytes <= MAX_BYTES + ROOM || answer.messages.len() == 1, "{bytes} bytes");
        pages.push(answer.messages.into_iter().map(|message| message.id).collect());
        match answer.page_info.unwrap() {
            PageInfo { has_more: false, .. } => return pages,
            PageInfo { next_cursor, .. } => cursor = next_cursor,
        }
    }
}

async fn pages_of_large_messages_end_early(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let task = desk.task(titled("x")).await;
    let session = desk.session(&task).await;
    let mut made = Vec::new();
    for n in 0..13 {
        made.push(message(&desk, &session, char::from(b'a' + n).to_string().repeat(512 << 10)).await);
    }
    let four_mib = 4 << 20;
    desk.client = desk.client.max_decoding_message_size(four_mib);
    let pages = messages(&mut desk).await;
    assert_eq!(pages.concat(), made);
    assert!(pages.len() > 2 && pages.iter().all(|page| !page.is_empty()), "{pages:?}");
}

async fn a_message_that_is_larger_than_a_page_is_a_page(db: db::Db) {
    let mut desk = desk(db.clone()).await;
    desk.workspace("one").await;
    let task = desk.task(titled("x")).await;
    let session = desk.session(&task).await;
    let mut made = Vec::new();
    for n in 0..3 {
        made.push(message(&desk, &session, n.to_string()).await);
    }
    let text = "x".repeat(5 << 20);
    tamper(&db, &format!("UPDATE session_message SET raw_content = '{text}' WHERE id = '{}'", made[1])).await;
    let expected: Vec<_> = made.into_iter().map(|id| vec![id]).collect();
    assert_eq!(messages(&mut desk).await, expected);
}

async fn what_is_longer_on_the_wire_than_in_the_database_is_counted_as_it_is_sent(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let numbers: Vec<u8> = vec![1; 120_000];
    let mut made = Vec::new();
    for n in 0..5 {
        let new = NewTask { metadata: map(json!({"numbers": numbers})), ..titled(&n.to_string()) };
        made.push(desk.task(new).await.id);
    }
    made.reverse();
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let request = v1::ListTasksRequest { filter: None, page: page(200, &cursor) };
        let answer = desk.client.list_tasks(request).await.unwrap().into_inner();
        assert_eq!(answer.tasks.len(), 2.min(made.len() - walked.len()), "of 1.3 MB each");
        assert!(answer.encoded_len() <= MAX_BYTES + ROOM, "{} bytes", answer.encoded_len());
        walked.extend(answer.tasks.into_iter().map(|task| task.id));
        match answer.page_info.unwrap() {
            PageInfo { has_more: false, .. } => break,
            PageInfo { next_cursor, .. } => cursor = next_cursor,
        }
    }
    assert_eq!(walked, made);
}

async fn a_tree_that_is_too_large_for_one_answer_is_refused_and_can_be_deleted(db: db::Db) {
    let limits = Limits { message_bytes: 64 << 10, ..Limits::default() };
    let mut desk = desk_with(db, limits).await;
    desk.workspace("one").await;
    let by = By::plugin(&PluginId::new("acme").unwrap());
    let root = desk.platform.tasks.create(&by, &titled("root")).await.unwrap().task;
    let part = NewTask { parent_id: root.id.clone(), description: "x".repeat(40 << 10), ..titled("part") };
    desk.platform.tasks.create(&by, &part).await.unwrap();
    let preview = || v1::PreviewPluginOwnedTaskTreeRequest { root_task_id: root.id.clone() };
    let shown = desk.client.preview_plugin_owned_task_tree(preview()).await.unwrap().into_inner();
    assert_eq!(shown.tasks.len(), 2);
    desk.platform.tasks.create(&by, &part).await.unwrap();
    let (code, text) = refusal(desk.client.preview_plugin_owned_task_tree(preview()).await);
    assert_eq!(code, Code::ResourceExhausted);
    assert!(text.starts_with("the tree has 3 tasks of "), "{text}");
    assert!(text.ends_with(" bytes, one answer may carry 65536; list its parts by parent_id"), "{text}");
    let delete = v1::DeletePluginOwnedTaskTreeRequest { root_task_id: root.id.clone() };
    let gone = desk.client.delete_plugin_owned_task_tree(delete).await.unwrap().into_inner();
    assert_eq!(gone.deleted_task_ids.len(), 3);
}

on_both_databases!(
    pages_of_large_messages_end_early,
    a_message_that_is_larger_than_a_page_is_a_page,
    what_is_longer_on_the_wire_than_in_the_database_is_counted_as_it_is_sent,
    a_tree_that_is_too_large_for_one_answer_is_refused_and_can_be_deleted,
);
