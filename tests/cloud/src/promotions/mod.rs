//! Cases of promotions on the deployed stack: facts go over the real bus and the real API, pull requests to a strict git host, and
//! time is real. As in [`crate::stand`], a step is over when nothing that it set off is under way any more, as the functions' logs
//! tell.

mod calls;
mod commands;
mod sequences;

use crate::api::{Reply, project_manifest};
use crate::cloud::now_millis;
use crate::events::fresh;
use crate::line::Line;
use crate::observer::{Observer, Seen};
use crate::problem::Problem;
use crate::raw::Raw;
use crate::stack::Stack;
use crate::stand::{rest, said, text};
use keelway_domain::note::Note;
use keelway_domain::promotions::{Command, NEEDED, Past, Pipeline};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::promotions::{Address, Message, keys};
use keelway_engine::protocol::{Handled, Loaded};
use keelway_githost::Form;
use keelway_githost_cases::{CaseHost, word};
use keelway_world::case::{Answer, Entrance, Stand, Step, project};
use keelway_world::promotions::host::{End, GitHost};
use keelway_world::promotions::{Case, PREFIX, Promotes, PromotionsStand, view};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TOKEN: &str = "t0ken-of-the-cases";
/// A look at a young pull request comes after 30 s; a case that takes longer may see one that it does not expect.
const LOOK: Duration = Duration::from_secs(25);
/// The sequences that pipelines trigger.
const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-cases}
spec:
  stages:
    - {name: staging, sequences: [{name: delivery, tasks: [{name: deploy}]}]}
    - {name: prod, sequences: [{name: delivery, tasks: [{name: deploy}]}]}
    - {name: canary, sequences: [{name: rollout, tasks: [{name: deploy}]}]}
";

/// Why a case cannot be told on the local cloud, in real time: the case itself says it. `None`: it can.
pub fn why_not(case: &Case) -> Option<&'static str> {
    let any = |is: fn(&Step<Promotes>) -> bool| case.steps.iter().any(is);
    if any(|step| step.wait.is_some()) {
        Some("time passes in it, minutes at least")
    } else if any(|step| !step.own.fails.is_empty()) {
        Some("requests go wrong in it, and are repeated later")
    } else if any(|step| step.own.unheard) {
        Some("a message is lost in it")
    } else if any(|step| step.own.approve.iter().chain(&step.own.reject).any(|at| at.contains('/'))) {
        Some("the emulator decodes paths, which function URLs do not: a slash in a revision divides its path")
    } else {
        None
    }
}

/// One case's view of a deployed stack.
pub struct PromotionsCloud<'a> {
    stack: &'a Stack,
    observer: &'a Observer,
    raw: &'a Raw,
    host: CaseHost,
    salt: String,
    namespace: String,
    /// Events have other contexts than messages: those of pipelines, and of their sequences.
    contexts: HashSet<String>,
    entered: HashSet<String>,
    /// Sequences that a person has aborted.
    aborted: HashSet<String>,
    has_secret: bool,
    began: Instant,
    trouble: Vec<String>,
}

