//! `GET /v1/border`: stored definitions that would be refused if they were applied today. A new border also affects definitions
//! that were applied before; this lists them before something fails.

use super::shipyard;
use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::input::{Params, given, no_page_key};
use crate::fence::pages::{Wanted, after, limit};
use crate::fence::problem::{Answer, Refused};
use crate::kinds::border::{Borders, Gap, Lack, Outside};
use crate::kinds::{Kept, Kind};
use axum::Json;
use keelway_domain::access::Need;
use keelway_domain::address::Address;
use keelway_domain::names::ProjectName;
use keelway_engine::protocol::declare::Declared;
use keelway_wire::http::{BorderGap, BorderPage};
use keelway_wire::manifest::{
    ArtifactSourceManifest, ClusterManifest, DeploymentConfigManifest, MetricsSourceManifest, PipelineManifest,
};

/// The kinds that can name something outside of their namespace, in the order of the search.
const KINDS: [&str; 6] = ["Shipyard", "DeploymentConfig", "Pipeline", "Cluster", "ArtifactSource", "MetricsSource"];
/// The number of artifact sources in one read.
const SOURCES: u32 = 100;

/// Lists what stored manifests name outside of their namespace and may not, in the projects that the caller administers.
#[utoipa::path(
    get,
    path = "/v1/border",
    tag = "access",
    params(Wanted),
    responses((status = 200, body = BorderPage))
)]
pub(crate) async fn look(
    caller: Allowed<scope::Anywhere<scope::Administer>>,
    api: Api,

    Params(wanted): Params<Wanted>,
) -> Answer<Json<BorderPage>> {
    let namespace = given(wanted.namespace.as_ref()).map(ProjectName::new).transpose();
    let among = match namespace.map_err(|error| Refused::field("namespace", error))? {
        Some(namespace) => {
            caller.check(Need::Administer, Some(namespace.as_str()))?;
            Some(vec![namespace])
        }
        None => caller.administered(),
    };
    let limit = limit(wanted.page_size.as_ref())?;
    let (mut kind, mut from) = match after(wanted.next_page_key.as_ref())? {
        Some(key) => begun(key).ok_or_else(|| no_page_key(key))?,
        None => (0, None),
    };
    let mut stored = Stored { api: &api, among: among.as_deref(), borders: Borders::of_now(&api), gaps: vec![] };
    let mut left = limit;
    let next = loop {
        let Some(name) = KINDS.get(kind) else { break None };
        if left == 0 {
            break Some((*name).to_owned());
        }
        let (seen, next) = stored.page(name, from.as_deref(), left).await?;
        left = left.saturating_sub(u32::try_from(seen).unwrap_or(left));
        if let Some(next) = next {
            break Some(format!("{name}:{next}"));
        }
        (kind, from) = (kind + 1, None);
    };
    Ok(Json(BorderPage::new(stored.gaps, limit, next)))
}

/// The beginning of a page: `<kind>`, or `<kind>:<namespace>/<name>` for the documents after this one.
fn begun(key: &str) -> Option<(usize, Option<String>)> {
    let (kind, from) = key.split_once(':').map_or((key, None), |(kind, from)| (kind, Some(from)));
    let whole = from.is_none_or(|from| !from.split('/').any(str::is_empty));
    let kind = KINDS.iter().position(|known| *known == kind).filter(|_| whole)?;
    Some((kind, from.map(str::to_owned)))
}

/// The documents that are searched.
struct Stored<'a> {
    api: &'a Api,
    among: Option<&'a [ProjectName]>,
    borders: Borders<'a>,
    gaps: Vec<BorderGap>,
}

impl Stored<'_> {
    /// Searches a page of a kind. Returns the number of documents, and where the next page begins.
    async fn page(&mut self, kind: &'static str, from: Option<&str>, limit: u32) -> Answer<(usize, Option<String>)> {
        let api = self.api;
        Ok(match kind {
            "Shipyard" => {
                let (names, next) = self.projects(from, limit).await?;
                for project in api.engine().projects().named(&names).await? {
                    let name = project.settings.name.as_str();
                    self.look(kind, name, &shipyard::outside(name, &project.shipyard)).await?;
                }
                (names.len(), next)
            }
            // They are listed by namespace only.
            "ArtifactSource" => {
                let (names, next) = self.projects(from, limit).await?;
                for namespace in names.iter().map(ProjectName::as_str) {
                    let mut after = None;
                    loop {
                        let (found, more) = ArtifactSourceManifest::kept(api).page(namespace, after.as_deref(), SOURCES).await?;
                        self.look_at::<ArtifactSourceManifest>(&found).await?;
                        after = more;
                        if after.is_none() {
                            break;
                        }
                    }
                }
                (names.len(), next)
            }
            "DeploymentConfig" => self.everywhere::<DeploymentConfigManifest>(from, limit).await?,
            "Pipeline" => self.everywhere::<PipelineManifest>(from, limit).await?,
            "Cluster" => self.everywhere::<ClusterManifest>(from, limit).await?,
            _ => self.everywhere::<MetricsSourceManifest>(from, limit).await?,
        })
    }

    async fn everywhere<K: Kind>(&mut self, from: Option<&str>, limit: u32) -> Answer<(usize, Option<String>)> {
        let (found, next) = K::kept(self.api).everywhere(self.among, from, limit).await?;
        self.look_at::<K>(&found).await?;
        Ok((found.len(), next))
    }

    async fn look_at<K: Kind>(&mut self, found: &[(Address, Declared<K::Spec>)]) -> Answer<()> {
        let home = self.api.deployments().home();
        for (of, one) in found {
            self.look(K::KIND, &of.name, &K::outside(&of.namespace, &one.spec, &home)).await?;
        }
        Ok(())
    }

    /// A page of the projects to be searched, and where the next page begins.
    async fn projects(&self, from: Option<&str>, limit: u32) -> Answer<(Vec<ProjectName>, Option<String>)> {
        let (names, more): (Vec<ProjectName>, bool) = match self.among {
            None => self.api.engine().projects().names(from, limit).await?,
            Some(names) => {
                let rest = || names.iter().filter(|name| from.is_none_or(|from| name.as_str() > from));
                (rest().take(limit as usize).cloned().collect(), rest().count() > limit as usize)
            }
        };
        let next = names.last().filter(|_| more).map(ToString::to_string);
        Ok((names, next))
    }

    async fn look(&mut self, kind: &str, name: &str, outside: &Outside<'_>) -> Answer<()> {
        let gaps = self.borders.gaps(outside).await?;
        self.gaps.extend(gaps.into_iter().map(|gap| shown((kind, outside.namespace, name), gap)));
        Ok(())
    }
}

fn shown((kind, namespace, name): (&str, &str, &str), Gap { field, lack }: Gap) -> BorderGap {
    let (missing, detail, project, consent) = match lack {
        Lack::Consent(why, entry) => ("consent", why.to_string(), why.namespace, Some((&entry).into())),
        Lack::Policy(why) => ("policy", why.to_string(), why.project, None),
        Lack::Vouch(why) => ("vouch", why.to_string(), why.project, None),
        Lack::Form(why) => ("form", why, namespace.to_owned(), None),
    };
    BorderGap {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        field,
        missing: missing.to_owned(),
        detail,
        project,
        consent,
    }
}
