//! Scopes, and the grants that carry them.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use crate::names::ProjectName;
use serde::{Deserialize, Serialize};

/// The longest name of a task or stage in a scope, in bytes.
const LONGEST: usize = 63;

/// Names that a scope is limited to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Names {
    /// Every name, written `*`.
    All,
    /// Exactly this name.
    One(String),
}

impl Names {
    fn include(&self, name: &str) -> bool {
        matches!(self, Names::All) || matches!(self, Names::One(one) if one == name)
    }
    fn parse(text: &str) -> Option<Self> {
        let named = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
        match text {
            "*" => Some(Names::All),
            one if !one.is_empty() && one.len() <= LONGEST && one.bytes().all(named) => Some(Names::One(one.to_owned())),
            _ => None,
        }
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Names::All => f.write_str("*"),
            Names::One(one) => f.write_str(one),
        }
    }
}

/// What a token or a person may do. As text: `read`, `trigger`, `trigger:<stage>`, `execute:<task>`, `approve:<stage>`,
/// `administer`; `*` stands for any task or stage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scope {
    /// Read everything.
    Read,
    /// Start and steer sequences that nothing else starts, promotions and deployments.
    Trigger,
    /// Start every sequence of a stage, including those that normally follow the end of another sequence.
    TriggerIn(Names),
    /// See and answer the triggers of a task. `execute:deployment` also claims versions of deployment configs.
    Execute(Names),
    /// Decide the approvals of a stage, or of an environment of a pipeline.
    Approve(Names),
    /// Do everything, as the only scope: apply and delete definitions, manage tokens, read the audit.
    Administer,
}

/// Why a scope was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is no scope: write read, trigger, trigger:<stage>, execute:<task>, approve:<stage> or administer, with * for any task or stage"
)]
pub struct ScopeError {
    given: String,
}

impl Scope {
    /// Parses a scope.
    ///
    /// # Errors
    /// The text is not a scope; the error lists those that exist.
    pub fn parse(text: &str) -> Result<Self, ScopeError> {
        let scope = match text.split_once(':') {
            None => match text {
                "read" => Some(Self::Read),
                "trigger" => Some(Self::Trigger),
                "administer" => Some(Self::Administer),
                _ => None,
            },
            Some(("trigger", stage)) => Names::parse(stage).map(Self::TriggerIn),
            Some(("execute", task)) => Names::parse(task).map(Self::Execute),
            Some(("approve", stage)) => Names::parse(stage).map(Self::Approve),
            Some(_) => None,
        };
        scope.ok_or_else(|| ScopeError { given: text.chars().take(100).collect() })
    }

    /// Whether this scope satisfies the need.
    fn allows(&self, need: Need<'_>) -> bool {
        match (self, need) {
            (Self::Administer, _) | (Self::Read, Need::Read) | (Self::Trigger, Need::Trigger) => true,
            (Self::TriggerIn(stages), Need::TriggerIn(stage)) => stages.include(stage),
            (Self::Execute(tasks), Need::Execute(task)) => tasks.include(task),
            (Self::Approve(stages), Need::Approve(stage)) => stages.include(stage),
            _ => false,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Read => Kind::Read,
            Self::Trigger | Self::TriggerIn(_) => Kind::Trigger,
            Self::Execute(_) => Kind::Execute,
            Self::Approve(_) => Kind::Approve,
            Self::Administer => Kind::Administer,
        }
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read => f.write_str("read"),
            Self::Trigger => f.write_str("trigger"),
            Self::TriggerIn(stages) => write!(f, "trigger:{stages}"),
            Self::Execute(tasks) => write!(f, "execute:{tasks}"),
            Self::Approve(stages) => write!(f, "approve:{stages}"),
            Self::Administer => f.write_str("administer"),
        }
    }
}

impl TryFrom<String> for Scope {
    type Error = ScopeError;
    fn try_from(text: String) -> Result<Self, ScopeError> {
        Self::parse(&text)
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> String {
        scope.to_string()
    }
}

/// A kind of scope, without the names that limit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Read,
    /// [`Scope::Trigger`] or [`Scope::TriggerIn`].
    Trigger,
    Execute,
    Approve,
    Administer,
}

