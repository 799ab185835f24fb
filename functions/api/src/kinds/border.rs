//! What documents name outside of their namespace, and whether they may: what is another project's own, and what belongs to the
//! installation. What a document of a kind names stands in [`Kind::outside`](super::Kind::outside).

use super::{Called, Context, Document};
use crate::Api;
use crate::fence::caller::Caller;
use crate::fence::problem::{Answer, Refused};
use axum::http::StatusCode;
use keelway_domain::access::Need;
use keelway_domain::border::{Act, Consent, Denied, Home, NoConsent, Resource};
use keelway_engine::border::Border;
use keelway_engine::projects::ProjectSettings;
use keelway_engine::protocol::Inbox;
use std::collections::BTreeMap;

/// What a document names outside of its namespace.
#[derive(Debug, Default)]
pub struct Outside<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// What is other projects' own.
    pub others: Vec<Elsewhere>,
    /// What belongs to the installation, and the field that names it.
    pub resources: Vec<(String, Resource)>,
    /// Fields that say what no manifest may say, and why.
    pub refused: Vec<(String, String)>,
    /// Whether an administrator of the installation applies it.
    pub vouched: bool,
}

/// Something in another namespace.
#[derive(Debug)]
pub struct Elsewhere {
    /// The field that names it.
    pub field: String,
    /// What whoever applies the document needs there.
    pub need: Need<'static>,
    /// What the namespace has to consent to.
    pub act: Act,
    /// Which namespace, and what in it.
    pub of: (String, String),
    /// The sequence that it starts there.
    pub sequence: Option<String>,
}

impl Outside<'_> {
    /// Refuses what no manifest may say.
    fn said(&self) -> Answer<()> {
        self.refused.first().map_or(Ok(()), |(field, why)| Err(Refused::field(field, why)))
    }
    /// What really is in another namespace.
    fn elsewhere(&self) -> impl Iterator<Item = &Elsewhere> {
        self.others.iter().filter(|other| other.of.0 != self.namespace)
    }
}

/// What a definition names, and may not.
#[derive(Debug)]
pub struct Gap {
    /// The field that names it.
    pub field: String,
    /// What is missing.
    pub lack: Lack,
}

/// What is missing for a name.
#[derive(Debug)]
pub enum Lack {
    /// The consent of another project; this entry would be one.
    Consent(NoConsent, Consent),
    /// A place in the project's policy.
    Policy(Denied),
    /// There is no policy, and no administrator of the installation has applied the definition.
    Vouch(Denied),
    /// No manifest may say it.
    Form(String),
}

/// Refuses documents that name what they may not: where the caller lacks a right, where a project has not consented, and what a
/// project may not use of the installation. It is asked again before each act.
pub(crate) async fn check<D: Document>(api: &Api, caller: &Caller, documents: &[D]) -> Answer<()> {
    let mut borders = Borders { projects: Context::of(documents, None).projects, ..Borders::of_now(api) };
    for document in documents {
        let Called { kind, name, .. } = document.called();
        let outside = document.outside(api).await?;
        outside.said()?;
        borders.check(caller, &outside).await.map_err(|mut refused| {
            refused.problem.detail = format!("{kind} {name}: {}", refused.problem.detail);
            refused
        })?;
    }
    Ok(())
}

/// The same for one document that is not applied with others.
pub(crate) async fn check_one(api: &Api, caller: &Caller, outside: &Outside<'_>) -> Answer<()> {
    outside.said()?;
    Borders::of_now(api).check(caller, outside).await
}

/// The border of a namespace as it is when these projects are in force.
pub(crate) async fn becoming(api: &Api, projects: &[&ProjectSettings], namespace: &str) -> Answer<Border> {
    let mut border = Border::of(api.deployments().ports(), namespace).await?;
    for settings in projects.iter().filter(|settings| settings.name.as_str() == namespace) {
        border = border.with(settings.consents.clone(), settings.policy.clone());
    }
    Ok(border)
}

