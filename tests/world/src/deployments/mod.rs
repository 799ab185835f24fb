//! The cases of the deployments engine: what they add to the format.

mod inputs;
mod stand;
mod view;
mod waiting;

pub use keelway_cases::deployments::{Deploys, Given, Own};
pub use stand::{DeploymentsStand, Happened};
pub use view::view;
pub use waiting::Waiting;

use crate::case::{Answer, Dialect, Format, Said, Step, Telling, Tells, matches};
use crate::tested::Tested;
use crate::worker::Worker;
use keelway_domain::deployments::registry::{ArtifactSource, Origin, Repository};
use keelway_domain::event::SOURCE as ENGINE;
use keelway_domain::ids::{context_of, hash64};
use keelway_domain::note::Note;
use keelway_domain::time::Span;
use keelway_engine::deployments::{Deployments, keys};
use keelway_engine::item::Key;
use keelway_engine::protocol::Handled;
use keelway_engine::register;
use serde_json::{Map, Value};

/// What the types of the engine's events begin with.
pub const PREFIX: &str = "dev.keelway.";
/// The artifact source of the cases, and its repository.
pub const SOURCE: &str = "images";
/// Its repository.
pub const REPOSITORY: &str = "shop";

/// A case of deployments.
pub type Case = crate::case::Case<Deploys>;

/// All cases of deployments.
///
/// # Errors
/// The first that cannot be read.
pub fn cases() -> Result<Vec<Case>, crate::case::CaseError> {
    crate::case::cases()
}

/// The namespace of a case's configs.
pub(crate) fn namespace(telling: &Telling<'_, Deploys>) -> String {
    telling.project("p")
}

/// Whether the rule that feeds the engine's queue takes an event.
pub fn takes(source: &str, ty: &str) -> bool {
    let triggered = ["deployment", "rollback"].iter().any(|name| ty == format!("sh.keptn.event.{name}.triggered"));
    let task = triggered || ty == "dev.keelway.task.cancelled";
    source == ENGINE && task
}

impl Tested for Deployments<Worker> {
    fn takes(source: &str, detail_type: &str) -> bool {
        takes(source, detail_type)
    }
    /// Configs, their definitions, snapshots and attempts that have ended, and what tags point to.
    fn is_state(key: &Key) -> bool {
        register::is_state(keys::PARTITIONS, key)
    }
}

impl Dialect for Deploys {
    const PREFIX: &'static str = PREFIX;

    fn takes(source: &str, detail_type: &str) -> bool {
        takes(source, detail_type)
    }
    /// `<type> [<version>] [<reason>]`
    fn word(details: &mut crate::case::EventDetails, word: &str) -> bool {
        let (name, value): (&str, Value) = match word.parse::<u64>() {
            Ok(n) => ("version", n.into()),
            Err(_) if !word.contains('/') => ("reason", word.into()),
            Err(_) => return false,
        };
        details.data.insert(name.to_owned(), value).is_none()
    }
    fn describe(event: &Value) -> String {
        let data = &event["data"];
        format!("{} {} {} {}", data["config"], data["version"], data["reason"], data["message"])
    }
    fn sound(telling: &Telling<'_, Self>, event: &Value) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what}: {event}"));
        if event["source"] != "keelway-deployments" {
            return wrong("it is no event of deployments");
        }
        let text = event.to_string();
        if text.contains("token") {
            return wrong("it tells a token");
        }
        let ty = event["type"].as_str().unwrap_or_default();
        let about = ["deployment.", "deploymentconfig.", "trigger.", "triggers.", "rollback."];
        let of_config = about.iter().any(|kind| ty.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with(kind)));
        if of_config
            && (event["data"]["project"] != namespace(telling) || event["data"]["config"].as_str().is_none_or(str::is_empty))
        {
            return wrong("its project or its config is another one");
        }
        Ok(())
    }
}

