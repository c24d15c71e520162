//! What tasks stand on: workspaces with boards and repositories, agents and executors with their profiles.

use serde_json::json;
use time::OffsetDateTime;

use super::{
    Plan,
    dice::{Dice, Of},
    words::{TEAMS, Team},
};
use crate::domain::platform::{
    Map, from_micros,
    profile::{
        Agent, AgentProfile, AgentProfileFields, Executor, ExecutorFields, ExecutorProfile, ExecutorProfileFields,
    },
    repository::{Repository, RepositoryFields},
    template::{TEMPLATES, Template},
    words::{ExecutorType, StageType},
    workflow::{Step, Workflow},
    workspace::Workspace,
};

/// The data spans so many days before its end.
pub const DAYS: i64 = 120;
pub const DAY: i64 = 86_400_000_000;

/// Word, name and model of each agent.
const AGENTS: [(&str, &str, &str); 2] = [("atlas", "Atlas", "atlas-2-large"), ("borealis", "Borealis", "borealis-1")];

/// A workspace with what belongs to it.
pub struct Place {
    pub team: &'static Team,
    pub workspace: Workspace,
    pub workflows: Vec<Workflow>,
    /// Those of each workflow.
    pub steps: Vec<Vec<Step>>,
    /// The last one was taken out of the lists.
    pub repositories: Vec<Repository>,
}

/// Everything but tasks.
pub struct Board {
    pub workspaces: Vec<Place>,
    pub agents: Vec<Agent>,
    pub agent_profiles: Vec<AgentProfile>,
    pub executors: Vec<Executor>,
    pub executor_profiles: Vec<ExecutorProfile>,
}

/// Gives ids and moments.
struct Maker {
    dice: Dice,
    at: i64,
}

impl Maker {
    /// A new id a moment after the last one, and that moment.
    fn next(&mut self) -> (String, OffsetDateTime) {
        self.at += 1_000_000 + self.dice.below(1_000_000);
        (self.dice.id(self.at), from_micros(self.at))
    }
}

impl Board {
    /// The board of a plan.
    pub fn new(plan: &Plan) -> Self {
        let mut make = Maker { dice: Dice::new(plan.seed, Of::Board, 0), at: plan.until() - DAYS * DAY };
        let agents: Vec<_> =
            (0..).zip(AGENTS).map(|(position, (id, name, _))| agent(&mut make, id, name, position)).collect();
        let (executors, executor_profiles) = executors(&mut make);
        let workspaces: Vec<_> = TEAMS.iter().enumerate().map(|(n, team)| place(&mut make, plan, team, n)).collect();
        let agent_profiles = agent_profiles(&mut make, &agents, &workspaces);
        let mut board = Self { workspaces, agents, agent_profiles, executors, executor_profiles };
        for place in &mut board.workspaces {
            place.workspace.default_executor_id = Some(board.executors[0].id.clone());
            place.workspace.default_agent_profile_id = Some(board.agent_profiles[0].id.clone());
        }
        board
    }

    /// The profiles of an agent that is there already show what it is called there.
    pub fn is_known(&mut self, agent: &Agent) {
        for profile in self.agent_profiles.iter_mut().filter(|profile| profile.agent_id == agent.id) {
            profile.agent_display_name.clone_from(&agent.name);
            profile.agent_position = agent.position;
        }
    }
}

fn agent(make: &mut Maker, id: &str, name: &str, position: i64) -> Agent {
    let at = make.next().1;
    Agent {
        id: id.to_owned(),
        name: name.to_owned(),
        position,
        supports_mcp: position == 0,
        created_at: at,
        updated_at: at,
        version: 1,
    }
}

/// Two of each agent for everybody, and one of the first team's own.
fn agent_profiles(make: &mut Maker, agents: &[Agent], places: &[Place]) -> Vec<AgentProfile> {
    let mut profile = |agent: usize, name: &str, mode: &str, workspace_id: Option<String>, enabled| {
        let (id, at) = make.next();
        let settings = if enabled { Map::from_iter([("auto_approve".to_owned(), json!(false))]) } else { Map::new() };
        AgentProfile {
            id,
            agent_id: agents[agent].id.clone(),
            agent_display_name: agents[agent].name.clone(),
            agent_position: agents[agent].position,
            fields: AgentProfileFields {
                name: name.to_owned(),
                model: AGENTS[agent].2.to_owned(),
                mode: mode.to_owned(),
                workspace_id,
                enabled,
                settings,
            },
            created_at: at,
            updated_at: at,
            version: 1,
        }
    };
    vec![
        profile(0, "Careful", "", None, true),
        profile(0, "Planner", "plan", None, true),
        profile(1, "Quick", "", None, true),
        profile(1, "Trial", "", None, false),
        profile(0, "Office", "", places.first().map(|place| place.workspace.id.clone()), true),
    ]
}

