//! The attributes of items in `docs/attributes.md` are those that the cases write.

use keelway_conformance::chosen::all;
use keelway_conformance::deployments::{self, DeploymentsWorld};
use keelway_conformance::promotions::{self, PromotionsWorld};
use keelway_engine::register;
use keelway_world::case::{Tells, run};
use keelway_world::deployments::Deploys;
use keelway_world::evaluations::{Evaluates, EvaluationsWorld};
use keelway_world::fork::Forked;
use keelway_world::promotions::Promotes;
use keelway_world::sequences::{Keptn, SequencesWorld};
use keelway_world::story::Mode;
use keelway_world::webhooks::{Hooks, HooksWorld};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What the page calls the section about attributes that many kinds of items have.
const MANY: &str = "Of many kinds";

/// Attributes by kind of item.
type Legend = BTreeMap<String, BTreeSet<String>>;

fn read(page: &str) -> Legend {
    let (mut legend, mut kind) = (Legend::new(), String::new());
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ").or_else(|| line.strip_prefix("## ")) {
            kind = heading.to_owned();
        } else if let Some(row) = line.strip_prefix("| `") {
            let names = row.split(" | ").next().unwrap_or_default().split(", ").map(|name| name.trim_matches('`').to_owned());
            legend.entry(kind.clone()).or_default().extend(names);
        }
    }
    legend
}

/// Adds the attributes of all items that an engine's cases write.
fn add<D: Tells<S>, S: Forked>(seen: &mut Legend, stand: impl Fn(Mode) -> S) {
    for case in all::<D>() {
        let mut stand = stand(Mode::Clean);
        run(&case, &mut stand).unwrap();
        let journal = std::mem::take(&mut stand.story().world.core().table.journal);
        for item in journal.into_iter().filter_map(|change| change.new) {
            let kind = register::kind(&item.key).unwrap_or_else(|| panic!("{} is not in the register", item.key));
            seen.entry(kind.what.to_owned()).or_default().extend(item.attrs.keys().map(ToString::to_string));
        }
    }
}

#[test]
fn the_legend_has_every_attribute_that_the_cases_write() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/attributes.md")).unwrap();
    let legend = read(&page);
    let kinds: BTreeSet<&str> = register::partitions().flat_map(|partition| partition.items).map(|kind| kind.what).collect();
    let unknown: Vec<_> = legend.keys().filter(|kind| *kind != MANY && !kinds.contains(kind.as_str())).collect();
    assert!(unknown.is_empty(), "no kind of item has this name: {unknown:?}");

    let mut seen = Legend::new();
    add::<Keptn, _>(&mut seen, SequencesWorld::new);
    add::<Promotes, _>(&mut seen, |mode| PromotionsWorld::new(mode, promotions::Rider::None, None));
    add::<Deploys, _>(&mut seen, |mode| DeploymentsWorld::new(mode, deployments::Rider::None, None));
    add::<Hooks, _>(&mut seen, HooksWorld::new);
    add::<Evaluates, _>(&mut seen, EvaluationsWorld::new);
    let empty = BTreeSet::new();
    let told = |kind: &str| legend.get(kind).unwrap_or(&empty);
    let missing: Vec<_> = seen
        .iter()
        .map(|(kind, names)| {
            (kind, names.iter().filter(|name| !told(kind).contains(*name) && !told(MANY).contains(*name)).collect())
        })
        .filter(|(_, names): &(_, Vec<_>)| !names.is_empty())
        .collect();
    assert!(missing.is_empty(), "docs/attributes.md does not explain {missing:#?}");
}
