//! Hosts, repositories, and the addresses of the hosts' APIs.

use keelway_domain::border::{Resource, ResourceKind};
use keelway_domain::condition::Condition;
use keelway_domain::promotions::{Failure, Retry};
use keelway_outgoing::Url;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt;
use std::str::FromStr;

/// What stands for itself in the path and the query of a page's address: subgroups and branches have slashes.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The kind of API that a host has.
#[expect(missing_docs, reason = "the names of the variants say what they are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Includes GitHub Enterprise.
    GitHub,
    /// Includes Forgejo.
    Gitea,
    GitLab,
    /// Includes Bitbucket Data Center.
    BitbucketServer,
}

impl Form {
    /// All kinds.
    pub const ALL: [Form; 4] = [Self::GitHub, Self::Gitea, Self::GitLab, Self::BitbucketServer];

    /// The name in the `type` of a pipeline.
    pub fn name(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::Gitea => "gitea",
            Self::GitLab => "gitlab",
            Self::BitbucketServer => "bitbucket-server",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a type of host, the URL of a repository, or the base of an API is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The type is missing.
    #[error("the type of the git host is empty: write github, gitea, gitlab or bitbucket-server")]
    NoForm,
    /// The type is unknown.
    #[error("the type {0:?} of git host is not supported: write github, gitea, gitlab or bitbucket-server")]
    UnknownForm(String),
    /// The URL is missing.
    #[error("the URL is empty: write https://<host>/<owner>/<repository>")]
    Empty,
    /// The text is not a URL.
    #[error("{0:?} is not a URL: write https://<host>/<owner>/<repository>")]
    NotAUrl(String),
    /// The scheme is not https.
    #[error("{0:?} is refused: only https is supported (http on a loopback address only)")]
    NotHttps(String),
    /// The URL has a user, password, query or fragment. The message does not repeat it, because it may contain a password.
    #[error("the URL has a user, a password, a query or a fragment: remove it; credentials belong into the secret")]
    Extras,
    /// The path does not name a repository.
    #[error("{url:?} does not name a repository: write {expected}")]
    NoRepository {
        /// The invalid URL.
        url: String,
        /// The expected form of the path.
        expected: &'static str,
    },
    /// The base of Bitbucket's API has another ending.
    #[error("{0:?} is not the base of a Bitbucket Server API: write https://<host>/rest/api/1.0 (or latest)")]
    NotRestApi(String),
}

impl From<AddressError> for Failure {
    fn from(error: AddressError) -> Self {
        Self { why: Condition::new("UnusableUrl", error.to_string()), retry: Retry::Patience }
    }
}

impl FromStr for Form {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::NoForm);
        }
        Self::ALL.into_iter().find(|form| form.name() == text).ok_or_else(|| AddressError::UnknownForm(text.to_owned()))
    }
}

/// A repository, by its URL in a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Repository {
    form: Form,
    url: String,
    origin: String,
    host: String,
    /// The path before the repository's own path, if the host is not at the root of its domain; without a trailing slash.
    prefix: String,
    /// The owner, or the group with its subgroups, or the project.
    owner: String,
    name: String,
}

impl Repository {
    /// Parses `https://<host>/<owner>/<repository>`, with or without `.git`: for GitLab with subgroups, for Bitbucket Server
    /// `/scm/<project>/<repository>` or `/projects/<project>/repos/<repository>`.
    pub fn parse(form: Form, text: &str) -> Result<Self, AddressError> {
        let url = checked(text)?;
        let segments: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
        let decoded: Option<Vec<String>> = segments.iter().map(|segment| decode(segment)).collect();
        let odd = |segment: &String| matches!(segment.as_str(), "." | "..") || segment.contains(['/', '\\']);
        let split = decoded.filter(|segments| !segments.iter().any(odd)).and_then(|segments| split(form, &segments));
        let expected = match form {
            Form::GitHub | Form::Gitea => "https://<host>/<owner>/<repository>",
            Form::GitLab => "https://<host>/<group>/<repository>, with subgroups if there are any",
            Form::BitbucketServer => {
                "https://<host>/scm/<project>/<repository> or https://<host>/projects/<project>/repos/<repository>"
            }
        };
        let Some((prefix, owner, name)) = split else {
            return Err(AddressError::NoRepository { url: text.to_owned(), expected });
        };
        let origin = url.origin().ascii_serialization();
        let host = origin.split_once("://").map_or(origin.as_str(), |(_, host)| host).to_owned();
        Ok(Self { form, url: text.trim_end_matches('/').to_owned(), origin, host, prefix, owner, name })
    }

