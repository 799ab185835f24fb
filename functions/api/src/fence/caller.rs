//! The caller of a request: grants, and notes for the audit.

use crate::fence::problem::{Answer, Refused};
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use keelway_domain::access::{self, ADMINISTRATOR, Grant, Kind, Need, Place, missing};
use keelway_domain::ids::sha256_hex;
use keelway_domain::names::ProjectName;
use keelway_domain::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The caller of a request, as an extension of it. Clones share the notes for the audit.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The name of the token, the identity provider, or the key of the signature.
    pub token: String,
    /// The name at the identity provider.
    pub subject: String,
    /// The verified identity, which approvals, causes and the audit use.
    pub known: String,
    /// The address. Empty: it is not known.
    pub address: String,
    /// The id that separates the idempotency keys of callers.
    pub id: String,
    /// The hash of the secret in the request. Empty for tokens of identity providers, which change with each request.
    pub secret: String,
    /// The grants.
    pub grants: Arc<[Grant]>,
    /// When the token or its secret ends by itself. `None`: never.
    pub ends: Option<Timestamp>,
    /// The key that signed the request. Its holder vouches for the names that they give.
    key: Option<String>,
    told: Arc<Mutex<Told>>,
}

/// The notes of a handler for the audit.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// The action, if the route does not set it.
    pub action: &'static str,
    /// The key that signed it.
    pub key: Option<String>,
    /// The person for whom the holder of the key vouches.
    pub by: Option<String>,
    /// The id of the entry, if the request has an idempotency key.
    pub id: Option<u64>,
    /// The project.
    pub project: String,
    /// Further projects, each with the request in words, as far as it is about that project.
    pub others: Vec<(String, String)>,
    /// The request in words.
    pub what: String,
    /// The caller's own words about itself.
    pub note: String,
    /// Whether the request had no effect.
    pub nothing: bool,
}

impl Caller {
    /// A caller with these grants.
    pub fn new(token: impl Into<String>, known: String, id: String, grants: Vec<Grant>) -> Self {
        Self {
            token: token.into(),
            subject: String::new(),
            known,
            address: String::new(),
            id,
            secret: String::new(),
            grants: grants.into(),
            ends: None,
            key: None,
            told: Arc::default(),
        }
    }
    /// The holder of a token of the deployment.
    pub fn administrator(id: String) -> Self {
        Self::new(ADMINISTRATOR, ADMINISTRATOR.into(), id, vec![Grant::everything()])
    }
    /// A caller without a token and without a verified signature.
    pub fn nobody() -> Self {
        Self::new("", String::new(), String::new(), vec![])
    }
    /// A person whom an identity provider vouches for.
    pub fn called(self, subject: String) -> Self {
        Self { subject, ..self }
    }
    /// Sets when the token ends.
    pub fn until(self, ends: Option<Timestamp>) -> Self {
        Self { ends, ..self }
    }
    /// Sets the hash of the secret.
    pub fn with(self, secret: String) -> Self {
        Self { secret, ..self }
    }
    /// A key for the caller with credential and grants: a token that was created again, or got other projects, has another key.
    pub fn standing(&self) -> String {
        let grants: Vec<String> = self.grants.iter().map(ToString::to_string).collect();
        sha256_hex(format!("{}\n{}\n{}", self.id, self.secret, grants.join("\n")).as_bytes())
    }
    /// Sets the address.
    pub fn at(self, address: String) -> Self {
        Self { address, ..self }
    }
    /// The holder of the key that signed the request.
    pub fn signed(&self, key: &str) -> Self {
        let (token, known) = (format!("key {key}"), access::of_key(key, ""));
        let mut told = self.told();
        told.key = Some(token.clone());
        told.by = Some(known.clone());
        drop(told);
        Self { token, known, key: Some(key.to_owned()), ..self.clone() }
    }

    /// The name under which others see the caller: the verified identity, and the given name as a note. The holder of a key vouches
    /// for the given name, so it is a part of the verified identity then.
    pub fn by(&self, said: Option<String>) -> String {
        let said = said.unwrap_or_default();
        let mut told = self.told();
        told.note.clone_from(&said);
        let Some(key) = &self.key else { return access::by(&self.known, &said) };
        let known = access::of_key(key, &said);
        told.by = Some(known.clone());
        known
    }

