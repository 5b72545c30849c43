//! Location of the configuration file. It is read only from where the operator pointed.
//!
//! Clients start servers in the directory of a project. A file in that directory must not become
//! the configuration of a server whose plugins are elsewhere.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};

use super::error::ConfigError;
use super::flags::Flags;
use super::variables::{CONFIG_VARIABLE, PLUGINS_VARIABLE};

/// Name of the configuration file that is read by default, if it exists.
pub(super) const CONFIG_FILE_NAME: &str = "toolbay.toml";

/// The name and text of the file, if it exists, and the directory against which its relative paths
/// are resolved.
type ConfigText = (Option<(String, String)>, PathBuf);

/// Mode bit of directories such as `/tmp`, in which users cannot move each other's files.
const STICKY_BIT: u32 = 0o1000;

/// The location of the configuration file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConfigLocation {
    /// The operator set the path with this flag or variable.
    Named(PathBuf, &'static str),
    /// The file is next to the plugin directory, if it exists.
    Default(PathBuf),
    /// No file is read.
    Nowhere,
}

impl ConfigLocation {
    pub(super) fn resolve(flags: &Flags, variables: &[(String, String)]) -> Self {
        // In a shell, an empty variable counts as unset.
        let set = |name| variables.iter().find(|(known, value)| known == name && !value.is_empty());
        if let Some(path) = &flags.config {
            return Self::Named(path.clone(), "--config");
        }
        if flags.no_config {
            return Self::Nowhere;
        }
        if let Some((_, path)) = set(CONFIG_VARIABLE) {
            return Self::Named(path.into(), CONFIG_VARIABLE);
        }
        let plugins = flags.plugins.clone().or_else(|| set(PLUGINS_VARIABLE).map(|(_, path)| path.into()));
        match plugins {
            // The default plugin directory is in the current directory, too.
            None => Self::Default(PathBuf::from(CONFIG_FILE_NAME)),
            Some(plugins) => {
                parent_folder(&plugins).map_or(Self::Nowhere, |parent| Self::Default(parent.join(CONFIG_FILE_NAME)))
            }
        }
    }

    /// Returns the absolute path of the file, or an empty path if there is no file.
    pub(super) fn absolute(&self) -> Result<PathBuf, ConfigError> {
        let (Self::Named(path, _) | Self::Default(path)) = self else { return Ok(PathBuf::new()) };
        std::path::absolute(path).map_err(|error| ConfigError(format!("{}: {}", path.display(), error.kind())))
    }

    /// Returns the current text of the file, valid or not. The text is empty if there is no file,
    /// and `None` if it cannot be read. Blocks.
    pub(super) fn read_unchecked(&self) -> Option<String> {
        let (Self::Named(path, _) | Self::Default(path)) = self else { return Some(String::new()) };
        match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && matches!(self, Self::Default(_)) => {
                Some(String::new())
            }
            text => text.ok(),
        }
    }

    /// Reads the current file.
    pub(super) fn read(&self) -> Result<ConfigText, ConfigError> {
        let (path, by) = match self {
            Self::Named(path, by) => (path, format!(" (set by {by})")),
            Self::Default(path) => (path, String::new()),
            Self::Nowhere => return Ok((None, PathBuf::new())),
        };
        let name = path.display().to_string();
        let failed = |error: io::Error| {
            ConfigError(match error.kind() {
                io::ErrorKind::NotFound => format!("{name} does not exist{by}"),
                io::ErrorKind::IsADirectory => format!("{name} is a folder, not a file{by}"),
                io::ErrorKind::InvalidData => format!("{name} is not valid UTF-8"),
                kind => format!("cannot read {name}: {kind}"),
            })
        };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && matches!(self, Self::Default(_)) => {
                return Ok((None, PathBuf::new()));
            }
            Err(error) => return Err(failed(error)),
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        if matches!(self, Self::Default(_)) {
            let named = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let checked = std::fs::metadata(named).map_err(failed)?;
            let doubt =
                distrust_reason(&checked, checked.mode() & STICKY_BIT != 0).map(|why| format!("its folder {why}"));
            let doubt = doubt.or(distrust_file(&file.metadata().map_err(failed)?));
            if let Some(why) = doubt {
                return Err(ConfigError(format!(
                    "{name} was found and is not used: {why}; change that, name the file with --config, or use none with \
                     --no-config"
                )));
            }
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        Ok((Some((name, text)), folder.to_owned()))
    }
}

/// Returns the directory that contains the plugin directory, by the path that the operator set. For
/// a link, it is the directory of the link, not of its target. `None` if there is none.
fn parent_folder(plugins: &Path) -> Option<PathBuf> {
    if plugins.file_name().is_some() {
        return plugins.parent().map(Path::to_owned);
    }
    // The path is `.`, or ends with `..`.
    std::fs::canonicalize(plugins).ok()?.parent().map(Path::to_owned)
}

fn distrust_file(file: &Metadata) -> Option<String> {
    distrust_reason(file, false).map(|why| format!("it {why}"))
}

/// Returns why other accounts could have written the file with this metadata. `None` if they could
/// not.
fn distrust_reason(of: &Metadata, sticky: bool) -> Option<String> {
    let own = geteuid().as_raw();
    if of.uid() != own && of.uid() != 0 {
        return Some(format!("belongs to another account (user id {})", of.uid()));
    }
    let mode = of.mode() & 0o7777;
    // Some systems give each user a private group with the same number.
    let private = of.gid() == getegid().as_raw() && of.gid() == own;
    let open = if private { 0o002 } else { 0o022 };
    (mode & open != 0 && !sticky).then(|| format!("can be written by other accounts (mode {mode:04o})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(
        config: Option<&str>,
        no_config: bool,
        plugins: Option<&str>,
        variables: &[(&str, &str)],
    ) -> ConfigLocation {
        let flags =
            Flags { config: config.map(Into::into), no_config, plugins: plugins.map(Into::into), ..Flags::default() };
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ConfigLocation::resolve(&flags, &variables)
    }

    #[test]
    fn the_place_of_the_file_follows_from_what_the_operator_named() {
        let default = |path: &str| ConfigLocation::Default(path.into());
        assert_eq!(located(None, false, None, &[]), default("toolbay.toml"));
        assert_eq!(located(None, false, Some("/srv/plugins"), &[]), default("/srv/toolbay.toml"));
        assert_eq!(located(None, false, Some("plugins"), &[]), default("toolbay.toml"));
        assert_eq!(located(None, false, Some("a/plugins/"), &[]), default("a/toolbay.toml"));
        let here = std::fs::canonicalize(".").unwrap();
        assert_eq!(
            located(None, false, Some("."), &[]),
            ConfigLocation::Default(here.parent().unwrap().join(CONFIG_FILE_NAME))
        );
        assert_eq!(located(None, false, Some("/"), &[]), ConfigLocation::Nowhere);
        assert_eq!(located(None, false, None, &[("TOOLBAY_PLUGINS", "/srv/plugins")]), default("/srv/toolbay.toml"));
        assert_eq!(located(None, true, Some("/srv/plugins"), &[("TOOLBAY_CONFIG", "/a")]), ConfigLocation::Nowhere);
        let named = ConfigLocation::Named("/a".into(), CONFIG_VARIABLE);
        assert_eq!(located(None, false, Some("/srv/plugins"), &[("TOOLBAY_CONFIG", "/a")]), named);
        assert_eq!(
            located(Some("/b"), false, None, &[("TOOLBAY_CONFIG", "/a")]),
            ConfigLocation::Named("/b".into(), "--config")
        );
    }
}
