//! File of a Unix socket.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, fchmod, flock, fstat, open};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

/// Maximum length of a socket's path, in bytes: the kernel's limit without the terminating zero.
pub const MAX_PATH_BYTES: usize = 107;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Time to wait for another program that starts listening in the same directory.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// File of a socket on which this process listens. Dropping this removes the file, unless another
/// file has replaced it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Handle that keeps the file's inode from being reused.
    handle: OwnedFd,
}

impl SocketFile {
    /// Listens at `path`, on a socket file with this mode. Replaces the socket of a program that
    /// has ended. Blocks briefly.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::AddrInUse`] if another program listens at `path`. Returns another error
    /// if the path cannot be used: it is too long, its directory does not exist, or there is a file
    /// of another kind, which is left unchanged. The text is the end of a sentence about the path.
    pub fn bind(path: &Path, mode: u32) -> io::Result<(UnixListener, Self)> {
        let address = socket_address(path)?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let folder = File::open(folder).and_then(|folder_file| {
            folder_file
                .metadata()
                .map(|metadata| (folder_file, metadata))
        });
        let folder = match folder {
            Ok((opened, metadata)) if metadata.is_dir() => opened,
            Ok(_) => return Err(invalid_path("its folder is a file")),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(invalid_path("its folder does not exist"));
            }
            Err(error) => {
                return Err(io::Error::new(
                    error.kind(),
                    format!("its folder cannot be opened: {error}"),
                ));
            }
        };
        // If two programs find an abandoned socket, the lock makes the second one find the first
        // one's socket. Closing the directory releases the lock.
        let _lock = lock_directory(folder)?;
        remove_abandoned(path, &address)?;
        let socket = new_socket()?;
        let mode = mode & 0o777;
        // The file inherits the socket's mode, so that it never has another one.
        fchmod(&socket, Mode::from_raw_mode(mode))?;
        bind(&socket, &address).map_err(io::Error::from)?;
        let handle = open(
            path,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let stat = fstat(&handle)?;
        let file = Self {
            path: path.to_owned(),
            handle,
        };
        // Restore the mode bits that the umask removed. Clients cannot connect yet.
        if stat.st_mode & 0o777 != mode {
            fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
        listen(&socket, BACKLOG)?;
        Ok((UnixListener::from(socket), file))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let (Ok(own_stat), Ok(metadata)) = (fstat(&self.handle), self.path.symlink_metadata())
        else {
            return;
        };
        if (own_stat.st_dev, own_stat.st_ino) == (metadata.dev(), metadata.ino()) {
            // If removal fails, the next program replaces the file.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Returns whether there is a socket at `path` on which no process listens. Blocks briefly.
pub fn is_abandoned(path: &Path) -> bool {
    let is_socket = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.file_type().is_socket());
    let refuses_connections = |address| {
        new_socket().is_ok_and(|socket| connect(socket, &address) == Err(Errno::CONNREFUSED))
    };
    is_socket && socket_address(path).is_ok_and(refuses_connections)
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

fn socket_address(path: &Path) -> io::Result<SocketAddrUnix> {
    let length = path.as_os_str().len();
    if length > MAX_PATH_BYTES {
        return Err(invalid_path(&format!(
            "the path has {length} bytes, and that of a socket has at most {MAX_PATH_BYTES}"
        )));
    }
    Ok(SocketAddrUnix::new(path)?)
}

fn invalid_path(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

/// Locks the directory and waits for other programs that hold the lock.
fn lock_directory(folder: File) -> io::Result<File> {
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {}
        // On a file system without locks, continue without one.
        _ => return Ok(folder),
    }
    let (sender, lock_receiver) = channel();
    let lock_thread = thread::spawn(move || {
        let _ = flock(&folder, FlockOperation::LockExclusive);
        // Fails if the caller's timeout has expired.
        drop(sender.send(folder));
    });
    let folder = lock_receiver.recv_timeout(LOCK_TIMEOUT);
    let folder = folder.map_err(|_| {
        io::Error::new(
            ErrorKind::WouldBlock,
            "another program holds a lock on its folder",
        )
    })?;
    drop(lock_thread.join());
    Ok(folder)
}

/// Removes the socket of a program that has ended. Leaves all other files unchanged.
fn remove_abandoned(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let file_type = match path.symlink_metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !file_type.is_socket() {
        let kind = if file_type.is_dir() {
            "a folder"
        } else if file_type.is_symlink() {
            "a symbolic link"
        } else {
            "a file that is not a socket"
        };
        return Err(io::Error::new(
            ErrorKind::AlreadyExists,
            format!("there is {kind} already, which is left unchanged"),
        ));
    }
    match connect(new_socket()?, address) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path),
        // Removed in the meantime.
        Err(Errno::NOENT) => Ok(()),
        // A full queue means that another program listens.
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Err(io::Error::new(
            ErrorKind::AddrInUse,
            "another program listens there",
        )),
        Err(Errno::PROTOTYPE) => Err(io::Error::new(
            ErrorKind::AddrInUse,
            "another program has a socket there",
        )),
        Err(error) => {
            let error = io::Error::from(error);
            Err(io::Error::new(
                error.kind(),
                format!("there is a socket already, which cannot be tried: {error}"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn a_socket_has_its_mode_serves_and_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        for wanted in [0o600, 0o660, 0o666, 0o777] {
            let (listener, file) = SocketFile::bind(&path, wanted).unwrap();
            assert_eq!(mode(&path), wanted);
            let _client = UnixStream::connect(&path).unwrap();
            listener.accept().unwrap();
            drop(file);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        // This file is not removed by a drop.
        drop(UnixListener::bind(&path).unwrap());
        assert!(is_abandoned(&path));
        let (listener, file) = SocketFile::bind(&path, 0o600).unwrap();
        assert!(
            !is_abandoned(&path)
                && !is_abandoned(&dir.path().join("missing"))
                && !is_abandoned(dir.path())
        );
        for _ in 0..2 {
            let error = SocketFile::bind(&path, 0o600).unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string().as_str()),
                (ErrorKind::AddrInUse, "another program listens there")
            );
        }
        // A socket with a full queue is not abandoned either.
        let queue: Vec<_> = (0..2000).map_while(|_| connected(&path)).collect();
        assert!(queue.len() > 1000);
        assert_eq!(
            SocketFile::bind(&path, 0o600).unwrap_err().kind(),
            ErrorKind::AddrInUse
        );
        // Dropping a listener keeps the file of its successor.
        drop(listener);
        let (_listener, next) = SocketFile::bind(&path, 0o600).unwrap();
        drop(file);
        assert!(path.exists());
        drop(next);
        assert!(!path.exists());
        let _datagrams = UnixDatagram::bind(&path).unwrap();
        assert_eq!(
            SocketFile::bind(&path, 0o600).unwrap_err().kind(),
            ErrorKind::AddrInUse
        );
    }

    /// Connects, if the queue is not full.
    fn connected(path: &Path) -> Option<OwnedFd> {
        let socket = new_socket().unwrap();
        connect(&socket, &socket_address(path).unwrap())
            .ok()
            .map(|()| socket)
    }

    #[test]
    fn other_files_are_left_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "kept").unwrap();
        fs::create_dir(at("folder")).unwrap();
        drop(UnixListener::bind(at("socket")).unwrap());
        symlink(at("socket"), at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        let bind_error = |path: &Path| SocketFile::bind(path, 0o600).unwrap_err().to_string();
        assert_eq!(
            bind_error(&at("file")),
            "there is a file that is not a socket already, which is left unchanged"
        );
        assert_eq!(
            bind_error(&at("folder")),
            "there is a folder already, which is left unchanged"
        );
        for link in ["link", "dangling"] {
            assert_eq!(
                bind_error(&at(link)),
                "there is a symbolic link already, which is left unchanged"
            );
        }
        assert_eq!(bind_error(&at("missing/s")), "its folder does not exist");
        assert_eq!(bind_error(&at("file/s")), "its folder is a file");
        assert!(bind_error(&at(&"x".repeat(108))).contains("at most 107"));
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "kept");
        assert!(
            at("folder").is_dir()
                && at("socket").exists()
                && at("link").is_symlink()
                && !at("nowhere").exists()
        );
    }

    #[test]
    fn only_one_of_many_programs_replaces_a_dead_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        let bound: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| SocketFile::bind(&path, 0o600).ok()))
                .collect();
            threads
                .into_iter()
                .filter_map(|one| one.join().unwrap())
                .collect()
        });
        assert_eq!(bound.len(), 1);
        UnixStream::connect(&path).unwrap();
        // A lock that another program holds does not block forever.
        let folder = File::open(dir.path()).unwrap();
        flock(&folder, FlockOperation::LockExclusive).unwrap();
        assert_eq!(
            SocketFile::bind(&dir.path().join("t"), 0o600)
                .unwrap_err()
                .kind(),
            ErrorKind::WouldBlock
        );
    }
}
