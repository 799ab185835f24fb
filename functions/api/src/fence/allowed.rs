//! The permission that a route needs, and its action in the audit. The first argument of every handler names both, so no route can
//! lack them.
//!
//! `caller: Allowed<scope::Administer, act::Delete>` is a caller with the scope `administer` in the project of the path, or in all
//! projects if the path has none. [`auth`](crate::fence::auth) has checked this before the handler is called.

use crate::fence::caller::Caller;
use crate::fence::input::Argument;
use crate::fence::problem::Refused;
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use keelway_domain::access::Kind;
use std::marker::PhantomData;
use std::ops::Deref;

/// The permission that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// No API token: its handler checks what the request has instead.
    Itself(Proof),
    /// Any valid token.
    Token,
    /// One of these scopes in the project or namespace of the path, or in all projects if the path has none.
    Scope(&'static [Kind]),
    /// As `Scope`; or, without a token, a signature over the whole request, which its handler checks.
    OrSigned(&'static [Kind]),
    /// One of these scopes in any project. The handler checks project, task or stage, or shows only what the caller may see.
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

/// A caller with the permission that the route needs.
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

/// A permission at the type level.
pub trait Need: Send + 'static {
    /// Its value.
    const NEEDS: Needs;
}

/// An action of the audit at the type level.
pub trait Act: Send + 'static {
    /// Its name. Empty: the request is not in the audit, or the handler sets the action.
    const NAME: &'static str;
}

/// A scope.
pub trait Scope: Send + 'static {
    /// Of this kind.
    const KIND: Kind;
}

/// One or more scopes, of which one suffices.
pub trait Scopes: Send + 'static {
    /// These.
    const KINDS: &'static [Kind];
}

impl<K: Scopes> Need for K {
    const NEEDS: Needs = Needs::Scope(K::KINDS);
}

/// The permissions that routes can need: a scope in the project of the path, or one of the types below.
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

    /// A scope in any project. The handler checks the project.
    pub struct Anywhere<K>(PhantomData<K>);

    impl<K: Scopes> Need for Anywhere<K> {
        const NEEDS: Needs = Needs::Handler(K::KINDS);
    }

    /// Any valid token.
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

/// The actions of the audit.
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

/// The arguments of a handler, the first of which names the permission.
#[diagnostic::on_unimplemented(
    message = "nothing says what this route needs",
    label = "the first argument of its handler must be an `Allowed<…>`"
)]
pub trait Says: Send + 'static {
    /// The permission that the route needs.
    const NEEDS: Needs;
    /// The action in the audit.
    const ACT: &'static str;
    /// Whether it takes parameters of the query string.
    const PARAMETERS: bool;
}

/// The form of axum's handlers: a marker, followed by the type of each argument.
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

/// A route with its permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The method. `ANY`: every method.
    pub method: &'static str,
    /// Its path.
    pub path: String,
    /// The permission that it needs.
    pub needs: Needs,
    /// The action in the audit. Empty: requests are not in the audit, or the handler sets the action.
    pub act: &'static str,
    /// Whether it takes parameters of the query string. Otherwise, a request that has some is refused.
    pub parameters: bool,
}

/// The permission for a request, and its action in the audit. A method that the path does not have needs an administrator of the
/// installation.
pub fn of(listed: &[Listed], method: &Method, path: &str) -> (Needs, &'static str) {
    // An unknown path: every valid token gets 404.
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

/// The routes that start sequences by hand. A sequence that follows the end of another one needs [`FOLLOW_UP`].
pub const BY_HAND: [&str; 2] = ["/v1/event", "/v1/sequence/{project}/{context}/retry"];
/// The scope for it.
pub const FOLLOW_UP: &str = "trigger:<stage>";

/// The text of a scope in tokens.
pub fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Trigger => "trigger",
        Kind::Execute => "execute:<task>",
        Kind::Approve => "approve:<stage>",
        Kind::Administer => "administer",
    }
}
