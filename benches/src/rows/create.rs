//! Tasks a second by POST /api/v1/tasks at 16 connections on SQLite: without subscribers against an actix handler with
//! the same transaction, and with three subscribed plugins against none.

use kandev_host::{domain::platform::workspace::WorkspaceDraft, platform::By};

use crate::{
    Options, Outcome, bare_task,
    load::Load,
    report::{Bound, Line, Values},
    rounds::{Pairs, alternate},
    world::World,
};

const CONNECTIONS: usize = 16;
const REQUESTS: usize = 200;
const BODY: &str = r#"{"title":"Tidy the shed","description":"The rakes first, then what is behind them."}"#;

const ALONE: f64 = 0.6;
const SUBSCRIBED: f64 = 0.5;
const SUBSCRIBERS: [&str; 3] = ["bench-one", "bench-two", "bench-three"];

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let alone = world(&options).await?;
    let folder = tempfile::Builder::new().prefix("kb").tempdir()?;
    let (address, server) = bare_task::serve(folder.path(), &alone.config).await?;
    let load = |address, path: &str| Load {
        address,
        method: "POST".to_owned(),
        path: path.to_owned(),
        connections: CONNECTIONS,
        requests: REQUESTS,
        answer: None,
        body: BODY.to_owned(),
    };
    let bare = load(address, bare_task::PATH);
    let own = load(alone.address, "/api/v1/tasks");
    let against_bare = alternate(options.rounds(), || bare.elsewhere(), || own.elsewhere()).await?;
    server.stop(true).await;
    let heard = world(&options).await?;
    for id in SUBSCRIBERS {
        heard.install(id).await?;
    }
    let told = load(heard.address, "/api/v1/tasks");
    let with_plugins = alternate(options.rounds(), || own.elsewhere(), || told.elsewhere()).await?;
    alone.stop().await?;
    heard.stop().await?;
    Ok(vec![
        line("create", "POST /tasks at 16 connections, SQLite", against_bare, ALONE),
        line("create-3", "the same with three subscribed plugins, against none", with_plugins, SUBSCRIBED),
    ])
}

/// A host with the one workspace that the tasks go to.
async fn world(options: &Options) -> Outcome<World> {
    let world = World::start(&options.program("bench-guest")?, |_| {}).await?;
    let draft = WorkspaceDraft { name: Some("Bench".to_owned()), ..WorkspaceDraft::default() };
    world.platform.workspaces.create(&By::operator(), &draft).await?;
    Ok(world)
}

fn line(row: &'static str, what: &'static str, pairs: Pairs, least: f64) -> Line {
    Line { row, what, unit: "tasks/s", values: Values::Pairs(pairs), bound: Bound::RatioAtLeast(least) }
}