/// The borders of the namespaces concerned, each read once, and as they are when the documents are in force.
pub struct Borders<'a> {
    api: &'a Api,
    projects: Vec<&'a ProjectSettings>,
    known: BTreeMap<String, Border>,
}

impl<'a> Borders<'a> {
    /// As they are stored.
    pub fn of_now(api: &'a Api) -> Self {
        Self { api, projects: vec![], known: BTreeMap::new() }
    }

    async fn of(&mut self, namespace: &str) -> Answer<&Border> {
        if !self.known.contains_key(namespace) {
            self.known.insert(namespace.to_owned(), becoming(self.api, &self.projects, namespace).await?);
        }
        self.known.get(namespace).ok_or_else(Refused::internal)
    }

    /// What a namespace does not let `from` do.
    async fn no_consent(
        &mut self,
        from: &str,
        Elsewhere { act, of: (namespace, name), .. }: &Elsewhere,
    ) -> Answer<Option<NoConsent>> {
        Ok(self.of(namespace).await?.let_in(from, *act, name).err())
    }

    /// What its project does not let a definition use.
    async fn denied(&mut self, outside: &Outside<'_>, resource: &Resource) -> Answer<Option<Denied>> {
        let home: Home = self.api.deployments().home();
        Ok(self.of(outside.namespace).await?.permit(resource.clone(), outside.vouched, &home).err())
    }

    /// Whether whoever applies it may do the same there by hand.
    async fn entitled(&self, caller: &Caller, other: &Elsewhere) -> Answer<()> {
        let (namespace, name) = &other.of;
        let Some(sequence) = &other.sequence else { return caller.check(other.need, Some(namespace)) };
        if !caller.may(Need::TriggerIn(name), Some(namespace)) {
            caller.check(other.need, Some(namespace))?;
            if self.api.engine().is_follow_up(namespace, (name, sequence)).await? {
                return caller.starts_follow_up((name, sequence), Some(namespace));
            }
        }
        Ok(())
    }

    async fn check(&mut self, caller: &Caller, outside: &Outside<'_>) -> Answer<()> {
        let at =
            |field: &str, why: &dyn std::fmt::Display| Refused::new(StatusCode::FORBIDDEN, "forbidden", format!("{field}: {why}"));
        let own = format!("or name what is in {}", outside.namespace);
        for other in outside.elsewhere() {
            // Whoever may do nothing there does not learn what it consents to.
            self.entitled(caller, other)
                .await
                .map_err(|refused| at(&other.field, &format!("{}, {own}", refused.problem.detail)))?;
            if let Some(why) = self.no_consent(outside.namespace, other).await? {
                return Err(at(&other.field, &format!("{why}, {own}")));
            }
        }
        for (field, resource) in &outside.resources {
            if let Some(why) = self.denied(outside, resource).await? {
                return Err(at(field, &why));
            }
        }
        Ok(())
    }

    /// Everything that a stored definition names and may not. Whoever applied it had the rights that this took; they are not asked
    /// for again, as they are not before an act.
    pub(crate) async fn gaps(&mut self, outside: &Outside<'_>) -> Answer<Vec<Gap>> {
        let form = |(field, why): &(String, String)| Gap { field: field.clone(), lack: Lack::Form(why.clone()) };
        let mut gaps: Vec<Gap> = outside.refused.iter().map(form).collect();
        for other in outside.elsewhere() {
            if let Some(why) = self.no_consent(outside.namespace, other).await? {
                let (to, may, names) = (vec![why.from.clone()], vec![why.act], vec![why.name.clone()]);
                let lack = Lack::Consent(why, Consent { to, may, names });
                gaps.push(Gap { field: other.field.clone(), lack });
            }
        }
        for (field, resource) in &outside.resources {
            if let Some(why) = self.denied(outside, resource).await? {
                let has_policy = self.of(outside.namespace).await?.policy().is_some();
                let lack = if has_policy { Lack::Policy(why) } else { Lack::Vouch(why) };
                gaps.push(Gap { field: field.clone(), lack });
            }
        }
        Ok(gaps)
    }
}
