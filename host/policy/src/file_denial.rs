//! The reasons for denying access to a file or folder, each with a sentence and, if possible, a
//! line of TOML for the operator.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::permissions::{MountAccess, MountPermission, MountScope};

/// Maximum size of a path in a line of TOML, in bytes. A longer path would be truncated.
const MAX_TOML_PATH_BYTES: usize = 256;

/// The reason for denying access to a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileDenial {
    /// No mounted folder contains the path.
    Unmounted {
        /// The absolute path in the guest.
        path: String,
        /// True if the guest tried to create, change or delete the file.
        is_write: bool,
    },
    /// The guest tried to create, change or delete a file in a read-only folder.
    ReadOnly {
        /// The mount.
        mount: Arc<MountPermission>,
        /// The path relative to the mount.
        path: String,
    },
    /// The path leads out of the mounted folder.
    Outside {
        /// The path of the folder in the guest.
        guest: String,
        /// The path relative to the folder.
        path: String,
        /// The path in the guest to which `path` leads; `None` if it leaves the folder through
        /// links.
        target: Option<String>,
        /// True if the guest tried to create, change or delete the file.
        is_write: bool,
    },
}

impl FileDenial {
    /// Returns the TOML under `[permissions]` with which an operator can allow the access. It opens
    /// one folder, and grants write access only if the guest tried to write. The operator must fill
    /// in the folder on the server.
    ///
    /// Returns `None` if the folder would be the whole file system, if links lead out of a mount,
    /// or if one line cannot express all settings of the mount.
    pub fn remedy(&self) -> Option<String> {
        let (path, is_write) = match self {
            Self::Unmounted {
                path,
                is_write: changes,
            } => (path, *changes),
            Self::Outside {
                target,
                is_write: changes,
                ..
            } => (target.as_ref()?, *changes),
            Self::ReadOnly { mount, .. } => return read_write_line(mount),
        };
        let folder = Path::new(path)
            .parent()
            .filter(|folder| folder.parent().is_some())?;
        let access = if is_write { "read-write" } else { "read" };
        Some(format!(
            "mounts = [{{ host = \"FOLDER\", guest = {}, access = \"{access}\" }}]",
            toml_string(folder)?
        ))
    }
}

/// Returns the mount as a line of TOML, with read-write access.
fn read_write_line(mount: &MountPermission) -> Option<String> {
    let MountPermission {
        host_as_written,
        guest,
        scope,
        quota,
        entries,
        allows_control_files: unguarded,
        access: MountAccess::Read,
        ..
    } = mount
    else {
        return None;
    };
    if quota.is_some() || entries.is_some() {
        return None;
    }
    let scope_entry = match scope {
        None => "",
        Some(MountScope::Caller) => ", scope = \"caller\"",
    };
    let unsafe_entry = if *unguarded { ", unsafe = true" } else { "" };
    let [host, guest] = [
        toml_string(host_as_written)?,
        toml_string(Path::new(guest))?,
    ];
    Some(format!(
        "mounts = [{{ host = {host}, guest = {guest}, access = \"read-write\"{scope_entry}{unsafe_entry} }}]"
    ))
}

/// Returns a path as a TOML string; `None` if it is too long or contains control characters.
fn toml_string(path: &Path) -> Option<String> {
    let text = path
        .to_str()
        .filter(|text| text.len() <= MAX_TOML_PATH_BYTES && !text.chars().any(char::is_control))?;
    Some(format!(
        "\"{}\"",
        text.replace('\\', "\\\\").replace('"', "\\\"")
    ))
}

/// Returns the absolute path to which `path` leads from the folder `from`. This is purely lexical:
/// it does not access the file system.
pub fn absolute_path(from: &str, path: &str) -> String {
    let mut absolute = PathBuf::from("/");
    for component in Path::new(from)
        .components()
        .chain(Path::new(path).components())
    {
        match component {
            Component::Normal(name) => absolute.push(name),
            Component::ParentDir => drop(absolute.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    absolute.to_string_lossy().into_owned()
}

/// Formats a sentence for the operator and the model. It contains paths that the guest chose, and
/// no path of the server.
impl fmt::Display for FileDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmounted { path, .. } => {
                write!(f, "No folder that this tool may use contains {path}.")
            }
            Self::ReadOnly { mount, path } => {
                write!(
                    f,
                    "This tool may only read in {}, and not change {}.",
                    mount.guest,
                    absolute_path(&mount.guest, path)
                )
            }
            Self::Outside { guest, path, .. } => {
                write!(
                    f,
                    "The path {}/{path} leads out of {guest}, the folder that this tool may use.",
                    without_trailing_slash(guest)
                )
            }
        }
    }
}

