//! Tools that reach for files.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs;
use std::io::{self, Read as _, Seek as _, Write as _};

use serde::Deserialize;
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Path {
    path: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PathText {
    path: String,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PathNumber {
    path: String,
    n: u64,
}

/// Reads a file.
#[tool]
pub(crate) fn read_file(args: Path) -> Result<String> {
    Ok(fs::read_to_string(args.path)?)
}

/// Writes a file.
#[tool]
pub(crate) fn write_file(args: PathText) -> Result<String> {
    fs::write(&args.path, args.text)?;
    Ok("written".to_owned())
}

/// Lists a folder.
#[tool]
pub(crate) fn list_folder(args: Path) -> Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(args.path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names.join(" "))
}

/// Opens a file `n` times and never closes it.
#[tool]
pub(crate) fn hold_open(args: PathNumber) -> Result<String> {
    for _ in 0..args.n {
        std::mem::forget(fs::File::open(&args.path)?);
    }
    Ok(format!("{} handles", args.n))
}

/// Opens a file `n` times, reads a byte each time, and never closes it.
#[tool]
pub(crate) fn read_open(args: PathNumber) -> Result<String> {
    for _ in 0..args.n {
        let mut file = fs::File::open(&args.path)?;
        file.read_exact(&mut [0])?;
        std::mem::forget(file);
    }
    Ok(format!("{} files", args.n))
}

/// Begins to list a folder `n` times, and never ends.
#[tool]
pub(crate) fn list_open(args: PathNumber) -> Result<String> {
    for _ in 0..args.n {
        let mut entries = fs::read_dir(&args.path)?;
        entries.next().transpose()?;
        std::mem::forget(entries);
    }
    Ok(format!("{} folders", args.n))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Steps {
    /// Each is the name of what to do and its arguments.
    steps: Vec<Vec<String>>,
}

/// Does all of the steps, and says how each went: `ok`, what was read, or the error.
#[tool]
pub(crate) fn file_steps(args: Steps) -> String {
    let mut files = HashMap::new();
    let said = args.steps.iter().map(|step| {
        let step: Vec<&str> = step.iter().map(String::as_str).collect();
        act(&step, &mut files).unwrap_or_else(|error| format!("{:?}: {error}", error.kind()))
    });
    said.collect::<Vec<_>>().join("\n")
}

fn act(step: &[&str], files: &mut HashMap<String, fs::File>) -> io::Result<String> {
    match *step {
        ["write", path, text] => fs::write(path, text)?,
        ["append", path, text] => {
            fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)?
                .write_all(text.as_bytes())?;
        }
        ["fill", path, bytes] => fill(&mut fs::File::create(path)?, number(bytes)?)?,
        ["extend", path, bytes] => fill(
            &mut fs::OpenOptions::new().append(true).open(path)?,
            number(bytes)?,
        )?,
        ["size", path, bytes] => {
            fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?
                .set_len(number(bytes)?)?;
        }
        ["seek", path, offset, text] => {
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            file.seek(io::SeekFrom::Start(number(offset)?))?;
            file.write_all(text.as_bytes())?;
        }
        ["open", name, path] => {
            let file = fs::OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            files.insert(name.to_owned(), file);
        }
        ["put", name, bytes] => fill(
            files.get_mut(name).ok_or(io::ErrorKind::NotFound)?,
            number(bytes)?,
        )?,
        ["close", name] => drop(files.remove(name)),
        ["read", path] => return fs::read_to_string(path),
        ["length", path] => return Ok(fs::metadata(path)?.len().to_string()),
        ["list", path] => {
            let mut names = fs::read_dir(path)?
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect::<io::Result<Vec<_>>>()?;
            names.sort();
            return Ok(names.join(" "));
        }
        ["folder", path] => fs::create_dir(path)?,
        ["folders", path] => fs::create_dir_all(path)?,
        ["nest", path, depth] => {
            // Deeper than a path can be long: each is made at the top, and takes the one before
            // into it.
            for _ in 0..number(depth)? {
                let next = format!("{path}.next");
                fs::create_dir(&next)?;
                if fs::metadata(path).is_ok() {
                    fs::rename(path, format!("{next}/in"))?;
                }
                fs::rename(&next, path)?;
            }
        }
        ["remove", path] => fs::remove_file(path)?,
        ["remove-folder", path] => fs::remove_dir(path)?,
        ["remove-all", path] => fs::remove_dir_all(path)?,
        ["rename", from, to] => fs::rename(from, to)?,
        ["link", from, to] => fs::hard_link(from, to)?,
        ["symlink", target, path] => symlink(target, path)?,
        ["swap", path, target, times] => {
            // The folder at `path` and a link are in turns at its place.
            let (folder, link) = (format!("{path}.folder"), format!("{path}.link"));
            for _ in 0..number(times)? {
                let _ = symlink(target, &link);
                let _ = fs::rename(path, &folder);
                let _ = fs::rename(&link, path);
                let _ = fs::remove_file(path);
                let _ = fs::rename(&folder, path);
            }
        }
        ["knock", path, times] => {
            for n in 0..number(times)? {
                let _ = fs::File::open(format!("{path}/{n}"));
            }
        }
        ["hammer", path, times] => {
            let mut read = String::new();
            for _ in 0..number(times)? {
                read.push_str(&fs::read_to_string(path).unwrap_or_default());
                let _ = fs::write(path, "overwritten");
                let _ = fs::remove_file(path);
            }
            read.truncate(100);
            return Ok(format!("ok {read}"));
        }
        _ => return Err(io::Error::other(format!("unknown step {step:?}"))),
    }
    Ok("ok".to_owned())
}

fn number(text: &str) -> io::Result<u64> {
    text.parse().map_err(io::Error::other)
}

/// Writes so many bytes.
fn fill(file: &mut fs::File, bytes: u64) -> io::Result<()> {
    let piece = vec![b'x'; 16 << 10];
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        file.write_all(piece.get(..now).unwrap_or_default())?;
        left -= now as u64;
    }
    Ok(())
}

/// The standard library has this only for experimental builds.
#[expect(unsafe_code, reason = "a function of the C library")]
fn symlink(target: &str, path: &str) -> io::Result<()> {
    mod libc {
        unsafe extern "C" {
            pub(super) fn symlink(
                target: *const std::ffi::c_char,
                path: *const std::ffi::c_char,
            ) -> i32;
        }
    }
    let [target, path] = [target, path].map(|text| CString::new(text).map_err(io::Error::other));
    let (target, path) = (target?, path?);
    // SAFETY: both are strings that end with a zero byte, and are only read.
    match unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
