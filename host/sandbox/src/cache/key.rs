//! The key of the compile cache. Entries carry a message authentication code with it, so that code which was not put
//! there by a Toolbay of this user, or was put there for another plugin, is never run.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{hmac, rand};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;
use toolbay_model::Digest;
use toolbay_private::{Private, TEMPORARY};

/// Name of the file with the key.
pub(super) const NAME: &str = "key";

/// Length of the key in bytes: that of HMAC-SHA-256's output.
const LENGTH: usize = 32;

/// Bits of a mode that let others read or write.
const OTHERS: u32 = 0o077;

/// Bytes of code that are read at once.
const PIECE: usize = 64 << 10;

/// What the codes are about, so that no other use of the key can give the same.
const PURPOSE: &[u8] = b"toolbay compile cache 1";

/// The key of one cache.
pub(super) struct Key(hmac::Key);

/// What an entry says, without its code.
#[derive(Clone, Copy)]
pub(super) struct Claim<'a> {
    /// Identifies what made the code.
    pub(super) maker: u64,
    /// The component.
    pub(super) digest: Digest,
    /// What is known about it.
    pub(super) notes: &'a [u8],
}

impl Key {
    /// Reads the key in the folder. Makes a new one if there is none, or if others may know the one that is there: the
    /// entries then count for nothing.
    ///
    /// # Errors
    ///
    /// The folder cannot be read or written.
    pub(super) fn of(folder: &Private) -> io::Result<Self> {
        match read(folder) {
            Ok(Some(key)) => return Ok(key),
            Ok(None) => {
                tracing::warn!(
                    "compile cache: its key could have been read or changed by others, or is damaged; a new one replaces \
                     it, and plugins are compiled again"
                );
                make(folder, true)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(folder, false)?,
            Err(error) => return Err(error),
        }
        read(folder)?.ok_or_else(|| io::Error::other("its key changes while it is being read"))
    }

    /// The code of an entry: over what it says, and over all of `code`.
    pub(super) fn sign(&self, claim: Claim<'_>, code: &File) -> io::Result<Vec<u8>> {
        let mut signing = hmac::Context::with_key(&self.0);
        signing.update(PURPOSE);
        signing.update(&claim.maker.to_le_bytes());
        signing.update(claim.digest.bytes());
        signing.update(&(claim.notes.len() as u64).to_le_bytes());
        signing.update(claim.notes);
        let mut code = code;
        code.rewind()?;
        let mut piece = vec![0; PIECE];
        loop {
            match code.read(&mut piece) {
                Ok(0) => return Ok(signing.sign().as_ref().to_vec()),
                Ok(length) => signing.update(piece.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether `mac` is the code of an entry.
    pub(super) fn has_signed(&self, mac: &[u8], claim: Claim<'_>, code: &File) -> io::Result<bool> {
        Ok(verify_slices_are_equal(&self.sign(claim, code)?, mac).is_ok())
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// The key in the folder; `None` if it must not be used.
fn read(folder: &Private) -> io::Result<Option<Key>> {
    let (file, found) = match folder.open_file(NAME) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
        // A link, another user's file, a FIFO: it is not a key of ours.
        Err(_) => return Ok(None),
    };
    let mut bytes = Vec::new();
    file.take(LENGTH as u64 + 1).read_to_end(&mut bytes)?;
    if found.st_mode & OTHERS != 0 || bytes.len() != LENGTH {
        return Ok(None);
    }
    Ok(Some(Key(hmac::Key::new(hmac::HMAC_SHA256, &bytes))))
}

/// Writes a new key, under a temporary name first: nobody reads a part of it. Unless it replaces, another server may
/// have been faster, and its key stays.
fn make(folder: &Private, replaces: bool) -> io::Result<()> {
    let mut random = [0; LENGTH + 8];
    rand::fill(&mut random).map_err(|_| io::Error::other("the system provides no random bytes"))?;
    let (key, name) = random.split_at(LENGTH);
    let temporary = format!("{}key-{}", TEMPORARY, hex::encode(name));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(&folder.handle, &temporary, flags, Mode::RUSR | Mode::WUSR)?);
    let written = file.write_all(key).and_then(|()| file.sync_all()).and_then(|()| {
        let put = || renameat(&folder.handle, &temporary, &folder.handle, NAME);
        if replaces {
            return Ok(put()?);
        }
        match renameat_with(&folder.handle, &temporary, &folder.handle, NAME, RenameFlags::NOREPLACE) {
            // Not every file system can. If two servers make a key now, they discard each other's entries.
            Err(Errno::INVAL | Errno::NOSYS) => Ok(put()?),
            done => Ok(done?),
        }
    });
    match written {
        Ok(()) => Ok(()),
        Err(error) => {
            unlinkat(&folder.handle, &temporary, AtFlags::empty()).ok();
            if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn code(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn claim(notes: &[u8]) -> Claim<'_> {
        Claim { maker: 7, digest: Digest::new([1; 32]), notes }
    }

    #[test]
    fn the_key_is_made_once_and_only_its_user_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Private::open(dir.path(), "tests").unwrap();
        let first = Key::of(&folder).unwrap();
        let metadata = fs::metadata(dir.path().join(NAME)).unwrap();
        assert_eq!((metadata.mode() & 0o777, metadata.len()), (0o600, 32));
        let code = code(b"code");
        let mac = first.sign(claim(b"notes"), &code).unwrap();
        assert!(Key::of(&folder).unwrap().has_signed(&mac, claim(b"notes"), &code).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing temporary is left");
    }

    #[test]
    fn everything_that_an_entry_says_is_signed() {
        let dir = tempfile::tempdir().unwrap();
        let key = Key::of(&Private::open(dir.path(), "tests").unwrap()).unwrap();
        let (file, long) = (code(b"code"), vec![7; 3 * PIECE + 5]);
        let large = code(&long);
        let mac = key.sign(claim(b"notes"), &file).unwrap();
        let signed = |claim: Claim<'_>, file: &File| key.has_signed(&mac, claim, file).unwrap();
        assert!(signed(claim(b"notes"), &file));
        assert!(!signed(Claim { maker: 8, ..claim(b"notes") }, &file));
        assert!(!signed(Claim { digest: Digest::new([2; 32]), ..claim(b"notes") }, &file));
        assert!(!signed(claim(b"note"), &file) && !signed(claim(b""), &file));
        assert!(!signed(claim(b"notes"), &code(b"codes")) && !signed(claim(b"notes"), &code(b"")));
        // The border between notes and code is signed too.
        assert!(!signed(claim(b"note"), &code(b"scode")));
        assert!(!key.has_signed(&mac[..31], claim(b"notes"), &file).unwrap());
        let mac = key.sign(claim(b""), &large).unwrap();
        assert!(key.has_signed(&mac, claim(b""), &large).unwrap());
    }

    #[test]
    fn a_key_that_others_may_know_is_replaced() {
        type Change = fn(&std::path::Path);
        let changes: [Change; 6] = [
            |key| fs::set_permissions(key, fs::Permissions::from_mode(0o640)).unwrap(),
            |key| fs::set_permissions(key, fs::Permissions::from_mode(0o602)).unwrap(),
            |key| fs::write(key, "short").unwrap(),
            |key| fs::write(key, [0; 33]).unwrap(),
            |key| fs::write(key, "").unwrap(),
            |key| {
                fs::rename(key, key.with_extension("elsewhere")).unwrap();
                symlink(key.with_extension("elsewhere"), key).unwrap();
            },
        ];
        for change in changes {
            let dir = tempfile::tempdir().unwrap();
            let folder = Private::open(dir.path(), "tests").unwrap();
            let code = code(b"code");
            let mac = Key::of(&folder).unwrap().sign(claim(b""), &code).unwrap();
            change(&dir.path().join(NAME));
            assert!(!Key::of(&folder).unwrap().has_signed(&mac, claim(b""), &code).unwrap());
            assert_eq!(fs::symlink_metadata(dir.path().join(NAME)).unwrap().mode(), 0o100_600);
        }
    }

    #[test]
    fn servers_that_start_at_once_have_one_key() {
        let dir = tempfile::tempdir().unwrap();
        let code = code(b"code");
        let macs: Vec<_> = std::thread::scope(|scope| {
            let key = || Key::of(&Private::open(dir.path(), "tests").unwrap()).unwrap();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(key)).collect();
            // One after the other: reading moves the file's position.
            threads.into_iter().map(|thread| thread.join().unwrap().sign(claim(b""), &code).unwrap()).collect()
        });
        assert!(macs.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
