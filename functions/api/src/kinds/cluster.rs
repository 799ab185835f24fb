//! Clusters whose objects are read.

use super::border::Outside;
use super::routes::{Plain, kind_routes};
use super::{Kept, Kind, Said};
use crate::Api;
use crate::fence::pages::Wanted;
use crate::fence::problem::Answer;
use keelway_domain::address::Address;
use keelway_domain::border::{Home, Resource, ResourceKind};
use keelway_domain::promotions::registry::Cluster;
use keelway_wire::http::promotions::{Registered, RegisteredPage};
use keelway_wire::manifest::ClusterManifest;

impl Kind for ClusterManifest {
    const KIND: &'static str = "Cluster";
    const NOUN: &'static str = "cluster";
    type Spec = Cluster;

    fn said(&self) -> Said<'_, Cluster> {
        Said { namespace: self.namespace.as_str(), name: &self.name, spec: Some(&self.cluster), source: &self.source }
    }

    fn spec(&mut self) -> Option<&mut Cluster> {
        Some(&mut self.cluster)
    }

    fn kept(api: &Api) -> impl Kept<Spec = Cluster> {
        api.promotions().clusters()
    }

    /// The server that its token is sent to.
    fn outside<'a>(namespace: &'a str, cluster: &Cluster, _: &Home) -> Outside<'a> {
        let server = Resource::named(ResourceKind::Servers, cluster.server.as_str());
        let resources = vec![("spec.server".to_owned(), server)];
        Outside { namespace, resources, vouched: cluster.vouched, ..Outside::default() }
    }

    async fn delete(api: &Api, at: &Address) -> Answer<bool> {
        Ok(api.promotions().deregister_cluster(at).await?)
    }
}

impl Plain for ClusterManifest {}

kind_routes! {
    ClusterManifest, "pipelines";
    /// Lists the registered clusters.
    list Anywhere<Wanted> "/v1/clusters" -> RegisteredPage;
    /// A registered cluster.
    one "/v1/clusters/{namespace}/{name}" -> Registered;
    /// The manifest as it was applied.
    manifest "/v1/clusters/{namespace}/{name}/manifest";
    /// Deregisters a cluster.
    delete "/v1/clusters/{namespace}/{name}";
}
