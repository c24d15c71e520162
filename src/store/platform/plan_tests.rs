//! Every list is served by an index, from its first row on: the databases' own plans say so.
//!
//! SQLite may neither scan a table without an index nor sort. PostgreSQL prefers both on small tables, so it is told not
//! to; that it obeys shows that it can.

use sea_orm::{ConnectionTrait, DbBackend, Statement, TransactionTrait};

use super::*;
use crate::{
    domain::platform::{
        Scope,
        cursor::{Key, List, encode},
        message::MessageFilter,
        page::PageRequest,
        session::SessionFilter,
        task::TaskFilter,
    },
    store::db::{Db, tests::on_both_databases},
};

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// A cursor of the list, as after some row.
fn page_of(list: List) -> PageRequest {
    let (number, text) = (|| Key::Int(1), || Key::Text("x".to_owned()));
    let keys = match list {
        List::Workflows => vec![number(), number(), text()],
        List::AgentProfiles => vec![number(), text(), number(), text()],
        List::ExecutorProfiles => vec![text(), text(), text()],
        List::Events => vec![number()],
        _ => vec![number(), text()],
    };
    PageRequest::new(50, &encode(list, &keys))
}

/// Each list with its filters, first page and later page.
fn statements(backend: DbBackend) -> Vec<(String, Statement)> {
    let mut all = Vec::new();
    macro_rules! list {
        ($name:expr, $listing:expr) => {
            let listing = $listing;
            for page in [PageRequest::default(), page_of(listing.list)] {
                let statement = listing.statement(backend, &page).unwrap().unwrap();
                all.push((format!("{} {}", $name, page != PageRequest::default()), statement));
            }
        };
    }
    let scope = &Scope::All;
    list!("workspaces", board::workspaces(scope));
    list!("workflows", board::workflows(scope, ""));
    list!("workflows of one", board::workflows(scope, "w"));
    list!("repositories", board::repositories(scope, "w"));
    list!("agent profiles", board::agent_profiles());
    list!("executor profiles", board::executor_profiles(None));
    list!("executor profiles of one", board::executor_profiles(Some("e")));
    let task = TaskFilter::default;
    list!("tasks", tasks::listing(scope, &task()));
    for ids in [&["a"][..], &["a", "b", "c"]] {
        list!(
            format!("tasks of workspaces {ids:?}"),
            tasks::listing(scope, &TaskFilter { workspace_ids: owned(ids), ..task() })
        );
        list!(
            format!("tasks of workflows {ids:?}"),
            tasks::listing(scope, &TaskFilter { workflow_ids: owned(ids), states: owned(&["TODO"]), ..task() })
        );
        list!(
            format!("sessions of workspaces {ids:?}"),
            sessions::listing(
                List::Sessions,
                scope,
                &SessionFilter { workspace_ids: owned(ids), ..SessionFilter::default() }
            )
        );
        list!(
            format!("sessions of tasks {ids:?}"),
            sessions::listing(
                List::Sessions,
                scope,
                &SessionFilter { task_ids: owned(ids), ..SessionFilter::default() }
            )
        );
        for newest_first in [false, true] {
            list!(
                format!("messages of sessions {ids:?}"),
                messages::listing(
                    scope,
                    &MessageFilter {
                        session_ids: owned(ids),
                        since: Some(time::OffsetDateTime::UNIX_EPOCH),
                        ..MessageFilter::default()
                    },
                    newest_first
                )
            );
            list!(
                format!("messages of tasks {ids:?}"),
                messages::listing(
                    scope,
                    &MessageFilter { task_ids: owned(ids), types: owned(&["log"]), ..MessageFilter::default() },
                    newest_first
                )
            );
        }
    }
    list!("parts of a task", tasks::listing(scope, &TaskFilter { parent_id: Some("t".to_owned()), ..task() }));
    list!(
        "tasks of their own",
        tasks::listing(scope, &TaskFilter { parent_id: Some(String::new()), workspace_ids: owned(&["a"]), ..task() })
    );
    list!("sessions", sessions::listing(List::Sessions, scope, &SessionFilter::default()));
    list!("messages", messages::listing(scope, &MessageFilter::default(), false));
    list!(
        "messages since",
        messages::listing(
            scope,
            &MessageFilter { since: Some(time::OffsetDateTime::UNIX_EPOCH), ..MessageFilter::default() },
            false
        )
    );
    list!("events", event_log::listing(scope, &EventFilter::default()));
    all
}

async fn explain(connection: &impl ConnectionTrait, statement: &Statement) -> Vec<String> {
    let backend = statement.db_backend;
    let (explain, column) = match backend {
        DbBackend::Postgres => ("EXPLAIN ", "QUERY PLAN"),
        _ => ("EXPLAIN QUERY PLAN ", "detail"),
    };
    let sql = format!("{explain}{}", statement.sql);
    let asked = Statement { sql, values: statement.values.clone(), db_backend: backend };
    let rows = connection.query_all_raw(asked).await.unwrap();
    rows.iter().map(|row| row.try_get::<String>("", column).unwrap()).collect()
}

async fn every_list_is_served_by_an_index_in_its_order(db: Db) {
    let backend = db.reader().get_database_backend();
    let transaction = db.reader().begin().await.unwrap();
    if backend == DbBackend::Postgres {
        let settings = "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off; \
                        SET LOCAL enable_bitmapscan = off";
        transaction.execute_unprepared(settings).await.unwrap();
    }
    let forbidden: &[&str] = match backend {
        DbBackend::Postgres => &["Seq Scan", "Sort  (cost"],
        _ => &["USE TEMP B-TREE"],
    };
    for (name, statement) in statements(backend) {
        let plan = explain(&transaction, &statement).await;
        let scans_a_table = |line: &String| {
            line.trim_start().starts_with("SCAN ") && !line.contains("USING") && !line.contains("event_log")
        };
        let bad = plan.iter().any(|line| forbidden.iter().any(|word| line.contains(word)) || scans_a_table(line));
        assert!(!bad, "{name}\n{}\n{}", statement.sql, plan.join("\n"));
    }
    transaction.rollback().await.unwrap();
}

async fn a_page_of_statistics_is_one_query_that_looks_up_each_number(db: Db) {
    let backend = db.reader().get_database_backend();
    let statement = code_stats::statement(backend, &Scope::All, &SessionFilter::default(), &PageRequest::default())
        .unwrap()
        .unwrap();
    let plan = explain(db.reader(), &statement).await.join("\n");
    if backend == DbBackend::Sqlite {
        for table in ["session_commit", "session_snapshot"] {
            assert!(
                plan.contains(&format!("SEARCH {table} USING")) && !plan.contains(&format!("SCAN {table}")),
                "{plan}"
            );
        }
    }
}

on_both_databases!(
    every_list_is_served_by_an_index_in_its_order,
    a_page_of_statistics_is_one_query_that_looks_up_each_number,
);
