//! Deleting tasks, and the trees that a plugin owns (host-data.md §6.4). Parts go before what they are parts of.

use super::tell_updated;
use crate::{
    domain::{
        id::PluginId,
        platform::{
            event,
            refusal::Refusal,
            task::{Author, Task},
        },
    },
    platform::{PlatformError, Versioned as _},
    store::platform::Work,
};

pub(super) async fn delete(work: &Work, id: &str, cascade: bool, expected: Option<i64>) -> Result<(), PlatformError> {
    let mut task = work.task(id).await?;
    task.expect(expected)?;
    if !cascade {
        for mut child in work.children(id).await? {
            child.parent_id = None;
            child.touch(work.now());
            work.update(&child).await?;
            tell_updated(work, &child).await?;
        }
        return remove(work, &task, None).await;
    }
    let tree = tree(work, task, |_| true).await?;
    for (task, _) in tree.iter().rev() {
        let reason = (task.id != id).then_some("parent deleted");
        remove(work, task, reason).await?;
    }
    Ok(())
}

pub(super) async fn owned_tree(work: &Work, plugin: &PluginId, root: &str) -> Result<Vec<Task>, PlatformError> {
    let tree = plugins_tree(work, plugin, work.task(root).await?).await?;
    Ok(tree.into_iter().map(|(task, _)| task).collect())
}

pub(super) async fn delete_owned_tree(
    work: &Work,
    plugin: &PluginId,
    root: &str,
) -> Result<Vec<String>, PlatformError> {
    if work.find::<Task>(root).await?.is_none() {
        return Ok(Vec::new());
    }
    let tree = plugins_tree(work, plugin, work.task(root).await?).await?;
    if tree.iter().any(|(_, mixed)| *mixed) {
        return Err(Refusal::MixedTree.into());
    }
    let mut deleted = Vec::with_capacity(tree.len());
    for (task, _) in tree.into_iter().rev() {
        remove(work, &task, None).await?;
        deleted.push(task.id);
    }
    Ok(deleted)
}

async fn plugins_tree(work: &Work, plugin: &PluginId, root: Task) -> Result<Vec<(Task, bool)>, PlatformError> {
    let tag = Author::Plugin(plugin.clone()).tag();
    if root.source() != tag.as_deref() {
        return Err(Refusal::ForeignTree.into());
    }
    tree(work, root, |task| task.source() == tag.as_deref()).await
}

/// The root and everything below it that is `mine`, each after what it is a part of, with whether it has parts that are
/// not.
async fn tree(work: &Work, root: Task, mine: impl Fn(&Task) -> bool) -> Result<Vec<(Task, bool)>, PlatformError> {
    let mut found = vec![(root, false)];
    let mut next = 0;
    while next < found.len() {
        let id = found[next].0.id.clone();
        let (own, foreign): (Vec<_>, Vec<_>) = work.children(&id).await?.into_iter().partition(&mine);
        found[next].1 = !foreign.is_empty();
        found.extend(own.into_iter().map(|task| (task, false)));
        next += 1;
    }
    Ok(found)
}

async fn remove(work: &Work, task: &Task, reason: Option<&str>) -> Result<(), PlatformError> {
    let sessions = work.session_summary(&task.id).await?;
    work.delete::<Task>(&task.id).await?;
    work.tell(event::task_deleted(task, &sessions, reason));
    Ok(())
}
