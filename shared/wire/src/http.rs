//! Bodies of the HTTP API, as both sides write and read them.

use serde::{Deserialize, Serialize};

/// A refusal as problem details (RFC 9457): what is wrong, where, and the way out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A URI that names the kind of problem; `about:blank` when the status says it all.
    #[serde(rename = "type", default = "about_blank")]
    pub ty: String,
    /// The kind of problem in a few words, the same each time.
    pub title: String,
    /// The HTTP status code, repeated for those who only keep the body.
    pub status: u16,
    /// This occurrence: the field at fault and what to do about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The path of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Everything wrong with a manifest, at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<crate::manifest::Finding>,
}

fn about_blank() -> String {
    "about:blank".into()
}

impl Problem {
    /// The content type of a problem.
    pub const CONTENT_TYPE: &str = "application/problem+json";

    /// A problem of the kind `title` under the HTTP status `status`.
    pub fn new(status: u16, title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { ty: about_blank(), title: title.into(), status, detail: detail.into(), ..Self::default() }
    }
}

impl std::fmt::Display for Problem {
    /// The detail, or the title where there is none; then the findings, one per line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.detail.is_empty() { &self.title } else { &self.detail })?;
        self.findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_is_what_rfc_9457_says() {
        let problem = Problem::new(404, "unknown stage", "stage \"prod\" is not in project shop: did you mean production?");
        let body = json!({
            "type": "about:blank", "title": "unknown stage", "status": 404,
            "detail": "stage \"prod\" is not in project shop: did you mean production?"
        });
        assert_eq!(serde_json::to_value(&problem).unwrap(), body);
        assert_eq!(serde_json::from_value::<Problem>(body).unwrap(), problem);
    }
}
