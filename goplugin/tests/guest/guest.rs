//! A plugin on the guest half, for the real-process tests: serves well, and misbehaves as `GUEST_MODE` says (words
//! separated by commas). tests/go/plugin does the same on the real Go library.

use std::env;
use std::io::{self, Write as _};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use goplugin::guest::{Broker, ServeConfig, serve};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tonic::service::Routes;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

fn is(mode: &str) -> bool {
    env::var("GUEST_MODE").is_ok_and(|modes| modes.split(',').any(|found| found == mode))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let _term = is("ignore_term").then(|| signal(SignalKind::terminate()));
    if is("child") {
        spawn("sleep");
    }
    if is("daemon") {
        spawn("setsid");
    }
    let config = ServeConfig {
        cookie: ("GOPLUGIN_TEST".to_owned(), "crumb".to_owned()),
        protocol_version: 1,
        max_message_bytes: 1 << 20,
    };
    let served = serve(config, |broker| {
        let routes = Routes::default();
        if is("not_serving") {
            broker.health().set_serving(false);
        }
        tokio::spawn(run(broker));
        routes
    });
    if let Err(error) = served.await {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    eprintln!("served");
    while is("ignore_shutdown") {
        thread::park();
    }
    ExitCode::SUCCESS
}

/// What the plugin does beside serving.
async fn run(broker: Broker) {
    if is("dial99") {
        let begin = Instant::now();
        let text = broker.dial(99).await.map_or_else(|error| error.to_string(), |_| "connected".to_owned());
        println!("dial 99 after {} ms: {text}", begin.elapsed().as_millis());
    }
    println!("callback: {}", call_back(&broker).await);
    if is("environment") {
        for (name, _) in env::vars() {
            println!("env {name}");
        }
    }
    // Printing much blocks, so it has a thread of its own, unless the test is about just that.
    if is("on_runtime_thread") {
        print_much();
    } else {
        tokio::task::spawn_blocking(print_much).await.expect("no panic");
    }
    if is("crash") {
        // Not before the host has seen that it runs.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        eprintln!("about to crash");
        std::process::exit(7);
    }
}

fn print_much() {
    if is("flood_stdout") {
        flood(&mut io::stdout());
        println!("flooded stdout");
    }
    if is("flood_stderr") {
        flood(&mut io::stderr());
        println!("flooded stderr");
    }
    if is("no_line_end") {
        io::stdout().write_all(&vec![b'x'; 1 << 20]).expect("stdout is open");
        println!();
        println!("printed 1 MiB");
    }
    if is("long_line") {
        let long = format!(r#"{{"@level":"info","@message":"{}"}}"#, "x".repeat(300 * 1024));
        eprintln!("{long}");
        for number in 0..1000 {
            eprintln!("short {number}");
        }
    }
}

fn flood(stream: &mut dyn io::Write) {
    for number in 0..100_000 {
        writeln!(stream, "line {number} of a flood that says nothing").expect("the stream is open");
    }
}

/// Calls the host's health service on broker id 1.
async fn call_back(broker: &Broker) -> String {
    let channel = match broker.dial(1).await {
        Ok(channel) => channel,
        Err(error) => return error.to_string(),
    };
    let request = HealthCheckRequest { service: "host".to_owned() };
    match HealthClient::new(channel).check(request).await {
        Ok(response) => response.get_ref().status().as_str_name().to_owned(),
        Err(status) => status.to_string(),
    }
}

/// Starts `sleep` in this process group, or by `setsid` outside it; both hold this process's pipes open.
fn spawn(program: &str) {
    let mut command = Command::new(program);
    if program == "setsid" {
        command.arg("sleep");
    }
    let mut child = command.arg("600").spawn().expect("sleep starts");
    eprintln!("child {}", child.id());
    thread::spawn(move || child.wait());
}
