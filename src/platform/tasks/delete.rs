//! Deleting tasks, and the trees that a plugin owns (host-data.md §6.4). Parts go before what they are parts of.

use crate::{
    domain::{
        id::PluginId,
        platform::{
            Scope, event,
            refusal::Refusal,
            task::{Author, Task},
        },
    },
    platform::{
        PlatformError, Versioned as _,
        clearing::{self, Begun, ROWS},
    },
    store::platform::{Holder, PlatformStore, Work},
};

pub(super) async fn delete(
    work: &Work,
    begun: Begun,
    id: &str,
    cascade: bool,
    expected: Option<i64>,
    rows: u64,
) -> Result<(), PlatformError> {
    let mut task = match work.task(id).await {
        Err(error) if begun.is_done(&error) => return Ok(()),
        found => found?,
    };
    begun.before(|| task.expect(expected))?;
    clearing::refuse_large(work, Holder::Task(id, cascade), rows).await?;
    if !cascade {
        make_roots(work, work.children_of(&[id]).await?).await?;
        return remove(work, &[&task], |_| None).await;
    }
    let Tree { tasks, .. } = Tree::read(Source::Work(work), task, |_| true).await?;
    let last_first: Vec<_> = tasks.iter().rev().collect();
    remove(work, &last_first, |task| (task.id != id).then_some("parent deleted")).await
}

/// Reads without a transaction: a preview is old when it is shown, and nobody may wait for one.
pub(super) async fn owned_tree(
    store: &PlatformStore,
    scope: &Scope,
    plugin: &PluginId,
    root: &str,
) -> Result<Vec<Task>, PlatformError> {
    let root = store.task(scope, root).await?;
    Ok(plugins_tree(Source::Store(store), &tag(plugin), root).await?.tasks)
}

pub(super) async fn delete_owned_tree(
    work: &Work,
    begun: Begun,
    tag: &str,
    root: &str,
) -> Result<Vec<String>, PlatformError> {
    if work.find::<Task>(root).await?.is_none() {
        return Ok(Vec::new());
    }
    let Tree { tasks, others } = plugins_tree(Source::Work(work), tag, work.task(root).await?).await?;
    begun.before(|| if others.is_empty() { Ok(()) } else { Err(Refusal::MixedTree) })?;
    clearing::refuse_large(work, Holder::Owned(root, tag), ROWS).await?;
    make_roots(work, others).await?;
    let last_first: Vec<_> = tasks.iter().rev().collect();
    remove(work, &last_first, |_| None).await?;
    Ok(tasks.into_iter().rev().map(|task| task.id).collect())
}

/// The source of what a plugin makes.
pub(super) fn tag(plugin: &PluginId) -> String {
    Author::Plugin(plugin.clone()).tag().unwrap_or_default()
}

async fn plugins_tree(source: Source<'_>, tag: &str, root: Task) -> Result<Tree, PlatformError> {
    if root.source() != Some(tag) {
        return Err(Refusal::ForeignTree.into());
    }
    Tree::read(source, root, |task| task.source() == Some(tag)).await
}

/// Where a tree is read.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// In a unit of work, which locks what it reads.
    Work(&'a Work),
    /// As it is now.
    Store(&'a PlatformStore),
}

impl Source<'_> {
    async fn children_of(self, ids: &[&str]) -> Result<Vec<Task>, PlatformError> {
        match self {
            Self::Work(work) => work.children_of(ids).await,
            Self::Store(store) => store.children_of(ids).await,
        }
    }
}

/// A task and what is below it.
struct Tree {
    /// The root and its parts that are asked for, each after what it is a part of.
    tasks: Vec<Task>,
    /// Parts of these that are not.
    others: Vec<Task>,
}

impl Tree {
    /// The root and everything below it that is `mine`: a query for each level.
    async fn read(source: Source<'_>, root: Task, mine: impl Fn(&Task) -> bool) -> Result<Self, PlatformError> {
        let mut tree = Self { tasks: vec![root], others: Vec::new() };
        let mut level = 0..1;
        while !level.is_empty() {
            let ids: Vec<_> = tree.tasks[level.clone()].iter().map(|task| task.id.as_str()).collect();
            let (below, others): (Vec<_>, Vec<_>) = source.children_of(&ids).await?.into_iter().partition(&mine);
            level = tree.tasks.len()..tree.tasks.len() + below.len();
            tree.tasks.extend(below);
            tree.others.extend(others);
        }
        Ok(tree)
    }
}

/// Parts become tasks of their own.
async fn make_roots(work: &Work, mut parts: Vec<Task>) -> Result<(), PlatformError> {
    let ids: Vec<_> = parts.iter().map(|task| task.id.clone()).collect();
    work.make_roots(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let mut sessions = work.session_summaries(&ids).await?;
    for task in &mut parts {
        task.parent_id = None;
        task.touch(work.now());
        work.tell(event::task_updated(task, &sessions.remove(&task.id).unwrap_or_default(), None));
    }
    Ok(())
}

/// Parts must come before what they are parts of.
async fn remove(
    work: &Work,
    tasks: &[&Task],
    reason: impl Fn(&Task) -> Option<&'static str>,
) -> Result<(), PlatformError> {
    let ids: Vec<_> = tasks.iter().map(|task| task.id.clone()).collect();
    let mut sessions = work.session_summaries(&ids).await?;
    work.delete_tasks(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    for task in tasks {
        work.tell(event::task_deleted(task, &sessions.remove(&task.id).unwrap_or_default(), reason(task)));
    }
    Ok(())
}
