//! The configuration of a function, from environment variables. The template sets all of them, and accepts only parameters that
//! this module can parse: `tests/template.rs` compares the two.

use keelway_domain::access::Identities;
use keelway_domain::border::Home;
use keelway_domain::time::Span;
use keelway_engine::sequences::{self, Limits, Publishes};
use keelway_engine::{deployments, evaluations, promotions, webhooks};
use std::collections::BTreeMap;
use std::str::FromStr;
use tracing::Level;

/// The engines with a queue. Every function can send to each of them.
pub const ENGINES: [&str; 8] = [
    sequences::NAME,
    promotions::NAME,
    promotions::ATTEMPTS,
    promotions::OBSERVER,
    deployments::NAME,
    deployments::DEPLOYERS,
    webhooks::NAME,
    evaluations::NAME,
];

pub use keelway_engine::trouble::DEAD_LETTERS;

/// The environment of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `KEELWAY_TABLE`
    pub table: String,
    /// `KEELWAY_BUS`
    pub bus: String,
    /// The URL and ARN of each engine's queue: `KEELWAY_SEQUENCES_QUEUE_URL`, `KEELWAY_SEQUENCES_QUEUE_ARN`, and so on.
    pub queues: BTreeMap<String, (String, String)>,
    /// `KEELWAY_SCHEDULER_GROUP`
    pub scheduler_group: String,
    /// `KEELWAY_SCHEDULER_ROLE_ARN`
    pub scheduler_role_arn: String,
    /// `KEELWAY_SCHEDULER_DLQ_ARN`, optional
    pub scheduler_dead_letters_arn: Option<String>,
    /// `KEELWAY_KNOCKS` (false): whether only the queue of the sequences engine is polled, so that whoever sends to another one
    /// knocks at its function.
    pub knocks: bool,
    /// `KEELWAY_DEAD_LETTERS_QUEUE_URL`, optional. Only the sweep needs it.
    pub dead_letters_url: Option<String>,
    /// `KEELWAY_SECRETS` (keelway): the prefix of the names of secrets.
    pub secrets: String,
    /// `KEELWAY_START_DEADLINE` (10m), `KEELWAY_TASK_TIMEOUT` (24h; 0 = never), `KEELWAY_RETENTION_DAYS` (90),
    /// `KEELWAY_MAX_EVENT_BYTES` (245760), `KEELWAY_MAX_EXECUTIONS` (1000), `KEELWAY_POLLING` (true), `KEELWAY_EVENTS` (all; own)
    pub limits: Limits,
    /// `KEELWAY_MAX_RECEIVES` (10): how often the queue delivers a message before it becomes a dead letter.
    pub max_receives: u32,
    /// `KEELWAY_TOKEN_SHA256`, optional: the SHA-256 of each accepted API token in hexadecimal, separated by commas. Only the API
    /// needs it.
    pub token_sha256: Option<String>,
    /// `KEELWAY_OIDC_ISSUERS`, `KEELWAY_OIDC_AUDIENCE` (keelway), `KEELWAY_OIDC_GRANTS`: the identity providers whose tokens the
    /// API accepts. `None` without an issuer.
    pub identities: Option<Identities>,
    /// `KEELWAY_PAGE_SIGN_IN`, optional: at which of these people sign in to the page, and further origins that this takes,
    /// separated by blanks.
    pub page_sign_in: String,
    /// `KEELWAY_TOKEN_REQUESTS` (6000; 0 = no limit): the most requests a minute with the same token.
    pub token_requests: u32,
    /// `KEELWAY_ADDRESS_REQUESTS` (6000; 0 = no limit): the most requests a minute from the same address.
    pub address_requests: u32,
    /// `KEELWAY_MAX_MESSAGE_AGE` (300): for how many seconds messages may wait before the sweep reports it.
    pub max_message_age: Span,
    /// `KEELWAY_METRICS` (false): whether the functions on queues report metrics about their messages.
    pub metrics: bool,
    /// `KEELWAY_ALLOWED_HOSTS`, optional: hosts and networks that requests may reach although they are not public, separated by
    /// commas. Only the functions that make requests need it.
    pub allowed_hosts: String,
    /// `KEELWAY_WEBHOOKS` (true): whether events are delivered to webhook subscriptions.
    pub delivers_webhooks: bool,
    /// `KEELWAY_WEBHOOK_ALLOWED_HOSTS`, optional: more of them, for webhooks and notifications only.
    webhook_hosts: String,
    /// `KEELWAY_LOOPBACK` (false): whether git hosts, clusters and identity providers may be on this machine, without TLS. Only the
    /// local cloud sets it.
    pub loopback: bool,
    /// `KEELWAY_LOG` (info): the level of Keelway's own log: error, warn, info, debug or trace.
    pub log: Level,
}

