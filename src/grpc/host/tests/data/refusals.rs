//! The words and codes of what is refused (wire.md §4), one table for each call.

use super::*;
use crate::{domain::platform::workflow::WorkflowDraft, store::db::tests::on_both_databases};

fn create() -> v1::CreateTaskRequest {
    v1::CreateTaskRequest { title: "x".to_owned(), ..v1::CreateTaskRequest::default() }
}

fn launch(agent: Option<&str>, executor: Option<&str>, plan_mode: Option<&str>) -> Option<v1::PluginTaskLaunchOptions> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Some(v1::PluginTaskLaunchOptions {
        agent_profile_id: owned(agent),
        executor_profile_id: owned(executor),
        prompt: None,
        plan_mode: owned(plan_mode),
    })
}

fn remote(provider: &str, clone_url: &str) -> Option<v1::RemoteRepositoryDescriptor> {
    Some(v1::RemoteRepositoryDescriptor {
        provider_id: provider.to_owned(),
        provider_host: "forge.test".to_owned(),
        owner_or_project: "team".to_owned(),
        provider_repository_id: "7".to_owned(),
        name: "app".to_owned(),
        clone_url: clone_url.to_owned(),
        ..v1::RemoteRepositoryDescriptor::default()
    })
}

fn on(repository_id: &str, remote: Option<v1::RemoteRepositoryDescriptor>) -> v1::CreateTaskRequest {
    let repository_id = repository_id.to_owned();
    let entry = v1::PluginTaskRepository { repository_id, remote, ..v1::PluginTaskRepository::default() };
    v1::CreateTaskRequest { repositories: vec![entry], ..create() }
}

async fn a_task_that_cannot_be_made_is_refused_with_the_contracts_words(db: db::Db) {
    let mut desk = desk(db).await;
    let no_workspace = "workspace_id is required: cannot resolve a default among the instance's workspaces";
    assert_eq!(refusal(desk.client.create_task(create()).await), (Code::InvalidArgument, no_workspace.to_owned()));
    let (one, two) = (desk.workspace("one").await, desk.workspace("two").await);
    let (_, steps) = desk.board(&one).await;
    let (foreign, foreign_steps) = desk.board(&two).await;
    let root = desk.task(NewTask { workspace_id: one.id.clone(), ..titled("root") }).await;
    let part = NewTask { workspace_id: one.id.clone(), parent_id: root.id, ..titled("part") };
    let part = desk.task(part).await;
    let told = desk.told().await.len();
    let there = v1::CreateTaskRequest { workspace_id: one.id.clone(), ..create() };
    let https = "https://forge.test/team/app.git";
    let origin = "remote repository clone_url must match its credential-free HTTPS provider origin";
    let invalid = |request, text: &str| (request, Code::InvalidArgument, text.to_owned());
    let cases = [
        invalid(v1::CreateTaskRequest { title: " ".to_owned(), ..on("", None) }, "title is required"),
        invalid(
            v1::CreateTaskRequest { metadata: object(json!({"source": "plugin:other"})), ..on("", None) },
            "metadata.source is reserved",
        ),
        invalid(on("", None), "repository_id or remote descriptor is required"),
        invalid(on("r", remote("other", https)), "repository_id and remote descriptor are mutually exclusive"),
        (
            on("", remote("other", https)),
            Code::PermissionDenied,
            "capability 'repository_provider:other' not declared".to_owned(),
        ),
        invalid(on("", remote("", https)), "remote repository descriptor is incomplete"),
        invalid(on("", remote("forge", "http://forge.test/x")), origin),
        invalid(on("", remote("forge", "https://u:p@forge.test/x")), origin),
        invalid(on("", remote("forge", "https://other.test/x")), origin),
        invalid(
            v1::CreateTaskRequest { launch: launch(None, None, Some("maybe")), ..create() },
            "launch.plan_mode must be one of: off, on, replace",
        ),
        invalid(
            v1::CreateTaskRequest { start_agent: true, launch: launch(Some("none"), None, None), ..create() },
            "launch.agent_profile_id is not available",
        ),
        invalid(
            v1::CreateTaskRequest { start_agent: true, launch: launch(None, Some("none"), None), ..create() },
            "launch.executor_profile_id is not available",
        ),
        invalid(create(), no_workspace),
        invalid(
            v1::CreateTaskRequest { title: "ä".repeat(61), ..there.clone() },
            "task title is too long: task titles must be 60 characters or fewer",
        ),
        invalid(v1::CreateTaskRequest { workflow_id: foreign.id.clone(), ..there.clone() }, "workspace not found"),
        invalid(
            v1::CreateTaskRequest { workflow_step_id: Some(foreign_steps[0].id.clone()), ..there.clone() },
            &format!("invalid task workflow: workflow step not found: {}", foreign_steps[0].id),
        ),
        invalid(
            v1::CreateTaskRequest { parent_id: Some("none".to_owned()), ..there.clone() },
            "invalid parent_id: no such task",
        ),
        invalid(
            v1::CreateTaskRequest { parent_id: Some(part.id), ..there.clone() },
            "invalid parent_id: cannot create a subtask of a subtask \u{2014} maximum nesting depth is 1 for kanban \
             tasks. Create a sibling task under the same parent or a top-level task instead",
        ),
    ];
    for (request, code, text) in cases {
        assert_eq!(refusal(desk.client.create_task(request.clone()).await), (code, text), "{request:?}");
    }
    assert_eq!(desk.told().await.len(), told, "nothing is told of what was refused");
    let placed = v1::CreateTaskRequest { workflow_step_id: Some(steps[2].id.clone()), title: "ä".repeat(60), ..there };
    desk.client.create_task(placed).await.unwrap();
}

