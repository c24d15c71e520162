//! What a plugin's writes do, what they tell, and whose they are.

use super::*;
use crate::{
    domain::platform::words::TaskState, grpc::host::task_writes::NOTICE, platform::tasks::NO_AGENTS,
    store::db::tests::on_both_databases,
};

fn create(title: &str) -> v1::CreateTaskRequest {
    v1::CreateTaskRequest { title: title.to_owned(), ..v1::CreateTaskRequest::default() }
}

async fn a_task_has_its_plugin_as_source_and_the_plugins_metadata_under_its_tag(db: db::Db) {
    let mut desk = desk(db).await;
    let workspace = desk.workspace("one").await;
    let told = desk.told().await.len();
    let request = v1::CreateTaskRequest { metadata: object(json!({"a": 1, "plugin:other": 2})), ..create("x") };
    let task = desk.client.create_task(request).await.unwrap().into_inner().task.unwrap();
    let metadata = object(json!({"source": "plugin:acme", "plugin:acme": {"a": 1, "plugin:other": 2}}));
    assert_eq!(task.metadata, metadata);
    let (state, priority, origin) = (task.state.as_str(), task.priority.as_str(), task.created_by.as_str());
    assert_eq!((state, priority, origin), ("CREATED", "medium", "manual"));
    assert_eq!(task.workspace_id, workspace.id);
    let events = desk.told().await.split_off(told);
    let subjects: Vec<_> = events.iter().map(|(subject, _)| subject.as_str()).collect();
    assert_eq!(subjects, ["task.created"]);
    assert_eq!(events[0].1["task_id"], task.id);

    let bare = desk.client.create_task(create("y")).await.unwrap().into_inner().task.unwrap();
    assert_eq!(bare.metadata, object(json!({"source": "plugin:acme"})));
    let found = desk.client.get_task(v1::GetTaskRequest { id: task.id.clone() }).await.unwrap().into_inner().task;
    assert_eq!(found, Some(task), "what was answered is what is kept");
}

async fn a_remote_repository_of_the_plugins_provider_joins_the_workspace_once(db: db::Db) {
    let mut desk = desk(db).await;
    let workspace = desk.workspace("one").await;
    let remote = v1::RemoteRepositoryDescriptor {
        provider_id: "forge".to_owned(),
        provider_host: "forge.test".to_owned(),
        owner_or_project: "team".to_owned(),
        provider_repository_id: "7".to_owned(),
        name: "app".to_owned(),
        clone_url: "https://forge.test/team/app.git".to_owned(),
        base_branch: Some("main".to_owned()),
        head_branch: Some("fix".to_owned()),
        ..v1::RemoteRepositoryDescriptor::default()
    };
    let entry = v1::PluginTaskRepository { remote: Some(remote), ..v1::PluginTaskRepository::default() };
    let mut made = Vec::new();
    for title in ["x", "y"] {
        let request = v1::CreateTaskRequest { repositories: vec![entry.clone()], ..create(title) };
        made.push(desk.client.create_task(request).await.unwrap().into_inner().task.unwrap());
    }
    let request = v1::ListRepositoriesRequest { workspace_id: workspace.id, page: None };
    let listed = desk.client.list_repositories(request).await.unwrap().into_inner().repositories;
    assert_eq!(listed.len(), 1);
    for task in &made {
        let expected = v1::TaskRepository {
            id: task.repositories[0].id.clone(),
            repository_id: listed[0].id.clone(),
            base_branch: "main".to_owned(),
            position: 0,
            checkout_branch: "fix".to_owned(),
        };
        assert_eq!(task.repositories, [expected]);
    }
    let part = v1::CreateTaskRequest { parent_id: Some(made[0].id.clone()), ..create("part") };
    let part = desk.client.create_task(part).await.unwrap().into_inner().task.unwrap();
    assert_eq!(part.repositories[0].repository_id, listed[0].id, "a part inherits");
}

async fn an_agent_that_cannot_be_started_is_told_beside_the_answer(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let request = v1::CreateTaskRequest { start_agent: true, ..create("x") };
    let answer = desk.client.create_task(request).await.unwrap();
    assert_eq!(answer.metadata().get(NOTICE).and_then(|text| text.to_str().ok()), Some(NO_AGENTS));
    let id = answer.into_inner().task.unwrap().id;
    desk.client.get_task(v1::GetTaskRequest { id }).await.expect("the task is there");
    let answer = desk.client.create_task(create("y")).await.unwrap();
    assert_eq!(answer.metadata().get(NOTICE), None);
}

