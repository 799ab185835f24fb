//! Requests to the API of one cluster: credentials, timeouts, limits, and the meaning of refusals.

use crate::Failure;
use crate::discovery::Discovered;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use keelway_domain::promotions::registry::Cluster;
use keelway_engine::secrets::SecretText;
use keelway_outgoing::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use keelway_outgoing::{Certificates, Failure as Lost, Guard, Method, Reply, Roots, StatusCode, Terms, Url, Wire};
use serde_json::Value;
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(10);
/// How long idle connections are kept. The function sleeps between messages, and the server closes connections that were idle for
/// longer.
const IDLE: Duration = Duration::from_secs(20);
/// The pause before the second and last try.
const PAUSE: Duration = Duration::from_millis(300);
/// The most that an answer may have, in bytes. Kubernetes keeps no object of more than 1.5 MiB.
const ANSWER: usize = 4 << 20;
/// The most characters of a server's message that are repeated.
const SAID: usize = 300;

/// The API of a cluster.
pub struct Connection {
    wire: Wire,
    base: String,
    /// Its host and port, for messages.
    host: String,
    /// The name of the secret, for messages.
    secret: String,
    token: String,
    authorization: HeaderValue,
    pub(crate) discovered: Discovered,
}

/// The answer of the server.
#[derive(Debug)]
pub enum Found {
    /// An object.
    Object(Value),
    /// It does not exist.
    Missing,
}

impl Connection {
    /// A connection to the server of a cluster, with the token in this secret, if the guard permits requests to it.
    ///
    /// # Errors
    /// What is wrong with the cluster or its secret, without the token.
    pub fn new(cluster: &Cluster, secret: &str, text: &SecretText, guard: &Guard) -> Result<Self, String> {
        let url = Url::parse(&cluster.server).map_err(|error| format!("spec.server is not a URL: {error}"))?;
        let token = token(text.expose())
            .ok_or_else(|| format!("secret {secret:?} has no token: write {{\"token\": \"…\"}} or only the token into it"))?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| format!("the token in secret {secret:?} has characters that no token has"))?;
        authorization.set_sensitive(true);
        let roots = match &cluster.ca_data {
            None => Roots::Known,
            // Only certificates of the cluster's own authority are accepted.
            Some(ca) => Roots::Only(certificates(ca).ok_or("spec.caData is no certificate in PEM form, or base64 of one")?),
        };
        let origin = url.origin().ascii_serialization();
        let host = origin.split_once("://").map_or(origin.as_str(), |(_, host)| host).to_owned();
        let terms = Terms { connect: CONNECT, total: WHOLE, idle: Some(IDLE), roots, redirects: 0, plain: false };
        let wire = Wire::new(guard, terms);
        wire.prepare(&cluster.server).map_err(|failure| match failure {
            Lost::Unusable(_) => format!("no connection to {host} can be made with spec.caData"),
            failure => format!("spec.server {}: {failure}", cluster.server),
        })?;
        let base = cluster.server.trim_end_matches('/').to_owned();
        Ok(Self { wire, base, host, secret: secret.to_owned(), token, authorization, discovered: Discovered::default() })
    }

    /// Its host and port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Reads the object at a path.
    ///
    /// # Errors
    /// Why it cannot be read, in a text that does not change while the cause stays the same.
    pub async fn get(&self, path: &str) -> Result<Found, Failure> {
        let mut answer = self.send(path).await;
        let again = match &answer {
            Ok(answer) => answer.status == StatusCode::TOO_MANY_REQUESTS || answer.status.is_server_error(),
            Err(Lost::TooSlow(_) | Lost::Address(_) | Lost::Url(_)) => false,
            Err(_) => true,
        };
        if again {
            // A large answer would block the next one.
            drop(answer);
            tokio::time::sleep(PAUSE).await;
            answer = self.send(path).await;
        }
        match answer {
            Ok(answer) => self.read(path, &answer),
            Err(lost) => Err(Failure::Cluster(self.lost(&lost))),
        }
    }

    async fn send(&self, path: &str) -> Result<Reply, Lost> {
        let request = self.wire.call(Method::GET, &format!("{}{path}", self.base));
        let request = request.header(AUTHORIZATION, self.authorization.clone());
        request.header(ACCEPT, HeaderValue::from_static("application/json")).send(ANSWER).await
    }

    /// The text of a connection error, which does not change while the cause stays the same.
    fn lost(&self, lost: &Lost) -> String {
        let host = &self.host;
        match lost {
            Lost::TooSlow(seconds) => format!("the API server {host} did not answer within {seconds} seconds"),
            Lost::Untrusted(_) => format!(
                "the API server {host} has a certificate that is not trusted: write the cluster's certificate authority into spec.caData"
            ),
            Lost::Unreachable(_) => format!("the API server {host} cannot be reached"),
            Lost::Address(_) | Lost::Url(_) | Lost::Unusable(_) | Lost::TooLarge(..) => {
                format!("the API server {host} is not asked: {lost}")
            }
            Lost::Broken(_) => format!("the connection to the API server {host} broke"),
        }
    }

    fn read(&self, path: &str, answer: &Reply) -> Result<Found, Failure> {
        let Reply { status, body, .. } = answer;
        let host = &self.host;
        if answer.cut {
            return Err(Failure::Object(format!("the API server {host} answers {path} with more than {} MiB", ANSWER >> 20)));
        }
        let json: Option<Value> = serde_json::from_slice(body).ok();
        match *status {
            StatusCode::OK => match json {
                Some(json) => Ok(Found::Object(json)),
                None => Err(Failure::Object(format!("the API server {host} answers {path} with something that is not JSON"))),
            },
            StatusCode::NOT_FOUND => Ok(Found::Missing),
            StatusCode::UNAUTHORIZED => Err(Failure::Cluster(format!(
                "the API server {host} refuses the token in secret {:?} (401): write a valid one into it",
                self.secret
            ))),
            StatusCode::FORBIDDEN => {
                let said = self.said(json.as_ref()).unwrap_or_else(|| path.to_owned());
                Err(Failure::Object(format!("the token in secret {:?} may not read it (403): {said}", self.secret)))
            }
            status if status.is_redirection() => Err(Failure::Cluster(format!(
                "the API server {host} redirects ({}): write the address of the API itself into spec.server",
                status.as_u16()
            ))),
            status => {
                let said = self.said(json.as_ref()).map(|said| format!(": {said}")).unwrap_or_default();
                Err(Failure::Object(format!("the API server {host} answers {path} with status {}{said}", status.as_u16())))
            }
        }
    }

    /// The message of a `Status`, without the token.
    fn said(&self, status: Option<&Value>) -> Option<String> {
        // Only messages of Kubernetes are repeated, not those of other servers at that address.
        let status = status?.as_object().filter(|status| status.get("kind").and_then(Value::as_str) == Some("Status"))?;
        let message = status.get("message")?.as_str()?.replace(&self.token, "***");
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        Some(message.chars().map(plain).take(SAID).collect()).filter(|said: &String| !said.trim().is_empty())
    }
}

