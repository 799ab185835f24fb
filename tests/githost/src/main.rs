//! A git host in a directory. It prints a line of JSON with its address when it is ready, and a line for each request to stderr,
//! and serves until its standard input ends.

use clap::Parser;
use keelway_githost::{Form, Host, Options, Token};
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A strict git host for tests: bare repositories behind the REST forms of GitHub, Gitea, GitLab and Bitbucket Server.
#[derive(Parser)]
#[command(name = "keelway-githost")]
struct Arguments {
    /// Where to listen: a loopback address; port 0 takes a free port.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where repositories and pull requests are kept.
    #[arg(long)]
    directory: PathBuf,
    /// A token that may do everything. Can be given several times, also as user:token.
    #[arg(long, env = "KEELWAY_GITHOST_TOKEN")]
    token: Vec<String>,
    /// Whose webhooks are sent. All forms are served.
    #[arg(long, value_enum, default_value = "gitea")]
    form: Form,
}

fn main() -> std::io::Result<()> {
    let arguments = Arguments::parse();
    let token = |text: &String| match text.split_once(':') {
        Some((user, token)) => Token::new(token, user),
        None => Token::new(text, "keelway"),
    };
    let tokens = arguments.token.iter().map(token).collect();
    let options = Options { listen: arguments.listen, directory: arguments.directory, form: arguments.form, tokens, log: true };
    let host = Host::start(options)?;
    println!("{}", serde_json::json!({"url": host.url(), "form": arguments.form, "api": host.api(arguments.form)}));
    let mut buffer = [0; 1024];
    while std::io::stdin().read(&mut buffer)? > 0 {}
    host.stop();
    Ok(())
}
