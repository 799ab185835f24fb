//! Who sends a request: what they may do, and what the audit is told about it.

use crate::fence::problem::{Answer, Refused};
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use keelway_domain::access::{self, ADMINISTRATOR, Grant, Kind, Need, Place, missing};
use keelway_domain::ids::sha256_hex;
use keelway_domain::names::ProjectName;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who sends a request; an extension of it. Clones share what the audit is told.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The token's name, the provider that vouches for the caller, or the key of a signature.
    pub token: String,
    /// Who, as a provider calls them.
    pub subject: String,
    /// Who, as others see them: told apart by who vouches for it. Approvers, causes and the audit are about this.
    pub known: String,
    /// Where from; empty if it is not known.
    pub address: String,
    /// Tells apart those whose requests have keys of their own.
    pub id: String,
    /// The hash of the secret that was sent; empty where a provider vouches, whose tokens change with each request.
    pub secret: String,
    /// What they may do.
    pub grants: Arc<[Grant]>,
    /// The key that signed the request: whoever holds it vouches for the names that they give.
    key: Option<String>,
    told: Arc<Mutex<Told>>,
}

/// What the audit is told by those who handle a request.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// What it is, if the route does not say it.
    pub action: &'static str,
    /// The key that signed it.
    pub key: Option<String>,
    /// For whom its holder vouches.
    pub by: Option<String>,
    /// What the entry is known by, if the request has a key of its own.
    pub id: Option<u64>,
    /// In which project.
    pub project: String,
    /// In which others, too: it is found under each of them.
    pub others: Vec<String>,
    /// In words.
    pub what: String,
    /// What the caller says about itself.
    pub note: String,
    /// Nothing was done.
    pub nothing: bool,
}

impl Caller {
    /// Somebody who may do this.
    pub fn new(token: impl Into<String>, known: String, id: String, grants: Vec<Grant>) -> Self {
        Self {
            token: token.into(),
            subject: String::new(),
            known,
            address: String::new(),
            id,
            secret: String::new(),
            grants: grants.into(),
            key: None,
            told: Arc::default(),
        }
    }
    /// Whoever has a token of the deployment.
    pub fn administrator(id: String) -> Self {
        Self::new(ADMINISTRATOR, ADMINISTRATOR.into(), id, vec![Grant::everything()])
    }
    /// Somebody with neither a token nor, so far, a signature.
    pub fn nobody() -> Self {
        Self::new("", String::new(), String::new(), vec![])
    }
    /// Whom a provider calls so.
    pub fn called(self, subject: String) -> Self {
        Self { subject, ..self }
    }
    /// With a secret that has this hash.
    pub fn with(self, secret: String) -> Self {
        Self { secret, ..self }
    }
    /// Who they are, with what they show and what they may do: a token that was made anew under its name, or for other projects, is
    /// another.
    pub fn standing(&self) -> String {
        let grants: Vec<String> = self.grants.iter().map(ToString::to_string).collect();
        sha256_hex(format!("{}\n{}\n{}", self.id, self.secret, grants.join("\n")).as_bytes())
    }
    /// At this address.
    pub fn at(self, address: String) -> Self {
        Self { address, ..self }
    }
    /// Whoever signed the request with this key.
    pub fn signed(&self, key: &str) -> Self {
        let (token, known) = (format!("key {key}"), access::of_key(key, ""));
        let mut told = self.told();
        told.key = Some(token.clone());
        told.by = Some(known.clone());
        drop(told);
        Self { token, known, key: Some(key.to_owned()), ..self.clone() }
    }

    /// Who acts, as others see it: what is known, and behind it, as a note, the name that the caller gives. Whoever holds a key
    /// vouches for that name, so there it is part of what is known.
    pub fn by(&self, said: Option<String>) -> String {
        let said = said.unwrap_or_default();
        let mut told = self.told();
        told.note.clone_from(&said);
        let Some(key) = &self.key else { return access::by(&self.known, &said) };
        let known = access::of_key(key, &said);
        told.by = Some(known.clone());
        known
    }

