//! Pipelines and the engine of evaluations in one world: a revision moves on when what a source measured over its soak time meets
//! the objectives of the project's files, whatever goes wrong in between.

use keelway_conformance::promotions::{app, definition, settings, target};
use keelway_domain::note::Note;
use keelway_domain::promotions::definition::{Definition, EvaluationSpec};
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::{Command, EVALUATION_FAILED, Pipeline};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::evaluations::Evaluations;
use keelway_engine::promotions::observations::Fact;
use keelway_engine::promotions::{ATTEMPTS, Address, Job, Limits, Message, Promotions, keys};
use keelway_engine::protocol::Loaded;
use keelway_world::evaluations::{FILES, Shared, Sources, declared, engine, project};
use keelway_world::exec::block_on;
use keelway_world::halves::Halves;
use keelway_world::queue::Parcel;
use keelway_world::story::{Mode, Story};
use keelway_world::worker::Worker;

/// Pipelines, and who evaluates for them. Nobody carries attempts out.
type Both = Halves<Promotions<Worker>, Evaluations<Worker, Sources>>;

const SOAK: Span = Span::minutes(60);

struct Shop {
    story: Story<Both>,
    sources: Shared,
    versions: i64,
}

fn flow() -> Address {
    Address::new("shop", "flow")
}

/// `dev` runs v1 and is evaluated as service `svc`; `prod` comes next.
fn pipeline() -> Definition {
    let mut definition = definition(&[("dev", 1), ("prod", 1)], settings(false, false));
    definition.environments[0].soak = Some(SOAK);
    definition.environments[0].evaluation = Some(EvaluationSpec { service: "svc".into(), stage: None, strict: false });
    definition
}

impl Shop {
    /// With this number of errors, and the files of the cases or none.
    fn open(mode: Mode, errors: f64, with_files: bool) -> Self {
        let sources = Shared::default();
        let shared = sources.clone();
        let story: Story<Both> = Story::of(mode, move |worker: Worker| Halves {
            decides: Promotions::new(worker.clone(), Limits::default()),
            carries: engine(worker, &shared),
        });
        story.world.core().queue.absent = Some(ATTEMPTS);
        let mut shop = Self { story, sources, versions: 0 };
        project::create(&shop.story.world, "shop", &["dev", "prod"], &["svc"]).unwrap();
        for (at, file, text) in FILES.into_iter().filter(|_| with_files) {
            project::write(&shop.story.world, "shop", (at, file), Some(text)).unwrap();
        }
        project::declare(&shop.story.world, "shop", "prometheus", Some(&declared("prometheus", Some(Span(0))))).unwrap();
        shop.errors(errors);
        for environment in ["dev", "prod"] {
            shop.observe(environment, "v1");
        }
        block_on(shop.story.another(0).decides.apply(&flow(), &pipeline(), "as applied")).unwrap();
        shop.story.deliver_all();
        shop
    }

    fn errors(&self, errors: f64) {
        self.sources.state().values.insert(("prometheus".into(), "errors of svc in dev".into()), errors);
    }

    fn observe(&mut self, environment: &str, revision: &str) {
        self.versions += 1;
        let at = self.story.world.now();
        let observed = Observed { revision: Some(revision.into()), ready: true, error: None, at, by: vec![] };
        let fact = Fact { app: app(), target: target(environment, 0), version: self.versions, observed };
        block_on(self.story.another(0).decides.observe(&fact)).unwrap();
        self.story.deliver_all();
    }

    fn retry(&mut self) {
        let note = Note { by: "token:ann".into(), at: self.story.world.now(), id: 1, ..Note::default() };
        let message = Message::Command { to: flow(), command: Command::Retry("prod".into()), note };
        self.story.put_in(Parcel::Own(message.letter().body));
    }

    fn state(&self) -> Pipeline {
        let core = self.story.world.core();
        Loaded::<Pipeline>::read(core.table.peek(&keys::pipeline(&flow())).unwrap()).unwrap().x
    }

    /// The revisions that are being promoted into `prod`.
    fn attempted(&self) -> Vec<String> {
        let sent = self.story.world.core().queue.sent_away.clone();
        let attempts = sent.iter().filter_map(|text| match Job::from_json(text) {
            Ok(Job::Attempt { attempt, .. }) => Some(attempt.revision),
            _ => None,
        });
        attempts.collect()
    }

    /// The windows for which the source was asked, each once.
    fn windows(&self) -> Vec<(Timestamp, Timestamp)> {
        let mut all: Vec<_> = self.sources.state().asked.iter().map(|asked| (asked.period.start, asked.period.end)).collect();
        all.dedup();
        all
    }
}

/// A revision that has too many errors, which are mended, and that a person retries.
fn story(mode: Mode) -> Shop {
    let mut shop = Shop::open(mode, 4.0, true);
    shop.observe("dev", "v2");
    // Whatever goes wrong is made up for: an order that is not answered is given again after a quarter of an hour.
    shop.story.wait(Span::minutes(110));
    assert_eq!(shop.state().condition.reason, EVALUATION_FAILED, "{mode:?}");
    shop.errors(0.4);
    shop.retry();
    shop.story.wait(Span::minutes(4));
    shop
}

#[test]
fn a_revision_is_measured_over_its_soak_time_and_moves_on_when_it_is_good_enough() {
    let mut shop = Shop::open(Mode::Clean, 0.4, true);
    shop.observe("dev", "v2");
    let begun = shop.story.world.now();
    shop.story.wait(Span::minutes(59));
    assert_eq!((shop.windows().len(), shop.attempted().len()), (0, 0));
    shop.story.wait(Span::minutes(2));
    assert_eq!(shop.windows(), [(begun, begun + SOAK)]);
    assert_eq!(shop.attempted(), ["v2"]);
}

#[test]
fn a_failure_is_told_in_numbers_and_a_retry_measures_the_time_until_then() {
    let shop = story(Mode::Clean);
    let windows = shop.windows();
    assert_eq!((windows.len(), windows[1].1 - windows[1].0), (2, SOAK));
    assert!(windows[1].0 > windows[0].0);
    assert_eq!(shop.attempted(), ["v2"]);
}

#[test]
fn without_files_nothing_moves() {
    let mut shop = Shop::open(Mode::Clean, 0.4, false);
    shop.observe("dev", "v2");
    shop.story.wait(Span::minutes(660));
    let condition = shop.state().condition;
    assert_eq!(condition.reason, EVALUATION_FAILED);
    assert!(condition.message.contains("was not evaluated in dev: no evaluation performed"), "{}", condition.message);
    assert!(shop.attempted().is_empty());
}

#[test]
fn whatever_goes_wrong_at_any_request_the_revision_moves_on_once() {
    let requests = story(Mode::Clean).story.calls.len() as u64;
    let faults = (1..=requests).flat_map(|at| Mode::FAULTS.map(|fault| fault(at)));
    for mode in faults.chain([Mode::Twice]) {
        let mut shop = story(mode);
        // An answer may have been lost.
        shop.story.wait(Span::minutes(20));
        let attempts = shop.attempted();
        assert!(!attempts.is_empty() && attempts.iter().all(|revision| revision == "v2"), "{mode:?}: {attempts:?}");
        assert!(shop.story.broken.is_empty(), "{mode:?}: {:?}", shop.story.broken);
        let orders = shop.state().environments["dev"].evaluation.clone().map(|evaluation| evaluation.again);
        assert_eq!(orders, Some(1), "{mode:?}");
    }
}
