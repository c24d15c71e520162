//! The order of each list and the size of its pages (host-data.md §3, §11 row 2; wire.md §3.2): nine lists alike.

use super::*;
use crate::{
    domain::platform::{
        message::NewMessage,
        profile::{AgentProfileFields, ExecutorFields, ExecutorProfileFields},
        repository::RepositoryFields,
        words::{AuthorType, ExecutorType, MessageType},
    },
    store::db::tests::{on_both_databases, tamper},
};

/// A list with pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Workspaces,
    Workflows,
    AgentProfiles,
    ExecutorProfiles,
    Repositories,
    Tasks,
    Sessions,
    CodeStats,
    Messages,
}

const LISTS: [List; 9] = [
    List::Workspaces,
    List::Workflows,
    List::AgentProfiles,
    List::ExecutorProfiles,
    List::Repositories,
    List::Tasks,
    List::Sessions,
    List::CodeStats,
    List::Messages,
];

/// Ids of one page.
async fn ids(desk: &mut Desk, list: List, workspace: &str, page: Option<Page>) -> (Vec<String>, PageInfo) {
    let client = &mut desk.client;
    macro_rules! call {
        ($rpc:ident, $request:expr, $rows:ident, $id:ident) => {{
            let answer = client.$rpc($request).await.unwrap().into_inner();
            (answer.$rows.into_iter().map(|row| row.$id).collect(), answer.page_info.unwrap())
        }};
    }
    let workspace_id = workspace.to_owned();
    match list {
        List::Workspaces => call!(list_workspaces, v1::ListWorkspacesRequest { page }, workspaces, id),
        List::Workflows => {
            call!(list_workflows, v1::ListWorkflowsRequest { workspace_id: String::new(), page }, workflows, id)
        }
        List::AgentProfiles => call!(list_agent_profiles, v1::ListAgentProfilesRequest { page }, profiles, id),
        List::ExecutorProfiles => call!(list_executor_profiles, v1::ListExecutorProfilesRequest { page }, profiles, id),
        List::Repositories => {
            call!(list_repositories, v1::ListRepositoriesRequest { workspace_id, page }, repositories, id)
        }
        List::Tasks => call!(list_tasks, v1::ListTasksRequest { filter: None, page }, tasks, id),
        List::Sessions => call!(list_sessions, v1::ListSessionsRequest { filter: None, page }, sessions, id),
        List::CodeStats => {
            let request = v1::ListSessionCodeStatsRequest { filter: None, page };
            call!(list_session_code_stats, request, stats, session_id)
        }
        List::Messages => call!(list_messages, v1::ListMessagesRequest { filter: None, page }, messages, id),
    }
}

/// So many rows in every list; the id of the first workspace.
async fn fill(desk: &Desk, rows: usize) -> String {
    let (platform, by) = (&desk.platform, By::operator());
    let workspace = desk.workspace("0").await;
    let task = desk.task(NewTask { workspace_id: workspace.id.clone(), ..titled("0") }).await;
    let session = desk.session(&task).await;
    for n in 1..rows {
        desk.workspace(&n.to_string()).await;
        desk.task(NewTask { workspace_id: workspace.id.clone(), ..titled(&n.to_string()) }).await;
        desk.session(&task).await;
    }
    platform.agents.register(&by, "codex", "Codex", 1, true, None).await.unwrap();
    let fields = ExecutorFields {
        name: "here".to_owned(),
        executor_type: ExecutorType::Local,
        status: "active".to_owned(),
        is_system: false,
        resumable: true,
        config: Map::new(),
    };
    let executor = platform.executors.create(&by, fields).await.unwrap();
    for n in 0..rows {
        let name = n.to_string();
        let fields = RepositoryFields { name: name.clone(), ..RepositoryFields::default() };
        platform.repositories.create(&by, &workspace.id, fields).await.unwrap();
        let fields = ExecutorProfileFields { name: "same".to_owned(), ..ExecutorProfileFields::default() };
        platform.executors.create_profile(&by, &executor.id, fields).await.unwrap();
        let fields = AgentProfileFields {
            name: name.clone(),
            model: String::new(),
            mode: String::new(),
            workspace_id: None,
            enabled: true,
            settings: Map::new(),
        };
        platform.agents.create_profile(&by, "codex", fields).await.unwrap();
        let new = NewMessage {
            session_id: session.id.clone(),
            author_type: AuthorType::Agent,
            author_id: String::new(),
            message_type: MessageType::Content,
            content: name,
            requests_input: false,
            metadata: Map::new(),
        };
        platform.messages.add(&by, &new).await.unwrap();
    }
    workspace.id
}

