//! Many writers at once: nobody is refused because of another, nothing is lost, and the log is complete and in order.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::sync::Notify;

use super::*;
use crate::{
    domain::platform::{
        message::{MessageFilter, NewMessage},
        micros,
        page::Page,
        repository::RemoteRepository,
        session::NewSession,
        task::{RepositoryDraft, RepositoryRef, TaskFilter, TaskPatch},
        words::{AuthorType, MessageType},
        workflow::WorkflowDraft,
    },
    store::db::tests::on_both_databases,
};

const WRITERS: usize = 50;
const ROUNDS: usize = 4;

/// What one writer does, each step on what the step before left: a task, a session, messages, changes, a move.
async fn write(platform: Platform, writer: usize, steps: Vec<Step>, board: Workflow) -> Result<(), PlatformError> {
    let by = By::plugin(&plugin(&format!("writer-{writer}")));
    for round in 0..ROUNDS {
        let new = NewTask { workflow_id: board.id.clone(), ..titled(&format!("{writer}.{round}")) };
        let task = platform.tasks.create(&by, &new).await?.task;
        let new = NewSession { task_id: task.id.clone(), ..NewSession::default() };
        let session = platform.sessions.create(&by, &new).await?;
        for n in 0..2 {
            let message = NewMessage {
                session_id: session.id.clone(),
                author_type: AuthorType::Agent,
                author_id: String::new(),
                message_type: MessageType::Content,
                content: format!("{writer}.{round}.{n}"),
                requests_input: false,
                metadata: Map::new(),
            };
            platform.messages.add(&by, &message).await?;
        }
        let patch = TaskPatch { description: Some("changed".to_owned()), ..TaskPatch::default() };
        let changed = platform.tasks.update(&by, &task.id, &patch, Some(task.version)).await?;
        platform.tasks.move_to(&by, &task.id, &board.id, &steps[1].id, 0, Some(changed.version)).await?;
    }
    Ok(())
}

/// Lists again and again until it is told to end; how often.
async fn read(platform: Platform, until: tokio::sync::watch::Receiver<bool>) -> Result<usize, PlatformError> {
    let mut times = 0;
    while !*until.borrow() {
        let page = PageRequest::new(200, "");
        platform.tasks.list(&Scope::All, &TaskFilter::default(), &page).await?;
        platform.messages.list(&Scope::All, &MessageFilter::default(), true, &page).await?;
        times += 1;
    }
    Ok(times)
}

async fn all<T>(mut page: impl AsyncFnMut(PageRequest) -> Page<T>) -> Vec<T> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let part = page(PageRequest::new(200, &cursor)).await;
        all.extend(part.items);
        match part.next_cursor {
            None => return all,
            Some(next) => cursor = next,
        }
    }
}

