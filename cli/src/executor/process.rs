//! A process and what it prints: read without end, kept within bounds, ended with everything it started.

use super::answer::{Ended, MAX_MESSAGE, MAX_STDOUT};
use rustix::process::{Pid, Signal, kill_process_group};
use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Child;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How long output is read on after the command ended: a child it left behind may hold the pipe open for ever.
const REST: Duration = Duration::from_millis(500);
/// Of an output of which the end is kept, twice what a message holds is.
pub const KEPT: usize = 4 * MAX_MESSAGE;

/// The group that a child leads.
pub fn group(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

/// Reads what is left in pipes, for a moment.
pub async fn read_the_rest(readers: impl IntoIterator<Item = Option<JoinHandle<()>>>) {
    for reader in readers.into_iter().flatten() {
        let stop = reader.abort_handle();
        if timeout(REST, reader).await.is_err() {
            stop.abort();
        }
    }
}

/// How a command ended.
pub fn exit(status: std::io::Result<ExitStatus>) -> Ended {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Code(code),
            (None, signal) => Ended::Signal(signal.unwrap_or_default()),
        },
        Err(error) => Ended::NotStarted(format!("the command's end cannot be known: {error}")),
    }
}

/// SIGTERM to the whole group, a while to heed it, SIGKILL to what is left.
pub async fn end(child: &mut Child, group: Option<Pid>, grace: Duration, at_once: impl Future<Output = ()>) {
    // The only failure is that the group is gone already.
    group.and_then(|group| kill_process_group(group, Signal::TERM).ok());
    tokio::select! {
        _ = child.wait() => (),
        () = sleep(grace) => (),
        () = at_once => (),
    }
    kill(child, group).await;
}

/// SIGKILL to the whole group.
pub async fn kill(child: &mut Child, group: Option<Pid>) {
    group.and_then(|group| kill_process_group(group, Signal::KILL).ok());
    child.wait().await.ok();
}

/// What is kept of an output.
#[derive(Clone, Copy)]
pub enum Keep {
    /// The first [`MAX_STDOUT`] bytes; more is told.
    Start,
    /// The last [`KEPT`] bytes.
    End { echo: bool },
}

/// What a pipe gave so far: read by one task, taken by another even if the pipe never closes.
#[derive(Clone)]
pub struct Output {
    keep: Keep,
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Told when there is more than is kept.
    pub overflow: Arc<Notify>,
}

impl Output {
    /// Nothing so far.
    pub fn new(keep: Keep) -> Self {
        Self { keep, bytes: Arc::default(), overflow: Arc::default() }
    }

    /// Reads a pipe to its end.
    pub fn read(&self, mut pipe: impl AsyncRead + Unpin + Send + 'static) -> tokio::task::JoinHandle<()> {
        let output = self.clone();
        tokio::spawn(async move {
            let mut chunk = vec![0; 16 * 1024];
            while let Ok(n @ 1..) = pipe.read(&mut chunk).await {
                output.add(&chunk[..n]);
            }
        })
    }

    fn add(&self, chunk: &[u8]) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.extend_from_slice(chunk);
        match self.keep {
            Keep::Start if bytes.len() > MAX_STDOUT => {
                bytes.truncate(MAX_STDOUT + 1);
                self.overflow.notify_one();
            }
            Keep::Start => (),
            Keep::End { echo } => {
                if echo {
                    std::io::Write::write_all(&mut std::io::stderr(), chunk).ok();
                }
                let surplus = bytes.len().saturating_sub(KEPT);
                bytes.drain(..surplus);
            }
        }
    }

    /// Whether it was more than is kept.
    pub fn is_full(&self) -> bool {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).len() > MAX_STDOUT
    }

    /// The last bytes so far, as text.
    pub fn tail(&self, most: usize) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let from = bytes.len().saturating_sub(most);
        // A character that is cut in two is left out.
        let from = (from..bytes.len()).find(|at| bytes[*at] & 0b1100_0000 != 0b1000_0000).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[from..]).into_owned()
    }

    /// What is kept, once.
    pub fn taken(&self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
