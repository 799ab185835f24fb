//! The strict host as the cases of promotions use it: the repository of a case, its faults, and the acts of people; and the log of
//! requests, read as Keelway's acts. Every change that no logged request explains is reported: a second pull request or comment, a
//! branch that was left over, unexpected content.

mod log;
mod settle;

use keelway_domain::ids::hash64;
use keelway_domain::time::{Span, Timestamp};
use keelway_githost::{Form, Host, Method, NewRepository, Options, Pull, Refused, State};
use keelway_world::promotions::host::{Call, Deed, GitHost, Repository, Trouble, Troubles, Verb, Word};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// The repository of the cases.
pub const REPOSITORY: &str = "shop/config";
/// The user of Keelway's requests.
const USER: &str = "keelway";
/// The branches to merge into. `trunk` always exists, whatever a case does with the others.
const BASES: [&str; 2] = ["main", "release"];
/// The environments with a file.
const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "prod"];

/// The promotion of a pull request.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Of {
    /// `<namespace>/<pipeline>`.
    pub pipeline: String,
    pub environment: String,
    pub revision: String,
    pub run: u64,
}

/// One operation of a client.
#[derive(Debug, Clone)]
pub struct Act<'a> {
    /// The kinds of calls that it may make, which faults may hit.
    pub verbs: &'a [Verb],
    /// The promotion that it is for, if there is one.
    pub of: Option<Of>,
    /// The time in the world, from which `Retry-After` counts.
    pub now: Timestamp,
}

/// The host of one case, with its repository. Clones are the same host.
#[derive(Clone)]
pub struct CaseHost(Arc<Inner>);

struct Inner {
    host: Host,
    form: Form,
    url: String,
    namespace: String,
    pipelines: Vec<String>,
    books: Mutex<Books>,
    _directory: TempDir,
}

/// The state of the comparison.
#[derive(Default)]
struct Books {
    repository: Repository,
    troubles: BTreeMap<Verb, Troubles>,
    calls: Vec<Call>,
    reads: u64,
    shown: (usize, u64),
    /// The pull requests at the time of the last comparison.
    known: BTreeMap<u64, Pull>,
    /// The promotions of Keelway's pull requests.
    of: BTreeMap<u64, Of>,
    broken: Vec<String>,
}

