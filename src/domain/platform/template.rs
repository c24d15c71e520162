//! Templates of workflows, built in: `kanban` is what a new workspace begins with (platform-rest.md §3, §4).

use super::{words::StageType, workflow::StepDraft};

/// A template.
#[derive(Debug, PartialEq, Eq)]
pub struct Template {
    /// Its word.
    pub id: &'static str,
    /// Name of a workflow made from it.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// Name, colour, stage and whether tasks begin there, in order.
    pub steps: &'static [(&'static str, &'static str, StageType, bool)],
}

/// The workflow of a new workspace.
pub const DEFAULT: &str = "kanban";

/// All of them.
pub const TEMPLATES: &[Template] = &[
    Template {
        id: DEFAULT,
        name: "Kanban",
        description: "Tasks go from a backlog over work and review to done",
        steps: &[
            ("Backlog", "bg-neutral-400", StageType::Work, true),
            ("In Progress", "bg-blue-500", StageType::Work, false),
            ("Review", "bg-yellow-500", StageType::Review, false),
            ("Done", "bg-green-500", StageType::Custom, false),
        ],
    },
    Template {
        id: "plan-first",
        name: "Plan first",
        description: "A plan is made and approved before work begins",
        steps: &[
            ("Plan", "bg-purple-500", StageType::Work, true),
            ("Approve", "bg-orange-500", StageType::Approval, false),
            ("Build", "bg-blue-500", StageType::Work, false),
            ("Review", "bg-yellow-500", StageType::Review, false),
            ("Done", "bg-green-500", StageType::Custom, false),
        ],
    },
];

/// The template of this word.
pub fn find(id: &str) -> Option<&'static Template> {
    TEMPLATES.iter().find(|template| template.id == id)
}

impl Template {
    /// Its steps as a writer would say them.
    pub fn drafts(&self) -> impl Iterator<Item = StepDraft> {
        self.steps.iter().map(|(name, color, stage, start)| StepDraft {
            name: Some((*name).to_owned()),
            color: Some((*color).to_owned()),
            stage_type: Some(*stage),
            is_start_step: Some(*start),
            ..StepDraft::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_found_by_its_word_and_has_one_start_step() {
        for template in TEMPLATES {
            assert_eq!(find(template.id), Some(template));
            assert_eq!(template.drafts().filter(|step| step.is_start_step == Some(true)).count(), 1);
        }
        assert!(find(DEFAULT).is_some() && find("none").is_none());
    }
}
