//! Runs a command: the event on standard input, output bounded, a time limit, the whole process group ended when it must be.

use super::Phase;
use super::answer::{Ended, Run};
use super::process::{self, Keep, Output, exit, kill};
use rustix::process::Pid;
use std::future::Future;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::sleep;

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// What to run, for one trigger.
pub struct Job<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// Further environment variables.
    pub variables: Vec<(&'static str, String)>,
    /// What it reads.
    pub input: String,
    /// How long it may take.
    pub limit: Duration,
    /// Whether to pass its standard error on.
    pub echo: bool,
}

/// Why a command has no end of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// This process was told to drop everything.
    Dropped,
    /// Nobody waits for its answer any more.
    Over,
}

/// Runs it to its end. `over`: until nobody waits for its answer any more.
pub async fn run(job: Job<'_>, mut phase: watch::Receiver<Phase>, over: impl Future<Output = ()>) -> Result<Run, Stopped> {
    let not_started = |why: String| Ok(Run { ended: Ended::NotStarted(why), stdout: vec![], stderr: vec![] });
    let Some((program, arguments)) = job.command.split_first() else { return not_started("there is no command".into()) };
    let mut command = Command::new(program);
    command.args(arguments).envs(job.variables).kill_on_drop(true).process_group(0);
    withhold_authority(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return not_started(format!("the command {program:?} does not start: {error}")),
    };
    let group = process::group(&child);
    if let Some(mut stdin) = child.stdin.take() {
        // A command need not read its input; then writing fails, which is fine.
        tokio::spawn(async move { stdin.write_all(job.input.as_bytes()).await.ok() });
    }
    let (stdout, stderr) = (Output::new(Keep::Start), Output::new(Keep::End { echo: job.echo }));
    let readers = [child.stdout.take().map(|pipe| stdout.read(pipe)), child.stderr.take().map(|pipe| stderr.read(pipe))];
    let ended = tokio::select! {
        status = child.wait() => exit(status),
        () = sleep(job.limit) => {
            end(&mut child, group, &mut phase).await;
            Ended::TimedOut(job.limit)
        }
        () = stdout.overflow.notified() => {
            end(&mut child, group, &mut phase).await;
            Ended::TooMuch
        }
        () = over => {
            end(&mut child, group, &mut phase).await;
            return Err(Stopped::Over);
        }
        () = dropped(&mut phase) => {
            kill(&mut child, group).await;
            return Err(Stopped::Dropped);
        }
    };
    process::read_the_rest(readers).await;
    let too_much = stdout.is_full() && matches!(ended, Ended::Code(_) | Ended::Signal(_));
    let ended = if too_much { Ended::TooMuch } else { ended };
    let stdout = if ended == Ended::TooMuch { vec![] } else { stdout.taken() };
    Ok(Run { ended, stdout, stderr: stderr.taken() })
}

/// A command has its task, and not what this process may do: neither its token nor the contexts of `keelway login`.
pub fn withhold_authority(command: &mut Command) {
    command.env_remove("KEELWAY_TOKEN").env_remove("KEELWAY_LOGIN").env(crate::config::FILE, "/dev/null");
}

/// Until this process is told to drop everything.
async fn dropped(phase: &mut watch::Receiver<Phase>) {
    if phase.wait_for(|phase| *phase == Phase::Drop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Ends what runs: at once, if this process is told to drop everything.
async fn end(child: &mut Child, group: Option<Pid>, phase: &mut watch::Receiver<Phase>) {
    process::end(child, group, GRACE, dropped(phase)).await;
}

#[cfg(test)]
mod tests {
    use super::super::process::KEPT;
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::future::pending;
    use tokio::time::timeout;

    async fn shell(script: &str, limit: Duration) -> Run {
        let command: Vec<String> = ["sh", "-c", script].map(str::to_owned).into();
        let variables = vec![("KEELWAY_STAGE", "dev".to_owned())];
        let job = Job { command: &command, variables, input: "{\"id\":\"t\"}".into(), limit, echo: false };
        let (_sender, phase) = watch::channel(Phase::Serve);
        run(job, phase, pending()).await.unwrap()
    }

    /// Only says that nothing moves any more.
    const LONG: Duration = Duration::from_secs(300);

    #[tokio::test]
    async fn input_variables_output_and_code() {
        let ran = shell("cat; printf ' %s' \"$KEELWAY_STAGE\"; echo told >&2; exit 7", LONG).await;
        let expected = Run { ended: Ended::Code(7), stdout: b"{\"id\":\"t\"} dev".to_vec(), stderr: b"told\n".to_vec() };
        assert_eq!(ran, expected);
    }

    #[tokio::test]
    async fn a_command_that_is_not_there() {
        let command = ["/nowhere/at-all".to_owned()];
        let (_sender, phase) = watch::channel(Phase::Serve);
        let ran = run(job_of(&command), phase, pending()).await.unwrap();
        assert!(matches!(ran.ended, Ended::NotStarted(why) if why.contains("/nowhere/at-all")));
    }

    #[tokio::test]
    async fn a_timeout_ends_the_whole_group() {
        let dir = tempfile::tempdir().unwrap();
        let (begun, pipe) = (dir.path().join("begun"), dir.path().join("pipe"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // A child in the background that holds a pipe open for as long as it lives.
        let script = format!("(exec 3<>{}; touch {}; exec sleep 600) & sleep 600", pipe.display(), begun.display());
        for millis in [300, 1000, 10_000, 100_000] {
            let limit = Duration::from_millis(millis);
            assert_eq!(shell(&script, limit).await.ended, Ended::TimedOut(limit));
            if begun.exists() {
                break;
            }
        }
        assert!(begun.exists(), "the child never began");
        // A pipe that has no reader cannot be opened for writing without waiting.
        let has_reader = || rustix::fs::open(&pipe, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).is_ok();
        let gone = async {
            while has_reader() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LONG, gone).await.expect("the child lives on");
    }

    #[tokio::test]
    async fn too_much_output_and_a_pipe_left_open() {
        let ran = shell("while :; do echo 0123456789012345678901234567890123456789; done", LONG).await;
        assert_eq!((ran.ended, ran.stdout.len()), (Ended::TooMuch, 0));
        // A child that holds the pipe until the directory is gone: nobody waits for it.
        let dir = tempfile::tempdir().unwrap();
        let script = format!("(while [ -d {} ]; do sleep 0.1; done) & echo ok", dir.path().display());
        let ran = timeout(LONG, shell(&script, LONG)).await.unwrap();
        assert_eq!((ran.ended, ran.stdout), (Ended::Code(0), b"ok\n".to_vec()));
        let ran = shell("i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; kill -9 $$", LONG).await;
        assert_eq!(ran.ended, Ended::Signal(9));
        assert!(ran.stderr.len() <= KEPT && ran.stderr.ends_with(b"line 1999\n"));
    }

    #[tokio::test]
    async fn dropping_everything_ends_it_without_an_answer() {
        let command: Vec<String> = ["sleep", "600"].map(str::to_owned).into();
        let (sender, phase) = watch::channel(Phase::Serve);
        let ran = tokio::spawn(async move { run(job_of(&command), phase, pending()).await });
        sender.send(Phase::Finish).unwrap();
        sleep(Duration::from_millis(200)).await;
        assert!(!ran.is_finished());
        sender.send(Phase::Drop).unwrap();
        assert_eq!(timeout(LONG, ran).await.unwrap().unwrap(), Err(Stopped::Dropped));
    }

    fn job_of(command: &[String]) -> Job<'_> {
        Job { command, variables: vec![], input: String::new(), limit: LONG, echo: false }
    }
}
