//! What registries tell about the images of artifact sources.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::auth::Authority;
use crate::fence::client::Client;
use crate::fence::input::{self, Anything, Params, Path, given};
use crate::fence::problem::{Answer, Refused};
use crate::fence::signed;
use crate::kinds::routes::Named;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use keelway_domain::border::Resource;
use keelway_domain::deployments::code;
use keelway_domain::deployments::registry::{ArtifactSource, Origin, is_among};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::border::Border;
use keelway_engine::deployments::images::Push;
use keelway_engine::protocol::Inbox;
use keelway_engine::secrets;
use keelway_wire::http::deployments::{ArtifactAction, ArtifactRequest, FieldError};
use keelway_wire::manifest::ArtifactSourceManifest;

/// How far ahead the clock of a sender may be.
const AHEAD: Span = Span::minutes(5);

/// Tells that a tag points to an image, or that an image is gone. The request may be signed instead of bearing a token.
#[utoipa::path(
    post,
    path = "/v1/artifacts/{namespace}/{name}",
    tag = "deployments",
    request_body(content = ArtifactRequest, example = json!({"tag": "v1", "digest": "sha256:0000000000000000000000000000000000000000000000000000000000000001", "image": "registry.example.com/shop/cart"})),
    responses((status = 202), (status = 422))
)]
pub(crate) async fn told(
    caller: Allowed<scope::OrSigned<scope::Trigger>, act::Push>,
    api: Api,

    path: Result<Path<(String, String)>, Refused>,
    _: Params<Anything>,
    request: Request,
) -> Answer<StatusCode> {
    let authority = request.extensions().get::<Authority>().copied();
    let (parts, body) = request.into_parts();
    let body = input::json_body(Request::from_parts(parts.clone(), body)).await;
    let (namespace, name) = match authority {
        Some(Authority::Token) => path?.0,
        // Before the signature is checked, errors reveal nothing.
        _ => path.map_err(|_| signed::refusal())?.0,
    };
    let mut by = caller.known.clone();
    let (source, body) = if authority == Some(Authority::Token) {
        let named = Named::new(&namespace, &name);
        let Some(source) = source(&api, &named).await? else {
            return Err(named.unknown::<ArtifactSourceManifest>(&api).await?);
        };
        (source, body?)
    } else {
        let about = format!("push {namespace}/{name}");
        let client = parts.extensions.get::<Client>();
        signed::admit_unless_refused(&api, &about, client).await?;
        match signed_by(&api, (&namespace, &name), &parts, body).await {
            Ok((source, secret, body)) => {
                by = caller.signed(&secret).known;
                (source, body)
            }
            Err(refused) => {
                if refused.problem.status == StatusCode::UNAUTHORIZED.as_u16() {
                    signed::count_refused(&api, &about, client).await?;
                }
                return Err(refused);
            }
        }
    };
    let now = api.deployments().now();
    let asked: ArtifactRequest = input::read(input::json(&body)?)?;
    let at = checked(&asked, now).map_err(Refused::invalid)?;
    let what = match asked.action {
        ArtifactAction::Delete => format!("deleted {} of {name}", asked.digest),
        ArtifactAction::Push => format!("pushed {name}:{}, which is {}@{}", asked.tag, asked.image, asked.digest),
    };
    caller.tells(&namespace, what);
    match asked.action {
        ArtifactAction::Delete => api.deployments().deleted((&namespace, &name), &asked.digest, None, at).await?,
        ArtifactAction::Push => {
            let image = format!("{}@{}", asked.image, asked.digest);
            takes(&api, (&namespace, &name), &source, &image).await?;
            api.deployments().pushed(&namespace, &name, &Push { tag: asked.tag, image, at, by }).await?;
        }
    }
    Ok(StatusCode::ACCEPTED)
}

/// The source of a request with its secret, if the signature is valid.
async fn signed_by(
    api: &Api,
    (namespace, name): (&str, &str),
    parts: &Parts,
    body: Answer<Vec<u8>>,
) -> Answer<(ArtifactSource, String, Vec<u8>)> {
    let signature = signed::presented(api, parts)?;
    let source = source(api, &Named::new(namespace, name)).await?.ok_or_else(signed::refusal)?;
    let Origin::Webhook { secret } = &source.from else { return Err(signed::refusal()) };
    let (secret, body) = (secret.clone(), body.map_err(|_| signed::refusal())?);
    signed::verify(api, signature, &secrets::name(namespace, &secret), (parts, &body)).await?;
    Ok((source, secret, body))
}

/// Checks that an image belongs to the source: a sender may report about the source's repositories only. A source without patterns
/// accepts the images that its project may use.
async fn takes(api: &Api, (namespace, name): (&str, &str), source: &ArtifactSource, image: &str) -> Answer<()> {
    let code = code(image).unwrap_or_else(|| Resource::image(image));
    let (home, refuse) = (api.deployments().home(), |why: String| Refused::invalid(vec![super::error("image", "Invalid", &why)]));
    let patterns = source.takes(&home);
    if patterns.is_empty() {
        let border = Border::of(api.deployments().ports(), namespace).await?;
        let permitted = border.permit(code, source.vouched, &home);
        return permitted.map(drop).map_err(|denied| {
            refuse(format!(
                "{denied}; or list its repository in spec.images of the manifest of kind ArtifactSource {namespace}/{name}"
            ))
        });
    }
    if is_among(&patterns, &code) {
        return Ok(());
    }
    let field = if source.repository().is_some() { "spec.ecr" } else { "spec.images" };
    let expected = patterns.iter().map(|pattern| format!("`{pattern}`")).collect::<Vec<_>>().join(", ");
    Err(refuse(format!("{code} is none of artifact source {namespace}/{name}: send one of {expected}, as its {field} says")))
}

/// A source, if there is one.
async fn source(api: &Api, named: &Named) -> Answer<Option<ArtifactSource>> {
    let Some(at) = named.at() else { return Ok(None) };
    Ok(api.deployments().sources().get(&at).await?.map(|found| found.spec))
}

/// The time of the report, or everything that is wrong with it.
fn checked(asked: &ArtifactRequest, now: Timestamp) -> Result<Timestamp, Vec<FieldError>> {
    let mut errors = vec![];
    let mut wrong = |field: &str, message: &str| errors.push(super::error(field, "Invalid", message));
    let digits = asked.digest.strip_prefix("sha256:").unwrap_or_default();
    if digits.len() != 64 || !digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        wrong("digest", "is no digest: send `sha256:` and 64 hexadecimal digits in lower case");
    }
    let plain =
        |text: &str, most: usize| !text.is_empty() && text.len() <= most && text.bytes().all(|byte| byte.is_ascii_graphic());
    if asked.action == ArtifactAction::Push {
        if !plain(&asked.tag, 128) || asked.tag.contains([':', '@', '/']) {
            wrong("tag", "is no tag: send the one that was pushed, 1 to 128 characters");
        }
        if !plain(&asked.image, 400) || asked.image.contains('@') {
            wrong("image", "is no image: send it without its digest, for example registry.example.com/shop/cart");
        }
    }
    let at = match given(asked.pushed_at.as_ref()) {
        None => Some(now),
        Some(text) => Timestamp::parse(text).filter(|at| at.0 > 0),
    };
    match at {
        None => wrong("pushedAt", "is not a time: write it like 2026-11-20T15:04:05.000Z"),
        Some(at) if at > now + AHEAD => wrong("pushedAt", "lies ahead: later pushes would count as older ones"),
        Some(_) => {}
    }
    at.filter(|_| errors.is_empty()).ok_or(errors)
}