async fn fifty_writers_and_five_readers_meet_no_error_and_lose_nothing(db: Db) {
    let world = World::new(db);
    let workspace = world.workspace("one").await;
    let (board, steps) = world.board(&workspace).await;
    let before = world.log().await.len();
    let (end, ended) = tokio::sync::watch::channel(false);
    let readers: Vec<_> = (0..5).map(|_| tokio::spawn(read(world.platform.clone(), ended.clone()))).collect();
    let writers = (0..WRITERS).map(|n| tokio::spawn(write(world.platform.clone(), n, steps.clone(), board.clone())));
    for (n, done) in join_all(writers).await.into_iter().enumerate() {
        assert_eq!(done.unwrap(), Ok(()), "writer {n}");
    }
    end.send(true).unwrap();
    for done in join_all(readers).await {
        assert!(done.unwrap().unwrap() > 0);
    }

    let filter = TaskFilter::default();
    let tasks = all(async |page| world.platform.tasks.list(&Scope::All, &filter, &page).await.unwrap()).await;
    let mut titles: Vec<_> = tasks.iter().map(|task| task.title.clone()).collect();
    titles.sort();
    let mut expected: Vec<_> =
        (0..WRITERS).flat_map(|n| (0..ROUNDS).map(move |round| format!("{n}.{round}"))).collect();
    expected.sort();
    assert_eq!(titles, expected);
    for task in &tasks {
        let step = task.workflow_step_id.as_deref();
        assert_eq!((task.description.as_str(), step, task.version), ("changed", Some(steps[1].id.as_str()), 3));
    }
    let filter = MessageFilter::default();
    let messages =
        all(async |page| world.platform.messages.list(&Scope::All, &filter, false, &page).await.unwrap()).await;
    assert_eq!(messages.len(), WRITERS * ROUNDS * 2);

    let log = world.log().await.split_off(before);
    assert!(log.is_sorted_by(|one, next| one.seq < next.seq));
    let mut of_task: HashMap<String, Vec<String>> = HashMap::new();
    for event in log {
        assert_eq!(event.workspace_id, workspace.id);
        let task = event.payload["task_id"].as_str().unwrap_or_default().to_owned();
        of_task.entry(task).or_default().push(event.subject);
    }
    let first: Vec<String> = of_task[&tasks[0].id].clone();
    assert_eq!(first.first().map(String::as_str), Some("task.created"));
    assert_eq!(first.last().map(String::as_str), Some("task.moved"));
    assert_eq!(first.iter().filter(|subject| *subject == "message.added").count(), 2);
    assert_eq!(of_task.len(), tasks.len(), "every event names its task");
    for task in tasks {
        assert_eq!(of_task[&task.id], first, "the same story of each, in the order in which it was done");
    }
}

fn remote(id: &str) -> RepositoryDraft {
    RepositoryDraft {
        repository: RepositoryRef::Remote(RemoteRepository {
            provider_id: "forge".to_owned(),
            provider_host: "forge.test".to_owned(),
            owner_or_project: "o".to_owned(),
            provider_repository_id: id.to_owned(),
            name: "app".to_owned(),
            clone_url: "https://forge.test/o/app".to_owned(),
            ..RemoteRepository::default()
        }),
        base_branch: String::new(),
        checkout_branch: String::new(),
        pull_request_number: None,
    }
}

async fn many_who_name_the_same_new_remote_or_agent_make_it_once(db: Db) {
    let world = World::new(db);
    let workspace = world.workspace("one").await;
    let by = &By::operator();
    for round in 0..5 {
        let new = NewTask { repositories: vec![remote(&round.to_string())], ..titled("t") };
        let made = join_all((0..8).map(|_| world.made(by, &new))).await;
        let first = &made[0].repositories[0].repository_id;
        assert!(made.iter().all(|task| &task.repositories[0].repository_id == first), "{made:?}");
        let agent = format!("agent-{round}");
        let register = |_| world.platform.agents.register(by, &agent, "Agent", 1, true, None);
        for known in join_all((0..8).map(register)).await {
            assert_eq!(known.unwrap().agent.version, 1, "the same again changes nothing");
        }
    }
    let page = PageRequest::default();
    let repositories = world.platform.repositories.list(&Scope::All, &workspace.id, &page).await.unwrap();
    assert_eq!(repositories.items.len(), 5);
}

/// Either the task is there and what it stands on stays, or that is gone and the task is refused for it.
async fn a_task_and_the_deletion_of_its_step_or_workflow_or_workspace_meet_lawfully(db: Db) {
    let world = World::new(db);
    let kept = world.workspace("kept").await;
    let (platform, by) = (&world.platform, &By::operator());
    let steps_kept = world.board(&kept).await.1;
    for round in 0..20 {
        let workspace = world.workspace("w").await;
        let (board, steps) = world.board(&workspace).await;
        let new = NewTask {
            workspace_id: workspace.id.clone(),
            workflow_id: board.id.clone(),
            workflow_step_id: if round % 2 == 0 { steps[1].id.clone() } else { String::new() },
            ..titled("t")
        };
        let create = async { platform.tasks.create(by, &new).await.map(drop) };
        let delete = async {
            match round % 3 {
                0 => platform.workflows.delete_step(by, &steps[1].id, None).await,
                1 => platform.workflows.delete(by, &board.id, None).await,
                _ => platform.workspaces.delete(by, &workspace.id, "w", None).await.map(drop),
            }
        };
        for result in <[_; 2]>::from(tokio::join!(create, delete)) {
            assert!(matches!(result, Ok(()) | Err(PlatformError::Refused(_))), "round {round}: {result:?}");
        }
    }
    assert_eq!(world.board(&kept).await.1, steps_kept);
}

