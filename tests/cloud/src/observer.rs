//! What can be seen of a stack from outside: the events on its bus, by a rule and a queue of our own, and what its functions log.

use crate::cloud::now_millis;
pub use crate::line::{Line, Root};
use crate::patience::until;
use crate::problem::Problem;
use crate::raw::Raw;
use crate::stack::Stack;
use aws_sdk_eventbridge::types::Target;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, MessageSystemAttributeName, QueueAttributeName};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often logs are read. Events arrive by themselves.
const LOGS_EVERY: Duration = Duration::from_millis(500);
/// How far back: a call's lines bear the time it ended, and calls end side by side.
const BACK: Duration = Duration::from_secs(2);
/// Every so many times from much further back: on a busy machine lines may be written long after the time they bear.
const FAR_EVERY: u32 = 20;
const FAR_BACK: Duration = Duration::from_secs(120);

/// An event on the bus.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The event in structured JSON.
    pub event: Value,
    /// When it arrived in the observer's queue, by the cloud's clock, in milliseconds since 1970.
    pub sent: i64,
    /// When we had it.
    pub at: Instant,
}

#[derive(Default)]
struct Books {
    events: Vec<Arc<Seen>>,
    arrivals: HashMap<(String, String), usize>,
    by_key: HashMap<String, Vec<usize>>,
    lines: Vec<Arc<Line>>,
    by_context: HashMap<String, Vec<usize>>,
    by_project: HashMap<String, Vec<usize>>,
    read: HashSet<String>,
    log_reads: usize,
    trouble: Option<String>,
}

impl Books {
    fn at(&self, places: impl Fn(&Self) -> Option<&Vec<usize>>) -> Vec<Arc<Line>> {
        places(self).into_iter().flatten().map(|place| self.lines[*place].clone()).collect()
    }
}

/// Watches one stack from its making to its end.
pub struct Observer {
    stack: Stack,
    queue: String,
    books: Arc<Mutex<Books>>,
    over: Arc<AtomicBool>,
}

