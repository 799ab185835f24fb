//! What a function is told in its environment: the region, its credentials, and endpoints that are not AWS's own.
//!
//! Lambda puts everything there, so nothing else is asked. The crate `aws-config` would look for files, too, and brings the client
//! of STS, which no function needs.

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{self, ProvideCredentials, SharedCredentialsProvider, future};
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_types::SdkConfig;
use aws_types::region::Region;
use aws_types::sdk_config::Builder;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

/// Gives the value of a variable.
type Variables = fn(&str) -> Option<String>;

/// The variables of this process. An empty one counts as not set.
pub(crate) fn variables(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The configuration that they give all clients. Without a region or credentials, each request fails and names what is missing.
pub(crate) fn config(variables: Variables) -> Builder {
    let is = |name| variables(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(variables("AWS_REGION").or_else(|| variables("AWS_DEFAULT_REGION")).map(Region::new))
        .credentials_provider(SharedCredentialsProvider::new(Keys(variables)))
        .use_fips(is("AWS_USE_FIPS_ENDPOINT"))
        .use_dual_stack(is("AWS_USE_DUALSTACK_ENDPOINT"))
        .service_config(Endpoints(variables));
    config.set_endpoint_url(variables("AWS_ENDPOINT_URL"));
    config
}

/// The credentials.
#[derive(Debug)]
struct Keys(Variables);

impl Keys {
    fn read(&self) -> provider::Result {
        let needed = |name| (self.0)(name).ok_or_else(|| CredentialsError::not_loaded(format!("{name} is not set")));
        let (id, secret) = (needed("AWS_ACCESS_KEY_ID")?, needed("AWS_SECRET_ACCESS_KEY")?);
        let mut credentials = Credentials::builder().access_key_id(id).secret_access_key(secret).provider_name("Environment");
        credentials.set_session_token((self.0)("AWS_SESSION_TOKEN"));
        credentials.set_account_id((self.0)("AWS_ACCOUNT_ID").map(Into::into));
        Ok(credentials.build())
    }
}

impl ProvideCredentials for Keys {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::ready(self.read())
    }
}

/// `AWS_ENDPOINT_URL_DYNAMODB` is the endpoint of DynamoDB, and so on.
#[derive(Debug)]
struct Endpoints(Variables);

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        (self.0)(&format!("{}_{}", key.env(), key.service_id().to_uppercase().replace(' ', "_")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Aws, Names};
    use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
    use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
    use aws_smithy_types::body::SdkBody;
    use keelway_engine::item::Key;
    use keelway_engine::ports::Store;
    use std::sync::{Arc, Mutex};

    /// Records the requests, and answers each with nothing.
    #[derive(Debug, Clone, Default)]
    struct Asked(Arc<Mutex<Vec<HttpRequest>>>);

    impl HttpConnector for Asked {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            self.0.lock().unwrap().push(request);
            HttpConnectorFuture::ready(Ok(HttpResponse::new(200.try_into().unwrap(), SdkBody::from("{}"))))
        }
    }

    /// What the clients ask when these are the variables: one request to DynamoDB and one to SQS.
    async fn asked(variables: Variables) -> Vec<HttpRequest> {
        let asked = Asked::default();
        let connector = SharedHttpConnector::new(asked.clone());
        let aws = Aws::new(&config(variables).http_client(http_client_fn(move |_, _| connector.clone())).build(), Names::default());
        aws.inner.dynamodb.list_tables().send().await.unwrap();
        aws.inner.sqs.list_queues().send().await.unwrap();
        std::mem::take(&mut asked.0.lock().unwrap())
    }

    async fn addresses(variables: Variables) -> Vec<String> {
        asked(variables).await.iter().map(|request| request.uri().to_owned()).collect()
    }

    /// What every function has.
    fn plain(name: &str) -> Option<String> {
        let value = match name {
            "AWS_REGION" => "eu-west-3",
            "AWS_DEFAULT_REGION" => "us-east-1",
            "AWS_ACCESS_KEY_ID" => "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY" => "hidden",
            "AWS_SESSION_TOKEN" => "session",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[tokio::test]
    async fn requests_go_to_the_region_and_are_signed_with_the_credentials() {
        let asked = asked(plain).await;
        let uris: Vec<&str> = asked.iter().map(HttpRequest::uri).collect();
        assert_eq!(uris, ["https://dynamodb.eu-west-3.amazonaws.com/", "https://sqs.eu-west-3.amazonaws.com/"]);
        for request in &asked {
            let signature = request.headers().get("authorization").unwrap();
            assert!(signature.contains("Credential=AKIDEXAMPLE/") && signature.contains("/eu-west-3/"), "{signature}");
            assert_eq!(request.headers().get("x-amz-security-token"), Some("session"));
        }
        let older = addresses(|name| plain(name).filter(|_| name != "AWS_REGION")).await;
        assert_eq!(older[1], "https://sqs.us-east-1.amazonaws.com/");
    }

    #[tokio::test]
    async fn the_endpoint_of_one_service_goes_before_that_of_all() {
        let told = addresses(|name| match name {
            "AWS_ENDPOINT_URL" => Some("http://cloud".to_owned()),
            "AWS_ENDPOINT_URL_DYNAMODB" => Some("http://table".to_owned()),
            _ => plain(name),
        });
        assert_eq!(told.await, ["http://table/", "http://cloud/"]);
    }

    #[tokio::test]
    async fn endpoints_for_fips_for_both_versions_of_ip_and_of_the_account_are_used() {
        let fips = addresses(|name| plain(name).or_else(|| (name == "AWS_USE_FIPS_ENDPOINT").then(|| "True".to_owned())));
        assert_eq!(fips.await[0], "https://dynamodb-fips.eu-west-3.amazonaws.com/");
        let dual = addresses(|name| plain(name).or_else(|| (name == "AWS_USE_DUALSTACK_ENDPOINT").then(|| "true".to_owned())));
        assert_eq!(dual.await[1], "https://sqs.eu-west-3.api.aws/");
        let account = addresses(|name| plain(name).or_else(|| (name == "AWS_ACCOUNT_ID").then(|| "123456789012".to_owned())));
        assert_eq!(account.await[0], "https://123456789012.ddb.eu-west-3.amazonaws.com/");
    }

    #[tokio::test]
    async fn what_is_missing_is_named() {
        let cases: [(Variables, &str); 3] = [
            (|name| plain(name).filter(|_| name != "AWS_ACCESS_KEY_ID"), "AWS_ACCESS_KEY_ID is not set"),
            (|name| plain(name).filter(|_| name != "AWS_SECRET_ACCESS_KEY"), "AWS_SECRET_ACCESS_KEY is not set"),
            (|name| plain(name).filter(|_| !name.ends_with("REGION")), "Missing Region"),
        ];
        for (variables, missing) in cases {
            let connector = SharedHttpConnector::new(Asked::default());
            let config = config(variables).http_client(http_client_fn(move |_, _| connector.clone())).build();
            let error =
                Aws::new(&config, Names { table: "table".into(), ..Names::default() }).get(&Key::new("a", "b")).await.unwrap_err();
            assert!(error.to_string().contains(missing), "{missing}: {error}");
        }
    }
}
