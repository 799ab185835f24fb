//! The files that an evaluation is made by: resources of the project, at one commit.

use crate::ports::{PortError, Ports};
use crate::refusal::Refusal;
use crate::resources::{Resources, Scope};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use keelway_domain::evaluation::{Objectives, Provided, Queries, QueryError, Slo, merged};
use keelway_domain::names::ProjectName;
use serde_json::Value;

/// The largest file of objectives or indicators, in bytes: objectives are in the event about the result.
pub const MAX_FILE_BYTES: usize = 64 * 1024;
/// The file of objectives, of a service in a stage.
pub const OBJECTIVES: &str = "slo.yaml";
/// The file of indicators.
const INDICATORS: &str = "sli.yaml";

/// Reads what is not JSON, and events of services. The engine knows no YAML.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Objectives.
    pub slo: fn(&str) -> Result<Slo, String>,
    /// Queries by their indicators.
    pub sli: fn(&str) -> Result<Queries, String>,
    /// The data of `get-sli.finished`.
    pub provided: fn(&Value) -> Result<Provided, String>,
}

const NOBODY: &str = "files are read by the function evaluations only";

/// For functions that make no evaluation.
impl Default for Reading {
    fn default() -> Self {
        Self { slo: |_| Err(NOBODY.into()), sli: |_| Err(NOBODY.into()), provided: |_| Err(NOBODY.into()) }
    }
}

/// The files of a service in a stage, or those of a project.
pub(super) struct Files<'a, P> {
    pub resources: Resources<'a, P>,
    pub reading: &'a Reading,
    /// Project, stage and service; without a service, the files of the project.
    pub place: &'a [String; 3],
    pub commit: Option<&'a str>,
}

impl<P: Ports> Files<'_, P> {
    /// The objectives, and their file in base64.
    pub async fn objectives(&self) -> Result<(Objectives, String), PortError> {
        self.objectives_in(OBJECTIVES).await
    }

    /// The same from a file of another name.
    pub async fn objectives_in(&self, uri: &str) -> Result<(Objectives, String), PortError> {
        let unreadable = |why: String| (Objectives::Unreadable(why), String::new());
        let text = match self.text(self.scope(2), uri).await? {
            Ok(None) => return Ok((Objectives::Missing, String::new())),
            Ok(Some(text)) => text,
            Err(why) => return Ok(unreadable(why)),
        };
        let file = BASE64.encode(&text);
        Ok(match (self.reading.slo)(&text) {
            Ok(slo) => (Objectives::Read(slo), file),
            Err(why) => (Objectives::Unreadable(format!("{uri}: {why}")), file),
        })
    }

    /// The queries for a source: its own file counts before the general one, and at the service before the stage and the project.
    pub async fn queries(&self, source: &str) -> Result<Result<Queries, String>, PortError> {
        let mut files: [Option<Queries>; 3] = Default::default();
        let levels = if self.place[2].is_empty() { 1 } else { 3 };
        for (level, file) in files.iter_mut().enumerate().take(levels) {
            let scope = self.scope(level);
            for name in [format!("{source}/{INDICATORS}"), INDICATORS.to_owned()] {
                match self.text(scope.clone(), &name).await? {
                    Ok(None) => continue,
                    Ok(Some(text)) => match (self.reading.sli)(&text) {
                        Ok(queries) => *file = Some(queries),
                        Err(why) => return Ok(Err(format!("{name}: {why}"))),
                    },
                    Err(why) => return Ok(Err(why)),
                }
                break;
            }
        }
        Ok(merged(&files.each_ref().map(Option::as_ref)).map_err(|error: QueryError| error.to_string()))
    }

    /// The scope of the project (0), the stage (1) or the service (2).
    fn scope(&self, level: usize) -> Result<Scope, Refusal> {
        let invalid = |error: keelway_domain::names::NameError| Refusal::Invalid { field: "project", message: error.to_string() };
        let [project, stage, service] = self.place;
        let project = ProjectName::new(project.as_str()).map_err(invalid)?;
        match level {
            _ if service.is_empty() => Ok(Scope::project(project)),
            0 => Ok(Scope::project(project)),
            1 => Scope::stage(project, stage),
            _ => Scope::service(project, stage, service),
        }
    }

    /// The text of a file, if there is one; or why it cannot be read.
    async fn text(&self, scope: Result<Scope, Refusal>, uri: &str) -> Result<Result<Option<String>, String>, PortError> {
        let found = match scope {
            Ok(scope) => self.resources.get(&scope, uri, self.commit).await,
            Err(refusal) => Err(refusal),
        };
        let content = match found {
            Ok(Some(found)) => found.content,
            Ok(None) => return Ok(Ok(None)),
            Err(Refusal::Port(error)) => return Err(error),
            Err(refusal) => return Ok(Err(format!("{uri}: {refusal}"))),
        };
        if content.len() > MAX_FILE_BYTES {
            return Ok(Err(format!("{uri} has {} bytes: at most {MAX_FILE_BYTES} can be used", content.len())));
        }
        Ok(String::from_utf8(content).map(Some).map_err(|_| format!("{uri} is not UTF-8")))
    }
}
