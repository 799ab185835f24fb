//! What the tests need of counters besides the engine, and how their cases are written and told.

use super::core::{ADD, Counter, ENDED, Rules, SOURCE};
use super::{Counters, subject};
use keelway_domain::event::SPEC_VERSION;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::Key;
use keelway_engine::keys;
use keelway_engine::protocol::Loaded;
use keelway_wire::cloudevent::from_bus_envelope;
use keelway_world::Tested;
use keelway_world::case::{Answer, Dialect, Entrance, Format, Stand, Step, Telling, Tells, matches, parsed};
use keelway_world::fork::Forked;
use keelway_world::queue::Parcel;
use keelway_world::story::{Mode, Story};
use keelway_world::worker::Worker;
use serde::Deserialize;
use serde_json::{Value, json};

keelway_world::played!(Counters<Worker>);

impl Tested for Counters<Worker> {
    fn takes(source: &str, detail_type: &str) -> bool {
        detail_type == ADD && source != SOURCE
    }
    fn is_state(key: &Key) -> bool {
        key.pk.starts_with("N#") && key.sk == keys::MAIN
    }
}

/// The format and the dialect of counters' cases.
#[derive(Debug, Clone, Default)]
pub struct Counts;

/// A case of counters.
pub type Case = keelway_world::case::Case<Counts>;

/// Nothing is there before the first step.
#[derive(Debug, Clone, Deserialize)]
pub struct Nothing {}

/// An addition: to which counter, and the members of its data besides.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Own {
    add: Option<String>,
    n: Value,
    peer: Option<String>,
}

impl Format for Counts {
    type Given = Nothing;
    type Step = Own;

    const FOLDER: &'static str = super::NAME;

    fn inputs(step: &Own) -> usize {
        usize::from(step.add.is_some())
    }
    fn parse(text: &str) -> Result<Vec<Case>, String> {
        parsed(text)
    }
}

impl Dialect for Counts {
    fn takes(source: &str, detail_type: &str) -> bool {
        Counters::<Worker>::takes(source, detail_type)
    }
    fn sound(_: &Telling<'_, Self>, event: &Value) -> Result<(), String> {
        let ours = event["source"] == SOURCE && event["type"] == ENDED;
        if ours { Ok(()) } else { Err(format!("counters publish nothing but their end: {event}")) }
    }
}

/// A story of counters.
pub struct CountersWorld(pub Story<Counters<Worker>>);

impl CountersWorld {
    /// In an empty world.
    pub fn new(mode: Mode) -> Self {
        Self(Story::of(mode, |ports| Counters::new(ports, Rules { limit: 10, lifetime: Span::seconds(60) })))
    }
    fn counter(&self, name: &str) -> Option<Counter> {
        let core = self.0.world.core();
        Loaded::read(core.table.peek(&subject::key(name))?).ok().map(|loaded| loaded.x)
    }
}

impl Stand for CountersWorld {
    fn salt(&self) -> String {
        String::new()
    }
    fn ordered(&self) -> bool {
        self.0.ordered()
    }
    fn now(&self) -> Timestamp {
        self.0.world.now()
    }
    fn step(&mut self) {
        self.0.step();
    }
    fn send(&mut self, event: &Value, _: Entrance) -> Answer {
        let envelope = json!({"source": event["source"], "detail-type": event["type"], "detail": event});
        match from_bus_envelope(&envelope, self.0.world.now()) {
            Ok(event) => self.0.put_in(Parcel::Event(event)),
            Err(e) => self.0.put_in(Parcel::Invalid { reason: e.to_string(), text: envelope.to_string() }),
        }
    }
    fn wait(&mut self, span: Span) {
        self.0.wait(span);
    }
    fn outgoing(&mut self) -> Vec<Value> {
        self.0.outgoing()
    }
}

impl Forked for CountersWorld {
    type Engine = Counters<Worker>;

    fn story(&mut self) -> &mut Story<Self::Engine> {
        &mut self.0
    }
    fn into_story(self) -> Story<Self::Engine> {
        self.0
    }
    fn fork(&self, mode: Mode) -> Self {
        Self(self.0.fork(mode))
    }
    fn goes_on_like(&self, other: &Self) -> bool {
        self.0.goes_on_like(&other.0)
    }
}

impl Tells<CountersWorld> for Counts {
    fn put_in(telling: &mut Telling<'_, Self>, step: &Step<Self>, stand: &mut CountersWorld) -> Result<Answer, String> {
        let own = &step.own;
        let event = json!({
            "specversion": "1.0", "datacontenttype": "application/json", "shkeptnspecversion": SPEC_VERSION,
            "id": telling.fresh_id(), "time": stand.now().rfc3339(), "shkeptncontext": telling.context(step.about()),
            "source": "somebody", "type": ADD, "data": {"counter": own.add, "n": own.n, "peer": own.peer},
        });
        Ok(telling.send(step, event, Entrance::Bus, stand))
    }
    fn compare(_: &Telling<'_, Self>, step: &Step<Self>, stand: &mut CountersWorld) -> Result<(), String> {
        for (name, expected) in &step.state {
            let got = stand.counter(name).map(|x| json!({"count": x.count, "ended": x.end.is_some(), "peer": x.peer}));
            matches(&got.unwrap_or("absent".into()), expected, name)?;
        }
        Ok(())
    }
}
