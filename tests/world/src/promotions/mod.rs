//! The cases of the promotions engine: what they add to the format.

mod compare;
pub mod host;
mod inputs;
mod stand;
mod view;

pub use keelway_cases::promotions::{Apply, Details, Expected, Given, Own, Promotes, pipeline};
pub use stand::PromotionsStand;
pub use view::view;

use crate::case::{Answer, Dialect, Entrance, Said, Step, Telling, Tells};
use crate::tested::Tested;
use crate::worker::Worker;
use host::GitHost;
use keelway_domain::ids::{context_of, hash64};
use keelway_domain::note::Note;
use keelway_engine::item::Key;
use keelway_engine::promotions::observations::OBSERVED;
use keelway_engine::promotions::{Promotions, keys};
use keelway_engine::protocol::Handled;
use keelway_engine::register;
use serde_json::Value;

/// What the types of the engine's events begin with.
pub const PREFIX: &str = "dev.keelway.promotion.";
/// Facts of different steps have versions this far apart.
const VERSIONS: i64 = 100;

/// A case of promotions.
pub type Case = crate::case::Case<Promotes>;

/// All cases of promotions.
///
/// # Errors
/// The first that cannot be read.
pub fn cases() -> Result<Vec<Case>, crate::case::CaseError> {
    crate::case::cases()
}

/// The namespace of a case's pipelines.
pub(crate) fn namespace(telling: &Telling<'_, Promotes>) -> String {
    telling.project("p")
}

/// Whether the rule that feeds the engine's queue takes an event.
pub fn takes(_: &str, detail_type: &str) -> bool {
    detail_type == OBSERVED
}

impl Tested for Promotions<Worker> {
    fn takes(source: &str, detail_type: &str) -> bool {
        takes(source, detail_type)
    }
    /// Pipelines, their history, facts, and which pull requests are looked at.
    fn is_state(key: &Key) -> bool {
        register::is_state(keys::PARTITIONS, key)
    }
}

impl Dialect for Promotes {
    const PREFIX: &'static str = PREFIX;

    fn takes(source: &str, detail_type: &str) -> bool {
        takes(source, detail_type)
    }
    /// `<type> <environment> <revision> [<reason>]`
    fn word(details: &mut crate::case::EventDetails, word: &str) -> bool {
        let place = ["environment", "revision", "reason"].into_iter().find(|name| !details.data.contains_key(*name));
        place.map(|name| details.data.insert(name.to_owned(), word.into())).is_some()
    }
    fn describe(event: &Value) -> String {
        let text = |name: &str| event["data"][name].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}: {}", text("environment"), text("revision"), text("reason"), text("message"))
    }
    /// What happens in one environment has an order.
    fn stream(event: &Value) -> String {
        format!("{} {}", event["shkeptncontext"], event["data"]["environment"])
    }
    fn sound(telling: &Telling<'_, Self>, event: &Value) -> Result<(), String> {
        compare::sound(telling, event)
    }
}

impl<S: PromotionsStand> Tells<S> for Promotes {
    /// The repository, what targets run, and then the pipelines: nothing is promoted by that, unless the case has it so.
    fn set_up(telling: &mut Telling<'_, Self>, stand: &mut S) -> Result<(), String> {
        let given = &telling.case.given;
        stand.host().change(&given.repository);
        let (form, url) = (stand.host().form().to_owned(), stand.host().url());
        for alias in given.names() {
            let context = context_of("pipeline", &format!("{}/{alias}", namespace(telling)));
            telling.contexts.insert(alias.to_owned(), context.to_string());
            let everywhere = inputs::targets(telling, alias)?.1.into_keys().map(|name| (name, "v1/R".to_owned())).collect();
            for (version, seen) in [(0, &everywhere), (1, &given.observed)] {
                for event in inputs::facts(telling, alias, seen, (version, stand.now()), None)? {
                    stand.send(&event, Entrance::Bus);
                }
            }
            let manifest = inputs::manifest(telling, alias, &Apply::default(), (&form, &url))?;
            let answer = stand.apply(&manifest.to_string());
            if answer.said.is_some_and(|said| !matches!(said, Said::Status(200..=299))) {
                return Err(format!("pipeline {alias} was refused: {}", answer.problem));
            }
        }
        Ok(())
    }

    fn put_in(telling: &mut Telling<'_, Self>, step: &Step<Self>, stand: &mut S) -> Result<Answer, String> {
        let own = &step.own;
        let (namespace, name) = (namespace(telling), step.about());
        if let Some(seen) = &own.observe {
            let version = own.version.unwrap_or(VERSIONS * i64::try_from(telling.step).unwrap_or_default());
            let mut answer = Answer::unknown();
            for event in inputs::facts(telling, name, seen, (version, stand.now()), own.by.as_ref())? {
                answer = telling.send(step, event, own.at, stand);
            }
            return Ok(answer);
        }
        if let Some(apply) = &own.apply {
            let (form, url) = (stand.host().form().to_owned(), stand.host().url());
            let manifest = inputs::manifest(telling, name, apply, (&form, &url))?;
            return Ok(stand.apply(&manifest.to_string()));
        }
        if let Some(command) = inputs::command(step)? {
            let by = keelway_domain::access::of_token(own.by.as_deref().unwrap_or("ann"));
            let id = own.request.clone().unwrap_or_else(|| telling.fresh_id());
            let seen = stand.pipeline(&namespace, name).flatten();
            let note = Note {
                by,
                at: stand.now(),
                message: own.message.clone().unwrap_or_default(),
                id: hash64(&[id.as_bytes()]),
                run: seen.and_then(|view| view["run"].as_u64()).unwrap_or_default(),
            };
            let answer = stand.ask(&namespace, name, &command, &note);
            if answer.said == Some(Said::Handled(Handled::Invalid)) && step.answer.is_none() {
                return Err(format!("it was refused: {}", answer.problem));
            }
            return Ok(answer);
        }
        if let Some((deed, number)) = inputs::deed(own) {
            return stand.host().person(deed, number).map(|()| Answer::unknown());
        }
        if let Some(text) = &own.finish {
            let (environment, end) = inputs::ending(text)?;
            return stand.finish((&namespace, name), environment, end, !own.unheard).map(|()| Answer::unknown());
        }
        if let Some(repository) = &own.repository {
            stand.host().change(repository);
        }
        for (environment, verdict) in own.verdicts.iter().flatten() {
            stand.judge(environment, verdict)?;
        }
        if own.delete.is_some() {
            return Ok(stand.delete(&namespace, name));
        }
        if let Some(times) = own.evaluate {
            stand.evaluate(&namespace, name, times);
        }
        if own.webhook.is_some() {
            let url = stand.host().url();
            stand.webhook(&url);
        }
        let able = match own {
            Own { replay: Some(_), .. } => stand.replay(),
            Own { backup: Some(_), .. } => stand.backup(&namespace, name),
            _ => true,
        };
        if own.restore.is_some() {
            stand.restore(&namespace, name);
        }
        if able { Ok(Answer::unknown()) } else { Err("this stand cannot do that: say `only: world`".into()) }
    }

    fn before(step: &Step<Self>, stand: &mut S) {
        for (verb, troubles) in &step.own.fails {
            stand.host().fail(*verb, troubles);
        }
    }

    fn compare(telling: &Telling<'_, Self>, step: &Step<Self>, stand: &mut S) -> Result<(), String> {
        compare::after(telling, step, stand)
    }
}