impl<'a> PromotionsCloud<'a> {
    /// For one run of one case, with a host in this form.
    ///
    /// # Errors
    /// When the host, or what the case needs of the stack, cannot be made.
    pub fn new((stack, observer, raw): (&'a Stack, &'a Observer, &'a Raw), case: &Case, form: Form) -> Result<Self, Problem> {
        let id = fresh().replace('-', "");
        let salt = format!("-{}", &id[id.len() - 8..]);
        let namespace = project(&case.id, "p", &salt);
        let name = format!("{namespace}.example.com");
        let host = CaseHost::start(form, &name, TOKEN, (&namespace, &case.given.names()))?;
        let registered = format!(
            "apiVersion: keelway.dev/v1\nkind: GitHost\nmetadata: {{name: {namespace}}}\nspec: {{host: {name}, type: {}, api: '{}'}}\n",
            word(form),
            host.api()
        );
        stack.wait(stack.api().apply(None, &registered))?.fine("apply the git host")?;
        // Of use to pipelines whose promotions are sequences.
        stack.wait(stack.api().apply(None, &project_manifest(&namespace)))?.fine("apply the project")?;
        stack.wait(stack.api().apply(Some(&namespace), SHIPYARD))?.fine("apply the shipyard")?;
        let none = HashSet::new;
        let (contexts, entered, aborted) = (none(), none(), none());
        let (began, trouble, has_secret) = (Instant::now(), vec![], false);
        Ok(Self { stack, observer, raw, host, salt, namespace, contexts, entered, aborted, has_secret, began, trouble })
    }

    /// Whether it took so long that a look may have come between its steps.
    pub fn was_too_slow(&self) -> bool {
        self.began.elapsed() > LOOK
    }

    /// What went wrong that a case cannot say. The steps after that do nothing: what they would wait for may never come.
    pub fn trouble(&self) -> &[String] {
        &self.trouble
    }

    /// Gives the git host's name back.
    pub fn leave(&self) {
        let api = self.stack.api();
        let path = format!("/v1/githosts/{}", self.namespace);
        if let Err(problem) = self.stack.wait(api.request(Method::DELETE, &path, Some(&api.token), None)) {
            eprintln!("{problem}");
        }
    }

    fn events(&self) -> Vec<Arc<Seen>> {
        self.observer.events(&HashSet::from([self.namespace.clone()]))
    }

    /// What the functions said about the case.
    fn lines(&self) -> Vec<Arc<Line>> {
        let mut lines = self.observer.lines_of_project(&self.namespace);
        let contexts = self.contexts.iter().cloned().chain([self.host.url()]);
        lines.extend(contexts.flat_map(|context| self.observer.lines(&context)));
        lines
    }

    /// The same, for the person reading a failure.
    pub fn story(&self) -> String {
        let line = |line: Arc<Line>| ["timestamp", "message.kind", "outcome"].map(|name| line.text(name).to_owned()).join(" ");
        let mut text: Vec<String> = self.lines().into_iter().map(line).collect();
        text.sort();
        text.dedup();
        text.join("\n    ")
    }

    /// The messages of a kind that are done with.
    fn known(&self, kind: &str) -> HashSet<String> {
        let done = |line: &Arc<Line>| line.is_done() && line.text("message.kind") == kind;
        self.lines().iter().filter(|line| done(line)).map(|line| line.id().to_owned()).collect()
    }

    /// Waits until so many more messages of a kind are done with: the last of them.
    fn handled(&self, kind: &str, before: &HashSet<String>, times: usize) -> Result<Arc<Line>, Problem> {
        self.observer.wait(&format!("{kind} in {}", self.namespace), |_| {
            let mut seen = before.clone();
            let mut lines = self.lines();
            lines.retain(|line| line.is_done() && line.text("message.kind") == kind && seen.insert(line.id().to_owned()));
            if lines.len() >= times { lines.pop() } else { None }
        })
    }

    /// Does something that has the engine handle a message of a kind, and waits for that.
    fn causes(&self, kind: &str, act: impl FnOnce() -> Result<Reply, Problem>) -> Result<(Reply, Option<Arc<Line>>), Problem> {
        let before = self.known(kind);
        let reply = act()?;
        let line = if reply.status < 300 { Some(self.handled(kind, &before, 1)?) } else { None };
        Ok((reply, line))
    }

    fn put(&mut self, event: &Value) -> Result<Answer, Problem> {
        self.contexts.insert(text(&event["shkeptncontext"]));
        let before = self.known("observed");
        self.stack.put_event(event)?;
        Ok(Answer { said: said(&*self.handled("observed", &before, 1)?), problem: String::new() })
    }

    fn post(&self, event: &Value) -> Result<Answer, Problem> {
        let before = self.known("evaluate");
        let reply = self.stack.wait(self.stack.api().post("/v1/observations", &event["data"]["facts"]))?;
        if reply.status >= 300 {
            return Ok(Answer::status(reply.status, reply.problem()));
        }
        let newer = reply.body["facts"].as_array().into_iter().flatten().any(|fact| fact["newer"] == true);
        if newer {
            self.handled("evaluate", &before, 1)?;
        }
        Ok(Answer::handled(if newer { Handled::Recorded } else { Handled::Stale }))
    }

    /// Ends a step: nothing of it is under way any more, and what it did besides events is entered as calls.
    fn end_of_step(&mut self, step: Result<Answer, Problem>) -> Answer {
        let ended = step.and_then(|answer| {
            let rest = || rest((self.stack, self.observer), 0, || self.lines(), || self.story());
            rest()?;
            self.ends_are_heard()?;
            rest()?;
            Ok(answer)
        });
        self.enter();
        ended.map_err(|problem| self.trouble.push(problem.0)).unwrap_or_default()
    }

    fn give_secret(&mut self) -> Result<(), Problem> {
        let name = format!("{}/{}/git", self.stack.name(), self.namespace);
        let body = json!({"Name": name, "SecretString": json!({ "token": TOKEN }).to_string(), "ClientRequestToken": fresh()});
        self.stack.wait(self.raw.json("secretsmanager", "secretsmanager.CreateSecret", &body))?;
        self.has_secret = true;
        Ok(())
    }

    fn view(&self, to: &Address) -> Result<Option<Value>, Problem> {
        let Some(item) = self.stack.item(&keys::pipeline(to))? else { return Ok(None) };
        let state = Loaded::<Pipeline>::read(&item).map_err(|error| Problem(error.to_string()))?.x;
        let items = self.stack.items(&keys::pipeline_partition(to), keys::HISTORY)?;
        let history: Vec<Past> = items.iter().filter_map(|item| serde_json::from_str(item.text("j")?).ok()).collect();
        Ok(Some(view(&state, &history)))
    }
}

fn address(namespace: &str, name: &str) -> Address {
    Address { namespace: namespace.to_owned(), name: name.to_owned() }
}

impl Stand for PromotionsCloud<'_> {
    fn salt(&self) -> String {
        self.salt.clone()
    }
    fn ordered(&self) -> bool {
        false
    }
    fn now(&self) -> Timestamp {
        Timestamp(now_millis())
    }
    fn step(&mut self) {
        if self.host.has_credentials()
            && !self.has_secret
            && let Err(problem) = self.give_secret()
        {
            self.trouble.push(problem.0);
        }
    }
    fn send(&mut self, event: &Value, at: Entrance) -> Answer {
        if !self.trouble.is_empty() {
            return Answer::unknown();
        }
        let step = match at {
            Entrance::Bus => self.put(event),
            Entrance::Api => self.post(event),
        };
        self.end_of_step(step)
    }
    fn wait(&mut self, _: Span) {
        self.trouble.push("nobody waits here: see `why_not`".into());
    }
    fn outgoing(&mut self) -> Vec<Value> {
        let is_one = |event: &Value| event["type"].as_str().is_some_and(|ty| ty.starts_with(PREFIX) && ty != NEEDED);
        self.events().iter().map(|seen| seen.event.clone()).filter(is_one).collect()
    }
}

