//! What can be seen of a stack from outside: the events on its bus, by a rule and a queue of our own, and what its functions log.

use crate::cloud::now_millis;
use crate::problem::Problem;
use crate::raw::Raw;
use crate::stack::Stack;
use aws_sdk_eventbridge::types::Target;
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often logs are read. Events arrive by themselves.
const LOGS_EVERY: Duration = Duration::from_millis(120);

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

/// What a function said about one message: its `handled` line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The whole line.
    pub json: Value,
    /// When we had it.
    pub at: Instant,
}

impl Line {
    /// A text of the line.
    pub fn text(&self, name: &str) -> &str {
        self.json[name].as_str().unwrap_or_default()
    }
    /// A number of the line.
    pub fn number(&self, name: &str) -> f64 {
        self.json[name].as_f64().unwrap_or_default()
    }
    /// Whether it is about what came in from outside, not about a message of the engine's own.
    pub fn is_outside(&self) -> bool {
        let own = ["granted", "follow", "start", "wake", "obey", "decide", "settle", "conform"];
        !own.contains(&self.text("message.kind"))
    }
}

#[derive(Default)]
struct Books {
    events: Vec<Arc<Seen>>,
    ids: HashSet<(String, String)>,
    by_key: HashMap<String, Vec<usize>>,
    lines: Vec<Arc<Line>>,
    by_context: HashMap<String, Vec<usize>>,
    streams: HashSet<String>,
    log_reads: usize,
    trouble: Option<String>,
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
        let (books, over, raw) = (observer.books.clone(), observer.over.clone(), raw.clone());
        let group = format!("/aws/lambda/{}", stack.output("SequencesFunctionName"));
        drop(stack.handle().spawn(async move {
            let mut from = now_millis() - 60_000;
            while !over.load(Ordering::Relaxed) {
                // A group without lines may not exist yet, so trouble here is no trouble.
                if let Ok(next) = read_logs(&raw, &group, from, &books).await {
                    from = next;
                }
                tokio::time::sleep(LOGS_EVERY).await;
            }
        }));
        Ok(observer)
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

    /// Events of these contexts or projects, each once, in the order they were published first.
    pub fn events(&self, keys: &HashSet<String>) -> Vec<Arc<Seen>> {
        let books = lock(&self.books);
        let mut places: Vec<usize> = keys.iter().filter_map(|key| books.by_key.get(key)).flatten().copied().collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| books.events[place].clone()).collect()
    }

    /// What the sequences function said about messages of this context.
    pub fn lines(&self, context: &str) -> Vec<Arc<Line>> {
        let books = lock(&self.books);
        let places = books.by_context.get(context).map(Vec::as_slice).unwrap_or_default();
        places.iter().map(|place| books.lines[*place].clone()).collect()
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
    /// When it does not within that time.
    pub fn wait<T>(&self, what: &str, patience: Duration, mut found: impl FnMut(&Self) -> Option<T>) -> Result<T, Problem> {
        let start = Instant::now();
        loop {
            if let Some(found) = found(self) {
                return Ok(found);
            }
            if start.elapsed() > patience {
                let trouble = lock(&self.books).trouble.clone().map(|text| format!(" ({text})")).unwrap_or_default();
                return Err(format!("{what}: not within {patience:?}{trouble}").into());
            }
            std::thread::sleep(Duration::from_millis(15));
        }
    }

    /// Waits for an event of this type in this context, the `n`-th from 0.
    ///
    /// # Errors
    /// When it does not come within 30 s.
    pub fn event(&self, context: &str, ty: &str, n: usize) -> Result<Arc<Seen>, Problem> {
        let keys = HashSet::from([context.to_owned()]);
        self.wait(&format!("{ty} in {context}"), Duration::from_secs(30), |observer| {
            observer.events(&keys).into_iter().filter(|seen| seen.event["type"] == ty).nth(n)
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
    format!("{}-observer", stack.name())
}

async fn tap_bus(stack: &Stack) -> Result<String, Problem> {
    let name = observer_name(stack);
    let sqs = stack.sqs();
    // What was received stays invisible until the end, which saves deleting it.
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
    for message in answer.messages() {
        let body: Value = serde_json::from_str(message.body().unwrap_or_default()).unwrap_or_default();
        let sent = message.attributes().and_then(|all| all.get(&MessageSystemAttributeName::SentTimestamp));
        arrived.push((sent.and_then(|sent| sent.parse().ok()).unwrap_or_default(), body["detail"].clone()));
    }
    let mut books = lock(books);
    for (sent, event) in arrived {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if !books.ids.insert((text(&event["source"]), text(&event["id"]))) {
            continue;
        }
        let place = books.events.len();
        for key in [text(&event["shkeptncontext"]), text(&event["data"]["project"])] {
            books.by_key.entry(key).or_default().push(place);
        }
        books.events.push(Arc::new(Seen { event, sent, at: Instant::now() }));
    }
    Ok(())
}

/// Reads what was logged since `from`; where to go on. Every call of a function has a stream of its own, written at once.
async fn read_logs(raw: &Raw, group: &str, from: i64, books: &Mutex<Books>) -> Result<i64, Problem> {
    let asked = json!({"logGroupName": group, "startTime": from, "limit": 10_000});
    let answer = raw.json("logs", "Logs_20140328.FilterLogEvents", &asked).await?;
    let events = answer["events"].as_array().cloned().unwrap_or_default();
    let mut books = lock(books);
    let mut fresh = HashSet::new();
    for event in &events {
        let stream = event["logStreamName"].as_str().unwrap_or_default();
        if books.streams.contains(stream) {
            continue;
        }
        fresh.insert(stream.to_owned());
        let Ok(json) = serde_json::from_str::<Value>(event["message"].as_str().unwrap_or_default()) else { continue };
        if json["message"] == "handled" {
            let place = books.lines.len();
            let context = json["context"].as_str().unwrap_or_default().to_owned();
            books.by_context.entry(context).or_default().push(place);
            books.lines.push(Arc::new(Line { json, at: Instant::now() }));
        }
    }
    books.streams.extend(fresh);
    books.log_reads += 1;
    // Lines bear the time their call ended, and calls end side by side.
    let newest = events.iter().filter_map(|event| event["timestamp"].as_i64()).max();
    Ok(newest.map_or(from, |newest| newest - 2000).max(from))
}
