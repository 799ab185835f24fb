//! The table keys of everything about promotions. One partition per pipeline (its state, records and history), one per target (the
//! newest fact, and which pipelines depend on it), one per cluster (the objects that pipelines name), one per repository (the open
//! pull requests to look at).

use super::message::Address;
use crate::item::Key;
use crate::keys::{MAIN, hash, ms};
use crate::partition::{Kind, Partition};
use keelway_domain::ids::{hash64, sha256_hex};
use keelway_domain::promotions::definition::{App, Target};
use keelway_domain::promotions::{Attempt, MERGED_LATE, NOT_TAKEN_BACK, Obeyed, Past};

static PIPELINES: Partition = Partition::new(
    "P#",
    "<namespace>#<pipeline>",
    &[
        Kind::main("pipeline").state(),
        Kind::records(),
        Kind::of(HISTORY, "<time>#<run>#<environment>#<again>", "promotion that has ended, command that was obeyed").state(),
    ],
);
static DEFINITIONS: Partition = Partition::new("PD#", "<namespace>", &[Kind::of("", "<pipeline>", "definition of a pipeline")]);
static LISTED: Partition =
    Partition::new(NAMESPACES, "", &[Kind::of("", "<namespace>", "namespace in which there was a pipeline")]);
static REGISTERED: Partition = Partition::new(CLUSTERS, "", &[Kind::of("", "<namespace>/<name>", "registered cluster")]);
static HOSTS: Partition = Partition::new(GIT_HOSTS, "", &[Kind::of("", "<name>", "git host")]);
static NONCES: Partition = Partition::new("N#", "<hash>", &[Kind::main("used nonce")]);
static REQUESTS: Partition = Partition::new("I#", "<hash>", &[Kind::main("request with an idempotency key, and its answer")]);
static COUNTS: Partition =
    Partition::new("RC#", "<hash>#<window>", &[Kind::main("how many requests a client sent without a token")]);
static TARGETS: Partition = Partition::new(
    "O#",
    "<hash>",
    &[Kind::main("target: the newest fact").state(), Kind::of(DEPENDS, "<namespace>#<pipeline>", "pipeline that names the target")],
);
static OBSERVED: Partition = Partition::new(
    "OC#",
    "<hash>",
    &[
        Kind::main("cluster: when it is observed"),
        Kind::of(NAMED, "<target>#<namespace>#<pipeline>#<version>", "object in the cluster that a pipeline names"),
    ],
);
static REPOSITORIES: Partition = Partition::new(
    "R#",
    "<hash>",
    &[Kind::main("repository: when it is looked at").state(), Kind::of(OPEN, "<identity>", "open pull request").state()],
);
/// The partitions of promotions.
pub static PARTITIONS: &[&Partition] =
    &[&PIPELINES, &DEFINITIONS, &LISTED, &REGISTERED, &HOSTS, &NONCES, &REQUESTS, &COUNTS, &TARGETS, &OBSERVED, &REPOSITORIES];

/// The partition of a pipeline.
pub fn pipeline_partition(to: &Address) -> String {
    PIPELINES.named(format_args!("{}#{}", to.namespace, to.name))
}

/// The state of a pipeline.
pub fn pipeline(to: &Address) -> Key {
    Key::new(pipeline_partition(to), MAIN)
}

/// The partition that lists the pipelines of a namespace.
pub fn definitions(namespace: &str) -> String {
    DEFINITIONS.named(namespace)
}

/// The partition that lists the namespaces in which a pipeline was ever applied.
pub const NAMESPACES: &str = "PN";

/// The definition of a pipeline.
pub fn definition(to: &Address) -> Key {
    Key::new(definitions(&to.namespace), to.name.clone())
}

/// The partition of registered clusters; their sort keys are `<namespace>/<name>`.
pub const CLUSTERS: &str = "PC";
/// The partition of registered git hosts.
pub const GIT_HOSTS: &str = "PH";

/// A used nonce. Both parts come from clients, so their hash is the key.
pub fn nonce(scope: &str, nonce: &str) -> Key {
    Key::new(NONCES.named(sha256_hex(format!("{}#{scope}#{nonce}", scope.len()).as_bytes())), MAIN)
}

/// A request that carries a key of its client's; `id` is a hash.
pub fn request(id: &str) -> Key {
    Key::new(REQUESTS.named(id), MAIN)
}

