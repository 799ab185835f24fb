//! A function's configuration, from environment variables. The template sets all of them.

use keelway_domain::time::Span;
use keelway_engine::ports::Limits;
use std::str::FromStr;
use tracing::Level;

/// What a function is told by its environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `KEELWAY_TABLE`
    pub table: String,
    /// `KEELWAY_BUS`
    pub bus: String,
    /// `KEELWAY_QUEUE_URL`
    pub queue_url: String,
    /// `KEELWAY_QUEUE_ARN`
    pub queue_arn: String,
    /// `KEELWAY_SCHEDULER_GROUP`
    pub scheduler_group: String,
    /// `KEELWAY_SCHEDULER_ROLE_ARN`
    pub scheduler_role_arn: String,
    /// `KEELWAY_SCHEDULER_DLQ_ARN`, optional
    pub scheduler_dead_letters_arn: Option<String>,
    /// `KEELWAY_START_DEADLINE` (10m), `KEELWAY_TASK_TIMEOUT` (24h; 0 = never), `KEELWAY_RETENTION_DAYS` (90),
    /// `KEELWAY_MAX_EVENT_BYTES` (245760)
    pub limits: Limits,
    /// `KEELWAY_MAX_RECEIVES` (10): how often the queue hands out a message before it becomes a dead letter.
    pub max_receives: u32,
    /// `KEELWAY_TOKEN_SHA256`, optional: the API token's SHA-256 in hexadecimal. Only the API needs it.
    pub token_sha256: Option<String>,
    /// `KEELWAY_LOG` (info): error, warn, info, debug or trace, of Keelway's own messages.
    pub log: Level,
}

/// Why a function cannot start: every variable that is missing or not understood, with an example.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.join("; "))]
pub struct ConfigError {
    /// One sentence each.
    pub problems: Vec<String>,
}

impl Config {
    /// From the process's environment.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// From anything that knows variables. An empty one counts as absent, as templates set them.
    ///
    /// # Errors
    /// Every variable at fault.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut env = Env { variable: &variable, problems: vec![] };
        let default = Limits::default();
        let config = Self {
            table: env.required("KEELWAY_TABLE", "keelway"),
            bus: env.required("KEELWAY_BUS", "keelway"),
            queue_url: env.required("KEELWAY_QUEUE_URL", "https://sqs.eu-central-1.amazonaws.com/123456789012/keelway-sequences"),
            queue_arn: env.required("KEELWAY_QUEUE_ARN", "arn:aws:sqs:eu-central-1:123456789012:keelway-sequences"),
            scheduler_group: env.required("KEELWAY_SCHEDULER_GROUP", "keelway"),
            scheduler_role_arn: env.required("KEELWAY_SCHEDULER_ROLE_ARN", "arn:aws:iam::123456789012:role/keelway-scheduler"),
            scheduler_dead_letters_arn: env.optional("KEELWAY_SCHEDULER_DLQ_ARN"),
            limits: Limits {
                start_deadline: env.span("KEELWAY_START_DEADLINE", default.start_deadline, "10m", Span::seconds(1)),
                task_timeout: env.span("KEELWAY_TASK_TIMEOUT", default.task_timeout, "24h", Span(0)),
                retention: Span::minutes(24 * 60 * env.number("KEELWAY_RETENTION_DAYS", 90, (1, 3650))),
                max_event_bytes: env.number("KEELWAY_MAX_EVENT_BYTES", default.max_event_bytes, (1024, 256 * 1024)),
            },
            max_receives: env.number("KEELWAY_MAX_RECEIVES", 10, (1, 1000)),
            token_sha256: env.hash("KEELWAY_TOKEN_SHA256"),
            log: env.level("KEELWAY_LOG", Level::INFO),
        };
        if env.problems.is_empty() { Ok(config) } else { Err(ConfigError { problems: env.problems }) }
    }
}

struct Env<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

impl Env<'_> {
    fn optional(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }
    fn required(&mut self, name: &str, example: &str) -> String {
        self.optional(name).unwrap_or_else(|| {
            self.problems.push(format!("{name} is not set: set it, for example {name}={example}"));
            String::new()
        })
    }
    /// The value, or the default and a problem when it is there and not understood.
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
    fn number<T: FromStr + PartialOrd + Copy + std::fmt::Display>(&mut self, name: &str, default: T, (least, most): (T, T)) -> T {
        let example = format!("{default}, a number from {least} to {most}");
        self.parsed(name, default, &example, |given| given.parse().ok().filter(|number| (least..=most).contains(number)))
    }
    fn level(&mut self, name: &str, default: Level) -> Level {
        self.parsed(name, default, "info, one of error, warn, info, debug and trace", |given| Level::from_str(given).ok())
    }
    /// Never repeats what it was given: it might be the token itself.
    fn hash(&mut self, name: &str) -> Option<String> {
        let given = self.optional(name)?.to_ascii_lowercase();
        if given.len() == 64 && given.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Some(given);
        }
        self.problems.push(format!(
            "{name} is not a SHA-256: write its 64 hexadecimal digits, as `printf %s \"$TOKEN\" | sha256sum` prints"
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
            "KEELWAY_QUEUE_URL" => Some("https://sqs/1/q".into()),
            "KEELWAY_QUEUE_ARN" => Some("arn:aws:sqs:r:1:q".into()),
            "KEELWAY_SCHEDULER_ROLE_ARN" => Some("arn:aws:iam::1:role/r".into()),
            "KEELWAY_SCHEDULER_DLQ_ARN" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn what_is_not_said_is_the_default() {
        let config = Config::read(complete).unwrap();
        assert_eq!(config.limits, Limits::default());
        assert_eq!((config.max_receives, config.log), (10, Level::INFO));
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
    fn what_an_operator_tunes() {
        let given = |name: &str| match name {
            "KEELWAY_START_DEADLINE" => Some("90s".into()),
            "KEELWAY_TASK_TIMEOUT" => Some("0".into()),
            "KEELWAY_RETENTION_DAYS" => Some("7".into()),
            "KEELWAY_LOG" => Some("DEBUG".into()),
            name => complete(name),
        };
        let config = Config::read(given).unwrap();
        assert_eq!((config.limits.start_deadline, config.limits.task_timeout), (Span::seconds(90), Span(0)));
        assert_eq!((config.limits.retention, config.log), (Span::minutes(7 * 24 * 60), Level::DEBUG));
    }
}
