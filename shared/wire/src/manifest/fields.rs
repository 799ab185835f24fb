//! Which fields a manifest has at which level, and what an unknown one may have meant.

use super::deployments::{self, Part};
use super::finding::Report;
use super::names::nearest;
use super::tree::{Entry, Node};

/// The levels, each with its fields.
macro_rules! levels {
    ($($level:ident: [$($field:literal),*],)*) => {
        /// A kind of mapping in a manifest.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Level {
            $($level,)*
            /// Of the manifests of deployments.
            Deployment(Part),
        }

        use Level::{$($level),*};

        const LEVELS: &[Level] = &[$($level),*];

        impl Level {
            /// Its fields. Of `properties` and `match`, which are open, those that people put elsewhere.
            pub fn fields(self) -> &'static [&'static str] {
                match self {
                    $($level => &[$($field),*],)*
                    Level::Deployment(part) => part.fields(),
                }
            }
        }
    };
}

levels! {
    Shipyard: ["apiVersion", "version", "kind", "metadata", "spec"],
    Metadata: ["name", "annotations", "labels"],
    Spec: ["stages"],
    Stage: ["name", "windows", "sequences"],
    Sequence: ["name", "triggeredOn", "tasks", "timeout", "supersede", "ignoreWindows"],
    Task: ["name", "triggeredAfter", "properties", "startDeadline", "timeout"],
    Properties: ["deploymentstrategy", "teststrategy", "timeframe", "pass", "warning"],
    Trigger: ["event", "selector"],
    Selector: ["match"],
    Match: ["result"],
    OldShipyard: ["apiVersion", "version", "kind", "metadata", "spec", "stages", "project"],
    OldStage: ["name", "deployment_strategy", "test_strategy", "approval_strategy", "remediation_strategy"],
    Project: ["apiVersion", "kind", "metadata", "spec"],
    ProjectMetadata: ["name", "annotations", "labels"],
    ProjectSpec: ["description", "startDeadline", "taskTimeout", "consents", "policy"],
    Consent: ["to", "may", "names"],
    Policy: ["allows", "quotas"],
    Allows: ["functions", "hookFunctions", "packages", "images", "tasks", "builds", "repositories", "servers"],
    ResourcePattern: ["name", "region", "account"],
    Quotas: ["webhooks", "integrations", "pipelines", "deploymentConfigs", "schedules"],
    Remediation: ["apiVersion", "version", "kind", "metadata", "spec"],
    RemediationSpec: ["remediations"],
    ProblemType: ["problemType", "actionsOnOpen"],
    RemediationAction: ["action", "name", "description", "value"],
    Schedule: ["apiVersion", "kind", "metadata", "spec"],
    ScheduleSpec: [
        "project", "stage", "services", "sequence", "cron", "at", "zone", "start", "end", "suspended", "concurrency", "labels", "data"
    ],
    Pipeline: ["apiVersion", "kind", "metadata", "spec", "status"],
    ObjectMetadata: [
        "name", "namespace", "labels", "annotations", "creationTimestamp", "finalizers", "generation", "managedFields",
        "ownerReferences", "resourceVersion", "uid"
    ],
    PipelineSpec: ["appRef", "environments", "promotion", "inFlight", "compare"],
    AppRef: ["apiVersion", "kind", "name"],
    Environment: ["name", "targets", "promotion", "soak"],
    Target: ["namespace", "clusterRef"],
    ClusterRef: ["apiVersion", "kind", "name", "namespace"],
    Promotion: ["manual", "strategy", "approval", "windows"],
    Strategy: ["notification", "pull-request", "pullRequest", "sequence", "secretRef"],
    Notification: ["url", "secretRef"],
    PullRequest: ["type", "url", "baseBranch", "secretRef", "merge"],
    SequenceRef: ["project", "stage", "service", "name"],
    SecretRef: ["name"],
    Approval: ["quorum", "approvers", "separate", "remind"],
    Window: ["kind", "schedule", "duration", "from", "until", "zone", "reason"],
    Cluster: ["apiVersion", "kind", "metadata", "spec", "status"],
    ClusterSpec: ["server", "caData", "secretRef", "interval"],
    GitHost: ["apiVersion", "kind", "metadata", "spec", "status"],
    GitHostSpec: ["host", "type", "api", "secretRef", "webhookSecretRef"],
    Webhook: ["apiVersion", "kind", "metadata", "spec", "status"],
    WebhookSpec: [
        "events", "filter", "matchExpressions", "url", "headers", "form", "body", "contentType", "secrets", "signingSecretRef",
        "sendStarted", "sendFinished", "attempts"
    ],
    WebhookFilter: ["projects", "stages", "services"],
    MatchExpression: ["key", "operator", "values"],
    WebhookSecret: ["name", "secretRef"],
}

