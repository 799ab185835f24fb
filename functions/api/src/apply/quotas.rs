//! Quotas of projects. Definitions are counted when a new one is applied, not when one is changed, so that existing definitions can
//! always be corrected. Two concurrent requests may exceed a quota by what one of them applies; the next one is refused.

use crate::Api;
use crate::fence::problem::{Answer, Refused};
use crate::kinds::border::becoming;
use crate::kinds::{Context, Document};
use axum::http::StatusCode;
use keelway_domain::border::{Counted, Exceeded};
use keelway_engine::border::Border;
use std::collections::BTreeMap;

/// The refusal for an exceeded quota.
fn refused(exceeded: &Exceeded) -> Refused {
    Refused::new(StatusCode::CONFLICT, "quota exceeded", exceeded.to_string())
}

/// Refuses new definitions that would exceed the quotas which the documents themselves put in force.
pub(crate) async fn check<D: Document>(api: &Api, documents: &[D]) -> Answer<()> {
    let mut new: BTreeMap<(&str, Counted), (usize, &D)> = BTreeMap::new();
    for document in documents {
        if let Some((of, namespace)) = document.counted(api).await? {
            new.entry((namespace, of)).or_insert((0, document)).0 += 1;
        }
    }
    let projects = Context::of(documents, None).projects;
    let mut known: Option<(&str, Border)> = None;
    for ((namespace, of), (more, one)) in new {
        if known.as_ref().is_none_or(|(known, _)| *known != namespace) {
            known = Some((namespace, becoming(api, &projects, namespace).await?));
        }
        let Some((_, border)) = &known else { return Err(Refused::internal()) };
        let quotas = border.quotas();
        let has = one.count(api, quotas.most(of)).await?;
        quotas.check(namespace, of, (has, more)).map_err(|exceeded| refused(&exceeded))?;
    }
    Ok(())
}