impl Observer {
    /// Begins to watch.
    ///
    /// # Errors
    /// When the rule or the queue cannot be made.
    pub fn start(stack: &Stack, raw: &Raw) -> Result<Self, Problem> {
        let queue = stack.wait(tap_bus(stack))?;
        let observer = Self { stack: stack.clone(), queue: queue.clone(), books: Arc::default(), over: Arc::default() };
        let (books, over) = (observer.books.clone(), observer.over.clone());
        let watched = stack.clone();
        drop(stack.handle().spawn(async move {
            while !over.load(Ordering::Relaxed) {
                if let Err(problem) = receive(&watched, &queue, &books).await {
                    lock(&books).trouble = Some(problem.0);
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }));
        observer.read("SequencesFunctionName", raw);
        observer.read("ApiFunctionName", raw);
        Ok(observer)
    }

    /// Reads what a function logs, named by an output of the stack.
    pub fn read(&self, function: &str, raw: &Raw) {
        let (books, over, raw) = (self.books.clone(), self.over.clone(), raw.clone());
        let group = format!("/aws/lambda/{}", self.stack.output(function));
        drop(self.stack.handle().spawn(async move {
            let mut newest = now_millis();
            for n in 0u32.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let back = if n % FAR_EVERY == 0 { FAR_BACK } else { BACK };
                let from = newest - i64::try_from(back.as_millis()).unwrap_or_default();
                let began = Instant::now();
                // A group without lines may not exist yet, so trouble here is no trouble.
                newest = read_logs(&raw, &group, from, &books).await.ok().flatten().unwrap_or(newest).max(newest);
                // Reading keeps the cloud busy for a fifth of the time at most.
                tokio::time::sleep(LOGS_EVERY.max(began.elapsed() * 4)).await;
            }
        }));
    }

    /// Takes rule and queue away again, for endpoints that outlive the stack.
    pub fn leave(&self) {
        self.over.store(true, Ordering::Relaxed);
        let (name, bus) = (observer_name(&self.stack), self.stack.output("BusName"));
        let rules = self.stack.eventbridge();
        self.stack.wait(async {
            let gone = rules.remove_targets().rule(&name).event_bus_name(&bus).ids("observer").send().await.is_ok()
                && rules.delete_rule().name(&name).event_bus_name(&bus).send().await.is_ok()
                && self.stack.sqs().delete_queue().queue_url(&self.queue).send().await.is_ok();
            if !gone {
                eprintln!("the observer's rule or queue {name} stays");
            }
        });
    }

    /// Events of these contexts or projects, each once, in the order they were published first. Not those of the audit: they tell
    /// of the requests to the API, which each entrance of a case makes in another number.
    pub fn events(&self, keys: &HashSet<String>) -> Vec<Arc<Seen>> {
        let books = lock(&self.books);
        let mut places: Vec<usize> = keys.iter().filter_map(|key| books.by_key.get(key)).flatten().copied().collect();
        places.sort_unstable();
        places.dedup();
        let seen = places.into_iter().map(|place| books.events[place].clone());
        seen.filter(|seen| seen.event["type"] != "dev.keelway.audit").collect()
    }

    /// What the functions whose logs are read said about messages of this context; from the start, these are sequences and the API,
    /// whose lines are about answers.
    pub fn lines(&self, context: &str) -> Vec<Arc<Line>> {
        lock(&self.books).at(|books| books.by_context.get(context))
    }

    /// The same about messages of this project, which is a pipeline's namespace.
    pub fn lines_of_project(&self, project: &str) -> Vec<Arc<Line>> {
        lock(&self.books).at(|books| books.by_project.get(project))
    }

    /// The lines of a context's inputs of one kind that are done with, each message once.
    pub fn done(&self, context: &str, root: Root) -> Vec<Arc<Line>> {
        let mut ids = HashSet::new();
        let mut lines = self.lines(context);
        lines.retain(|line| line.root() == Some(root) && line.is_done() && ids.insert(line.id().to_owned()));
        lines
    }

    /// Whether an attempt at a message failed after it had asked for a commit: on a busy machine the commit counts and its answer
    /// is lost, and the next attempt finds it done.
    pub fn may_have_committed(&self, context: &str, id: &str) -> bool {
        let asked = |line: &Line| ["UpdateItem", "TransactWriteItems"].iter().any(|write| line.text("requests").contains(write));
        self.lines(context).iter().any(|line| line.id() == id && !line.is_done() && asked(line))
    }

    /// How often an event has come, by its source and id.
    pub fn arrivals(&self, event: &Value) -> usize {
        lock(&self.books).arrivals.get(&identity(event)).copied().unwrap_or_default()
    }

    /// How many `handled` lines there are in all.
    pub fn line_count(&self) -> usize {
        lock(&self.books).lines.len()
    }

    /// How often the logs were read. What was logged before is known when this has grown by two: one reading may be under way.
    pub fn log_reads(&self) -> usize {
        lock(&self.books).log_reads
    }

    /// Waits until `found` finds what it looks for.
    ///
    /// # Errors
    /// When nothing moves any more.
    pub fn wait<T>(&self, what: &str, mut found: impl FnMut(&Self) -> Option<T>) -> Result<T, Problem> {
        until(what, || Ok(found(self)), || self.so_far())
    }

    fn so_far(&self) -> String {
        let books = lock(&self.books);
        let age = |at: Option<Instant>| at.map_or("never".to_owned(), |at| format!("{:.0} s ago", at.elapsed().as_secs_f64()));
        let (events, lines) = (books.events.len(), books.lines.len());
        let event = age(books.events.last().map(|seen| seen.at));
        let line = age(books.lines.last().map(|line| line.at));
        let trouble = books.trouble.as_deref().unwrap_or("no trouble");
        format!("{events} events, the last {event}; {lines} messages handled, the last {line}; {trouble}")
    }

    /// Waits for an event of this type in this context, the `n`-th from 0.
    ///
    /// # Errors
    /// When it does not come.
    pub fn event(&self, context: &str, ty: &str, n: usize) -> Result<Arc<Seen>, Problem> {
        let keys = HashSet::from([context.to_owned()]);
        let found = || Ok(self.events(&keys).into_iter().filter(|seen| seen.event["type"] == ty).nth(n));
        until(&format!("{ty} in {context}"), found, || {
            let types: Vec<String> = self.events(&keys).iter().map(|seen| seen.event["type"].to_string()).collect();
            format!("{types:?}; {}", self.so_far())
        })
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn lock(books: &Mutex<Books>) -> MutexGuard<'_, Books> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

fn observer_name(stack: &Stack) -> String {
    format!("{}-test-observer", stack.name())
}

async fn tap_bus(stack: &Stack) -> Result<String, Problem> {
    let name = observer_name(stack);
    let sqs = stack.sqs();
    // What was received and could not be deleted stays invisible until the end.
    let made = sqs.create_queue().queue_name(&name).attributes(QueueAttributeName::VisibilityTimeout, "43200");
    let url =
        made.send().await.map_err(|error| Problem::of("the observer's queue", format!("{error:?}")))?.queue_url.unwrap_or_default();
    let arn = sqs.get_queue_attributes().queue_url(&url).attribute_names(QueueAttributeName::QueueArn).send().await;
    let arn = arn.map_err(|error| Problem::of("the observer's queue", format!("{error:?}")))?;
    let arn = arn.attributes().and_then(|all| all.get(&QueueAttributeName::QueueArn)).cloned().unwrap_or_default();
    let allow = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": arn}
    ]});
    let allowed = sqs.set_queue_attributes().queue_url(&url).attributes(QueueAttributeName::Policy, allow.to_string());
    allowed.send().await.map_err(|error| Problem::of("the observer's queue", format!("{error:?}")))?;
    let pattern = json!({"detail-type": [{"prefix": "sh.keptn."}, {"prefix": "dev.keelway."}]});
    let (bus, rules) = (stack.output("BusName"), stack.eventbridge());
    let rule = rules.put_rule().name(&name).event_bus_name(&bus).event_pattern(pattern.to_string());
    rule.send().await.map_err(|error| Problem::of("the observer's rule", format!("{error:?}")))?;
    let target = Target::builder().id("observer").arn(arn).build().map_err(|error| Problem::of("the observer's target", error))?;
    let targets = rules.put_targets().rule(&name).event_bus_name(&bus).targets(target);
    targets.send().await.map_err(|error| Problem::of("the observer's target", format!("{error:?}")))?;
    Ok(url)
}