impl CaseHost {
    /// Starts a host of this form, with the repository at `https://<name>/…`, for these pipelines of a namespace.
    ///
    /// # Errors
    /// The host cannot be started.
    pub fn start(form: Form, name: &str, token: &str, (namespace, pipelines): (&str, &[&str])) -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let host = Host::start(Options { form, ..Options::new(directory.path(), token) }).map_err(|error| error.to_string())?;
        let path = if form == Form::Bitbucket { format!("scm/{REPOSITORY}") } else { REPOSITORY.to_owned() };
        let all = Self(Arc::new(Inner {
            host,
            form,
            url: format!("https://{name}/{path}"),
            namespace: namespace.to_owned(),
            pipelines: pipelines.iter().map(|&name| name.to_owned()).collect(),
            books: Mutex::default(),
            _directory: directory,
        }));
        all.create().map_err(|refused| refused.to_string())?;
        Ok(all)
    }

    fn create(&self) -> Result<(), Refused> {
        let of = |alias: &String| {
            ENVIRONMENTS.map(|environment| (path(alias, environment), self.text(alias, environment, ("v1", true))))
        };
        let (owner, name) = REPOSITORY.split_once('/').unwrap_or_default();
        let new = NewRepository {
            owner: owner.into(),
            name: name.into(),
            private: true,
            default_branch: Some("trunk".into()),
            files: self.0.pipelines.iter().flat_map(of).collect(),
            ..Default::default()
        };
        self.0.host.people().create_repository(&new)?;
        BASES.iter().try_for_each(|base| self.0.host.people().branch(REPOSITORY, base, "trunk"))
    }

    /// The host itself.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// The base of its API.
    pub fn api(&self) -> String {
        self.0.host.api(self.0.form)
    }

    /// Whether there are credentials for it.
    pub fn has_credentials(&self) -> bool {
        self.books().repository.credentials != Some(false)
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of an environment, with or without the marker.
    fn text(&self, alias: &str, environment: &str, (version, marked): (&str, bool)) -> String {
        let marker = format!(" # {{\"$promotion\": \"{}:{alias}:{environment}\"}}", self.0.namespace);
        format!("# podinfo in {environment}\nimage:\n  name: podinfo\n  tag: {version}{}\n", if marked { &marker } else { "" })
    }

    /// The next fault of calls of this kind.
    pub fn trouble(&self, verb: Verb) -> Option<Trouble> {
        self.books().troubles.get(&verb).and_then(Troubles::next).cloned()
    }

    /// Records that the fault has happened.
    pub fn went_wrong(&self, verb: Verb) {
        drop(self.books().troubles.get_mut(&verb).and_then(Troubles::take));
    }

    /// Records a call that this host does not log.
    pub fn note(&self, call: Call) {
        self.books().calls.push(call);
    }

    /// Records a violation.
    pub fn complain(&self, what: impl Into<String>) {
        self.books().broken.push(what.into());
    }

    /// Runs an operation of a client with the case's next fault. `true`: the client was stopped before it could report the result.
    pub fn during<T>(&self, act: &Act<'_>, run: impl FnOnce() -> T) -> (T, bool) {
        let trouble = act.verbs.iter().find_map(|verb| Some((*verb, self.trouble(*verb)?)));
        if let Some((verb, trouble)) = &trouble {
            self.plant(*verb, trouble, act.now);
        }
        let done = run();
        self.0.host.heal();
        if let Some((Verb::Merge, Trouble::Word(Word::Refused))) = trouble {
            self.allow(&[Method::Merge, Method::Squash]);
        }
        let hit = self.settle(act.of.as_ref(), trouble.as_ref());
        if let Some((verb, _)) = &trouble
            && hit
        {
            self.went_wrong(*verb);
        }
        let stopped = hit && matches!(trouble, Some((_, Trouble::Word(Word::Killed))));
        (done, stopped)
    }

    fn allow(&self, methods: &[Method]) {
        if let Err(refused) = self.0.host.people().allow(REPOSITORY, methods) {
            self.complain(refused.to_string());
        }
    }

    fn plant(&self, verb: Verb, trouble: &Trouble, now: Timestamp) {
        if (verb, trouble) == (Verb::Merge, &Trouble::Word(Word::Refused)) {
            return self.allow(&[Method::Squash]);
        }
        if let Some(fault) = log::fault(self.0.form, verb, trouble, |after| seconds_until(now + after)) {
            // A look is one operation, whatever the number of its requests.
            self.0.host.fail(if verb == Verb::Look { fault.times(u64::MAX) } else { fault });
        }
    }

    /// The promotion, the base and the changed file of one of Keelway's pull requests.
    fn place(&self, number: u64) -> Result<(Of, Pull, String), String> {
        let of = self.books().of.get(&number).cloned().ok_or_else(|| format!("{number} is no pull request of Keelway's"))?;
        let pull = self.0.host.people().pull(REPOSITORY, number).map_err(|refused| refused.to_string())?;
        let file = path(of.pipeline.split('/').next_back().unwrap_or_default(), &of.environment);
        Ok((of, pull, file))
    }

    fn act(&self, deed: Deed, number: u64) -> Result<(), String> {
        let people = self.0.host.people();
        let (of, pull, file) = self.place(number)?;
        let alias = of.pipeline.split('/').next_back().unwrap_or_default();
        let text = |version: &str| self.text(alias, &of.environment, (version, true)).into_bytes();
        let done = match deed {
            Deed::Merge => match people.merge(REPOSITORY, number, Method::Merge) {
                // The person who merges resolves the conflict first.
                Err(Refused::Conflict(_)) => people
                    .force_push(REPOSITORY, number, "Resolved", &[(&file, Some(&text(&of.revision)))])
                    .and_then(|_| people.merge(REPOSITORY, number, Method::Merge))
                    .map(drop),
                done => done.map(drop),
            },
            Deed::Close => people.close(REPOSITORY, number),
            Deed::Reopen => people.reopen(REPOSITORY, number),
            Deed::Push => people.force_push(REPOSITORY, number, "By hand", &[(&file, Some(&text("by-hand")))]).map(drop),
            Deed::Conflict => people.commit(REPOSITORY, &pull.base, "By hand", &[(&file, Some(&text("v1-by-hand")))]).map(drop),
            Deed::Edit => people.edit(REPOSITORY, number, Some("something else"), Some("something else")),
        };
        done.map_err(|refused| refused.to_string())
    }

    fn apply(&self, with: &Repository) -> Result<(), Refused> {
        let people = self.0.host.people();
        if with.base == Some(false) {
            people.delete_branch(REPOSITORY, BASES[0])?;
        } else if with.base == Some(true) {
            people.branch(REPOSITORY, BASES[0], "trunk")?;
        }
        let marked = |environment: &str| with.markers.as_ref().is_none_or(|all| all.iter().any(|one| one == environment));
        let changed = |environment: &&str| with.markers.is_some() || with.carries.contains_key(*environment);
        for base in BASES.iter().filter(|_| with.base != Some(false)) {
            let mut files = vec![];
            for alias in &self.0.pipelines {
                for environment in ENVIRONMENTS.iter().filter(|one| changed(one)) {
                    let file = path(alias, environment);
                    let now = String::from_utf8_lossy(&people.file(REPOSITORY, base, &file)?).into_owned();
                    let version = with.carries.get(*environment).map_or(settle::version(&now), String::as_str);
                    let wanted = self.text(alias, environment, (version, marked(environment)));
                    files.extend((wanted != now).then_some((file, wanted)));
                }
            }
            if !files.is_empty() {
                let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), Some(text.as_bytes()))).collect();
                people.commit(REPOSITORY, base, "Changed", &files)?;
            }
        }
        (0..with.crowd).try_for_each(|n| self.join(n))
    }

    /// Another person opens a pull request.
    fn join(&self, n: u64) -> Result<(), Refused> {
        let people = self.0.host.people();
        let head = format!("others-{n}");
        if n == 0 {
            people.commit(REPOSITORY, "others", "Something else", &[("others.txt", Some(b"something else\n"))])?;
        }
        people.branch(REPOSITORY, &head, "others")?;
        people.open(REPOSITORY, &head, BASES[0], "Something else").map(drop)
    }
}

