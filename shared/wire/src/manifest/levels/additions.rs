//! What Keelway adds to a DeploymentConfig, and the proposal's request for a rollback.

use super::configs::{PROPOSED, SPEC};
use super::shape::{Shape, WORDS, name};
use super::{Level, entry, field, needed, under};

use Shape::{Any, Duration, Flag, Needed, Open, Pattern};

pub static LEVELS: [&Level; 4] = [&TARGET, &AUTO_ROLLBACK, &DEPLOYER, &ROLLBACK];

/// The region and the account of targets, and of repositories of ECR.
pub const REGION: Shape = Pattern("^[a-z0-9]+(-[a-z0-9]+){2,}$", 63);
pub const ACCOUNT: Shape = Pattern("^[0-9]{12}$", 12);

pub static TARGET: Level = Level {
    head: entry("DeploymentTarget", &SPEC, "targets", "name: eu").called("a target").strict(),
    fields: &[
        needed("name", name(63), "write for example `name: eu`"),
        needed("kind", Needed, "write for example `kind: lambda-alias`"),
        needed("id", Needed, "write for example `id: shop-carts:live`"),
        field("region", REGION),
        field("account", ACCOUNT),
    ],
};

pub static AUTO_ROLLBACK: Level = Level {
    head: under("DeploymentAutoRollback", &SPEC, "autoRollback").strict(),
    fields: &[field("onFailure", Flag), field("alarms", WORDS), field("bake", Duration)],
};

pub static DEPLOYER: Level = Level {
    head: under("DeploymentDeployer", &SPEC, "deployer").one_of(&[&["ecs"], &["codeBuild"]]).strict(),
    fields: &[field("ecs", Open), field("codeBuild", Open)],
};

pub static ROLLBACK: Level = Level {
    head: under("DeploymentRollback", &PROPOSED, "rollback").strict(),
    fields: &[
        field("release", Any),
        field("config", Flag),
        field("application", Flag),
        field("strategy", Any),
        field("notes", Any),
    ],
};
