//! One cloud for the process, and its end, whatever happens.

use crate::endpoint::{self, Place, Wish};
use crate::patience::{LAST_LIMIT, until};
use crate::problem::Problem;
use crate::raw::Raw;
use crate::stack::Stack;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, Runtime};

/// What not every endpoint can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ability {
    /// Run functions on events and behind a URL.
    Functions,
    /// Refuse who may not.
    Permissions,
    /// Tell which role did what.
    Records,
    /// Fire one-time schedules.
    Schedules,
    /// Let us see and end the processes of functions.
    Processes,
    /// Show pages in a real browser: of this machine, not of the endpoint.
    Browser,
}

impl Ability {
    /// What is missing without it.
    pub fn missing(self) -> &'static str {
        match self {
            Ability::Functions => "the endpoint cannot run functions",
            Ability::Permissions => "the endpoint does not enforce permissions",
            Ability::Records => "the endpoint does not record which role does what",
            Ability::Schedules => "the endpoint does not fire schedules",
            Ability::Processes => "the endpoint's function processes are out of reach",
            Ability::Browser => {
                "there is no chromium or no chromedriver on PATH: `apt-get install chromium-headless-shell chromium-driver` on Debian"
            }
        }
    }
}

/// A running cloud. Ended by [`Cloud::stop`], or by itself when this process ends in any other way.
pub struct Cloud {
    /// Its URL.
    pub endpoint: String,
    // Before the runtime, which ends with this value, too: the end of a container needs one.
    place: Place,
    runtime: Runtime,
    raw: Raw,
    state: PathBuf,
    stacks: Mutex<Vec<String>>,
    keeper: Mutex<Option<Child>>,
    abilities: Vec<Ability>,
    /// Takes a while to find out, so it is asked for at the start and looked at when somebody needs to know.
    schedules: Mutex<Schedules>,
}

