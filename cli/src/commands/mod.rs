//! The verbs, each in a file of its own.

mod apply;
mod approve;
mod back;
mod border;
mod create;
mod delete;
pub mod deployments;
mod doctor;
mod environments;
mod evaluate;
mod evaluations;
mod executions;
pub mod files;
pub mod find;
mod follow;
mod get;
mod kinds;
mod login;
mod migrate;
mod observe;
mod operations;
mod overrides;
mod past;
pub mod pipelines;
mod projects;
mod queue;
mod resources;
mod retry;
mod send;
mod shipyard;
mod status;
mod tokens;
mod trigger;
mod validate;
mod watch;
mod webhooks;

use crate::api::Api;
use crate::args::{Args, Command, Controlled, DiffAny, DiffOf, RollbackAny, RollbackOf, Set, Shipyard};
use crate::error::CliError;
use crate::output::say;
use keelway_wire::http::{Control, Verdict};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Does what the command line says.
///
/// # Errors
/// Whatever kept it from that, for `main` to print.
pub async fn run(args: Args) -> Result<ExitCode, CliError> {
    let args = crate::config::complete(args)?;
    let api = || Api::new(args.api.as_deref(), args.token.as_deref());
    match args.command {
        Command::Apply(what) => apply::apply(api, &what).await?,
        Command::Get(what) if what.watch => return follow::follow(&api()?, &what).await,
        Command::Get(what) => get::get(&api()?, &what.what).await?,
        Command::Status(what) => return status::status(&api()?, &what).await,
        Command::Create(what) => create::create(api, &what).await?,
        Command::Delete(what) => delete::delete(&api()?, &what).await?,
        Command::Pipeline(what) => {
            let settings = pipelines::Settings { api: args.api.as_deref(), token: args.token.as_deref() };
            pipelines::run(settings, &what).await?;
        }
        Command::Rollout(what) => return deployments::rollout(&api()?, &what).await,
        Command::Rollback(RollbackAny { of: Some(RollbackOf::Shipyard(what)), .. }) => shipyard::rollback(&api()?, &what).await?,
        Command::Rollback(RollbackAny { configs, .. }) if configs.stage.is_some() => back::rollback(&api()?, &configs).await?,
        Command::Rollback(RollbackAny { configs, .. }) => deployments::rollback(&api()?, &configs).await?,
        Command::Set(Set::Triggers(what)) => deployments::triggers(&api()?, &what).await?,
        Command::Diff(DiffAny { of: Some(DiffOf::Shipyard(what)), .. }) => return shipyard::diff(&api()?, &what).await,
        Command::Diff(DiffAny { versions, .. }) => return deployments::diff(&api()?, &versions).await,
        Command::Deploy(what) => return crate::deployer::deploy::run(&what).await,
        Command::Deployer(what) => return crate::deployer::run(api()?, what).await,
        Command::Observe(what) => observe::observe(api, &what).await?,
        Command::Trigger(what) => trigger::trigger(&api()?, &what).await?,
        Command::Watch(what) => {
            let how = watch::How { follow: what.follow, sure: false, watching: what.watching, format: what.output.format };
            watch::watch(&api()?, what.project.as_ref(), &what.contexts, how).await?;
        }
        Command::Approve(what) => approve::decide(&api()?, &what, Verdict::Approve).await?,
        Command::Decline(what) => approve::decide(&api()?, &what, Verdict::Decline).await?,
        Command::Pause(what) => control(&api()?, &what, "pause").await?,
        Command::Resume(what) => control(&api()?, &what, "resume").await?,
        Command::Abort(what) => control(&api()?, &what, "abort").await?,
        Command::Retry(what) => retry::retry(&api()?, &what).await?,
        Command::Override(what) => overrides::override_windows(&api()?, &what).await?,
        Command::Send(what) => send::send(&api()?, &what).await?,
        Command::Validate(what) | Command::Shipyard(Shipyard::Validate(what)) => {
            validate::validate(&what.files, what.output.format)?
        }
        Command::Shipyard(Shipyard::Migrate { file }) => shipyard::migrate(&file)?,
        Command::Shipyard(Shipyard::Show(what)) => shipyard::draw_one(api, &what).await?,
        Command::Resource(what) => resources::resource(&api()?, &what).await?,
        Command::Schema { kind } => shipyard::schema(kind.as_deref())?,
        Command::Evaluate(what) if what.file.is_some() => return evaluate::evaluate(&what),
        Command::Evaluate(what) => return evaluations::evaluate(&api()?, &what).await,
        Command::Evaluation(what) => evaluations::evaluation(api, &what).await?,
        Command::Set(Set::SliProvider(what)) => evaluations::choose(&api()?, &what).await?,
        Command::Executor(what) => return crate::executor::run(api()?, what).await,
        Command::DeadLetters(what) => operations::dead_letters(&api()?, &what).await?,
        Command::Login(what) => login::login(&what, args.api.as_deref(), args.token.as_deref()).await?,
        Command::Whoami { output } => login::whoami(&api()?, &output).await?,
        Command::Token(what) => tokens::token(&api()?, &what).await?,
        Command::Audit(what) => tokens::audit(&api()?, &what).await?,
        Command::Webhook(what) => webhooks::webhook(&api()?, &what).await?,
        Command::Doctor { checklist: true } => doctor::checklist()?,
        Command::Doctor { checklist: false } => doctor::doctor(args.api.as_deref(), args.token.as_deref()).await?,
        Command::Completion { shell } => say(&crate::candidates::script(shell)?)?,
        Command::Version => say(concat!("keelway ", env!("CARGO_PKG_VERSION")))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn control(api: &Api, what: &Controlled, state: &str) -> Result<(), CliError> {
    let Controlled { project, context, stage } = what;
    let place = find::place(api, project.as_ref(), context).await?;
    let context = &place.context;
    let project = place.project(api).await?;
    let stage = stage.as_ref().map(ToString::to_string).unwrap_or_default();
    let body = Control { state: state.to_owned(), stage };
    let answer: Value = api.post(&["sequence", project.as_str(), context.as_str(), "control"], &json!(body)).await?;
    say(&format!("{state}: {}", answer["detail"].as_str().unwrap_or("accepted")))?;
    if answer["open"].as_u64() != Some(0) {
        eprintln!("it shows in: keelway get sequences {context} -p {project}");
    }
    Ok(())
}
