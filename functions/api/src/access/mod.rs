//! Tokens, the audit, and this installation.

mod audit;
mod checks;
mod document;
mod metadata;
mod operations;
pub mod tokens;

use crate::fence::route::{Route, route};

/// The routes.
pub fn routes() -> Vec<Route> {
    vec![
        route!(metadata::auth),
        route!(metadata::metadata),
        route!(document::serve),
        route!(tokens::whoami),
        route!(tokens::list),
        route!(tokens::create),
        route!(tokens::one),
        route!(tokens::revoke),
        route!(tokens::rotate),
        route!(audit::list),
        route!(operations::list),
        route!(operations::one),
        route!(operations::drop_one),
        route!(operations::redrive),
        route!(operations::of_day),
        route!(checks::look),
        route!(checks::send),
        route!(checks::arrived),
    ]
}
