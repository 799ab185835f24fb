//! Hosts of repositories. They belong to the installation.

use super::routes::{Plain, kind_routes};
use super::{Context, Kept, Kind, Said};
use crate::Api;
use crate::fence::pages::Paging;
use crate::fence::problem::{Answer, Refused};
use axum::http::StatusCode;
use keelway_domain::promotions::registry::GitHost;
use keelway_wire::http::promotions::{Registered, RegisteredPage};
use keelway_wire::manifest::GitHostManifest;

impl Kind for GitHostManifest {
    const KIND: &'static str = "GitHost";
    const NOUN: &'static str = "git host";
    type Spec = GitHost;

    fn said(&self) -> Said<'_, GitHost> {
        Said { namespace: "", name: &self.name, spec: Some(&self.host), source: &self.source }
    }

    fn spec(&mut self) -> Option<&mut GitHost> {
        Some(&mut self.host)
    }

    fn kept(api: &Api) -> impl Kept<Spec = GitHost> {
        api.promotions().git_hosts()
    }

    fn join<'a>(&'a self, context: &mut Context<'a>) {
        context.hosts.push((&self.name, &self.host.host));
    }

    /// A host can be registered under one name only; otherwise it would be unclear which credentials apply.
    async fn validate(&self, api: &Api, with: &Context<'_>) -> Answer<()> {
        let host = &self.host.host;
        let stored = api.promotions().git_host_of(host).await?.map(|(other, _)| other);
        let mut before = with.hosts.iter().take_while(|(name, _)| *name != self.name);
        let other = before.find(|(_, known)| known == host).map(|(other, _)| (*other).to_owned());
        match other.or(stored).filter(|other| *other != self.name) {
            Some(other) => {
                let detail =
                    format!("spec.host: {host} is registered by git host {other} already: change that one, or delete it first");
                Err(Refused::new(StatusCode::CONFLICT, "conflict", detail))
            }
            None => Ok(()),
        }
    }
}

impl Plain for GitHostManifest {}

kind_routes! {
    GitHostManifest, "pipelines";
    /// Lists the registered git hosts.
    list All<Paging> "/v1/githosts" -> RegisteredPage;
    /// A registered git host.
    one "/v1/githosts/{name}" -> Registered;
    /// The manifest as it was applied.
    manifest "/v1/githosts/{name}/manifest";
    /// Deregisters a git host.
    delete "/v1/githosts/{name}";
}
