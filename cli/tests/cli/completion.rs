//! What shells offer: the command is asked, and asks the API.

use crate::commands::state;
use crate::support::{Api, Ran, keelway};
use serde_json::json;
use std::process::Command;

fn run(words: &[&str]) -> Ran {
    Ran::of(keelway(words).output().unwrap())
}

/// What bash offers for the last of these words.
fn offered(command: &mut Command, words: &[&str]) -> Vec<String> {
    command.args(["--", "keelway"]).args(words);
    command.env("KEELWAY_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string()).env("_CLAP_IFS", "\n");
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{words:?}");
    ran.out.lines().map(str::to_owned).collect()
}

#[test]
fn what_the_api_knows_is_offered() {
    let api = Api::start();
    let contexts = ["139a703f-0000-4000-8000-00000000000a", "7500af7d-0000-4000-8000-00000000000c"];
    let states: Vec<_> = contexts.iter().map(|context| state(context, "carts", "pass")).collect();
    api.can("GET /v1/sequence/shop", json!({"states": states}));
    let named = json!({"items": [{"namespace": "shop", "name": "carts"}], "nextPageKey": "0"});
    api.can("GET /v1/deploymentConfigs", named.clone());
    api.can("GET /v1/pipelines", named);
    let offers = |words: &[&str]| offered(&mut api.keelway(&[]), words);
    for words in [&["watch", ""][..], &["watch", "-p", "shop", ""], &["approve", ""], &["get", "events", ""], &["retry", "139"]] {
        assert!(offers(words).contains(&"139a703f".to_owned()), "{words:?}: {:?}", offers(words));
    }
    assert_eq!(offers(&["watch", "75"]), ["7500af7d"]);
    for words in [&["watch", "-p", ""][..], &["watch", "--project", "sh"], &["token", "create", "ci", "--project", ""]] {
        assert_eq!(offers(words), ["shop"], "{words:?}");
    }
    assert!(offers(&["rollout", "status", "sh"]).contains(&"shop/carts".to_owned()));
    assert!(offers(&["rollback", "-p", "shop", "car"]).contains(&"carts".to_owned()));
    assert!(offers(&["pipeline", "status", "shop"]).contains(&"shop/carts".to_owned()));
    assert!(offers(&["get", "dc", "shop"]).contains(&"shop/carts".to_owned()));
    assert!(api.lines().iter().any(|line| line.starts_with("GET /v1/deploymentConfigs?namespace=shop")), "{:?}", api.lines());
}

#[test]
fn what_there_is_anyway_is_offered_without_an_api() {
    let offers = |words: &[&str]| offered(&mut keelway(&[]), words);
    assert_eq!(offers(&["schema", "De"]), ["DeploymentConfig"]);
    assert_eq!(offers(&["schema", "s"]), ["slo", "sli"]);
    assert_eq!(offers(&["get", "sequences", "--state", "wai"]), ["waiting", "waitingForApproval"]);
    assert_eq!(offers(&["token", "create", "ci", "--scope", "read,ad"]), ["read,administer"]);
    assert_eq!(offers(&["audit", "--action", "cl"]), ["claim"]);
    // Names of files, where files are read, and nowhere else.
    assert_eq!(offers(&["apply", "-f", "Cargo.t"]), ["Cargo.toml"]);
    for words in [&["watch", "-p", "Cargo.t"][..], &["get", "sequences", "--name", "Cargo.t"]] {
        assert!(offers(words).is_empty(), "{words:?}: {:?}", offers(words));
    }
    assert!(offers(&["wat"]).contains(&"watch".to_owned()));
}

#[test]
fn an_api_that_does_not_answer_is_no_word_in_somebodys_line() {
    let mut command = keelway(&[]);
    command.env("KEELWAY_API", "http://127.0.0.1:1").env("KEELWAY_TOKEN", "x");
    assert!(offered(&mut command, &["watch", "-p", ""]).is_empty());
}

#[test]
fn every_shell_has_a_script_that_asks_the_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(&["completion", shell]);
        assert!(ran.code == 0 && ran.out.contains("KEELWAY_COMPLETE") && ran.out.contains("keelway"), "{shell}: {ran:?}");
    }
    assert_eq!(run(&["version"]).out, "keelway 0.1.0\n");
}