/// The clock of a unit of work that waits for a row is read after the wait.
async fn what_happens_later_to_a_row_has_a_later_time(db: Db) {
    let world = World::new(db);
    world.workspace("one").await;
    let task = &world.task("t").await;
    let store = &world.store;
    let (begun, has_begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let first = store.write(&Scope::All, None, |work| {
        let (begun, has_begun) = (begun.clone(), has_begun.clone());
        async move {
            work.task(&task.id).await?;
            begun.notify_one();
            // On SQLite the other one cannot begin before this one ends.
            let _ = tokio::time::timeout(WAIT, has_begun.notified()).await;
            Ok(micros(work.now()))
        }
    });
    let second = async {
        begun.notified().await;
        let write = store.write(&Scope::All, None, |work| {
            let has_begun = has_begun.clone();
            async move {
                has_begun.notify_one();
                work.task(&task.id).await?;
                Ok(micros(work.now()))
            }
        });
        write.await
    };
    let (first, second) = tokio::join!(first, second);
    assert!(first.as_ref().unwrap() < second.as_ref().unwrap(), "{first:?} {second:?}");
}

/// Who orders steps holds them: what pulled from a step that is deleted meanwhile does not pull from it again.
async fn steps_that_are_ordered_forget_a_step_that_is_deleted_meanwhile(db: Db) {
    let world = World::new(db);
    let workspace = world.workspace("one").await;
    let (_, steps) = world.board(&workspace).await;
    let (workflows, by) = (&world.platform.workflows, &By::operator());
    let named = WorkflowDraft { name: Some("second".to_owned()), ..WorkflowDraft::default() };
    let second = &workflows.create(by, &workspace.id, &named, None).await.unwrap().id;
    let pulling = StepDraft { pull_from_step_id: Some(steps[1].id.clone()), ..step_named("far") };
    let far = workflows.create_step(by, second, &pulling).await.unwrap();
    let (begun, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let order = world.store.write(&Scope::All, None, |work| {
        let (begun, gone) = (begun.clone(), gone.clone());
        async move {
            let mut all = work.steps_of(second).await?;
            begun.notify_one();
            // The other one cannot end before this one does.
            let _ = tokio::time::timeout(WAIT, gone.notified()).await;
            all[0].position = 7;
            work.update(&all[0]).await
        }
    });
    let delete = async {
        begun.notified().await;
        let deleted = workflows.delete_step(by, &steps[1].id, None).await;
        gone.notify_one();
        deleted
    };
    assert_eq!(tokio::join!(order, delete), (Ok(()), Ok(())));
    let found = workflows.step(&Scope::All, &far.id).await.unwrap();
    assert_eq!((found.pull_from_step_id, found.position), (None, 7));
}

const WAIT: Duration = Duration::from_millis(300);

on_both_databases!(
    fifty_writers_and_five_readers_meet_no_error_and_lose_nothing,
    many_who_name_the_same_new_remote_or_agent_make_it_once,
    a_task_and_the_deletion_of_its_step_or_workflow_or_workspace_meet_lawfully,
    what_happens_later_to_a_row_has_a_later_time,
    steps_that_are_ordered_forget_a_step_that_is_deleted_meanwhile,
);
