//! Sends commands to the engine, and waits until the state shows the result. A command that the present state refuses is refused at
//! once; of concurrent commands, the engine obeys one.

use super::{find, id, shape};
use crate::Api;
use crate::fence::hand_in;
use crate::fence::problem::Answer;
use keelway_domain::deployments::{Command, Refused as Conflict};
use keelway_domain::note::Note;
use keelway_engine::deployments::Address;
use keelway_engine::deployments::views::View;
use keelway_wire::http::deployments::VersionState;

/// A command for a subject.
pub struct Asked {
    pub to: Address,
    pub command: Command,
    pub note: Note,
}

/// The result of a command.
pub enum Outcome {
    /// It was obeyed.
    Done(Box<View>),
    /// The state does not show the result yet.
    Open(Box<View>),
    /// The state refuses the command.
    Refused(Box<View>, Conflict),
}

/// Sends a command to the engine, and waits until the state shows the result.
pub(crate) async fn carry(api: &Api, asked: &Asked, view: View) -> Answer<Outcome> {
    match api.deployments().forecast(&asked.to, &view, &asked.command, &asked.note).await? {
        Err(why) => return Ok(Outcome::Refused(Box::new(view), why)),
        Ok(None) => return Ok(Outcome::Done(Box::new(view))),
        Ok(Some(_)) => api.deployments().hand_in(&asked.to, &asked.command, &asked.note).await?,
    }
    let look = || async {
        let outcome = seen(api, asked).await?;
        Ok::<_, crate::fence::problem::Refused>((!matches!(outcome, Outcome::Open(_))).then_some(outcome))
    };
    match hand_in::outcome(api.settings().patience, look).await? {
        Some(outcome) => Ok(outcome),
        None => seen(api, asked).await,
    }
}

/// The result of a command in a state.
async fn seen(api: &Api, asked: &Asked) -> Answer<Outcome> {
    let (_, view) = find(api, &id(&asked.to)).await?;
    if view.state.obeyed.contains(&asked.note.id) {
        return Ok(Outcome::Done(Box::new(view)));
    }
    Ok(match api.deployments().forecast(&asked.to, &view, &asked.command, &asked.note).await? {
        Err(why) => Outcome::Refused(Box::new(view), why),
        Ok(None) => Outcome::Done(Box::new(view)),
        Ok(Some(_)) => Outcome::Open(Box::new(view)),
    })
}

/// The version that a command has cut, if it is above `before`; otherwise the latest.
pub fn outcome_version(of: &Address, view: &View, before: u64) -> Option<VersionState> {
    let made = view.state.pending.as_ref().filter(|pending| pending.n > before);
    made.or(view.state.last.as_ref()).map(|d| shape::version(of, d, Some(&view.state)))
}
