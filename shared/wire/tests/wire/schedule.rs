//! `kind: Schedule`: what is read. What is refused is in `refusals/schedule.yaml`.

use crate::common::{findings, parse};
use keelway_domain::schedules::{Concurrency, When};
use keelway_domain::time::Timestamp;
use keelway_wire::manifest::{Document, ScheduleManifest};
use serde_json::json;

const NIGHTLY: &str = "\
apiVersion: keelway.dev/v1
kind: Schedule
metadata: {name: nightly}
spec:
  project: shop
  stage: dev
  services: [carts, payments]
  sequence: smoke
  cron: '30 2 * * MON-FRI'
  zone: Europe/Berlin
  start: 2026-12-01
  end: 2027-03-01T00:00:00Z
  concurrency: queue
  labels: {by: clock}
  data: {suite: {all: true}}
";

fn read(text: &str) -> ScheduleManifest {
    match parse(text).documents.into_iter().next() {
        Some(Document::Schedule(manifest)) => *manifest,
        other => panic!("{other:?}: {}", findings(text)),
    }
}

#[test]
fn every_field() {
    let manifest = read(NIGHTLY);
    assert_eq!((manifest.name.as_str(), manifest.project.as_str(), manifest.source.as_str()), ("nightly", "shop", NIGHTLY));
    let spec = manifest.spec;
    let services: Vec<&str> = spec.services.iter().map(|service| service.as_str()).collect();
    assert_eq!((spec.stage.as_str(), spec.sequence.as_str(), services), ("dev", "smoke", vec!["carts", "payments"]));
    assert_eq!((spec.when, spec.zone.as_deref()), (When::Cron("30 2 * * MON-FRI".into()), Some("Europe/Berlin")));
    assert_eq!(spec.start, Timestamp::parse("2026-11-30T23:00:00Z"));
    assert_eq!(spec.end, Timestamp::parse("2027-03-01T00:00:00Z"));
    assert_eq!((spec.suspended, spec.concurrency), (false, Concurrency::Queue));
    assert_eq!(json!(spec.data), json!({"suite": {"all": true}, "labels": {"by": "clock"}}));
    assert_eq!(findings(NIGHTLY), "");
}

#[test]
fn once_and_by_default() {
    let text = NIGHTLY.replace("cron: '30 2 * * MON-FRI'", "at: 2026-12-24T18:00").replace("  concurrency: queue\n", "");
    let spec = read(&text).spec;
    assert_eq!(Some(spec.when), Timestamp::parse("2026-12-24T17:00:00Z").map(When::At));
    assert_eq!(spec.concurrency, Concurrency::Skip);
}

#[test]
fn data_have_a_limit() {
    let long = NIGHTLY.replace("{suite: {all: true}}", &format!("{{text: {}}}", "a".repeat(17_000)));
    assert!(findings(&long).contains("at most 16384 are allowed"));
}
