//! What is the same for all kinds: the list, one, its manifest, and its deletion. [`kind_routes!`] makes the handlers of a kind,
//! because the OpenAPI document needs the path of each in full.

use super::{Kept, Kind, unknown};
use crate::Api;
use crate::fence::allowed::scope;
use crate::fence::caller::Caller;
use crate::fence::input::{Argument, Path, given, no_page_key};
use crate::fence::manifests::text;
use crate::fence::names::{DEFAULT_NAMESPACE, is_name};
use crate::fence::pages::{Asked, after, limit};
use crate::fence::problem::{Answer, Refused};
use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use keelway_domain::access::Need;
use keelway_domain::address::Address;
use keelway_domain::border::Vouched;
use keelway_domain::names::ProjectName;
use keelway_engine::protocol::declare::Declared;
use keelway_wire::http::promotions::{Registered, RegisteredPage};
use serde::Serialize;
use serde_json::Value;
use std::future::Future;

/// The scope of a list that shows what the caller may see.
pub type Anywhere = scope::Anywhere<scope::Read>;
/// The scope of a list that is about the whole installation.
pub type All = scope::Read;

/// How one of a kind is shown.
pub trait Shown: Kind {
    /// Its shape.
    type One: IntoResponse;

    /// One of them, if there is one.
    fn one(api: &Api, at: &Address) -> impl Future<Output = Answer<Option<Self::One>>> + Send;
}

/// How those of a kind are listed.
pub trait Listed: Kind {
    /// The namespace whose definitions are listed if none is named; `None`: those of all that the caller sees.
    const LISTED_IN: Option<&'static str> = None;
    /// The shape of a page.
    type Page: Serialize;

    /// A page of the list.
    fn list(api: &Api, listing: &Listing) -> impl Future<Output = Answer<Self::Page>> + Send;
}

/// A kind whose definitions are shown as [`Registered`].
pub trait Plain: Kind<Spec: Serialize> {}

impl<K: Plain> Shown for K {
    type One = Json<Registered>;

    async fn one(api: &Api, at: &Address) -> Answer<Option<Self::One>> {
        Ok(K::kept(api).get(at).await?.map(|one| Json(registered::<K>(at, &one))))
    }
}

impl<K: Plain> Listed for K {
    type Page = RegisteredPage;

    async fn list(api: &Api, listing: &Listing) -> Answer<RegisteredPage> {
        let (found, next) = listing.declared::<K>(api).await?;
        let items = found.iter().map(|(at, one)| registered::<K>(at, one)).collect();
        Ok(RegisteredPage::new(items, listing.limit, next))
    }
}

fn registered<K: Plain>(at: &Address, one: &Declared<K::Spec>) -> Registered {
    let namespace = Some(at.namespace.clone()).filter(|namespace| !namespace.is_empty());
    let spec = match serde_json::to_value(&one.spec) {
        // The vouch comes from the caller, not from the manifest.
        Ok(Value::Object(spec)) => spec.into_iter().filter(|(field, _)| field != "vouched").collect(),
        _ => Default::default(),
    };
    let (applied_at, version) = (one.at.rfc3339(), one.version);
    // What belongs to the installation is applied by its administrators only.
    let vouched = namespace.is_some() && one.spec.vouched();
    Registered { kind: K::KIND.to_owned(), namespace, name: at.name.clone(), spec, vouched, applied_at, version }
}

/// Which page of a list is asked for.
#[derive(Debug)]
pub struct Listing {
    pub within: Within,
    /// The last one of the page before.
    pub after: Option<String>,
    pub limit: u32,
}

/// The namespaces whose definitions are listed.
#[derive(Debug)]
pub enum Within {
    One(ProjectName),
    /// Those that the caller sees; `None`: all.
    Seen(Option<Vec<ProjectName>>),
}

impl Listing {
    /// The definitions of the page, and the key of the next one.
    pub(crate) async fn declared<K: Kind>(&self, api: &Api) -> Answer<(Vec<(Address, Declared<K::Spec>)>, String)> {
        let (kept, after) = (K::kept(api), self.after.as_deref());
        let (found, next) = match &self.within {
            Within::One(namespace) => kept.page(namespace.as_str(), after, self.limit).await?,
            Within::Seen(among) => kept.everywhere(among.as_deref(), after, self.limit).await?,
        };
        Ok((found, next.unwrap_or_else(|| "0".into())))
    }
}

/// What a path names.
#[derive(Debug)]
pub struct Named {
    pub namespace: String,
    pub name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let Path(named) = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await?;
        let part = |part: &str| named.iter().find(|(name, _)| name == part).map(|(_, value)| value.as_str());
        let namespace = part("namespace").or(part("project")).unwrap_or_default();
        Ok(part("id").map_or_else(|| Self::new(namespace, part("name").unwrap_or_default()), Self::by_id))
    }
}

impl Argument for Named {}

/// Whether something can be in this namespace; what is in none belongs to the installation.
pub fn is_place(namespace: &str) -> bool {
    namespace.is_empty() || ProjectName::new(namespace).is_ok()
}

impl Named {
    /// A name in a namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// What an id names: `<name>` in namespace `default`, or `<namespace>:<name>`.
    pub fn by_id(id: &str) -> Self {
        let (namespace, name) = id.split_once(':').unwrap_or((DEFAULT_NAMESPACE, id));
        Self::new(namespace, name)
    }

    /// Its address, if it can be one.
    pub fn at(&self) -> Option<Address> {
        let Self { namespace, name } = self;
        let at = (is_place(namespace) && is_name(name)).then(|| Address::new(namespace, name))?;
        tracing::Span::current().record("project", namespace);
        Some(at)
    }

