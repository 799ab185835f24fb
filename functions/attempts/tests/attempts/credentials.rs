//! For whom the credentials of a registered git host are.

use crate::stand::{Stand, definition};
use keelway_domain::address::Address;
use keelway_domain::border::Update;
use keelway_domain::names::ProjectName;
use keelway_domain::promotions::Phase;
use keelway_domain::promotions::definition::{PullRequest, Strategy};
use keelway_domain::promotions::registry::GitHost;
use keelway_engine::projects::ProjectSettings;
use keelway_engine::secrets::Known;
use keelway_githost::{Form, Host, Options};
use serde_json::{Value, json};

const TOKEN: &str = "t0ken-of-the-installation";
const FILE: &str = "staging: v1 # {\"$promotion\": \"shop:cart:staging\"}\n";

/// What becomes of a promotion that names no secret: its phase, why, and how many requests the host got.
async fn promoted(secret: &str, vouched: bool, policy: Value) -> (Phase, String, usize) {
    let directory = tempfile::tempdir().unwrap();
    let host = Host::start(Options { form: Form::Gitea, ..Options::new(directory.path(), TOKEN) }).unwrap();
    host.people().create("shop/config", &[("versions.yaml", FILE)]).unwrap();
    let request = PullRequest {
        host: "gitea".into(),
        url: "https://git.example.com/shop/config".into(),
        base_branch: "main".into(),
        secret: String::new(),
        merge: false,
    };
    let mut definition = definition(&["dev", "staging"], Strategy::PullRequest(request));
    definition.vouched = vouched;
    let mut stand = Stand::new(Known::default().with(secret, &format!("{{\"token\": \"{TOKEN}\"}}")));
    let registered = GitHost {
        host: "git.example.com".into(),
        form: "gitea".into(),
        api: host.api(Form::Gitea),
        secret: Some("bot".into()),
        webhook_secret: None,
    };
    stand.pipelines.git_hosts().apply(&Address::parse("git"), &registered, "").await.unwrap();
    let policy = Update::Set(serde_json::from_value(policy).unwrap());
    let name = ProjectName::new("shop").unwrap();
    stand.sequences.projects().apply(&ProjectSettings { policy, ..ProjectSettings::plain(name) }).await.unwrap();
    stand.apply(&definition).await;
    stand.all_run(&definition, "v1").await;
    stand.runs(&definition, "dev", "v2").await;
    let promotion = stand.promotion("staging").await;
    assert!(!promotion.why.message.contains(TOKEN));
    (promotion.phase, format!("{}: {}", promotion.why.reason, promotion.why.message), host.take_calls().len())
}

#[tokio::test]
async fn credentials_of_the_installation_serve_only_repositories_that_the_project_may_use() {
    let lists = |name: &str| json!({"allows": {"repositories": [{"name": name}]}});
    for (vouched, policy, fine) in [
        (false, Value::Null, false),
        (true, Value::Null, true),
        (false, lists("https://git.example.com/shop/*"), true),
        (true, lists("https://git.example.com/other/*"), false),
        (true, lists("https://elsewhere.example.com/shop/*"), false),
    ] {
        let (phase, why, calls) = promoted("-/bot", vouched, policy.clone()).await;
        assert_eq!((phase == Phase::Created, calls > 0), (fine, fine), "{vouched} {policy}: {why}");
        let told = why.starts_with("SecretMissing") && why.contains("repository https://git.example.com/shop/config");
        assert!(fine || told && why.contains("secretRef"), "{why}");
    }
}

/// Whoever administers a namespace can name its secrets, so none of them is the installation's.
#[tokio::test]
async fn credentials_of_the_installation_are_those_of_no_namespace() {
    for secret in ["default/bot", "shop/bot"] {
        let (phase, why, calls) = promoted(secret, true, Value::Null).await;
        assert_eq!((phase, calls), (Phase::Failed, 0), "{why}");
        assert!(why.contains("there is no secret \"-/bot\""), "{why}");
    }
}