    /// Whether the caller has this permission in a project.
    pub fn may(&self, need: Need<'_>, project: Option<&str>) -> bool {
        self.grants.iter().any(|grant| grant.allows(need, project))
    }
    /// Whether the caller administers the whole installation. Their definitions are vouched for then, and they may write policies.
    pub fn administers_everything(&self) -> bool {
        self.may(Need::Administer, None)
    }
    /// Whether the caller has a scope of this kind in any project.
    pub fn has(&self, kind: Kind) -> bool {
        self.grants.iter().any(|grant| grant.has(kind))
    }
    /// Whether the caller has a scope of this kind in a project, for any task or stage.
    pub fn has_in(&self, kind: Kind, project: Option<&str>) -> bool {
        self.grants.iter().any(|grant| grant.has(kind) && grant.reaches(project))
    }
    /// Whether the caller may read in a project.
    pub fn sees(&self, project: &str) -> bool {
        self.may(Need::Read, Some(project))
    }
    /// The projects that the caller may see, by name. `None`: all.
    pub fn seen(&self) -> Option<Vec<ProjectName>> {
        self.projects_with(Kind::Read)
    }
    /// The projects that the caller administers, by name. `None`: all.
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
    /// Whether the caller may answer the triggers of a task in any project.
    pub fn executes(&self, task: &str) -> bool {
        self.grants.iter().any(|grant| grant.allows(Need::Execute(task), grant.projects.first().map(ProjectName::as_str)))
    }
    /// Checks a permission in a project. `None`: in all projects.
    ///
    /// # Errors
    /// 403, with what is missing.
    pub fn check(&self, need: Need<'_>, project: Option<&str>) -> Answer<()> {
        if self.may(need, project) { Ok(()) } else { Err(self.lacks(need, project)) }
    }
    /// Checks that the caller may start, by hand, a sequence that follows the end of another one.
    ///
    /// # Errors
    /// 403, with the missing scope and the reason why it is needed.
    pub fn starts_follow_up(&self, (stage, sequence): (&str, &str), project: Option<&str>) -> Answer<()> {
        self.check(Need::TriggerIn(stage), project).map_err(|mut refused| {
            refused.problem.detail += &format!(
                "; sequence {sequence} of stage {stage} begins after the end of another one, and whoever starts it by hand goes around what comes before it"
            );
            refused
        })
    }
    /// The refusal for a missing permission.
    pub fn lacks(&self, need: impl std::fmt::Display, project: Option<&str>) -> Refused {
        self.forbidden(need, project.map_or(Place::Everywhere, Place::In))
    }
    /// 403 for a caller without this permission in any project.
    pub fn lacks_anywhere(&self, need: impl std::fmt::Display) -> Refused {
        self.forbidden(need, Place::Somewhere)
    }
    fn forbidden(&self, need: impl std::fmt::Display, place: Place<'_>) -> Refused {
        Refused::new(StatusCode::FORBIDDEN, "forbidden", missing(need, place, &self.grants))
    }

    /// Sets the action in the audit, if the route does not.
    pub fn acts(&self, action: &'static str) {
        self.told().action = action;
    }
    /// Notes for the audit what is done, as a sentence without its subject: `deleted pipeline carts`. The project is known.
    pub fn says(&self, what: impl Into<String>) {
        self.told().what = what.into();
    }
    /// Notes for the audit what is done, and in which project.
    pub fn tells(&self, project: &str, what: impl Into<String>) {
        let mut told = self.told();
        told.project = project.to_owned();
        told.what = what.into();
    }
    /// Notes for the audit what is done in each of several projects. Whoever administers one of them reads nothing of the others.
    pub fn tells_each(&self, mut all: Vec<(String, String)>) {
        if all.is_empty() {
            return;
        }
        let (project, what) = all.remove(0);
        self.tells(&project, what);
        self.told().others = all;
    }
    /// Notes that the request had no effect: it was handled before, or it is a dry run.
    pub fn does_nothing(&self) {
        self.told().nothing = true;
    }
    /// The notes for the audit.
    pub fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Refused;
    /// Every request that reaches a handler has a caller.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        parts.extensions.get().cloned().ok_or_else(Refused::internal)
    }
}
