//! A route is told once, at its handler: `#[utoipa::path]` has its method and its path, and [`route!`](crate::route!) takes both to the router and
//! to the OpenAPI document.

use crate::{Api, repeated};
use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, any};
use keelway_engine::ports::Ports;
use utoipa_axum::PathItemExt;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

/// A route of the API.
pub struct Route<P> {
    /// Where it is; what follows the first is the same under other names.
    paths: Vec<String>,
    handler: MethodRouter<Api<P>>,
    once: bool,
    /// Nothing is described before somebody asks for the document: a function that starts cold does not pay for it.
    described: fn() -> UtoipaMethodRouter<Api<P>>,
}

impl<P: Ports + 'static> Route<P> {
    /// The route of a handler, which is described by `D`. One that is described with several methods takes every method.
    pub fn new<D: utoipa::Path, H: Handler<T, Api<P>>, T: 'static>(
        handler: H,
        described: fn() -> UtoipaMethodRouter<Api<P>>,
    ) -> Self {
        let handler = match D::methods().as_slice() {
            [method] => MethodRouter::new().on(method.to_method_filter(), handler),
            _ => any(handler),
        };
        Self { paths: vec![D::path()], handler, once: false, described }
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

/// The route of a handler that has `#[utoipa::path]`.
#[macro_export]
macro_rules! route {
    ($handler:ident) => {
        utoipa_axum::paste! { $crate::route::Route::new::<[<__path_ $handler>], _, _>($handler, || utoipa_axum::routes!($handler)) }
    };
    ($module:ident::$handler:ident) => {
        utoipa_axum::paste! {
            $crate::route::Route::new::<$module::[<__path_ $handler>], _, _>($module::$handler, || utoipa_axum::routes!($module::$handler))
        }
    };
}
