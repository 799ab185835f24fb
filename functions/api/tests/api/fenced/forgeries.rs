//! Signatures that nobody has made who holds the key: pushes of images, webhooks of git hosts, and approvals signed by another
//! project. `forged.rs` sends 100,000 forged approvals through the whole API. Of the pushes and webhooks here, that many are
//! checked by the function that the API calls, and some thousands go through the API.

use super::furnished::{Furnished, OTHER, OWN, furnish};
use crate::stand::Answer;
use axum::body::Body;
use axum::http::Request;
use hmac::{Hmac, KeyInit, Mac};
use keelway_api::Client;
use keelway_domain::time::{Span, Timestamp};
use keelway_githosts::{Form, webhook};
use keelway_wire::signature::{Algorithm, Keys, Request as Canonical, Signed};
use keelway_world::rng::Rng;
use serde_json::json;
use sha2::Sha256;

/// How many are forged.
const FORGED: usize = 100_000;
/// How many of them go through the API.
const SENT: usize = 2_000;

/// A signed request, as it is sent.
#[derive(Debug, Clone, PartialEq)]
struct Push {
    path: String,
    query: String,
    body: String,
    signed: Signed,
}

impl Push {
    fn signed(path: &str, body: &str, key: (&str, &str), at: Timestamp, nonce: u64) -> Self {
        let canonical =
            Canonical { installation: crate::stand::INSTALLATION, method: "POST", path, query: "", body: body.as_bytes() };
        let signed = Signed::new(&canonical, (key.0, key.1.as_bytes()), Algorithm::Sha256, at, &format!("nonce-{nonce:020}"));
        Self { path: path.into(), query: String::new(), body: body.into(), signed }
    }
    fn canonical(&self) -> Canonical<'_> {
        Canonical {
            installation: crate::stand::INSTALLATION,
            method: "POST",
            path: &self.path,
            query: &self.query,
            body: self.body.as_bytes(),
        }
    }
    async fn send(&self, f: &Furnished, client: usize) -> Answer {
        let uri = if self.query.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, self.query) };
        let builder =
            Request::post(uri).header("content-type", "application/json").extension(Client::at(&format!("client {client}")));
        let builder = self.signed.headers().into_iter().fold(builder, |builder, (name, value)| builder.header(name, value));
        f.stand.request(builder.body(Body::from(self.body.clone())).unwrap()).await
    }
}

fn artifacts(project: &str) -> String {
    format!("/v1/artifacts/{project}/{project}images")
}

fn image(project: &str, n: u64) -> String {
    json!({"tag": format!("{project}latest"), "digest": format!("sha256:{n:064x}"), "image": format!("registry.test/{project}/cart")}).to_string()
}

/// Another digit in the place of one of them.
fn changed(digits: &str, rng: &mut Rng) -> String {
    let at = digits.len() - 1 - rng.below(16);
    let other = if digits.as_bytes()[at] == b'0' { "1" } else { "0" };
    format!("{}{other}{}", &digits[..at], &digits[at + 1..])
}

/// A push to the other project's source that nobody with its key has signed as it is.
fn forged(now: Timestamp, n: u64, rng: &mut Rng) -> Push {
    let (path, body) = (artifacts(OTHER), image(OTHER, n));
    let key = ("k", "quuxregistry-key");
    let mut push = Push::signed(&path, &body, key, now, n);
    match rng.below(12) {
        0 => return Push::signed(&path, &body, ("k", "alfaregistry-key"), now, n),
        1 => return Push::signed(&path, &body, ("k", "quuxapprovals-key"), now, n),
        2 => return Push::signed(&path, &body, ("k", ""), now, n),
        3 => return Push::signed(&path, &body, key, Timestamp(now.0 + *rng.pick(&[-301_000, 302_000])), n),
        // The own key, for the own source.
        4 => push = Push { path, ..Push::signed(&artifacts(OWN), &body, ("k", "alfaregistry-key"), now, n) },
        5 => push.path = artifacts(OTHER).replace("quuximages", "quuximage"),
        6 => push.body = image(OTHER, n + 1),
        7 => push.query = "a=1".into(),
        8 => push.signed.signature = changed(&push.signed.signature, rng),
        9 => push.signed.nonce = changed(&push.signed.nonce, rng),
        10 => push.signed.timestamp = (now.0 / 1000 + 1 + rng.below(200) as i64).to_string(),
        _ => {
            push.signed.signature =
                push.signed.signature.replace("sha256=", rng.pick::<&str>(&["sha384=", "sha512=", "SHA256=", ""]))
        }
    }
    push
}

/// Whether a tag was moved.
fn moved(f: &Furnished) -> bool {
    std::mem::take(&mut f.stand.world.core().table.journal).iter().any(|change| change.key.pk.starts_with("DH#"))
}

