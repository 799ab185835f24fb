//! Somebody applies a definition while a rollback is decided, at every point of it.

use super::{DeploymentsWorld, Plant, Rider, Starter, both, definition};
use keelway_domain::deployments::definition::{Definition, Trigger};
use keelway_domain::deployments::{Back, Call, Command, LEASE, Progress};
use keelway_domain::note::Note;
use keelway_domain::time::Span;
use keelway_engine::deployments::configs::Wanted;
use keelway_engine::deployments::{Address, Message, configs, keys};
use keelway_engine::protocol::Inbox;
use keelway_world::case::Stand;
use keelway_world::deployments::DeploymentsStand;
use keelway_world::exec::{block_on, step};
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::{Mode, play};

/// No rollback makes more requests than this.
const REQUESTS: usize = 40;

/// What was applied meanwhile stays, but for what the rollback is about.
///
/// # Errors
/// What was lost, and after how many requests of the rollback.
pub fn rollback_against_apply(plant: Option<Plant>) -> Result<(), String> {
    (0..REQUESTS).try_for_each(|requests| {
        let timeout = raced(plant, requests)?;
        if timeout == LATER {
            Ok(())
        } else {
            Err(format!("applied after {requests} requests, and lost: the timeout is {timeout}"))
        }
    })
}

/// The timeout that is applied meanwhile.
const LATER: Span = Span::seconds(77);

fn config(env: &str) -> Definition {
    let mut config = definition(vec![Trigger::ConfigChange]);
    config.template["spec"]["containers"][0]["env"] = env.into();
    config
}

fn raced(plant: Option<Plant>, requests: usize) -> Result<Span, String> {
    let mut world = DeploymentsWorld::new(Mode::Clean, Rider::None, plant);
    for (n, env) in [(1, "a"), (2, "b")] {
        world.apply("shop", "app", &config(env), None);
        world.wait(Span::seconds(10));
        let token = || format!("token {n}");
        world.say("shop", "app", n, &Call::Claim { by: "ci".into(), id: n, token: token(), lease: LEASE });
        let end = Call::End { token: token(), exit: Some(0), message: String::new(), progress: Progress::default() };
        world.say("shop", "app", n, &end);
    }
    let to = Address { namespace: "shop".into(), name: "app".into() };
    let back = Back {
        release: Some(1),
        config: false,
        application: true,
        parts: None,
        allow_failed: false,
        by_steps: false,
        again: false,
        group: String::new(),
        task: None,
    };
    let command = Message::Command {
        to: to.clone(),
        command: Command::Rollback(back),
        note: Note { by: "ann".into(), id: 3, ..Note::default() },
    };
    let sent = world.now();
    let received = Received {
        engine: keelway_engine::deployments::NAME.into(),
        sent,
        parcel: Parcel::Own(command.letter().body),
        letter: None,
        again: false,
    };
    let engine = both(&world.story.world.worker(3), &Starter::default(), plant);
    Inbox::ports(&engine).begin(Some(&received));
    let mut task = Box::pin(play(&engine, &received));
    let mut done = false;
    for _ in 0..requests {
        done = done || step(&mut task).is_ready();
    }
    let mut later = config("b");
    later.strategy.timeout = LATER;
    // The config is not woken yet: only the definition has changed.
    let api = both(&world.story.world.worker(0), &Starter::default(), plant);
    Inbox::ports(&api).begin(None);
    let wanted = Wanted { definition: &later, source: "", by: "ann", request: None, over: None };
    block_on(api.decides.apply(&to, &wanted)).map_err(|error| error.to_string())?;
    if !done {
        block_on(task).map_err(|error| error.to_string())?;
    }
    world.story.deliver_all();
    let core = world.story.world.core();
    let item = core.table.peek(&keys::definition(&to)).ok_or("there is no definition")?;
    let applied = configs::read(item).map_err(|error| error.to_string())?.ok_or("the definition was deleted")?;
    Ok(applied.0.definition.strategy.timeout)
}
