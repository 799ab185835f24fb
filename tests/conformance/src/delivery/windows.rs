//! Windows: nothing begins in a stage, and nothing is promoted, while they are closed.

use super::check::Watch;
use keelway_domain::promotions::Promotion;
use keelway_domain::sequences::Execution;
use keelway_domain::windows::{Gate, gate};

impl Watch {
    /// An execution changed. Which shipyard was in force is known as long as there is one.
    pub(super) fn begins(&mut self, old: Option<&Execution>, x: &Execution) -> Result<(), String> {
        if x.held.is_some() && old.is_none_or(|old| old.held.is_none()) {
            self.stats.count("held back by windows");
        }
        let began = x.began.filter(|_| old.is_none_or(|old| old.began.is_none()));
        let (Some(at), Some(shipyard)) = (began, self.shipyards.values().next().filter(|_| self.shipyards.len() == 1)) else {
            return Ok(());
        };
        let Some(stage) = shipyard.stage(&x.stage) else { return Ok(()) };
        let ignores = stage.sequence(&x.sequence).is_some_and(|sequence| sequence.ignores_windows());
        match gate(&stage.windows, at) {
            Gate::Closed(_) if !ignores => Err(format!("{x:?} began though its stage was closed")),
            _ => Ok(()),
        }
    }

    /// A promotion changed.
    pub(super) fn attempted(&mut self, was: Option<&Promotion>, is: &Promotion) -> Result<(), String> {
        let was = was.filter(|was| (was.run, was.again) == (is.run, is.again));
        let waits = |promotion: &Promotion| promotion.why.reason == "WindowClosed";
        if waits(is) && !was.is_some_and(waits) {
            self.stats.count("promotions that waited for windows");
        }
        let begun = |promotion: &Promotion| promotion.attempt > 0;
        let first = is.attempted.filter(|_| begun(is) && !was.is_some_and(begun));
        match first.map(|at| gate(&self.windows, at)) {
            Some(Gate::Closed(_)) => Err(format!("it was attempted though its windows were closed: {is:?}")),
            _ => Ok(()),
        }
    }
}
