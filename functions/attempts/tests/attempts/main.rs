//! Promotions that are carried out for real: by sequences of the other engine, by requests to servers, by pull requests on a git
//! host.

mod calls;
mod cases;
mod credentials;
mod heartbeat;
mod looks;
mod notifications;
mod observed;
mod receiver;
mod requests;
mod sequences;
mod slow;
mod stand;
