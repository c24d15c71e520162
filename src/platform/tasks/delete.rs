//! Deleting tasks, and the trees that a plugin owns (host-data.md §6.4). Parts go before what they are parts of.

use std::collections::HashMap;

use crate::{
    domain::{
        id::PluginId,
        platform::{
            event,
            refusal::Refusal,
            task::{Author, Task},
        },
    },
    platform::{
        PlatformError, Versioned as _,
        clearing::{self, ROWS},
    },
    store::platform::{Holder, Work},
};

pub(super) async fn delete(work: &Work, id: &str, cascade: bool, expected: Option<i64>) -> Result<(), PlatformError> {
    let mut task = work.task(id).await?;
    task.expect(expected)?;
    clearing::refuse_large(work, Holder::Task(id, cascade), ROWS).await?;
    if !cascade {
        make_roots(work, work.children_of(&[id]).await?).await?;
        return remove(work, &[&task], |_| None).await;
    }
    let tree = tree(work, task, |_| true).await?;
    let last_first: Vec<_> = tree.iter().rev().map(|(task, _)| task).collect();
    remove(work, &last_first, |task| (task.id != id).then_some("parent deleted")).await
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
    clearing::refuse_large(work, Holder::Task(root, true), ROWS).await?;
    let last_first: Vec<_> = tree.iter().rev().map(|(task, _)| task).collect();
    remove(work, &last_first, |_| None).await?;
    Ok(tree.into_iter().rev().map(|(task, _)| task.id).collect())
}

async fn plugins_tree(work: &Work, plugin: &PluginId, root: Task) -> Result<Vec<(Task, bool)>, PlatformError> {
    let tag = Author::Plugin(plugin.clone()).tag();
    if root.source() != tag.as_deref() {
        return Err(Refusal::ForeignTree.into());
    }
    tree(work, root, |task| task.source() == tag.as_deref()).await
}

/// The root and everything below it that is `mine`, each after what it is a part of: a query for each level. With whether it has parts that are
/// not.
async fn tree(work: &Work, root: Task, mine: impl Fn(&Task) -> bool) -> Result<Vec<(Task, bool)>, PlatformError> {
    let mut found = vec![(root, false)];
    let mut level = 0..1;
    while !level.is_empty() {
        let places: HashMap<String, usize> = level.clone().map(|place| (found[place].0.id.clone(), place)).collect();
        let ids: Vec<_> = places.keys().map(String::as_str).collect();
        level = found.len()..found.len();
        for child in work.children_of(&ids).await? {
            match child.parent_id.as_ref().and_then(|parent| places.get(parent)) {
                Some(parent) if !mine(&child) => found[*parent].1 = true,
                _ => found.push((child, false)),
            }
        }
        level.end = found.len();
    }
    Ok(found)
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
