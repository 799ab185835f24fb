//! `infra/quotas.json`.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The limits of AWS and of Keelway itself, with what users see of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// What it is.
    pub what: String,
    /// When its figures were compared with their sources.
    pub checked: String,
    /// The regions it has figures for.
    pub regions: BTreeMap<String, String>,
    /// Where figures come from.
    pub sources: BTreeMap<String, String>,
    /// All limits.
    pub limits: Vec<Limit>,
}

/// One limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limit {
    /// Its name in this file.
    pub id: String,
    /// Its name in a table.
    pub name: String,
    /// What is counted.
    pub what: String,
    /// What has this limit: several of them have it several times.
    pub of: String,
    /// The figure, if it is the same in every region.
    pub value: Option<f64>,
    /// The figures by region.
    #[serde(default)]
    pub values: BTreeMap<String, f64>,
    /// How much of it one task a second takes.
    pub per_task: Option<f64>,
    /// What a user sees where it binds.
    pub seen: String,
    /// Which parameter or request moves it.
    pub moves: String,
    /// The name of its source.
    pub source: String,
}

impl Limit {
    /// The figure in a region.
    pub fn of_region(&self, region: &str) -> Option<f64> {
        self.values.get(region).copied().or(self.value)
    }
    /// The tasks a second at which it binds in a region.
    pub fn tasks(&self, region: &str) -> Option<f64> {
        Some(self.of_region(region)? / self.per_task?)
    }
}

impl File {
    /// The file as it was when this was built.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read() -> Result<Self, String> {
        serde_json::from_str(include_str!("../../../../infra/quotas.json")).map_err(|error| format!("infra/quotas.json: {error}"))
    }

    /// The figure of a limit in a region.
    ///
    /// # Errors
    /// There is none.
    pub fn figure(&self, id: &str, region: &str) -> Result<f64, String> {
        let limit = self.limits.iter().find(|limit| limit.id == id);
        limit.and_then(|limit| limit.of_region(region)).ok_or_else(|| format!("infra/quotas.json has no {id} for {region}"))
    }
}
