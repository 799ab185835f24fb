//! Git hosts: the strict one with the real client, and one in memory for many pipelines.

use super::stand::{HOST, TOKEN, name};
use crate::cost::number;
use keelway_cloud_tests::Problem;
use keelway_domain::promotions::definition::{PullRequest, Strategy};
use keelway_domain::promotions::{AttemptResult, Closed, Made, Seen};
use keelway_engine::ports::PortError;
use keelway_engine::promotions::Promotions;
use keelway_engine::promotions::attempts::{Outside, Sight, Task};
use keelway_githost::{Form, Host, Method, Options};
use keelway_world::at_once::AtOnce;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

/// The number of pipelines that share a repository.
pub const SHARING: usize = 10;

/// The forms of the strict host that are measured, with their names in manifests.
pub const FORMS: [(Form, &str); 2] = [(Form::Gitea, "gitea"), (Form::GitHub, "github")];

fn repository(n: usize) -> String {
    format!("bench/config-{}", n / SHARING)
}

/// The strategy by which the `n`-th pipeline opens pull requests.
pub fn by_request(n: usize, form: &str) -> Strategy {
    let url = format!("https://{HOST}/{}", repository(n));
    Strategy::PullRequest(PullRequest { host: form.into(), url, base_branch: "main".into(), secret: "git".into(), merge: false })
}

/// A strict git host. It stops when this is dropped.
pub struct Strict {
    host: Host,
    form: (Form, &'static str),
    _directory: TempDir,
}

impl Strict {
    /// Starts a host with the repositories of this many pipelines: one file for each environment.
    pub fn start(form: (Form, &'static str), pipelines: usize, environments: &[String]) -> Result<Self, Problem> {
        let directory = tempfile::tempdir().map_err(|error| Problem::of("a directory for the git host", error))?;
        let options = Options { form: form.0, ..Options::new(directory.path(), TOKEN) };
        let host = Host::start(options).map_err(|error| Problem::of("the git host", error))?;
        for first in (0..pipelines).step_by(SHARING) {
            let mut files = vec![];
            for n in first..pipelines.min(first + SHARING) {
                files.extend(environments.iter().map(|environment| {
                    let marker = format!("{{\"$promotion\": \"bench:{}:{environment}\"}}", name(n));
                    (format!("{}/{environment}.yaml", name(n)), format!("version: v1 # {marker}\n"))
                }));
            }
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            host.people().create(&repository(first), &files).map_err(|error| Problem::of("a repository", error))?;
        }
        Ok(Self { host, form, _directory: directory })
    }

    pub fn form(&self) -> &'static str {
        self.form.1
    }

    pub fn api(&self) -> String {
        self.host.api(self.form.0)
    }

    /// Merges a pull request of the `n`-th pipeline, as a person does.
    pub fn merge(&self, n: usize, request: u64) -> Result<(), Problem> {
        self.host.people().merge(&repository(n), request, Method::Squash).map(drop).map_err(|error| Problem::of("a merge", error))
    }

    /// The calls since the last time, and those of them that changed something. Fails if the host found a violation.
    pub fn calls(&self) -> Result<(f64, f64), Problem> {
        if let Some(violation) = self.host.violations().first() {
            return Err(format!("the git host refuses a request: {violation:?}").into());
        }
        let calls = self.host.take_calls();
        let writes = calls.iter().filter(|call| call.wrote).count();
        Ok((number(calls.len() as u64), number(writes as u64)))
    }
}

/// A host in memory. It gets as many operations as the real one; the HTTP requests of an operation are counted at the strict host.
#[derive(Clone)]
pub struct Memory {
    pipelines: Arc<Promotions<AtOnce>>,
    books: Arc<Mutex<Books>>,
}

#[derive(Debug, Default)]
struct Books {
    open: HashSet<u64>,
    writes: u64,
}

impl Memory {
    pub fn new(pipelines: Promotions<AtOnce>) -> Self {
        Self { pipelines: Arc::new(pipelines), books: Arc::default() }
    }

    /// The number of changes at the host.
    pub fn writes(&self) -> f64 {
        number(self.books().writes)
    }

    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A caller reads the host's definition from the table first.
    async fn find(&self) -> Result<(), PortError> {
        self.pipelines.git_host_of(HOST).await.map(drop)
    }
}

impl Outside for Memory {
    async fn carry_out(&self, task: &Task) -> Result<AttemptResult, PortError> {
        self.find().await?;
        let mut books = self.books();
        if books.open.insert(task.identity()) {
            books.writes += 1;
        }
        Ok(AttemptResult::Created(Made::PullRequest {
            number: books.writes,
            url: format!("https://{HOST}/pulls/{}", books.writes),
            branch: format!("promotions/{}/{:016x}", task.attempt.environment, task.identity()),
            head: format!("{:040x}", task.identity()),
            mergeable: Some(true),
        }))
    }

    async fn take_back(&self, task: &Task, _: &str) -> Result<Closed, PortError> {
        self.find().await?;
        let mut books = self.books();
        if books.open.remove(&task.identity()) {
            books.writes += 1;
        }
        Ok(Closed::Closed)
    }

    async fn follow(&self, _: &Task) -> Result<Option<Seen>, PortError> {
        Ok(None)
    }

    async fn look(&self, _: &str, tasks: &[Task], _: Option<&str>) -> Result<Sight, PortError> {
        self.find().await?;
        let books = self.books();
        let state = |task: &Task| (!books.open.contains(&task.identity())).then(|| Seen::Closed("it is not there".into()));
        Ok(Sight { requests: tasks.iter().map(state).collect(), failed: vec![], mark: Some("\"mark\"".into()), not_before: None })
    }
}