fn executors(make: &mut Maker) -> (Vec<Executor>, Vec<ExecutorProfile>) {
    let kinds = [("This machine", ExecutorType::Worktree, true), ("Container", ExecutorType::LocalDocker, false)];
    let mut executors = Vec::new();
    let mut profiles = Vec::new();
    for (name, executor_type, is_system) in kinds {
        let (id, at) = make.next();
        let config = match executor_type {
            ExecutorType::LocalDocker => Map::from_iter([("image".to_owned(), json!("debian:12"))]),
            _ => Map::new(),
        };
        let fields = ExecutorFields {
            name: name.to_owned(),
            executor_type,
            status: "active".to_owned(),
            is_system,
            resumable: true,
            config,
        };
        executors.push(Executor { id: id.clone(), fields, created_at: at, updated_at: at, version: 1 });
        for name in ["Default", "With tests"] {
            let (profile, at) = make.next();
            let prepare_script = if name == "Default" { "" } else { "make dependencies" };
            let fields = ExecutorProfileFields {
                name: name.to_owned(),
                prepare_script: prepare_script.to_owned(),
                ..ExecutorProfileFields::default()
            };
            profiles.push(ExecutorProfile {
                id: profile,
                executor_id: id.clone(),
                executor_type: Some(executor_type),
                fields,
                created_at: at,
                updated_at: at,
                version: 1,
            });
        }
    }
    (executors, profiles)
}

fn place(make: &mut Maker, plan: &Plan, team: &'static Team, number: usize) -> Place {
    let (id, at) = make.next();
    let of_this = (plan.tasks as usize).saturating_sub(number).div_ceil(TEAMS.len()) as i64;
    let workspace = Workspace {
        id: id.clone(),
        name: team.name.to_owned(),
        description: Some(team.about.to_owned()),
        owner_id: String::new(),
        default_executor_id: None,
        default_environment_id: None,
        default_agent_profile_id: None,
        default_config_agent_profile_id: None,
        task_prefix: team.prefix.to_owned(),
        // The last number given: the next task goes on from there.
        task_sequence: if team.prefix.is_empty() { 0 } else { of_this },
        created_at: at,
        updated_at: at,
        version: 1,
        deleting: false,
    };
    let (workflows, steps) = (0..).zip(TEMPLATES).map(|(order, template)| workflow(make, &id, order, template)).unzip();
    let mut repositories: Vec<_> = team.repositories.iter().map(|name| repository(make, &id, name)).collect();
    let mut gone = repository(make, &id, "attic");
    gone.deleted_at = Some(gone.created_at + time::Duration::days(1));
    repositories.push(gone);
    Place { team, workspace, workflows, steps, repositories }
}

fn workflow(make: &mut Maker, workspace_id: &str, order: i64, template: &Template) -> (Workflow, Vec<Step>) {
    let (id, at) = make.next();
    let steps = (0..).zip(template.steps).map(|(position, each)| step(make, &id, position, each)).collect();
    let workflow = Workflow {
        id,
        workspace_id: workspace_id.to_owned(),
        name: template.name.to_owned(),
        description: Some(template.description.to_owned()),
        prompt: String::new(),
        agent_profile_id: None,
        sort_order: order,
        hidden: false,
        created_at: at,
        updated_at: at,
        version: 1,
    };
    (workflow, steps)
}

fn step(make: &mut Maker, workflow_id: &str, position: i64, step: &(&str, &str, StageType, bool)) -> Step {
    let (name, color, stage_type, is_start_step) = *step;
    let (id, at) = make.next();
    Step {
        id,
        workflow_id: workflow_id.to_owned(),
        name: name.to_owned(),
        position,
        stage_type,
        color: color.to_owned(),
        prompt: String::new(),
        events: Map::new(),
        allow_manual_move: true,
        is_start_step,
        show_in_command_panel: false,
        auto_archive_after_hours: 0,
        wip_limit: 0,
        pull_from_step_id: None,
        agent_profile_id: None,
        auto_advance_requires_signal: false,
        cancel_triggers_turn_complete: false,
        created_at: at,
        updated_at: at,
        version: 1,
    }
}

fn repository(make: &mut Maker, workspace_id: &str, name: &str) -> Repository {
    let (id, at) = make.next();
    let fields = RepositoryFields {
        name: name.to_owned(),
        source_type: "provider".to_owned(),
        provider: "forge".to_owned(),
        provider_repo_id: make.dice.below(1_000_000).to_string(),
        provider_host: "forge.example.com".to_owned(),
        provider_owner: "acme".to_owned(),
        provider_name: name.to_owned(),
        remote_url: format!("https://forge.example.com/acme/{name}.git"),
        default_branch: "main".to_owned(),
        worktree_branch_prefix: "kandev/".to_owned(),
        pull_before_worktree: true,
        ..RepositoryFields::default()
    };
    Repository {
        id,
        workspace_id: workspace_id.to_owned(),
        fields,
        created_at: at,
        updated_at: at,
        version: 1,
        deleted_at: None,
    }
}
