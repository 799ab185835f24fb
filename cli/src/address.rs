//! What the command line names: a name in a namespace.

use crate::args::named::Place;
use keelway_domain::names::ProjectName;

/// Where something is: a namespace and a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The namespace, or the project; empty for what belongs to the installation.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Address {
    /// What the command line names; a project before the name is preferred to the flag's. Without both, it is `default`.
    pub fn of(name: &Place, project: Option<&ProjectName>) -> Self {
        let namespace = name.namespace.as_ref().or(project).map_or("default", ProjectName::as_str);
        Self { namespace: namespace.to_owned(), name: name.name.clone() }
    }

    /// The pipeline's path.
    pub fn path(&self) -> [&str; 3] {
        ["pipelines", &self.namespace, &self.name]
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}
