//! The border between projects: what a project may name outside of itself, and who decides that.
//!
//! A name that a project gives is data from outside. Two questions are asked before anything is done with it, here and nowhere else:
//!
//! * **Another project's own** (a config, a tag, a cluster, a stage): has that project consented? [`Consents::let_in`] answers with a
//!   [`Reached`], and what acts in a namespace takes nothing else.
//! * **The installation's** (a function, a repository, a build): may this project use it? The project's [`Policy`] says so, which only
//!   administrators of the installation write. A project without a policy may use what such an administrator applied himself
//!   ([`Standing`]). What acts on it takes a [`Permitted`].
//!
//! Both are asked when a manifest is applied and again before each act, because a right may end in between.

mod consent;
mod policy;
mod resource;

pub use consent::{Act, Consent, Consents, NoConsent, Reached};
pub use policy::{Denied, Pattern, Permitted, Policy, Quotas, Standing};
pub use resource::{Resource, ResourceKind};