/// The permission that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need<'a> {
    /// To read.
    Read,
    /// To start or steer work.
    Trigger,
    /// To start, in this stage, a sequence that normally follows the end of another one.
    TriggerIn(&'a str),
    /// To answer triggers of this task.
    Execute(&'a str),
    /// To decide approvals of this stage or environment.
    Approve(&'a str),
    /// To change definitions.
    Administer,
}

impl std::fmt::Display for Need<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read => f.write_str("read"),
            Self::Trigger => f.write_str("trigger"),
            Self::TriggerIn(stage) => write!(f, "trigger:{stage}"),
            Self::Execute(task) => write!(f, "execute:{task}"),
            Self::Approve(stage) => write!(f, "approve:{stage}"),
            Self::Administer => f.write_str("administer"),
        }
    }
}

/// Scopes, and the projects in which they are valid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub scopes: Vec<Scope>,
    /// The projects and namespaces in which the scopes are valid. Empty: in all of them, and for what belongs to the installation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<ProjectName>,
}

impl Grant {
    /// A grant of every permission, in every project.
    pub fn everything() -> Self {
        Self { scopes: vec![Scope::Administer], projects: vec![] }
    }
    /// Whether the grant satisfies a need in a project. `None`: the need concerns the installation, or all projects.
    pub fn allows(&self, need: Need<'_>, project: Option<&str>) -> bool {
        self.reaches(project) && self.scopes.iter().any(|scope| scope.allows(need))
    }
    /// Whether the grant has a scope of this kind, wherever it is valid and whatever limits it.
    pub fn has(&self, kind: Kind) -> bool {
        self.scopes.iter().any(|scope| scope.kind() == kind || *scope == Scope::Administer)
    }
    /// Whether the grant is valid in nothing but these projects. `None`: they are all there are.
    pub fn is_within(&self, projects: Option<&[ProjectName]>) -> bool {
        projects.is_none_or(|known| !self.projects.is_empty() && self.projects.iter().all(|project| known.contains(project)))
    }
    /// Whether the grant is valid in a project. `None`: for what belongs to the installation, or to all projects.
    pub fn reaches(&self, project: Option<&str>) -> bool {
        self.projects.is_empty() || project.is_some_and(|project| self.projects.iter().any(|known| known.as_str() == project))
    }
}

impl std::fmt::Display for Grant {
    /// For example `read, execute:test in shop, carts`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let listed = |all: Vec<String>| all.join(", ");
        f.write_str(&listed(self.scopes.iter().map(ToString::to_string).collect()))?;
        if !self.projects.is_empty() {
            write!(f, " in {}", listed(self.projects.iter().map(ToString::to_string).collect()))?;
        }
        Ok(())
    }
}

/// The message for a caller whose grants do not satisfy a need.
pub fn missing(need: impl std::fmt::Display, place: Place<'_>, has: &[Grant]) -> String {
    let has = match has.iter().map(ToString::to_string).collect::<Vec<_>>() {
        none if none.is_empty() => "nothing".to_owned(),
        has => has.join("; "),
    };
    format!("this needs {need}{place}, and what you sent grants {has}: ask an administrator for a token that has it")
}

