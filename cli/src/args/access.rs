//! Who somebody is and what they may do: `login`, `whoami`, `token`, `audit`.

use super::named::PROJECT;
use super::values::{length, name};
use super::{Output, examples};
use clap::{Args as Group, Subcommand};
use keelway_domain::access::Scope;
use keelway_domain::names::{ProjectName, TokenName};
use std::time::Duration;

/// `login`
#[derive(Group)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Login {
    #[command(subcommand)]
    pub verb: Option<LoginVerb>,
    /// What to call this login
    #[arg(default_value = "default")]
    pub name: String,
}

/// What is done with the logins that are remembered.
#[derive(Subcommand)]
pub enum LoginVerb {
    /// Every login
    #[command(visible_alias = "ls", after_help = examples::LOGIN_LIST)]
    List,
    /// Use a login from now on
    #[command(after_help = examples::LOGIN_USE)]
    Use {
        /// The login
        name: String,
    },
    /// Forget a login; its token stays valid
    #[command(after_help = examples::LOGIN_DELETE)]
    Delete {
        /// The login
        name: String,
    },
}

/// `token`
#[derive(Subcommand)]
pub enum TokenVerb {
    /// Make a token; prints its secret, once
    #[command(after_help = examples::TOKEN_CREATE)]
    Create {
        /// Its name: what others see as the author of what is done with it
        #[arg(value_parser = name::<TokenName>)]
        name: TokenName,
        /// What it may do: read, trigger, trigger:STAGE, execute:TASK, approve:STAGE or administer; * is any task or stage
        #[arg(long = "scope", required = true, value_delimiter = ',', value_parser = Scope::parse, value_name = "SCOPE")]
        scopes: Vec<Scope>,
        /// Only in these projects and namespaces
        #[arg(short, long = "project", value_delimiter = ',', value_parser = name::<ProjectName>, value_name = "PROJECT")]
        projects: Vec<ProjectName>,
        /// When it expires: a length such as 90d, or a time [default: never]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// What it is for
        #[arg(long)]
        note: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Every token, with its last use
    #[command(visible_alias = "ls", after_help = examples::TOKEN_LIST)]
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Give a token another secret; prints it, once
    #[command(after_help = examples::TOKEN_ROTATE)]
    Rotate {
        /// The token
        #[arg(value_parser = name::<TokenName>)]
        name: TokenName,
        /// How long the secret before stays valid, 7d at most; 0 for not at all [default: 1h]
        #[arg(long, value_name = "TIME")]
        overlap: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// End a token
    #[command(after_help = examples::TOKEN_REVOKE)]
    Revoke {
        /// The token
        #[arg(value_parser = name::<TokenName>)]
        name: TokenName,
    },
}

/// `audit`
#[derive(Group)]
pub struct Audit {
    /// Only what was done with this token, or by this person
    #[arg(long, value_name = "TOKEN")]
    pub by: Option<String>,
    /// Only this
    #[arg(long, value_parser = ["apply", "trigger", "control", "decide", "delete", "token", "override", "push", "claim", "observe"])]
    pub action: Option<String>,
    /// Only in this project or namespace
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// Only what is not older
    #[arg(long, value_parser = length, value_name = "TIME")]
    pub since: Option<Duration>,
    /// The most entries
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub limit: u16,
    #[command(flatten)]
    pub output: Output,
}
