//! Location of the configuration file. It is read only from where the operator pointed.
//!
//! Clients start servers in the directory of a project. A file in that directory must not become
//! the configuration of a server whose plugins are elsewhere.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::{getegid, geteuid};
use toolbay_model::text::clean;
use toolbay_settings::similar_name::{fold_name, similar_toml_stems};

use super::error::ConfigError;
use super::flags::Flags;
use super::variables::{CONFIG_VARIABLE, PLUGINS_VARIABLE};

/// Name of the configuration file that is read by default, if it exists.
pub(super) const CONFIG_FILE_NAME: &str = "toolbay.toml";

/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Maximum number of files that are listed to find one with a similar name.
const MAX_LISTED_FILES: usize = 100_000;

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
    /// The file is next to the plugin directory, and must exist.
    Required(PathBuf),
    /// No file is read.
    Nowhere,
}

impl ConfigLocation {
    pub(super) fn resolve(flags: &Flags, variables: &[(String, String)]) -> Self {
        // In a shell, an empty variable counts as unset.
        let find_variable = |name| {
            variables
                .iter()
                .find(|(known, value)| known == name && !value.is_empty())
        };
        if let Some(path) = &flags.config {
            return Self::Named(path.clone(), "--config");
        }
        if flags.no_config {
            return Self::Nowhere;
        }
        if let Some((_, path)) = find_variable(CONFIG_VARIABLE) {
            return Self::Named(path.into(), CONFIG_VARIABLE);
        }
        let plugins = flags
            .plugins
            .clone()
            .or_else(|| find_variable(PLUGINS_VARIABLE).map(|(_, path)| path.into()));
        let default = if flags.requires_config {
            Self::Required
        } else {
            Self::Default
        };
        match plugins {
            // The default plugin directory is in the current directory, too.
            None => default(PathBuf::from(CONFIG_FILE_NAME)),
            Some(plugins) => parent_folder(&plugins).map_or(Self::Nowhere, |parent| {
                default(parent.join(CONFIG_FILE_NAME))
            }),
        }
    }

    /// Returns the path of the file as it was set, if a file can be read.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Named(path, _) | Self::Default(path) | Self::Required(path) => Some(path),
            Self::Nowhere => None,
        }
    }

    /// Returns the absolute path of the file, or an empty path if there is no file.
    pub(super) fn absolute(&self) -> Result<PathBuf, ConfigError> {
        let Some(path) = self.path() else {
            return Ok(PathBuf::new());
        };
        std::path::absolute(path)
            .map_err(|error| ConfigError(format!("{}: {}", path.display(), error.kind())))
    }

    /// Returns the current text of the file, valid or not. The text is empty if there is no file
    /// and none is required, and `None` if the file cannot be read. Blocks.
    pub(super) fn read_unchecked(&self) -> Option<String> {
        match self.read().ok()? {
            (Some((_, text)), _) => Some(text),
            (None, _) => Some(String::new()),
        }
    }

    /// Reads the current file. Blocks, but does not wait for the writer of a FIFO.
    ///
    /// # Errors
    ///
    /// The file cannot be read, does not exist although it must, or is at its default path and can
    /// be written by other accounts.
    pub(super) fn read(&self) -> Result<ConfigText, ConfigError> {
        let Some(path) = self.path() else {
            return Ok((None, PathBuf::new()));
        };
        let origin = if let Self::Named(_, by) = self {
            format!(" (set by {by})")
        } else {
            String::new()
        };
        let name = path.display().to_string();
        let failed = |error: io::Error| {
            ConfigError(match error.kind() {
                io::ErrorKind::NotFound => format!("{name} does not exist{origin}"),
                io::ErrorKind::IsADirectory => format!("{name} is a folder, not a file{origin}"),
                io::ErrorKind::InvalidData => format!("{name} is not valid UTF-8"),
                kind => format!("cannot read {name}: {kind}"),
            })
        };
        // Without this flag, opening a FIFO waits for a writer.
        let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let mut file = match OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(path)
        {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match (self, fs::symlink_metadata(path)) {
                    (_, Ok(link)) if link.is_symlink() => Err(ConfigError(format!(
                        "{name} is a link to a file that does not exist{origin}"
                    ))),
                    (Self::Default(_), Err(missing))
                        if missing.kind() == io::ErrorKind::NotFound =>
                    {
                        match find_similar_file(path) {
                            None => Ok((None, PathBuf::new())),
                            Some(found) => Err(ConfigError(format!(
                                "{found} looks like the configuration file, whose name must be {CONFIG_FILE_NAME}: rename \
                                 it, name it with --config, or use none with --no-config"
                            ))),
                        }
                    }
                    (Self::Required(_), _) => Err(ConfigError(format!(
                        "{name} does not exist any more; to run without a configuration, restart the server"
                    ))),
                    _ => Err(failed(error)),
                };
            }
            Err(error) => return Err(failed(error)),
        };
        let file_metadata = file.metadata().map_err(failed)?;
        if file_metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        if !file_metadata.is_file() {
            return Err(ConfigError(format!("{name} is not a regular file{origin}")));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        if !matches!(self, Self::Named(..)) {
            let folder_path = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            let folder_metadata = fs::metadata(folder_path).map_err(failed)?;
            let entry = fs::symlink_metadata(path).map_err(failed)?;
            let folder_reason =
                distrust_reason(&folder_metadata, folder_metadata.mode() & STICKY_BIT != 0)
                    .map(|why| format!("its folder {why}"));
            if let Some(why) = folder_reason.or(distrust_entry(&entry, &file_metadata)) {
                return Err(ConfigError(format!(
                    "{name} was found and is not used: {why}; change that, name the file with --config, or use none with \
                     --no-config"
                )));
            }
        }
        if file_metadata.len() > MAX_FILE_BYTES {
            return Err(ConfigError(format!(
                "{name} is larger than {} MiB{origin}",
                MAX_FILE_BYTES >> 20
            )));
        }
        let mut text = String::new();
        (&mut file)
            .take(MAX_FILE_BYTES)
            .read_to_string(&mut text)
            .map_err(failed)?;
        Ok((Some((name, text)), folder.to_owned()))
    }
}

