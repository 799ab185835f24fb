//! What the template and the policies say beside what the code needs.

mod alarms;
mod deployer;
mod knocks;
mod locks;
mod rules;
mod template;
