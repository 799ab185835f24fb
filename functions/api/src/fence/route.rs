//! A route is told once, at its handler: `#[utoipa::path]` has its method and its path, and its first argument,
//! [`Allowed`](crate::fence::allowed::Allowed), says what it needs. [`route!`] takes them to the router, to the check of who may
//! use it, and to the OpenAPI document.

use crate::Api;
use crate::fence::allowed::{Listed, Needs, Says};
use crate::fence::repeated;
use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, any};
use keelway_engine::ports::Ports;
use utoipa::openapi::HttpMethod;
use utoipa_axum::PathItemExt;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

/// A route of the API.
pub struct Route<P> {
    /// Where it is; what follows the first is the same under other names.
    paths: Vec<String>,
    method: &'static str,
    needs: Needs,
    act: &'static str,
    handler: MethodRouter<Api<P>>,
    once: bool,
    /// Nothing is described before somebody asks for the document: a function that starts cold does not pay for it.
    described: fn() -> UtoipaMethodRouter<Api<P>>,
}

impl<P: Ports + 'static> Route<P> {
    /// The route of a handler, which is described by `D`. One that is described with several methods takes every method.
    pub fn new<D: utoipa::Path, H: Handler<T, Api<P>>, T: Says>(handler: H, described: fn() -> UtoipaMethodRouter<Api<P>>) -> Self {
        let (method, handler) = match D::methods().as_slice() {
            [one] => (name(one), MethodRouter::new().on(one.to_method_filter(), handler)),
            _ => ("ANY", any(handler)),
        };
        Self { paths: vec![D::path()], method, needs: T::NEEDS, act: T::ACT, handler, once: false, described }
    }

    /// With the header `Idempotency-Key`, a request takes effect once.
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// The same under another path, too.
    pub fn also(mut self, path: impl Into<String>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Its first path.
    pub fn path(&self) -> &str {
        &self.paths[0]
    }

    /// With each of its paths.
    pub fn listed(&self) -> impl Iterator<Item = Listed> {
        self.paths.iter().map(|path| Listed { method: self.method, path: path.clone(), needs: self.needs, act: self.act })
    }

    /// Adds it to the router.
    pub fn serve(self, router: Router<Api<P>>, api: &Api<P>) -> Router<Api<P>> {
        let handler = match self.once {
            true => self.handler.layer(from_fn_with_state(api.clone(), repeated::check::<P>)),
            false => self.handler,
        };
        self.paths.iter().fold(router, |router, path| router.route(path, handler.clone()))
    }

    /// Adds it to the document.
    pub fn describe(&self, document: OpenApiRouter<Api<P>>) -> OpenApiRouter<Api<P>> {
        let (schemas, mut described, handler) = (self.described)();
        if let Some(operations) = described.paths.get(self.path()).cloned() {
            described.paths.extend(self.paths.iter().map(|path| (path.clone(), operations.clone())));
        }
        document.routes((schemas, described, handler))
    }
}

fn name(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::Get => "GET",
        HttpMethod::Post => "POST",
        HttpMethod::Put => "PUT",
        HttpMethod::Delete => "DELETE",
        HttpMethod::Patch => "PATCH",
        HttpMethod::Head => "HEAD",
        HttpMethod::Options => "OPTIONS",
        HttpMethod::Trace => "TRACE",
    }
}

/// The route of a handler that has `#[utoipa::path]`.
macro_rules! route {
    ($handler:ident) => {
        utoipa_axum::paste! { $crate::fence::route::Route::new::<[<__path_ $handler>], _, _>($handler, || utoipa_axum::routes!($handler)) }
    };
    ($module:ident::$handler:ident) => {
        utoipa_axum::paste! {
            $crate::fence::route::Route::new::<$module::[<__path_ $handler>], _, _>($module::$handler, || utoipa_axum::routes!($module::$handler))
        }
    };
}

pub(crate) use route;
