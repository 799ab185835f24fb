//! What requests may reach. An address is checked where it is resolved, and the connection is made to what was checked: a name that
//! resolves to another address a moment later changes nothing.

use crate::address::{Network, is_public};
use crate::failure::{Failure, Refused};
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// So many answers that are large ([`LARGE`](crate::LARGE)) are kept at the same time.
const LARGE_ONES: usize = 1;

/// Hosts that may be reached wherever they are: `host` or `host:port`; and networks, such as `10.20.0.0/16`, that any host may be in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    names: Vec<String>,
    networks: Vec<Network>,
}

impl Hosts {
    /// From a list with commas between. What is neither a host nor a network allows nothing, and the log says so.
    pub fn parse(list: &str) -> Self {
        let entries = list.split(',').map(|entry| entry.trim().to_ascii_lowercase()).filter(|entry| !entry.is_empty());
        let (networks, names): (Vec<String>, Vec<String>) = entries.partition(|entry| entry.contains('/'));
        let network = |text: &String| {
            let parsed = text.parse().ok();
            if parsed.is_none() {
                tracing::error!(entry = text, "an allowed network is ignored: write it as 10.20.0.0/16 or fd00::/8");
            }
            parsed
        };
        Self { names, networks: networks.iter().filter_map(network).collect() }
    }

    /// Whether the host of a URL is named.
    fn names(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        self.names.iter().any(|known| known == host || *known == format!("{host}:{port}"))
    }

    /// Whether a host that is not named may have this address.
    fn permits(&self, address: IpAddr) -> bool {
        is_public(address) || self.networks.iter().any(|network| network.has(address))
    }
}

/// Finds the addresses of a name.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses.
    ///
    /// # Errors
    /// When the name has none.
    fn lookup(&self, name: &str) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Lookup for System {
    fn lookup(&self, name: &str) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>> {
        let name = name.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

/// What requests may reach: `https`, and addresses of the public internet, with the operator's exceptions. Clones share how many large
/// answers there may be at the same time.
#[derive(Clone)]
pub struct Guard {
    allowed: Arc<Hosts>,
    loopback: bool,
    lookup: Arc<dyn Lookup>,
    pub(crate) large: Arc<Semaphore>,
}

/// Where the client for a URL connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only to addresses that everybody may reach.
    Public,
    /// Wherever the host is.
    Anywhere,
}

impl Guard {
    /// With these exceptions.
    pub fn new(allowed: Hosts) -> Self {
        Self { allowed: Arc::new(allowed), loopback: false, lookup: Arc::new(System), large: Arc::new(Semaphore::new(LARGE_ONES)) }
    }

    /// With this, servers of this machine are reached, also without TLS. Only a local cloud has them.
    #[must_use]
    pub fn with_loopback(self, loopback: bool) -> Self {
        Self { loopback, ..self }
    }

    /// With another resolver.
    #[must_use]
    pub fn with_lookup(self, lookup: impl Lookup) -> Self {
        Self { lookup: Arc::new(lookup), ..self }
    }

    /// How a URL is reached. `plain`: hosts that are named need no TLS.
    pub(crate) fn reach(&self, url: &Url, plain: bool) -> Result<Reach, Failure> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Failure::Url("it names a user: put credentials into a header".into()));
        }
        let host = url.host_str().unwrap_or_default();
        if host.is_empty() || !["http", "https"].contains(&url.scheme()) {
            return Err(Failure::Url("it must begin with https://".into()));
        }
        // Of a URL with an address, nothing is resolved.
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let is_loopback = host == "localhost" || literal.is_some_and(|address| address.is_loopback());
        if self.loopback && is_loopback {
            return Ok(Reach::Anywhere);
        }
        let named = self.allowed.names(url);
        if url.scheme() != "https" && !(named && plain) {
            let only = if is_loopback { " (http on a loopback address is for a local cloud only)" } else { "" };
            return Err(Failure::Url(format!("it must begin with https://{only}")));
        }
        match literal {
            _ if named => Ok(Reach::Anywhere),
            Some(address) if !self.allowed.permits(address) => Err(Failure::Address(address)),
            _ => Ok(Reach::Public),
        }
    }

    pub(crate) fn resolver(&self, reach: Reach) -> Resolver {
        Resolver { lookup: self.lookup.clone(), only: (reach == Reach::Public).then(|| self.allowed.clone()) }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("allowed", &self.allowed).field("loopback", &self.loopback).finish_non_exhaustive()
    }
}

pub(crate) struct Resolver {
    lookup: Arc<dyn Lookup>,
    /// `None`: whatever is found.
    only: Option<Arc<Hosts>>,
}

impl Resolve for Resolver {
    /// One address that is not permitted refuses the name: of a public server, all are public.
    fn resolve(&self, name: Name) -> Resolving {
        let (found, only) = (self.lookup.lookup(name.as_str()), self.only.clone());
        Box::pin(async move {
            let found = found.await?;
            let refused = |address: &&IpAddr| only.as_ref().is_some_and(|only| !only.permits(**address));
            // Always the same one: a resolver may answer in another order each time.
            if let Some(address) = found.iter().filter(refused).min() {
                return Err(Refused(*address).into());
            }
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}
