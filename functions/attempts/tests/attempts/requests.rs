//! The strategy `pull-request`, over HTTP, against a strict host in each of its forms.

use crate::stand::{Stand, definition};
use keelway_domain::address::Address;
use keelway_domain::promotions::definition::{Definition, PullRequest, Strategy};
use keelway_domain::promotions::registry::GitHost;
use keelway_domain::promotions::{Command, Made, Phase};
use keelway_domain::time::Span;
use keelway_engine::secrets::Known;
use keelway_githost::{Action, Fault, Form, Host, Method, Options, Pull, State};
use std::sync::Arc;
use tempfile::TempDir;

const MINUTE: Span = Span::minutes(1);
pub(crate) const REPOSITORY: &str = "shop/config";
pub(crate) const TOKEN: &str = "t0ken-of-the-test";
/// Two markers in one file, and bytes that must stay as they are.
pub(crate) const FILE: &str = "# Versions\r\nstaging:\r\n  tag: \"v1\"   # {\"$promotion\": \"shop:cart:staging\"}\r\nprod:\r\n  tag: v1 # \
                    {\"$promotion\": \"shop:cart:prod\"}\r\nother:   {a: 1,  b: 2}";
const SERVER_ERROR: Action = Action::Status { status: 502, retry_after: None, body: None };
pub(crate) const FORMS: [(Form, &str); 4] =
    [(Form::Gitea, "gitea"), (Form::GitHub, "github"), (Form::GitLab, "gitlab"), (Form::Bitbucket, "bitbucket-server")];

/// A pipeline and a repository on a strict host.
pub(crate) struct Bench {
    pub(crate) stand: Stand,
    pub(crate) host: Arc<Host>,
    definition: Definition,
    _directory: TempDir,
}

/// A host of this form on what is in a directory.
pub(crate) fn host_on(form: Form, directory: &TempDir) -> Host {
    Host::start(Options { form, ..Options::new(directory.path(), TOKEN) }).unwrap()
}

fn path_of(form: Form) -> String {
    match form {
        Form::Bitbucket => "scm/shop/config".to_owned(),
        _ => REPOSITORY.to_owned(),
    }
}

pub(crate) fn secrets() -> Known {
    Known::default().with("shop/git", &format!("{{\"token\": \"{TOKEN}\"}}"))
}

/// A pull request in the repository, as a manifest has it.
pub(crate) fn by_request(form: (Form, &str)) -> PullRequest {
    PullRequest {
        host: form.1.into(),
        url: format!("https://git.example.com/{}", path_of(form.0)),
        base_branch: "main".into(),
        secret: "git".into(),
        merge: false,
    }
}

impl Bench {
    /// A pipeline over three environments that run v1, and a repository that says so.
    pub(crate) async fn new(form: (Form, &str), files: &[(&str, &str)], change: impl FnOnce(&mut PullRequest)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        host_on(form.0, &directory).people().create(REPOSITORY, files).unwrap();
        Self::on(form, directory, change).await
    }

    /// The same on a repository that is in a directory.
    pub(crate) async fn on(form: (Form, &str), directory: TempDir, change: impl FnOnce(&mut PullRequest)) -> Self {
        let host = Arc::new(host_on(form.0, &directory));
        let mut request = by_request(form);
        change(&mut request);
        let definition = definition(&["dev", "staging", "prod"], Strategy::PullRequest(request));
        let mut stand = Stand::new(secrets());
        let registered = GitHost {
            host: "git.example.com".into(),
            form: form.1.into(),
            api: host.api(form.0),
            secret: None,
            webhook_secret: None,
        };
        stand.pipelines.git_hosts().apply(&Address::parse("git"), &registered, "").await.unwrap();
        stand.apply(&definition).await;
        stand.all_run(&definition, "v1").await;
        Self { stand, host, definition, _directory: directory }
    }

    pub(crate) async fn usual(form: (Form, &str)) -> Self {
        Self::new(form, &[("versions.yaml", FILE)], |_| {}).await
    }

    pub(crate) async fn runs(&mut self, environment: &str, revision: &str) {
        let definition = self.definition.clone();
        self.stand.runs(&definition, environment, revision).await;
    }

