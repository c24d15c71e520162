//! Things of the platform for a call into a plugin to be about, and what the fixture recorded of such calls.

use serde_json::{Value, json};

use super::{Guest, Host, Package, eventually_some};

/// A workspace with a task on two repositories and a session of it.
pub struct Board {
    pub workspace: String,
    pub task: String,
    /// The one that the session works on.
    pub repository: String,
    /// Attached to the task too.
    pub other_repository: String,
    pub session: String,
}

/// The id of what was made.
pub fn id(value: &Value) -> String {
    value["id"].as_str().unwrap_or_else(|| panic!("an id in {value}")).to_owned()
}

/// A new workspace.
pub async fn workspace(host: &Host, name: &str) -> String {
    id(&host.post("/api/v1/workspaces", json!({"name": name})).await.expect(200))
}

/// A new repository of a workspace.
pub async fn repository(host: &Host, workspace: &str, name: &str) -> String {
    let path = format!("/api/v1/workspaces/{workspace}/repositories");
    id(&host.post(&path, json!({"name": name})).await.expect(201))
}

/// A new repository of a workspace that the provider `forge` hosts.
pub async fn hosted_repository(host: &Host, workspace: &str) -> String {
    let body = json!({"name": "app", "source_type": "provider", "provider": "forge", "provider_repo_id": "7",
        "provider_host": "forge.example.test", "provider_scope": "s", "provider_owner": "team", "provider_name": "app",
        "remote_url": "https://forge.example.test/team/app.git", "default_branch": "main"});
    id(&host.post(&format!("/api/v1/workspaces/{workspace}/repositories"), body).await.expect(201))
}

/// A new task on repositories, each with the branch in which work goes on.
pub async fn task(host: &Host, workspace: &str, repositories: &[(&str, &str)]) -> String {
    let attached: Vec<_> =
        repositories.iter().map(|(id, branch)| json!({"repository_id": id, "checkout_branch": branch})).collect();
    let body = json!({"workspace_id": workspace, "title": "work", "repositories": attached});
    id(&host.post("/api/v1/tasks", body).await.expect(200))
}

/// The session of a task.
pub async fn session(host: &Host, task: &str, repository: &str) -> String {
    let body = json!({"repository_id": repository});
    let made = host.post(&format!("/api/v1/tasks/{task}/sessions/ensure"), body).await.expect(200);
    made["session_id"].as_str().expect("a session").to_owned()
}

impl Board {
    /// Made by REST.
    pub async fn make(host: &Host) -> Self {
        let workspace = workspace(host, "one").await;
        let repository = repository(host, &workspace, "app").await;
        let other_repository = self::repository(host, &workspace, "lib").await;
        let task = task(host, &workspace, &[(&repository, "fix"), (&other_repository, "")]).await;
        let session = session(host, &task, &repository).await;
        Self { workspace, task, repository, other_repository, session }
    }

    /// The same, but that the provider `forge` hosts the session's repository.
    pub async fn hosted(host: &Host) -> Self {
        let workspace = workspace(host, "one").await;
        let repository = hosted_repository(host, &workspace).await;
        let other_repository = self::repository(host, &workspace, "lib").await;
        let task = task(host, &workspace, &[(&repository, ""), (&other_repository, "")]).await;
        let session = session(host, &task, &repository).await;
        Self { workspace, task, repository, other_repository, session }
    }

    /// Where the tokens of the session are made.
    pub fn tokens(&self) -> String {
        format!("/api/v1/task-sessions/{}/git-credentials", self.session)
    }

    /// A new token for git, for the session's repository.
    pub async fn token(&self, host: &Host) -> String {
        let made = host.post(&self.tokens(), json!({})).await.expect(201);
        made["token"].as_str().expect("a token").to_owned()
    }
}

/// The fixture that owns the provider `forge` with its references.
pub fn provider(guest: Guest, id: &str, version: &str) -> Package {
    Package::of(guest, id, version).manifest(|text| text + include_str!("../../fixtures/providers.yaml"))
}

/// The fixture with its actions and tools.
pub fn callable(guest: Guest, id: &str, version: &str) -> Package {
    Package::of(guest, id, version).manifest(|text| text + include_str!("../../fixtures/calls.yaml"))
}

impl Host {
    /// The actions and tool calls that the fixture was called with.
    pub fn calls(&self, id: &str) -> Vec<Value> {
        self.recorded(id, "calls.jsonl")
    }

    /// Waits until so many calls have reached the fixture; the last of them.
    pub async fn called(&self, id: &str, count: usize) -> Value {
        eventually_some(&format!("{count} calls at {id}"), || {
            let calls = self.calls(id);
            async move { calls.get(count - 1).cloned() }
        })
        .await
    }

    /// Waits until a call has ended at the fixture; how the last one did.
    pub async fn call_ended(&self, id: &str, count: usize) -> Value {
        eventually_some(&format!("{count} ended calls at {id}"), || {
            let ends = self.recorded(id, "ends.jsonl");
            async move { ends.get(count - 1).cloned() }
        })
        .await
    }
}