#[tokio::test(start_paused = true)]
async fn of_a_hundred_thousand_forged_pushes_none_moves_a_tag() {
    let mut f = furnish().await;
    let (now, mut rng) = (f.stand.world.now(), Rng::new(1));
    let keys = Keys::read(r#"{"keys": [{"id": "k", "key": "quuxregistry-key"}]}"#).unwrap();
    let accepts = |push: &Push| {
        push.path == artifacts(OTHER) && push.signed.in_time(now).is_some() && push.signed.verify(&push.canonical(), &keys, now)
    };
    let valid = Push::signed(&artifacts(OTHER), &image(OTHER, 7_000_000), ("k", "quuxregistry-key"), now, 7_000_000);
    assert!(accepts(&valid), "the control");
    for n in 0..FORGED as u64 {
        let push = forged(now, n, &mut rng);
        assert!(!accepts(&push), "{push:?}");
    }
    moved(&f);
    for n in 0..SENT {
        let push = forged(now, n as u64, &mut rng);
        let answer = push.send(&f, n / 20).await;
        assert_eq!(answer.status, 401, "{push:?} {answer:?}");
    }
    assert!(!moved(&f));
    assert_eq!(valid.send(&f, SENT).await.status, 202);
    assert!(moved(&f), "the control counts");
    for n in 0..SENT {
        assert_eq!(valid.send(&f, SENT + 1 + n / 20).await.status, 401, "a replay");
    }
    f.stand.world.pass(Span::minutes(12));
    assert_eq!(valid.send(&f, 3 * SENT).await.status, 401, "a replay when its nonce is forgotten");
    assert!(!moved(&f));
    f.stand.work().await;
}

/// A key of one project signs nothing of another.
#[tokio::test(start_paused = true)]
async fn a_key_signs_for_its_own_project_only() {
    let f = furnish().await;
    let now = f.stand.world.now();
    let approval =
        |project: &str| format!("/v1/pipelines/{project}/{project}line/environments/{project}two/revisions/{project}v2/approval");
    for (n, path, what) in [(1, artifacts(OTHER), "registry"), (2, approval(OTHER), "approvals")] {
        let body = if n == 1 { image(OTHER, 8_000_000) } else { json!({"decision": "approve", "by": "alfaby"}).to_string() };
        for key in ["alfaregistry-key", "alfaapprovals-key", "hook-key"] {
            let foreign = Push::signed(&path, &body, ("k", key), now, 10 + n);
            assert_eq!(foreign.send(&f, 1).await.status, 401, "{path} with {key}");
        }
        let own = Push::signed(&path, &body, ("k", &format!("{OTHER}{what}-key")), now, 20 + n);
        assert_eq!(own.send(&f, 2).await.status, 202, "{path} with its own key");
    }
}

fn hex(key: &str, body: &[u8]) -> String {
    let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key.as_bytes()).unwrap().chain_update(body).finalize().into_bytes();
    mac.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What each host sends: its header, and what stands before the digits.
const HOSTS: [(Form, &str, &str); 4] = [
    (Form::GitHub, "x-hub-signature-256", "sha256="),
    (Form::Gitea, "x-gitea-signature", ""),
    (Form::BitbucketServer, "x-hub-signature", "sha256="),
    (Form::GitLab, "x-gitlab-token", ""),
];

fn closed(n: usize) -> Vec<u8> {
    json!({"action": "closed", "number": n, "pull_request": {"number": n}, "repository": {"html_url": "https://git.test/quux/config"}}).to_string().into_bytes()
}

/// A header that does not belong to this body and the key `hook-key`.
fn unsigned(form: Form, (name, before): (&str, &str), n: usize, rng: &mut Rng) -> (String, String) {
    let right = match form {
        Form::GitLab => "hook-key".to_owned(),
        _ => hex("hook-key", &closed(n)),
    };
    let is_secret = matches!(form, Form::GitLab);
    let text = match rng.below(6) {
        0 if is_secret => "alfaregistry-key".into(),
        0 => hex("alfaregistry-key", &closed(n)),
        1 if is_secret => hex("hook-key", &closed(n)),
        1 => hex("hook-key", &closed(n + 1)),
        2 => right[..right.len() - 2].to_owned(),
        3 => String::new(),
        4 if is_secret => format!("{right}{}", rng.below(10)),
        4 => changed(&right, rng),
        _ => {
            return (
                HOSTS[(HOSTS.iter().position(|host| host.1 == name).unwrap() + 1) % 4].1.to_owned(),
                format!("{before}{right}"),
            );
        }
    };
    (name.to_owned(), format!("{before}{text}"))
}

#[tokio::test(start_paused = true)]
async fn of_a_hundred_thousand_forged_webhooks_of_git_hosts_none_counts() {
    let mut rng = Rng::new(2);
    for (form, name, before) in HOSTS {
        let right =
            if matches!(form, Form::GitLab) { "hook-key".to_owned() } else { format!("{before}{}", hex("hook-key", &closed(1))) };
        assert!(webhook(form, &[(name, &right)], &closed(1), "hook-key").is_ok(), "the control of {name}");
        for n in 0..FORGED / HOSTS.len() {
            let (name, value) = unsigned(form, (name, before), n, &mut rng);
            assert!(webhook(form, &[(&name, &value)], &closed(n), "hook-key").is_err(), "{name}: {value}");
        }
    }
    let f = furnish().await;
    let send = async |name: &str, value: &str, n: usize| {
        let request = Request::post("/v1/webhooks/forge").header("content-type", "application/json").header(name, value);
        let request = request.extension(Client::at(&format!("client {}", n / 20)));
        f.stand.request(request.body(Body::from(closed(n))).unwrap()).await.status
    };
    let (form, name, before) = HOSTS[1];
    f.stand.world.core().table.journal.clear();
    let messages = f.stand.world.core().queue.messages.len();
    for n in 0..SENT {
        let (name, value) = unsigned(form, (name, before), n, &mut rng);
        assert_eq!(send(&name, &value, n).await, 401, "{name}: {value}");
    }
    assert_eq!(f.stand.world.core().queue.messages.len(), messages, "nothing is looked at");
    let control = send(name, &hex("hook-key", &closed(1)), 1).await;
    assert!([202, 204].contains(&control), "{control}");
}