/// The configuration of the function on the dead-letter queue, which reads nothing else: if a wrong setting prevents the other
/// functions from starting, this one must still store what they cannot handle.
#[derive(Debug, Clone, PartialEq)]
pub struct TableConfig {
    /// `KEELWAY_TABLE`
    pub table: String,
    /// `KEELWAY_DEAD_LETTERS_QUEUE_URL`, optional: the queue that it looks at when it is knocked at.
    pub dead_letters_url: Option<String>,
    /// `KEELWAY_LOG`; info if it is invalid.
    pub log: Level,
}

/// The error of a function that cannot start: every missing or invalid variable, with an example.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.join("; "))]
pub struct ConfigError {
    /// The problems, one sentence each.
    pub problems: Vec<String>,
}

impl Config {
    /// Reads the environment of the process.
    ///
    /// # Errors
    /// Like [`Config::read`].
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::read(environment)
    }

    /// The hosts that webhooks and notifications may reach although they are not public, separated by commas.
    pub fn webhook_hosts(&self) -> String {
        format!("{},{}", self.allowed_hosts, self.webhook_hosts)
    }

    /// The settings of the promotions engine.
    pub fn promotions(&self) -> promotions::Limits {
        promotions::Limits { retention: self.limits.retention }
    }

    /// The settings of the webhooks engine.
    pub fn webhooks(&self) -> webhooks::Limits {
        webhooks::Limits {
            retention: self.limits.retention,
            max_event_bytes: self.limits.max_event_bytes,
            delivers: self.delivers_webhooks,
        }
    }

    /// The settings of the evaluations engine.
    pub fn evaluations(&self) -> evaluations::Limits {
        let deployments::Limits { region, account, .. } = self.deployments();
        evaluations::Limits { retention: self.limits.retention, home: Home { region, account }, ..evaluations::Limits::default() }
    }

    /// The settings of the deployments engine. Account and region come from the ARN of its queue.
    pub fn deployments(&self) -> deployments::Limits {
        let arn = self.queues.get(deployments::NAME).map(|(_, arn)| arn.as_str()).unwrap_or_default();
        let part = |n: usize| arn.split(':').nth(n).unwrap_or_default().to_owned();
        deployments::Limits { retention: self.limits.retention, account: part(4), region: part(3) }
    }

    /// Reads variables from any source. An empty variable counts as absent, because templates set empty ones.
    ///
    /// # Errors
    /// Every missing or invalid variable.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut env = Env::new(&variable);
        let default = Limits::default();
        let config = Self {
            table: env.required("KEELWAY_TABLE", "keelway"),
            bus: env.required("KEELWAY_BUS", "keelway"),
            queues: ENGINES.into_iter().map(|engine| (engine.to_owned(), env.queue(engine))).collect(),
            scheduler_group: env.required("KEELWAY_SCHEDULER_GROUP", "keelway"),
            scheduler_role_arn: env.required("KEELWAY_SCHEDULER_ROLE_ARN", "arn:aws:iam::123456789012:role/keelway-scheduler"),
            scheduler_dead_letters_arn: env.optional("KEELWAY_SCHEDULER_DLQ_ARN"),
            knocks: env.parsed("KEELWAY_KNOCKS", false, "true, or false", |given| given.parse().ok()),
            dead_letters_url: env.optional("KEELWAY_DEAD_LETTERS_QUEUE_URL"),
            secrets: env.optional("KEELWAY_SECRETS").unwrap_or_else(|| "keelway".to_owned()),
            limits: Limits {
                start_deadline: env.span("KEELWAY_START_DEADLINE", default.start_deadline, "10m", Span::seconds(1)),
                task_timeout: env.span("KEELWAY_TASK_TIMEOUT", default.task_timeout, "24h", Span(0)),
                retention: Span::minutes(24 * 60 * i64::from(env.number("KEELWAY_RETENTION_DAYS", 90, (1, 3650)))),
                max_event_bytes: env.number("KEELWAY_MAX_EVENT_BYTES", 240 * 1024, (1024, 256 * 1024)) as usize,
                max_executions: env.number("KEELWAY_MAX_EXECUTIONS", 1000, (1, 100_000)),
                polled: env.parsed("KEELWAY_POLLING", true, "true, or false", |given| given.parse().ok()),
                publishes: env.parsed("KEELWAY_EVENTS", Publishes::All, "all, or own", |given| match given {
                    "all" => Some(Publishes::All),
                    "own" => Some(Publishes::Own),
                    _ => None,
                }),
            },
            max_receives: env.number("KEELWAY_MAX_RECEIVES", 10, (1, 1000)),
            token_sha256: env.hashes("KEELWAY_TOKEN_SHA256"),
            identities: env.identities(),
            page_sign_in: env.optional("KEELWAY_PAGE_SIGN_IN").unwrap_or_default(),
            token_requests: env.number("KEELWAY_TOKEN_REQUESTS", 6000, (0, 1_000_000)),
            address_requests: env.number("KEELWAY_ADDRESS_REQUESTS", 6000, (0, 1_000_000)),
            max_message_age: Span::seconds(env.number("KEELWAY_MAX_MESSAGE_AGE", 300, (60, 864_000)).into()),
            metrics: env.parsed("KEELWAY_METRICS", false, "true, or false", |given| given.parse().ok()),
            allowed_hosts: env.optional("KEELWAY_ALLOWED_HOSTS").unwrap_or_default(),
            loopback: env.parsed("KEELWAY_LOOPBACK", false, "true, or false", |given| given.parse().ok()),
            delivers_webhooks: env.parsed("KEELWAY_WEBHOOKS", true, "true, or false", |given| given.parse().ok()),
            webhook_hosts: env.optional("KEELWAY_WEBHOOK_ALLOWED_HOSTS").unwrap_or_default(),
            log: env.level("KEELWAY_LOG", Level::INFO),
        };
        env.done(config)
    }
}

