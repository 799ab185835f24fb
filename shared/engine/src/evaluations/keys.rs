//! The keys of evaluations.

use crate::item::Key;
use crate::partition::{Kind, MAIN, Partition};

const ENDED: &str = "F#";

static EVALUATIONS: Partition = Partition::new(
    "EV#",
    "<project>#<stage>#<service>",
    &[
        Kind::main("evaluations of a service in a stage").state(),
        Kind::records(),
        Kind::of(ENDED, "<trigger>#<content>", "evaluation that has ended").state(),
    ],
);
static CHOSEN: Partition = Partition::new("EC#", "<project>", &[Kind::main("source of metrics that a project evaluates by")]);
/// The kinds of items of evaluations.
pub static PARTITIONS: &[&Partition] = &[&EVALUATIONS, &CHOSEN];

/// The evaluations of a service in a stage: project, stage and service.
pub fn service([project, stage, service]: &[String; 3]) -> Key {
    Key::new(EVALUATIONS.named(format_args!("{project}#{stage}#{service}")), MAIN)
}

/// Project, stage and service of a key.
pub fn place(key: &Key) -> Option<[String; 3]> {
    let mut parts = key.pk.strip_prefix(EVALUATIONS.begins)?.splitn(3, '#').map(str::to_owned);
    Some([parts.next()?, parts.next()?, parts.next()?])
}

/// The evaluation that a trigger began, when it has ended with this content.
pub fn ended(place: &[String; 3], (trigger, content): (&str, &str)) -> Key {
    Key::new(service(place).pk, format!("{ENDED}{trigger}#{content}"))
}

/// The source that a project evaluates by.
pub fn chosen(project: &str) -> Key {
    Key::new(CHOSEN.named(project), MAIN)
}
