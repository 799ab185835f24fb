//! Pipelines: the configs and clusters that one observes, the sequences that it triggers, and the repositories in which it opens
//! pull requests with the credentials of the installation.

use super::border::{Elsewhere, Outside};
use super::{FILE, Kept, Kind, Said};
use crate::Api;
use crate::fence::problem::Answer;
use keelway_domain::access::Need;
use keelway_domain::address::Address;
use keelway_domain::border::{Act, Counted, Home};
use keelway_domain::promotions::definition::{Definition, Strategy};
use keelway_githosts::Repository;
use keelway_wire::manifest::{Finding, PipelineManifest, Severity};

impl Kind for PipelineManifest {
    const KIND: &'static str = "Pipeline";
    const NOUN: &'static str = "pipeline";
    const ORDER: usize = 1;
    const COUNTED: Option<Counted> = Some(Counted::Pipelines);
    type Spec = Definition;

    fn said(&self) -> Said<'_, Definition> {
        Said { namespace: self.namespace.as_str(), name: &self.name, spec: Some(&self.definition), source: &self.source }
    }

    fn spec(&mut self) -> Option<&mut Definition> {
        Some(&mut self.definition)
    }

    fn kept(api: &Api) -> impl Kept<Spec = Definition> {
        api.promotions().pipelines()
    }

    fn outside<'a>(namespace: &'a str, definition: &Definition, _: &Home) -> Outside<'a> {
        let (mut others, mut resources) = (vec![], vec![]);
        for (n, environment) in definition.environments.iter().enumerate() {
            for (m, target) in environment.targets.iter().enumerate() {
                let Some((other, name)) = target.beyond(&definition.app, namespace) else { continue };
                let member = if target.cluster.is_some() { "clusterRef.namespace" } else { "namespace" };
                let field = format!("spec.environments[{n}].targets[{m}].{member}");
                let of = (other.to_owned(), name.to_owned());
                others.push(Elsewhere { field, need: Need::Read, act: Act::Observe, of, sequence: None });
            }
            let own = if environment.promotion.is_some() { format!("environments[{n}].") } else { String::new() };
            let strategy = format!("spec.{own}promotion.strategy");
            // Nothing is promoted into the first environment.
            match definition.promotion(environment).filter(|_| n > 0).map(|promotion| &promotion.strategy) {
                Some(Strategy::Sequence(sequence)) => {
                    let (project, stage) = sequence.place(namespace, &environment.name);
                    let of = (project.to_owned(), stage.to_owned());
                    others.push(Elsewhere {
                        field: format!("{strategy}.sequence.project"),
                        need: Need::Trigger,
                        act: Act::Trigger,
                        of,
                        sequence: Some(sequence.name.clone()),
                    });
                }
                // What is no repository's URL is told by the attempt, which sends nothing.
                Some(Strategy::PullRequest(request)) if request.secret.is_empty() => {
                    let repository = request.host.parse().ok().and_then(|form| Repository::parse(form, &request.url).ok());
                    resources.extend(repository.map(|repository| (format!("{strategy}.pull-request.url"), repository.resource())));
                }
                _ => {}
            }
        }
        Outside { namespace, others, resources, vouched: definition.vouched, ..Outside::default() }
    }

    /// Those that carry back what others promote, and those that may.
    async fn warnings(&self, api: &Api) -> Answer<Vec<Finding>> {
        let of = self.said().at();
        let warning = |message: String| Finding {
            severity: Severity::Warning,
            file: FILE.to_owned(),
            line: 1,
            column: 1,
            path: "spec.environments".to_owned(),
            message,
            snippet: None,
        };
        let circle = |other: &Address| {
            format!(
                "of {of} make a circle with those of {other}: it carries to the first environment what comes from there, so two revisions \
                 change places for ever; let one pipeline begin elsewhere"
            )
        };
        let unread = |other: &Address| {
            format!(
                "of {of} are shared with {other}, which cannot be read: whether the two make a circle is not known; apply {other} again, or \
                 bring this installation to the version that wrote it"
            )
        };
        let found = api.promotions().circle(&of, &self.definition).await?;
        let messages = found.with.iter().map(circle).chain(found.unread.iter().map(unread));
        Ok(messages.map(warning).collect())
    }
}
