//! API tokens. The secret of one stands in the answer to the request that makes or rotates it, and nowhere else.
//!
//! Whoever administers some projects manages the tokens that are valid in these and nowhere else. Others do not exist for them.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::caller::Caller;
use crate::fence::input::{self, Params, Path, given, note, page_size};
use crate::fence::pages::{Paging, place};
use crate::fence::problem::{Answer, Refused};
use crate::fence::random::random_hex;
use axum::Json;
use axum::http::StatusCode;
use keelway_domain::access::{Grant, Need, NewToken, OVERLAP_MOST, Scope, Token, text_of};
use keelway_domain::ids::sha256_hex;
use keelway_domain::names::{ProjectName, TokenName};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::access::{Held, Refused as Why};
use keelway_wire::http::access::{GrantState, NewTokenRequest, RotateRequest, TokenAnswer, TokenPage, TokenState, WhoAmI};
use std::collections::BTreeSet;

/// How long a rotated secret stays valid unless told otherwise.
const OVERLAP: Span = Span::minutes(60);
/// The longest note.
const NOTE: usize = 200;
/// The most scopes, and the most projects.
const MOST: usize = 50;

/// Whose token this is, and what it allows.
#[utoipa::path(
    get,
    path = "/v1/whoami",
    tag = "access",
    responses((status = 200, body = WhoAmI))
)]
pub(crate) async fn whoami(caller: Allowed<scope::AnyToken>) -> Json<WhoAmI> {
    let grants = caller.grants.iter().map(granted).collect();
    let expires = caller.ends.map(Timestamp::rfc3339);
    Json(WhoAmI { token: caller.0.token, subject: caller.0.subject, by: caller.0.known, grants, expires })
}

/// Lists the tokens by name, without their secrets. Whoever administers some projects sees those that are valid only there.
#[utoipa::path(
    get,
    path = "/v1/tokens",
    tag = "access",
    params(Paging),
    responses((status = 200, body = TokenPage))
)]
pub(crate) async fn list(
    caller: Allowed<scope::Anywhere<scope::Administer>>,
    api: Api,
    Params(paging): Params<Paging>,
) -> Answer<Json<TokenPage>> {
    let size = page_size(paging.page_size.as_ref())?;
    let after = place(paging.next_page_key.as_ref(), |key| TokenName::new(key).ok())?;
    let (tokens, next) = api.access().tokens_within(caller.administered().as_deref(), after.as_ref(), size.into()).await?;
    let now = api.access().now();
    Ok(Json(TokenPage::new(tokens.iter().map(|held| shown(&held.token, held.used, now)).collect(), size, next)))
}

/// A token, without its secret.
#[utoipa::path(
    get,
    path = "/v1/tokens/{token}",
    tag = "access",
    responses((status = 200, body = TokenState))
)]
pub(crate) async fn one(
    caller: Allowed<scope::Anywhere<scope::Administer>>,
    api: Api,
    Path(name): Path<String>,
) -> Answer<Json<TokenState>> {
    let found = match TokenName::new(&name) {
        Ok(name) => api.access().token(&name).await?,
        Err(_) => None,
    };
    let within = caller.administered();
    let found = found.filter(|held| held.token.grant.is_within(within.as_deref()));
    let Held { token, used, .. } = found.ok_or_else(|| unknown(&name))?;
    Ok(Json(shown(&token, used, api.access().now())))
}

/// Makes a token. The answer is the only one that has its secret. Whoever administers some projects makes tokens for these.
#[utoipa::path(
    post,
    path = "/v1/tokens",
    tag = "access",
    request_body(content = NewTokenRequest, example = json!({"name": "ci", "scopes": ["read", "execute:test"], "projects": ["shop"], "expires": "90d", "note": "runs the tests"})),
    responses((status = 201, body = TokenAnswer), (status = 409))
)]
pub(crate) async fn create(
    caller: Allowed<scope::Anywhere<scope::Administer>, act::Token>,
    api: Api,

    input::Json(asked): input::Json<NewTokenRequest>,
) -> Answer<(StatusCode, Json<TokenAnswer>)> {
    let now = api.access().now();
    let asked = wanted(&asked, now)?;
    grants(&caller, &asked.grant)?;
    let scopes = Grant { projects: vec![], ..asked.grant.clone() };
    tell(&caller, &asked.grant, &format!("created token {}: {scopes}", asked.name));
    let (text, hash) = fresh(&asked.name)?;
    let token = Token::new(asked, hash, caller.by(None), now).map_err(|(field, why)| Refused::field(field, why))?;
    match api.access().create(&token).await? {
        Ok(()) => Ok((StatusCode::CREATED, Json(TokenAnswer { secret: text, token: shown(&token, None, now) }))),
        Err(_) => {
            let way_out = match caller.administers_everything() {
                true => "rotate it to get another secret, or revoke it first",
                false => "rotate it if it is one of your projects', or choose another name",
            };
            let detail = format!("there is a token {} already: {way_out}", token.name);
            Err(Refused::new(StatusCode::CONFLICT, "conflict", detail))
        }
    }
}

