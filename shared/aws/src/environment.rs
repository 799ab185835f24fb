//! What a function is told in its environment: the region, its credentials, and endpoints that are not AWS's own.
//!
//! Lambda puts everything there, so nothing else is asked. The crate `aws-config` would look for files, too, and brings the client
//! of STS, which no function needs.

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
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

/// The configuration that they give all clients. Without credentials or a region, each request fails and says so.
pub(crate) fn config(variables: Variables) -> Builder {
    let is = |name| variables(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(variables("AWS_REGION").or_else(|| variables("AWS_DEFAULT_REGION")).map(Region::new))
        .use_fips(is("AWS_USE_FIPS_ENDPOINT"))
        .use_dual_stack(is("AWS_USE_DUALSTACK_ENDPOINT"))
        .service_config(Endpoints(variables));
    config.set_endpoint_url(variables("AWS_ENDPOINT_URL")).set_credentials_provider(credentials(variables));
    config
}

fn credentials(variables: Variables) -> Option<SharedCredentialsProvider> {
    let (id, secret) = (variables("AWS_ACCESS_KEY_ID")?, variables("AWS_SECRET_ACCESS_KEY")?);
    let mut credentials = Credentials::builder().access_key_id(id).secret_access_key(secret).provider_name("Environment");
    credentials.set_session_token(variables("AWS_SESSION_TOKEN"));
    credentials.set_account_id(variables("AWS_ACCOUNT_ID").map(Into::into));
    Some(SharedCredentialsProvider::new(credentials.build()))
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
    use aws_credential_types::provider::ProvideCredentials;

    /// Some of these variables.
    fn told(name: &str) -> Option<String> {
        let value = match name {
            "AWS_REGION" => "eu-west-3",
            "AWS_DEFAULT_REGION" => "us-east-1",
            "AWS_ACCESS_KEY_ID" => "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY" => "hidden",
            "AWS_SESSION_TOKEN" => "session",
            "AWS_ACCOUNT_ID" => "123456789012",
            "AWS_USE_FIPS_ENDPOINT" => "True",
            "AWS_USE_DUALSTACK_ENDPOINT" => "0",
            "AWS_ENDPOINT_URL" => "http://cloud",
            "AWS_ENDPOINT_URL_DYNAMODB" => "http://table",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[tokio::test]
    async fn everything_that_lambda_tells_is_used() {
        let config = config(told).build();
        assert_eq!(config.region().unwrap().as_ref(), "eu-west-3");
        assert_eq!((config.use_fips(), config.use_dual_stack()), (Some(true), Some(false)));
        let credentials = config.credentials_provider().unwrap().provide_credentials().await.unwrap();
        assert_eq!((credentials.access_key_id(), credentials.secret_access_key()), ("AKIDEXAMPLE", "hidden"));
        assert_eq!(credentials.session_token(), Some("session"));
        assert_eq!(credentials.account_id().unwrap().as_str(), "123456789012");
    }

    #[test]
    fn an_endpoint_of_one_service_goes_before_that_of_all() {
        let config = config(told).build();
        let endpoint = |service| {
            let key =
                ServiceConfigKey::builder().service_id(service).env("AWS_ENDPOINT_URL").profile("endpoint_url").build().unwrap();
            config.service_config().unwrap().load_config(key)
        };
        assert_eq!(config.endpoint_url(), Some("http://cloud"));
        assert_eq!((endpoint("DynamoDB").as_deref(), endpoint("SQS")), (Some("http://table"), None));
    }

    #[test]
    fn the_older_name_of_the_region_is_known_and_without_keys_there_are_no_credentials() {
        let config = config(|name| (name == "AWS_DEFAULT_REGION").then(|| "us-east-1".to_owned())).build();
        assert_eq!(config.region().unwrap().as_ref(), "us-east-1");
        assert!(config.credentials_provider().is_none() && config.endpoint_url().is_none());
    }
}
