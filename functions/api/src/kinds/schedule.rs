//! Schedules. They are subjects of the sequences engine, and applied, read and deleted like definitions.

use super::kept::{Kept, Page};
use super::routes::{Shown, kind_routes};
use super::{Context, Kind, Said};
use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::input::{Params, Path};
use crate::fence::pages::{KNOWN, Paging, after, limit};
use crate::fence::problem::{Answer, Refused};
use crate::ports::AnyPorts;
use axum::Json;
use keelway_domain::address::Address;
use keelway_domain::border::Counted;
use keelway_domain::names::{ProjectName, ServiceName};
use keelway_domain::schedules::{Concurrency, Run, Schedule, Spec, When};
use keelway_domain::time::Timestamp;
use keelway_engine::protocol::declare::{Declared, Outcome};
use keelway_engine::sequences::Sequences;
use keelway_wire::http::Clock;
use keelway_wire::http::schedules::{ScheduleLast, SchedulePage, ScheduleRun, ScheduleState};
use keelway_wire::manifest::ScheduleManifest;

impl Kind for ScheduleManifest {
    const KIND: &'static str = "Schedule";
    const NOUN: &'static str = "schedule";
    const WITHIN: &'static str = "project";
    const ORDER: usize = 2;
    const COUNTED: Option<Counted> = Some(Counted::Schedules);
    type Spec = Spec;

    fn said(&self) -> Said<'_, Spec> {
        Said { namespace: self.project.as_str(), name: &self.name, spec: Some(&self.spec), source: &self.source }
    }

    fn spec(&mut self) -> Option<&mut Spec> {
        Some(&mut self.spec)
    }

    fn kept(api: &Api) -> impl Kept<Spec = Spec> {
        Schedules(api.engine())
    }

    async fn validate(&self, api: &Api, with: &Context<'_>) -> Answer<()> {
        let Self { project, name, spec, source } = self;
        let found = api.engine().schedules().get(project, name).await?;
        api.engine().schedules().check(found.as_ref(), spec, source)?;
        Ok(api.engine().schedules().check_sequence(project, with.shipyard(project), (&spec.stage, &spec.sequence)).await?)
    }

    /// Of a project that does not exist, that is said.
    async fn names(api: &Api, namespace: &str) -> Answer<Vec<String>> {
        api.engine().projects().find(namespace).await?;
        Ok(Self::kept(api).names(namespace, None, KNOWN).await?.0)
    }
}

/// The schedules of projects.
struct Schedules<'a>(&'a Sequences<AnyPorts>);

fn project(at: &str) -> Answer<ProjectName> {
    ProjectName::new(at).map_err(|error| Refused::field("project", error))
}

fn plain(x: Schedule) -> (Address, Declared<Spec>) {
    let at = Address::new(x.project.as_str(), x.name);
    (at, Declared { spec: x.spec, source: x.source, at: x.applied, version: 0 })
}

impl Kept for Schedules<'_> {
    type Spec = Spec;

    async fn get(&self, at: &Address) -> Answer<Option<Declared<Spec>>> {
        Ok(self.0.schedules().get(&project(&at.namespace)?, &at.name).await?.map(|one| plain(one).1))
    }

    async fn page(&self, namespace: &str, after: Option<&str>, limit: u32) -> Answer<Page<Spec>> {
        let page = self.0.schedules().page(&project(namespace)?, after, limit).await?;
        Ok((page.schedules.into_iter().map(plain).collect(), page.next))
    }

    async fn names(&self, namespace: &str, after: Option<&str>, limit: u32) -> Answer<(Vec<String>, Option<String>)> {
        let (found, next) = self.page(namespace, after, limit).await?;
        Ok((found.into_iter().map(|(at, _)| at.name).collect(), next))
    }

    /// How large one may be is checked with what it says.
    fn fits(&self, _: &Address, _: &Spec, _: &str) -> bool {
        true
    }

    async fn put(&self, at: &Address, spec: &Spec, source: &str, _: &str) -> Answer<Outcome> {
        let changed = self.0.schedules().apply((&project(&at.namespace)?, &at.name), spec, source).await?;
        Ok(if changed { Outcome::Changed(0) } else { Outcome::Unchanged(0) })
    }

    async fn delete(&self, at: &Address) -> Answer<bool> {
        Ok(self.0.schedules().delete(&project(&at.namespace)?, &at.name).await?)
    }
}

fn shown(x: Schedule) -> ScheduleState {
    let time = |at: Timestamp| at.rfc3339();
    let (cron, at) = match &x.spec.when {
        When::Cron(cron) => (Some(cron.clone()), None),
        When::At(at) => (None, Some(time(*at))),
    };
    let run = |(service, run): (&ServiceName, &Run)| ScheduleRun {
        service: service.to_string(),
        at: time(run.at),
        context: run.context.to_string(),
    };
    let last = x.last.as_ref().map(|last| ScheduleLast {
        at: time(last.at),
        fired_at: time(last.fired),
        skipped: last.skipped.iter().map(ToString::to_string).collect(),
        late: last.late,
    });
    ScheduleState {
        project: x.project.to_string(),
        name: x.name.clone(),
        stage: x.spec.stage.to_string(),
        sequence: x.spec.sequence.to_string(),
        services: x.spec.services.iter().map(ToString::to_string).collect(),
        cron,
        at,
        zone: x.spec.zone.clone(),
        start: x.spec.start.map(time),
        end: x.spec.end.map(time),
        suspended: x.spec.suspended,
        concurrency: match x.spec.concurrency {
            Concurrency::Queue => "queue".into(),
            Concurrency::Skip => "skip".into(),
        },
        planned: x.planned,
        next: x.next.map(time),
        last,
        runs: x.runs.iter().map(run).collect(),
        applied_at: time(x.applied),
    }
}

impl Shown for ScheduleManifest {
    type One = Json<ScheduleState>;

    async fn one(api: &Api, at: &Address) -> Answer<Option<Self::One>> {
        Ok(api.engine().schedules().get(&project(&at.namespace)?, &at.name).await?.map(|one| Json(shown(one))))
    }
}

/// Lists the schedules of a project.
#[utoipa::path(
    get,
    path = "/v1/schedules/{project}",
    tag = "sequences",
    params(Paging),
    responses((status = 200, body = SchedulePage), (status = 404))
)]
pub(crate) async fn list(
    _: Allowed<scope::Read>,
    api: Api,
    Path(project): Path<String>,
    Params(paging): Params<Paging>,
) -> Answer<Json<SchedulePage>> {
    let limit = limit(paging.page_size.as_ref())?;
    let after = after(paging.next_page_key.as_ref())?;
    let project = api.engine().projects().find(&project).await?.settings.name;
    let page = api.engine().schedules().page(&project, after, limit).await?;
    let schedules = page.schedules.into_iter().map(shown).collect();
    Ok(Json(SchedulePage::new(schedules, limit, page.next).with(Clock::at(api.engine().now()))))
}

kind_routes! {
    ScheduleManifest, "sequences";
    /// A schedule, when it triggers next, and what it triggered.
    one "/v1/schedules/{project}/{name}" -> ScheduleState;
    /// The manifest as it was applied.
    manifest "/v1/schedules/{project}/{name}/manifest";
    /// Deletes a schedule. What it triggered goes on.
    delete "/v1/schedules/{project}/{name}";
}
