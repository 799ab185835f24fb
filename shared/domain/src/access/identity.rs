//! The grants that the claims of an identity provider's token lead to.

use super::who::{is_reserved, of_person, provider};
use super::{Grant, Scope};
use crate::ids::sha256_hex;
use crate::names::ProjectName;
use serde_json::Value;

/// A rule: a token with all of these claims gets these grants. As text:
/// `repository=acme/shop,ref=refs/heads/main=>read,trigger@shop,carts`. Without `@`, the grants are valid in all projects. A value
/// may end in `*`, which matches any rest. `by:<claim>` among the claims names the claim that identifies the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    claims: Vec<(String, String)>,
    by: Option<String>,
    grant: Grant,
}

/// The claim that identifies the person, unless a rule names another one.
const SUBJECT: &str = "sub";
/// The prefix by which a rule names that claim.
const BY: &str = "by:";
/// The longest name of a person, in characters. A longer name is refused: cut off, it could equal another person's.
const LONGEST: usize = 200;

/// A person, as an identity provider vouches for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The value of the claim that identifies the person.
    pub subject: String,
    /// The name under which others see the person. No two people have the same.
    pub known: String,
    /// A hash of issuer and subject, which separates one person's requests from another's.
    pub id: String,
}

/// The identity providers whose tokens are accepted, and the rules for their claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identities {
    /// The providers, as `iss` of their tokens names them.
    pub issuers: Vec<String>,
    /// The value that `aud` of a token must have.
    pub audience: String,
    /// All rules that match a token apply.
    pub rules: Vec<Rule>,
}

impl Identities {
    /// Parses the settings: issuers separated by `,`, and rules separated by `;`. Without issuers there is nothing to parse.
    ///
    /// # Errors
    /// What is wrong, with an example of what is accepted.
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

    /// The claim that identifies the people of an issuer. All rules of one issuer must name the same claim; otherwise one person
    /// could have two identities. The template's patterns cannot check this, and the tokens of other issuers must stay valid, so
    /// the function starts and refuses only the tokens of this issuer.
    fn apart(&self, issuer: &str) -> Result<&str, String> {
        if is_reserved(issuer) {
            return Err("cannot be taken: its issuer begins like the name of a token or a key, and needs another host".into());
        }
        let begins = |one: &str, other: &str| other.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let (own, place) = (provider(issuer), self.issuers.iter().position(|known| known == issuer));
        let others = self.issuers.iter().enumerate().filter(|(at, _)| Some(*at) != place).map(|(_, other)| provider(other));
        if let Some(other) = others.into_iter().find(|other| begins(own, other) || begins(other, own)) {
            return Err(format!(
                "cannot be taken: of its issuer and {other:?}, one begins with the other, and a subject of one could be called as one of the other is; \
                 leave one out"
            ));
        }
        let mut named = self.rules.iter().filter(|rule| rule.is_about(issuer)).map(|rule| rule.by.as_deref().unwrap_or(SUBJECT));
        let claim = named.next().unwrap_or(SUBJECT);
        if named.any(|other| other != claim) {
            return Err("cannot be taken: the rules of its issuer do not say by the same claim who it is, so one person could count as two; \
                        write the same by:<claim> in all of them, or in none"
                .into());
        }
        Ok(claim)
    }

    /// The person that an issuer's claims describe.
    ///
    /// # Errors
    /// What is wrong with the token, in words for its bearer.
    pub fn person(&self, issuer: &str, claims: &Value) -> Result<Person, String> {
        let claim = self.apart(issuer)?;
        let subject = match &claims[claim] {
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_u64() => number.to_string(),
            _ => String::new(),
        };
        match subject.chars().count() {
            0 if claim == SUBJECT => return Err("names no subject".into()),
            0 => return Err(format!("has no claim {claim}, which says here who it is")),
            1..=LONGEST if !subject.chars().any(char::is_control) => {}
            1..=LONGEST => return Err(format!("has control characters in its claim {claim}")),
            n => return Err(format!("has {n} characters in its claim {claim}: at most {LONGEST} are taken")),
        }
        let of = if claim == SUBJECT { String::new() } else { format!("{}#{claim}", claim.len()) };
        let id = sha256_hex(format!("{}#{issuer}{of}{subject}", issuer.len()).as_bytes());
        Ok(Person { known: of_person(issuer, &subject), subject, id })
    }

    /// All grants that these claims lead to.
    pub fn grants(&self, claims: &Value) -> Vec<Grant> {
        self.rules.iter().filter(|rule| rule.matches(claims)).map(|rule| rule.grant.clone()).collect()
    }
}

