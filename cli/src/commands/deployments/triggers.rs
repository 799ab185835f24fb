//! `set triggers`: reads the config, changes its triggers, and puts it back, if nobody has changed it meanwhile.

use super::{address, id, read, some};
use crate::address::Address;
use crate::api::Api;
use crate::args::SetTriggers;
use crate::error::CliError;
use crate::output::say;
use crate::table::Table;
use crate::table::print;
use keelway_wire::http::deployments::{ConfigState, SteerAnswer, SteerRequest};
use serde_json::{Value, json};

/// Changes triggers, or shows them.
///
/// # Errors
/// What does not fit the config, or the API's refusal.
pub async fn triggers(api: &Api, what: &SetTriggers) -> Result<(), CliError> {
    let of = address(&what.of);
    let changes = what.auto || what.manual || what.from_config || what.from_image.is_some() || what.remove_all;
    if changes {
        let id = id(&of);
        let path = ["deploymentConfigs", id.as_str()];
        let mut object: Value = api.get(&path, &[]).await?;
        change(&of, what, &mut object)?;
        // What is the server's is not written back.
        object.as_object_mut().map(|object| object.remove("status"));
        let _: Value = api.put(&path, &[("by", what.said.by.as_str())], &object).await?;
        say(&format!("triggers of {of}: changed"))?;
    }
    for (wanted, command) in [(what.suspend, "suspend"), (what.resume, "resume")] {
        if wanted {
            let request = SteerRequest { by: some(&what.said.by), message: some(&what.said.message), ..SteerRequest::default() };
            let path = ["deploymentConfigs", &id(&of), "triggers", command];
            let answer: SteerAnswer = api.post(&path, &json!(request)).await?;
            let later = if answer.done { "" } else { ", but it is not in the state yet" };
            say(&match command {
                "suspend" => format!("triggers of {of}: none fires until they are resumed{later}"),
                _ => format!("triggers of {of}: they fire again{later}"),
            })?;
        }
    }
    if changes || what.suspend || what.resume {
        return Ok(());
    }
    show(&of, &read(api, &of).await?)
}

fn show(of: &Address, state: &ConfigState) -> Result<(), CliError> {
    let mut table = Table::new(&["TYPE", "FROM", "CONTAINERS", "AUTO", "FIRES", "IMAGE"]);
    for one in &state.triggers {
        let yes = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
        let fires = if one.why.is_empty() { yes(one.effective_automatic) } else { format!("no: {}", one.why) };
        table.row(vec![
            one.ty.clone(),
            one.from.clone().unwrap_or_default(),
            one.containers.join(","),
            yes(one.automatic),
            fires,
            one.image.clone().unwrap_or_default(),
        ]);
    }
    print(table, crate::args::Format::Table, &format!("{of} has no triggers: versions are deployed by hand only"))
}

/// Changes the triggers in a config.
fn change(of: &Address, what: &SetTriggers, object: &mut Value) -> Result<(), CliError> {
    let containers = match what.containers.is_empty() {
        true => names(object),
        false => what.containers.clone(),
    };
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    let spec = spec.ok_or_else(|| CliError::Failed(format!("{of} has no spec: use the keelway of the API's version")))?;
    let triggers = spec.entry("triggers").or_insert_with(|| json!([]));
    let Some(triggers) = triggers.as_array_mut() else { return Ok(()) };
    if what.remove_all {
        triggers.clear();
        return Ok(());
    }
    let tag = what.from_image.as_deref().map(|tag| image_tag(of, tag)).transpose()?;
    let is_config = |trigger: &Value| trigger["type"] == "ConfigChange";
    let from = |trigger: &Value| -> (String, String) {
        let from = &trigger["imageChangeParams"]["from"];
        let text = |field: &str| from[field].as_str().unwrap_or_default().to_owned();
        (Some(text("namespace")).filter(|text| !text.is_empty()).unwrap_or_else(|| of.namespace.clone()), text("name"))
    };
    if what.remove {
        let before = triggers.len();
        triggers.retain(|one| !(what.from_config && is_config(one) || tag.as_ref().is_some_and(|tag| from(one) == *tag)));
        return match triggers.len() == before {
            true => Err(CliError::Failed(format!("{of} has no such trigger; which it has: keelway set triggers {of}"))),
            false => Ok(()),
        };
    }
    if what.from_config && !triggers.iter().any(is_config) {
        triggers.push(json!({"type": "ConfigChange"}));
    }
    if let Some((namespace, name)) = &tag
        && !triggers.iter().any(|one| Some(&from(one)) == tag.as_ref())
    {
        let from = json!({"kind": "ImageStreamTag", "namespace": namespace, "name": name});
        let params = json!({"automatic": !what.manual, "containerNames": containers, "from": from});
        triggers.push(json!({"type": "ImageChange", "imageChangeParams": params}));
    }
    if what.auto || what.manual {
        let meant = |one: &Value| one["type"] == "ImageChange" && tag.as_ref().is_none_or(|tag| from(one) == *tag);
        let all: Vec<&mut Value> = triggers.iter_mut().filter(|one| meant(one)).collect();
        if all.is_empty() {
            return Err(CliError::Failed(format!("{of} has no image trigger: name its tag with --from-image")));
        }
        all.into_iter().for_each(|one| one["imageChangeParams"]["automatic"] = json!(what.auto));
    }
    Ok(())
}

/// The namespace and the `<name>:<tag>` of a tag.
fn image_tag(of: &Address, text: &str) -> Result<(String, String), CliError> {
    let (namespace, name) = text.split_once('/').unwrap_or((&of.namespace, text));
    match name.split_once(':') {
        Some((source, tag)) if !source.is_empty() && !tag.is_empty() => Ok((namespace.to_owned(), name.to_owned())),
        _ => Err(CliError::Usage(format!("{text:?} is no tag of an artifact source: write it as NAME:TAG or PROJECT/NAME:TAG"))),
    }
}

/// The containers of a config's template.
fn names(object: &Value) -> Vec<String> {
    let template = &object["spec"]["template"];
    keelway_domain::deployments::template::containers(template).map(|(name, _)| name.to_owned()).collect()
}
