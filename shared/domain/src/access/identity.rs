//! What the claims of an identity provider's token grant.

use super::{Grant, Scope};
use crate::names::ProjectName;
use serde_json::Value;

/// Some claims, and what they grant together. As text: `repository=acme/shop,ref=refs/heads/main=>read,trigger@shop,carts`; without `@`, in
/// all projects. A value may end in `*`, which stands for any rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    claims: Vec<(String, String)>,
    grant: Grant,
}

/// Whose tokens are taken, for whom they have to be, and what their claims grant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identities {
    /// The providers, as their tokens name them in `iss`.
    pub issuers: Vec<String>,
    /// What tokens have to name in `aud`.
    pub audience: String,
    /// All that match count.
    pub rules: Vec<Rule>,
}

impl Identities {
    /// Reads the settings: issuers with commas between, and rules with `;` between. Without an issuer, there is nothing to read.
    ///
    /// # Errors
    /// What is wrong, with an example.
    pub fn parse(issuers: &str, audience: &str, rules: &str) -> Result<Option<Self>, String> {
        let issuers: Vec<String> = listed(issuers, ',').map(str::to_owned).collect();
        if issuers.is_empty() {
            return Ok(None);
        }
        for issuer in &issuers {
            if !issuer.starts_with("https://") && !is_local(issuer) {
                return Err(format!(
                    "the issuer {issuer:?} is not an https URL: write it as its tokens do, for example https://token.actions.githubusercontent.com"
                ));
            }
        }
        let audience = audience.trim().to_owned();
        if audience.is_empty() {
            return Err("there is an issuer and no audience: name what tokens have to be issued for, for example keelway".into());
        }
        let rules = listed(rules, ';').map(Rule::parse).collect::<Result<Vec<Rule>, String>>()?;
        let vague = rules.iter().find(|rule| issuers.len() > 1 && !rule.claims.iter().any(|(name, _)| name == "iss"));
        if vague.is_some() {
            return Err(
                "there are several issuers, and a rule that does not say of which one its claims are: begin it with iss=<issuer>,"
                    .into(),
            );
        }
        Ok(Some(Self { issuers, audience, rules }))
    }

    /// Everything that these claims grant.
    pub fn grants(&self, claims: &Value) -> Vec<Grant> {
        self.rules.iter().filter(|rule| rule.matches(claims)).map(|rule| rule.grant.clone()).collect()
    }
}

impl Rule {
    /// Reads one rule.
    ///
    /// # Errors
    /// What is wrong, with an example.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            let text: String = text.chars().take(200).collect();
            format!("the rule {text:?} {why}: write it like repository=acme/shop,ref=refs/heads/main=>read,trigger@shop")
        };
        let (claims, grant) = text.split_once("=>").ok_or_else(|| wrong("has no =>"))?;
        let claims = listed(claims, ',').map(|claim| claim.split_once('='));
        let claims = claims.map(|claim| {
            claim.filter(|(name, value)| !name.is_empty() && !value.is_empty() && !value.contains(char::is_whitespace))
        });
        let claims: Option<Vec<_>> = claims.map(|claim| claim.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect();
        let claims = claims.filter(|claims| !claims.is_empty()).ok_or_else(|| wrong("does not begin with claim=value"))?;
        let (scopes, projects) = grant.split_once('@').unwrap_or((grant, ""));
        let limited = grant.contains('@');
        let scopes: Result<Vec<Scope>, _> = listed(scopes, ',').map(Scope::parse).collect();
        let scopes = scopes.map_err(|error| wrong(&format!("has a scope that is none ({error})")))?;
        let projects: Result<Vec<ProjectName>, _> = listed(projects, ',').map(ProjectName::new).collect();
        let projects = projects.map_err(|error| wrong(&format!("has a project that is none ({error})")))?;
        if scopes.is_empty() || (limited && projects.is_empty()) {
            return Err(wrong("grants nothing"));
        }
        Ok(Self { claims, grant: Grant { scopes, projects } })
    }

    fn matches(&self, claims: &Value) -> bool {
        self.claims.iter().all(|(name, wanted)| match claims.get(name) {
            Some(Value::Array(several)) => several.iter().any(|one| is(one, wanted)),
            Some(one) => is(one, wanted),
            None => false,
        })
    }
}

/// Whether a claim has a value. Only texts and booleans are compared.
fn is(claim: &Value, wanted: &str) -> bool {
    let text = match claim {
        Value::String(text) => text.as_str(),
        Value::Bool(true) => "true",
        Value::Bool(false) => "false",
        _ => return false,
    };
    match wanted.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => text == wanted,
    }
}

fn listed(text: &str, separator: char) -> impl Iterator<Item = &str> {
    text.split(separator).map(str::trim).filter(|part| !part.is_empty())
}

/// For providers on this machine, which tests have.
fn is_local(issuer: &str) -> bool {
    issuer.starts_with("http://127.0.0.1:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Need;
    use serde_json::json;

    const GITHUB: &str = "https://token.actions.githubusercontent.com";

    #[test]
    fn claims_grant_what_the_rules_that_match_say() {
        let rules =
            "repository=acme/shop,ref=refs/heads/main=>trigger@shop;repository=acme/*=>read@shop,carts;groups=platform=>administer";
        let known = Identities::parse(GITHUB, "keelway", rules).unwrap().unwrap();
        let told = |claims: Value| known.grants(&claims).iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let main = json!({"repository": "acme/shop", "ref": "refs/heads/main"});
        assert_eq!(told(main), "trigger in shop; read in shop, carts");
        assert_eq!(told(json!({"repository": "acme/shop", "ref": "refs/heads/other"})), "read in shop, carts");
        assert_eq!(told(json!({"groups": ["people", "platform"]})), "administer");
        for none in [json!({}), json!({"repository": "acmes/shop"}), json!({"groups": {"platform": true}}), json!({"groups": null})]
        {
            assert_eq!(told(none.clone()), "", "{none}");
        }
        assert!(!known.grants(&json!({"repository": "acme/shop"}))[0].allows(Need::Read, None));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert_eq!(Identities::parse("", "", "nonsense"), Ok(None));
        let why = |issuers: &str, audience: &str, rules: &str| Identities::parse(issuers, audience, rules).unwrap_err();
        assert!(why("http://example.org", "keelway", "").contains("https URL"));
        assert!(why(GITHUB, " ", "").contains("audience"));
        assert!(why(&format!("{GITHUB},https://login.acme.test"), "keelway", "groups=platform=>read").contains("iss="));
        for rule in
            ["groups=platform", "=>read", "groups==>read", "groups=a=>", "groups=a=>reads", "groups=a=>read@", "groups=a=>read@UP"]
        {
            assert!(why(GITHUB, "keelway", rule).contains("write it like"), "{rule}");
        }
    }
}
