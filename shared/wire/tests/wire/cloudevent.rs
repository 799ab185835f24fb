//! What is a CloudEvent, what is not, and what a client may send.

use keelway_domain::event::{CloudEvent, DEFAULT_SOURCE};
use keelway_domain::ids::context_of;
use keelway_domain::time::Timestamp;
use keelway_wire::cloudevent::{CloudEventError, Origin, check_client_event, fill_id, from_bus_envelope, parse};
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn event() -> Value {
    json!({
        "specversion": "1.0", "id": "e1", "source": "tests", "type": "sh.keptn.event.dev.delivery.triggered",
        "time": "2026-11-20T15:04:05.123Z", "shkeptncontext": "0b9e7a44-1f7e-4abc-8123-5d2a5ef11ecf",
        "data": {"project": "shop", "stage": "dev", "service": "carts", "labels": {"owner": "me"}}
    })
}

/// The event with one member set, or taken out by null.
fn with(pointer: &str, value: Value) -> Value {
    let mut event = event();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = event.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
    match value {
        Value::Null => parent.remove(key),
        value => parent.insert(key.into(), value),
    };
    event
}

fn read(json: &Value) -> Result<CloudEvent, CloudEventError> {
    parse(json, Origin::Bus, NOW)
}

fn refusal(json: &Value) -> String {
    read(json).unwrap_err().to_string()
}

#[test]
fn a_whole_event_is_read() {
    let read = read(&with("/triggeredid", json!("t1"))).unwrap();
    assert_eq!(read.time.rfc3339(), "2026-11-20T15:04:05.123Z");
    assert_eq!(read.triggered_id.as_deref(), Some("t1"));
    assert_eq!(read.text("service"), Some("carts"));
    assert_eq!(parse(&read.to_json(), Origin::Bus, NOW).unwrap(), read);
}

/// What the SDK is not asked about, it would take.
#[test]
fn any_text_is_fine_in_the_attributes_that_most_events_have() {
    for name in ["datacontenttype", "gitcommitid", "shkeptnspecversion", "triggeredid"] {
        for text in ["", "x", "application/json; charset=utf-8", "ä b/\"c\"", "1.0", "null"] {
            let event = with(&format!("/{name}"), json!(text));
            let mut without_data = event.clone();
            without_data.as_object_mut().unwrap().remove("data");
            assert!(serde_json::from_value::<cloudevents::Event>(without_data).is_ok(), "{name} {text:?}");
            read(&event).unwrap_or_else(|refused| panic!("{name} {text:?}: {refused}"));
        }
        assert!(read(&with(&format!("/{name}"), json!(["x"]))).is_err(), "{name}");
    }
}

#[test]
fn what_is_absent_follows_from_the_rest() {
    let mut bare = event();
    for member in ["source", "time", "shkeptncontext"] {
        bare.as_object_mut().unwrap().remove(member);
    }
    let read = read(&bare).unwrap();
    assert_eq!(read.source, DEFAULT_SOURCE);
    assert_eq!(read.time, NOW);
    assert_eq!(read.context.as_str(), context_of(DEFAULT_SOURCE, "e1").to_string());
    assert_eq!(parse(&with("/time", json!("yesterday")), Origin::Bus, NOW).unwrap().time, NOW);
    assert_eq!(parse(&with("/source", json!("")), Origin::Bus, NOW).unwrap().source, DEFAULT_SOURCE);
}

#[test]
fn any_text_is_a_context() {
    let read = |text: &str| read(&with("/shkeptncontext", json!(text))).unwrap();
    assert_eq!(read("a.b_c-1").context.as_str(), "a.b_c-1");
    assert_eq!(read("build 17").context.as_str(), "47bfb6cb-3701-59a9-a713-f74ceeb601be");
    for text in ["a:b", "\0", &"x".repeat(300)] {
        let event = read(text);
        assert_eq!(event.context.as_str().len(), 36, "{text:?}");
        assert_eq!(parse(&event.to_json(), Origin::Bus, NOW), Ok(event));
    }
}

#[test]
fn a_time_before_2000_is_none() {
    let time = |text: &str| read(&with("/time", json!(text))).unwrap().time;
    assert_eq!((time("0001-01-01T00:00:00Z"), time("1999-12-31T23:59:59Z")), (NOW, NOW));
    assert_eq!(time("2000-01-01T00:00:00Z").rfc3339(), "2000-01-01T00:00:00.000Z");
}