    /// The kind of the host's API.
    pub fn form(&self) -> Form {
        self.form
    }
    /// The URL as given, without a trailing slash.
    pub fn url(&self) -> &str {
        &self.url
    }
    /// The name of the host, with its port if that is not the default.
    pub fn host(&self) -> &str {
        &self.host
    }
    /// The owner, or the group with its subgroups, or the project.
    pub fn owner(&self) -> &str {
        &self.owner
    }
    /// The name of the repository.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The repository as policies list it: `https://<host>/<owner>/<repository>`. A path before the owner is left out, because the
    /// API of a registered host does not see it.
    pub fn resource(&self) -> Resource {
        Resource::named(ResourceKind::Repositories, format!("{}/{}/{}", self.origin, self.owner, self.name))
    }
    /// Where people see what a branch or commit has that another one has not.
    pub fn comparison(&self, from: &str, to: &str) -> String {
        let Self { form, origin, prefix, owner, name, .. } = self;
        let [owner, name, from, to] = [owner, name, from, to].map(|part| utf8_percent_encode(part, PART).to_string());
        match form {
            Form::GitHub | Form::Gitea => format!("{origin}{prefix}/{owner}/{name}/compare/{from}...{to}"),
            Form::GitLab => format!("{origin}/{owner}/{name}/-/compare/{from}...{to}"),
            Form::BitbucketServer => {
                format!("{origin}{prefix}/projects/{owner}/repos/{name}/compare/commits?targetBranch={from}&sourceBranch={to}")
            }
        }
    }
    /// Whether two URLs name the same repository, as far as their texts show: hosts answer with URLs of their own.
    pub fn same(&self, other: &Repository) -> bool {
        self.form == other.form
            && self.host == other.host
            && self.owner.eq_ignore_ascii_case(&other.owner)
            && self.name.eq_ignore_ascii_case(&other.name)
    }
}

impl fmt::Display for Repository {
    /// `owner/name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// The prefix, owner and name in the segments of a path.
fn split(form: Form, segments: &[String]) -> Option<(String, String, String)> {
    let (last, before) = segments.split_last()?;
    let name = last.strip_suffix(".git").unwrap_or(last).to_owned();
    let prefix = |segments: &[String]| segments.iter().map(|segment| format!("/{segment}")).collect::<String>();
    let (prefix, owner) = match form {
        Form::GitHub => match before {
            [owner] => (String::new(), owner.clone()),
            _ => return None,
        },
        Form::Gitea => {
            let (owner, before) = before.split_last()?;
            (prefix(before), owner.clone())
        }
        Form::GitLab if !before.is_empty() => (String::new(), before.join("/")),
        Form::GitLab => return None,
        Form::BitbucketServer => match before {
            [before @ .., scm, project] if scm == "scm" => (prefix(before), project.clone()),
            [before @ .., projects, project, repos] if projects == "projects" && repos == "repos" => {
                (prefix(before), project.clone())
            }
            [before @ .., users, user, repos] if users == "users" && repos == "repos" => (prefix(before), format!("~{user}")),
            _ => return None,
        },
    };
    (!name.is_empty() && !owner.is_empty()).then_some((prefix, owner, name))
}

/// The address of a host's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Api {
    pub(crate) form: Form,
    /// The base, without a trailing slash.
    pub(crate) base: String,
}