async fn what_is_not_there_or_cannot_be_changed_is_refused_with_the_contracts_words(db: db::Db) {
    let mut desk = desk(db).await;
    let workspace = desk.workspace("one").await;
    let task = desk.task(titled("x")).await;
    let other = WorkflowDraft { name: Some("other".to_owned()), ..WorkflowDraft::default() };
    let other = desk.platform.workflows.create(&By::operator(), &workspace.id, &other, Some("kanban")).await.unwrap();
    let foreign = desk.platform.workflows.steps(&Scope::All, &other.id).await.unwrap();
    let not_found = (Code::NotFound, "task \"none\" not found".to_owned());
    let id = || "none".to_owned();
    assert_eq!(refusal(desk.client.get_task(v1::GetTaskRequest { id: id() }).await), not_found);
    let preview = v1::PreviewPluginOwnedTaskTreeRequest { root_task_id: id() };
    assert_eq!(refusal(desk.client.preview_plugin_owned_task_tree(preview).await), not_found);
    let change = |id: &str| v1::UpdateTaskRequest { id: id.to_owned(), ..v1::UpdateTaskRequest::default() };
    let invalid = |text: &str| (Code::InvalidArgument, text.to_owned());
    let cases = [
        (change(""), invalid("id is required")),
        (change("none"), not_found),
        (
            v1::UpdateTaskRequest { state: Some("SCHEDULING".to_owned()), ..change(&task.id) },
            invalid("invalid task state \"SCHEDULING\""),
        ),
        (
            v1::UpdateTaskRequest { state: Some("done".to_owned()), ..change(&task.id) },
            invalid("invalid task state \"done\""),
        ),
        (
            v1::UpdateTaskRequest { title: Some("x".repeat(61)), ..change(&task.id) },
            invalid("task title is too long: task titles must be 60 characters or fewer"),
        ),
        (
            v1::UpdateTaskRequest { title: Some("x".repeat(5000)), ..change(&task.id) },
            invalid("task title is too long: task titles must be 60 characters or fewer"),
        ),
        (
            v1::UpdateTaskRequest { workflow_step_id: Some("none".to_owned()), ..change(&task.id) },
            invalid("invalid task workflow: workflow step not found: none"),
        ),
        (
            v1::UpdateTaskRequest { workflow_step_id: Some(String::new()), ..change(&task.id) },
            invalid("invalid task workflow: workflow step not found: "),
        ),
        (
            v1::UpdateTaskRequest { workflow_step_id: Some(foreign[0].id.clone()), ..change(&task.id) },
            invalid(&format!("invalid task workflow: workflow step not found: {}", foreign[0].id)),
        ),
    ];
    let told = desk.told().await.len();
    for (request, expected) in cases {
        assert_eq!(refusal(desk.client.update_task(request.clone()).await), expected, "{request:?}");
    }
    assert_eq!(desk.told().await.len(), told, "nothing is told of what was refused");
    let get = v1::GetTaskRequest { id: "a\0b\nc".to_owned() };
    assert_eq!(refusal(desk.client.get_task(get).await), (Code::NotFound, "task \"a b c\" not found".to_owned()));
}

