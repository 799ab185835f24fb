//! What fields are for, as editors show it.

use crate::manifest::deployments::Part;
use crate::manifest::fields::Level::{self, Deployment};

/// A sentence about a field; names and references need none.
pub fn about(level: Level, field: &str) -> Option<&'static str> {
    let text = match (level, field) {
        (Level::Spec, "stages") => "In the order in which they are shown; `triggeredOn` says what follows what.",
        (Level::Stage, "sequences") => {
            "What can run in this stage. Every stage has `evaluation` as well, unless it defines its own."
        }
        (Level::Stage, "windows") => "When sequences may begin here, and when not.",
        (Level::Sequence, "ignoreWindows") => "Whether it begins although the windows of its stage are closed.",
        (Level::Window, "schedule") => "When it opens: a cron expression with five fields, `0 18 * * FRI`.",
        (Level::Window, "duration") => "How long it stays open: `62h`.",
        (Level::Window, "from" | "until") => "Of a window that is open once: a time in `zone`, `2026-12-23T18:00`.",
        (Level::Window, "zone") => "The IANA time zone, `Europe/Berlin`; absent: UTC.",
        (Level::Window, "reason") => "Shown to whoever has to wait.",
        (Level::Sequence, "triggeredOn") => "What starts it in addition to its own `.triggered` event: any one entry.",
        (Level::Sequence, "tasks") => "Run in this order until one fails.",
        (Level::Sequence, "timeout") => "From the first task's trigger to the end, waiting for an approval included: `2h`.",
        (Level::Task, "properties") => "Passed to the executor as `data.<task>`.",
        (Level::Task, "triggeredAfter") => "How long to wait before the task is triggered: `10m`.",
        (Level::Task, "startDeadline") => "How long executors have to answer the trigger: `10m`.",
        (Level::Task, "timeout") => {
            "How long it may take from its `.started`; of an approval, how long a person has. 0 is for ever."
        }
        (Level::Trigger, "event") => "`<stage>.<sequence>.finished`, `<stage>.<task>.finished`, or the name of a domain event.",
        (Level::Trigger, "selector") => "Without one, a sequence or task must have ended with `pass`.",
        (Level::Selector, "match") => "`result: fail`, or `<task>.result: fail`; every entry must match.",
        (Level::ScheduleSpec, "cron") => "When: a cron expression with five fields, `30 2 * * MON-FRI`.",
        (Level::ScheduleSpec, "at") => "Once: a time in `zone`, `2026-12-23T18:00`.",
        (Level::ScheduleSpec, "zone") => "The IANA time zone, `Europe/Berlin`; absent: UTC.",
        (Level::ScheduleSpec, "start" | "end") => "Nothing is triggered before `start`, or from `end` on.",
        (Level::ScheduleSpec, "suspended") => "Nothing is triggered until this is taken out.",
        (Level::ScheduleSpec, "concurrency") => "What happens while the run before is open: `skip`, or `queue` behind it.",
        (Level::ScheduleSpec, "data") => "The data of the trigger.",
        (Level::ProjectSpec, "startDeadline") => "How long executors have to answer a task's trigger, unless the task says.",
        (Level::ProjectSpec, "taskTimeout") => "How long a started task may take, unless it says. 0 is for ever.",
        (Level::ProjectSpec, "consents") => "What other projects may do here. Absent: nothing.",
        (Level::ProjectSpec, "policy") => {
            "What this project may use of the installation; only who administers all projects may write it. Absent: it stays as it is; null: none."
        }
        (Level::Consent, "to") => "Who is let in: names of projects; `*` stands for any text, `?` for one character.",
        (Level::Consent, "may") => {
            "`deploy` and `observe` configs, `tag` artifact sources, `observe` tags and clusters, `trigger` sequences."
        }
        (Level::Consent, "names") => "Of which configs, sources, clusters and stages, as patterns. Absent: of all of them.",
        (Level::Policy, "allows") => "What manifests of this project may name, by kind. A kind that is absent: nothing of it.",
        (Level::Policy, "quotas") => "How many of something the project may have.",
        (Level::Allows, "functions") => "Lambda functions that Keelway deploys to.",
        (Level::Allows, "hookFunctions") => "Lambda functions that hooks call.",
        (Level::Allows, "packages") => "Packages of code in S3: `<bucket>/<key>`.",
        (Level::Allows, "images") => "Repositories of images: `<registry>/<repository>`.",
        (Level::Allows, "tasks") => "Task definitions of ECS: `<cluster>/<family>`.",
        (Level::Allows, "builds") => "Projects of CodeBuild.",
        (Level::Allows, "repositories") => "Repositories of git hosts, as URLs.",
        (Level::Allows, "servers") => "Servers of the Kubernetes API, as URLs.",
        (Level::ResourcePattern, "region" | "account") => "Absent: the installation's own.",
        (Level::PipelineSpec, "environments") => "In the order of promotion.",
        (Level::PipelineSpec, "promotion") => "How revisions get into the environments that do not say it themselves.",
        (Level::PipelineSpec, "inFlight") => "What a newer revision does to one that is on its way.",
        (Level::Environment, "soak") => "How long a revision stays healthy here before it goes on: `1h`.",
        (Level::Promotion, "manual") => "Whether a person approves each promotion.",
        (Level::Promotion, "windows") => "When promotions may happen, and when not.",
        (Level::Approval, "quorum") => "How many people must approve.",
        (Level::Approval, "approvers") => "Only these: `token:ann`, `<provider>/<subject>`, `key:<id>/<name>`.",
        (Level::Approval, "separate") => "Whoever set the revision may not approve it.",
        (Level::WebhookSpec, "events") => "Types of events; `*` stands for any text, `?` for one character.",
        (Level::WebhookSpec, "matchExpressions") => "Conditions on members of the event's data; all of them must hold.",
        (Level::WebhookSpec, "url") => "Where the events go: a template, with `{{ secrets.<name> }}` for secrets.",
        (Level::WebhookSpec, "form") => "A ready-made message for a chat, in place of the event.",
        (Level::WebhookSpec, "body") => "A template in place of the event: `{{ data.project }}`. Values are escaped for JSON.",
        (Level::WebhookSpec, "secrets") => "Secrets that templates may use.",
        (Level::WebhookSpec, "signingSecretRef") => "The key that signs requests, as Standard Webhooks has it: `whsec_…`.",
        (Level::WebhookSpec, "sendStarted") => "Keelway answers the task's `.triggered` event with `.started`.",
        (Level::WebhookSpec, "sendFinished") => "Keelway answers it with `.finished`, too, from the answer of the receiver.",
        (Level::WebhookSpec, "attempts") => "How often a delivery is tried: 1 to 10.",
        (Level::WebhookFilter, "projects") => "Patterns of projects; without them, the project of the namespace.",
        (Deployment(Part::Spec), "template") => "What is deployed: a pod template, or any document with `containers`.",
        (Deployment(Part::Spec), "triggers") => {
            "What cuts a new version. Absent: a change of the template; an empty list: only people."
        }
        (Deployment(Part::Spec), "targets") => "Where it is deployed to.",
        (Deployment(Part::Spec), "paused") => "Nothing new is deployed.",
        (Deployment(Part::Spec), "revisionHistoryLimit") => "How many old versions are kept.",
        (Deployment(Part::Spec), "concurrency") => "What a new version does to one that is being deployed.",
        (Deployment(Part::Spec), "autoRollback") => "When to go back without being asked.",
        (Deployment(Part::Step), "weight") => "The percentage of the requests that go to the new version.",
        (Deployment(Part::Step), "bake") => "How long it stays at this weight; absent: until a person says to go on.",
        (Deployment(Part::SourceSpec), "images") => {
            "What a webhook may say that the tags point to: `<registry>/<repository>` or `s3://<bucket>/<key>`; `*` stands for any text."
        }
        (Deployment(Part::SourceTag), "pattern") => "The tags that it follows: `*` stands for any text, `?` for one character.",
        _ => return None,
    };
    Some(text)
}
