//! A route is told once, at its handler: `#[utoipa::path]` has its method and its path, and its first argument,
//! [`Allowed`](crate::fence::allowed::Allowed), says what it needs. [`route!`] takes them to the router, to the check of who may
//! use it, and to the OpenAPI document.

use crate::Api;
use crate::fence::allowed::{Listed, Needs, Says};
use crate::fence::{auth, input, repeated};
use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, any};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::Service;
use utoipa::openapi::HttpMethod;
use utoipa_axum::PathItemExt;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

/// What a handler answers with, when it is done.
type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Any handler. All of them are one type for the router, which is therefore compiled once and not for each: otherwise the compiler
/// proves a dozen times for each handler that its future can be sent to another thread, which took a third of its time for the API.
#[derive(Clone)]
struct Any(Arc<dyn Fn(Request, Api) -> Answering + Send + Sync>);

impl Any {
    fn new<H: Handler<T, Api, Future = Answering>, T: 'static>(handler: H) -> Self {
        Self(Arc::new(move |request, api| handler.clone().call(request, api)))
    }
}

impl Handler<(), Api> for Any {
    type Future = Answering;
    fn call(self, request: Request, api: Api) -> Answering {
        (self.0)(request, api)
    }
}

/// Stands for a handler in the document, which serves nothing.
pub(crate) async fn described() {}

/// A route of the API.
pub struct Route {
    /// The paths. All after the first are aliases.
    paths: Vec<String>,
    method: &'static str,
    needs: Needs,
    act: &'static str,
    parameters: bool,
    handler: MethodRouter<Api>,
    once: bool,
    /// The description is made on the first request for the document, so that cold starts do not pay for it.
    described: fn() -> UtoipaMethodRouter<Api>,
}

impl Route {
    /// The route of a handler, which is described by `D`. One that is described with several methods takes every method.
    pub fn new<D: utoipa::Path, H: Handler<T, Api, Future = Answering>, T: Says + 'static>(
        handler: H,
        described: fn() -> UtoipaMethodRouter<Api>,
    ) -> Self {
        let (method, handler) = routed(&D::methods(), Any::new(handler), T::PARAMETERS);
        let paths = vec![D::path()];
        Self { paths, method, needs: T::NEEDS, act: T::ACT, parameters: T::PARAMETERS, handler, once: false, described }
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
        let Self { method, needs, act, parameters, .. } = *self;
        self.paths.iter().map(move |path| Listed { method, path: path.clone(), needs, act, parameters })
    }

    /// Adds it to the router.
    fn serve(self, router: Router<Api>, api: &Api) -> Router<Api> {
        let handler = match self.once {
            true => self.handler.layer(from_fn_with_state(api.clone(), repeated::check)),
            false => self.handler,
        };
        self.paths.iter().fold(router, |router, path| router.route(path, handler.clone()))
    }

    /// Adds it to the document.
    pub fn describe(&self, document: OpenApiRouter<Api>) -> OpenApiRouter<Api> {
        let (schemas, mut described, handler) = (self.described)();
        if let Some(operations) = described.paths.get(self.path()).cloned() {
            described.paths.extend(self.paths.iter().map(|path| (path.clone(), operations.clone())));
        }
        document.routes((schemas, described, handler))
    }
}

/// What answers requests. It is no router: no further route can be added, so each that is served says what it needs.
#[derive(Debug, Clone)]
pub struct Served(Router);

impl<R> Service<R> for Served
where
    Router: Service<R>,
{
    type Response = <Router as Service<R>>::Response;
    type Error = <Router as Service<R>>::Error;
    type Future = <Router as Service<R>>::Future;
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }
    fn call(&mut self, request: R) -> Self::Future {
        self.0.call(request)
    }
}

impl Served {
    /// With a layer before all of it.
    pub fn behind(self, layer: impl FnOnce(Router) -> Router) -> Self {
        Self(layer(self.0))
    }
}

/// These routes, behind the fence and the check of who may use them.
pub fn served(routes: Vec<Route>, api: Api) -> Served {
    let listed: Arc<[Listed]> = routes.iter().flat_map(Route::listed).collect();
    let router = routes.into_iter().fold(Router::new(), |router, route| route.serve(router, &api));
    let router = router
        .fallback(super::unknown_path)
        .method_not_allowed_fallback(super::wrong_method)
        .layer(from_fn_with_state((api.clone(), listed), auth::check))
        .layer(from_fn(super::fence));
    Served(router.with_state(api))
}

/// The method, and the handler behind it.
fn routed(methods: &[HttpMethod], handler: Any, parameters: bool) -> (&'static str, MethodRouter<Api>) {
    let (method, handler) = match methods {
        [one] => (name(one), MethodRouter::new().on(one.to_method_filter(), handler)),
        _ => ("ANY", any(handler)),
    };
    (method, if parameters { handler } else { handler.layer(from_fn(input::without_parameters)) })
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

/// The route of a handler that has `#[utoipa::path]`. `routes!` takes the description by the handler's name, and finds
/// [`described`] in place of the handler.
macro_rules! route {
    ($handler:ident) => {
        utoipa_axum::paste! {
            $crate::fence::route::Route::new::<[<__path_ $handler>], _, _>($handler, || {
                let $handler = $crate::fence::route::described;
                utoipa_axum::routes!($handler)
            })
        }
    };
    ($module:ident::$handler:ident) => {
        utoipa_axum::paste! {{
            use $module::{$handler, [<__path_ $handler>]};
            $crate::fence::route::route!($handler)
        }}
    };
}

pub(crate) use route;