/// What a stage had in version 0.1; these have a message of their own.
pub const OLD_STAGE_FIELDS: [&str; 4] = ["deployment_strategy", "test_strategy", "approval_strategy", "remediation_strategy"];

impl Level {
    /// Whether it has a field of that name.
    pub fn has(self, key: &str) -> bool {
        self.fields().contains(&key)
    }

    /// The beginning of an entry, for levels that stand in lists.
    pub fn example(self) -> &'static str {
        match self {
            Stage | OldStage => "name: dev",
            Sequence => "name: delivery",
            Trigger => "event: dev.delivery.finished",
            Environment => "name: staging",
            Target => "namespace: shop-staging",
            Window => "kind: allow",
            ProblemType => "problemType: default",
            RemediationAction => "action: toggle-feature",
            ScheduleSpec => "carts",
            MatchExpression => "key: data.result",
            WebhookSecret => "name: token",
            Consent => "to: [team-a]",
            Level::Deployment(part) => part.example(),
            _ => "name: deployment",
        }
    }

    /// Whether it takes no field that it does not know.
    fn is_strict(self) -> bool {
        matches!(self, Level::Deployment(_) | Consent | Policy | Allows | ResourcePattern | Quotas)
    }

    fn parent(self) -> Option<Level> {
        match self {
            Shipyard | OldShipyard | OldStage | Project | Remediation | Schedule | Pipeline | Cluster | GitHost | Webhook => None,
            ScheduleSpec => Some(Schedule),
            RemediationSpec => Some(Remediation),
            ProblemType => Some(RemediationSpec),
            RemediationAction => Some(ProblemType),
            ClusterSpec => Some(Cluster),
            GitHostSpec => Some(GitHost),
            WebhookSpec => Some(Webhook),
            WebhookFilter | MatchExpression | WebhookSecret => Some(WebhookSpec),
            ObjectMetadata | PipelineSpec => Some(Pipeline),
            AppRef | Environment | Promotion => Some(PipelineSpec),
            Target => Some(Environment),
            ClusterRef => Some(Target),
            Strategy | Approval | Window => Some(Promotion),
            Notification | PullRequest | SequenceRef | SecretRef => Some(Strategy),
            Metadata | Spec => Some(Shipyard),
            Stage => Some(Spec),
            Sequence => Some(Stage),
            Task | Trigger => Some(Sequence),
            Properties => Some(Task),
            Selector => Some(Trigger),
            Match => Some(Selector),
            ProjectMetadata | ProjectSpec => Some(Project),
            Consent | Policy => Some(ProjectSpec),
            Allows | Quotas => Some(Policy),
            ResourcePattern => Some(Allows),
            Level::Deployment(part) => part.parent().map(Level::Deployment),
        }
    }

    /// Levels between the two, if one lies above the other.
    fn distance(self, other: Level) -> Option<usize> {
        let up = |from: Level, to: Level| std::iter::successors(Some(from), |level| level.parent()).position(|level| level == to);
        up(self, other).or_else(|| up(other, self))
    }

    /// "a stage", for messages.
    pub fn what(self) -> &'static str {
        match self {
            Shipyard => "a Shipyard",
            Metadata | ProjectMetadata | ObjectMetadata => "`metadata`",
            Spec => "a Shipyard's `spec`",
            Stage => "a stage",
            OldShipyard => "a shipyard of version 0.1",
            OldStage => "a stage of version 0.1",
            Sequence => "a sequence",
            Task => "a task",
            Properties => "`properties`",
            Trigger => "an entry of `triggeredOn`",
            Selector => "a `selector`",
            Match => "`match`",
            Project => "a Project",
            ProjectSpec => "a Project's `spec`",
            Consent => "an entry of `consents`",
            Policy => "`policy`",
            Allows => "`allows`",
            ResourcePattern => "a pattern",
            Quotas => "`quotas`",
            Remediation => "a Remediation",
            RemediationSpec => "a Remediation's `spec`",
            ProblemType => "an entry of `remediations`",
            RemediationAction => "an entry of `actionsOnOpen`",
            Schedule => "a Schedule",
            ScheduleSpec => "a Schedule's `spec`",
            Pipeline => "a Pipeline",
            PipelineSpec => "a Pipeline's `spec`",
            AppRef => "`appRef`",
            Environment => "an environment",
            Target => "a target",
            ClusterRef => "`clusterRef`",
            Promotion => "`promotion`",
            Strategy => "`strategy`",
            Notification => "`notification`",
            PullRequest => "`pull-request`",
            SequenceRef => "`sequence`",
            SecretRef => "`secretRef`",
            Approval => "`approval`",
            Window => "a window",
            Cluster => "a Cluster",
            ClusterSpec => "a Cluster's `spec`",
            GitHost => "a GitHost",
            GitHostSpec => "a GitHost's `spec`",
            Webhook => "a WebhookSubscription",
            WebhookSpec => "a WebhookSubscription's `spec`",
            WebhookFilter => "`filter`",
            MatchExpression => "an entry of `matchExpressions`",
            WebhookSecret => "an entry of `secrets`",
            Level::Deployment(part) => part.what(),
        }
    }

    /// Where a field of this level is written.
    fn place(self) -> &'static str {
        match self {
            Shipyard | OldShipyard | Project | Remediation | Schedule | Pipeline | Cluster | GitHost | Webhook => {
                "at the top of the document, beside `kind`"
            }
            Metadata | ProjectMetadata | ObjectMetadata => "under `metadata`",
            Spec | ProjectSpec | RemediationSpec | ScheduleSpec | PipelineSpec | ClusterSpec | GitHostSpec | WebhookSpec => {
                "under `spec`"
            }
            Consent => "in an entry of `consents`",
            Policy => "under `policy`",
            Allows => "under `allows`, which stands under `policy`",
            ResourcePattern => "in an entry with `name`",
            Quotas => "under `quotas`, which stands under `policy`",
            WebhookFilter => "under `filter`",
            MatchExpression => "in an entry of `matchExpressions`",
            WebhookSecret => "in an entry of `secrets`",
            ProblemType => "in an entry of `remediations`",
            RemediationAction => "in an entry of `actionsOnOpen`",
            AppRef => "under `appRef`",
            Environment => "in an entry of `environments`",
            Target => "in an entry of `targets`",
            ClusterRef => "under the target's `clusterRef`",
            Promotion => "under `promotion`",
            Strategy => "under `strategy`, which stands under `promotion`",
            Notification => "under `notification`",
            PullRequest => "under `pull-request`",
            SequenceRef => "under `sequence`",
            SecretRef => "under `secretRef`",
            Approval => "under `approval`, which stands under `promotion`",
            Window => "in an entry of `windows`",
            Stage | OldStage => "in an entry of `stages`",
            Sequence => "in an entry of `sequences`",
            Task => "in an entry of `tasks`",
            Properties => "under the task's `properties`",
            Trigger => "in an entry of `triggeredOn`",
            Selector => "under `selector`",
            Match => "under `match`, which stands under `selector`",
            Level::Deployment(part) => part.place(),
        }
    }

    /// Words that mean a field without resembling it.
    fn alias(self, key: &str) -> Option<&'static str> {
        let key = key.to_lowercase().replace(['_', '-'], "");
        match (self, key.as_str()) {
            (Sequence, "trigger" | "triggers" | "triggered" | "triggeron" | "triggerson" | "on" | "events" | "dependson") => {
                Some("triggeredOn")
            }
            // What sequences were called before version 0.2 was released.
            (Stage, "workflow" | "workflows") => Some("sequences"),
            (Sequence, "steps" | "jobs") => Some("tasks"),
            (Task, "props" | "property" | "parameters" | "params" | "config" | "with") => Some("properties"),
            (Task, "after" | "delay" | "wait" | "waittime" | "triggerafter") => Some("triggeredAfter"),
            (Trigger, "name" | "on" | "type" | "sequence") => Some("event"),
            (Trigger, "matches" | "condition" | "when" | "if") => Some("selector"),
            (ProjectSpec, "timeout") => Some("taskTimeout"),
            (Consent, "from" | "projects" | "project") => Some("to"),
            (Consent, "allow" | "allows" | "acts" | "actions") => Some("may"),
            (Consent, "configs" | "sources" | "clusters" | "stages" | "resources") => Some("names"),
            (Policy, "allow" | "allowed" | "resources") => Some("allows"),
            (Policy, "quota" | "limits") => Some("quotas"),
            (Allows, "hooks") => Some("hookFunctions"),
            (Strategy, "pullrequest") => Some("pull-request"),
            (ScheduleSpec, "service") => Some("services"),
            (ScheduleSpec, "schedule") => Some("cron"),
            (ScheduleSpec | Window, "timezone" | "tz") => Some("zone"),
            (ScheduleSpec, "suspend") => Some("suspended"),
            (ScheduleSpec, "concurrencypolicy") => Some("concurrency"),
            (WebhookSpec, "event" | "types" | "eventtypes" | "on") => Some("events"),
            (WebhookSpec, "payload" | "template") => Some("body"),
            (WebhookSpec, "secretref" | "signing" | "secret") => Some("signingSecretRef"),
            (WebhookSpec, "retries" | "tries") => Some("attempts"),
            (WebhookSpec, "projects" | "stages" | "services" | "selector") => Some("filter"),
            (Level::Deployment(part), key) => part.alias(key),
            _ => None,
        }
    }
}