impl TableConfig {
    /// Reads the environment of the process.
    ///
    /// # Errors
    /// Like [`TableConfig::read`].
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::read(environment)
    }

    /// Reads variables from any source.
    ///
    /// # Errors
    /// The name of the table is missing.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let log = Env::new(&variable).level("KEELWAY_LOG", Level::INFO);
        let mut env = Env::new(&variable);
        let table = env.required("KEELWAY_TABLE", "keelway");
        let dead_letters_url = env.optional("KEELWAY_DEAD_LETTERS_QUEUE_URL");
        env.done(Self { table, dead_letters_url, log })
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

struct Env<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

impl<'a> Env<'a> {
    fn new(variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { variable, problems: vec![] }
    }
    fn done<T>(self, config: T) -> Result<T, ConfigError> {
        if self.problems.is_empty() { Ok(config) } else { Err(ConfigError { problems: self.problems }) }
    }
    fn optional(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }
    /// The URL and ARN of an engine's queue.
    fn queue(&mut self, engine: &str) -> (String, String) {
        let name = |what: &str| format!("KEELWAY_{}_QUEUE_{what}", engine.to_ascii_uppercase());
        let url = self.required(&name("URL"), &format!("https://sqs.eu-central-1.amazonaws.com/123456789012/keelway-{engine}"));
        let arn = self.required(&name("ARN"), &format!("arn:aws:sqs:eu-central-1:123456789012:keelway-{engine}"));
        (url, arn)
    }
    fn required(&mut self, name: &str, example: &str) -> String {
        self.optional(name).unwrap_or_else(|| {
            self.problems.push(format!("{name} is not set: set it, for example {name}={example}"));
            String::new()
        })
    }
    /// The parsed value. If it is invalid, the default, and a problem is noted.
    fn parsed<T>(&mut self, name: &str, default: T, example: &str, parse: impl Fn(&str) -> Option<T>) -> T {
        let Some(given) = self.optional(name) else { return default };
        parse(&given).unwrap_or_else(|| {
            self.problems.push(format!("{name} is {given:?}: write it like {name}={example}"));
            default
        })
    }
    fn span(&mut self, name: &str, default: Span, example: &str, least: Span) -> Span {
        self.parsed(name, default, example, |given| Span::parse(given).ok().filter(|span| *span >= least))
    }
    /// Parses a `Number` of the template, which may also be written `7.5` or `1e3`. A fraction is cut off.
    fn number(&mut self, name: &str, default: u32, (least, most): (u32, u32)) -> u32 {
        let example = format!("{default}, a number from {least} to {most}");
        let range = f64::from(least)..=f64::from(most);
        self.parsed(name, default, &example, |given| {
            given.parse::<f64>().ok().filter(|number| range.contains(number)).map(|number| number as u32)
        })
    }
    fn level(&mut self, name: &str, default: Level) -> Level {
        self.parsed(name, default, "info, one of error, warn, info, debug and trace", |given| Level::from_str(given).ok())
    }
    fn identities(&mut self) -> Option<Identities> {
        let text = |name: &str| self.optional(name).unwrap_or_default();
        let audience = self.optional("KEELWAY_OIDC_AUDIENCE").unwrap_or_else(|| "keelway".to_owned());
        Identities::parse(&text("KEELWAY_OIDC_ISSUERS"), &audience, &text("KEELWAY_OIDC_GRANTS")).unwrap_or_else(|why| {
            self.problems.push(format!("KEELWAY_OIDC_ISSUERS, KEELWAY_OIDC_AUDIENCE and KEELWAY_OIDC_GRANTS: {why}"));
            None
        })
    }
    /// Parses hashes. Errors never repeat the text, which might be the token itself.
    fn hashes(&mut self, name: &str) -> Option<String> {
        let given = self.optional(name)?.to_ascii_lowercase();
        let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if given.split(',').map(str::trim).all(is_hash) {
            return Some(given);
        }
        self.problems.push(format!(
            "{name} is not a SHA-256: write its 64 hexadecimal digits, as `printf %s \"$TOKEN\" | sha256sum` prints; several with \
             commas between"
        ));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(name: &str) -> Option<String> {
        match name {
            "KEELWAY_TABLE" | "KEELWAY_BUS" | "KEELWAY_SCHEDULER_GROUP" => Some("keelway".into()),
            name if name.ends_with("_QUEUE_URL") => Some("https://sqs/1/q".into()),
            name if name.ends_with("_QUEUE_ARN") => Some("arn:aws:sqs:r:1:q".into()),
            "KEELWAY_SCHEDULER_ROLE_ARN" => Some("arn:aws:iam::1:role/r".into()),
            "KEELWAY_SCHEDULER_DLQ_ARN" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn what_is_not_said_is_the_default() {
        let config = Config::read(complete).unwrap();
        assert_eq!(config.limits, Limits::default());
        assert_eq!((config.max_receives, config.log, config.metrics), (10, Level::INFO, false));
        assert_eq!((config.scheduler_dead_letters_arn, config.token_sha256), (None, None));
    }

    #[test]
    fn everything_at_fault_is_named_at_once() {
        let given = |name: &str| match name {
            "KEELWAY_BUS" => None,
            "KEELWAY_START_DEADLINE" => Some("soon".into()),
            "KEELWAY_MAX_EVENT_BYTES" => Some("1000000".into()),
            "KEELWAY_TOKEN_SHA256" => Some("s3cret".into()),
            name => complete(name),
        };
        let error = Config::read(given).unwrap_err();
        assert_eq!(error.problems.len(), 4);
        assert_eq!(
            error.problems[..3],
            [
                "KEELWAY_BUS is not set: set it, for example KEELWAY_BUS=keelway",
                "KEELWAY_START_DEADLINE is \"soon\": write it like KEELWAY_START_DEADLINE=10m",
                "KEELWAY_MAX_EVENT_BYTES is \"1000000\": write it like KEELWAY_MAX_EVENT_BYTES=245760, a number from 1024 to 262144",
            ]
        );
        assert!(!error.to_string().contains("s3cret"));
    }

    #[test]
    fn tokens_are_rotated_with_several_hashes() {
        let (one, two) = ("a1".repeat(32), "B2".repeat(32));
        let with =
            |hashes: &str| Config::read(|name| if name == "KEELWAY_TOKEN_SHA256" { Some(hashes.into()) } else { complete(name) });
        let config = with(&format!("{one},{two}")).unwrap();
        assert_eq!(config.token_sha256, Some(format!("{one},{}", two.to_lowercase())));
        assert!(with(&format!("{one},s3cret")).is_err_and(|error| !error.to_string().contains("s3cret")));
        assert!(with(&format!("{one},")).is_err());
    }

    #[test]
    fn identity_providers_are_read_together() {
        let with = |grants: &str| {
            Config::read(|name| match name {
                "KEELWAY_OIDC_ISSUERS" => Some("https://token.actions.githubusercontent.com".into()),
                "KEELWAY_OIDC_GRANTS" => Some(grants.into()),
                name => complete(name),
            })
        };
        let known = with("repository=acme/shop=>trigger@shop").unwrap().identities.unwrap();
        assert_eq!((known.audience.as_str(), known.rules.len()), ("keelway", 1));
        let wrong = with("repository=acme/shop").unwrap_err().to_string();
        assert!(wrong.contains("KEELWAY_OIDC_GRANTS") && wrong.contains("has no =>"), "{wrong}");
        assert_eq!(Config::read(complete).unwrap().identities, None);
    }

    #[test]
    fn dead_letters_are_stored_whatever_else_is_wrong() {
        let wrong = |name: &str| Some(if name == "KEELWAY_TABLE" { "keelway" } else { "wrong" }.to_owned());
        assert!(Config::read(wrong).is_err());
        let read = TableConfig { table: "keelway".into(), dead_letters_url: Some("wrong".into()), log: Level::INFO };
        assert_eq!(TableConfig::read(wrong), Ok(read));
        let told = |name: &str| Some(if name == "KEELWAY_LOG" { "debug" } else { "keelway" }.to_owned());
        assert_eq!(TableConfig::read(told).map(|config| config.log), Ok(Level::DEBUG));
        let none = TableConfig::read(|_| None).unwrap_err();
        assert_eq!(none.problems, ["KEELWAY_TABLE is not set: set it, for example KEELWAY_TABLE=keelway"]);
    }

    #[test]
    fn what_an_operator_tunes() {
        let given = |name: &str| match name {
            "KEELWAY_START_DEADLINE" => Some("90s".into()),
            "KEELWAY_TASK_TIMEOUT" => Some("0".into()),
            "KEELWAY_RETENTION_DAYS" => Some("7.0".into()),
            "KEELWAY_LOG" => Some("DEBUG".into()),
            "KEELWAY_METRICS" => Some("true".into()),
            "KEELWAY_MAX_MESSAGE_AGE" => Some("900".into()),
            name => complete(name),
        };
        let config = Config::read(given).unwrap();
        assert_eq!((config.limits.start_deadline, config.limits.task_timeout), (Span::seconds(90), Span(0)));
        assert_eq!((config.limits.retention, config.log, config.metrics), (Span::minutes(7 * 24 * 60), Level::DEBUG, true));
        assert_eq!(
            (config.max_message_age, Config::read(complete).unwrap().max_message_age),
            (Span::minutes(15), Span::minutes(5))
        );
    }
}
