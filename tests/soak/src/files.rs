//! The ways in which files are added to a folder and removed from it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

/// The way in which a file is written.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Overwritten in place, at once.
    Copied,
    /// Overwritten in place, in pieces, with pauses.
    Slowly,
    /// Written to another name in the folder, and renamed.
    Renamed,
    /// Written to another directory, and moved over the existing file.
    Moved,
    /// Written to another directory; a symbolic link to it is moved over the existing file.
    Linked,
}

/// Contents that are not a plugin, and obviously invalid.
const WRONG: [&[u8]; 4] = [
    b"<!doctype html><title>404 Not Found</title>",
    b"\0asm\x01\0\0\0",
    b"\0asm\x0d\0\x01\0\xff\xff\xff\xff\xff\xff",
    b"#!/bin/sh\nexit 1\n",
];

/// The plugin folder, and a directory next to it from which files are moved.
pub(crate) struct Files {
    folder: PathBuf,
    beside: PathBuf,
}

impl Files {
    pub(crate) fn new(folder: &Path, beside: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            beside: beside.to_owned(),
        }
    }

    /// Puts a file into the folder in a random way.
    pub(crate) fn put(&self, name: &str, bytes: &[u8], random: &mut fastrand::Rng) -> Result<()> {
        // A truncated component is recognized as such. A truncated grant may be valid, and is used
        // as it is.
        let ways: &[Way] = if Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            &[Way::Renamed, Way::Moved, Way::Linked]
        } else {
            &[
                Way::Renamed,
                Way::Moved,
                Way::Linked,
                Way::Copied,
                Way::Slowly,
            ]
        };
        let way = random.choice(ways).copied().unwrap_or(Way::Renamed);
        self.put_in(way, name, bytes, random)
            .with_context(|| format!("failed to put {name}: {way:?}"))
    }

    fn put_in(
        &self,
        way: Way,
        name: &str,
        bytes: &[u8],
        random: &mut fastrand::Rng,
    ) -> io::Result<()> {
        let to = self.folder.join(name);
        let part = self.folder.join(format!("{name}.part"));
        let elsewhere = self.beside.join(name);
        let linked = fs::read_link(&to);
        match way {
            // Writing through a link would change another file than the one in the folder.
            Way::Copied | Way::Slowly if linked.is_ok() => fs::remove_file(&to)?,
            _ => {}
        }
        match way {
            Way::Copied => fs::write(&to, bytes)?,
            Way::Slowly => {
                let mut file = fs::File::create(&to)?;
                for piece in bytes.chunks(bytes.len().div_ceil(3).max(1)) {
                    file.write_all(piece)?;
                    pause(Duration::from_millis(random.u64(..30)));
                }
            }
            Way::Renamed => {
                fs::write(&part, bytes)?;
                fs::rename(&part, &to)?;
            }
            Way::Moved => {
                fs::write(&elsewhere, bytes)?;
                fs::rename(&elsewhere, &to)?;
            }
            Way::Linked => {
                // The target of a link never changes. A new link has a new target.
                let target = self.beside.join(format!("{:x}", random.u64(..)));
                fs::write(&target, bytes)?;
                symlink(&target, &elsewhere)?;
                fs::rename(&elsewhere, &to)?;
            }
        }
        if let Ok(target) = linked {
            fs::remove_file(target)?;
        }
        Ok(())
    }

    /// Writes a file that is not a plugin.
    pub(crate) fn put_wrong(&self, name: &str, random: &mut fastrand::Rng) -> Result<()> {
        self.put(name, random.choice(WRONG).unwrap_or_default(), random)
    }

    /// Writes a truncated file, as an interrupted copy does.
    pub(crate) fn put_half(
        &self,
        name: &str,
        bytes: &[u8],
        random: &mut fastrand::Rng,
    ) -> Result<()> {
        let half = bytes
            .get(..random.usize(..bytes.len().max(1)))
            .unwrap_or_default();
        self.put_in(Way::Copied, name, half, random)
            .with_context(|| format!("failed to put half of {name}"))
    }

    /// Removes a file: deletes it, or moves it to another directory.
    pub(crate) fn remove(&self, name: &str, random: &mut fastrand::Rng) -> Result<()> {
        let file = self.folder.join(name);
        let elsewhere = self.beside.join(name);
        let mut remove = || {
            let linked = fs::read_link(&file);
            if random.bool() {
                fs::remove_file(&file)?;
            } else {
                fs::rename(&file, &elsewhere)?;
                fs::remove_file(&elsewhere)?;
            }
            linked.map_or(Ok(()), fs::remove_file)
        };
        remove().with_context(|| format!("failed to remove {name}"))
    }
}

/// Sleeps, as users and programs that work on files do.
#[expect(
    clippy::disallowed_methods,
    reason = "a change of a file is what others wait for; nothing announces it"
)]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_brings_the_same_bytes_whatever_was_there() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("folder");
        let beside = root.path().join("beside");
        fs::create_dir(&folder).unwrap();
        fs::create_dir(&beside).unwrap();
        let files = Files::new(&folder, &beside);
        let mut random = fastrand::Rng::with_seed(1);
        for n in 0..50_u8 {
            files.put("a.wasm", &[n; 10], &mut random).unwrap();
            assert_eq!(fs::read(folder.join("a.wasm")).unwrap(), [n; 10]);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        }
        files
            .put_half("a.wasm", b"0123456789", &mut random)
            .unwrap();
        assert!(fs::metadata(folder.join("a.wasm")).unwrap().len() < 10);
        files.remove("a.wasm", &mut random).unwrap();
        for left in [&folder, &beside] {
            assert_eq!(fs::read_dir(left).unwrap().count(), 0);
        }
    }
}
