//! The command line.

mod access;
mod creating;
mod deployments;
#[cfg(test)]
mod documented;
mod doing;
mod evaluating;
mod examples;
pub mod named;
mod old;
mod operations;
mod pipelines;
pub mod printing;
mod reading;
mod resources;
mod shells;
mod shipyards;
mod synonyms;
mod usage;
mod values;
mod webhooks;

pub use access::*;
pub use creating::*;
pub use deployments::*;
pub use doing::*;
pub use evaluating::*;
pub use named::*;
pub use operations::*;
pub use pipelines::*;
pub use printing::*;
pub use reading::*;
pub use resources::*;
pub use shipyards::*;
pub use values::{Awaiting, Numbered};
pub use webhooks::*;

use crate::kinds;
use crate::pairs::parse_text;
use clap::{Args as Group, Parser, Subcommand};
use keelway_domain::names::{ProjectName, ServiceName, StageName};
use std::path::PathBuf;
use values::{name, revision};

pub use old::{renewed, with_old_variable};
pub use shells::for_shells;
pub use synonyms::meant;
pub use usage::without_variables;

/// Above the options that all verbs have, in their help.
const EVERYWHERE: &str = "Options of all commands";

/// Continuous delivery by events: apply shipyards, trigger and watch sequences, answer tasks; promote revisions through pipelines;
/// deploy versions and roll them back.
#[derive(Parser)]
#[command(name = "keelway", version, after_help = examples::START)]
pub struct Args {
    /// The API's address, with or without /v1
    #[arg(long, global = true, env = "KEELWAY_API", value_name = "URL", help_heading = EVERYWHERE)]
    pub api: Option<String>,
    /// The API's token
    #[arg(long, global = true, env = "KEELWAY_TOKEN", hide_env_values = true, help_heading = EVERYWHERE)]
    pub token: Option<String>,
    /// How to print
    #[command(flatten)]
    pub display: Display,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Subcommand)]
