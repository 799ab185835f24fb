//! Secrets from AWS Secrets Manager, each by one signed request.

use crate::Aws;
use crate::error::{refused, retry};
use crate::signed::Ask;
use keelway_engine::ports::PortError;
use keelway_engine::secrets::{SecretText, Secrets};
use std::time::Duration;

const GET_SECRET: &str = "secretsmanager.GetSecretValue";

/// The request for a secret.
fn ask(id: &str) -> Ask<'static> {
    Ask {
        name: GET_SECRET,
        service: "secretsmanager",
        region: None,
        method: "POST",
        path: "/".into(),
        headers: &[("content-type", "application/x-amz-json-1.1"), ("x-amz-target", GET_SECRET)],
        body: serde_json::json!({ "SecretId": id }).to_string(),
        patience: Duration::from_secs(4),
    }
}

/// Reads the answer. Its text must not appear in errors, because it may be the secret.
fn read(status: u16, body: &[u8]) -> Result<Option<SecretText>, PortError> {
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    if status == 200 {
        let text = json["SecretString"].as_str().map(SecretText::new);
        return text.map(Some).ok_or_else(|| refused(GET_SECRET, "the secret has no text: store it as a string".to_owned()));
    }
    let code = json["__type"].as_str().unwrap_or_default().rsplit('#').next().unwrap_or_default();
    match (code, status) {
        ("ResourceNotFoundException", _) => Ok(None),
        (_, 429 | 500..) | ("ThrottlingException" | "ExpiredTokenException" | "RequestExpired", _) => {
            Err(retry(GET_SECRET, format!("{code} (status {status})")))
        }
        _ => Err(refused(GET_SECRET, format!("{code} (status {status})"))),
    }
}

impl Secrets for Aws {
    async fn secret(&self, name: &str) -> Result<Option<SecretText>, PortError> {
        let id = format!("{}/{name}", self.inner.names.secrets);
        let answered = self.inner.signed.ask(&ask(&id)).await?;
        read(answered.status, &answered.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed::tests::answering;

    async fn answer(status: u16, body: &'static str) -> Result<Option<SecretText>, PortError> {
        let (signed, seen) = answering(status, &[], body);
        let answered = signed.ask(&ask("keelway/shop/git")).await.unwrap();
        let seen = seen.lock().unwrap();
        let [request] = &seen[..] else { panic!("{} requests", seen.len()) };
        assert_eq!((request.method(), request.uri()), ("POST", "https://secretsmanager.eu-central-1.amazonaws.com/"));
        assert_eq!(request.headers().get("x-amz-target"), Some("secretsmanager.GetSecretValue"));
        assert_eq!(request.body().bytes(), Some(&br#"{"SecretId":"keelway/shop/git"}"#[..]));
        read(answered.status, &answered.body)
    }

    #[tokio::test]
    async fn one_signed_request() {
        let text = answer(200, r#"{"ARN":"arn","Name":"n","SecretString":"{\"token\":\"t\"}"}"#).await;
        assert_eq!(text.unwrap().unwrap().expose(), r#"{"token":"t"}"#);
    }

    #[tokio::test]
    async fn what_other_answers_mean() {
        let missing = answer(400, r#"{"__type":"com.amazonaws#ResourceNotFoundException","Message":"no"}"#).await;
        assert_eq!(missing, Ok(None));
        let binary = answer(200, r#"{"SecretBinary":"c2VjcmV0"}"#).await.unwrap_err();
        assert!(!binary.passes() && !binary.to_string().contains("c2VjcmV0"), "{binary}");
        assert!(!answer(400, r#"{"__type":"AccessDeniedException"}"#).await.unwrap_err().passes());
        for (status, body) in [(500, "<html>"), (429, "{}"), (400, r#"{"__type":"ThrottlingException"}"#)] {
            assert!(answer(status, body).await.unwrap_err().passes(), "{status} {body}");
        }
    }
}
