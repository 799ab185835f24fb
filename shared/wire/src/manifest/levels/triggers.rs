//! The `triggers` of a DeploymentConfig.

use super::configs::SPEC;
use super::shape::Shape;
use super::{Level, entry, field, needed, required, under};

use Shape::{Any, Either, Flag, List, Needed, Of, Word};

pub static LEVELS: [&Level; 4] = [&REFERENCE, &TRIGGER, &IMAGE_CHANGE, &PROPOSED_IMAGE_CHANGE];

/// A reference to an image tag.
pub static REFERENCE: Level = Level {
    head: under("DeploymentReference", &IMAGE_CHANGE, "from").called("a reference to an image tag").strict(),
    fields: &[
        field("kind", Word(&["ImageStreamTag", ""])),
        required("name", Needed),
        field("namespace", Any),
        field("apiVersion", Any),
        field("uid", Any),
        field("resourceVersion", Any),
        field("fieldPath", Any),
    ],
};

pub static TRIGGER: Level = Level {
    head: entry("DeploymentTrigger", &SPEC, "triggers", "type: ConfigChange").called("a trigger").strict(),
    fields: &[
        required("type", Word(&["ConfigChange", "ImageChange", "Manual"])),
        field("imageChangeParams", Either(&[Of(&IMAGE_CHANGE), Of(&PROPOSED_IMAGE_CHANGE)])),
    ],
};

const CONTAINERS_REMEDY: &str = "name at least one container whose image follows the tag";

pub static IMAGE_CHANGE: Level = Level {
    head: under("DeploymentImageChange", &TRIGGER, "imageChangeParams").strict(),
    fields: &[
        field("automatic", Flag),
        required("from", Of(&REFERENCE)),
        needed("containerNames", List(&Needed, 1), CONTAINERS_REMEDY),
        field("lastTriggeredImage", Any),
    ],
};

pub static PROPOSED_IMAGE_CHANGE: Level = Level {
    head: under("DeploymentProposedImageChange", &TRIGGER, "imageChangeParams").strict(),
    fields: &[
        field("automatic", Flag),
        needed("containerNames", List(&Needed, 1), CONTAINERS_REMEDY),
        field("repositoryName", Any),
        field("tag", Any),
        field("from", Of(&REFERENCE)),
        field("lastTriggeredImage", Any),
    ],
};