    /// The refusal if there is none.
    pub(crate) async fn unknown<K: Kind>(&self, api: &Api) -> Answer<Refused> {
        unknown::<K>(api, &self.namespace, &self.name).await
    }
}

/// A page of the definitions of a kind.
pub(crate) async fn list<K: Listed>(api: &Api, caller: &Caller, asked: Asked<'_>) -> Answer<Json<K::Page>> {
    let within = match given(asked.namespace).or(K::LISTED_IN) {
        None => Within::Seen(caller.seen()),
        Some(namespace) => {
            let namespace = ProjectName::new(namespace).map_err(|error| Refused::field("namespace", error))?;
            caller.check(Need::Read, Some(namespace.as_str()))?;
            Within::One(namespace)
        }
    };
    let (limit, after) = (limit(asked.size)?, after(asked.key)?);
    if let (Within::Seen(_), Some(key)) = (&within, after.filter(|key| key.split('/').any(str::is_empty))) {
        return Err(no_page_key(key));
    }
    Ok(Json(K::list(api, &Listing { within, after: after.map(str::to_owned), limit }).await?))
}

/// One definition of a kind.
pub(crate) async fn one<K: Shown>(api: &Api, named: &Named) -> Answer<Response> {
    if let Some(at) = named.at()
        && let Some(one) = K::one(api, &at).await?
    {
        return Ok(one.into_response());
    }
    Err(named.unknown::<K>(api).await?)
}

/// The manifest of one.
pub(crate) async fn manifest<K: Kind>(api: &Api, named: &Named) -> Answer<Response> {
    if let Some(at) = named.at()
        && let Some(one) = K::kept(api).get(&at).await?
    {
        return Ok(text(one.source));
    }
    Err(named.unknown::<K>(api).await?)
}

/// Deletes one.
pub(crate) async fn delete<K: Kind>(api: &Api, caller: &Caller, named: &Named) -> Answer<StatusCode> {
    if let Some(at) = named.at()
        && K::delete(api, &at).await?
    {
        caller.says(format!("deleted {} {}", K::NOUN, named.name));
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(named.unknown::<K>(api).await?)
}

/// The handlers of a kind, and its routes: `of_kind`. A kind whose list is not like the others' has a handler `list` of its own.
macro_rules! kind_routes {
    (
        $kind:ident, $tag:tt;
        $(#[$($list_doc:tt)*])*
        list $scope:ident<$query:ident> $list:tt -> $page:ident;
        $($rest:tt)*
    ) => {
        $(#[$($list_doc)*])*
        #[utoipa::path(get, path = $list, tag = $tag, params($query), responses((status = 200, body = $page)))]
        pub(crate) async fn list(
            caller: $crate::fence::allowed::Allowed<$crate::kinds::routes::$scope>,
            api: $crate::Api,
            $crate::fence::input::Params(query): $crate::fence::input::Params<$query>,
        ) -> $crate::fence::problem::Answer<axum::Json<$page>> {
            $crate::kinds::routes::list::<$kind>(&api, &caller, query.asked()).await
        }

        $crate::kinds::routes::kind_routes! { $kind, $tag; $($rest)* }
    };
    (
        $kind:ident, $tag:tt;
        $(#[$($one_doc:tt)*])*
        one $one:tt -> $state:ident $([$($more:tt)*])?;
        $(#[$($manifest_doc:tt)*])*
        manifest $manifest:tt;
        $(#[$($delete_doc:tt)*])*
        delete $delete:tt;
    ) => {
        $(#[$($one_doc)*])*
        #[utoipa::path(get, path = $one, tag = $tag, responses((status = 200, body = $state $(, $($more)*)?)))]
        pub(crate) async fn one(
            _: $crate::fence::allowed::Allowed<$crate::fence::allowed::scope::Read>,
            api: $crate::Api,
            named: $crate::kinds::routes::Named,
        ) -> $crate::fence::problem::Answer<axum::response::Response> {
            $crate::kinds::routes::one::<$kind>(&api, &named).await
        }

        $(#[$($manifest_doc)*])*
        #[utoipa::path(
            get,
            path = $manifest,
            tag = $tag,
            responses((status = 200, body = String, content_type = "text/yaml", headers(("ETag" = String))))
        )]
        pub(crate) async fn manifest(
            _: $crate::fence::allowed::Allowed<$crate::fence::allowed::scope::Read>,
            api: $crate::Api,
            named: $crate::kinds::routes::Named,
        ) -> $crate::fence::problem::Answer<axum::response::Response> {
            $crate::kinds::routes::manifest::<$kind>(&api, &named).await
        }

        $(#[$($delete_doc)*])*
        #[utoipa::path(delete, path = $delete, tag = $tag, responses((status = 204)))]
        pub(crate) async fn delete(
            caller: $crate::fence::allowed::Allowed<
                $crate::fence::allowed::scope::Administer,
                $crate::fence::allowed::act::Delete,
            >,
            api: $crate::Api,
            named: $crate::kinds::routes::Named,
        ) -> $crate::fence::problem::Answer<axum::http::StatusCode> {
            $crate::kinds::routes::delete::<$kind>(&api, &caller, &named).await
        }

        /// The routes.
        pub fn of_kind() -> Vec<$crate::fence::route::Route> {
            use $crate::fence::route::route;
            vec![route!(list), route!(one), route!(manifest), route!(delete)]
        }
    };
}

pub(crate) use kind_routes;
