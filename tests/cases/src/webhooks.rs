//! What the cases of webhooks have that others' have not.

use crate::{Case, Format, parsed};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The format of the cases of webhooks.
#[derive(Debug, Clone, Default)]
pub struct Hooks;

impl Format for Hooks {
    type Given = Given;
    type Step = Own;

    const FOLDER: &'static str = "webhooks";

    fn inputs(own: &Own) -> usize {
        let named = [&own.emit, &own.apply, &own.delete, &own.resume, &own.redeliver];
        named.iter().filter(|input| input.is_some()).count() + usize::from(own.receivers.is_some())
    }
    fn parse(text: &str) -> Result<Vec<Case<Self>>, String> {
        parsed(text)
    }
}

/// What is there before the first step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Given {
    /// The subscriptions by name: what differs from one that takes every event of its project.
    pub webhooks: BTreeMap<String, Map<String, Value>>,
    /// What their receivers answer to the first attempt, the second, …
    pub receivers: BTreeMap<String, Vec<Reply>>,
}

/// The inputs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Own {
    /// An event of this type, `data` with the project.
    pub emit: Option<String>,
    /// Its data besides.
    pub data: Map<String, Value>,
    /// A subscription is applied again, with these changes to the case's.
    pub apply: Option<String>,
    /// The changes.
    pub with: Map<String, Value>,
    /// A subscription is deleted.
    pub delete: Option<String>,
    /// A person resumes a subscription.
    pub resume: Option<String>,
    /// A person asks for the last delivery of a subscription again.
    pub redeliver: Option<String>,
    /// Receivers answer something else from now on.
    pub receivers: Option<BTreeMap<String, Vec<Reply>>>,
}

/// What a receiver answers to an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// A status.
    Status(u16),
    /// A status, and how many seconds the receiver wants to be left alone.
    Busy(u16, i64),
    /// Nothing, and why.
    Nothing(String),
}