enum Schedules {
    Asked(tokio::task::JoinHandle<bool>),
    Known(bool),
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the binaries of the functions and the CLI are: beside this executable.
pub fn binaries() -> Result<PathBuf, Problem> {
    let exe = std::env::current_exe().map_err(|error| Problem::of("this executable's own path", error))?;
    let beside = |dir: &Path| dir.join("keelway-sequences").exists();
    let found = exe.ancestors().skip(1).take(3).find(|dir| beside(dir)).map(Path::to_owned);
    found.ok_or_else(|| "the functions are not built: run `cargo build --workspace --all-targets` first".into())
}

/// Where the functions to deploy are: those of the build, or packages that `KEELWAY_TEST_FUNCTIONS` names.
fn functions() -> Result<PathBuf, Problem> {
    std::env::var_os("KEELWAY_TEST_FUNCTIONS").filter(|named| !named.is_empty()).map_or_else(binaries, |named| Ok(named.into()))
}

fn script() -> Command {
    let script = std::env::var_os("KEELWAY_CLOUD_PY").map_or_else(|| repository().join("infra/local/cloud.py"), PathBuf::from);
    let mut command = Command::new(std::env::var_os("PYTHON").unwrap_or("python3".into()));
    command.arg(script).stdin(Stdio::null());
    // The script asks and is answered on loopback; these would lead it elsewhere.
    for name in ["AWS_PROFILE", "AWS_ENDPOINT_URL", "KEELWAY_STATE", "KEELWAY_PORT"] {
        command.env_remove(name);
    }
    command
}

fn output(mut command: Command, what: &str) -> Result<String, Problem> {
    let done =
        command.output().map_err(|error| Problem::of(&format!("cloud.py {what} cannot be run (is there a python3?)"), error))?;
    if !done.status.success() {
        return Err(format!("cloud.py {what}: {}", String::from_utf8_lossy(&done.stderr).trim()).into());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// What `cloud.py env` prints for the stack in a state directory: the variables of a shell.
///
/// # Errors
/// In the words of the script.
pub fn variables(state: &Path) -> Result<String, Problem> {
    let mut command = script();
    command.arg("env").arg("--state").arg(state);
    output(command, "env")
}

impl Cloud {
    /// Finds or starts the cloud.
    ///
    /// # Errors
    /// When there is none to be had.
    pub fn start() -> Result<Self, Problem> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|error| Problem::of("the runtime", error))?;
        let wish = endpoint::wish(&|name: &str| std::env::var(name).ok())?;
        let state =
            tempfile::Builder::new().prefix("keelway-test-").tempdir().map_err(|error| Problem::of("a state directory", error))?;
        let state = state.keep();
        let keeper = keeper(&state, &wish)?;
        let place = endpoint::place(wish, &state, runtime.handle())?;
        let endpoint = match &place {
            Place::Given { url, .. } => url.trim_end_matches('/').to_owned(),
            Place::Container(container) => container.url.clone(),
            Place::Own => {
                let mut command = script();
                command.arg("start").arg("--state").arg(&state);
                output(command, "start")?.trim().to_owned()
            }
        };
        let raw = Raw::new(&endpoint, "us-east-1");
        let mut cloud = Self {
            endpoint,
            place,
            runtime,
            raw,
            state,
            stacks: Mutex::default(),
            keeper: Mutex::new(Some(keeper)),
            abilities: vec![],
            schedules: Mutex::new(Schedules::Known(false)),
        };
        cloud.wait_ready()?;
        cloud.abilities = cloud.probe();
        if !cloud.abilities.contains(&Ability::Schedules) {
            let raw = cloud.raw.clone();
            let asked = cloud.runtime.spawn(async move {
                fires_schedules(&raw).await.unwrap_or_else(|problem| {
                    eprintln!("probing schedules: {problem}");
                    false
                })
            });
            cloud.schedules = Mutex::new(Schedules::Asked(asked));
        }
        Ok(cloud)
    }

    /// The runtime everything asynchronous runs on.
    pub fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Requests without a client of their own.
    pub fn raw(&self) -> &Raw {
        &self.raw
    }

    /// The state directory of `cloud.py`.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Whether the endpoint can do this.
    pub fn can(&self, ability: Ability) -> bool {
        if ability != Ability::Schedules || self.abilities.contains(&ability) {
            return self.abilities.contains(&ability);
        }
        let mut schedules = self.schedules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Schedules::Asked(answer) = &mut *schedules {
            *schedules = Schedules::Known(self.runtime.block_on(answer).unwrap_or(false));
        }
        matches!(*schedules, Schedules::Known(true))
    }

    fn wait_ready(&self) -> Result<(), Problem> {
        let ask = || self.handle().block_on(self.raw.json("dynamodb", "DynamoDB_20120810.ListTables", &json!({})));
        let so_far = || ask().err().map_or("an answer at last".to_owned(), |problem| problem.0);
        until(&format!("an answer of the cloud at {}", self.endpoint), || Ok(ask().ok().map(drop)), so_far)
    }

    /// What this endpoint can do; [`Ability::Functions`] follows when a stack is deployed.
    fn probe(&self) -> Vec<Ability> {
        let handle = self.handle();
        let mut found = vec![];
        let tables = "DynamoDB_20120810.ListTables";
        if handle.block_on(self.raw.json_as("AKIANOBODYHASTHISKEY", "dynamodb", tables, &json!({}))).is_err() {
            found.push(Ability::Permissions);
        }
        // Known of infra/local: it fires schedules, our own launcher records, and its processes are children of this machine.
        match &self.place {
            Place::Own => found.extend([Ability::Schedules, Ability::Records, Ability::Processes]),
            Place::Container(container) => {
                found.extend([Ability::Schedules, Ability::Records]);
                found.extend(container.shows_processes().then_some(Ability::Processes));
            }
            Place::Given { .. } => {}
        }
        found
    }

    /// Deploys the template with these parameters, or finds it deployed.
    ///
    /// # Errors
    /// In the words of the script.
    pub fn deploy(&self, name: &str, parameters: &[(&str, &str)]) -> Result<(Stack, String), Problem> {
        self.deploy_build(&functions()?, name, parameters)
    }

    /// The same with the functions of another build: a directory of binaries.
    ///
    /// # Errors
    /// In the words of the script.
    pub fn deploy_build(&self, build: &Path, name: &str, parameters: &[(&str, &str)]) -> Result<(Stack, String), Problem> {
        let mut command = script();
        command.args(["deploy", "--stack", name]).arg("--state").arg(&self.state).arg("--functions").arg(build);
        // The state directory says where the others are.
        if let Place::Given { url, remote } = &self.place {
            command.args(["--endpoint", url]);
            if *remote {
                command.arg("--allow-remote");
            }
        }
        for (key, value) in parameters {
            command.arg("--parameter").arg(format!("{key}={value}"));
        }
        let mut stacks = self.stacks.lock().unwrap_or_else(PoisonError::into_inner);
        if !stacks.iter().any(|known| known == name) {
            stacks.push(name.to_owned());
        }
        drop(stacks);
        let done = command.output().map_err(|error| Problem::of("cloud.py deploy", error))?;
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        if !done.status.success() {
            return Err(format!("cloud.py deploy: {said}").into());
        }
        let outputs: Value = serde_json::from_slice(&done.stdout).map_err(|error| Problem::of("the stack's outputs", error))?;
        let token = std::fs::read_to_string(self.state.join("token")).map_err(|error| Problem::of("the token", error))?;
        let stack = Stack::new(&outputs, token.trim(), self.handle())?;
        Ok((stack, said))
    }

    /// Publishes Python modules as the next versions of a function: `{"versions": their ARNs}`.
    ///
    /// # Errors
    /// In the words of the script.
    pub fn function(&self, stack: &str, name: &str, modules: &[&str]) -> Result<Value, Problem> {
        let modules: Vec<(String, &str)> = modules.iter().enumerate().map(|(n, module)| (n.to_string(), *module)).collect();
        self.code(&["function", name, "--stack", stack], &modules)
    }

    /// Puts Python modules into a bucket as packages `<name>.zip`: `[{"image", "version", "digest"}]`.
    ///
    /// # Errors
    /// In the words of the script.
    pub fn packages(&self, bucket: &str, modules: &[(String, &str)]) -> Result<Value, Problem> {
        self.code(&["package", bucket], modules)
    }

    /// A verb of the script that takes modules, by their names.
    fn code(&self, words: &[&str], modules: &[(String, &str)]) -> Result<Value, Problem> {
        let trouble = |error: std::io::Error| Problem::of("the modules of a function", error);
        let directory = tempfile::tempdir().map_err(trouble)?;
        let mut command = script();
        command.args(words).arg("--state").arg(&self.state);
        for (name, module) in modules {
            let path = directory.path().join(format!("{name}.py"));
            std::fs::write(&path, module).map_err(trouble)?;
            command.arg(path);
        }
        serde_json::from_str(&output(command, words[0])?).map_err(|error| Problem::of(&format!("what {} made", words[0]), error))
    }

    /// What `cloud.py recorded` says about a stack.
    ///
    /// # Errors
    /// In the words of the script.
    pub fn recorded(&self, stack: &str) -> Result<Value, Problem> {
        let mut command = script();
        command.args(["recorded", "--stack", stack]).arg("--state").arg(&self.state);
        serde_json::from_str(&output(command, "recorded")?).map_err(|error| Problem::of("recorded", error))
    }

    /// What `cloud.py models` says about a stack: what was checked with AWS's service models, and what they do not allow.
    ///
    /// # Errors
    /// In the words of the script.
    pub fn models(&self, stack: &str) -> Result<Value, Problem> {
        let mut command = script();
        command.args(["models", "--stack", stack]).arg("--state").arg(&self.state);
        serde_json::from_str(&output(command, "models")?).map_err(|error| Problem::of("models", error))
    }

    /// What `cloud.py actions` says the template allows.
    ///
    /// # Errors
    /// In the words of the script.
    pub fn allowed(&self) -> Result<Value, Problem> {
        let mut command = script();
        command.arg("actions");
        serde_json::from_str(&output(command, "actions")?).map_err(|error| Problem::of("actions", error))
    }

    /// Ends what was started, and waits for it. A stack on an endpoint somebody else runs is deleted.
    pub fn stop(&self) {
        if let Place::Given { url, remote } = &self.place {
            for stack in self.stacks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                let mut command = script();
                command.args(["undeploy", "--stack", &stack, "--endpoint", url]).arg("--state").arg(&self.state);
                if *remote {
                    command.arg("--allow-remote");
                }
                if let Err(problem) = output(command, "undeploy") {
                    eprintln!("stack {stack} stays at {url}: {problem}");
                }
            }
        }
        if let Place::Container(container) = &self.place {
            container.end();
        }
        if let Some(mut keeper) = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take() {
            drop(keeper.stdin.take());
            if let Err(error) = keeper.wait() {
                eprintln!("the end of the cloud: {error}");
            }
        }
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A process that waits for the end of this one, however it comes, and then ends the cloud and removes its state.
fn keeper(state: &Path, wish: &Wish) -> Result<Child, Problem> {
    use std::os::unix::process::CommandExt;
    let stop = script();
    let program = stop.get_program().to_owned();
    let arguments: Vec<_> = stop.get_args().map(ToOwned::to_owned).collect();
    let end = if matches!(wish, Wish::Given(..)) { "" } else { r#""$@" stop --state "$0" >/dev/null 2>&1; "# };
    let mut keeper = Command::new("sh");
    keeper.arg("-c").arg(format!(r#"cat >/dev/null; {end}rm -rf "$0""#)).arg(state).arg(program).args(arguments);
    // A group of its own: what interrupts this process from a terminal must not end its keeper.
    keeper.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
    keeper.spawn().map_err(|error| Problem::of("a process that ends the cloud later", error))
}

/// A one-time schedule a second ahead, to a queue.
async fn fires_schedules(raw: &Raw) -> Result<bool, Problem> {
    let name = format!("keelway-probe-{}", std::process::id());
    let sqs = |operation: &str| format!("AmazonSQS.{operation}");
    let made = raw.json("sqs", &sqs("CreateQueue"), &json!({"QueueName": name})).await?;
    let url = made["QueueUrl"].clone();
    let asked = json!({"QueueUrl": url, "AttributeNames": ["QueueArn"]});
    let arn = raw.json("sqs", &sqs("GetQueueAttributes"), &asked).await?["Attributes"]["QueueArn"].clone();
    let at = keelway_domain::time::Timestamp(now_millis() + 1000).rfc3339();
    let body = json!({
        "ScheduleExpression": format!("at({})", &at[..19]), "FlexibleTimeWindow": {"Mode": "OFF"}, "ActionAfterCompletion": "DELETE",
        "Target": {"Arn": arn, "RoleArn": "arn:aws:iam::000000000000:role/keelway-probe", "Input": "probe"},
    });
    raw.rest("scheduler", &format!("/schedules/{name}"), &body).await?;
    let (start, mut fired) = (Instant::now(), false);
    while !fired && start.elapsed() < LAST_LIMIT {
        let got = raw.json("sqs", &sqs("ReceiveMessage"), &json!({"QueueUrl": url})).await?;
        fired = got["Messages"].as_array().is_some_and(|messages| !messages.is_empty());
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    raw.json("sqs", &sqs("DeleteQueue"), &json!({"QueueUrl": url})).await?;
    Ok(fired)
}

/// Milliseconds since 1970.
pub fn now_millis() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
