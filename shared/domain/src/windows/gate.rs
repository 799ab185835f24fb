//! Whether work may begin now, and when it may begin next.

use super::{Kind, When, Window, cron, local, next, zone};
use crate::time::{Span, Timestamp};
use chrono_tz::Tz;
use croner::Cron;

/// The next opening is searched for so long after the first time at which the gate might be open, and after all windows that are open
/// once.
const AHEAD: Span = Span::minutes(2 * 366 * 24 * 60);
/// So many times of schedules are computed in one search: it bounds the CPU time of a message. Ten daily windows are looked through for
/// two years, one that denies each minute for two weeks.
const COMPUTED: usize = 20_000;
/// 2026-01-01: where a search without a clock begins. The zones have had the rules of today since then.
const RECENT: Timestamp = Timestamp(1_767_225_600_000);

/// Whether work may begin now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// Yes.
    Open,
    /// No; it may from this time on. `None`: no opening was found within two years.
    Closed(Option<Timestamp>),
}

/// When a window is open, its schedule and zone read.
enum Times {
    Recurring(Box<Cron>, Tz, Span),
    Once(Timestamp, Timestamp),
}

/// A window in a search, which only goes forward.
struct Look {
    times: Times,
    /// When it opened and closes, as of the last time that was asked for.
    last: Option<(Timestamp, Timestamp)>,
    /// When it opens next, as far as that was asked for: `last` holds until then.
    next: Option<Timestamp>,
    /// How many times were computed.
    computed: usize,
}

/// A search through all windows.
pub(super) struct Search {
    allow: Vec<Look>,
    deny: Vec<Look>,
    /// No window allows, so everything is open that none denies.
    always: bool,
    /// When the last window that is open once has ended.
    once: Timestamp,
    /// So many times may be computed.
    pub most: usize,
}

impl Look {
    /// `None`: a stored window that this version cannot read. It is never open.
    fn of(window: &Window) -> Option<Self> {
        let times = match &window.when {
            When::Recurring { schedule, duration } => {
                Times::Recurring(Box::new(cron(schedule).ok()?), zone(window.zone.as_deref()).ok()?, *duration)
            }
            When::Once { from, until } => Times::Once(*from, *until),
        };
        Some(Self { times, last: None, next: None, computed: 0 })
    }

    /// When it closes, if it is open.
    fn closes(&mut self, at: Timestamp) -> Option<Timestamp> {
        let open = |(from, until): &(Timestamp, Timestamp)| *from <= at && at < *until;
        if !self.last.as_ref().is_some_and(open) && self.next.is_none_or(|next| next <= at) {
            self.last = if self.next == Some(at) { Some(self.times.from(at)) } else { self.last(at) };
        }
        self.last.filter(open).map(|(_, until)| until)
    }

    fn last(&mut self, at: Timestamp) -> Option<(Timestamp, Timestamp)> {
        self.computed += 1;
        self.times.last(at)
    }

    /// When it opens next.
    fn opens(&mut self, at: Timestamp) -> Option<Timestamp> {
        if self.next.is_none_or(|next| next <= at) {
            self.computed += 1;
            self.next = self.times.next(at);
        }
        self.next
    }
}

impl Times {
    /// The window that opens then.
    fn from(&self, start: Timestamp) -> (Timestamp, Timestamp) {
        match self {
            Self::Recurring(_, _, duration) => (start, start + *duration),
            Self::Once(_, until) => (start, *until),
        }
    }

    /// The window that opened last, not after `at`.
    fn last(&self, at: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let start = match self {
            Self::Recurring(cron, zone, _) => {
                Timestamp(cron.find_previous_occurrence(&local(at, *zone)?, true).ok()?.timestamp_millis())
            }
            Self::Once(from, _) => Some(*from).filter(|from| *from <= at)?,
        };
        Some(self.from(start))
    }

    /// When one opens next, after `at`.
    fn next(&self, at: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Recurring(cron, zone, _) => next(cron, *zone, at),
            Self::Once(from, _) => Some(*from).filter(|from| *from > at),
        }
    }
}

impl Search {
    /// Reads each schedule and each zone once.
    pub fn of(windows: &[Window]) -> Self {
        let of = |kind| windows.iter().filter(move |window| window.kind == kind);
        let [allow, mut deny] = [Kind::Allow, Kind::Deny].map(|kind| of(kind).filter_map(Look::of).collect::<Vec<_>>());
        // What is open once may cover the windows of years.
        deny.sort_by_key(|window| matches!(window.times, Times::Recurring(..)));
        let ends = windows.iter().filter_map(|window| match window.when {
            When::Once { until, .. } => Some(until),
            When::Recurring { .. } => None,
        });
        let once = ends.max().unwrap_or_default();
        Self { allow, deny, always: of(Kind::Allow).next().is_none(), once, most: COMPUTED }
    }

    /// The first time from `now` on at which the gate is open.
    pub fn from(&mut self, now: Timestamp) -> Option<Timestamp> {
        let (mut at, mut end) = (now, None);
        while self.computed() < self.most {
            let allowed = self.always || self.allow.iter_mut().any(|window| window.closes(at).is_some());
            let denied = self.deny.iter_mut().filter(|_| allowed).find_map(|window| window.closes(at));
            let possible = match denied {
                None if allowed => return Some(at),
                None => self.allow.iter_mut().filter_map(|window| window.opens(at)).min()?,
                Some(closes) => closes,
            };
            if possible > *end.get_or_insert(possible.max(self.once) + AHEAD) {
                return None;
            }
            at = possible;
        }
        None
    }

    /// How many times of schedules were computed.
    pub fn computed(&self) -> usize {
        self.allow.iter().chain(&self.deny).map(|window| window.computed).sum()
    }
}

/// Whether work may begin at a time. Windows that deny win; without a window that allows, everything else is open.
pub fn gate(windows: &[Window], now: Timestamp) -> Gate {
    match Search::of(windows).from(now) {
        Some(at) if at == now => Gate::Open,
        opens => Gate::Closed(opens),
    }
}

/// Whether work may never begin, at whatever time one asks: windows that deny cover all that is allowed.
pub fn never(windows: &[Window]) -> bool {
    let once = windows.iter().filter(|window| window.kind == Kind::Allow).filter_map(|window| match window.when {
        When::Once { from, .. } => Some(from),
        When::Recurring { .. } => None,
    });
    let mut most = COMPUTED;
    [RECENT].into_iter().chain(once).all(|at| {
        let mut search = Search { most, ..Search::of(windows) };
        let opens = search.from(at);
        most = most.saturating_sub(search.computed());
        opens.is_none()
    })
}

/// Why no work begins at a time at which the gate is closed: the reason that a window gives, or which kind keeps it closed.
pub fn why(windows: &[Window], now: Timestamp) -> String {
    let denies =
        |window: &&Window| window.kind == Kind::Deny && Look::of(window).is_some_and(|mut look| look.closes(now).is_some());
    let reason = |window: &Window| window.reason.clone().filter(|reason| !reason.is_empty());
    match windows.iter().find(denies) {
        Some(window) => reason(window).unwrap_or_else(|| "a window that denies".into()),
        None => "no window that allows is open".into(),
    }
}