/// Where a permission is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// In one project or namespace.
    In(&'a str),
    /// In all projects.
    Everywhere,
    /// In a project that is not known, because the request was refused before its subject was read.
    Somewhere,
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::In(project) => write!(f, " in project {:?}", short(project)),
            Self::Everywhere => f.write_str(" in all projects"),
            Self::Somewhere => Ok(()),
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(scopes: &[&str], projects: &[&str]) -> Grant {
        Grant {
            scopes: scopes.iter().map(|text| Scope::parse(text).unwrap()).collect(),
            projects: projects.iter().map(|name| ProjectName::new(*name).unwrap()).collect(),
        }
    }

    #[test]
    fn scopes_as_text() {
        for text in
            ["read", "trigger", "trigger:prod", "trigger:*", "execute:get-action", "execute:*", "approve:prod-eu", "administer"]
        {
            assert_eq!(Scope::parse(text).unwrap().to_string(), text);
        }
        for bad in [
            "",
            "Read",
            "execute",
            "execute:",
            "trigger:",
            "approve:a b",
            "read:x",
            "approve:**",
            &format!("execute:{}", "x".repeat(64)),
        ] {
            assert!(Scope::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_scope_is_enough_for_itself_and_administer_for_everything() {
        let needs =
            [Need::Read, Need::Trigger, Need::TriggerIn("prod"), Need::Execute("test"), Need::Approve("prod"), Need::Administer];
        let scopes = ["read", "trigger", "trigger:prod", "execute:test", "approve:prod", "administer"];
        for (at, scope) in scopes.iter().enumerate() {
            let allowed = needs.map(|need| grant(&[*scope], &[]).allows(need, None));
            let expected = std::array::from_fn(|n| n == at || *scope == "administer");
            assert_eq!(allowed, expected, "{scope}");
        }
        assert!(!grant(&["execute:test", "approve:dev"], &[]).allows(Need::Execute("deployment"), None));
        assert!(!grant(&["execute:test", "approve:dev"], &[]).allows(Need::Approve("prod"), None));
        assert!(!grant(&["trigger:dev"], &[]).allows(Need::TriggerIn("prod"), None));
        assert!(grant(&["trigger:*"], &[]).allows(Need::TriggerIn("prod"), None));
        assert!(grant(&["execute:*"], &[]).allows(Need::Execute("deployment"), None));
    }

    #[test]
    fn a_grant_ends_at_its_projects() {
        let limited = grant(&["administer"], &["shop", "carts"]);
        let allowed = [Some("shop"), Some("carts"), Some("other"), None].map(|project| limited.allows(Need::Read, project));
        assert_eq!(allowed, [true, true, false, false]);
        assert!(limited.has(Kind::Trigger) && !grant(&["read"], &[]).has(Kind::Trigger));
        assert_eq!(
            missing(Need::Execute("test"), Place::In("other"), &[limited]),
            "this needs execute:test in project \"other\", and what you sent grants administer in shop, carts: ask an administrator for a \
             token that has it"
        );
    }

    #[test]
    fn a_grant_is_within_projects_if_it_is_valid_nowhere_else() {
        let known: Vec<ProjectName> = ["shop", "carts"].iter().map(|name| ProjectName::new(*name).unwrap()).collect();
        let within = |projects: &[&str], known: &[ProjectName]| grant(&["read"], projects).is_within(Some(known));
        assert!(within(&["shop"], &known) && within(&["carts", "shop"], &known));
        // A grant without projects is valid in all of them.
        assert!(!within(&[], &known) && !within(&["shop", "other"], &known) && !within(&["shop"], &[]) && !within(&[], &[]));
        assert!(grant(&["read"], &[]).is_within(None) && grant(&["read"], &["other"]).is_within(None));
    }

    #[test]
    fn a_grant_is_stored_as_the_texts_of_its_scopes() {
        let limited = grant(&["read", "approve:prod"], &["shop"]);
        let stored = serde_json::to_string(&limited).unwrap();
        assert_eq!(stored, r#"{"scopes":["read","approve:prod"],"projects":["shop"]}"#);
        assert_eq!(serde_json::from_str::<Grant>(&stored).unwrap(), limited);
    }

    #[test]
    fn the_token_of_the_deployment_may_do_everything_everywhere() {
        let all = Grant::everything();
        assert!(all.allows(Need::Administer, None) && all.allows(Need::Approve("prod"), Some("shop")));
    }

    #[test]
    fn who_may_do_nothing_is_told_so() {
        let told = missing(Need::Read, Place::Everywhere, &[]);
        assert!(told.starts_with("this needs read in all projects, and what you sent grants nothing: "), "{told}");
    }
}
