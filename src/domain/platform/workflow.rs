//! Workflows and their steps: where on a board a task is.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{
    Map,
    refusal::Refusal,
    text::{check_name, check_object, check_required, check_text},
    words::StageType,
    workspace::given,
};

/// A workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflow {
    /// A UUID of version 7.
    pub id: String,
    /// Whose.
    pub workspace_id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Goes before the prompt of every task in it.
    pub prompt: String,
    /// The agent of its tasks.
    pub agent_profile_id: Option<String>,
    /// Place among the workflows of its workspace, the smallest first.
    pub sort_order: i64,
    /// Left out of lists and of the choice of a default.
    pub hidden: bool,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// Goes up by one with every change.
    pub version: i64,
}

/// What a writer says about a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowDraft {
    /// Needed for a new one.
    pub name: Option<String>,
    /// Empty takes it away.
    pub description: Option<String>,
    /// Empty takes it away.
    pub prompt: Option<String>,
    /// Empty takes it away.
    pub agent_profile_id: Option<String>,
    /// Whether lists leave it out.
    pub hidden: Option<bool>,
}

impl Workflow {
    /// A new workflow at `sort_order` of its workspace.
    pub fn new(
        id: String,
        workspace_id: &str,
        sort_order: i64,
        draft: &WorkflowDraft,
        now: OffsetDateTime,
    ) -> Result<Self, Refusal> {
        let mut workflow = Self {
            id,
            workspace_id: workspace_id.to_owned(),
            name: String::new(),
            description: None,
            prompt: String::new(),
            agent_profile_id: None,
            sort_order,
            hidden: false,
            created_at: now,
            updated_at: now,
            version: 1,
        };
        workflow.apply(draft)?;
        check_required("name", &workflow.name)?;
        Ok(workflow)
    }

    /// Takes over what the draft says.
    pub fn apply(&mut self, draft: &WorkflowDraft) -> Result<(), Refusal> {
        if let Some(name) = &draft.name {
            check_required("name", name)?;
            self.name.clone_from(name);
        }
        if let Some(description) = &draft.description {
            check_text("description", description)?;
            self.description = given(description);
        }
        if let Some(prompt) = &draft.prompt {
            check_text("prompt", prompt)?;
            self.prompt.clone_from(prompt);
        }
        if let Some(profile) = &draft.agent_profile_id {
            check_name("agent_profile_id", profile)?;
            self.agent_profile_id = given(profile);
        }
        self.hidden = draft.hidden.unwrap_or(self.hidden);
        Ok(())
    }
}

/// A step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// A UUID of version 7.
    pub id: String,
    /// Whose.
    pub workflow_id: String,
    /// Its name.
    pub name: String,
    /// Place in the workflow, the smallest first.
    pub position: i64,
    /// What it is for.
    pub stage_type: StageType,
    /// How it is shown.
    pub color: String,
    /// For the agent that works in it.
    pub prompt: String,
    /// What happens on entering, leaving and at turns (platform-rest.md §4); kept, not run by this host yet.
    pub events: Map,
    /// Whether people may move tasks here.
    pub allow_manual_move: bool,
    /// Whether new tasks begin here.
    pub is_start_step: bool,
    /// Whether it is offered as a command.
    pub show_in_command_panel: bool,
    /// Archives what is here for so long.
    pub auto_archive_after_hours: i64,
    /// Most tasks worked on here at once; 0 for no bound.
    pub wip_limit: i64,
    /// From which step tasks are pulled.
    pub pull_from_step_id: Option<String>,
    /// The agent of this step.
    pub agent_profile_id: Option<String>,
    /// Whether leaving needs a signal.
    pub auto_advance_requires_signal: bool,
    /// Whether a cancelled turn counts as complete.
    pub cancel_triggers_turn_complete: bool,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// Goes up by one with every change.
    pub version: i64,
}

/// What a writer says about a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepDraft {
    /// Needed for a new one.
    pub name: Option<String>,
    /// A new one goes to the end unless it says.
    pub position: Option<i64>,
    /// What it is for.
    pub stage_type: Option<StageType>,
    /// How it is shown.
    pub color: Option<String>,
    /// For the agent.
    pub prompt: Option<String>,
    /// Replaces all of them.
    pub events: Option<Map>,
    /// Default true.
    pub allow_manual_move: Option<bool>,
    /// True takes it from the step that has it.
    pub is_start_step: Option<bool>,
    /// Whether it is offered as a command.
    pub show_in_command_panel: Option<bool>,
    /// In hours; 0 for never.
    pub auto_archive_after_hours: Option<i64>,
    /// 0 for no bound.
    pub wip_limit: Option<i64>,
    /// Empty takes it away.
    pub pull_from_step_id: Option<String>,
    /// Empty takes it away.
    pub agent_profile_id: Option<String>,
    /// Whether leaving needs a signal.
    pub auto_advance_requires_signal: Option<bool>,
    /// Whether a cancelled turn counts as complete.
    pub cancel_triggers_turn_complete: Option<bool>,
}

