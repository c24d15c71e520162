//! Writes a second of what plugins keep for users, at 16 connections on SQLite, each with an entry of its own, against
//! an actix handler with the same conditional statement.
//!
//! Each write is conditional. The moment it names lies ahead, so that one body serves all of them; the statement
//! compares it all the same.

use crate::{
    Options, Outcome, bare_user_state,
    load::Load,
    report::{Bound, Line, Values},
    rounds::alternate,
    world::World,
};

const CONNECTIONS: usize = 16;
const REQUESTS: usize = 250;
const BODY: &str = concat!(
    r#"{"value":{"open":["inbox","done"],"width":320,"filter":"is:open label:autumn","sorted":"by-date"},"#,
    r#""writerId":"0192d7c1-54f6","ifUnmodifiedSince":"2200-01-01T00:00:00Z"}"#,
);
const LEAST: f64 = 0.7;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let world = World::start(&options.program("bench-guest")?, |_| {}).await?;
    world.install("bench-kept").await?;
    let folder = tempfile::Builder::new().prefix("kb").tempdir()?;
    let (address, server) = bare_user_state::serve(folder.path(), &world.config).await?;
    let load = |address, path: &str| Load {
        address,
        method: "PUT".to_owned(),
        path: path.to_owned(),
        connections: CONNECTIONS,
        requests: REQUESTS,
        answer: Some(r#"{"updatedAt":"2026-01-01T00:00:00.000000000Z"}"#.len()),
        body: BODY.to_owned(),
    };
    let bare = load(address, "/bench-kept/task/t1/k{connection}");
    let own = load(world.address, "/api/plugins/bench-kept/user-state/task/t1/k{connection}");
    let pairs = alternate(options.rounds(), || bare.elsewhere(), || own.elsewhere()).await?;
    server.stop(true).await;
    world.stop().await?;
    Ok(vec![Line {
        row: "user-state",
        what: "PUT of a user's state at 16 connections, SQLite",
        unit: "writes/s",
        values: Values::Pairs(pairs),
        bound: Bound::RatioAtLeast(LEAST),
    }])
}
