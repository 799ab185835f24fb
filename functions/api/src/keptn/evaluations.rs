//! `POST /v1/project/{project}/stage/{stage}/service/{service}/evaluation`: an evaluation by its window, as in Keptn.

use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::input::{Maybe, Path, given};
use crate::fence::problem::{Answer, Refused};
use crate::fence::repeated::RequestId;
use crate::keptn::accept;
use crate::keptn::overrides::AtTrigger;
use axum::extract::Extension;
use axum::response::Response;
use keelway_domain::event::Object;
use keelway_engine::keptn::evaluation;
use keelway_wire::cloudevent::{self, Origin};
use serde::Deserialize;
use serde_json::Value;

/// The longest id of an event, in characters.
const MAX_ID: usize = 200;

#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[schema(as = EvaluationRequest)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    start: Option<String>,
    end: Option<String>,
    timeframe: Option<String>,
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    labels: Option<Object>,
    gitcommitid: Option<String>,
    id: Option<String>,
}

/// Triggers an evaluation of a window.
#[utoipa::path(
    post,
    path = "/v1/project/{project}/stage/{stage}/service/{service}/evaluation",
    tag = "sequences",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Option<Request>, example = json!({"start": "2026-11-20T11:00:00Z", "timeframe": "10m", "labels": {"who": "me"}})),
    responses((status = 200, body = keelway_wire::http::Accepted), (status = 409), (status = 422))
)]
pub(crate) async fn evaluate(
    caller: Allowed<scope::Trigger>,
    api: Api,
    Path((project, stage, service)): Path<(String, String, String)>,
    Extension(RequestId(request)): Extension<RequestId>,

    Maybe(body): Maybe<Request>,
) -> Answer<Response> {
    let labels = body.labels.clone().unwrap_or_default();
    if let Some((name, _)) = labels.iter().find(|(_, value)| !matches!(value, Value::String(_))) {
        let name: String = name.chars().take(50).collect();
        return Err(Refused::field("labels", format!("{name:?} is not a text: send a text for each label")));
    }
    let id = given(body.id.as_ref()).map(str::to_owned);
    if id.as_ref().is_some_and(|id| id.chars().count() > MAX_ID) {
        return Err(Refused::field("id", format!("is too long: send at most {MAX_ID} characters, or leave it out")));
    }
    let event = api
        .engine()
        .evaluation(evaluation::Wanted {
            project: &project,
            stage: &stage,
            service: &service,
            window: (given(body.start.as_ref()), given(body.end.as_ref()), given(body.timeframe.as_ref())),
            labels,
            git_commit_id: given(body.gitcommitid.as_ref()).map(str::to_owned),
            id: id.unwrap_or_else(|| accept::id_of((request, 0))),
        })
        .await?;
    // What the engine could not read is refused here, as in events that clients send.
    let event = cloudevent::parse(&event.to_json(), Origin::Bus, api.engine().now())?;
    accept::put(&api, &caller, event, &AtTrigger::default()).await
}
