//! Short words for long things: versions, ids, spans of time.

use keelway_domain::time::{Span, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// The fewest characters of a context that stand for it.
pub const SHORT: usize = 8;
/// The fewest characters shown of a context that is no UUID.
const NAME: usize = 20;

/// The version an image names: its tag, or the beginning of its digest; of the ARN of a function's version, function and version;
/// of a package in S3, the name of the object and the beginning of its digest.
pub fn version(image: &str) -> String {
    if image.starts_with("arn:") {
        let short = image.rmatch_indices(':').nth(1).map_or(image, |(at, _)| &image[at + 1..]);
        return short.to_owned();
    }
    if let Some((object, digest)) = image.strip_prefix("s3://").and_then(|rest| rest.rsplit_once("@sha256:")) {
        let key = object.split('?').next().unwrap_or(object);
        let name = key.rsplit('/').next().unwrap_or(key);
        return format!("{name}@{}", digest.chars().take(SHORT).collect::<String>());
    }
    let name = image.rsplit('/').next().unwrap_or(image);
    let version = name.rsplit_once(':').map_or(name, |(_, version)| version);
    // A digest may also stand alone, without the image that it is of, and a tag may end in one.
    let most = digest(version).map_or(version.len(), |place| place + 12);
    version[..most].to_owned()
}

/// A revision with the first eight digits of its digest: `main@sha1:63bf7261…` is `main@63bf7261`. Others are as they are.
pub fn revision(revision: &str) -> String {
    match digest(revision) {
        Some(place) => {
            let before = &revision[..place];
            let before = before.strip_suffix("sha1:").or_else(|| before.strip_suffix("sha256:")).unwrap_or(before);
            format!("{before}{}", &revision[place..place + SHORT])
        }
        None => revision.to_owned(),
    }
}

/// Whether `given` stands for a revision: as it is, as it is shown, or by at least eight digits of its digest.
pub fn is_revision(revision: &str, given: &str) -> bool {
    let digits = || digest(revision).is_some_and(|place| given.len() >= SHORT && revision[place..].starts_with(given));
    revision == given || self::revision(revision) == given || digits()
}

/// Where the digest at the end of a revision begins: at least 20 hexadecimal digits.
fn digest(revision: &str) -> Option<usize> {
    let place = revision
        .rfind(|c: char| !c.is_ascii_hexdigit())
        .map_or(0, |place| place + revision[place..].chars().next().map_or(0, char::len_utf8));
    (revision.len() - place >= 20).then_some(place)
}

/// A sentence with only the beginning of each context that it has in parentheses.
pub fn with_short_contexts(sentence: &str) -> String {
    let parts = sentence.split_inclusive(')').map(|part| match part.rsplit_once('(') {
        Some((before, inside)) if uuid::Uuid::parse_str(inside.trim_end_matches(')')).is_ok() => {
            format!("{before}({})", inside.chars().take(SHORT).collect::<String>())
        }
        _ => part.to_owned(),
    });
    parts.collect()
}

/// The shortest beginnings that tell these contexts apart: of at least eight characters, or of 20 of a name that a person gave.
pub fn short_ids(contexts: &[&str]) -> Vec<String> {
    let short = |context: &&str| {
        let clashes = |n: usize| contexts.iter().any(|other| other != context && other.chars().take(n).eq(context.chars().take(n)));
        let all = context.chars().count();
        let least = if uuid::Uuid::parse_str(context).is_ok() { SHORT } else { NAME };
        let n = (least..all).find(|n| !clashes(*n)).unwrap_or(all);
        context.chars().take(n).collect()
    };
    contexts.iter().map(short).collect()
}

/// A span for people: `0.3s`, `12s`, `3m12s`, `2h05m`, `3d04h`.
pub fn span(millis: i64) -> String {
    let millis = millis.max(0);
    let seconds = millis / 1000;
    match seconds {
        ..1 => format!("0.{}s", millis / 100),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A time limit as people write it: `10m`, `1d`.
pub fn length(of: Duration) -> Span {
    Span(i64::try_from(of.as_millis()).unwrap_or(i64::MAX))
}

/// So many of something: `1 attempt`, `2 attempts`.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// From one RFC 3339 time to another; empty if one of them is missing.
pub fn between(from: Option<&str>, to: Option<&str>) -> String {
    let time = |text: Option<&str>| text.and_then(Timestamp::parse);
    time(from).zip(time(to)).map(|(from, to)| span((to - from).0)).unwrap_or_default()
}

/// How long ago a time was.
pub fn age(time: &str, now: Option<Timestamp>) -> String {
    Timestamp::parse(time).zip(now).map(|(time, now)| span((now - time).0)).unwrap_or_default()
}

/// What the API says of its requests, and what the command calls them. A project or a context follows some of them.
const OURS: &[(&str, &str)] = &[
    ("send ?project=<name>", "give --project NAME"),
    ("or push its state to /v1/observations", "or report its state: keelway observe"),
    ("report about it with POST /v1/observations", "report about it with keelway observe"),
    ("GET /v1/dead-letters lists them", "keelway dead-letters list shows them"),
    ("GET /v1/tokens lists them", "keelway token list shows them"),
    ("GET /v1/deliveries lists those there are", "keelway webhook deliveries shows those there are"),
    ("list them with GET /v1/sequence/", "they are listed by keelway get sequences -p "),
    ("they are listed by GET /v1/sequence/", "they are listed by keelway get executions -p "),
    ("?keptnContext=", " "),
    ("listed by GET /v1/event/triggered/approval?project=", "listed by keelway get approvals -p "),
];

/// A sentence of the API in the words of the command.
pub fn ours(text: &str) -> String {
    OURS.iter().fold(text.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours))
}

/// The images, as short as they can be told apart.
pub fn images(images: &BTreeMap<String, String>, whole: bool) -> String {
    let short = |image: &String| if whole { image.clone() } else { version(image) };
    let shown: Vec<String> = match images.len() {
        1 => images.values().map(short).collect(),
        _ => images.iter().map(|(name, image)| format!("{name} {}", short(image))).collect(),
    };
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_the_api_are_commands_here() {
        let told = "they are listed by GET /v1/sequence/shop?keptnContext=139a703f";
        assert_eq!(ours(told), "they are listed by keelway get executions -p shop 139a703f");
        assert_eq!(ours("list them with GET /v1/sequence/shop"), "they are listed by keelway get sequences -p shop");
        assert_eq!(ours("nothing of the kind"), "nothing of the kind");
        assert!(OURS.iter().all(|(_, ours)| !ours.contains("/v1/")));
    }

    #[test]
    fn versions_of_images() {
        let images =
            ["registry.example/shop/carts:1.4.0", "localhost:5000/carts", "carts", "r/c:1@sha256:0123456789abcdef0123", "a:b"];
        assert_eq!(images.map(version), ["1.4.0", "carts", "carts", "0123456789ab", "b"]);
        let digest = "0123456789abcdef0123456789abcdef";
        for image in ["carts@sha256:", "r/c:1@sha512:", "sha256:", "", "r:5000/c:"] {
            assert_eq!(version(&format!("{image}{digest}")), "0123456789ab", "{image}");
        }
        assert_eq!(version(&format!("carts:main-{digest}")), "main-0123456789ab");
        let package = "s3://releases/shop/cart-1.4.0.zip?versionId=x.y@sha256:0123456789abcdef0123";
        assert_eq!(version(package), "cart-1.4.0.zip@01234567");
        assert_eq!(version("arn:aws:lambda:us-east-1:000000000000:function:greeter:4"), "greeter:4");
    }

    #[test]
    fn revisions_are_as_short_as_they_can_be() {
        let sha = "63bf726176d8e1a2b3c4d5e6f708192a3b4c5d6e";
        for (long, short) in [
            (format!("main@sha1:{sha}"), "main@63bf7261"),
            (format!("1.4.0@sha256:{sha}{}", &sha[..24]), "1.4.0@63bf7261"),
            (format!("main/{sha}"), "main/63bf7261"),
            (sha.to_owned(), "63bf7261"),
            ("1.4.0".into(), "1.4.0"),
            ("feature/ü".into(), "feature/ü"),
            ("deadbeef".into(), "deadbeef"),
            (String::new(), ""),
        ] {
            assert_eq!(revision(&long), short);
            assert!(is_revision(&long, short) && is_revision(&long, &long));
        }
        let long = format!("main@sha1:{sha}");
        assert!(
            is_revision(&long, "63bf72617")
                && !is_revision(&long, "63bf726")
                && !is_revision(&long, "main")
                && !is_revision("1.4.0", "1.4")
        );
    }

    #[test]
    fn ids_are_as_long_as_it_takes() {
        let uuids = [
            "139a703f-0000-4000-8000-00000000000a",
            "139a703f-0100-4000-8000-00000000000b",
            "7500af7d-0000-4000-8000-00000000000c",
        ];
        assert_eq!(short_ids(&uuids), ["139a703f-00", "139a703f-01", "7500af7d"]);
        assert_eq!(short_ids(&[uuids[0], uuids[0]]), ["139a703f", "139a703f"], "one and the same");
        assert_eq!(
            short_ids(&["release-2026", "release-2026-11-22-evening", "short"]),
            ["release-2026", "release-2026-11-22-e", "short"]
        );
    }

    #[test]
    fn spans_are_short() {
        let spans = [0, 999, 12_049, 59_999, 100_000, 3_599_000, 3_600_000, 7_500_000, 273_600_000, -5];
        assert_eq!(spans.map(span), ["0.0s", "0.9s", "12s", "59s", "1m40s", "59m59s", "1h00m", "2h05m", "3d04h", "0.0s"]);
    }
}