impl Step {
    /// A new step.
    pub fn new(
        id: String,
        workflow_id: &str,
        position: i64,
        draft: &StepDraft,
        now: OffsetDateTime,
    ) -> Result<Self, Refusal> {
        let mut step = Self {
            id,
            workflow_id: workflow_id.to_owned(),
            name: String::new(),
            position,
            stage_type: StageType::Work,
            color: String::new(),
            prompt: String::new(),
            events: Map::new(),
            allow_manual_move: true,
            is_start_step: false,
            show_in_command_panel: false,
            auto_archive_after_hours: 0,
            wip_limit: 0,
            pull_from_step_id: None,
            agent_profile_id: None,
            auto_advance_requires_signal: false,
            cancel_triggers_turn_complete: false,
            created_at: now,
            updated_at: now,
            version: 1,
        };
        step.apply(draft)?;
        check_required("name", &step.name)?;
        Ok(step)
    }

    /// Takes over what the draft says.
    pub fn apply(&mut self, draft: &StepDraft) -> Result<(), Refusal> {
        if let Some(name) = &draft.name {
            check_required("name", name)?;
            self.name.clone_from(name);
        }
        if let Some(color) = &draft.color {
            check_name("color", color)?;
            self.color.clone_from(color);
        }
        if let Some(prompt) = &draft.prompt {
            check_text("prompt", prompt)?;
            self.prompt.clone_from(prompt);
        }
        if let Some(events) = &draft.events {
            check_object("events", events)?;
            self.events.clone_from(events);
        }
        for (field, number, slot) in [
            ("position", draft.position, &mut self.position),
            ("auto_archive_after_hours", draft.auto_archive_after_hours, &mut self.auto_archive_after_hours),
            ("wip_limit", draft.wip_limit, &mut self.wip_limit),
        ] {
            *slot = number.unwrap_or(*slot);
            if !(0..=MAX_NUMBER).contains(slot) {
                return Err(Refusal::Invalid { field, problem: format!("must be between 0 and {MAX_NUMBER}") });
            }
        }
        for (field, text, slot) in [
            ("pull_from_step_id", &draft.pull_from_step_id, &mut self.pull_from_step_id),
            ("agent_profile_id", &draft.agent_profile_id, &mut self.agent_profile_id),
        ] {
            if let Some(text) = text {
                check_name(field, text)?;
                *slot = given(text);
            }
        }
        for (flag, slot) in [
            (draft.allow_manual_move, &mut self.allow_manual_move),
            (draft.is_start_step, &mut self.is_start_step),
            (draft.show_in_command_panel, &mut self.show_in_command_panel),
            (draft.auto_advance_requires_signal, &mut self.auto_advance_requires_signal),
            (draft.cancel_triggers_turn_complete, &mut self.cancel_triggers_turn_complete),
        ] {
            *slot = flag.unwrap_or(*slot);
        }
        self.stage_type = draft.stage_type.unwrap_or(self.stage_type);
        Ok(())
    }
}

/// Largest position and bound; fits the wire's 32 bits.
pub const MAX_NUMBER: i64 = i32::MAX as i64;

/// Where a new task may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// A UUID of version 7.
    pub workspace_id: String,
    /// Whether the workspace gives its tasks identifiers.
    pub numbers_tasks: bool,
    /// Whether the workspace is being deleted.
    pub closed: bool,
    /// The workflow that was named, or the first that is not hidden.
    pub lane: Option<Lane>,
}

/// A workflow as a new task sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// A UUID of version 7.
    pub id: String,
    /// Whose it is.
    pub workspace_id: String,
    /// Its steps, by position.
    pub steps: Vec<Slot>,
}

/// A step as a new task sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// A UUID of version 7.
    pub id: String,
    /// Whether new tasks begin here.
    pub is_start_step: bool,
}

impl Lane {
    /// Where a new task goes (host-data.md §6.1): in plan mode to the first step, otherwise to the start step,
    /// otherwise to the first; nowhere when there are none.
    pub fn placement(&self, planning: bool) -> Option<&Slot> {
        let start = || self.steps.iter().find(|step| step.is_start_step && !planning);
        start().or(self.steps.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> Step {
        let draft = StepDraft { name: Some("a".to_owned()), ..StepDraft::default() };
        Step::new("a".to_owned(), "w", 0, &draft, OffsetDateTime::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn a_new_task_goes_to_the_start_step_and_a_planned_one_to_the_first() {
        let slot = |id: &str, is_start_step| Slot { id: id.to_owned(), is_start_step };
        let steps = [slot("a", false), slot("b", true)];
        let place = |steps: &[Slot], planning| {
            let lane = Lane { id: "f".to_owned(), workspace_id: "w".to_owned(), steps: steps.to_vec() };
            lane.placement(planning).map(|slot| slot.id.clone())
        };
        assert_eq!(place(&steps, false).as_deref(), Some("b"));
        assert_eq!(place(&steps, true).as_deref(), Some("a"));
        assert_eq!(place(&steps[..1], false).as_deref(), Some("a"));
        assert_eq!(place(&[], false), None);
    }

    #[test]
    fn numbers_of_a_step_have_bounds() {
        let negative = step().apply(&StepDraft { wip_limit: Some(-1), ..StepDraft::default() }).unwrap_err();
        assert_eq!(negative.to_string(), "wip_limit must be between 0 and 2147483647");
    }
}