impl Api {
    /// Derives the address from a repository's URL: `https://api.github.com`, `https://<host>/api/v3` for GitHub Enterprise,
    /// `https://api.<name>.ghe.com` for GitHub with data residency, `/api/v1` for Gitea, `/api/v4` for GitLab and `/rest/api/1.0`
    /// for Bitbucket Server.
    pub fn of(repository: &Repository) -> Self {
        let Repository { form, origin, host, prefix, .. } = repository;
        let base = match form {
            Form::GitHub if matches!(host.as_str(), "github.com" | "www.github.com") => "https://api.github.com".to_owned(),
            Form::GitHub if host.ends_with(".ghe.com") => format!("https://api.{host}"),
            Form::GitHub => format!("{origin}/api/v3"),
            Form::Gitea => format!("{origin}{prefix}/api/v1"),
            Form::GitLab => format!("{origin}/api/v4"),
            Form::BitbucketServer => format!("{origin}{prefix}/rest/api/1.0"),
        };
        Self { form: *form, base }
    }

    /// The address in a registered host.
    pub fn at(form: Form, base: &str) -> Result<Self, AddressError> {
        let url = checked(base)?;
        let base = url.as_str().trim_end_matches('/').to_owned();
        let version = base.rsplit_once("/rest/api/").map(|(_, version)| version);
        if form == Form::BitbucketServer && !version.is_some_and(|version| !version.is_empty() && !version.contains('/')) {
            return Err(AddressError::NotRestApi(base));
        }
        Ok(Self { form, base })
    }

    /// The kind of the host's API.
    pub fn form(&self) -> Form {
        self.form
    }
    /// The base, without a trailing slash.
    pub fn base(&self) -> &str {
        &self.base
    }
}

/// A URL to which requests may be sent.
fn checked(text: &str) -> Result<Url, AddressError> {
    if text.trim().is_empty() {
        return Err(AddressError::Empty);
    }
    let url = Url::parse(text).map_err(|_| AddressError::NotAUrl(unsaid(text)))?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(AddressError::Extras);
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(AddressError::NotAUrl(text.to_owned()));
    }
    if !permitted(&url) {
        return Err(AddressError::NotHttps(text.to_owned()));
    }
    Ok(url)
}

/// A text that is not a URL, without a password that may precede an `@`.
fn unsaid(text: &str) -> String {
    text.rsplit_once('@').map_or(text.to_owned(), |(_, rest)| format!("…@{rest}"))
}

