//! Sockets through which `toolbay console` finds the servers that clients have started. Each socket
//! is named after the process id of its server, in a directory that only its user can access.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::process::{geteuid, getpid};
use toolbay_private::PrivateFolder;
use toolbay_socket::{SocketFile, is_abandoned};

/// Suffix of the name of a socket, after the process id.
const SOCKET_SUFFIX: &str = ".sock";

/// File mode of a socket.
const SOCKET_MODE: u32 = 0o600;

/// A socket on which this process listens. Its file is removed on drop.
#[derive(Debug)]
pub(crate) struct ConsoleSocket {
    pub(crate) listener: UnixListener,
    pub(crate) file: SocketFile,
}

/// The socket of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerSocket {
    /// Process id of the server.
    pub(crate) pid: u32,
    pub(crate) path: PathBuf,
    /// Time at which the server started.
    pub(crate) started_at: SystemTime,
}

impl ConsoleSocket {
    /// Listens in the first directory where that is possible. Removes the sockets of dead servers
    /// there. Blocks briefly. Must be called before the process confines itself.
    ///
    /// # Errors
    ///
    /// No directory can be used. The message is one line with the reason.
    pub(crate) fn bind() -> Result<Self, String> {
        Self::bind_in(&socket_folders())
    }

    fn bind_in(folders: &[PathBuf]) -> Result<Self, String> {
        let mut why = "there is no folder for its socket".to_owned();
        for folder in folders {
            let bound = open_private_folder(folder).and_then(|folder| {
                drop(list_sockets(&folder));
                let path = folder.join(format!("{}{SOCKET_SUFFIX}", getpid()));
                SocketFile::bind(&path, SOCKET_MODE)
                    .map_err(|error| format!("{}: {error}", path.display()))
            });
            match bound {
                Ok((listener, file)) => return Ok(Self { listener, file }),
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }
}

/// Returns the servers of this user that can open a console, the oldest first.
pub(crate) fn find_servers() -> Vec<ServerSocket> {
    find_servers_in(&socket_folders())
}

fn find_servers_in(folders: &[PathBuf]) -> Vec<ServerSocket> {
    // Missing directories are not created.
    let private_folders = folders
        .iter()
        .filter(|folder| folder.is_dir())
        .filter_map(|folder| open_private_folder(folder).ok());
    let mut servers: Vec<ServerSocket> = private_folders
        .flat_map(|folder| list_sockets(&folder))
        .collect();
    servers.sort_by_key(|one| (one.started_at, one.pid));
    servers
}

/// Returns the directories for sockets, in order of preference. Clients pass few of the user's
/// environment variables to a server. If `XDG_RUNTIME_DIR` is unset, the path that systemd uses is
/// tried.
fn socket_folders() -> Vec<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let runtime = variable("XDG_RUNTIME_DIR")
        .unwrap_or_else(|| format!("/run/user/{}", geteuid().as_raw()).into());
    let runtime = Some(runtime)
        .filter(|folder| folder.is_dir())
        .map(|folder| folder.join("toolbay"));
    let home = std::env::home_dir().map(|home| home.join(".local").join("state"));
    let state = [variable("XDG_STATE_HOME"), home].into_iter().flatten();
    let mut folders: Vec<PathBuf> = runtime.into_iter().collect();
    folders.extend(state.map(|folder| folder.join("toolbay").join("console")));
    folders.dedup();
    folders
}

/// Opens a directory that only this user can access, and creates it if it does not exist.
///
/// # Errors
///
/// The directory cannot be used.
fn open_private_folder(folder: &Path) -> Result<PathBuf, String> {
    let private = PrivateFolder::open(folder, "the sockets of consoles")?;
    // Another user could have placed a link here only if the parent directory belonged to another
    // user, which was checked.
    let metadata = folder
        .symlink_metadata()
        .map_err(|error| format!("cannot use {}: {error}", folder.display()))?;
    if !metadata.is_dir() {
        return Err(format!("{} is a link", folder.display()));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!(
            "{} can be entered by other users (mode {mode:o}; to fix it, run chmod 700)",
            folder.display()
        ));
    }
    Ok(private.path)
}

/// Returns the sockets in a directory. Removes those of dead servers.
fn list_sockets(folder: &Path) -> Vec<ServerSocket> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let socket = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let pid: u32 = name.strip_suffix(SOCKET_SUFFIX)?.parse().ok()?;
        let path = entry.path();
        // A live process that does not listen yet is about to do so.
        if !Path::new(&format!("/proc/{pid}")).exists() && is_abandoned(&path) {
            drop(std::fs::remove_file(&path));
            return None;
        }
        let started_at = entry.metadata().ok()?.modified().ok()?;
        Some(ServerSocket {
            pid,
            path,
            started_at,
        })
    };
    entries.filter_map(Result::ok).filter_map(socket).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, DirBuilder, Permissions};
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_socket_is_found_until_it_is_removed_and_abandoned_ones_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("toolbay");
        assert!(find_servers_in(std::slice::from_ref(&folder)).is_empty() && !folder.exists());
        DirBuilder::new().mode(0o700).create(&folder).unwrap();
        // No process has this id.
        let dead = folder.join("4294967295.sock");
        drop(UnixListener::bind(&dead).unwrap());
        fs::write(folder.join("notes.txt"), "kept").unwrap();
        fs::write(folder.join("4294967294.sock"), "kept: it is not a socket").unwrap();
        let socket = ConsoleSocket::bind_in(std::slice::from_ref(&folder)).unwrap();
        assert!(
            !dead.exists()
                && folder.join("notes.txt").exists()
                && folder.join("4294967294.sock").exists()
        );
        assert_eq!(socket.file.path().metadata().unwrap().mode() & 0o777, 0o600);
        let found = find_servers_in(std::slice::from_ref(&folder));
        assert!(
            found
                .iter()
                .any(|one| one.pid == std::process::id() && one.path == socket.file.path()),
            "{found:?}"
        );
        drop(socket);
        assert!(
            find_servers_in(&[folder])
                .iter()
                .all(|one| one.pid != std::process::id())
        );
    }

    #[test]
    fn a_folder_that_others_can_enter_a_link_and_a_file_are_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (name, mode) in [("open", 0o755), ("writable", 0o770), ("group", 0o710)] {
            fs::create_dir(at(name)).unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        }
        DirBuilder::new().mode(0o700).create(at("good")).unwrap();
        symlink(at("good"), at("link")).unwrap();
        fs::write(at("file"), "").unwrap();
        for name in ["open", "writable", "group", "link", "file", "file/beneath"] {
            let why = ConsoleSocket::bind_in(&[at(name)]).unwrap_err();
            assert!(
                why.contains(name.split('/').next().unwrap()),
                "{name}: {why}"
            );
        }
        let next = ConsoleSocket::bind_in(&[at("open"), at("link"), at("good")]).unwrap();
        assert!(
            next.file
                .path()
                .starts_with(at("good").canonicalize().unwrap())
        );
        assert!(ConsoleSocket::bind_in(&[]).is_err());
        let long = ConsoleSocket::bind_in(&[at(&"x".repeat(100))]).unwrap_err();
        assert!(long.contains("at most 107"), "{long}");
    }
}
