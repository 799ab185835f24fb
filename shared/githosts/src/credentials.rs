//! Credentials in a secret.

use crate::error::{HostError, Kind};
use crate::repository::Form;
use serde_json::Value;
use std::fmt;

/// The content of a secret: a token, or a user name and a password, and the certificate of a private authority. `Debug` shows none
/// of it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    token: Option<String>,
    username: Option<String>,
    password: Option<String>,
    ca: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// The part that is sent with each request.
pub(crate) enum Proof<'a> {
    Token(&'a str),
    Basic(&'a str, &'a str),
}

impl Credentials {
    /// Parses a secret: a JSON object with `token`, or with `username` and `password`, and optionally `caFile`, the PEM certificate
    /// of an authority that may have signed the host's certificate. Other keys are ignored, because a secret may serve several
    /// purposes.
    pub fn parse(secret: &str) -> Result<Self, HostError> {
        let object = match serde_json::from_str(secret) {
            Ok(Value::Object(object)) => object,
            _ => return Err(refused("the secret is not a JSON object: store {\"token\": \"…\"} in it")),
        };
        let read = |key: &str| match object.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
            Some(_) => Err(refused(format!("{key} in the secret is not text: write it in quotation marks"))),
        };
        let found = Self { token: read("token")?, username: read("username")?, password: read("password")?, ca: read("caFile")? };
        let is_empty = |text: &Option<String>| text.as_ref().is_some_and(String::is_empty);
        if is_empty(&found.token) {
            return Err(refused("token in the secret is empty: store an access token in it"));
        }
        let printable = |text: &Option<String>| text.as_ref().is_none_or(|text| text.chars().all(|c| !c.is_control()));
        if !(printable(&found.token) && printable(&found.username) && printable(&found.password)) {
            return Err(refused("the secret has a control character in token, username or password: store it without line breaks"));
        }
        if found.token.is_none() {
            let absent = |text: &Option<String>| text.as_ref().is_none_or(String::is_empty);
            match (absent(&found.username), absent(&found.password)) {
                (true, true) => return Err(refused("the secret has no token: store an access token as token in it")),
                (false, true) => return Err(refused("the secret has username but no password: add password, or use token")),
                (true, false) => return Err(refused("the secret has password but no username: add username, or use token")),
                (false, false) => {}
            }
        }
        Ok(found)
    }

    pub(crate) fn proof(&self, form: Form) -> Result<Proof<'_>, HostError> {
        match (&self.token, &self.username, &self.password) {
            (Some(token), ..) => Ok(Proof::Token(token)),
            (None, Some(username), Some(password)) if matches!(form, Form::Gitea | Form::BitbucketServer) => {
                Ok(Proof::Basic(username, password))
            }
            _ => Err(refused(format!(
                "{form} takes no password for its API, and the secret has no token: add an access token as token"
            ))),
        }
    }

    pub(crate) fn ca(&self) -> Option<&str> {
        self.ca.as_deref().filter(|pem| !pem.is_empty())
    }

    /// The texts that no message may contain.
    pub(crate) fn secrets(&self) -> Vec<String> {
        [&self.token, &self.password].into_iter().flatten().filter(|text| text.len() > 3).cloned().collect()
    }
}

fn refused(message: impl Into<String>) -> HostError {
    HostError::new(Kind::Credentials, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_read_and_never_shown() {
        let found = Credentials::parse(r#"{"token": " t0ken\n", "hmac-key": "k", "caFile": "PEM"}"#).unwrap();
        assert!(matches!(found.proof(Form::GitHub), Ok(Proof::Token("t0ken"))));
        assert_eq!(found.ca(), Some("PEM"));
        assert!(!format!("{found:?}").contains("t0ken"));
        let basic = Credentials::parse(r#"{"username": "me", "password": "hunter2"}"#).unwrap();
        assert!(matches!(basic.proof(Form::Gitea), Ok(Proof::Basic("me", "hunter2"))));
        for form in [Form::GitHub, Form::GitLab] {
            assert!(basic.proof(form).err().unwrap().message.contains("access token"));
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let cases = [
            ("t0ken", "JSON object"),
            ("[]", "JSON object"),
            ("{}", "no token"),
            (r#"{"token": ""}"#, "token in the secret is empty"),
            (r#"{"token": "  ", "username": "me", "password": "p"}"#, "token in the secret is empty"),
            (r#"{"username": "me"}"#, "no password"),
            (r#"{"username": "me", "password": ""}"#, "no password"),
            (r#"{"password": "hunter2"}"#, "no username"),
            (r#"{"token": 5}"#, "not text"),
            (r#"{"token": "a\nb"}"#, "control character"),
        ];
        for (secret, expected) in cases {
            let error = Credentials::parse(secret).unwrap_err();
            assert_eq!(error.kind, Kind::Credentials);
            assert!(error.message.contains(expected), "{secret}: {error}");
            assert!(!error.message.contains("hunter2") && !error.message.contains("t0ken"), "{error}");
        }
    }
}
