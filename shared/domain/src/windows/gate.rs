//! The gate that windows form: whether work may begin now, and when it may begin next.

use super::{Kind, When, Window, cron, local, next, zone};
use crate::time::{Span, Timestamp};
use chrono_tz::Tz;
use croner::Cron;

/// How far the search for the next opening goes beyond the first possible time and the end of all single windows.
const AHEAD: Span = Span::minutes(2 * 366 * 24 * 60);
/// The most times of schedules that one search computes, which bounds the CPU time of a message. It suffices to search ten daily
/// windows for two years, or a window that denies every minute for two weeks.
const COMPUTED: usize = 20_000;
/// 2026-01-01: the beginning of searches that have no clock. The time zones have had their present rules since then.
const RECENT: Timestamp = Timestamp(1_767_225_600_000);

/// Whether work may begin now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// Work may begin.
    Open,
    /// Work may begin from this time on. `None`: no opening was found within two years.
    Closed(Option<Timestamp>),
}

/// The times of a window, with schedule and zone parsed.
enum Times {
    Recurring(Box<Cron>, Tz, Span),
    Once(Timestamp, Timestamp),
}

/// A window in a search. The search only moves forward.
struct Look {
    times: Times,
    /// The last opening that was computed, and when it closes.
    last: Option<(Timestamp, Timestamp)>,
    /// The opening after `last`, as far as it was computed.
    next: Option<Timestamp>,
    /// The number of computed times.
    computed: usize,
}

/// A search over all windows.
pub(super) struct Search {
    allow: Vec<Look>,
    deny: Vec<Look>,
    /// No window allows: everything is open unless a window denies it.
    always: bool,
    /// The end of the last single window.
    once: Timestamp,
    /// So many times may be computed.
    pub most: usize,
}

impl Look {
    /// `None`: a stored window that this version cannot parse. It is never open.
    fn of(window: &Window) -> Option<Self> {
        let times = match &window.when {
            When::Recurring { schedule, duration } => {
                Times::Recurring(Box::new(cron(schedule).ok()?), zone(window.zone.as_deref()).ok()?, *duration)
            }
            When::Once { from, until } => Times::Once(*from, *until),
        };
        Some(Self { times, last: None, next: None, computed: 0 })
    }

    /// When the window closes, if it is open at that time.
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

    /// When the window opens next.
    fn opens(&mut self, at: Timestamp) -> Option<Timestamp> {
        if self.next.is_none_or(|next| next <= at) {
            self.computed += 1;
            self.next = self.times.next(at);
        }
        self.next
    }
}

impl Times {
    /// The window that opens at that time.
    fn from(&self, start: Timestamp) -> (Timestamp, Timestamp) {
        match self {
            Self::Recurring(_, _, duration) => (start, start + *duration),
            Self::Once(_, until) => (start, *until),
        }
    }

    /// The last opening at or before `at`.
    fn last(&self, at: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let start = match self {
            Self::Recurring(cron, zone, _) => {
                Timestamp(cron.find_previous_occurrence(&local(at, *zone)?, true).ok()?.timestamp_millis())
            }
            Self::Once(from, _) => Some(*from).filter(|from| *from <= at)?,
        };
        Some(self.from(start))
    }

    /// The next opening after `at`.
    fn next(&self, at: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Recurring(cron, zone, _) => next(cron, *zone, at),
            Self::Once(from, _) => Some(*from).filter(|from| *from > at),
        }
    }
}

impl Search {
    /// Parses each schedule and each zone once.
    pub fn of(windows: &[Window]) -> Self {
        let of = |kind| windows.iter().filter(move |window| window.kind == kind);
        let [allow, mut deny] = [Kind::Allow, Kind::Deny].map(|kind| of(kind).filter_map(Look::of).collect::<Vec<_>>());
        // A single window may span years.
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
        while !self.is_spent() {
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

    /// Whether it has computed as many times as it may.
    fn is_spent(&self) -> bool {
        self.computed() >= self.most
    }

    /// The number of computed times.
    pub fn computed(&self) -> usize {
        self.allow.iter().chain(&self.deny).map(|window| window.computed).sum()
    }
}

/// Whether work may begin at a time. Windows that deny take precedence; without a window that allows, all other times are open.
pub fn gate(windows: &[Window], now: Timestamp) -> Gate {
    match Search::of(windows).from(now) {
        Some(at) if at == now => Gate::Open,
        opens => Gate::Closed(opens),
    }
}

/// Whether the gate never opens: windows that deny cover all that is allowed.
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

/// A time in which the gate is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closure {
    /// Its beginning, or the beginning of the search if the gate is closed then.
    pub from: Timestamp,
    /// When the gate opens again. `None`: no opening was found within two years.
    pub until: Option<Timestamp>,
    /// Why, as at its beginning.
    pub why: String,
}

/// When the gate is closed between two times: the first `most` closures, or fewer if they take too many computed times.
pub fn closures(windows: &[Window], from: Timestamp, until: Timestamp, most: usize) -> Vec<Closure> {
    let (mut search, mut found, mut at) = (Search::of(windows), vec![], from);
    while at < until && found.len() < most {
        let opens = search.from(at);
        // What comes after the search is not known. A first closure is told as the gate itself tells it.
        if opens.is_none() && search.is_spent() && !found.is_empty() {
            break;
        }
        if opens != Some(at) {
            found.push(Closure { from: at, until: opens, why: why(windows, at) });
        }
        let Some(open) = opens else { break };
        // It may close when a window that allows ends, or one that denies begins.
        let ends = search.allow.iter_mut().filter_map(|window| window.closes(open));
        let begins = search.deny.iter_mut().filter_map(|window| window.opens(open));
        let Some(next) = ends.chain(begins).min() else { break };
        at = next;
    }
    found
}

/// Why the gate is closed at a time: the reason of a window, or the kind of windows that keeps it closed.
pub fn why(windows: &[Window], now: Timestamp) -> String {
    let denies =
        |window: &&Window| window.kind == Kind::Deny && Look::of(window).is_some_and(|mut look| look.closes(now).is_some());
    let reason = |window: &Window| window.reason.clone().filter(|reason| !reason.is_empty());
    match windows.iter().find(denies) {
        Some(window) => reason(window).unwrap_or_else(|| "a window that denies".into()),
        None => "no window that allows is open".into(),
    }
}
