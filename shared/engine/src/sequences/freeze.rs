//! The executions that the windows of a stage hold back: overrides, and messages when the windows change.

use super::birth::labels;
use super::commands::unknown_context;
use super::message::Message;
use super::{Address, Loaded, Sequences, codec, keys};
use crate::ports::{Condition, PortError, Ports, Query, Write};
use crate::projects;
use crate::projects::stage_of;
use crate::protocol::Handled;
use crate::refusal::Refusal;
use crate::table::{self, Items};
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::names::{Context, ProjectName, ServiceName};
use keelway_domain::sequences::{Entrance, Execution, Override};
use keelway_domain::time::Timestamp;
use keelway_domain::windows::{Gate, gate};
use std::collections::BTreeSet;

/// The most executions of a context that are searched for those that are held back.
const EXECUTIONS: usize = 1000;

/// A stage whose windows are closed, for a person who may override them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The stage.
    pub stage: String,
    /// When it opens by itself; `None`: never.
    pub until: Option<Timestamp>,
    /// How many executions of the context it holds back.
    pub held: usize,
}

impl<P: Ports> Sequences<P> {
    /// The stage whose closed windows hold a context back, or the named stage, if its windows are closed now.
    ///
    /// # Errors
    /// Unknown project, context or stage; a stage that is open; none or more than one that could be meant.
    pub async fn closed_stage(&self, project: &ProjectName, context: &Context, stage: Option<&str>) -> Result<Closed, Refusal> {
        let known = self.projects().get(project).await?;
        if self.context(project, context).await?.version == 0 {
            return Err(unknown_context(project, context));
        }
        let query = Query::table(keys::context_partition(project, context), 100).prefix(keys::EXECUTION);
        let (items, _) = table::all(&self.ports, query, EXECUTIONS).await?;
        let all = items.iter().map(|item| Ok(Loaded::read(item)?.x)).collect::<Result<Vec<Execution>, PortError>>()?;
        let held = || all.iter().filter(|x| x.held.is_some());
        let stages: BTreeSet<&str> = held().map(|x| x.stage.as_str()).collect();
        let name = match (stage, stages.len()) {
            (Some(stage), _) => {
                stage_of(&known.shipyard, stage)?;
                stage
            }
            (None, 1) => stages.first().copied().unwrap_or_default(),
            (None, 0) => {
                let message =
                    format!("no window holds back anything of context {context}: name the stage to let through what gets there");
                return Err(Refusal::Conflict(message));
            }
            (None, _) => {
                let names = stages.into_iter().collect::<Vec<_>>().join(" and ");
                return Err(Refusal::Conflict(format!("windows hold back context {context} in stages {names}: name the stage")));
            }
        };
        let windows = known.shipyard.stage(name).map(|stage| stage.windows.as_slice()).unwrap_or_default();
        match gate(windows, self.ports.now()) {
            Gate::Closed(until) => Ok(Closed { stage: name.to_owned(), until, held: held().filter(|x| x.stage == name).count() }),
            Gate::Open => Err(Refusal::Conflict(format!("the windows of stage {name} are open: there is nothing to override"))),
        }
    }

    /// The stage of a sequence's trigger, if its windows are closed now.
    ///
    /// # Errors
    /// An unknown project or stage.
    pub async fn closed_to(&self, event: &CloudEvent) -> Result<Option<Closed>, Refusal> {
        let EventType::Sequence(stage, _, Kind::Triggered) = EventType::parse(&event.ty) else { return Ok(None) };
        let known = self.projects().find(event.text("project").unwrap_or_default()).await?;
        Ok(match gate(&stage_of(&known.shipyard, stage.as_str())?.windows, self.ports.now()) {
            Gate::Closed(until) => Some(Closed { stage: stage.to_string(), until, held: 0 }),
            Gate::Open => None,
        })
    }

    /// Like [`Sequences::override_windows`], for the execution that a trigger will start which is not on the bus yet. This creates
    /// its context.
    ///
    /// # Errors
    /// A port fails.
    pub async fn override_for(&self, event: &CloudEvent, closed: &Closed, person: (&str, &str)) -> Result<(), Refusal> {
        let project = self.projects().find(event.text("project").unwrap_or_default()).await?.settings.name;
        if self.context(&project, &event.context).await?.version == 0
            && let EventType::Sequence(_, sequence, _) = EventType::parse(&event.ty)
            && let Ok(service) = ServiceName::new(event.text("service").unwrap_or_default())
        {
            let item = self.context_before_its_trigger(&project, &event.context, sequence.as_str(), &service);
            // Somebody else has made it in between.
            drop(self.ports.write(&Write::Put(item.with_some("lb", labels(&event.data)), Condition::Absent)).await?);
        }
        self.override_windows((&project, &event.context), closed, person).await
    }

    /// Lets the present and future executions of a context begin in a stage although its windows are closed, until the stage opens
    /// by itself. Idempotent.
    ///
    /// # Errors
    /// An unknown context.
    pub async fn override_windows(
        &self,
        (project, context): (&ProjectName, &Context),
        closed: &Closed,
        (by, reason): (&str, &str),
    ) -> Result<(), Refusal> {
        let at = self.ports.now();
        let given = Override { by: by.to_owned(), reason: reason.to_owned(), at, until: closed.until };
        self.change_flags(project, context, |flags| {
            let mut flags = flags.clone();
            let same = |old: &Override| (&old.by, &old.reason, old.until) == (&given.by, &given.reason, given.until);
            if !flags.overrides.get(&closed.stage).is_some_and(same) {
                flags.overrides.insert(closed.stage.clone(), given.clone());
            }
            Ok(flags)
        })
        .await
    }

    /// After another shipyard was put in force, orders that the executions held back by the old windows check the new ones.
    pub(crate) async fn tell_of_windows(&self, project: &ProjectName, before: Option<&str>) -> Result<(), PortError> {
        let before = self.projects().shipyard(project, before.unwrap_or_default()).await?;
        if before.stages.iter().all(|stage| stage.windows.is_empty()) {
            return Ok(());
        }
        table::send_all(&self.ports, &[Message::Windows { project: project.clone() }.letter()]).await
    }

    /// Notifies the executions of a project that windows hold back. They are found in an index that lags; the sweep finds those
    /// that are missing there.
    pub(crate) async fn windows_changed(&self, project: &ProjectName) -> Result<Handled, PortError> {
        let (open, _) = self.open_of(project).await?;
        let held = open.iter().filter(|x| x.held.is_some());
        let letters: Vec<_> = held.map(|x| Message::Obey { to: Address::of(x) }.letter()).collect();
        table::send_all(&self.ports, &letters).await?;
        Ok(Handled::Committed)
    }

    /// Whether the reasons for holding an execution back differ from its state. `items`: its project and its context.
    pub(super) async fn is_held_differently(&self, x: &Execution, items: &Items) -> Result<bool, PortError> {
        if x.held.is_none() {
            return Ok(false);
        }
        let project = self.project(&x.project, items.get(&projects::keys::project(&x.project))).await?;
        let flags = codec::context(items.get(&keys::context(&x.project, &x.context))).flags;
        let sequence = self.sequence(x).await?;
        let entrance = Entrance { sequence: &sequence, shipyard: &project.shipyard, flags: &flags, now: self.ports.now() };
        Ok(entrance.differs(x))
    }
}
