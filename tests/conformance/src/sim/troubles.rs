//! What goes wrong in a run, whatever the engine.

use keelway_domain::time::Span;
use keelway_world::core::{Fault, Faults};
use keelway_world::rng::Rng;

/// The troubles of one seed. All chances in percent.
#[derive(Debug, Clone)]
pub struct Troubles {
    /// Crashes after a request.
    pub crash: f64,
    /// A crashed message is received no more.
    pub dead: f64,
    /// Whether dead letters are redriven before the sweep has to help.
    pub redrive_first: bool,
    /// A message becomes visible while its worker goes on.
    pub zombie: f64,
    /// A message is there twice.
    pub duplicate: f64,
    /// Requests are refused for now, answers lost, or requests repeated by the client.
    pub trouble: f64,
    /// Batches leave something over, entries fail.
    pub leftovers: f64,
    /// Indexes lag, and so do reads that are not strongly consistent.
    pub stale_indexes: bool,
    /// Longest time one request takes.
    pub tick: Span,
    /// Clocks differ by at most this.
    pub skew: Span,
    /// Sweeps while everything goes on.
    pub sweep: f64,
    /// Workers at the same time.
    pub workers: usize,
    /// The items of a transaction become visible one by one.
    pub staged: bool,
    /// Dead letters are stored, and sent again by the sweep, while everything goes on.
    pub letters: bool,
    /// Everything stops in the middle, timers are lost, and only the sweep repairs.
    pub cut: bool,
    /// There is no sweep. So nothing may wait for one; no message is lost then.
    pub unswept: bool,
}

impl Troubles {
    /// The troubles a seed stands for.
    pub fn of(rng: &mut Rng) -> Self {
        Self {
            crash: *rng.pick(&[0.0, 2.0, 2.0, 5.0, 5.0, 15.0]),
            dead: *rng.pick(&[0.0, 0.0, 30.0]),
            redrive_first: rng.chance(50.0),
            zombie: *rng.pick(&[0.0, 0.0, 3.0]),
            duplicate: *rng.pick(&[0.0, 5.0, 20.0]),
            trouble: *rng.pick(&[0.0, 0.0, 1.0, 3.0]),
            leftovers: *rng.pick(&[0.0, 10.0]),
            stale_indexes: rng.chance(30.0),
            tick: *rng.pick(&[Span(1), Span(50), Span(50), Span::seconds(2), Span::seconds(5)]),
            skew: *rng.pick(&[Span(0), Span(0), Span::seconds(2), Span::seconds(20)]),
            sweep: *rng.pick(&[0.0, 0.0, 1.0]),
            workers: *rng.pick(&[1, 2, 4, 4, 4]),
            staged: rng.chance(25.0),
            letters: rng.chance(50.0),
            cut: rng.chance(20.0),
            unswept: false,
        }
    }

    /// The same without a sweep, and without what only a sweep repairs: messages and timers that are lost.
    #[must_use]
    pub fn without_sweeps(self) -> Self {
        Self { dead: 0.0, sweep: 0.0, letters: false, cut: false, unswept: true, ..self }
    }

    /// Requests that fail, or whose answers are lost.
    pub(super) fn faults(&self, rng: &mut Rng) -> Option<Faults> {
        let (trouble, leftovers) = (self.trouble, self.leftovers);
        if trouble == 0.0 && leftovers == 0.0 {
            return None;
        }
        let mut rng = Rng::new(rng.bits());
        Some(Box::new(move |_, _| {
            if rng.chance(trouble) {
                *rng.pick(&[Fault::Throttled, Fault::AnswerLost, Fault::Repeated])
            } else if rng.chance(leftovers) {
                Fault::Partial
            } else {
                Fault::None
            }
        }))
    }
}