pub enum Command {
    #[command(about = kinds::about_apply(), after_help = examples::APPLY)]
    Apply(Apply),
    /// Everything wrong with manifests of any kind, slo.yaml and sli.yaml, at once; offline. Exit codes: 0 fine, 1 refused, 2
    /// cannot be read
    #[command(after_help = examples::VALIDATE)]
    Validate(Validate),
    /// Show projects, services, environments, sequences, events, open approvals, pipelines, clusters, git hosts, deployments or
    /// webhooks
    #[command(after_help = examples::GET)]
    Get(GetAny),
    /// Show what needs you, what is stuck and what waits, in all engines, each with the command that would help
    #[command(after_help = examples::STATUS)]
    Status(Status),
    /// Create a project or a service, which must not be there yet
    #[command(subcommand, after_help = examples::CREATE)]
    Create(Create),
    #[command(subcommand, about = kinds::about_delete(), after_help = examples::DELETE)]
    Delete(Delete),
    /// Judge a service by its slo.yaml, as Keptn's lighthouse does: a window of it, or offline values of a file. Exit codes: 0
    /// pass, 1 fail, 3 warning, 2 cannot be read
    #[command(after_help = examples::EVALUATE)]
    Evaluate(Evaluate),
    /// Look at one evaluation, leave it out of comparisons, and migrate the analyses of others
    #[command(subcommand, after_help = examples::EVALUATION)]
    Evaluation(EvaluationVerb),
    /// Look at pipelines, and decide what they promote
    #[command(subcommand, after_help = examples::PIPELINE)]
    Pipeline(Pipeline),
    /// Deploy versions of a deployment config, follow them, and steer them
    #[command(subcommand, after_help = examples::ROLLOUT)]
    Rollout(Rollout),
    /// Go back to an earlier version of a deployment config or of a service in a stage, or revision of a shipyard
    ///
    /// Of a config, a new version is deployed, and no trigger fires until they are resumed.
    #[command(after_help = examples::ROLLBACK)]
    Rollback(RollbackAny),
    /// Change a deployment config
    #[command(subcommand, after_help = examples::SET)]
    Set(Set),
    /// What differs between two versions of a deployment config, or revisions of a shipyard, field by field
    #[command(after_help = examples::DIFF)]
    Diff(DiffAny),
    /// Carry deployments out with a command, for as long as this runs
    #[command(after_help = examples::DEPLOYER)]
    Deployer(Deployer),
    /// Only in the command of a deployer: have Keelway carry out the strategy. To deploy, see `trigger` and `rollout`
    #[command(after_help = examples::DEPLOY)]
    Deploy(Deploy),
    /// Report what targets run, from Kubernetes objects or facts
    #[command(after_help = examples::OBSERVE)]
    Observe(Observe),
    /// Start a sequence
    #[command(subcommand, after_help = examples::TRIGGER)]
    Trigger(Trigger),
    /// Follow deliveries, one line each, until everything in them is over
    #[command(after_help = examples::WATCH)]
    Watch(Watch),
    /// Let a sequence or a promotion go on that waits for approval
    #[command(after_help = examples::APPROVE)]
    Approve(Decide),
    /// End a sequence that waits for approval, with result fail; keep a revision out of an environment
    #[command(after_help = examples::DECLINE)]
    Decline(Decide),
    /// Hold a context: what runs goes on, nothing new is triggered
    #[command(after_help = examples::PAUSE)]
    Pause(Controlled),
    /// Let a paused context go on
    #[command(after_help = examples::RESUME)]
    Resume(Controlled),
    /// End everything open in a context
    #[command(after_help = examples::ABORT)]
    Abort(Controlled),
    /// Repeat a sequence that failed, from the task on that failed
    #[command(after_help = examples::RETRY)]
    Retry(Retry),
    /// Let a delivery begin although the windows of its stage are closed
    #[command(after_help = examples::OVERRIDE)]
    Override(Override),
    /// Send a CloudEvent
    #[command(subcommand, after_help = examples::SEND)]
    Send(Send),
    /// The files of a project that evaluations, remediations and executors read, such as slo.yaml
    #[command(subcommand, after_help = examples::RESOURCE)]
    Resource(ResourceVerb),
    /// Check, draw and migrate shipyards without applying them
    #[command(subcommand, after_help = examples::SHIPYARD)]
    Shipyard(Shipyard),
    /// Print the JSON Schema of a kind of manifest, for editors
    #[command(after_help = examples::SCHEMA)]
    Schema {
        /// The kind, for example Shipyard; slo or sli for the files of evaluations [default: any kind]
        kind: Option<String>,
    },
    /// Answer a task's triggers with a command, for as long as this runs
    #[command(after_help = examples::EXECUTOR)]
    Executor(Executor),
    /// Remember an API and a token for it, and use them from now on; choose among those that are remembered
    #[command(after_help = examples::LOGIN)]
    Login(Login),
    /// Say whose token this is, and what it may do
    #[command(after_help = examples::WHOAMI)]
    Whoami {
        #[command(flatten)]
        output: Output,
    },
    /// Make tokens with fewer rights, list, rotate and revoke them
    #[command(subcommand, after_help = examples::TOKEN)]
    Token(TokenVerb),
    /// Show who did what, newest first
    #[command(after_help = examples::AUDIT)]
    Audit(Audit),
    /// Look at messages that could not be handled, send them again, or drop them
    #[command(subcommand, after_help = examples::DEAD_LETTERS)]
    DeadLetters(DeadLetters),
    /// See what was sent to webhooks, send it again, resume webhooks that are disabled
    #[command(subcommand, after_help = examples::WEBHOOK)]
    Webhook(WebhookVerb),
    /// Say whether the API is reachable, the token right, and whether anything waits for a person
    #[command(after_help = examples::DOCTOR)]
    Doctor {
        /// Print what to look at after the first deployment to AWS: what no test without an account can show
        #[arg(long)]
        checklist: bool,
    },
    /// Print the completion script of a shell
    #[command(after_help = examples::COMPLETION)]
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the version
    #[command(after_help = examples::VERSION)]
    Version,
}

/// `apply`
#[derive(Group)]
pub struct Apply {
    /// A file, a directory (its *.yaml, *.yml and *.json, not below it), or - for standard input; may be repeated
    #[arg(short, long = "file", required = true, value_name = "FILE|DIR|-", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// The value of a parameter of the Templates in the files; may be repeated
    #[arg(long = "param", value_parser = parse_text, value_name = "NAME=VALUE")]
    pub parameters: Vec<(String, String)>,
    /// The project of the shipyards [default: their annotation, or metadata.name without shipyard-]
    #[arg(short, long, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// Apply the one shipyard of these files only if this revision is in force: its 40 digits, as `apply` printed them and
    /// `get shipyard PROJECT --revisions -o wide` lists them
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    pub if_match: Option<String>,
    /// Say what would change, and change nothing; without the API's address, only check the files
    #[arg(long)]
    pub dry_run: bool,
}