    pub(crate) fn pulls(&self) -> Vec<Pull> {
        (1..).map_while(|number| self.host.people().pull(REPOSITORY, number).ok()).collect()
    }

    pub(crate) fn open(&self) -> Vec<Pull> {
        self.pulls().into_iter().filter(|pull| pull.state == State::Open).collect()
    }

    /// A file as a clone has it.
    fn file(&self, branch: &str) -> String {
        let done = std::process::Command::new("git")
            .args(["-C", &self.host.people().git_directory(REPOSITORY).unwrap().display().to_string(), "show"])
            .arg(format!("{branch}:versions.yaml"))
            .output()
            .unwrap();
        String::from_utf8(done.stdout).unwrap()
    }

    pub(crate) async fn phase(&self, environment: &str) -> (Phase, String) {
        let promotion = self.stand.promotion(environment).await;
        (promotion.phase, promotion.why.reason)
    }

    /// No request broke a rule of the host.
    pub(crate) fn clean(&self) {
        assert_eq!(self.host.violations().iter().map(|found| format!("{found:?}")).collect::<Vec<_>>(), Vec::<String>::new());
    }
}

/// P01 to P03
#[tokio::test]
async fn a_pull_request_is_opened_watched_and_merged() {
    for form in FORMS {
        let mut bench = Bench::usual(form).await;
        bench.runs("dev", "v2").await;
        assert_eq!(bench.phase("staging").await, (Phase::Created, "PullRequestOpen".into()), "{form:?}");
        let pulls = bench.pulls();
        let [pull] = &pulls[..] else { panic!("{form:?}: {} pull requests", pulls.len()) };
        assert_eq!((pull.base.as_str(), pull.state), ("main", State::Open));
        assert_eq!(pull.title, "Promote shop/cart in staging to v2");
        assert_eq!(bench.file(&pull.head), FILE.replacen("\"v1\"", "\"v2\"", 1), "only the marked value changes");
        let Some(Made::PullRequest { number, .. }) = bench.stand.promotion("staging").await.effect else { panic!("no URL") };
        assert_eq!(number, pull.number);
        bench.host.take_calls();
        bench.stand.pass(Span::minutes(60)).await;
        assert_eq!(bench.host.writes(), 0, "{form:?}: looking changes nothing");
        assert!(!bench.host.calls().is_empty());
        bench.host.people().merge(REPOSITORY, pull.number, Method::Squash).unwrap();
        bench.stand.pass(Span::minutes(60)).await;
        let promotion = bench.stand.promotion("staging").await;
        assert_eq!((promotion.phase, promotion.why.reason.as_str()), (Phase::Succeeded, "Merged"), "{form:?}");
        assert!(promotion.why.message.starts_with("it was merged as "), "{}", promotion.why.message);
        bench.runs("staging", "v2").await;
        assert_eq!(bench.open().len(), 1, "{form:?}: then production");
        assert_eq!(bench.file(&bench.open()[0].head), FILE.replace("v1", "v2"));
        bench.clean();
    }
}

/// P04, P40
#[tokio::test]
async fn what_a_person_closes_stays_closed_until_somebody_asks() {
    for form in FORMS {
        let mut bench = Bench::usual(form).await;
        bench.runs("dev", "v2").await;
        bench.host.people().close(REPOSITORY, 1).unwrap();
        bench.stand.pass(Span::minutes(24 * 60)).await;
        assert_eq!(bench.phase("staging").await.0, Phase::Abandoned, "{form:?}");
        assert_eq!(bench.pulls().len(), 1);
        bench.stand.command(Command::Retry("staging".into())).await;
        bench.stand.pass(MINUTE).await;
        let pulls = bench.pulls();
        assert_eq!((pulls.len(), pulls[1].state), (2, State::Open), "{form:?}: {:?}", bench.stand.promotion("staging").await);
        assert_ne!(pulls[0].head, pulls[1].head);
        bench.runs("dev", "v3").await;
        bench.stand.pass(MINUTE).await;
        assert_eq!(bench.open().iter().map(|pull| pull.title.clone()).collect::<Vec<_>>(), ["Promote shop/cart in staging to v3"]);
        bench.clean();
    }
}

