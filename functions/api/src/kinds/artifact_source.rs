//! Artifact sources: the repository of ECR that one follows. What a webhook tells is compared with each push.

use super::border::Outside;
use super::routes::{Listed, Listing, Shown, kind_routes};
use super::{Kept, Kind, Said};
use crate::Api;
use crate::fence::names::DEFAULT_NAMESPACE;
use crate::fence::pages::Unexplained;
use crate::fence::problem::Answer;
use axum::Json;
use keelway_domain::address::Address;
use keelway_domain::border::{Home, Resource};
use keelway_domain::deployments::registry::ArtifactSource;
use keelway_wire::http::deployments::{ArtifactSourcePage, ArtifactSourceState};
use keelway_wire::manifest::ArtifactSourceManifest;

impl Kind for ArtifactSourceManifest {
    const KIND: &'static str = "ArtifactSource";
    const NOUN: &'static str = "artifact source";
    type Spec = ArtifactSource;

    fn said(&self) -> Said<'_, ArtifactSource> {
        Said { namespace: self.namespace.as_str(), name: &self.name, spec: Some(&self.artifacts), source: &self.source }
    }

    fn spec(&mut self) -> Option<&mut ArtifactSource> {
        Some(&mut self.artifacts)
    }

    fn kept(api: &Api) -> impl Kept<Spec = ArtifactSource> {
        api.deployments().sources()
    }

    fn outside<'a>(namespace: &'a str, source: &ArtifactSource, home: &Home) -> Outside<'a> {
        let images = source.repository().map(|repository| Resource::image(&repository.images(home)));
        let resources = images.map(|images| ("spec.ecr.repository".to_owned(), images)).into_iter().collect();
        Outside { namespace, resources, vouched: source.vouched, ..Outside::default() }
    }
}

fn shown(at: &Address, source: &ArtifactSource) -> ArtifactSourceState {
    // The vouch comes from the caller, not from the manifest.
    let spec = serde_json::to_value(ArtifactSource { vouched: false, ..source.clone() }).unwrap_or_default();
    ArtifactSourceState { namespace: at.namespace.clone(), name: at.name.clone(), spec, vouched: source.vouched }
}

impl Shown for ArtifactSourceManifest {
    type One = Json<ArtifactSourceState>;

    async fn one(api: &Api, at: &Address) -> Answer<Option<Self::One>> {
        Ok(Self::kept(api).get(at).await?.map(|one| Json(shown(at, &one.spec))))
    }
}

impl Listed for ArtifactSourceManifest {
    /// They are listed by namespace only.
    const LISTED_IN: Option<&'static str> = Some(DEFAULT_NAMESPACE);
    type Page = ArtifactSourcePage;

    async fn list(api: &Api, listing: &Listing) -> Answer<ArtifactSourcePage> {
        let (found, next) = listing.declared::<Self>(api).await?;
        let sources = found.iter().map(|(at, one)| shown(at, &one.spec)).collect();
        Ok(ArtifactSourcePage::new(sources, listing.limit, next))
    }
}

kind_routes! {
    ArtifactSourceManifest, "deployments";
    /// Lists the artifact sources of a namespace.
    list Anywhere<Unexplained> "/v1/artifactSources" -> ArtifactSourcePage;
    /// An artifact source.
    one "/v1/artifactSources/{namespace}/{name}" -> ArtifactSourceState;
    /// The manifest as it was applied.
    manifest "/v1/artifactSources/{namespace}/{name}/manifest";
    /// Deletes an artifact source.
    delete "/v1/artifactSources/{namespace}/{name}";
}