async fn an_update_changes_what_is_set_and_tells_it(db: db::Db) {
    let mut desk = desk(db).await;
    let workspace = desk.workspace("one").await;
    let (_, steps) = desk.board(&workspace).await;
    let task = desk.client.create_task(create("x")).await.unwrap().into_inner().task.unwrap();
    let change = || v1::UpdateTaskRequest { id: task.id.clone(), ..v1::UpdateTaskRequest::default() };
    let cases = [
        (change(), vec![]),
        (v1::UpdateTaskRequest { title: Some(String::new()), ..change() }, vec!["task.updated"]),
        (v1::UpdateTaskRequest { description: Some("why".to_owned()), ..change() }, vec!["task.updated"]),
        (
            v1::UpdateTaskRequest { state: Some("IN_PROGRESS".to_owned()), ..change() },
            vec!["task.state_changed", "task.updated"],
        ),
        (v1::UpdateTaskRequest { state: Some("IN_PROGRESS".to_owned()), ..change() }, vec![]),
        (
            v1::UpdateTaskRequest { workflow_step_id: Some(steps[1].id.clone()), ..change() },
            vec!["task.updated", "task.moved"],
        ),
    ];
    for (request, expected) in cases {
        let told = desk.told().await.len();
        let answered = desk.client.update_task(request.clone()).await.unwrap().into_inner().task;
        let found = desk.client.get_task(v1::GetTaskRequest { id: task.id.clone() }).await.unwrap().into_inner().task;
        assert_eq!(answered, found, "{request:?}");
        let subjects: Vec<_> = desk.told().await.split_off(told).into_iter().map(|(subject, _)| subject).collect();
        assert_eq!(subjects, expected, "{request:?}");
    }
    for state in TaskState::ALL.iter().filter(|state| **state != TaskState::Scheduling).rev() {
        let request = v1::UpdateTaskRequest { state: Some(state.as_str().to_owned()), ..change() };
        let task = desk.client.update_task(request).await.unwrap().into_inner().task.unwrap();
        assert_eq!((task.state.as_str(), task.title.as_str(), task.description.as_str()), (state.as_str(), "", "why"));
    }
}

async fn a_plugin_deletes_its_own_trees_as_a_whole_or_not_at_all(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let part_of = |root: &v1::Task| v1::CreateTaskRequest { parent_id: Some(root.id.clone()), ..create("part") };
    let root = desk.client.create_task(create("root")).await.unwrap().into_inner().task.unwrap();
    let part = desk.client.create_task(part_of(&root)).await.unwrap().into_inner().task.unwrap();
    let foreign = desk.task(NewTask { parent_id: root.id.clone(), ..titled("foreign") }).await;
    let alien = desk.task(titled("alien")).await;
    let preview = |id: &str| v1::PreviewPluginOwnedTaskTreeRequest { root_task_id: id.to_owned() };
    let delete = |id: &str| v1::DeletePluginOwnedTaskTreeRequest { root_task_id: id.to_owned() };

    let tasks = desk.client.preview_plugin_owned_task_tree(preview(&root.id)).await.unwrap().into_inner().tasks;
    assert_eq!(tasks, [root.clone(), part.clone()]);
    let mixed = "plugin-owned task tree contains adopted or user-owned children; detach them before deleting";
    let refused = refusal(desk.client.delete_plugin_owned_task_tree(delete(&root.id)).await);
    assert_eq!(refused, (Code::FailedPrecondition, mixed.to_owned()));
    let not_mine = (Code::PermissionDenied, "capability 'plugin_owned_tasks' not declared".to_owned());
    assert_eq!(refusal(desk.client.delete_plugin_owned_task_tree(delete(&alien.id)).await), not_mine);
    assert_eq!(refusal(desk.client.preview_plugin_owned_task_tree(preview(&alien.id)).await), not_mine);
    let missing = desk.client.delete_plugin_owned_task_tree(delete("none")).await.unwrap().into_inner();
    assert_eq!(missing.deleted_task_ids, [""; 0], "what is not there is deleted");

    desk.platform.tasks.delete(&By::operator(), &foreign.id, true, None).await.unwrap();
    let told = desk.told().await.len();
    let gone = desk.client.delete_plugin_owned_task_tree(delete(&root.id)).await.unwrap().into_inner();
    assert_eq!(gone.deleted_task_ids, [part.id.clone(), root.id.clone()], "parts first");
    let told: Vec<_> = desk.told().await.split_off(told);
    let told: Vec<_> = told.iter().map(|(subject, payload)| (subject.as_str(), payload["task_id"].clone())).collect();
    assert_eq!(told, [("task.deleted", json!(part.id)), ("task.deleted", json!(root.id))]);
}

on_both_databases!(
    a_task_has_its_plugin_as_source_and_the_plugins_metadata_under_its_tag,
    a_remote_repository_of_the_plugins_provider_joins_the_workspace_once,
    an_agent_that_cannot_be_started_is_told_beside_the_answer,
    an_update_changes_what_is_set_and_tells_it,
    a_plugin_deletes_its_own_trees_as_a_whole_or_not_at_all,
);
