//! A document of a manifest, whatever its kind: what `apply` asks of it.

use super::border::Outside;
use super::{Kept, Kind};
use crate::Api;
use crate::fence::manifests::too_large;
use crate::fence::problem::{Answer, Refused};
use axum::http::StatusCode;
use keelway_domain::address::Address;
use keelway_domain::border::{Counted, Vouched};
use keelway_domain::diff::{FieldChange, diff};
use keelway_domain::names::ProjectName;
use keelway_domain::shipyard::Shipyard;
use keelway_engine::projects::ProjectSettings;
use keelway_engine::protocol::declare::Outcome;
use keelway_wire::http::AppliedDocument;
use keelway_wire::manifest::{self, Finding};
use serde_json::json;
use std::future::Future;

/// The number of definitions in one read.
const PAGE: u32 = 100;

/// What a manifest declares.
#[derive(Debug)]
pub struct Said<'a, T> {
    /// Empty: it belongs to the installation.
    pub namespace: &'a str,
    pub name: &'a str,
    /// What it says; a request to roll back has none.
    pub spec: Option<&'a T>,
    /// The text as it was written.
    pub source: &'a str,
}

impl<T> Said<'_, T> {
    /// Where it will be.
    pub fn at(&self) -> Address {
        Address::new(self.namespace, self.name)
    }
}

/// How documents are applied.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// Only if this revision of the shipyard is in force.
    pub replaces: Option<&'a str>,
    /// Who applies them; may be empty.
    pub by: &'a str,
    /// Only report the changes.
    pub dry_run: bool,
}

/// The documents of the same text, as far as others depend on them.
#[derive(Default)]
pub struct Context<'a> {
    pub projects: Vec<&'a ProjectSettings>,
    pub shipyards: Vec<(&'a ProjectName, &'a Shipyard)>,
    /// Git hosts by name, and their hosts.
    pub hosts: Vec<(&'a str, &'a str)>,
    /// The revision that a shipyard replaces.
    pub replaces: Option<&'a str>,
}

impl<'a> Context<'a> {
    /// Of these documents.
    pub fn of<D: Document>(documents: &'a [D], replaces: Option<&'a str>) -> Self {
        let mut context = Self { replaces, ..Self::default() };
        documents.iter().for_each(|document| document.join(&mut context));
        context
    }

    /// The shipyard of a project.
    pub fn shipyard(&self, of: &ProjectName) -> Option<&'a Shipyard> {
        self.shipyards.iter().find(|(project, _)| *project == of).map(|(_, shipyard)| *shipyard)
    }
}

/// What a change of the vouch is called.
const VOUCHED: &str = "vouched";

/// A document as it is in force, or as it will be.
#[derive(Debug, PartialEq)]
pub struct Known {
    /// Its text; of a project, of which no text is kept, one that says the same.
    pub text: String,
    /// Whether an administrator of the installation vouches for it; never for what names nothing of the installation's.
    pub vouched: bool,
}

impl Known {
    /// One that nobody vouches for.
    pub fn plain(text: String) -> Self {
        Self { text, vouched: false }
    }

    /// What differs from what was before.
    pub fn unlike(&self, before: &Self) -> Vec<FieldChange> {
        let mut changes = diff(&manifest::value_of(&before.text), &manifest::value_of(&self.text));
        if self.vouched != before.vouched {
            let (was, becomes) = (Some(json!(before.vouched)), Some(json!(self.vouched)));
            changes.push(FieldChange { field: VOUCHED.into(), was, becomes });
        }
        changes
    }
}

/// What a document is called.
pub struct Called<'a> {
    /// The name in manifests.
    pub kind: &'static str,
    pub name: &'a str,
    /// The project whose administrators may apply it; `None`: it concerns all of them.
    pub project: Option<&'a str>,
    /// What tells it from the other documents of its kind: `named <name>`, or `for <what>`.
    pub identity: String,
    /// Its place among the documents of a text: what others name has 0 and comes first.
    pub order: usize,
}

