//! The provider at which people sign in to the page.

use keelway_domain::access::Identities;

/// An issuer among those whose tokens are accepted, and the origins that the page may talk to for it: its own, and those of its
/// endpoints if they are elsewhere. Without one, people sign in with a token of Keelway's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignIn {
    issuer: Option<String>,
    origins: Vec<String>,
}

impl SignIn {
    /// Parses `https://issuer.example https://other-origin.example …`: the issuer, and further origins. Empty: none.
    ///
    /// # Errors
    /// It is none of the issuers whose tokens are accepted, or something is no origin.
    pub fn parse(text: &str, known: Option<&Identities>) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let Some(issuer) = words.next() else { return Ok(Self::default()) };
        let accepted = known.map(|known| known.issuers.as_slice()).unwrap_or_default();
        if !accepted.iter().any(|one| one == issuer) {
            return Err(format!("{issuer:?} is none of the accepted issuers ({}): add it to them", accepted.join(", ")));
        }
        let origins = std::iter::once(issuer)
            .chain(words)
            .map(|url| origin(url).ok_or_else(|| format!("{url:?} is no origin: write it as https://login.example.com")));
        Ok(Self { issuer: Some(issuer.to_owned()), origins: origins.collect::<Result<_, _>>()? })
    }

    /// The issuer.
    pub fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// Whom the page may talk to.
    pub fn origins(&self) -> &[String] {
        &self.origins
    }
}

/// The origin of an address; only characters that may stand in a policy.
fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "https" | "http"))?;
    let host = rest.split('/').next().filter(|host| !host.is_empty())?;
    let fine = host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']'));
    fine.then(|| format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_and_its_origins() {
        let known = Identities::parse("https://id.example.com/realm", "keelway", "").unwrap();
        let parse = |text: &str| SignIn::parse(text, known.as_ref());
        assert_eq!(parse("").unwrap(), SignIn::default());
        let two = parse("https://id.example.com/realm https://tokens.example.com").unwrap();
        assert_eq!(two.issuer(), Some("https://id.example.com/realm"));
        assert_eq!(two.origins(), ["https://id.example.com", "https://tokens.example.com"]);
        for wrong in
            ["https://other.example.com", "https://id.example.com/realm *", "https://id.example.com/realm https://a;script-src"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
