//! What a namespace says about its border: who may act in it, and what of the installation it may use. Both are in its project's
//! item, so one read tells everything.
//!
//! Ask twice. When a manifest is applied, so that whoever writes it learns what is missing; and again before each act (a version is
//! cut, a tag is moved, a cluster is read, an alias is shifted, a build is started), because a right may end in between. The
//! answers, [`Reached`] and [`Permitted`], are never stored.

use super::keys;
use crate::item::{Attr, Item, Name};
use crate::json::{json, member};
use crate::ports::{PortError, Store};
use keelway_domain::border::{
    Act, Consents, Denied, Home, NoConsent, Permitted, Policy, Quotas, Reached, Resource, Standing, Update,
};
use keelway_domain::names::ProjectName;
use std::borrow::Cow;

/// The attribute of a project's item that has the consents.
const CONSENTS: &str = "co";
/// The one that has the policy.
const POLICY: &str = "po";
/// The most bytes that both may have together. Whatever happens in a project reads its item.
pub(crate) const MOST_BYTES: usize = 32 * 1024;

/// What a namespace says about its border.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Border {
    namespace: String,
    consents: Consents,
    policy: Option<Policy>,
}

impl Border {
    /// Of a namespace, read now, strongly consistent. A name that no project has: nobody is let in, and there is no policy.
    ///
    /// # Errors
    /// Of the store, and an item that cannot be read: then nothing is let through.
    pub async fn of(store: &impl Store, namespace: &str) -> Result<Self, PortError> {
        let item = match ProjectName::new(namespace) {
            Ok(name) => store.get(&keys::project(&name)).await?,
            Err(_) => None,
        };
        Self::read(namespace, item.as_ref())
    }

    /// Of a namespace whose project's item is this one.
    ///
    /// # Errors
    /// An item that cannot be read.
    pub(crate) fn read(namespace: &str, item: Option<&Item>) -> Result<Self, PortError> {
        let Some(item) = item else { return Ok(Self { namespace: namespace.to_owned(), ..Self::default() }) };
        Ok(Self { namespace: namespace.to_owned(), consents: member(item, CONSENTS)?, policy: member(item, POLICY)? })
    }

    /// The same, with what a manifest says about it.
    #[must_use]
    pub fn with(self, consents: Update<Consents>, policy: Update<Option<Policy>>) -> Self {
        Self { namespace: self.namespace, consents: consents.over(self.consents), policy: policy.over(self.policy) }
    }

    /// What others may do here.
    pub fn consents(&self) -> &Consents {
        &self.consents
    }

    /// What it may use of the installation; none: what administrators of the installation have applied.
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// How much of what all share it may have.
    pub fn quotas(&self) -> Quotas {
        self.policy.as_ref().map(|policy| policy.quotas.clone()).unwrap_or_default()
    }

    /// Lets `from` act on what is called `name` here. See [`let_in`], which needs no read for one's own.
    ///
    /// # Errors
    /// There is no consent, and who can give it.
    pub fn let_in(&self, from: &str, act: Act, name: &str) -> Result<Reached, NoConsent> {
        self.consents.let_in(from, act, (&self.namespace, name))
    }

    /// What a definition of this namespace rests on. `vouched`: as its definition says ([`keelway_domain::border::Vouched`]).
    pub fn standing<'a>(&'a self, vouched: bool, home: &'a Home) -> Standing<'a> {
        Standing { project: &self.namespace, policy: self.policy.as_ref(), vouched, home }
    }

    /// Permits a definition of this namespace to use a resource.
    ///
    /// # Errors
    /// What is missing, and who may grant it.
    pub fn permit(&self, resource: Resource, vouched: bool, home: &Home) -> Result<Permitted, Denied> {
        self.standing(vouched, home).permit(resource)
    }

    /// The attributes of the project's item that say it; `None`: it has none of that name.
    pub(crate) fn attrs(&self) -> [(Name, Option<Attr>); 2] {
        let consents = (!self.consents.0.is_empty()).then(|| json(&self.consents).into());
        let policy = self.policy.as_ref().map(|policy| json(policy).into());
        [(Cow::Borrowed(CONSENTS), consents), (Cow::Borrowed(POLICY), policy)]
    }

    /// How many bytes of the item it is.
    pub(crate) fn size(&self) -> usize {
        self.attrs().iter().filter_map(|(_, value)| value.as_ref()).map(Attr::size).sum()
    }
}

/// Lets `from` act on `name` in `namespace`; the outer error is of the store. Whoever stays in their own namespace needs neither a
/// consent nor a read of the table.
///
/// # Errors
/// Of the store.
pub async fn let_in(
    store: &impl Store,
    from: &str,
    act: Act,
    (namespace, name): (&str, &str),
) -> Result<Result<Reached, NoConsent>, PortError> {
    if from == namespace {
        return Ok(Consents::default().let_in(from, act, (namespace, name)));
    }
    Ok(Border::of(store, namespace).await?.let_in(from, act, name))
}
