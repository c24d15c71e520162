//! A real server on a free port and raw clients: what the HTTP library and the middlewares do together.

use std::sync::atomic::{AtomicUsize, Ordering};

use actix_web::{HttpRequest, HttpResponse, web};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::Handle,
    sync::Notify,
};

use super::*;
use crate::http::{
    ApiError,
    body::{self, Bounds, Room},
};

const PATIENCE: Duration = Duration::from_secs(10);

/// What the test routes share.
#[derive(Default)]
struct Desk {
    /// Bodies that were read whole.
    whole: AtomicUsize,
    begun: Notify,
    go: Notify,
}

/// Reads a body of at most ten bytes and sends it back.
async fn echo(desk: Data<Desk>, request: HttpRequest, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    let bounds = Bounds { limit: 10, idle: PATIENCE, total: PATIENCE };
    let body = body::read_into(&Room::new(1 << 20), &request, payload, bounds).await?;
    desk.whole.fetch_add(1, Ordering::SeqCst);
    Ok(HttpResponse::Ok().body(body.bytes))
}

/// Waits until the test says go.
async fn wait(desk: Data<Desk>) -> &'static str {
    desk.begun.notify_one();
    desk.go.notified().await;
    "done"
}

/// A command that goes on when its client is gone.
async fn command(desk: Data<Desk>, tasks: Data<Tasks>) -> Result<HttpResponse, ApiError> {
    let work = async move {
        desk.begun.notify_one();
        desk.go.notified().await;
        desk.whole.fetch_add(1, Ordering::SeqCst);
        Ok::<_, ApiError>(())
    };
    tasks.finish(work).await?;
    Ok(HttpResponse::Ok().finish())
}

fn serve(timing: Timing) -> (Running, Data<Desk>) {
    let desk = Data::new(Desk::default());
    let tasks = Tasks::new(Handle::current());
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let (shared, for_commands) = (desk.clone(), Data::new(tasks.clone()));
    let configure = move |config: &mut ServiceConfig| {
        config
            .app_data(shared.clone())
            .app_data(for_commands.clone())
            .route("/echo", web::post().to(echo))
            .route("/wait", web::get().to(wait))
            .route("/command", web::post().to(command));
    };
    let limits = Limits { http_workers: 1, ..Limits::default() };
    (run(listener, &timing, &limits, tasks, Stop::default(), configure).unwrap(), desk)
}

async fn connect(running: &Running, request: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(running.address()).await.unwrap();
    stream.write_all(request).await.unwrap();
    stream
}

