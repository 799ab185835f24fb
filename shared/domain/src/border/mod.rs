//! The border of a project: what its definitions may refer to outside of the project, and who decides that.
//!
//! A name in a manifest is untrusted input. Two questions are asked before Keelway acts on one, in this module and nowhere else:
//!
//! * **What belongs to another project** (a config, a tag, a cluster, a stage): has that project consented? [`Consents::let_in`]
//!   returns a [`Reached`]; functions that act in a namespace take nothing else.
//! * **What belongs to the installation** (a function, a repository, a build): may this project use it? The project's [`Policy`]
//!   decides, which only administrators of the installation write. A project without a policy may use what such an administrator
//!   has applied ([`Vouched`], [`Standing`]). Functions that act on a resource take a [`Permitted`].
//!
//! Both questions are asked when a manifest is applied, and again before each action, because permission may be withdrawn in
//! between.

mod aws;
mod consent;
mod policy;
mod quota;
mod resource;
mod vouch;

pub use consent::{Act, Consent, Consents, NoConsent, Reached};
pub use policy::{Denied, Pattern, Permitted, Policy, Standing};
pub use quota::{Counted, Exceeded, Quotas};
pub use resource::{Home, Resource, ResourceKind, Unreadable};
pub use vouch::Vouched;

/// The change that a manifest makes to a member that keeps its value unless the manifest names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Update<T> {
    /// The manifest does not name the member: the present value stays.
    #[default]
    Keep,
    /// The manifest sets this value.
    Set(T),
}

impl<T> Update<T> {
    /// The value after the change.
    pub fn over(self, present: T) -> T {
        match self {
            Update::Keep => present,
            Update::Set(value) => value,
        }
    }
}
