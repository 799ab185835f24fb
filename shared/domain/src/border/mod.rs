//! The border between projects: what a project may name outside of itself, and who decides that.
//!
//! A name that a project gives is data from outside. Two questions are asked before anything is done with it, here and nowhere else:
//!
//! * **Another project's own** (a config, a tag, a cluster, a stage): has that project consented? [`Consents::let_in`] answers with a
//!   [`Reached`], and what acts in a namespace takes nothing else.
//! * **The installation's** (a function, a repository, a build): may this project use it? The project's [`Policy`] says so, which only
//!   administrators of the installation write. A project without a policy may use what such an administrator has applied himself
//!   ([`Vouched`], [`Standing`]). What acts on it takes a [`Permitted`].
//!
//! Both are asked when a manifest is applied and again before each act, because a right may end in between.

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

/// What a manifest says about a member that stays as it is if nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Update<T> {
    /// Nothing: it stays.
    #[default]
    Keep,
    /// It is this from now on.
    Set(T),
}

impl<T> Update<T> {
    /// What it is then, where it is `present` now.
    pub fn over(self, present: T) -> T {
        match self {
            Update::Keep => present,
            Update::Set(value) => value,
        }
    }
}