impl GitHost for CaseHost {
    fn url(&self) -> String {
        self.0.url.clone()
    }
    fn form(&self) -> &str {
        word(self.0.form)
    }
    fn change(&mut self, with: &Repository) {
        if let Err(refused) = self.apply(with) {
            self.complain(format!("the repository could not be changed: {refused}"));
        }
        let mut books = self.books();
        books.repository.credentials = with.credentials.or(books.repository.credentials);
        drop(books);
        self.remember();
    }
    fn fail(&mut self, verb: Verb, troubles: &Troubles) {
        self.books().troubles.insert(verb, troubles.clone());
    }
    fn person(&mut self, deed: Deed, number: u64) -> Result<(), String> {
        self.settle(None, None);
        self.act(deed, number)?;
        self.remember();
        Ok(())
    }
    fn calls(&self) -> Vec<Call> {
        self.books().calls.clone()
    }
    fn fresh(&mut self) -> (Vec<Call>, u64) {
        self.settle(None, None);
        let mut books = self.books();
        let all = (books.calls.len(), books.reads);
        let (calls, reads) = std::mem::replace(&mut books.shown, all);
        (books.calls[calls..].to_vec(), books.reads - reads)
    }
    fn broken(&mut self) -> Vec<String> {
        let violations = self.0.host.take_violations().into_iter().map(|found| format!("{found:?}"));
        self.books().broken.drain(..).chain(violations).collect()
    }
    fn request(&self, number: u64) -> Option<Value> {
        let pull = self.0.host.people().pull(REPOSITORY, number).ok()?;
        let of = self.books().of.get(&number).cloned()?;
        let state = match pull.state {
            State::Open => "open",
            State::Closed => "closed",
            State::Merged => "merged",
        };
        let comments: Vec<&str> = pull.comments.iter().map(|comment| comment.body.as_str()).collect();
        Some(json!({
            "state": state, "pipeline": of.pipeline, "environment": of.environment, "revision": of.revision, "branch": pull.head,
            "base": pull.base, "repository": self.0.url, "title": pull.title, "comments": comments,
        }))
    }
}

/// The form on which a case is told, of those that can: chosen by its id, so that a new case moves no other one.
pub fn form_of(id: &str, forms: &[Form], can: impl Fn(Form) -> bool) -> Option<Form> {
    let first = hash64(&[b"form", id.as_bytes()]) % forms.len().max(1) as u64;
    forms.iter().cycle().skip(first as usize).take(forms.len()).copied().find(|form| can(*form))
}

/// The name of a form in pipelines.
pub fn word(form: Form) -> &'static str {
    match form {
        Form::GitHub => "github",
        Form::Gitea => "gitea",
        Form::GitLab => "gitlab",
        Form::Bitbucket => "bitbucket-server",
    }
}

fn path(alias: &str, environment: &str) -> String {
    format!("apps/{alias}/{environment}.yaml")
}

/// Whole seconds on this machine's clock until a time in the world. Clients count them from now.
fn seconds_until(at: Timestamp) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let left = at.0 - i64::try_from(now).unwrap_or_default();
    u64::try_from(Span(left.max(0)).0).unwrap_or_default().div_ceil(1000)
}