    /// Whether this is allowed in a project.
    pub fn may(&self, need: Need<'_>, project: Option<&str>) -> bool {
        self.grants.iter().any(|grant| grant.allows(need, project))
    }
    /// Whether they administer the whole installation: then what they apply is vouched for, and they may write policies.
    pub fn administers_everything(&self) -> bool {
        self.may(Need::Administer, None)
    }
    /// Whether a scope of this kind is there at all.
    pub fn has(&self, kind: Kind) -> bool {
        self.grants.iter().any(|grant| grant.has(kind))
    }
    /// Whether a scope of this kind is valid in a project, whatever task or stage it is for.
    pub fn has_in(&self, kind: Kind, project: Option<&str>) -> bool {
        self.grants.iter().any(|grant| grant.has(kind) && grant.reaches(project))
    }
    /// Whether what is in a project is shown.
    pub fn sees(&self, project: &str) -> bool {
        self.may(Need::Read, Some(project))
    }
    /// The projects of which something is shown, by name; `None`: all of them.
    pub fn seen(&self) -> Option<Vec<ProjectName>> {
        self.projects_with(Kind::Read)
    }
    /// The projects that they administer, by name; `None`: all of them.
    pub fn administered(&self) -> Option<Vec<ProjectName>> {
        self.projects_with(Kind::Administer)
    }
    fn projects_with(&self, kind: Kind) -> Option<Vec<ProjectName>> {
        let granting = || self.grants.iter().filter(|grant| grant.has(kind));
        if granting().any(|grant| grant.projects.is_empty()) {
            return None;
        }
        let all: BTreeSet<&ProjectName> = granting().flat_map(|grant| &grant.projects).collect();
        Some(all.into_iter().cloned().collect())
    }
    /// Whether the triggers of a task may be answered, in some project.
    pub fn executes(&self, task: &str) -> bool {
        self.grants.iter().any(|grant| grant.allows(Need::Execute(task), grant.projects.first().map(ProjectName::as_str)))
    }
    /// Lets pass what is allowed in a project; `None`: in all of them.
    ///
    /// # Errors
    /// 403, with what is missing.
    pub fn check(&self, need: Need<'_>, project: Option<&str>) -> Answer<()> {
        if self.may(need, project) { Ok(()) } else { Err(self.lacks(need, project)) }
    }
    /// Lets pass who may start by hand a sequence that otherwise follows the end of another one.
    ///
    /// # Errors
    /// 403, with the scope that is missing and why it is asked for.
    pub fn starts_follow_up(&self, (stage, sequence): (&str, &str), project: Option<&str>) -> Answer<()> {
        self.check(Need::TriggerIn(stage), project).map_err(|mut refused| {
            refused.problem.detail += &format!(
                "; sequence {sequence} of stage {stage} begins after the end of another one, and whoever starts it by hand goes around what comes before it"
            );
            refused
        })
    }
    /// The refusal of what is not allowed.
    pub fn lacks(&self, need: impl std::fmt::Display, project: Option<&str>) -> Refused {
        self.forbidden(need, project.map_or(Place::Everywhere, Place::In))
    }
    /// 403 to somebody who may do this in no project.
    pub fn lacks_anywhere(&self, need: impl std::fmt::Display) -> Refused {
        self.forbidden(need, Place::Somewhere)
    }
    fn forbidden(&self, need: impl std::fmt::Display, place: Place<'_>) -> Refused {
        Refused::new(StatusCode::FORBIDDEN, "forbidden", missing(need, place, &self.grants))
    }

    /// Tells the audit what is done, where the route does not.
    pub fn acts(&self, action: &'static str) {
        self.told().action = action;
    }
    /// Tells the audit in words what is done, and where.
    pub fn tells(&self, project: &str, what: impl Into<String>) {
        let mut told = self.told();
        told.project = project.to_owned();
        told.what = what.into();
    }
    /// Tells the audit that nothing is done: it was done before, or somebody only asked what would be done.
    pub fn does_nothing(&self) {
        self.told().nothing = true;
    }
    /// What the audit is told.
    pub fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Refused;
    /// Every request that reaches a handler has one.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        parts.extensions.get().cloned().ok_or_else(Refused::internal)
    }
}
