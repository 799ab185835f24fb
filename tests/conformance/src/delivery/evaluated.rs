//! Evaluations: no revision moves on from where it is evaluated before one of it has passed, over exactly the time that it soaked.

use super::check::Watch;
use super::pipeline;
use keelway_domain::promotions::{EVALUATING, EVALUATION_FAILED, Promotion};

impl Watch {
    /// A promotion into a stage changed.
    pub(super) fn evaluated(&mut self, place: usize, was: Option<&Promotion>, is: &Promotion) -> Result<(), String> {
        let was = was.filter(|was| (was.run, was.again) == (is.run, is.again));
        for (reason, what) in
            [(EVALUATING, "promotions that waited for an evaluation"), (EVALUATION_FAILED, "evaluations that kept a revision back")]
        {
            let waits = |promotion: &Promotion| promotion.why.reason == reason;
            if waits(is) && !was.is_some_and(waits) {
                self.stats.count(what);
            }
        }
        let begun = |promotion: &Promotion| promotion.attempt > 0;
        if !begun(is) || was.is_some_and(begun) {
            return Ok(());
        }
        let Some(before) = place.checked_sub(1).and_then(|before| self.measured.get(before)) else { return Ok(()) };
        let Some((spec, soak)) = before.evaluation.as_ref().zip(before.soak) else { return Ok(()) };
        let of = (pipeline().to_string(), &before.name, &is.revision);
        match self.verdicts.lock().has_passed((&of.0, of.1, of.2), soak, spec.strict) {
            true => Ok(()),
            false => Err(format!("no evaluation of it has passed in {}: {is:?}", before.name)),
        }
    }
}
