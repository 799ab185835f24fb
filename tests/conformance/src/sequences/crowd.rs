//! Many others' open work: in the sweep's index it stands before ours, so a tick has several pages.

use super::plan::{REVISION, SERVICE};
use keelway_domain::cause::Cause;
use keelway_domain::event::Object;
use keelway_domain::ids::{ExecutionId, RecordHash, RecordId};
use keelway_domain::names::{Context, ProjectName, SequenceName, ServiceName, StageName, TaskName};
use keelway_domain::sequences::{Birth, Class, Done, Entrance, Execution, Flags, Lane, born};
use keelway_domain::shipyard::{Sequence, Shipyard};
use keelway_domain::time::Timestamp;
use keelway_engine::keys::shard_of;
use keelway_engine::ports::Store;
use keelway_engine::protocol::create;
use keelway_world::World;
use keelway_world::exec::block_on;

/// More than a page.
const MANY: u64 = 130;

/// A project of the same shard whose executions come first.
fn neighbour() -> String {
    let shard = shard_of(super::plan::PROJECT);
    let mut names = (0..).map(|n| format!("a{n}"));
    names.find(|name| shard_of(name) == shard).unwrap_or_default()
}

/// Puts executions into the world that wait for a person, who never comes.
pub(super) fn gather(world: &World) {
    let project = neighbour();
    for n in 0..MANY {
        #[expect(clippy::unwrap_used, reason = "the names are constants, and the twin takes these items")]
        block_on(world.worker(0).write(&create(&waits(&project, n).unwrap(), Timestamp(i64::MAX / 2)))).unwrap();
    }
}

fn waits(project: &str, n: u64) -> Option<Execution> {
    let begin = Timestamp(1_794_000_000_000);
    let birth = Birth {
        id: ExecutionId::parse("2222222222222").map(|id| keelway_domain::ids::SubjectId(id.0 + n))?,
        project: ProjectName::new(project).ok()?,
        context: Context::new(format!("crowd-{n}")).ok()?,
        stage: StageName::new("dev").ok()?.to_string(),
        service: ServiceName::new(SERVICE).ok()?,
        sequence: SequenceName::new("gated").ok()?.to_string(),
        revision: REVISION.to_owned(),
        git_commit_id: None,
        authors: vec![],
        trigger_id: format!("crowd-{n}"),
        accepted: begin,
        caused: begin,
        class: Class::Outside,
        place: 0,
        parent: None,
        epoch: 0,
        payload: String::new(),
        data: Object::new(),
        done: Done::default(),
        cause: Cause::default(),
    };
    let (flags, shipyard, sequence) = (Flags::default(), Shipyard { stages: vec![] }, Sequence::none());
    let entrance = Entrance { sequence: &sequence, shipyard: &shipyard, flags: &flags, now: begin };
    let mut x = born(&birth, &entrance).next;
    x.lane = Lane::None;
    x.open = TaskName::new("approval").ok();
    x.sent = Some(begin);
    x.listed = true;
    x.record = Some(RecordId { subject: x.id, number: 0, hash: RecordHash::of(b"crowd") });
    Some(x)
}