#[test]
fn a_client_may_leave_out_more() {
    assert!(parse(&with("/specversion", Value::Null), Origin::Client, NOW).is_ok());
    assert_eq!(refusal(&with("/specversion", Value::Null)), r#"specversion: is missing: send `"specversion": "1.0"`"#);
    let mut nameless = with("/id", Value::Null);
    assert!(parse(&nameless, Origin::Client, NOW).unwrap_err().to_string().starts_with("id: is missing"));
    fill_id(&mut nameless, || "fresh".into());
    assert_eq!(parse(&nameless, Origin::Client, NOW).unwrap().id, "fresh");
    fill_id(&mut nameless, || "other".into());
    assert_eq!(nameless["id"], "fresh");
}

#[test]
fn keptns_own_model_is_taken() {
    let mut event = event();
    event["extensions"] = json!({});
    event["contenttype"] = json!("application/json");
    event["shkeptnspecversion"] = json!("0.2.4");
    event["gitcommitid"] = json!("");
    assert_eq!(read(&event).unwrap().git_commit_id, None);
    assert_eq!(read(&with("/shkeptncontext", json!("run-1"))).unwrap().context.as_str(), "run-1");
}

#[test]
fn each_refusal_names_the_attribute_and_the_way_out() {
    let long = "x".repeat(129);
    let table: &[(&str, Value, &str)] = &[
        ("/specversion", json!("0.3"), r#"specversion: is "0.3": only "1.0" is understood"#),
        ("/type", Value::Null, r#"type: is missing: say what happened, for example "sh.keptn.event.dev.delivery.triggered""#),
        ("/type", json!(7), "type: is a number, not a string"),
        ("/type", json!(long), "type: has 129 characters: at most 128 are allowed"),
        ("/type", json!("a b"), r#"type: "a b" contains ' ': a type is one name with dots"#),
        ("/source", json!("aws.ec2"), r#"source: "aws.ec2" begins with `aws.`, which the bus keeps for AWS: choose another"#),
        (
            "/id",
            json!(""),
            "id: is missing: give every event an id of its own, for example a UUID; the same again is the same event",
        ),
        ("/id", json!(1), "id: is a number, not a string"),
        ("/id", json!("x".repeat(257)), "id: has 257 characters: at most 256 are allowed"),
        ("/shkeptncontext", json!(7), "shkeptncontext: is a number, not a string"),
        ("/source", json!("ci "), "source: \"ci \" begins or ends with a blank: leave it out"),
        (
            "/source",
            json!("b\u{fc}"),
            "source: \"b\u{fc}\" contains '\u{fc}': send a URI reference, in ASCII; percent-encode the rest",
        ),
        (
            "/source",
            json!("Shipyard.Controller"),
            "source: \"Shipyard.Controller\" looks like \"shipyard-controller\", which is the engine's own: send the name of your tool",
        ),
        ("/data", Value::Null, "data: is missing: send an object, with `project`, `stage` and `service` for a sequence or task"),
        ("/data", json!(-1), "data: is a number: send a JSON object"),
        ("/data", json!("{}"), "data: is a string: send a JSON object"),
        ("/data/labels", json!([]), "data.labels: is an array: send an object of strings"),
        ("/data/labels", json!({"tries": 3}), "data.labels.tries: is a number, not a string: put it in quotes"),
        ("/data/message", json!("a\0b"), "data.message: contains the character U+0000, which a queue does not carry: leave it out"),
        (
            "/data/test",
            json!({"log": ["\u{1b}[0m"]}),
            "data.test.log: contains the character U+001B, which a queue does not carry: leave it out",
        ),
        ("/source", json!("a\u{ffff}"), "source: contains the character U+FFFF, which a queue does not carry: leave it out"),
        ("/extra", json!({"a": 1}), "extra: is an object: an attribute is a string, a number or a truth value; put it into `data`"),
    ];
    for (pointer, value, expected) in table {
        assert_eq!(refusal(&with(pointer, value.clone())), *expected, "{pointer}");
    }
    assert_eq!(refusal(&json!([])), "event: is an array, not a JSON object: send a CloudEvent in structured JSON");
    let mut binary = with("/data", Value::Null);
    binary["data_base64"] = json!("e30=");
    assert_eq!(refusal(&binary), "data_base64: is not taken: send the data as a JSON object in `data`");
    assert!(refusal(&with("/dataschema", json!("no url"))).starts_with("event: is not a CloudEvent: "));
}

#[test]
fn null_labels_and_tabs_are_fine() {
    let mut event = with("/data/message", json!("a\tb\r\nc \u{1f600}"));
    event["data"]["labels"] = Value::Null;
    assert!(read(&event).is_ok());
}

#[test]
fn an_event_of_another_kind_needs_no_data() {
    let mut event = with("/type", json!("com.acme.built"));
    event.as_object_mut().unwrap().remove("data");
    assert!(read(&event).unwrap().data.is_empty());
}

#[test]
fn the_envelope_says_what_the_event_says() {
    let envelope = json!({"version": "0", "detail-type": event()["type"], "source": "tests", "detail": event()});
    assert_eq!(from_bus_envelope(&envelope, NOW).unwrap().id, "e1");
    let refusal = |field: &str, value: Value| {
        let mut envelope = envelope.clone();
        envelope[field] = value;
        from_bus_envelope(&envelope, NOW).unwrap_err().to_string()
    };
    assert_eq!(
        refusal("source", json!("other")),
        r#"source: is "other", but the event's `source` is "tests": send the same in both places"#
    );
    assert_eq!(
        refusal("detail-type", Value::Null),
        r#"detail-type: is missing: set it to the event's `type`, "sh.keptn.event.dev.delivery.triggered""#
    );
    assert_eq!(refusal("detail", json!("{}")), "event: is a string, not a JSON object: send a CloudEvent in structured JSON");
    assert_eq!(
        from_bus_envelope(&json!({}), NOW).unwrap_err().to_string(),
        "detail: is missing: put the whole CloudEvent into the entry's Detail"
    );
}

fn gateway(ty: &str, triggered_id: Option<&str>, data: Value) -> Result<(), String> {
    let mut event = event();
    event["type"] = json!(ty);
    event["triggeredid"] = json!(triggered_id);
    event["data"] = data;
    let event = parse(&event, Origin::Client, NOW).map_err(|error| error.to_string())?;
    check_client_event(&event).map_err(|error| error.to_string())
}

#[test]
fn what_keptns_gateway_lets_in() {
    let scope = || json!({"project": "shop", "stage": "dev", "service": "carts"});
    let finished = || json!({"project": "shop", "stage": "dev", "service": "carts", "result": "any", "status": "any"});
    for (ty, triggered_id, data) in [
        ("sh.keptn.event.dev.delivery.triggered", None, scope()),
        ("sh.keptn.event.test.started", Some("t"), scope()),
        ("sh.keptn.event.test.status.changed", Some("t"), scope()),
        ("sh.keptn.event.test.finished", Some("t"), finished()),
        ("sh.keptn.event.monitoring.configure", None, json!({"project": "shop", "type": "dynatrace"})),
        ("sh.keptn.event.evaluation.invalidated", None, json!({})),
        ("sh.keptn.events.problem", None, json!({})),
        ("sh.keptn.log.error", None, json!({})),
        ("sh.keptn.event.production.problem.open", None, json!({"project": "shop", "service": "carts"})),
        ("sh.keptn.event.com.acme.built", None, json!({"project": "shop", "service": "carts"})),
    ] {
        assert_eq!(gateway(ty, triggered_id, data), Ok(()), "{ty}");
    }
}

#[test]
fn what_it_keeps_out() {
    let refusal = |ty: &str, triggered_id: Option<&str>, data: Value| gateway(ty, triggered_id, data).unwrap_err();
    let scope = || json!({"project": "shop", "stage": "dev", "service": "carts"});
    let delivery = "sh.keptn.event.dev.delivery.triggered";
    assert_eq!(
        refusal("sh.keptn.event.other.delivery.triggered", None, scope()),
        r#"data.stage: is "dev", but the type names stage "other": make them the same"#
    );
    for field in ["project", "stage", "service"] {
        for (ty, result) in
            [(delivery, None), ("sh.keptn.event.test.started", None), ("sh.keptn.event.test.finished", Some("pass"))]
        {
            let mut data = scope();
            data[field] = json!("");
            data["result"] = json!(result);
            let expected = format!("data.{field}: is missing: send it as a string that is not empty");
            assert_eq!(refusal(ty, Some("t"), data), expected, "{ty}");
        }
    }
    assert_eq!(refusal(delivery, None, json!(-1)), "data: is a number: send a JSON object");
    assert_eq!(
        refusal("sh.keptn.event.test.started", None, scope()),
        "triggeredid: is missing: send the id of the `.triggered` event this answers"
    );
    let mut data = scope();
    data["result"] = json!("pass");
    assert_eq!(
        refusal("sh.keptn.event.test.finished", Some("t"), data),
        "data.status: is missing: send it as a string that is not empty"
    );
    assert_eq!(
        refusal("sh.keptn.event.test.finished", Some("t"), scope()),
        "data.result: is missing: send it as a string that is not empty"
    );
    assert_eq!(
        refusal("sh.keptn.event.test.triggered", None, scope()),
        "type: only the engine triggers a task: trigger a sequence that has task `test`, `sh.keptn.event.<stage>.<sequence>.triggered`"
    );
    assert_eq!(
        refusal("sh.keptn.event.dev.delivery.finished", Some("t"), scope()),
        "type: only the engine tells that a sequence is finished: to start it, send `sh.keptn.event.dev.delivery.triggered`"
    );
    assert_eq!(
        refusal("sh.keptn.event.monitoring.configure", None, json!({"project": "shop"})),
        "data.type: is missing: send it as a string that is not empty"
    );
    assert_eq!(
        refusal("evil.invalidated", None, scope()),
        r#"type: "evil.invalidated" is an unknown event type: types begin with `sh.keptn.event.`; send `sh.keptn.event.evil.invalidated`"#
    );
    let decision = |result: &str, status: Value| {
        let data = json!({"project": "shop", "stage": "dev", "service": "carts", "result": result, "status": status});
        gateway("sh.keptn.event.approval.finished", Some("t"), data)
    };
    for status in [Value::Null, json!(""), json!("succeeded")] {
        assert_eq!((decision("pass", status.clone()), decision("fail", status)), (Ok(()), Ok(())));
    }
    assert!(decision("warning", json!("succeeded")).unwrap_err().starts_with("data.result: is \"warning\""));
    assert!(decision("pass", json!("errored")).unwrap_err().starts_with("data.status: is \"errored\""));
    assert!(refusal("garbage", None, json!({})).starts_with(r#"type: unknown event type "garbage": send "#));
    assert_eq!(
        refusal("com.acme.built", None, scope()),
        r#"type: "com.acme.built" is an unknown event type: types begin with `sh.keptn.event.`; send `sh.keptn.event.com.acme.built`"#
    );
    assert_eq!(
        refusal("sh.keptn.events.dev.delivery.triggered", None, scope()),
        r#"type: "sh.keptn.events.dev.delivery.triggered" is an unknown event type: the prefix is `sh.keptn.event.`, in the singular; send `sh.keptn.event.dev.delivery.triggered`"#
    );
    assert_eq!(
        refusal("sh.keptn.event.Dev.delivery.triggered", None, scope()),
        r#"type: "sh.keptn.event.Dev.delivery.triggered" is an unknown event type: stage name "Dev" contains 'D': use lower-case letters, digits and `-`"#
    );
    let mut ours = read(&event()).unwrap();
    ours.source = keelway_domain::event::SOURCE.into();
    assert!(check_client_event(&ours).unwrap_err().to_string().starts_with("source: \"shipyard-controller\" is the engine's own"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        proptest::sample::select(vec!["type", "source", "id", "specversion", "data", "time", "labels", "shkeptncontext", "detail"])
            .prop_map(str::to_owned),
        ".{0,4}",
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key.clone(), inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_json_never_panics(json in any_json()) {
        for origin in [Origin::Bus, Origin::Client] {
            if let Ok(event) = parse(&json, origin, NOW) {
                prop_assert_eq!(parse(&event.to_json(), Origin::Bus, NOW), Ok(event.clone()));
                prop_assert!(check_client_event(&event).is_ok() || !event.ty.is_empty());
            }
        }
        prop_assert!(from_bus_envelope(&json, NOW).map_or(true, |event| !event.id.is_empty()));
    }

    #[test]
    fn a_changed_event_is_read_or_refused(pointer in proptest::sample::select(vec!["/id", "/type", "/source", "/data", "/time", "/data/labels"]), value in any_json()) {
        let json = with(pointer, value);
        if let Ok(event) = read(&json) {
            prop_assert_eq!(read(&event.to_json()), Ok(event.clone()));
        }
    }
}
