//! Where people see at the git host what a promotion would change.

use keelway_domain::promotions::definition::Strategy;
use keelway_domain::promotions::{Made, Phase, Promotion};
use keelway_engine::promotions::views::View;
use keelway_githosts::{Form, Repository};

/// The digits of a commit.
const COMMIT: usize = 40;

/// The comparison at the git host: of the branch of an open pull request with the one that it goes into, otherwise of the two
/// commits that the revisions name. Revisions that name no commits, such as versions of charts, cannot be compared there.
pub fn comparison(view: &View, name: &str, promotion: &Promotion) -> Option<String> {
    let definition = &view.applied.spec;
    let (_, environment) = definition.environment(name)?;
    let configured = || definition.promotion(environment).map(|settings| &settings.strategy);
    let Some(Strategy::PullRequest(settings)) = promotion.strategy.as_ref().or_else(configured) else { return None };
    let repository = Repository::parse(settings.host.parse::<Form>().ok()?, &settings.url).ok()?;
    if let (Some(Made::PullRequest { branch, .. }), Phase::Created) = (&promotion.effect, promotion.phase) {
        return Some(repository.comparison(&settings.base_branch, branch));
    }
    let (healthy, _) = view.state.environments.get(name)?.healthy.as_ref()?;
    let (from, to) = (commit(healthy)?, commit(&promotion.revision)?);
    (from != to).then(|| repository.comparison(from, to))
}

/// The commit in a revision such as `main@sha1:<commit>`, as Flux reports it, or `<commit>`.
fn commit(revision: &str) -> Option<&str> {
    let commit = revision.rsplit_once("@sha1:").map_or(revision, |(_, commit)| commit);
    (commit.len() == COMMIT && commit.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(commit)
}

#[cfg(test)]
mod tests {
    use super::commit;

    #[test]
    fn commits_of_revisions() {
        let hash = "29ec9324c93d3bb07f5bb20a73d80c31fda919e9";
        assert_eq!(commit(&format!("main@sha1:{hash}")), Some(hash));
        assert_eq!(commit(hash), Some(hash));
        for none in ["6.6.1", "main@sha1:29ec", "latest@sha256:29ec9324c93d3bb07f5bb20a73d80c31fda919e9", ""] {
            assert_eq!(commit(none), None, "{none}");
        }
    }
}
