//! Validated names: a name is checked once, when it is parsed, and its type proves that it is valid.

use serde::{Deserialize, Serialize};

/// Why a name was refused: what it names, the name, and the rule it breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} name {name:?} {rule}")]
pub struct NameError {
    /// The kind of name: "stage", "task", …
    pub kind: &'static str,
    /// The first 100 characters of the text that was given.
    pub name: String,
    /// The rule that the text breaks, and what to write instead.
    pub rule: String,
}

/// Names that a task must not have, because they are common fields of the payload. The data of a task is in `data.<task>`.
pub const RESERVED_TASK_NAMES: [&str; 7] = ["project", "stage", "service", "labels", "status", "result", "message"];

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $kind:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// Checks a name. The error states the rule.
            pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
                let name = name.into();
                match $check(&name) {
                    Ok(()) => Ok(Self(name)),
                    Err(rule) => Err(NameError { kind: $kind, name: name.chars().take(100).collect(), rule }),
                }
            }
            /// The name as written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl TryFrom<String> for $type {
            type Error = NameError;
            fn try_from(name: String) -> Result<Self, NameError> {
                Self::new(name)
            }
        }
        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0
            }
        }
    };
}

name!(
    /// A project: lower-case letters, digits and `-`, starting with a letter, ending with a letter or digit, at most 50.
    ProjectName, "project", project_rule
);
name!(
    /// An API token: as a project.
    TokenName, "token", project_rule
);
name!(
    /// A stage: lower-case letters, digits and `-`, a letter or digit at both ends, at most 43 characters (documentation page).
    StageName, "stage", stage_rule
);
name!(
    /// A sequence: letters, digits, `-` and `_`, at most 50 characters.
    SequenceName, "sequence", sequence_rule
);
name!(
    /// A task: letters, digits, `-` and `_`, at most 50 characters, none of [`RESERVED_TASK_NAMES`].
    TaskName, "task", task_rule
);
name!(
    /// A service: letters, digits, `-`, `_` and `.`, a letter or digit at both ends, at most 43 characters.
    ServiceName, "service", service_rule
);
name!(
    /// The id of everything that one outside event has caused (`shkeptncontext`): usually a UUID; at most 64 letters, digits, `-`,
    /// `_` and `.`. [`Context::of`] converts any text.
    Context, "context", context_rule
);

impl Context {
    /// The context for a text from outside: the text itself if it is valid, otherwise the UUIDv5 of the text in the OID namespace.
    /// The same text always gives the same context.
    pub fn of(text: &str) -> Self {
        Self::new(text).unwrap_or_else(|_| Self(uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes()).to_string()))
    }
}

impl SequenceName {
    /// The name of [`crate::shipyard::Sequence::none`].
    pub(crate) fn none() -> Self {
        Self("none".into())
    }
}

fn length(name: &str, most: usize) -> Result<(), String> {
    match name.chars().count() {
        0 => Err("is empty: give it one".into()),
        n if n > most => Err(format!("has {n} characters: at most {most} are allowed")),
        _ => Ok(()),
    }
}

fn only(name: &str, allowed: impl Fn(char) -> bool, rule: &str) -> Result<(), String> {
    match name.chars().find(|c| !allowed(*c)) {
        Some(c) => Err(format!("contains {c:?}: {rule}")),
        None => Ok(()),
    }
}

fn ends(name: &str, rule: &str) -> Result<(), String> {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if inside(name.chars().next()) && inside(name.chars().next_back()) { Ok(()) } else { Err(rule.into()) }
}

fn project_rule(name: &str) -> Result<(), String> {
    length(name, 50)?;
    let rule = "use lower-case letters, digits and `-`";
    only(name, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-', rule)?;
    ends(name, "must start with a letter and end with a letter or digit")?;
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("starts with a digit: start it with a letter".into());
    }
    Ok(())
}

fn stage_rule(name: &str) -> Result<(), String> {
    length(name, 43)?;
    only(name, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-', "use lower-case letters, digits and `-`")?;
    ends(name, "must start and end with a letter or digit")
}

fn sequence_rule(name: &str) -> Result<(), String> {
    length(name, 50)?;
    only(name, |c| c.is_ascii_alphanumeric() || c == '-' || c == '_', "use letters, digits, `-` and `_`")
}

fn task_rule(name: &str) -> Result<(), String> {
    sequence_rule(name)?;
    if RESERVED_TASK_NAMES.contains(&name) {
        return Err("is a common field of every event's data: choose another name".into());
    }
    Ok(())
}

fn service_rule(name: &str) -> Result<(), String> {
    length(name, 43)?;
    only(name, |c| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.', "use letters, digits, `-`, `_` and `.`")?;
    ends(name, "must start and end with a letter or digit")
}

fn context_rule(name: &str) -> Result<(), String> {
    length(name, 64)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    only(name, allowed, "use a UUID, or letters, digits, `-`, `_` and `.`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_follow_the_documentation_page() {
        for good in ["dev", "a", "1st", "staging-1", &"s".repeat(43)] {
            assert!(StageName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "Dev", "-dev", "dev-", "a_b", "a.b", "a/b", &"s".repeat(44)] {
            assert!(StageName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_text_means_a_context() {
        let long = "x".repeat(65);
        for kept in ["0b9e7a44-1f7e-4abc-8123-5d2a5ef11ecf", "build_17.2", &long[1..]] {
            assert_eq!(Context::of(kept).as_str(), kept);
        }
        // python3 -c 'import uuid; print(uuid.uuid5(uuid.NAMESPACE_OID, "build 17"))'
        assert_eq!(Context::of("build 17").as_str(), "47bfb6cb-3701-59a9-a713-f74ceeb601be");
        for derived in ["a:b", "", "ü", "a\0", &long] {
            let context = Context::of(derived);
            assert!(uuid::Uuid::parse_str(context.as_str()).is_ok() && context == Context::of(derived), "{derived:?}");
        }
    }

    #[test]
    fn a_task_is_not_named_like_a_common_field() {
        let refused = TaskName::new("result").unwrap_err();
        assert_eq!(refused.to_string(), "task name \"result\" is a common field of every event's data: choose another name");
        assert!(TaskName::new("get-action").is_ok());
    }

    #[test]
    fn each_kind_of_name_has_its_characters_and_length() {
        for good in ["a", "get-action", "Get_Action", "1", &"s".repeat(50)] {
            assert!(SequenceName::new(good).is_ok() && TaskName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a.b", "a b", "a/b", &"s".repeat(51)] {
            assert!(SequenceName::new(bad).is_err() && TaskName::new(bad).is_err(), "{bad}");
        }
        for good in ["a", "carts-db", "carts_db", "carts.db", "Carts2", &"s".repeat(43)] {
            assert!(ServiceName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a.", "a b", "a/b", &"s".repeat(44)] {
            assert!(ServiceName::new(bad).is_err(), "{bad}");
        }
        for good in ["shop", "shop-2", "a", &"s".repeat(50)] {
            assert!(ProjectName::new(good).is_ok() && TokenName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "Shop", "2shop", "-shop", "shop-", "sh_op", &"s".repeat(51)] {
            assert!(ProjectName::new(bad).is_err() && TokenName::new(bad).is_err(), "{bad}");
        }
    }
}
