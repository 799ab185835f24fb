//! The resources that a deployment may use, checked before the first request of each stage, because permission may have been
//! withdrawn since the config was applied. Functions, code, tasks and builds are only reached with a [`Permitted`].

use super::checkpoint::Stage;
use super::definition::{Action, Definition, Hook};
use super::plan::{self, Code, Function, Image};
use crate::border::{Permitted, Resource, ResourceKind, Standing};
use std::collections::BTreeMap;

/// The resources that one stage may use.
#[derive(Debug, Clone, Default)]
pub struct Rights {
    /// The functions of the targets, by the targets' names.
    functions: BTreeMap<String, Permitted>,
    /// The code to be published.
    pub code: Option<Permitted>,
    /// The function that a hook calls.
    pub hook: Option<Permitted>,
}

impl Rights {
    /// Returns the rights of a stage.
    ///
    /// # Errors
    /// What is missing, and who can grant it.
    pub fn of(definition: &Definition, stage: Stage, standing: Standing<'_>) -> Result<Self, String> {
        let permit = |resource: Resource| standing.permit(resource).map_err(|denied| denied.to_string());
        let mut rights = Self::default();
        if let Some(hook) = hook(definition, stage) {
            if let Action::Invoke(function) = &hook.action {
                let resource = Resource::of_aws(ResourceKind::HookFunctions, function).map_err(|error| error.to_string())?;
                rights.hook = Some(permit(resource)?);
            }
            return Ok(rights);
        }
        if stage == Stage::End {
            return Ok(rights);
        }
        for target in &definition.targets {
            // The first step reports targets that name no alias.
            let Some(function) = target.function() else { continue };
            let resource = function.map_err(|error| format!("target {}: {error}", target.name))?;
            rights.functions.insert(target.name.clone(), permit(resource)?);
        }
        if let (Stage::Publish, Ok(Image::Code(code))) = (stage, plan::image(definition)) {
            rights.code = Some(permit(resource_of(&code))?);
        }
        Ok(rights)
    }

    /// The function of a target.
    pub fn function(&self, target: &str) -> Option<Function> {
        let Resource { name, region, account, .. } = self.functions.get(target)?.resource();
        let name = match account {
            Some(account) => format!("{account}:function:{name}"),
            None => name.clone(),
        };
        Some(Function { name, region: region.clone() })
    }
}

/// The hook of a stage.
pub fn hook(definition: &Definition, stage: Stage) -> Option<&Hook> {
    let hooks = &definition.strategy.hooks;
    match stage {
        Stage::Pre => hooks.pre.as_ref(),
        Stage::Mid => hooks.mid.as_ref(),
        Stage::Post => hooks.post.as_ref(),
        _ => None,
    }
}

fn resource_of(code: &Code) -> Resource {
    match code {
        Code::Image(image) => Resource::image(image),
        Code::Package(package) => Resource::named(ResourceKind::Packages, format!("{}/{}", package.bucket, package.key)),
    }
}
