//! ECR: the one operation that finds pushes whose events were lost.

use crate::Aws;
use crate::aliases::read;
use crate::error::refused;
use crate::signed::{Ask, Signed};
use keelway_domain::deployments::registry::Repository;
use keelway_domain::json::canonical;
use keelway_domain::time::Timestamp;
use keelway_engine::ports::PortError;
use keelway_engine::registry::{Registry, Tagged};
use serde_json::{Value, json};
use std::time::Duration;

const DESCRIBE_IMAGES: &str = "ecr.DescribeImages";
/// The most images of one answer.
const PAGE: u32 = 1000;
/// The most pages that are read. A repository has at most 20,000 images by default; old images without a tag are not among them.
const PAGES: usize = 25;

impl Signed {
    async fn describe(&self, of: &Repository, next: Option<&Value>) -> Result<Value, PortError> {
        let mut request = json!({
            "repositoryName": of.name, "filter": {"tagStatus": "TAGGED"}, "maxResults": PAGE,
        });
        if let Some(account) = &of.account {
            request["registryId"] = account.as_str().into();
        }
        if let Some(next) = next {
            request["nextToken"] = next.clone();
        }
        let ask = Ask {
            name: DESCRIBE_IMAGES,
            service: "ecr",
            region: of.region.as_deref(),
            method: "POST",
            path: "/".into(),
            headers: &[
                ("content-type", "application/x-amz-json-1.1"),
                ("x-amz-target", "AmazonEC2ContainerRegistry_V20150921.DescribeImages"),
            ],
            body: canonical(&request),
            patience: Duration::from_secs(5),
        };
        read(DESCRIBE_IMAGES, &self.ask(&ask).await?)
    }

    async fn tags(&self, of: &Repository) -> Result<Option<Vec<Tagged>>, PortError> {
        let mut all = vec![];
        let mut next = None;
        for _ in 0..PAGES {
            let answer = match self.describe(of, next.as_ref()).await {
                Ok(answer) => answer,
                Err(PortError::Refused { reason, .. }) if reason.contains("RepositoryNotFoundException") => return Ok(None),
                Err(error) => return Err(error),
            };
            for image in answer["imageDetails"].as_array().into_iter().flatten() {
                all.extend(tagged(image).ok_or_else(|| refused(DESCRIBE_IMAGES, format!("not an image: {image}")))?);
            }
            next = answer.get("nextToken").filter(|token| token.is_string()).cloned();
            if next.is_none() {
                return Ok(Some(all));
            }
        }
        tracing::warn!(
            repository = of.name,
            account = of.account,
            region = of.region,
            limit = PAGES * PAGE as usize,
            "the repository has more images with tags than are looked at: a push to another tag is only known by its event"
        );
        Ok(Some(all))
    }
}

/// An image, once for each of its tags.
fn tagged(image: &Value) -> Option<Vec<Tagged>> {
    let digest = image["imageDigest"].as_str()?;
    // In seconds since 1970, with a fraction.
    let at = Timestamp((image["imagePushedAt"].as_f64()? * 1000.0).round() as i64);
    let tags = image["imageTags"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Some(tags.map(|tag| Tagged { tag: tag.to_owned(), digest: digest.to_owned(), at }).collect())
}

impl Registry for Aws {
    async fn tags(&self, of: &Repository) -> Result<Option<Vec<Tagged>>, PortError> {
        self.inner.signed.tags(of).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed::tests::answering;
    use std::sync::{Arc, Mutex};

    fn repository() -> Repository {
        Repository { account: Some("123456789012".into()), region: Some("eu-west-1".into()), name: "shop/cart".into() }
    }

    #[tokio::test]
    async fn tags_of_a_repository() {
        let body = r#"{"imageDetails": [
            {"registryId": "123456789012", "repositoryName": "shop/cart", "imageDigest": "sha256:a", "imageTags": ["1.0", "stable"],
             "imageSizeInBytes": 7, "imagePushedAt": 1.795222266123E9},
            {"imageDigest": "sha256:b", "imagePushedAt": 1795222267}
        ]}"#;
        let (signed, seen) = answering(200, &[], body);
        let tagged = |tag: &str| Tagged { tag: tag.into(), digest: "sha256:a".into(), at: Timestamp(1_795_222_266_123) };
        assert_eq!(signed.tags(&repository()).await.unwrap(), Some(vec![tagged("1.0"), tagged("stable")]));
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0].uri(), "https://api.ecr.eu-west-1.amazonaws.com/");
        assert_eq!(seen[0].headers().get("x-amz-target"), Some("AmazonEC2ContainerRegistry_V20150921.DescribeImages"));
        let signature = seen[0].headers().get("authorization").unwrap();
        assert!(signature.contains("/eu-west-1/ecr/aws4_request"), "{signature}");
        let body = std::str::from_utf8(seen[0].body().bytes().unwrap()).unwrap();
        let expected =
            r#"{"filter":{"tagStatus":"TAGGED"},"maxResults":1000,"registryId":"123456789012","repositoryName":"shop/cart"}"#;
        assert_eq!(body, expected);
    }

    /// Collects log lines.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn more_images_than_are_looked_at_are_told() {
        let page = r#"{"imageDetails": [{"imageDigest": "sha256:a", "imageTags": ["1.0"], "imagePushedAt": 7}], "nextToken": "n"}"#;
        let (signed, seen) = answering(200, &[], page);
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
        let guard = tracing::subscriber::set_default(subscriber);
        assert_eq!(signed.tags(&repository()).await.unwrap().map(|tags| tags.len()), Some(PAGES));
        drop(guard);
        assert_eq!(seen.lock().unwrap().len(), PAGES);
        let line: Value = serde_json::from_slice(&log.0.lock().unwrap()).unwrap();
        let fields = &line["fields"];
        assert_eq!(
            (&line["level"], &fields["repository"], &fields["limit"]),
            (&json!("WARN"), &json!("shop/cart"), &json!(25_000))
        );
    }

    #[tokio::test]
    async fn no_repository_no_permission_and_too_many_requests() {
        let (signed, _) = answering(400, &[], r#"{"__type": "RepositoryNotFoundException", "message": "no such repository"}"#);
        assert_eq!(signed.tags(&repository()).await.unwrap(), None);
        let (signed, _) = answering(400, &[], r#"{"__type": "AccessDeniedException", "message": "not authorized"}"#);
        assert!(matches!(signed.tags(&repository()).await, Err(PortError::Refused { .. })));
        let (signed, _) = answering(400, &[], r#"{"__type": "ThrottlingException", "message": "Rate exceeded"}"#);
        assert!(matches!(signed.tags(&repository()).await, Err(PortError::Retry { .. })));
    }
}
