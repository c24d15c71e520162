//! Where a new task goes is looked at before its transaction. What has gone or closed since then does not get it, and
//! the task goes where a task goes now.

use super::*;
use crate::{
    domain::platform::{
        refusal::Kind,
        repository::RemoteRepository,
        task::{RepositoryDraft, RepositoryRef},
        workflow::{Destination, WorkflowDraft},
    },
    store::{
        db::tests::{on_both_databases, tamper},
        platform::Once,
    },
};

/// What a task finds that looks now.
async fn look(world: &World, new: &NewTask) -> Option<Destination> {
    world.store.destination(&Scope::All, &new.workspace_id, &new.workflow_id).await.unwrap()
}

async fn a_workflow_or_step_that_has_gone_since_the_look_gets_no_task(db: Db) {
    let world = World::new(db);
    let (platform, by) = (&world.platform, By::operator());
    let workspace = world.workspace("one").await;
    let (board, _) = world.board(&workspace).await;
    let named = WorkflowDraft { name: Some("second".to_owned()), ..WorkflowDraft::default() };
    let second = platform.workflows.create(&by, &workspace.id, &named, None).await.unwrap();
    let mut steps = Vec::new();
    for name in ["a", "b", "c"] {
        steps.push(platform.workflows.create_step(&by, &second.id, &step_named(name)).await.unwrap());
    }

    let anywhere = titled("x");
    let onto_board = NewTask { workflow_id: board.id.clone(), ..titled("x") };
    let (looked, looked_at_board) = (look(&world, &anywhere).await, look(&world, &onto_board).await);
    assert_eq!(looked.as_ref().and_then(|looked| looked.lane.as_ref()).map(|lane| &lane.id), Some(&board.id));
    platform.workflows.delete(&by, &board.id, None).await.unwrap();
    let made = platform.tasks.create_at(&by, &anywhere, looked).await.unwrap().task;
    assert_eq!((&made.workflow_id, made.workflow_step_id.as_ref()), (&second.id, Some(&steps[0].id)));
    let gone = Refusal::not_found(Kind::Workflow, &board.id);
    assert_eq!(refused(platform.tasks.create_at(&by, &onto_board, looked_at_board).await), gone);

    platform.tasks.delete(&by, &made.id, false, None).await.unwrap();
    let (onto_step, looked) =
        (NewTask { workflow_step_id: steps[0].id.clone(), ..titled("x") }, look(&world, &anywhere).await);
    platform.workflows.delete_step(&by, &steps[0].id, None).await.unwrap();
    let made = platform.tasks.create_at(&by, &anywhere, looked.clone()).await.unwrap().task;
    assert_eq!(made.workflow_step_id.as_ref(), Some(&steps[1].id));
    let foreign = Refusal::ForeignStep(steps[0].id.clone());
    assert_eq!(refused(platform.tasks.create_at(&by, &onto_step, looked).await), foreign);
}

/// A task that takes nothing in its workspace, one with an external id and one with a repository that nobody knows.
fn kinds() -> [NewTask; 3] {
    let remote = RemoteRepository {
        provider_id: "forge".to_owned(),
        provider_host: "forge.test".to_owned(),
        owner_or_project: "team".to_owned(),
        provider_repository_id: "7".to_owned(),
        name: "app".to_owned(),
        clone_url: "https://forge.test/team/app.git".to_owned(),
        ..RemoteRepository::default()
    };
    let repository = RepositoryDraft {
        repository: RepositoryRef::Remote(remote),
        base_branch: String::new(),
        checkout_branch: String::new(),
        pull_request_number: None,
    };
    [
        titled("x"),
        NewTask { external_id: "E-1".to_owned(), ..titled("x") },
        NewTask { repositories: vec![repository], ..titled("x") },
    ]
}

async fn a_workspace_that_has_gone_since_the_look_gets_no_task(db: Db) {
    let world = World::new(db);
    let (platform, by) = (&world.platform, By::operator());
    let first = world.workspace("first").await;
    let named = kinds().map(|new| NewTask { workspace_id: first.id.clone(), ..new });
    let looked = look(&world, &titled("x")).await;
    platform.workspaces.delete(&by, &first.id, "first", None).await.unwrap();
    for new in kinds() {
        let nowhere = refused(platform.tasks.create_at(&by, &new, looked.clone()).await);
        assert_eq!(nowhere, Refusal::NoDefaultWorkspace, "{new:?}");
    }
    let second = world.workspace("second").await;
    let gone = Refusal::not_found(Kind::Workspace, &first.id);
    for (new, named) in kinds().into_iter().zip(named) {
        assert_eq!(refused(platform.tasks.create_at(&by, &named, looked.clone()).await), gone, "{named:?}");
        let made = platform.tasks.create_at(&by, &new, looked.clone()).await.unwrap();
        assert_eq!((made.task.workspace_id, made.deduplicated), (second.id.clone(), false), "{new:?}");
    }
}

async fn a_workspace_that_has_closed_since_the_look_gives_no_number_and_no_external_id(db: Db) {
    let world = World::new(db.clone());
    let (platform, by) = (&world.platform, By::operator());
    let prefixed = WorkspaceDraft { task_prefix: Some("ONE".to_owned()), ..WorkspaceDraft::default() };
    for (draft, new) in
        [(prefixed, titled("x")), (WorkspaceDraft::default(), NewTask { external_id: "E-1".to_owned(), ..titled("x") })]
    {
        let draft = WorkspaceDraft { name: Some("one".to_owned()), ..draft };
        let workspace = platform.workspaces.create(&by, &draft).await.unwrap();
        let looked = look(&world, &new).await;
        tamper(&db, "UPDATE workspace SET deleting = TRUE").await;
        let closed = Refusal::BeingDeleted(workspace.id.clone());
        assert_eq!(refused(platform.tasks.create_at(&by, &new, looked).await), closed, "{new:?}");
        assert_eq!(refused(platform.tasks.create(&by, &titled("x")).await), closed);
        platform.workspaces.delete(&by, &workspace.id, "one", None).await.unwrap();
    }
}

async fn a_request_that_was_answered_is_answered_the_same_when_its_place_has_gone(db: Db) {
    let world = World::new(db);
    let workspace = world.workspace("one").await;
    let [scope, key, fingerprint] = ["operator", "k", "f"].map(str::to_owned);
    let by = By::operator().with(Some(Once { scope, key, fingerprint }));
    let new = NewTask { workspace_id: workspace.id.clone(), ..titled("x") };
    let first = world.platform.tasks.create(&by, &new).await.unwrap();
    world.platform.workspaces.delete(&By::operator(), &workspace.id, "one", None).await.unwrap();
    assert_eq!(world.platform.tasks.create(&by, &new).await.unwrap(), first);
}

on_both_databases!(
    a_workflow_or_step_that_has_gone_since_the_look_gets_no_task,
    a_workspace_that_has_gone_since_the_look_gets_no_task,
    a_workspace_that_has_closed_since_the_look_gives_no_number_and_no_external_id,
    a_request_that_was_answered_is_answered_the_same_when_its_place_has_gone,
);
