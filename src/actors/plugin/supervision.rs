//! Runs the lifecycle's effects: launches, watches, pings and stops the process, and turns what happens into inputs.

use std::{borrow::Cow, path::PathBuf, sync::Arc, time::Duration};

use actix::{AsyncContext, Context, Handler, Message, WeakAddr};
use time::OffsetDateTime;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{PluginActor, Report, calls::UnderWay, vitals::Alive};
use crate::{
    actors::spawn::post_back,
    domain::{
        lifecycle::{Effect, Input, State},
        log_line::{Level, LogLine},
        redaction,
        target::host_platform,
    },
    failpoint,
    grpc::client::PluginClient,
    process::{Granted, LaunchFailure, LaunchRequest, Launched, LogSink, PluginProcess},
};

/// The process of the present generation.
pub struct Running {
    pub client: Arc<dyn PluginClient>,
    pub process: Arc<dyn PluginProcess>,
    /// Calls and deliveries under way; a stop waits for them.
    pub calls: UnderWay,
    /// For who asks how the plugin is.
    pub alive: Alive,
    /// Cancelled when this generation is over.
    pub ended: CancellationToken,
    _ended: DropGuard,
}

/// What the executable must be from the next start on; without effect when that is known already.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Pin(pub String);

impl Handler<Pin> for PluginActor {
    type Result = ();

    fn handle(&mut self, Pin(sha256): Pin, _: &mut Context<Self>) {
        if self.live.executable_sha256.is_none() {
            self.live.executable_sha256 = Some(sha256);
            self.live.revision += 1;
            self.report();
        }
    }
}

/// What a task of this actor has to report.
pub enum Happened {
    /// An input of the lifecycle.
    Input(Input),
    /// A launch ended.
    Launch(u64, Result<Launched, LaunchFailure>),
}

impl PluginActor {
    /// Takes an input and runs what follows from it.
    pub(super) fn step(&mut self, input: Input, ctx: &mut Context<Self>) {
        let effects = self.lifecycle.step(input);
        // Before the effects: a stop must know every call that it has to wait for, and nothing comes after a
        // forgetting.
        self.tend_line();
        match self.accepting() {
            Some(running) => self.door.0.open(&running.client, &running.calls),
            None => self.door.0.close(),
        }
        for effect in effects {
            self.run(effect, ctx);
        }
        self.report();
        self.pump(&ctx.address().downgrade());
        self.show_vitals();
    }

    pub(super) fn happened(&mut self, happened: Happened, ctx: &mut Context<Self>) {
        match happened {
            Happened::Input(input) => self.step(input, ctx),
            Happened::Launch(generation, Ok(launched)) => self.launched(generation, launched, ctx),
            Happened::Launch(generation, Err(failure)) => {
                self.abort = None;
                let input = match failure {
                    LaunchFailure::Passing(why) => Input::LaunchFailed(generation, why),
                    LaunchFailure::Lasting(why) => Input::Unlaunchable(generation, why),
                };
                self.step(input, ctx);
            }
        }
    }

    /// The running process, while calls may be made to it.
    pub(super) fn accepting(&self) -> Option<&Running> {
        match self.lifecycle.state() {
            State::Up { .. } => self.running.as_ref(),
            State::Down | State::Starting { .. } | State::Stopping { .. } | State::Waiting | State::Gone => None,
        }
    }

    fn run(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        let timing = &self.surroundings.timing;
        match effect {
            Effect::Launch(generation) => self.launch(generation, ctx.address().downgrade()),
            Effect::AbortLaunch(_) => {
                if let Some(abort) = &self.abort {
                    abort.cancel();
                }
            }
            Effect::Stop(_) => self.stop(),
            Effect::Kill(_) => {
                if let Some(running) = &self.running {
                    running.process.kill();
                }
            }
            Effect::ScheduleRestart(generation, delay) => {
                failpoint::hit("restart.scheduled");
                self.show_restart_at(OffsetDateTime::now_utc() + delay);
                self.later(delay, Input::RestartDue(generation), ctx.address().downgrade());
            }
            Effect::Watch(generation) => {
                self.later(timing.restart_stability, Input::Stable(generation), ctx.address().downgrade());
            }
            Effect::Healthy => {
                tracing::info!(plugin.id = %self.id, version = %self.manifest.version, "plugin is active");
                self.live.last_error = None;
                self.live.last_error_at = None;
                self.live.revision += 1;
                self.line.lock().resume(now());
                self.report_drops(&ctx.address().downgrade());
            }
            Effect::Failed(why) => self.failed(&why, &ctx.address().downgrade()),
            Effect::Paused => {
                self.running = None;
                self.suspend(false, &ctx.address().downgrade());
            }
            Effect::Forget => {
                self.running = None;
                let forgotten = self.line.lock().clear();
                if forgotten > 0 {
                    tracing::info!(plugin.id = %self.id, events = forgotten, "undelivered events forgotten");
                }
            }
            Effect::CountRestart => {
                self.live.restart_count += 1;
                self.show_restarted();
                self.live.revision += 1;
            }
            Effect::Settle(settlement) => {
                // Whoever waits must see the state that the settlement speaks of.
                self.report();
                self.settle(&settlement);
            }
        }
    }

    fn failed(&mut self, why: &str, addr: &WeakAddr<Self>) {
        if !matches!(self.lifecycle.state(), State::Stopping { .. }) {
            self.running = None;
        }
        let diagnostic = self.diagnostic(why);
        tracing::warn!(plugin.id = %self.id, error = %diagnostic, "plugin failed");
        self.note(Level::Error, diagnostic.clone());
        self.live.last_error = Some(diagnostic);
        self.live.last_error_at = Some(OffsetDateTime::now_utc());
        self.live.revision += 1;
        self.suspend(true, addr);
    }

