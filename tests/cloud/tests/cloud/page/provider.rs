//! A provider of OpenID Connect that does what the standards demand of one, and refuses everything else: authorization code (RFC
//! 6749, OpenID Connect Core 1.0) for a public client, with PKCE (RFC 7636) and `S256` alone. As Keycloak and others do, it says in
//! its answers who it is (RFC 9207). What it has refused is remembered.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use axum::extract::{Query, State};
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, LOCATION, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use keelway_cloud_tests::Problem;
use keelway_cloud_tests::events::fresh;
use keelway_outgoing::Url;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::runtime::Handle;

/// The only client.
pub const CLIENT: &str = "keelway-page";
const KEY: &str = "k1";
/// How long an ID token counts, in seconds.
const LIVES: u64 = 300;

/// What the next people do, or the next answers have wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mood {
    /// Ann signs in.
    #[default]
    Fine,
    /// The ID token has the nonce of another sign-in.
    OtherNonce,
    /// The answer has the state of another sign-in.
    OtherState,
    /// The answer names another provider.
    OtherIssuer,
    /// The answer names no provider, though the discovery document says that answers do.
    NoIssuer,
    /// The discovery document is that of another issuer: with a slash at its end.
    OtherName,
    /// Tokens are given at another origin.
    TokensElsewhere,
    /// The discovery document cannot be read.
    Down,
    /// The token endpoint answers no page of another origin.
    NoCors,
    /// The token endpoint wants a client secret.
    WantsSecret,
}

#[derive(Default)]
struct Inner {
    /// Where the client may be led back to.
    redirect: String,
    origin: String,
    mood: Mood,
    /// What was asked for, by ticket; and by the code that was given for it.
    asked: BTreeMap<String, BTreeMap<String, String>>,
    codes: BTreeMap<String, BTreeMap<String, String>>,
    used: Vec<String>,
    refused: Vec<String>,
    given: usize,
}

/// The provider.
#[derive(Clone)]
pub struct Provider {
    /// Its issuer.
    pub url: String,
    key: Arc<EncodingKey>,
    inner: Arc<Mutex<Inner>>,
}

type Asked = BTreeMap<String, String>;

impl Provider {
    pub fn start(handle: &Handle) -> Result<Self, Problem> {
        let wrong = |error: &dyn std::fmt::Display| Problem::of("the provider", error);
        let listener = handle.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).map_err(|error| wrong(&error))?;
        let url = format!("http://{}", listener.local_addr().map_err(|error| wrong(&error))?);
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let key = EncodingKey::from_ec_der(made.map_err(|error| wrong(&error))?.as_ref());
        let provider = Self { url, key: Arc::new(key), inner: Arc::default() };
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys))
            .route("/authorize", get(authorize))
            .route("/decide", get(decide))
            .route("/token", post(token))
            .with_state(provider.clone());
        handle.spawn(async move { axum::serve(listener, app).await });
        Ok(provider)
    }

    /// Registers the client: where it is led back to.
    pub fn register(&self, redirect: &str) {
        let mut inner = self.inner();
        redirect.clone_into(&mut inner.redirect);
        inner.origin = Url::parse(redirect).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    }
    pub fn is(&self, mood: Mood) {
        self.inner().mood = mood;
    }
    /// What was refused so far, and how many tokens were given.
    pub fn seen(&self) -> (Vec<String>, usize) {
        let inner = self.inner();
        (inner.refused.clone(), inner.given)
    }
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse(&self, status: StatusCode, error: &str, why: &str) -> Response {
        self.inner().refused.push(format!("{error}: {why}"));
        let body = Json(json!({"error": error, "error_description": why}));
        (status, [(CACHE_CONTROL, "no-store"), (ACCESS_CONTROL_ALLOW_ORIGIN, "*")], body).into_response()
    }

    fn signed(&self, nonce: &str) -> Result<String, String> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(|error| error.to_string())?.as_secs();
        let claims = json!({
            "iss": self.url, "aud": CLIENT, "sub": "7f3c", "email": "ann@example.com", "nonce": nonce, "iat": now, "exp": now + LIVES,
        });
        let header = Header { kid: Some(KEY.to_owned()), ..Header::new(Algorithm::ES256) };
        encode(&header, &claims, &self.key).map_err(|error| error.to_string())
    }
}

