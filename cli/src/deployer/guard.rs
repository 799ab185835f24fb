//! Ends a command whose deployer was killed. A deployer that gets SIGKILL can end nothing itself, and its claim goes to another one
//! when the lease is over: then two commands would work on one version.
//!
//! Each command has a guard: this program once more, as the leader of the process group that the command joins. The guard reads a
//! pipe whose other end only the deployer has. The system closes that end when the deployer is gone, however it ended, and the
//! guard ends the group. This needs nothing but process groups and pipes, so it is the same on Linux and macOS.

use crate::executor::command::withhold_authority;
use crate::executor::process;
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process_group};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

/// The first argument of a guard; the second one is how many milliseconds the group has between SIGTERM and SIGKILL.
const GUARD: &str = "keelway-deployer-guard";
/// What the deployer writes when the command has ended by itself: processes that it left behind may go on.
const RELEASED: &[u8] = b".";

/// The guard of a command.
pub struct Guard {
    child: Child,
}

impl Guard {
    /// Starts a guard, and with it a process group for the command.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn start(grace: Duration) -> std::io::Result<Self> {
        let mut command = Command::new(this_program()?);
        command.arg(GUARD).arg(grace.as_millis().to_string()).process_group(0);
        withhold_authority(&mut command);
        // Whoever reads what the deployer prints does not wait for the guard.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: command.spawn()? })
    }

    /// The group that the command is to join. It lasts as long as the guard.
    pub fn group(&self) -> Option<Pid> {
        process::group(&self.child)
    }

    /// Nothing is left to guard.
    pub async fn release(mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            // It may have been killed with its group.
            stdin.write_all(RELEASED).await.ok();
        }
        self.child.wait().await.ok();
    }
}

/// The file that this process runs, also if another one has taken its place since.
fn this_program() -> std::io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() }
}

/// The grace of the guard that this process is to be; `None`: it is none.
pub fn grace() -> Option<Duration> {
    let mut arguments = std::env::args_os().skip(1);
    let named = arguments.next().is_some_and(|first| first == OsStr::new(GUARD));
    let millis = arguments.next().filter(|_| named)?;
    // Whoever calls it by hand does not lose the group of the shell.
    (getpgrp() == getpid()).then(|| Duration::from_millis(millis.to_str().and_then(|text| text.parse().ok()).unwrap_or_default()))
}

/// Waits until the deployer is gone, and ends its group then.
pub async fn run(grace: Duration) -> ExitCode {
    // The group gets SIGTERM when a deployment is cancelled: the guard stays until everything has ended.
    let Ok(_terminate) = signal(SignalKind::terminate()) else { return ExitCode::FAILURE };
    let released = tokio::task::spawn_blocking(|| matches!(std::io::stdin().read(&mut [0; 1]), Ok(1..)));
    if released.await.unwrap_or(false) {
        return ExitCode::SUCCESS;
    }
    let group = getpgrp();
    kill_process_group(group, Signal::TERM).ok();
    sleep(grace).await;
    // The guard itself is one of them.
    kill_process_group(group, Signal::KILL).ok();
    ExitCode::SUCCESS
}
