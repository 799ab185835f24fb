//! The logins that `keelway login` remembers: which API, and with which token. The file holds secrets, so nobody else may read
//! it.

use crate::args::{Args, Command};
use crate::error::CliError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The variable that names another file.
pub const FILE: &str = "KEELWAY_CONFIG";

/// All contexts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The context that is used unless told otherwise.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub current: String,
    /// By name.
    pub contexts: BTreeMap<String, Context>,
}

/// One API, and a token for it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// The address.
    pub api: String,
    /// The token.
    pub token: String,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("api", &self.api).finish_non_exhaustive()
    }
}

/// Where the file is.
///
/// # Errors
/// When nothing says where a home is.
pub fn path() -> Result<PathBuf, CliError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(file) = variable(FILE) {
        return Ok(file);
    }
    let directory = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
    let directory = directory.ok_or_else(|| CliError::Usage(format!("there is no home directory: set HOME or {FILE}")))?;
    Ok(directory.join("keelway").join("config.yaml"))
}

impl Config {
    /// Reads the file; one that does not exist, or is empty, has no contexts.
    ///
    /// # Errors
    /// A file that cannot be read, that others may read, or that is not of this form.
    pub fn read(file: &Path) -> Result<Self, CliError> {
        let shown = file.display();
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Self::default()),
            Err(error) => return Err(CliError::Usage(format!("{shown} cannot be read: {error}"))),
        };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mode = fs::metadata(file).map(|meta| meta.permissions().mode() & 0o777).unwrap_or_default();
        if mode & 0o077 != 0 {
            return Err(CliError::Usage(format!("{shown} holds tokens and has mode {mode:04o}: run chmod 600 {shown}")));
        }
        // What is wrong with the text is not shown: there are secrets in it.
        serde_saphyr::from_str(&text)
            .map_err(|_| CliError::Usage(format!("{shown} is not a file of keelway login: mend it, or delete it and log in again")))
    }

    /// Writes the file so that only its owner can read it; whoever reads it meanwhile sees the old or the new one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), CliError> {
        let failed = |error: std::io::Error| CliError::Failed(format!("{} cannot be written: {error}", file.display()));
        let text = serde_saphyr::to_string(self).map_err(|error| failed(std::io::Error::other(error.to_string())))?;
        if let Some(directory) = file.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        }
        let fresh = file.with_extension(format!("{}.new", std::process::id()));
        fs::remove_file(&fresh)
            .or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
            .map_err(failed)?;
        let mut out: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).map_err(failed)?;
        out.write_all(text.as_bytes()).and_then(|()| out.sync_all()).map_err(failed)?;
        fs::rename(&fresh, file).map_err(failed)
    }

    /// The context to use: the one that is named, or else the current one.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn context(&self, named: Option<&str>) -> Result<Option<&Context>, CliError> {
        let name = named.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(&self.current);
        if name.is_empty() {
            return Ok(None);
        }
        self.contexts.get(name).map(Some).ok_or_else(|| self.unknown(name))
    }

    /// The refusal of a context that does not exist.
    pub fn unknown(&self, name: &str) -> CliError {
        let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
        let known = if known.is_empty() {
            "there is none yet: keelway login makes one".to_owned()
        } else {
            format!("there are {}", known.join(", "))
        };
        CliError::Usage(format!("there is no login {name:?}: {known}"))
    }
}

/// Completes what flags and variables leave open from a context. A context's token goes to no other API than its own: with an
/// address from elsewhere, the token has to come from there, too.
///
/// # Errors
/// A file that is not usable, or a context that does not exist.
pub fn complete(mut args: Args) -> Result<Args, CliError> {
    let offline = matches!(args.command, Command::Completion { .. } | Command::Version | Command::Shipyard(_) | Command::Login(_));
    let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
    let named = std::env::var("KEELWAY_LOGIN").ok().filter(|name| !name.trim().is_empty());
    if offline || given(&args.api) && named.is_none() {
        return Ok(args);
    }
    let config = Config::read(&path()?)?;
    let Some(context) = config.context(named.as_deref())? else { return Ok(args) };
    if named.is_some() {
        (args.api, args.token) = (Some(context.api.clone()), Some(context.token.clone()));
        return Ok(args);
    }
    if !given(&args.token) {
        args.token = Some(context.token.clone());
    }
    args.api = Some(context.api.clone());
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(api: &str) -> Context {
        Context { api: api.into(), token: "s3cret".into() }
    }

    #[test]
    fn what_was_written_is_read_and_only_by_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/b/config.yaml");
        assert_eq!(Config::read(&file).unwrap(), Config::default());
        let contexts =
            BTreeMap::from([("eu".to_owned(), context("https://eu.test")), ("us".to_owned(), context("https://us.test"))]);
        let config = Config { current: "eu".into(), contexts };
        config.write(&file).unwrap();
        config.write(&file).unwrap();
        assert_eq!(Config::read(&file).unwrap(), config);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing else is left");

        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Config::read(&file).unwrap_err().to_string();
        assert!(refused.contains("chmod 600") && !refused.contains("s3cret"), "{refused}");
    }

    #[test]
    fn a_context_is_the_named_or_the_current_one() {
        let contexts =
            BTreeMap::from([("eu".to_owned(), context("https://eu.test")), ("us".to_owned(), context("https://us.test"))]);
        let config = Config { current: "eu".into(), contexts };
        let api = |named: Option<&str>| config.context(named).unwrap().map(|context| context.api.as_str());
        assert_eq!(
            (api(None), api(Some("us")), api(Some(" "))),
            (Some("https://eu.test"), Some("https://us.test"), Some("https://eu.test"))
        );
        assert_eq!(config.context(Some("ap")).unwrap_err().to_string(), "there is no login \"ap\": there are eu, us");
        assert_eq!(Config::default().context(None).unwrap(), None);
        assert_eq!(format!("{:?}", context("x")), "Context { api: \"x\", .. }");
    }

    #[test]
    fn a_broken_file_does_not_show_what_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.yaml");
        fs::write(&file, "contexts: {eu: {api: x, token: [s3cret").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let refused = Config::read(&file).unwrap_err().to_string();
        assert!(refused.contains("log in again") && !refused.contains("s3cret"), "{refused}");
    }
}
