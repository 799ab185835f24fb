//! `resource`: the files of a project.

use super::files;
use super::shipyard::draw_all;
use crate::api::Api;
use crate::args::{AddResource, ResourcePlace, ResourceVerb};
use crate::error::CliError;
use crate::output::{say, say_data};
use crate::pages;
use crate::table::{Table, print};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use keelway_domain::names::{ServiceName, StageName};
use keelway_wire::http::keptn::Resource;
use keelway_wire::manifest::{self, Checked};
use reqwest::Method;
use serde_json::{Value, json};

/// Does what is asked for with files.
///
/// # Errors
/// A file that cannot be read or is refused, or the API's refusal.
pub async fn resource(api: &Api, what: &ResourceVerb) -> Result<(), CliError> {
    match what {
        ResourceVerb::Add(what) => add(api, what).await,
        ResourceVerb::List { of, output } => {
            let all: Vec<Resource> = pages::all(api, &path(of), &[]).await?;
            if output.format.is_data() {
                return say_data(&json!({"items": all}), output.format);
            }
            let mut table = Table::new(&["URI", "COMMIT"]);
            for one in all {
                table.row(vec![one.resource_uri, one.metadata.map(|version| version.version).unwrap_or_default()]);
            }
            print(table, output.format, "there is no file; write one: keelway resource add FILE")
        }
        ResourceVerb::Show { uri, of } => {
            let one: Resource = api.get(&[&path(of)[..], &[uri.as_str()]].concat(), &[]).await?;
            let odd = || CliError::Failed(format!("{uri} is not a text"));
            let content = BASE64.decode(one.resource_content.unwrap_or_default()).map_err(|_| odd())?;
            say(String::from_utf8(content).map_err(|_| odd())?.trim_end())
        }
        ResourceVerb::Delete { uri, of } => {
            let path = [&path(of)[..], &[uri.as_str()]].concat();
            let _: Value = api.call(Method::DELETE, &path, &[], crate::api::Body::None).await?;
            say(&format!("{uri} of {}: deleted", words(of)))
        }
    }
}

async fn add(api: &Api, what: &AddResource) -> Result<(), CliError> {
    let file = files::read(&what.file)?;
    let named = what.file.file_name().and_then(|name| name.to_str()).filter(|name| *name != "-");
    let uri = what.uri.as_deref().or(named);
    let uri = uri.ok_or_else(|| CliError::Usage("say what the file is called there: --as slo.yaml".into()))?;
    // What Keptn would pass over is told here, and what is wrong is not written.
    if let checked @ (Checked::Objectives(..) | Checked::Indicators(..)) = manifest::check(&file.text, uri, None) {
        draw_all(checked.findings(), &file.text);
        if checked.refused() {
            return Err(CliError::Said(1));
        }
    }
    let content = BASE64.encode(&file.text);
    let body = json!({"resources": [{"resourceURI": uri, "resourceContent": content}]});
    let _: Value = api.put(&path(&what.of), &[], &body).await?;
    say(&format!("{uri} of {}: written", words(&what.of)))
}

fn path(of: &ResourcePlace) -> Vec<&str> {
    let mut path = vec!["project", of.project.as_str()];
    for (kind, name) in
        [("stage", of.stage.as_ref().map(StageName::as_str)), ("service", of.service.as_ref().map(ServiceName::as_str))]
    {
        path.extend(name.into_iter().flat_map(|name| [kind, name]));
    }
    path.push("resource");
    path
}

/// `service carts in stage dev of project shop`
fn words(of: &ResourcePlace) -> String {
    let service = of.service.as_ref().map(|service| format!("service {service} in ")).unwrap_or_default();
    let stage = of.stage.as_ref().map(|stage| format!("stage {stage} of ")).unwrap_or_default();
    format!("{service}{stage}project {}", of.project)
}
