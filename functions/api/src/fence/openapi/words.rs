//! What the document says about parameters and statuses that many operations have.

/// About the API as a whole.
pub const ABOUT: &str = "The HTTP API of Keelway, a control plane for continuous delivery. docs/api.md describes it for people. Objects in \
                         answers may get further members; requests with a member or a parameter that is not listed here are refused, except events, \
                         which may have further ones.";

/// Parameters by name.
const PARAMETERS: &[(&str, &str)] = &[
    ("If-Match", "The `ETag` of what is replaced: the request is refused if it is not in force any more."),
    (
        "Idempotency-Key",
        "1 to 255 ASCII characters that stand for this request: sent again with the same key, it takes effect once.",
    ),
    ("action", "Only entries with this action."),
    ("beforeTime", "Only what is older than this time, RFC 3339."),
    ("by", "Who changes it, for the history."),
    ("cluster", "`<namespace>/<name>` of the cluster that reports; without it, the one without a name."),
    ("command", "The command: `pause`, `resume`, `cancel`, `retry` or `proceed`; of triggers `suspend` or `resume`."),
    ("context", "The context, as the answer to its trigger has it."),
    ("contextPrefix", "The beginning of the context's name, at least 8 characters."),
    ("day", "The day in UTC, for example 2026-11-22; by default today."),
    ("disableUpstreamSync", "Taken and ignored: Keptn's clients send it."),
    ("dryRun", "`true`: everything is checked and compared, and nothing is stored."),
    ("environment", "The name of the environment."),
    ("eventID", "Only the event with this id."),
    ("from", "The revision to compare with."),
    ("fromTime", "Only what is newer than this time, RFC 3339."),
    ("gitCommitID", "The commit to read the file at; by default the newest."),
    ("githost", "The name of the git host."),
    ("hostname", "Only executors on this host."),
    ("id", "Identifies it: as the list has it; of a deployment config `<name>` in namespace `default`, or `<namespace>:<name>`."),
    ("integrationId", "Only of this executor."),
    ("keptnContext", "The context; in the list of sequences several, with commas between."),
    ("labels", "Labels with or without value, with commas between: `team=checkout,urgent`."),
    ("name", "Its name; of a version `<config>-<number>`."),
    ("namespace", "The namespace, which is a project's name."),
    ("nextPageKey", "The `nextPageKey` of the answer before; \"0\" or none is the first page."),
    ("open", "`true`: only executions that are open, those of the project, in the order of their ids."),
    ("pageSize", "How many entries a page has at most; more than 100 counts as 100."),
    ("project", "The project."),
    ("revision", "The revision."),
    ("service", "The service."),
    ("since", "Only what ended since this time, RFC 3339; by default a day ago."),
    ("source", "Only events of this source."),
    ("stage", "The stage."),
    ("state", "Only those in this state."),
    ("status", "Of deployments `New`, `Complete` or `Failed`; of executions a state of sequences."),
    ("subscription", "The id of the subscription."),
    ("to", "The revision that it is compared with; by default the one in force."),
    ("token", "The name of the token; in the audit also a subject."),
    ("trigger", "The id of the open `approval.triggered`."),
    (
        "type",
        "A type of events. Of open triggers: a task's name or `sh.keptn.event.<task>.triggered`, up to 10 with commas between.",
    ),
    ("unless", "A `fingerprint`: answers without events while exactly the triggers that it stands for are open."),
    ("uri", "The file's path, with `/` as such or percent-encoded."),
    ("webhook", "Only those of this subscription."),
    ("wait", "So many seconds, up to 20, the request waits for the first trigger."),
];

/// Statuses.
const STATUSES: &[(&str, &str)] = &[
    ("200", "Done: the answer shows it."),
    ("201", "It was created."),
    ("202", "Accepted, and not yet in the state."),
    ("204", "Done."),
    ("400", "The request is not understood; nothing was done."),
    ("401", "The token or the signature is missing, wrong, expired or revoked."),
    ("403", "The token does not allow this; the answer names the scope that is missing."),
    ("404", "Something that the request names does not exist; the answer suggests similar names."),
    ("409", "The request contradicts the state."),
    ("412", "The header `If-Match` names a revision that is not in force."),
    ("413", "The body, or something in it, is too large."),
    ("415", "The body is not JSON by its content type."),
    (
        "422",
        "What the request asks for is refused, with all reasons in `errors`; or its `Idempotency-Key` was used for another body.",
    ),
    ("429", "Too many requests; `Retry-After` says when to try again."),
    ("500", "An internal error; the function's log has the details."),
    ("503", "A service behind the API is busy: send the same request again; it takes effect once."),
];

fn find(table: &'static [(&str, &str)], name: &str) -> &'static str {
    table.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
}

/// What a parameter means; empty: nothing is said here.
pub fn parameter(name: &str) -> &'static str {
    find(PARAMETERS, name)
}

/// What a status means.
pub fn status(status: &str) -> &'static str {
    find(STATUSES, status)
}

/// All statuses of refusals.
pub fn refusals() -> impl Iterator<Item = (&'static str, &'static str)> {
    STATUSES.iter().copied().filter(|(status, _)| *status >= "400")
}
