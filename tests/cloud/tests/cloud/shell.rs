//! The command `keelway` in a shell whose variables name the deployed stack.

use crate::bed::Bed;
use keelway_cloud_tests::Problem;
use keelway_cloud_tests::cloud::binaries;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::ensure;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

/// The top of the repository, where commands are run.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The shell of one stack.
pub struct Shell<'a>(pub &'a Bed);

impl Shell<'_> {
    fn command(&self, words: &[&str]) -> Result<Command, Problem> {
        let mut command = Command::new(binaries()?.join("keelway"));
        let api = self.0.stack.api();
        command.args(words).current_dir(repository()).env("KEELWAY_API", &api.url).env("KEELWAY_TOKEN", &api.token);
        // Loopback, whatever proxy the shell has.
        command.env("NO_PROXY", "127.0.0.1,localhost").stdin(Stdio::null());
        Ok(command)
    }

    /// Runs a script in which `keelway` is this command, to its end.
    pub fn script(&self, script: &str, directory: &Path) -> Result<Output, Problem> {
        let mut path = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
        path.insert(0, binaries()?);
        let path = std::env::join_paths(path).map_err(|error| Problem::of("PATH", error))?;
        let api = self.0.stack.api();
        let mut command = Command::new("bash");
        command
            .args(["-c", script])
            .current_dir(directory)
            .env("PATH", path)
            .env("KEELWAY_API", &api.url)
            .env("KEELWAY_TOKEN", &api.token);
        command.env("NO_PROXY", "127.0.0.1,localhost").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| Problem::of("bash", error))?;
        wait(child, "a script")
    }

    /// Runs a command to its end.
    pub fn run(&self, words: &[&str]) -> Result<Output, Problem> {
        let mut command = self.command(words)?;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| Problem::of("keelway", error))?;
        wait(child, &words.join(" "))
    }

    /// Standard output of what must end with 0.
    pub fn fine(&self, words: &[&str]) -> Result<String, Problem> {
        let output = self.run(words)?;
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure(output.status.success(), || format!("keelway {}: {}\n{stdout}{stderr}", words.join(" "), output.status))?;
        Ok(stdout.into_owned())
    }

    /// The same as JSON.
    pub fn json(&self, words: &[&str]) -> Result<Value, Problem> {
        let text = self.fine(&[words, &["--output", "json"]].concat())?;
        serde_json::from_str(&text).map_err(|error| Problem::of(&format!("what keelway {} says", words.join(" ")), error))
    }

    /// Events of a context, oldest first, as soon as they are as wanted.
    pub fn events(&self, project: &str, context: &str, wanted: impl Fn(&[Value]) -> bool) -> Result<Vec<Value>, Problem> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let read = || -> Result<Vec<Value>, Problem> {
            let found = self.json(&["get", "events", "--context", context, "--project", project])?;
            let events = found.as_array().or_else(|| found["items"].as_array());
            let mut events = events.cloned().ok_or_else(|| Problem(format!("no list of events: {found}")))?;
            events.sort_by_key(|event| text(&event["time"]));
            Ok(events)
        };
        let what = format!("events of {context}");
        until(&what, || Ok(Some(read()?).filter(|events| wanted(events))), || format!("{:#?}", read()))
    }

    /// `keelway executor` for these tasks of a project.
    pub fn executor(&self, name: &str, tasks: &[&str], project: &str, command: &[&str]) -> Result<Running, Problem> {
        let mut words = vec!["executor", "--name", name, "--project", project];
        words.extend(tasks.iter().flat_map(|task| ["--on", task]));
        words.push("--");
        words.extend(command);
        self.serve(&words)
    }

    /// `keelway deployer` for what `scope` names.
    pub fn deployer(&self, name: &str, scope: &[&str], command: &[&str]) -> Result<Running, Problem> {
        self.serve(&[&["deployer", "--name", name, "--poll", "200ms"], scope, &["--"], command].concat())
    }

    /// The metric store over a file of figures, and its URL.
    pub fn figures(&self, file: &str) -> Result<(Running, String), Problem> {
        self.figures_for(file, &[])
    }

    /// The same with more words of its command.
    pub fn figures_for(&self, file: &str, words: &[&str]) -> Result<(Running, String), Problem> {
        let script = repository().join("infra/local/figures.py");
        let mut command = Command::new(std::env::var("KEELWAY_VENV_PYTHON").unwrap_or_else(|_| "python3".into()));
        command.current_dir(repository()).arg(script).arg(file).args(words).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| Problem::of("figures.py", error))?;
        let out = child.stdout.take().ok_or("figures.py has no output")?;
        let running = Running(Some(child));
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url).map_err(|error| Problem::of("figures.py", error))?;
        Ok((running, url.trim().to_owned()))
    }

    /// The same, with a source of metrics applied that asks it: `source` is a manifest, in which the port stands for the store's.
    pub fn store(&self, file: &str, source: &str) -> Result<Running, Problem> {
        let (running, url) = self.figures(file)?;
        let text = std::fs::read_to_string(repository().join(source)).map_err(|error| Problem::of(source, error))?;
        let (before, port) = text.split_once("http://127.0.0.1:").ok_or_else(|| Problem(format!("{source} names no store")))?;
        let rest = port.trim_start_matches(|c: char| c.is_ascii_digit());
        let applied = self.0.stack.wait(self.0.stack.api().apply(None, &format!("{before}{url}{rest}")))?;
        applied.fine(source)?;
        Ok(running)
    }

    /// A command that runs until it is told to end.
    fn serve(&self, words: &[&str]) -> Result<Running, Problem> {
        let mut command = self.command(words)?;
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(Running(Some(command.spawn().map_err(|error| Problem::of(&format!("keelway {}", words[0]), error))?)))
    }
}

/// Reads beside the process, which would wait for a full pipe for ever.
fn read(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = vec![];
        // What could be read before the error is what there is to show.
        drop(from.read_to_end(&mut bytes));
        bytes
    })
}

fn wait(mut child: Child, what: &str) -> Result<Output, Problem> {
    let (stdout, stderr) = (child.stdout.take().map(read), child.stderr.take().map(read));
    let said = |pipe: Option<JoinHandle<Vec<u8>>>| pipe.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let ended = until(
        &format!("the end of keelway {what}"),
        || child.try_wait().map_err(|error| Problem::of(what, error)),
        || "it runs".into(),
    );
    if ended.is_err() {
        terminate(&mut child);
        drop(child.wait());
    }
    let (stdout, stderr) = (said(stdout), said(stderr));
    match ended {
        Ok(status) => Ok(Output { status, stdout, stderr }),
        Err(problem) => Err(format!("{problem}; it said:\n{}", String::from_utf8_lossy(&[stdout, stderr].concat())).into()),
    }
}

fn terminate(child: &mut Child) {
    let asked = Command::new("kill").arg(child.id().to_string()).status();
    if !asked.is_ok_and(|status| status.success()) {
        drop(child.kill());
    }
}

/// A process that ends with the test.
pub struct Running(Option<Child>);

impl Running {
    /// Asks it to end, as a service manager does; it must end with 0.
    pub fn end(mut self) -> Result<(), Problem> {
        let mut child = self.0.take().ok_or("it has ended")?;
        terminate(&mut child);
        let end = wait(child, "executor or deployer after SIGTERM")?;
        let said = String::from_utf8_lossy(&end.stderr).into_owned();
        ensure(end.status.success(), || format!("it ended with {}: {said}", end.status))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