impl Rule {
    /// Parses one rule.
    ///
    /// # Errors
    /// What is wrong, with an example of what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            let text: String = text.chars().take(200).collect();
            format!("the rule {text:?} {why}: write it like repository=acme/shop,ref=refs/heads/main=>read,trigger@shop")
        };
        let (claims, grant) = text.split_once("=>").ok_or_else(|| wrong("has no =>"))?;
        let (by, claims): (Vec<&str>, Vec<&str>) =
            listed(claims, ',').partition(|claim| claim.starts_with(BY) && !claim.contains('='));
        let by: Vec<&str> = by.iter().map(|claim| &claim[BY.len()..]).collect();
        if by.len() > 1 || by.iter().any(|claim| claim.is_empty() || claim.contains(char::is_whitespace)) {
            return Err(wrong("does not name one claim behind by:"));
        }
        let claims = claims.into_iter().map(|claim| claim.split_once('='));
        let claims = claims.map(|claim| {
            claim.filter(|(name, value)| !name.is_empty() && !value.is_empty() && !value.contains(char::is_whitespace))
        });
        let claims: Option<Vec<_>> = claims.map(|claim| claim.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect();
        let claims = claims.filter(|claims| !claims.is_empty()).ok_or_else(|| wrong("does not begin with claim=value"))?;
        // It would match nothing, and nobody would be told why.
        if claims.iter().any(|(_, value)| value.strip_suffix('*').unwrap_or(value).contains('*')) {
            return Err(wrong("has a * that is not at the end of a value"));
        }
        let (scopes, projects) = grant.split_once('@').unwrap_or((grant, ""));
        let limited = grant.contains('@');
        let scopes: Result<Vec<Scope>, _> = listed(scopes, ',').map(Scope::parse).collect();
        let scopes = scopes.map_err(|error| wrong(&format!("has a scope that is none ({error})")))?;
        let projects: Result<Vec<ProjectName>, _> = listed(projects, ',').map(ProjectName::new).collect();
        let projects = projects.map_err(|error| wrong(&format!("has a project that is none ({error})")))?;
        if scopes.is_empty() || (limited && projects.is_empty()) {
            return Err(wrong("grants nothing"));
        }
        Ok(Self { claims, by: by.first().map(|claim| (*claim).to_owned()), grant: Grant { scopes, projects } })
    }

    /// Whether a token of this issuer can match the rule.
    fn is_about(&self, issuer: &str) -> bool {
        self.claims.iter().filter(|(name, _)| name == "iss").all(|(_, wanted)| is(&Value::from(issuer), wanted))
    }

    fn matches(&self, claims: &Value) -> bool {
        self.claims.iter().all(|(name, wanted)| match claims.get(name) {
            Some(Value::Array(several)) => several.iter().any(|one| is(one, wanted)),
            Some(one) => is(one, wanted),
            None => false,
        })
    }
}

/// Whether a claim has a value. Only strings and booleans are compared.
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

