//! The guard: which addresses requests may reach. An address is checked when the name is resolved, and the connection is made to
//! that address, so a name that resolves to another address a moment later has no effect.

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

/// How many large answers ([`LARGE`](crate::LARGE)) may be held at the same time.
const LARGE_ONES: usize = 1;

/// The operator's exceptions: hosts (`host` or `host:port`) that may have any address, and networks (such as `10.20.0.0/16`) that
/// any host may be in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    names: Vec<String>,
    networks: Vec<Network>,
}

impl Hosts {
    /// Parses a list separated by commas. An entry that is neither a host nor a network permits nothing, and is logged.
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

    /// Whether the exceptions name the host of a URL.
    fn names(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        self.names.iter().any(|known| known == host || *known == format!("{host}:{port}"))
    }

    /// Whether a host without an exception may have this address.
    fn permits(&self, address: IpAddr) -> bool {
        is_public(address) || self.networks.iter().any(|network| network.has(address))
    }
}

/// A resolver of names.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of a name.
    ///
    /// # Errors
    /// The name has no address.
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

/// Permits requests by `https` to addresses of the public internet, and the operator's exceptions. Clones share the limit on large
/// answers.
#[derive(Clone)]
pub struct Guard {
    allowed: Arc<Hosts>,
    loopback: bool,
    lookup: Arc<dyn Lookup>,
    pub(crate) large: Arc<Semaphore>,
}

/// The addresses to which the client for a URL may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Addresses that are public, or in an exempted network.
    Public,
    /// Any address of the host.
    Anywhere,
}

impl Guard {
    /// A guard with these exceptions.
    pub fn new(allowed: Hosts) -> Self {
        Self { allowed: Arc::new(allowed), loopback: false, lookup: Arc::new(System), large: Arc::new(Semaphore::new(LARGE_ONES)) }
    }

    /// Permits servers on this machine, with or without TLS. Only the local cloud sets this.
    #[must_use]
    pub fn with_loopback(self, loopback: bool) -> Self {
        Self { loopback, ..self }
    }

    /// A guard with another resolver.
    #[must_use]
    pub fn with_lookup(self, lookup: impl Lookup) -> Self {
        Self { lookup: Arc::new(lookup), ..self }
    }

    /// How the host of a URL may be reached. `plain`: hosts with an exception need no TLS.
    pub(crate) fn reach(&self, url: &Url, plain: bool) -> Result<Reach, Failure> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Failure::Url("it names a user: put credentials into a header".into()));
        }
        let host = url.host_str().unwrap_or_default();
        if host.is_empty() || !["http", "https"].contains(&url.scheme()) {
            return Err(Failure::Url("it must begin with https://".into()));
        }
        // An address in a URL is not resolved.
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
    /// `None`: any address.
    only: Option<Arc<Hosts>>,
}

impl Resolve for Resolver {
    /// One address that is not permitted refuses the whole name, because all addresses of a public server are public.
    fn resolve(&self, name: Name) -> Resolving {
        let (found, only) = (self.lookup.lookup(name.as_str()), self.only.clone());
        Box::pin(async move {
            let found = found.await?;
            let refused = |address: &&IpAddr| only.as_ref().is_some_and(|only| !only.permits(**address));
            // Always the same address in the error: a resolver may change the order.
            if let Some(address) = found.iter().filter(refused).min() {
                return Err(Refused(*address).into());
            }
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}
