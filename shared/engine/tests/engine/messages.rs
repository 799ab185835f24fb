//! The text of messages in queues: other versions of the same function read it.

use keelway_domain::names::ProjectName;
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;
use keelway_engine::{deployments, promotions, sequences};

/// The name comes first, in lower case, and what an older or a newer version leaves out or adds is no trouble.
#[test]
fn a_message_has_its_name_and_its_members() {
    let to = promotions::Address { namespace: "shop".into(), name: "carts".into() };
    let wake = promotions::Message::Wake { to, at: Timestamp(5) };
    let text = wake.to_json();
    assert!(text.starts_with(r#"{"keelway":"wake","to":"#), "{text}");
    assert_eq!(promotions::Message::from_json(&text).unwrap(), wake);
    let newer = text.replacen('{', r#"{"more":{"keelway":"other"},"#, 1);
    assert_eq!(promotions::Message::from_json(&newer).unwrap(), wake, "what is not known is passed over");

    let older = r#"{"keelway":"conform","project":"shop","context":"c"}"#;
    let sequences::Message::Conform { project, after, .. } = sequences::Message::from_json(older).unwrap() else { panic!() };
    assert_eq!((project, after.as_str()), (ProjectName::new("shop").unwrap(), ""), "what is not there has its default");
}

#[test]
fn what_is_no_message_of_the_queue_is_refused() {
    for (text, why) in [
        (r#"{"keelway":"start","of":{}}"#, "missing field"),
        (r#"{"keelway":"Look","of":{},"n":1,"at":2}"#, "unknown message `Look`, expected one of `start`, `look`"),
        (r#"{"keelway":"evaluate","to":{},"because":""}"#, "unknown message `evaluate`"),
        (r#"{"of":{},"n":1,"at":2}"#, "missing field `keelway`"),
        (r#"{"keelway":7}"#, "invalid type"),
        (r#"{"keelway":"look""#, "EOF"),
        ("[]", "invalid length 0"),
    ] {
        let error = deployments::Job::from_json(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}
