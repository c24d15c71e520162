use std::{
    io::Write as _,
    sync::mpsc::{self, Receiver, Sender},
};

use super::*;

const LONG: Duration = Duration::from_secs(20);

/// An output whose every write waits for a permission and is then shown.
struct Gate {
    open: Receiver<()>,
    wrote: Sender<Vec<u8>>,
}

impl io::Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.open.recv();
        let _ = self.wrote.send(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Log {
    backlog: Backlog,
    written: Written,
    permit: Sender<()>,
    wrote: Receiver<Vec<u8>>,
    dropped: Receiver<u64>,
}

fn log(most: usize, rest: Duration, close: Duration) -> Log {
    let (permit, open) = mpsc::channel();
    let (seen, wrote) = mpsc::channel();
    let (count, dropped) = mpsc::channel();
    let timing = Timing { log_rest: rest, log_close: close, ..Timing::default() };
    let told = move |lines| count.send(lines).unwrap();
    let (backlog, written) = start_bounded(most, Gate { open, wrote: seen }, &timing, told).unwrap();
    Log { backlog, written, permit, wrote, dropped }
}

fn say(backlog: &Backlog, line: &str) {
    backlog.make_writer().write_all(line.as_bytes()).unwrap();
}

#[test]
fn lines_that_come_while_the_thread_writes_are_written_together() {
    let log = log(1000, Duration::ZERO, LONG);
    say(&log.backlog, "first\n");
    // Until the thread has the first line and waits at the gate.
    while !log.backlog.lock().lines.is_empty() {
        thread::yield_now();
    }
    say(&log.backlog, "second\n");
    say(&log.backlog, "third\n");
    log.permit.send(()).unwrap();
    log.permit.send(()).unwrap();
    assert_eq!(log.wrote.recv_timeout(LONG).unwrap(), b"first\n");
    assert_eq!(log.wrote.recv_timeout(LONG).unwrap(), b"second\nthird\n");
}

#[test]
fn lines_beyond_the_bound_are_dropped_whole_and_counted() {
    let log = log(10, Duration::ZERO, LONG);
    say(&log.backlog, "taken\n");
    while !log.backlog.lock().lines.is_empty() {
        thread::yield_now();
    }
    for line in ["0123456789", "x", "yz"] {
        say(&log.backlog, line);
    }
    log.permit.send(()).unwrap();
    log.permit.send(()).unwrap();
    assert_eq!(log.wrote.recv_timeout(LONG).unwrap(), b"taken\n");
    assert_eq!(log.wrote.recv_timeout(LONG).unwrap(), b"0123456789");
    assert_eq!(log.dropped.recv_timeout(LONG).unwrap(), 2);
}

#[test]
fn the_end_writes_what_is_left_without_the_rest() {
    let log = log(1000, LONG, LONG);
    log.permit.send(()).unwrap();
    say(&log.backlog, "first\n");
    assert_eq!(log.wrote.recv_timeout(LONG).unwrap(), b"first\n");
    say(&log.backlog, "last\n");
    log.permit.send(()).unwrap();
    drop(log.written);
    assert_eq!(log.wrote.try_recv().unwrap(), b"last\n");
}

#[test]
fn the_end_does_not_wait_for_an_output_that_nobody_reads() {
    let log = log(1000, Duration::ZERO, Duration::from_millis(20));
    say(&log.backlog, "lost\n");
    drop(log.written);
    assert!(log.wrote.try_recv().is_err());
    drop(log.permit);
}