/// Whether the issuer runs on this machine, as in tests.
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
    fn a_person_with_two_subjects_is_one_if_the_rules_name_the_claim() {
        let known = |rules: &str| Identities::parse(GITHUB, "keelway", rules).unwrap().unwrap();
        let job =
            |branch: &str| json!({"sub": format!("repo:acme/shop:ref:{branch}"), "actor_id": "583231", "repository": "acme/shop"});
        let person = |rules: &str, branch: &str| known(rules).person(GITHUB, &job(branch)).unwrap();
        let (plain, named) = ("repository=acme/shop=>approve:*", "repository=acme/shop,by:actor_id=>approve:*");
        assert_ne!(person(plain, "a").known, person(plain, "b").known);
        assert_eq!(person(named, "a"), person(named, "b"));
        assert_eq!(person(named, "a").known, "token.actions.githubusercontent.com/583231");
        assert_ne!(person(named, "a").id, known(plain).person(GITHUB, &json!({"sub": "583231"})).unwrap().id);
        assert_eq!(known(named).person(GITHUB, &json!({"actor_id": 583_231})).unwrap().known, person(named, "a").known);
        assert_eq!(known(named).grants(&job("a"))[0].to_string(), "approve:*");
        let why = known(named).person(GITHUB, &json!({"sub": "x"})).unwrap_err();
        assert!(why.contains("actor_id"), "{why}");
        for rules in ["a=b,by:actor_id=>read;c=d=>trigger", "a=b,by:actor_id=>read;c=d,by:email=>trigger"] {
            assert!(known(rules).person(GITHUB, &job("a")).unwrap_err().contains("the same by:<claim>"), "{rules}");
        }
        for (issuers, rules, words) in [
            (GITHUB, "a=b,by:=>read", "one claim behind by:"),
            (GITHUB, "a=b,by:x,by:y=>read", "one claim behind by:"),
            (GITHUB, "by:x=>read", "does not begin with claim=value"),
        ] {
            let why = Identities::parse(issuers, "keelway", rules).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        for (issuers, of, words) in [
            ("https://a.test,https://a.test/b", "https://a.test", "begins with"),
            ("https://a.test,https://a.test/b", "https://a.test/b", "begins with"),
            ("https://a.test,https://a.test/", "https://a.test", "begins with"),
            ("https://key:1", "https://key:1", "another host"),
        ] {
            let known = Identities::parse(issuers, "keelway", &format!("iss={of}=>read")).unwrap().unwrap();
            let why = known.person(of, &json!({"sub": "ann"})).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        let two = "iss=https://a.test,by:email=>read;iss=https://b.test=>read";
        let two = Identities::parse("https://a.test,https://b.test", "keelway", two).unwrap().unwrap();
        let claims = json!({"sub": "ann", "email": "ann"});
        assert_eq!(two.person("https://a.test", &claims).unwrap().known, "a.test/ann");
        assert_eq!(two.person("https://b.test", &claims).unwrap().known, "b.test/ann");
    }

    #[test]
    fn a_subject_is_taken_whole_or_not_at_all() {
        let known = Identities::parse(GITHUB, "keelway", "a=b=>read").unwrap().unwrap();
        let person = |subject: String| known.person(GITHUB, &json!({"sub": subject}));
        assert_eq!(person("x".repeat(200)).unwrap().subject.len(), 200);
        for (subject, words) in [("x".repeat(201), "201 characters"), ("a\u{0}nn".into(), "control"), (String::new(), "no subject")]
        {
            assert!(person(subject).unwrap_err().contains(words), "{words}");
        }
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

    #[test]
    fn a_star_is_at_the_end_of_a_value() {
        for wrong in ["email=*@acme.test=>read", "repository=acme/*/shop=>read", "sub=**=>read"] {
            assert!(Rule::parse(wrong).unwrap_err().contains("not at the end"), "{wrong}");
        }
        assert!(Rule::parse("repository=acme/*=>read").is_ok() && Rule::parse("groups=*=>read").is_ok());
    }

    #[test]
    fn claims_that_are_true_or_false_are_compared_as_these_words() {
        let known = Identities::parse(GITHUB, "keelway", "verified=true=>read;verified=false=>trigger").unwrap().unwrap();
        let told =
            |verified: Value| known.grants(&json!({"verified": verified})).iter().map(ToString::to_string).collect::<String>();
        assert_eq!((told(json!(true)), told(json!(false)), told(json!(1))), ("read".into(), "trigger".into(), String::new()));
    }

    #[test]
    fn the_id_of_a_person_stays_what_it_was() {
        let known = |rules: &str| Identities::parse(GITHUB, "keelway", rules).unwrap().unwrap();
        let id = |rules: &str, claims: Value| known(rules).person(GITHUB, &claims).unwrap().id;
        let hash = |text: String| sha256_hex(text.as_bytes());
        assert_eq!(id("a=b=>read", json!({"sub": "ann"})), hash(format!("{}#{GITHUB}ann", GITHUB.len())));
        assert_eq!(id("a=b,by:actor_id=>read", json!({"actor_id": "7"})), hash(format!("{}#{GITHUB}8#actor_id7", GITHUB.len())));
    }

    #[test]
    fn a_number_names_a_person_only_if_it_is_written_in_one_way() {
        let known = Identities::parse(GITHUB, "keelway", "a=b,by:actor_id=>read").unwrap().unwrap();
        for number in [json!(-1), json!(1.5), json!(1e3)] {
            let why = known.person(GITHUB, &json!({"actor_id": number})).unwrap_err();
            assert!(why.contains("has no claim actor_id"), "{why}");
        }
    }

    #[test]
    fn by_names_a_claim_only_without_a_value() {
        let rule = Rule::parse("by:x=y=>read").unwrap();
        assert_eq!((rule.claims, rule.by), (vec![("by:x".to_owned(), "y".to_owned())], None));
        assert!(Rule::parse("sub=x,repository=>read").unwrap_err().contains("claim=value"));
    }

    #[test]
    fn a_provider_on_this_machine_needs_no_https() {
        assert!(Identities::parse("http://127.0.0.1:8080", "keelway", "").is_ok());
        assert!(Identities::parse("http://127.0.0.1.example.org", "keelway", "").is_err());
    }
}