/// Only the client's origin may read it.
fn readable(provider: &Provider, body: Value) -> Response {
    let origin = provider.inner().origin.clone();
    ([(ACCESS_CONTROL_ALLOW_ORIGIN, origin)], [(CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

async fn discovery(State(provider): State<Provider>) -> Response {
    let at = |path: &str| format!("{}/{path}", provider.url);
    let (mut issuer, mut tokens) = (provider.url.clone(), at("token"));
    let mood = provider.inner().mood;
    match mood {
        Mood::Down => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Mood::OtherName => issuer.push('/'),
        Mood::TokensElsewhere => tokens = "https://tokens.example.com/token".into(),
        _ => (),
    }
    let body = json!({
        "issuer": issuer, "authorization_endpoint": at("authorize"), "token_endpoint": tokens, "jwks_uri": at("keys"),
        "response_types_supported": ["code"], "subject_types_supported": ["public"], "grant_types_supported": ["authorization_code"],
        "id_token_signing_alg_values_supported": ["ES256"], "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"], "authorization_response_iss_parameter_supported": true,
    });
    readable(&provider, body)
}

async fn keys(State(provider): State<Provider>) -> Response {
    let Ok(mut key) = Jwk::from_encoding_key(&provider.key, Algorithm::ES256).and_then(|key| Ok(serde_json::to_value(key)?)) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    (key["kid"], key["use"]) = (json!(KEY), json!("sig"));
    readable(&provider, json!({"keys": [key]}))
}

/// What is wrong with a request for authorization.
fn wrong(asked: &Asked) -> Option<(&'static str, String)> {
    let of = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    let base64 = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if of("response_type") != "code" {
        return Some(("unsupported_response_type", of("response_type").to_owned()));
    }
    if !of("scope").split(' ').any(|scope| scope == "openid") {
        return Some(("invalid_scope", of("scope").to_owned()));
    }
    for name in ["state", "nonce"] {
        if of(name).len() < 22 {
            return Some(("invalid_request", format!("{name} can be guessed: {:?}", of(name))));
        }
    }
    if of("code_challenge_method") != "S256" || of("code_challenge").len() != 43 || !base64(of("code_challenge")) {
        return Some(("invalid_request", "a code_challenge by S256 is required".to_owned()));
    }
    let known =
        ["response_type", "client_id", "redirect_uri", "scope", "state", "nonce", "code_challenge", "code_challenge_method"];
    let other = asked.keys().find(|name| !known.contains(&name.as_str()))?;
    Some(("invalid_request", format!("{other} is not expected")))
}

async fn authorize(State(provider): State<Provider>, Query(pairs): Query<Vec<(String, String)>>) -> Response {
    let asked: Asked = pairs.iter().cloned().collect();
    if asked.len() != pairs.len() {
        return provider.refuse(StatusCode::BAD_REQUEST, "invalid_request", "a parameter is given twice");
    }
    let redirect = provider.inner().redirect.clone();
    let is = |name: &str, value: &str| asked.get(name).is_some_and(|given| given == value);
    // Nobody is led to an address that is not the client's.
    if !is("client_id", CLIENT) || !is("redirect_uri", &redirect) {
        return provider.refuse(StatusCode::BAD_REQUEST, "invalid_request", "the client or its address is not registered");
    }
    if let Some((error, why)) = wrong(&asked) {
        return provider.refuse(StatusCode::BAD_REQUEST, error, &why);
    }
    let ticket = fresh();
    let page = format!(
        "<!doctype html><title>Sign in</title><h1>Sign in</h1><p><a id=\"yes\" href=\"decide?ticket={ticket}&yes=1\">Go on as \
         ann</a> <a id=\"no\" href=\"decide?ticket={ticket}\">Cancel</a>"
    );
    provider.inner().asked.insert(ticket, asked);
    Html(page).into_response()
}

async fn decide(State(provider): State<Provider>, Query(said): Query<Asked>) -> Response {
    let found = provider.inner().asked.remove(said.get("ticket").map(String::as_str).unwrap_or_default());
    let Some(asked) = found else { return provider.refuse(StatusCode::BAD_REQUEST, "invalid_request", "no such ticket") };
    let mood = provider.inner().mood;
    let state = if mood == Mood::OtherState { "another-sign-in-of-somebody-else" } else { &asked["state"] };
    let mut back = match Url::parse(&asked["redirect_uri"]) {
        Ok(url) => url,
        Err(error) => return provider.refuse(StatusCode::BAD_REQUEST, "invalid_request", &error.to_string()),
    };
    match mood {
        Mood::NoIssuer => (),
        Mood::OtherIssuer => drop(back.query_pairs_mut().append_pair("iss", "https://other.example.com")),
        _ => drop(back.query_pairs_mut().append_pair("iss", &provider.url)),
    }
    if said.contains_key("yes") {
        let code = fresh();
        back.query_pairs_mut().append_pair("code", &code).append_pair("state", state);
        provider.inner().codes.insert(code, asked);
    } else {
        back.query_pairs_mut().append_pair("error", "access_denied").append_pair("state", state);
    }
    (StatusCode::FOUND, [(LOCATION, back.to_string())]).into_response()
}

async fn token(State(provider): State<Provider>, headers: HeaderMap, body: String) -> Response {
    let bad = |error: &str, why: &str| provider.refuse(StatusCode::BAD_REQUEST, error, why);
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !header(CONTENT_TYPE).starts_with("application/x-www-form-urlencoded") {
        return bad("invalid_request", "the body has to be a form");
    }
    if header(ORIGIN) != provider.inner().origin || headers.contains_key("authorization") || headers.contains_key("cookie") {
        return bad("invalid_client", "a public client of this origin has no secret and no cookies here");
    }
    let Ok(form) = Url::parse(&format!("http://form/?{body}")) else { return bad("invalid_request", "the form") };
    let said: Asked = form.query_pairs().into_owned().collect();
    let of = |name: &str| said.get(name).map(String::as_str).unwrap_or_default();
    if of("grant_type") != "authorization_code" {
        return bad("unsupported_grant_type", of("grant_type"));
    }
    let code = of("code").to_owned();
    if provider.inner().used.contains(&code) {
        return bad("invalid_grant", "the code was used before");
    }
    let found = provider.inner().codes.remove(&code);
    let Some(asked) = found else { return bad("invalid_grant", "no such code") };
    provider.inner().used.push(code);
    if of("client_id") != CLIENT || of("redirect_uri") != asked["redirect_uri"] || said.contains_key("client_secret") {
        return bad("invalid_grant", "the code was given to another client or address");
    }
    let verifier = of("code_verifier");
    let unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    if !(43..=128).contains(&verifier.len()) || !verifier.bytes().all(unreserved) {
        return bad("invalid_request", "the code_verifier");
    }
    if URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)) != asked["code_challenge"] {
        return bad("invalid_grant", "the code_verifier does not fit the code_challenge");
    }
    let mood = provider.inner().mood;
    match mood {
        Mood::NoCors => return StatusCode::FORBIDDEN.into_response(),
        Mood::WantsSecret => return bad("invalid_request", "client_secret is missing."),
        _ => (),
    }
    let nonce = if mood == Mood::OtherNonce { "of-another-sign-in" } else { &asked["nonce"] };
    match provider.signed(nonce) {
        Ok(id_token) => {
            provider.inner().given += 1;
            let body = json!({"access_token": fresh(), "token_type": "Bearer", "expires_in": LIVES, "id_token": id_token});
            readable(&provider, body)
        }
        Err(why) => bad("server_error", &why),
    }
}
