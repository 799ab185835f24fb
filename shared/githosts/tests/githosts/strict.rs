//! The client against the strict host of the tests: real repositories, real merges, and no request that the real host would not
//! take.

use crate::here;
use crate::recorded::were_recorded;
use keelway_githost::{Action, Fault, Method, NewRepository, Options, Scope, Token};
use keelway_githosts::{
    Api, Change, Closed, Credentials, Form, Host, HostError, Kind, Merge, Proposed, Repository, Request, State,
};

pub(crate) const REPOSITORY: &str = "shop/config";
const FILE: &str = "# carts\r\nimage: 'carts:1.4.0'   # {\"$promotion\": \"shop:carts:prod\"}\r\n---\nother: \"1.0\" # {\"$promotion\": \"shop:other:prod\"}\nno: newline at the end";
const SECOND: &str = "a:\n  @\n  tag: v1\n";

pub(crate) struct Scene {
    pub(crate) server: keelway_githost::Host,
    pub(crate) client: Host,
    repository: Repository,
    form: keelway_githost::Form,
    _directory: tempfile::TempDir,
}

fn client(repository: &Repository, token: &str) -> Host {
    Host::new(&Api::of(repository), &Credentials::parse(&format!(r#"{{"token": "{token}"}}"#)).unwrap(), &here()).unwrap()
}

fn at(server: &keelway_githost::Host, form: Form, repository: &str) -> Repository {
    let scm = if form == Form::BitbucketServer { "scm/" } else { "" };
    Repository::parse(form, &format!("{}/{scm}{repository}.git", server.url())).unwrap()
}

pub(crate) fn scene(form: Form) -> Scene {
    let second = SECOND.replace('@', "# {\"$promotion\": \"shop:carts:prod\"}");
    scene_of(form, &[("prod/carts.yaml", FILE), ("prod/more.yml", second.as_str()), ("README.md", FILE)])
}

fn scene_of(form: Form, files: &[(&str, &str)]) -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let server = keelway_githost::Host::start(Options::new(directory.path(), "secret")).unwrap();
    server.people().create(REPOSITORY, files).unwrap();
    let repository = at(&server, form, REPOSITORY);
    let client = client(&repository, "secret");
    let form = match form {
        Form::GitHub => keelway_githost::Form::GitHub,
        Form::Gitea => keelway_githost::Form::Gitea,
        Form::GitLab => keelway_githost::Form::GitLab,
        Form::BitbucketServer => keelway_githost::Form::Bitbucket,
    };
    Scene { server, client, repository, form, _directory: directory }
}

impl Scene {
    pub(crate) fn change(&self, n: usize) -> Change {
        Change {
            repository: self.repository.clone(),
            base: "main".into(),
            head: format!("promotion/prod/{n:04}"),
            marker: "shop:carts:prod".into(),
            version: format!("carts:2.{n}"),
            title: format!("Promote shop/carts in prod to carts:2.{n}"),
            body: "!!! DO NOT EDIT !!!".into(),
            message: "Promote".into(),
            first: false,
        }
    }

    fn text(&self, revision: &str, path: &str) -> String {
        String::from_utf8(self.server.people().file(REPOSITORY, revision, path).unwrap()).unwrap()
    }

    /// The commit that a branch with our commits begins at: one commit, or on Bitbucket Server one for each of the two files.
    fn parent(&self, commit: &str) -> String {
        let commit = if self.form == keelway_githost::Form::Bitbucket { format!("{commit}~1") } else { commit.to_owned() };
        let directory = self.server.people().git_directory(REPOSITORY).unwrap();
        let out =
            std::process::Command::new("git").arg("--git-dir").arg(directory).args(["log", "-1", "--format=%P", &commit]).output();
        String::from_utf8(out.unwrap().stdout).unwrap().trim().to_owned()
    }

    fn tip(&self, branch: &str) -> Option<String> {
        let branches = self.server.people().branches(REPOSITORY).unwrap();
        branches.into_iter().find(|(name, _)| name == branch).map(|(_, commit)| commit)
    }

    pub(crate) async fn opened(&self, n: usize) -> Request {
        match self.client.propose(&self.change(n)).await.unwrap() {
            Proposed::Opened(request) => request,
            other => panic!("{other:?}"),
        }
    }

    /// As it is now.
    async fn merge(&self, number: u64, head: &str) -> Result<Merge, HostError> {
        let request = self.client.get(&self.repository, number).await?.unwrap();
        self.client.merge(&self.repository, &request, head).await
    }

    /// GitHub finds it out after it was first asked.
    async fn mergeable(&self, number: u64) -> bool {
        for _ in 0..20 {
            let request = self.client.get(&self.repository, number).await.unwrap().unwrap();
            assert_eq!(request.state, State::Open);
            if let Some(mergeable) = request.mergeable {
                return mergeable;
            }
        }
        panic!("the host does not say whether {number} can be merged");
    }

    #[track_caller]
    fn clean(&self) {
        let violations = self.server.violations();
        assert!(violations.is_empty(), "{violations:?}");
        let calls = self.server.calls();
        assert!(calls.iter().all(|call| call.form == self.form));
        if self.form == keelway_githost::Form::Gitea {
            were_recorded(&calls);
        }
    }
}

#[tokio::test]
async fn a_promotion_is_opened_found_listed_and_merged() {
    for form in Form::ALL {
        let scene = scene(form);
        let main = scene.tip("main").unwrap();
        let request = scene.opened(1).await;
        assert_eq!(scene.tip("promotion/prod/0001").as_deref(), Some(request.head.as_str()));
        assert_eq!(scene.parent(&request.head), main, "one commit on the base");
        assert_eq!(scene.text(&request.head, "prod/carts.yaml"), FILE.replace("carts:1.4.0", "carts:2.1"));
        assert!(scene.text(&request.head, "prod/more.yml").contains("\n  tag: carts:2.1\n"));
        assert_eq!(scene.text(&request.head, "README.md"), FILE);
        let pull = scene.server.people().pull(REPOSITORY, request.number).unwrap();
        assert_eq!((pull.title.as_str(), pull.body.as_str()), ("Promote shop/carts in prod to carts:2.1", "!!! DO NOT EDIT !!!"));

        let writes = scene.server.writes();
        let Proposed::Found(found) = scene.client.propose(&scene.change(1)).await.unwrap() else { panic!("not found") };
        assert_eq!((found.number, &found.head, &found.state), (request.number, &request.head, &State::Open));
        let look = scene.client.list(&scene.repository, &[request.number], None).await.unwrap();
        assert_eq!(look.requests.as_ref().unwrap().iter().map(|request| request.number).collect::<Vec<_>>(), [request.number]);
        if look.mark.is_some() {
            let again = scene.client.list(&scene.repository, &[], look.mark.as_deref()).await.unwrap();
            // Gitea has no tags: its list is read once more.
            assert!(form == Form::Gitea || again.requests.is_none(), "{form}");
            assert_eq!(again.mark, look.mark);
        }
        assert_eq!(scene.server.writes(), writes);

        assert_eq!(scene.merge(request.number, &main).await, Ok(Merge::HeadMoved));
        let Merge::Merged(commit) = scene.merge(request.number, &request.head).await.unwrap() else { panic!("{form}: not merged") };
        assert_eq!(scene.tip("main").as_ref(), Some(&commit));
        let now = scene.client.get(&scene.repository, request.number).await.unwrap().unwrap();
        assert_eq!(now.state, State::Merged { commit: commit.clone() });
        let closed = scene.client.close(&scene.repository, "promotion/prod/0001", None, "x").await;
        assert_eq!(closed, Ok(Closed::Merged(commit)));
        let mut same = scene.change(1);
        same.head = "promotion/prod/other".into();
        assert_eq!(scene.client.propose(&same).await, Ok(Proposed::Nothing));
        assert_eq!(scene.tip("promotion/prod/other"), None);
        scene.clean();
    }
}

#[tokio::test]
async fn closing_says_why_once_and_a_conflict_is_told() {
    for form in Form::ALL {
        let scene = scene(form);
        let request = scene.opened(1).await;
        for number in [Some(request.number), None, Some(request.number)] {
            let closed = scene.client.close(&scene.repository, "promotion/prod/0001", number, "superseded by carts:2.2").await;
            assert_eq!(closed, Ok(Closed::Closed), "{form}");
        }
        let comments = scene.server.people().comments(REPOSITORY, request.number).unwrap();
        assert_eq!(comments.iter().map(|comment| comment.body.as_str()).collect::<Vec<_>>(), ["superseded by carts:2.2"]);
        assert_eq!(scene.tip("promotion/prod/0001"), None);
        assert_eq!(scene.client.close(&scene.repository, "promotion/prod/9999", None, "x").await, Ok(Closed::Absent));
        // Closed is closed, also without its branch.
        let found = scene.client.propose(&scene.change(1)).await.unwrap();
        assert!(matches!(found, Proposed::Found(Request { state: State::Closed, .. })), "{form}: {found:?}");

        let request = scene.opened(2).await;
        let other = FILE.replace("1.4.0", "1.5.0");
        scene.server.people().commit(REPOSITORY, "main", "by hand", &[("prod/carts.yaml", Some(other.as_bytes()))]).unwrap();
        assert!(!scene.mergeable(request.number).await, "{form}");
        let merge = scene.merge(request.number, &request.head).await.unwrap();
        assert!(matches!(merge, Merge::Refused(_) | Merge::NotYet(_)), "{form}: {merge:?}");
        scene.clean();
    }
}

#[tokio::test]
async fn squash_merges_and_disabled_methods() {
    for form in Form::ALL {
        let scene = scene(form);
        let first = scene.opened(1).await;
        scene.server.people().merge(REPOSITORY, first.number, Method::Squash).unwrap();
        // The next one begins at the base as it is now: no conflict.
        let second = scene.opened(2).await;
        assert_eq!(scene.parent(&second.head), scene.tip("main").unwrap());
        assert!(scene.mergeable(second.number).await, "{form}");
        scene.server.people().allow(REPOSITORY, &[Method::Squash]).unwrap();
        let merge = scene.merge(second.number, &second.head).await.unwrap();
        // GitLab does not say why.
        assert!(matches!(merge, Merge::Refused(_) | Merge::NotYet(_)), "{form}: {merge:?}");
        assert!(form == Form::GitLab || matches!(merge, Merge::Refused(_)), "{form}: {merge:?}");
        scene.clean();
    }
}

#[tokio::test]
async fn whatever_a_host_does_once_the_next_attempt_makes_one_pull_request() {
    // One that is done and not answered, and one that is answered by something else and not done: whatever else goes wrong is one
    // of these to the client.
    let actions = [Action::Lose, Action::Html];
    for (form, first) in Form::ALL.into_iter().flat_map(|form| [(form, false), (form, true)]) {
        let scene = scene(form);
        let mut n = 0;
        for action in &actions {
            for skip in 0.. {
                n += 1;
                scene.server.heal();
                scene.server.fail(Fault { method: None, path: "*".into(), skip, times: 1, action: action.clone() });
                let begun = scene.client.propose(&Change { first, ..scene.change(n) }).await;
                if let Err(error) = &begun {
                    let expected = matches!(error.kind, Kind::Transient | Kind::Nonsense);
                    assert!(expected, "{form} {action:?} {skip}: {error}");
                }
                let unused = !scene.server.faults().is_empty();
                scene.server.heal();
                let (Proposed::Opened(request) | Proposed::Found(request)) = scene.client.propose(&scene.change(n)).await.unwrap()
                else {
                    panic!("{form} {action:?} {skip}: nothing")
                };
                let pulls = scene.server.people().pulls(REPOSITORY).unwrap();
                let ours: Vec<_> = pulls.iter().filter(|pull| pull.head == scene.change(n).head).collect();
                assert_eq!(ours.len(), 1, "{form} {action:?} {skip}");
                assert_eq!(ours[0].number, request.number);
                assert_eq!(scene.parent(&request.head), scene.tip("main").unwrap(), "{form} {action:?} {skip}");

                scene.server.fail(Fault { method: None, path: "*".into(), skip, times: 1, action: action.clone() });
                drop(scene.client.close(&scene.repository, &request.branch, Some(request.number), "done").await);
                scene.server.heal();
                let closed = scene.client.close(&scene.repository, &request.branch, Some(request.number), "done").await;
                assert_eq!(closed, Ok(Closed::Closed), "{form} {action:?} {skip}");
                let comments = scene.server.people().comments(REPOSITORY, request.number).unwrap();
                assert_eq!(comments.iter().map(|comment| comment.body.as_str()).collect::<Vec<_>>(), ["done"]);
                assert_eq!(scene.tip(&request.branch), None, "{form} {action:?} {skip}");
                if unused {
                    assert!(skip >= if first { 4 } else { 9 }, "{form}: {skip} requests were hit");
                    break;
                }
            }
        }
        scene.clean();
    }
}

#[tokio::test]
async fn it_is_found_among_more_than_a_hundred() {
    for form in Form::ALL {
        let scene = scene(form);
        let request = scene.opened(1).await;
        let people = scene.server.people();
        for n in 0..120 {
            let branch = format!("feature/{n}");
            people.commit(REPOSITORY, &branch, "work", &[("n.txt", Some(format!("{n}").as_bytes()))]).unwrap();
            people.open(REPOSITORY, &branch, "main", "work").unwrap();
        }
        assert!(
            matches!(scene.client.propose(&scene.change(1)).await.unwrap(), Proposed::Found(found) if found.number == request.number)
        );
        let look = scene.client.list(&scene.repository, &[request.number], None).await.unwrap();
        assert_eq!(look.requests.unwrap().len(), 1, "{form}");
        scene.clean();
    }
}

/// A first attempt writes what it has from the archive, which has other line ends here: the host compares, or the file is read.
#[tokio::test]
async fn a_file_that_an_archive_changes_keeps_its_bytes() {
    let file = FILE.replace("\r\n", "\n");
    for form in Form::ALL {
        let scene = scene_of(form, &[(".gitattributes", "*.yaml text eol=crlf\n"), ("carts.yaml", &file)]);
        let main = scene.tip("main").unwrap();
        let proposed = scene.client.propose(&Change { first: true, ..scene.change(1) }).await.unwrap();
        let Proposed::Opened(request) = proposed else { panic!("{form}: {proposed:?}") };
        assert_eq!(scene.text(&request.head, "carts.yaml"), file.replace("carts:1.4.0", "carts:2.1"), "{form}");
        let out = std::process::Command::new("git")
            .arg("--git-dir")
            .arg(scene.server.people().git_directory(REPOSITORY).unwrap())
            .args(["log", "-1", "--format=%P", &request.head])
            .output();
        assert_eq!(String::from_utf8(out.unwrap().stdout).unwrap().trim(), main, "{form}: one commit on the base");
        scene.clean();
    }
}

#[tokio::test]
async fn a_token_that_may_not_write_leaves_no_branch() {
    for (form, first) in Form::ALL.into_iter().flat_map(|form| [(form, false), (form, true)]) {
        let scene = scene(form);
        let people = scene.server.people();
        people.grant(Token { scopes: vec![Scope::User, Scope::Read], ..Token::new("reader", "keelway") }).unwrap();
        for (token, expected) in [("reader", Kind::Forbidden), ("unknown", Kind::Credentials)] {
            let change = Change { first, ..scene.change(1) };
            let error = client(&scene.repository, token).propose(&change).await.unwrap_err();
            assert_eq!(error.kind, expected, "{form} {token}: {error}");
            assert!(!error.message.contains(token), "{error}");
        }
        people
            .create_repository(&NewRepository { owner: "shop".into(), name: "empty".into(), private: true, ..Default::default() })
            .unwrap();
        let empty = at(&scene.server, form, "shop/empty");
        let mut change = Change { first, ..scene.change(1) };
        for (repository, base, expected) in [
            (&scene.repository, "none", Kind::BaseMissing),
            (&empty, "main", Kind::BaseMissing),
            (&at(&scene.server, form, "shop/gone"), "main", Kind::NotFound),
        ] {
            change.repository = repository.clone();
            change.base = base.into();
            let error = scene.client.propose(&change).await.unwrap_err();
            assert_eq!(error.kind, expected, "{form} {repository} {base}: {error}");
        }
        let mut change = Change { first, ..scene.change(1) };
        change.marker = "shop:carts:nowhere".into();
        assert_eq!(scene.client.propose(&change).await.unwrap_err().kind, Kind::NoMarker);
        assert_eq!(people.branches(REPOSITORY).unwrap().len(), 1, "{form}");
    }
}
