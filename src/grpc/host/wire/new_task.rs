//! A task that a plugin wants made, from its message (host-data.md §6.1).

use kandev_proto::{json_from_struct, v1};

use crate::domain::{
    clean,
    platform::{
        refusal::Refusal,
        repository::RemoteRepository,
        task::{Launch, NewTask, RepositoryDraft, RepositoryRef},
        text::MAX_ID_BYTES,
        words::PlanMode,
    },
};

/// Reads the request in the contract's order: title, metadata, repositories, launch options. `owned` says which
/// providers are the plugin's.
///
/// Agents' profiles count only when an agent is to be started; the plan mode also says where the task begins.
pub fn new_task(request: v1::CreateTaskRequest, owned: impl Fn(&str) -> bool) -> Result<NewTask, Refusal> {
    let v1::CreateTaskRequest { repositories, launch, start_agent, .. } = request;
    let mut new = NewTask {
        workspace_id: request.workspace_id,
        workflow_id: request.workflow_id,
        workflow_step_id: request.workflow_step_id.unwrap_or_default(),
        title: request.title,
        description: request.description,
        parent_id: request.parent_id.unwrap_or_default(),
        metadata: request.metadata.map(json_from_struct).unwrap_or_default(),
        ..NewTask::default()
    };
    new.check_begins()?;
    new.repositories = repositories.into_iter().map(|entry| draft(entry, &owned)).collect::<Result<_, _>>()?;
    with_launch(new, launch.unwrap_or_default(), start_agent)
}

fn with_launch(mut new: NewTask, launch: v1::PluginTaskLaunchOptions, start: bool) -> Result<NewTask, Refusal> {
    new.plan_mode = match launch.plan_mode.as_deref().unwrap_or_default() {
        "" => None,
        word => Some(
            PlanMode::of(word)
                .ok_or_else(|| Refusal::BadWord { field: "launch.plan_mode", accepted: PlanMode::accepted() })?,
        ),
    };
    new.launch = start.then(|| Launch {
        agent_profile_id: launch.agent_profile_id.unwrap_or_default(),
        executor_profile_id: launch.executor_profile_id.unwrap_or_default(),
        prompt: launch.prompt.unwrap_or_default(),
    });
    Ok(new)
}

/// What the entry says of branches and the pull request goes before what its descriptor says.
fn draft(entry: v1::PluginTaskRepository, owned: impl Fn(&str) -> bool) -> Result<RepositoryDraft, Refusal> {
    let described = entry.remote.clone().unwrap_or_default();
    let draft = RepositoryDraft {
        repository: RepositoryRef::of(&entry.repository_id, entry.remote.map(remote))?,
        base_branch: entry.base_branch.or(described.base_branch).unwrap_or_default(),
        checkout_branch: entry.checkout_branch.or(described.head_branch).unwrap_or_default(),
        pull_request_number: entry.pull_request_number.or(described.pull_request_number),
    };
    if let RepositoryRef::Remote(remote) = &draft.repository {
        if !remote.provider_id.is_empty() && !owned(&remote.provider_id) {
            return Err(Refusal::ForeignProvider(clean::single_line(&remote.provider_id, MAX_ID_BYTES)));
        }
        remote.fields()?;
    }
    Ok(draft)
}

fn remote(descriptor: v1::RemoteRepositoryDescriptor) -> RemoteRepository {
    RemoteRepository {
        provider_id: descriptor.provider_id,
        provider_host: descriptor.provider_host,
        provider_scope: descriptor.provider_scope,
        owner_or_project: descriptor.owner_or_project,
        provider_repository_id: descriptor.provider_repository_id,
        name: descriptor.name,
        clone_url: descriptor.clone_url,
        default_branch: descriptor.default_branch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forge() -> v1::RemoteRepositoryDescriptor {
        v1::RemoteRepositoryDescriptor {
            provider_id: "forge".to_owned(),
            provider_host: "forge.test".to_owned(),
            owner_or_project: "team".to_owned(),
            provider_repository_id: "7".to_owned(),
            name: "app".to_owned(),
            clone_url: "https://forge.test/team/app.git".to_owned(),
            base_branch: Some("main".to_owned()),
            head_branch: Some("fix".to_owned()),
            pull_request_number: Some(3),
            ..v1::RemoteRepositoryDescriptor::default()
        }
    }

    fn with(repository: v1::PluginTaskRepository) -> Result<NewTask, Refusal> {
        let request = v1::CreateTaskRequest {
            title: "x".to_owned(),
            repositories: vec![repository],
            ..v1::CreateTaskRequest::default()
        };
        new_task(request, |provider| provider == "forge")
    }

    #[test]
    fn what_an_entry_says_goes_before_its_descriptor() {
        let entry = v1::PluginTaskRepository { remote: Some(forge()), ..v1::PluginTaskRepository::default() };
        let described = with(entry.clone()).unwrap().repositories.remove(0);
        assert_eq!((described.base_branch.as_str(), described.checkout_branch.as_str()), ("main", "fix"));
        assert_eq!(described.pull_request_number, Some(3));
        let entry = v1::PluginTaskRepository {
            base_branch: Some("next".to_owned()),
            checkout_branch: Some("mine".to_owned()),
            pull_request_number: Some(4),
            ..entry
        };
        let said = with(entry).unwrap().repositories.remove(0);
        assert_eq!((said.base_branch.as_str(), said.checkout_branch.as_str()), ("next", "mine"));
        assert_eq!(said.pull_request_number, Some(4));
    }

    #[test]
    fn only_the_owner_of_a_provider_names_its_repositories() {
        let foreign = v1::RemoteRepositoryDescriptor { provider_id: "other".to_owned(), ..forge() };
        let entry = v1::PluginTaskRepository { remote: Some(foreign), ..v1::PluginTaskRepository::default() };
        assert_eq!(with(entry), Err(Refusal::ForeignProvider("other".to_owned())));
        let nobody = v1::RemoteRepositoryDescriptor { provider_id: String::new(), ..forge() };
        let entry = v1::PluginTaskRepository { remote: Some(nobody), ..v1::PluginTaskRepository::default() };
        assert_eq!(with(entry), Err(Refusal::RemoteIncomplete));
    }

    #[test]
    fn profiles_count_only_when_an_agent_is_to_be_started() {
        let request = |start_agent| v1::CreateTaskRequest {
            title: "x".to_owned(),
            start_agent,
            launch: Some(v1::PluginTaskLaunchOptions {
                agent_profile_id: Some("a".to_owned()),
                plan_mode: Some("on".to_owned()),
                ..v1::PluginTaskLaunchOptions::default()
            }),
            ..v1::CreateTaskRequest::default()
        };
        let made = |start| new_task(request(start), |_| false).unwrap();
        assert_eq!((made(false).launch, made(false).plan_mode), (None, Some(PlanMode::On)));
        assert_eq!(made(true).launch.unwrap().agent_profile_id, "a");
    }
}