/// P05, P06, P21
#[tokio::test]
async fn a_newer_revision_replaces_what_is_open_everywhere() {
    for form in FORMS {
        let mut bench = Bench::usual(form).await;
        bench.runs("dev", "v2").await;
        bench.host.people().merge(REPOSITORY, 1, Method::Squash).unwrap();
        bench.runs("staging", "v2").await;
        bench.stand.pass(MINUTE).await;
        assert_eq!(bench.open().len(), 1, "{form:?}: production");
        bench.runs("dev", "v3").await;
        bench.stand.pass(MINUTE).await;
        let pulls = bench.pulls();
        assert_eq!(
            pulls.iter().map(|pull| pull.state).collect::<Vec<_>>(),
            [State::Merged, State::Closed, State::Open],
            "{form:?}"
        );
        assert_eq!(pulls[1].comments.iter().map(|comment| comment.body.as_str()).collect::<Vec<_>>(), ["superseded by v3"]);
        assert_eq!(pulls[2].title, "Promote shop/cart in staging to v3");
        assert_eq!(pulls.iter().map(|pull| pull.head.as_str()).collect::<std::collections::BTreeSet<_>>().len(), 3);
        bench.host.people().merge(REPOSITORY, 3, Method::Squash).unwrap();
        bench.clean();
    }
}

/// P08
#[tokio::test]
async fn closing_is_repeated_until_it_works() {
    for form in FORMS {
        let mut bench = Bench::usual(form).await;
        bench.runs("dev", "v2").await;
        bench.host.fail(Fault::next("write", "*", SERVER_ERROR).times(2));
        bench.runs("dev", "v3").await;
        bench.stand.pass(Span::minutes(10)).await;
        let states: Vec<State> = bench.pulls().iter().map(|pull| pull.state).collect();
        assert_eq!(states, [State::Closed, State::Open], "{form:?}");
        bench.clean();
    }
}

/// P09, P10: whatever fails, and whatever answer is lost, there is one pull request in the end.
#[tokio::test]
async fn one_pull_request_whatever_request_fails() {
    for form in FORMS {
        let mut bench = Bench::usual(form).await;
        bench.runs("dev", "v2").await;
        for (after, call) in bench.host.calls().into_iter().enumerate() {
            // A write happens, and its answer is lost; a read fails in one of many ways.
            let others = [Action::Cut, Action::Types, Action::Html, Action::Drop, SERVER_ERROR];
            let action = if call.wrote { Action::Lose } else { others[after % others.len()].clone() };
            let told = format!("{form:?}: {action:?} at {} {}", call.method, call.path);
            let mut bench = Bench::usual(form).await;
            bench.host.fail(Fault::next("*", "*", action).after(after as u64));
            bench.runs("dev", "v2").await;
            bench.stand.pass(Span::minutes(5)).await;
            assert_eq!(bench.phase("staging").await.0, Phase::Created, "{told}: {:?}", bench.stand.promotion("staging").await.why);
            let pulls = bench.pulls();
            assert_eq!(pulls.len(), 1, "{told}");
            assert_eq!(bench.file(&pulls[0].head), FILE.replacen("\"v1\"", "\"v2\"", 1), "{told}");
            assert!(bench.host.faults().is_empty(), "{told}: the fault was never met");
        }
    }
}

/// An attempt stops between branch and pull request, and the base moves before the next one.
#[tokio::test]
async fn a_branch_of_an_earlier_attempt_is_brought_up_to_date() {
    for form in FORMS {
        let mut bench = Bench::usual(form).await;
        let open = if form.0 == Form::GitLab {
            "*/merge_requests"
        } else if form.0 == Form::Bitbucket {
            "*/pull-requests"
        } else {
            "*/pulls"
        };
        bench.host.fail(Fault::next("POST", open, SERVER_ERROR));
        bench.runs("dev", "v2").await;
        assert_eq!(bench.phase("staging").await.0, Phase::Failed, "{form:?}");
        let moved = FILE.replace("other:", "others:");
        bench.host.people().commit(REPOSITORY, "main", "meanwhile", &[("versions.yaml", Some(moved.as_bytes()))]).unwrap();
        bench.stand.pass(Span::minutes(5)).await;
        let pulls = bench.pulls();
        let [pull] = &pulls[..] else { panic!("{form:?}: {:?}", bench.stand.promotion("staging").await) };
        assert_eq!(bench.file(&pull.head), moved.replacen("\"v1\"", "\"v2\"", 1), "{form:?}");
        bench.host.people().merge(REPOSITORY, pull.number, Method::Merge).unwrap();
        bench.clean();
    }
}

