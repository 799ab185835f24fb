//! The provider at which people sign in to the page.

use keelway_domain::access::Identities;

/// An issuer among those whose tokens are accepted, and the origins that the page may talk to for it: its own, and those of its
/// endpoints if they are elsewhere. Without one, people sign in with a token of Keelway's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignIn {
    issuer: Option<String>,
    origins: Vec<String>,
    scopes: Vec<String>,
    wrong: Option<String>,
}

/// What the page asks every provider for.
const SCOPES: &str = "openid email profile";
/// The prefix of further scopes.
const SCOPE: &str = "scope:";

impl SignIn {
    /// Parses `https://issuer.example,https://other-origin.example,scope:groups,…`: the issuer, and further origins and scopes; a
    /// blank separates them, too. Empty: none.
    ///
    /// # Errors
    /// It is none of the issuers whose tokens are accepted, or something is no origin.
    pub fn parse(text: &str, known: Option<&Identities>) -> Result<Self, String> {
        let mut words = text.split([',', ' ']).filter(|word| !word.is_empty());
        let Some(issuer) = words.next() else { return Ok(Self::default()) };
        let accepted = known.map(|known| known.issuers.as_slice()).unwrap_or_default();
        if !accepted.iter().any(|one| one == issuer) {
            return Err(format!("{issuer:?} is none of the accepted issuers: write it in PageSignIn as in OidcIssuers"));
        }
        let (scopes, urls): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with(SCOPE));
        let scopes = scopes.iter().map(|scope| scope[SCOPE.len()..].to_owned()).filter(|scope| !scope.is_empty()).collect();
        let origins = std::iter::once(issuer)
            .chain(urls)
            .map(|url| origin(url).ok_or_else(|| format!("{url:?} is no origin: write it as https://login.example.com")));
        Ok(Self { issuer: Some(issuer.to_owned()), origins: origins.collect::<Result<_, _>>()?, scopes, wrong: None })
    }

    /// As [`parse`](Self::parse). What is wrong is told to those who open the page: the API has to start all the same, because the
    /// template's pattern cannot compare two parameters.
    pub fn told(text: &str, known: Option<&Identities>) -> Self {
        Self::parse(text, known).unwrap_or_else(|why| Self { wrong: Some(why), ..Self::default() })
    }

    /// Why people cannot sign in at a provider although one is named.
    pub fn wrong(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    /// The issuer.
    pub fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// What the page asks the provider for, with blanks between.
    pub fn scope(&self) -> String {
        std::iter::once(SCOPES).chain(self.scopes.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }

    /// Whom the page may talk to.
    pub fn origins(&self) -> &[String] {
        &self.origins
    }
}

/// The origin of an address, as browsers write it; only characters that may stand in a policy.
fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "https" | "http"))?;
    let host = rest.split('/').next().filter(|host| !host.is_empty())?;
    let fine = host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']'));
    let host = if scheme == "https" { host.strip_suffix(":443").unwrap_or(host) } else { host };
    fine.then(|| format!("{scheme}://{}", host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_and_its_origins() {
        let known = Identities::parse("https://id.example.com/realm", "keelway", "").unwrap();
        let parse = |text: &str| SignIn::parse(text, known.as_ref());
        assert_eq!(parse("").unwrap(), SignIn::default());
        for text in [
            "https://id.example.com/realm https://tokens.example.com:8443",
            "https://id.example.com/realm,https://tokens.example.com:8443",
        ] {
            let two = parse(text).unwrap();
            assert_eq!(two.issuer(), Some("https://id.example.com/realm"));
            assert_eq!(two.origins(), ["https://id.example.com", "https://tokens.example.com:8443"]);
        }
        assert_eq!(
            parse("https://id.example.com/realm,https://Tokens.example.com:443").unwrap().origins()[1],
            "https://tokens.example.com"
        );
        assert_eq!(parse("https://id.example.com/realm").unwrap().scope(), "openid email profile");
        let more = parse("https://id.example.com/realm,scope:groups,https://tokens.example.com,scope:urn:acme:roles").unwrap();
        assert_eq!((more.scope().as_str(), more.origins().len()), ("openid email profile groups urn:acme:roles", 2));
        for wrong in
            ["https://other.example.com", "https://id.example.com/realm *", "https://id.example.com/realm https://a;script-src"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
            let told = SignIn::told(wrong, known.as_ref());
            assert_eq!((told.issuer(), told.origins().len(), told.wrong()), (None, 0, parse(wrong).err().as_deref()), "{wrong}");
        }
    }
}