/// Everything until the server closes.
async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// One request on a connection of its own.
async fn ask(running: &Running, head: &str, body: &[u8]) -> String {
    let request = [format!("{head}\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes(), body].concat();
    rest(connect(running, &request).await).await
}

#[actix_web::test]
async fn chunked_bodies_of_the_limit_pass_and_one_byte_more_is_413() {
    let (running, desk) = serve(Timing::default());
    let head = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked";
    let exact = ask(&running, head, b"5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n").await;
    assert!(exact.starts_with("HTTP/1.1 200 ") && exact.ends_with("\r\n\r\n0123456789"), "{exact}");
    let over = ask(&running, head, b"5\r\n01234\r\n6\r\n56789A\r\n0\r\n\r\n").await;
    assert!(over.starts_with("HTTP/1.1 413 "), "{over}");
    assert!(
        over.ends_with(r#"{"error":"request body exceeds max size of 10 bytes","code":"body_too_large"}"#),
        "{over}"
    );
    assert_eq!(desk.whole.load(Ordering::SeqCst), 1);
    running.stop(PATIENCE).await;
}

#[actix_web::test]
async fn a_body_that_breaks_off_reaches_nobody() {
    let (running, desk) = serve(Timing::default());
    let mut stream = connect(&running, b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n0123").await;
    stream.shutdown().await.unwrap();
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("failed to read request body"), "{answer}");
    assert_eq!(desk.whole.load(Ordering::SeqCst), 0);
    running.stop(PATIENCE).await;
}

#[actix_web::test]
async fn a_client_that_expects_100_continue_gets_it() {
    let (running, _desk) = serve(Timing::default());
    let head =
        b"POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let mut stream = connect(&running, head).await;
    let mut interim = [0; 25];
    timeout(PATIENCE, stream.read_exact(&mut interim)).await.unwrap().unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hi").await.unwrap();
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nhi"), "{answer}");
    running.stop(PATIENCE).await;
}

#[actix_web::test]
async fn two_content_lengths_are_400() {
    let (running, desk) = serve(Timing::default());
    let answer = ask(&running, "POST /echo HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3", b"hi!").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(desk.whole.load(Ordering::SeqCst), 0);
    running.stop(PATIENCE).await;
}

#[actix_web::test]
async fn every_answer_carries_a_request_id() {
    let (running, _desk) = serve(Timing::default());
    let answer = ask(&running, "GET /nowhere HTTP/1.1", b"").await;
    assert!(answer.to_ascii_lowercase().contains("\r\nx-request-id: "), "{answer}");
    running.stop(PATIENCE).await;
}

#[actix_web::test]
async fn a_client_that_never_finishes_its_head_is_let_go() {
    let (running, _desk) = serve(Timing { header_timeout: Duration::from_millis(50), ..Timing::default() });
    let answer = rest(connect(&running, b"GET /wait HTTP/1.1\r\nHost").await).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    running.stop(PATIENCE).await;
}

#[actix_web::test]
async fn a_stop_lets_an_open_request_end_and_takes_no_new_connection() {
    let (running, desk) = serve(Timing::default());
    let address = running.address();
    let stream = connect(&running, b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n").await;
    desk.begun.notified().await;
    let stopping = tokio::spawn(running.stop(PATIENCE));
    let refused = async { while TcpStream::connect(address).await.is_ok() {} };
    timeout(PATIENCE, refused).await.unwrap();
    desk.go.notify_one();
    assert!(rest(stream).await.ends_with("done"));
    assert_eq!(stopping.await.unwrap(), Stopped { unfinished: 0 });
}

#[actix_web::test]
async fn a_request_that_does_not_end_is_closed_after_the_grace() {
    let (running, desk) = serve(Timing { drain_grace: Duration::from_millis(10), ..Timing::default() });
    let stream = connect(&running, b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n").await;
    desk.begun.notified().await;
    let stopped = timeout(PATIENCE, running.stop(PATIENCE)).await.unwrap();
    assert_eq!(stopped, Stopped { unfinished: 0 });
    assert_eq!(rest(stream).await, "");
}

#[test]
fn the_server_closes_what_is_open_a_moment_behind_the_grace() {
    let seconds = [0, 300, 750, 751, 3000].map(|ms| seconds_to_answer(Duration::from_millis(ms)));
    assert_eq!(seconds, [1, 1, 1, 2, 4]);
}

#[actix_web::test]
async fn a_stop_ends_streams_at_once_and_the_grace_later() {
    let timing = Timing { drain_grace: Duration::from_millis(200), ..Timing::default() };
    let (running, desk) = serve(timing);
    let stop = running.stop.clone();
    let _open = connect(&running, b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n").await;
    desk.begun.notified().await;
    let begin = tokio::time::Instant::now();
    let stopping = tokio::spawn(running.stop(PATIENCE));
    stop.begun().await;
    assert_eq!(stop.within_grace(async { "in time" }).await, Some("in time"));
    stop.over().await;
    assert!(begin.elapsed() >= Duration::from_millis(200), "{:?}", begin.elapsed());
    assert_eq!(stopping.await.unwrap(), Stopped { unfinished: 0 });
}

#[actix_web::test]
async fn a_command_whose_client_hung_up_is_finished_before_the_stop_ends() {
    let (running, desk) = serve(Timing { drain_grace: Duration::from_millis(10), ..Timing::default() });
    let stream = connect(&running, b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").await;
    desk.begun.notified().await;
    drop(stream);
    let stopping = tokio::spawn(running.stop(PATIENCE));
    desk.go.notify_one();
    assert_eq!(timeout(PATIENCE, stopping).await.unwrap().unwrap(), Stopped { unfinished: 0 });
    assert_eq!(desk.whole.load(Ordering::SeqCst), 1);
}

#[actix_web::test]
async fn a_command_that_does_not_end_is_counted_at_the_deadline() {
    let (running, desk) = serve(Timing { drain_grace: Duration::ZERO, ..Timing::default() });
    let stream = connect(&running, b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").await;
    desk.begun.notified().await;
    drop(stream);
    let stopped = timeout(PATIENCE, running.stop(Duration::from_millis(100))).await.unwrap();
    assert_eq!(stopped, Stopped { unfinished: 1 });
}