/// P14 to P16, P30
#[tokio::test]
async fn what_cannot_be_promoted_says_why() {
    for form in FORMS {
        let already = FILE.replace("v1", "v2");
        let mut bench = Bench::new(form, &[("versions.yaml", &already)], |_| {}).await;
        bench.runs("dev", "v2").await;
        assert_eq!(bench.phase("staging").await, (Phase::Succeeded, "NothingToPromote".into()), "{form:?}");
        assert!(bench.pulls().is_empty() && bench.host.writes() == 0);

        let mut bench = Bench::new(form, &[("versions.yaml", "staging: v1\n")], |_| {}).await;
        bench.runs("dev", "v2").await;
        assert_eq!(bench.phase("staging").await, (Phase::Failed, "NoMarkerFound".into()), "{form:?}");
        assert!(bench.stand.promotion("staging").await.why.message.contains("\"shop:cart:staging\""));
        bench.host.take_calls();
        bench.stand.pass(Span::minutes(5 * 60)).await;
        assert!(bench.host.calls().is_empty(), "{form:?}: only a change of the repository helps");

        let mut bench = Bench::new(form, &[("versions.yaml", FILE)], |request| request.base_branch = "release".into()).await;
        bench.runs("dev", "v2").await;
        assert_eq!(bench.phase("staging").await, (Phase::Failed, "BaseBranchMissing".into()), "{form:?}");

        let mut bench = Bench::new(form, &[("versions.yaml", FILE)], |request| request.secret = "none".into()).await;
        bench.runs("dev", "v2").await;
        assert_eq!(bench.phase("staging").await, (Phase::Failed, "SecretMissing".into()), "{form:?}");
        assert!(bench.host.calls().is_empty());

        let mut bench = Bench::usual(form).await;
        bench.host.people().revoke(TOKEN).unwrap();
        bench.runs("dev", "v2").await;
        assert_eq!(bench.phase("staging").await, (Phase::Failed, "CredentialsRefused".into()), "{form:?}");
        assert_eq!(bench.host.writes(), 0);
        assert!(!bench.stand.promotion("staging").await.why.message.contains(TOKEN));
    }
}

/// P17, P38
#[tokio::test]
async fn an_outage_of_the_host_ends_no_promotion_and_is_told_once() {
    for form in FORMS {
        let mut bench = Bench::usual(form).await;
        bench.runs("dev", "v2").await;
        let before = bench.stand.promotion("staging").await;
        bench.host.fail(Fault::next("*", "*", SERVER_ERROR).times(1000));
        bench.stand.pass(Span::minutes(60)).await;
        let after = bench.stand.promotion("staging").await;
        assert_eq!((after.phase, &after.effect), (before.phase, &before.effect), "{form:?}");
        assert_eq!(after.why.reason, "HostUnavailable", "{form:?}");
        assert_eq!(bench.stand.published("dev.keelway.promotion.unobserved").len(), 1, "{form:?}");
        bench.host.heal();
        bench.host.people().merge(REPOSITORY, 1, Method::Merge).unwrap();
        bench.stand.pass(Span::minutes(120)).await;
        assert_eq!(bench.phase("staging").await.0, Phase::Succeeded, "{form:?}");

        let mut bench = Bench::usual(form).await;
        bench.runs("dev", "v2").await;
        bench.host.fail(Fault::next("*", "*", Action::RateLimit { retry_after: 1800, secondary: true }));
        bench.stand.pass(MINUTE).await;
        assert!(bench.host.faults().is_empty(), "{form:?}: nobody looked");
        bench.host.take_calls();
        bench.stand.pass(Span::minutes(28)).await;
        assert!(bench.host.calls().is_empty(), "{form:?}: the host wants no request for half an hour");
        bench.stand.pass(Span::minutes(5)).await;
        assert!(!bench.host.calls().is_empty(), "{form:?}");
    }
}