fn without_trailing_slash(guest: &str) -> &str {
    guest.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::Permissions;

    fn unmounted(path: &str, changes: bool) -> FileDenial {
        FileDenial::Unmounted {
            path: path.into(),
            is_write: changes,
        }
    }

    #[test]
    fn remedy_mounts_only_the_folder_of_the_file() {
        let lines = [
            unmounted("/etc/passwd", false).remedy(),
            unmounted("/data/deep/new", true).remedy(),
            unmounted("/we\"ird\\folder/x", false).remedy(),
        ];
        assert_eq!(
            lines.clone().map(Option::unwrap),
            [
                r#"mounts = [{ host = "FOLDER", guest = "/etc", access = "read" }]"#,
                r#"mounts = [{ host = "FOLDER", guest = "/data/deep", access = "read-write" }]"#,
                r#"mounts = [{ host = "FOLDER", guest = "/we\"ird\\folder", access = "read" }]"#,
            ]
        );
        for line in lines.into_iter().flatten() {
            let permissions: Permissions = toml::from_str(&line).unwrap();
            assert_eq!(permissions.mounts.len(), 1, "{line}");
        }
        // The whole file system, lines that would be truncated, and control characters.
        for path in [
            "/",
            "/file",
            &format!("/{}/x", "a".repeat(300)),
            "/a\u{1b}[2J/x",
            "/a\nb/x",
        ] {
            assert_eq!(unmounted(path, false).remedy(), None, "{path}");
        }
    }

    #[test]
    fn remedy_for_a_read_only_mount_changes_only_its_access() {
        let mount = |settings: &str| {
            let text = format!(
                "mounts = [{{ host = \"/srv/a\", guest = \"/a\", access = \"read\"{settings} }}]"
            );
            let mut mount = toml::from_str::<Permissions>(&text)
                .unwrap()
                .mounts
                .remove(0);
            mount.host_as_written = mount.host.clone();
            Arc::new(mount)
        };
        let remedy = |settings: &str| {
            FileDenial::ReadOnly {
                mount: mount(settings),
                path: "x".into(),
            }
            .remedy()
        };
        for more in ["", ", scope = \"caller\"", ", unsafe = true"] {
            let expected = format!(
                "mounts = [{{ host = \"/srv/a\", guest = \"/a\", access = \"read-write\"{more} }}]"
            );
            assert_eq!(remedy(more), Some(expected));
        }
        // One line cannot express all settings of such a mount.
        let limited = Arc::new(MountPermission {
            entries: Some(1),
            ..MountPermission::clone(&mount(""))
        });
        assert_eq!(
            FileDenial::ReadOnly {
                mount: limited,
                path: "x".into()
            }
            .remedy(),
            None
        );
        let denied = FileDenial::ReadOnly {
            mount: mount(""),
            path: "b/../c".into(),
        };
        assert_eq!(
            denied.to_string(),
            "This tool may only read in /a, and not change /a/c."
        );
    }

    #[test]
    fn path_out_of_a_mount_names_its_target() {
        let denied = |path: &str, target: Option<&str>| FileDenial::Outside {
            guest: "/data".into(),
            path: path.into(),
            target: target.map(str::to_owned),
            is_write: false,
        };
        assert_eq!(absolute_path("/data", "../etc/./passwd"), "/etc/passwd");
        assert_eq!(absolute_path("/data", "../../../x"), "/x");
        let etc = denied("../etc/passwd", Some("/etc/passwd"));
        assert_eq!(
            etc.to_string(),
            "The path /data/../etc/passwd leads out of /data, the folder that this tool may use."
        );
        assert_eq!(
            etc.remedy().unwrap(),
            r#"mounts = [{ host = "FOLDER", guest = "/etc", access = "read" }]"#
        );
        assert_eq!(denied("link/x", None).remedy(), None);
    }
}