async fn a_page_has_fifty_rows_unless_it_says_and_two_hundred_at_most_in_every_list(db: db::Db) {
    let mut desk = desk(db).await;
    let workspace = fill(&desk, 201).await;
    for list in LISTS {
        let limits = [(0, 50), (-1, 50), (i32::MIN, 50), (1, 1), (199, 199), (200, 200), (201, 200), (i32::MAX, 200)];
        let pages = limits.map(|(limit, rows)| (page(limit, ""), rows)).into_iter().chain([(None, 50)]);
        for (page, rows) in pages {
            let (found, info) = ids(&mut desk, list, &workspace, page.clone()).await;
            assert_eq!(
                (found.len(), info.has_more, info.next_cursor.is_empty()),
                (rows, true, false),
                "{list:?} {page:?}"
            );
        }
        let (first, info) = ids(&mut desk, list, &workspace, page(200, "")).await;
        let (rest, end) = ids(&mut desk, list, &workspace, page(200, &info.next_cursor)).await;
        assert_eq!((rest.len(), end), (1, PageInfo::default()), "{list:?}: no cursor after the last row");
        assert!(!first.contains(&rest[0]), "{list:?}");
    }
}

async fn rows_of_one_moment_come_in_the_order_of_their_ids_page_by_page_in_every_list(db: db::Db) {
    let mut desk = desk(db).await;
    let workspace = fill(&desk, 12).await;
    let moments = [
        ("workspace", "created_at"),
        ("workflow", "created_at"),
        ("repository", "created_at"),
        ("agent_profile", "created_at"),
        ("task", "created_at"),
        ("task_session", "started_at"),
        ("session_message", "created_at"),
    ];
    for (table, column) in moments {
        tamper(&desk.world.db, &format!("UPDATE {table} SET {column} = 1000000")).await;
    }
    for list in LISTS {
        let (whole, _) = ids(&mut desk, list, &workspace, None).await;
        assert_eq!(whole.len(), 12, "{list:?}");
        assert!(whole.is_sorted(), "{list:?}: {whole:?}");
        let (mut walked, mut cursor) = (Vec::new(), String::new());
        loop {
            let (part, info) = ids(&mut desk, list, &workspace, page(1, &cursor)).await;
            walked.extend(part);
            if !info.has_more {
                break;
            }
            cursor = info.next_cursor;
        }
        assert_eq!(walked, whole, "{list:?}");
    }
}

/// By sort order, then by age, whatever their workspace.
async fn workflows_of_all_workspaces_are_mixed_by_their_sort_order(db: db::Db) {
    use crate::domain::platform::workflow::WorkflowDraft;
    let mut desk = desk(db).await;
    let (one, two, by) = (desk.workspace("one").await, desk.workspace("two").await, By::operator());
    for (workspace, name) in [(&two, "c"), (&one, "d"), (&one, "e")] {
        let draft = WorkflowDraft { name: Some(name.to_owned()), ..WorkflowDraft::default() };
        desk.platform.workflows.create(&by, &workspace.id, &draft, None).await.unwrap();
    }
    let request = v1::ListWorkflowsRequest::default();
    let workflows = desk.client.list_workflows(request).await.unwrap().into_inner().workflows;
    let shown: Vec<_> = workflows
        .iter()
        .map(|workflow| (workflow.sort_order, workflow.workspace_id == one.id, workflow.name.as_str()))
        .collect();
    let expected = [(0, true, "Kanban"), (0, false, "Kanban"), (1, false, "c"), (1, true, "d"), (2, true, "e")];
    assert_eq!(shown, expected);
}

/// Field case 83.
async fn every_list_of_an_empty_host_is_empty_and_at_its_end(db: db::Db) {
    let mut desk = desk(db).await;
    for list in LISTS {
        for page in [None, page(0, ""), page(200, "")] {
            assert_eq!(ids(&mut desk, list, "none", page).await, (Vec::new(), PageInfo::default()), "{list:?}");
        }
    }
    let steps = desk.client.list_workflow_steps(v1::ListWorkflowStepsRequest::default()).await.unwrap();
    let state = desk.client.list_state(ListStateRequest::default()).await.unwrap();
    assert_eq!((steps.into_inner().steps, state.into_inner().entries), (Vec::new(), Vec::new()));
}

on_both_databases!(
    a_page_has_fifty_rows_unless_it_says_and_two_hundred_at_most_in_every_list,
    rows_of_one_moment_come_in_the_order_of_their_ids_page_by_page_in_every_list,
    workflows_of_all_workspaces_are_mixed_by_their_sort_order,
    every_list_of_an_empty_host_is_empty_and_at_its_end,
);