/// P20, P22
#[tokio::test]
async fn people_reopen_and_get_in_the_way() {
    for form in FORMS {
        let mut bench = Bench::usual(form).await;
        bench.runs("dev", "v2").await;
        let conflict = FILE.replacen("\"v1\"", "\"v1.1\"", 1);
        bench.host.people().commit(REPOSITORY, "main", "in the way", &[("versions.yaml", Some(conflict.as_bytes()))]).unwrap();
        bench.host.people().edit(REPOSITORY, 1, Some("Please look"), None).unwrap();
        bench.stand.pass(Span::minutes(5)).await;
        let promotion = bench.stand.promotion("staging").await;
        let Some(Made::PullRequest { mergeable, .. }) = promotion.effect else { panic!("{promotion:?}") };
        assert_eq!((promotion.phase, mergeable), (Phase::Created, Some(false)), "{form:?}");
        assert_eq!(bench.pulls()[0].title, "Please look", "what people write stays");
        bench.host.people().close(REPOSITORY, 1).unwrap();
        bench.stand.pass(Span::minutes(5)).await;
        assert_eq!(bench.phase("staging").await.0, Phase::Abandoned, "{form:?}");
        bench.host.people().commit(REPOSITORY, "main", "away", &[("versions.yaml", Some(FILE.as_bytes()))]).unwrap();
        bench.host.people().reopen(REPOSITORY, 1).unwrap();
        bench.host.people().merge(REPOSITORY, 1, Method::Merge).unwrap();
        bench.runs("staging", "v2").await;
        // The host is asked whether it was merged late.
        bench.stand.pass(MINUTE).await;
        assert_eq!(bench.phase("staging").await.0, Phase::Succeeded, "{form:?}");
        assert_eq!(bench.open().len(), 1, "{form:?}: production");
        bench.clean();
    }
}

/// P35, P36
#[tokio::test]
async fn keelway_merges_where_it_is_asked_to() {
    for form in FORMS {
        let mut bench = Bench::new(form, &[("versions.yaml", FILE)], |request| request.merge = true).await;
        bench.runs("dev", "v2").await;
        bench.stand.pass(Span::minutes(2)).await;
        assert_eq!(bench.phase("staging").await, (Phase::Succeeded, "Merged".into()), "{form:?}");
        assert_eq!(bench.file("main"), FILE.replacen("\"v1\"", "\"v2\"", 1));
        bench.runs("staging", "v2").await;
        // Somebody adds a commit before the first look: what was not proposed is not merged.
        let head = bench.open()[0].head.clone();
        bench.host.people().commit(REPOSITORY, &head, "one more", &[("more.yaml", Some(b"a: 1\n"))]).unwrap();
        bench.stand.pass(Span::minutes(20)).await;
        assert_eq!(bench.phase("prod").await.0, Phase::Created, "{form:?}");
        assert_eq!(bench.pulls()[1].state, State::Open);
        bench.clean();

        let mut bench = Bench::new(form, &[("versions.yaml", FILE)], |request| request.merge = true).await;
        bench.runs("dev", "v2").await;
        let conflict = FILE.replacen("\"v1\"", "\"v1.1\"", 1);
        bench.host.people().commit(REPOSITORY, "main", "in the way", &[("versions.yaml", Some(conflict.as_bytes()))]).unwrap();
        bench.stand.pass(Span::minutes(60)).await;
        let promotion = bench.stand.promotion("staging").await;
        if form.0 == Form::Gitea {
            // Its API does not tell a conflict from a check that is not done yet.
            let Some(Made::PullRequest { mergeable, .. }) = promotion.effect else { panic!("{promotion:?}") };
            assert_eq!((promotion.phase, mergeable), (Phase::Created, Some(false)));
        } else {
            assert_eq!((promotion.phase, promotion.due), (Phase::Failed, None), "{form:?}: {:?}", promotion.why);
            assert!(promotion.why.message.contains("cannot be merged"), "{form:?}: {}", promotion.why.message);
        }
    }
}