/// Gives a token another secret; the one before stays valid for a while.
#[utoipa::path(
    post,
    path = "/v1/tokens/{token}/rotate",
    tag = "access",
    request_body(content = Option<RotateRequest>, example = json!({"overlap": "1h"})),
    responses((status = 200, body = TokenAnswer))
)]
pub(crate) async fn rotate(
    caller: Allowed<scope::Anywhere<scope::Administer>, act::Token>,
    api: Api,
    Path(name): Path<String>,

    input::Maybe(asked): input::Maybe<RotateRequest>,
) -> Answer<Json<TokenAnswer>> {
    let overlap = match given(asked.overlap.as_ref()) {
        None => OVERLAP,
        Some(text) => Span::parse(text).map_err(|error| Refused::field("overlap", error))?,
    };
    if overlap > OVERLAP_MOST {
        return Err(Refused::field(
            "overlap",
            format!("{overlap} is more than {OVERLAP_MOST}: revoke a token that may have leaked"),
        ));
    }
    let of = TokenName::new(&name).map_err(|_| unknown(&name))?;
    let (text, hash) = fresh(&of)?;
    match api.access().rotate(&of, (&hash, overlap), caller.administered().as_deref()).await? {
        Ok(token) => {
            tell(&caller, &token.grant, &format!("rotated token {of}; the secret before is valid for another {overlap}"));
            Ok(Json(TokenAnswer { secret: text, token: shown(&token, None, api.access().now()) }))
        }
        Err(Why::Exists | Why::Unknown) => Err(unknown(&name)),
    }
}

/// Ends a token, in other instances of the function within a minute.
#[utoipa::path(
    delete,
    path = "/v1/tokens/{token}",
    tag = "access",
    responses((status = 204))
)]
pub(crate) async fn revoke(
    caller: Allowed<scope::Anywhere<scope::Administer>, act::Token>,
    api: Api,
    Path(name): Path<String>,
) -> Answer<StatusCode> {
    let of = TokenName::new(&name).map_err(|_| unknown(&name))?;
    let revoked = api.access().revoke(&of, caller.administered().as_deref()).await?.ok_or_else(|| unknown(&name))?;
    tell(&caller, &revoked.grant, &format!("revoked token {of}"));
    Ok(StatusCode::NO_CONTENT)
}

/// Nobody makes a token that may do more than they: `administer` in a project is every scope there, and nothing elsewhere.
fn grants(caller: &Caller, grant: &Grant) -> Answer<()> {
    if grant.projects.is_empty() {
        return caller.check(Need::Administer, None).map_err(|mut refused| {
            refused.problem.detail +=
                "; or say in projects where the token is to be valid, with nothing but projects that you administer";
            refused
        });
    }
    grant.projects.iter().try_for_each(|project| caller.check(Need::Administer, Some(project.as_str())))
}

/// Records in the audit what was done with a token: in each of its projects, of which an entry does not name the others.
fn tell(caller: &Caller, grant: &Grant, what: &str) {
    if grant.projects.is_empty() {
        return caller.tells("", what);
    }
    let projects: BTreeSet<&ProjectName> = grant.projects.iter().collect();
    caller.tells_each(projects.into_iter().map(|project| (project.to_string(), what.to_owned())).collect());
}

/// A token's text, and its hash.
fn fresh(name: &TokenName) -> Answer<(String, String)> {
    let text = text_of(name, &random_hex()?);
    let hash = sha256_hex(text.as_bytes());
    Ok((text, hash))
}

fn wanted(asked: &NewTokenRequest, now: Timestamp) -> Answer<NewToken> {
    for (field, n) in [("scopes", asked.scopes.len()), ("projects", asked.projects.len())] {
        if n > MOST {
            return Err(Refused::field(field, format!("has {n} entries: at most {MOST} are taken")));
        }
    }
    let scopes: Result<Vec<Scope>, _> = asked.scopes.iter().map(|text| Scope::parse(text)).collect();
    let projects: Result<Vec<ProjectName>, _> = asked.projects.iter().map(|name| ProjectName::new(name.as_str())).collect();
    Ok(NewToken {
        name: TokenName::new(asked.name.as_str()).map_err(|error| Refused::field("name", error))?,
        grant: Grant {
            scopes: scopes.map_err(|error| Refused::field("scopes", error))?,
            projects: projects.map_err(|error| Refused::field("projects", error))?,
        },
        expires: given(asked.expires.as_ref()).map(|text| expiry(text, now)).transpose()?,
        note: note("note", asked.note.as_ref(), NOTE)?.unwrap_or_default(),
    })
}

/// A time, or a length from now on.
fn expiry(text: &str, now: Timestamp) -> Answer<Timestamp> {
    let at = Timestamp::parse(text).or_else(|| Span::parse(text).ok().map(|length| now + length));
    at.ok_or_else(|| {
        Refused::field(
            "expires",
            format!("{text:?} is neither a length such as 90d, 365d at most, nor a time such as 2027-01-31T00:00:00Z"),
        )
    })
}

fn unknown(name: &str) -> Refused {
    let name: String = name.chars().take(100).collect();
    Refused::new(StatusCode::NOT_FOUND, "unknown token", format!("token {name:?} does not exist: GET /v1/tokens lists them"))
}

fn granted(grant: &Grant) -> GrantState {
    GrantState {
        scopes: grant.scopes.iter().map(ToString::to_string).collect(),
        projects: grant.projects.iter().map(ToString::to_string).collect(),
    }
}

fn shown(token: &Token, used: Option<Timestamp>, now: Timestamp) -> TokenState {
    let time = |at: Option<Timestamp>| at.map(Timestamp::rfc3339);
    let overlap = token.previous.as_ref().map(|previous| previous.until).filter(|until| *until > now);
    TokenState {
        name: token.name.to_string(),
        grant: granted(&token.grant),
        note: token.note.clone(),
        created: token.created.rfc3339(),
        by: token.by.clone(),
        rotated: time(token.rotated),
        overlap_until: time(overlap),
        expires: time(token.expires),
        expired: token.has_expired(now),
        last_used: time(used),
    }
}
