//! What a route needs, and what the audit calls it: its handler's first argument says both, so that no route is served without.
//!
//! `caller: Allowed<scope::Administer, act::Delete>` is a caller who administers the project of the path, or everything where the
//! path has none. [`auth`](crate::fence::auth) has checked it before the handler is called.

use crate::fence::caller::Caller;
use crate::fence::input::Argument;
use crate::fence::problem::Refused;
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use keelway_domain::access::Kind;
use std::marker::PhantomData;
use std::ops::Deref;

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// No API token: its handler checks what the request has instead.
    Itself(Proof),
    /// Any token that is valid.
    Token,
    /// One of these scopes, in the project or namespace of the path. Without one in the path, in all projects.
    Scope(&'static [Kind]),
    /// As `Scope`; or, without a token, a signature over the whole request, which its handler checks.
    OrSigned(&'static [Kind]),
    /// One of these scopes somewhere; its handler checks for which project, task or stage, or shows only what the caller may see.
    Handler(&'static [Kind]),
}

/// What a request has instead of an API token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The token of the attempt that a deployer reports about.
    Attempt,
    /// A git host's signature over the body.
    GitHost,
}

/// Who sends the request, and may do what the route is for.
pub struct Allowed<N, A = act::Nothing>(pub Caller, PhantomData<(N, A)>);

impl<N, A> Deref for Allowed<N, A> {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl<S: Send + Sync, N, A> FromRequestParts<S> for Allowed<N, A> {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        Ok(Self(Caller::from_request_parts(parts, state).await?, PhantomData))
    }
}

/// What may be needed.
pub trait Need: Send + 'static {
    /// So.
    const NEEDS: Needs;
}

/// What the audit may call a request that succeeds.
pub trait Act: Send + 'static {
    /// So. Empty: it is not in the audit, or the handler says what it is.
    const NAME: &'static str;
}

/// A scope.
pub trait Scope: Send + 'static {
    /// Of this kind.
    const KIND: Kind;
}

/// One scope, or several of which one is enough.
pub trait Scopes: Send + 'static {
    /// These.
    const KINDS: &'static [Kind];
}

impl<K: Scopes> Need for K {
    const NEEDS: Needs = Needs::Scope(K::KINDS);
}

/// What a route can need: one of the scopes, in the project of the path, or what stands below.
pub mod scope {
    use super::{Kind, Need, Needs, PhantomData, Proof, Scope, Scopes};

    macro_rules! kinds {
        ($($name:ident),*) => {
            $(
                #[doc = concat!("The scope `", stringify!($name), "`.")]
                pub struct $name;
                impl Scope for $name {
                    const KIND: Kind = Kind::$name;
                }
                impl Scopes for $name {
                    const KINDS: &'static [Kind] = &[Self::KIND];
                }
            )*
        };
    }

    kinds!(Read, Trigger, Execute, Approve, Administer);

    impl<A: Scope, B: Scope> Scopes for (A, B) {
        const KINDS: &'static [Kind] = &[A::KIND, B::KIND];
    }

    impl<A: Scope, B: Scope, C: Scope> Scopes for (A, B, C) {
        const KINDS: &'static [Kind] = &[A::KIND, B::KIND, C::KIND];
    }

    /// A scope in any project: the handler checks in which.
    pub struct Anywhere<K>(PhantomData<K>);

    impl<K: Scopes> Need for Anywhere<K> {
        const NEEDS: Needs = Needs::Handler(K::KINDS);
    }

    /// Any token that is valid.
    pub struct AnyToken;

    impl Need for AnyToken {
        const NEEDS: Needs = Needs::Token;
    }

    /// A scope; or a signature, which the handler checks.
    pub struct OrSigned<K>(PhantomData<K>);

    impl<K: Scopes> Need for OrSigned<K> {
        const NEEDS: Needs = Needs::OrSigned(K::KINDS);
    }

    /// The token of an attempt, which the handler checks.
    pub struct OfAttempt;

    impl Need for OfAttempt {
        const NEEDS: Needs = Needs::Itself(Proof::Attempt);
    }

    /// The signature of a git host, which the handler checks.
    pub struct OfGitHost;

    impl Need for OfGitHost {
        const NEEDS: Needs = Needs::Itself(Proof::GitHost);
    }
}

/// What the audit calls what is done.
pub mod act {
    use super::Act;

    macro_rules! acts {
        ($($name:ident = $text:literal),* $(,)?) => {
            $(
                #[doc = concat!("`", $text, "`")]
                pub struct $name;
                impl Act for $name {
                    const NAME: &'static str = $text;
                }
            )*
        };
    }

    acts! {
        Nothing = "",
        Apply = "apply",
        Claim = "claim",
        Control = "control",
        Decide = "decide",
        Delete = "delete",
        Observe = "observe",
        Override = "override",
        Push = "push",
        Token = "token",
        Trigger = "trigger",
    }
}

/// The arguments of a handler whose first one says what it needs.
#[diagnostic::on_unimplemented(
    message = "nothing says what this route needs",
    label = "the first argument of its handler must be an `Allowed<…>`"
)]
pub trait Says: Send + 'static {
    /// What the route needs.
    const NEEDS: Needs;
    /// What the audit calls it.
    const ACT: &'static str;
    /// Whether it takes parameters of the query string.
    const PARAMETERS: bool;
}

/// As axum has arguments: a marker, then the type of each.
macro_rules! says {
    ($($other:ident),*) => {
        impl<M: Send + 'static, N: Need, A: Act, $($other: Argument),*> Says for (M, Allowed<N, A>, $($other),*) {
            const NEEDS: Needs = N::NEEDS;
            const ACT: &'static str = A::NAME;
            const PARAMETERS: bool = false $(|| $other::PARAMETERS)*;
        }
    };
}

says!();
says!(B);
says!(B, C);
says!(B, C, D);
says!(B, C, D, E);
says!(B, C, D, E, F);
says!(B, C, D, E, F, G);

/// A route with what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// `ANY`: each of them.
    pub method: &'static str,
    /// Its path.
    pub path: String,
    /// What it asks of its caller.
    pub needs: Needs,
    /// What the audit calls a request that succeeds. Empty: it is not in the audit, or the handler says what it is.
    pub act: &'static str,
    /// Whether it takes parameters of the query string. Otherwise, a request that has some is refused.
    pub parameters: bool,
}

/// What a request needs, and what the audit calls it. One for a method that the path does not take is only let through for an
/// administrator of everything.
pub fn of(listed: &[Listed], method: &Method, path: &str) -> (Needs, &'static str) {
    // Nothing is there: whoever has a token is told so.
    if path.is_empty() {
        return (Needs::Token, "");
    }
    find(listed, method, path).map_or((Needs::Scope(&[Kind::Administer]), "unlisted"), |known| (known.needs, known.act))
}

/// The route that takes a request.
pub fn find<'l>(listed: &'l [Listed], method: &Method, path: &str) -> Option<&'l Listed> {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    listed.iter().find(|known| (known.method == method || known.method == "ANY") && known.path == path)
}

/// The routes that start sequences by hand: what follows the end of another one takes [`FOLLOW_UP`].
pub const BY_HAND: [&str; 2] = ["/v1/event", "/v1/sequence/{project}/{context}/retry"];
/// The scope for it.
pub const FOLLOW_UP: &str = "trigger:<stage>";

/// A scope as tokens have it.
pub fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Trigger => "trigger",
        Kind::Execute => "execute:<task>",
        Kind::Approve => "approve:<stage>",
        Kind::Administer => "administer",
    }
}