/// The number of requests without a token from a client in a time window. The address comes from the client, so its hash is the
/// key.
pub fn requests(client: &str, window: i64) -> Key {
    Key::new(COUNTS.named(format_args!("{}#{window}", sha256_hex(client.as_bytes()))), MAIN)
}

/// What the sort keys of a pipeline's history begin with.
pub const HISTORY: &str = "H#";

/// The sort key of a promotion that has left the state.
pub fn history(past: &Past) -> String {
    let promotion = &past.promotion;
    // A promotion that was merged at the moment it was given up has two entries, and so has one that could not be taken back.
    let late = match promotion.why.reason.as_str() {
        MERGED_LATE => "#late",
        NOT_TAKEN_BACK => "#left",
        _ => "",
    };
    format!("{HISTORY}{}#{:06}#{}#{}{late}", ms(past.at), promotion.run, past.environment, promotion.again)
}

/// The sort key of a command that was obeyed. `-` sorts it before the promotions that it ended in the same millisecond.
pub fn command(obeyed: &Obeyed) -> String {
    format!("{HISTORY}{}#-{}", ms(obeyed.at), hash(obeyed.note.id))
}

/// The partition of a target: an application in a namespace of a cluster. Its name is hashed, because clusters and kinds may have
/// names of any length.
pub fn target_partition(app: &App, target: &Target) -> String {
    let cluster = target.cluster.as_deref().unwrap_or_default();
    let parts = [cluster, &target.namespace, group(&app.api_version), &app.kind, &app.name].map(str::as_bytes);
    TARGETS.named(hash(hash64(&[b"target", parts[0], parts[1], parts[2], parts[3], parts[4]])))
}

/// The whole name of a target, of which the partition is only a hash.
pub fn target_name(app: &App, target: &Target) -> String {
    crate::json::json(&[
        target.cluster.as_deref().unwrap_or_default(),
        &target.namespace,
        group(&app.api_version),
        &app.kind,
        &app.name,
    ])
}

/// The API group of `group/version`. An object keeps its identity when the version of its API changes.
fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The newest fact about a target.
pub fn observation(app: &App, target: &Target) -> Key {
    Key::new(target_partition(app, target), MAIN)
}

/// What the entries of the pipelines that depend on a target begin with.
pub const DEPENDS: &str = "P#";

/// Says that a pipeline depends on a target.
pub fn depends(app: &App, target: &Target, to: &Address) -> Key {
    Key::new(target_partition(app, target), format!("{DEPENDS}{}#{}", to.namespace, to.name))
}

/// The partition of a cluster: when it is observed next, and the objects in it that pipelines name. Readers must compare the name
/// of the cluster, because the partition key is only its hash.
pub fn cluster_partition(cluster: &str) -> String {
    OBSERVED.named(hash(hash64(&[b"cluster", cluster.as_bytes()])))
}

/// When a cluster is observed next.
pub fn observed_cluster(cluster: &str) -> Key {
    Key::new(cluster_partition(cluster), MAIN)
}

/// What the entries of objects that pipelines name begin with.
pub const NAMED: &str = "T#";

/// The place of a target among the entries of its cluster.
pub fn place(app: &App, target: &Target) -> String {
    target_partition(app, target).trim_start_matches(TARGETS.begins).to_owned()
}

/// Says that a pipeline names an object of a cluster. `None`: the target names no cluster.
pub fn named(app: &App, target: &Target, to: &Address) -> Option<Key> {
    let cluster = target.cluster.as_deref()?;
    // Pipelines may name one object with different API versions, which are different entries.
    let sort = format!("{NAMED}{}#{}#{}#{}", place(app, target), to.namespace, to.name, app.api_version);
    Some(Key::new(cluster_partition(cluster), sort))
}

/// The partition of a repository.
pub fn repository_partition(url: &str) -> String {
    REPOSITORIES.named(hash(hash64(&[b"repository", url.as_bytes()])))
}

/// When a repository is looked at next.
pub fn repository(url: &str) -> Key {
    Key::new(repository_partition(url), MAIN)
}

/// What the entries of open pull requests begin with.
pub const OPEN: &str = "Q#";

/// An open pull request of Keelway.
pub fn open_request(url: &str, to: &Address, attempt: &Attempt) -> Key {
    let identity = hash(attempt.identity(&to.namespace, &to.name));
    Key::new(repository_partition(url), format!("{OPEN}{identity}"))
}