async fn a_message_filter_is_bounded_and_its_moments_are_rfc_3339(db: db::Db) {
    let mut desk = desk(db).await;
    let list = async |desk: &mut Desk, filter| {
        let request = v1::ListMessagesRequest { filter: Some(filter), page: None };
        desk.client.list_messages(request).await
    };
    let many = |sessions: usize, tasks: usize, types: usize| v1::MessageFilter {
        session_ids: vec!["s".to_owned(); sessions],
        task_ids: vec!["t".to_owned(); tasks],
        types: vec!["message".to_owned(); types],
        ..v1::MessageFilter::default()
    };
    assert!(list(&mut desk, many(200, 100, 100)).await.is_ok());
    let (code, text) = refusal(list(&mut desk, many(200, 100, 101)).await);
    assert_eq!(
        (code, text.as_str()),
        (Code::InvalidArgument, "message filter has 401 session/task/type values, max 400")
    );
    let since = v1::MessageFilter { since: Some("yesterday".to_owned()), ..v1::MessageFilter::default() };
    let (code, text) = refusal(list(&mut desk, since).await);
    let cause = "the 'year' component could not be parsed";
    assert_eq!((code, text), (Code::InvalidArgument, format!("since must be RFC3339: {cause}")));
    let until = v1::MessageFilter { until: Some("2026-11-29".to_owned()), ..v1::MessageFilter::default() };
    let (code, text) = refusal(list(&mut desk, until).await);
    let cause = "the 'separator' component could not be parsed";
    assert_eq!((code, text), (Code::InvalidArgument, format!("until must be RFC3339: {cause}")));
}

async fn a_cursor_that_the_list_did_not_give_is_refused_by_every_list(db: db::Db) {
    let mut desk = desk(db).await;
    for name in ["one", "two"] {
        desk.workspace(name).await;
    }
    let first = v1::ListWorkspacesRequest { page: page(1, "") };
    let info = desk.client.list_workspaces(first).await.unwrap().into_inner().page_info.unwrap();
    let second = v1::ListWorkspacesRequest { page: page(1, &info.next_cursor) };
    let second = desk.client.list_workspaces(second).await.unwrap().into_inner();
    assert_eq!((second.workspaces.len(), second.page_info), (1, last()));
    let client = &mut desk.client;
    for cursor in ["50", "-1", "garbage", "\u{0}"] {
        let page = page(1, cursor);
        let answers = [
            client.list_workspaces(v1::ListWorkspacesRequest { page: page.clone() }).await.err(),
            client.list_tasks(v1::ListTasksRequest { page: page.clone(), filter: None }).await.err(),
            client.list_workflows(v1::ListWorkflowsRequest { page: page.clone(), ..Default::default() }).await.err(),
            client.list_agent_profiles(v1::ListAgentProfilesRequest { page: page.clone() }).await.err(),
            client.list_executor_profiles(v1::ListExecutorProfilesRequest { page: page.clone() }).await.err(),
            client
                .list_repositories(v1::ListRepositoriesRequest { page: page.clone(), workspace_id: "w".to_owned() })
                .await
                .err(),
            client.list_sessions(v1::ListSessionsRequest { page: page.clone(), filter: None }).await.err(),
            client
                .list_session_code_stats(v1::ListSessionCodeStatsRequest { page: page.clone(), filter: None })
                .await
                .err(),
            client.list_messages(v1::ListMessagesRequest { page: page.clone(), filter: None }).await.err(),
        ];
        for (n, refused) in answers.into_iter().enumerate() {
            let refused = refused.unwrap_or_else(|| panic!("list {n} took the cursor {cursor:?}"));
            assert_eq!(refused.code(), Code::InvalidArgument, "list {n}, cursor {cursor:?}");
            assert!(refused.message().starts_with("page cursor is not valid"), "{}", refused.message());
        }
    }
    let foreign = v1::ListTasksRequest { page: page(1, &info.next_cursor), filter: None };
    assert_eq!(refusal(client.list_tasks(foreign).await).0, Code::InvalidArgument, "of another list");
}

on_both_databases!(
    a_task_that_cannot_be_made_is_refused_with_the_contracts_words,
    what_is_not_there_or_cannot_be_changed_is_refused_with_the_contracts_words,
    a_message_filter_is_bounded_and_its_moments_are_rfc_3339,
    a_cursor_that_the_list_did_not_give_is_refused_by_every_list,
);