    /// One redacted line of at most 2048 bytes (contract/lifecycle.md §6), without the secrets that the plugin was
    /// told.
    pub(super) fn diagnostic(&self, text: &str) -> String {
        redaction::diagnostic(&*self.log.without_secrets(text), &self.surroundings.user_home)
    }

    fn launch(&mut self, generation: u64, addr: WeakAddr<Self>) {
        let abort = CancellationToken::new();
        let request = match self.launch_request(generation, abort.clone()) {
            Ok(request) => request,
            Err(failure) => {
                post_back(&addr, Report(Happened::Launch(generation, Err(failure))));
                return;
            }
        };
        self.abort = Some(abort);
        failpoint::hit("start.launching");
        let launcher = Arc::clone(&self.surroundings.launcher);
        self.tasks.spawn(async move {
            let result = launcher.launch(request).await;
            post_back(&addr, Report(Happened::Launch(generation, result)));
        });
    }

    fn launch_request(&self, generation: u64, abort: CancellationToken) -> Result<LaunchRequest, LaunchFailure> {
        let platform = host_platform();
        let Some(executable) = self.manifest.runtime.executables.get(&platform) else {
            return Err(LaunchFailure::Lasting(format!(
                "the manifest declares no executable for this host's platform {platform}; install a package built for it"
            )));
        };
        let install_path = PathBuf::from(&self.record.state.install_path);
        Ok(LaunchRequest {
            id: self.id.clone(),
            generation,
            executable: install_path.join(executable),
            executable_sha256: self.live.executable_sha256.clone(),
            install_path,
            data_dir: self.surroundings.plugins_dir.join(self.id.as_str()).join("data"),
            host_service: self.surroundings.host_services.routes(
                &self.id,
                &Granted::from(&*self.manifest),
                self.log.tenancy(),
            ),
            log: self.log_sink(),
            abort,
        })
    }

    fn log_sink(&self) -> LogSink {
        let (log, id) = (Arc::clone(&self.log), self.id.clone());
        Arc::new(move |mut line: LogLine| {
            if let Cow::Owned(hidden) = log.without_secrets(&line.message) {
                line.message = hidden;
            }
            let message = line.message.as_str();
            match line.level {
                Level::Trace => tracing::trace!(target: "plugin", { plugin.id = %id }, "{message}"),
                Level::Debug => tracing::debug!(target: "plugin", { plugin.id = %id }, "{message}"),
                Level::Info => tracing::info!(target: "plugin", { plugin.id = %id }, "{message}"),
                Level::Warn => tracing::warn!(target: "plugin", { plugin.id = %id }, "{message}"),
                Level::Error => tracing::error!(target: "plugin", { plugin.id = %id }, "{message}"),
            }
            log.push(line);
        })
    }

    fn launched(&mut self, generation: u64, launched: Launched, ctx: &mut Context<Self>) {
        self.abort = None;
        let ended = CancellationToken::new();
        let Launched { client, process, executable_sha256 } = launched;
        if self.live.executable_sha256.is_none() && executable_sha256.is_some() {
            self.live.executable_sha256 = executable_sha256;
            self.live.revision += 1;
        }
        let calls = UnderWay::default();
        let alive = Alive::new(process.pid(), calls.clone());
        let addr = ctx.address().downgrade();
        self.watch_exit(generation, Arc::clone(&process), addr.clone());
        self.watch_health(generation, Arc::clone(&process), ended.clone(), addr);
        let _ended = ended.clone().drop_guard();
        self.running = Some(Running { client, process, calls, alive, ended, _ended });
        failpoint::hit("start.launched");
        self.step(Input::Launched(generation), ctx);
        failpoint::hit("start.settled");
    }

    fn watch_exit(&self, generation: u64, process: Arc<dyn PluginProcess>, addr: WeakAddr<Self>) {
        self.tasks.spawn(async move {
            let why = process.exited().await;
            post_back(&addr, Report(Happened::Input(Input::Exited(generation, why))));
        });
    }

    fn watch_health(
        &self,
        generation: u64,
        process: Arc<dyn PluginProcess>,
        ended: CancellationToken,
        addr: WeakAddr<Self>,
    ) {
        let (interval, deadline) = (self.surroundings.timing.ping_interval, self.surroundings.timing.ping_timeout);
        let pings = async move {
            loop {
                tokio::time::sleep(interval).await;
                let input = match process.ping(deadline).await {
                    Ok(()) => Input::PingOk(generation),
                    Err(why) => Input::PingFailed(generation, why),
                };
                post_back(&addr, Report(Happened::Input(input)));
            }
        };
        self.tasks.spawn(async move {
            tokio::select! {
                () = pings => {}
                () = ended.cancelled() => {}
            }
        });
    }

    /// Calls in flight get their grace, then the stop ladder begins; `Exited` follows from the exit watch.
    fn stop(&mut self) {
        let Some(running) = &self.running else { return };
        let (process, calls) = (Arc::clone(&running.process), running.calls.clone());
        calls.close();
        let timing = &self.surroundings.timing;
        let (drain_grace, lease_grace) = (timing.drain_grace, timing.lease_grace);
        // Not one of the actor's own tasks: a stop that began must end even if the actor does.
        crate::actors::spawn::detached(async move {
            calls.drain(drain_grace, lease_grace).await;
            process.stop().await;
        });
    }

    fn later(&self, delay: Duration, input: Input, addr: WeakAddr<Self>) {
        self.tasks.spawn(async move {
            tokio::time::sleep(delay).await;
            post_back(&addr, Report(Happened::Input(input)));
        });
    }
}

/// The runtime's clock, which tests can pause.
pub(super) fn now() -> std::time::Instant {
    tokio::time::Instant::now().into_std()
}
