//! An execution of a sequence that waits for a task, where the engine for sequences is not there.

use keelway_domain::event::{CloudEvent, SOURCE};
use keelway_domain::ids::{RecordHash, RecordId, SubjectId, hash64};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::time::Timestamp;
use keelway_engine::item::{Item, Key};
use keelway_engine::sequences::{Address, keys};
use serde_json::json;

/// An execution that waits for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its project.
    pub project: String,
    /// Its context.
    pub context: String,
    /// The task.
    pub task: String,
    /// Tells it from others.
    pub name: String,
}

impl Waiting {
    fn record(&self) -> RecordId {
        let subject = SubjectId(hash64(&[b"waiting", self.name.as_bytes()]));
        RecordId { subject, number: 0, hash: RecordHash::of(self.name.as_bytes()) }
    }

    /// The id of the task's trigger.
    pub fn trigger(&self) -> String {
        self.record().uuid().to_string()
    }

    fn project(&self) -> ProjectName {
        ProjectName::new(&*self.project).expect("a name")
    }

    /// The execution's key.
    pub fn key(&self) -> Key {
        let context = Context::new(&*self.context).expect("a context");
        keys::execution(&Address { project: self.project(), context, execution: self.record().subject })
    }

    /// The execution once it waits no more.
    pub fn over(&self) -> Item {
        let record = self.record();
        Item::new(self.key())
            .with("sg", "dev")
            .with("sv", "svc")
            .with("sq", "delivery")
            .with("k", 0i64)
            .with("th", format!("{}#{}", record.number, record.hash))
            .with("v", 1i64)
            .with("f", 1i64)
    }

    /// The execution while it waits.
    pub fn item(&self) -> Item {
        self.over().with("gp1", keys::open_tasks(&self.project(), &self.task)).with("gs1", "-").with("tt", 1i64)
    }

    /// The event that tells that it waits no more. `config`: as the task's property names it.
    pub fn cancelled(&self, config: &str, now: Timestamp) -> CloudEvent {
        let mut data = json!({"project": self.project, "stage": "dev", "service": "svc", "task": self.task});
        data[&self.task] = json!({"deploymentConfig": config});
        CloudEvent {
            id: format!("cancelled-{}", self.name),
            source: SOURCE.into(),
            ty: "dev.keelway.task.cancelled".into(),
            time: now,
            context: Context::new(&*self.context).expect("a context"),
            authors: vec![],
            triggered_id: Some(self.trigger()),
            git_commit_id: None,
            data: data.as_object().cloned().unwrap_or_default(),
        }
    }
}