/// `https`, or `http` on a loopback address. The guard decides which addresses are reached.
fn permitted(url: &Url) -> bool {
    url.scheme() == "https" || url.scheme() == "http" && is_loopback(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost"
        || host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || host.trim_matches(['[', ']']).parse::<std::net::Ipv6Addr>().is_ok_and(|address| address.is_loopback())
}

fn decode(segment: &str) -> Option<String> {
    percent_encoding::percent_decode_str(segment).decode_utf8().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(form: Form, url: &str) -> (String, String) {
        let repository = Repository::parse(form, url).unwrap();
        (Api::of(&repository).base, repository.to_string())
    }

    #[test]
    fn comparisons_are_where_each_host_has_them() {
        let cases = [
            (
                Form::GitHub,
                "https://github.com/acme/shop.git",
                "https://github.com/acme/shop/compare/main...keelway/shop%23staging",
            ),
            (
                Form::Gitea,
                "https://acme.test/git/acme/shop",
                "https://acme.test/git/acme/shop/compare/main...keelway/shop%23staging",
            ),
            (
                Form::GitLab,
                "https://gitlab.com/acme/teams/shop",
                "https://gitlab.com/acme/teams/shop/-/compare/main...keelway/shop%23staging",
            ),
            (
                Form::BitbucketServer,
                "https://acme.test/scm/ACME/shop.git",
                "https://acme.test/projects/ACME/repos/shop/compare/commits?targetBranch=main&sourceBranch=keelway/shop%23staging",
            ),
        ];
        for (form, url, expected) in cases {
            assert_eq!(Repository::parse(form, url).unwrap().comparison("main", "keelway/shop#staging"), expected);
        }
    }

    #[test]
    fn api_bases_are_derived() {
        let cases = [
            (Form::GitHub, "https://github.com/acme/shop.git", "https://api.github.com", "acme/shop"),
            (Form::GitHub, "https://github.com/acme/shop/", "https://api.github.com", "acme/shop"),
            (Form::GitHub, "https://git.acme.test/acme/shop", "https://git.acme.test/api/v3", "acme/shop"),
            (Form::GitHub, "https://acme.ghe.com/acme/shop", "https://api.acme.ghe.com", "acme/shop"),
            (Form::Gitea, "https://codeberg.org/acme/shop", "https://codeberg.org/api/v1", "acme/shop"),
            (Form::Gitea, "https://acme.test:3000/git/acme/shop", "https://acme.test:3000/git/api/v1", "acme/shop"),
            (Form::Gitea, "http://127.0.0.1:3000/acme/shop", "http://127.0.0.1:3000/api/v1", "acme/shop"),
            (Form::GitLab, "https://gitlab.com/a/b/c/shop.git", "https://gitlab.com/api/v4", "a/b/c/shop"),
            (Form::GitLab, "https://gitlab.acme.test/a/shop", "https://gitlab.acme.test/api/v4", "a/shop"),
            (Form::BitbucketServer, "https://bb.test/scm/AC/shop.git", "https://bb.test/rest/api/1.0", "AC/shop"),
            (Form::BitbucketServer, "https://bb.test/projects/AC/repos/shop", "https://bb.test/rest/api/1.0", "AC/shop"),
            (Form::BitbucketServer, "https://bb.test/x/scm/~me/shop", "https://bb.test/x/rest/api/1.0", "~me/shop"),
            (Form::BitbucketServer, "https://bb.test/users/me/repos/shop", "https://bb.test/rest/api/1.0", "~me/shop"),
        ];
        for (form, url, api, path) in cases {
            assert_eq!(base(form, url), (api.to_owned(), path.to_owned()), "{url}");
        }
    }

    #[test]
    fn what_is_no_repository_is_refused_for_its_own_reason() {
        let refused = |form: Form, url: &str| Repository::parse(form, url).unwrap_err().to_string();
        assert!(refused(Form::GitHub, "").contains("empty"));
        assert!(refused(Form::GitHub, "git@github.com:acme/shop").contains("not a URL"));
        assert!(refused(Form::GitHub, "http://github.com/acme/shop").contains("only https"));
        assert!(refused(Form::GitHub, "ssh://github.com/acme/shop").contains("only https"));
        assert!(refused(Form::GitHub, "http://127.0.0.1.evil.test/acme/shop").contains("only https"));
        for url in ["https://github.com/acme", "https://github.com/a/b/c", "https://github.com/", "https://github.com/a/..%2fb"] {
            assert!(refused(Form::GitHub, url).contains("does not name a repository"), "{url}");
        }
        assert!(refused(Form::GitLab, "https://gitlab.com/shop").contains("does not name"));
        assert!(refused(Form::BitbucketServer, "https://bb.test/AC/shop").contains("/scm/"));
        let message = refused(Form::GitHub, "https://me:hunter2@github.com/acme/shop");
        assert!(message.contains("secret") && !message.contains("hunter2"), "{message}");
        let message = refused(Form::GitHub, "https://me:hunter2@git hub.com/acme/shop");
        assert!(!message.contains("hunter2"), "{message}");
    }

    #[test]
    fn registered_bases_are_checked() {
        assert_eq!(Api::at(Form::Gitea, "https://acme.test/git/api/v1/").unwrap().base(), "https://acme.test/git/api/v1");
        assert!(matches!(Api::at(Form::Gitea, "http://acme.test/api/v1"), Err(AddressError::NotHttps(_))));
        assert!(Api::at(Form::Gitea, "http://localhost:3000/api/v1").is_ok());
        assert!(Api::at(Form::Gitea, "http://[::1]:3000/api/v1").is_ok());
        assert!(matches!(Api::at(Form::BitbucketServer, "https://bb.test/rest"), Err(AddressError::NotRestApi(_))));
        assert!(Api::at(Form::BitbucketServer, "https://bb.test/rest/api/latest").is_ok());
    }

    #[test]
    fn forms_are_read_as_weave_writes_them() {
        for form in Form::ALL {
            assert_eq!(form.name().parse::<Form>(), Ok(form));
        }
        assert_eq!("".parse::<Form>(), Err(AddressError::NoForm));
        assert!("azure-devops".parse::<Form>().unwrap_err().to_string().contains("bitbucket-server"));
    }
}
