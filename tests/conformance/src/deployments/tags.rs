//! What the tags of artifact sources point to, as whoever pushes knows it, and what a config deploys because of that.

use keelway_domain::deployments::definition::{Definition, ImageChange};
use keelway_domain::deployments::template::Images;
use keelway_domain::time::Timestamp;
use std::collections::BTreeMap;

/// The newest image of each tag, with when it was pushed.
#[derive(Debug, Default)]
pub struct Pushed(BTreeMap<String, (Timestamp, String)>);

impl Pushed {
    /// An image was pushed. Of two at the same time, everybody takes the same one.
    pub fn push(&mut self, tag: &str, at: Timestamp, image: &str) {
        let push = (at, image.to_owned());
        let newest = self.0.entry(tag.to_owned()).or_insert_with(|| push.clone());
        *newest = push.max(newest.clone());
    }

    /// The image that a trigger's tag points to.
    pub fn image(&self, change: &ImageChange) -> Option<&str> {
        self.head(&change.from.tag)
    }

    /// The image that a tag points to.
    pub fn head(&self, tag: &str) -> Option<&str> {
        self.0.get(tag).map(|(_, image)| image.as_str())
    }

    /// Whether every tag that a config watches points to an image. Before that, no trigger cuts a version.
    pub fn resolves(&self, definition: &Definition) -> bool {
        definition.image_changes().all(|change| self.image(change).is_some())
    }

    /// Whether every container of an automatic trigger runs the newest image of its tag.
    ///
    /// # Errors
    /// One that does not.
    pub fn followed(&self, definition: &Definition, images: &Images) -> Result<(), String> {
        for change in definition.image_changes().filter(|change| change.automatic) {
            for container in &change.containers {
                let (is, newest) = (images.get(container).map(String::as_str), self.image(change));
                if is != newest {
                    return Err(format!("{container} runs {is:?}, and the newest of {} is {newest:?}", change.from));
                }
            }
        }
        Ok(())
    }
}