/// A document that can be applied.
pub trait Document: Sync {
    /// What it is called.
    fn called(&self) -> Called<'_>;
    /// What it is called in the answer.
    fn answer(&self) -> AppliedDocument {
        let Called { kind, name, project, .. } = self.called();
        let project = project.unwrap_or_default().into();
        AppliedDocument { kind: kind.into(), name: name.into(), project, ..AppliedDocument::default() }
    }
    /// Tells the context what others need to know of it.
    fn join<'a>(&'a self, _context: &mut Context<'a>) {}
    /// Notes whether an administrator of the installation vouches for it.
    fn vouch(&mut self, _vouched: bool) {}
    /// What it names outside of its namespace.
    fn outside(&self, _api: &Api) -> impl Future<Output = Answer<Outside<'_>>> + Send {
        async { Ok(Outside::default()) }
    }
    /// What would be refused, before anything is written.
    fn validate(&self, api: &Api, with: &Context<'_>) -> impl Future<Output = Answer<()>> + Send;
    /// What it is counted as, and in which namespace, if it is new and there may not be any number.
    fn counted(&self, _api: &Api) -> impl Future<Output = Answer<Option<(Counted, &str)>>> + Send {
        async { Ok(None) }
    }
    /// How many of its kind its namespace has: at least `most`, if there are that many.
    fn count(&self, _api: &Api, _most: usize) -> impl Future<Output = Answer<usize>> + Send {
        async { Ok(0) }
    }
    /// What people should know of it when it was applied.
    fn warnings(&self, _api: &Api) -> impl Future<Output = Answer<Vec<Finding>>> + Send {
        async { Ok(vec![]) }
    }
    /// Puts it in force, or says what that would change.
    fn store(&self, api: &Api, how: How<'_>) -> impl Future<Output = Answer<AppliedDocument>> + Send;
}

/// Puts a document in force of which this was in force before, and says what differs; in a dry run it only says that.
pub async fn put(
    (before, after): (Option<Known>, Known),
    answer: AppliedDocument,
    changed: Option<impl Future<Output = Answer<bool>>>,
) -> Answer<AppliedDocument> {
    let changed = match changed {
        None => before.as_ref() != Some(&after),
        Some(changed) => changed.await?,
    };
    let changes = before.filter(|_| changed).map(|before| after.unlike(&before)).unwrap_or_default();
    Ok(AppliedDocument { changed, changes, ..answer })
}

fn too_many<K: Kind>() -> Refused {
    let detail = format!("there are {} {}s: delete one before you apply another", K::MOST, K::NOUN);
    Refused::new(StatusCode::CONFLICT, &format!("too many {}s", K::NOUN), detail)
}

impl<K: Kind> Document for K {
    fn called(&self) -> Called<'_> {
        let (said, project) = (self.said(), self.project());
        Called { kind: K::KIND, name: said.name, project, identity: format!("named {}", said.at()), order: K::ORDER }
    }

    fn answer(&self) -> AppliedDocument {
        let Said { namespace, name, .. } = self.said();
        AppliedDocument { kind: K::KIND.into(), name: name.into(), project: namespace.into(), ..AppliedDocument::default() }
    }

    fn join<'a>(&'a self, context: &mut Context<'a>) {
        Kind::join(self, context);
    }

    fn vouch(&mut self, vouched: bool) {
        if let Some(spec) = self.spec() {
            spec.vouch(vouched);
        }
    }

    async fn outside(&self, api: &Api) -> Answer<Outside<'_>> {
        let said = self.said();
        let Some(spec) = said.spec else { return Ok(Outside::default()) };
        let mut outside = K::outside(said.namespace, spec, &api.deployments().home());
        // Whoever applies the same again does not take a vouch away.
        if !outside.vouched && !outside.resources.is_empty() {
            let old = K::kept(api).get(&said.at()).await?;
            outside.vouched = spec.in_place_of(old.as_ref().map(|old| &old.spec)).vouched();
        }
        Ok(outside)
    }

    async fn validate(&self, api: &Api, with: &Context<'_>) -> Answer<()> {
        let said = self.said();
        if said.spec.is_some_and(|spec| !K::kept(api).fits(&said.at(), spec, said.source)) {
            return Err(too_large(K::NOUN, &said.at()));
        }
        Kind::validate(self, api, with).await
    }

    async fn counted(&self, api: &Api) -> Answer<Option<(Counted, &str)>> {
        let (Some(counted), said) = (K::COUNTED, self.said()) else { return Ok(None) };
        let known = K::kept(api).get(&said.at()).await?;
        Ok(known.is_none().then_some((counted, said.namespace)))
    }

    async fn count(&self, api: &Api, most: usize) -> Answer<usize> {
        let (mut found, mut after) = (0, None);
        loop {
            let (page, next) = K::kept(api).names(self.said().namespace, after.as_deref(), PAGE).await?;
            found += page.len();
            after = next;
            if found >= most || after.is_none() {
                return Ok(found);
            }
        }
    }

    async fn warnings(&self, api: &Api) -> Answer<Vec<Finding>> {
        Kind::warnings(self, api).await
    }

    async fn store(&self, api: &Api, how: How<'_>) -> Answer<AppliedDocument> {
        let said = self.said();
        // What has no spec was refused before.
        let spec = said.spec.ok_or_else(Refused::internal)?;
        let old = K::kept(api).get(&said.at()).await?;
        let vouched = spec.in_place_of(old.as_ref().map(|old| &old.spec)).vouched();
        let compared = old.as_ref().and_then(|old| K::compared(&said.at(), old, spec));
        let after = Known { text: said.source.to_owned(), vouched };
        let before = old.map(|old| Known { vouched: old.spec.vouched(), text: old.source });
        let store = async {
            let outcome = K::kept(api).put(&said.at(), spec, said.source, how.by).await?;
            match outcome {
                // It takes the place of every other one, so there is no conflict.
                Outcome::Changed(_) | Outcome::Unchanged(_) | Outcome::Conflict(_) => {}
                Outcome::TooLarge => return Err(too_large(K::NOUN, &said.at())),
                Outcome::TooMany => return Err(too_many::<K>()),
            }
            K::applied(api).await?;
            Ok(outcome.is_change())
        };
        let mut answer = put((before, after), Document::answer(self), (!how.dry_run).then_some(store)).await?;
        if let Some([old, new]) = compared.filter(|_| answer.changed) {
            answer.changes.retain(|change| change.field == VOUCHED);
            answer.changes.splice(0..0, diff(&old, &new));
        }
        Ok(answer)
    }
}
