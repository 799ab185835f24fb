//! The border of a namespace: the consents that it gives, and its policy. Both are in the item of the project, so one read
//! suffices.
//!
//! Ask twice: when a manifest is applied, so that its author learns what is missing; and again before each act (a version is cut, a
//! tag is moved, a cluster is read, an alias is shifted, a build is started), because permission may be withdrawn in between. The
//! answers, [`Reached`] and [`Permitted`], are never stored.

use super::keys;
use crate::item::{Attr, Item, Name};
use crate::json::stored;
use crate::ports::{PortError, Store};
use keelway_domain::border::{
    Act, Consents, Denied, Home, NoConsent, Permitted, Policy, Quotas, Reached, Resource, Standing, Update,
};
use keelway_domain::names::ProjectName;
use keelway_domain::stored::Stored;
use std::borrow::Cow;

/// The attribute with the consents, in the item of a project.
const CONSENTS: &str = "co";
/// The attribute with the policy.
const POLICY: &str = "po";
/// The largest size of both together, in bytes. Every message about a project reads its item.
pub(crate) const MOST_BYTES: usize = 32 * 1024;

/// The border of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Border {
    namespace: String,
    consents: Consents,
    policy: Option<Policy>,
}

impl Border {
    /// Reads the border of a namespace, strongly consistent. For a name without a project, there are neither consents nor a policy.
    ///
    /// # Errors
    /// The store fails, or the item cannot be read. Nothing is permitted then.
    pub async fn of(store: &impl Store, namespace: &str) -> Result<Self, PortError> {
        let item = match ProjectName::new(namespace) {
            Ok(name) => store.get(&keys::project(&name)).await?,
            Err(_) => None,
        };
        Self::read(namespace, item.as_ref())
    }

    /// Reads the border in the item of a project.
    ///
    /// # Errors
    /// An item that cannot be read.
    pub(crate) fn read(namespace: &str, item: Option<&Item>) -> Result<Self, PortError> {
        let Some(item) = item else { return Ok(Self { namespace: namespace.to_owned(), ..Self::default() }) };
        Ok(Self {
            namespace: namespace.to_owned(),
            consents: stored(item, CONSENTS)?.unwrap_or_default(),
            policy: stored(item, POLICY)?,
        })
    }

    /// The border after the changes of a manifest.
    #[must_use]
    pub fn with(self, consents: Update<Consents>, policy: Update<Option<Policy>>) -> Self {
        Self { namespace: self.namespace, consents: consents.over(self.consents), policy: policy.over(self.policy) }
    }

    /// The consents that the namespace gives.
    pub fn consents(&self) -> &Consents {
        &self.consents
    }

    /// The policy. `None`: the namespace may use what administrators of the installation have applied.
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// The quotas of the namespace.
    pub fn quotas(&self) -> Quotas {
        self.policy.as_ref().map(|policy| policy.quotas.clone()).unwrap_or_default()
    }

    /// Lets `from` act on `name` in this namespace. See [`let_in`], which needs no read within one namespace.
    ///
    /// # Errors
    /// There is no consent, and who can give it.
    pub fn let_in(&self, from: &str, act: Act, name: &str) -> Result<Reached, NoConsent> {
        self.consents.let_in(from, act, (&self.namespace, name))
    }

    /// The grounds on which a definition of this namespace may use resources. `vouched`: see [`keelway_domain::border::Vouched`].
    pub fn standing<'a>(&'a self, vouched: bool, home: &'a Home) -> Standing<'a> {
        Standing { project: &self.namespace, policy: self.policy.as_ref(), vouched, home }
    }

    /// Permits a definition of this namespace to use a resource.
    ///
    /// # Errors
    /// What is missing, and who can grant it.
    pub fn permit(&self, resource: Resource, vouched: bool, home: &Home) -> Result<Permitted, Denied> {
        self.standing(vouched, home).permit(resource)
    }

    /// The border as attributes of the project's item. `None`: the attribute is absent.
    pub(crate) fn attrs(&self) -> [(Name, Option<Attr>); 2] {
        let consents = (!self.consents.0.is_empty()).then(|| self.consents.to_json().into());
        let policy = self.policy.as_ref().map(|policy| policy.to_json().into());
        [(Cow::Borrowed(CONSENTS), consents), (Cow::Borrowed(POLICY), policy)]
    }

    /// The size in the item, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.attrs().iter().filter_map(|(_, value)| value.as_ref()).map(Attr::size).sum()
    }
}

/// Lets `from` act on `name` in `namespace`. Within one namespace, neither a consent nor a read of the table is needed. The outer
/// error is that of the store.
///
/// # Errors
/// The store fails.
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