async fn receive(stack: &Stack, queue: &str, books: &Mutex<Books>) -> Result<(), Problem> {
    let request = stack.sqs().receive_message().queue_url(queue).max_number_of_messages(10).wait_time_seconds(1);
    let request = request.message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
    let answer = request.send().await.map_err(|error| Problem::of("ReceiveMessage", format!("{error:?}")))?;
    let mut arrived: Vec<(i64, Value)> = vec![];
    let mut taken = vec![];
    for message in answer.messages() {
        let handle = DeleteMessageBatchRequestEntry::builder().id(taken.len().to_string());
        let handle = handle.set_receipt_handle(message.receipt_handle().map(str::to_owned)).build();
        taken.extend(handle.ok());
        let body: Value = serde_json::from_str(message.body().unwrap_or_default()).unwrap_or_default();
        let sent = message.attributes().and_then(|all| all.get(&MessageSystemAttributeName::SentTimestamp));
        arrived.push((sent.and_then(|sent| sent.parse().ok()).unwrap_or_default(), body["detail"].clone()));
    }
    // The cloud looks at every message of a queue for each request about it, so those that stay would make it slow.
    if !taken.is_empty() {
        drop(stack.sqs().delete_message_batch().queue_url(queue).set_entries(Some(taken)).send().await);
    }
    let mut books = lock(books);
    for (sent, event) in arrived {
        let arrivals = books.arrivals.entry(identity(&event)).or_default();
        *arrivals += 1;
        if *arrivals > 1 {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let place = books.events.len();
        for key in [text(&event["shkeptncontext"]), text(&event["data"]["project"])] {
            books.by_key.entry(key).or_default().push(place);
        }
        books.events.push(Arc::new(Seen { event, sent, at: Instant::now() }));
    }
    Ok(())
}

/// What makes an event the same as another.
fn identity(event: &Value) -> (String, String) {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    (text("source"), text("id"))
}

/// Reads what was logged since `from`; the time of the newest line.
async fn read_logs(raw: &Raw, group: &str, from: i64, books: &Mutex<Books>) -> Result<Option<i64>, Problem> {
    let asked = json!({"logGroupName": group, "startTime": from, "limit": 10_000, "filterPattern": "handled"});
    let answer = raw.json("logs", "Logs_20140328.FilterLogEvents", &asked).await?;
    let events = answer["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut books = lock(books);
    for event in events {
        let message = event["message"].as_str().unwrap_or_default();
        // A line says when and about which message it is, so no two are the same.
        if !books.read.insert(message.to_owned()) {
            continue;
        }
        let Ok(json) = serde_json::from_str::<Value>(message) else { continue };
        if json["message"] == "handled" {
            let place = books.lines.len();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (context, project) = (text(&json["context"]), text(&json["span"]["project"]));
            books.by_context.entry(context).or_default().push(place);
            books.by_project.entry(project).or_default().push(place);
            books.lines.push(Arc::new(Line::new(json)));
        }
    }
    books.log_reads += 1;
    Ok(events.iter().filter_map(|event| event["timestamp"].as_i64()).max())
}
