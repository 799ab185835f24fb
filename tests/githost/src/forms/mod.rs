//! The REST forms of the four hosts, over one store.

pub(crate) mod bitbucket;
pub(crate) mod bitbucket_files;
pub(crate) mod bitbucket_pulls;
pub(crate) mod gitea;
pub(crate) mod gitea_files;
pub(crate) mod gitea_objects;
pub(crate) mod gitea_pulls;
pub(crate) mod gitea_shapes;
pub(crate) mod github;
pub(crate) mod github_files;
pub(crate) mod github_git;
pub(crate) mod github_pulls;
pub(crate) mod gitlab;
pub(crate) mod gitlab_files;
pub(crate) mod gitlab_pulls;

use crate::http::{Answer, Request};
use crate::model::{Form, Pull, Repository, Scope, Token};
use crate::refused::Refused;
use crate::store::Store;
use serde::Deserialize;

/// The answer of a form, or its refusal.
pub(crate) type Answered = Result<Answer, Refused>;

/// A request without parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// The commit or branch of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct At {
    pub r#ref: Option<String>,
}

/// A request to a form.
pub(crate) struct Call<'a> {
    pub store: &'a mut Store,
    pub request: &'a Request,
    /// The decoded segments after the form's base.
    pub path: Vec<String>,
    /// The token of the request. `None`: it has none.
    pub token: Option<Token>,
}

impl Call<'_> {
    /// The repository, if the token has the scope for it, and the token's user.
    pub fn repository(&mut self, owner: &str, name: &str, scope: Scope) -> Result<(&mut Repository, String), Refused> {
        self.store.seen(self.token.as_ref(), owner, name, scope)
    }

    /// The token's user, if the token has the scope.
    pub fn user(&self, scope: Scope) -> Result<&Token, Refused> {
        let token = self.token.as_ref().ok_or(Refused::Anonymous)?;
        if token.scopes.contains(&scope) { Ok(token) } else { Err(Refused::Scope(scope)) }
    }
}

/// Answers a request to a form: finds the user, handles the request, and renders the result in the form's format.
pub(crate) fn answer(form: Form, store: &mut Store, request: &Request, path: Vec<String>) -> (Answer, Option<Refused>) {
    let secret = match form {
        Form::GitHub | Form::Gitea => request.secret(&["token", "bearer"]),
        Form::GitLab => request.header("private-token").map(str::to_owned).or_else(|| request.secret(&["bearer"])),
        Form::Bitbucket => request.secret(&["bearer"]),
    };
    let user = |token: &Token| token.user.clone();
    let known = secret.as_ref().map(|secret| store.tokens.iter().find(|token| token.token == *secret).cloned());
    let given = request.headers.contains_key("authorization") || request.headers.contains_key("private-token");
    let named = known.as_ref().and_then(|token| token.as_ref().map(user));
    let answered = match known {
        Some(None) => Err(Refused::Token),
        None if given => Err(Refused::Token),
        known => {
            let mut call = Call { store, request, path, token: known.flatten() };
            match form {
                Form::GitHub => github::answer(&mut call),
                Form::Gitea => gitea::answer(&mut call),
                Form::GitLab => gitlab::answer(&mut call),
                Form::Bitbucket => bitbucket::answer(&mut call),
            }
        }
    };
    let (answer, refused) = match answered {
        Ok(answer) => (answer, None),
        Err(refused) => {
            let answer = match form {
                Form::GitHub => github::refuse(request, &refused),
                Form::Gitea => gitea::refuse(request, &refused),
                Form::GitLab => gitlab::refuse(request, &refused),
                Form::Bitbucket => bitbucket::refuse(&refused),
            };
            (answer, Some(refused))
        }
    };
    let answer = match form {
        Form::GitHub => github::finish(request, answer),
        Form::GitLab => answer.tagged(request, true),
        Form::Gitea => gitea::finish(answer),
        Form::Bitbucket => match named {
            Some(user) => answer.with("x-ausername", user),
            None => answer,
        },
    };
    (answer, refused)
}

/// The address of a pull request's page for people.
pub(crate) fn page_of(form: Form, origin: &str, repository: &Repository, pull: &Pull) -> String {
    let (owner, name, number) = (&repository.owner, &repository.name, pull.number);
    match form {
        Form::GitHub => format!("{origin}/{owner}/{name}/pull/{number}"),
        Form::Gitea => format!("{origin}/{owner}/{name}/pulls/{number}"),
        Form::GitLab => format!("{origin}/{owner}/{name}/-/merge_requests/{number}"),
        Form::Bitbucket => format!("{origin}/projects/{owner}/repos/{name}/pull-requests/{number}"),
    }
}
