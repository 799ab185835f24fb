//! `create project` and `create service`: refused if there is one of this name; `apply` changes it.

use super::files;
use super::shipyard::show;
use crate::api::Api;
use crate::args::{Create, CreateProject};
use crate::error::CliError;
use crate::output::{hint, say};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use keelway_wire::http::keptn::{NewProject, NewService};
use keelway_wire::manifest::{self, Document, Parameters};
use serde_json::{Value, json};

/// Creates something, and says what comes next.
///
/// # Errors
/// A file that is no shipyard, or the API's refusal.
pub async fn create(api: impl Fn() -> Result<Api, CliError>, what: &Create) -> Result<(), CliError> {
    match what {
        Create::Project(CreateProject { name, file }) => {
            let shipyard = BASE64_STANDARD.encode(shipyard(file)?);
            let sent = NewProject { name: name.to_string(), shipyard: Some(shipyard) };
            // What may have been made is not made again.
            let _: Value = api()?.without_retries().post(&["project"], &json!(sent)).await?;
            say(&format!("project {name}: created"))?;
            hint(&[format!("→ keelway trigger delivery -p {name} -s SERVICE -i IMAGE")]);
        }
        Create::Service { name, project } => {
            let sent = NewService { service_name: name.to_string() };
            let _: Value = api()?.without_retries().post(&["project", project.as_str(), "service"], &json!(sent)).await?;
            say(&format!("service {name} of project {project}: created"))?;
        }
    }
    Ok(())
}

/// The one shipyard of a file, checked.
fn shipyard(file: &std::path::Path) -> Result<String, CliError> {
    let file = files::read(file)?;
    let parsed = manifest::parse_with(&file.text, &file.name, &Parameters::new());
    show(&parsed, &file.text);
    if parsed.refused() {
        return Err(CliError::Failed(
            "the shipyard is refused for the reasons above: nothing was sent; mend it and create again".into(),
        ));
    }
    match parsed.documents.as_slice() {
        [Document::Shipyard(_)] => Ok(file.text),
        _ => Err(CliError::Usage(format!(
            "{} is not one shipyard: what else belongs to a project is for keelway apply -f",
            file.name
        ))),
    }
}