/// A project, stage and service to narrow something to.
#[derive(Group, Clone, Default)]
pub struct Scope {
    /// Only this project
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// Only this stage
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: Option<StageName>,
    /// Only this service
    #[arg(long, value_parser = name::<ServiceName>)]
    pub service: Option<ServiceName>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_verb_has_examples_and_each_of_them_can_be_typed() {
        let mut seen = 0;
        let mut commands = vec![(vec!["keelway".to_owned()], Args::command())];
        while let Some((path, command)) = commands.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<&str> = help.lines().filter_map(|line| line.trim().split(" | ").last()).collect();
            let examples = examples.iter().filter_map(|line| line.strip_prefix("keelway "));
            let examples: Vec<&str> = examples.map(|line| line.split("  #").next().unwrap_or(line)).collect();
            assert!(!examples.is_empty() || command.get_name() == "help", "{path:?} has no example");
            for example in examples {
                let words = example.split_whitespace().map(|word| word.trim_matches('\''));
                let parsed = Args::try_parse_from(std::iter::once("keelway").chain(words));
                assert!(parsed.is_ok(), "{path:?}: keelway {example}: {}", parsed.err().map(|e| e.to_string()).unwrap_or_default());
                seen += 1;
            }
            for sub in command.get_subcommands() {
                commands.push(([path.clone(), vec![sub.get_name().to_owned()]].concat(), sub.clone()));
            }
        }
        assert!(seen > 30, "{seen}");
    }

    /// What each short flag stands for, as the page of the command says it.
    fn grammar() -> std::collections::BTreeMap<char, String> {
        let page = include_str!("../../../docs/cli.md");
        let table = page.split("## Grammar").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
        let row = |line: &str| {
            let rest = line.strip_prefix("| `-")?;
            let long = rest.split("`--").nth(1)?;
            Some((rest.chars().next()?, long.split([' ', '`']).next()?.to_owned()))
        };
        table.lines().filter_map(row).collect()
    }

    #[test]
    fn a_flag_means_the_same_below_every_verb() {
        let grammar = grammar();
        let mut used = std::collections::BTreeSet::new();
        let mut commands = vec![(vec![], Args::command())];
        while let Some((path, command)) = commands.pop() {
            let at = path.join(" ");
            let args: Vec<&clap::Arg> = command.get_arguments().collect();
            let has = |long: &str| args.iter().any(|arg| arg.get_long() == Some(long));
            for arg in &args {
                let long = arg.get_long();
                if let (Some(short), Some(long)) = (arg.get_short(), long) {
                    // `deployer` names its configs by --config.
                    assert_eq!(grammar.get(&short).map(String::as_str), Some(long), "{at}: -{short}");
                    used.insert(short);
                }
                assert!(!matches!(long, Some("namespace" | "context" | "reason" | "watch-timeout")), "{at}: {long:?}");
                // What a token may see, and whose shipyard is applied, is said each time.
                if long == Some("project") && !["apply", "token create"].contains(&at.as_str()) {
                    assert!(
                        arg.get_env().is_some_and(|variable| variable == "KEELWAY_PROJECT"),
                        "{at}: --project reads no variable"
                    );
                }
                for (name, short) in
                    [("project", 'p'), ("message", 'm'), ("watch", 'w'), ("output", 'o'), ("yes", 'y'), ("file", 'f')]
                {
                    assert!(long != Some(name) || arg.get_short() == Some(short), "{at}: --{name} is also -{short}");
                }
            }
            assert!(!has("watch") || has("timeout"), "{at}: what follows can be given up");
            let lists = path.first().is_some_and(|verb: &String| verb == "get") && path.len() == 2 && path[1] != "help";
            assert!(!lists || has("output"), "{at}: is printed in every format");
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                commands.push(([path.clone(), vec![sub.get_name().to_owned()]].concat(), sub.clone()));
            }
        }
        assert_eq!(
            used.into_iter().collect::<Vec<_>>(),
            grammar.keys().copied().collect::<Vec<_>>(),
            "the page tells what there is"
        );
    }

    #[test]
    fn apply_and_delete_say_what_they_take() {
        let command = Args::command();
        let about = |verb: &str| command.find_subcommand(verb).unwrap().get_about().unwrap().to_string();
        let (apply, delete) = (about("apply"), about("delete"));
        let cluster = command.find_subcommand("delete").unwrap().find_subcommand("cluster").unwrap();
        assert_eq!(cluster.get_about().unwrap().to_string(), "A cluster: its objects are no longer read");
        assert!(apply.contains("kinds Shipyard, Project,") && apply.contains(" and WebhookSubscription, alone"), "{apply}");
        assert!(delete.contains("Delete a project, a service, a schedule,") && delete.contains("an artifact source,"), "{delete}");
    }
}