/// Reports every field `level` does not have: resembling or misplaced ones as errors with the remedy. Others are warnings; in the
/// manifests of deployments they are errors, too: what a deployer is not handed should not look as if it were. So they are where
/// a limit that is ignored would let somebody in.
pub fn check(node: &Node, level: Level, path: &str, report: &mut Report) {
    for entry in node.entries().unwrap_or_default() {
        let key = entry.key.as_str();
        let old = level == Stage && OLD_STAGE_FIELDS.contains(&key);
        if !old && !level.has(key) {
            unknown(entry, level, path, report);
        }
    }
}

fn unknown(entry: &Entry, level: Level, path: &str, report: &mut Report) {
    let key = entry.key.as_str();
    if let Some(rest) = key.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic())) {
        let message = format!("is read as a field named `{key}`: put a blank after the `-`, `- {rest}:`");
        report.error_at(entry.at, format!("{path}.{key}"), message);
        return;
    }
    let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let meant = level.alias(key).or_else(|| nearest(key, level.fields().iter().copied()));
    // Exactly known elsewhere beats resembling something here, unless it is only written differently.
    let elsewhere = misplaced(key, level, meant.is_some());
    let message = match (meant, elsewhere) {
        (_, Some(home)) => format!("is not a field of {}: it belongs {}", level.what(), home.place()),
        (Some(field), None) => format!("is not a field of {}: write `{field}`", level.what()),
        (None, None) if level.is_strict() => {
            format!("is not a field of {}: leave it out; it has `{}`", level.what(), level.fields().join("`, `"))
        }
        (None, None) => {
            let fields = level.fields().join("`, `");
            let hint = if level == Task { "; a task's own settings go under `properties`" } else { "" };
            report.warning_at(
                entry.at,
                path,
                format!("is not a field of {} and is ignored: it has `{fields}`{hint}", level.what()),
            );
            return;
        }
    };
    report.error_at(entry.at, path, message);
}

/// The nearest level above or below that has the field.
fn misplaced(key: &str, level: Level, resembles: bool) -> Option<Level> {
    let key = key.strip_suffix(".result").map_or(key, |task| if task.is_empty() { key } else { "result" });
    let all = LEVELS.iter().copied().chain(deployments::PARTS.iter().copied().map(Level::Deployment));
    let homes = all.filter_map(|home| {
        let known = if resembles {
            home.fields().contains(&key)
        } else {
            nearest(key, home.fields().iter().copied()).is_some_and(|field| field.len() > 4 || field == key)
        };
        level.distance(home).filter(|distance| (1..=2).contains(distance) && known).map(|distance| (distance, home))
    });
    homes.min_by_key(|(distance, _)| *distance).map(|(_, home)| home)
}