/// `{"token": "…"}`, or only the token.
fn token(text: &str) -> Option<String> {
    let text = text.trim();
    let token = match text.starts_with('{') {
        true => serde_json::from_str::<Value>(text).ok()?.get("token")?.as_str()?.trim().to_owned(),
        false => text.to_owned(),
    };
    Some(token).filter(|token| !token.is_empty())
}

/// PEM, or base64 of PEM as in a kubeconfig.
fn certificates(text: &str) -> Option<Certificates> {
    let pem = match text.contains("-----BEGIN") {
        true => text.as_bytes().to_vec(),
        false => BASE64.decode(text.split_ascii_whitespace().collect::<String>()).ok()?,
    };
    Certificates::from_pem(&pem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_outgoing::Hosts;

    fn cluster(server: &str) -> Cluster {
        Cluster { server: server.into(), ca_data: None, secret: "token".into(), interval: None, vouched: false }
    }

    fn connected(cluster: &Cluster, text: &str, guard: &Guard) -> Result<Connection, String> {
        Connection::new(cluster, "shop/token", &SecretText::new(text), guard)
    }

    fn refused(cluster: &Cluster, text: &str) -> String {
        connected(cluster, text, &Guard::new(Hosts::default())).err().unwrap()
    }

    #[test]
    fn http_is_for_this_machine_only_and_for_a_local_cloud_only() {
        let local = Guard::new(Hosts::parse("k8s.internal,10.0.0.0/8")).with_loopback(true);
        for server in ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost"] {
            assert!(connected(&cluster(server), "t", &local).is_ok(), "{server}");
            assert!(refused(&cluster(server), "t").contains("for a local cloud only"), "{server}");
        }
        for server in ["http://10.0.0.1", "http://k8s.internal", "http://localhost.example.com", "ftp://127.0.0.1"] {
            let why = connected(&cluster(server), "t", &local).err().unwrap();
            assert!(why.contains("must begin with https://"), "{server}: {why}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_token() {
        for text in ["", " \n", "{}", r#"{"token": ""}"#, r#"{"token": 1}"#, r#"{"token": "s3cret"#] {
            let why = refused(&cluster("https://a"), text);
            assert!(why.contains("has no token") && !why.contains("s3cret"), "{why}");
        }
        let why = refused(&cluster("https://a"), "s3c\u{7}ret");
        assert!(why.contains("characters that no token has") && !why.contains("s3c"), "{why}");
        let bad = Cluster { ca_data: Some("LS0tLS1CRUdJTi".into()), ..cluster("https://a") };
        assert!(refused(&bad, "s3cret").contains("spec.caData"));
    }

    #[test]
    fn a_token_is_plain_or_json() {
        assert_eq!(token(" abc\n").as_deref(), Some("abc"));
        assert_eq!(token(r#"{"token": "abc\n", "more": 1}"#).as_deref(), Some("abc"));
    }
}
