//! Forks of a story: what goes wrong at one request is told from a copy of the world before it, not from the beginning, and no
//! further than to where everything is as if it had not gone wrong, or as after something else that went wrong.

use crate::case::{Case, Failure, Stand, Telling, Tells, go_on, run_watched};
use crate::story::{Mode, Story};
use crate::tested::Tested;
use std::ops::ControlFlow;

/// A stand in memory, of which there can be copies.
pub trait Forked: Stand + Sized {
    /// Its engine.
    type Engine: Tested;

    /// Its story.
    fn story(&mut self) -> &mut Story<Self::Engine>;
    /// Its story, when nobody needs the stand any more.
    fn into_story(self) -> Story<Self::Engine>;
    /// A copy that goes its own way: the world and everybody in it. From here on, something else goes wrong.
    fn fork(&self, mode: Mode) -> Self;
    /// Whether from here on everything is as on another stand, if the same is done on both and what goes wrong is behind them:
    /// [`Story::goes_on_like`], and everybody else in the world.
    fn goes_on_like(&self, other: &Self) -> bool;
}

/// What there was before a step, or while time passed before it.
struct Before<'c, D: Tells<S>, S: Stand> {
    /// So many requests had been made.
    requests: u64,
    telling: Telling<'c, D>,
    stand: S,
}

impl<'c, D: Tells<S>, S: Forked> Before<'c, D, S> {
    /// Here, with a copy of the stand in which `mode` goes wrong from now on.
    fn at(telling: &Telling<'c, D>, stand: &S, mode: Mode) -> Self {
        let mut stand = stand.fork(mode);
        Self { requests: stand.story().calls.len() as u64, telling: telling.clone(), stand }
    }

    /// Whether a case goes on from here as from there. A replay delivers what was delivered before, and after a fault that is more:
    /// after here, there are none if there were `replays` of them.
    fn goes_on_like(&mut self, telling: &Telling<'c, D>, stand: &S, replays: u32) -> bool {
        (self.telling.step, self.stand.now()) == (telling.step, stand.now())
            && self.stand.story().replays == replays
            && telling.goes_on_like(&self.telling)
            && stand.goes_on_like(&self.stand)
    }
}

/// Where a case was after something had gone wrong in it, and what that was.
pub struct Astray<'c, D: Tells<S>, S: Forked> {
    /// Before a step, or after time had passed.
    before: Vec<(Mode, Before<'c, D, S>)>,
    /// After the last step.
    ends: Vec<(Mode, S)>,
}

impl<D: Tells<S>, S: Forked> Default for Astray<'_, D, S> {
    fn default() -> Self {
        Self { before: vec![], ends: vec![] }
    }
}

/// What came of a fault.
pub enum Struck<S> {
    /// Some time later everything was as if nothing had gone wrong, so the case ends like [`Forks::end`].
    Mended,
    /// Some time later everything was as after this other fault, so the case ends as it did then.
    Joined(Mode),
    /// The case ended differently.
    Ended(S, Result<(), Failure>),
}

/// A case and one kind of fault, ready to strike at any request.
pub struct Forks<'c, D: Tells<S>, S: Forked> {
    fault: fn(u64) -> Mode,
    /// Before the beginning, before each step, and whenever time had passed.
    before: Vec<Before<'c, D, S>>,
    /// Where the case ends if the fault never strikes.
    end: (S, Result<(), Failure>),
}

impl<'c, D: Tells<S>, S: Forked> Forks<'c, D, S> {
    /// Tells a case on a stand that waits for this kind of fault, which never comes. So the world before a request is the same,
    /// however it goes on, as if the case had been told with the fault from its beginning.
    pub fn of(case: &'c Case<D>, fault: fn(u64) -> Mode, stand: impl FnOnce(Mode) -> S) -> Self {
        let never = fault(u64::MAX);
        let mut stand = stand(never);
        let mut before = vec![];
        let told = run_watched(case, &mut stand, |telling, stand| {
            before.push(Before::at(telling, stand, never));
            ControlFlow::Continue(())
        });
        Self { fault, before, end: (stand, told.map(drop)) }
    }

    /// Where the case ends if the fault never strikes.
    pub fn end(self) -> (S, Result<(), Failure>) {
        self.end
    }

    /// Tells the case with the fault at the n-th request (from 1), and where it ends. Where it goes astray is remembered for the
    /// next faults of the same case.
    ///
    /// # Panics
    /// If n is 0.
    pub fn strike(&mut self, n: u64, astray: &mut Astray<'c, D, S>) -> Struck<S> {
        let (mode, never) = ((self.fault)(n), (self.fault)(u64::MAX));
        let from = self.before.iter().rposition(|before| before.requests < n).expect("no request was made before the beginning");
        let (telling, mut stand) = (self.before[from].telling.clone(), self.before[from].stand.fork(mode));
        let replays = self.end.0.story().replays;
        let mut later: Vec<_> = self.before[from..].iter_mut().filter(|before| before.requests >= n).collect();
        let (mut struck, mut joined, mut own) = (false, None, vec![]);
        let told = go_on(telling, &mut stand, |telling, stand| {
            // The request is made between the place of the fork and the next one.
            if !std::mem::replace(&mut struck, true) {
                return ControlFlow::Continue(());
            }
            let like = |there: &mut Before<'c, D, S>| there.goes_on_like(telling, stand, replays);
            joined = if later.iter_mut().any(|before| like(before)) {
                Some(Struck::Mended)
            } else {
                astray.before.iter_mut().find_map(|(other, there)| like(there).then_some(Struck::Joined(*other)))
            };
            if joined.is_none() {
                own.push((mode, Before::at(telling, stand, never)));
                return ControlFlow::Continue(());
            }
            ControlFlow::Break(())
        });
        astray.before.extend(own);
        if let (None, Ok(_)) = (&joined, &told) {
            // What the case has seen on its way is behind it.
            match astray.ends.iter().find(|(_, there)| stand.goes_on_like(there)) {
                Some((other, _)) => joined = Some(Struck::Joined(*other)),
                None => astray.ends.push((mode, stand.fork(never))),
            }
        }
        joined.unwrap_or_else(|| Struck::Ended(stand, told.map(drop)))
    }
}
