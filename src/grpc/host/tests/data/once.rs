//! Idempotency keys of a plugin's writes.

use tonic::metadata::{Ascii, MetadataValue};

use super::*;
use crate::{grpc::host::once::KEY, store::db::tests::on_both_databases};

fn with<T>(keys: &[&[u8]], message: T) -> Request<T> {
    let mut request = Request::new(message);
    for key in keys {
        let value: MetadataValue<Ascii> = MetadataValue::try_from(*key).unwrap();
        request.metadata_mut().append(KEY, value);
    }
    request
}

fn create(title: &str) -> v1::CreateTaskRequest {
    v1::CreateTaskRequest { title: title.to_owned(), metadata: object(json!({"b": 1, "a": [2]})), ..Default::default() }
}

async fn a_write_with_a_key_is_done_once_for_its_plugin(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let keyed = |title| with(&[b"k1"], create(title));
    let first = desk.client.create_task(keyed("x")).await.unwrap().into_inner().task.unwrap();
    let told = desk.told().await.len();
    let again = desk.client.create_task(keyed("x")).await.unwrap().into_inner().task.unwrap();
    assert_eq!((&again, desk.told().await.len()), (&first, told), "the first answer, and nothing done");
    let reused = "the idempotency key was used with another request; use a new one";
    let refused = refusal(desk.client.create_task(keyed("y")).await);
    assert_eq!(refused, (Code::FailedPrecondition, reused.to_owned()));
    let update = v1::UpdateTaskRequest { id: first.id.clone(), title: Some("z".to_owned()), ..Default::default() };
    let refused = refusal(desk.client.update_task(with(&[b"k1"], update.clone())).await);
    assert_eq!(refused, (Code::FailedPrecondition, reused.to_owned()));

    let changed = desk.client.update_task(with(&[b"k2"], update.clone())).await.unwrap().into_inner().task.unwrap();
    let back = v1::UpdateTaskRequest { title: Some("x".to_owned()), ..update.clone() };
    desk.client.update_task(back).await.unwrap();
    let told = desk.told().await.len();
    let again = desk.client.update_task(with(&[b"k2"], update)).await.unwrap().into_inner().task.unwrap();
    assert_eq!((again, desk.told().await.len()), (changed, told), "it does not overwrite what came later");

    let mut other = client_of(&desk.world, "other").await;
    let theirs = other.create_task(keyed("x")).await.unwrap().into_inner().task.unwrap();
    assert_ne!(theirs.id, first.id, "another plugin's key is another one");
    for _ in 0..2 {
        desk.client.create_task(create("x")).await.unwrap();
    }
    assert_eq!(desk.titles(v1::TaskFilter::default()).await, ["x"; 4], "without a key each is done");
}

async fn what_was_refused_is_tried_again_and_calls_at_once_do_it_once(db: db::Db) {
    let mut desk = desk(db).await;
    let keyed = || with(&[b"k1"], create("x"));
    refusal(desk.client.create_task(keyed()).await);
    desk.workspace("one").await;
    let calls = (0..8).map(|_| {
        let mut client = desk.client.clone();
        async move { client.create_task(keyed()).await.unwrap().into_inner().task.unwrap().id }
    });
    let ids: BTreeSet<_> = futures_util::future::join_all(calls).await.into_iter().collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(desk.titles(v1::TaskFilter::default()).await, ["x"]);
}

async fn a_key_is_one_short_word(db: db::Db) {
    let mut desk = desk(db).await;
    desk.workspace("one").await;
    let long = [b'k'; 129];
    let expected = "kandev-idempotency-key must be given once, with 1 to 128 visible ASCII characters";
    for keys in [&[&b""[..]][..], &[b"a b"], &["k\u{e4}".as_bytes()], &[&long], &[b"a", b"b"]] {
        let refused = refusal(desk.client.create_task(with(keys, create("x"))).await);
        assert_eq!(refused, (Code::InvalidArgument, expected.to_owned()), "{keys:?}");
    }
    desk.client.create_task(with(&[&long[1..]], create("x"))).await.unwrap();
    assert_eq!(desk.titles(v1::TaskFilter::default()).await, ["x"]);
}

on_both_databases!(
    a_write_with_a_key_is_done_once_for_its_plugin,
    what_was_refused_is_tried_again_and_calls_at_once_do_it_once,
    a_key_is_one_short_word,
);
