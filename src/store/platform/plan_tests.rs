//! Every list is served by an index, from its first row on: the databases' own plans say so.
//!
//! SQLite may neither scan a table without an index nor sort. PostgreSQL prefers both on small tables, so it is told
//! not to; that it obeys shows that it can.

use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, QueryFilter, QueryTrait, Statement, TransactionTrait};

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
    entities::event_log as event_log_entity,
    store::db::{
        Db,
        tests::{on_both_databases, tamper},
    },
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
    list!("tasks", tasks::listing(backend, scope, &task()));
    for ids in [&["a"][..], &["a", "b", "c"]] {
        list!(
            format!("tasks of workspaces {ids:?}"),
            tasks::listing(backend, scope, &TaskFilter { workspace_ids: owned(ids), ..task() })
        );
        list!(
            format!("tasks of workflows {ids:?}"),
            tasks::listing(
                backend,
                scope,
                &TaskFilter { workflow_ids: owned(ids), states: owned(&["TODO"]), ..task() }
            )
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
    list!("messages with a text", messages::hits(backend, scope, "s", "x"));
    list!("parts of a task", tasks::listing(backend, scope, &TaskFilter { parent_id: Some("t".to_owned()), ..task() }));
    list!(
        "tasks of their own",
        tasks::listing(
            backend,
            scope,
            &TaskFilter { parent_id: Some(String::new()), workspace_ids: owned(&["a"]), ..task() }
        )
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
    list!("turns", sessions::turns("s"));
    list!("events", event_log::listing(scope, &EventFilter::default()));
    let subjects = EventFilter { subjects: owned(&["task.created"]), ..EventFilter::default() };
    let mut window = event_log::listing(scope, &subjects);
    window.select = window.select.filter(event_log_entity::Column::Seq.lte(event_log::WINDOW));
    list!("events of a subject within the window", window);
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
        // The whole log has its number as its key: a scan is its order.
        let whole_log = name.starts_with("events false");
        let scans_a_table =
            |line: &String| line.trim_start().starts_with("SCAN ") && !line.contains("USING") && !whole_log;
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

async fn where_a_new_task_goes_is_looked_up(db: Db) {
    let backend = db.reader().get_database_backend();
    for (workspace, workflow) in [("", ""), ("w", ""), ("w", "f")] {
        let statement = placing::query(&Scope::All, workspace, workflow).unwrap().build(backend);
        let plan = explain(db.reader(), &statement).await;
        if backend == DbBackend::Sqlite {
            let scans = |line: &String| line.contains("SCAN workflow") || line.contains("SCAN first_one");
            assert!(!plan.iter().any(scans), "{}\n{}", statement.sql, plan.join("\n"));
        }
    }
}

/// Of a page that turns out too large nothing is read in vain.
async fn long_texts_are_not_read_before_it_is_known_how_many_fit(db: Db) {
    let text = "x".repeat(256 << 10);
    for n in 0..20 {
        let row = format!(
            "INSERT INTO workspace (id, name, description, owner_id, task_prefix, task_sequence, created_at, updated_at, \
             version) VALUES ('w{n:02}', 'n', '{text}', '', '', 0, 1, 1, 1)"
        );
        tamper(&db, &row).await;
    }
    tamper(&db, "UPDATE workspace SET description = NULL WHERE id = 'w00'").await;
    tamper(&db, "UPDATE workspace SET description = 'small' WHERE id = 'w01'").await;
    let listing = board::workspaces(&Scope::All);
    let statement = listing.statement(db.reader().get_database_backend(), &PageRequest::default()).unwrap().unwrap();
    let rows = db.reader().query_all_raw(statement).await.unwrap();
    let read = |row: &sea_orm::QueryResult| {
        let text: Option<String> = row.try_get("", "description").unwrap();
        (text, row.try_get::<i64>("", "long_bytes").unwrap())
    };
    let rows: Vec<_> = rows.iter().map(read).collect();
    assert_eq!(rows[..2], [(None, 0), (Some("small".to_owned()), 5)]);
    assert_eq!(rows[2..], vec![(Some(String::new()), 256 << 10); 18]);
    let (page, cursor) = listing.page(db.reader(), &PageRequest::default()).await.unwrap();
    let lengths: Vec<_> = page.iter().map(|row| row.description.as_deref().map_or(0, str::len)).collect();
    assert_eq!(lengths[..3], [0, 5, 256 << 10]);
    assert!(page.len() == 13 && cursor.is_some(), "{} rows", page.len());
}

on_both_databases!(
    long_texts_are_not_read_before_it_is_known_how_many_fit,
    every_list_is_served_by_an_index_in_its_order,
    a_page_of_statistics_is_one_query_that_looks_up_each_number,
    where_a_new_task_goes_is_looked_up,
);