impl<S: DeploymentsStand> Tells<S> for Deploys {
    /// The artifact source, what was pushed, and then the configs.
    fn set_up(telling: &mut Telling<'_, Self>, stand: &mut S) -> Result<(), String> {
        let given = &telling.case.given;
        let namespace = namespace(telling);
        let repository = Repository { account: None, region: None, name: REPOSITORY.into() };
        let source = ArtifactSource { from: Origin::Ecr(repository), tags: given.tags.clone(), images: vec![], vouched: false };
        if !given.unbound {
            stand.bind(&namespace, SOURCE, &source);
        }
        let ago = stand.now() + Span(-1000);
        for (tag, digest) in &given.pushed {
            stand.image(&namespace, &Happened { tag: Some(tag.clone()), digest: digest.clone(), at: ago }, Default::default());
        }
        let aliases = given.config.iter().map(|_| Self::ABOUT).chain(given.configs.keys().map(String::as_str));
        for alias in aliases {
            let context = context_of("deploymentconfig", &format!("{namespace}/{alias}"));
            telling.contexts.insert(alias.to_owned(), context.to_string());
            let definition = inputs::definition(telling, alias, &Map::new())?;
            let answer = stand.apply(&namespace, alias, &definition, None);
            if answer.said.is_some_and(|said| !matches!(said, Said::Status(200..=299))) {
                return Err(format!("config {alias} was refused: {}", answer.problem));
            }
        }
        Ok(())
    }

    fn put_in(telling: &mut Telling<'_, Self>, step: &Step<Self>, stand: &mut S) -> Result<Answer, String> {
        let own = &step.own;
        let (namespace, name) = (namespace(telling), step.about());
        if let Some(change) = &own.apply {
            let definition = inputs::definition(telling, name, change)?;
            return Ok(stand.apply(&namespace, name, &definition, own.asks));
        }
        if let Some(command) = inputs::command(own)? {
            let id = own.request.clone().unwrap_or_else(|| telling.fresh_id());
            let note = Note {
                by: own.by.clone().unwrap_or_else(|| "ann".into()),
                at: stand.now(),
                message: own.message.clone().unwrap_or_default(),
                id: hash64(&[id.as_bytes()]),
                run: 0,
            };
            let answer = stand.ask(&namespace, name, &command, &note);
            if answer.said == Some(Said::Handled(Handled::Invalid)) && step.answer.is_none() {
                return Err(format!("it was refused: {}", answer.problem));
            }
            return Ok(answer);
        }
        if let Some(call) = inputs::call(own)? {
            let seen = stand.config(&namespace, name).flatten();
            let n = own.version.or_else(|| seen.and_then(|view| view["latest"].as_u64())).unwrap_or_default();
            let (answer, desired) = stand.say(&namespace, name, n, &call);
            if let (Some(wanted), Some(_)) = (&own.desired, answer.said)
                && desired.as_ref() != Some(wanted)
            {
                return Err(format!("the deployer is to do {desired:?}, expected {wanted:?}: {}", answer.problem));
            }
            return Ok(answer);
        }
        if own.task.is_some() {
            let waiting = inputs::waiting(telling, step);
            stand.keep(waiting.item());
            let event = inputs::task(telling, step, &waiting.trigger(), stand.now());
            return Ok(telling.send(step, event, own.at, stand));
        }
        for happened in inputs::images(own, stand.now())? {
            let answer = stand.image(&namespace, &happened, own.at);
            if own.push.as_ref().is_none_or(|all| all.len() == 1) {
                return Ok(answer);
            }
        }
        if let Some(tags) = &own.registry {
            return Ok(stand.registry(&inputs::registry(tags, stand.now())?));
        }
        for (alarm, on) in own.alarm.iter().flatten() {
            stand.alarm(alarm, *on);
        }
        if own.delete.is_some() {
            return Ok(stand.delete(&namespace, name));
        }
        if let Some(times) = own.evaluate {
            stand.evaluate(&namespace, name, times);
        }
        if own.replay.is_some() && !stand.replay() {
            return Err("this stand cannot do that: say `only: world`".into());
        }
        Ok(Answer::unknown())
    }

    fn compare(telling: &Telling<'_, Self>, step: &Step<Self>, stand: &mut S) -> Result<(), String> {
        for (alias, expected) in &step.state {
            let Some(got) = stand.config(&namespace(telling), alias) else { continue };
            config(got.as_ref(), expected).map_err(|e| format!("state of {alias}: {e}; it is {got:?}"))?;
        }
        match (&step.own.starts, stand.started()) {
            (Some(wanted), Some(started)) if *wanted != started => Err(format!("{started:?} were started, expected {wanted:?}")),
            _ => Ok(()),
        }
    }
}

fn config(got: Option<&Value>, expected: &Value) -> Result<(), String> {
    let Some(got) = got else {
        return if expected == "absent" { Ok(()) } else { Err("there is none".into()) };
    };
    let Some(line) = expected.as_str() else { return matches(got, expected, "") };
    let status = got["status"].as_str().unwrap_or_default();
    let is = if status == "none" { "none".to_owned() } else { format!("{} {status}", got["version"]) };
    if is == line { Ok(()) } else { Err(format!("it is {is:?}, expected {line:?}")) }
}
