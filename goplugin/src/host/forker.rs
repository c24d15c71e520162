//! The one thread that forks.
//!
//! Owns what happens between fork and exec: the own process group, the limit of open files and the parent-death signal.
//! The kernel sends that signal when the *thread* that forked ends, not the process, so no plugin may be forked from a
//! runtime's worker or pool thread. What is run, and what becomes of it, is `launch`'s part.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::opened::Opened;
use super::process::kill_and_reap;

/// Start orders that may wait; at the bound the next one waits to be queued. A fork takes well under a millisecond.
const MAX_ORDERS: usize = 64;

/// How often, and at which interval, a start is tried again while the program file is open for writing somewhere: a
/// fork elsewhere in this process copies the descriptor of a file just being written, until its exec.
const BUSY_RETRIES: u32 = 50;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// A handle to the thread that forks, which lives for as long as any handle or plugin does.
#[derive(Debug, Clone)]
pub struct Forker {
    orders: mpsc::Sender<Order>,
    /// The soft limit that processes get.
    open_files: Option<u64>,
}

#[derive(Debug)]
struct Order {
    command: Command,
    /// What the command executes by its descriptor.
    opened: Option<Opened>,
    reply: oneshot::Sender<Reply>,
}

/// What became of an order; what is needed to give it again comes back.
#[derive(Debug)]
struct Reply {
    command: Command,
    opened: Option<Opened>,
    spawned: io::Result<Unclaimed>,
}

/// A process on its way to whoever ordered it. When that one has gone away, before the answer was sent or before it was
/// read, nobody would ever stop the process: dropping this kills and reaps it.
#[derive(Debug)]
struct Unclaimed(Option<Child>);

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(orphan) = self.0.take() {
            kill_and_reap(orphan);
        }
    }
}

impl Forker {
    /// Starts the thread. Fails when the system has no thread to give.
    pub fn start() -> io::Result<Forker> {
        let (orders, mut inbox) = mpsc::channel::<Order>(MAX_ORDERS);
        thread::Builder::new().name("plugin-forker".to_owned()).spawn(move || {
            while let Some(Order { mut command, opened, reply }) = inbox.blocking_recv() {
                let spawned = command.spawn().map(|child| Unclaimed(Some(child)));
                // Closed here otherwise, where file work may block.
                let opened = opened.filter(|_| spawned.as_ref().is_err_and(is_busy));
                drop(reply.send(Reply { command, opened, spawned }));
            }
        })?;
        Ok(Forker { orders, open_files: None })
    }

    /// Processes get this soft limit of open files; `None`, as at first, gives them this process's own. For a program
    /// that has raised its own: what was never asked whether it can live with more gets what it would have without.
    pub fn with_open_files(self, soft: Option<u64>) -> Forker {
        Forker { open_files: soft, ..self }
    }

    /// Forks and executes `command` in a process group of its own, to be killed when this process dies. `opened` is
    /// what the command executes, if that is a descriptor: it stays open until the fork, also when nobody waits any
    /// more.
    pub(crate) async fn spawn(&self, mut command: Command, mut opened: Option<Opened>) -> io::Result<Child> {
        between_fork_and_exec(&mut command, self.open_files);
        command.process_group(0);
        for _ in 0..BUSY_RETRIES {
            let reply = self.order(command, opened).await?;
            match reply.spawned {
                Err(error) if is_busy(&error) => (command, opened) = (reply.command, reply.opened),
                Err(error) => return Err(error),
                Ok(mut unclaimed) => return unclaimed.0.take().ok_or_else(gone),
            }
            sleep(BUSY_PAUSE).await;
        }
        Err(io::ErrorKind::ExecutableFileBusy.into())
    }

    async fn order(&self, command: Command, opened: Option<Opened>) -> io::Result<Reply> {
        let (reply, answer) = oneshot::channel();
        self.orders.send(Order { command, opened, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts plugins has ended")
}

fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ExecutableFileBusy
}

/// Gives the child its limit, and lets the kernel kill it when the forking thread ends, which it does with this
/// process.
fn between_fork_and_exec(command: &mut Command, open_files: Option<u64>) {
    // Compared, instead of asking for "not 1", since the host itself may be pid 1 of a container.
    let parent: Pid = getpid();
    let in_child = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died between the fork and the line above; then the signal never comes.
        if getppid() != Some(parent) {
            return Err(io::Error::from(rustix::io::Errno::SRCH));
        }
        if let Some(soft) = open_files {
            let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
            // With too high a limit most programs live well: no reason not to start.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum });
        }
        Ok(())
    };
    #[expect(unsafe_code, reason = "the only way to run something between fork and exec")]
    // SAFETY: the closure makes system calls and neither allocates nor takes a lock, so it may run in the forked
    // copy of a process with other threads.
    unsafe {
        command.pre_exec(in_child);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tokio::time::Instant;

    use super::*;

    async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(Instant::now() < deadline, "waited for {what}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Soft and hard, as the shell tells them.
    async fn limits_of_a_process(forker: &Forker) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("limits");
        let mut script = Command::new("sh");
        script.args(["-c", "ulimit -Sn > \"$0\"; ulimit -Hn >> \"$0\""]).arg(&file);
        assert!(forker.spawn(script, None).await.unwrap().wait().unwrap().success());
        fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn a_process_gets_the_soft_limit_of_open_files_that_was_chosen_and_keeps_the_hard_one() {
        let text = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let forker = Forker::start().unwrap();
        assert_eq!(limits_of_a_process(&forker).await, [text(current), text(maximum)]);
        let forker = forker.with_open_files(Some(57));
        assert_eq!(limits_of_a_process(&forker).await, [text(Some(57)), text(maximum)]);
    }

    #[tokio::test]
    async fn a_process_whose_answer_is_never_read_is_killed_and_reaped() {
        let forker = Forker::start().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let mut script = Command::new("sh");
        script.args(["-c", "echo $$ > \"$0\"; exec sleep 600"]).arg(&file);
        let mut order = Box::pin(forker.spawn(script, None));
        tokio::select! {
            biased;
            _ = &mut order => panic!("answered at once"),
            () = std::future::ready(()) => {}
        }
        // Orders are done one after the other: with this one answered, the first answer lies there.
        forker.spawn(Command::new("true"), None).await.unwrap().wait().unwrap();
        let read = || fs::read_to_string(&file).ok()?.trim().parse::<u32>().ok();
        let pid = until("the pid", read).await;
        drop(order);
        until("its end", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())).await;
    }
}
