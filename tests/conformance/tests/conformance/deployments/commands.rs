//! Commands, definitions and sources that meet others, come late, or find the config gone.

use keelway_conformance::deployments::{DeploymentsWorld, HERE, Rider, Starter, both, rollback_against_apply};
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::definition::ImageTag;
use keelway_domain::deployments::registry::{ArtifactSource, Origin, Repository};
use keelway_domain::deployments::{Call, Command, LEASE, Progress};
use keelway_domain::note::Note;
use keelway_domain::stored::Stored;
use keelway_domain::time::Span;
use keelway_engine::deployments::{Address, Asked, Message, keys};
use keelway_engine::item::Item;
use keelway_engine::ports::{Condition, PortError, Store, Write};
use keelway_engine::protocol::Handled;
use keelway_engine::registry::{Registry, Tagged};
use keelway_world::case::{Entrance, Said, Stand};
use keelway_world::deployments::{DeploymentsStand, Happened, REPOSITORY, SOURCE};
use keelway_world::exec::block_on;
use keelway_world::queue::Parcel;
use keelway_world::story::Mode;
use std::collections::BTreeMap;

#[test]
fn what_is_applied_while_a_rollback_is_decided_stays() {
    rollback_against_apply(None).unwrap();
}

/// The API does not hand such a command in; but what it saw may have changed until the command is handled.
#[test]
fn a_copy_of_a_command_that_was_refused_stays_refused() {
    let mut world = DeploymentsWorld::new(Mode::Clean, Rider::None, None);
    let strategy = serde_json::json!({"type": "Rolling", "timeout": 600_000, "deadline": 21_600_000});
    let definition = serde_json::json!({
        "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}, "strategy": strategy, "triggers": ["configChange"],
    });
    world.apply("shop", "app", &Definition::from_value(&definition).unwrap(), None);
    let to = Address { namespace: "shop".into(), name: "app".into() };
    let command = Message::Command {
        to,
        command: Command::Retry,
        note: Note { by: "ann".into(), id: 7, at: world.now(), ..Note::default() },
    };
    let body = command.letter().body;
    world.wait(Span::seconds(10));
    assert_eq!(world.story.put_in(Parcel::Own(body.clone())).said, Some(Said::Handled(Handled::Invalid)));
    let claim = Call::Claim { by: "ci".into(), id: 1, token: "token".into(), lease: LEASE };
    world.say("shop", "app", 1, &claim);
    let end = Call::End { token: "token".into(), exit: Some(1), message: String::new(), progress: Progress::default() };
    world.say("shop", "app", 1, &end);
    let failed = world.config("shop", "app").flatten().unwrap();
    assert_eq!(failed["status"], "Failed");
    world.replay();
    assert_eq!(world.config("shop", "app").flatten().unwrap(), failed);
    for days in [2, 200] {
        world.wait(Span::minutes(days * 24 * 60));
        world.story.put_in(Parcel::Own(body.clone()));
        assert_eq!(world.config("shop", "app").flatten().unwrap(), failed, "{days} days later");
    }
}

#[test]
fn a_command_to_a_config_that_was_deleted_does_nothing_to_the_next_one_of_its_name() {
    let mut world = DeploymentsWorld::new(Mode::Clean, Rider::None, None);
    let to = Address { namespace: "shop".into(), name: "app".into() };
    let note = Note { by: "ann".into(), id: 7, at: world.now(), ..Note::default() };
    let body = Message::Command { to, command: Command::Pause, note }.letter().body;
    world.story.put_in(Parcel::Own(body.clone()));
    let definition = serde_json::json!({
        "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        "strategy": {"type": "Rolling", "timeout": 600_000, "deadline": 21_600_000}, "triggers": [],
    });
    world.apply("shop", "app", &Definition::from_value(&definition).unwrap(), None);
    let applied = world.config("shop", "app").flatten().unwrap();
    world.wait(Span::minutes(60));
    world.story.put_in(Parcel::Own(body));
    assert_eq!(world.config("shop", "app").flatten().unwrap(), applied);
}

/// Whoever had the source follow another repository may have stopped before deleting the entry of the old one.
#[test]
fn a_repository_that_a_source_no_longer_follows_moves_none_of_its_tags() {
    let mut world = DeploymentsWorld::new(Mode::Clean, Rider::None, None);
    let repository = |name: &str| Repository { account: None, region: None, name: name.into() };
    let source = ArtifactSource { from: Origin::Ecr(repository("another")), tags: BTreeMap::new(), images: vec![], vouched: false };
    world.bind("shop", SOURCE, &source);
    let entry = Item::new(keys::fed(&repository(REPOSITORY), HERE, ("shop", SOURCE))).with("ns", "shop").with("na", SOURCE);
    block_on(world.story.world.worker(5).write(&Write::Put(entry, Condition::Always))).unwrap();
    let now = world.now();
    world.image("shop", &Happened { tag: Some("main".into()), digest: "a".into(), at: now }, Entrance::default());
    let tag = ImageTag { namespace: "shop".into(), name: SOURCE.into(), tag: "main".into() };
    assert!(world.story.world.core().table.peek(&keys::head(&tag)).is_none());
}

struct Unasked;

impl Registry for Unasked {
    async fn tags(&self, of: &Repository) -> Result<Option<Vec<Tagged>>, PortError> {
        panic!("nobody watches a tag of {of:?}")
    }
}

#[test]
fn a_registry_is_not_asked_about_tags_that_no_config_watches() {
    let mut world = DeploymentsWorld::new(Mode::Clean, Rider::None, None);
    let repository = Repository { account: None, region: None, name: REPOSITORY.into() };
    world.bind(
        "shop",
        SOURCE,
        &ArtifactSource { from: Origin::Ecr(repository), tags: BTreeMap::new(), images: vec![], vouched: false },
    );
    let engine = both(&world.story.world.worker(5), &Starter::default(), None);
    assert_eq!(block_on(engine.decides.ask_registries(&Unasked, || true)).unwrap(), Asked::default());
}