impl PromotionsStand for PromotionsCloud<'_> {
    type Host = CaseHost;

    fn host(&mut self) -> &mut CaseHost {
        &mut self.host
    }
    fn apply(&mut self, manifest: &str) -> Answer {
        let step = self.causes("evaluate", || self.stack.wait(self.stack.api().apply(None, manifest)));
        self.end_of_step(step.map(|(reply, _)| Answer::status(reply.status, reply.problem())))
    }
    fn delete(&mut self, namespace: &str, name: &str) -> Answer {
        let api = self.stack.api();
        let delete = || {
            let path = format!("/v1/pipelines/{namespace}/{name}");
            self.stack.wait(api.request(Method::DELETE, &path, Some(&api.token), None))
        };
        let step = self.causes("evaluate", delete);
        self.end_of_step(step.map(|(reply, _)| Answer::status(reply.status, reply.problem())))
    }
    fn ask(&mut self, namespace: &str, name: &str, command: &Command, note: &Note) -> Answer {
        let step = self.command(&address(namespace, name), command, note);
        self.end_of_step(step)
    }
    fn evaluate(&mut self, namespace: &str, name: &str, times: u32) {
        let before = self.known("evaluate");
        let send = |n: u32| {
            let message = Message::Evaluate { to: address(namespace, name), because: format!("the case {n}") };
            let queue = self.stack.output("PromotionsQueueUrl");
            let request = self.stack.sqs().send_message().queue_url(queue).message_body(message.letter().body);
            self.stack.wait(request.send()).map(drop).map_err(|error| Problem::of("SendMessage", format!("{error:?}")))
        };
        let sent = (0..times).try_for_each(send);
        let step = sent.and_then(|()| self.handled("evaluate", &before, times as usize)).map(|_| Answer::unknown());
        self.end_of_step(step);
    }
    fn replay(&mut self) -> bool {
        false
    }
    fn backup(&mut self, _: &str, _: &str) -> bool {
        false
    }
    fn restore(&mut self, _: &str, _: &str) {
        self.trouble.push("no state is put back here: say `only: world`".into());
    }
    fn finish(&mut self, _: (&str, &str), environment: &str, end: End, _: bool) -> Result<(), String> {
        let step = self.end_sequence(environment, end);
        self.end_of_step(step);
        Ok(())
    }
    fn webhook(&mut self, _: &str) {
        self.trouble.push("no webhook is set: `tests/cloud/promotions.rs` has a test of them".into());
    }
    fn pipeline(&mut self, namespace: &str, name: &str) -> Option<Option<Value>> {
        match self.view(&address(namespace, name)) {
            Ok(view) => Some(view),
            Err(problem) => {
                self.trouble.push(problem.0);
                None
            }
        }
    }
}
