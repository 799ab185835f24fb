//! Requests to the API of one cluster: credentials, timeouts, limits, and what refusals mean.

use crate::Failure;
use crate::discovery::Discovered;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use keelway_domain::promotions::registry::Cluster;
use keelway_engine::secrets::SecretText;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use reqwest::{Certificate, Client, StatusCode, Url, redirect};
use serde_json::Value;
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(10);
/// The function sleeps between its messages: what was idle for longer is probably closed on the other side.
const IDLE: Duration = Duration::from_secs(20);
/// The pause before the second and last try.
const PAUSE: Duration = Duration::from_millis(300);
/// The most that an answer may have, in bytes. Kubernetes keeps no object of more than 1.5 MiB.
const ANSWER: usize = 4 << 20;
/// So many characters of what the server says are repeated.
const SAID: usize = 300;

/// The API of a cluster.
pub struct Connection {
    client: Client,
    base: String,
    /// Its host and port, for messages.
    host: String,
    /// The name of the secret, for messages.
    secret: String,
    token: String,
    authorization: HeaderValue,
    pub(crate) discovered: Discovered,
}

/// What the server said.
#[derive(Debug)]
pub enum Found {
    /// An object.
    Object(Value),
    /// There is none.
    Missing,
}

/// An answer that was read to its end.
struct Answer {
    status: StatusCode,
    body: Vec<u8>,
}

/// Why there is no answer.
enum Lost {
    Slow,
    Other(String),
}

impl Connection {
    /// To the server of a cluster, with the token in this secret.
    ///
    /// # Errors
    /// What is wrong with the cluster or its secret; the token stands in no error.
    pub fn new(cluster: &Cluster, secret: &str, text: &SecretText) -> Result<Self, String> {
        let url = Url::parse(&cluster.server).map_err(|error| format!("spec.server is not a URL: {error}"))?;
        if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
            return Err(format!("spec.server {}: only https is supported (http on a loopback address only)", cluster.server));
        }
        let token = token(text.expose())
            .ok_or_else(|| format!("secret {secret:?} has no token: write {{\"token\": \"…\"}} or only the token into it"))?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| format!("the token in secret {secret:?} has characters that no token has"))?;
        authorization.set_sensitive(true);
        let mut builder = Client::builder()
            .user_agent(concat!("keelway/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .timeout(WHOLE)
            .pool_idle_timeout(IDLE)
            .redirect(redirect::Policy::none())
            .referer(false);
        if let Some(ca) = &cluster.ca_data {
            // Only the cluster's own authority speaks for it.
            builder =
                builder.tls_certs_only(certificates(ca).ok_or("spec.caData is no certificate in PEM form, or base64 of one")?);
        }
        let origin = url.origin().ascii_serialization();
        let host = origin.split_once("://").map_or(origin.as_str(), |(_, host)| host).to_owned();
        let client = builder.build().map_err(|_| format!("no connection to {host} can be made with spec.caData"))?;
        let base = cluster.server.trim_end_matches('/').to_owned();
        Ok(Self { client, base, host, secret: secret.to_owned(), token, authorization, discovered: Discovered::default() })
    }

    /// Its host and port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Reads what is at a path.
    ///
    /// # Errors
    /// Why it cannot be read, in a text that stays the same as long as the cause does.
    pub async fn get(&self, path: &str) -> Result<Found, Failure> {
        let mut answer = self.send(path).await;
        let again = match &answer {
            Ok(answer) => answer.status == StatusCode::TOO_MANY_REQUESTS || answer.status.is_server_error(),
            Err(Lost::Other(_)) => true,
            Err(Lost::Slow) => false,
        };
        if again {
            tokio::time::sleep(PAUSE).await;
            answer = self.send(path).await;
        }
        match answer {
            Ok(answer) => self.read(path, &answer),
            Err(Lost::Slow) => {
                Err(Failure::Cluster(format!("the API server {} did not answer within {} seconds", self.host, WHOLE.as_secs())))
            }
            Err(Lost::Other(why)) => Err(Failure::Cluster(why)),
        }
    }

    async fn send(&self, path: &str) -> Result<Answer, Lost> {
        let request = self.client.get(format!("{}{path}", self.base)).header(AUTHORIZATION, &self.authorization);
        let mut response = request.header(ACCEPT, "application/json").send().await.map_err(|error| self.lost(&error))?;
        let status = response.status();
        let mut body = vec![];
        while let Some(chunk) = response.chunk().await.map_err(|error| self.lost(&error))? {
            body.extend_from_slice(&chunk);
            // One byte more than is allowed shows that it is too large.
            if body.len() > ANSWER {
                break;
            }
        }
        Ok(Answer { status, body })
    }

    /// The error's own text is not repeated: it is long, and says less.
    fn lost(&self, error: &reqwest::Error) -> Lost {
        use std::error::Error as _;
        let mut cause = error.source();
        let mut certificate = false;
        while let Some(inner) = cause {
            certificate |= inner.to_string().contains("certificate");
            cause = inner.source();
        }
        let host = &self.host;
        if error.is_timeout() && !error.is_connect() {
            Lost::Slow
        } else if certificate {
            Lost::Other(format!(
                "the API server {host} has a certificate that is not trusted: write the cluster's certificate authority into spec.caData"
            ))
        } else if error.is_connect() {
            Lost::Other(format!("the API server {host} cannot be reached"))
        } else {
            Lost::Other(format!("the connection to the API server {host} broke"))
        }
    }

    fn read(&self, path: &str, answer: &Answer) -> Result<Found, Failure> {
        let Answer { status, body } = answer;
        let host = &self.host;
        if body.len() > ANSWER {
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

    /// What a `Status` says, without the token.
    fn said(&self, status: Option<&Value>) -> Option<String> {
        // Only Kubernetes' own words: what else answers there is nobody's business.
        let status = status?.as_object().filter(|status| status.get("kind").and_then(Value::as_str) == Some("Status"))?;
        let message = status.get("message")?.as_str()?.replace(&self.token, "***");
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        Some(message.chars().map(plain).take(SAID).collect()).filter(|said: &String| !said.trim().is_empty())
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost" || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
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
fn certificates(text: &str) -> Option<Vec<Certificate>> {
    let pem = match text.contains("-----BEGIN") {
        true => text.as_bytes().to_vec(),
        false => BASE64.decode(text.split_ascii_whitespace().collect::<String>()).ok()?,
    };
    Certificate::from_pem_bundle(&pem).ok().filter(|all| !all.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(server: &str) -> Cluster {
        Cluster { server: server.into(), ca_data: None, secret: "token".into(), interval: None, vouched: false }
    }

    fn refused(cluster: &Cluster, text: &str) -> String {
        Connection::new(cluster, "shop/token", &SecretText::new(text)).err().unwrap()
    }

    #[test]
    fn http_is_for_this_machine_only() {
        for server in ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost", "https://10.0.0.1:6443/k8s"] {
            assert!(Connection::new(&cluster(server), "shop/token", &SecretText::new("t")).is_ok(), "{server}");
        }
        for server in ["http://10.0.0.1", "http://localhost.example.com", "ftp://127.0.0.1"] {
            assert!(refused(&cluster(server), "t").contains("only https"), "{server}");
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