/// Returns the path of a file in the directory of the default configuration file that was probably
/// meant to be that file, such as `toolbay.toml.txt`.
fn find_similar_file(path: &Path) -> Option<String> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let config_stem = fold_name(path.file_stem()?.to_str()?);
    fs::read_dir(folder)
        .ok()?
        .take(MAX_LISTED_FILES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| similar_toml_stems(name).contains(&config_stem))
        .min()
        .map(|name| clean(&path.with_file_name(name).display().to_string()).into_owned())
}

/// Returns the directory that contains the plugin directory, by the path that the operator set. For
/// a link, it is the directory of the link, not of its target. `None` if there is no such
/// directory.
fn parent_folder(plugins: &Path) -> Option<PathBuf> {
    if plugins.file_name().is_some() {
        return plugins.parent().map(Path::to_owned);
    }
    // The path is `.`, or ends with `..`.
    std::fs::canonicalize(plugins)
        .ok()?
        .parent()
        .map(Path::to_owned)
}

/// Returns why other accounts could have chosen or written the file. `entry` is the directory entry
/// and `opened` the file that it led to.
fn distrust_entry(entry: &Metadata, opened: &Metadata) -> Option<String> {
    let file = distrust_reason(opened, false);
    if entry.is_symlink() {
        // The owner of a link chooses the file. The mode of a link has no meaning.
        let link = distrust_owner(entry).map(|why| format!("it is a link that {why}"));
        return link.or(file.map(|why| format!("the file that it links to {why}")));
    }
    let is_same_file = (entry.dev(), entry.ino()) == (opened.dev(), opened.ino());
    if is_same_file {
        file.map(|why| format!("it {why}"))
    } else {
        Some("it was replaced at this moment".to_owned())
    }
}

/// Returns why the owner of the file with this metadata is not trusted. `None` if it is this
/// account or root.
fn distrust_owner(metadata: &Metadata) -> Option<String> {
    let is_other = metadata.uid() != geteuid().as_raw() && metadata.uid() != 0;
    is_other.then(|| format!("belongs to another account (user id {})", metadata.uid()))
}

