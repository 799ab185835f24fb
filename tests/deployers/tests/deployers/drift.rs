//! Aliases that somebody moves by hand.

use keelway_deployers_stand::stand::{Stand, definition, to, version, with_image};
use keelway_domain::deployments::definition::{Definition, OnDrift};
use keelway_domain::deployments::{Command, LOOK_EVERY, Status};
use keelway_domain::time::Span;
use keelway_engine::aliases::Route;
use keelway_engine::deployments::Message;
use keelway_engine::deployments::views::Entry;
use keelway_world::exec::block_on;
use keelway_world::queue::Parcel;

/// A stand whose alias was deployed by Keelway, and serves Lambda version 3 now.
fn moved(policy: OnDrift) -> (Stand, Definition) {
    let definition = Definition { on_drift: policy, ..definition("Recreate", &version(2)) };
    let stand = Stand::deployed(&definition);
    stand.point("shop", "live", Route::to("3"));
    stand.lambda.state().log.clear();
    (stand, definition)
}

/// The sweep evaluates it after the time for a look.
fn sweep(stand: &mut Stand) {
    stand.pass(LOOK_EVERY);
    let because = format!("sweep {}", stand.world.now().0);
    stand.world.enqueue(keelway_engine::deployments::NAME, Parcel::Own(Message::Evaluate { to: to(), because }.letter().body));
    stand.work();
}

fn told(stand: &Stand) -> Vec<String> {
    let (entries, _) = block_on(stand.engine.audit(&to(), None, 10)).unwrap();
    entries.into_iter().filter_map(|entry| if let Entry::Drift { said, .. } = entry { Some(said) } else { None }).collect()
}

#[test]
fn an_alias_that_was_moved_by_hand_is_told_once_and_stays() {
    let (mut stand, _) = moved(OnDrift::Tell);
    for _ in 0..3 {
        sweep(&mut stand);
    }
    assert_eq!(
        (stand.x().watch.says(), told(&stand)),
        (Some("serves Lambda version 3".into()), vec!["serves Lambda version 3".to_owned()])
    );
    stand.assert_ended(Status::Complete, "3");
    stand.point("shop", "live", Route { version: "1".into(), canary: Some(("3".into(), 10)) });
    sweep(&mut stand);
    assert_eq!(stand.x().watch.says(), Some("serves Lambda version 1 (10 % to 3)".into()));
    stand.point("shop", "live", Route::to("1"));
    sweep(&mut stand);
    assert_eq!((stand.x().watch.says(), told(&stand).len()), (None, 2));
}

#[test]
fn what_was_deployed_is_brought_back_if_the_manifest_says_so() {
    let (mut stand, _) = moved(OnDrift::Restore);
    sweep(&mut stand);
    stand.pass(Span::seconds(10));
    stand.assert_ended(Status::Complete, "1");
    assert_eq!((stand.last().n, stand.log()), (2, vec!["shop:live 1".to_owned()]));
    sweep(&mut stand);
    assert_eq!((stand.last().n, told(&stand).len()), (2, 1));
}

#[test]
fn what_is_served_is_adopted_if_the_manifest_says_so() {
    let (mut stand, _) = moved(OnDrift::Adopt);
    for _ in 0..2 {
        sweep(&mut stand);
    }
    let watch = stand.x().watch;
    assert_eq!((watch.says(), watch.adopted["main"].as_str(), told(&stand).len()), (None, "3", 1));
    stand.assert_ended(Status::Complete, "3");
}

#[test]
fn a_deployment_tells_that_it_does_not_begin_where_the_last_one_ended() {
    let (mut stand, definition) = moved(OnDrift::Restore);
    stand.apply(&with_image(&definition, &version(2)));
    stand.pass(Span::seconds(10));
    stand.assert_ended(Status::Complete, "2");
    assert_eq!((stand.last().n, told(&stand)), (2, vec!["serves Lambda version 3".to_owned()]));
    assert_eq!(stand.x().watch.says(), None);
    // Where it does, nothing is told.
    stand.apply(&with_image(&definition, &version(4)));
    stand.pass(Span::seconds(10));
    assert_eq!(told(&stand).len(), 1);
    stand.command(Command::Pause);
    sweep(&mut stand);
    assert_eq!(told(&stand).len(), 1);
}