/// Returns why other accounts could have written the file with this metadata. `None` if they could
/// not.
fn distrust_reason(metadata: &Metadata, is_sticky: bool) -> Option<String> {
    if let Some(why) = distrust_owner(metadata) {
        return Some(why);
    }
    let uid = geteuid().as_raw();
    let mode = metadata.mode() & 0o7777;
    // Some systems give each user a private group with the same number.
    let has_private_group = metadata.gid() == getegid().as_raw() && metadata.gid() == uid;
    let writable_bits = if has_private_group { 0o002 } else { 0o022 };
    (mode & writable_bits != 0 && !is_sticky)
        .then(|| format!("can be written by other accounts (mode {mode:04o})"))
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
        let flags = Flags {
            config: config.map(Into::into),
            no_config,
            plugins: plugins.map(Into::into),
            ..Flags::default()
        };
        let variables: Vec<_> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        ConfigLocation::resolve(&flags, &variables)
    }

    #[test]
    fn only_an_absent_file_is_an_empty_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(CONFIG_FILE_NAME);
        let read = |location: fn(PathBuf) -> ConfigLocation| {
            let read = location(path.clone())
                .read()
                .map(|(text, _)| text.map(|(_, text)| text));
            let unchecked = location(path.clone()).read_unchecked();
            assert_eq!(
                read.as_ref()
                    .ok()
                    .map(|text| text.clone().unwrap_or_default()),
                unchecked
            );
            read.map_err(|error| {
                error
                    .to_string()
                    .replace(&format!("{}/", dir.path().display()), "")
            })
        };
        let default = || read(ConfigLocation::Default);
        let required = || read(ConfigLocation::Required);
        assert_eq!(default(), Ok(None));
        let removed = "toolbay.toml does not exist any more; to run without a configuration, restart the server";
        assert_eq!(required(), Err(removed.to_owned()));
        std::os::unix::fs::symlink("missing", &path).unwrap();
        let dangling = Err("toolbay.toml is a link to a file that does not exist".to_owned());
        assert_eq!((default(), required()), (dangling.clone(), dangling));
        fs::write(dir.path().join("missing"), "a").unwrap();
        assert_eq!(
            (default(), required()),
            (Ok(Some("a".to_owned())), Ok(Some("a".to_owned())))
        );
        fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let fifo = Err("toolbay.toml is not a regular file".to_owned());
        assert_eq!((default(), required()), (fifo.clone(), fifo));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(
            default(),
            Err("toolbay.toml is a folder, not a file".to_owned())
        );
        fs::remove_dir(&path).unwrap();
        fs::File::create(&path)
            .unwrap()
            .set_len(MAX_FILE_BYTES + 1)
            .unwrap();
        assert_eq!(
            default(),
            Err("toolbay.toml is larger than 4 MiB".to_owned())
        );
    }

    #[test]
    fn the_owner_of_a_link_counts() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| dir.path().join(name));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let entry = fs::symlink_metadata(&link).unwrap();
        let opened = fs::metadata(&link).unwrap();
        assert_eq!(distrust_entry(&entry, &opened), None);
        // Only root can give a link to another account.
        if geteuid().is_root() {
            std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
            let entry = fs::symlink_metadata(&link).unwrap();
            let why = distrust_entry(&entry, &opened).unwrap();
            assert_eq!(
                why,
                "it is a link that belongs to another account (user id 65534)"
            );
        }
        let other = fs::metadata(dir.path()).unwrap();
        assert_eq!(
            distrust_entry(&other, &opened).as_deref(),
            Some("it was replaced at this moment")
        );
    }

    #[test]
    fn the_location_follows_from_flags_and_variables() {
        let default = |path: &str| ConfigLocation::Default(path.into());
        assert_eq!(located(None, false, None, &[]), default("toolbay.toml"));
        assert_eq!(
            located(None, false, Some("/srv/plugins"), &[]),
            default("/srv/toolbay.toml")
        );
        assert_eq!(
            located(None, false, Some("plugins"), &[]),
            default("toolbay.toml")
        );
        assert_eq!(
            located(None, false, Some("a/plugins/"), &[]),
            default("a/toolbay.toml")
        );
        let here = std::fs::canonicalize(".").unwrap();
        assert_eq!(
            located(None, false, Some("."), &[]),
            ConfigLocation::Default(here.parent().unwrap().join(CONFIG_FILE_NAME))
        );
        assert_eq!(
            located(None, false, Some("/"), &[]),
            ConfigLocation::Nowhere
        );
        assert_eq!(
            located(None, false, None, &[("TOOLBAY_PLUGINS", "/srv/plugins")]),
            default("/srv/toolbay.toml")
        );
        assert_eq!(
            located(
                None,
                true,
                Some("/srv/plugins"),
                &[("TOOLBAY_CONFIG", "/a")]
            ),
            ConfigLocation::Nowhere
        );
        let named = ConfigLocation::Named("/a".into(), CONFIG_VARIABLE);
        assert_eq!(
            located(
                None,
                false,
                Some("/srv/plugins"),
                &[("TOOLBAY_CONFIG", "/a")]
            ),
            named
        );
        assert_eq!(
            located(Some("/b"), false, None, &[("TOOLBAY_CONFIG", "/a")]),
            ConfigLocation::Named("/b".into(), "--config")
        );
    }
}
